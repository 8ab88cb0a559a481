"""The documents of a folder, and the facts that their author recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ragkit.errors import DataError
from ragkit.files import read_jsonl, read_text, require
from ragkit.synth import banks
from ragkit.synth.datamorgana.words import lines

COLUMNS = ("doc_id", "title", "text")
MAKE = "make a folder that carries its facts: `ragkit generate erb`"
AT = {"customer": "at", "office": "at", "vendor": "with"}  # otherwise "for"
PLACE = {"vendor": "with", "team": "in"}  # of a trouble, otherwise "at"
PEOPLE = {"customer": "at", "office": "at", "vendor": "at", "team": "behind"}


@dataclass(frozen=True)
class Fact:
    """Something that documents state, as their author recorded it.

    Parameters
    ----------
    fact_id : str
    subject : str
        What it is about, as a question names it.
    key : str
        What is said of the subject; facts with the same key can be compared.
    label : str
        The same as a noun phrase: "number of handsets".
    value, claim : str
        What has to stand in a document, and the fact as a sentence.
    documents : tuple of str
        Ids of those that state it.
    topic : str
    where, people : str
        "at Saltmere Foods", and the people there, for roundabout questions.
    ask, far : tuple of str
        Questions for it in the documents' words and in others.
    said : str
        The clause that a document has, if it explains the term.
    cause, fix : str
        Of a trouble: `value` is its cause, `label` the trouble itself.
    """

    fact_id: str
    subject: str
    key: str
    label: str
    value: str
    claim: str
    documents: tuple[str, ...]
    topic: str = ""
    where: str = ""
    people: str = ""
    ask: tuple[str, ...] = ()
    far: tuple[str, ...] = ()
    said: str = ""
    fix: str = ""


class Collection:
    """Documents by id, and what is known of them.

    Parameters
    ----------
    folder : Path
    documents : dict of str to dict
        `doc_id`, `title`, `text`.
    facts : list of Fact
    """

    def __init__(self, folder: Path, documents: dict[str, dict], facts: list[Fact]):
        self.folder, self.documents = folder, documents
        self.facts = [f for f in facts if self._stated(f)]

    def _stated(self, fact: Fact) -> bool:
        """Return whether all documents of a fact are here and have its value in them."""
        needed = (fact.value, fact.label) if fact.key == "case" else (fact.value,)
        texts = [self.lower.get(d, "") for d in fact.documents]
        return bool(texts) and all(part.lower() in text for text in texts for part in needed)

    def text(self, doc_id: str) -> str:
        document = self.documents[doc_id]
        return f"{document['title']}\n\n{document['text']}"

    @cached_property
    def lower(self) -> dict[str, str]:
        return {doc_id: self.text(doc_id).lower() for doc_id in self.documents}

    @cached_property
    def by_id(self) -> dict[str, Fact]:
        return {fact.fact_id: fact for fact in self.facts}

    @cached_property
    def by_document(self) -> dict[str, list[Fact]]:
        found: dict[str, list[Fact]] = defaultdict(list)
        for fact in self.facts:
            for doc_id in fact.documents:
                found[doc_id].append(fact)
        return found

    @cached_property
    def _index(self):
        import pandas as pd

        from ragkit.systems.retrieval.bm25 import BM25

        return BM25().fit(pd.DataFrame(list(self.documents.values())))

    def search(self, queries: Sequence[str], k: int) -> list[list[str]]:
        """Return for each query the ids of the k best documents by BM25."""
        found: list[list[str]] = [[] for _ in queries]
        if queries:
            runs = self._index.search(list(queries), k=k)
            for query, doc_id in zip(runs["question_id"], runs["doc_id"], strict=True):
                found[int(query)].append(doc_id)
        return found


def load(folder: str | Path) -> Collection:
    """Read documents.jsonl of a folder, and facts.jsonl and cases.jsonl where they are.

    Raises
    ------
    DataError
        If there are no documents, or a row lacks a column.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder", MAKE)
    rows = _rows(folder / "documents.jsonl", COLUMNS)
    if not rows:
        raise DataError(f"{folder}: no documents (documents.jsonl is missing or empty)", MAKE)
    documents = {row["doc_id"]: {name: row[name] for name in COLUMNS} for row in rows}
    facts = _rows(folder / "facts.jsonl", ("fact_id", "subject", "attribute", "statement"))
    values: dict[tuple, set] = defaultdict(set)
    for row in facts:
        values[_place(row)].add(row.get("value"))
    # What documents state differently has no one answer, and not every sentence can be asked for.
    found = [
        _fact(row)
        for row in facts
        if len(values[_place(row)]) == 1 and (row.get("value") or row.get("ask"))
    ]
    cases = _rows(folder / "cases.jsonl", ("doc_id", "subject", "problem", "cause", "fix"))
    found += [_case(row) for row in _once(cases)]
    return Collection(folder, documents, found)


