"""Answers made of the documents' own sentences: no language model, the same on every run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ragkit.errors import UsageError
from ragkit.systems.readers.base import ABSTENTION, Document, Reader, Reading
from ragkit.systems.readers.sentences import join, split

RERANKER = "ms-marco-MiniLM-L-12-v2-int8"
# Where the two kinds of questions part best on the embedded sample (LiveRAG and help centre, BM25,
# top 3): the best piece reaches this for 96 % of the questions, and for 3 % of those that were
# asked of the other set's documents.
THRESHOLD = -8.0


class Extractive(Reader):
    """The sentences that a cross-encoder scores highest, in the order of the documents.

    Parameters
    ----------
    reranker : str or object
        A name that `ragkit.models.reranker` knows, or anything with `score(query, passages)` that
        returns a number for each passage, and a `name`.
    sentences : int, at least 1
        How many pieces of text to answer with, at most.
    threshold : float or None
        Pieces that score less (a logit, higher is better) are left out; with none left, the reader
        abstains. None never abstains while there is a document.

    Raises
    ------
    UsageError
        If an option is out of range or the reranker unknown.
    ModelError
        If its weights are not at hand.

    Notes
    -----
    A piece is a sentence, a list item or a block of code (`ragkit.systems.readers.sentences`); it is scored
    behind its document's title, without which many a sentence does not say what it is about.
    Headings are no candidates unless a document has nothing else. Equal scores are decided by the
    order of the documents, so that the answer follows from its inputs.
    """

    name = "extractive"

    def __init__(
        self,
        reranker: Any = RERANKER,
        *,
        sentences: int = 3,
        threshold: float | None = THRESHOLD,
    ):
        if isinstance(sentences, bool) or not isinstance(sentences, int) or sentences < 1:
            raise UsageError(f"sentences should be a whole number from 1, found {sentences!r}")
        if threshold is not None and (
            isinstance(threshold, bool)
            or not isinstance(threshold, int | float)
            or threshold != threshold
        ):
            raise UsageError(f"threshold should be a number or None, found {threshold!r}")
        self.sentences, self.threshold = sentences, threshold
        self._reranker = _named(reranker) if isinstance(reranker, str) else reranker
        self.settings = {
            "kind": "extractive",
            "reranker": reranker if isinstance(reranker, str) else self._reranker.name,
            "sentences": sentences,
            "threshold": threshold,
        }

    def read(self, tasks: Sequence[tuple[str, Sequence[Document]]]) -> list[Reading]:
        return [self._one(question, documents) for question, documents in tasks]

    def _one(self, question: str, documents: Sequence[Document]) -> Reading:
        floor = float("-inf") if self.threshold is None else self.threshold
        found = [
            (score, place, number, text, line)
            for place, document in enumerate(documents)
            for number, (score, text, line) in enumerate(
                _scored(self._reranker, question, document.title, document.text)
            )
            if score >= floor
        ]
        if not found:
            return Reading(ABSTENTION, abstained=True)
        found.sort(key=lambda piece: (-piece[0], piece[1], piece[2]))
        distinct: dict[str, tuple] = {}  # documents repeat each other; an answer should not
        for piece in found:
            distinct.setdefault(" ".join(piece[3].lower().split()), piece)
        chosen = sorted(list(distinct.values())[: self.sentences], key=lambda piece: piece[1:3])
        return Reading(join([(text, (place, line)) for _, place, _, text, line in chosen]))


class _Named:
    """A model of `ragkit.models` whose scores are kept on disk, for all readers that share it."""

    def __init__(self, name: str):
        from ragkit import models

        self.name = name
        self._model = models.reranker(name)

    def score(self, query: str, passages: Sequence[str]):
        return self._model.score(query, passages, cache=True)


@lru_cache(maxsize=4)
def _named(name: str) -> _Named:
    return _Named(name)


@lru_cache(maxsize=20_000)
def _scored(reranker, question: str, title: str, text: str) -> tuple[tuple[float, str, int], ...]:
    """Return (score, text, paragraph) of a document's pieces."""
    pieces = split(text)
    worded = [piece for piece in pieces if piece.kind != "heading"] or pieces
    texts = [text[piece.start : piece.end] for piece in worded]
    head = f"{title}: " if title and title.strip() != text.strip() else ""
    scores = reranker.score(question, [head + piece for piece in texts])
    return tuple(
        (float(score), said, piece.line)
        for score, said, piece in zip(scores, texts, worded, strict=True)
    )
