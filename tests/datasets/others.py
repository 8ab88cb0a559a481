"""What other people published, in the shapes that the registry names: small and drawn from a seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ragkit import paths
from ragkit.datasets.registry import files
from ragkit.files import read_jsonl
from tests.datasets.official import write

FOLDER = "enterpriserag_bench"
SETS = ("triviaqa", "popqa", "webquestions", "simpleqa", "natural_questions")


def make(folder: Path) -> Path:
    """Add to a folder with official files those of other people; return it."""
    questions = read_jsonl(paths.SAMPLE / FOLDER / "questions.jsonl")
    rng, judged, found, ranks = np.random.default_rng(3), [], [], ["question_id,rank@10,rank@100"]
    for row in questions:
        about = {name: row[name] for name in ("question_id", "question_type")}
        for system in ("bm25", "vector", "hybrid"):
            run = {"repo": "someone", "file": f"results_v6.2/eval_baseline_{system}.json"} | about
            share = {"completeness_pct": int(rng.integers(101)), "invalid_extra_docs": 0}
            judged.append(run | {"answer_correct": int(rng.random() < 0.5)} | share)
        if not row["expected_doc_ids"]:
            continue
        for system in ("vector-only", "hybrid-bm25", "hybrid-bm25-w03"):
            rank = int(rng.integers(1, 30))
            score = {"document_recall": float(rank <= 10), "first_gold_rank": rank}
            found.append({"file": f"results/erb-{system}-v1.json"} | about | score)
        rank = int(rng.integers(1, 100))
        ranks.append(f"{row['question_id']},{rank if rank <= 10 else ''},{rank}")
    path = {name: files(name)[0].path for name in ("erb_judged", "erb_retrieval", "erb_ranks")}
    write(folder, {path["erb_judged"]: judged, path["erb_retrieval"]: found})
    write(folder, {path["erb_ranks"]: {"data/bm25_topk_evaluation.csv": "\n".join(ranks) + "\n"}})
    for name in SETS:
        _question_set(folder, name)
    return folder


def _question_set(folder: Path, name: str) -> None:
    """Write a set's sample under the columns of its own files, all in the first of them."""
    own, *others = files(name)
    rows = read_jsonl(paths.SAMPLE / own.sample)
    columns, one = own.read["columns"], own.read.get("one_answer")
    rows = [
        {
            columns["text"]: row["question"],
            columns["facts"]: row["answers"][0] if one else row["answers"],
        }
        for row in rows
    ]
    write(folder, {own.path: rows} | {other.path: rows[:1] for other in others})
