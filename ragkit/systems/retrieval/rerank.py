"""The first documents of another retriever, ordered again by a cross-encoder."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd

from ragkit import checks, models
from ragkit.errors import UsageError
from ragkit.systems.retrieval.frames import (
    Retriever,
    check_fields,
    document_texts,
    ranked_lists,
    reusable,
)

LONG = ("windows", "truncate")


class Rerank(Retriever):
    """Order the first documents of a retriever by the scores of a cross-encoder.

    Parameters
    ----------
    retriever
        With `fit(documents)`, `search(questions, k)` and `system`.
    reranker : str or object
        A name of `ragkit.models.cards()`, or an object with `name` and `score_pairs(pairs)`, where
        a pair is (query, passage), which returns an array.
    depth : int
        How many documents are scored: also the largest number that is returned.
    long : {"windows", "truncate"}
        The rule for long documents. "windows": a document is cut into pieces and has the score of
        its best one. "truncate": the reranker reads the beginning. "windows" needs a reranker of
        `ragkit.models`.
    window_tokens, overlap : int
        Tokens of a piece, and how many of them it shares with the piece before.
    fields, system
        See `Retriever`; the default of `system` is the retriever's, "+" and the reranker's.
    cache : bool or path-like
        Where a reranker of `ragkit.models` keeps scores.

    Notes
    -----
    Documents of equal score stay in the retriever's order. The texts of all documents are kept.

    Source: Nogueira and Cho 2019, Passage re-ranking with BERT, section 3; Dai and Callan 2019,
    Deeper text understanding for IR with contextual neural language modeling, section 3 (MaxP).
    """

    _fitted = "texts_"

    def __init__(
        self,
        retriever,
        reranker="ms-marco-MiniLM-L-12-v2-int8",
        *,
        depth: int = 20,
        long: str = "windows",
        window_tokens: int = 256,
        overlap: int = 64,
        fields: tuple[str, ...] = ("title", "text"),
        system: str | None = None,
        cache: bool | str | os.PathLike = True,
    ):
        self.retriever, self.depth = retriever, checks.whole(depth, "depth")
        self.long = checks.choice(long, "rule for long documents", LONG)
        self.fields = check_fields(fields)
        self.window_tokens = checks.whole(window_tokens, "window_tokens")
        self.overlap = checks.whole(overlap, "overlap", least=0, most=self.window_tokens - 1)
        self.reranker = models.reranker(reranker) if isinstance(reranker, str) else reranker
        self._ours = isinstance(self.reranker, models.Reranker)
        if long == "windows" and not self._ours:
            raise UsageError("windows need a reranker of ragkit.models, which knows its tokens")
        self.system = system or f"{retriever.system}+{self.reranker.name}"
        self.cache = cache

    def fit(self, documents) -> Rerank:
        documents = reusable(documents)
        self.texts_ = dict(document_texts(documents, self.fields))
        self.retriever.fit(documents)
        return self

    def _search(self, ids, texts, k):
        lists = ranked_lists(self.retriever, texts, self.depth)
        pieces = {doc_id: [self.texts_[doc_id]] for own in lists for doc_id, _ in own}
        if self.long == "windows":
            size = self.window_tokens, self.overlap
            pieces = {name: self.reranker.windows(text, *size) for name, [text] in pieces.items()}
        rows = [
            (number, doc_id, text, piece)
            for number, (text, own) in enumerate(zip(texts, lists, strict=True))
            for doc_id, _ in own
            for piece in pieces[doc_id]
        ]
        options = {"cache": self.cache} if self._ours else {}
        scores = self.reranker.score_pairs([row[2:] for row in rows], **options)
        table = pd.DataFrame(rows, columns=["question", "document", "text", "piece"])
        table["score"] = np.asarray(scores, dtype=float)
        best = table.groupby(["question", "document"], sort=False)["score"].max()
        found: list[list[tuple[str, float]]] = [[] for _ in texts]
        for (number, doc_id), score in best.sort_values(ascending=False, kind="stable").items():
            found[number].append((doc_id, score))
        return [own[:k] for own in found]
