"""Several retrievers as one: their ranked lists, fused."""

from __future__ import annotations

from collections.abc import Sequence

from ragkit import checks
from ragkit.errors import UsageError
from ragkit.systems.retrieval.frames import Found, Retriever, ranked_lists, reusable

METHODS = ("rrf", "convex")


class Hybrid(Retriever):
    """Rank documents by the fused lists of several retrievers.

    Parameters
    ----------
    retrievers : sequence
        Two or more with `fit(documents)`, `search(questions, k)` and `system`.
    method : {"rrf", "convex"}
        "rrf", reciprocal rank fusion: the sum of weight / (k0 + rank). "convex": the weighted mean
        of scores, each retriever's scores for a question scaled to 0 to 1; a document that is
        not in a list has 0 there.
    k0 : float, at least 0
        The constant of "rrf": with a larger one, the first ranks stand out less.
    depth : int
        How much of each list is read.
    weights : sequence of float, optional
        One for each retriever, at least 0 and not all 0; equal ones by default.
    system : str, optional
        See `Retriever`; the method and its parts' names by default.

    Notes
    -----
    Documents of equal score come in the order of their ranks in the first retriever's list, then
    the second's, and so on; one that is missing from a list comes behind those that are in it.

    Source: Cormack, Clarke and Büttcher 2009, Reciprocal rank fusion outperforms Condorcet and
    individual rank learning methods, section 2; Bruch, Gai and Ingber 2023, An analysis of fusion
    functions for hybrid retrieval, section 4.
    """

    _fitted = "retrievers"  # whether these are fitted is checked by each of them

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
        self.retrievers = list(retrievers)
        if len(self.retrievers) < 2:
            raise UsageError(f"a hybrid needs two retrievers or more, found {len(self.retrievers)}")
        self.method = checks.choice(method, "method of Hybrid", METHODS)
        self.k0 = checks.number(k0, "k0", least=0)
        self.depth = checks.whole(depth, "depth")
        weights = [1.0] * len(self.retrievers) if weights is None else weights
        if not isinstance(weights, Sequence) or len(weights) != len(self.retrievers):
            raise UsageError(f"weights should be {len(self.retrievers)} numbers, found {weights!r}")
        self.weights = [checks.number(weight, "each weight", least=0) for weight in weights]
        if not any(self.weights):
            raise UsageError("weights should not all be 0")
        names = "+".join(retriever.system for retriever in self.retrievers)
        self.system = system or f"{method}({names})"

    def fit(self, documents) -> Hybrid:
        documents = reusable(documents)
        for retriever in self.retrievers:
            retriever.fit(documents)
        return self

    def _search(self, ids, texts, k):
        depth = max(k, self.depth)
        parts = [ranked_lists(part, texts, depth) for part in self.retrievers]
        return [self._fused(lists)[:k] for lists in zip(*parts, strict=True)]

    def _fused(self, lists: Sequence[Found]) -> Found:
        scores: dict[str, float] = {}
        ranks: dict[str, list[float]] = {}
        total = sum(self.weights)
        for number, (own, weight) in enumerate(zip(lists, self.weights, strict=True)):
            for rank, (doc_id, score) in enumerate(own, start=1):
                if self.method == "rrf":
                    part = weight / (self.k0 + rank)
                else:
                    top, bottom = own[0][1], own[-1][1]
                    scaled = (score - bottom) / (top - bottom) if top > bottom else 1.0
                    part = weight / total * scaled
                scores[doc_id] = scores.get(doc_id, 0.0) + part
                ranks.setdefault(doc_id, [float("inf")] * len(lists))[number] = rank
        order = sorted(scores, key=lambda doc_id: (-scores[doc_id], ranks[doc_id]))
        return [(doc_id, scores[doc_id]) for doc_id in order]
