"""The report of an evaluation: metrics, one JSON file, and frames of it.

>>> records = [{"question_type": "basic", "scores": {"correctness": right}} for right in (1, 1, None)]
>>> aggregate(records).query("metric == 'correctness'")[["group", "value", "n"]]
     group  value  n
1  overall    1.0  2
7    basic    1.0  2
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pandas as pd

from ragkit import checks
from ragkit.display import card, table
from ragkit.errors import DataError, UsageError
from ragkit.files import read_json, write_jsonl, write_text
from ragkit.judging.judges import Verdict, code
from ragkit.measures import stats

VERDICT = [field.name for field in fields(Verdict)]
# Metric to the level of measurement of its repeats; None if no judge decides it.
METRICS = {
    "answered": None,
    "correctness": "nominal",
    "completeness": "interval",
    "score": "interval",
    "document_recall": None,
    "invalid_extra_documents": None,
}
# The columns of `ragkit.schema` of a question, by their names in official files and in records.
OFFICIAL = {
    "question_id": "question_id",
    "question_type": "type",
    "question": "text",
    "expected_doc_ids": "gold_doc_ids",
    "gold_answer": "answer",
    "answer_facts": "facts",
}


# The metrics of one question: EnterpriseRAG-Bench, section 5.1.


def leaderboard_score(correctness: float | None, completeness: float | None) -> float | None:
    """Return the leaderboard's score of one answer: completeness if it is correct, else 0.

    None if a part is missing that decides it; an incorrect answer scores 0 without the other.

    >>> leaderboard_score(1.0, 0.5), leaderboard_score(0.0, None), leaderboard_score(None, 0.5)
    (0.5, 0.0, None)
    """
    if correctness is None:
        return None
    return completeness if correctness else 0.0


def completeness(supported: Sequence[bool | None]) -> float | None:
    """Return the share of facts that an answer supports; None if a verdict is missing.

    >>> completeness([True, False]), completeness([True, None])
    (0.5, None)
    """
    if not supported or None in supported:
        return None
    return sum(supported) / len(supported)


def document_recall(retrieved: Iterable[str], gold: Iterable[str]) -> float | None:
    """Return the share of gold documents among the retrieved ones; None without gold documents.

    >>> document_recall(["a", "x"], ["a", "b"])
    0.5
    """
    gold = set(gold)
    return len(gold & set(retrieved)) / len(gold) if gold else None


def invalid_extra_documents(
    retrieved: Iterable[str], gold: Iterable[str], classes: Mapping[str, str | None] | None = None
) -> int | None:
    """Return how many retrieved documents are neither gold nor, by their classes, valid.

    None without gold documents, or if a class is missing (None). Without classes every document
    that is not gold counts.

    >>> invalid_extra_documents(["a", "x", "y"], ["a"], {"x": "valid", "y": "invalid"})
    1
    """
    gold = set(gold)
    if not gold:
        return None
    extra = set(retrieved) - gold
    if classes is None:
        return len(extra)
    found = [classes[doc] for doc in extra]
    return None if None in found else found.count("invalid")


def agreement(ratings: Sequence[Sequence[float]], *, level: str = "nominal") -> dict[str, Any]:
    """Return how far repeated ratings, of shape (units, raters), agree; NaN where one is missing.

    The level of measurement is "nominal", "ordinal" or "interval". The dict has alpha
    (Krippendorff's: 1 for full agreement, 0 for what chance gives; None where all ratings are the
    same), level, units (with two ratings or more, the only ones that count) and unanimous (share
    of those units whose ratings are all equal; None without units). Source: Krippendorff (2019),
    Content Analysis, 4th edition, section 12.3.

    >>> agreement([[1, 1], [0, 0], [1, 0]])
    {'alpha': 0.4444..., 'level': 'nominal', 'units': 3, 'unanimous': 0.6666...}
    """
    checks.choice(level, "level of measurement", ("nominal", "ordinal", "interval"))
    table = pd.DataFrame(ratings, dtype=float)
    table = table[table.count(axis=1) >= 2]
    alpha = None
    if table.stack().nunique() > 1:
        rows = table.to_numpy().T
        alpha = float(krippendorff.alpha(reliability_data=rows, level_of_measurement=level))
    unanimous = float((table.nunique(axis=1) == 1).mean()) if len(table) else None
    return {"alpha": alpha, "level": level, "units": len(table), "unanimous": unanimous}


def aggregate(
    records: Sequence[Mapping[str, Any]], *, n_resamples: int = 9999, seed: int = 0
) -> pd.DataFrame:
    """Return the metrics over all records and over each type of question.

    Parameters
    ----------
    records : sequence of mappings
        With question_type and, by metric, `scores` (None where a verdict is missing, no entry
        where the metric does not apply); optionally `repeats` (the score of each repeat) and `most`
        (the largest possible score; default 1).
    n_resamples, seed
        As in `ragkit.measures.stats.bootstrap_interval`.

    Returns
    -------
    DataFrame
        One row per group ("overall", then each type) and metric: value, low and high (Wilson's
        interval for correctness and answered, BCa bootstrap otherwise), n (questions with a
        score) of `of` (questions that the metric applies to), and missing. Where scores are
        missing, low is that with all of them 0, high that with all at their largest. Of repeated
        verdicts also by_repeat (the mean of each), spread (its standard deviation) and alpha
        (Krippendorff's, over questions).
    """
    groups: dict[str, list] = {}
    for record in records:
        groups.setdefault(record["question_type"], []).append(record)
    options = {"n_resamples": n_resamples, "seed": seed}
    rows = [
        {"group": group, "metric": metric} | _entry(metric, part, options)
        for group, part in [("overall", records), *groups.items()]
        for metric in METRICS
    ]
    numbers = ["value", "low", "high", "spread", "alpha"]
    return pd.DataFrame(rows).astype(dict.fromkeys(numbers, float))


def _entry(metric: str, records, options) -> dict[str, Any]:
    records = [record for record in records if metric in record["scores"]]
    scores = np.array([record["scores"][metric] for record in records], dtype=float)
    most = [record.get("most", {}).get(metric, 1) for record in records]
    lost = np.isnan(scores)
    value = low = high = None
    if not lost.all():
        value, low, high, _ = _interval(metric, scores[~lost], options)
    if lost.any():
        low = _interval(metric, np.where(lost, 0.0, scores), options).low
        high = _interval(metric, np.where(lost, most, scores), options).high
    repeats = [r["repeats"][metric] for r in records if metric in r.get("repeats", {})]
    means = pd.DataFrame(repeats, dtype=float).mean()
    return {
        **{"value": value, "low": low, "high": high},
        **{"n": int((~lost).sum()), "of": len(scores), "missing": int(lost.sum())},
        "by_repeat": means.astype(object).where(means.notna(), None).tolist() or None,
        "spread": means.std(ddof=0) if means.count() > 1 else None,
        "alpha": agreement(repeats, level=METRICS[metric])["alpha"] if repeats else None,
    }


def _interval(metric: str, values: np.ndarray, options) -> stats.Interval:
    if metric in ("answered", "correctness"):
        return stats.wilson_interval(int((values == 1).sum()), len(values))
    return stats.bootstrap_interval(values, **options)


def labelled(
    records: Sequence[Mapping[str, Any]], labels: Mapping[tuple[str, str], float]
) -> pd.DataFrame:
    """Return the correctness that a stricter judge would find, by its labels of some answers.

    `records` have system, question_id and verdicts, whose values (probabilities, if there are any)
    are the predictions of `ragkit.measures.stats.prediction_powered`; `labels` are scores by system
    and question. One row per system and, of two, one of their difference ("a - b"): system, value,
    low, high, p (of a difference of 0), n labels of `of` answers with a verdict, weight of the
    verdicts, and the mean of the labels alone with its interval: labels, labels_low, labels_high.
    NaN if fewer than two answers have a label, or all have.
    """
    rows = []
    for record in records:
        verdict = next((v for v in record["verdicts"] if v["kind"] == "correctness"), None)
        if verdict is not None and verdict["value"] is not None:
            score = verdict.get("score")
            told = float(verdict["value"]) if score is None else score
            key = record["system"], record["question_id"]
            rows.append((*key, told, labels.get(key, np.nan)))
    frame = pd.DataFrame(rows, columns=["system", "question_id", "told", "label"])
    groups = frame.groupby("system", sort=False)
    parts = {name: part.set_index("question_id") for name, part in groups}
    if len(parts) == 2:
        one, other = (part[["told", "label"]] for part in parts.values())
        parts[" - ".join(parts)] = (one - other).dropna(subset="told")
    table = []
    for name, part in parts.items():
        row = {"system": name, "n": int(part["label"].count()), "of": len(part)}
        if min(row["n"], row["of"] - row["n"]) >= 2:
            found = stats.prediction_powered(part["label"], part["told"])
            row |= dict(zip(("value", "low", "high", "p"), found, strict=False))
            row["weight"] = found.weight
            row |= dict(zip(("labels", "labels_low", "labels_high"), found.labels, strict=False))
        table.append(row)
    columns = "system value low high p n of weight labels labels_low labels_high".split()
    return pd.DataFrame(table, columns=columns)


def plain(frame: pd.DataFrame) -> list[dict]:
    """Return the rows of a frame as plain data for JSON, None where a value is missing."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")


