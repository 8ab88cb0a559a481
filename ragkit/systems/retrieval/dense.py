"""Dense retrieval: exact inner products by faiss, with one order on every machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import islice

import numpy as np

from ragkit import checks, models
from ragkit.errors import DataError, UsageError
from ragkit.systems.retrieval import frames
from ragkit.systems.retrieval.saved import Saved

LONG = ("truncate", "chunks")
AT_ONCE = 1024  # documents encoded together
SPARE = 16  # candidates beyond k, among which rounding may choose
LARGEST = 1e15  # inner products of larger numbers could overflow


class Dense(Saved):
    """Rank documents by the inner product of their vectors with the question's.

    Parameters
    ----------
    encoder : str or object
        A name of `ragkit.models.cards()`, or an object with `name` and
        `encode(texts, kind=...)`, where kind is "passage" or "query", which returns an array of
        shape (n, d): also vectors of yours. They are not normalised.
    long : {"truncate", "chunks"}
        The rule for long documents. "truncate": the encoder reads the beginning. "chunks": every
        document is cut into pieces and has the score of its best one.
    chunk_tokens, overlap : int
        Tokens of a piece, and how many of them it shares with the piece before; prefix and special
        tokens are added. "chunks" needs an encoder of `ragkit.models`.
    fields, system
        See `Retriever`; the default of `system` is "dense-", the encoder's name, and "-chunks".
    cache : bool or path-like
        Where an encoder of `ragkit.models` keeps vectors; see `ragkit.models.Encoder.encode`.

    Attributes
    ----------
    doc_ids_ : list of str
    vectors_ : array of shape (m, d)
        One row for each document or piece.
    owners_ : array of int, shape (m,)
        The position of each row's document.
    encoder_ : object
        The encoder; of one that weights tokens by idf, with those of the documents.

    Notes
    -----
    The search is exact. faiss chooses more than k candidates by 32-bit products; their scores are
    summed again in double precision, in a fixed order, and rounded to 32 bits. As long as the
    largest error of a 32-bit sum leaves another document a place among the first k, the search is
    repeated with more candidates. Documents of equal score come in the order in which they were
    given.

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
    ):
        self.long = checks.choice(long, "rule for long documents", LONG)
        self.fields = frames.check_fields(fields)
        self.encoder = models.encoder(encoder) if isinstance(encoder, str) else encoder
        most = None
        if long == "chunks":
            if not isinstance(self.encoder, models.Encoder):
                raise UsageError("chunks need an encoder of ragkit.models, which knows its tokens")
            most = self.encoder.max_tokens - int(self.encoder.count_tokens([""])[0])
        self.chunk_tokens = checks.whole(chunk_tokens, "chunk_tokens", most=most)
        self.overlap = checks.whole(overlap, "overlap", least=0, most=self.chunk_tokens - 1)
        self.system = system or f"dense-{self.encoder.name}" + ("-chunks" if most else "")
        self.cache = cache

    def fit(self, documents) -> Dense:
        encoder = self.encoder
        if isinstance(encoder, models.StaticEncoder) and encoder.unfitted:
            documents = frames.reusable(documents)
            encoder = encoder.fit(text for _, text in frames.document_texts(documents, self.fields))
        self.encoder_ = encoder
        doc_ids, owners, parts = [], [], [np.empty((0, 1), np.float32)]
        texts = frames.document_texts(documents, self.fields)
        while batch := list(islice(texts, AT_ONCE)):
            pieces = []
            for doc_id, text in batch:
                own = [text] if text.strip() else []
                if own and self.long == "chunks":
                    own = self.encoder.windows(text, self.chunk_tokens, self.overlap)
                pieces += own
                owners += [len(doc_ids)] * len(own)
                doc_ids.append(doc_id)
            if pieces:
                parts.append(self._encode(pieces, "passage"))
        vectors = np.concatenate(parts[1:] or parts)
        idf = None if encoder is self.encoder else encoder.idf_
        return self._use(doc_ids, vectors, np.array(owners, dtype=np.int64), idf)

    def _settings(self):
        pieces = [self.chunk_tokens, self.overlap] if self.long == "chunks" else []
        encoder = [getattr(self.encoder, name, None) for name in ("name", "identity")]
        long = [self.long, *pieces]
        return {"index": "Dense", "encoder": encoder, "long": long, "fields": list(self.fields)}

    def _parts(self):
        parts = {"doc_ids": self.doc_ids_, "vectors": self.vectors_, "owners": self.owners_}
        return parts if self.encoder_ is self.encoder else {**parts, "idf": self.encoder_.idf_}

    def _search(self, ids, texts, k):
        asked = [text for text in texts if text.strip() and len(self.vectors_)]
        answers = iter(self._answers(self._encode(asked, "query"), k) if asked else ())
        return [next(answers, ()) if text.strip() else () for text in texts]

    def _encode(self, texts: list[str], kind: str) -> np.ndarray:
        return encode(self.encoder_, texts, kind, cache=self.cache)

    def _use(self, doc_ids, vectors, owners, idf=None) -> Dense:
        self.encoder_ = self.encoder if idf is None else self.encoder.weighted(idf)
        self.doc_ids_, self.vectors_, self.owners_ = doc_ids, vectors, owners
        self._longest = _norms(vectors).max(initial=0)
        return self

    def _answers(self, queries: np.ndarray, k: int, depth: int = 0) -> list[frames.Found]:
        """Return documents and scores of each query's first k, among `depth` rows at first."""
        import faiss

        rows, width = self.vectors_.shape
        if queries.shape[1] != width:
            raise DataError(f"question vectors have length {queries.shape[1]}, documents {width}")
        depth = min(depth or (k + SPARE) * -(-rows // len(self.doc_ids_)), rows)
        metric, found = faiss.METRIC_INNER_PRODUCT, []
        products, near = faiss.knn(queries, self.vectors_, depth, metric=metric)
        # Of a 32-bit sum, and of the score that is rounded to 32 bits (Higham, section 3.1).
        errors = (width + 2) * 2.0**-24 * _norms(queries) * self._longest
        for number, floor in enumerate(products.min(axis=1) + errors):
            documents, scores = self._scored(queries[number], np.sort(near[number]))
            if depth == rows or (len(scores) >= k and scores[k - 1] > floor):
                best = zip(documents[:k], scores[:k], strict=True)
                found.append([(self.doc_ids_[n], score) for n, score in best])
            else:
                found += self._answers(queries[number : number + 1], k, 4 * depth)
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
    encoder, texts: list[str], kind: str, *, cache: bool | str | os.PathLike = True
) -> np.ndarray:
    """Return the vectors of texts, one row each, by any encoder that `Dense` takes."""
    options = {"cache": cache} if isinstance(encoder, models.Encoder) else {}
    vectors = encoder.encode(texts, kind=kind, **options)
    return matrix(vectors, f"{kind} vectors of {encoder.name}", texts)


def matrix(vectors, what: str, names: Sequence[str]) -> np.ndarray:
    """Return vectors as a contiguous matrix of float32, with a row for each of `names`."""
    try:
        vectors = np.ascontiguousarray(vectors, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} should be numbers: {error}") from None
    if vectors.ndim != 2 or len(vectors) != len(names) or vectors.shape[1] == 0:
        expected = f"a matrix of {len(names):,} rows"
        raise DataError(f"{what} should be {expected}, found the shape {vectors.shape}")
    good = np.maximum(vectors.max(axis=1), -vectors.min(axis=1)) < LARGEST
    if not good.all():
        row = int(good.argmin())
        problem = f"holds NaN, infinity or a number beyond {LARGEST:g}"
        raise DataError(f"{what}: row {row + 1} ({names[row]!r:.80}) {problem}")
    return vectors


def _norms(vectors: np.ndarray) -> np.ndarray:
    return np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
