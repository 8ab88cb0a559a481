"""The frames that every room of the package shares, and the check that a frame is one of them.

===========  ==========================================================================
frame        columns (more may follow)
===========  ==========================================================================
documents    doc_id, source, title, text
questions    question_id, text, type, answer, facts, gold_doc_ids
runs         system, question_id, rank, doc_id, score
answers      system, question_id, answer, doc_ids
scores       subject_id, item_id, score
===========  ==========================================================================

Ids are strings. `facts`, `gold_doc_ids` and `doc_ids` hold tuples of strings. An answer that is
not known is `None`, never an empty string; a score that is missing is no row, never 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragkit.errors import DataError, UsageError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "documents": ("doc_id", "source", "title", "text"),
    "questions": ("question_id", "text", "type", "answer", "facts", "gold_doc_ids"),
    "runs": ("system", "question_id", "rank", "doc_id", "score"),
    "answers": ("system", "question_id", "answer", "doc_ids"),
    "scores": ("subject_id", "item_id", "score"),
}
KEYS = {
    "documents": ("doc_id",),
    "questions": ("question_id",),
    "runs": ("system", "question_id", "rank"),
    "answers": ("system", "question_id"),
    "scores": ("subject_id", "item_id"),
}
# What must hold text that is more than white space.
TEXTS = {"documents": ("text",), "questions": ("text",)}


def check(frame: pd.DataFrame, kind: str, where: str = "frame") -> pd.DataFrame:
    """Return `frame` unchanged if it is a valid frame of its kind.

    Parameters
    ----------
    frame : pandas.DataFrame
    kind : {"documents", "questions", "runs", "answers", "scores"}
    where : str
        A name for the frame, used in messages: usually the file it was read from.

    Raises
    ------
    DataError
        If a column is missing, a key repeats or is empty, or a text is empty. The message names
        the row, counted from 1.
    UsageError
        If `kind` is unknown.
    """
    if kind not in COLUMNS:
        raise UsageError(f"no frame is called {kind!r}", did_you_mean(kind, COLUMNS))
    missing = [column for column in COLUMNS[kind] if column not in frame.columns]
    if missing:
        raise DataError(
            f"{where}: {kind} lack the column {missing[0]!r}",
            f"expected {', '.join(COLUMNS[kind])}; found {', '.join(map(str, frame.columns))}",
        )
    key = list(KEYS[kind])
    for column in key:
        bad = frame[column].isna()
        if column != "rank":
            bad |= frame[column].astype(str).str.strip() == ""
        if bad.any():
            raise DataError(f"{where}: row {_first(bad)} of {kind} has an empty {column}")
    repeated = frame.duplicated(key)
    if repeated.any():
        row = _first(repeated)
        values = ", ".join(f"{column}={frame[column].iloc[row - 1]!r}" for column in key)
        raise DataError(f"{where}: row {row} of {kind} repeats {values}")
    for column in TEXTS.get(kind, ()):
        empty = frame[column].isna() | (frame[column].astype(str).str.strip() == "")
        if empty.any():
            name = frame[key[0]].iloc[_first(empty) - 1]
            raise DataError(f"{where}: row {_first(empty)} of {kind} ({name}) has no {column}")
    return frame


def check_gold(questions: pd.DataFrame, documents: pd.DataFrame, where: str = "questions") -> None:
    """Raise `DataError` if a question's gold document is not among `documents`."""
    known = set(documents["doc_id"])
    for question_id, gold in zip(questions["question_id"], questions["gold_doc_ids"], strict=True):
        for doc_id in gold:
            if doc_id not in known:
                raise DataError(
                    f"{where}: question {question_id!r} names the gold document {doc_id!r}, "
                    f"which is not among the {len(known):,} documents"
                )


def _first(mask) -> int:
    return int(mask.to_numpy().argmax()) + 1