class Evaluation:
    """The evaluation of one system, with the content of the file as `data`; see `evaluate`."""

    schema = "ragkit.evaluation"

    def __init__(self, data: dict[str, Any]):
        self.data = data

    def __repr__(self) -> str:
        systems = dict.fromkeys(record["system"] for record in self.records)
        return (
            f"<{type(self).__name__} of {', '.join(systems)}: {len(self.records):,} answers, "
            f"judge {self.data['judge']['name']}>"
        )

    def _repr_html_(self) -> str:
        overall = self.summary[self.summary["group"] == "overall"]
        shown = overall.pivot(index="system", columns="metric", values="value")[list(METRICS)]
        low = [name for name in METRICS if name.startswith("invalid")]
        marked = {"high": [name for name in METRICS if name not in low], "low": low}
        caption = (
            "Means (0 to 1, higher is better; invalid extra documents: a number, lower is better)"
        )
        facts = {"judge": self.data["judge"]["name"], "answers": f"{len(self.records):,}"}
        facts["missing values"] = f"{int(overall['missing'].sum()):,}"
        means = table(shown, caption, **marked, digits=3)
        after = f"Next: `.summary` has intervals and types of questions, {self._more}."
        return card(type(self).__name__, facts, means, after=after)

    _more = "`.verdicts` every verdict with its reason"

    @property
    def records(self) -> list[dict]:
        """What each system gave for each question, with all verdicts and scores."""
        return self.data["questions"]

    @property
    def questions(self) -> pd.DataFrame:
        """One row per system and question: system, question_id, type, corrected, facts (their
        number), and the metrics (NaN: missing, or not to be computed)."""
        rows = pd.DataFrame(self.records).rename(columns={"question_type": "type"})
        scores = pd.DataFrame(list(rows["scores"]), columns=list(METRICS), dtype=float)
        rows["facts"] = rows["answer_facts"].map(len)
        return rows[["system", "question_id", "type", "corrected", "facts"]].join(scores)

    @property
    def scores(self) -> pd.DataFrame:
        """The scores that are not missing: subject_id (the system), item_id, metric, score."""
        rows = self.questions.melt(["system", "question_id"], list(METRICS))
        rows = rows.set_axis(["subject_id", "item_id", "metric", "score"], axis=1)
        return rows.dropna(subset="score", ignore_index=True)

    @property
    def verdicts(self) -> pd.DataFrame:
        """Every verdict: system, question_id, kind, item (fact or document), value (a number in
        [0, 1], NaN where missing), verdict (as given), score (the probability of a yes, if the
        judge estimates it), unsure, reason, model, spread, repeats."""
        rows = [
            {"system": record["system"], "question_id": record["question_id"], **verdict}
            for record in self.records
            for verdict in record["verdicts"]
        ]
        columns = (
            "system question_id kind item value verdict score unsure reason model spread repeats"
        )
        frame = pd.DataFrame(rows, columns=["system", "question_id", "kind", "item", *VERDICT])
        frame = frame.rename(columns={"value": "verdict", "values": "repeats"})
        pairs = zip(frame["kind"], frame["verdict"], strict=True)
        frame["value"] = [code(kind, value) for kind, value in pairs]
        frame["repeats"] = frame["repeats"].map(len)
        return frame[columns.split()].astype({"value": float, "score": float, "spread": float})

    @property
    def summary(self) -> pd.DataFrame:
        """One row per system, group ("overall" or a type) and metric: value, low, high, n, of,
        missing, and spread and alpha where verdicts were repeated (else NaN): see `aggregate`."""
        numbers = dict.fromkeys(["value", "low", "high", "spread", "alpha"], float)
        return pd.DataFrame(self.data["summary"]).drop(columns="by_repeat").astype(numbers)

    def write(self, path: str | Path) -> Path:
        """Write the file atomically, in the place of an older report; `UsageError` if it is none.

        The questions with a corrected gold set are written to `NAME.corrected.jsonl` beside it,
        old and new, in the official columns.
        """
        check_writable(path)
        names = [*OFFICIAL, "before"]
        rows = {
            record["question_id"]: {name: record[name] for name in names} | {"updated": True}
            for record in self.records
            if record["corrected"]
        }
        corrected_path(path).unlink(missing_ok=True)
        if rows:
            write_jsonl(corrected_path(path), rows.values())
        text = json.dumps(self.data, indent=1, ensure_ascii=False, allow_nan=False)
        return write_text(path, text + "\n")


