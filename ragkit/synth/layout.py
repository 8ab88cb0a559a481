"""EnterpriseRAG-Bench's sources, question types, files and printed shares."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from operator import itemgetter

from ragkit.datasets import reported
from ragkit.schema import SOURCES as SOURCES

TYPES = (
    "basic semantic intra_document_reasoning project_related constrained conflicting_info "
    "completeness miscellaneous high_level info_not_found"
).split()
# Columns of the benchmark's questions; then ragkit's, with what they are called in the benchmark.
OFFICIAL = (
    "question_id question_type source_types question expected_doc_ids gold_answer answer_facts"
)
QUESTION = (
    "question_id text=question type=question_type answer=gold_answer facts=answer_facts "
    "gold_doc_ids=expected_doc_ids source_types"
)
DOCUMENT = "doc_id source=source_type title text=content path"


def tables(asked: list[dict], extra: list[dict], documents: list[dict]) -> dict[str, list[dict]]:
    """Return the files of a company by name: in the benchmark's layout, and in ragkit's columns."""
    ordered = sorted(documents, key=itemgetter("path"))
    found = {
        "enterpriserag_bench/questions": renamed(asked, OFFICIAL),
        "enterpriserag_bench/extra_questions": renamed(extra, OFFICIAL),
        "questions": renamed(asked, QUESTION),
    }
    whole = {"enterpriserag_bench/documents": ordered, "documents": renamed(ordered, DOCUMENT)}
    return found | (whole if documents else {})


def renamed(rows: list[dict], names: str) -> list[dict]:
    """Return columns of rows under other names, from the notation `new=old same`."""
    pairs = [(new, old or new) for new, _, old in (n.partition("=") for n in names.split())]
    return [{new: row[old] for new, old in pairs} for row in rows]


def shares(total: int, weights: Sequence[float]) -> list[int]:
    """Return whole numbers in proportion to weights that add up to `total` (largest remainder)."""
    whole = sum(weights)
    exact = [total * w / whole for w in weights]
    counts = [int(x) for x in exact]
    order = sorted(range(len(weights)), key=lambda i: (counts[i] - exact[i], i))
    for i in order[: total - sum(counts)]:
        counts[i] += 1
    return counts


def slug(text: str, limit: int = 48) -> str:
    """Return `text` as lower-case words joined by hyphens, fit for a path."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:limit].strip("-")


@cache
def printed() -> tuple[dict, dict, dict]:
    """Return the paper's counts: questions by type, documents by source, gold sources by type."""
    frame = reported.load()
    frame = frame[(frame["paper"] == "enterpriserag_bench") & frame["value"].notna()]

    def cells(table, metric):
        part = frame[(frame["table"] == table) & (frame["metric"] == metric)]
        return zip(part["row"], part["column"], part["value"], strict=True)

    gold: dict[str, dict[str, float]] = {}
    for kind, source, value in cells("10", "questions_with_source"):
        gold.setdefault(kind, {})[source] = value
    questions = {row: value for row, _, value in cells("2", "n_questions")}
    return questions, {row: value for row, _, value in cells("9", "n_documents")}, gold
