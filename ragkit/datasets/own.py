"""A benchmark of your own: a folder with files in ragkit's columns.

=================  ====================================================================
file               columns
=================  ====================================================================
questions.jsonl    question_id, text; and, where known, type, answer, facts, gold_doc_ids
documents.jsonl    doc_id, text; and, where known, source, title
scores.csv         subject_id, item_id, score
=================  ====================================================================

Each file may be gzipped, and each may be absent. Further columns are kept.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ragkit.datasets.base import Dataset, Source, make, strings
from ragkit.errors import MissingData
from ragkit.files import read_jsonl, read_table

DEFAULTS = {
    "documents": {"source": "own", "title": ""},
    "questions": {"type": "unknown", "answer": None, "facts": (), "gold_doc_ids": ()},
}


def read(folder: Path) -> Dataset:
    """Read a folder of your own.

    Raises
    ------
    MissingData
        If the folder does not exist or holds none of the files.
    DataError
        With file, line and column, if a file is not what it should be.
    """
    if not folder.is_dir():
        raise MissingData(f"{folder}: no such folder")
    source = Source("own", folder)
    frames, where = {}, {}
    for kind, required in (
        ("documents", ("doc_id", "text")),
        ("questions", ("question_id", "text")),
    ):
        path = _file(folder, f"{kind}.jsonl")
        if path is None:
            continue
        rows = read_jsonl(path, required)
        for number, row in enumerate(rows, start=1):
            complete(row, required[0], DEFAULTS[kind], f"{path}: row {number}")
        frames[kind], where[kind] = pd.DataFrame(rows), path
        source.used.append(_row(path))
    path = _file(folder, "scores.csv")
    if path is not None:
        rows = read_table(path, ("subject_id", "item_id", "score"), numbers=("score",))
        frames["scores"], where["scores"] = pd.DataFrame(rows), path
        source.used.append(_row(path))
    if not frames:
        found = sorted(path.name for path in folder.iterdir())[:8]
        raise MissingData(
            f"{folder}: neither questions.jsonl, documents.jsonl nor scores.csv",
            f"found {', '.join(found)}" if found else "the folder is empty",
        )
    return make(folder.resolve().name, source, frames, where=where)


def _file(folder: Path, name: str) -> Path | None:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    return None


def complete(row: dict, key: str, defaults: dict, where: str) -> None:
    """Fill in what a row leaves open; ids may be whole numbers."""
    if isinstance(row[key], int) and not isinstance(row[key], bool):
        row[key] = str(row[key])
    for column, default in defaults.items():
        value = row.get(column)
        if value is None:
            row[column] = default
        elif isinstance(default, tuple):
            row[column] = strings(value, f"{where}: {column}")


def _row(path: Path) -> dict:
    return {"file": path.name, "origin": "own", "extent": "complete", "licence": ""}
