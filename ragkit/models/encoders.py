"""Sentence encoders: unit vectors of texts."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from ragkit import checks
from ragkit.errors import DataError
from ragkit.models.base import BATCH, MAX_CHARACTERS, Model, opened
from ragkit.models.endpoint import EndpointEncoder


class Encoder(Model):
    """A sentence encoder, as `ragkit.models.encoder` returns it.

    It has a `name`, a `dimension` and `max_tokens`, prefix and special tokens included; longer
    texts are truncated, and no more than 131,072 characters are read.

    Quantized models encode one text at a time, so that a vector depends on its text alone. Other
    models encode batches of 64 texts, longest first: their vectors differ by about 1e-7 from
    batch to batch. Both differ by more between types of processor.
    """

    library = ("SentenceTransformer", "encode")

    def encode(
        self,
        texts: Sequence[str],
        kind: str | None = "passage",
        *,
        cache: bool | str | os.PathLike = False,
        progress: bool = False,
    ) -> np.ndarray:
        """Return the unit vectors of n texts: an array of shape (n, dimension), float32.

        `kind` ("passage", "query" or None) selects the prefix that the model was trained with;
        None adds none. `cache` says where vectors are kept: True for the store in the cache
        folder, a folder for a store of its own, False for nowhere. `progress` shows a progress
        bar. Raises `UsageError` if a text is not a string of valid Unicode or `kind` is unknown,
        `DataError` if a vector is zero or not finite or the weights are not the registered ones,
        `ModelError` if the weights cannot be loaded.
        """
        return self._kept(self._unit, self._prefixed(texts, kind), cache, progress)

    def count_tokens(self, texts: Sequence[str], kind: str | None = "passage") -> np.ndarray:
        """Return each text's number of tokens, with prefix and special tokens, before truncation."""
        counts = [len(self._tokenizer.encode(text)) for text in self._prefixed(texts, kind)]
        return np.array(counts, dtype=np.int64)

    def _prefixed(self, texts, kind) -> list[str]:
        known = ("passage", "query")
        prefix = "" if kind is None else getattr(self.card, checks.choice(kind, "kind", known))
        return [prefix + text for text in checks.strings(texts, "texts")]

    def _unit(self, texts: list[str]) -> np.ndarray:
        texts = [text[:MAX_CHARACTERS] for text in texts]
        if self.card.onnx:
            states = [self._run(text) for text in texts]
            cls = self.card.pooling == "cls"
            vectors = np.array([rows[0] if cls else rows.mean(axis=0) for rows in states])
        else:
            vectors = self._predict(texts, batch_size=BATCH)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        bad = ~(np.isfinite(norms) & (norms > 0)).ravel()
        if bad.any():
            text = texts[int(bad.argmax())]
            raise DataError(f"{self.name} gives a vector without direction for {text!r:.80}")
        return vectors / norms


def encoder(name: str, *, threads: int = 1) -> Encoder | EndpointEncoder:
    """Return an encoder of `ragkit.models.cards()` that uses so many CPU threads.

    `openai:NAME` is an embedding model behind an endpoint. Models of the hub use a GPU where there is one. Raises `UsageError` if there is no encoder of
    that name, `ModelError` if its weights are not present; the hint is the command that fetches
    them.
    """
    if name.startswith("openai:"):
        return EndpointEncoder(name)
    return opened(Encoder, name, threads)


def embed(
    texts: Sequence[str],
    *,
    model: str = "all-MiniLM-L6-v2",
    kind: str | None = None,
    cache: bool | str | os.PathLike = True,
    progress: bool = False,
    threads: int = 1,
) -> np.ndarray:
    """Return unit vectors of texts, shape (n, dimension), and keep them in the store.

    The parameters are those of `encoder` and `Encoder.encode`; no prefix is added unless `kind`
    is given.
    """
    return encoder(model, threads=threads).encode(texts, kind, cache=cache, progress=progress)
