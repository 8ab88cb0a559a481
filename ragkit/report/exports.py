"""Results in the forms that others ask for: TREC files, a leaderboard bundle, Every Eval Ever records.

>>> runs = pd.DataFrame({"system": ["mine"], "question_id": "q", "rank": 1, "doc_id": "a", "score": 0.5})
>>> questions = pd.DataFrame({"question_id": ["q"], "gold_doc_ids": [("a",)]})
>>> [path.name for path in trec(runs, questions, "trec")]
['qrels', 'mine.run']
>>> answers = pd.DataFrame({"system": ["mine"], "question_id": "q", "answer": "Paris", "doc_ids": [("a",)]})
>>> results = pd.DataFrame({"system": ["mine"], "metric": "R@5", "value": 0.5, "n": 20})
>>> systems = write_text("systems.toml", "[mine]")
>>> [path.name for path in leaderboard(answers, results, systems, "bundle")]
['answers.mine.jsonl', 'results.csv', 'systems.toml', 'SHA256SUMS']
>>> (path,) = every_eval_ever(results, "my-benchmark", "eee", organization="lab", timestamp=0)
>>> json.loads(path.read_text())["evaluation_results"][0]["score_details"]["score"]
0.5
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pandas as pd

from ragkit import __version__
from ragkit.errors import DataError
from ragkit.files import sha256, write_jsonl, write_text


def trec(runs: pd.DataFrame, questions: pd.DataFrame, folder: str | Path) -> list[Path]:
    """Write `SYSTEM.run` for each system and `qrels`, as trec_eval reads them; return their paths.

    `runs` and `questions` are frames of `ragkit.schema`. trec_eval orders by score, so the score
    written is the negated rank. `DataError` if an id has a blank, which the format cannot hold.
    """
    gold = questions[["question_id", "gold_doc_ids"]].explode("gold_doc_ids").dropna()
    for column in (runs["question_id"], runs["doc_id"], runs["system"], *gold.to_numpy().T):
        for name in dict.fromkeys(column):
            if re.search(r"\s", str(name)):
                raise DataError(f"the id {name!r} has a blank, which TREC's format cannot hold")
    lines = [f"{question} 0 {document} 1" for question, document in gold.to_numpy()]
    written = [write_text(Path(folder) / "qrels", "\n".join(lines) + "\n")]
    for system, rows in runs.sort_values("rank", kind="stable").groupby("system", sort=False):
        lines = [
            f"{row.question_id} Q0 {row.doc_id} {int(row.rank)} {-int(row.rank)} {system}"
            for row in rows[["question_id", "doc_id", "rank"]].itertuples(index=False)
        ]
        written.append(write_text(Path(folder) / f"{system}.run", "\n".join(lines) + "\n"))
    return written


def leaderboard(
    answers: pd.DataFrame, results: pd.DataFrame, systems: str | Path, folder: str | Path
) -> list[Path]:
    """Write a bundle for EnterpriseRAG-Bench's leaderboard; return its paths.

    `answers.SYSTEM.jsonl` in the released harness's layout (question_id, answer, document_ids),
    `results.csv`, the file of `systems`, and `SHA256SUMS` of all of them. An answer that failed is
    left out: it is not an empty one.
    """
    folder, written = Path(folder), []
    columns = {"question_id": "question_id", "answer": "answer", "doc_ids": "document_ids"}
    for system, rows in answers.dropna(subset="answer").groupby("system", sort=False):
        given = rows[list(columns)].rename(columns=columns).to_dict("records")
        written.append(write_jsonl(folder / f"answers.{system}.jsonl", given))
    table = results.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    written.append(write_text(folder / "results.csv", table))
    written.append(Path(shutil.copy(systems, folder / "systems.toml")))
    sums = "".join(f"{sha256(path)}  {path.name}\n" for path in written)
    return [*written, write_text(folder / "SHA256SUMS", sums)]


def every_eval_ever(
    results: pd.DataFrame, dataset: str, folder: str | Path, *, organization: str, timestamp: int
) -> list[Path]:
    """Write a record in the schema of Every Eval Ever, version 0.2.1, for each system.

    `results` have system, metric, value and n, and perhaps low and high (a 95 % interval), of metrics
    in [0, 1] of which more is better; rows without a value are left out. `organization` is who
    measured, `timestamp` when, in seconds since 1970.
    """
    written = []
    for system, rows in results.dropna(subset="value").groupby("system", sort=False):
        source = {"dataset_name": dataset, "source_type": "other"}
        found = []
        for row in rows.to_dict("records"):
            scale = {"lower_is_better": False, "score_type": "continuous"}
            score = {"score": float(row["value"]), "uncertainty": {"num_samples": int(row["n"])}}
            if not pd.isna(row.get("low", float("nan"))):
                interval = {"lower": float(row["low"]), "upper": float(row["high"])}
                interval |= {"confidence_level": 0.95, "method": "bootstrap"}
                score["uncertainty"]["confidence_interval"] = interval
            found.append({
                "evaluation_name": row["metric"], "source_data": source, "score_details": score,
                "metric_config": {**scale, "min_score": 0.0, "max_score": 1.0},
            })  # fmt: skip
        record = {
            "schema_version": "0.2.1",
            "evaluation_id": f"{dataset}/{system}/{timestamp}",
            "retrieved_timestamp": str(timestamp),
            "source_metadata": {
                "source_type": "evaluation_run", "source_organization_name": organization,
                "evaluator_relationship": "first_party",
            },
            "eval_library": {"name": "ragkit", "version": __version__},
            "model_info": {"name": system, "id": f"{organization}/{system}"},
            "evaluation_results": found,
        }  # fmt: skip
        text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        written.append(write_text(Path(folder) / f"{system}.json", text))
    return written
