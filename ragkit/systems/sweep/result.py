"""The results of a sweep: ranked lists, answers, scores, and the cells that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ragkit import display
from ragkit.files import atomic_path, write_jsonl, write_text
from ragkit.measures import metrics
from ragkit.systems.sweep.systems import System

RETRIEVAL_METRICS = ("R@1", "R@5", "RR", "nDCG@10")


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """The frames of a sweep.

    Attributes
    ----------
    systems : list of System
    questions : DataFrame
        The questions that were asked.
    runs : DataFrame
        system, question_id, rank, doc_id, score.
    answers : DataFrame
        system, question_id, answer, doc_ids (the documents read, best first) and abstained, of
        systems with a reader. A cell that failed has the answer None.
    failures : DataFrame
        system, question_id, stage ("rank" or "read") and reason of each cell without a ranked
        list or without an answer.
    """

    systems: list[System]
    questions: pd.DataFrame
    runs: pd.DataFrame
    answers: pd.DataFrame
    failures: pd.DataFrame

    def __repr__(self) -> str:
        cells = len(self.systems) * len(self.questions)
        return (
            f"<Sweep: {len(self.systems)} systems x {len(self.questions):,} questions, "
            f"{len(self.failures):,} of {cells:,} cells failed>"
        )

    def _repr_html_(self) -> str:
        summary = self.summary()
        counts = ["answers", "empty", "abstained", "failed"]
        shown = summary.drop(columns=[name for name in counts if not summary[name].any()])
        facts = {
            "systems": f"{len(self.systems):,}",
            "questions": f"{len(self.questions):,}",
            "failed": f"{len(self.failures):,} of {len(self.systems) * len(self.questions):,} cells",
        }
        caption = "Means of the metrics (0 to 1, higher is better; the best is bold), and counts"
        after = "Next: `.scores()` has every cell; one metric of it is what `irt.fit` takes."
        if len(self.failures):
            after = "Next: `.failures` says why cells failed; the same call tries them again."
        metrics = [name for name in shown if name not in counts]
        return display.card(
            "Sweep", facts, display.table(shown, caption, high=metrics, digits=3), after=after
        )

    def scores(self, metric: str | Sequence[str] | None = None) -> pd.DataFrame:
        """Return the scores of all cells that can be scored.

        Parameters
        ----------
        metric : str or sequence of str, optional
            Names in `ragkit.measures.metrics.METRICS`, for answers to questions with a gold
            answer; or measures of ranked lists such as "RR" or "nDCG@10", for questions with gold
            documents. Default: `metrics.ANSWER_METRICS` and `RETRIEVAL_METRICS`, as the questions allow.
            `UsageError` if one is unknown, `DataError` if no question has gold for it.

        Returns
        -------
        DataFrame
            subject_id (the system), item_id (the question), metric and score in [0, 1]. The rows
            of one metric are a response matrix for `ragkit.irt.fit`. An empty answer and a list
            without a gold document score 0; a cell that failed has no row.
        """
        names = [metric] if isinstance(metric, str) else metric
        if metric is None:
            present = self.answers.dropna(subset=["answer"])["question_id"]
            answered = present.isin(self.questions.dropna(subset=["answer"])["question_id"])
            names = [*metrics.ANSWER_METRICS] if answered.any() else []
            names += RETRIEVAL_METRICS if self.questions["gold_doc_ids"].map(len).any() else []
        columns = ["subject_id", "item_id", "metric", "score"]
        parts = [pd.DataFrame(columns=columns).astype({"score": float})]
        for name in names:
            if name in metrics.METRICS or name in metrics.CORPUS_METRICS:
                parts.append(metrics.score_answers(self.answers, self.questions, metrics=[name]))
            else:
                parts.append(self._ranked(name))
        return pd.concat(parts[1:] or parts, ignore_index=True)[columns]

    def summary(self) -> pd.DataFrame:
        """Return the mean of each metric of `scores()` and counts, indexed by system.

        The counts are of `answers`, of `empty` and `abstained` ones among them, and of `failed`
        cells.
        """
        names = [system.name for system in self.systems]
        axes = {"index": "subject_id", "columns": "metric", "values": "score"}
        table = self.scores().pivot_table(**axes, sort=False)
        table = table.reindex(names).rename_axis("system").rename_axis(None, axis=1)
        present = self.answers.dropna(subset=["answer"])
        counts = {"answers": present, "empty": present[present["answer"].str.strip() == ""]}
        counts |= {"abstained": present[present["abstained"].astype(bool)], "failed": self.failures}
        for name, rows in counts.items():
            table[name] = rows["system"].value_counts().reindex(names, fill_value=0)
        return table

    def save(self, folder) -> list[Path]:
        """Write runs.parquet, answers.jsonl, scores, summary and failures as CSV; return paths."""
        runs, answers = Path(folder) / "runs.parquet", Path(folder) / "answers.jsonl"
        with atomic_path(runs) as temporary:
            self.runs.to_parquet(temporary, index=False)
        tables = {"scores": self.scores(), "summary": self.summary().reset_index()}
        tables |= {"failures": self.failures}
        texts = {
            f"{name}.csv": t.to_csv(index=False, lineterminator="\n") for name, t in tables.items()
        }
        write_jsonl(answers, self.answers.to_dict("records"))
        return [runs, answers, *(write_text(Path(folder) / name, texts[name]) for name in texts)]

    def _ranked(self, measure: str) -> pd.DataFrame:
        """Return a measure of each ranked list; an empty one scores 0."""
        keys = ["subject_id", "item_id"]
        scored = pd.DataFrame(columns=[*keys, "score"])
        if not self.runs.empty:
            scored = metrics.retrieval(self.runs, self.questions, measures=[measure])
        failed = self.failures[self.failures["stage"] == "rank"]
        asked = self.questions.loc[self.questions["gold_doc_ids"].map(len) > 0, "question_id"]
        cells = pd.MultiIndex.from_product(
            [[system.name for system in self.systems], asked], names=keys
        ).drop(list(zip(failed["system"], failed["question_id"], strict=True)), errors="ignore")
        scores = scored.set_index(keys)["score"].astype(float).reindex(cells, fill_value=0.0)
        return scores.reset_index().assign(metric=measure)


def assembled(
    systems: list[System],
    questions: pd.DataFrame,
    lists: Mapping[tuple[str, str], Any],
    read: Mapping[tuple[str, str], Any],
    k: int,
) -> Sweep:
    """Return a sweep from lists and [answer, abstained], by system name and question text.

    A value may be the error that stands in its place.
    """
    runs, answers, failures = [], [], []
    for system in systems:
        for question, text in zip(questions["question_id"], questions["text"], strict=True):
            cell, ranked = (system.name, question), lists[system.name, text]
            answer = read.get((system.name, text), ranked)
            if isinstance(answer, Exception):
                stage = "rank" if answer is ranked else "read"
                failures.append((*cell, stage, " ".join(str(answer).split())))
                answer = None, False
            ranked = [] if isinstance(ranked, Exception) else ranked
            runs += [(*cell, rank, *pair) for rank, pair in enumerate(ranked[:k], 1)]
            if system.reader:
                shown = tuple(doc_id for doc_id, _ in ranked[: system.top] if answer[0] is not None)
                answers.append((*cell, answer[0], shown, answer[1]))
    cell = ["system", "question_id"]
    return Sweep(
        systems,
        questions,
        pd.DataFrame(runs, columns=[*cell, "rank", "doc_id", "score"]),
        pd.DataFrame(answers, columns=[*cell, "answer", "doc_ids", "abstained"]),
        pd.DataFrame(failures, columns=[*cell, "stage", "reason"]),
    )
