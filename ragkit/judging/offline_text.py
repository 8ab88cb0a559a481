"""Words, numbers, dates, identifiers and cues of a text, as the offline judge compares them.

Everything here looks at one text alone and is the same on every machine: no model, no counts over
a collection.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

MONTHS = (
    "january february march april may june july august september october november december".split()
)
_MONTH = {name: number for number, name in enumerate(MONTHS, 1)}
_MONTH |= {name[:3]: number for name, number in _MONTH.items()} | {"sept": 9}
_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_NUMBER_WORDS = {word: number for number, word in enumerate(_SMALL)} | {
    word: 10 * number for number, word in enumerate(_TENS, 2)
}
_UNITS = {
    "ms": "millisecond", "msec": "millisecond", "sec": "second", "secs": "second",
    "min": "minute", "mins": "minute", "hr": "hour", "hrs": "hour", "kib": "kb", "mib": "mb",
    "gib": "gb", "tib": "tb",
}  # fmt: skip
# Units of one letter, where they stand right behind a number.
_LETTERS = {"s": "second", "m": "minute", "h": "hour", "d": "day", "x": "time", "b": "billion"}
STOP_WORDS = frozenset(
    """a about after all also although an and any are as at be because been before being both but by
    can could did do does doing done each either else etc few for from further had has have having
    he her hers here him his how however i if in into is it its itself just may me might more most
    much must my no nor not now of off on once only onto or other our out over own per she should
    since so some such than that the their them then there these they this those through to too
    under until up upon us very via was we were what when where whether which while who whom whose
    why will with within without would you your yes""".split()
)
NEGATIONS = frozenset("no not never none neither nor cannot without nobody nothing nowhere".split())
_OPPOSITES = [
    tuple(pair.split("/"))
    for pair in (
        "enable/disable increase/decrease allow/deny allow/forbid accept/reject before/after "
        "above/below more/less more/fewer higher/lower maximum/minimum max/min success/failure "
        "succeed/fail start/stop open/close include/exclude internal/external public/private "
        "optional/mandatory optional/required true/false always/never first/last "
        "synchronous/asynchronous sync/async raise/lower add/remove upgrade/downgrade up/down "
        "early/late old/new approve/reject earlier/later on/off read/write inbound/outbound "
        "incoming/outgoing pass/fail valid/invalid"
    ).split()
]  # fmt: skip

_MONTH_NAME = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec)[a-z]*"
_TOKEN = re.compile(
    rf"""(?P<iso>\b(?P<iy>\d{{4}})-(?P<im>\d\d)-(?P<id>\d\d)(?!\d))
    |(?P<mdy>\b(?P<mm>{_MONTH_NAME})\.?\s+(?P<md>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)
        (?:,?\s+(?P<my>\d{{4}})\b)?)
    |(?P<dmy>\b(?P<dd>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<dm>{_MONTH_NAME})\b
        (?:\.?,?\s+(?P<dy>\d{{4}})\b)?)
    |(?P<slash>\b(?P<sm>\d{{1,2}})/(?P<sd>\d{{1,2}})/(?P<sy>\d{{4}})\b)
    |(?P<time>\b(?P<th>\d{{1,2}})(?::(?P<tm>\d\d)(?::\d\d)?(?:\s*(?P<half>[ap])\.?m\b)?
        |\s*(?P<half2>[ap])m\b))
    |(?P<number>\d+(?:,\d{{3}})+(?:\.\d+)?|\d+(?:\.\d+)*)
        (?P<suffix>\s?%|\s+per\s?cent\b|k\b|(?:st|nd|rd|th)\b)?
    |(?P<word>[a-z]+(?:'t\b)?)""",
    re.VERBOSE,
)
_CITATION = re.compile(r"\s?\[\d+(?:\s*[,;-]\s*\d+)*\]")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\s*\n+\s*")
_IDENTIFIER = re.compile(
    r"[A-Za-z0-9]+(?:[._/:-]{1,2}[A-Za-z0-9]+)+"  # a.b, a_b, a/b, a::b, INC-12
    r"|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b|\b(?:[A-Z][a-z0-9]+){2,}\b|\b[A-Z]{2,}[0-9]+\b"
)
_CAPITAL = re.compile(r"(?<![.!?:]\s)(?<!^)(?<![\n*\-•])\b[A-Z][a-z]{2,}\b")
# What people and models say where they do not know.
_ABSTENTION = re.compile(
    r"""(?:\bnot|n't|\bnever|\bcannot|\bunable\s+to)\s+(?:\w+\s+){0,2}?(?:specified|specify|mentioned
        |mention|provided|provide|contain|contained|include|included|available|found|find|stated
        |state|given|documented|defined|described|disclosed|listed|determined?|answerable|answer
        |enough|sufficient|know|known|clear|locate|confirm|present|identified|identify|detail(?:s|ed)?|address(?:ed)?)\b
    |\bno\s+(?:\w+\s+){0,2}?(?:information|mentions?|details?|evidence|data|answer|reference|indication
        |documentation|record)\b
    |\b(?:insufficient|unanswerable|unknown|unclear)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_ASKS_ABSTENTION = re.compile(
    r"(?:\bnot|n't)\s+(?:\w+\s+){0,2}?(?:answerable|answered|found|available|known|specified"
    r"|documented|mentioned|contain|provided|stated)\b|\bunanswerable\b"
    r"|\bno\s+(?:\w+\s+){0,2}?(?:information|mention|documentation|record)\b",
    re.IGNORECASE,
)


class Text(NamedTuple):
    """What is compared of a text. Numbers and dates are strings in one spelling."""

    tokens: tuple[str, ...]
    words: frozenset[str]
    numbers: frozenset[str]
    units: frozenset[tuple[str, str]]  # a number and the word behind it
    negations: int
    opposites: frozenset[str]  # words that have one


@lru_cache(maxsize=1 << 16)
def parse(text: str) -> Text:
    """Return the words of a text, stemmed and without stop words, and its numbers.

    Numbers lose thousands separators and trailing zeros (`10,000` is `10000`, `2.50` is `2.5`),
    number words become digits, `10k` becomes `10000`, `5 percent` becomes `5%`. A date in any of
    the usual spellings becomes its day (`04-07`) and its year; a time becomes `09:30`. A unit
    that sticks to its number comes off (`10MiB` is `10 MiB`).

    >>> sorted(parse("On April 7th, 2026 twenty-five of 10,000 files").numbers)
    ['04-07', '10000', '2026', '25']
    """
    tokens, numbers, negations, seen = [], set(), 0, set()
    end_of_number, tens = -1, None
    for found in _TOKEN.finditer(simplify(text)):
        kind = found.lastgroup if found.lastgroup in _KINDS else _kind(found)
        made: list[str] = []
        if kind == "word":
            word = found["word"]
            if word in NEGATIONS or word.endswith("n't"):
                negations += 1
            seen.add(word if word in _OPPOSED else stem(word))
            attached = found.start() == end_of_number
            if word in _NUMBER_WORDS:
                value = _NUMBER_WORDS[word]
                if tens and value < 10 and value and found.start() - tens[1] <= 1:
                    tokens.pop()
                    numbers.discard(str(tens[0]))
                    value += tens[0]
                tens = (value, found.end()) if word in _TENS else None
                made = [str(value)]
                if value > 1:
                    numbers.add(made[0])
            elif attached and word in _LETTERS:
                tokens.append(stem(_LETTERS[word]))
            elif word in ("percent", "cent", "pct") and tokens and tokens[-1] in numbers:
                numbers.discard(tokens[-1])
                tokens[-1] = tokens[-1].rstrip("%") + "%"
                numbers.add(tokens[-1])
            elif word in _UNITS:
                tokens.append(stem(_UNITS[word]))
            elif word in _MONTH and word != "may":
                tokens.append(MONTHS[_MONTH[word] - 1])
            elif word not in STOP_WORDS and not word.endswith("n't"):
                tokens.append(stem(word))
        else:
            made = _number(found, kind)
            numbers.update(made)
            if kind == "number":
                end_of_number = found.end()
        tokens += made
    pairs = zip(tokens, tokens[1:], strict=False)
    return Text(
        tuple(tokens),
        frozenset(tokens),
        frozenset(numbers),
        frozenset((one, other) for one, other in pairs if one in numbers and other not in numbers),
        negations,
        frozenset(seen & _OPPOSED),
    )


_KINDS = ("iso", "mdy", "dmy", "slash", "time", "number", "word")


def _kind(found) -> str:
    return next(kind for kind in _KINDS if found[kind] is not None)


def _number(found, kind: str) -> list[str]:
    """Return a match's number, time, or day and year."""
    if kind == "number":
        return [_plain(found["number"], found["suffix"] or "")]
    if kind == "time":
        hour, half = int(found["th"]), found["half"] or found["half2"]
        if half:
            hour = hour % 12 + 12 * (half == "p")
        return [f"{hour:02d}:{found['tm'] or '00'}"]
    year, month, day = {
        "iso": ("iy", "im", "id"),
        "mdy": ("my", "mm", "md"),
        "dmy": ("dy", "dm", "dd"),
        "slash": ("sy", "sm", "sd"),
    }[kind]
    number = found[month]
    number = int(number) if number.isdigit() else _MONTH[number[:3]]
    number, own_day = (number, int(found[day]))
    if number > 12:  # 25/12/2026
        number, own_day = own_day, number
    return [f"{number:02d}-{own_day:02d}", *([found[year]] if found[year] else [])]


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
    """Return a text in lower case, in one form of Unicode, without citations such as [2]."""
    text = unicodedata.normalize("NFKC", text).replace("’", "'")
    return _CITATION.sub("", text).lower()


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """Return a word without one common ending, if four letters are left (three before an s)."""
    if word.endswith(("ss", "us", "is")):
        return word
    for ending in ("ing", "edly", "ed", "es", "s", "ly", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4 - (ending == "s"):
            return word[: -len(ending)]
    return word


_OPPOSED = frozenset(stem(word) for pair in _OPPOSITES for word in pair)
_OPPOSED_PAIRS = [(stem(one), stem(other)) for one, other in _OPPOSITES]


def opposed(one: Text, other: Text) -> bool:
    """Whether one text has a word and the other only its opposite ("enable", "disable").

    >>> opposed(parse("retries are enabled"), parse("retries are disabled"))
    True
    """
    if not one.opposites or not other.opposites:
        return False
    a, b = one.opposites, other.opposites
    return any(
        (x in a and y in b and x not in b and y not in a)
        or (y in a and x in b and y not in b and x not in a)
        for x, y in _OPPOSED_PAIRS
    )


@lru_cache(maxsize=1 << 16)
def sentences(text: str) -> tuple[str, ...]:
    """Return the sentences and lines of a text that hold a word."""
    parts = (part.strip(" \t-*#|>•") for part in _SENTENCE.split(_CITATION.sub("", text)))
    return tuple(part for part in parts if parse(part).tokens)


@lru_cache(maxsize=1 << 16)
def identifiers(text: str) -> frozenset[str]:
    """Return code-like names in lower case without marks: `max_retries`, `camelCase`, `INC-12`.

    >>> sorted(identifiers("Set maxRetries in app/settings.py, see INC-12"))
    ['appsettingspy', 'inc12', 'maxretries']
    """
    return frozenset(
        squash(found) for found in _IDENTIFIER.findall(text) if not found.replace(".", "").isdigit()
    )


@lru_cache(maxsize=1 << 16)
def squash(text: str) -> str:
    """Return the letters and digits of a text, in lower case."""
    return re.sub(r"[\W_]+", "", text.lower())


@lru_cache(maxsize=1 << 16)
def names(text: str) -> frozenset[str]:
    """Return words with a capital inside a sentence, in lower case: names of people and products.

    >>> sorted(names("The owner is Ada Byron. She left."))
    ['ada', 'byron']
    """
    return frozenset(found.lower() for found in _CAPITAL.findall(text))


@lru_cache(maxsize=1 << 16)
def abstentions(text: str) -> int:
    """Return how often a text says that something is not known, not found or not stated."""
    return len(_ABSTENTION.findall(text))


@lru_cache(maxsize=1 << 16)
def abstains(text: str) -> bool:
    """Whether a text opens by saying that it has no answer.

    >>> abstains("I could not find that in the documents.")
    True
    """
    return bool(_ABSTENTION.search(" ".join(text.split())[:200]))


@lru_cache(maxsize=1 << 16)
def asks_abstention(gold: str) -> bool:
    """Whether a gold answer says, in its opening, that the question has no answer."""
    return bool(_ASKS_ABSTENTION.search(" ".join(gold.split())[:200]))
