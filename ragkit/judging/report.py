"""The report of an evaluation: metrics, one JSON file, and frames of it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pandas as pd

from ragkit import checks
from ragkit.errors import DataError, UsageError
from ragkit.files import read_json, write_text
from ragkit.judging.judges import code
from ragkit.measures import stats

# Metric to the level of measurement of its repeats; None if no judge decides it.
METRICS = {
    "answered": None,
    "correctness": "nominal",
    "completeness": "interval",
    "score": "interval",
    "document_recall": None,
    "invalid_extra_documents": None,
}
# The official columns of a question, and their names in a record.
_OFFICIAL = {
    "expected_doc_ids": "gold_doc_ids",
    "gold_answer": "gold_answer",
    "answer_facts": "answer_facts",
}


# The metrics of one question: EnterpriseRAG-Bench, section 5.1.


def leaderboard_score(correctness: float | None, completeness: float | None) -> float | None:
    """Return the leaderboard's score of one answer: completeness if it is correct, else 0.

    None if a part is missing that decides it; an incorrect answer scores 0 without the other.
    """
    if correctness is None:
        return None
    return completeness if correctness else 0.0


def completeness(supported: Sequence[bool | None]) -> float | None:
    """Return the share of facts that an answer supports; None if a verdict is missing."""
    if not supported or None in supported:
        return None
    return sum(supported) / len(supported)


def document_recall(retrieved: Iterable[str], gold: Iterable[str]) -> float | None:
    """Return the share of gold documents among the retrieved ones; None without gold documents."""
    gold = set(gold)
    return len(gold & set(retrieved)) / len(gold) if gold else None


def invalid_extra_documents(
    retrieved: Iterable[str], gold: Iterable[str], classes: Mapping[str, str | None] | None = None
) -> int | None:
    """Return how many retrieved documents are neither gold nor, by their classes, valid.

    None without gold documents, or if a class is missing (None). Without classes every document
    that is not gold counts.
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
    """Return how far repeated ratings agree.

    Parameters
    ----------
    ratings : array of float, shape (units, raters)
        NaN where a rating is missing.
    level : {"nominal", "ordinal", "interval"}

    Returns
    -------
    dict
        alpha (Krippendorff's: 1 for full agreement, 0 for what chance gives; None where all
        ratings are the same), level, units (with two ratings or more, the only ones that count),
        unanimous (share of those units whose ratings are all equal; None without units).

    References
    ----------
    Krippendorff (2019), Content Analysis, 4th edition, section 12.3.
    """
    checks.choice(level, "level of measurement", ("nominal", "ordinal", "interval"))
    table = np.asarray(ratings, dtype=float)
    table = table[(~np.isnan(table)).sum(axis=1) >= 2]
    alpha = None
    if len(np.unique(table[~np.isnan(table)])) > 1:
        alpha = float(krippendorff.alpha(reliability_data=table.T, level_of_measurement=level))
    same = [len(set(row[~np.isnan(row)])) == 1 for row in table]
    unanimous = float(np.mean(same)) if same else None
    return {"alpha": alpha, "level": level, "units": len(table), "unanimous": unanimous}


def aggregate(
    records: Sequence[Mapping[str, Any]], *, n_resamples: int = 9999, seed: int = 0
) -> dict[str, Any]:
    """Return the metrics over all records and over each type of question.

    Parameters
    ----------
    records : sequence of mappings
        With type, `applies` (the metrics that the question and the answer allow) and `scores` (by
        metric; None where a verdict is missing); optionally `repeats` (by metric, the score of
        each repeat) and `most` (by metric, the largest possible score; default 1).
    n_resamples, seed
        As in `ragkit.measures.stats.bootstrap_interval`.

    Returns
    -------
    dict
        `overall`, and `by_type` in order of appearance: metric to value, low and high (Wilson's
        interval for correctness and answered, BCa bootstrap otherwise), n (questions with a
        score) of `of` (questions that the metric applies to), and missing. Missing scores widen
        the interval: it reaches from the lower end with all of them 0 to the upper end with all
        of them at their largest. With repeats also by_repeat (the mean of each), spread (its
        standard deviation) and alpha (Krippendorff's, over questions).
    """
    options = {"n_resamples": n_resamples, "seed": seed}
    groups: dict[str, list] = {}
    for record in records:
        groups.setdefault(record["type"], []).append(record)
    return {
        "overall": _metrics(records, options),
        "by_type": {name: _metrics(group, options) for name, group in groups.items()},
    }


