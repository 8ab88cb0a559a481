"""BM25 with Lucene's arithmetic: the same ranked lists, ties included.

Lucene rounds in three places, and each can swap two documents: a document's length is kept in one
byte, weights and scores are 32-bit floats, and avgdl counts only documents that have a term. All
three are done here in the same order of operations (Lucene 8 and later, class BM25Similarity).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ragkit.errors import UsageError, did_you_mean
from ragkit.systems.retrieval.analysis import analyzer
from ragkit.systems.retrieval.frames import (
    check_fields,
    check_whole,
    document_texts,
    query_texts,
    runs_frame,
)
from ragkit.systems.retrieval.postings import Builder

if TYPE_CHECKING:
    import pandas as pd

# mode -> (analyzer, default k1)
MODES = {"lucene": ("standard", 1.2), "flashrag": ("flashrag", 1.5)}
FREE = 24  # lengths below are kept exactly
# A sum of bounds is compared with a rounded score: allow for the rounding.
SLACK = 1 - 1e-5


class BM25:
    """Rank documents by BM25.

    Parameters
    ----------
    k1 : float, at least 0, optional
        How slowly repeated words saturate; 1.2 in mode "lucene" and 1.5 in mode "flashrag".
    b : float, 0 to 1
        How far a document's length counts.
    mode : {"lucene", "flashrag"}
        "lucene": what Lucene, OpenSearch and Elasticsearch return with the standard analyzer.
        "flashrag": what FlashRAG, the tool behind WixQA's tables, returned from April 2025 on: the
        defaults of bm25s over an index of stemmed words, asked with words that were not stemmed.
        A query word that the stemmer would change finds only what happens to equal it. For
        faithful numbers beside right ones; documents that share no word with the query, with
        which that tool filled its lists up, are left out.
    fields : tuple of str
        The columns that make a document's text, joined by an empty line. The default is the rule
        of EnterpriseRAG-Bench: title, empty line, text.
    system : str, optional
        The name in the `system` column; "bm25" or "bm25-flashrag" by default.

    Attributes
    ----------
    doc_ids_ : list of str
        The ids in the order of the documents.
    index_ : ragkit.systems.retrieval.postings.Index

    Notes
    -----
    Documents of equal score (a 32-bit float) come in the order in which they were given, on every
    machine. The idf is ln(1 + (N - n + 0.5) / (n + 0.5)); there is no factor (k1 + 1).

    Once the words left could not lift a new document into the first k, their lists are no longer
    read as a whole (MaxScore: Turtle and Flood 1995).

    Source: Robertson and Zaragoza 2009, The probabilistic relevance framework, section 3.4;
    WixQA section 4.1 (through FlashRAG, of which no version is given); EnterpriseRAG-Bench
    section 6.1 (through OpenSearch).
    """

    def __init__(
        self,
        k1: float | None = None,
        b: float = 0.75,
        *,
        mode: str = "lucene",
        fields: tuple[str, ...] = ("title", "text"),
        system: str | None = None,
    ):
        if mode not in MODES:
            raise UsageError(f"BM25 has no mode {mode!r}", did_you_mean(mode, MODES))
        name, usual = MODES[mode]
        k1 = usual if k1 is None else k1
        if not 0 <= k1 < float("inf"):
            raise UsageError(f"k1 should be 0 or more, found {k1!r}")
        if not 0 <= b <= 1:
            raise UsageError(f"b should be from 0 to 1, found {b!r}")
        self.k1, self.b, self.mode, self.fields = k1, b, mode, check_fields(fields)
        self.system = system or ("bm25" if mode == "lucene" else f"bm25-{mode}")
        self._analyzer = analyzer(name)

    def fit(self, documents: pd.DataFrame | Iterable[pd.DataFrame | Mapping]) -> BM25:
        """Index documents.

        Parameters
        ----------
        documents : DataFrame, or iterable of DataFrames or of mappings
            With `doc_id` and the columns of `fields`. An iterable is read once and its texts are
            not kept, so that a generator indexes any number of documents in the memory that the
            index takes, about 5 bytes for each distinct word of each document. A field that is
            None or NaN is left out of the text.

        Returns
        -------
        self

        Raises
        ------
        DataError
            If there is no document, a column is missing, an id is empty, no string or there
            before, or a field holds something else than a string.
        """
        builder = Builder(self._analyzer.index_terms)
        doc_ids = []
        for doc_id, text in document_texts(documents, self.fields):
            doc_ids.append(doc_id)
            builder.add(text)
        self.doc_ids_ = doc_ids
        self.index_ = builder.build()
        self._weigh()
        return self

    def search(self, queries: pd.DataFrame | Iterable[str], k: int = 10) -> pd.DataFrame:
        """Return the best documents for each query.

        Parameters
        ----------
        queries : DataFrame with question_id and text, or iterable of str
            Strings get their position, from "0", as question_id.
        k : int, at least 1
            How many documents at most; a query gets fewer where fewer share a word with it, and
            no row at all where none does.

        Returns
        -------
        DataFrame
            `runs`: system, question_id, rank (from 1), doc_id, score (above 0).

        Raises
        ------
        UsageError
            If k is below 1, or nothing was indexed yet.
        DataError
            If a query is no string, or a question_id is empty, no string or there before.
        """
        if not hasattr(self, "index_"):
            raise UsageError("BM25 has no index yet", "call fit(documents) first")
        k = check_whole(k, "k")
        ids, texts = query_texts(queries)
        totals = np.zeros(len(self.doc_ids_))
        tops = (self._top(text, k, totals) for text in texts)
        found = [([self.doc_ids_[n] for n in top.tolist()], scores) for top, scores in tops]
        return runs_frame(self.system, ids, found)

    def _weigh(self) -> None:
        """Compute what all queries share: idf, length norms and each term's largest score."""
        index, lengths = self.index_, self.index_.lengths
        if self.mode == "flashrag":  # bm25s keeps lengths exact, and an empty text as one word
            lengths = np.maximum(lengths, 1)
        documents = int((lengths > 0).sum())
        average = lengths.sum() / max(documents, 1)
        if self.mode == "lucene":
            lengths = DECODED_LENGTHS[encode_length(lengths)]
        self._inverse = inverse_norms(lengths, average, self.k1, self.b)
        self._idf = idf(np.diff(index.starts), documents)
        # The score rises with frequency x inverse norm; its largest value bounds a term's scores.
        self._largest = np.empty(len(index.terms), dtype=np.float32)
        for first, last in _shares(index.starts, 500_000):
            starts = index.starts[first : last + 1]
            postings = slice(starts[0], starts[-1])
            ratios = self._inverse[index.documents[postings]]
            ratios *= index.frequencies[postings]
            self._largest[first:last] = np.maximum.reduceat(ratios, starts[:-1] - starts[0])

    def _top(self, text: str, k: int, totals: np.ndarray):
        """Return document numbers and scores of the first k; `totals` is zero before and after."""
        index = self.index_
        counts = Counter(self._analyzer.query_terms(text))
        found = [(index.terms.find(term), n) for term, n in counts.items()]
        weighted = [
            (np.float32(n) * self._idf[term], term) for term, n in found if term is not None
        ]
        waiting = [(float(w - w / (1 + self._largest[term])), w, term) for w, term in weighted]
        waiting.sort(key=lambda entry: entry[0])
        left, floor = sum(bound for bound, _, _ in waiting), 0.0
        while waiting and (floor == 0 or left >= floor):
            bound, weight, term = waiting.pop()
            left -= bound
            postings = slice(index.starts[term], index.starts[term + 1])
            documents = index.documents[postings].astype(np.intp)
            sums = totals[documents]
            sums += self._scores(weight, documents, index.frequencies[postings])
            totals[documents] = sums
            floor = max(floor, _floor(sums, k))
        # Whatever is not in the first k lists by now cannot get there: look up the others only.
        candidates = np.flatnonzero(totals >= max(floor - left, np.finfo(float).tiny))
        sums = totals[candidates]
        totals.fill(0)
        while waiting:
            bound, weight, term = waiting.pop()
            left -= bound
            start, stop = index.starts[term], index.starts[term + 1]
            documents = index.documents[start:stop]
            places = np.searchsorted(documents, candidates.astype(np.int32))
            places[places == stop - start] = 0
            hit = np.flatnonzero(documents[places] == candidates)
            frequencies = index.frequencies[start + places[hit]]
            sums[hit] += self._scores(weight, candidates[hit], frequencies)
            kept = sums >= _floor(sums, k) - left
            candidates, sums = candidates[kept], sums[kept]
        scores = sums.astype(np.float32)
        first = np.lexsort((candidates, -scores))[:k]
        return candidates[first], scores[first]

    def _scores(self, weight: np.float32, documents, frequencies) -> np.ndarray:
        ratio = self._inverse[documents]
        ratio *= frequencies
        ratio += 1
        return weight - weight / ratio


