"""The report of an evaluation: metrics, one JSON file, and frames of it."""

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

VERSION = 2
# Metric to the level of measurement of its repeats; None if no judge decides it.
METRICS = {
    "answered": None,
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
        None if a part is missing that decides it; an incorrect answer scores 0 without the other.

    References
    ----------
    EnterpriseRAG-Bench, section 5.1 (Leaderboard).
    """
    if correctness is None:
        return None
    return completeness if correctness else 0.0


def completeness(supported: Sequence[bool | None]) -> float | None:
    """Return the share of facts that an answer supports; None if a verdict is missing.

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
        The panel's classes of the documents. Without them every document that is not gold counts.

    Returns
    -------
    int or None
        None without gold documents, or if a class is missing.

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
    """Return the metrics over all records and over each type of question.

    Parameters
    ----------
    records : sequence of mappings
        With type, `applies` (the metrics that the question and the answer allow) and `scores` (by
        metric; None where a verdict is missing); optionally `repeats` (by metric, the score of
        each repeat) and `most` (by metric, the largest possible score; default 1).
    level, n_resamples, seed
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
    options = {"level": level, "n_resamples": n_resamples, "seed": seed}
    groups = {
        name: [record for record in records if record["type"] == name]
        for name in dict.fromkeys(record["type"] for record in records)
    }
    return {
        "overall": _metrics(records, options),
        "by_type": {name: _metrics(group, options) for name, group in groups.items()},
    }


def _metrics(records, options) -> dict[str, Any]:
    table = {}
    for metric in METRICS:
        having = [record for record in records if metric in record["applies"]]
        scores = [(r["scores"][metric], r.get("most", {}).get(metric, 1)) for r in having]
        present = [float(score) for score, _ in scores if score is not None]
        value = low = high = None
        if present:
            value, low, high, _ = _interval(metric, present, options)
        if len(present) < len(scores):
            least = [0.0 if score is None else float(score) for score, _ in scores]
            greatest = [float(most if score is None else score) for score, most in scores]
            low = _interval(metric, least, options).low
            high = _interval(metric, greatest, options).high
        table[metric] = {
            **{k: _plain(v) for k, v in (("value", value), ("low", low), ("high", high))},
            "n": len(present),
            "of": len(scores),
            "missing": len(scores) - len(present),
            **_repeated(metric, having),
        }
    return table


def _interval(metric: str, values: list[float], options) -> stats.Interval:
    if metric in ("answered", "correctness"):
        return stats.wilson_interval(values.count(1.0), len(values), level=options["level"])
    return stats.bootstrap_interval(values, **options)


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


def _plain(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


class _Report:
    """What reports have in common: `data` is the content of the file.

    Parameters
    ----------
    data : dict
    """

    schema: str

    def __init__(self, data: dict[str, Any]):
        self.data = data

    def __eq__(self, other) -> bool:
        return type(other) is type(self) and other.data == self.data

    __hash__ = None

    @property
    def records(self) -> list[dict]:
        """The questions with all their verdicts."""
        return self.data["questions"]

    @property
    def text(self) -> str:
        """The text of the file; the same data give the same bytes."""
        return json.dumps(self.data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def _reviewed(self) -> list[dict]:
        return self.records

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
            rows = [_correction(r, questions) for r in self._reviewed() if r["corrected"]]
            corrected_path(path).unlink(missing_ok=True)
            if rows:
                lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
                write_text(corrected_path(path), "".join(lines))
        return write_text(path, self.text)


def corrected_path(out: str | Path) -> Path:
    """Return the path of the corrected questions: `NAME.corrected.jsonl` beside the report."""
    return Path(out).with_name(f"{Path(out).stem}.corrected.jsonl")


def _correction(record: dict, questions: Mapping[str, dict]) -> dict:
    names = {
        "expected_doc_ids": "gold_doc_ids",
        "gold_answer": "gold_answer",
        "answer_facts": "answer_facts",
    }
    before = questions[record["question_id"]]
    return {
        "question_id": record["question_id"],
        "question_type": record["type"],
        "question": record["question"],
        **{official: record[name] for official, name in names.items()},
        "updated": True,
        "before": {
            "expected_doc_ids": list(before["gold_doc_ids"]),
            "gold_answer": before["answer"],
            "answer_facts": list(before["facts"]),
        },
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
    """The evaluation of one system; `ragkit.judging.evaluate` returns it.

    Parameters
    ----------
    data : dict
        The content of the file.
    """

    schema = "ragkit.evaluation"

    def __repr__(self) -> str:
        system, judge = self.data["system"], self.data["judge"]["name"]
        return f"Evaluation({system!r}, {judge!r}, {len(self.records)} questions)"

    @property
    def questions(self) -> pd.DataFrame:
        """One row a question: question_id, type, corrected, facts, the metrics (NaN: missing)."""
        frame = pd.DataFrame([record["scores"] for record in self.records], dtype=float)
        for place, column in enumerate(("question_id", "type", "corrected")):
            frame.insert(place, column, [record[column] for record in self.records])
        frame.insert(3, "facts", [len(record["verdicts"]["facts"]) for record in self.records])
        return frame

    @property
    def scores(self) -> pd.DataFrame:
        """The scores that are not missing: subject_id (the system), item_id, metric, score."""
        return _scores([(self.data["system"], record) for record in self.records])

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
                    "question_id": record["question_id"],
                    "kind": kind,
                    "item": item,
                    "value": code(kind, verdict["value"]),
                    "verdict": verdict["value"],
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
        groups = {"overall": found["overall"], **found["by_type"]}
        columns = ["value", "low", "high", "n", "of", "missing", "spread", "alpha"]
        rows = [
            {"group": group, "metric": metric} | {name: entry.get(name) for name in columns}
            for group, metrics in groups.items()
            for metric, entry in metrics.items()
        ]
        return pd.DataFrame(rows).astype(
            dict.fromkeys(["value", "low", "high", "spread", "alpha"], float)
        )


def _scores(rows: Iterable[tuple[str, dict]]) -> pd.DataFrame:
    found = [
        (system, record["question_id"], metric, float(record["scores"][metric]))
        for metric in METRICS
        for system, record in rows
        if record["scores"][metric] is not None
    ]
    return pd.DataFrame(found, columns=["subject_id", "item_id", "metric", "score"])


class Comparison(_Report):
    """Two systems on the same questions; `ragkit.judging.compare` returns it.

    Parameters
    ----------
    data : dict
        The content of the file.
    """

    schema = "ragkit.comparison"

    def __repr__(self) -> str:
        a, b = self.data["systems"]
        return f"Comparison({a!r}, {b!r}, {len(self.records)} questions)"

    def _reviewed(self) -> list[dict]:
        return [record["a"] for record in self.records]

    @property
    def preferences(self) -> pd.DataFrame:
        """One row a question: question_id, type, preferred ("a", "b", "tie" or None), the votes
        for a, for b, ties and missing, and the numbers of shared and of each one's documents."""
        rows = []
        for record in self.records:
            votes = [vote["preferred"] for vote in record["preference"]["votes"]]
            rows.append(
                {
                    "question_id": record["question_id"],
                    "type": record["type"],
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
        return _scores([(system, r[side]) for side, system in sides for r in self.records])


def read(path: str | Path) -> Evaluation | Comparison:
    """Read a report that `evaluate` or `compare` wrote.

    Raises
    ------
    DataError
        If the file is no report, or one of another version.
    """
    data = read_json(path)
    kinds = {kind.schema: kind for kind in (Evaluation, Comparison)}
    if not isinstance(data, dict) or data.get("schema") not in kinds:
        raise DataError(f"{path}: not a report of an evaluation", "ragkit evaluate writes one")
    if data.get("version") != VERSION:
        raise DataError(f"{path}: version {data.get('version')!r} of the format, not {VERSION}")
    return kinds[data["schema"]](data)
