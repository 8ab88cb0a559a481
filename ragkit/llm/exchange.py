"""Exchanges with a model, their results, and the rules that tell a valid answer from a failure."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from ragkit.display import card
from ragkit.llm.requests import DECISIVE, Request, canonical, digest, load_prompt, validator

# Failures that asking again would only repeat: they stay in the ledger for good.
FINAL = frozenset({"invalid", "refused", "filtered", "rejected"})
TOKENS = ("prompt_tokens", "completion_tokens")


@dataclass(frozen=True)
class Exchange:
    """One row of the ledger; `request` and `response` are JSON, byte for byte.

    `state` is "value" (a valid answer), "invalid" (an answer that is empty, refused or does not
    satisfy the schema) or "failed" (no answer); `kind` and `reason` say why. A failure of the kind
    "pending" was written to a batch file and has no answer yet. `repair_of` is the key of the
    exchange whose invalid answer this one repairs.
    """

    key: str
    model: str
    request: str
    state: str
    response: str | None = None
    kind: str | None = None
    reason: str | None = None
    purpose: str = ""
    prompt: str = ""
    repair_of: str | None = None
    endpoint: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    attempts: int = 1
    faults: str = "{}"
    waited_s: float = 0.0
    seconds: float = 0.0
    asked_at: str = ""

    @classmethod
    def pending(
        cls,
        request: Request,
        model: str,
        repair_of: str | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> Exchange:
        """Return the row of a request that is still to be asked; `defaults` are parameters."""
        plain = request.plain(model)
        text = canonical(plain | {"parameters": {**(defaults or {}), **plain["parameters"]}})
        labels = {"purpose": request.purpose, "prompt": request.prompt, "repair_of": repair_of}
        reason = "written to a batch file, not answered yet"
        why = {"state": "failed", "kind": "pending", "reason": reason, "attempts": 0}
        return cls(key=digest(text), model=model, request=text, **labels, **why)

    def failed(self, kind: str, reason: str) -> Exchange:
        """Return the row of this request without an answer."""
        return replace(self, state="failed", kind=kind, reason=reason)

    @property
    def plain(self) -> dict[str, Any]:
        """The request as `Request.plain` gives it."""
        return json.loads(self.request)

    @property
    def final(self) -> bool:
        """Whether asking again would only repeat this."""
        return self.state != "failed" or self.kind in FINAL

    @property
    def checksum(self) -> str:
        """The sha256 of all fields."""
        return digest(canonical(list(vars(self).values())))


@dataclass(frozen=True)
class ToolCall:
    """A tool call of the model; `arguments` satisfy the tool's schema."""

    id: str
    name: str
    arguments: dict[str, Any]


class _Result:
    def _repr_html_(self) -> str:
        facts = {"model": self.model, "purpose": self.purpose, "answer": self.text}
        if self.ok:
            facts["tool calls"] = ", ".join(call.name for call in self.tool_calls)
            after = (
                "Next: `.data` is the answer as the schema has it; `.message` continues the chat."
            )
        else:
            facts |= {"kind": self.kind, "reason": self.reason}
            again = "the same answer comes from the ledger" if self.kind in FINAL else "it is asked"
            after = f"Next: run the same command again, and {again} again."
        if self.prompt_tokens is not None:
            facts["tokens"] = f"{self.prompt_tokens:,} in, {self.completion_tokens or 0:,} out"
        return card("Answer of a model" if self.ok else "No valid answer", facts, after=after)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for JSON, the same whether it was cached or not."""
        plain = {"ok": self.ok, **asdict(self)}
        del plain["cached"]
        return plain


@dataclass(frozen=True, kw_only=True)
class Value(_Result):
    """A valid answer.

    `text` is the answer (None beside tool calls), `data` the parsed answer if a schema was given,
    `tool_calls` the tool calls. `repaired` is True if the second attempt was the valid one. Token
    counts include both attempts, as the endpoint reported them; None if it did not. `cached` is
    True if no call was made; it is ignored by comparisons and `to_dict`.
    """

    text: str | None
    data: Any
    tool_calls: tuple[ToolCall, ...]
    finish_reason: str | None
    model: str
    served_by: str | None
    purpose: str
    prompt: str
    key: str
    repaired: bool
    prompt_tokens: int | None
    completion_tokens: int | None
    cached: bool = field(default=False, compare=False, repr=False)

    ok = True

    @property
    def message(self) -> dict[str, Any]:
        """The assistant's message, to continue the chat."""
        calls = []
        for call in self.tool_calls:
            function = {"name": call.name, "arguments": canonical(call.arguments)}
            calls.append({"id": call.id, "type": "function", "function": function})
        message = {"role": "assistant", "content": self.text}
        return message | {"tool_calls": calls} if calls else message


