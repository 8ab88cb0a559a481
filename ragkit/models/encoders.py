"""Sentence encoders: unit vectors of texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from functools import cached_property
from itertools import islice

import numpy as np

from ragkit import checks, display
from ragkit.errors import ModelError, UsageError
from ragkit.models.base import BATCH, CHUNK, MAX_CHARACTERS, Cache, Model, opened
from ragkit.models.endpoint import EndpointEncoder, unit
from ragkit.models.registry import card, verified
from ragkit.store import digest

TABLES = ("embeddings", "embedding.weight")  # in weights of Model2Vec and of wordllama


class Encoder(Model):
    """A sentence encoder, as `ragkit.models.encoder` returns it.

    It has a `name`, a `dimension` and `max_tokens`, prefix and special tokens included; longer
    texts are truncated, and no more than 131,072 characters are read.

    Quantized models encode one text at a time, so that a vector depends on its text alone. Other
    models encode batches of 64 texts, longest first: their vectors differ by about 1e-7 from
    batch to batch. Both differ by more between types of processor.

    >>> from ragkit import models
    >>> models.encoder("all-MiniLM-L6-v2").count_tokens(["Where is the page?"])
    array([7])
    """

    kind = "encoder"
    library = ("SentenceTransformer", "encode")

    def encode(
        self, texts: Sequence[str], kind: str | None = "passage", *, cache: Cache = False
    ) -> np.ndarray:
        """Return the unit vectors of n texts: an array of shape (n, dimension), float32.

        `kind` ("passage", "query" or None) selects the prefix that the model was trained with;
        None adds none. `cache` says where vectors are kept: True for the store in the cache
        folder, a folder for a store of its own, False for nowhere. Raises `UsageError` if a text is
        not a string of valid Unicode or `kind` is unknown, `DataError` if a vector is zero or not
        finite or the weights are not the registered ones, `ModelError` if the weights cannot be
        loaded.
        """
        return self._kept(self._unit, self._prefixed(texts, kind), cache)

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
        return unit(self._vectors(texts), texts, self.name)

    def _vectors(self, texts: list[str]) -> np.ndarray:
        if not self.card.onnx:
            return self._predict(texts, batch_size=BATCH)
        states = [self._run(text) for text in texts]
        cls = self.card.pooling == "cls"
        return np.array([rows[0] if cls else rows.mean(axis=0) for rows in states])


class StaticEncoder(Encoder):
    """Static embeddings: a text's vector is the mean of the vectors of its tokens.

    Pooling "static-idf" weights a token by its inverse document frequency, ln((1 + n) / (1 + df))
    + 1, in the n texts that `fit` was given: unfitted, such an encoder raises `UsageError`. A
    token that the vocabulary does not know has no part. Vectors are not kept, as to compute one
    costs no more than to read it; the tokenizer uses all cores, whatever `threads` says.

    Attributes
    ----------
    idf_ : array of shape (tokens,), float32
        After `fit` alone.

    References
    ----------
    Model2Vec (Tulkens and van Dongen 2024) for the format, wordllama (Miller 2024) for the model;
    the formula is that of scikit-learn's `TfidfTransformer`.
    """

    idf_: np.ndarray | None = None

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._table.shape[1]

    @property
    def unfitted(self) -> bool:
        """Whether `fit` is needed before `encode`."""
        return self.card.pooling == "static-idf" and self.idf_ is None

    def fit(self, texts: Iterable[str]) -> StaticEncoder:
        """Return an encoder whose weights are the idf of texts; an iterable is read once."""
        texts, count = iter(texts), 0
        found = np.zeros(len(self._table), dtype=np.int64)
        while part := list(islice(texts, CHUNK)):
            count += len(part)
            for ids in self._ids([text[:MAX_CHARACTERS] for text in part]):
                found[np.unique(ids)] += 1
        return self.weighted(np.log((1 + count) / (1 + found)) + 1)

    def weighted(self, idf: np.ndarray) -> StaticEncoder:
        """Return an encoder with these weights of the tokens."""
        other = copy(self)
        other.idf_ = np.asarray(idf, dtype=np.float32)
        other.identity = digest([verified(self.card, self.folder), digest(other.idf_)])
        return other

    def __reduce__(self):
        fitted = {} if self.idf_ is None else {"idf_": self.idf_, "identity": self.identity}
        return *super().__reduce__(), fitted

    @cached_property
    def _table(self) -> np.ndarray:
        """The vector of each token; in Model2Vec's format, by its mapping and weights."""
        from safetensors.numpy import load_file

        _ = self.identity
        (weights,) = (name for name in self.card.files if name.endswith(".safetensors"))
        parts = load_file(self.folder / weights)
        table = next((parts[name] for name in TABLES if name in parts), None)
        if table is None:
            raise ModelError(f"{self.name}: no table of vectors among {sorted(parts)}")
        table = table.astype(np.float32)
        table = table[parts["mapping"]] if "mapping" in parts else table
        table = table * parts["weights"][:, None] if "weights" in parts else table
        return table.astype(np.float32)

    def _ids(self, texts: list[str]) -> list[np.ndarray]:
        unknown = self._truncating.token_to_id("[UNK]")
        found = self._truncating.encode_batch_fast(texts, add_special_tokens=False)
        rows = (np.array(one.ids, dtype=np.int64) for one in found)
        return [row[row != unknown] if unknown is not None else row for row in rows]

    def _vectors(self, texts: list[str]) -> np.ndarray:
        from scipy.sparse import csr_array

        if self.unfitted:
            raise UsageError(f"{self.name} has no idf yet", "call fit(texts) first")
        rows = self._ids(texts)
        tokens = np.concatenate(rows)
        weights = np.ones(len(tokens), np.float32) if self.idf_ is None else self.idf_[tokens]
        ends = np.cumsum([0, *map(len, rows)])
        return csr_array((weights, tokens, ends), (len(rows), len(self._table))) @ self._table

    def _kept(self, compute, items, cache) -> np.ndarray:
        starts = display.progress(range(0, len(items), CHUNK), self.name)
        parts = [compute(items[start : start + CHUNK]) for start in starts]
        return np.concatenate([np.empty((0, self._table.shape[1]), np.float32), *parts])


