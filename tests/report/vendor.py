"""A vendor of every model on loopback: it answers, judges, searches and embeds, and counts tokens.

What it says depends on the request alone, and takes as long as real answers do. It reports the
tokens of each request and answer, as vendors do.
"""

from __future__ import annotations

import json
import re
import zlib

from ragkit.llm.prices import count_tokens
from tests.llm.server import Reply, chat

WORDS = """the plan is kept in the folder of the team and changes when the owner of the contract has
signed it so open the settings choose the second tab and save before the page is closed""".split()
DIMENSIONS = 3072


def draw(text: str, size: int) -> int:
    return zlib.crc32(text.encode()) % size


def sentence(digest: str, words: int) -> str:
    return " ".join(WORDS[draw(f"{digest}{n}", len(WORDS))] for n in range(words)) + f" {digest}"


def vector(text: str) -> list[int]:
    """A bag of hashed words."""
    numbers = [0] * DIMENSIONS
    for word in re.findall(r"\w+", text.lower()) or ["none"]:
        numbers[draw(word, DIMENSIONS)] += 1
    return numbers


def value(schema: dict, said: str, digest: str):
    """A verdict that depends on the request; documents are never of use."""
    if "enum" in schema:
        known = schema["enum"]
        return known[0] if "invalid" in known else known[draw(digest, len(known))]
    match schema.get("type"):
        case "object":
            parts = schema["properties"].items()
            return {name: value(part, said, digest + name) for name, part in parts}
        case "array":
            return [value(schema["items"], said, f"{digest}{n}") for n in range(3)]
        case "boolean":
            return bool(draw(digest, 2))
    return sentence(digest, 34)


class Vendor:
    """The reply function of `tests.llm.server`; `words` is the length of its answers.

    If it `varies`, a request that is repeated gets another verdict.
    """

    def __init__(self, words: int = 40):
        self.words, self.tokens, self.varies = words, {}, False

    def __call__(self, body, nth, digest):
        if "input" in body:
            rows = [{"index": n, "embedding": vector(text)} for n, text in enumerate(body["input"])]
            return Reply(json.dumps({"data": rows}))
        said = body["messages"][-1]["content"]
        counted = [text for one in body["messages"] for text in one.values() if text]
        counted = [text if isinstance(text, str) else json.dumps(text) for text in counted]
        extra, calls = {}, None
        text = sentence(digest, self.words)
        if "response_format" in body:
            schema = body["response_format"]["json_schema"]["schema"]
            text = json.dumps(value(schema, said, f"{digest}{nth}" if self.varies else digest))
            counted.append(json.dumps(schema, separators=(",", ":")))
        if "tools" in body:
            counted.append(json.dumps(body["tools"], separators=(",", ":")))
            calls, text = self.call(body["messages"]), None
            extra = {"tool_calls": [{"id": "c", "type": "function", "function": calls}]}
        tokens = sum(map(count_tokens, counted)) + 3 * len(body["messages"]) + 3
        out = count_tokens(text or json.dumps(calls))
        self.tokens[digest] = (body["model"], tokens, out)
        return Reply(chat(text, model=body["model"], tokens=(tokens, out), **extra))

    @staticmethod
    def call(messages) -> dict:
        """First look, then hand in the first files that were seen."""
        seen = [one["content"] for one in messages if one["role"] == "tool"]
        if not seen:
            line = {"command": "find . -type f | sort | head -n 12"}
            return {"name": "bash", "arguments": json.dumps(line)}
        paths = [line for line in seen[-1].splitlines() if line.startswith("./")]
        return {"name": "submit", "arguments": json.dumps({"documents": paths[:4]})}
