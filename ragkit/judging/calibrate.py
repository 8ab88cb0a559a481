"""Fit the offline judge's coefficients to verdicts: your own, or those that come with it.

`python -m ragkit.judging.calibrate --data FOLDER` writes `offline.toml` again from the public
answers and verdicts and the embedded sample; the same data give the same file.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

from ragkit import checks, datasets
from ragkit.datasets.registry import entry
from ragkit.errors import DataError, UsageError
from ragkit.files import write_text
from ragkit.judging import offline
from ragkit.judging.attacks import ATTACKS, SAMPLES, perturb, sample_attacks
from ragkit.judging.features import ATTACK, FEATURES
from ragkit.judging.judges import KINDS, Task, Verdict
from ragkit.judging.judges import tasks as tasks_of
from ragkit.judging.offline import CALIBRATED, COEFFICIENTS, IGNORANCE, Coefficients, OfflineJudge
from ragkit.judging.offline_text import asks_abstention, parse
from ragkit.judging.verdicts import fact_tasks, judged_answers

# The weight of a task whose verdict needs no judge; a judged one has 1.
ANCHORS = 0.1
# Outside the margin of unsure verdicts, this share of the verdicts agrees.
SURE = 0.9


def calibrate(
    tasks: Sequence[Task],
    verdicts: Sequence[bool | float | Verdict],
    *,
    groups: Sequence[Hashable] | None = None,
    weights: Sequence[float] | None = None,
    penalty: float = 1.0,
    provenance: Mapping[str, Any] | None = None,
) -> Coefficients:
    """Fit the offline judge to verdicts; `OfflineJudge(coefficients)` then uses them.

    A ridge-penalised logistic regression for each kind of task, on standardised features whose
    direction is fixed where it is known (`ragkit.judging.features.FEATURES`). Where gold answers
    ask for an abstention, the share of yes is counted by where the answer abstains, with one yes
    and one no added. A third regression separates attacks from harmless changes of gold answers
    and from the answers of systems. The margin of unsure verdicts is the smallest beyond which
    `SURE` of the verdicts on correctness agree.

    Parameters
    ----------
    tasks : sequence of Task
        Of correctness and facts, some of each; `DataError` if a kind lacks yes or no.
    verdicts : sequence of bool, float in [0, 1] or Verdict, as long
        Missing verdicts (NaN, or a `Verdict` without value) are left out.
    groups : sequence, as long, optional
        Tasks of one kind with the same group share a verdict, the share of yes among them (an
        answer's completeness): the mean of their probabilities is fitted to it. Default: each
        task has its own.
    weights : sequence of float >= 0, as long, optional
        The weight of each verdict; a group's is the mean. Default: 1.
    penalty : float > 0
        On half the squared weights of standardised features.
    provenance : mapping, optional
        A description of the data, kept with the coefficients.
    """
    groups = list(range(len(tasks))) if groups is None else list(groups)
    heavy = np.ones(len(tasks)) if weights is None else np.asarray(weights, dtype=float)
    if not len(tasks) == len(verdicts) == len(groups) == len(heavy):
        raise UsageError("tasks, verdicts, groups and weights should be equally many")
    checks.number(float(heavy.min(initial=0)), "a weight", least=0)
    checks.number(penalty, "penalty", least=1e-12)
    values = [getattr(verdict, "value", verdict) for verdict in verdicts]
    targets = np.array(values, dtype=float)  # None becomes NaN
    if (targets < 0).any() or (targets > 1).any():
        raise DataError("a verdict should be yes, no, or a share from 0 to 1")
    rows, unanswerable = _split(tasks, targets)
    tables = {}
    for kind, places in rows.items():
        own = [groups[place] for place in places]
        matrix = _matrix([tasks[place] for place in places])
        tables[kind] = _fit(kind, matrix, targets[places], own, heavy[places], penalty)
    plain = [place for place in rows["correctness"] if heavy[place] == heavy.max()]
    judged = [tasks[place] for place in plain]
    tables["attack"] = _fit_attacks(judged, tables["correctness"], penalty)
    tables["unanswerable"] = {
        name: round((float(sum(seen)) + 1) / (len(seen) + 2), 4)
        for name, seen in unanswerable.items()
    }
    tables["unsure"] = {"margin": 0.0}
    sure = np.array(OfflineJudge(Coefficients(tables)).probability(judged)) - 0.5
    margin = _margin(np.abs(sure), (sure >= 0) == (targets[plain] >= 0.5))
    return Coefficients({**tables, "unsure": {"margin": margin}}, dict(provenance or {}))


def _matrix(tasks: Sequence[Task], model: str = "") -> np.ndarray:
    return np.array([list(offline.features(task, model).values()) for task in tasks])


def _split(tasks, targets) -> tuple[dict[str, list[int]], dict[str, list[float]]]:
    """Return the places of answerable tasks by kind, and the verdicts on unanswerable questions."""
    unanswerable: dict[str, list[float]] = {place: [] for place in IGNORANCE}
    rows: dict[str, list[int]] = {kind: [] for kind in CALIBRATED}
    for place, task in enumerate(tasks):
        if task.kind not in CALIBRATED:
            raise UsageError(f"the offline judge is fitted to {' and '.join(CALIBRATED)} only")
        answer = offline.bare(task.fields["answer"])
        if np.isnan(targets[place]) or not parse(answer).tokens:
            continue
        if not asks_abstention(offline.wanted(task)):
            rows[task.kind].append(place)
        elif task.kind == "correctness":
            unanswerable[offline.ignorance(answer)].append(targets[place])
    return rows, unanswerable


def _fit_attacks(answers: list[Task], correctness: dict[str, float], penalty: float) -> dict:
    """Return the regression that tells attacks from harmless changes and from systems' answers.

    Attacks have half of the weight, the two others a quarter each. Within each, a task weighs as
    much as the regression of correctness takes it for right: what that rejects is no danger.
    """
    frame = sample_attacks(held_out=False)
    tasks = [*tasks_of("correctness", frame), *answers]
    side = np.array([*frame["change"].isin(ATTACKS).astype(int), *([2] * len(answers))])
    intercept, *weights = correctness.values()
    heavy = 1 / (1 + np.exp(-(intercept + _matrix(tasks) @ weights)))
    parts = np.array([0.25, 0.5, 0.25]) * len(side)
    share = parts / np.maximum(np.bincount(side, heavy, minlength=3), 1e-9)
    matrix, targets = _matrix(tasks, "attack"), (side == 1).astype(float)
    return _fit("attack", matrix, targets, range(len(side)), heavy * share[side], penalty)


def _margin(distance: np.ndarray, agree: np.ndarray) -> float:
    """Return the smallest distance, of hundredths up to 0.45, beyond which `SURE` agree."""
    steps = [step / 100 for step in range(45)]
    shares = ((one, agree[distance >= one]) for one in steps)
    return next((one for one, known in shares if not known.size or known.mean() >= SURE), 0.45)


def _fit(kind: str, matrix, targets, groups, heavy, penalty: float) -> dict[str, float]:
    """Return intercept and weights with which the groups' mean probabilities fit their targets."""
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

    names = ATTACK if kind == "attack" else FEATURES
    bounds = [(0 if s > 0 else None, 0 if s < 0 else None) for s in (0, *names.values())]
    start = np.zeros(len(bounds))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    weights = found.x[1:] / scale
    intercept = found.x[0] - weights @ middle
    values = zip(("intercept", *names), (intercept, *weights), strict=True)
    # Four decimals, so that the last bits of another machine's arithmetic do not matter.
    return {name: round(float(value), 4) + 0.0 for name, value in values}


def fit_public(frame: pd.DataFrame, *, provenance: Mapping[str, Any] | None = None):
    """Fit the coefficients to rows of `judged_answers`.

    Correctness is fitted to the verdicts, facts to the completeness of each answer. Systems hardly
    ever give the gold answer with one number changed or one "not" added. So gold answers and facts
    take part as right, and copies with a changed number or a negation as wrong
    (`ragkit.judging.attacks.perturb`), each with the weight `ANCHORS`.
    """
    facts, rows = fact_tasks(frame)
    anchors, truth = _anchors(frame)
    places = range(len(frame))
    return calibrate(
        [*tasks_of("correctness", frame), *facts, *anchors],
        [*frame["correct"].astype(float), *frame["completeness"].to_numpy()[rows], *truth],
        groups=[*(("answer", place) for place in places), *rows, *map(str, range(len(anchors)))],
        weights=[1.0] * (len(frame) + len(facts)) + [ANCHORS] * len(anchors),
        provenance=provenance,
    )


def _anchors(frame: pd.DataFrame) -> tuple[list[Task], list[float]]:
    """Return tasks whose verdicts need no judge, and those verdicts."""
    asked = frame.drop_duplicates("question_id").rename(columns={"question": "text"})
    found, truth = [], []
    for kind, column in (("correctness", "gold"), ("fact", "facts")):
        texts = asked.drop(columns="answer").explode(column).rename(columns={column: "answer"})
        made = perturb(texts)
        made = made[made["change"].isin(["gold", "number changed", "negated"])]
        found += tasks_of(kind, made.rename(columns={"gold": KINDS[kind].fields[1]}))
        truth += [float(change == "gold") for change in made["change"]]
    return found, truth


@click.command()
@click.option("--data", help="The folder with the public answers. Default: $RAGKIT_DATA.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), default=COEFFICIENTS)
def main(data: str | None, out: Path) -> None:
    """Fit the coefficients that come with the package."""
    frame = judged_answers(data=data)
    frame = frame[frame["judge"].isin(["A", "B"])]
    used = [*datasets.files("erb_answers"), *datasets.files("erb_judged")]
    used.append("enterpriserag_bench/questions.jsonl")
    provenance = {
        "systems": sorted(set(frame["judge"] + "/" + frame["system"])),
        "questions": int(frame["question_id"].nunique()),
        "answers": len(frame),
        "anchors": ANCHORS,
        "attacks": f"on the embedded samples of {' and '.join(SAMPLES)}",
        "sha256": [f"{path} {entry(path).sha256}" for path in used],
    }
    fitted = fit_public(frame, provenance=provenance)
    write_text(out, fitted.to_toml())
    click.echo(f"{out}: {fitted.digest}")


if __name__ == "__main__":
    main()
