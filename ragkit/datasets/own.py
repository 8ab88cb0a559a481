"""A benchmark of your own: a folder with `questions`, `documents` and `scores`, or some of them.

=========  ====================================================================
file       columns
=========  ====================================================================
questions  question_id, text; and, where known, type, answer, facts, gold_doc_ids
documents  doc_id, text; and, where known, source, title
scores     subject_id, item_id, score
=========  ====================================================================

A file may have any format and any names of columns that `ragkit.files.read_frame` knows, such as
`questions.jsonl` or `scores.csv.gz`. Further columns are kept.
"""

from __future__ import annotations

from pathlib import Path

from ragkit.datasets.base import Dataset, Source, make
from ragkit.datasets.registry import Entry, Found
from ragkit.errors import MissingData
from ragkit.files import read_frame, read_scores

ENDINGS = (".jsonl", ".csv", ".tsv", ".json", ".jsonl.gz", ".csv.gz", ".tsv.gz", ".json.gz")
ENDINGS += (".parquet", ".zip")


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
    for kind in ("documents", "questions", "scores"):
        for path in (folder / (kind + ending) for ending in ENDINGS):
            if path.is_file():
                frames[kind] = read_scores(path) if kind == "scores" else read_frame(path, kind)
                entry = Entry(path.name, folder.name, "own", "", read={"frame": kind})
                source.used.append(Found(entry, entry, path, "own"))
                break
    if not frames:
        found = sorted(path.name for path in folder.iterdir())[:8]
        raise MissingData(
            f"{folder}: neither questions.jsonl, documents.jsonl nor scores.csv",
            f"found {', '.join(found)}" if found else "the folder is empty",
        )
    return make(folder.resolve().name, source, frames)
