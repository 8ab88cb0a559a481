"""Words, numbers, dates, identifiers and cues of a text, as the offline judge compares them.

Everything here looks at one text alone and is the same on every machine: no model, no counts over
a collection. The lists of words and the patterns of cues are data, in `offline_words.toml`.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from ragkit import text as words_of
from ragkit.text import STOP_WORDS, stem

_DATA = tomllib.loads((Path(__file__).parent / "offline_words.toml").read_text("utf-8"))
MONTHS = _DATA["months"].split()
_MONTH = {name: number for number, name in enumerate(MONTHS, 1)}
_MONTH |= {name[:3]: number for name, number in _MONTH.items()} | {"sept": 9}
_TENS = _DATA["tens"].split()
_NUMBER_WORDS = {word: number for number, word in enumerate(_DATA["numbers"].split())}
_NUMBER_WORDS |= {word: 10 * number for number, word in enumerate(_TENS, 2)}
NEGATIONS = frozenset(_DATA["negations"].split())
_OPPOSED_PAIRS = [tuple(map(stem, pair.split("/"))) for pair in _DATA["opposites"].split()]
_OPPOSED = frozenset(word for pair in _OPPOSED_PAIRS for word in pair)
CUES = {
    name: re.compile(pattern.replace("\n", "").replace(" ", r"\s+"), re.IGNORECASE)
    for name, pattern in _DATA["patterns"].items()
}
_TOKEN, _IDENTIFIER = (
    re.compile(_DATA["tokens"][name].replace("MONTH", _DATA["tokens"]["month"]), re.VERBOSE)
    for name in ("token", "identifier")
)
_CITATION = re.compile(r"\s?\[\d+(?:\s*[,;-]\s*\d+)*\]")
_CAPITAL = re.compile(r"(?<![.!?:]\s)(?<!^)(?<![\n*\-•])\b[A-Z][a-z]{2,}\b")


class Text(NamedTuple):
    """The parts of a text that are compared. Numbers and dates are strings in one spelling."""

    tokens: tuple[str, ...]
    words: frozenset[str]
    numbers: frozenset[str]
    units: frozenset[tuple[str, str]]  # a number and the word behind it
    negations: int
    opposites: frozenset[str]  # words that have an opposite


@lru_cache(maxsize=1 << 16)
def parse(text: str) -> Text:
    """Return the words of a text, stemmed and without stop words, and its numbers.

    Numbers and number words become digits without separators and trailing zeros (`10,000` and
    `10k` are `10000`, `2.50` is `2.5`), `5 percent` becomes `5%`, a date its day (`04-07`) and its
    year, a time `09:30`. A unit is separated from its number (`10MiB` is `10 MiB`).

    >>> sorted(parse("On April 7th, 2026 twenty-five of 10,000 files").numbers)
    ['04-07', '10000', '2026', '25']
    """
    tokens: list[str] = []
    numbers: set[str] = set()
    opposites: set[str] = set()
    negations, end_of_number, tens = 0, -1, None
    for found in _TOKEN.finditer(simplify(text)):
        word = found["word"]
        if word is None:
            new = _number(found)
            tokens += new
            numbers.update(new)
            end_of_number = found.end() if found["number"] else -1
            continue
        negations += word in NEGATIONS or word.endswith("n't")
        opposites |= {stem(word)} & _OPPOSED
        if word in _NUMBER_WORDS:
            value = _NUMBER_WORDS[word]
            if tens and 0 < value < 10 and found.start() - tens[1] <= 1:
                numbers.discard(tokens.pop())
                value += tens[0]
            tens = (value, found.end()) if word in _TENS else None
            tokens.append(str(value))
            numbers |= {str(value)} if value > 1 else set()
        elif found.start() == end_of_number and word in _DATA["letters"]:
            tokens.append(stem(_DATA["letters"][word]))
        elif word in ("percent", "cent", "pct") and tokens and tokens[-1] in numbers:
            numbers.discard(tokens[-1])
            tokens[-1] = tokens[-1].rstrip("%") + "%"
            numbers.add(tokens[-1])
        elif word in _DATA["units"]:
            tokens.append(stem(_DATA["units"][word]))
        elif word in _MONTH and word != "may":
            tokens.append(stem(MONTHS[_MONTH[word] - 1]))
        elif word not in STOP_WORDS and not word.endswith("n't"):
            tokens.append(stem(word))
    pairs = zip(tokens, tokens[1:], strict=False)
    units = {(one, other) for one, other in pairs if one in numbers and other not in numbers}
    sets = (frozenset(found) for found in (tokens, numbers, units))
    return Text(tuple(tokens), *sets, negations, frozenset(opposites))


_DATES = {"iso": "iy im id", "mdy": "my mm md", "dmy": "dy dm dd", "slash": "sy sm sd"}


def _number(found: re.Match) -> list[str]:
    """Return a match's number, time, or day and year."""
    if found["number"]:
        return [_plain(found["number"], found["suffix"] or "")]
    if found["time"]:
        hour, half = int(found["th"]), found["half"] or found["half2"]
        if half:
            hour = hour % 12 + 12 * (half == "p")
        return [f"{hour:02d}:{found['tm'] or '00'}"]
    names = next(names for kind, names in _DATES.items() if found[kind])
    year, month, day = (found[name] for name in names.split())
    number, own_day = int(month) if month.isdigit() else _MONTH[month[:3]], int(day)
    if number > 12:  # 25/12/2026
        number, own_day = own_day, number
    return [f"{number:02d}-{own_day:02d}", *([year] if year else [])]


