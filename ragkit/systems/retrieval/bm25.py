"""BM25 with Lucene's arithmetic: the same ranked lists, ties included.

Lucene rounds in three places, and each can swap two documents: a document's length is kept in one
byte, weights and scores are 32-bit floats, and avgdl counts only documents that have a term. All
three are done here in the same order of operations (Lucene 8 and later, class BM25Similarity).
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import numpy as np
from scipy.sparse import csc_array, csr_array, vstack

from ragkit import checks
from ragkit.systems.retrieval import analysis
from ragkit.systems.retrieval.frames import check_fields, document_texts
from ragkit.systems.retrieval.saved import Saved

# mode -> terms of a document, terms of a query, default k1
MODES = {
    "lucene": (analysis.standard_terms, analysis.standard_terms, 1.2),
    "flashrag": (analysis.flashrag_index_terms, analysis.flashrag_terms, 1.5),
}
BLOCK = 2_000_000  # pieces of text that are counted together
# A sum of bounds is compared with a rounded score: allow for the rounding.
SLACK = 1 - 1e-5


class BM25(Saved):
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
    fields, system
        See `Retriever`; the default of `system` is "bm25" or "bm25-flashrag".

    Attributes
    ----------
    doc_ids_ : list of str
        In the order of the documents.
    terms_ : dict of str to int
        The column of each term in `counts_`.
    counts_ : scipy.sparse.csc_array of shape (n_documents, n_terms)
        How often each term stands in each document.

    Notes
    -----
    Documents of equal score (a 32-bit float) come in the order in which they were given. The idf is
    ln(1 + (N - n + 0.5) / (n + 0.5)); there is no factor (k1 + 1).

    `fit` reads an iterable of documents once and does not keep their texts. The index takes about
    5 bytes for each distinct word of each document; a saved one serves any `k1` and `b`.

    Source: Robertson and Zaragoza 2009, The probabilistic relevance framework, section 3.4; Turtle
    and Flood 1995 (MaxScore: the lists of words that could not lift a new document into the first k
    are not read as a whole); WixQA section 4.1 (through FlashRAG, of which no version is given);
    EnterpriseRAG-Bench section 6.1 (through OpenSearch).

    Examples
    --------
    >>> import pandas as pd
    >>> documents = pd.DataFrame({"doc_id": ["a", "b"], "title": ["Pumps", "Invoices"]})
    >>> documents["text"] = ["The pump leaks.", "Pay the invoice."]
    >>> BM25().fit(documents).search(["Which pump leaks?"], k=1)
      system question_id  rank doc_id     score
    0   bm25           0     1      a  0.630134
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
        self.system = system or {"lucene": "bm25"}.get(mode, f"bm25-{mode}")

    def fit(self, documents) -> BM25:
        doc_ids = []

        def texts():
            for doc_id, text in document_texts(documents, self.fields):
                doc_ids.append(doc_id)
                yield text

        terms, counts = count_terms(texts(), MODES[self.mode][0])
        return self._use(doc_ids, list(terms), counts.data, counts.indices, counts.indptr)

    def _settings(self):
        return {"index": "BM25", "mode": self.mode, "fields": list(self.fields)}

    def _parts(self):
        arrays = {name: getattr(self.counts_, name) for name in ("data", "indices", "indptr")}
        return {"doc_ids": self.doc_ids_, "terms": list(self.terms_), **arrays}

    def _use(self, doc_ids, terms, data, indices, indptr) -> BM25:
        self.doc_ids_, self.terms_ = doc_ids, dict(zip(terms, range(len(terms)), strict=True))
        shape = len(doc_ids), len(terms)
        self.counts_ = csc_array((data, indices, indptr), shape=shape)
        lengths = self.counts_.sum(axis=1).astype(np.int64)
        if self.mode == "flashrag":  # bm25s keeps lengths exact, and an empty text as one word
            lengths = np.maximum(lengths, 1)
        documents = int((lengths > 0).sum())
        average = lengths.sum() / max(documents, 1)
        if self.mode == "lucene":
            lengths = one_byte(lengths)
        self._inverse = inverse_norms(lengths, average, self.k1, self.b)
        self._idf = idf(np.diff(self.counts_.indptr), documents)
        # The score rises with frequency x inverse norm; its largest value bounds a term's scores.
        ratios = self._inverse[self.counts_.indices]
        ratios *= self.counts_.data
        self._largest = np.maximum.reduceat(ratios, self.counts_.indptr[:-1])
        return self

    def _search(self, ids, texts, k):
        totals = np.zeros(len(self.doc_ids_))
        for text in texts:
            top, scores = self._top(text, k, totals)
            yield [(self.doc_ids_[n], score) for n, score in zip(top, scores, strict=True)]

    def _top(self, text: str, k: int, totals: np.ndarray):
        """Return document numbers and scores of the first k; `totals` is zero before and after."""
        waiting = []
        for word, n in Counter(MODES[self.mode][1](text)).items():
            if (term := self.terms_.get(word)) is not None:
                weight = np.float32(n) * self._idf[term]
                bound = float(weight - weight / (1 + self._largest[term]))
                waiting.append((bound, weight, *self._postings(term)))
        waiting.sort(key=lambda entry: entry[0])
        left, floor = sum(bound for bound, *_ in waiting), 0.0
        while waiting and (floor == 0 or left >= floor):
            bound, weight, documents, frequencies = waiting.pop()
            left -= bound
            documents = documents.astype(np.intp)
            sums = totals[documents]
            sums += self._scores(weight, documents, frequencies)
            totals[documents] = sums
            floor = max(floor, _floor(sums, k))
        # Whatever is not in the first k lists by now cannot get there: look up the others only.
        candidates = np.flatnonzero(totals >= max(floor - left, np.finfo(float).tiny))
        sums = totals[candidates]
        totals.fill(0)
        while waiting:
            bound, weight, documents, frequencies = waiting.pop()
            left -= bound
            places = np.searchsorted(documents, candidates.astype(np.int32))
            places[places == len(documents)] = 0
            hit = np.flatnonzero(documents[places] == candidates)
            sums[hit] += self._scores(weight, candidates[hit], frequencies[places[hit]])
            kept = sums >= _floor(sums, k) - left
            candidates, sums = candidates[kept], sums[kept]
        scores = sums.astype(np.float32)
        first = np.lexsort((candidates, -scores))[:k]
        return candidates[first], scores[first]

    def _postings(self, term: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the documents that have a term, ascending, and how often."""
        part = slice(*self.counts_.indptr[term : term + 2])
        return self.counts_.indices[part], self.counts_.data[part]

    def _scores(self, weight: np.float32, documents, frequencies) -> np.ndarray:
        ratio = self._inverse[documents]
        ratio *= frequencies
        ratio += 1
        return weight - weight / ratio


