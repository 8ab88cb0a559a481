"""Answers composed of the documents' own sentences: no language model, the same on every run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ragkit import checks
from ragkit.models import Reranker
from ragkit.models import reranker as named_reranker
from ragkit.systems.readers.base import ABSTENTION, Document, Reader, Reading
from ragkit.systems.readers.pieces import join, split
from ragkit.text import STOP_WORDS, stems

RERANKER = "ms-marco-MiniLM-L-12-v2-int8"
# A compromise. On 40 questions of each of the sample's three benchmarks (BM25, top 5), the reader
# abstains on 14 of 120 over the own documents and on 57 over another benchmark's; with -6 on 22 and
# 75, with -10 on 3 and 30. Token F1 over the own: 0.196, 0.190, 0.205; without a threshold 0.207.
THRESHOLD = -8.0
# Of about 300 pieces. Token F1 of the same with 20, 40, 60, 80, 120 and all: 0.196, 0.197, 0.196,
# 0.195, 0.198, 0.198.
MOST = 60


class Extractive(Reader):
    """The sentences that a cross-encoder scores highest, in the order of the documents.

    Parameters
    ----------
    reranker : str or object
        As in `ragkit.systems.retrieval.Rerank`.
    sentences : int, at least 1
        The largest number of pieces of text in an answer.
    threshold : float or None
        Pieces that score less (a logit, higher is better) are left out; with none left, the reader
        abstains. None never abstains while there is a document.
    most : int or None
        Pieces of a question's documents that the cross-encoder scores: those that share most words
        with the question, by stem, titles included. None scores all.

    Notes
    -----
    A piece is a sentence, a list item or a block of code (`ragkit.systems.readers.pieces`); it is
    scored behind its document's title, without which many sentences do not say what they are
    about. Headings are no candidates unless a document has nothing else. Pieces of equal score
    come in the order of the documents.
    """

    name = "extractive"

    def __init__(
        self,
        reranker: Any = RERANKER,
        *,
        sentences: int = 3,
        threshold: float | None = THRESHOLD,
        most: int | None = MOST,
    ):
        self.sentences = checks.whole(sentences, "sentences")
        self.threshold = None if threshold is None else checks.number(threshold, "threshold")
        self.most = None if most is None else checks.whole(most, "most")
        self._reranker = named_reranker(reranker) if isinstance(reranker, str) else reranker

    def read(self, tasks: Sequence[tuple[str, Sequence[Document]]]) -> list[Reading]:
        found = [
            (number, question, *piece)
            for number, (question, documents) in enumerate(tasks)
            for piece in self._nearest(question, documents)
        ]
        # Systems find the same documents, and documents repeat each other: a pair is scored once.
        pairs = list(dict.fromkeys((question, passage) for _, question, _, passage, *_ in found))
        options = {"cache": True} if isinstance(self._reranker, Reranker) else {}
        scores = self._reranker.score_pairs(pairs, **options) if pairs else ()
        known = dict(zip(pairs, map(float, scores), strict=True))
        pieces = [[] for _ in tasks]
        for number, question, place, passage, text, line in found:
            score = known[question, passage]
            if self.threshold is None or score >= self.threshold:
                pieces[number].append((score, text, (place, line)))
        return [self._composed(own) for own in pieces]

    def _nearest(self, question: str, documents: Sequence[Document]) -> list[tuple]:
        """Return (document, what is scored, text, paragraph) of the pieces to score, in order."""
        pieces = [
            (place, *piece)
            for place, document in enumerate(documents)
            for piece in _pieces(document.title, document.text)
        ]
        asked = _stems(question)
        order = sorted(pieces, key=lambda piece: -len(asked & _stems(piece[1])))
        kept = set(order[: self.most])
        return [piece for piece in pieces if piece in kept]

    def _composed(self, pieces: list[tuple[float, str, tuple[int, int]]]) -> Reading:
        """Return the answer of (score, text, paragraph), in the order of the documents."""
        if not pieces:
            return Reading(ABSTENTION, abstained=True)
        distinct: dict[str, int] = {}  # documents repeat each other; an answer should not
        for number in sorted(range(len(pieces)), key=lambda number: -pieces[number][0]):
            distinct.setdefault(" ".join(pieces[number][1].lower().split()), number)
        chosen = sorted(list(distinct.values())[: self.sentences])
        return Reading(join([pieces[number][1:] for number in chosen]))


@lru_cache(maxsize=100_000)
def _stems(text: str) -> frozenset[str]:
    words = (word for word in re.findall(r"\w+", text.lower()) if word not in STOP_WORDS)
    return frozenset(stems(words))


@lru_cache(maxsize=20_000)
def _pieces(title: str, text: str) -> list[tuple[str, str, int]]:
    """Return (what is scored, text, paragraph) of a document's pieces."""
    pieces = split(text)
    candidates = [piece for piece in pieces if piece.kind != "heading"] or pieces
    head = f"{title}: " if title and title.strip() != text.strip() else ""
    own = [(text[piece.start : piece.end], piece.line) for piece in candidates]
    return [(head + piece, piece, line) for piece, line in own]
