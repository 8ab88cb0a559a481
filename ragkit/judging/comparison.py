"""Compare two systems: one pooled gold set, and a panel that prefers one answer or neither.

EnterpriseRAG-Bench, section 5.2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragkit.errors import DataError
from ragkit.judging.case import Case, Options, Source, prepare
from ragkit.judging.goldset import check_panel, turn
from ragkit.judging.harness import judged, preference_task
from ragkit.judging.judges import Judge, ask
from ragkit.judging.report import Comparison, agreement, plain
from ragkit.measures import stats

SIDES = ("a", "b")


def compare(
    questions: Source,
    answers_a: Source,
    answers_b: Source,
    judge: Judge,
    options: Options | None = None,
    *,
    systems: Sequence[str | None] = (None, None),
    out: str | Path | None = None,
) -> Comparison:
    """Evaluate two systems against one gold set, and let a panel compare their answers.

    The documents of both systems are pooled and, if their texts are given, classified by the
    panel; both systems are scored against the same gold set, which is corrected unless
    `options.correct_gold` is False. Every member of the panel compares the answers to each
    question that both systems answer, in a random order (`swaps`).

    The parameters are those of `evaluate`; `systems` names the system of each of the answers.
    Raises `DataError` also if the systems answer no question in common.
    """
    options = options or Options()
    if options.correct_gold is None:
        options = replace(options, correct_gold=options.documents is not None)
    answers = list(zip((answers_a, answers_b), systems, strict=True))
    case = prepare(questions, answers, judge, options, out)
    check_panel(case.panel, "preference")
    names = list(case.answers)
    if not case.shared and options.parts != "documents":
        raise DataError(f"{names[0]!r} and {names[1]!r} answer no question in common")
    report = Comparison(judged(case, Comparison.schema))
    pairs = {name: {} for name in case.questions}
    for record in report.records:
        pairs[record["question_id"]][record["system"]] = record
    votes = _votes(case, pairs)
    table = [_pair(votes.get(name, []), *pair.values()) for name, pair in pairs.items()]
    report.data |= {"preferences": _preferences(table), "pairs": table, "differences": []}
    scores = report.scores
    both = scores.groupby("metric")["subject_id"].transform("nunique") == 2
    if both.any():
        found = stats.compare_systems(scores[both], baseline=names[1], seed=options.seed)
        report.data["differences"] = plain(found)
    if out is not None:
        report.write(out)
    return report


def swaps(names: Sequence[str], members: int, *, seed: int = 0) -> dict[str, tuple[bool, ...]]:
    """Draw for each question and member of the panel whether the second system is shown first.

    The order is random and balanced: questions are paired at random, and the second of a pair
    gets the reverse of the first. So a member that always prefers the answer shown first prefers
    each system equally often, but for one question if their number is odd. It does not depend on
    the order of `names`.
    """
    shuffled = sorted(names, key=lambda name: _drawn(f"{seed}/order/{name}"))
    drawn = {}
    for place, name in enumerate(shuffled):
        first = shuffled[place - place % 2]
        drawn[name] = tuple(
            bool((int(_drawn(f"{seed}/swap/{member}/{first}")[0], 16) + place) % 2)
            for member in range(members)
        )
    return drawn


def preferred(votes: Sequence[str | None]) -> str | None:
    """Return the panel's preference: "a" or "b" with more than half of the votes, else "tie".

    None if no more than half of the panel voted.
    """
    cast = [vote for vote in votes if vote is not None]
    if 2 * len(cast) <= len(votes):
        return None
    return next((side for side in SIDES if 2 * cast.count(side) > len(cast)), "tie")


def _drawn(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _votes(case: Case, pairs: dict[str, dict[str, dict]]) -> dict[str, list[dict]]:
    """Return the panel's votes on each question that both systems answer."""
    order = swaps(case.shared, len(case.panel), seed=case.options.seed)
    votes: dict[str, list[dict]] = {name: [] for name in case.shared}
    for member, judge in enumerate(case.panel):
        tasks = []
        for name in votes:
            a, b = pairs[name].values()
            question = {"text": a["question"], "answer": a["gold_answer"]}
            shown = (b, a) if order[name][member] else (a, b)
            tasks.append(preference_task(question, *(one["answer"] for one in shown)))
        verdicts = ask(judge, tasks, first=turn(case.panel, member, case.options.round))
        for name, verdict in zip(votes, verdicts, strict=True):
            swapped = order[name][member]
            sides = {"first": SIDES[swapped], "second": SIDES[not swapped], "tie": "tie"}
            vote = {"preferred": sides.get(verdict.value), "shown_first": SIDES[swapped]}
            votes[name].append({**vote, "reason": verdict.reason, "model": verdict.model})
    return votes


def _pair(votes: list[dict], a: dict, b: dict) -> dict[str, Any]:
    one, other = a["doc_ids"] or [], b["doc_ids"] or []
    return {
        "question_id": a["question_id"],
        "type": a["question_type"],
        "preferred": preferred([vote["preferred"] for vote in votes]) if votes else None,
        "votes": votes,
        "shared": [doc for doc in one if doc in other],
        "only_a": [doc for doc in one if doc not in other],
        "only_b": [doc for doc in other if doc not in one],
    }


def _preferences(pairs: Sequence[dict]) -> dict[str, Any]:
    """Count the panel's preferences, with Wilson's interval for a's share of those not tied."""
    asked = [pair for pair in pairs if pair["votes"]]
    found = [pair["preferred"] for pair in asked]
    table: dict[str, Any] = {side: found.count(side) for side in (*SIDES, "tie")}
    table |= {"n": len(found) - found.count(None), "of": len(asked), "missing": found.count(None)}
    decided = table["a"] + table["b"]
    share = stats.wilson_interval(table["a"], decided) if decided else None
    table["share_a"] = share and {"value": share.estimate, "low": share.low, "high": share.high}
    votes = [vote for pair in asked for vote in pair["votes"]]
    shown = [
        vote["preferred"] == vote["shown_first"] for vote in votes if vote["preferred"] in SIDES
    ]
    table["first_shown_preferred"] = sum(shown) / len(shown) if shown else None
    values = {"a": 0.0, "tie": 0.5, "b": 1.0, None: float("nan")}
    ratings = [[values[vote["preferred"]] for vote in pair["votes"]] for pair in asked]
    table["agreement"] = agreement(ratings) if ratings and len(ratings[0]) > 1 else None
    return table
