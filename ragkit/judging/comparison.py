"""Two systems head to head: one pooled gold set, and a panel that prefers one answer or neither.

EnterpriseRAG-Bench, section 5.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ragkit.errors import DataError
from ragkit.judging.agreement import agreement
from ragkit.judging.goldset import check_panel
from ragkit.judging.harness import (
    Setup,
    aggregate,
    agreements,
    finish,
    load,
    missing,
    preference_task,
    protect,
    run,
)
from ragkit.judging.judges import Judge
from ragkit.judging.report import Comparison
from ragkit.llm.exchange import digest
from ragkit.measures import stats

SIDES = ("a", "b")


def compare(
    questions: pd.DataFrame | str | Path,
    answers_a: pd.DataFrame | str | Path,
    answers_b: pd.DataFrame | str | Path,
    judge: Judge,
    *,
    out: str | Path | None = None,
    systems: Sequence[str | None] = (None, None),
    documents: Mapping[str, str] | str | Path | None = None,
    panel: Sequence[Judge] | None = None,
    correct_gold: bool | None = None,
    rules: str = "paper",
    cutoff: int | None = None,
    repeat: int = 1,
    seed: int = 0,
    only: Sequence[str] = (),
    again: bool = False,
    retry_missing: bool = False,
    overwrite: bool = False,
    skip_bad: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Evaluate two systems against one gold set, and ask a panel which answers are better.

    The documents of both are pooled and, where their texts are given, put to the panel together;
    both systems are scored against what comes of it. Then every member of the panel sees each
    pair of answers in an order of its own (`swaps`), and what it says is mapped back.

    Parameters
    ----------
    questions, answers_a, answers_b
        As in `evaluate`.
    systems : pair of str, optional
        The systems' names.
    correct_gold : bool, optional
        Default: where documents are given.
    panel : sequence of Judge, optional
        For documents and preferences. Default: `judge` three times.
    out, judge, documents, rules, cutoff, repeat, seed, only, again, retry_missing, overwrite
        As in `evaluate`; `seed` also decides the order of the answers.
    skip_bad, progress
        As in `evaluate`.

    Returns
    -------
    Comparison

    Raises
    ------
    UsageError, DataError
        As in `evaluate`; also if the systems have no question in common.
    """
    inputs = load(questions, answers_a, answers_b, systems=systems, skip_bad=skip_bad)
    protect(out, questions, answers_a, answers_b, documents)
    if correct_gold is None:
        correct_gold = documents is not None
    setup = Setup(inputs, judge, documents, panel, correct_gold, rules, cutoff, repeat, seed)
    check_panel(setup.panel, "preference")
    sides = dict(zip(SIDES, inputs.systems, strict=True))
    shared = inputs.shared
    if not shared:
        raise DataError(f"{sides['a']!r} and {sides['b']!r} answer no question in common")
    order = swaps(shared, len(setup.panel), seed=seed)
    head = setup.head(Comparison.schema, systems=list(sides.values()))

    def block(items: list[tuple[str, int]]) -> list[dict]:
        rounds = dict(items)
        reviews = setup.review(list(rounds), rounds, inputs.systems)
        found: dict[str, dict[str, dict]] = {}
        for side, system in sides.items():
            own = [name for name in rounds if name in inputs.answers[system]]
            records = setup.records(own, rounds, system, reviews)
            found[side] = {record["question_id"]: record for record in records}
        votes = _votes(setup, found, order, rounds)
        return [
            _record(name, rounds[name], found, votes.get(name), setup, sides) for name in rounds
        ]

    records = run(
        head,
        inputs.answered,
        block,
        out=out,
        only=only,
        again=again,
        retry_missing=retry_missing,
        overwrite=overwrite,
        progress=progress,
        lacks=_lacks,
    )
    report = Comparison(
        {
            **head,
            "counts": {side: setup.counts(_side(records, side), sides[side]) for side in SIDES},
            "preferences": _preferences(records),
            "differences": _differences(records, sides, seed),
            "aggregate": {side: aggregate(_side(records, side), seed=seed) for side in SIDES},
            "agreement": {side: agreements(_side(records, side)) for side in SIDES},
            "questions": records,
        }
    )
    if out is not None:
        reviewed = [record["a"] or record["b"] for record in records]
        finish(report, out, reviewed, inputs.questions)
    return report


def swaps(names: Sequence[str], members: int, *, seed: int = 0) -> dict[str, tuple[bool, ...]]:
    """Return for each question and member of the panel whether the second system comes first.

    The order is random, yet balanced: questions are paired at random, and what one of a pair
    draws, the other gets reversed. So a member that always prefers the first answer prefers each
    system equally often, up to one question where their number is odd.

    Parameters
    ----------
    names : sequence of str
        The questions, in any order.
    members : int
    seed : int, default=0
    """
    shuffled = sorted(names, key=lambda name: digest(f"{seed}/order/{name}"))
    drawn = {}
    for place, name in enumerate(shuffled):
        first = shuffled[place - place % 2]
        drawn[name] = tuple(
            bool((int(digest(f"{seed}/swap/{member}/{first}")[0], 16) + place) % 2)
            for member in range(members)
        )
    return drawn


