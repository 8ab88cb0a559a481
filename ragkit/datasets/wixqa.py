"""WixQA: a help centre and three sets of questions about it (Hugging Face `Wix/WixQA`)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ragkit import schema
from ragkit.datasets.base import Dataset, Source, check_rows, make
from ragkit.datasets.registry import Found
from ragkit.errors import DataError, MissingData
from ragkit.files import read_json, read_jsonl, require
from ragkit.schema import strings

KB = "wixqa/wix_kb_corpus/wix_kb_corpus.jsonl"
SETS = ("expertwritten", "simulated", "synthetic")
OTHERS = "wixqa/expertwritten_retrieval_scores_pulseagent.json"
FILES = {
    "wixqa_retrieval": (OTHERS,),
    "wixqa": (KB, *(f"wixqa/wixqa_{name}/test.jsonl" for name in SETS)),
}
OPTIONAL = FILES["wixqa"][2:]
SAMPLE = ("wixqa",)
RECALLS = ("recall_at_1", "recall_at_3", "recall_at_10")


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
        found = source.need(OTHERS)
        frames = _retrieval(found)
        return make(name, source, frames, where=dict.fromkeys(frames, found.path))
    frames, where = {}, {}
    kb = _rows(source, KB, ("id", "url", "contents", "article_type", "title"))
    if kb:
        rows, where["documents"] = kb
        articles = {
            "doc_id": [row["id"] for row in rows],
            "source": [row["article_type"] for row in rows],
            "title": [row["title"] for row in rows],
            "text": [row["contents"] for row in rows],
            "url": [row["url"] for row in rows],
        }
        path = str(where["documents"])
        frames["documents"] = schema.check(pd.DataFrame(articles), "documents", path)
    sets = []
    for kind in SETS:
        found = _rows(
            source, f"wixqa/wixqa_{kind}/test.jsonl", ("question", "answer", "article_ids")
        )
        if found:
            sets.append(_questions(kind, *found))
            if kb and source.whole_corpus:
                schema.check_gold(sets[-1], frames["documents"], str(found[1]))
    if sets:
        frames["questions"] = pd.concat(sets, ignore_index=True)
    if not frames:
        raise MissingData("no part of WixQA is here", "ragkit data fetch wixqa, or DATA=...")
    return make(name, source, frames, where=where)


def _questions(kind: str, rows: list[dict], path: Path) -> pd.DataFrame:
    gold = [
        strings(row["article_ids"], f"{path}: row {number}: article_ids")
        for number, row in enumerate(rows, start=1)
    ]
    frame = pd.DataFrame(
        {
            "question_id": [f"{kind}-{number:04d}" for number in range(1, len(rows) + 1)],
            "text": [row["question"] for row in rows],
            "type": kind,
            "answer": [row["answer"] for row in rows],
            "facts": [()] * len(rows),
            "gold_doc_ids": gold,
        }
    )
    return schema.check(frame, "questions", str(path))


def _retrieval(found: Found) -> dict[str, pd.DataFrame]:
    runs = read_json(found.path)
    if not isinstance(runs, dict) or not all(isinstance(cases, list) for cases in runs.values()):
        raise DataError(f"{found.path}: expected an object of systems with lists of cases")
    columns = ("query_id", "question", "gt_ids_short", *RECALLS)
    rows = []
    for system, cases in runs.items():
        for number, case in enumerate(cases, start=1):
            where = f"{found.path}: {system}: case {number}"
            if not isinstance(case, dict):
                raise DataError(f"{where}: expected an object")
            require(case, columns, where)
            for column in RECALLS:
                if not isinstance(case[column], int | float):
                    raise DataError(f"{where}: {column} should be a number, found {case[column]!r}")
            gold = strings(case["gt_ids_short"], f"{where}: gt_ids_short")
            rows.append(dict(case, system=system, gt_ids_short=gold))
    frame = pd.DataFrame(check_rows(rows, found))
    first = frame[frame["system"] == frame["system"].iloc[0]]
    questions = pd.DataFrame(
        {
            "question_id": [f"expertwritten-{number:04d}" for number in range(1, len(first) + 1)],
            "text": first["question"].to_numpy(),
            "type": "expertwritten",
            "answer": None,
            "facts": [()] * len(first),
            "gold_doc_ids": list(first["gt_ids_short"]),
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


def _rows(source: Source, path: str, columns: tuple[str, ...]) -> tuple[list[dict], Path] | None:
    if source.sample:
        at = source.sample_path(path)
        return read_jsonl(at, columns), at
    found = source.find(path)
    if found is None:
        source.used.append({"file": path, "origin": "", "extent": "missing", "licence": ""})
        return None
    return check_rows(read_jsonl(found.path, columns), found), found.path
