"""Ranking in a sweep: what is shared by all retrievers, and decides their ranked lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


class Leads:
    """A retriever that indexes the first words of each text only.

    Parameters
    ----------
    retriever
        With `fit(documents)`, `search(queries, k)` and `system`.
    words : int
    """

    def __init__(self, retriever, words: int):
        self.retriever, self.words, self.system = retriever, words, retriever.system

    def fit(self, documents: pd.DataFrame) -> Leads:
        """Index documents with their texts cut, at white space; titles stay whole."""
        leads = documents["text"].str.split(n=self.words).str[: self.words].str.join(" ")
        self.retriever.fit(documents.assign(text=leads))
        return self

    def search(self, queries, k: int) -> pd.DataFrame:
        """Return the retriever's `runs` frame."""
        return self.retriever.search(queries, k)


def ranked_lists(retriever, texts: Sequence[str], k: int) -> list[list]:
    """Return the ranked list of each text: [doc_id, score] of k documents at most, best first."""
    import pandas as pd

    lists: dict[str, list] = {str(number): [] for number in range(len(texts))}
    runs = retriever.search(pd.DataFrame({"question_id": list(lists), "text": list(texts)}), k)
    for name, doc_id, score in zip(runs["question_id"], runs["doc_id"], runs["score"], strict=True):
        lists[name].append([doc_id, float(score)])
    return list(lists.values())
