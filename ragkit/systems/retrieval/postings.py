"""An inverted index in numpy arrays, built from a stream of texts."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable
from itertools import chain
from typing import NamedTuple

import numpy as np

BLOCK = 100_000  # terms that are sorted at a time
CACHED = 80_000  # pieces of text whose terms are remembered: the first ones, often the commonest
SHORT = 40  # characters of a piece worth remembering


class Index(NamedTuple):
    """Which documents have a term, and how often.

    Attributes
    ----------
    terms : Lexicon
        The number of each term.
    starts : array of int64, shape (n_terms + 1,)
        The postings of term t are those from `starts[t]` to `starts[t + 1]`.
    documents : array of int32, shape (n_postings,)
        Document numbers, ascending within a term.
    frequencies : array of unsigned int, shape (n_postings,)
        How often the term stands in the document, in the smallest type that holds all of them.
    lengths : array of int64, shape (n_documents,)
        The number of terms in each document, repeated ones counted.
    """

    terms: Lexicon
    starts: np.ndarray
    documents: np.ndarray
    frequencies: np.ndarray
    lengths: np.ndarray


class Lexicon:
    """An ordered table of terms in one string of bytes: a tenth of a dictionary's memory."""

    def __init__(self, ordered: list[str]):
        encoded = [term.encode("utf-8", "surrogatepass") for term in ordered]
        self._ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
        self._bytes = b"".join(encoded)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number: int) -> str:
        return self._encoded(range(len(self))[number]).decode("utf-8", "surrogatepass")

    def find(self, term: str) -> int | None:
        """Return the number of a term, or None."""
        wanted = term.encode("utf-8", "surrogatepass")
        number = bisect_left(range(len(self)), wanted, key=self._encoded)
        return number if number < len(self) and self._encoded(number) == wanted else None

    def _encoded(self, number: int) -> bytes:
        start = self._ends[number - 1] if number else 0
        return self._bytes[start : self._ends[number]]


class Builder:
    """Builds an index from one text after the other; holds at most a block of unsorted terms.

    Parameters
    ----------
    terms : callable
        str -> list of str. The terms of a text must be those of its pieces between white space.
    """

    def __init__(self, terms: Callable[[str], list[str]]):
        self._pieces = _Pieces(terms)
        self._codes = array("i")
        self._counts: list[int] = []
        self._lengths = array("q")
        self._blocks: list[tuple] = []

    def add(self, text: str) -> None:
        # U+202F is white space to Python, but joins words in UAX #29.
        pieces = [text] if "\u202f" in text else text.split()
        before = len(self._codes)
        self._codes.extend(map(self._pieces.__getitem__, pieces))
        self._counts.append(len(self._codes) - before)
        if len(self._codes) + self._pieces.passing_terms >= BLOCK:
            self._close_block()

    def build(self) -> Index:
        """Return the index; the builder is empty afterwards."""
        self._close_block()
        terms = self._pieces.terms
        self._pieces.clear()
        ordered = sorted(terms)
        rank = np.empty(len(terms), dtype=np.int32)
        rank[np.fromiter(map(terms.__getitem__, ordered), np.int64, len(terms))] = np.arange(
            len(terms)
        )
        terms.clear()
        lexicon = Lexicon(ordered)
        del ordered
        starts = np.zeros(len(rank) + 1, dtype=np.int64)
        for block_terms, counts, *_ in self._blocks:
            starts[rank[block_terms] + 1] += counts
        np.cumsum(starts, out=starts)
        largest = max((block[-1].dtype for block in self._blocks), default=np.dtype(np.uint8))
        documents = np.empty(starts[-1], dtype=np.int32)
        frequencies = np.empty(starts[-1], dtype=largest)
        # Blocks hold ascending documents, so each term's postings are theirs one after the other.
        filled = starts[:-1].copy()
        self._blocks.reverse()
        while self._blocks:
            block_terms, counts, first, block_documents, block_frequencies = self._blocks.pop()
            block_terms = rank[block_terms]
            before = np.cumsum(counts, dtype=np.int64) - counts
            places = np.repeat(filled[block_terms] - before, counts)
            places += np.arange(len(block_documents))
            documents[places] = block_documents + np.int32(first)
            frequencies[places] = block_frequencies
            filled[block_terms] += counts
        return Index(lexicon, starts, documents, frequencies, np.asarray(self._lengths))

    def _close_block(self) -> None:
        codes = np.array(self._codes, dtype=np.int64)
        owners = np.repeat(np.arange(len(self._counts)), self._counts)
        documents_here = len(self._counts)
        keys, sizes = self._pieces.expand(codes)
        owners = np.repeat(owners, sizes)
        self._codes, self._counts = array("i"), []
        if len(keys):
            keys *= documents_here
            keys += owners
            keys.sort()
            keys, frequencies = _runs(keys)
            terms, documents = np.divmod(keys, documents_here)
            terms, counts = _runs(terms)
            counts, terms = _small(counts), terms.astype(np.int32)
            first = len(self._lengths)
            self._blocks.append((terms, counts, first, _small(documents), _small(frequencies)))
        self._lengths.extend(np.bincount(owners, minlength=documents_here).tolist())


class _Pieces(dict):
    """Maps a piece of text to the number of its term, or to a negative code for none or several.

    The first short pieces are remembered; the others get a code that is valid until `expand`.
    """

    def __init__(self, find):
        super().__init__()
        self.find = find
        self.terms: dict[str, int] = {}
        self.kept: list[list[int]] = []
        self.passing: list[list[int]] = []
        self.passing_terms = 0

    def __missing__(self, piece: str) -> int:
        found, terms = self.find(piece), self.terms
        if found == [piece]:
            found = [piece]  # one string for both dictionaries
        numbers = [terms.setdefault(term, len(terms)) for term in found]
        keep = len(self) < CACHED and len(piece) <= SHORT
        if len(numbers) == 1:
            code = numbers[0]
        elif keep:
            self.kept.append(numbers)
            code = -len(self.kept)
        else:
            self.passing.append(numbers)
            self.passing_terms += len(numbers)
            code = -CACHED - len(self.passing)
        if keep:
            self[piece] = code
        return code

    def expand(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers that codes stand for, and how many each of them stands for."""
        coded = np.flatnonzero(codes < 0)
        several = [
            self.kept[-code - 1] if code >= -CACHED else self.passing[-code - CACHED - 1]
            for code in codes[coded].tolist()
        ]
        sizes = np.ones(len(codes), dtype=np.int64)
        sizes[coded] = [len(numbers) for numbers in several]
        out = np.repeat(codes, sizes)
        out[out < 0] = list(chain.from_iterable(several))
        self.passing, self.passing_terms = [], 0
        return out, sizes


def _small(numbers: np.ndarray) -> np.ndarray:
    """Return `numbers` in the smallest unsigned type that holds them."""
    return numbers.astype(np.min_scalar_type(int(numbers.max())))


def _runs(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values of an ordered array and how often each stands there."""
    firsts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    return ordered[firsts], np.diff(np.r_[firsts, len(ordered)])