def _plain(number: str, suffix: str) -> str:
    number = number.replace(",", "")
    if number.count(".") == 1:
        number = number.rstrip("0").rstrip(".")
    if number.isdigit():
        number = str(int(number))
    if suffix == "k":
        return f"{float(number) * 1000:g}" if number.count(".") < 2 else number
    return number + "%" * ("%" in suffix or "cent" in suffix)


def simplify(text: str) -> str:
    """Return a text in lower case, in one form of Unicode, without citations such as [2].

    >>> simplify("It COSTS 10 euros [2].")
    'it costs 10 euros.'
    """
    text = unicodedata.normalize("NFKC", text).replace("’", "'")
    return _CITATION.sub("", text).lower()


def opposed(one: Text, other: Text) -> bool:
    """Return whether one text has a word and the other only its opposite ("enable", "disable").

    >>> opposed(parse("retries are enabled"), parse("retries are disabled"))
    True
    """
    a, b = one.opposites - other.opposites, other.opposites - one.opposites
    return any((x in a and y in b) or (y in a and x in b) for x, y in _OPPOSED_PAIRS)


@lru_cache(maxsize=1 << 16)
def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences and lines of a text that hold a word, without marks of lists.

    >>> sentences("- Reset it.\\n- Then wait.")
    ('Reset it.', 'Then wait.')
    """
    parts = (part.strip(" \t-*#|>•") for part in words_of.sentences(_CITATION.sub("", text)))
    return tuple(part for part in parts if parse(part).tokens)


@lru_cache(maxsize=1 << 16)
def identifiers(text: str) -> frozenset[str]:
    """Return code-like names in lower case without marks: `max_retries`, `camelCase`, `INC-12`.

    >>> sorted(identifiers("Set maxRetries in app/settings.py, see INC-12"))
    ['appsettingspy', 'inc12', 'maxretries']
    """
    found = _IDENTIFIER.findall(text)
    return frozenset(squash(one) for one in found if not one.replace(".", "").isdigit())


def squash(text: str) -> str:
    """Return the letters and digits of a text, in lower case.

    >>> squash("INC-12: Max_Retries")
    'inc12maxretries'
    """
    return re.sub(r"[\W_]+", "", text.lower())


@lru_cache(maxsize=1 << 16)
def names(text: str) -> frozenset[str]:
    """Return words with a capital inside a sentence, in lower case: names of people and products.

    >>> sorted(names("The owner is Ada Byron. She left."))
    ['ada', 'byron']
    """
    return frozenset(found.lower() for found in _CAPITAL.findall(text))


@lru_cache(maxsize=1 << 16)
def cues(text: str, kind: str) -> int:
    """Return how often a text has a cue of a kind: a name in `CUES`."""
    return len(CUES[kind].findall(text))


def abstains(text: str) -> bool:
    """Return whether a text opens by saying that it has no answer.

    >>> abstains("I could not find that in the documents.")
    True
    """
    return cues(" ".join(text.split())[:200], "abstention") > 0


def asks_abstention(gold: str) -> bool:
    """Return whether a gold answer says, in its opening, that the question has no answer.

    >>> asks_abstention("There is no information about this in the documents.")
    True
    """
    return cues(" ".join(gold.split())[:200], "asks_abstention") > 0