def _rows(path: Path, columns: tuple[str, ...]) -> list[dict]:
    if not path.exists() or not read_text(path).strip():
        return []
    rows = read_jsonl(path, columns)
    for number, row in enumerate(rows, 1):
        require(row, columns, f"{path}: line {number}")
    return rows


def _place(row: dict) -> tuple:
    return row.get("key", row["fact_id"]), row.get("entity", row["subject"]), row.get("scope", "")


def _once(cases: Iterable[dict]) -> list[dict]:
    found: dict[tuple, dict] = {}
    for row in cases:
        key = (row["subject"], row["problem"])
        found.setdefault(key, {**row, "sources": []})["sources"].append(row["doc_id"])
    return list(found.values())


def _fact(row: dict) -> Fact:
    """Return a fact of a company, whose wordings are its attribute's, or of another author."""
    subject, statement = row["subject"], row["statement"]
    attribute = banks.attributes().get(row.get("key"))
    if attribute is None:
        subject = row.get("title", subject)
        return Fact(
            row["fact_id"],
            subject,
            row.get("key", row["fact_id"]).rpartition(".")[2],
            "" if row.get("ask") else row["attribute"],
            row.get("value") or statement,
            statement[:1].upper() + statement[1:].rstrip(".") + ".",
            tuple(row.get("sources", ())),
            row["subject"],
            f"of {subject}",
            ask=tuple(row.get("ask", ())),
            far=tuple(row.get("far", ())),
        )
    topic = _topics()[row["key"].split(".")[0]]
    kind = topic.kind if "{thing}" not in attribute.ask[0] else "thing"
    where = f"{AT.get(kind, 'for')} {subject}"
    join = PEOPLE.get(kind)
    people = f"[the people|the staff|the crew|those] {join} {subject}" if join else subject
    said = statement if statement.replace(row["value"], "{v}") in lines("terms") else ""
    return Fact(
        row["fact_id"],
        subject,
        row["key"],
        _term(attribute),
        row["value"],
        f"{where[:1].upper()}{where[1:]}, {statement}.",
        tuple(row["sources"]),
        topic.title,
        where,
        people,
        tuple(ask.replace("{thing}", subject).replace("{s}", subject) for ask in attribute.ask),
        attribute.far,
        said,
    )


def _case(row: dict) -> Fact:
    subject, problem = row["subject"], row["problem"]
    topic = _topics().get(row.get("topic", ""))
    where = f"{PLACE.get(topic.kind, 'at') if topic else 'in'} {subject}"
    far = tuple(filter(None, [dict(banks.fields(x) for x in lines("cases")).get(problem)]))
    return Fact(
        f"case/{subject}/{problem}",
        subject,
        "case",
        problem,
        row["cause"],
        f"{where[:1].upper()}{where[1:]}, {problem} because {row['cause']}.",
        tuple(row["sources"]),
        topic.title if topic else subject,
        where,
        far=far,
        fix=row["fix"],
    )


def _topics() -> dict[str, banks.Topic]:
    return banks.topics() | banks.topics("misc")


def _term(attribute: banks.Attribute) -> str:
    """Return the attribute as a noun phrase without article: "number of handsets in use"."""
    limits = banks.number_range(attribute.values)
    counted = attribute.name.endswith("s") and not attribute.name.startswith("share")
    if limits and (not limits[4] or counted):
        return f"number of {attribute.name}"
    return attribute.name