def _shares(starts: np.ndarray, size: int):
    """Yield (first, last) terms of shares of about `size` postings, at least one term each."""
    first, terms = 0, len(starts) - 1
    while first < terms:
        last = int(np.searchsorted(starts, starts[first] + size, side="right")) - 1
        last = min(max(last, first + 1), terms)
        yield first, last
        first = last


def _floor(sums: np.ndarray, k: int) -> float:
    """Return a score that the k-th document surely has, less what rounding could add."""
    return float(np.partition(sums, -k)[-k]) * SLACK if len(sums) >= k else 0.0


def idf(document_frequency: np.ndarray, documents: int) -> np.ndarray:
    """Return ln(1 + (N - n + 0.5) / (n + 0.5)) as 32-bit floats.

    Parameters
    ----------
    document_frequency : array of int
        n, the number of documents that have each term.
    documents : int
        N, the number of documents that have any term.
    """
    n = np.asarray(document_frequency, dtype=np.float64)
    return np.log(1 + (documents - n + 0.5) / (n + 0.5)).astype(np.float32)


def inverse_norms(lengths: np.ndarray, average: float, k1: float, b: float) -> np.ndarray:
    """Return 1 / (k1 (1 - b + b length / average)), each step rounded to 32 bits."""
    one, k1, b = np.float32(1), np.float32(k1), np.float32(b)
    average = np.float32(average if average > 0 else 1)
    with np.errstate(divide="ignore"):
        return one / (k1 * ((one - b) + b * np.asarray(lengths, np.float32) / average))


def encode_length(lengths) -> np.ndarray:
    """Return the one-byte form of lengths: exact below 40, then four significant bits.

    The byte of Lucene's SmallFloat.intToByte4. Decode it with `DECODED_LENGTHS[byte]`.
    """
    return (np.searchsorted(DECODED_LENGTHS, lengths, side="right") - 1).astype(np.uint8)


def _decoded_lengths() -> np.ndarray:
    """Return what each byte stands for: 0 to 23, then 24 plus a 3-bit mantissa and an exponent."""
    codes = np.arange(256 - FREE)
    shift = np.maximum((codes >> 3) - 1, 0)
    mantissa = np.where(codes >> 3, (codes & 7) | 8, codes & 7)
    return np.concatenate([np.arange(FREE), FREE + (mantissa.astype(np.int64) << shift)])


DECODED_LENGTHS = _decoded_lengths()
