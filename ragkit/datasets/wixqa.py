"""WixQA: a help centre and three sets of questions about it (Hugging Face `Wix/WixQA`)."""

from __future__ import annotations

import pandas as pd

from ragkit.datasets.base import Dataset, Source, check_rows, make
from ragkit.errors import DataError, MissingData
from ragkit.files import read_json, read_jsonl

KB = "wixqa/wix_kb_corpus/wix_kb_corpus.jsonl"
SETS = ("expertwritten", "simulated", "synthetic")
OTHERS = "wixqa/expertwritten_retrieval_scores_pulseagent.json"
FILES = {
    "wixqa_retrieval": (OTHERS,),
    "wixqa": (KB, *(f"wixqa/wixqa_{name}/test.jsonl" for name in SETS)),
}
OPTIONAL = FILES["wixqa"][2:]
SAMPLE = ("wixqa",)


def read(name: str, source: Source) -> Dataset:
    """Read the benchmark, or the retrieval runs of others.

    `wixqa` has the configurations that are at hand: `documents` with their `url` and the article
    type (article, feature_request, known_issue) as source, and `questions` with their set as
    type, numbered within it in official order.

    `wixqa_retrieval` has all 200 expert-written `questions`, without answers and with gold ids
    cut to 16 digits, and `scores`: recall at 10 of three systems over the whole knowledge base,
    beside recall at 1 and 3.
    """
    if name == "wixqa_retrieval":
        return make(name, source, _retrieval(source))
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


def _retrieval(source: Source) -> dict[str, pd.DataFrame]:
    found = source.need(OTHERS)
    runs = read_json(found.path)
    rows = [dict(row, system=system) for system, cases in runs.items() for row in cases]
    check_rows(rows, found)
    frame = pd.DataFrame(rows)
    lacking = {"query_id", "question", "gt_ids_short", "recall_at_10"} - set(frame)
    if lacking:
        raise DataError(f"{found.path}: no column {min(lacking)!r}")
    first = frame[frame["system"] == frame["system"].iloc[0]]
    questions = pd.DataFrame(
        {
            "question_id": [f"expertwritten-{number:04d}" for number in range(1, len(first) + 1)],
            "text": first["question"].to_numpy(),
            "type": "expertwritten",
            "answer": None,
            "facts": [()] * len(first),
            "gold_doc_ids": [tuple(ids) for ids in first["gt_ids_short"]],
        }
    )
    ids = dict(zip(first["query_id"], questions["question_id"], strict=True))
    scores = pd.DataFrame(
        {
            "subject_id": frame["system"],
            "item_id": frame["query_id"].map(ids),
            "score": frame["recall_at_10"].astype(float),
            "recall_at_1": frame["recall_at_1"].astype(float),
            "recall_at_3": frame["recall_at_3"].astype(float),
        }
    )
    return {"questions": questions, "scores": scores}


def _rows(source: Source, path: str, columns: tuple[str, ...]) -> list[dict] | None:
    if source.sample:
        return read_jsonl(source.sample_path(path), columns)
    found = source.find(path)
    if found is None:
        source.used.append({"file": path, "origin": "", "extent": "missing", "licence": ""})
        return None
    return check_rows(read_jsonl(found.path, columns), found)
