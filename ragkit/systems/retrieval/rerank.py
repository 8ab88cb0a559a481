"""A second look at the first documents of another retriever, by a cross-encoder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ragkit import models
from ragkit.errors import UsageError, did_you_mean
from ragkit.systems.retrieval.frames import (
    check_fields,
    check_whole,
    document_texts,
    query_texts,
    runs_frame,
)

if TYPE_CHECKING:
    import pandas as pd

LONG = ("windows", "truncate")


class Rerank:
    """Order the first documents of a retriever by how well a cross-encoder likes them.

    Parameters
    ----------
    retriever
        With `fit(documents)`, `search(queries, k)` and `system`.
    reranker : str or object
        A name of `ragkit.models.cards()`, or anything with `name` and `score_pairs(pairs)`, where
        a pair is (query, passage), that returns an array.
    depth : int
        How many documents are looked at, and the most that are returned.
    long : {"windows", "truncate"}
        "windows": a document is cut into pieces and its best one counts. "truncate": the reranker
        reads the beginning. "windows" needs a reranker of `ragkit.models`.
    window_tokens, overlap : int
        Tokens of a piece, and how many of them it shares with the one before.
    fields : tuple of str
        The columns that make a document's text, joined by an empty line.
    system : str, optional
        The name in the `system` column; the retriever's, "+" and the reranker's by default.
    cache : bool or path-like
        Where a reranker of `ragkit.models` keeps scores.
    progress : bool
        Whether such a reranker draws a progress bar.

    Notes
    -----
    Documents of equal score stay in the retriever's order. The texts of all documents are kept.

    Source: Nogueira and Cho 2019, Passage re-ranking with BERT, section 3; Dai and Callan 2019,
    Deeper text understanding for IR with contextual neural language modeling, section 3 (MaxP).
    """

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
        progress: bool = False,
    ):
        if long not in LONG:
            raise UsageError(f"Rerank has no rule {long!r}", did_you_mean(long, LONG))
        self.reranker = models.reranker(reranker) if isinstance(reranker, str) else reranker
        self._ours = isinstance(self.reranker, models.Reranker)
        if long == "windows" and not self._ours:
            raise UsageError("windows need a reranker of ragkit.models, which knows its tokens")
        self.retriever, self.depth = retriever, check_whole(depth, "depth")
        self.long, self.fields = long, check_fields(fields)
        self.window_tokens = check_whole(window_tokens, "window_tokens")
        self.overlap = check_whole(overlap, "overlap", least=0)
        if self.overlap >= self.window_tokens:
            raise UsageError(
                f"overlap should be below window_tokens ({window_tokens}), found {overlap}"
            )
        self.system = system or f"{retriever.system}+{self.reranker.name}"
        self.cache, self.progress = cache, progress

    def fit(self, documents: pd.DataFrame | Iterable[pd.DataFrame | Mapping]) -> Rerank:
        """Index documents with the retriever, and keep their texts; returns itself."""
        if not hasattr(documents, "columns") and not isinstance(documents, Sequence | Mapping):
            documents = list(documents)
        self.texts_ = dict(document_texts(documents, self.fields))
        self.retriever.fit(documents)
        return self

    def search(self, queries: pd.DataFrame | Iterable[str], k: int = 10) -> pd.DataFrame:
        """Return the best documents for each query.

        Parameters
        ----------
        queries : DataFrame with question_id and text, or iterable of str
            Strings get their position, from "0", as question_id.
        k : int, at least 1
            How many documents at most; never more than `depth`.

        Returns
        -------
        DataFrame
            `runs`: system, question_id, rank (from 1), doc_id, score (the reranker's).
        """
        if not hasattr(self, "texts_"):
            raise UsageError("Rerank has no index yet", "call fit(documents) first")
        k = check_whole(k, "k")
        if not hasattr(queries, "columns"):
            queries = queries if isinstance(queries, str) else list(queries)
        ids, texts = query_texts(queries)
        asked = dict(zip(ids, texts, strict=True))
        runs = self.retriever.search(queries, self.depth).sort_values("rank", kind="stable")
        pieces = {doc_id: self._pieces(doc_id) for doc_id in runs["doc_id"].unique()}
        pairs, sizes = [], []
        for question_id, doc_id in zip(runs["question_id"], runs["doc_id"], strict=True):
            pairs += [(asked[question_id], piece) for piece in pieces[doc_id]]
            sizes.append(len(pieces[doc_id]))
        options = {"cache": self.cache, "progress": self.progress} if self._ours else {}
        scores = np.asarray(self.reranker.score_pairs(pairs, **options), dtype=np.float64)
        starts = np.cumsum([0, *sizes])[:-1]
        best = np.maximum.reduceat(scores, starts) if len(starts) else scores
        runs = runs.assign(score=best).sort_values("score", ascending=False, kind="stable")
        groups = {name: part.head(k) for name, part in runs.groupby("question_id")}
        empty = runs.head(0)
        parts = [groups.get(name, empty) for name in ids]
        found = [(part["doc_id"].tolist(), part["score"].to_numpy()) for part in parts]
        return runs_frame(self.system, ids, found)

    def _pieces(self, doc_id: str) -> list[str]:
        text = self.texts_[doc_id]
        if self.long == "truncate":
            return [text]
        return self.reranker.windows(text, self.window_tokens, self.overlap)
