"""Ranking in a sweep: what is shared by all retrievers, and decides their ranked lists."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ragkit.systems.retrieval import frames


class Leads:
    """A retriever that indexes the title and the first words of each text only."""

    def __init__(self, retriever, words: int):
        self.retriever, self.words, self.system = retriever, words, retriever.system

    def fit(self, documents: pd.DataFrame) -> Leads:
        leads = documents["text"].str.split(n=self.words).str[: self.words].str.join(" ")
        self.retriever.fit(documents.assign(text=leads))
        return self

    def search(self, queries, k: int) -> pd.DataFrame:
        return self.retriever.search(queries, k)


def ranked_lists(retriever, texts: Sequence[str], k: int) -> list[list]:
    """Return the ranked list of each text: [doc_id, score] of k documents at most, best first."""
    ids = [str(number) for number in range(len(texts))]
    runs = retriever.search(pd.DataFrame({"question_id": ids, "text": list(texts)}), k)
    return [list(map(list, pairs)) for pairs in frames.ranked_lists(runs, ids)]
