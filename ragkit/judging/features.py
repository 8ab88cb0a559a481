"""The features of the offline judge, computed from one task alone."""

from __future__ import annotations

import math
import re
from functools import cache, lru_cache

from ragkit.judging.offline_text import (
    Text,
    abstains,
    cues,
    identifiers,
    names,
    opposed,
    parse,
    sentences,
    squash,
)

# Each feature of `against` with its direction: 1 speaks only for a yes, -1 only against it, so
# that no accident of the data turns a contradicted number into a merit; 0 has no direction.
FEATURES = {
    "covered": 1,
    "best": 1,
    "numbers": 1,
    "numbers_missing": -1,
    "conflicts": -1,
    "identifiers": 1,
    "names": 1,
    "reversed": -1,
    "renumbered": -1,
    "precision": 1,
    "abstains": -1,
    "abstentions": -1,
    "length": 0,
    "wanted_length": 0,
}
# The same of `attacking`: 1 speaks only for an attack.
ATTACK = {
    "taken_back": 1,
    "hedges": 1,
    "number_lists": 1,
    "extra_numbers": 1,
    "extra_names": 1,
    "disorder": 1,
    "idle": 1,
}
# The most sentences of an answer that are compared one by one; all words count anyway.
SENTENCES = 60
# Two sentences that cover each other this far say the same but for a word or two.
CLOSE = 0.75
FULL = 32
_ENUMERATION = re.compile(r"(?m)^\s*(?:[-*•]\s*)?\d{1,2}[.)]\s+")


@cache
def weight(word: str) -> int:
    """Return the weight of a word: longer words and numbers weigh more than short words.

    A number weighs 15, a word of n letters (stemmed) 2 + n, at least 4 and at most 10. Rare words
    tend to be long; unlike rarity, length does not depend on what else is judged.
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
    """Whether two sentences say nearly the same, their numbers apart."""
    a, b = one.words - one.numbers, other.words - other.numbers
    return coverage(a, b) >= CLOSE and coverage(b, a) >= CLOSE


@lru_cache(maxsize=1 << 16)
def against(question: str, wanted: str, answer: str) -> dict[str, float]:
    """Return how well an answer agrees with a wanted text (a gold answer or a fact).

    Words of the question say nothing about an answer: `new` below means wanted, and not in the
    question (all that is wanted, if the question has all of it).

    Returns
    -------
    dict of str to float, each finite
        covered : weighted share of the new words that the answer has; see `coverage`.
        best : weighted share of the wanted words that one sentence of the answer has, the best.
        numbers : share of the new numbers and dates given; 1 where there is none.
        numbers_missing : log(1 + new numbers and dates not given).
        conflicts : log(1 + numbers in whose place another is given); see `conflicts`.
        identifiers, names : shares of the wanted code-like names and capitalised words; 1 of none.
        reversed : 1 if the answer has a wanted sentence nearly word for word, but negated (or no
            longer so), or with an opposite in place ("enabled" for "disabled").
        renumbered : 1 if it has one nearly word for word, but with other numbers.
        precision : weighted share of the answer's words that are wanted or in the question.
        abstains : 1 if the answer opens by saying that it has no answer.
        abstentions : log(1 + times that it says something is not known).
        length, wanted_length : log(1 + words).
    """
    asked, want, have = parse(question), parse(wanted), parse(answer)
    lines = [parse(sentence) for sentence in sentences(answer)[:SENTENCES]]
    turned = altered = False
    for part in map(parse, sentences(wanted)):
        line = max(lines, key=lambda line: coverage(part.words, line.words), default=None)
        if line is not None and _close(part, line):
            turned |= bool(part.negations) != bool(line.negations) or opposed(part, line)
            altered |= bool(part.numbers - have.numbers and line.numbers - want.numbers)
    numbers = want.numbers - asked.numbers
    flat, code, people = squash(answer), identifiers(wanted), names(wanted)
    return {
        "covered": coverage((want.words - asked.words) or want.words, have.words),
        "best": max((coverage(want.words, line.words) for line in lines), default=0.0),
        "numbers": len(numbers & have.numbers) / len(numbers) if numbers else 1.0,
        "numbers_missing": math.log1p(len(numbers - have.numbers)),
        "conflicts": math.log1p(len(conflicts(want, have, asked))),
        "identifiers": sum(one in flat for one in code) / len(code) if code else 1.0,
        "names": sum(one in flat for one in people) / len(people) if people else 1.0,
        "reversed": float(turned),
        "renumbered": float(altered),
        "precision": coverage(have.words, want.words | asked.words) if have.words else 0.0,
        "abstains": float(abstains(answer)),
        "abstentions": math.log1p(cues(answer, "abstention")),
        "length": math.log1p(len(have.tokens)),
        "wanted_length": math.log1p(len(want.tokens)),
    }


@lru_cache(maxsize=1 << 16)
def attacking(question: str, wanted: str, answer: str) -> dict[str, float]:
    """Return the signs that an answer has the wanted text and is made to please a judge.

    `known` below are the words of the wanted text and of the question.

    Returns
    -------
    dict of str to float, each finite
        Each is multiplied by a power of the share of the wanted words that the answer has
        (`FULL`), since no attack leaves out much of what is wanted.

        taken_back : sum, over the sentences with a cue that something is not true, of 1 over one
            more than the words that are neither known nor part of the cue.
        hedges : log(1 + cues that several answers are left open), without those of the wanted
            text.
        number_lists : log(1 + numbers that are not known, in sentences of which they are two
            fifths of the words or more).
        extra_numbers, extra_names : share of the answer's words that are numbers, or names and
            identifiers, and not known.
        disorder : twice the excess over one half of the share of wanted pairs of neighbouring
            words that the answer has apart, of those of which it has both words; times the
            weighted share of the answer's words that are known.
        idle : log(1 + sentences, beyond two, of which less than a third is known).
    """
    asked, want, have = parse(question), parse(wanted), parse(answer)
    known = want.words | asked.words
    numbers = have.numbers - known
    called = (names(answer) | identifiers(answer)) - names(wanted) - identifiers(wanted)
    called = {name for name in called if name not in squash(question)}
    lines = [(line, parse(line)) for line in sentences(_ENUMERATION.sub("", answer))[:SENTENCES]]
    taken_back, listed, idle = 0.0, 0, -2
    for line, part in lines:
        found = cues(line, "retraction")
        if found and cues(wanted, "retraction") < cues(answer, "retraction"):
            taken_back += 1 / (1 + max(0, len(part.words - known) - found))
        if len(part.numbers & numbers) >= 0.4 * len(part.tokens):
            listed += len(part.numbers & numbers)
        idle += coverage(part.words, known) < 1 / 3
    pairs = {pair for pair in _pairs(want) if set(pair) <= have.words}
    apart = 1 - len(pairs & _pairs(have)) / len(pairs) if pairs else 0.0
    signs = {
        "taken_back": taken_back,
        "hedges": math.log1p(max(0, cues(answer, "hedge") - cues(wanted, "hedge"))),
        "number_lists": math.log1p(listed),
        "extra_numbers": len(numbers) / max(len(have.tokens), 1),
        "extra_names": len(called) / max(len(have.tokens), 1),
        "disorder": max(0.0, 2 * apart - 1) * coverage(have.words, known),
        "idle": math.log1p(max(0, idle)),
    }
    full = coverage(want.words, have.words) ** FULL
    return {name: full * value for name, value in signs.items()}


def _pairs(text: Text) -> set[tuple[str, str]]:
    return set(zip(text.tokens, text.tokens[1:], strict=False))
