"""Token counts without network, by the encodings of `ragkit.text`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragkit import text
from ragkit.llm.exchange import canonical


def encoding_name(model: str) -> tuple[str, bool]:
    """Return the encoding for a model's name, and whether it is that model's own.

    For models without a known encoding it is `o200k_base`, which gives an estimate.
    """
    from tiktoken.model import encoding_name_for_model

    try:
        name = encoding_name_for_model(model.removeprefix("openai:"))
    except KeyError:
        return "o200k_base", False
    return (name, True) if name in text.ENCODINGS else ("o200k_base", False)


def count_tokens(string: str, model: str = "gpt-4o") -> int:
    """Return the number of tokens of `string`; special tokens count as plain text."""
    return len(text.encoding(encoding_name(model)[0]).encode_ordinary(string))


def count_request(request: Mapping[str, Any], model: str) -> int:
    """Return the number of tokens of a request, as `plain_request` gives it.

    As in chat models with the encodings `cl100k` and `o200k`, every message takes three tokens
    beside its text, and the reply three more. How providers present a schema or tools to the
    model is not public: their JSON is counted as text.
    """
    encoding = text.encoding(encoding_name(model)[0])
    total = 3
    for message in request["messages"]:
        total += 3
        for value in message.values():
            string = value if isinstance(value, str) else canonical(value)
            total += len(encoding.encode_ordinary(string)) if value is not None else 0
    for extra in (request["schema"], request["tools"]):
        total += len(encoding.encode_ordinary(canonical(extra))) if extra else 0
    return total
