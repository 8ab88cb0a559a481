"""The papers' experiments: what is declared, what has been run, and the printed cells it fills.

`notebooks/experiments.toml` declares them, `ragkit.report.trial` runs them. A run leaves a record of
each system in `build/PROFILE/experiments/EXPERIMENT/SYSTEM.json`, with its answers and scores
beside it; records that were exported to `data/results/experiments` count as well.

>>> get("wixqa-table-3").paper, get("wixqa-table-3").metrics[:2]
('wixqa', ['token_f1', 'bleu'])
>>> summary("paper").columns[:4].tolist()
['experiment', 'system', 'judge', 'metric']
>>> repeated("paper").columns[:3].tolist(), agreement("paper").columns[:4].tolist()
(['experiment', 'system', 'metric'], ['experiment', 'system', 'metric', 'judges'])
>>> board("my-profile", "wixqa", "3").empty
True
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from ragkit import checks, display, paths
from ragkit.datasets import reported
from ragkit.errors import DataError, UsageError
from ragkit.files import read_json, read_text, write_jsonl, write_text
from ragkit.report import results, tables

FILE = paths.NOTEBOOKS / "experiments.toml"
EXPORTED = paths.RESULTS / "experiments"
OVERALL = "overall"
# Metrics that a judge decides, by the kinds of its verdicts.
JUDGED = {
    "factuality": ("factuality",),
    "context_recall": ("context_recall",),
    "correctness": ("correctness",),
    "completeness": ("fact",),
    "invalid_extra_documents": ("validity",),
}
LIVERAG = dict.fromkeys(("coverage", "relatedness", "correctness"), ("claims", "fact"))
# Metrics of the documents alone: no reader has a part in them.
RETRIEVAL = ("context_recall", "document_recall", "invalid_extra_documents")


@dataclass(frozen=True)
class Experiment:
    """One entry of `notebooks/experiments.toml`, which explains the fields."""

    name: str
    title: str
    paper: str
    metrics: Sequence[str]
    readers: Mapping[str, Mapping[str, Any]]
    judge: Mapping[str, Any]
    fills: Sequence[Mapping[str, str]] = ()
    retrievers: Mapping[str, str] = field(default_factory=dict)
    questions: str = ""
    top: int = 5
    prompts: Mapping[str, str] = field(default_factory=dict)
    panel: int = 0
    repeat: int = 1
    bins: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Experiment {self.name}: {self.title}; {len(self.cells):,} printed cells>"

    def _repr_html_(self) -> str:
        facts = {
            "question": self.title,
            "retrievers": ", ".join(f"{row} ({name})" for row, name in self.retrievers.items()),
            "readers": ", ".join(f"{row} ({one['kind']})" for row, one in self.readers.items()),
            "judge": self.judge["kind"],
            "metrics": ", ".join(self.metrics),
            "fills": f"{len(self.cells):,} printed numbers",
        }
        after = f"Next: `{self.command} --dry-run` says what it needs and costs, and asks nothing."
        return display.card(self.name, facts, after=after)

    @property
    def command(self) -> str:
        """The command that runs it."""
        return f"ragkit experiment run {self.name}"

    def kinds(self, metric: str) -> tuple[str, ...]:
        """Return the kinds of verdicts that decide a metric; none if no judge does."""
        return (LIVERAG if self.paper == "liverag" else JUDGED).get(metric, ())

    @cached_property
    def cells(self) -> pd.DataFrame:
        """The printed cells that it fills: the key, and retriever, reader and type ("overall").

        Raises `DataError` if a template names no printed cell.
        """
        columns = [*tables.KEY, "unit", "retriever", "reader", "type"]
        rows = [row for fill in self.fills for row in self._named(fill)]
        return pd.DataFrame(rows, columns=columns)

    def _named(self, fill: Mapping[str, str]) -> list[dict]:
        table, found = fill["table"], []
        printed = reported.load(self.paper, table)
        printed = printed[printed["metric"].isin(self.metrics)].to_dict("records")
        for row, retriever, reader in product(printed, self.retrievers or [""], self.readers):
            types = [row[key] for key in fill if fill[key] == "{type}"]
            names = {"retriever": retriever, "reader": reader, "metric": row["metric"]}
            names["type"] = types[0] if types else OVERALL
            if all(row[key] == fill[key].format(**names) for key in fill if key != "table"):
                found.append(row | names)
        if not found:
            raise DataError(f"{FILE.name}: {self.name} fills no printed cell of table {table}")
        return found


def load(path: Path | None = None) -> dict[str, Experiment]:
    """Return the declared experiments by name.

    Raises `DataError` if the file is not TOML, and `UsageError` if an entry has an unknown field or
    lacks one.
    """
    path = path or FILE
    try:
        declared = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path}: not TOML: {error}") from None
    found: dict[str, dict] = {}
    for name, own in declared.items():
        like = own.pop("like", None)
        base = found[checks.choice(like, f"{name}: experiment", found)] if like else {}
        found[name] = {**base, **own}
        checks.options(found[name], set(Experiment.__dataclass_fields__) - {"name"}, name)
    try:
        return {name: Experiment(name, **fields) for name, fields in found.items()}
    except TypeError as error:
        raise UsageError(f"{path}: {name}: {str(error).partition(') ')[2]}") from None


def get(name: str) -> Experiment:
    """Return a declared experiment; `UsageError` if there is none of that name."""
    known = load()
    return known[checks.choice(name, "experiment", known)]


# -- records ----------------------------------------------------------------------------------


def folder(profile: str) -> Path:
    """Return where the records of a profile lie, a folder for each experiment."""
    return results.folder(profile) / "experiments"


def save(profile: str, record: Mapping, answers: pd.DataFrame, scores: pd.DataFrame) -> Path:
    """Write a system's record, and beside it its answers and the score of every question.

    With another judge than the declared one the name of the file has the judge's.
    """
    name, judge = record["system"], record["judge"]["name"]
    if judge != get(record["experiment"]).judge["kind"]:
        name += f"~{judge}"
    file = re.sub(r"[^\w.+=~-]+", "-", name) + ".json"
    path = folder(profile) / record["experiment"] / file
    columns = ["system", "question_id", "answer", "doc_ids"]
    rows = answers[columns].sort_values("question_id").to_dict("records")
    write_jsonl(path.with_suffix(".answers.jsonl"), rows)
    results.write_frame(scores, path.with_suffix(".scores.csv"))
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
    return write_text(path, text + "\n")


def files(profile: str) -> list[Path]:
    """Return the records at hand: those of this workspace's runs, and exported ones of others."""
    found: dict[Path, Path] = {}
    for root in (EXPORTED if profile == "paper" else None, folder(profile)):
        if root is not None and root.is_dir():
            found |= {path.relative_to(root): path for path in sorted(root.glob("*/*.json"))}
    return list(found.values())


