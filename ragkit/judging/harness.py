"""EnterpriseRAG-Bench's harness: judge a system's answers to all questions, and aggregate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ragkit.judging import goldset
from ragkit.judging.case import Case, Options, head, prepare
from ragkit.judging.judges import Judge, Task, Verdict, ask, code
from ragkit.judging.report import (
    METRICS,
    Evaluation,
    aggregate,
    agreement,
    completeness,
    document_recall,
    invalid_extra_documents,
    leaderboard_score,
)

Source = pd.DataFrame | str | Path


def evaluate(
    questions: Source,
    answers: Source,
    judge: Judge,
    options: Options | None = None,
    *,
    system: str | None = None,
    out: str | Path | None = None,
) -> Evaluation:
    """Judge a system's answers and documents.

    All questions count: a question without an answer is not correct, supports no fact, and has
    a document recall of 0. A verdict that the judge failed to give is missing. The same call
    again asks only for verdicts that are neither in a model's ledger nor in the cache's store.

    Parameters
    ----------
    questions : DataFrame or path
        A frame `questions` with gold answers and facts, or a file for `read_questions`.
    answers : DataFrame or path
        A frame `answers`, or a file for `read_answers`.
    judge : Judge
    options : Options, optional
    system : str, optional
        The system to evaluate, where the answers are of several; or a name for the system of a
        file that has no column `system` (default: the file's name).
    out : path, optional
        Write the report there. An existing report is replaced.

    Raises
    ------
    UsageError
        If options do not go together, the answers are of several systems, or `out` exists and is
        no report.
    DataError
        If a file has bad lines, a frame is not valid, or no answers or no documents are there to
        evaluate.
    """
    case = prepare(questions, [(answers, system)], judge, options or Options(), out)
    (name,) = case.answers
    records = judge_system(case, name, review_pools(case))
    report = Evaluation(
        {
            **head(case, Evaluation.schema, system=name),
            "counts": counts(case, records),
            "aggregate": aggregate(records, seed=case.options.seed),
            "agreement": agreements(records),
            "questions": records,
        }
    )
    if out is not None:
        report.write(out, case.questions)
    return report


def estimate(
    questions: Source,
    answers: Sequence[tuple[Source, str | None]],
    judge: Judge,
    options: Options | None = None,
) -> list[dict[str, Any]]:
    """Return what `evaluate` or `compare` would ask and its price, without asking.

    Parameters
    ----------
    questions, judge, options
        As in `evaluate`.
    answers : sequence of pairs
        The answers as in `evaluate`, with the name of the system or None: one pair for
        `evaluate`, two for `compare`.

    Returns
    -------
    list of dict
        For each part: what, judge, verdicts, estimate (`ragkit.llm.Estimate`, or None for a judge
        that costs nothing). The panel's part is an upper bound, since it stops early; new gold
        answers are not included, since their number is unknown.
    """
    case = prepare(questions, answers, judge, options or Options(), None)
    first, repeat = case.options.round * case.options.repeat, case.options.repeat
    asked, plan, for_panel = case.questions.items(), [], []
    for system in case.answers:
        own = [task for name, q in asked for task in answer_tasks(q, case.text(system, name))]
        plan.append((f"answers of {system}", judge, own, repeat, first))
    if case.documents is not None:
        texts = [(q, case.documents[doc]) for name, q in asked for doc in case.pool(name)]
        validity = [goldset.validity_task(question, text) for question, text in texts]
        for_panel.append(("documents (at most)", validity))
    if len(case.answers) == 2:
        pairs = [
            preference_task(case.questions[name], *(case.text(s, name) for s in case.answers))
            for name in case.shared
        ]
        for_panel.append(("preferences", pairs))
    for what, tasks in for_panel:
        for number, member in enumerate(case.panel):
            turn = goldset.turn(case.panel, number, case.options.round)
            plan.append((f"{what}, member {number + 1} of the panel", member, tasks, 1, turn))
    return [
        {
            "what": what,
            "judge": member.name,
            "verdicts": len(tasks) * times,
            "estimate": member.estimate(tasks, repeat=times, first=number),
        }
        for what, member, tasks, times, number in plan
    ]


def answer_tasks(question: Mapping[str, Any], answer: str | None) -> list[Task]:
    """Return the tasks for one answer, correctness first; none if it is missing or empty."""
    if not answer:
        return []
    common = {"question": question["text"], "answer": answer}
    return [
        Task("correctness", {**common, "gold": question["answer"]}),
        *(Task("fact", {**common, "fact": fact}) for fact in question["facts"]),
    ]


def preference_task(question: Mapping[str, Any], first: str, second: str) -> Task:
    """Return the task of comparing two answers."""
    fields = {"question": question["text"], "gold": question["answer"]}
    return Task("preference", {**fields, "first": first, "second": second})


def review_pools(case: Case) -> dict[str, goldset.Review]:
    """Return the panel's reviews of the retrieved documents, none without their texts."""
    if case.documents is None:
        return {}
    return goldset.review(
        list(case.questions.values()),
        {name: case.pool(name) for name in case.questions},
        case.documents,
        case.panel,
        rules=case.options.rules,
        correct=bool(case.options.correct_gold),
        round=case.options.round,
    )


def judge_system(case: Case, system: str, reviews: Mapping[str, goldset.Review]) -> list[dict]:
    """Return a record of every question: the system's answer, its verdicts and scores."""
    repeat = case.options.repeat
    asked = {name: _revised(one, reviews.get(name)) for name, one in case.questions.items()}
    tasks = {name: answer_tasks(one, case.text(system, name)) for name, one in asked.items()}
    flat = [task for own in tasks.values() for task in own]
    first = case.options.round * repeat
    given = iter(ask(case.judge, flat, repeat=repeat, first=first))
    verdicts = {name: [next(given) for _ in own] for name, own in tasks.items()}
    return [
        _record(case, system, question, verdicts[name], reviews.get(name))
        for name, question in asked.items()
    ]


def _revised(question: dict, review: goldset.Review | None) -> dict:
    if review is None or not review.changed:
        return question
    new = {"answer": review.answer, "facts": review.facts, "gold_doc_ids": review.required}
    return {**question, **new}


def _record(case: Case, system: str, question: dict, verdicts: list[Verdict], review) -> dict:
    name = question["question_id"]
    text, retrieved = case.text(system, name), case.retrieved(system, name)
    scores: dict[str, float | None] = {}
    repeats, most = {}, {}
    if case.options.parts != "documents":
        verdicts = verdicts or _by_rule(text, len(question["facts"]), case.options.repeat)
        scores = {"answered": float(bool(text))} | judged_scores([v.value for v in verdicts])
        if case.options.repeat > 1:
            each = [judged_scores(values) for values in zip(*(v.values for v in verdicts))]  # noqa: B905
            repeats = {metric: [one[metric] for one in each] for metric in each[0]}
    gold = question["gold_doc_ids"]
    if case.options.parts != "answers" and gold:
        scores["document_recall"] = document_recall(retrieved or [], gold)
        if retrieved is not None:
            # A question that the panel did not review has no extra document.
            classes = review.classes if review else None if case.documents is None else {}
            found = invalid_extra_documents(retrieved, gold, classes)
            scores["invalid_extra_documents"] = found
            most["invalid_extra_documents"] = len(set(retrieved) - set(gold))
    told = [verdict.to_dict() for verdict in verdicts]
    return {
        "question_id": name,
        "type": question["type"],
        "corrected": bool(review and review.changed),
        "question": question["text"],
        "gold_answer": question["answer"],
        "answer": text,
        "answer_facts": list(question["facts"]),
        "gold_doc_ids": list(gold),
        "doc_ids": retrieved,
        "applies": list(scores),
        "scores": {metric: scores.get(metric) for metric in METRICS},
        "most": most,
        **({"repeats": repeats} if repeats else {}),
        "verdicts": {
            "correctness": told[0] if told else None,
            "facts": [
                {"fact": fact, **verdict}
                for fact, verdict in zip(question["facts"], told[1:], strict=False)
            ],
        },
        "review": review.to_dict() if review else None,
    }


def _by_rule(text: str | None, facts: int, repeat: int) -> list[Verdict]:
    """Return the verdicts on an answer that is missing or empty."""
    reason = "no answer was given" if text is None else "the answer is empty"
    spread = 0.0 if repeat > 1 else None
    return [Verdict(False, reason, "rule", (False,) * repeat, (), spread)] * (1 + facts)


def judged_scores(values: Sequence[bool | None]) -> dict[str, float | None]:
    """Return the scores by the verdicts on correctness and on each fact."""
    correct = None if values[0] is None else float(values[0])
    share = completeness(values[1:])
    score = leaderboard_score(correct, share)
    return {"correctness": correct, "completeness": share, "score": score}


def _verdicts(record: Mapping[str, Any]) -> list[tuple[str, dict]]:
    found = record["verdicts"]
    kinds = [("correctness", found["correctness"])] if found["correctness"] else []
    return kinds + [("fact", fact) for fact in found["facts"]]


def counts(case: Case, records: Sequence[dict]) -> dict[str, int]:
    """Return the numbers of questions, of answers, and of verdicts, those of a panel included."""
    given = [verdict for record in records for _, verdict in _verdicts(record)]
    reviews = [record["review"] for record in records if record["review"]]
    votes = [vote for review in reviews for cast in review["votes"].values() for vote in cast]
    undecided = sum(review["status"] == "undecided" for review in reviews)
    lost = sum(verdict["value"] is None for verdict in given)
    return {
        "questions": len(records),
        "answered": sum(bool(record["answer"]) for record in records),
        "without_documents": sum(record["doc_ids"] is None for record in records),
        "corrected": sum(record["corrected"] for record in records),
        "verdicts": len(given),
        "unsure_verdicts": sum(verdict.get("unsure", False) for verdict in given),
        "missing_verdicts": lost + votes.count(None) + undecided,
        "skipped_lines": len(case.skipped),
    }


def agreements(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the agreement of repeated verdicts, and of the panel's members."""
    rows: dict[str, list[list[float]]] = {"correctness": [], "fact": [], "panel": []}
    for record in records:
        for kind, verdict in _verdicts(record):
            rows[kind].append([code(kind, value) for value in verdict["values"]])
        for cast in (record["review"] or {"votes": {}})["votes"].values():
            rows["panel"].append([code("validity", vote) for vote in cast])
    table = {}
    for kind, ratings in rows.items():
        if ratings and (kind == "panel" or len(ratings[0]) > 1):
            level = "ordinal" if kind == "panel" else "nominal"
            table[kind] = agreement(pd.DataFrame(ratings).to_numpy(float), level=level)
    return table
