"""The frames that all subpackages share, and the check of their values.

`schema.toml` declares the columns of documents, questions, runs, answers and scores, and other
names for them. Ids are strings. `facts`, `gold_doc_ids` and `doc_ids` hold tuples of strings. An
answer that is not known is `None`, never an empty string; a missing score is no row, never 0.
"""

from __future__ import annotations

import ast
import json
import math
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ragkit import checks
from ragkit.errors import DataError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

_FRAMES = tomllib.loads(Path(__file__).with_name("schema.toml").read_text("utf-8"))
COLUMNS = {kind: tuple(frame["columns"]) for kind, frame in _FRAMES.items()}
KEYS = {kind: tuple(frame["key"]) for kind, frame in _FRAMES.items()}
TUPLES = {kind: tuple(frame.get("tuples", ())) for kind, frame in _FRAMES.items()}
ALIASES = {kind: frame["aliases"] for kind, frame in _FRAMES.items()}
# What fills the columns that a user's row leaves open.
DEFAULTS = {
    kind: {
        column: frame.get("defaults", {}).get(column, () if column in TUPLES[kind] else None)
        for column in frame.get("optional", ())
    }
    for kind, frame in _FRAMES.items()
}
# The kinds of documents of EnterpriseRAG-Bench: folders of its released archive.
SOURCES = ("slack", "gmail", "linear", "google_drive", "hubspot", "fireflies", "github", "jira")
SOURCES += ("confluence",)


def names(columns: Iterable[str], kind: str) -> dict[str, str]:
    """Return the columns of a file that have another name here, with that name."""
    columns = [str(column) for column in columns]
    taken, found = set(columns), {}
    for alias, ours in ALIASES[kind].items():
        for column in columns:
            if column.lower() == alias and ours not in taken:
                found[column] = ours
                taken.add(ours)
    return found


def complete(row: dict, kind: str, system: str = "") -> dict:
    """Return a user's row with other names translated, ids as strings and `DEFAULTS` filled in.

    Parameters
    ----------
    row : dict
    kind : {"documents", "questions", "answers", "runs"}
    system : str
        The system of an answer or a ranked document that names none.

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
        elif column in TUPLES[kind]:
            row[column] = strings(row[column], column)
    for column in COLUMNS[kind]:
        if column not in row:
            raise DataError(f"no column {column!r}", did_you_mean(column, row))
        if column.endswith("_id") and type(row[column]) is int:
            row[column] = str(row[column])
        if problem := _problem(row[column], kind, column):
            raise DataError(f"{column} {problem}")
    if not isinstance(row.get("answer"), str | None):
        raise DataError(f"answer should be a text, found {row['answer']!r:.60}")
    return row


def _problem(value, kind: str, column: str) -> str:
    """Return what is wrong with a value of a frame, in words."""
    if column in TUPLES[kind]:
        fine = isinstance(value, tuple) and all(isinstance(part, str) for part in value)
        return "" if fine else f"should be a tuple of strings, found {value!r:.60}"
    key = column in KEYS[kind] and column != "rank"
    if key or column in _FRAMES[kind].get("texts", ()):
        if not isinstance(value, str) or not value.strip():
            return f"should be a text, found {value!r:.60}"
        if key and "\0" in value:
            return f"holds a NUL character: {value!r:.60}"
    return ""


def strings(values, where: str) -> tuple[str, ...]:
    """Return a list of strings or whole numbers, or its text, as a tuple of strings.

    The text may be that of JSON or of Python.

    Raises
    ------
    DataError
        If it is anything else; `where` names the place and the column.
    """
    if isinstance(values, str) and values.lstrip().startswith("["):
        for parse in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError):
                values = parse(values)
                break
    if not isinstance(values, list | tuple):
        raise DataError(f"{where} should be a list of strings, found {values!r:.60}")
    for value in values:
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise DataError(f"{where} should hold strings, found {value!r:.60}")
    return tuple(map(str, values))


def number(value, where: str) -> float:
    """Return a value of a file as a float, NaN if it is empty.

    Raises
    ------
    DataError
        If it is no finite number; `where` names the place and the column.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return math.nan
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        raise DataError(f"{where} should be a number, found {value!r:.60}")
    return found


def released(located: Iterator[tuple[str, dict]], kind: str) -> Iterator[tuple[str, dict]]:
    """Translate the rows of releases whose layout differs, not only the names of their columns.

    LiveRAG keeps documents inside questions; WixQA numbers its questions by their order.
    """
    documents = set()
    for number, (place, row) in enumerate(located, start=1):
        if "Supporting_Documents" in row:
            texts = row["Supporting_Documents"] or ()
            if kind == "documents":
                for text in texts:
                    if text["doc_id"] not in documents:
                        documents.add(text["doc_id"])
                        yield place, text
                continue
            claims = row.get("Answer_Claims") or {}
            row = {
                "question_id": row.get("Index"),
                "text": row.get("Question"),
                "answer": row.get("Answer"),
                "facts": [*(claims.get("direct") or ()), *(claims.get("useful") or ())],
                "gold_doc_ids": [text["doc_id"] for text in texts],
            }
        elif kind == "questions" and "article_ids" in row and not {"id", "question_id"} & set(row):
            row = {"question_id": str(number), **row}
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
    parts = PurePosixPath(name).parts
    doc_id, separator, _ = parts[-1].partition("__")
    sources = [part for part in parts if part in SOURCES]
    if not separator or not sources:
        raise DataError(
            f"{name}: expected SOURCE/.../DOCID__NAME.txt with a source of {', '.join(SOURCES)}"
        )
    title, _, content = (part.strip() for part in text.partition("\n"))
    row = {"doc_id": doc_id, "source": sources[0], "title": title, "text": content or title}
    return row | {"path": name}


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
    for column in COLUMNS[checks.choice(kind, "frame", COLUMNS)]:
        if column not in frame.columns:
            raise DataError(
                f"{where}: {kind} lack the column {column!r}",
                f"expected {', '.join(COLUMNS[kind])}; found {', '.join(map(str, frame.columns))}",
            )
    row = f"{where}: row {{}} of {kind}"
    for column in (*KEYS[kind], *_FRAMES[kind].get("texts", ()), *TUPLES[kind]):
        for place, value in enumerate(frame[column], start=1):
            if problem := _problem(value, kind, column):
                raise DataError(f"{row.format(place)}: {column} {problem}")
    for column in {"runs": ["rank"], "scores": ["score"]}.get(kind, ()):
        if (missing := frame[column].isna()).any():
            hint = "leave the row out: a missing score is no row"
            raise DataError(f"{row.format(_first(missing))} has no {column}", hint)
    if (repeated := frame.duplicated(list(KEYS[kind]))).any():
        place = _first(repeated)
        values = ", ".join(f"{name}={frame[name].iloc[place - 1]!r}" for name in KEYS[kind])
        raise DataError(f"{row.format(place)} repeats {values}")
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


def _first(mask: pd.Series) -> int:
    return int(mask.to_numpy().argmax()) + 1
