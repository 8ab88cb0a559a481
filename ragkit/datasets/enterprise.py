"""EnterpriseRAG-Bench: company documents, 500 questions, and runs of others under its judges."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ragkit import schema
from ragkit.datasets import readers, registry
from ragkit.datasets.registry import Declaration, Found
from ragkit.files import json_lines, named, read_archive, read_jsonl, require, zip_texts

QUESTIONS = "enterpriserag_bench/questions.jsonl"
FIELDS = ("question_id", "question_type", "source_types", "question", "expected_doc_ids")
FIELDS += ("gold_answer", "answer_facts")


def enterprise(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read a file of the benchmark.

    `questions` and `extra_questions` have `source_types`; `documents` have `path`, and in the
    sample their other fields as `metadata`.
    """
    kind = found.read["frame"]
    if kind != "documents":
        table = schema.check(readers.frame(found), "questions", str(found.path))
    elif found.state == "sample":
        table = _sample_documents(found.path)
    else:
        paths = found.slices or (found.path,)
        tables = [pd.DataFrame([row for _, row in read_archive(path)]) for path in paths]
        for path, one in zip(paths, tables, strict=True):
            schema.check(one, "documents", str(path))
        table = pd.concat(tables, ignore_index=True)
    found.rows = len(table)
    return {kind: table}


def _sample_documents(path: Path) -> pd.DataFrame:
    columns = {"doc_id": "doc_id", "source": "source_type", "title": "title", "text": "content"}
    columns["path"] = "path"
    rows = read_jsonl(path, tuple(columns.values()))
    table = pd.DataFrame({ours: [row.pop(name) for row in rows] for ours, name in columns.items()})
    return table.assign(metadata=rows)


def read_questions(path: Path) -> pd.DataFrame:
    """Return the questions of a file in the benchmark's released form, official or generated.

    Raises
    ------
    DataError
        With file and row, if a field is missing or is not what it should be.
    """
    declared = registry.entry(QUESTIONS)
    found = Found(declared, declared, path, "own")
    return schema.check(readers.frame(found), "questions", str(path))


def erb_judged(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read the judged runs of others.

    `scores` are correctness (0 or 1) of a run on a question, beside completeness (0 to 1),
    invalid_extra_documents, the author of the run, its question_type and the group of runs that
    one judge scored.
    """
    scores = readers.frame(found)
    scores["completeness"] /= 100
    # The folder results6.2-model of one repository was judged by the model that wrote it.
    own = scores["subject_id"].str.contains("/results6.2-model/", regex=False)
    scores["judge_group"] = scores["author"].where(~own, scores["author"] + ":Mistral-7B")
    return {"scores": scores}


def erb_answers(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read the `answers` of 28 runs of others: an archive of JSON lines, one file a run."""
    rows = []
    for name, text in sorted(zip_texts(found.path, ".jsonl")):
        system = Path(name).with_suffix("").as_posix()
        with named(f"{found.path}: {name}"):
            for place, row in json_lines(text):
                require(row, ("question_id",), place)
                ids = schema.strings(row.get("document_ids") or [], f"{place}: document_ids")
                rows.append((system, row["question_id"], row.get("answer"), ids))
    found.rows = len(rows)
    return {"answers": pd.DataFrame(rows, columns=schema.COLUMNS["answers"])}
