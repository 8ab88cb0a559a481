"""The features of the offline judge, computed from one task alone; `features.toml` lists them."""

from __future__ import annotations

import math
import re
import tomllib
from functools import cache, lru_cache
from pathlib import Path

from ragkit.judging import offline_text as texts
from ragkit.judging.offline_text import Text, parse, sentences

# The name of each feature of `against` and of `attacking`, with its direction: 1, -1 or 0.
FEATURES, ATTACK = (
    {name: direction for name, (direction, _) in table.items()}
    for table in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).values()
)
# The most sentences of an answer that are compared one by one; all words count anyway.
SENTENCES = 60
# Two sentences that cover each other this far, numbers apart, say nearly the same.
CLOSE = 0.75
# The power of the coverage that a sign of an attack is multiplied by: chosen on the attacks that
# take part in the calibration.
FULL = 16
_ENUMERATION = re.compile(r"(?m)^\s*(?:[-*•]\s*)?\d{1,2}[.)]\s+")


@cache
def weight(word: str) -> int:
    """Return the weight of a word: longer words and numbers weigh more than short words.

    A number weighs 15, a word of n letters (stemmed) 2 + n, from 4 to 10. Rare words tend to be
    long; unlike rarity, length does not depend on what else is judged.

    >>> weight("12"), weight("refund")
    (15, 8)
    """
    return 15 if word[0].isdigit() else min(10, 2 + max(2, len(word)))


def coverage(wanted: frozenset[str], present: frozenset[str]) -> float:
    """Return the weighted share of the words `wanted` that are `present`; 1 of nothing.

    >>> coverage(frozenset({"cat", "10"}), frozenset({"10"}))
    0.75
    """
    total = sum(map(weight, wanted))
    return sum(map(weight, wanted & present)) / total if total else 1.0


def conflicts(wanted: Text, given: Text, question: Text) -> frozenset[str]:
    """Return the wanted numbers that another number replaces.

    A number is replaced if it is not given, and a number that is neither wanted nor in the
    question stands before the same unit.

    >>> conflicts(parse("within 30 days"), parse("You have 45 days."), parse("How long?"))
    frozenset({'30'})
    """
    other = given.numbers - wanted.numbers - question.numbers
    units = {unit for number, unit in given.units if number in other}
    return frozenset(
        number for number, unit in wanted.units if number not in given.numbers and unit in units
    )


def _close(one: Text, other: Text) -> bool:
    a, b = one.words - one.numbers, other.words - other.numbers
    return coverage(a, b) >= CLOSE and coverage(b, a) >= CLOSE


def _share(found: frozenset[str], given: str) -> float:
    return sum(one in given for one in found) / len(found) if found else 1.0


@lru_cache(maxsize=1 << 16)
def against(question: str, wanted: str, answer: str) -> dict[str, float]:
    """Return the features `FEATURES`: how well an answer agrees with a gold answer or a fact."""
    asked, want, have = parse(question), parse(wanted), parse(answer)
    lines = [parse(sentence) for sentence in sentences(answer)[:SENTENCES]]
    turned = altered = False
    for part in map(parse, sentences(wanted)):
        line = max(lines, key=lambda line: coverage(part.words, line.words), default=None)
        if line is not None and _close(part, line):
            opposed = bool(part.negations) != bool(line.negations) or texts.opposed(part, line)
            turned |= opposed
            altered |= bool(part.numbers - have.numbers and line.numbers - want.numbers)
    numbers, flat = want.numbers - asked.numbers, texts.squash(answer)
    return {
        "covered": coverage((want.words - asked.words) or want.words, have.words),
        "best": max((coverage(want.words, line.words) for line in lines), default=0.0),
        "numbers": len(numbers & have.numbers) / len(numbers) if numbers else 1.0,
        "numbers_missing": math.log1p(len(numbers - have.numbers)),
        "conflicts": math.log1p(len(conflicts(want, have, asked))),
        "identifiers": _share(texts.identifiers(wanted), flat),
        "names": _share(texts.names(wanted), flat),
        "reversed": float(turned),
        "renumbered": float(altered),
        "precision": coverage(have.words, want.words | asked.words) if have.words else 0.0,
        "abstains": float(texts.abstains(answer)),
        "abstentions": math.log1p(texts.cues(answer, "abstention")),
        "length": math.log1p(len(have.tokens)),
        "wanted_length": math.log1p(len(want.tokens)),
    }


@lru_cache(maxsize=1 << 16)
def attacking(question: str, wanted: str, answer: str) -> dict[str, float]:
    """Return the features `ATTACK`: signs that an answer is made to please a judge."""
    asked, want, have = parse(question), parse(wanted), parse(answer)
    known = want.words | asked.words
    numbers = have.numbers - known
    called = texts.names(answer) | texts.identifiers(answer)
    called -= texts.names(wanted) | texts.identifiers(wanted)
    called = {name for name in called if name not in texts.squash(question)}
    back = texts.cues(answer, "retraction") > texts.cues(wanted, "retraction")
    hedges = texts.cues(answer, "hedge") - texts.cues(wanted, "hedge")
    taken_back, listed = 0.0, 0
    for line in _lines(answer):
        part, found = parse(line), texts.cues(line, "retraction")
        if found and back:
            taken_back += 1 / (1 + max(0, len(part.words - known) - found))
        if len(part.numbers & numbers) >= 0.4 * len(part.tokens):
            listed += len(part.numbers & numbers)
    pairs = {pair for pair in _pairs(want) if set(pair) <= have.words}
    apart = 1 - len(pairs & _pairs(have)) / len(pairs) if pairs else 0.0
    signs = {
        "taken_back": taken_back,
        "hedges": math.log1p(max(0, hedges)),
        "number_lists": math.log1p(listed),
        "extra_numbers": len(numbers) / max(len(have.tokens), 1),
        "extra_names": len(called) / max(len(have.tokens), 1),
        "disorder": max(0.0, 2 * apart - 1) * coverage(have.words, known),
        "idle": math.log1p(max(0, idle(question, wanted, answer) - 2)),
    }
    full = coverage(want.words, have.words) ** FULL
    return {name: full * value for name, value in signs.items()}


def idle(question: str, wanted: str, answer: str) -> int:
    """Return the number of sentences of which less than a third is wanted or in the question."""
    known = parse(wanted).words | parse(question).words
    return sum(coverage(parse(line).words, known) < 1 / 3 for line in _lines(answer))


def _lines(answer: str) -> tuple[str, ...]:
    return sentences(_ENUMERATION.sub("", answer))[:SENTENCES]


def _pairs(text: Text) -> set[tuple[str, str]]:
    return set(zip(text.tokens, text.tokens[1:], strict=False))
