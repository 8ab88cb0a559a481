"""EnterpriseRAG-Bench: company documents, 500 questions, and runs of others under its judges."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import pandas as pd

from ragkit import schema
from ragkit.datasets import readers, registry
from ragkit.datasets.registry import Declaration, Found
from ragkit.errors import DataError
from ragkit.files import read_archive, read_json_lines, read_jsonl, require

QUESTIONS = "enterpriserag_bench/questions.jsonl"
FIELDS = (
    "question_id",
    "question_type",
    "source_types",
    "question",
    "expected_doc_ids",
    "gold_answer",
    "answer_facts",
)


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
        tables = []
        for path in found.slices or (found.path,):
            tables.append(pd.DataFrame([row for _, row in read_archive(path)]))
            schema.check(tables[-1], "documents", str(path))
        table = pd.concat(tables, ignore_index=True)
    found.rows = len(table)
    return {kind: table}


def _sample_documents(path: Path) -> pd.DataFrame:
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
    try:
        with zipfile.ZipFile(found.path) as archive:
            for name in sorted(archive.namelist()):
                where = f"{found.path}: {name}"
                for place, row in read_json_lines(archive.read(name), where):
                    require(row, ("question_id",), f"{where}: {place}")
                    ids = row.get("document_ids") or []
                    rows.append(
                        {
                            "system": Path(name).with_suffix("").as_posix(),
                            "question_id": row["question_id"],
                            "answer": row.get("answer"),
                            "doc_ids": schema.strings(ids, f"{where}: {place}: document_ids"),
                        }
                    )
    except (zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{found.path}: not a readable archive of answers ({error})") from None
    found.rows = len(rows)
    return {"answers": pd.DataFrame(rows)}
