"""A generated company as DataMorgana sees it: documents, and the facts that they state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ragkit.errors import DataError
from ragkit.files import read_jsonl, read_text, require
from ragkit.synth import banks
from ragkit.synth.banks import Attribute, Topic

COLUMNS = ("doc_id", "title", "text")
FACT = ("fact_id", "entity", "scope", "key", "value", "statement", "subject", "sources")
AT = {"customer": "at", "office": "at", "team": "for", "vendor": "with", "thing": "for"}
MAKE = "make a folder that carries its facts with `ragkit generate erb`"


@dataclass(frozen=True)
class Known:
    """A fact that questions can be asked about.

    Parameters
    ----------
    key, entity, scope, value, statement : str
    subject : str
        The entity with its part.
    name : str
        What to call it in a question: the subject.
    attribute : Attribute
    topic : Topic
    documents : tuple of str
        Ids of documents that state it.
    brief : str
        The entity alone where that cannot be mistaken, for keywords that have no room for more.
    """

    key: str
    entity: str
    scope: str
    value: str
    statement: str
    subject: str
    name: str
    attribute: Attribute
    topic: Topic
    documents: tuple[str, ...]
    brief: str = ""

    @property
    def kind(self) -> str:
        return self.topic.kind if "{thing}" not in self.attribute.ask[0] else "thing"

    @property
    def at(self) -> str:
        return AT[self.kind]

    @property
    def people(self) -> str:
        """Return the subject as people, for roundabout phrases."""
        join = {"team": "behind", "thing": ""}.get(self.kind, "at")
        return f"[the people|the staff|the crew|those] {join} {self.name}" if join else self.name

    def state(self) -> str:
        """Return the fact as a sentence."""
        return f"{self.at.capitalize()} {self.subject}, {self.statement}."


@dataclass(frozen=True)
class Case:
    """A trouble that a document tells of, with its cause and what is done about it."""

    problem: str
    cause: str
    fix: str
    topic: Topic
    document: str
    about: Known


class Company:
    """The documents of a folder, and what is known of them.

    Parameters
    ----------
    folder : Path
    documents : dict of str to dict
        `doc_id`, `title`, `text`, by id.
    rows : list of dict
        Of facts.jsonl; empty for a model, which needs none.
    """

    def __init__(self, folder: Path, documents: dict[str, dict], rows: list[dict]):
        self.folder, self.documents, self.rows = folder, documents, rows

    def text(self, doc_id: str) -> str:
        return content(self.documents[doc_id])

    @cached_property
    def lower(self) -> dict[str, str]:
        return {doc_id: self.text(doc_id).lower() for doc_id in self.documents}

    @cached_property
    def facts(self) -> list[Known]:
        """Facts that are stated, and that no document states otherwise."""
        attributes = banks.attributes()
        topics = banks.topics() | banks.topics("misc")
        values: dict[tuple, set] = defaultdict(set)
        scopes: dict[tuple, set] = defaultdict(set)
        for row in self.rows:
            values[row["key"], row["entity"], row["scope"]].add(row["value"])
            scopes[row["key"], row["entity"]].add(row["scope"])
        found = []
        for row in self.rows:
            key = (row["key"], row["entity"])
            attribute = attributes.get(row["key"])
            if attribute is None or len(values[*key, row["scope"]]) > 1:
                continue
            sources = [s for s in row["sources"] if s in self.documents]
            # A document that was to state it and has another value makes it doubtful.
            if not sources or any(row["value"].lower() not in self.lower[s] for s in sources):
                continue
            found.append(
                Known(
                    row["key"],
                    row["entity"],
                    row["scope"],
                    row["value"],
                    row["statement"],
                    row["subject"],
                    row["subject"],
                    attribute,
                    topics[row["key"].split(".")[0]],
                    tuple(sources),
                    row["entity"] if len(scopes[key]) == 1 else row["subject"],
                )
            )
        return found

    @cached_property
    def by_document(self) -> dict[str, list[Known]]:
        found: dict[str, list[Known]] = defaultdict(list)
        for fact in self.facts:
            for doc_id in fact.documents:
                found[doc_id].append(fact)
        return found

    @cached_property
    def cases(self) -> dict[str, list[Case]]:
        """Troubles by document: those whose problem, cause and remedy it tells."""
        found: dict[str, list[Case]] = defaultdict(list)
        topics = list(banks.topics().values())
        for doc_id, facts in self.by_document.items():
            text = self.lower[doc_id]
            for topic in topics:
                for problem, cause, fix in topic.cases:
                    if problem.lower() in text and cause.lower() in text:
                        found[doc_id].append(Case(problem, cause, fix, topic, doc_id, facts[0]))
        return found


def content(document: dict) -> str:
    return f"{document['title']}\n\n{document['text']}"


def load(folder: str | Path, *, facts: bool = True) -> Company:
    """Read a folder with documents.jsonl and facts.jsonl.

    Parameters
    ----------
    facts : bool
        Whether facts are needed; a language model does without.

    Raises
    ------
    DataError
        If there are no documents, or no facts where they are needed.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder", MAKE)
    path = folder / "documents.jsonl"
    if not path.exists() or not read_text(path).strip():
        raise DataError(f"{folder}: no documents (documents.jsonl is missing or empty)", MAKE)
    documents = {}
    for number, row in enumerate(read_jsonl(path, COLUMNS), 1):
        require(row, COLUMNS, f"{path}: line {number}")
        documents[row["doc_id"]] = {name: row[name] for name in COLUMNS}
    rows = []
    if facts:
        path = folder / "facts.jsonl"
        if not path.exists() or not read_text(path).strip():
            raise DataError(
                f"{folder}: no facts (facts.jsonl is missing or empty), and without a language model "
                "only known facts can be asked about",
                f"{MAKE}, or let a model write: --author openai:MODEL",
            )
        rows = read_jsonl(path, FACT)
        for number, row in enumerate(rows, 1):
            require(row, FACT, f"{path}: line {number}")
    return Company(folder, documents, rows)


Progress = Callable[[str, int, int], None]
