"""Search among the documents of a company, and their texts for a prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain, zip_longest

from ragkit.synth.folder import Nearest, ranked
from ragkit.systems.retrieval import Dense, Hybrid
from ragkit.text import STOP_WORDS, stems

ENCODER = "all-MiniLM-L6-v2"
STEP = 250  # characters between two passages that are compared


class Library(Nearest):
    """The documents by key, with three retrievers: by words, by vectors, and both fused.

    `rows` are documents as rows of the benchmark, by key. Without `vectors` there is the first
    retriever alone, for an estimate on stand-ins.
    """

    def __init__(self, rows: Mapping[str, dict], vectors: bool = True):
        super().__init__(
            [{"doc_id": k, "title": r["title"], "text": r["content"]} for k, r in rows.items()]
        )
        self.rows, self.vectors = rows, vectors

    @cached_property
    def retrievers(self) -> list:
        if not self.vectors:
            return [self.words]
        pair = [self.words, Dense(ENCODER).fit(self.documents)]
        return [*pair, Hybrid(pair)]

    def near(self, query: str, k: int, skip: Sequence[str] = ()) -> list[str]:
        """Return the first k documents by words, without those that are skipped."""
        (found,) = self.search([query], k + len(skip))
        return [key for key in found if key not in skip][:k]

    def pooled(self, queries: Sequence[str], k: int) -> list[list[str]]:
        """Return for each query the first k documents of each retriever, by turns and once each."""
        runs = zip(*(ranked(one, queries, k) for one in self.retrievers), strict=True)
        turns = (chain.from_iterable(zip_longest(*own)) for own in runs)
        return [list(dict.fromkeys(key for key in own if key)) for own in turns]

    def text(self, key: str, most: int | None = None) -> str:
        """Return a document for a prompt: key, path, title and text, or its beginning."""
        row = self.rows[key]
        return f"[{key}] {row['path']}\n{row['title']}\n\n{row['content'][:most]}"

    def texts(self, keys: Sequence[str], most: int | None = None) -> str:
        return "\n\n---\n\n".join(self.text(key, most) for key in keys)

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
