"""A user's documents, and those near a text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ragkit.errors import DataError
from ragkit.files import read_frame

if TYPE_CHECKING:
    import pandas as pd

NAME = "documents.jsonl"


def located(source: str | Path) -> Path:
    """Return the file of a user's documents: that of a folder, or the one that is named."""
    return Path(source) / NAME if Path(source).is_dir() else Path(source)


def read_documents(source: str | Path) -> pd.DataFrame:
    """Return doc_id, source, title and text of documents, and whatever else they have.

    The source is a folder with documents.jsonl, or a file that `ragkit.files.read_frame` reads, such
    as a benchmark's release. Raises `DataError` if it is not there, or has no documents, or a row
    is not as it should be.
    """
    path = located(source)
    if not Path(source).exists():
        raise DataError(f"{source}: no such folder or file", f"name a folder with {NAME}")
    if not path.exists() or not path.stat().st_size:
        raise DataError(f"{source}: no documents ({path.name} is missing or empty)")
    return read_frame(path, "documents")


class Nearest:
    """Search documents, a frame or rows, by BM25; the index is built when it is needed."""

    def __init__(self, documents: pd.DataFrame | list[dict]):
        self.documents = documents

    @cached_property
    def words(self):
        from ragkit.systems.retrieval import BM25

        return BM25().fit(self.documents)

    def search(self, queries: Sequence[str], k: int) -> list[list[str]]:
        """Return for each query the ids of the best k documents."""
        return ranked(self.words, queries, k) if queries else []


def ranked(retriever, queries: Sequence[str], k: int) -> list[list[str]]:
    """Return for each query the ids of a retriever's best k documents."""
    found: list[list[str]] = [[] for _ in queries]
    runs = retriever.search(list(queries), k)
    for query, doc_id in zip(runs["question_id"], runs["doc_id"], strict=True):
        found[int(query)].append(doc_id)
    return found
