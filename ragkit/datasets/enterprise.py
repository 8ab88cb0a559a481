"""EnterpriseRAG-Bench: company documents, 500 questions, and runs of others under its judges."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ragkit import schema
from ragkit.datasets.base import Dataset, Source, check_rows, make
from ragkit.datasets.registry import Found, entry
from ragkit.files import read_archive, read_jsonl, read_table
from ragkit.schema import strings

CORPUS = "enterpriserag_bench/all_documents.zip"
QUESTIONS = "enterpriserag_bench/questions.jsonl"
EXTRA = "enterpriserag_bench/extra_questions.jsonl"
JUDGED = "enterpriserag_bench/per_question_judge_scores.csv.gz"
FILES = {"enterpriserag_bench": (QUESTIONS, CORPUS, EXTRA), "erb_judged": (JUDGED,)}
OPTIONAL = (CORPUS, EXTRA)
SAMPLE = ("enterpriserag_bench",)

FIELDS = (
    "question_id",
    "question_type",
    "source_types",
    "question",
    "expected_doc_ids",
    "gold_answer",
    "answer_facts",
)


def read(name: str, source: Source) -> Dataset:
    """Read the benchmark, or the judged runs.

    `enterpriserag_bench` has `questions` (with `source_types`), `extra_questions` where they are
    at hand, and `documents` (with `path`, and in the sample their other
    fields as `metadata`). `erb_judged` has `scores`: correctness (0 or 1) as the
    score of a run on a question, beside completeness (0 to 1), invalid_extra_documents, the
    author of the run, its question_type and the group of runs that one judge scored.
    """
    if name == "erb_judged":
        found = source.need(JUDGED)
        return make(name, source, {"scores": _judged(found)}, where={"scores": found.path})
    frames, where = {}, {}
    if source.sample:
        where["questions"] = source.sample_path(QUESTIONS)
        where["extra_questions"] = source.sample_path(EXTRA)
        where["documents"] = source.sample_path("enterpriserag_bench/documents.jsonl")
        frames["questions"] = read_questions(where["questions"])
        frames["extra_questions"] = read_questions(where["extra_questions"])
        frames["documents"] = _documents_jsonl(where["documents"])
        return make(name, source, frames, where=where)
    for kind, found in (
        ("questions", source.need(QUESTIONS)),
        ("extra_questions", source.find(EXTRA)),
    ):
        if found:
            where[kind] = found.path
            frames[kind] = check_rows(read_questions(found.path), found)
    found = source.find(CORPUS)
    rows = check_rows(_archive(found.path), found) if found else _slices(source)
    if rows:
        frames["documents"] = pd.DataFrame(rows)
        where["documents"] = found.path if found else "slices"
    return make(name, source, frames, where=where)


def _archive(path: Path) -> list[dict]:
    return [row for _, row in read_archive(path)]


def _slices(source: Source) -> list[dict]:
    """Return the documents of the slices at hand; one in several folders counts once."""
    slices = {
        path.name: path
        for folder in reversed(source.place.folders)
        for path in (folder / "enterpriserag_bench").glob("[!.]*_slice_*.zip")
    }
    rows = []
    for name in sorted(slices):
        part = _archive(slices[name])
        schema.check(pd.DataFrame(part), "documents", str(slices[name]))
        rows += part
    total = entry(CORPUS).rows
    extent = "missing"
    if rows:
        extent = "complete" if len(rows) == total else f"{len(rows):,} of {total:,} documents"
    source.used.append(
        {
            "file": CORPUS,
            "origin": "slices of the release" if rows else "",
            "extent": extent,
            "licence": "MIT",
        }
    )
    return rows


def _documents_jsonl(path: Path) -> pd.DataFrame:
    columns = ("doc_id", "source_type", "path", "title", "content")
    rows = read_jsonl(path, columns)
    return pd.DataFrame(
        {
            "doc_id": [row["doc_id"] for row in rows],
            "source": [row["source_type"] for row in rows],
            "title": [row["title"] for row in rows],
            "text": [row["content"] for row in rows],
            "path": [row["path"] for row in rows],
            "metadata": [{k: v for k, v in row.items() if k not in columns} for row in rows],
        }
    )


def read_questions(path: Path) -> pd.DataFrame:
    """Return the questions of a file in the benchmark's released form, official or generated.

    Raises
    ------
    DataError
        With file and row, if a field is missing or is not what it should be.
    """
    rows = read_jsonl(path, FIELDS)
    for number, row in enumerate(rows, start=1):
        for column in ("source_types", "expected_doc_ids", "answer_facts"):
            row[column] = strings(row[column], f"{path}: row {number}: {column}")
    frame = pd.DataFrame(
        {
            "question_id": [row["question_id"] for row in rows],
            "text": [row["question"] for row in rows],
            "type": [row["question_type"] for row in rows],
            "answer": [row["gold_answer"] for row in rows],
            "facts": [row["answer_facts"] for row in rows],
            "gold_doc_ids": [row["expected_doc_ids"] for row in rows],
            "source_types": [row["source_types"] for row in rows],
        }
    )
    return schema.check(frame, "questions", str(path))


def _judged(found: Found) -> pd.DataFrame:
    numbers = ("answer_correct", "completeness_pct", "invalid_extra_docs")
    columns = ("repo", "file", "question_id", "question_type", *numbers)
    frame = pd.DataFrame(check_rows(read_table(found.path, columns, numbers=numbers), found))
    # One repository's folder results6.2-model was judged by the model that wrote the answers.
    own_judge = frame["file"].str.startswith("results6.2-model/")
    return pd.DataFrame(
        {
            "subject_id": frame["repo"] + "/" + frame["file"],
            "item_id": frame["question_id"],
            "score": frame["answer_correct"],
            "completeness": frame["completeness_pct"] / 100,
            "invalid_extra_documents": frame["invalid_extra_docs"],
            "author": frame["repo"],
            "question_type": frame["question_type"],
            "judge_group": frame["repo"].where(~own_judge, frame["repo"] + ":Mistral-7B"),
        }
    )
