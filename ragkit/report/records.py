"""What a run of a system leaves: its values, and in what it departs from the paper."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ragkit.datasets import Dataset
from ragkit.judging import Judge
from ragkit.llm import Client
from ragkit.llm.endpoint import is_local
from ragkit.measures import stats
from ragkit.report.experiments import OVERALL, Experiment


@dataclass
class Choice:
    """A retriever or a reader that runs: the printed name it fills (empty: none), and what it is."""

    row: str
    name: str
    chosen: Any
    departs: tuple[str, ...] = field(default=())
    model: Any = None  # the reader, once it has read


@dataclass
class Ran:
    """A system of an experiment: what it is made of, its answers, and the verdicts on them.

    `scores` have item_id, metric and score, NaN where a verdict is missing; `extra` are values of
    metrics that are no means over questions, `spread` the summary of repeated verdicts.
    """

    name: str
    retriever: Choice | None
    reader: Choice | None
    answers: pd.DataFrame
    calls: list[dict]
    judge: Judge | None = None
    scores: pd.DataFrame | None = None
    extra: list[dict] = field(default_factory=list)
    spread: list[dict] = field(default_factory=list)

    def record(self, chosen: Experiment, dataset: Dataset) -> dict[str, Any]:
        """Return the record of the system, as plain data for JSON."""
        retriever, reader, judge = self.retriever, self.reader, self.judge
        kinds = sorted({kind for metric in chosen.metrics for kind in chosen.kinds(metric)})
        about, notes = {"judge": judge.describe(kinds)}, [f"judge {judge.name}"]
        if retriever is not None:
            about["retriever"] = {"name": retriever.chosen.name, "system": retriever.chosen.ranking}
        if reader is not None:
            model = reader.model
            about["reader"] = {"name": model.name}
            if hasattr(model, "client"):
                asked = {"prompt": model.prompt.id, "parameters": model.client.parameters}
                about["reader"] |= asked
                notes.append(f"reader's prompt {model.prompt.id}: the paper prints none")
                if model.truncated:
                    notes.append(f"{model.truncated:,} answers cut at the limit of tokens")
            if n := int(self.answers["abstained"].sum()):
                notes.append(f"{n:,} answers say that there is none")
        if failed := int(self.answers["answer"].isna().sum()):
            notes.append(f"{failed:,} questions without an answer")
        parts = {"retriever": retriever, "reader": reader}
        return {
            "experiment": chosen.name,
            "paper": chosen.paper,
            "system": self.name,
            "fills": {kind: one.row if one else "" for kind, one in parts.items()},
            "data": dataset.label,
            **about,
            "departures": self._departures(chosen, dataset),
            "notes": notes,
            "values": [*self._values(dataset.questions), *self.extra],
            "spread": self.spread,
        }

    def _values(self, questions: pd.DataFrame) -> list[dict]:
        """Return the mean of each metric over all questions and over each type of them."""
        kinds = questions.set_index("question_id")["type"]
        found = []
        for kind in dict.fromkeys([OVERALL, *kinds]):
            own = kinds.index if kind == OVERALL else kinds.index[kinds == kind]
            every = self.scores[self.scores["item_id"].isin(own)]
            part = every.dropna(subset="score").astype({"score": float})
            asked = every["metric"].value_counts()
            table = stats.summarise(part.assign(subject_id="x")) if len(part) else part
            for row in table.to_dict("records"):
                ends = {key: None if pd.isna(row[key]) else row[key] for key in ("low", "high")}
                value = {"metric": row["metric"], "type": kind, "value": row["mean"], **ends}
                found.append(value | {"n": row["n"], "of": int(asked[row["metric"]])})
        return found

    def _departures(self, chosen: Experiment, dataset: Dataset) -> dict[str, Any]:
        """Return in what a run departs from the paper: all metrics, those with answers, judged ones."""
        retriever, reader, judge = self.retriever, self.reader, self.judge
        parts = {"wixqa": (f"wixqa_{chosen.questions}", "kb")}.get(chosen.paper, ())
        every = [dataset.substitute(*parts), *(retriever.departs if retriever else ())]
        if retriever is None and chosen.retrievers:
            every.append("another author's answers")
        written = [*(reader.departs if reader else ())]
        if reader is not None and hasattr(reader.model, "client"):
            written += local(reader.model.client)
        judged = {}
        for metric in chosen.metrics:
            if kinds := chosen.kinds(metric):
                said = [] if judge.name == chosen.judge["kind"] else [f"judge {judge.name}"]
                if hasattr(judge, "client"):
                    said += local(judge.client)
                    for kind in kinds:
                        name = judge.prompt(kind).id
                        if kind not in chosen.prompts:
                            said.append(f"prompt {name}, the paper prints none")
                        elif kind not in judge.prompts:
                            said.append(f"prompt {name} for the printed one")
                judged[metric] = said
        return {"all": [one for one in every if one], "reader": written, "judge": judged}


def local(client: Client) -> list[str]:
    """Return the servers of this machine that answered in the place of a vendor's model."""
    priced = client.prices.cost(client.model, 0, 0) is not None
    hosts = [url for url in sorted(client.sources) if is_local(url)]
    return [f"{client.model} answered by {url}" for url in hosts if priced]
