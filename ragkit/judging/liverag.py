"""LiveRAG's correctness: what of the reference is covered, and how much of the answer is to it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from ragkit import schema
from ragkit.errors import DataError, UsageError
from ragkit.judging.judges import CLAIM_KINDS, Judge, Task

RANGE = (-1.0, 2.0)
VITAL = ("direct", "useful")


def correctness_score(coverage: float, relatedness: float, *, unit: bool = False) -> float:
    """Return the harmonic mean of coverage and relatedness, on the paper's scale.

    Parameters
    ----------
    coverage : float in [0, 1]
        Share of the reference's vital claims that the answer reflects.
    relatedness : float in [0, 1]
        Share of the answer's claims that bear on the question.
    unit : bool
        Return the harmonic mean itself, in [0, 1], which is what the paper's item response model
        is fed.

    Returns
    -------
    float in [-1, 2]
        -1 where either is 0, 2 where both are 1. The paper gives the range, and maps it to [0, 1]
        linearly; so the harmonic mean h is taken as 3 h - 1 of it.

    Raises
    ------
    DataError
        If a share is outside [0, 1].

    References
    ----------
    LiveRAG, section 3.2 with footnote 8.
    """
    for name, share in (("coverage", coverage), ("relatedness", relatedness)):
        if not 0 <= share <= 1:
            raise DataError(f"{name} should be a share from 0 to 1, found {share!r}")
    mean = 0.0
    if coverage and relatedness:
        mean = 2 * coverage * relatedness / (coverage + relatedness)
    return mean if unit else RANGE[0] + (RANGE[1] - RANGE[0]) * mean


def correctness(
    answers: pd.DataFrame,
    questions: pd.DataFrame,
    judge: Judge,
    *,
    vital: Sequence[str] = VITAL,
    unit: bool = False,
) -> pd.DataFrame:
    """Judge LiveRAG's correctness of every answer.

    The claims of the reference are those of the questions (`claims_direct`, `claims_useful`,
    `claims_useless`, as the official file has them); where a question has none, the judge takes
    them from its gold answer. The judge takes the answer apart in the same way. Each vital claim
    of the reference is then checked against the answer alone.

    Parameters
    ----------
    answers : DataFrame
        A frame `answers`. A row without an answer (None) is not judged.
    questions : DataFrame
        A frame `questions` with gold answers or claims.
    judge : Judge
    vital : sequence of {"direct", "useful", "useless"}
        Which claims of the reference are vital. The paper does not say; only useless ones are
        certainly not.
    unit : bool
        As in `correctness_score`.

    Returns
    -------
    DataFrame
        One row per answer judged: system, question_id, coverage, relatedness, correctness (NaN
        where a verdict is missing or the reference has no vital claim), vital (claims of the
        reference), claims (of the answer), note. An answer without claims has relatedness 0.

    Raises
    ------
    DataError
        If a frame is not valid, or an answer's question has neither gold answer nor claims.
    UsageError
        If `vital` is no selection of the kinds of claims, or the judge cannot take answers apart.
    """
    judge.need("claims", "fact")
    if not vital or not set(vital) <= set(CLAIM_KINDS):
        raise UsageError(f"vital claims are some of {', '.join(CLAIM_KINDS)}, not {vital!r}")
    rows = schema.check(answers, "answers")
    rows = rows[rows["answer"].notna()]
    schema.check(questions, "questions")
    known = {row["question_id"]: row for row in questions.to_dict("records")}
    names = list(dict.fromkeys(rows["question_id"]))
    for name in names:
        if name not in known or not (_given(known[name]) or known[name]["answer"]):
            raise DataError(f"question {name!r} has neither a gold answer nor claims")

    unknown = [name for name in names if not _given(known[name])]
    texts = [(known[name]["text"], known[name]["answer"]) for name in unknown]
    spoken = [answer.strip() for answer in rows["answer"]]
    texts += [
        (known[name]["text"], answer)
        for name, answer in zip(rows["question_id"], spoken, strict=True)
        if answer
    ]
    tasks = [Task("claims", {"question": text, "answer": answer}) for text, answer in texts]
    found = iter(judge.judge(tasks) if tasks else [])
    reference = {name: next(found) for name in unknown}
    claims = [next(found).value if answer else [] for answer in spoken]

    expected: dict[str, list[str] | None] = {}
    for name in names:
        if name in reference:
            taken = reference[name].value
            expected[name] = (
                None if taken is None else [one["claim"] for one in taken if one["kind"] in vital]
            )
        else:
            expected[name] = [claim for kind in vital for claim in known[name][f"claims_{kind}"]]
    tasks = [
        Task("fact", {"question": known[name]["text"], "fact": claim, "answer": answer})
        for name, answer in zip(rows["question_id"], spoken, strict=True)
        if answer
        for claim in expected[name] or ()
    ]
    held = iter(judge.judge(tasks) if tasks else [])
    table = []
    for system, name, answer, own in zip(
        rows["system"], rows["question_id"], spoken, claims, strict=True
    ):
        wanted = expected[name]
        support = [next(held).value if answer else False for _ in wanted or ()]
        coverage = relatedness = score = math.nan
        note = ""
        if wanted is None:
            note = "the claims of the reference could not be had"
        elif not wanted:
            note = "the reference has no vital claim"
        elif None in support:
            note = f"{support.count(None)} of {len(support)} claims were not judged"
        else:
            coverage = sum(support) / len(support)
        if own is None:
            note = note or "the claims of the answer could not be had"
        else:
            related = sum(one["kind"] != "useless" for one in own)
            relatedness = related / len(own) if own else 0.0
        if not math.isnan(coverage + relatedness):
            score = correctness_score(coverage, relatedness, unit=unit)
        table.append(
            {
                "system": system,
                "question_id": name,
                "coverage": coverage,
                "relatedness": relatedness,
                "correctness": score,
                "vital": math.nan if wanted is None else len(wanted),
                "claims": math.nan if own is None else len(own),
                "note": note,
            }
        )
    columns = ["system", "question_id", "coverage", "relatedness", "correctness"]
    return pd.DataFrame(table, columns=[*columns, "vital", "claims", "note"])


def _given(question: Mapping) -> bool:
    return any(len(question.get(f"claims_{kind}", ())) for kind in CLAIM_KINDS)
