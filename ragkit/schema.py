"""The frames that all subpackages share, other names for their columns, and the check of a frame.

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

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import PurePosixPath
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
# Columns that must hold more than white space, and columns of tuples of strings.
TEXTS = {"documents": ("text",), "questions": ("text",)}
TUPLES = {"questions": ("facts", "gold_doc_ids"), "answers": ("doc_ids",)}

# Names of the columns in the benchmarks' releases and in common use, in lower case. Of several
# names for one column the first that a file has counts.
ALIASES = {
    "documents": {
        "id": "doc_id",
        "_id": "doc_id",
        "contents": "text",
        "content": "text",
        "source_type": "source",
        "article_type": "source",
    },
    "questions": {
        "id": "question_id",
        "_id": "question_id",
        "query_id": "question_id",
        "question": "text",
        "query": "text",
        "question_type": "type",
        "gold_answer": "answer",
        "answer_facts": "facts",
        "expected_doc_ids": "gold_doc_ids",
        "article_ids": "gold_doc_ids",
        "document_ids": "gold_doc_ids",
        "doc_ids": "gold_doc_ids",
    },
    "answers": {
        "id": "question_id",
        "query_id": "question_id",
        "document_ids": "doc_ids",
        "article_ids": "doc_ids",
    },
    "runs": {"query_id": "question_id"},
    "scores": {"system": "subject_id", "question_id": "item_id", "value": "score"},
}
# What a user's row may leave open; the system of answers and runs is the file's name.
DEFAULTS = {
    "documents": {"source": "own", "title": ""},
    "questions": {"type": "unknown", "answer": None, "facts": (), "gold_doc_ids": ()},
    "answers": {"answer": None, "doc_ids": ()},
    "runs": {},
}
# The kinds of documents of EnterpriseRAG-Bench: folders of its released archive.
SOURCES = (
    "slack",
    "gmail",
    "linear",
    "google_drive",
    "hubspot",
    "fireflies",
    "github",
    "jira",
    "confluence",
)


def names(columns: Iterable[str], kind: str) -> dict[str, str]:
    """Return the columns of a file that have another name here, with that name."""
    columns = [str(column) for column in columns]
    taken = set(columns)
    found = {}
    for alias, ours in ALIASES[kind].items():
        for column in columns:
            if column.lower() == alias and ours not in taken:
                found[column] = ours
                taken.add(ours)
    return found


def complete(row: dict, kind: str, system: str = "") -> dict:
    """Return a user's row with the columns of its kind.

    Parameters
    ----------
    row : dict
    kind : {"documents", "questions", "answers", "runs"}
    system : str
        The system of an answer or a ranked document that names none.

    Returns
    -------
    dict
        The row with other names translated, ids as strings and `DEFAULTS` filled in.

    Raises
    ------
    DataError
        If a column is missing, or a value is not what it should be.
    """
    other = names(row, kind)
    row = {other.get(name, name): value for name, value in row.items()}
    if "system" in COLUMNS[kind]:
        row.setdefault("system", system)
    for column, default in DEFAULTS[kind].items():
        if row.get(column) is None:
            row[column] = default
        elif column in TUPLES.get(kind, ()):
            row[column] = strings(row[column], column)
    for column in COLUMNS[kind]:
        if column not in row:
            raise DataError(f"no column {column!r}", did_you_mean(column, row))
        if column.endswith("_id") and isinstance(row[column], int) and row[column] is not True:
            row[column] = str(row[column])
        if column in (*KEYS[kind], *TEXTS.get(kind, ())) and column != "rank":
            _check_text(row[column], column)
    if not isinstance(row.get("answer"), str | None):
        raise DataError(f"answer should be a text, found {row['answer']!r:.60}")
    return row


def _check_text(value, column: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{column} should be a text, found {value!r:.60}")
    if column.endswith("_id") and "\0" in value:
        raise DataError(f"{column} holds a NUL character: {value!r:.60}")


def strings(values, column: str) -> tuple[str, ...]:
    """Return a list of strings or whole numbers, or its JSON text, as a tuple of strings.

    Raises
    ------
    DataError
        If it is anything else.
    """
    if isinstance(values, str) and values.lstrip().startswith("["):
        with suppress(ValueError):
            values = json.loads(values)
    if not isinstance(values, list | tuple):
        raise DataError(f"{column} should be a list of strings, found {values!r:.60}")
    for value in values:
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise DataError(f"{column} should hold strings, found {value!r:.60}")
    return tuple(map(str, values))


def released(located: Iterator[tuple[str, dict]], kind: str) -> Iterator[tuple[str, dict]]:
    """Translate the rows of releases whose layout differs, not only the names of their columns.

    LiveRAG keeps documents inside questions; WixQA numbers its questions by their order.

    Parameters
    ----------
    located : iterator of (str, dict)
        Rows with their places in the file.
    kind : {"documents", "questions", "answers", "runs"}

    Yields
    ------
    str, dict
    """
    documents = set()
    for number, (place, row) in enumerate(located, start=1):
        if "Supporting_Documents" in row:
            texts = row["Supporting_Documents"] or ()
            if kind == "documents":
                new = [text for text in texts if text["doc_id"] not in documents]
                documents.update(text["doc_id"] for text in new)
                yield from ((place, text) for text in new)
                continue
            claims = row.get("Answer_Claims") or {}
            yield (
                place,
                {
                    "question_id": row.get("Index"),
                    "text": row.get("Question"),
                    "answer": row.get("Answer"),
                    "facts": [*(claims.get("direct") or ()), *(claims.get("useful") or ())],
                    "gold_doc_ids": [text["doc_id"] for text in texts],
                },
            )
        elif kind == "questions" and "article_ids" in row and not {"id", "question_id"} & set(row):
            yield place, {"question_id": str(number), **row}
        else:
            yield place, row


def released_document(name: str, text: str) -> dict:
    """Return a text file of EnterpriseRAG-Bench's archive as a row of `documents`.

    Parameters
    ----------
    name : str
        Path inside the archive: `SOURCE/.../DOCID__STEM.txt`.
    text : str
        The title, an empty line, the content.

    Raises
    ------
    DataError
        If the path has no source or no id.
    """
    parts = [part for part in PurePosixPath(name).parts if part not in (".", "/")]
    doc_id, separator, _ = parts[-1].partition("__")
    sources = [part for part in parts if part in SOURCES]
    if not separator or not sources:
        raise DataError(
            f"{name}: expected SOURCE/.../DOCID__NAME.txt with a source of {', '.join(SOURCES)}"
        )
    title, _, content = text.partition("\n")
    return {
        "doc_id": doc_id,
        "source": sources[0],
        "title": title.strip(),
        "text": content.strip() or title.strip(),
        "path": name,
    }


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
        If a column is missing; an id is empty, not a string, a duplicate or holds NUL; a text is
        empty or not a string; facts or document ids are not a tuple of strings; or a score is
        missing. The message names the row, counted from 1.
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
    if column in KEYS[kind]:
        nul = values.map(lambda value: "\0" in value).astype(bool)
        if nul.any():
            row = _first(nul)
            raise DataError(f"{where}: row {row} of {kind}: {column} holds a NUL character")


def _is_tuple_of_strings(value) -> bool:
    return isinstance(value, tuple) and all(isinstance(part, str) for part in value)


def _first(mask) -> int:
    return int(mask.to_numpy().argmax()) + 1
