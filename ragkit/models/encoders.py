"""Sentence encoders: unit vectors of texts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache as remember
from functools import cached_property
from pathlib import Path

import numpy as np

from ragkit import checks
from ragkit.errors import DataError
from ragkit.models.base import BATCH, Model
from ragkit.models.registry import Card, card, need

KINDS = ("passage", "query")


class Encoder(Model):
    """A sentence encoder, as `ragkit.models.encoder` returns it.

    Attributes
    ----------
    name : str
    dimension : int
    max_tokens : int
        Longer texts are truncated; prefix and special tokens count.

    Notes
    -----
    Quantized models encode one text at a time, so that a vector depends on its text alone. Other
    models encode batches of 64 texts, longest first: their vectors differ by about 1e-7 from
    batch to batch. Both differ by more between types of processor.
    """

    @property
    def dimension(self) -> int:
        return self.card.dimension

    def encode(
        self,
        texts: Sequence[str],
        kind: str | None = "passage",
        *,
        cache: bool | str | os.PathLike = False,
        progress: bool = False,
    ) -> np.ndarray:
        """Return the unit vectors of texts.

        Parameters
        ----------
        texts : sequence of str, length n
        kind : {"passage", "query", None}
            Selects the prefix that the model was trained with; None adds none.
        cache : bool or path-like
            Where vectors are kept: True for the store in the cache folder, a folder for a store
            of its own, False for nowhere.
        progress : bool
            Whether to show a progress bar.

        Returns
        -------
        array of shape (n, dimension), float32

        Raises
        ------
        UsageError
            If a text is not a string of valid Unicode, or `kind` is unknown.
        DataError
            If a vector is zero or not finite, or the weights are not the registered ones.
        ModelError
            If the weights cannot be loaded.
        """
        texts = self._prefixed(texts, kind)
        return self._kept(self._unit, texts, [len(text) for text in texts], cache, progress)

    def count_tokens(self, texts: Sequence[str], kind: str | None = "passage") -> np.ndarray:
        """Return each text's number of tokens, with prefix and special tokens, before truncation."""
        counts = [len(self._tokenizer.encode(text)) for text in self._prefixed(texts, kind)]
        return np.array(counts, dtype=np.int64)

    def _prefixed(self, texts, kind) -> list[str]:
        prefix = "" if kind is None else getattr(self.card, checks.choice(kind, "kind", KINDS))
        return [prefix + text for text in checks.strings(texts, "texts")]

    def _unit(self, texts: list[str]) -> np.ndarray:
        texts = [self._beginning(text, self.max_tokens) for text in texts]
        if self.card.onnx:
            states = [self._run(self._truncating.encode(text)) for text in texts]
            cls = self.card.pooling == "cls"
            vectors = np.array([rows[0] if cls else rows.mean(axis=0) for rows in states])
        else:
            vectors = self._predict(self._model.encode, texts, batch_size=BATCH)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        bad = ~(np.isfinite(norms) & (norms > 0)).ravel()
        if bad.any():
            text = texts[int(bad.argmax())]
            raise DataError(f"{self.name} gives a vector without direction for {text!r:.80}")
        return vectors / norms

    @cached_property
    def _model(self):
        from sentence_transformers import SentenceTransformer

        model = self._load(SentenceTransformer)
        model.max_seq_length = self.max_tokens
        return model


def encoder(name: str, *, threads: int = 1) -> Encoder:
    """Return an encoder by name.

    Parameters
    ----------
    name : str
        An encoder of `ragkit.models.cards()`.
    threads : int
        CPU threads. Models of the hub use a GPU where there is one.

    Raises
    ------
    UsageError
        If there is no encoder of that name.
    ModelError
        If its weights are not present; the hint is the command that fetches them.
    """
    entry = card(name, "encoder")
    return _encoder(entry, need(entry), checks.whole(threads, "threads"))


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


@remember
def _encoder(entry: Card, folder: Path, threads: int) -> Encoder:
    return Encoder(entry, folder, threads)
