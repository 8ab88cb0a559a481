"""What a run would ask, without asking: counts and prices of a dry run, and files for a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

from ragkit.llm.client import Client, write_batch
from ragkit.llm.exchange import TOKENS, Exchange, Failure, ToolCall, Value, add
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
        self._purposes: dict[str, str] = {}  # of every request, by key
        self._rows: dict[str, Exchange] = {}  # what the ledger lacks
        self._expected: dict[str, int] = {}  # tokens of the guesses

    def complete(self, requests, *, partly=False) -> list[Value | Failure]:
        asked, outcomes, missing = self._recall(requests)
        self._purposes |= {row.key: row.purpose for row in asked}
        self._rows |= {row.key: row for row in missing}
        outcomes |= {row.repair_of or row.key: self._guess(row) for row in missing}
        return [outcomes[row.key] for row in asked]

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
        self._expected[row.key] = count_tokens(text, self.model)
        said = {"text": text, "data": data, "tool_calls": calls, "finish_reason": "stop"}
        said |= {"served_by": None, "repaired": False, **dict.fromkeys(TOKENS)}
        return Value(**said, **labels)

    def shares(self) -> list[Share]:
        """Return what each purpose asks."""
        counts = Counter(self._purposes.values())
        return [self._share(purpose, count) for purpose, count in counts.items()]

    def _share(self, purpose: str, requests: int) -> Share:
        own = [row for row in self._rows.values() if row.purpose == purpose]
        sample = own[:COUNTED]
        counted = sum(request_tokens(row.plain)[0] for row in sample)
        letters = sum(len(row.request) for row in sample)
        tokens = round(sum(len(row.request) for row in own) * counted / letters) if own else 0
        out = sum(self._expected.get(row.key, 0) for row in own)
        limit = add(answer_limit(row.plain) for row in own)
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
