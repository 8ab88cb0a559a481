"""The documents of a user's folder, and those near a text."""

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


def read_documents(folder: str | Path) -> pd.DataFrame:
    """Return doc_id, source, title and text of a folder's documents, and whatever else they have.

    Raises `DataError` if there is no such folder, or no documents, or a row is not as it should be.
    """
    path = Path(folder) / NAME
    if not path.parent.is_dir():
        raise DataError(f"{folder}: no such folder", f"name a folder with {NAME}")
    if not path.exists() or not path.stat().st_size:
        raise DataError(f"{folder}: no documents ({NAME} is missing or empty)")
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
