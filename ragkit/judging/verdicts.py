"""Public answers to EnterpriseRAG-Bench with language models' verdicts on them."""

from __future__ import annotations

import os

import pandas as pd

from ragkit import datasets
from ragkit.judging.judges import Task, tasks
from ragkit.judging.offline_text import asks_abstention

# Reports that do not name the file of answers that they judged; it was found by comparing the
# document recall of every question with that of the answers' documents.
_ANSWERS = {
    "results/erb-official-judge-v1": "bench/answers-official",
    "results/results-submission-official": "bench/answers-submission",
    "results/results-submission-rerank": "bench/answers-submission-rerank",
    "results/results-submission-final": "bench/answers-submission-final",
}
# Folders of the other author: the report FOLDER/eval_NAME judged the answers FOLDER/NAME.
_FOLDERS = ("results_v6", "results_v6.2", "results6.2-model")


def judged_answers(*, data: str | os.PathLike | None = None) -> pd.DataFrame:
    """Return the public answers to EnterpriseRAG-Bench that have a language model's verdicts.

    Two authors' systems, by Mistral-7B and judges whose names are not stated. `results_v6` and
    `results_v6.2` hold the same answers of four systems, judged twice. `data` is as of
    `ragkit.datasets.load`.

    Returns
    -------
    DataFrame
        One row per answer and report: judge ("A", "A again", "B" or "Mistral-7B"), system,
        question_id, question, type, gold, facts, answer, answerable (by the gold answer), correct
        (bool), completeness (0 to 1).
    """
    options = {"profile": "paper", "data": data}
    questions = datasets.load("enterpriserag_bench", **options).questions
    answers = datasets.load("erb_answers", **options).answers.dropna(subset="answer")
    scores = datasets.load("erb_judged", **options).scores
    reports = {report: _paired(report) for report in scores["subject_id"].unique()}
    scores = scores.assign(system=scores["subject_id"].map(reports)).dropna(subset="system")
    scores = scores.rename(columns={"item_id": "question_id"})
    keys = ["system", "question_id"]
    frame = scores[[*keys, "score", "completeness"]].merge(answers[[*keys, "answer"]], on=keys)
    asked = questions.rename(columns={"text": "question", "answer": "gold"})
    frame = frame.merge(asked[["question_id", "question", "type", "gold", "facts"]])
    folder = frame["system"].str.extract(r"/(results[^/]*)/", expand=False)
    names = {"results_v6.2": "A", "results_v6": "A again", "results6.2-model": "Mistral-7B"}
    frame["judge"] = folder.map(names).fillna("B")
    frame["system"] = frame["system"].str.rsplit("/", n=1).str[-1]
    frame["answerable"] = ~frame["gold"].map(asks_abstention).astype(bool)
    frame["correct"] = frame["score"].astype(bool)
    columns = "judge system question_id question type gold facts answer answerable correct"
    return frame[[*columns.split(), "completeness"]]


def _paired(report: str) -> str | None:
    """Return the name of the answers that a report judged, None if they are not public."""
    owner, project, rest = report.removesuffix(".json").split("/", 2)
    if rest in _ANSWERS:
        return f"{owner}__{project}/{_ANSWERS[rest]}"
    folder, _, name = rest.rpartition("/")
    if folder in _FOLDERS and name.startswith("eval_baseline_"):
        return f"{owner}__{project}/{folder}/{name.removeprefix('eval_')}"
    return None


def fact_tasks(frame: pd.DataFrame) -> tuple[list[Task], list[int]]:
    """Return the tasks of judging each fact of each answer, and the rows that they belong to."""
    rows = frame.assign(row=range(len(frame))).rename(columns={"facts": "fact"})
    rows = rows.explode("fact").dropna(subset="fact")
    return tasks("fact", rows), rows["row"].tolist()