def _metrics(records, options) -> dict[str, Any]:
    table = {}
    for metric in METRICS:
        having = [record for record in records if metric in record["applies"]]
        scores = np.array([r["scores"][metric] for r in having], dtype=float)  # None becomes NaN
        most = np.array([r.get("most", {}).get(metric, 1) for r in having], dtype=float)
        lost = np.isnan(scores)
        value = low = high = None
        if not lost.all():
            value, low, high, _ = _interval(metric, scores[~lost], options)
        if lost.any():
            low = _interval(metric, np.where(lost, 0.0, scores), options).low
            high = _interval(metric, np.where(lost, most, scores), options).high
        table[metric] = {
            **{"value": _plain(value), "low": _plain(low), "high": _plain(high)},
            **{"n": int((~lost).sum()), "of": len(having), "missing": int(lost.sum())},
            **_repeated(metric, having),
        }
    return table


def _interval(metric: str, values: np.ndarray, options) -> stats.Interval:
    if metric in ("answered", "correctness"):
        return stats.wilson_interval(int((values == 1).sum()), len(values))
    return stats.bootstrap_interval(values, **options)


def _repeated(metric: str, records) -> dict[str, Any]:
    rows = [record["repeats"][metric] for record in records if metric in record.get("repeats", {})]
    if not rows:
        return {}
    means = pd.DataFrame(rows, dtype=float).mean()
    return {
        "by_repeat": [_plain(mean) for mean in means],
        "spread": _plain(means.std(ddof=0)) if means.count() > 1 else None,
        "alpha": agreement(rows, level=METRICS[metric])["alpha"],
    }


