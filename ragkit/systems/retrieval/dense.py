"""Dense retrieval: exact inner products by faiss, with one order on every machine."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ragkit import checks, models
from ragkit.errors import DataError, UsageError
from ragkit.systems.retrieval import saved
from ragkit.systems.retrieval.frames import (
    Retriever,
    check_fields,
    check_ids,
    check_overlap,
    document_texts,
    runs_frame,
)

if TYPE_CHECKING:
    import pandas as pd

LONG = ("truncate", "chunks")
AT_ONCE = 1024  # documents encoded together
ROWS = 1 << 16  # rows of a matrix that is not contiguous float32 which are searched together
QUERIES = 1024
SPARE = 16  # candidates beyond k, among which rounding may choose


class Dense(Retriever):
    """Rank documents by the inner product of their vectors with the question's.

    Parameters
    ----------
    encoder : str, object or None
        A name of `ragkit.models.cards()`, or an object with `name` and
        `encode(texts, kind=...)`, where kind is "passage" or "query", which returns an array of
        shape (n, d). None if only `fit_vectors` and `search_vectors` are used.
    long : {"truncate", "chunks"}
        The rule for long documents. "truncate": the encoder reads the beginning. "chunks": every
        document is cut into pieces and has the score of its best one.
    chunk_tokens, overlap : int
        Tokens of a piece, and how many of them it shares with the piece before; prefix and special
        tokens are added. "chunks" needs an encoder of `ragkit.models`.
    fields : tuple of str
        The columns that make a document's text, joined by an empty line.
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
        The position of each row's document.

    Notes
    -----
    The search is exact. faiss chooses more than k candidates by 32-bit products; their scores are
    then summed again in double precision, term by term in a fixed order, and rounded to 32 bits. If
    another document could still belong to the first k, given the largest error that a 32-bit
    sum can have, the search is repeated with more candidates. Documents of equal score come in the
    order in which they were given.

    A document without text is never found, and nothing is found for a question without text.

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
        system: str | None = None,
        cache: bool | str | os.PathLike = True,
        progress: bool = False,
    ):
        self.long = checks.choice(long, "rule for long documents", LONG)
        self.fields = check_fields(fields)
        self.chunk_tokens, self.overlap = check_overlap(chunk_tokens, overlap, "chunk_tokens")
        self.encoder = models.encoder(encoder) if isinstance(encoder, str) else encoder
        if long == "chunks":
            self._check_chunks()
        name = "vectors" if encoder is None else self.encoder.name
        self.system = system or f"dense-{name}" + ("-chunks" if long == "chunks" else "")
        self.cache, self.progress = cache, progress

    def _check_chunks(self) -> None:
        if not isinstance(self.encoder, models.Encoder):
            raise UsageError("chunks need an encoder of ragkit.models, which knows its tokens")
        most = self.encoder.max_tokens - int(self.encoder.count_tokens([""])[0])
        if self.chunk_tokens > most:
            raise UsageError(
                f"chunk_tokens should be at most {most} for {self.encoder.name}, "
                f"found {self.chunk_tokens}"
            )

    def fit(self, documents: pd.DataFrame | Iterable[pd.DataFrame | Mapping]) -> Dense:
        doc_ids: list[str] = []
        parts, owners = [], []
        texts = document_texts(documents, self.fields)
        while batch := list(islice(texts, AT_ONCE)):
            pieces = []
            for doc_id, text in batch:
                own = self._pieces(text)
                pieces += own
                owners += [len(doc_ids)] * len(own)
                doc_ids.append(doc_id)
            if pieces:
                parts.append(self._encode(pieces, "passage"))
        vectors = np.concatenate(parts) if parts else np.empty((0, 1), np.float32)
        return self._use(doc_ids, vectors, np.array(owners, dtype=np.int64))

    def fit_vectors(self, doc_ids: Sequence[str], vectors: np.ndarray) -> Dense:
        """Index vectors instead of texts.

        Parameters
        ----------
        doc_ids : sequence of str, length n
        vectors : array of shape (n, d), float16, float32 or float64
            One row for each document; they are not normalised. Memory-mapped arrays of float16 and
            float32 are not copied as a whole; float64 is rounded to float32.

        Raises
        ------
        DataError
            If the shape is another one, a number is NaN or infinite, or an id is repeated, empty or
            not a string.
        """
        doc_ids = list(doc_ids)
        if not doc_ids:
            raise DataError("there are no documents to index", "give at least one")
        check_ids(doc_ids, "document", "doc_id")
        vectors = matrix(vectors, "vectors", len(doc_ids))
        return self._use(doc_ids, vectors, np.arange(len(doc_ids)))

    def search_vectors(
        self, vectors: np.ndarray, k: int = 10, *, question_ids: Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return the best documents for vectors of shape (q, d); see `search`.

        The questions are named by `question_ids`, by default their positions from "0". A zero
        vector has score 0 with every document: they come in their order.
        """
        self._check_fitted()
        k = checks.whole(k, "k")
        ids = [str(n) for n in range(len(vectors))] if question_ids is None else list(question_ids)
        check_ids(ids)
        vectors = matrix(vectors, "question vectors", len(ids))
        return runs_frame(self.system, ids, list(self._answers(vectors, k)))

    def save(self, folder: str | os.PathLike) -> Path:
        """Write the index into a folder, which `load` reads; return the folder."""
        self._check_fitted()
        names = ("long", "chunk_tokens", "overlap", "fields", "system")
        settings = {name: getattr(self, name) for name in names}
        settings["encoder"] = getattr(self.encoder, "name", None)
        parts = {"doc_ids": self.doc_ids_, "vectors": self.vectors_, "owners": self.owners_}
        return saved.write(folder, "Dense", settings, parts)

    @classmethod
    def load(cls, folder: str | os.PathLike, encoder=None) -> Dense:
        """Return a saved index, with its options; its arrays are memory-mapped.

        Parameters
        ----------
        folder : path-like
        encoder : object, optional
            The encoder of the index, needed if it is not one of `ragkit.models`.

        Raises
        ------
        UsageError
            If the encoder has another name than the one that was saved.
        MissingData, DataError, HashMismatch
            As in `ragkit.systems.retrieval.saved.read`.
        """
        settings, parts = saved.read(folder, "Dense")
        name = settings.pop("encoder")
        if encoder is None and name is not None:
            encoder = models.encoder(name)
        if getattr(encoder, "name", None) != name:
            raise UsageError(f"{folder} was made by the encoder {name!r}, found {encoder.name!r}")
        return cls(encoder, **settings)._use(parts["doc_ids"], parts["vectors"], parts["owners"])

    def _search(self, ids, texts, k):
        asked = [number for number, text in enumerate(texts) if text.strip()]
        found: list = [([], [])] * len(ids)
        if asked and len(self.vectors_):
            vectors = self._encode([texts[number] for number in asked], "query")
            for number, answer in zip(asked, self._answers(vectors, k), strict=True):
                found[number] = answer
        return found

    def _pieces(self, text: str) -> list[str]:
        if not text.strip():
            return []
        if self.long == "truncate":
            return [text]
        return self.encoder.windows(text, self.chunk_tokens, self.overlap)

    def _encode(self, texts: list[str], kind: str) -> np.ndarray:
        if self.encoder is None:
            raise UsageError("Dense has no encoder", "give one, or use vectors")
        return encode(self.encoder, texts, kind, cache=self.cache, progress=self.progress)

    def _use(self, doc_ids: list[str], vectors: np.ndarray, owners: np.ndarray) -> Dense:
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
            raise DataError(f"question vectors have length {queries.shape[1]}, documents {width}")
        queries = np.ascontiguousarray(queries, dtype=np.float32)
        norms = np.sqrt(np.einsum("ij,ij->i", queries, queries, dtype=np.float64))
        bad = ~np.isfinite(norms) | (norms * self._longest > np.finfo(np.float32).max / 2)
        if bad.any():
            raise DataError(
                f"question vector {int(bad.argmax()) + 1} holds NaN, infinity or too large numbers"
            )
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
            products, rows = _candidates(queries[waiting], self.vectors_, depth)
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


def encode(
    encoder, texts: list[str], kind: str, *, cache: bool | str | os.PathLike, progress: bool
) -> np.ndarray:
    """Return the vectors of texts, one row each, by any encoder that `Dense` takes."""
    ours = isinstance(encoder, models.Encoder)
    options = {"cache": cache, "progress": progress} if ours else {}
    vectors = encoder.encode(texts, kind=kind, **options)
    return matrix(vectors, f"{kind} vectors of {encoder.name}", len(texts))


def matrix(vectors, what: str, rows: int) -> np.ndarray:
    """Return a matrix of floats with so many rows; float16 and float32 are not copied."""
    vectors = np.asarray(vectors)
    if vectors.ndim != 2 or len(vectors) != rows or vectors.shape[1] == 0:
        raise DataError(
            f"{what} should be a matrix of {rows:,} rows, found an array of shape {vectors.shape}"
        )
    if vectors.dtype in (np.float16, np.float32):
        return vectors
    if vectors.dtype.kind not in "fiu":
        raise DataError(f"{what} should be numbers, found {vectors.dtype}")
    return vectors.astype(np.float32)


def _blocks(vectors: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (first row, rows as contiguous float32)."""
    for start in range(0, len(vectors), ROWS):
        yield start, np.ascontiguousarray(vectors[start : start + ROWS], dtype=np.float32)


def _candidates(queries: np.ndarray, vectors: np.ndarray, depth: int):
    """Return the largest 32-bit products and their rows, each of shape (queries, depth)."""
    import faiss

    products = np.empty((len(queries), 0), dtype=np.float32)
    rows = np.empty((len(queries), 0), dtype=np.int64)
    whole = vectors.dtype == np.float32 and vectors.flags.c_contiguous
    for start, block in [(0, vectors)] if whole else _blocks(vectors):
        near, places = faiss.knn(
            queries, block, min(depth, len(block)), metric=faiss.METRIC_INNER_PRODUCT
        )
        products = np.concatenate([products, near], axis=1)
        rows = np.concatenate([rows, places + start], axis=1)
        if products.shape[1] > depth:
            keep = np.argpartition(products, -depth, axis=1)[:, -depth:]
            products = np.take_along_axis(products, keep, axis=1)
            rows = np.take_along_axis(rows, keep, axis=1)
    return products, rows
