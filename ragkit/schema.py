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
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ragkit import checks
from ragkit.errors import DataError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

_FRAMES = tomllib.loads(Path(__file__).with_name("schema.toml").read_text("utf-8"))
_LIVERAG = _FRAMES.pop("liverag")
COLUMNS = {kind: tuple(frame["columns"]) for kind, frame in _FRAMES.items()}
KEYS = {kind: tuple(frame["key"]) for kind, frame in _FRAMES.items()}
TUPLES = {kind: tuple(frame.get("tuples", ())) for kind, frame in _FRAMES.items()}
NUMBERS = {kind: tuple(frame.get("numbers", ())) for kind, frame in _FRAMES.items()}
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
_NO_SCORE = "leave the row out: a missing score is not 0"


@cache
def names(columns: tuple[str, ...], kind: str) -> dict[str, str]:
    """Return the columns of a file that have another name here, with that name.

    Our own name counts before others, and these in the order of `schema.toml`: a release may have
    an `id` beside its `doc_id`. Raises `DataError` if two of `columns` are names of one column of
    lists or numbers, where the one that is left out would change a score.
    """
    taken, found = dict(zip(columns, columns, strict=True)), {}
    for alias, ours in _FRAMES[kind]["aliases"].items():
        for column in (column for column in columns if column.lower() == alias):
            if (first := taken.setdefault(ours, column)) == column:
                found[column] = ours
            elif ours in (*TUPLES[kind], *NUMBERS[kind]):
                words = f"{first!r} and {column!r} are two names of the column {ours!r}"
                raise DataError(words, "rename or remove one of them")
    return found


def complete(row: dict, kind: str, system: str = "") -> dict:
    """Return a user's row with other names translated, ids as strings and `DEFAULTS` filled in.

    `kind` is the frame's; `system` is that of an answer or a ranked document that names none. Raises
    `DataError` if a column is missing, or a value is not what it should be.
    """
    other = names(tuple(row), kind)
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
    for column in NUMBERS[kind]:
        row[column] = number(row[column], column)
        if math.isnan(row[column]):
            raise DataError(f"no {column}", _NO_SCORE)
    if not isinstance(row.get("answer"), str | None):
        raise DataError(f"answer should be a text, found {row['answer']!r:.60}")
    return row


def _problem(value, kind: str, column: str) -> str:
    """Return what is wrong with a value of a frame, in words."""
    if column in TUPLES[kind]:
        fine = isinstance(value, tuple) and all(isinstance(part, str) for part in value)
        return "" if fine else f"should be a tuple of strings, found {value!r:.60}"
    key = column in KEYS[kind] and column != "rank"
    filled = key or column in _FRAMES[kind].get("texts", ())
    if filled or column in _FRAMES[kind].get("labels", ()):
        if not isinstance(value, str) or (filled and not value.strip()):
            return f"should be a text, found {value!r:.60}"
        if key and "\0" in value:
            return f"holds a NUL character: {value!r:.60}"
    return ""


def strings(values, where: str) -> tuple[str, ...]:
    """Return a list of strings or whole numbers, or its text, as a tuple of strings.

    The text may be that of JSON or of Python. Raises `DataError` if it is anything else; `where`
    names the place and the column.
    """
    if isinstance(values, str) and values.lstrip().startswith("["):
        for parse in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
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

    Raises `DataError` if it is no finite number; `where` names the place and the column.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return math.nan
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise DataError(f"{where} should be a number, found {value!r:.60}")
    return found


def released(row: dict, kind: str, position: int, texts: dict[str, str]) -> Iterator[dict]:
    """Yield the rows of a frame that a row of a release holds.

    Only layouts count that differ by more than the names of columns: LiveRAG keeps documents inside
    questions, WixQA numbers its questions by their order (`position`). `texts` are those of the
    documents of earlier rows; a document is yielded once. Raises `DataError` if a row of LiveRAG is
    not what `schema.toml` declares, or has another text of a document than an earlier one.
    """
    if "Supporting_Documents" not in row:
        if kind == "questions" and "article_ids" in row and not {"id", "question_id"} & set(row):
            row = {"question_id": str(position), **row}
        yield row
        return
    for error in _liverag_row().iter_errors(row):
        raise DataError(f"{': '.join(map(str, error.path))}: {error.message:.99}")
    gold = row["Supporting_Documents"] or ()
    for one in gold if kind == "documents" else ():
        if one["doc_id"] not in texts:
            yield one
        if texts.setdefault(one["doc_id"], one["content"]) != one["content"]:
            words = f"the document {one['doc_id']!r} has another text than in an earlier row"
            raise DataError(words)
    if kind != "documents":
        claims = row.get("Answer_Claims") or {}
        yield {
            "question_id": row.get("Index"),
            "text": row.get("Question"),
            "answer": row.get("Answer"),
            "facts": [*(claims.get("direct") or ()), *(claims.get("useful") or ())],
            "gold_doc_ids": [one["doc_id"] for one in gold],
        }


@cache
def _liverag_row():
    from jsonschema import Draft202012Validator

    return Draft202012Validator(_LIVERAG)


def check(frame: pd.DataFrame, kind: str, where: str = "frame") -> pd.DataFrame:
    """Return `frame` unchanged if it is a valid frame of its kind.

    Raises `DataError`, with `where` (usually the file) and the row, counted from 1, if a column is
    missing; an id is empty, not a string, a duplicate or holds NUL; a text is empty or not a
    string; facts or document ids are not a tuple of strings; or a score is missing. Raises
    `UsageError` if `kind` is unknown.
    """
    for column in COLUMNS[checks.choice(kind, "frame", COLUMNS)]:
        if column not in frame.columns:
            raise DataError(
                f"{where}: {kind} lack the column {column!r}",
                f"expected {', '.join(COLUMNS[kind])}; found {', '.join(map(str, frame.columns))}",
            )
    row = f"{where}: row {{}} of {kind}"
    for column in COLUMNS[kind]:
        values = frame[column].reset_index(drop=True)
        if values.map(type).eq(str).all():  # millions of scores have few ids
            values = values.drop_duplicates()
        for place, value in values.items():
            if problem := _problem(value, kind, column):
                raise DataError(f"{row.format(place + 1)}: {column} {problem}")
    for column in NUMBERS[kind]:
        if (missing := frame[column].isna()).any():
            raise DataError(f"{row.format(_first(missing))} has no {column}", _NO_SCORE)
    if (repeated := frame.duplicated(list(KEYS[kind]))).any():
        place = _first(repeated)
        values = ", ".join(f"{name}={frame[name].iloc[place - 1]!r}" for name in KEYS[kind])
        raise DataError(f"{row.format(place)} repeats {values}")
    return frame


def check_gold(questions: pd.DataFrame, documents: pd.DataFrame, where: str = "questions") -> None:
    """Raise `DataError` if a question's gold document is not among `documents`."""
    gold = questions.set_index("question_id")["gold_doc_ids"].explode().dropna()
    lost = gold[~gold.isin(documents["doc_id"])]
    if len(lost):
        raise DataError(
            f"{where}: question {lost.index[0]!r} names the gold document {lost.iloc[0]!r}, "
            f"which is not among the {len(documents):,} documents"
        )


def _first(mask: pd.Series) -> int:
    return int(mask.to_numpy().argmax()) + 1
