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

from ragkit.datasets.base import Dataset, Source, make
from ragkit.errors import DataError, MissingData
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
    frames = {}
    for kind, required in (
        ("documents", ("doc_id", "text")),
        ("questions", ("question_id", "text")),
    ):
        path = _file(folder, f"{kind}.jsonl")
        if path is None:
            continue
        frame = pd.DataFrame(read_jsonl(path, required))
        frame[required[0]] = frame[required[0]].astype(str)
        for column, default in DEFAULTS[kind].items():
            if column not in frame:
                frame[column] = [default] * len(frame)
            elif isinstance(default, tuple):
                frame[column] = [_tuple(value, path, column) for value in frame[column]]
        frames[kind] = frame
        source.used.append(_row(path))
    path = _file(folder, "scores.csv")
    if path is not None:
        frame = pd.DataFrame(read_table(path, ("subject_id", "item_id", "score")))
        numbers = pd.to_numeric(frame["score"], errors="coerce")
        if numbers.isna().any():
            line = int(numbers.isna().to_numpy().argmax()) + 2
            raise DataError(
                f"{path}: line {line}: score {frame['score'].iloc[line - 2]!r} is no number"
            )
        frames["scores"] = frame.assign(score=numbers)
        source.used.append(_row(path))
    if not frames:
        raise MissingData(f"{folder}: neither questions.jsonl, documents.jsonl nor scores.csv")
    return make(folder.name, source, frames)


def _file(folder: Path, name: str) -> Path | None:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    return None


def _tuple(value, path: Path, column: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise DataError(f"{path}: {column} should be a list of strings, found {value!r}")
    return tuple(map(str, value))


def _row(path: Path) -> dict:
    return {"file": path.name, "origin": "own", "extent": "complete", "licence": ""}