def count_terms(
    texts: Iterable[str], analyse: Callable[[str], list[str]]
) -> tuple[dict[str, int], csc_array]:
    """Return the column of each term, and how often each term stands in each text.

    The terms of a text must be those of its pieces between white space: pieces are counted first,
    and each different one is analysed once.
    """
    terms, blocks = _numbers(), []
    for pieces, codes, ends in _pieces(iter(texts)):
        found = [[terms[term] for term in analyse(piece)] for piece in pieces]
        columns = np.fromiter(chain.from_iterable(found), np.int32)
        sizes = np.cumsum([0, *map(len, found)], dtype=np.int32)
        counts = _ones(codes, ends, len(pieces)) @ _ones(columns, sizes, len(terms))
        counts.data = counts.data.astype(np.min_scalar_type(counts.data.max(initial=0)))
        blocks.append(counts)
    for block in blocks:
        block.resize(block.shape[0], len(terms))
    return dict(terms), vstack(blocks, format="csr").tocsc()


def _pieces(texts: Iterator[str]) -> Iterator[tuple[dict[str, int], array, array]]:
    """Yield the numbers of a block's pieces, each text's numbers in a row, and where they end."""
    ends = None
    while ends is None or len(ends) > 1:
        pieces, codes, ends = _numbers(), array("i"), array("i", [0])
        for text in texts:
            # U+202F is white space to Python, but joins words in UAX #29.
            own = [text] if "\u202f" in text else text.split()
            codes.extend(map(pieces.__getitem__, own))
            ends.append(len(codes))
            if len(codes) >= BLOCK:
                break
        if len(ends) > 1:
            yield pieces, codes, ends


def _numbers() -> defaultdict[str, int]:
    """Return a dictionary that numbers its keys in the order in which they are asked for."""
    numbers = defaultdict()
    numbers.default_factory = numbers.__len__
    return numbers


def _ones(columns, ends, width: int) -> csr_array:
    """Return a matrix with a 1 for each of `columns`; those up to `ends[n]` end row n - 1."""
    columns, ends = np.asarray(columns), np.asarray(ends)
    return csr_array((np.ones_like(columns), columns, ends), shape=(len(ends) - 1, width))


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
    above = np.maximum(np.asarray(lengths) - 24, 0)
    lost = np.maximum(np.frexp(above)[1] - 4, 0)  # frexp's exponent: the number of bits
    return np.where(lost, 24 + (above >> lost << lost), lengths)
