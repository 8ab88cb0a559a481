"""EnterpriseRAG-Bench: company documents, 500 questions, and runs of others under its judges."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import replace
from pathlib import Path

import pandas as pd

from ragkit import schema
from ragkit.datasets import readers, registry
from ragkit.datasets.base import Source
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


def enterprise(source: Source, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read the benchmark.

    `questions` and `extra_questions` have `source_types`; `documents` have `path`, and in the
    sample their other fields as `metadata`.
    """
    frames = {}
    for found in source.each(dataset):
        kind = found.read["frame"]
        if kind != "documents":
            frames[kind] = schema.check(readers.frame(found), "questions", str(found.path))
        elif source.sample:
            frames[kind] = _sample_documents(found.path)
        else:
            frames[kind] = pd.DataFrame([row for _, row in read_archive(found.path)])
        found.rows = len(frames[kind])
    if "documents" not in frames and not source.sample:
        frames |= _slices(source)
    return {
        kind: frames[kind]
        for kind in ("questions", "extra_questions", "documents")
        if kind in frames
    }


def _slices(source: Source) -> dict[str, pd.DataFrame]:
    """Return the documents of the slices at hand; one in several folders counts once."""
    place = next(n for n, found in enumerate(source.used) if found.read["frame"] == "documents")
    missing = source.used[place]
    pattern = missing.read["slices"]
    slices = {
        path.name: path
        for folder in reversed(source.place.folders)
        for path in folder.glob(pattern)
    }
    rows = []
    for name in sorted(slices):
        part = [row for _, row in read_archive(slices[name])]
        schema.check(pd.DataFrame(part), "documents", str(slices[name]))
        rows += part
    if not rows:
        return {}
    part = missing.wanted
    if len(rows) != part.rows:
        part = replace(part, rows=len(rows), note="", origin="slices of the release")
    source.used[place] = Found(missing.wanted, part, Path("slices"), "slices", len(rows))
    return {"documents": pd.DataFrame(rows)}


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


def erb_judged(source: Source, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read the judged runs of others.

    `scores` are correctness (0 or 1) of a run on a question, beside completeness (0 to 1),
    invalid_extra_documents, the author of the run, its question_type and the group of runs that
    one judge scored.
    """
    for found in source.each(dataset):
        scores = readers.frame(found)
        scores["completeness"] /= 100
        # The folder results6.2-model of one repository was judged by the model that wrote it.
        own = scores["subject_id"].str.contains("/results6.2-model/", regex=False)
        scores["judge_group"] = scores["author"].where(~own, scores["author"] + ":Mistral-7B")
        return {"scores": scores}
    return {}


def erb_answers(source: Source, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read the `answers` of 28 runs of others: an archive of JSON lines, one file a run."""
    for found in source.each(dataset):
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
    return {}
