"""Cross-encoders: the relevance of a passage to a query."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache as remember
from functools import cached_property
from pathlib import Path

import numpy as np

from ragkit import checks
from ragkit.errors import DataError, UsageError
from ragkit.models.base import Model
from ragkit.models.registry import Card, card, need


class Reranker(Model):
    """A cross-encoder, as `ragkit.models.reranker` returns it.

    Attributes
    ----------
    name : str
    max_tokens : int
        Of query, passage and three special tokens together; the longer text is truncated.

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
        passages = checks.strings(passages, "passages")
        pairs = [(query, passage) for passage in passages]
        return self.score_pairs(pairs, cache=cache, progress=progress)

    def score_pairs(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        cache: bool | str | os.PathLike = False,
        progress: bool = False,
    ) -> np.ndarray:
        """Return the score of each (query, passage); higher is better.

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
        UsageError
            If a pair is not two strings of valid Unicode.
        DataError, ModelError
            As in `ragkit.models.Encoder.encode`; a score must be finite.
        """
        pairs = [tuple(pair) for pair in pairs]
        for number, pair in enumerate(pairs, start=1):
            if len(pair) != 2:
                raise UsageError(f"pair {number} should be (query, passage), found {pair!r:.80}")
        for column, name in enumerate(("queries of pairs", "passages of pairs")):
            checks.strings([pair[column] for pair in pairs], name)
        sizes = [len(query) + len(passage) for query, passage in pairs]
        return self._kept(self._scores, pairs, sizes, cache, progress)[:, 0]

    def _scores(self, pairs: list[tuple[str, str]]) -> np.ndarray:
        rows = []
        for pair in pairs:
            query, passage = (self._beginning(text, self.max_tokens) for text in pair)
            if self.card.onnx:
                row = self._run(self._truncating.encode(query, passage))
            else:
                row = self._predict(self._model.predict, [(query, passage)])
            if not np.isfinite(row[0]):
                raise DataError(f"{self.name} gives {row[0]} for the passage {passage!r:.80}")
            rows.append(row[:1])
        return np.array(rows, dtype=np.float32)

    @cached_property
    def _model(self):
        from sentence_transformers import CrossEncoder
        from torch.nn import Identity

        model = self._load(CrossEncoder)
        model.max_seq_length = self.max_tokens
        model.activation_fn = Identity()
        return model


def reranker(name: str, *, threads: int = 1) -> Reranker:
    """Return a reranker by name; parameters and errors as for `ragkit.models.encoder`."""
    entry = card(name, "reranker")
    return _reranker(entry, need(entry), checks.whole(threads, "threads"))


@remember
def _reranker(entry: Card, folder: Path, threads: int) -> Reranker:
    return Reranker(entry, folder, threads)
