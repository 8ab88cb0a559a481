"""What every retriever takes and gives: documents and questions in, a `runs` frame out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pandas as pd

from ragkit import checks, schema
from ragkit.errors import DataError, UsageError

Found = Sequence[tuple[str, float]]  # documents and scores, best first


class Retriever(ABC):
    """A retriever: `fit(documents)`, then `search(questions, k)`.

    Attributes
    ----------
    system : str
        The name in the `system` column.
    fields : tuple of str
        The columns that make a document's text, joined by an empty line; one that is None or NaN
        is left out. The default is the rule of EnterpriseRAG-Bench: title, empty line, text.
    """

    system: str
    fields: tuple[str, ...]
    _fitted = "doc_ids_"  # the attribute that `fit` sets

    def __repr__(self) -> str:
        state = "fitted" if hasattr(self, self._fitted) else "not fitted"
        return f"<{type(self).__name__} {self.system!r}, {state}>"

    @abstractmethod
    def fit(self, documents: pd.DataFrame | Iterable[pd.DataFrame | Mapping]) -> Retriever:
        """Index documents; return the retriever.

        Parameters
        ----------
        documents : DataFrame, or iterable of DataFrames or of mappings
            With `doc_id` and the columns of `fields`. `DataError` if there is no document, a column
            is missing, an id is repeated, empty or not a string, or a field is not a string.
        """

    @abstractmethod
    def _search(self, ids: list[str], texts: list[str], k: int) -> Iterable[Found]:
        """Return the first k documents and their scores for each question."""

    def search(self, questions: pd.DataFrame | Iterable[str], k: int = 10) -> pd.DataFrame:
        """Return the best documents for each question.

        Parameters
        ----------
        questions : DataFrame with question_id and text, or iterable of str
            Strings get their position, from "0", as question_id. `DataError` if a question is not a
            string, or a question_id is repeated, empty or not a string.
        k : int, at least 1
            The largest number of documents for a question. A question for which nothing is found
            has no row.

        Returns
        -------
        DataFrame
            `runs`: system, question_id, rank (from 1), doc_id, score (higher is better).
        """
        self._check_fitted()
        k = checks.whole(k, "k")
        ids, texts = query_texts(questions)
        return runs_frame(self.system, ids, list(self._search(ids, texts, k)))

    def _check_fitted(self) -> None:
        if not hasattr(self, self._fitted):
            raise UsageError(f"{type(self).__name__} has no index yet", "call fit(documents) first")


class Nothing(Retriever):
    """Find nothing: for a reader that answers from memory.

    >>> Nothing().fit([]).search(["Where?"]).empty
    True
    """

    _fitted, system = "system", "closed-book"

    def fit(self, documents) -> Nothing:
        return self

    def _search(self, ids, texts, k):
        return [()] * len(texts)


class Leads:
    """A retriever that indexes the title and the first words of each text only."""

    def __init__(self, retriever, words: int):
        self.retriever, self.words, self.system = retriever, words, retriever.system

    def fit(self, documents: pd.DataFrame) -> Leads:
        leads = documents["text"].str.split(n=self.words).str[: self.words].str.join(" ")
        self.retriever.fit(documents.assign(text=leads))
        return self

    def search(self, questions, k: int = 10) -> pd.DataFrame:
        return self.retriever.search(questions, k)


def check_fields(fields) -> tuple[str, ...]:
    """Return the names of the columns that make a document's text."""
    names = () if isinstance(fields, str) or not isinstance(fields, Iterable) else tuple(fields)
    if not names or not all(isinstance(name, str) for name in names):
        raise UsageError(f"fields should be several column names, found {fields!r}", '["text"]')
    return names


def reusable(documents):
    """Return documents that can be read more than once: those of an iterator as a list."""
    return list(documents) if isinstance(documents, Iterator) else documents


