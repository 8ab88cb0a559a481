"""From text to index terms: the word rules of Lucene and of bm25s.

The table of character classes is kept beside this module, because libraries follow newer versions
of Unicode than Lucene and lack its additions: with the package `regex`, word boundaries differ.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

from ragkit.text import stems

MAX_TOKEN_LENGTH = 255  # of Lucene's standard tokenizer, in UTF-16 code units
TABLE = Path(__file__).with_name("word_break.toml")

# The English stop words of bm25s, which are Lucene's old ones.
FLASHRAG_STOP_WORDS = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with".split()
)


def standard_terms(text: str) -> list[str]:
    """Return the terms of a text as Lucene's StandardAnalyzer finds them.

    Words end at the word boundaries of UAX #29 and are put in lower case. There are no stop words.

    >>> standard_terms("Don't reset pump-2!")
    ["don't", 'reset', 'pump', '2']
    """
    return list(map(lower, standard_words(text)))


def flashrag_terms(text: str) -> list[str]:
    """Return the terms of a query as bm25s finds them by default: no stop words, not stemmed.

    >>> flashrag_terms("What is in the settings?")
    ['what', 'settings']
    """
    words = re.findall(r"\b\w\w+\b", text.lower())
    return [word for word in words if word not in FLASHRAG_STOP_WORDS]


def flashrag_index_terms(text: str) -> list[str]:
    """Return the terms of a document: those of a query, stemmed.

    >>> flashrag_index_terms("What is in the settings?")
    ['what', 'set']
    """
    return stems(flashrag_terms(text))


def lower(word: str) -> str:
    """Return `word` in lower case, one code point for one, as Java does it.

    Python would make two code points of I with a dot and look at a sigma's neighbours.
    """
    return word.lower() if word.isascii() else word.replace("İ", "i").replace("Σ", "σ").lower()


def standard_words(text: str) -> list[str]:
    """Return the words of a text as Lucene's standard tokenizer finds them, case kept.

    A word longer than 255 UTF-16 code units comes in pieces.

    Source: Unicode Standard Annex #29, section 4.1, with Lucene's additions: ideographs and
    hiragana one by one, runs of Thai, Lao, Khmer and Myanmar as one word, emoji sequences.
    """
    pattern = _ascii_words() if text.isascii() else _words()
    words = pattern.findall(text)
    short = MAX_TOKEN_LENGTH // 2
    long = len(text) > short and any(
        len(word) > short and _units(word) > MAX_TOKEN_LENGTH for word in words
    )
    return _in_pieces(pattern, text) if long else words


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _in_pieces(pattern: re.Pattern, text: str) -> list[str]:
    """Split a text that has a word that is too long; Lucene never looks further than 255 units."""
    words, at = [], 0
    while at < len(text):
        near = at + 8 * MAX_TOKEN_LENGTH  # a long word is looked at once, not from each piece
        found = pattern.search(text, at, near)
        if found is None:
            at = near - MAX_TOKEN_LENGTH
            continue
        start, end = found.start(), found.start() + MAX_TOKEN_LENGTH
        while _units(text[start:end]) > MAX_TOKEN_LENGTH:
            end -= 1
        found = pattern.match(text, start, end)
        if found:
            words.append(found[0])
        at = found.end() if found else start + 1
    return words


@cache
def _ascii_words() -> re.Pattern:
    return _pattern("A-Za-z", "0-9", joins_words="_", joins_letters=".:'", joins_numbers=".,;'")


@cache
def _words() -> re.Pattern:
    return _pattern(**character_classes())


def character_classes() -> dict[str, str]:
    """Return the inside of a regular expression's character class for each class of the table."""
    table = tomllib.loads(TABLE.read_text("utf-8"))
    return {
        name: "".join(
            "-".join(rf"\U{int(end, 16):08x}" for end in part.split("-")) for part in ranges.split()
        )
        for name, ranges in table.items()
    }


def _pattern(letter, number, joins_words, joins_letters, joins_numbers, extend="", **more):
    """Return the pattern of one word; each argument is the inside of a character class."""
    follows = f"[{extend}]*" if extend else ""  # WB4: marks and joiners belong to what precedes

    def run(of):
        return f"[{of}][{of}{extend}]*"

    letters, numbers = run(letter), run(number)
    if more:  # WB7a to WB7c: a quotation mark may follow a Hebrew letter, two may embrace none
        hebrew = f"[{more['hebrew']}]"
        letters = f"(?:{letters}|{hebrew}{follows}(?:'{follows}|\"{follows}(?={hebrew}))?)+"
    # WB5 to WB12: letters and numbers touch freely; a full stop joins like with like only.
    letters = f"{letters}(?:[{joins_letters}]{follows}{letters})*"
    numbers = f"{numbers}(?:[{joins_numbers}]{follows}{numbers})*"
    part = f"(?:{letters}|{numbers})+"
    if more:
        part = f"(?:{part}|{run(more['katakana'])})"  # WB13
    underscores = f"(?:[{joins_words}]{follows})"  # WB13a and WB13b
    word = f"{underscores}*{part}(?:{underscores}+{part})*{underscores}*"
    if not more:
        return re.compile(word)
    # Pictographs: skin tones, emoji presentation (nothing may follow it but a joiner), joiners.
    marks, plain = f"(?:(?!\ufe0f)[{extend}])*", f"(?![{more['modifier']}])[{more['pictograph']}]"
    tone = f"[{more['modifier']}]{marks}"
    person = f"[{more['pictograph_base']}]{marks}{tone}"
    emoji = f"(?:{person}|{plain}{marks}(?:\ufe0f\u200d?)?)"
    others = [
        run(more["southeast_asian"]),
        f"[{more['single']}]{follows}",
        f"(?:\u200d*{emoji}|{tone})(?:(?<=\u200d)(?:{emoji}|{tone}))*",
        f"(?:[{more['regional']}]{follows}){{2}}",
        f"[#*]{marks}(?:\ufe0f\u20e3)?(?<=\u20e3){marks}",
    ]
    return re.compile("|".join([word, *others]))
