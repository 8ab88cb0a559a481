"""Is a document fit to be asked about? LiveRAG's six criteria (section 2.1), without a model.

Each criterion is a function from a text to a score of 1 to 5 and what it was scored by. For
toxicity and sexuality low is good, for the others high.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ragkit.errors import DataError
from ragkit.synth.datamorgana.words import phrases

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_DETAIL = re.compile(
    r"\d[\d.,:–-]*\s?(?:%|[^\W\d_]+)|\b[A-Z]{2,}-\d+|(?<![.!?:]\s)(?<!^)(?<!\n)\b[A-Z][a-z]+ [A-Z][a-z]+"
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def _found(what: str, text: str) -> int:
    """Return how many phrases of a kind, those of `phrases.toml`, a text has."""
    return len(re.findall(rf"\b(?:{'|'.join(phrases()['filters'][what])})\b", text, re.I))


@dataclass(frozen=True)
class Limit:
    """The scores that pass: from `at_least` to `at_most`."""

    at_least: int = 1
    at_most: int = 5

    @classmethod
    def read(cls, raw: object, where: str) -> Limit:
        if not isinstance(raw, dict) or not raw or set(raw) - {"at_least", "at_most"}:
            raise DataError(f"{where}: should be {{ at_least = 1..5 }} or {{ at_most = 1..5 }}")
        for value in raw.values():
            if type(value) is not int or not 1 <= value <= 5:
                raise DataError(f"{where}: a score is from 1 to 5, found {value!r}")
        return cls(**raw)


@dataclass(frozen=True)
class Score:
    """A score of 1 to 5 and what it was given for."""

    value: int
    why: str


def factuality(text: str) -> Score:
    """Score how many different details a text has: amounts, codes, names."""
    n = len({match.group().lower() for match in _DETAIL.finditer(text)})
    return Score(_step(n, (1, 2, 4, 7)), f"{n} details")


def interest(text: str) -> Score:
    """Score how much a text has to say: its different words of four letters and more."""
    n = len({w.lower() for w in _WORD.findall(text) if len(w) > 3})
    return Score(_step(n, (12, 25, 50, 100)), f"{n} different words")


def credibility(text: str) -> Score:
    """Score a text lower for advertising, hearsay, and questions that nobody answers."""
    adverts, hearsay = _found("adverts", text), _found("hearsay", text)
    sentences = [s for s in re.split(r"(?<=[.!?])\s+", text.strip()) if s]
    asked = sum(s.endswith("?") for s in sentences) / max(1, len(sentences))
    lost = min(3, 2 * adverts) + min(2, hearsay) + (2 if asked > 0.6 else 0)
    why = f"{adverts} advertising phrases, {hearsay} of hearsay, {asked:.0%} questions"
    return Score(max(1, 5 - lost), why)


def toxicity(text: str) -> Score:
    """Score insults and hate; each counts twice, and shouting once."""
    found = _found("insults", text)
    words = _WORD.findall(text)
    loud = sum(len(w) > 3 and w.isupper() for w in words) > 0.5 * len(words) > 0
    return Score(min(5, 1 + 2 * found + loud), f"{found} insults")


def sexuality(text: str) -> Score:
    """Score explicit words; each counts twice."""
    n = _found("explicit", text)
    return Score(min(5, 1 + 2 * n), f"{n} explicit words")


def freshness(text: str, *, now: int = 2026) -> Score:
    """Score by the latest year that a text names, and whether it calls itself out of date.

    A text without a year is neither old nor new and scores 3.
    """
    years = [int(y) for y in _YEAR.findall(text) if int(y) <= now + 1]
    stale = _found("stale", text)
    value = 5 - _step(now - max(years), (1, 2, 4, 8)) + 1 if years else 3
    why = (f"latest year {max(years)}" if years else "no year") + f", {stale} marks of age"
    return Score(max(1, value - 2 * min(stale, 2)), why)


CRITERIA: dict[str, Callable[[str], Score]] = {
    "factuality": factuality,
    "interest": interest,
    "credibility": credibility,
    "toxicity": toxicity,
    "sexuality": sexuality,
    "freshness": freshness,
}


@dataclass
class Verdicts:
    """What was kept and why the rest was not.

    Attributes
    ----------
    kept : list of str
        Ids, in the order given.
    failed : dict of str to str
        The reason by id.
    counts : Counter
        By criterion, with "duplicate", "too short" and "too long".
    """

    kept: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def fail(self, doc_id: str, what: str, reason: str) -> None:
        self.failed[doc_id] = reason
        self.counts[what] += 1


def judge(
    documents: Iterable[tuple[str, str]],
    limits: dict[str, Limit],
    *,
    min_words: int = 1,
    max_words: int = 10**9,
    scores: dict[str, dict[str, Score]] | None = None,
) -> Verdicts:
    """Keep the documents that are no duplicates, of a fit length, and within all limits.

    Parameters
    ----------
    documents : iterable of (id, text)
    limits : dict of str to Limit
        By criterion; a criterion that is not named is not looked at.
    min_words, max_words : int
    scores : dict of str to dict, optional
        Scores by id and criterion from elsewhere (a model) instead of this module's.
    """
    verdicts = Verdicts()
    seen: dict[str, str] = {}
    for doc_id, text in documents:
        key, words = " ".join(text.lower().split()), len(text.split())
        reasons = {
            "duplicate": f"the same text as {seen[key]}" if key in seen else "",
            "too short": f"{words} words, fewer than {min_words}" if words < min_words else "",
            "too long": f"{words} words, more than {max_words}" if words > max_words else "",
        }
        seen.setdefault(key, doc_id)
        failed = [(what, reason) for what, reason in reasons.items() if reason]
        if failed:
            verdicts.fail(doc_id, *failed[0])
            continue
        for name, limit in limits.items():
            score = scores[doc_id][name] if scores else CRITERIA[name](text)
            if not limit.at_least <= score.value <= limit.at_most:
                low = score.value < limit.at_least
                bound = f"below {limit.at_least}" if low else f"above {limit.at_most}"
                verdicts.fail(doc_id, name, f"{name} {score.value} is {bound} ({score.why})")
                break
        else:
            verdicts.kept.append(doc_id)
    return verdicts


def _step(n: int, steps: tuple[int, ...]) -> int:
    return 1 + sum(n >= step for step in steps)