@dataclass(frozen=True, kw_only=True)
class Failure(_Result):
    """A request without a valid answer, and the reason. It is never a score or a missing row.

    `kind` is one of

    - invalid: the answer and its repair were empty or did not satisfy the schema;
    - refused, filtered: the model or its provider declined to answer;
    - rejected, forbidden: the endpoint called the request wrong, or did not permit it;
    - rate_limit, server_error, timeout, connection, garbage: no answer after all attempts;
    - budget, stopped: not asked; pending: written to a batch file, not answered yet;
    - unasked: not in a ledger that is replayed.

    The first four are final: a later run takes them from the ledger; the others are asked again.
    `text` is the last text of the model, if any. Token counts are None if there was no answer.
    """

    kind: str
    reason: str
    text: str | None = None
    model: str
    purpose: str
    prompt: str
    key: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached: bool = field(default=False, compare=False, repr=False)

    ok = False


def tally(results: Iterable[Value | Failure]) -> str:
    """Return in a line how many requests were answered, how many failed, and of what kinds.

    >>> from ragkit.llm import Client
    >>> with Client("openai:gpt-4o-mini", ledger=None) as client:
    ...     print(tally(client.complete(["Is 7 prime?"])))
    1 of 1 requests answered
    """
    results = list(results)
    line = f"{sum(one.ok for one in results):,} of {len(results):,} requests answered"
    if repaired := sum(one.ok and one.repaired for one in results):
        line += f" ({repaired:,} after a repair)"
    if failures := sorted(Counter(one.kind for one in results if not one.ok).items()):
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in failures)
        line += f"; {sum(count for _, count in failures):,} failed: {kinds}"
    return line


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def add(counts: Iterable[int | None]) -> int | None:
    """Return the sum of `counts`, or None if one of them is unknown."""
    counts = list(counts)
    return None if None in counts else sum(counts)


def settle(
    asked: Exchange, find: Callable[[Exchange], Exchange | None], cached: bool
) -> Value | Failure | Exchange:
    """Return the result of a request, which may be that of its repair.

    `find` returns the ledger's row of a request, or None: then it is returned, still to be asked.
    """
    first = last = find(asked)
    if first is None:
        return asked
    if first.state == first.kind == "invalid":
        message = read(first.plain, first.response).message
        request = Request(**{name: first.plain[name] for name in DECISIVE}, purpose=asked.purpose)
        repair = Exchange.pending(request.repair(message, first.reason), asked.model, asked.key)
        last = find(repair)
        if last is None:
            return repair
    answers = [row for row in dict.fromkeys((first, last)) if row.state != "failed"]
    labels = {name: getattr(asked, name) for name in ("model", "purpose", "prompt", "key")}
    labels |= {name: add(getattr(row, name) for row in answers or [last]) for name in TOKENS}
    reply = read(answers[-1].plain, answers[-1].response) if answers else None
    if last.state == "value":
        return Value(**reply.fields, repaired=last is not first, cached=cached, **labels)
    again = f" (asking again because {first.reason})" if last.state == "failed" and answers else ""
    labels["text"] = reply and reply.message.get("content")
    return Failure(kind=last.kind, reason=last.reason + again, cached=cached, **labels)


def check_envelope(text: str) -> str | None:
    """Return what is wrong with a reply of the chat endpoint, or None if it holds a message."""
    try:
        reply = json.loads(text)
        if "\\ud" in text.lower():
            canonical(reply).encode()
        message = reply["choices"][0]["message"]
    except UnicodeEncodeError:
        return "the reply holds half of a surrogate pair, which is not a character"
    except (KeyError, IndexError, TypeError):
        return f"the reply holds no message: {reply!r:.200}"
    except (ValueError, RecursionError):
        return "the reply is not JSON"
    if not isinstance(message, dict) or not isinstance(message.get("content"), str | None):
        return "the reply's message is not a chat message"
    if not isinstance(message.get("tool_calls"), list | None):
        return "the reply's tool calls are not a list"
    return None


class Reply(NamedTuple):
    """What a reply says: why it is not valid, if so, its message, and fields of a `Value`."""

    kind: str | None
    reason: str | None
    message: dict[str, Any]
    fields: dict[str, Any]


