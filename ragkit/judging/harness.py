"""EnterpriseRAG-Bench's harness: judge systems' answers to all questions, aggregate, compare.

Sections 5.1 (metrics) and 5.2 (comparison of two systems).

>>> from ragkit import datasets
>>> class Mild(Judge):
...     name, kinds = "mild", frozenset({"correctness", "fact", "preference"})
...
...     def judge(self, tasks, number=0):
...         return [Verdict("tie" if t.kind == "preference" else True, "", self.name) for t in tasks]
>>> asked = datasets.load("enterpriserag_bench").questions.head(2)
>>> gold = asked[["question_id", "answer"]].assign(system="gold", doc_ids=asked["gold_doc_ids"])
>>> evaluate(asked, gold, Mild()).summary.query("metric == 'correctness'")["value"].tolist()
[1.0, 1.0]
>>> other = gold.assign(system="other", answer="Nobody knows.")
>>> estimate(asked, [(other, None)], Mild())[0]["verdicts"]
8
>>> compare(asked, gold, other, Mild()).data["preferences"]["tie"]
2
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ragkit.errors import DataError
from ragkit.judging import report as made
from ragkit.judging.case import Case, Given, Options, Source, head, prepare
from ragkit.judging.goldset import Review, check_panel, review, turn
from ragkit.judging.judges import Judge, Task, Verdict, ask, code
from ragkit.measures import stats

SIDES = ("a", "b")
COUNTED = {"a": "a", "b": "b", "tie": "tie", "missing": None}


def evaluate(
    questions: Source,
    answers: Source,
    judge: Judge,
    options: Options | None = None,
    *,
    system: str | None = None,
    out: str | Path | None = None,
) -> made.Evaluation:
    """Judge a system's answers and documents.

    A question without an answer is not correct, supports no fact, and has a document recall of 0.
    Completeness and score are those of the questions with facts. A verdict that the judge failed
    to give is missing; the same call asks again for those that are neither in a model's ledger nor
    in the cache's store.

    Parameters
    ----------
    questions : DataFrame or path
        A frame `questions` with gold answers, or a file for `read_questions`.
    answers : DataFrame or path
        A frame `answers`, or a file for `read_answers`.
    judge : Judge
    options : Options, optional
    system : str, optional
        The system to evaluate, where the answers are of several; or a name for the system of a
        file that has no column `system` (default: the file's name).
    out : path, optional
        Write the report there, in the place of an older one.

    Raises
    ------
    UsageError
        If options do not go together, the answers are of several systems, or `out` is no report.
    DataError
        If an input is not valid, or nothing is there to evaluate.
    """
    case = prepare(questions, [(answers, system)], judge, options or Options(), out)
    report = made.Evaluation(judged(case, made.Evaluation.schema))
    if out is not None:
        report.write(out)
    return report


def judged(case: Case, schema: str) -> dict[str, Any]:
    """Return the content of a report on all systems of a case."""
    reviews: dict[str, Review] = {}
    options = case.options
    if case.documents is not None:
        given = list(case.questions.values()), case.pools, case.documents, case.panel
        how = {"rules": options.rules, "correct": bool(options.correct_gold)}
        reviews = review(*given, **how, round=options.round)
    found = {system: _judge_system(case, system, reviews) for system in case.answers}
    return {
        **head(case, schema),
        "counts": {system: _counts(case, records) for system, records in found.items()},
        "summary": [
            {"system": system, **row}
            for system, records in found.items()
            for row in made.plain(made.aggregate(records, seed=options.seed))
        ],
        "agreement": {system: _agreements(records) for system, records in found.items()},
        "labelled": made.plain(made.labelled(sum(found.values(), []), case.labels))
        if case.labels
        else [],
        "questions": [record for records in found.values() for record in records],
    }


def estimate(
    questions: Source,
    answers: Sequence[tuple[Source, str | None]],
    judge: Judge,
    options: Options | None = None,
) -> list[dict[str, Any]]:
    """Return what `evaluate` or `compare` would ask and its price, without asking.

    `answers` holds one pair (`evaluate`) or two (`compare`) of answers and a system's name or
    None; the other parameters are those of `evaluate`.

    Returns
    -------
    list of dict
        For each part: what, judge, verdicts, estimate (`ragkit.llm.Estimate`, or None if they are
        free). A panel may stop early, so its part is an upper bound. New gold answers, whose
        number is unknown, are not included.
    """
    case = prepare(questions, answers, judge, options or Options())
    round, repeat = case.options.round, case.options.repeat
    plan, for_panel = [], {}
    for system, own in case.answers.items():
        asked = [task for n, q in case.questions.items() for task in _answer_tasks(q, own[n])]
        plan.append((f"answers of {system}", judge, asked, repeat, round * repeat))
    if case.documents is not None:
        for_panel["documents (at most)"] = [
            Task.of("validity", case.questions[name]["text"], case.documents[doc])
            for name, pool in case.pools.items()
            for doc in pool
        ]
    both = list(case.answers.values())
    if len(both) == 2:
        for_panel["preferences"] = [
            Task.of("preference", q["text"], q["answer"], *(own[n].answer for own in both))
            for n, q in ((n, case.questions[n]) for n in case.shared)
        ]
    for what, asked in for_panel.items():
        for n, member in enumerate(case.panel):
            name = f"{what}, member {n + 1} of the panel"
            plan.append((name, member, asked, 1, turn(case.panel, n, round)))
    return [
        {
            "what": what,
            "judge": member.name,
            "verdicts": len(asked) * times,
            "estimate": member.estimate(asked, repeat=times, first=first),
        }
        for what, member, asked, times, first in plan
    ]


def _answer_tasks(question: Mapping[str, Any], given: Given) -> list[Task]:
    """Return the tasks for one answer, correctness first; none if it is missing or empty."""
    if not given.answer:
        return []
    pairs = [("correctness", question["answer"]), *(("fact", fact) for fact in question["facts"])]
    return [Task.of(kind, question["text"], wanted, given.answer) for kind, wanted in pairs]


def _judge_system(case: Case, system: str, reviews: Mapping[str, Review]) -> list[dict]:
    """Return a record of every question: the system's answer, its verdicts and scores."""
    repeat, asked, tasks = case.options.repeat, {}, {}
    for name, question in case.questions.items():
        one = reviews.get(name)
        if one is not None and one.changed:
            new = {"answer": one.answer, "facts": one.facts, "gold_doc_ids": one.gold_after}
            question = {**question, **new}
        asked[name] = question
        tasks[name] = _answer_tasks(question, case.answers[system][name])
    flat = [task for own in tasks.values() for task in own]
    given = iter(ask(case.judge, flat, repeat=repeat, first=case.options.round * repeat))
    verdicts = {name: [next(given) for _ in own] for name, own in tasks.items()}
    return [
        _record(case, system, question, verdicts[name], reviews.get(name))
        for name, question in asked.items()
    ]


def _record(
    case: Case, system: str, question: dict, verdicts: list[Verdict], review: Review | None
) -> dict:
    given, repeat = case.answers[system][question["question_id"]], case.options.repeat
    scores: dict[str, float | None] = {}
    repeats, most, gold = {}, {}, question["gold_doc_ids"]
    items = [("correctness", ""), *(("fact", fact) for fact in question["facts"])]
    if case.options.parts != "documents":
        if not verdicts:  # no answer, which is wrong by rule
            reason = "no answer was given" if given.answer is None else "the answer is empty"
            spread, values = 0.0 if repeat > 1 else None, [False] * repeat
            verdicts = [Verdict(False, reason, "rule", values, [], spread)] * len(items)
        scores = {"answered": float(bool(given.answer))} | _scores([v.value for v in verdicts])
        if repeat > 1:
            each = [_scores(values) for values in zip(*(v.values for v in verdicts), strict=True)]
            repeats = {metric: [one[metric] for one in each] for metric in each[0]}
    if case.options.parts != "answers" and gold:
        scores["document_recall"] = made.document_recall(given.doc_ids or [], gold)
        if given.doc_ids is not None:
            # A question that the panel did not review has no extra document.
            classes = review.classes if review else None if case.documents is None else {}
            found = made.invalid_extra_documents(given.doc_ids, gold, classes)
            scores["invalid_extra_documents"] = found
            most["invalid_extra_documents"] = len(set(given.doc_ids) - set(gold))
    before, changed = case.questions[question["question_id"]], bool(review and review.changed)
    told = [(*item, verdict) for item, verdict in zip(items, verdicts, strict=False)]
    for doc, found in review.classes.items() if review else ():
        reason = " | ".join(review.reasons[doc])
        told.append(("validity", doc, Verdict(found, reason, "panel", review.votes[doc])))
    record = {
        "system": system,
        **{name: question[column] for name, column in made.OFFICIAL.items()},
        "answer": given.answer,
        "doc_ids": given.doc_ids,
        "corrected": changed,
        "before": {name: before[column] for name, column in made.OFFICIAL.items()}
        if changed
        else None,
        "scores": scores,
        "most": most,
        "repeats": repeats,
        "verdicts": [{"kind": kind, "item": item, **asdict(one)} for kind, item, one in told],
        "review": asdict(review) if review else None,
    }
    return json.loads(json.dumps(record))


def _scores(values: Sequence[bool | None]) -> dict[str, float | None]:
    """Return the scores by the verdicts on correctness and on each fact, if there is any."""
    correct = None if values[0] is None else float(values[0])
    if len(values) == 1:
        return {"correctness": correct}
    share = made.completeness(values[1:])
    score = made.leaderboard_score(correct, share)
    return {"correctness": correct, "completeness": share, "score": score}


def _counts(case: Case, records: Sequence[dict]) -> dict[str, int]:
    """Return the numbers of questions, of answers, and of verdicts, those of a panel included."""
    verdicts = [verdict for record in records for verdict in record["verdicts"]]
    given = [one for one in verdicts if one["kind"] != "validity"]
    votes = [vote for one in verdicts if one["kind"] == "validity" for vote in one["values"]]
    lost = [one["value"] for one in given].count(None) + votes.count(None)
    undecided = sum((record["review"] or {}).get("status") == "undecided" for record in records)
    return {
        "questions": len(records),
        "answered": sum(bool(record["answer"]) for record in records),
        "without_documents": sum(record["doc_ids"] is None for record in records),
        "without_facts": sum(not record["answer_facts"] for record in records),
        "corrected": sum(record["corrected"] for record in records),
        "verdicts": len(given),
        "unsure_verdicts": sum(verdict["unsure"] for verdict in given),
        "missing_verdicts": lost + undecided,
        "skipped_lines": len(case.skipped),
    }


def _agreements(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the agreement of repeated verdicts, and of the panel's members."""
    table, ratings = {}, {}
    for verdict in (one for record in records for one in record["verdicts"]):
        values = [code(verdict["kind"], value) for value in verdict["values"]]
        ratings.setdefault(verdict["kind"], []).append(values)
    for kind in ("correctness", "fact"):
        if len(ratings.get(kind, [[]])[0]) > 1:
            table[kind] = made.agreement(ratings[kind])
    if "validity" in ratings:
        table["panel"] = made.agreement(ratings["validity"], level="ordinal")
    return table


def compare(
    questions: Source,
    answers_a: Source,
    answers_b: Source,
    judge: Judge,
    options: Options | None = None,
    *,
    systems: Sequence[str | None] = (None, None),
    out: str | Path | None = None,
) -> made.Comparison:
    """Evaluate two systems against one gold set, and let a panel compare their answers.

    As `evaluate`; `systems` names the system of each of the answers. The panel classifies the
    pooled documents if their texts are given, which corrects the gold set unless
    `options.correct_gold` is False. Every member compares the answers to each question that both
    systems answer (`DataError` if there is none), in a random order (`swaps`).
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
    report = made.Comparison(judged(case, made.Comparison.schema))
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
        report.data["differences"] = made.plain(found)
    if out is not None:
        report.write(out)
    return report


def swaps(names: Sequence[str], members: int, *, seed: int = 0) -> dict[str, tuple[bool, ...]]:
    """Draw for each question and member of the panel whether the second system is shown first.

    Questions are paired at random, and the second of a pair gets the reverse of the first. So a
    member that always prefers the answer shown first prefers each system equally often, but for
    one question if their number is odd. The order of `names` does not matter.

    >>> swaps(["q1", "q2"], 3)
    {'q2': (True, True, True), 'q1': (False, False, False)}
    """

    def draw(*parts) -> str:
        return hashlib.sha256("/".join(map(str, (seed, *parts))).encode()).hexdigest()

    shuffled = sorted(names, key=lambda name: draw("order", name))
    drawn = {}
    for place, name in enumerate(shuffled):
        first = shuffled[place - place % 2]
        drawn[name] = tuple(
            bool((int(draw("swap", member, first)[0], 16) + place) % 2) for member in range(members)
        )
    return drawn


def preferred(votes: Sequence[str | None]) -> str | None:
    """Return the panel's preference: "a" or "b" with more than half of the votes, else "tie".

    None if no more than half of the panel voted.

    >>> preferred(["a", "b", "a"]), preferred(["a", "b"]), preferred(["a", None, None])
    ('a', 'tie', None)
    """
    cast = [vote for vote in votes if vote is not None]
    if 2 * len(cast) <= len(votes):
        return None
    return next((side for side in SIDES if 2 * cast.count(side) > len(cast)), "tie")


def _votes(case: Case, pairs: dict[str, dict[str, dict]]) -> dict[str, list[dict]]:
    """Return the panel's votes on each question that both systems answer."""
    order = swaps(case.shared, len(case.panel), seed=case.options.seed)
    votes: dict[str, list[dict]] = {name: [] for name in case.shared}
    for member, judge in enumerate(case.panel):
        tasks = []
        for name in votes:
            a, b = pairs[name].values()
            shown = [one["answer"] for one in ((b, a) if order[name][member] else (a, b))]
            tasks.append(Task.of("preference", a["question"], a["gold_answer"], *shown))
        verdicts = ask(judge, tasks, first=turn(case.panel, member, case.options.round))
        for name, verdict in zip(votes, verdicts, strict=True):
            swapped = order[name][member]
            sides = {"first": SIDES[swapped], "second": SIDES[not swapped], "tie": "tie"}
            vote = {"preferred": sides.get(verdict.value), "shown_first": SIDES[swapped]}
            votes[name].append({**vote, "reason": verdict.reason, "model": verdict.model})
    return votes


def _pair(votes: list[dict], a: dict, b: dict) -> dict[str, Any]:
    cast = [vote["preferred"] for vote in votes]
    one, other = a["doc_ids"] or [], b["doc_ids"] or []
    return {
        "question_id": a["question_id"],
        "type": a["question_type"],
        "preferred": preferred(cast) if votes else None,
        **{name: cast.count(vote) for name, vote in COUNTED.items()},
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
    table["agreement"] = made.agreement(ratings) if ratings and len(ratings[0]) > 1 else None
    return table