def records(profile: str, experiment: str | None = None) -> list[dict]:
    """Return the records of the systems that have been run, of one experiment or of all."""
    found = [read_json(path) for path in files(profile)]
    return [one for one in found if experiment in (None, one["experiment"])]


def summary(profile: str, paper: str | None = None) -> pd.DataFrame:
    """Return what has been run: experiment, system, judge, metric, type, value, low, high, n, of, and
    substitute: what was used in place of the paper's."""
    rows = [
        {"experiment": one["experiment"], "system": one["system"], **value}
        | {"judge": one["judge"]["name"], "substitute": said(one, value["metric"])}
        for one in records(profile)
        if paper in (None, one["paper"])
        for value in one["values"]
    ]
    columns = "experiment system judge metric type value low high n of substitute"
    return pd.DataFrame(rows, columns=columns.split())


def repeated(profile: str) -> pd.DataFrame:
    """Return how far repeated verdicts vary: experiment, system, metric, value, spread (standard
    deviation of the repeats' means) and alpha (Krippendorff's, over questions)."""
    rows = [
        {"experiment": one["experiment"], **row}
        for one in records(profile)
        for row in one["spread"]
        if row["group"] == OVERALL and row["spread"] is not None
    ]
    columns = "experiment system metric value spread alpha"
    return pd.DataFrame(rows, columns=columns.split())