class Comparison(Evaluation):
    """Two systems on the same questions; `ragkit.judging.compare` returns it."""

    schema = "ragkit.comparison"
    _more = "`.differences` tests of them, `.preferences` each question"

    @property
    def preferences(self) -> pd.DataFrame:
        """One row a question: question_id, type, preferred ("a", "b", "tie" or None), the votes
        for a, for b, ties and missing, and the numbers of shared and of each one's documents."""
        frame = pd.DataFrame(self.data["pairs"]).drop(columns="votes")
        documents = ["shared", "only_a", "only_b"]
        return frame.assign(**{name: frame[name].map(len) for name in documents})

    @property
    def differences(self) -> pd.DataFrame:
        """One row a metric: `ragkit.measures.stats.compare_systems` of the two."""
        return pd.DataFrame(self.data["differences"])


def corrected_path(out: str | Path) -> Path:
    """Return the path of the corrected questions: `NAME.corrected.jsonl` beside the report."""
    return Path(out).with_name(f"{Path(out).stem}.corrected.jsonl")


def check_writable(path: str | Path) -> None:
    """Raise `UsageError` if the path holds something else than a report, which is replaced."""
    if Path(path).exists():
        try:
            read(path)
        except DataError:
            raise UsageError(f"{path} exists and is no report", "choose another --out") from None
    elif corrected_path(path).exists():
        raise UsageError(f"{corrected_path(path)} exists, of another report", "move it away")


def read(path: str | Path) -> Evaluation | Comparison:
    """Read a report that `evaluate` or `compare` wrote; `DataError` if the file is none."""
    data = read_json(path)
    for kind in (Evaluation, Comparison):
        if isinstance(data, dict) and data.get("schema") == kind.schema:
            return kind(data)
    raise DataError(f"{path}: not a report of an evaluation", "ragkit evaluate writes one")
