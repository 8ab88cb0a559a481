"""Several retrievers as one: their ranked lists, fused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ragkit.errors import UsageError, did_you_mean
from ragkit.systems.retrieval.frames import check_whole, query_texts, runs_frame

if TYPE_CHECKING:
    import pandas as pd

METHODS = ("rrf", "convex")


class Hybrid:
    """Rank documents by what several retrievers say about them.

    Parameters
    ----------
    retrievers : sequence
        Two or more with `fit(documents)`, `search(queries, k)` and `system`.
    method : {"rrf", "convex"}
        "rrf", reciprocal rank fusion: the sum of weight / (k0 + rank). "convex": the weighted mean
        of scores, each retriever's scores for a question stretched to 0 to 1; a document that is
        not in a list has 0 there.
    k0 : float, at least 0
        How little the first ranks stand out; for "rrf" only.
    depth : int
        How much of each list is read.
    weights : sequence of float, optional
        One a retriever, at least 0 and not all 0; equal ones by default.
    system : str, optional
        The name in the `system` column; the method and its parts' names by default.

    Notes
    -----
    Documents of equal score come in the order of their ranks in the first retriever's list, then
    the second's, and so on; one that is missing from a list comes behind those that are in it.

    Source: Cormack, Clarke and Büttcher 2009, Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods, section 2; Bruch, Gai and Ingber 2023, An analysis of fusion
    functions for hybrid retrieval, section 4.
    """

    def __init__(
        self,
        retrievers: Sequence,
        *,
        method: str = "rrf",
        k0: float = 60,
        depth: int = 100,
        weights: Sequence[float] | None = None,
        system: str | None = None,
    ):
        retrievers = list(retrievers)
        if len(retrievers) < 2:
            raise UsageError(f"a hybrid needs two retrievers or more, found {len(retrievers)}")
        if method not in METHODS:
            raise UsageError(f"Hybrid has no method {method!r}", did_you_mean(method, METHODS))
        if not 0 <= k0 < float("inf"):
            raise UsageError(f"k0 should be 0 or more, found {k0!r}")
        weights = [1.0] * len(retrievers) if weights is None else [float(w) for w in weights]
        if len(weights) != len(retrievers):
            raise UsageError(f"expected {len(retrievers)} weights, found {len(weights)}")
        if not all(0 <= w < float("inf") for w in weights) or not any(weights):
            raise UsageError(f"weights should be 0 or more and not all 0, found {weights}")
        self.retrievers, self.method, self.k0 = retrievers, method, k0
        self.depth, self.weights = check_whole(depth, "depth"), weights
        names = "+".join(retriever.system for retriever in retrievers)
        self.system = system or f"{method}({names})"

    def fit(self, documents: pd.DataFrame | Iterable[pd.DataFrame | Mapping]) -> Hybrid:
        """Index documents with every retriever; returns itself. Errors are theirs."""
        if not hasattr(documents, "columns") and not isinstance(documents, Sequence | Mapping):
            documents = list(documents)
        for retriever in self.retrievers:
            retriever.fit(documents)
        return self

    def search(self, queries: pd.DataFrame | Iterable[str], k: int = 10) -> pd.DataFrame:
        """Return the best documents for each query.

        Parameters
        ----------
        queries : DataFrame with question_id and text, or iterable of str
            Strings get their position, from "0", as question_id.
        k : int, at least 1
            How many documents at most; there are no more than the lists hold together.

        Returns
        -------
        DataFrame
            `runs`: system, question_id, rank (from 1), doc_id, score (above 0 for "rrf").
        """
        k = check_whole(k, "k")
        if not hasattr(queries, "columns"):
            queries = queries if isinstance(queries, str) else list(queries)
        ids, _ = query_texts(queries)
        lists = [
            _by_question(retriever.search(queries, max(k, self.depth)))
            for retriever in self.retrievers
        ]
        found = [self._fused([own.get(name, ()) for own in lists])[:k] for name in ids]
        return runs_frame(
            self.system, ids, [tuple(zip(*part, strict=True)) or ((), ()) for part in found]
        )

    def _fused(self, lists: list) -> list[tuple[str, float]]:
        scores: dict[str, float] = {}
        ranks: dict[str, list[float]] = {}
        total = sum(self.weights)
        for number, (own, weight) in enumerate(zip(lists, self.weights, strict=True)):
            if not len(own):
                continue
            top, bottom = own[0][1], own[-1][1]
            for rank, (doc_id, score) in enumerate(own, start=1):
                if self.method == "rrf":
                    part = weight / (self.k0 + rank)
                else:
                    part = (
                        weight
                        / total
                        * ((score - bottom) / (top - bottom) if top > bottom else 1.0)
                    )
                scores[doc_id] = scores.get(doc_id, 0.0) + part
                ranks.setdefault(doc_id, [float("inf")] * len(lists))[number] = rank
        order = sorted(scores, key=lambda doc_id: (-scores[doc_id], ranks[doc_id]))
        return [(doc_id, scores[doc_id]) for doc_id in order]


def _by_question(runs: pd.DataFrame) -> dict[str, list[tuple[str, float]]]:
    """Return each question's (doc_id, score), best first."""
    found: dict[str, list] = {}
    runs = runs.sort_values("rank", kind="stable")
    for question_id, doc_id, score in zip(
        runs["question_id"], runs["doc_id"], runs["score"], strict=True
    ):
        found.setdefault(question_id, []).append((doc_id, score))
    return found
