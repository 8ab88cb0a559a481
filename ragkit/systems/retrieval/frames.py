"""What every retriever takes and gives: documents and queries in, a `runs` frame out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ragkit.errors import DataError, UsageError

if TYPE_CHECKING:
    import pandas as pd


def check_fields(fields) -> tuple[str, ...]:
    """Return the names of the columns that make a document's text."""
    if isinstance(fields, str) or not fields:
        raise UsageError(f"fields should be a tuple of column names, found {fields!r}")
    return tuple(fields)


def check_whole(value, name: str, *, least: int = 1) -> int:
    """Return a whole number that is large enough, or raise `UsageError`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise UsageError(f"{name} should be a whole number from {least}, found {value!r}")
    return int(value)


def document_texts(
    documents: pd.DataFrame | Iterable[pd.DataFrame | Mapping], fields: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Yield the id and the text of each document: its fields, joined by an empty line.

    A field that is None or NaN is left out.

    Raises
    ------
    DataError
        If there is no document, a column is missing, an id is empty, no string or there before,
        or a field holds something else than a string.
    """
    seen: set[str] = set()
    for number, (doc_id, *parts) in enumerate(_rows(documents, fields), start=1):
        if not isinstance(doc_id, str) or not doc_id.strip():
            raise DataError(f"document {number} should have a string as doc_id, found {doc_id!r}")
        if doc_id in seen:
            raise DataError(f"document {number} repeats the doc_id {doc_id!r}")
        seen.add(doc_id)
        yield doc_id, _joined(parts, fields, number, doc_id)
    if not seen:
        raise DataError("there are no documents to index", "give at least one")


def query_texts(queries: pd.DataFrame | Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the ids and the texts of queries; strings get their position, from "0", as id.

    Raises
    ------
    DataError
        If a query is no string, or a question_id is empty, no string or there before.
    """
    if isinstance(queries, str):
        raise DataError("expected several queries, found one string", "put it into a list")
    if hasattr(queries, "columns"):
        _need(("question_id", "text"), queries.columns, "the queries lack the column")
        ids, texts = queries["question_id"].tolist(), queries["text"].tolist()
        check_ids(ids)
    else:
        texts = list(queries)
        ids = [str(number) for number in range(len(texts))]
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise DataError(
                f"query {number} ({ids[number - 1]}) should be a string, found {text!r}"
            )
    return ids, texts


def check_ids(ids: Sequence, thing: str = "query", name: str = "question_id") -> None:
    """Raise `DataError` if an id is empty, no string or there before."""
    seen = set()
    for number, found in enumerate(ids, start=1):
        if not isinstance(found, str) or not found.strip():
            raise DataError(f"{thing} {number} should have a string as {name}, found {found!r}")
        if found in seen:
            raise DataError(f"{thing} {number} repeats the {name} {found!r}")
        seen.add(found)


def runs_frame(
    system: str, question_ids: Sequence[str], found: Sequence[tuple[Sequence[str], Sequence[float]]]
) -> pd.DataFrame:
    """Return a `runs` frame of each question's documents and scores, best first."""
    import pandas as pd

    sizes = [len(documents) for documents, _ in found]
    ranks = [np.arange(1, size + 1) for size in sizes] or [np.empty(0, np.int64)]
    doc_ids = [doc_id for documents, _ in found for doc_id in documents]
    scores = [np.asarray(values, dtype=np.float64) for _, values in found]
    return pd.DataFrame(
        {
            "system": pd.Series([system] * len(doc_ids), dtype=object),
            "question_id": pd.Series(np.repeat(np.array(question_ids, dtype=object), sizes)),
            "rank": np.concatenate(ranks),
            "doc_id": pd.Series(doc_ids, dtype=object),
            "score": np.concatenate(scores or [np.empty(0)]),
        }
    )


def _rows(documents, fields):
    """Yield (doc_id, field, ...) of each document."""
    columns = ("doc_id", *fields)
    if hasattr(documents, "columns"):  # a frame; pandas itself is not needed here
        documents = [documents]
    elif isinstance(documents, str | Mapping):
        raise DataError(f"expected documents, found one {type(documents).__name__}")
    for number, part in enumerate(documents, start=1):
        if hasattr(part, "columns"):
            _need(columns, part.columns, "the documents lack the column")
            yield from zip(*(part[column].array for column in columns), strict=True)
        elif isinstance(part, Mapping):
            _need(columns, part, f"document {number} lacks")
            yield tuple(part[column] for column in columns)
        else:
            raise DataError(
                f"document {number} should be a mapping or a frame, found {type(part).__name__}"
            )


def _need(columns, found, complaint: str) -> None:
    for column in columns:
        if column not in found:
            raise DataError(
                f"{complaint} {column!r}",
                f"expected {', '.join(columns)}; found {', '.join(map(str, found))}",
            )


def _joined(parts, fields, number: int, doc_id: str) -> str:
    kept = []
    for field, part in zip(fields, parts, strict=True):
        if isinstance(part, str):
            kept.append(part)
        elif part is not None and part == part:
            raise DataError(
                f"document {number} ({doc_id}): {field} should be a string, found {part!r}"
            )
    return "\n\n".join(kept)
