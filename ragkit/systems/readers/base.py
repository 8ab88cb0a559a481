"""What all readers share: questions and ranked documents in, an `answers` frame out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ragkit import checks, schema
from ragkit.errors import DataError, UsageError

if TYPE_CHECKING:
    import pandas as pd

# What every reader answers where the documents do not answer the question.
ABSTENTION = "The documents do not answer this question."


class Document(NamedTuple):
    """A document as a reader sees it."""

    doc_id: str
    title: str
    text: str


class Reading(NamedTuple):
    """The result for one question.

    `answer` is None if the reader failed, and `failure` says why. `abstained` says that the answer
    is the statement that the documents hold none.
    """

    answer: str | None
    abstained: bool = False
    failure: str | None = None


class Reader(ABC):
    """Answers questions from documents.

    Attributes
    ----------
    name : str
        "extractive" or "openai:MODEL".
    """

    name: str

    def __repr__(self) -> str:
        return f"<reader {self.name}>"

    @abstractmethod
    def read(self, tasks: Sequence[tuple[str, Sequence[Document]]]) -> list[Reading]:
        """Return the answer to every (question, documents from the best), in order."""

    def answer(
        self,
        questions: pd.DataFrame,
        documents: pd.DataFrame,
        runs: pd.DataFrame,
        top: int = 5,
        *,
        system: str | None = None,
    ) -> pd.DataFrame:
        """Answer every question from the documents that each system of the runs found.

        Parameters
        ----------
        questions, documents, runs : DataFrame
            See `ragkit.schema`; `DataError` if one is not valid, or a run names an unknown
            document. A question for which a system found nothing is read with no document.
        top : int, at least 1
            How many documents to read, from the first rank. WixQA (section 4) reads 5.
        system : str, optional
            A name for the column `system`, for runs of one system or of none.

        Returns
        -------
        DataFrame
            An `answers` frame: system, question_id, answer, doc_ids (what was read, from the
            best), abstained (bool), failure. An abstention is an answer. If the reader failed,
            the answer is None and `failure` says why.
        """
        import pandas as pd

        checks.whole(top, "top")
        for frame, kind in ((questions, "questions"), (documents, "documents"), (runs, "runs")):
            schema.check(frame, kind, kind)
        systems = list(dict.fromkeys(runs["system"]))
        if system is None and not systems:
            raise UsageError("the runs are empty and have no system's name", "give system=NAME")
        if system is not None and len(systems) > 1:
            raise UsageError(f"{system!r} cannot name the runs of {len(systems)} systems")
        take = Library(documents).take
        ranked = runs[runs["rank"] <= top].sort_values("rank", kind="stable")
        lists = ranked.groupby(["system", "question_id"], sort=False)["doc_id"].agg(tuple).to_dict()
        rows = [
            (system or name, question, text, lists.get((name, question), ()))
            for name in systems or [system]
            for question, text in zip(questions["question_id"], questions["text"], strict=True)
        ]
        readings = self.read([(text, take(doc_ids)) for *_, text, doc_ids in rows])
        rows = [
            (*row[:2], reading.answer, row[3], reading.abstained, reading.failure)
            for row, reading in zip(rows, readings, strict=True)
        ]
        columns = ["system", "question_id", "answer", "doc_ids", "abstained", "failure"]
        return pd.DataFrame(rows, columns=columns, dtype=object).astype({"abstained": bool})


class Library:
    """The documents of a frame by id."""

    def __init__(self, documents: pd.DataFrame):
        columns = documents["doc_id"], documents["title"].fillna(""), documents["text"]
        self._found = {row[0]: Document(*row) for row in zip(*columns, strict=True)}

    def take(self, doc_ids: Sequence[str]) -> list[Document]:
        """Return documents in the order of their ids; `DataError` if one is not there."""
        for doc_id in doc_ids:
            if doc_id not in self._found:
                raise DataError(
                    f"the runs name the document {doc_id!r}, which is not among the "
                    f"{len(self._found):,} documents"
                )
        return [self._found[doc_id] for doc_id in doc_ids]
