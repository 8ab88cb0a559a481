"""Public answers to EnterpriseRAG-Bench with language models' verdicts on them."""

from __future__ import annotations

import os

import pandas as pd

from ragkit import datasets
from ragkit.judging.judges import Task
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

    Two authors' systems. The verdicts of one folder come from Mistral-7B, the others' from judges
    whose names are not stated. `results_v6` and `results_v6.2` hold the same answers of four
    systems, judged twice. `data` is that of `ragkit.datasets.load`.

    Returns
    -------
    DataFrame
        One row per answer and report: judge ("A", "A again", "B" or "Mistral-7B"), system,
        question_id, question, type, gold, facts, answer, answerable (by the gold answer), correct
        (bool), completeness (0 to 1).

    Raises
    ------
    MissingData
        If a file is missing.
    """
    questions = datasets.load("enterpriserag_bench", profile="paper", data=data).questions
    answers = datasets.load("erb_answers", profile="paper", data=data).answers
    scores = datasets.load("erb_judged", profile="paper", data=data).scores
    reports = {report: _paired(report) for report in scores["subject_id"].unique()}
    scores = scores.assign(system=scores["subject_id"].map(reports))
    scores = scores.dropna(subset="system")
    frame = scores.merge(
        answers, left_on=["system", "item_id"], right_on=["system", "question_id"]
    ).merge(
        questions.set_index("question_id")[["text", "type", "answer", "facts"]].add_prefix("gold_"),
        left_on="question_id",
        right_index=True,
    )
    frame = frame[frame["answer"].notna()]
    folder = frame["system"].str.extract(r"/(results[^/]*)/", expand=False)
    judge = folder.map({"results_v6.2": "A", "results_v6": "A again"}).fillna("B")
    return pd.DataFrame(
        {
            "judge": judge.where(folder != "results6.2-model", "Mistral-7B"),
            "system": frame["system"].str.rsplit("/", n=1).str[-1],
            "question_id": frame["question_id"],
            "question": frame["gold_text"],
            "type": frame["gold_type"],
            "gold": frame["gold_answer"],
            "facts": frame["gold_facts"],
            "answer": frame["answer"],
            "answerable": ~frame["gold_answer"].map(asks_abstention).astype(bool),
            "correct": frame["score"].astype(bool),
            "completeness": frame["completeness"],
        }
    ).reset_index(drop=True)


def _paired(report: str) -> str | None:
    """Return the name of the answers that a report judged, None if they are not public."""
    owner, project, rest = report.removesuffix(".json").split("/", 2)
    if rest in _ANSWERS:
        return f"{owner}__{project}/{_ANSWERS[rest]}"
    folder, _, name = rest.rpartition("/")
    if folder in _FOLDERS and name.startswith("eval_baseline_"):
        return f"{owner}__{project}/{folder}/{name.removeprefix('eval_')}"
    return None


def correctness_tasks(frame: pd.DataFrame) -> list[Task]:
    """Return the task of judging each answer of `judged_answers` right or wrong."""
    columns = frame[["question", "gold", "answer"]].itertuples(index=False)
    return [Task("correctness", row._asdict()) for row in columns]


def fact_tasks(frame: pd.DataFrame) -> tuple[list[Task], list[int]]:
    """Return the tasks of judging each fact of each answer, and the rows that they belong to."""
    found = [
        (Task("fact", {"question": question, "fact": fact, "answer": answer}), place)
        for place, (question, facts, answer) in enumerate(
            zip(frame["question"], frame["facts"], frame["answer"], strict=True)
        )
        for fact in facts
    ]
    return [task for task, _ in found], [place for _, place in found]
