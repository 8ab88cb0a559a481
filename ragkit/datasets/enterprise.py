"""EnterpriseRAG-Bench: company documents, 500 questions, and runs of others under its judges."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pandas as pd

from ragkit.datasets.base import Dataset, Source, check_rows, make
from ragkit.errors import DataError
from ragkit.files import read_jsonl, read_table

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
SOURCES = (
    "slack",
    "gmail",
    "linear",
    "google_drive",
    "hubspot",
    "fireflies",
    "github",
    "jira",
    "confluence",
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
        return make(name, source, {"scores": _judged(source)})
    if source.sample:
        questions = read_jsonl(source.sample_path(QUESTIONS), FIELDS)
        extra = read_jsonl(source.sample_path(EXTRA), FIELDS)
        documents = _documents_jsonl(source.sample_path("enterpriserag_bench/documents.jsonl"))
    else:
        found = source.need(QUESTIONS)
        questions = check_rows(read_jsonl(found.path, FIELDS), found)
        found = source.find(EXTRA)
        extra = check_rows(read_jsonl(found.path, FIELDS), found) if found else []
        documents = _corpus(source)
    frames = {"questions": _questions(questions, QUESTIONS)}
    if extra:
        frames["extra_questions"] = _questions(extra, EXTRA)
    if documents is not None:
        frames["documents"] = documents
    return make(name, source, frames)


def parse_document(name: str, text: str) -> dict:
    """Return a released text file as a row of `documents`.

    Parameters
    ----------
    name : str
        Path inside the archive: `SOURCE/.../DOCID__STEM.txt`.
    text : str
        The title, an empty line, the content.
    """
    parts = [part for part in Path(name).parts if part not in (".", "/")]
    doc_id, separator, _ = parts[-1].partition("__")
    sources = [part for part in parts if part in SOURCES]
    if not separator or not sources:
        raise DataError(
            f"{name}: expected SOURCE/.../DOCID__NAME.txt with a source of {', '.join(SOURCES)}"
        )
    title, _, content = text.partition("\n")
    return {
        "doc_id": doc_id,
        "source": sources[0],
        "title": title.strip(),
        "text": content.strip() or title.strip(),
        "path": name,
    }


def read_archive(path: Path) -> list[dict]:
    """Return the documents of a released zip file, in the archive's order.

    Raises
    ------
    DataError
        If it is no readable zip file, or an entry has no document's name or is not UTF-8.
    """
    rows = []
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if info.is_dir() or not info.filename.endswith(".txt"):
                    continue
                try:
                    text = archive.read(info).decode("utf-8")
                except UnicodeDecodeError as error:
                    raise DataError(
                        f"{path}: {info.filename} is not UTF-8 at byte {error.start}"
                    ) from None
                rows.append(parse_document(info.filename, text))
    except zipfile.BadZipFile as error:
        raise DataError(f"{path}: not a complete zip file ({error})") from None
    return rows


def _corpus(source: Source) -> pd.DataFrame | None:
    found = source.find(CORPUS)
    if found:
        return pd.DataFrame(check_rows(read_archive(found.path), found))
    slices = sorted(
        path
        for folder in source.place.folders
        for path in (folder / "enterpriserag_bench").glob("*_slice_*.zip")
    )
    rows = [row for path in slices for row in read_archive(path)]
    source.used.append(
        {
            "file": CORPUS,
            "origin": "slices of the release" if rows else "",
            "extent": f"{len(rows):,} of 511,962 documents" if rows else "missing",
            "licence": "MIT",
        }
    )
    return pd.DataFrame(rows) if rows else None


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


def _questions(rows: list[dict], where: str) -> pd.DataFrame:
    for number, row in enumerate(rows, start=1):
        for column in ("source_types", "expected_doc_ids", "answer_facts"):
            if not isinstance(row[column], list):
                raise DataError(f"{where}: row {number}: {column} is not a list")
    return pd.DataFrame(
        {
            "question_id": [row["question_id"] for row in rows],
            "text": [row["question"] for row in rows],
            "type": [row["question_type"] for row in rows],
            "answer": [row["gold_answer"] for row in rows],
            "facts": [tuple(row["answer_facts"]) for row in rows],
            "gold_doc_ids": [tuple(row["expected_doc_ids"]) for row in rows],
            "source_types": [tuple(row["source_types"]) for row in rows],
        }
    )


def _judged(source: Source) -> pd.DataFrame:
    found = source.need(JUDGED)
    columns = (
        "repo",
        "file",
        "question_id",
        "question_type",
        "answer_correct",
        "completeness_pct",
        "invalid_extra_docs",
    )
    frame = pd.DataFrame(check_rows(read_table(found.path, columns), found))
    # One repository's folder results6.2-model was judged by the model that wrote the answers.
    own_judge = frame["file"].str.startswith("results6.2-model/")
    return pd.DataFrame(
        {
            "subject_id": frame["repo"] + "/" + frame["file"],
            "item_id": frame["question_id"],
            "score": frame["answer_correct"].astype(float),
            "completeness": pd.to_numeric(frame["completeness_pct"]) / 100,
            "invalid_extra_documents": pd.to_numeric(frame["invalid_extra_docs"]),
            "author": frame["repo"],
            "question_type": frame["question_type"],
            "judge_group": frame["repo"].where(~own_judge, frame["repo"] + ":Mistral-7B"),
        }
    )
