"""Words of a question and of a document: counting, comparing, keeping what carries meaning."""

from __future__ import annotations

import re
from functools import lru_cache

from ragkit.synth.corpus import STOP

# Words of asking, which say nothing of what is asked about.
ASKING = frozenset(
    """tell give say list name explain compare define describe mean means meant know known want needs
    please question answer here think thing things according there set used""".split()
)
_WORD = re.compile(r"[^\W_]+(?:[.,:–-]\d+)*")


def words(text: str) -> list[str]:
    """Return the words of a text in small letters; a number with its separators is one."""
    return [w.lower() for w in _WORD.findall(text.replace("'s ", " ").replace("’s ", " "))]


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return a word without its commonest endings, so that forms of one word agree."""
    for end in ("ingly", "ing", "ied", "ies", "ed", "es", "ly", "s"):
        if word.endswith(end) and len(word) - len(end) >= 3:
            word = word[: -len(end)]
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def content(text: str) -> list[str]:
    """Return the words that carry meaning, in order."""
    return [w for w in words(text) if w not in STOP and (len(w) > 2 or w.isdigit())]


def overlap(question: str, document: str, names: frozenset[str] = frozenset()) -> float:
    """Return the share of a question's words that stand in a document, in any form.

    Words of asking and the names of what is asked about do not count: names have to be there
    however the rest is put.

    Returns
    -------
    float from 0 to 1; 0 where nothing is left to compare
    """
    asked = {stem(w) for w in content(question) if w not in ASKING and w not in names}
    if not asked:
        return 0.0
    return len(asked & _stems(document)) / len(asked)


@lru_cache(maxsize=8192)
def _stems(document: str) -> frozenset[str]:
    return frozenset(map(stem, words(document)))


def count(text: str, names: frozenset[str] = frozenset()) -> int:
    """Return the number of words; a run of words of names counts as one."""
    total, inside = 0, False
    for word in text.split():
        named = bool(names) and set(words(word + " ")) <= names
        total += not (named and inside)
        inside = named
    return total


def small(text: str, names: frozenset[str] = frozenset()) -> str:
    """Return a sentence to go after a comma: its first letter small, unless it begins a name."""
    first = words(text)[:1]
    if not first or first[0] in names or re.match(r"I\b|[A-Z]{2}|[A-Z]-|\d", text):
        return text
    return text[:1].lower() + text[1:]
