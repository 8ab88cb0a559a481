"""EnterpriseRAG-Bench: company documents, 500 questions, and runs of others under its judges."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from ragkit import schema
from ragkit.datasets import readers
from ragkit.datasets.registry import Declaration, Found
from ragkit.errors import DataError
from ragkit.files import json_lines, named, read_archive, require, table_lines, zip_texts


def enterprise(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read a file of the benchmark.

    `questions` and `extra_questions` have `source_types`; `documents` have `path`, and in the
    sample their other fields as `metadata`.
    """
    kind = found.read["frame"]
    if kind != "documents":
        return {kind: schema.check(readers.frame(found), "questions", str(found.path))}
    if found.state == "sample":
        names = {"doc_id": "doc_id", "source": "source_type", "title": "title"}
        names |= {"text": "content", "path": "path"}
        rows = found.read_rows(tuple(names.values()))
        table = pd.DataFrame(
            {ours: [row.pop(name) for row in rows] for ours, name in names.items()}
        )
        return {kind: table.assign(metadata=rows)}
    table = pd.DataFrame([row for _, row in read_archive(*(found.slices or [found.path]))])
    if (again := table["path"].duplicated()).any():
        raise DataError(f"{found.path}: {table['path'][again].iloc[0]} is there twice")
    found.rows = len(table)
    return {kind: table}


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
                with named(place):
                    row = schema.complete({**row, "system": system}, "answers")
                rows.append([row[column] for column in schema.COLUMNS["answers"]])
    found.rows = len(rows)
    return {"answers": pd.DataFrame(rows, columns=schema.COLUMNS["answers"])}


def erb_ranks(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read where others' retrievers over the whole corpus rank the first gold document.

    An archive of CSV files, one a retriever; those without ranks of all questions are left out.
    `scores` are 1 where a gold document is among the first ten, with `first_gold_rank`, which is
    missing beyond the retriever's depth.
    """
    tables = {}
    for name, text in sorted(zip_texts(found.path, ".csv")):
        with named(f"{found.path}: {name}"):
            rows = [row for _, row in table_lines(text)]
            ranks = [column for column in (rows or [{}])[0] if re.fullmatch(r"rank@\d+", column)]
            if ranks:
                rank = max(ranks, key=lambda column: int(column[5:]))
                require(rows[0], ("question_id",), "line 1")
                table = pd.DataFrame({"item_id": [row["question_id"] for row in rows]})
                table["first_gold_rank"] = [schema.number(row[rank], rank) for row in rows]
                table.insert(1, "score", (table["first_gold_rank"] <= 10).astype(float))
                tables[Path(name).stem] = table
    if not tables:
        raise DataError(f"{found.path}: no table with a column rank@K")
    every = max(map(len, tables.values()))
    whole = {name: table for name, table in tables.items() if len(table) == every}
    scores = pd.concat(whole, names=["subject_id"]).reset_index(level=0).reset_index(drop=True)
    found.rows = len(scores)
    return {"scores": scores}
