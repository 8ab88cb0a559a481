"""The finished company in EnterpriseRAG-Bench's own layout, and in ragkit's columns beside it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice, zip_longest
from pathlib import Path
from statistics import median

from ragkit.synth.company.documents import Noise, Writer
from ragkit.synth.company.plan import FORMS, Plan
from ragkit.synth.company.questions import Draft
from ragkit.synth.layout import tables
from ragkit.synth.stages import Rejected
from ragkit.synth.stamp import finish
from ragkit.synth.streams import Stream


@dataclass(frozen=True)
class Made:
    """What the stages made: plan, noise, documents by key, questions, retrievers, what was lost."""

    plan: Plan
    noise: Noise
    rows: Mapping[str, dict]
    drafts: Sequence[Draft]
    systems: Sequence[str]
    lost: Sequence[Rejected]


def doc_id(company: str, key: str) -> str:
    """Return the id of a document, which does not change when it is moved or edited."""
    return f"dsid_{hashlib.blake2b(f'{company}/{key}'.encode(), digest_size=16).hexdigest()}"


def documents(plan: Plan, writer: Writer, noise: Noise) -> dict[str, dict]:
    """Return the documents as rows of the benchmark by key, where noise has put them."""
    texts = writer.texts | {key: one["content"].strip() for key, one in noise.copies.items()}
    rows = {}
    for key, entry in {**noise.entries, **noise.copies}.items():
        _, path = noise.moves.get(key, ("", entry["path"]))
        head = {"path": path, "doc_id": doc_id(plan.company["name"], key)}
        head |= {"source_type": entry["source"], "title": entry["title"]}
        rows[key] = head | entry["metadata"] | {"content": texts[key]}
    return rows


def write(out: Path, made: Made) -> dict:
    """Write all files; return the statistics."""
    rows, settings = made.rows, made.plan.settings
    asked = [_question(number, d, rows) for number, d in enumerate(made.drafts, 1)]
    extra = metadata_questions(rows, settings.metadata_questions, settings.seed)
    noted = (
        {"question_id": row["question_id"], "item": draft.name, "read": draft.read} | draft.notes
        for row, draft in zip(asked, made.drafts, strict=True)
    )
    files = tables(asked, extra, list(rows.values())) | {
        "document_notes": _document_notes(made),
        "question_notes": noted,
        "left_out": (one.row() for one in made.lost),
    }
    return finish(out, files, statistics(made) | {"metadata_questions": len(extra)})


def _question(number: int, draft: Draft, rows: Mapping[str, dict]) -> dict:
    gold = [rows[key] for key in draft.data["gold"]]
    return {
        "question_id": f"qst_{number:04d}",
        "question_type": draft.kind,
        "source_types": sorted({row["source_type"] for row in gold}),
        "question": draft.data["question"],
        "expected_doc_ids": [row["doc_id"] for row in gold],
        "gold_answer": draft.data["answer"],
        "answer_facts": draft.data["facts"],
    }


def metadata_questions(rows: Mapping[str, dict], count: int, seed: int) -> list[dict]:
    """Return questions that metadata alone answer, as many as there can be up to `count`.

    The sources come in turn. What is asked for does not stand in title or text, and the title or the
    name that the question gives belongs to one document only.
    """
    rounds = zip_longest(*(_of_source(rows, source, seed) for source in FORMS))
    found = islice((row for one in rounds for row in one if row), count)
    return [{"question_id": f"ext_{number:04d}"} | row for number, row in enumerate(found, 1)]


def _of_source(rows: Mapping[str, dict], source: str, seed: int) -> Iterator[dict]:
    form, stream = FORMS[source], Stream(seed, "metadata", source)
    own = [row for row in rows.values() if row["source_type"] == source]
    names = form.get("names", ())
    titles = Counter(row["title"] for row in rows.values())
    keys = Counter(str(row[name]) for row in own for name in names)
    for row in stream.sample(own, len(own)):
        key = str(next((row[name] for name in names), ""))
        barred = ["{t}"] * (titles[row["title"]] > 1) + ["{k}"] * (not key or keys[key] > 1)
        asks = {
            name: ask
            for name, ask in form["ask"].items()
            if _alone(row, name) and not any(slot in ask for slot in barred)
        }
        if asks:
            name = stream.pick(list(asks))
            text = asks[name].replace("{t}", row["title"]).replace("{k}", key)
            text = text.replace("{d}", str(row.get("date", "")))
            value = str(row[name])
            yield {
                "question_type": "metadata",
                "source_types": [source],
                "question": text,
                "expected_doc_ids": [row["doc_id"]],
                "gold_answer": f"{value}.",
                "answer_facts": [f"{name.replace('_', ' ').capitalize()}: {value}."],
            }


def _alone(row: Mapping, name: str) -> bool:
    """Return whether a value is there, and nowhere in title and text."""
    value = str(row[name])
    return bool(value) and value not in row["title"] and value not in row["content"]


def _document_notes(made: Made) -> Iterable[dict]:
    """Yield where each document comes from: key, kind, block, what it repeats, how it was moved."""
    entries = {**made.noise.entries, **made.noise.copies}
    for key, row in made.rows.items():
        moved = made.noise.moves.get(key, ("", ""))[0]
        own = {name: entries[key].get(name, "") for name in ("key", "kind", "block", "original")}
        changed = {"changed": entries[key].get("changed", [])}
        yield {"doc_id": row["doc_id"]} | own | {"moved": moved} | changed


def statistics(made: Made) -> dict:
    """Return counts and lengths."""
    sources = {}
    for source in FORMS:
        own = [row for row in made.rows.values() if row["source_type"] == source]
        sizes = [len(f"{row['title']}\n\n{row['content']}") for row in own]
        middle = median(sizes) if sizes else None
        sources[source] = {"documents": len(sizes), "median_characters": middle}
    noise = made.noise
    kinds = Counter(entry["kind"] for entry in {**noise.entries, **noise.copies}.values())
    asked = Counter(draft.kind for draft in made.drafts)
    return {
        "company": made.plan.company["name"],
        "settings": asdict(made.plan.settings),
        "documents": len(made.rows),
        "kinds": dict(kinds),
        "sources": sources,
        "moved": dict(Counter(kind for kind, _ in noise.moves.values())),
        "questions": {kind: asked[kind] for kind in made.plan.settings.wanted},
        "wanted": made.plan.settings.wanted,
        "retrievers": list(made.systems),
        "left_out": len(made.lost),
    }
