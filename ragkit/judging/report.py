"""What an evaluation leaves behind: one JSON file that people can read, and frames made from it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ragkit.errors import DataError, UsageError
from ragkit.files import read_json, write_text
from ragkit.judging.agreement import agreement
from ragkit.judging.judges import code
from ragkit.measures import stats

VERSION = 1
# Metric to the level at which its repeats are compared; None for what no judge decides.
METRICS = {
    "correctness": "nominal",
    "completeness": "interval",
    "score": "interval",
    "document_recall": None,
    "invalid_extra_documents": None,
}


def leaderboard_score(correctness: float | None, completeness: float | None) -> float | None:
    """Return the leaderboard's score of one answer: completeness if it is correct, else 0.

    Parameters
    ----------
    correctness : 0, 1 or None
    completeness : float in [0, 1] or None

    Returns
    -------
    float in [0, 1], or None
        None if a part that matters is missing; an incorrect answer scores 0 without the other.

    References
    ----------
    EnterpriseRAG-Bench, section 5.1 (Leaderboard).
    """
    if correctness is None:
        return None
    return completeness if correctness else 0.0


def completeness(supported: Sequence[bool | None]) -> float | None:
    """Return the share of facts that an answer supports; None if one is missing or none is given.

    References
    ----------
    EnterpriseRAG-Bench, section 5.1 (Completeness).
    """
    if not supported or None in supported:
        return None
    return sum(supported) / len(supported)


def document_recall(retrieved: Iterable[str], gold: Iterable[str]) -> float | None:
    """Return the share of gold documents among the retrieved ones; None without gold documents.

    References
    ----------
    EnterpriseRAG-Bench, section 5.1 (Document Recall).
    """
    gold = set(gold)
    return len(gold & set(retrieved)) / len(gold) if gold else None


def invalid_extra_documents(
    retrieved: Iterable[str], gold: Iterable[str], classes: Mapping[str, str | None] | None = None
) -> int | None:
    """Return how many retrieved documents are neither gold nor known to bear on the question.

    Parameters
    ----------
    retrieved, gold : iterables of str
    classes : mapping of str to {"required", "valid", "invalid", None}, optional
        What a panel called the documents. Without it every document that is not gold counts.

    Returns
    -------
    int or None
        None without gold documents, or where a class that matters is missing.

    References
    ----------
    EnterpriseRAG-Bench, section 5.1 (Invalid Extra Documents).
    """
    gold = set(gold)
    if not gold:
        return None
    extra = set(retrieved) - gold
    if classes is None:
        return len(extra)
    found = [classes[doc] for doc in extra]
    return None if None in found else found.count("invalid")


def aggregate(
    records: Sequence[Mapping[str, Any]],
    *,
    level: float = 0.95,
    n_resamples: int = 9999,
    seed: int = 0,
) -> dict[str, Any]:
    """Return the metrics of all records and of each type of question.

    Parameters
    ----------
    records : sequence of mappings
        With type, `applies` (the metrics that the question and the answer allow) and `scores` (by
        metric; None where a verdict is missing). `repeats`, if there, holds the score of each
        repeat, by metric.
    level, n_resamples, seed
        As in `ragkit.measures.stats.bootstrap_interval`.

    Returns
    -------
    dict
        `overall`, and `by_type` in order of appearance: metric to value, low and high (Wilson's
        interval for correctness, BCa bootstrap otherwise), n judged of `of` questions that the
        metric applies to, and missing. With repeats also by_repeat (the mean of each), spread
        (its standard deviation) and alpha (Krippendorff's, over questions).
    """
    options = {"level": level, "n_resamples": n_resamples, "seed": seed}
    types = dict.fromkeys(record["type"] for record in records)
    return {
        "overall": _metrics(records, options),
        "by_type": {
            name: _metrics([record for record in records if record["type"] == name], options)
            for name in types
        },
    }


def _metrics(records, options) -> dict[str, Any]:
    table = {}
    for metric in METRICS:
        having = [record for record in records if metric in record["applies"]]
        values = [record["scores"][metric] for record in having]
        present = [float(value) for value in values if value is not None]
        entry = {
            "value": None,
            "low": None,
            "high": None,
            "n": len(present),
            "of": len(values),
            "missing": len(values) - len(present),
        }
        if present and metric == "correctness":
            interval = stats.wilson_interval(
                sum(value == 1 for value in present), len(present), level=options["level"]
            )
        elif present:
            interval = stats.bootstrap_interval(present, **options)
        if present:
            found = (interval.estimate, interval.low, interval.high)
            entry |= dict(zip(("value", "low", "high"), map(_plain, found), strict=True))
        entry |= _repeated(metric, having)
        table[metric] = entry
    return table


def _repeated(metric: str, records) -> dict[str, Any]:
    rows = [record["repeats"][metric] for record in records if metric in record.get("repeats", {})]
    if not rows or len(rows[0]) < 2:
        return {}
    ratings = np.array(rows, dtype=float)  # None becomes NaN
    means = [
        _plain(np.mean(one[~np.isnan(one)])) if (~np.isnan(one)).any() else None
        for one in ratings.T
    ]
    known = [mean for mean in means if mean is not None]
    found = agreement(ratings, level=METRICS[metric])
    return {
        "by_repeat": means,
        "spread": float(np.std(known)) if len(known) > 1 else None,
        "alpha": found["alpha"],
    }


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


class Evaluation:
    """One system's evaluation. `data` is what the file holds; the rest are views of it.

    Parameters
    ----------
    data : dict
        As made by `ragkit.judging.evaluate`.
    """

    schema = "ragkit.evaluation"

    def __init__(self, data: dict[str, Any]):
        self.data = data

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.data['system']!r}, {self.data['judge']['name']!r}, "
            f"{len(self.records)} questions)"
        )

    def __eq__(self, other) -> bool:
        return type(other) is type(self) and other.data == self.data

    __hash__ = None

    @property
    def records(self) -> list[dict]:
        """The questions with all their verdicts."""
        return self.data["questions"]

    @property
    def questions(self) -> pd.DataFrame:
        """One row a question: question_id, type, corrected, facts, the metrics (NaN: missing)."""
        return pd.DataFrame(
            [
                {
                    "question_id": record["question_id"],
                    "type": record["type"],
                    "corrected": record["corrected"],
                    "facts": len(record["verdicts"]["facts"]),
                    **{
                        metric: math.nan
                        if record["scores"][metric] is None
                        else float(record["scores"][metric])
                        for metric in METRICS
                    },
                }
                for record in self.records
            ]
        )

    @property
    def scores(self) -> pd.DataFrame:
        """The scores that there are: subject_id (the system), item_id, metric, score."""
        rows = [
            (self.data["system"], record["question_id"], metric, float(record["scores"][metric]))
            for metric in METRICS
            for record in self.records
            if record["scores"][metric] is not None
        ]
        return pd.DataFrame(rows, columns=["subject_id", "item_id", "metric", "score"])

    @property
    def verdicts(self) -> pd.DataFrame:
        """Every verdict: question_id, kind, item (fact or document), value (a number in [0, 1],
        NaN where missing), verdict (as given), score (how sure the judge is, where it tells),
        reason, model, spread, repeats."""
        rows = []
        for record in self.records:
            name, found = record["question_id"], record["verdicts"]
            listed = [("correctness", "", found["correctness"])] if found["correctness"] else []
            listed += [("fact", fact["fact"], fact) for fact in found["facts"]]
            for kind, item, verdict in listed:
                rows.append(
                    {
                        "question_id": name,
                        "kind": kind,
                        "item": item,
                        "value": code(kind, verdict["value"]),
                        "verdict": verdict["value"],
                        "score": verdict.get("score", math.nan),
                        "reason": verdict["reason"],
                        "model": verdict["model"],
                        "spread": verdict["spread"],
                        "repeats": len(verdict["values"]),
                    }
                )
            for doc, kind_of in ((record["review"] or {}).get("classes") or {}).items():
                rows.append(
                    {
                        "question_id": name,
                        "kind": "validity",
                        "item": doc,
                        "value": code("validity", kind_of),
                        "verdict": kind_of,
                        "score": math.nan,
                        "reason": " | ".join(record["review"]["reasons"][doc]),
                        "model": "panel",
                        "spread": None,
                        "repeats": len(record["review"]["votes"][doc]),
                    }
                )
        columns = ["question_id", "kind", "item", "value", "verdict", "score", "reason", "model"]
        return pd.DataFrame(rows, columns=[*columns, "spread", "repeats"])

    @property
    def summary(self) -> pd.DataFrame:
        """One row a group ("overall" or a type) and metric: value, low, high, n, of, missing, and
        spread and alpha where verdicts were repeated (else NaN)."""
        found = self.data["aggregate"]
        groups = {"overall": found["overall"], **found["by_type"]}
        rows = [
            {
                "group": group,
                "metric": metric,
                **{
                    name: entry.get(name)
                    for name in ("value", "low", "high", "n", "of", "missing", "spread", "alpha")
                },
            }
            for group, metrics in groups.items()
            for metric, entry in metrics.items()
        ]
        numbers = ["value", "low", "high", "spread", "alpha"]
        return pd.DataFrame(rows).astype(dict.fromkeys(numbers, float))

    @property
    def text(self) -> str:
        """The file's text; the same data give the same bytes."""
        return json.dumps(self.data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def write(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the file, atomically.

        Raises
        ------
        UsageError
            If it exists and `overwrite` is not set.
        """
        if Path(path).exists() and not overwrite:
            raise UsageError(f"{path} exists", "choose another name, or overwrite=True")
        return write_text(path, self.text)


class Comparison:
    """Two systems on the same questions, under one gold set and one panel.

    Parameters
    ----------
    data : dict
        As made by `ragkit.judging.compare`.
    """

    schema = "ragkit.comparison"

    def __init__(self, data: dict[str, Any]):
        self.data = data

    def __repr__(self) -> str:
        a, b = self.data["systems"]
        return f"Comparison({a!r}, {b!r}, {len(self.records)} questions)"

    def __eq__(self, other) -> bool:
        return type(other) is Comparison and other.data == self.data

    __hash__ = None

    text = Evaluation.text
    write = Evaluation.write

    @property
    def records(self) -> list[dict]:
        """The questions with both systems' verdicts and the panel's preferences."""
        return self.data["questions"]

    @property
    def preferences(self) -> pd.DataFrame:
        """One row a question: question_id, type, preferred ("a", "b", "tie" or None), the votes
        for a, for b, ties and missing, and the counts of shared and of each one's documents."""
        rows = []
        for record in self.records:
            votes = [vote["preferred"] for vote in record["preference"]["votes"]]
            row = {
                "question_id": record["question_id"],
                "type": record["type"],
                "preferred": record["preference"]["preferred"],
            }
            row |= {name: votes.count(name) for name in ("a", "b", "tie")}
            row["missing"] = votes.count(None)
            row |= {name: len(docs) for name, docs in record["documents"].items()}
            rows.append(row)
        return pd.DataFrame(rows)

    @property
    def differences(self) -> pd.DataFrame:
        """One row a metric: `ragkit.measures.stats.compare_systems` of the two."""
        return pd.DataFrame(self.data["differences"])

    @property
    def scores(self) -> pd.DataFrame:
        """The scores of both systems: subject_id, item_id, metric, score."""
        rows = [
            (system, record["question_id"], metric, float(record[side]["scores"][metric]))
            for metric in METRICS
            for side, system in zip("ab", self.data["systems"], strict=True)
            for record in self.records
            if record[side] and record[side]["scores"][metric] is not None
        ]
        return pd.DataFrame(rows, columns=["subject_id", "item_id", "metric", "score"])


def read(path: str | Path) -> Evaluation | Comparison:
    """Read what `evaluate` or `compare` wrote.

    Raises
    ------
    DataError
        If the file is no report, or one of a later version.
    """
    data = read_json(path)
    kinds = {kind.schema: kind for kind in (Evaluation, Comparison)}
    if not isinstance(data, dict) or data.get("schema") not in kinds:
        raise DataError(f"{path}: not a report of an evaluation", "ragkit evaluate writes one")
    if data.get("version") != VERSION:
        raise DataError(
            f"{path}: version {data.get('version')!r} of the format, expected {VERSION}"
        )
    return kinds[data["schema"]](data)
