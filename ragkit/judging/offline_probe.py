"""Gold answers, left alone and damaged: what a judge must tell apart, on any benchmark."""

from __future__ import annotations

import re

import pandas as pd

from ragkit.judging.offline_text import asks_abstention, parse

CHANGES = ("gold", "number changed", "negated", "truncated", "other question's", "no answer")
_ABSTENTION = "I could not find that in the documents."
_NUMBER = re.compile(r"(?<![\w.,:/-])(\d{1,4})(?![\d:/-]|[.,]\d)")
_VERB = re.compile(
    r"\b(is|are|was|were|must|should|can|will|has|have|does|do)\b(?! not\b|n't)", re.IGNORECASE
)


def perturb(questions: pd.DataFrame) -> pd.DataFrame:
    """Return gold answers and damaged copies of them.

    A changed number is one more than the first whole number that the question does not have; a
    negated answer has a "not" behind its first auxiliary verb; a truncated one keeps the first
    third of its words. Where that leaves the answer as it is, there is no such row.

    Parameters
    ----------
    questions : DataFrame
        A frame `questions`. Those without gold answer, and those whose gold answer is that there
        is none, are left out.

    Returns
    -------
    DataFrame
        question_id, question, gold, change (one of `CHANGES`), answer.
    """
    kept = questions[questions["answer"].notna()]
    kept = kept[~kept["answer"].map(asks_abstention).astype(bool)]
    golds = list(kept["answer"])
    rows = []
    for place, row in enumerate(kept[["question_id", "text", "answer"]].itertuples(index=False)):
        name, question, gold = row
        made = (
            gold,
            _renumbered(gold, question),
            _VERB.sub(r"\1 not", gold, count=1),
            " ".join(gold.split()[: max(1, len(gold.split()) // 3)]),
            golds[(place + 1) % len(golds)],
            _ABSTENTION,
        )
        rows += [
            (name, question, gold, change, answer)
            for change, answer in zip(CHANGES, made, strict=True)
            if change == "gold" or answer != gold
        ]
    return pd.DataFrame(rows, columns=["question_id", "question", "gold", "change", "answer"])


def _renumbered(gold: str, question: str) -> str:
    asked = parse(question).numbers
    for found in _NUMBER.finditer(gold):
        if found[1] not in asked:
            return f"{gold[: found.start()]}{int(found[1]) + 1}{gold[found.end() :]}"
    return gold