def encoder(name: str, *, threads: int = 1) -> Encoder | EndpointEncoder:
    """Return an encoder of `ragkit.models.cards()` that uses so many CPU threads.

    `openai:NAME` is an embedding model behind an endpoint, `model2vec:OWNER/NAME` one of the hub
    in Model2Vec's format, a `StaticEncoder`. Models of the hub that are a network use a GPU where
    there is one. Raises `UsageError` if there is no encoder of that name, `ModelError` if its
    weights are not present; the hint is the command that fetches them.

    >>> model = encoder("all-MiniLM-L6-v2")
    >>> model.encode(["Where is the page?"]).shape
    (1, 384)
    """
    if name.startswith("openai:"):
        return EndpointEncoder(name)
    kind = StaticEncoder if card(name, "encoder").static else Encoder
    return opened(kind, name, threads)


def embed(
    texts: Sequence[str],
    *,
    model: str = "all-MiniLM-L6-v2",
    kind: str | None = None,
    cache: Cache = True,
    threads: int = 1,
) -> np.ndarray:
    """Return unit vectors of texts, shape (n, dimension), and keep them in the store.

    The parameters are those of `encoder` and `Encoder.encode`; no prefix is added unless `kind`
    is given. An encoder that has idf weights takes them from these texts; one behind an endpoint
    keeps its vectors in the cache folder's store, whatever `cache` says.

    >>> vectors = embed(["open the page", "open a page", "pay the invoice"])
    >>> (vectors @ vectors.T)[0].round(1)
    array([1. , 0.9, 0.1], dtype=float32)
    """
    found = encoder(model, threads=threads)
    if isinstance(found, StaticEncoder) and found.unfitted:
        found = found.fit(checks.strings(texts, "texts"))
    options = {"cache": cache} if isinstance(found, Encoder) else {}
    return found.encode(texts, kind, **options)
