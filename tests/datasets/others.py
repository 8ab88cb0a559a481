"""What other people published, in the shapes that the registry names: small and drawn from a seed."""

from __future__ import annotations

import json
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
    made = {name: make(rng) for name, make in MADE.items()}
    return write(folder, {files(name)[0].path: value for name, value in made.items()})


def _sample(path: str) -> list[dict]:
    return read_jsonl(paths.SAMPLE / path)


def _grag(rng) -> list[dict]:
    factors = [
        {"ranker": a, "words": b} for a in ("both", "dense", "lexical") for b in (1, 2, 4, 8)
    ]
    scores = {"relevance_score": (-1, 3), "faithfulness_score": (-1, 2)}
    return [
        {"qid": str(n)} | one | {name: int(rng.integers(*ends)) for name, ends in scores.items()}
        for n in range(30)
        for one in factors
    ]


def _wixqa_retrieval(rng) -> dict[str, list[dict]]:
    found = {}
    for system in ("bm25_only", "dense_only", "hybrid_rrf"):
        found[system] = rows = []
        for n, row in enumerate(_sample("wixqa/wixqa_expertwritten/test.jsonl")):
            ids = [name[:16] for name in row["article_ids"]]
            about = {
                "mode": system,
                "query_id": f"q{n}",
                "question": row["question"],
                "gt_ids_short": ids,
            }
            recall = np.sort(rng.integers(0, 2, 3)).astype(float)
            rows.append(
                about | {f"recall_at_{k}": r for k, r in zip((1, 3, 10), recall, strict=True)}
            )
    return found


def _wixqa_answers(rng) -> list[dict]:
    asked = _sample("wixqa/wixqa_expertwritten/test.jsonl")[:12]
    told = ("token_f1", "bleu", "rouge_1", "rouge_2")
    return [
        {"run": run, "question": row["question"], "gt_answer": row["answer"]}
        | {"candidate_answer": " ".join(row["answer"].split()[: int(rng.integers(3, 30))])}
        | {name: float(rng.random()) for name in told}
        for run in ("one", "two")
        for row in asked
    ]


def _erb_answers(rng) -> dict[str, str]:
    asked = [row["question_id"] for row in _sample(f"{FOLDER}/questions.jsonl")]
    lines = [json.dumps({"question_id": name, "answer": f"About {name}."}) + "\n" for name in asked]
    return {f"someone/results_v6.2/baseline_{name}.jsonl": "".join(lines) for name in ("a", "b")}


def _datamorgana(rng) -> list[dict]:
    pages = _sample("wixqa/wix_kb_corpus/wix_kb_corpus.jsonl")[:30]
    columns = files("datamorgana")[0].read["columns"].values()
    return [
        dict.fromkeys(columns, "any")
        | {"qid": str(n), "question": f"What of {page['title']}?", "answer": page["title"]}
        | {"context": repr([page["contents"]]), "document_ids": repr([page["id"]])}
        for n, page in enumerate(pages)
    ]


MADE = {"grag": _grag, "wixqa_retrieval": _wixqa_retrieval, "wixqa_answers": _wixqa_answers}
MADE |= {"erb_answers": _erb_answers, "datamorgana": _datamorgana}


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
