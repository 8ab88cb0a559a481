"""Gold sets as hypotheses: a panel of judges on the pooled documents, and what follows from it.

EnterpriseRAG-Bench, section 5.3. The gold documents and those that a system retrieved are each
called required, valid or invalid by every member of a panel. Votes make classes by one of `RULES`;
if the required documents are not the gold ones, the gold answer and its facts are written anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragkit.errors import DataError, UsageError, did_you_mean
from ragkit.judging.judges import CLASSES, Judge, Task

# How votes become a class; see `classify`.
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

    Parameters
    ----------
    votes : sequence of {"required", "valid", "invalid", None}
        None for a member whose verdict is missing; it counts in no majority.
    gold : bool
        Whether the document is in the gold set.
    rules : {"paper", "code"}
        "paper": a gold document is invalid if more than half of the votes say so, else required.
        Another document is required if more than half say so, valid if more than half say at
        least valid, else invalid. "code" is what the released code does: with required as 2,
        valid as 1 and invalid as 0, a gold document is required at a mean of at least 0.5, else
        invalid; another one is required from 1.5, valid from 0.5, else invalid.

    Returns
    -------
    str or None
        None if no more than half of the panel voted; a gold document is then required.

    Raises
    ------
    DataError
        If a vote is none of the classes, or there is no vote at all because the panel is empty.
    UsageError
        If the rules are unknown.
    """
    check_rules(rules)
    if not votes:
        raise DataError("an empty panel cannot vote", "give at least one judge; the paper has 3")
    cast = [vote for vote in votes if vote is not None]
    for vote in cast:
        if vote not in CLASSES:
            raise DataError(f"no class is called {vote!r}", did_you_mean(str(vote), CLASSES))
    if 2 * len(cast) <= len(votes):
        return "required" if gold else None
    levels = [CLASSES.index(vote) for vote in cast]
    if rules == "code":
        mean = sum(levels) / len(levels)
        if gold:
            return "required" if mean >= 0.5 else "invalid"
        return CLASSES[2 if mean >= 1.5 else 1 if mean >= 0.5 else 0]
    if gold:
        return "invalid" if 2 * levels.count(0) > len(levels) else "required"
    for level in (2, 1):
        if 2 * sum(vote >= level for vote in levels) > len(levels):
            return CLASSES[level]
    return "invalid"


def is_anti_hallucination(fact: str) -> bool:
    """Return whether a fact says what an answer must not say.

    Such facts ("The answer must not claim ...", "Do not use ...") catch errors that other
    documents suggest; a new gold answer does not make them void. Recognized by their wording: a
    verb of obligation with a negation about the answer, or a prohibition at the beginning.

    References
    ----------
    EnterpriseRAG-Bench, section 5.3 and appendix C.2 (Constrained).
    """
    return _AVOID.search(fact) is not None