def agreement(profile: str) -> pd.DataFrame:
    """Return how far judges of the same answers agree, on the questions that all of them scored.

    The columns are experiment, system, metric, judges, n (questions), apart (how far the largest
    score of a question is from the smallest, on average) and alpha (Krippendorff's, of an interval
    scale, which says little where scores hardly vary; missing where all are the same).
    """
    from ragkit.judging import report  # a second of imports

    rows, parts, keys = [], [], ["experiment", "system", "metric"]
    for path in files(profile):
        one, scores = read_json(path), pd.read_csv(path.with_suffix(".scores.csv"))
        labels = {key: one[key] for key in keys[:2]} | {"judge": one["judge"]["name"]}
        decided = scores["metric"].isin(one["departures"]["judge"])
        parts.append(scores[decided].assign(**labels))
    for cell, group in pd.concat(parts).groupby(keys) if parts else ():
        table = group.pivot(index="item_id", columns="judge", values="score").dropna()
        if len(table.columns) > 1:
            apart = (table.max(axis=1) - table.min(axis=1)).mean()
            alpha = report.agreement(table.to_numpy(), level="interval")["alpha"]
            rows.append((*cell, ", ".join(table.columns), len(table), apart, alpha))
    columns = [*keys, "judges", "n", "apart", "alpha"]
    return pd.DataFrame(rows, columns=columns).astype({"apart": float, "alpha": float})


def said(record: Mapping, metric: str) -> str:
    """Return in what a system's metric departs from the paper's, empty if in nothing."""
    parts = [*record["departures"]["all"]]
    parts += [] if metric in RETRIEVAL else record["departures"]["reader"]
    return "; ".join(dict.fromkeys([*parts, *record["departures"]["judge"].get(metric, ())]))


def measured(profile: str, paper: str | None = None) -> pd.DataFrame:
    """Return the printed cells that experiments have filled, as `ragkit.report.tables.fill` does.

    The column ran is the place of the run in `records(profile)`. A system fills the cells of its own
    printed names and no others. If several runs fill a cell, the one counts that departs from the
    paper in least, then the one of most questions.
    """
    known, rows = load(), []
    for ran, record in enumerate(records(profile)):
        if record["experiment"] not in known or paper not in (None, record["paper"]):
            continue
        cells = known[record["experiment"]].cells
        own = (cells[["retriever", "reader"]] == pd.Series(record["fills"])).all(axis=1)
        values = pd.DataFrame(record["values"]).dropna(subset="value")
        for row in cells[own].merge(values, on=["metric", "type"]).to_dict("records"):
            scale = 100.0 if row["unit"] == "percent" else 1.0
            departs = said(record, row["metric"])
            counted = f"{row['n']:,} of {row['of']:,} questions" if row["n"] < row["of"] else ""
            row |= {"measured": scale * row["value"], "substitute": departs, "ran": ran}
            row["note"] = "; ".join(filter(None, [*record["notes"], counted]))
            rows.append(row | {"order": (departs.count(";") + bool(departs), -row["n"])})
    found = pd.DataFrame(rows, columns=[*tables.MEASURED, "ran", "order"])
    found = found.sort_values("order", kind="stable").drop_duplicates(tables.KEY).sort_index()
    return found.drop(columns="order").reset_index(drop=True).astype({"measured": float})


def board(profile: str, paper: str, table: str) -> pd.DataFrame:
    """Return a printed table beside what experiments measured, as `ragkit.report.tables.wide` does.

    The frame is empty if none has been run.
    """
    own = measured(profile, paper)
    own = own[own["table"] == table]
    if own.empty:
        return pd.DataFrame()
    return tables.wide(tables.compare(reported.load(paper, table), own).dropna(subset="measured"))
