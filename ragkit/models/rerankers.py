"""Cross-encoders: the relevance of a passage to a query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ragkit import checks
from ragkit.errors import DataError, UsageError
from ragkit.models.base import MAX_CHARACTERS, Cache, Model, opened


class Reranker(Model):
    """A cross-encoder, as `ragkit.models.reranker` returns it.

    It has a `name` and `max_tokens`, of query, passage and three special tokens together; the
    longer text is truncated. A score is the model's logit, without a sigmoid. Pairs are scored
    one at a time: a score depends on its pair alone.
    """

    kind = "reranker"
    library = ("CrossEncoder", "predict")

    def score(self, query: str, passages: Sequence[str], *, cache: Cache = False) -> np.ndarray:
        """Return the score of each passage for one query; see `score_pairs`."""
        pairs = [(query, passage) for passage in checks.strings(passages, "passages")]
        return self.score_pairs(pairs, cache=cache)

    def score_pairs(self, pairs: Sequence[tuple[str, str]], *, cache: Cache = False) -> np.ndarray:
        """Return the score of each of n pairs (query, passage), shape (n,), float32.

        Higher is better. The options and errors are those of `ragkit.models.Encoder.encode`; also
        raises `UsageError` if a pair is not two strings, `DataError` if a score is not finite.
        """
        pairs = [tuple(pair) for pair in pairs]
        for number, pair in enumerate(pairs, start=1):
            if len(pair) != 2:
                raise UsageError(f"pair {number} should be (query, passage), found {pair!r:.80}")
        for column, name in enumerate(("queries of pairs", "passages of pairs")):
            checks.strings([pair[column] for pair in pairs], name)
        return self._kept(self._scores, pairs, cache)[:, 0]

    def _scores(self, pairs: list[tuple[str, str]]) -> np.ndarray:
        rows = []
        for pair in pairs:
            query, passage = (text[:MAX_CHARACTERS] for text in pair)
            if self.card.onnx:
                row = self._run(query, passage)
            else:
                from torch.nn import Identity

                row = self._predict([(query, passage)], activation_fn=Identity())
            if not np.isfinite(row[0]):
                raise DataError(f"{self.name} gives {row[0]} for the passage {passage!r:.80}")
            rows.append(row[:1])
        return np.array(rows, dtype=np.float32)


def reranker(name: str, *, threads: int = 1) -> Reranker:
    """Return a reranker by name; parameters and errors as for `ragkit.models.encoder`.

    >>> model = reranker("ms-marco-MiniLM-L-12-v2-int8")
    >>> good, bad = model.score("What does it cost?", ["It costs 10 euros.", "We sell ferries."])
    >>> bool(good > bad)
    True
    """
    return opened(Reranker, name, threads)
