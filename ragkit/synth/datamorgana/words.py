"""Words of questions and documents: those that carry meaning, those in common, phrases with choices."""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from pathlib import Path

from ragkit.files import read_text
from ragkit.synth.streams import Stream
from ragkit.text import STOP_WORDS, stem

FOLDER = Path(__file__).parent
# Words of asking, which say nothing of what is asked about.
ASKING = frozenset(
    """tell give say list name explain compare define describe mean means meant know known want needs
    please question answer here think thing things according there set used""".split()
)
_WORD = re.compile(r"[^\W_]+(?:[.,:–-]\d+)*")
_CHOICE = re.compile(r"\[([^\[\]]*\|[^\[\]]*)\]")


@cache
def phrases() -> dict:
    return tomllib.loads(read_text(FOLDER / "phrases.toml"))


@cache
def lines(name: str) -> tuple[str, ...]:
    """Return the lines of a data file after its heading."""
    return tuple(read_text(FOLDER / f"{name}.md").splitlines()[1:])


def words(text: str) -> list[str]:
    """Return the words of a text in small letters; a number with its separators is one."""
    return [w.lower() for w in _WORD.findall(re.sub(r"['’]s\b", "", text))]


def content(text: str) -> list[str]:
    """Return the words that carry meaning, in order."""
    return [w for w in words(text) if w not in STOP_WORDS and (len(w) > 2 or w.isdigit())]


def names(*texts: str) -> frozenset[str]:
    return frozenset(w for text in texts for w in words(text))


def overlap(question: str, document: str, known: frozenset[str] = frozenset()) -> float:
    """Return the share of a question's words that stand in a document, in any form.

    Words of asking and the names of what is asked about do not count: names have to be there
    however the rest is put.

    Returns
    -------
    float from 0 to 1; 0 where nothing is left to compare
    """
    asked = {stem(w) for w in content(question) if w not in ASKING and w not in known}
    return len(asked & _stems(document)) / len(asked) if asked else 0.0


@lru_cache(maxsize=8192)
def _stems(document: str) -> frozenset[str]:
    return frozenset(map(stem, words(document)))


def count(text: str, known: frozenset[str] = frozenset()) -> int:
    """Return the number of words; a run of words of names counts as one."""
    total, inside = 0, False
    for word in text.split():
        named = bool(known) and set(words(word)) <= known
        total += not (named and inside)
        inside = named
    return total


def cap(text: str) -> str:
    return text[:1].upper() + text[1:]


def small(text: str, known: frozenset[str] = frozenset()) -> str:
    """Return a sentence to go after a comma: its first letter small, unless it begins a name."""
    first = words(text)[:1]
    if not first or first[0] in known or re.match(r"I\b|[A-Z]{2}|[A-Z]-|\d", text):
        return text
    return text[:1].lower() + text[1:]


def keywords(text: str) -> str:
    """Return a text without punctuation, in small letters; numbers and codes keep theirs."""
    text = re.sub(r"(?<!\d)[.,:;!?'’\"()]+|[.,:;!?'’\"()]+(?!\d)", " ", text.lower())
    return " ".join(dict.fromkeys(text.replace(" & ", " ").split()))


def fill(phrase: str, slots: dict[str, str], stream: Stream) -> str:
    """Return a phrase with its slots filled; of `[a|b]` one is chosen."""
    for name, value in slots.items():
        phrase = phrase.replace("{" + name + "}", value)
    return _CHOICE.sub(lambda match: stream.pick(match[1].split("|")), phrase)


@cache
def added(phrase: str) -> int:
    """Return the most words that a phrase adds to a question; a title counts as three."""
    longest = _CHOICE.sub(lambda m: max(m[1].split("|"), key=lambda p: len(p.split())), phrase)
    longest = re.sub(r"\{q2?\}", "", longest)
    return len(re.sub(r"\{(title|thing)\}", "a b c", longest).split())