def preferred(votes: Sequence[str | None]) -> str | None:
    """Return what a panel prefers: "a" or "b" if more than half of the votes say so, else "tie".

    None if no more than half of the panel voted.
    """
    cast = [vote for vote in votes if vote is not None]
    if 2 * len(cast) <= len(votes):
        return None
    return next((side for side in SIDES if 2 * cast.count(side) > len(cast)), "tie")


def _votes(setup: Setup, found, order, rounds) -> dict[str, list[dict]]:
    votes: dict[str, list[dict]] = {}
    for member, judge in enumerate(setup.panel):
        seat, seats = setup.seat(member)
        for number in sorted(set(rounds.values())):
            names = [name for name in rounds if name in order and rounds[name] == number]
            tasks = []
            for name in names:
                pair = [found[side][name]["answer"] for side in SIDES]
                record = found["a"][name]
                question = {"text": record["question"], "answer": record["gold_answer"]}
                tasks.append(
                    preference_task(question, *(reversed(pair) if order[name][member] else pair))
                )
            verdicts = judge.judge(tasks, first=number * seats + seat) if tasks else []
            for name, verdict in zip(names, verdicts, strict=True):
                swapped = order[name][member]
                sides = {"first": SIDES[swapped], "second": SIDES[not swapped], "tie": "tie"}
                votes.setdefault(name, []).append(
                    {
                        "preferred": sides.get(verdict.value),
                        "shown_first": SIDES[swapped],
                        "reason": verdict.reason,
                        "model": verdict.model,
                    }
                )
    return votes


def _record(name, number, found, votes, setup: Setup, sides) -> dict[str, Any]:
    lists = {side: setup.retrieved(sides[side], name) or [] for side in SIDES}
    either = found["a"].get(name) or found["b"][name]
    return {
        "question_id": name,
        "type": either["type"],
        "round": number,
        "corrected": either["corrected"],
        "documents": {
            "shared": [doc for doc in lists["a"] if doc in lists["b"]],
            "only_a": [doc for doc in lists["a"] if doc not in lists["b"]],
            "only_b": [doc for doc in lists["b"] if doc not in lists["a"]],
        },
        "preference": {
            "preferred": preferred([vote["preferred"] for vote in votes]) if votes else None,
            "votes": votes or [],
        },
        **{side: found[side].get(name) for side in SIDES},
    }


def _side(records: Sequence[dict], side: str) -> list[dict]:
    return [record[side] for record in records if record[side] is not None]


def _lacks(record: dict) -> int:
    lost = sum(vote["preferred"] is None for vote in record["preference"]["votes"])
    return lost + sum(missing(record[side]) for side in SIDES if record[side] is not None)


def _preferences(records: Sequence[dict]) -> dict[str, Any]:
    """Count the panel's preferences, with Wilson's interval for a's share of those not tied."""
    asked = [record["preference"] for record in records if record["preference"]["votes"]]
    found = [one["preferred"] for one in asked]
    table: dict[str, Any] = {side: found.count(side) for side in (*SIDES, "tie")}
    table |= {"n": len(found) - found.count(None), "of": len(asked), "missing": found.count(None)}
    decided = table["a"] + table["b"]
    share = stats.wilson_interval(table["a"], decided) if decided else None
    table["share_a"] = share and {"value": share.estimate, "low": share.low, "high": share.high}
    shown = [
        (vote["preferred"] == vote["shown_first"])
        for one in asked
        for vote in one["votes"]
        if vote["preferred"] in SIDES
    ]
    table["first_shown_preferred"] = sum(shown) / len(shown) if shown else None
    values = {"a": 0.0, "tie": 0.5, "b": 1.0, None: float("nan")}
    ratings = [[values[vote["preferred"]] for vote in one["votes"]] for one in asked]
    table["agreement"] = agreement(ratings) if ratings and len(ratings[0]) > 1 else None
    return table


def _differences(records: Sequence[dict], sides: Mapping[str, str], seed: int) -> list[dict]:
    """Compare the metrics on the questions that both systems have a score for."""
    scores = Comparison({"systems": list(sides.values()), "questions": list(records)}).scores
    rows = []
    for metric, group in scores.groupby("metric", sort=False):
        table = group.drop(columns="metric")
        if table["subject_id"].nunique() < 2:
            continue
        row = stats.compare_systems(table, baseline=sides["b"], seed=seed).iloc[0]
        plain = {name: getattr(value, "item", lambda v=value: v)() for name, value in row.items()}
        plain = {k: None if isinstance(v, float) and v != v else v for k, v in plain.items()}
        rows.append({"metric": metric, **plain})
    return rows
