"""What the offline judge looks at: features of one task, computed from that task alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
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
    "covered_new",
    "covered_together",
    "sentence_least",
    "sentence_mean",
    "best",
    "numbers",
    "numbers_new",
    "numbers_missing",
    "conflicts",
    "identifiers",
    "names",
    "reversed",
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


def share(wanted: Iterable, present) -> float:
    """Return the share of the things `wanted` that are `present`; 1 of nothing."""
    wanted = set(wanted)
    return len(wanted & set(present)) / len(wanted) if wanted else 1.0


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


@lru_cache(maxsize=1 << 16)
def against(question: str, wanted: str, answer: str) -> dict[str, float]:
    """Return how an answer meets a text that is wanted of it (a gold answer, a fact).

    Returns
    -------
    dict of str to float, each finite
        covered : weighted share of the wanted words that the answer has.
        covered_new : the same of words that the question does not have.
        covered_together : share of pairs of neighbouring words that the answer has.
        sentence_least, sentence_mean : over the wanted sentences, how far the answer's best
            sentence covers each.
        best : `covered` by the best sentence of the answer.
        numbers, numbers_new : share of the wanted numbers and dates (not in the question) given.
        numbers_missing : log(1 + how many are not given).
        conflicts : log(1 + numbers in whose place another is given); see `conflicts`.
        identifiers, names : shares of the wanted code-like names and capitalised words.
        reversed : share of the wanted sentences that the answer has nearly word for word, but
            negated (or no longer so), or with an opposite in place ("enabled" for "disabled").
        precision : weighted share of the answer's words that are wanted or in the question.
        abstains : 1 if the answer opens by saying that it has no answer.
        abstentions : log(1 + times that it says something is not known).
        length, wanted_length : log(1 + words).
    """
    asked, want, have = parse(question), parse(wanted), parse(answer)
    new = want.words - asked.words
    lines = [parse(sentence) for sentence in sentences(answer)[:SENTENCES]]
    parts = [parse(sentence) for sentence in sentences(wanted)] or [want]
    turned, covers = 0, []
    for part in parts:
        best, found = 0.0, None
        for line in lines:
            value = coverage(part.words, line.words)
            if value > best:
                best, found = value, line
        covers.append(best)
        if best >= CLOSE and coverage(found.words, part.words) >= CLOSE:
            turned += bool(part.negations) != bool(found.negations) or opposed(part, found)
    numbers_new = want.numbers - asked.numbers
    flat = squash(answer)
    code = identifiers(wanted)
    people = names(wanted)
    return {
        "covered": coverage(want.words, have.words),
        "covered_new": coverage(new, have.words),
        "covered_together": share(want.pairs, have.pairs),
        "sentence_least": min(covers),
        "sentence_mean": math.fsum(covers) / len(covers),
        "best": max((coverage(want.words, line.words) for line in lines), default=0.0),
        "numbers": share(want.numbers, have.numbers),
        "numbers_new": share(numbers_new, have.numbers),
        "numbers_missing": math.log1p(len(numbers_new - have.numbers)),
        "conflicts": math.log1p(len(conflicts(want, have, asked))),
        "identifiers": sum(one in flat for one in code) / len(code) if code else 1.0,
        "names": sum(one in flat for one in people) / len(people) if people else 1.0,
        "reversed": turned / len(parts),
        "precision": coverage(have.words, want.words | asked.words) if have.words else 0.0,
        "abstains": float(abstains(answer)),
        "abstentions": math.log1p(abstentions(answer)),
        "length": math.log1p(len(have.tokens)),
        "wanted_length": math.log1p(len(want.tokens)),
    }
