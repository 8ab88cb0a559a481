"""Dense retrieval: exact inner products of vectors, with one order on every machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from ragkit import models
from ragkit.errors import DataError, UsageError, did_you_mean
from ragkit.systems.retrieval.frames import (
    check_fields,
    check_ids,
    check_whole,
    document_texts,
    query_texts,
    runs_frame,
)

if TYPE_CHECKING:
    import pandas as pd

LONG = ("truncate", "chunks")
BACKENDS = ("faiss", "numpy")
AT_ONCE = 1024  # documents encoded together
ROWS = 1 << 16  # rows of a matrix that are looked at together
QUERIES = 1024
SPARE = 16  # candidates beyond k, among which rounding may choose


class Dense:
    """Rank documents by the inner product of their vectors with the query's.

    Parameters
    ----------
    encoder : str or object
        A name of `ragkit.models.cards()`, or anything with `name` and
        `encode(texts, kind=...)`, where kind is "passage" or "query", that returns an array of
        shape (n, d). None, if only `fit_vectors` is used.
    long : {"truncate", "chunks"}
        What happens to a document of more tokens than the encoder takes. "truncate": its beginning
        stands for it. "chunks": every document is cut into pieces, and its best one counts.
    chunk_tokens, overlap : int
        Tokens of a piece, and how many of them it shares with the one before; prefix and special
        tokens come on top. "chunks" needs an encoder of `ragkit.models`.
    fields : tuple of str
        The columns that make a document's text, joined by an empty line.
    backend : {"faiss", "numpy"}
        What computes the products. Both give the same documents, order and scores.
    system : str, optional
        The name in the `system` column; "dense-" and the encoder's name, and "-chunks", by default.
    cache : bool or path-like
        Where an encoder of `ragkit.models` keeps vectors; see `ragkit.models.Encoder.encode`.
    progress : bool
        Whether such an encoder draws progress bars.

    Attributes
    ----------
    doc_ids_ : list of str
        The ids in the order of the documents.
    vectors_ : array of shape (m, d)
        One row for each document or piece.
    owners_ : array of int, shape (m,)
        The document of each row.

    Notes
    -----
    The search is exact. 32-bit products choose candidates, more than k of them; their scores are
    then summed anew in double precision, term by term in a fixed order, and rounded to 32 bits. If
    a document left out could still belong to the first k, given the largest error that a 32-bit
    sum can have, the search is repeated with more candidates. Documents of equal score come in the
    order in which they were given.

    A document without text is never found, and a query without text finds nothing.

    Source: WixQA section 4.1 (E5, cosine, first 5); Johnson, Douze and Jégou 2019, Billion-scale
    similarity search with GPUs (faiss); Higham 2002, Accuracy and Stability of Numerical
    Algorithms, section 3.1 (the error of an inner product).
    """

    def __init__(
        self,
        encoder="all-MiniLM-L6-v2",
        *,
        long: str = "truncate",
        chunk_tokens: int = 128,
        overlap: int = 32,
        fields: tuple[str, ...] = ("title", "text"),
        backend: str = "faiss",
        system: str | None = None,
        cache: bool | str | os.PathLike = True,
        progress: bool = False,
    ):
        if long not in LONG:
            raise UsageError(f"Dense has no rule {long!r}", did_you_mean(long, LONG))
        if backend not in BACKENDS:
            raise UsageError(f"Dense has no backend {backend!r}", did_you_mean(backend, BACKENDS))
        self.encoder = models.encoder(encoder) if isinstance(encoder, str) else encoder
        self._ours = isinstance(self.encoder, models.Encoder)
        self.long, self.backend, self.fields = long, backend, check_fields(fields)
        self.chunk_tokens = check_whole(chunk_tokens, "chunk_tokens")
        self.overlap = check_whole(overlap, "overlap", least=0)
        if long == "chunks":
            self._check_chunks()
        name = "vectors" if encoder is None else self.encoder.name
        self.system = system or f"dense-{name}" + ("-chunks" if long == "chunks" else "")
        self.cache, self.progress = cache, progress

    def _check_chunks(self) -> None:
        if self.overlap >= self.chunk_tokens:
            raise UsageError(
                f"overlap should be below chunk_tokens ({self.chunk_tokens}), found {self.overlap}"
            )
        if not self._ours:
            raise UsageError("chunks need an encoder of ragkit.models, which knows its tokens")
        room = self.encoder.max_tokens - int(self.encoder.count_tokens([""])[0])
        if self.chunk_tokens > room:
            raise UsageError(
                f"{self.encoder.name} has room for {room} tokens, found chunk_tokens="
                f"{self.chunk_tokens}"
            )

    def fit(self, documents: pd.DataFrame | Iterable[pd.DataFrame | Mapping]) -> Dense:
        """Encode documents.

        Parameters
        ----------
        documents : DataFrame, or iterable of DataFrames or of mappings
            As in `BM25.fit`: with `doc_id` and the columns of `fields`; an iterable is read once
            and its texts are not kept.

        Returns
        -------
        self

        Raises
        ------
        DataError
            As in `BM25.fit`, and if the encoder's vectors are not finite.
        """
        if self.encoder is None:
            raise UsageError("there is no encoder", "give one, or call fit_vectors")
        doc_ids: list[str] = []
        parts, owners = [], []
        texts = document_texts(documents, self.fields)
        while batch := list(islice(texts, AT_ONCE)):
            pieces, owned = [], []
            for doc_id, text in batch:
                mine = self._pieces(text)
                pieces += mine
                owned += [len(doc_ids)] * len(mine)
                doc_ids.append(doc_id)
            if pieces:
                parts.append(self._encode(pieces, "passage"))
                owners += owned
        vectors = np.concatenate(parts) if parts else np.empty((0, 1), np.float32)
        return self._index(doc_ids, vectors, np.array(owners, dtype=np.int64))

    def fit_vectors(self, doc_ids: Sequence[str], vectors: np.ndarray) -> Dense:
        """Take vectors of one's own.

        Parameters
        ----------
        doc_ids : sequence of str, length n
        vectors : array of shape (n, d), float16, float32 or float64
            One row for each document; they are not normalised. Memory-mapped arrays of float16 and
            float32 are read block by block and never copied as a whole; float64 is rounded to
            float32.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If the shape is another one, a number is NaN or infinite, or an id is empty, no string
            or there before.
        """
        doc_ids = list(doc_ids)
        if not doc_ids:
            raise DataError("there are no documents to index", "give at least one")
        check_ids(doc_ids, "document", "doc_id")
        vectors = _matrix(vectors, "vectors")
        if len(vectors) != len(doc_ids):
            raise DataError(
                f"expected {len(doc_ids):,} vectors, one a document, found {len(vectors):,}"
            )
        return self._index(doc_ids, vectors, np.arange(len(doc_ids)))

    def search(self, queries: pd.DataFrame | Iterable[str], k: int = 10) -> pd.DataFrame:
        """Return the best documents for each query.

        Parameters
        ----------
        queries : DataFrame with question_id and text, or iterable of str
            Strings get their position, from "0", as question_id.
        k : int, at least 1
            How many documents at most.

        Returns
        -------
        DataFrame
            `runs`: system, question_id, rank (from 1), doc_id, score (inner product).

        Raises
        ------
        UsageError
            If k is below 1, or nothing was indexed yet.
        DataError
            As in `BM25.search`, and if the encoder's vectors are not finite.
        """
        self._check_ready()
        if self.encoder is None:
            raise UsageError("there is no encoder", "give one, or call search_vectors")
        k = check_whole(k, "k")
        ids, texts = query_texts(queries)
        asked = [number for number, text in enumerate(texts) if text.strip()]
        found = [([], [])] * len(ids)
        if asked and len(self.vectors_):
            vectors = self._encode([texts[number] for number in asked], "query")
            for number, answer in zip(asked, self._answers(vectors, k), strict=True):
                found[number] = answer
        return runs_frame(self.system, ids, found)

    def search_vectors(
        self, vectors: np.ndarray, k: int = 10, *, question_ids: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return the best documents for queries that are vectors.

        Parameters
        ----------
        vectors : array of shape (q, d)
        k : int, at least 1
        question_ids : sequence of str, length q, optional
            The position, from "0", by default.

        Returns
        -------
        DataFrame
            As `search`. A zero vector has score 0 with every document: they come in their order.
        """
        self._check_ready()
        k = check_whole(k, "k")
        vectors = _matrix(vectors, "query vectors")
        ids = [str(n) for n in range(len(vectors))] if question_ids is None else list(question_ids)
        check_ids(ids)
        if len(ids) != len(vectors):
            raise DataError(f"expected {len(ids):,} query vectors, found {len(vectors):,}")
        return runs_frame(self.system, ids, list(self._answers(vectors, k)))

    def _check_ready(self) -> None:
        if not hasattr(self, "vectors_"):
            raise UsageError("Dense has no index yet", "call fit(documents) first")

    def _pieces(self, text: str) -> list[str]:
        if not text.strip():
            return []
        if self.long == "truncate":
            return [text]
        return self.encoder.windows(text, self.chunk_tokens, self.overlap)

    def _encode(self, texts: list[str], kind: str) -> np.ndarray:
        options = {"cache": self.cache, "progress": self.progress} if self._ours else {}
        vectors = _matrix(self.encoder.encode(texts, kind=kind, **options), f"{kind} vectors")
        if len(vectors) != len(texts):
            raise DataError(
                f"{self.encoder.name} made an array of shape {vectors.shape} of {len(texts)} texts"
            )
        return vectors

    def _index(self, doc_ids: list[str], vectors: np.ndarray, owners: np.ndarray) -> Dense:
        longest = 0.0
        for start, block in _blocks(vectors):
            squares = np.einsum("ij,ij->i", block, block, dtype=np.float64)
            bad = ~np.isfinite(squares)
            if bad.any():
                row = start + int(bad.argmax())
                raise DataError(
                    f"vectors: row {row + 1} ({doc_ids[owners[row]]}) holds NaN or infinity"
                )
            longest = max(longest, float(np.sqrt(squares.max())))
        self.doc_ids_, self.vectors_, self.owners_ = doc_ids, vectors, owners
        self._longest = longest
        return self

    def _answers(self, queries: np.ndarray, k: int) -> Iterator[tuple[list[str], np.ndarray]]:
        rows, width = self.vectors_.shape
        if queries.shape[1] != width:
            raise DataError(f"query vectors have length {queries.shape[1]}, documents {width}")
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        norms = np.sqrt(np.einsum("ij,ij->i", queries, queries, dtype=np.float64))
        bad = ~np.isfinite(norms) | (norms * self._longest > np.finfo(np.float32).max / 2)
        if bad.any():
            raise DataError(f"query vector {int(bad.argmax()) + 1} holds NaN, infinity or too much")
        # Of a 32-bit sum, and of the score that is rounded to 32 bits (Higham, section 3.1).
        errors = (width + 2) * 2.0**-24 * norms * self._longest
        pieces = -(-rows // len(self.doc_ids_))
        for first in range(0, len(queries), QUERIES):
            part = slice(first, first + QUERIES)
            yield from self._exact(queries[part], errors[part], k, (k + SPARE) * pieces)

    def _exact(self, queries, errors, k: int, depth: int):
        """Return document ids and scores of each query's first k."""
        found: list = [None] * len(queries)
        waiting = np.arange(len(queries))
        while len(waiting):
            depth = min(depth, len(self.vectors_))
            products, rows = _candidates(self.backend, queries[waiting], self.vectors_, depth)
            again = []
            for place, query in enumerate(waiting.tolist()):
                documents, scores = self._scored(queries[query], np.sort(rows[place]))
                floor = products[place].min() + errors[query]
                sure = depth == len(self.vectors_) or (len(scores) >= k and scores[k - 1] > floor)
                if sure:
                    found[query] = ([self.doc_ids_[n] for n in documents[:k].tolist()], scores[:k])
                else:
                    again.append(query)
            waiting, depth = np.array(again, dtype=np.int64), depth * 4
        return found

    def _scored(self, query: np.ndarray, rows: np.ndarray):
        """Return the documents of these rows and their scores, best first."""
        terms = self.vectors_[rows].astype(np.float64) * query.astype(np.float64)
        scores = terms.sum(axis=1).astype(np.float32)
        owners = self.owners_[rows]
        order = np.lexsort((owners, -scores))
        _, best = np.unique(owners[order], return_index=True)
        order = order[np.sort(best)]
        return owners[order], scores[order]


def _matrix(vectors, what: str) -> np.ndarray:
    """Return a matrix of floats; float16 and float32 are not copied."""
    if not isinstance(vectors, np.ndarray):
        vectors = np.asarray(vectors)
    if vectors.ndim != 2 or vectors.shape[1] == 0:
        raise DataError(f"{what} should be a matrix, one row each, found shape {vectors.shape}")
    if vectors.dtype in (np.float16, np.float32):
        return vectors
    if vectors.dtype.kind not in "fiu":
        raise DataError(f"{what} should be numbers, found {vectors.dtype}")
    return vectors.astype(np.float32)


def _blocks(vectors: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (first row, rows as contiguous float32)."""
    for start in range(0, len(vectors), ROWS):
        yield start, np.ascontiguousarray(vectors[start : start + ROWS], dtype=np.float32)


def _candidates(backend: str, queries: np.ndarray, vectors: np.ndarray, depth: int):
    """Return the largest 32-bit products and their rows, each of shape (queries, depth)."""
    products = np.empty((len(queries), 0), dtype=np.float32)
    rows = np.empty((len(queries), 0), dtype=np.int64)
    whole = vectors.dtype == np.float32 and vectors.flags.c_contiguous and backend == "faiss"
    for start, block in [(0, vectors)] if whole else _blocks(vectors):
        near, places = _largest(backend, queries, block, min(depth, len(block)))
        products = np.concatenate([products, near], axis=1)
        rows = np.concatenate([rows, places + start], axis=1)
        if products.shape[1] > depth:
            keep = np.argpartition(products, -depth, axis=1)[:, -depth:]
            products = np.take_along_axis(products, keep, axis=1)
            rows = np.take_along_axis(rows, keep, axis=1)
    return products, rows


def _largest(backend: str, queries: np.ndarray, block: np.ndarray, depth: int):
    if backend == "faiss":
        import faiss

        return faiss.knn(queries, block, depth, metric=faiss.METRIC_INNER_PRODUCT)
    products = queries @ block.T
    places = np.argpartition(products, -depth, axis=1)[:, -depth:]
    return np.take_along_axis(products, places, axis=1), places
