"""What others measured on WixQA; the benchmark itself is read as `data/registry.toml` declares."""

from __future__ import annotations

import pandas as pd

from ragkit import schema
from ragkit.datasets.readers import number
from ragkit.datasets.registry import Declaration, Found
from ragkit.errors import DataError
from ragkit.files import read_json, require

OVERLAP = ("token_f1", "bleu", "rouge_1", "rouge_2")


def wixqa_retrieval(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read recall of three systems over the whole knowledge base, one run a system.

    `questions` are all 200 expert-written ones, without answers and with gold ids cut to 16 digits;
    `scores` are recall at 10, beside recall at 1 and 3.
    """
    found.read_rows(("query_id", "question", "gt_ids_short"))
    runs = read_json(found.path)
    if not isinstance(runs, dict):
        raise DataError(f"{found.path}: expected an object of systems with lists of cases")
    rows = []
    for system, cases in runs.items():
        for place, case in enumerate(cases, start=1):
            where = f"{found.path}: {system}: row {place}"
            row = {"system": system, "query_id": case["query_id"], "text": case["question"]}
            row["gold"] = schema.strings(case["gt_ids_short"], f"{where}: gt_ids_short")
            for depth in (10, 1, 3):
                name = f"recall_at_{depth}"
                require(case, (name,), where)
                row[name] = number(case[name], f"{where}: {name}")
            rows.append(row)
    frame = pd.DataFrame(rows)
    first = frame[frame["system"] == frame["system"].iloc[0]]
    questions = pd.DataFrame(
        {
            "question_id": [f"expertwritten-{place:04d}" for place in range(1, len(first) + 1)],
            "text": first["text"].to_numpy(),
            "type": "expertwritten",
            "answer": None,
            "facts": [()] * len(first),
            "gold_doc_ids": list(first["gold"]),
        }
    )
    ids = dict(zip(first["query_id"], questions["question_id"], strict=True))
    scores = pd.DataFrame(
        {
            "subject_id": frame["system"],
            "item_id": frame["query_id"].map(ids),
            "score": frame["recall_at_10"],
            "recall_at_1": frame["recall_at_1"],
            "recall_at_3": frame["recall_at_3"],
        }
    )
    return {"questions": questions, "scores": scores}


def wixqa_answers(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read answers of others: `questions`, `answers`, and the `overlap` scores that came with them.

    An overlap score is NaN where a run has none.
    """
    frame = pd.DataFrame(found.read_rows(("run", "question", "candidate_answer", "gt_answer")))
    distinct = frame.drop_duplicates("question")
    ids = {text: f"{place:03d}" for place, text in enumerate(distinct["question"], start=1)}
    questions = pd.DataFrame(
        {
            "question_id": list(ids.values()),
            "text": list(ids),
            "type": "wixqa",
            "answer": distinct["gt_answer"].to_numpy(),
            "facts": [()] * len(ids),
            "gold_doc_ids": [()] * len(ids),
        }
    )
    keys = {"system": frame["run"], "question_id": frame["question"].map(ids)}
    answers = pd.DataFrame(
        {**keys, "answer": frame["candidate_answer"], "doc_ids": [()] * len(frame)}
    )
    overlap = frame.reindex(columns=list(OVERLAP)).assign(**keys)
    return {"questions": questions, "answers": answers, "overlap": overlap}
