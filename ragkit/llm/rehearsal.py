"""What a run would ask, without asking: counts and prices of a dry run, and files for a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

from ragkit.llm import exchange
from ragkit.llm.client import Client, write_batch
from ragkit.llm.exchange import Exchange, Failure, ToolCall, Value
from ragkit.llm.prices import answer_limit, count_tokens, request_tokens
from ragkit.llm.requests import canonical

COUNTED = 200  # requests of a purpose whose tokens are counted; those of the others go by length
REASON = "The candidate has what was asked for, in other words and another order, " * 3


class Share(NamedTuple):
    """What one purpose asks of one model: `calls`, tokens in and expected tokens out, US dollars.

    `requests` are all, `kept` those that the ledger answers. `cost` is None if the price is
    unknown; `most` is the cost if every answer has its full length, None if that has no limit.
    """

    model: str
    purpose: str
    requests: int
    kept: int
    calls: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    most: float | None


class Rehearsal(Client):
    """A client that takes answers from the ledger and asks nothing.

    A request that the ledger lacks is counted once. It gets a guess, so that what follows from an
    answer is counted too: the next text of `guesses`, or an example of the wanted JSON. Without
    `guesses` it fails as "pending", and `write` writes it to a batch file.

    Parameters
    ----------
    model, options
        As of `Client`.
    guesses : iterable of str, optional
        Texts about as long as the answers will be; used in turn.
    """

    def __init__(self, model: str, *, guesses: Iterable[str] | None = None, **options: Any):
        super().__init__(model, **options)
        texts = None if guesses is None else list(guesses) or [REASON]
        self._guesses: Iterator[str] | None = None if texts is None else cycle(texts)
        self._asked: dict[str, str] = {}  # key to purpose of every request
        self._sizes: dict[str, tuple] = {}  # key to purpose, characters, limit, expected tokens
        self._samples: dict[str, list[Exchange]] = {}
        self._rows: dict[str, Exchange] = {}

    def complete(self, requests, *, partly=False) -> list[Value | Failure]:
        asked, outcomes, missing = self._recall(requests)
        self._asked |= {row.key: row.purpose for row in asked}
        repairs = {row.repair_of: row for row in missing if row.repair_of}
        for row in missing:
            self._take(row)
        guesses = {
            r.key: self._guess(repairs.get(r.key, r)) for r in asked if r.key not in outcomes
        }
        return [outcomes.get(row.key) or guesses[row.key] for row in asked]

    def _take(self, row: Exchange) -> None:
        if self._guesses is None:
            self._rows[row.key] = row
        if row.key in self._sizes:
            return
        self._sizes[row.key] = (row.purpose, len(row.request), answer_limit(row.plain))
        sample = self._samples.setdefault(row.purpose, [])
        if len(sample) < COUNTED:
            sample.append(row)

    def _guess(self, row: Exchange) -> Value | Failure:
        labels = {"model": row.model, "purpose": row.purpose, "prompt": row.prompt, "key": row.key}
        if self._guesses is None:
            return Failure(kind="pending", reason=row.reason, **labels)
        plain, data, calls = row.plain, None, ()
        text = f"{next(self._guesses)} {row.key[:6]}"
        if plain["schema"] is not None:
            data = example(plain["schema"])
            text = canonical(data)
        if plain["tools"]:
            tool = plain["tools"][-1]
            calls = (ToolCall("guess", tool["name"], example(tool["parameters"])),)
        said = {"text": text, "data": data, "tool_calls": calls, "finish_reason": "stop"}
        said |= {"served_by": None, "repaired": False, "prompt_tokens": None}
        self._sizes[row.key] = (*self._sizes[row.key][:3], count_tokens(text, self.model))
        return Value(**said, completion_tokens=None, **labels)

    def shares(self) -> list[Share]:
        """Return what each purpose asks."""
        asked = Counter(self._asked.values())
        return [self._share(purpose, asked[purpose]) for purpose in asked]

    def _share(self, purpose: str, requests: int) -> Share:
        own = [size for size in self._sizes.values() if size[0] == purpose]
        sample = self._samples.get(purpose, [])
        counted = sum(request_tokens(row.plain)[0] for row in sample)
        letters = sum(len(row.request) for row in sample)
        tokens = round(sum(size[1] for size in own) * counted / letters) if own else 0
        out = sum(size[3] for size in own if len(size) > 3)
        limit = exchange.add(size[2] for size in own)
        cost, most = (self.prices.cost(self.model, tokens, n) for n in (out, limit))
        kept = requests - len(own)
        return Share(self.model, purpose, requests, kept, len(own), tokens, out, cost, most)

    def write(self, path: str | Path) -> int:
        """Write the requests that wait to a file for a batch; return their number."""
        return write_batch(self, list(self._rows.values()), path)


def example(schema: Mapping[str, Any]) -> Any:
    """Return a small value that satisfies a schema such as those of ragkit's own requests.

    >>> example({"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]})
    {'ok': False}
    """
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: example(part) for name, part in schema.get("properties", {}).items()}
        case "array":
            return [example(schema.get("items", {}))] * max(3, schema.get("minItems", 0))
        case "boolean":
            return False
        case "integer" | "number":
            return schema.get("minimum", 0)
    return REASON
