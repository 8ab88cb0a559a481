"""LiveRAG's correctness: the harmonic mean of coverage and relatedness."""

from __future__ import annotations

import math
import statistics

import pandas as pd

from ragkit import schema
from ragkit.errors import DataError
from ragkit.judging.judges import CLAIM_KINDS, Judge, Task, ask

VITAL = ("direct", "useful")  # claims of the reference; the paper does not say which
COLUMNS = "system question_id coverage relatedness correctness vital claims note".split()


def correctness_score(coverage: float, relatedness: float) -> float:
    """Return the harmonic mean h of two shares in [0, 1] as 3 h - 1: LiveRAG, section 3.2.

    Coverage is the share of the reference's vital claims that the answer reflects, relatedness
    that of the answer's claims that bear on the question. The score lies from -1 (where either is
    0) to 2 (where both are 1); the paper's item response model maps it to [0, 1] linearly
    (footnote 8), as `ragkit.irt.fit` does with `score_range=(-1, 2)`.

    >>> correctness_score(1.0, 1.0), correctness_score(0.0, 1.0), correctness_score(0.5, 1.0)
    (2.0, -1.0, 1.0)
    """
    for name, share in (("coverage", coverage), ("relatedness", relatedness)):
        if not 0 <= share <= 1:
            raise DataError(f"{name} should be a share from 0 to 1, found {share!r}")
    return 3.0 * statistics.harmonic_mean([coverage, relatedness]) - 1.0


def correctness(answers: pd.DataFrame, questions: pd.DataFrame, judge: Judge) -> pd.DataFrame:
    """Judge LiveRAG's correctness of every answer.

    The judge extracts the claims of each answer and, of a question without claims of its own
    (`claims_direct`, `claims_useful`, `claims_useless`, as in the official file), those of its gold
    answer, the reference. It checks each vital claim of the reference against the answer alone.

    Parameters
    ----------
    answers : DataFrame
        A frame `answers`. A row without an answer (None) is not judged.
    questions : DataFrame
        A frame `questions`; `DataError` if one has neither a gold answer nor claims.
    judge : Judge

    Returns
    -------
    DataFrame
        One row per answer judged: system, question_id, coverage, relatedness, correctness (NaN
        where a verdict is missing or the reference has no vital claim), vital (number of claims
        of the reference), claims (of the answer), note. Without claims, relatedness is 0.
    """
    judge.need("claims", "fact")
    rows = schema.check(answers, "answers").dropna(subset="answer")
    schema.check(questions, "questions")
    known = {row["question_id"]: row for row in questions.to_dict("records")}
    said = [
        (system, name, answer.strip())
        for system, name, answer in rows[["system", "question_id", "answer"]].to_numpy()
    ]
    given, texts = {}, {(name, answer) for _, name, answer in said if answer}
    for name in dict.fromkeys(rows["question_id"]):
        own = {kind: known.get(name, {}).get(f"claims_{kind}", ()) for kind in CLAIM_KINDS}
        if any(map(len, own.values())):
            given[name] = [claim for kind in VITAL for claim in own[kind]]
        elif name in known and known[name]["answer"]:
            texts.add((name, known[name]["answer"]))
        else:
            raise DataError(f"question {name!r} has neither a gold answer nor claims")

    def judged(kind: str, keys: list[tuple]) -> dict:
        """Return the judge's verdicts by question and texts."""
        verdicts = ask(judge, [Task.of(kind, known[n]["text"], *texts) for n, *texts in keys])
        return {key: verdict.value for key, verdict in zip(keys, verdicts, strict=True)}

    claims = judged("claims", sorted(texts))
    for name in dict.fromkeys(rows["question_id"]):
        if name not in given:
            own = claims[name, known[name]["answer"]]
            given[name] = own and [one["claim"] for one in own if one["kind"] in VITAL]
    pairs = {(n, claim, answer) for _, n, answer in said if answer for claim in given[n] or ()}
    held = judged("fact", sorted(pairs))
    table = []
    for system, name, answer in said:
        own = claims[name, answer] if answer else []
        support = [held[name, one, answer] if answer else False for one in given[name] or ()]
        coverage, relatedness, note = _shares(given[name], support, own)
        score = math.nan
        if not math.isnan(coverage + relatedness):
            score = correctness_score(coverage, relatedness)
        sizes = [math.nan if found is None else len(found) for found in (given[name], own)]
        table.append((system, name, coverage, relatedness, score, *sizes, note))
    return pd.DataFrame(table, columns=COLUMNS)


def _shares(wanted: list | None, support: list, claims: list | None) -> tuple[float, float, str]:
    """Return coverage and relatedness; where one is not known, NaN and the reason."""
    coverage = relatedness = math.nan
    note = "" if claims is not None else "the judge failed to extract the claims of the answer"
    if wanted is None:
        note = "the judge failed to extract the claims of the reference"
    elif not wanted:
        note = "the reference has no vital claim"
    elif None in support:
        note = f"{support.count(None)} of {len(support)} claims were not judged"
    else:
        coverage = sum(support) / len(support)
    if claims is not None:
        related = sum(claim["kind"] != "useless" for claim in claims)
        relatedness = related / len(claims) if claims else 0.0
    return coverage, relatedness, note
