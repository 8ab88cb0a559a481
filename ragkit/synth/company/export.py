"""The finished company in EnterpriseRAG-Bench's own layout, and in ragkit's columns beside it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from ragkit.synth.company import metadata
from ragkit.synth.company.documents import Noise, Writer
from ragkit.synth.company.plan import FORMS, Plan
from ragkit.synth.company.questions import Draft
from ragkit.synth.layout import tables
from ragkit.synth.stages import Rejected
from ragkit.synth.stamp import finish


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
    extra = metadata.questions(rows, settings.metadata_questions, settings.seed)
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
