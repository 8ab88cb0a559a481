"""Search among the documents of a company, and their texts for a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from ragkit.systems.retrieval import BM25, Dense, Hybrid
from ragkit.text import STOP_WORDS, stems

ENCODER = "all-MiniLM-L6-v2"
STEP = 250  # characters between two passages that are compared


class Library:
    """The documents by key, with three retrievers: by words, by vectors, and both fused.

    Parameters
    ----------
    rows : dict of str to dict
        Documents as rows of the benchmark, by key.
    vectors : bool
        Whether documents are encoded; an estimate on stand-ins does without.
    """

    def __init__(self, rows: Mapping[str, dict], vectors: bool = True):
        self.rows, self.vectors = rows, vectors

    @property
    def _frame(self) -> list[dict]:
        return [
            {"doc_id": key, "title": row["title"], "text": row["content"]}
            for key, row in self.rows.items()
        ]

    @cached_property
    def _words(self) -> BM25:
        return BM25().fit(self._frame)

    @cached_property
    def _retrievers(self) -> list:
        if not self.vectors:
            return [self._words]
        pair = [self._words, Dense(ENCODER).fit(self._frame)]
        return [*pair, Hybrid(pair)]

    @property
    def systems(self) -> list[str]:
        """Return the names of the retrievers."""
        return [retriever.system for retriever in self._retrievers]

    def near(self, query: str, k: int, skip: Sequence[str] = ()) -> list[str]:
        """Return the first k documents by words, without those that are skipped."""
        found = self._words.search([query], k + len(skip))["doc_id"]
        return [key for key in found if key not in skip][:k]

    def pooled(self, queries: Sequence[str], k: int) -> list[list[str]]:
        """Return for each query the first k documents of each retriever, by turns and once each."""
        found: list[list[str]] = [[] for _ in queries]
        for retriever in self._retrievers:
            runs = retriever.search(list(queries), k)
            for i, keys in runs.groupby("question_id", sort=False)["doc_id"]:
                found[int(i)] += enumerate(keys)
        return [
            list(dict.fromkeys(key for _, key in sorted(pairs, key=lambda pair: pair[0])))
            for pairs in found
        ]

    def text(self, key: str, most: int | None = None) -> str:
        """Return a document for a prompt: key, path, title and text, or its beginning."""
        row = self.rows[key]
        return f"[{key}] {row['path']}\n{row['title']}\n\n{row['content'][:most]}"

    def texts(self, keys: Sequence[str], most: int | None = None) -> str:
        return "\n\n---\n\n".join(self.text(key, most) for key in keys)

    def listed(self, keys: Sequence[str]) -> str:
        """Return documents as a list of keys, paths and titles."""
        rows = ((key, self.rows[key]) for key in keys)
        return "\n".join(f"- {key} ({row['path']}) {row['title']}" for key, row in rows)

    def passage(self, key: str, query: str, characters: int) -> str:
        """Return the part of a document that has most words of a query, with its head."""
        row, wanted = self.rows[key], set(content(query))
        text = row["content"]
        starts = range(0, max(1, len(text) - characters + STEP), STEP)
        best = max(starts, key=lambda at: len(wanted & set(content(text[at : at + characters]))))
        return f"[{key}] {row['path']}\n{row['title']}\n\n...{text[best : best + characters]}..."


def content(text: str) -> list[str]:
    """Return the stems of the words that carry meaning."""
    words = [word.strip(".,;:!?\"'()[]*`") for word in text.lower().split()]
    return stems(word for word in words if word and word not in STOP_WORDS)
