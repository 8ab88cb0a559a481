"""Fit the offline judge's coefficients to verdicts: your own, or those that come with it.

`python -m ragkit.judging.offline_calibrate --data FOLDER` makes `offline.toml` again from the
public answers and verdicts; the same data give the same file.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from ragkit.datasets.registry import entry
from ragkit.errors import DataError, UsageError
from ragkit.files import write_text
from ragkit.judging.judges import Task, Verdict
from ragkit.judging.offline import (
    CALIBRATED,
    COEFFICIENTS,
    IGNORANCE,
    Coefficients,
    bare,
    features,
    ignorance,
)
from ragkit.judging.offline_features import FEATURES
from ragkit.judging.offline_text import asks_abstention, parse

# What a task whose verdict needs no judge counts beside a judged one.
ANCHORS = 0.1
# Features that may only speak for a yes (1) or against it (-1), so that no accident of the data
# turns a contradicted number into a merit.
SIGNS = {
    "covered": 1,
    "best": 1,
    "numbers": 1,
    "numbers_missing": -1,
    "conflicts": -1,
    "identifiers": 1,
    "names": 1,
    "reversed": -1,
    "renumbered": -1,
    "precision": 1,
    "abstains": -1,
    "abstentions": -1,
}


def calibrate(
    tasks: Sequence[Task],
    verdicts: Sequence[bool | float | Verdict],
    *,
    groups: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
    penalty: float = 1.0,
    provenance: Mapping[str, Any] | None = None,
) -> Coefficients:
    """Fit the offline judge to verdicts.

    A ridge-penalised logistic regression for each kind of task, on standardised features whose
    direction is fixed where it is known (`SIGNS`). Tasks of one group have one verdict, the share
    of yes among them (an answer's completeness, where the verdict on each fact is not recorded):
    the mean of their probabilities is fitted to it. Gold answers that ask for an abstention are
    set apart; of those, the share of yes is counted by where the answer abstains, with one yes
    and one no added.

    Parameters
    ----------
    tasks : sequence of Task
        Of correctness and facts, some of each.
    verdicts : sequence of bool, float in [0, 1] or Verdict, as long
        Missing verdicts (NaN, or a `Verdict` without value) are left out.
    groups : sequence, as long, optional
        Tasks of one kind with the same group share a verdict. Default: each has its own.
    weights : sequence of float >= 0, as long, optional
        How much a verdict counts; a group's is the mean. Default: 1.
    penalty : float > 0
        On half the squared weights of standardised features.
    provenance : mapping, optional
        What the data are, to be kept with the coefficients.

    Returns
    -------
    Coefficients
        For `OfflineJudge(coefficients)`; `to_toml()` is the text of a file.

    Raises
    ------
    DataError
        If a verdict is outside [0, 1], or a kind has not both yes and no among its verdicts.
    UsageError
        If the lengths differ, a task is of another kind, or the penalty is not positive.
    """
    groups = list(range(len(tasks))) if groups is None else list(groups)
    heavy = np.ones(len(tasks)) if weights is None else np.asarray(weights, dtype=float)
    if not len(tasks) == len(verdicts) == len(groups) == len(heavy):
        raise UsageError("tasks, verdicts, groups and weights should be equally many")
    if not (heavy >= 0).all():
        raise UsageError("weights should not be negative")
    if not penalty > 0:
        raise UsageError(f"penalty should be positive, found {penalty!r}")
    for task in tasks:
        if task.kind not in CALIBRATED:
            raise UsageError(f"the offline judge is fitted to {' and '.join(CALIBRATED)} only")
    targets = np.array([_share(verdict) for verdict in verdicts], dtype=float)
    unanswerable: dict[str, list[float]] = {place: [] for place in IGNORANCE}
    rows: dict[str, list[int]] = {kind: [] for kind in CALIBRATED}
    for place, task in enumerate(tasks):
        answer = bare(task.fields["answer"])
        if np.isnan(targets[place]) or not parse(answer).tokens:
            continue
        wanted = task.fields["gold" if task.kind == "correctness" else "fact"]
        if not asks_abstention(wanted):
            rows[task.kind].append(place)
        elif task.kind == "correctness":
            unanswerable[ignorance(answer)].append(targets[place])
    models = {}
    for kind, places in rows.items():
        matrix = np.array([list(features(tasks[place]).values()) for place in places])
        models[kind] = _fit(
            kind,
            matrix,
            targets[places],
            [groups[place] for place in places],
            heavy[places],
            penalty,
        )
    table = {
        name: round((float(sum(seen)) + 1) / (len(seen) + 2), 4)
        for name, seen in unanswerable.items()
    }
    return Coefficients(models, table, dict(provenance or {}))


def _share(verdict) -> float:
    value = verdict.value if isinstance(verdict, Verdict) else verdict
    value = float("nan") if value is None else float(value)
    if value < 0 or value > 1:
        raise DataError(f"a verdict should be yes, no, or a share from 0 to 1, found {value!r}")
    return value


def _fit(kind, matrix, targets, groups, heavy, penalty: float) -> dict[str, float]:
    """Return intercept and weights that make the groups' mean probabilities meet their targets."""
    from scipy.optimize import minimize

    if not len(targets) or targets.max() == targets.min():
        raise DataError(f"{kind}: expected verdicts of both kinds, yes and no")
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    group = np.array([numbers[one] for one in groups])
    size = np.bincount(group)
    target, weigh = np.bincount(group, targets) / size, np.bincount(group, heavy) / size
    middle, scale = matrix.mean(axis=0), matrix.std(axis=0)
    scale = np.where(scale > 1e-9, scale, 1)  # a feature that does not vary gets no weight
    standard = (matrix - middle) / scale

    def loss(weights):
        with np.errstate(over="ignore"):
            each = 1 / (1 + np.exp(-(weights[0] + standard @ weights[1:])))
        mean = np.clip(np.bincount(group, each) / size, 1e-9, 1 - 1e-9)
        value = -weigh @ (target * np.log(mean) + (1 - target) * np.log(1 - mean))
        slope = weigh * (mean - target) / (mean * (1 - mean)) / size
        slope = slope[group] * each * (1 - each)
        gradient = np.concatenate([[slope.sum()], standard.T @ slope + penalty * weights[1:]])
        return value + penalty * (weights[1:] ** 2).sum() / 2, gradient

    signs = [SIGNS.get(name, 0) for name in FEATURES]
    bounds = [(0 if sign > 0 else None, 0 if sign < 0 else None) for sign in (0, *signs)]
    start = np.zeros(len(bounds))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    weights = found.x[1:] / scale
    intercept = found.x[0] - weights @ middle
    values = zip(("intercept", *FEATURES), (intercept, *weights), strict=True)
    # Four decimals, so that the last bits of another machine's arithmetic do not show.
    return {name: round(float(value), 4) + 0.0 for name, value in values}


def fit_public(frame, *, provenance: Mapping[str, Any] | None = None) -> Coefficients:
    """Return coefficients fitted to rows of `judged_answers`.

    Correctness is fitted to the verdicts, facts to the completeness of each answer. Systems hardly
    ever give the gold answer with one number changed or one "not" added, so verdicts alone teach
    nothing about that: the questions' gold answers and facts themselves join in as right, and
    copies with a changed number or a negation as wrong (`ragkit.judging.offline_probe.perturb`),
    each with the weight `ANCHORS`.
    """
    from ragkit.judging.offline_verdicts import correctness_tasks, fact_tasks

    facts, rows = fact_tasks(frame)
    anchors, truth = _anchors(frame)
    tasks = [*correctness_tasks(frame), *facts, *anchors]
    return calibrate(
        tasks,
        [*frame["correct"].astype(float), *frame["completeness"].to_numpy()[rows], *truth],
        groups=[
            *(("answer", place) for place in range(len(frame))),
            *rows,
            *(("anchor", place) for place in range(len(anchors))),
        ],
        weights=[
            ANCHORS if place >= len(tasks) - len(anchors) else 1.0 for place in range(len(tasks))
        ],
        provenance=provenance,
    )


def _anchors(frame) -> tuple[list[Task], list[float]]:
    """Return tasks whose verdicts need no judge, and those verdicts."""
    from ragkit.judging.offline_probe import perturb

    asked = frame.drop_duplicates("question_id")[["question_id", "question", "gold", "facts"]]
    asked = asked.rename(columns={"question": "text"})
    tasks, truth = [], []
    for kind, field, column in (("correctness", "gold", "gold"), ("fact", "fact", "facts")):
        texts = asked.explode(column).rename(columns={column: "answer"})
        made = perturb(texts[["question_id", "text", "answer"]])
        made = made[made["change"].isin(["gold", "number changed", "negated"])]
        for question, gold, answer, change in made[
            ["question", "gold", "answer", "change"]
        ].to_numpy():
            tasks.append(Task(kind, {"question": question, field: gold, "answer": answer}))
            truth.append(float(change == "gold"))
    return tasks, truth


@click.command()
@click.option("--data", help="The folder with the public answers. Default: $RAGKIT_DATA.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), default=COEFFICIENTS)
def main(data: str | None, out: Path) -> None:
    """Fit the coefficients that come with the package."""
    from ragkit.datasets import files
    from ragkit.judging.offline_verdicts import judged_answers

    frame = judged_answers(data=data)
    frame = frame[frame["judge"].isin(["A", "B"])]
    used = [path for name in ("erb_answers", "erb_judged") for path in files(name)]
    used.append("enterpriserag_bench/questions.jsonl")
    fitted = fit_public(
        frame,
        provenance={
            "systems": sorted(set(frame["judge"] + "/" + frame["system"])),
            "questions": int(frame["question_id"].nunique()),
            "answers": len(frame),
            "anchors": ANCHORS,
            "sha256": [f"{path} {entry(path).sha256}" for path in used],
        },
    )
    write_text(out, fitted.to_toml())
    click.echo(f"{out}: {fitted.digest}")


if __name__ == "__main__":
    main()
