"""The finished company in EnterpriseRAG-Bench's own layout, and in ragkit's columns beside it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import median

from ragkit.files import write_text
from ragkit.synth.company.documents import Noise, Writer
from ragkit.synth.company.plan import FORMS, Plan
from ragkit.synth.stages import Rejected


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


def write(out: Path, plan: Plan, writer: Writer, noise: Noise, left: list[Rejected]) -> dict:
    """Write all files; return the statistics."""
    rows = documents(plan, writer, noise)
    ordered = sorted(rows.values(), key=lambda row: row["path"])
    jsonl(out / "enterpriserag_bench" / "documents.jsonl", ordered)
    own = {"doc_id": "doc_id", "source": "source_type", "title": "title", "text": "content"}
    jsonl(
        out / "documents.jsonl",
        [{name: row[old] for name, old in {**own, "path": "path"}.items()} for row in ordered],
    )
    entries = {**noise.entries, **noise.copies}
    notes = [
        {"doc_id": rows[key]["doc_id"], "moved": noise.moves.get(key, ("",))[0]}
        | {name: entries[key].get(name, "") for name in ("key", "kind", "block", "original")}
        | {"changed": entries[key].get("changed", [])}
        for key in rows
    ]
    jsonl(out / "notes.jsonl", notes)
    jsonl(out / "left_out.jsonl", [one.row() for one in left])
    found = statistics(plan, rows, noise) | {"left_out": len(left)}
    write_text(out / "statistics.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    return found


def statistics(plan: Plan, rows: Mapping[str, dict], noise: Noise) -> dict:
    """Return counts and lengths."""
    sources = {}
    for source in FORMS:
        sizes = [
            len(f"{row['title']}\n\n{row['content']}")
            for row in rows.values()
            if row["source_type"] == source
        ]
        middle = median(sizes) if sizes else None
        sources[source] = {"documents": len(sizes), "median_characters": middle}
    kinds = Counter(entry["kind"] for entry in {**noise.entries, **noise.copies}.values())
    return {
        "company": plan.company["name"],
        "settings": asdict(plan.settings),
        "documents": len(rows),
        "kinds": dict(kinds),
        "sources": sources,
        "questions": {},
        "moved": dict(Counter(kind for kind, _ in noise.moves.values())),
    }


def jsonl(path: Path, rows: Iterable[Mapping]) -> None:
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
