from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragkit.synth import generate
from tests.synth.company_mock import PAGE

SIZE = {"documents": 900, "seed": 11, "questions": 100}


class Made:
    """A generated benchmark, read from its bytes."""

    def __init__(self, out: Path):
        self.out = out
        bench = out / "enterpriserag_bench"
        self.documents = rows(bench / "documents.jsonl")
        self.by_id = {d["doc_id"]: d for d in self.documents}
        self.questions = rows(bench / "questions.jsonl")
        self.extra = rows(bench / "extra_questions.jsonl")
        self.facts = rows(out / "facts.jsonl")
        self.stating = {fact["fact_id"]: fact["sources"] for fact in self.facts}
        self.notes = {row["question_id"]: row for row in self.records("notes")}

    def records(self, name: str) -> list[dict]:
        return rows(self.out / "records" / f"{name}.jsonl")

    def of_type(self, kind: str) -> list[dict]:
        return [q for q in self.questions if q["question_type"] == kind]


def rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> Made:
    out = tmp_path_factory.mktemp("synth") / "company"
    generate(out, **SIZE)
    return Made(out)


@pytest.fixture
def page(tmp_path):
    """Return the file of a page about a company."""
    path = tmp_path / "page.md"
    path.write_text(PAGE, "utf-8")
    return path
