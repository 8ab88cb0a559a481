"""BM25 with Lucene's arithmetic: the same ranked lists, ties included.

Lucene rounds in three places, and each can swap two documents: a document's length is kept in one
byte, weights and scores are 32-bit floats, and avgdl counts only documents that have a term. All
three are done here in the same order of operations (Lucene 8 and later, class BM25Similarity).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ragkit import checks
from ragkit.systems.retrieval import analysis, saved
from ragkit.systems.retrieval.frames import Retriever, check_fields, document_texts
from ragkit.systems.retrieval.postings import Builder, Index, Lexicon

if TYPE_CHECKING:
    import pandas as pd

# mode -> terms of a document, terms of a query, default k1
MODES = {
    "lucene": (analysis.standard_terms, analysis.standard_terms, 1.2),
    "flashrag": (analysis.flashrag_index_terms, analysis.flashrag_terms, 1.5),
}
FREE = 24  # lengths below are kept exactly
# A sum of bounds is compared with a rounded score: allow for the rounding.
SLACK = 1 - 1e-5


class BM25(Retriever):
    """Rank documents by BM25.

    Parameters
    ----------
    k1 : float, at least 0, optional
        Term frequency saturation: with a larger k1, repeated words count for more. The default is
        1.2 in mode "lucene" and 1.5 in mode "flashrag".
    b : float, 0 to 1
        Length normalisation: 0 for none, 1 for full.
    mode : {"lucene", "flashrag"}
        "lucene": the results of Lucene, OpenSearch and Elasticsearch with the standard analyzer.
        "flashrag": the results of FlashRAG, the tool behind WixQA's tables, since April 2025: the
        defaults of bm25s over an index of stemmed words, searched with words that are not stemmed.
        A query word that the stemmer would change matches only what happens to equal it. Documents
        that share no word with the query, with which that tool fills its lists up, are left out.
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

    `fit` reads an iterable of documents once and does not keep their texts. The index takes about
    5 bytes for each distinct word of each document.

    Once the remaining words could not lift a new document into the first k, their lists are no
    longer read as a whole (MaxScore: Turtle and Flood 1995).

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
        *_, usual = MODES[checks.choice(mode, "mode of BM25", MODES)]
        self.k1 = checks.number(usual if k1 is None else k1, "k1", least=0)
        self.b = checks.number(b, "b", least=0, most=1)
        self.mode, self.fields = mode, check_fields(fields)
        self.system = system or ("bm25" if mode == "lucene" else f"bm25-{mode}")

    def fit(self, documents: pd.DataFrame | Iterable[pd.DataFrame | Mapping]) -> BM25:
        builder = Builder(MODES[self.mode][0])
        doc_ids = []
        for doc_id, text in document_texts(documents, self.fields):
            doc_ids.append(doc_id)
            builder.add(text)
        return self._use(doc_ids, builder.build())

    def save(self, folder: str | os.PathLike) -> Path:
        """Write the index into a folder, which `load` reads; return the folder."""
        self._check_fitted()
        settings = {name: getattr(self, name) for name in ("k1", "b", "mode", "fields", "system")}
        parts = self.index_._asdict() | {"terms": list(self.index_.terms)}
        return saved.write(folder, "BM25", settings, parts | {"doc_ids": self.doc_ids_})

    @classmethod
    def load(cls, folder: str | os.PathLike) -> BM25:
        """Return a saved index, with its options; its arrays are memory-mapped.

        Raises
        ------
        MissingData, DataError, HashMismatch
            As in `ragkit.systems.retrieval.saved.read`.
        """
        settings, parts = saved.read(folder, "BM25")
        doc_ids, terms = parts.pop("doc_ids"), Lexicon(parts.pop("terms"))
        return cls(**settings)._use(doc_ids, Index(terms, **parts))

    def _search(self, ids, texts, k):
        totals = np.zeros(len(self.doc_ids_))
        for text in texts:
            top, scores = self._top(text, k, totals)
            yield [self.doc_ids_[n] for n in top.tolist()], scores

    def _use(self, doc_ids: list[str], index: Index) -> BM25:
        """Take an index; compute idf, length norms and a bound of each term's scores."""
        self.doc_ids_, self.index_, lengths = doc_ids, index, index.lengths
        if self.mode == "flashrag":  # bm25s keeps lengths exact, and an empty text as one word
            lengths = np.maximum(lengths, 1)
        documents = int((lengths > 0).sum())
        average = lengths.sum() / max(documents, 1)
        if self.mode == "lucene":
            lengths = one_byte(lengths)
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
        return self

    def _top(self, text: str, k: int, totals: np.ndarray):
        """Return document numbers and scores of the first k; `totals` is zero before and after."""
        index = self.index_
        counts = Counter(MODES[self.mode][1](text))
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
    """Return ln(1 + (N - n + 0.5) / (n + 0.5)) as 32-bit floats."""
    n = np.asarray(document_frequency, dtype=np.float64)
    return np.log(1 + (documents - n + 0.5) / (n + 0.5)).astype(np.float32)


def inverse_norms(lengths: np.ndarray, average: float, k1: float, b: float) -> np.ndarray:
    """Return 1 / (k1 (1 - b + b length / average)), each step rounded to 32 bits."""
    one, k1, b = np.float32(1), np.float32(k1), np.float32(b)
    average = np.float32(average if average > 0 else 1)
    with np.errstate(divide="ignore"):
        return one / (k1 * ((one - b) + b * np.asarray(lengths, np.float32) / average))


def one_byte(lengths: np.ndarray) -> np.ndarray:
    """Return what Lucene's SmallFloat.intToByte4 keeps of lengths.

    The lengths below 40 are exact; of a longer one, four significant bits above 24 are kept.
    """
    return LENGTHS[np.searchsorted(LENGTHS, lengths, side="right") - 1]


def _lengths() -> np.ndarray:
    """Return what each byte stands for: 0 to 23, then 24 plus a 3-bit mantissa and an exponent."""
    codes = np.arange(256 - FREE)
    shift = np.maximum((codes >> 3) - 1, 0)
    mantissa = np.where(codes >> 3, (codes & 7) | 8, codes & 7)
    return np.concatenate([np.arange(FREE), FREE + (mantissa.astype(np.int64) << shift)])


LENGTHS = _lengths()
