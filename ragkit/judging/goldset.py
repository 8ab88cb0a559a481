"""Correct gold sets: a panel of judges classifies the pooled documents.

EnterpriseRAG-Bench, section 5.3. Every member of the panel calls each gold document and each
retrieved document required, valid or invalid. The votes decide its class by one of `RULES`. If
the required documents differ from the gold documents, a judge writes a new gold answer and facts.

A judge of one's own calls all documents valid, so the gold document stays required:

>>> from ragkit.judging import Judge, Verdict
>>> class Mild(Judge):
...     name, kinds = "mild", frozenset({"validity"})
...
...     def judge(self, tasks, number=0):
...         return [Verdict("valid", "why not", self.name) for _ in tasks]
>>> asked = {"question_id": "q", "text": "Where?", "answer": "In Paris.", "facts": ["In Paris."]}
>>> texts = {"a": "It is in Paris.", "b": "It is in France."}
>>> asked["gold_doc_ids"] = ["a"]
>>> review([asked], {"q": ["b"]}, texts, [Mild()], correct=False)["q"].classes
{'a': 'required', 'b': 'valid'}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragkit import checks, display
from ragkit.errors import DataError, UsageError
from ragkit.judging.judges import CLASSES, Judge, Task, ask, enclosed

# How votes decide a class; see `classify`.
RULES = ("paper", "code")

_AVOID = re.compile(
    r"\b(?:answer|response|reply)\b[^.;:]{0,60}\b(?:must|should|may|shall|can|does|do|will)"
    r"(?:\s+not|n't)\b"
    r"|^\s*(?:do|must|should)(?:\s+not|n't)\s+\w+"
    r"|^\s*(?:avoid|never|refrain)\b",
    re.IGNORECASE,
)


def classify(votes: Sequence[str | None], *, gold: bool, rules: str = "paper") -> str | None:
    """Return the class of a document from the votes of a panel.

    A missing vote (None) belongs to no majority. If no more than half of the panel voted, a gold
    document is required and another one has no class (None).

    By the rules "paper", a gold document is invalid if more than half of the votes say so, else
    required; another one is of the highest class that more than half reach. "code" is what the
    released code does: with required as 2, valid as 1 and invalid as 0, a gold document is
    required from a mean of 0.5, else invalid; another one is required from 1.5, valid from 0.5.

    >>> classify(["required", "valid", "required"], gold=False), classify(["valid", None, None], gold=True)
    ('required', 'required')
    """
    checks.choice(rules, "rules", RULES)
    levels = sorted(CLASSES.index(vote) for vote in votes if vote is not None)
    n = len(levels)
    if 2 * n <= len(votes):
        return "required" if gold else None
    if rules == "code":
        mean = sum(levels) / n
        level = (mean >= 0.5) + (mean >= 1.5)
    else:
        # The lower middle vote is reached by more than half, the upper one by half or more.
        level = levels[n // 2] if gold else levels[(n - 1) // 2]
    if gold:
        return "required" if level else "invalid"
    return CLASSES[level]


def is_anti_hallucination(fact: str) -> bool:
    """Return whether a fact forbids the answer to say something.

    Such a fact stays valid when the gold answer changes. It is recognised by its wording: a verb
    of obligation with a negation about the answer, or a prohibition at the beginning. Source:
    EnterpriseRAG-Bench, section 5.3 and appendix C.2 (Constrained).

    >>> is_anti_hallucination("The answer must not claim that refunds are free.")
    True
    """
    return _AVOID.search(fact) is not None


@dataclass
class Review:
    """The panel's verdict on one question's pool of documents.

    The status is "confirmed" (no change), "changed", "emptied" (no document would be left, so no
    change) or "undecided" (the judge failed to write the new answer, so no change).
    """

    gold_before: list[str]
    gold_after: list[str]
    # By document: its class (None with too few votes), the panel's votes in order, their reasons.
    classes: dict[str, str | None] = field(default_factory=dict)
    votes: dict[str, list[str | None]] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)
    # The first member whose required documents were exactly the gold ones, which settles it.
    short_circuit: int | None = None
    status: str = "confirmed"
    answer: str | None = None  # the new gold answer and facts if changed
    facts: tuple[str, ...] | None = None
    note: str = ""  # the reason if undecided

    @property
    def changed(self) -> bool:
        return self.status == "changed"

    def __repr__(self) -> str:
        before, after = len(self.gold_before), len(self.gold_after)
        return f"<Review {self.status}: gold documents {before} before, {after} after>"

    def _repr_html_(self) -> str:
        before, after = self.gold_before, self.gold_after
        rows = [
            {"document": doc_id, "class": self.classes.get(doc_id) or ""}
            | {"votes": ", ".join(vote or "missing" for vote in self.votes.get(doc_id, ()))}
            | {"gold before": "yes" * (doc_id in before), "after": "yes" * (doc_id in after)}
            for doc_id in dict.fromkeys([*before, *self.classes, *after])
        ]
        facts = {"status": self.status, "why": self.note, "new gold answer": self.answer}
        facts["new facts"] = "; ".join(self.facts or ())
        then = "Next: `.reasons` says of each document why the members voted so."
        return display.card("Review of a gold set", facts, display.table(rows), after=then)


def review(
    questions: Sequence[Mapping[str, Any]],
    pools: Mapping[str, Sequence[str]],
    documents: Mapping[str, str],
    panel: Sequence[Judge],
    *,
    rules: str = "paper",
    correct: bool = True,
    round: int = 0,
) -> dict[str, Review]:
    """Let a panel classify pools of documents, and correct the gold sets.

    The members judge one after the other. As soon as one calls exactly the gold documents
    required, the question is settled and the other members do not judge it.

    Parameters
    ----------
    questions : sequence of mappings
        With question_id, text, answer, facts, gold_doc_ids.
    pools : mapping of question_id to sequence of str
        The documents that systems retrieved. A question without gold documents, or whose pool
        adds nothing to them, is not reviewed.
    documents : mapping of id to text
        `DataError` if one is missing.
    panel : sequence of Judge
        A judge that is several members gives an independent verdict as each of them.
    rules : {"paper", "code"}
        See `classify`.
    correct : bool
        Whether a changed set replaces the gold set, with a new answer by the first member.
    round : int
        Each round gets verdicts independent of other rounds'.
    """
    checks.choice(rules, "rules", RULES)
    check_panel(panel, "validity", *(["regenerate"] if correct else []))
    by_id = {question["question_id"]: question for question in questions}
    pooled = {
        name: pool_of(question["gold_doc_ids"], [pools.get(name)])
        for name, question in by_id.items()
    }
    pooled = {name: pool for name, pool in pooled.items() if pool}
    require({doc for pool in pooled.values() for doc in pool}, documents)
    reviews = {name: Review(*[list(by_id[name]["gold_doc_ids"])] * 2) for name in pooled}
    for member in range(len(panel)):
        pending = [name for name, one in reviews.items() if one.short_circuit is None]
        keys = [(name, doc) for name in pending for doc in pooled[name]]
        tasks = [Task.of("validity", by_id[name]["text"], documents[doc]) for name, doc in keys]
        verdicts = ask(panel[member], tasks, first=turn(panel, member, round))
        for (name, doc), verdict in zip(keys, verdicts, strict=True):
            reviews[name].votes.setdefault(doc, []).append(verdict.value)
            reviews[name].reasons.setdefault(doc, []).append(verdict.reason)
        for name in pending:
            latest = {doc: votes[-1] for doc, votes in reviews[name].votes.items()}
            required = {doc for doc, vote in latest.items() if vote == "required"}
            if None not in latest.values() and required == set(reviews[name].gold_before):
                reviews[name].short_circuit = member
    for one in reviews.values():
        _settle(one, rules, correct)
    if correct:
        changed = {name: one for name, one in reviews.items() if one.changed}
        _rewrite(changed, by_id, documents, panel[0], round)
    return reviews


def require(needed: Iterable[str], documents: Mapping[str, str]) -> None:
    """Raise `DataError` if the text of a document is missing."""
    absent = sorted(set(needed) - set(documents))
    if absent:
        raise DataError(f"the text of document {absent[0]!r} is not there ({len(absent):,} in all)")


def pool_of(gold: Sequence[str], retrieved: Iterable[Sequence[str] | None]) -> list[str]:
    """Return the documents to classify, gold ones first; none if nothing is added to them."""
    found = dict.fromkeys(doc for docs in retrieved for doc in docs or ())
    extra = [doc for doc in found if doc not in gold]
    return [*dict.fromkeys(gold), *extra] if gold and extra else []


def _settle(one: Review, rules: str, correct: bool) -> None:
    for doc, votes in one.votes.items():
        if one.short_circuit is not None:
            one.classes[doc] = votes[one.short_circuit]
        else:
            one.classes[doc] = classify(votes, gold=doc in one.gold_before, rules=rules)
    required = [doc for doc, found in one.classes.items() if found == "required"]
    if correct and not required:
        one.status = "emptied"
    elif correct and set(required) != set(one.gold_before):
        one.gold_after, one.status = required, "changed"


def _rewrite(changed: Mapping[str, Review], by_id, documents, judge: Judge, round: int) -> None:
    tasks = []
    for name, one in changed.items():
        texts = join_documents(documents[doc] for doc in one.gold_after)
        tasks.append(Task.of("regenerate", by_id[name]["text"], by_id[name]["answer"], texts))
    verdicts = ask(judge, tasks, first=round)
    for (name, one), verdict in zip(changed.items(), verdicts, strict=True):
        if verdict.missing:
            one.status, one.gold_after, one.note = "undecided", one.gold_before, verdict.reason
            continue
        kept = [fact for fact in by_id[name]["facts"] if is_anti_hallucination(fact)]
        one.answer = verdict.value["answer"]
        one.facts = tuple(dict.fromkeys([*verdict.value["facts"], *kept]))


def join_documents(texts: Iterable[str]) -> str:
    """Join texts into one, each between tags that carry its number and that no text can close.

    >>> print(join_documents(["The pump leaks."]))
    <document n="1">
    The pump leaks.
    </document>
    """
    return "\n".join(
        f'<document n="{number}">\n{enclosed(text, ["document"])}\n</document>'
        for number, text in enumerate(texts, 1)
    )


def turn(panel: Sequence[Judge], member: int, round: int) -> int:
    """Return the number of a member's verdict in a round: another one for each of its seats."""
    same = [other is panel[member] for other in panel]
    return round * sum(same) + sum(same[:member])


def check_panel(panel: Sequence[Judge], *kinds: str) -> None:
    """Raise `UsageError` if a panel is empty or a member cannot judge a kind of task."""
    if not panel:
        raise UsageError("the panel is empty", "give at least one judge; the paper has 3")
    for number, judge in enumerate(panel):
        judge.need(*(kind for kind in kinds if kind != "regenerate" or number == 0))