@dataclass
class Review:
    """What a panel made of one question's pool of documents.

    Parameters
    ----------
    question_id : str
    gold : tuple of str
        The gold documents as they were.
    classes : dict
        Document to class, None where too few votes came.
    votes : dict
        Document to the votes of the panel, in its order; reasons likewise.
    short_circuit : int or None
        The first member whose required documents were just the gold ones: the labels stay.
    required : tuple of str
        The gold documents after the review; `gold` unless `changed`.
    status : str
        "confirmed" (nothing changes), "changed", "emptied" (no document would be left; nothing
        changes), "undecided" (the new answer could not be had; nothing changes).
    answer, facts
        The new gold answer and facts if changed, else None.
    note : str
        Why, where it is undecided.
    """

    question_id: str
    gold: tuple[str, ...]
    classes: dict[str, str | None] = field(default_factory=dict)
    votes: dict[str, list[str | None]] = field(default_factory=dict)
    reasons: dict[str, list[str]] = field(default_factory=dict)
    short_circuit: int | None = None
    required: tuple[str, ...] = ()
    status: str = "confirmed"
    answer: str | None = None
    facts: tuple[str, ...] | None = None
    note: str = ""

    @property
    def changed(self) -> bool:
        return self.status == "changed"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold."""
        return {
            "status": self.status,
            "short_circuit": self.short_circuit,
            "gold_before": list(self.gold),
            "gold_after": list(self.required),
            "classes": self.classes,
            "votes": self.votes,
            "reasons": self.reasons,
            "note": self.note,
        }


def review(
    questions: Sequence[Mapping[str, Any]],
    pools: Mapping[str, Sequence[str]],
    documents: Mapping[str, str],
    panel: Sequence[Judge],
    *,
    rules: str = "paper",
    correct: bool = True,
    rounds: Mapping[str, int] | None = None,
) -> dict[str, Review]:
    """Put the pools of documents before the panel, and correct the gold sets.

    The members are asked one after the other. As soon as one calls exactly the gold documents
    required, the question is settled and the others are not asked about it.

    Parameters
    ----------
    questions : sequence of mappings
        With question_id, text, answer, facts, gold_doc_ids.
    pools : mapping of question_id to sequence of str
        The documents that systems retrieved. A question whose pool adds nothing to its gold
        documents, or that has no gold documents, is not reviewed.
    documents : mapping of id to text
    panel : sequence of Judge
        Independent judges; the same one several times gives independent verdicts.
    rules : {"paper", "code"}
    correct : bool
        Whether a changed set makes a new gold answer (by the panel's first member). If not, the
        documents are classified and the gold set stays.
    rounds : mapping of question_id to int, optional
        Higher numbers ask anew.

    Returns
    -------
    dict of question_id to Review

    Raises
    ------
    UsageError
        If the panel is empty or cannot judge documents, or the rules are unknown.
    DataError
        If a document's text is not there.
    """
    check_rules(rules)
    check_panel(panel, "validity", *(["regenerate"] if correct else []))
    rounds = rounds or {}
    by_id = {question["question_id"]: question for question in questions}
    reviews, pooled = {}, {}
    for name, question in by_id.items():
        gold = tuple(question["gold_doc_ids"])
        extra = [doc for doc in dict.fromkeys(pools.get(name, ())) if doc not in gold]
        if not gold or not extra:
            continue
        reviews[name] = Review(name, gold, required=gold)
        pooled[name] = [*gold, *extra]
        for doc in pooled[name]:
            if doc not in documents:
                raise DataError(f"question {name!r}: the text of document {doc!r} is not there")
    for member, judge in enumerate(panel):
        pending = [one for one in reviews.values() if one.short_circuit is None]
        _vote(judge, member, panel, pending, pooled, by_id, documents, rounds)
    for one in reviews.values():
        _settle(one, pooled[one.question_id], rules)
    if correct:
        _rewrite([one for one in reviews.values() if one.changed], by_id, documents, panel, rounds)
    else:
        for one in reviews.values():
            one.required, one.status = one.gold, "confirmed"
    return reviews


def _vote(judge, member, panel, pending, pooled, by_id, documents, rounds) -> None:
    place, seats = seat(panel, member)
    for number in sorted({rounds.get(one.question_id, 0) for one in pending}):
        group = [one for one in pending if rounds.get(one.question_id, 0) == number]
        keys = [(one, doc) for one in group for doc in pooled[one.question_id]]
        tasks = [
            Task(
                "validity",
                {"question": by_id[one.question_id]["text"], "document": documents[doc]},
            )
            for one, doc in keys
        ]
        verdicts = judge.judge(tasks, repeat=1, first=number * seats + place)
        for (one, doc), verdict in zip(keys, verdicts, strict=True):
            one.votes.setdefault(doc, []).append(verdict.value)
            one.reasons.setdefault(doc, []).append(verdict.reason)
    for one in pending:
        latest = {doc: votes[-1] for doc, votes in one.votes.items()}
        required = {doc for doc, vote in latest.items() if vote == "required"}
        if None not in latest.values() and required == set(one.gold):
            one.short_circuit = member


def _settle(one: Review, pool: list[str], rules: str) -> None:
    for doc in pool:
        votes = one.votes[doc]
        if one.short_circuit is not None:
            one.classes[doc] = votes[one.short_circuit]
        else:
            one.classes[doc] = classify(votes, gold=doc in one.gold, rules=rules)
    required = tuple(doc for doc in pool if one.classes[doc] == "required")
    if not required:
        one.status = "emptied"
    elif set(required) != set(one.gold):
        one.required, one.status = required, "changed"


def _rewrite(changed, by_id, documents, panel, rounds) -> None:
    for number in sorted({rounds.get(one.question_id, 0) for one in changed}):
        group = [one for one in changed if rounds.get(one.question_id, 0) == number]
        tasks = [
            Task(
                "regenerate",
                {
                    "question": by_id[one.question_id]["text"],
                    "gold": by_id[one.question_id]["answer"],
                    "documents": join_documents(documents[doc] for doc in one.required),
                },
            )
            for one in group
        ]
        for one, verdict in zip(group, panel[0].judge(tasks, repeat=1, first=number), strict=True):
            if verdict.missing:
                one.status, one.required, one.note = "undecided", one.gold, verdict.reason
                continue
            kept = [fact for fact in by_id[one.question_id]["facts"] if is_anti_hallucination(fact)]
            one.answer = verdict.value["answer"]
            one.facts = tuple(dict.fromkeys([*verdict.value["facts"], *kept]))


def join_documents(texts) -> str:
    """Return several texts as one, each in tags that carry its number."""
    return "\n".join(
        f'<document n="{number}">\n{text}\n</document>' for number, text in enumerate(texts, 1)
    )


def seat(panel: Sequence[Judge], member: int) -> tuple[int, int]:
    """Return a member's seat among those that the same judge has, and how many it has.

    A judge that sits on a panel several times gives another verdict on each seat.
    """
    judge = panel[member]
    return sum(other is judge for other in panel[:member]), sum(other is judge for other in panel)


def check_rules(rules: str) -> None:
    """Raise `UsageError` if there are no such rules."""
    if rules not in RULES:
        raise UsageError(f"no rules are called {rules!r}", did_you_mean(str(rules), RULES))


def check_panel(panel: Sequence[Judge], *kinds: str) -> None:
    """Raise `UsageError` if a panel is empty or a member lacks a kind of task."""
    if not panel:
        raise UsageError("the panel is empty", "give at least one judge; the paper has 3")
    for number, judge in enumerate(panel):
        judge.need(*(kind for kind in kinds if kind != "regenerate" or number == 0))
