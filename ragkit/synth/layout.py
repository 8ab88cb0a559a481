"""EnterpriseRAG-Bench's sources, question types, files and printed shares."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from operator import itemgetter

from ragkit.datasets import reported
from ragkit.schema import SOURCES as SOURCES

TYPES = (
    "basic semantic intra_document_reasoning project_related constrained conflicting_info "
    "completeness miscellaneous high_level info_not_found"
).split()
PAPER = "enterpriserag_bench"
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


def shares(total: int, weights: Mapping[str, float]) -> dict[str, int]:
    """Return whole numbers in proportion to weights that add up to `total` (largest remainder)."""
    whole = sum(weights.values())
    exact = {name: total * weight / whole for name, weight in weights.items()}
    counts = {name: int(x) for name, x in exact.items()}
    order = sorted(weights, key=lambda name: counts[name] - exact[name])  # ties in their order
    for name in order[: total - sum(counts.values())]:
        counts[name] += 1
    return counts


def slug(text: str, limit: int = 48) -> str:
    """Return `text` as lower-case words joined by hyphens, fit for a path."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:limit].strip("-")


@cache
def printed(table: str, metric: str, row: str = "", paper: str = PAPER) -> dict[str, float]:
    """Return what a table prints of a metric, by row; or what it prints in one row, by column."""
    rows = reported.load(paper, table)
    rows = rows[(rows["metric"] == metric) & rows["value"].notna()]
    rows = rows[rows["row"] == row] if row else rows
    return rows.set_index("column" if row else "row")["value"].to_dict()
