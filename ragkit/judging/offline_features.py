"""What the offline judge looks at: features of one task, computed from that task alone."""

from __future__ import annotations

import math
from functools import cache, lru_cache

from ragkit.judging.offline_text import (
    Text,
    abstains,
    abstentions,
    identifiers,
    names,
    opposed,
    parse,
    sentences,
    squash,
)

FEATURES = (
    "covered",
    "best",
    "numbers",
    "numbers_missing",
    "conflicts",
    "identifiers",
    "names",
    "reversed",
    "renumbered",
    "precision",
    "abstains",
    "abstentions",
    "length",
    "wanted_length",
)
# Most sentences of an answer that are compared one by one; all words count anyway.
SENTENCES = 60
# Two sentences that cover each other this far say the same but for a word or two.
CLOSE = 0.75


@cache
def weight(word: str) -> int:
    """Return how much a word tells: longer words and numbers more than short ones.

    A number weighs 15, a word of n letters (stemmed) 2 + n, at least 4 and at most 10. Rare words
    are long by and large; unlike a word's rarity among the answers at hand, its length does not
    change with what else is judged.
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
    """Return the numbers wanted in whose place another one is given.

    A number is contradicted if it is not given, and a number that is neither wanted nor in the
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
    """Return how an answer meets a text that is wanted of it (a gold answer, a fact).

    What the question has already tells nothing: `new` below means wanted, and not in the question
    (all that is wanted, where the question has all of it).

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
        "abstentions": math.log1p(abstentions(answer)),
        "length": math.log1p(len(have.tokens)),
        "wanted_length": math.log1p(len(want.tokens)),
    }
