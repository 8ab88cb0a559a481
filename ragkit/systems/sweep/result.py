"""What a sweep gives: frames, scores and what is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragkit.files import atomic_path, write_text
from ragkit.systems.sweep.systems import System

if TYPE_CHECKING:
    import pandas as pd

ANSWER_METRICS = ("token_f1", "rouge_1", "rouge_2")
RETRIEVAL_METRICS = ("R@1", "R@5", "RR", "nDCG@10")


class Failed(NamedTuple):
    """The stage that gave nothing for a cell, and why."""

    stage: str
    reason: str


@dataclass(frozen=True, eq=False, repr=False)
class Sweep:
    """The frames of a sweep.

    Attributes
    ----------
    systems : list of System
    questions : DataFrame
        As they were asked.
    runs : DataFrame
        system, question_id, rank, doc_id, score.
    answers : DataFrame
        system, question_id, answer, doc_ids (what was read, from the best), abstained: the systems
        that have a reader. A cell that failed has the answer None.
    failures : DataFrame
        system, question_id, stage ("rank", "rerank" or "read") and reason of each cell that has
        no ranked list or no answer.
    """

    systems: list[System]
    questions: pd.DataFrame
    runs: pd.DataFrame
    answers: pd.DataFrame
    failures: pd.DataFrame

    @classmethod
    def assemble(
        cls,
        systems: list[System],
        questions: pd.DataFrame,
        lists: Mapping[tuple[str, str], Any],
        readings: Mapping[tuple[str, str], Any],
        k: int,
    ) -> Sweep:
        """Make frames of ranked lists, cut at k, and readings by system and question text."""
        import pandas as pd

        runs, answers, failures = [], [], []
        asked = list(zip(questions["question_id"], questions["text"], strict=True))
        for system in systems:
            for question, text in asked:
                cell = system.name, question
                found = lists[system.name, text]
                if isinstance(found, Failed):
                    failures.append((*cell, *found))
                else:
                    runs += [(*cell, rank, *pair) for rank, pair in enumerate(found[:k], 1)]
                if system.reader is None:
                    continue
                reading = readings[system.name, text]
                if isinstance(reading, Failed):
                    answers.append((*cell, None, (), False))
                    if not isinstance(found, Failed):
                        failures.append((*cell, *reading))
                else:
                    values = reading["answer"], reading["doc_ids"], reading["abstained"]
                    answers.append((*cell, *values))
        return cls(
            systems,
            questions,
            pd.DataFrame(runs, columns=["system", "question_id", "rank", "doc_id", "score"]),
            pd.DataFrame(
                answers, columns=["system", "question_id", "answer", "doc_ids", "abstained"]
            ),
            pd.DataFrame(failures, columns=["system", "question_id", "stage", "reason"]),
        )

    def __repr__(self) -> str:
        cells = len(self.systems) * len(self.questions)
        return (
            f"<Sweep: {len(self.systems)} systems x {len(self.questions):,} questions, "
            f"{len(self.failures):,} of {cells:,} cells failed>"
        )

    def scores(self, metric: str | Sequence[str] | None = None) -> pd.DataFrame:
        """Return the scores of all cells that have one.

        Parameters
        ----------
        metric : str or sequence of str, optional
            Names in `ragkit.measures.metrics.METRICS`, for systems that answer and questions with a gold
            answer; or measures of ranked lists such as "RR" or "nDCG@10" (see
            `ragkit.measures.metrics.retrieval`), for questions with gold documents. Default: those of
            `ANSWER_METRICS` and `RETRIEVAL_METRICS` that the questions allow.

        Returns
        -------
        DataFrame
            subject_id (the system), item_id (the question), metric and score in [0, 1]. For one
            metric by its name this is a response matrix as `ragkit.irt.fit` takes it. An empty
            answer and a list without a gold document score 0; a cell that failed has no row.

        Raises
        ------
        UsageError
            If a metric is unknown.
        DataError
            If the questions have no gold answer or no gold documents to score with.
        """
        import pandas as pd

        from ragkit.measures import metrics

        if metric is None:
            names = [*ANSWER_METRICS] if self._answered else []
            names += RETRIEVAL_METRICS if self.questions["gold_doc_ids"].map(len).any() else []
        else:
            names = [metric] if isinstance(metric, str) else list(metric)
        parts = []
        for name in names:
            if name in metrics.METRICS or name in metrics.CORPUS_METRICS:
                part = metrics.score_answers(self.answers, self.questions, metrics=[name])
            else:
                part = self._ranked(name)
            parts.append(part[["subject_id", "item_id", "metric", "score"]])
        if not parts:
            columns = {"subject_id": str, "item_id": str, "metric": str, "score": float}
            return pd.DataFrame({name: pd.Series(dtype=kind) for name, kind in columns.items()})
        return pd.concat(parts, ignore_index=True)

    def summary(self) -> pd.DataFrame:
        """Return one row a system: mean scores over its cells, and counts.

        Returns
        -------
        DataFrame
            Indexed by system: one column for each metric of `scores()`, then `answers`, `empty`,
            `abstained` and `failed` cells.
        """
        names = [system.name for system in self.systems]
        table = self.scores().pivot_table(
            index="subject_id", columns="metric", values="score", sort=False
        )
        table = table.reindex(names).rename_axis("system").rename_axis(None, axis=1)
        present = self.answers.dropna(subset=["answer"])
        counts = {
            "answers": present,
            "empty": present[present["answer"].str.strip() == ""],
            "abstained": present[present["abstained"].astype(bool)],
            "failed": self.failures,
        }
        for name, rows in counts.items():
            table[name] = rows["system"].value_counts().reindex(names, fill_value=0)
        return table

    def save(self, folder) -> list[Path]:
        """Write runs.parquet, answers.jsonl, scores.csv, summary.csv and failures.csv.

        Each is replaced as a whole or not at all. Returns the paths.
        """
        folder = Path(folder)
        names = ("runs.parquet", "answers.jsonl", "scores.csv", "summary.csv", "failures.csv")
        runs, answers, scores, summary, failures = (folder / name for name in names)
        with atomic_path(runs) as temporary:
            self.runs.to_parquet(temporary, index=False)
        rows = self.answers.to_dict("records")
        write_text(answers, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
        for path, frame in (
            (scores, self.scores()),
            (summary, self.summary().reset_index()),
            (failures, self.failures),
        ):
            with atomic_path(path) as temporary:
                frame.to_csv(temporary, index=False, lineterminator="\n")
        return [runs, answers, scores, summary, failures]

    @property
    def _answered(self) -> bool:
        """Whether an answer can be scored."""
        answered = self.questions.loc[self.questions["answer"].notna(), "question_id"]
        present = self.answers.dropna(subset=["answer"])
        return bool(present["question_id"].isin(answered).any())

    def _ranked(self, measure: str) -> pd.DataFrame:
        """Return a measure of every ranked list, one that is empty included."""
        import pandas as pd

        from ragkit.measures import metrics

        failed = self.failures[self.failures["stage"] != "read"]
        lacking = set(zip(failed["system"], failed["question_id"], strict=True))
        parts = []
        for system in self.systems:
            runs = self.runs[self.runs["system"] == system.name]
            if runs.empty:  # nothing was found for any question: one list of no gold document
                first = self.questions["question_id"].iloc[0]
                row = {"system": system.name, "question_id": first, "rank": 1}
                runs = pd.DataFrame([{**row, "doc_id": "\0nothing", "score": 0.0}])
            part = metrics.retrieval(runs, self.questions, measures=[measure])
            cells = zip(part["subject_id"], part["item_id"], strict=True)
            parts.append(part[[cell not in lacking for cell in cells]])
        return pd.concat(parts, ignore_index=True)