def document_texts(
    documents: pd.DataFrame | Iterable[pd.DataFrame | Mapping], fields: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Yield the id and the text of each document; see `Retriever.fit`."""
    seen: set[str] = set()
    for number, (doc_id, *parts) in enumerate(_rows(documents, ("doc_id", *fields)), start=1):
        _new_id(doc_id, seen, f"document {number}", "doc_id")
        kept = [part for part in parts if isinstance(part, str)]
        if len(kept) < len(parts):
            for field, part in zip(fields, parts, strict=True):
                if not (isinstance(part, str) or part is None or part != part):
                    where = f"document {number} ({doc_id})"
                    raise DataError(f"{where}: {field} should be a string, found {part!r}")
        yield doc_id, "\n\n".join(kept)
    if not seen:
        raise DataError("there are no documents to index", "give at least one")


def query_texts(questions: pd.DataFrame | Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the ids and the texts of questions; see `Retriever.search`."""
    if isinstance(questions, str):
        raise DataError("expected several questions, found one string", "put it into a list")
    if hasattr(questions, "columns"):
        _need(("question_id", "text"), questions.columns, "the questions lack the column")
        ids, texts = questions["question_id"].tolist(), questions["text"].tolist()
        seen: set[str] = set()
        for number, name in enumerate(ids, start=1):
            _new_id(name, seen, f"question {number}", "question_id")
    else:
        texts = list(questions)
        ids = [str(number) for number in range(len(texts))]
    for number, (name, text) in enumerate(zip(ids, texts, strict=True), start=1):
        if not isinstance(text, str):
            raise DataError(f"question {number} ({name}) should be a string, found {text!r}")
    return ids, texts


def runs_frame(system: str, question_ids: Sequence[str], found: Sequence[Found]) -> pd.DataFrame:
    """Return a `runs` frame of what was found for each question."""
    rows = [
        (system, question_id, rank, *pair)
        for question_id, pairs in zip(question_ids, found, strict=True)
        for rank, pair in enumerate(pairs, start=1)
    ]
    runs = pd.DataFrame(rows, columns=list(schema.COLUMNS["runs"]), dtype=object)
    return runs.astype({"rank": "int64", "score": "float64"})


def ranked_lists(retriever, texts: Sequence[str], k: int) -> list[Found]:
    """Return what a retriever of any kind finds for each text."""
    lists: dict[str, list] = {str(number): [] for number in range(len(texts))}
    asked = pd.DataFrame({"question_id": list(lists), "text": list(texts)}, dtype=object)
    runs = retriever.search(asked, k).sort_values("rank", kind="stable")
    for name, doc_id, score in zip(runs["question_id"], runs["doc_id"], runs["score"], strict=True):
        lists[name].append((doc_id, score))
    return list(lists.values())


def _new_id(found, seen: set[str], where: str, name: str) -> None:
    if not isinstance(found, str) or not found.strip():
        raise DataError(f"{where} should have a string as {name}, found {found!r}")
    if found in seen:
        raise DataError(f"{where} repeats the {name} {found!r}")
    seen.add(found)


def _rows(documents, columns):
    """Yield the columns of each document."""
    if isinstance(documents, str | Mapping):
        raise DataError(f"expected documents, found one {type(documents).__name__}")
    for number, part in enumerate([documents] if hasattr(documents, "columns") else documents, 1):
        if hasattr(part, "columns"):
            _need(columns, part.columns, "the documents lack the column")
            yield from zip(*(part[column].array for column in columns), strict=True)
        elif isinstance(part, Mapping):
            _need(columns, part, f"document {number} lacks")
            yield tuple(part[column] for column in columns)
        else:
            kind = type(part).__name__
            raise DataError(f"document {number} should be a mapping or a frame, found {kind}")


def _need(columns, found, complaint: str) -> None:
    for column in columns:
        if column not in found:
            raise DataError(f"{complaint} {column!r}", f"found {', '.join(map(str, found))}")
