"""What a run of a system leaves: its values, and in what it departs from the paper."""

from __future__ import annotations

from collections.abc import Iterable
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
    """A system of an experiment after its run: what it was made of."""

    experiment: Experiment
    dataset: Dataset
    retriever: Choice | None
    reader: Choice | None
    judge: Judge

    def record(
        self, name: str, answers: pd.DataFrame, scores: pd.DataFrame, extra: list, spread: list
    ) -> dict[str, Any]:
        """Return the record of a system, as plain data for JSON.

        `scores` have item_id, metric and score, NaN where a verdict is missing; `extra` are values
        of metrics that are no means over questions, `spread` the summary of repeated verdicts.
        """
        chosen, retriever, reader = self.experiment, self.retriever, self.reader
        judge = self.judge
        kinds = sorted({kind for metric in chosen.metrics for kind in chosen.kinds(metric)})
        about = {"judge": judge.describe(kinds)}
        if reader is not None:
            model = reader.model
            about["reader"] = {"name": model.name}
            if hasattr(model, "client"):
                asked = {"prompt": model.prompt.id, "parameters": model.client.parameters}
                about["reader"] |= asked
        if retriever is not None:
            about["retriever"] = {"name": retriever.chosen.name, "system": retriever.chosen.ranking}
        parts = {"retriever": retriever, "reader": reader}
        notes = [f"judge {judge.name}"]
        if "prompt" in about.get("reader", ()):
            notes.append(f"reader's prompt {model.prompt.id}: the paper prints none")
            if model.truncated:
                notes.append(f"{model.truncated:,} answers cut at the limit of tokens")
        if reader is not None and (n := int(answers["abstained"].sum())):
            notes.append(f"{n:,} answers say that there is none")
        if failed := int(answers["answer"].isna().sum()):
            notes.append(f"{failed:,} questions without an answer")
        return {
            "experiment": chosen.name,
            "paper": chosen.paper,
            "system": name,
            "fills": {kind: one.row if one else "" for kind, one in parts.items()},
            "data": self.dataset.label,
            **about,
            "departures": self.departures(),
            "notes": notes,
            "values": [*self._values(scores), *extra],
            "spread": spread,
        }

    def _values(self, scores: pd.DataFrame) -> list[dict]:
        kinds = self.dataset.questions.set_index("question_id")["type"]
        given = scores.dropna(subset="score").astype({"score": float})
        found = []
        for kind in dict.fromkeys([OVERALL, *kinds]):
            own = kinds.index if kind == OVERALL else kinds.index[kinds == kind]
            part, every = (frame[frame["item_id"].isin(own)] for frame in (given, scores))
            if part.empty:
                continue
            table = stats.summarise(part.assign(subject_id="x"))
            for row in table.to_dict("records"):
                ends = {key: None if pd.isna(row[key]) else row[key] for key in ("low", "high")}
                value = {"metric": row["metric"], "type": kind, "value": row["mean"], **ends}
                of = int((every["metric"] == row["metric"]).sum())
                found.append(value | {"n": row["n"], "of": max(of, row["n"])})
        return found

    def departures(self) -> dict[str, Any]:
        """Return in what a run departs from the paper: all metrics, those with answers, judged ones."""
        chosen, retriever, reader = self.experiment, self.retriever, self.reader
        judge = self.judge
        parts = {"wixqa": (f"wixqa_{chosen.questions}", "kb")}.get(chosen.paper, ())
        every = [self.dataset.substitute(*parts), *(retriever.departs if retriever else ())]
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
                    said += local(judge.client) + self._prompts(kinds)
                judged[metric] = said
        return {"all": [one for one in every if one], "reader": written, "judge": judged}

    def _prompts(self, kinds: Iterable[str]) -> list[str]:
        """Return which kinds of verdicts were not given by the printed prompt."""
        said, judge = [], self.judge
        for kind in kinds:
            name = judge.prompt(kind).id
            if kind not in self.experiment.prompts:
                said.append(f"prompt {name}, the paper prints none")
            elif kind not in judge.prompts:
                said.append(f"prompt {name} for the printed one")
        return said


def local(client: Client) -> list[str]:
    """Return the servers of this machine that answered in the place of a vendor's model."""
    priced = client.prices.cost(client.model, 0, 0) is not None
    hosts = [url for url in sorted(client.sources) if is_local(url)]
    return [f"{client.model} answered by {url}" for url in hosts if priced]