def _plain(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


class _Report:
    """What reports have in common.

    Parameters
    ----------
    data : dict
        The content of the file.
    """

    schema: str

    def __init__(self, data: dict[str, Any]):
        self.data = data

    @property
    def records(self) -> list[dict]:
        """The questions with all their verdicts."""
        return self.data["questions"]

    def write(self, path: str | Path, questions: Mapping[str, dict] | None = None) -> Path:
        """Write the file atomically, in the place of an older report.

        Parameters
        ----------
        path : path-like
        questions : mapping of question_id to question, optional
            The questions before correction. With them, the questions with a corrected gold set
            are written to `NAME.corrected.jsonl`, old and new, in the official columns.

        Raises
        ------
        UsageError
            If the file exists and is no report.
        """
        check_writable(path)
        if questions is not None:
            records = [record.get("a", record) for record in self.records]
            rows = [_correction(r, questions[r["question_id"]]) for r in records if r["corrected"]]
            corrected_path(path).unlink(missing_ok=True)
            if rows:
                lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
                write_text(corrected_path(path), "".join(lines))
        text = json.dumps(self.data, indent=1, ensure_ascii=False, allow_nan=False)
        return write_text(path, text + "\n")


def corrected_path(out: str | Path) -> Path:
    """Return the path of the corrected questions: `NAME.corrected.jsonl` beside the report."""
    return Path(out).with_name(f"{Path(out).stem}.corrected.jsonl")


def _correction(record: dict, before: dict) -> dict:
    old = before | {"gold_answer": before["answer"], "answer_facts": before["facts"]}
    return {
        "question_id": record["question_id"],
        "question_type": record["type"],
        "question": record["question"],
        **{official: record[name] for official, name in _OFFICIAL.items()},
        "updated": True,
        "before": {official: old[name] for official, name in _OFFICIAL.items()},
    }


def check_writable(path: str | Path) -> None:
    """Raise `UsageError` if the path holds something else than a report, which is replaced."""
    if Path(path).exists():
        try:
            read(path)
        except DataError:
            raise UsageError(f"{path} exists and is no report", "choose another --out") from None
    elif corrected_path(path).exists():
        raise UsageError(f"{corrected_path(path)} exists, of another report", "move it away")


class Evaluation(_Report):
    """The evaluation of one system; `ragkit.judging.evaluate` returns it."""

    schema = "ragkit.evaluation"

    @property
    def questions(self) -> pd.DataFrame:
        """One row a question: question_id, type, corrected, facts, the metrics (NaN: missing)."""
        rows = [
            {name: record[name] for name in ("question_id", "type", "corrected")}
            | {"facts": len(record["verdicts"]["facts"])}
            | record["scores"]
            for record in self.records
        ]
        return pd.DataFrame(rows).astype(dict.fromkeys(METRICS, float))

    @property
    def scores(self) -> pd.DataFrame:
        """The scores that are not missing: subject_id (the system), item_id, metric, score."""
        return scores_of([(self.data["system"], record) for record in self.records])

    @property
    def verdicts(self) -> pd.DataFrame:
        """Every verdict: question_id, kind, item (fact or document), value (a number in [0, 1],
        NaN where missing), verdict (as given), score (the probability of a yes, if the judge
        estimates it), unsure, reason, model, spread, repeats."""
        rows = []
        for record in self.records:
            found = record["verdicts"]
            listed = [("correctness", "", found["correctness"])] if found["correctness"] else []
            listed += [("fact", fact["fact"], fact) for fact in found["facts"]]
            review = record["review"] or {"classes": {}}
            for doc, class_ in review["classes"].items():
                reason = " | ".join(review["reasons"][doc])
                told = {"value": class_, "reason": reason, "model": "panel", "spread": None}
                listed.append(("validity", doc, {**told, "values": review["votes"][doc]}))
            rows += [
                {
                    **{"question_id": record["question_id"], "kind": kind, "item": item},
                    **{"value": code(kind, verdict["value"]), "verdict": verdict["value"]},
                    "score": verdict.get("score", math.nan),
                    "unsure": verdict.get("unsure", False),
                    **{name: verdict[name] for name in ("reason", "model", "spread")},
                    "repeats": len(verdict["values"]),
                }
                for kind, item, verdict in listed
            ]
        return pd.DataFrame(rows)

    @property
    def summary(self) -> pd.DataFrame:
        """One row a group ("overall" or a type) and metric: value, low, high, n, of, missing, and
        spread and alpha where verdicts were repeated (else NaN)."""
        found = self.data["aggregate"]
        numbers = ["value", "low", "high", "spread", "alpha"]
        columns = [*numbers[:3], "n", "of", "missing", *numbers[3:]]
        rows = [
            {"group": group, "metric": metric} | {name: entry.get(name) for name in columns}
            for group, metrics in {"overall": found["overall"], **found["by_type"]}.items()
            for metric, entry in metrics.items()
        ]
        return pd.DataFrame(rows).astype(dict.fromkeys(numbers, float))


def scores_of(rows: Iterable[tuple[str, dict]]) -> pd.DataFrame:
    """Return the scores of pairs of system and record as a frame: see `Evaluation.scores`."""
    found = [
        (system, record["question_id"], metric, float(record["scores"][metric]))
        for metric in METRICS
        for system, record in rows
        if record["scores"][metric] is not None
    ]
    return pd.DataFrame(found, columns=["subject_id", "item_id", "metric", "score"])


class Comparison(_Report):
    """Two systems on the same questions; `ragkit.judging.compare` returns it."""

    schema = "ragkit.comparison"

    @property
    def preferences(self) -> pd.DataFrame:
        """One row a question: question_id, type, preferred ("a", "b", "tie" or None), the votes
        for a, for b, ties and missing, and the numbers of shared and of each one's documents."""
        rows = []
        for record in self.records:
            votes = [vote["preferred"] for vote in record["preference"]["votes"]]
            rows.append(
                {
                    **{name: record[name] for name in ("question_id", "type")},
                    "preferred": record["preference"]["preferred"],
                    **{name: votes.count(name) for name in ("a", "b", "tie")},
                    "missing": votes.count(None),
                    **{name: len(docs) for name, docs in record["documents"].items()},
                }
            )
        return pd.DataFrame(rows)

    @property
    def differences(self) -> pd.DataFrame:
        """One row a metric: `ragkit.measures.stats.compare_systems` of the two."""
        return pd.DataFrame(self.data["differences"])

    @property
    def scores(self) -> pd.DataFrame:
        """The scores of both systems: subject_id, item_id, metric, score."""
        sides = list(zip("ab", self.data["systems"], strict=True))
        return scores_of([(system, r[side]) for side, system in sides for r in self.records])


def read(path: str | Path) -> Evaluation | Comparison:
    """Read a report that `evaluate` or `compare` wrote; `DataError` if the file is none."""
    data = read_json(path)
    for kind in (Evaluation, Comparison):
        if isinstance(data, dict) and data.get("schema") == kind.schema:
            return kind(data)
    raise DataError(f"{path}: not a report of an evaluation", "ragkit evaluate writes one")
