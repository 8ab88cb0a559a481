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
# What must hold text that is more than white space, and what must hold tuples of strings.
TEXTS = {"documents": ("text",), "questions": ("text",)}
TUPLES = {"questions": ("facts", "gold_doc_ids"), "answers": ("doc_ids",)}


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
        If a column is missing, an id is empty, no string or there before, a text is empty or no
        string, facts or document ids are no tuple of strings, or a score is missing. The message
        names the row, counted from 1.
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
        if column != "rank":
            _check_strings(frame, column, kind, where, f"has an empty {column}")
        elif frame[column].isna().any():
            row = _first(frame[column].isna())
            raise DataError(f"{where}: row {row} of {kind} has an empty {column}")
    repeated = frame.duplicated(key)
    if repeated.any():
        row = _first(repeated)
        values = ", ".join(f"{column}={frame[column].iloc[row - 1]!r}" for column in key)
        raise DataError(f"{where}: row {row} of {kind} repeats {values}")
    for column in TEXTS.get(kind, ()):
        _check_strings(frame, column, kind, where, f"has no {column}")
    for column in TUPLES.get(kind, ()):
        bad = ~frame[column].map(_is_tuple_of_strings).astype(bool)
        if bad.any():
            found = frame[column].iloc[_first(bad) - 1]
            raise DataError(
                f"{where}: row {_first(bad)} of {kind}: "
                f"{column} should be a tuple of strings, found {found!r}"
            )
    if kind == "scores" and frame["score"].isna().any():
        raise DataError(
            f"{where}: row {_first(frame['score'].isna())} of {kind} has no score",
            "leave the row out: a missing score is no row",
        )
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


def _check_strings(frame, column: str, kind: str, where: str, complaint: str) -> None:
    values = frame[column]
    empty = values.isna() | (values.astype(str).str.strip() == "")
    if empty.any():
        row = _first(empty)
        name = "" if column in KEYS[kind] else f" ({frame[KEYS[kind][0]].iloc[row - 1]})"
        raise DataError(f"{where}: row {row} of {kind}{name} {complaint}")
    other = ~values.map(lambda value: isinstance(value, str)).astype(bool)
    if other.any():
        found = values.iloc[_first(other) - 1]
        raise DataError(
            f"{where}: row {_first(other)} of {kind}: {column} should be a string, found {found!r}"
        )


def _is_tuple_of_strings(value) -> bool:
    return isinstance(value, tuple) and all(isinstance(part, str) for part in value)


def _first(mask) -> int:
    return int(mask.to_numpy().argmax()) + 1