def read(plain: Mapping[str, Any], text: str) -> Reply:
    """Read a reply that `check_envelope` accepts; `plain` is the request."""
    reply = json.loads(text)
    choice = reply["choices"][0]
    message, finish = choice["message"], choice.get("finish_reason")
    content, calls, data = message.get("content"), message.get("tool_calls"), None
    kind = reason = None
    try:
        if message.get("refusal"):
            kind, reason = "refused", f"the model refused: {message['refusal']}"
        elif finish == "content_filter":
            kind, reason = "filtered", "the provider's filter stopped the answer"
        elif calls or (written := _written_call(content, plain["tools"])):
            calls, content = (calls, content) if calls else (written, None)
            calls = tuple(_tool_call(plain["tools"], n, call) for n, call in enumerate(calls))
        elif plain["parameters"].get("tool_choice") == "required":
            raise ValueError("the answer calls no tool, though a call was required")
        elif not (content or "").strip():
            raise ValueError("the answer is empty")
        elif plain["schema"] is not None:
            # Endpoints that ignore the schema often wrap the object in a Markdown fence.
            fenced = re.fullmatch(r"\s*```.*?\n(.*)```\s*", content, re.DOTALL)
            data = _conforming(fenced[1] if fenced else content, plain["schema"], "the answer")
    except ValueError as error:
        cut = " (the answer was cut off at its length limit)" if finish == "length" else ""
        kind, reason = "invalid", f"{error}{cut}"
    fields = {"text": content, "data": data, "tool_calls": calls or (), "finish_reason": finish}
    return Reply(kind, reason, message, fields | {"served_by": reply.get("model")})


def answered(asked: Exchange, text: str) -> Exchange:
    """Return the row of a request with its reply; token counts that the reply lacks are None."""
    reply, counts = read(asked.plain, text), json.loads(text).get("usage")
    given = [counts.get(name) if isinstance(counts, dict) else None for name in TOKENS]
    known = [count if type(count) is int and 0 <= count < 2**63 else None for count in given]
    said = {"kind": reply.kind, "reason": reply.reason, "response": text}
    state = "invalid" if reply.kind else "value"
    return replace(asked, state=state, **said, **dict(zip(TOKENS, known, strict=True)))


def body(plain: Mapping[str, Any], *, in_prompt: bool = False) -> dict[str, Any]:
    """Return the JSON body that sends a request to the endpoint.

    With `in_prompt` a schema stands behind the messages, for endpoints that take none.
    """
    parameters = dict(plain["parameters"])
    sent = {"model": plain["model"].partition(":")[2], "messages": plain["messages"]}
    sent |= parameters.pop("extra_body", {}) | parameters
    schema = plain["schema"]
    if schema is not None and in_prompt:
        sent["messages"] = [
            *plain["messages"],
            *load_prompt("schema").messages(schema=canonical(schema)),
        ]
    elif schema is not None:
        answer = {"name": "answer", "schema": schema, "strict": _is_strict(schema)}
        sent["response_format"] = {"type": "json_schema", "json_schema": answer}
    if plain["tools"]:
        sent["tools"] = [{"type": "function", "function": tool} for tool in plain["tools"]]
    return sent


def _conforming(text: str, schema: Mapping[str, Any], what: str) -> Any:
    """Return the JSON value of a text, or raise `ValueError` if it does not fit the schema."""
    try:
        data = json.loads(text)
        canonical(data)  # NaN is not JSON
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not valid JSON: {error}") from None
    errors = validator(canonical(schema)).iter_errors(data)
    listed = sorted((error.json_path, error.message) for error in errors)[:3]
    if listed:
        said = "; ".join(f"at {path}: {message}" for path, message in listed)
        raise ValueError(f"{what} does not fit the schema: {said}"[:1000])
    return data


def _tool_call(tools: Sequence[Mapping], number: int, call: Any) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise ValueError(f"tool call {number + 1} names no function")
    name, arguments = function.get("name"), function.get("arguments") or "{}"
    schemas = [tool["parameters"] for tool in tools if tool["name"] == name]
    if not schemas:
        known = ", ".join(tool["name"] for tool in tools) or "none"
        raise ValueError(f"there is no tool {name!r}; known: {known}")
    if not isinstance(arguments, str):  # some servers send the object itself
        arguments = json.dumps(arguments)
    arguments = _conforming(arguments, schemas[0], f"the arguments of {name}")
    if not isinstance(arguments, dict):
        raise ValueError(f"the arguments of {name} are not an object")
    return ToolCall(str(call.get("id") or f"call_{number}"), name, arguments)


def _written_call(content: str | None, tools: Sequence[Mapping]) -> list[dict[str, Any]]:
    """Return the tool call that an answer spells out, as small models do: JSON, perhaps fenced."""
    for text in (*re.findall(r"```.*?\n(.*?)```", content or "", re.DOTALL), content or ""):
        with suppress(ValueError, RecursionError):
            call = json.loads(text)
            if isinstance(call, dict) and call.get("name") in [tool["name"] for tool in tools]:
                return [{"id": "call_0", "type": "function", "function": call}]
    return []


def _is_strict(schema: Any) -> bool:
    """Return whether strict mode accepts a schema: every object closed, every property required."""
    if isinstance(schema, list):
        return all(map(_is_strict, schema))
    if not isinstance(schema, dict):
        return True
    required = set(schema.get("required", ())) == set(schema.get("properties", {}))
    strict = required and schema.get("additionalProperties") is False
    is_object = schema.get("type") == "object" or "properties" in schema
    return (strict or not is_object) and all(map(_is_strict, schema.values()))
