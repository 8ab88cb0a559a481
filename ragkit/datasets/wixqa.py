"""WixQA: a help centre and three sets of questions about it (Hugging Face `Wix/WixQA`)."""

from __future__ import annotations

import pandas as pd

from ragkit.datasets.base import Dataset, Source, check_rows, make
from ragkit.errors import DataError, MissingData
from ragkit.files import read_jsonl

KB = "wixqa/wix_kb_corpus/wix_kb_corpus.jsonl"
SETS = ("expertwritten", "simulated", "synthetic")
FILES = {"wixqa": (KB, *(f"wixqa/wixqa_{name}/test.jsonl" for name in SETS))}
SAMPLE = FILES


def read(name: str, source: Source) -> Dataset:
    """Read the configurations that are at hand: `documents`, and `questions` with their set as type.

    Documents carry `url`; their source is the article type (article, feature_request,
    known_issue). Questions are numbered within their set, in official order.
    """
    frames = {}
    kb = _rows(source, KB, ("id", "url", "contents", "article_type", "title"))
    if kb is not None:
        frames["documents"] = pd.DataFrame(
            {
                "doc_id": [str(row["id"]) for row in kb],
                "source": [row["article_type"] for row in kb],
                "title": [row["title"] for row in kb],
                "text": [row["contents"] for row in kb],
                "url": [row["url"] for row in kb],
            }
        )
    questions = []
    for kind in SETS:
        path = f"wixqa/wixqa_{kind}/test.jsonl"
        rows = _rows(source, path, ("question", "answer", "article_ids"))
        for number, row in enumerate(rows or [], start=1):
            if not isinstance(row["article_ids"], list):
                raise DataError(f"{path}: row {number}: article_ids is not a list")
            questions.append(
                {
                    "question_id": f"{kind}-{number:04d}",
                    "text": row["question"],
                    "type": kind,
                    "answer": row["answer"],
                    "facts": (),
                    "gold_doc_ids": tuple(map(str, row["article_ids"])),
                }
            )
    if questions:
        frames["questions"] = pd.DataFrame(questions)
    if not frames:
        raise MissingData("no part of WixQA is here", "ragkit data fetch wixqa, or DATA=...")
    return make(name, source, frames)


def _rows(source: Source, path: str, columns: tuple[str, ...]) -> list[dict] | None:
    if source.sample:
        return read_jsonl(source.sample_path(path), columns)
    found = source.find(path)
    if found is None:
        source.used.append({"file": path, "origin": "", "extent": "missing", "licence": ""})
        return None
    return check_rows(read_jsonl(found.path, columns), found)
