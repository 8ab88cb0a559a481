"""Sentence encoders: texts in, unit vectors out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache as remember
from functools import cached_property
from pathlib import Path

import numpy as np

from ragkit.errors import DataError, ModelError, UsageError, did_you_mean
from ragkit.models import cache as caching
from ragkit.models.base import Model, at_hand, strings
from ragkit.models.registry import Card, card

KINDS = ("passage", "query", None)
BATCH = 64


class Encoder(Model):
    """A sentence encoder; made by `ragkit.models.encoder`.

    Attributes
    ----------
    name : str
    dimension : int
    max_tokens : int
        Of a longer text only the beginning is encoded; prefix and special tokens count.

    Notes
    -----
    Quantised models encode one text at a time, so that a vector depends on its text alone. The
    others go in batches of 64, longest first: their vectors vary by some 1e-7 with the batch.
    Both vary by more from one kind of processor to another.
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
            What the texts are, for models that were trained with a prefix; None adds none.
        cache : bool or path-like
            Whether to keep vectors: in the folder `embeddings` of the cache of fetched files, or
            in the one given.
        progress : bool
            Whether to draw a progress bar over the texts that are not in the cache.

        Returns
        -------
        array of shape (n, dimension), float32

        Raises
        ------
        DataError
            If a text is no string, or the model gives no direction (NaN or zero) for it.
        HashMismatch
            If the weights are not the registered ones.
        ModelError
            If the weights cannot be loaded.
        """
        texts = self._prefixed(texts, kind)
        return caching.through(
            self._store(cache),
            [caching.key(text) for text in texts],
            lambda places: self._unit([texts[n] for n in places]),
            dimension=self.dimension,
            sizes=[len(text) for text in texts],
            batch=BATCH,
            progress=progress,
        )

    def count_tokens(self, texts: Sequence[str], kind: str | None = "passage") -> np.ndarray:
        """Return each text's number of tokens, prefix and special tokens included.

        Those above `max_tokens` are cut off by `encode`.
        """
        return np.array(
            [len(self._tokenizer.encode(text)) for text in self._prefixed(texts, kind)],
            dtype=np.int64,
        )

    def _prefixed(self, texts, kind) -> list[str]:
        if kind not in KINDS:
            raise UsageError(f"no kind of text {kind!r}", did_you_mean(kind, KINDS[:2]))
        prefix = getattr(self.card, kind) if kind else ""
        return [prefix + text for text in strings(texts, "text")]

    def _unit(self, texts: list[str]) -> np.ndarray:
        texts = [self._lead(text, self.max_tokens) for text in texts]
        vectors = self._onnx(texts) if self.card.onnx else self._torch(texts)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        bad = ~(np.isfinite(norms) & (norms > 0)).ravel()
        if bad.any():
            text = texts[int(bad.argmax())]
            raise DataError(f"{self.name} gives no direction for the text {text!r:.80}")
        return vectors / norms

    def _onnx(self, texts: list[str]) -> np.ndarray:
        states = [self._run(self._cutting.encode(text)) for text in texts]
        cls = self.card.pooling == "cls"
        return np.array([rows[0] if cls else rows.mean(axis=0) for rows in states])

    def _torch(self, texts: list[str]) -> np.ndarray:
        with self._torch_threads():
            return self._model.encode(
                texts, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True
            ).astype(np.float32, copy=False)

    @cached_property
    def _model(self):
        from sentence_transformers import SentenceTransformer

        model = self._loaded(SentenceTransformer)
        model.max_seq_length = self.max_tokens
        found = model.get_embedding_dimension()
        if found != self.dimension:
            raise ModelError(
                f"{self.name}: {self.folder} gives vectors of length {found}, "
                f"expected {self.dimension}"
            )
        return model


def encoder(name: str, *, threads: int = 1) -> Encoder:
    """Return an encoder by name.

    Parameters
    ----------
    name : str
        An encoder of `ragkit.models.cards()`.
    threads : int
        Threads of the processor; a graphics card is used by torch where there is one.

    Raises
    ------
    UsageError
        If there is no encoder of that name.
    ModelError
        If its weights are not at hand: the command that gets them, and what can stand in.
    """
    entry = card(name, "encoder")
    return _encoder(entry, at_hand(entry, threads), threads)


def embed(
    texts: Sequence[str],
    *,
    model: str = "all-MiniLM-L6-v2",
    kind: str | None = None,
    cache: bool | str | os.PathLike = True,
    progress: bool = False,
    threads: int = 1,
) -> np.ndarray:
    """Return unit vectors of texts, kept for the next time.

    The parameters are those of `encoder` and `Encoder.encode`; texts are taken as they are,
    without a prefix, unless `kind` says what they are.

    Returns
    -------
    array of shape (n, dimension), float32
    """
    return encoder(model, threads=threads).encode(texts, kind, cache=cache, progress=progress)


@remember
def _encoder(entry: Card, folder: Path, threads: int) -> Encoder:
    return Encoder(entry, folder, threads)
