"""Cross-encoders: how well a passage answers a query."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache as remember
from functools import cached_property
from pathlib import Path

import numpy as np

from ragkit.errors import DataError
from ragkit.models import cache as caching
from ragkit.models.base import Model, at_hand, strings
from ragkit.models.registry import Card, card

BATCH = 32


class Reranker(Model):
    """A cross-encoder; made by `ragkit.models.reranker`.

    Attributes
    ----------
    name : str
    max_tokens : int
        Query, passage and three special tokens together; a longer pair loses the end of the
        longer of the two.

    Notes
    -----
    A score is the model's logit, without a sigmoid. Pairs are scored one at a time: a score
    depends on its pair alone.
    """

    def score(
        self,
        query: str,
        passages: Sequence[str],
        *,
        cache: bool | str | os.PathLike = False,
        progress: bool = False,
    ) -> np.ndarray:
        """Return the score of each passage for one query; see `score_pairs`."""
        passages = strings(passages, "passage")
        pairs = [(query, passage) for passage in passages]
        return self.score_pairs(pairs, cache=cache, progress=progress)

    def score_pairs(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        cache: bool | str | os.PathLike = False,
        progress: bool = False,
    ) -> np.ndarray:
        """Return the score of each (query, passage), higher is better.

        Parameters
        ----------
        pairs : sequence of (str, str), length n
        cache, progress
            As in `ragkit.models.Encoder.encode`.

        Returns
        -------
        array of shape (n,), float32

        Raises
        ------
        DataError
            If something is no string, or the model's score is NaN or infinite.
        HashMismatch
            If the weights are not the registered ones.
        ModelError
            If the weights cannot be loaded.
        """
        pairs = [tuple(pair) for pair in pairs]
        for number, pair in enumerate(pairs, start=1):
            if len(pair) != 2:
                raise DataError(f"pair {number} should be (query, passage), found {pair!r:.80}")
        queries = strings([query for query, _ in pairs], "query of pair")
        passages = strings([passage for _, passage in pairs], "passage of pair")
        scores = caching.through(
            self._store(cache),
            [caching.key(*pair) for pair in pairs],
            lambda places: self._scores(
                [queries[n] for n in places], [passages[n] for n in places]
            ),
            dimension=1,
            sizes=[len(query) + len(passage) for query, passage in pairs],
            batch=BATCH,
            progress=progress,
            unit="pair",
        )
        return scores[:, 0]

    def _scores(self, queries: list[str], passages: list[str]) -> np.ndarray:
        score = self._onnx if self.card.onnx else self._torch
        rows = []
        for query, passage in zip(queries, passages, strict=True):
            value = score(self._lead(query, self.max_tokens), self._lead(passage, self.max_tokens))
            if not np.isfinite(value):
                raise DataError(f"{self.name} gives {value} for the passage {passage!r:.80}")
            rows.append([value])
        return np.array(rows, dtype=np.float32)

    def _onnx(self, query: str, passage: str) -> float:
        return float(self._run(self._cutting.encode(query, passage))[0])

    def _torch(self, query: str, passage: str) -> float:
        import torch

        with self._torch_threads():
            values = self._model.predict(
                [(query, passage)], activation_fn=torch.nn.Identity(), show_progress_bar=False
            )
        return float(values[0])

    @cached_property
    def _model(self):
        from sentence_transformers import CrossEncoder

        model = self._loaded(CrossEncoder)
        model.max_seq_length = self.max_tokens
        return model


def reranker(name: str, *, threads: int = 1) -> Reranker:
    """Return a reranker by name; parameters and errors as for `ragkit.models.encoder`."""
    entry = card(name, "reranker")
    return _reranker(entry, at_hand(entry, threads), threads)


@remember
def _reranker(entry: Card, folder: Path, threads: int) -> Reranker:
    return Reranker(entry, folder, threads)
