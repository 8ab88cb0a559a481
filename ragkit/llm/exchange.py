"""Requests, results, and the rules that tell a valid answer from a failure."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any

from ragkit import checks
from ragkit.errors import UsageError

ROLES = ("system", "developer", "user", "assistant", "tool")
ENDPOINT = "the chat endpoint"  # what only one server knows goes in extra_body
PARAMETERS = frozenset(
    "temperature top_p max_tokens max_completion_tokens stop seed frequency_penalty "
    "presence_penalty logit_bias logprobs top_logprobs reasoning_effort verbosity tool_choice "
    "parallel_tool_calls service_tier extra_body".split()
)
# Failures that asking again would only repeat: they stay in the ledger for good.
FINAL = frozenset({"invalid", "refused", "filtered", "rejected"})


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def digest(text: str) -> str:
    """Return the sha256 of a text in UTF-8, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Request:
    """One request to a model.

    Parameters
    ----------
    messages : str or sequence of mappings
        A chat in the endpoint's format, each message with a `role`; a string is one message of
        the user.
    schema : mapping, optional
        A JSON schema that the answer must satisfy; the parsed answer is the result's `data`.
    tools : sequence of mappings
        Functions that the model may call, each with `name`, `description` and `parameters`
        (a JSON schema of an object, against which calls are checked).
    parameters : mapping
        Options of the endpoint, such as `temperature` and `max_tokens`. They override those of
        the client.
    repeat : int
        0, 1, 2, ... to ask the same thing several times; part of the ledger's key.
    purpose, prompt : str
        Labels that are not part of the key: one for the ledger's tables, such as "judge", and
        the name and version of the prompt, as `Prompt.id` gives it.

    Raises
    ------
    UsageError
        If a parameter does not have its form.
    """

    messages: Sequence[Mapping[str, Any]]
    _: KW_ONLY
    schema: Mapping[str, Any] | None = None
    tools: Sequence[Mapping[str, Any]] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    repeat: int = 0
    purpose: str = ""
    prompt: str = ""

    def __post_init__(self):
        messages = self.messages
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        # A temperature of 0.0 is the same request as one of 0.
        parameters = {
            name: int(value) if isinstance(value, float) and value.is_integer() else value
            for name, value in self.parameters.items()
        }
        given = {"messages": messages, "schema": self.schema, "parameters": parameters}
        for name, value in (given | {"tools": list(self.tools)}).items():
            try:
                text = canonical(value)
                text.encode()
            except (TypeError, ValueError) as error:  # a UnicodeEncodeError is a ValueError
                raise UsageError(f"{name} cannot be written as JSON: {error}") from None
            object.__setattr__(self, name, json.loads(text))
        if not isinstance(self.messages, list) or not self.messages:
            raise UsageError("messages must be a string or a list with at least one message")
        for number, message in enumerate(self.messages, 1):
            role = message.get("role") if isinstance(message, dict) else None
            checks.choice(role, f"role of message {number}:", ROLES)
        checks.options(self.parameters, PARAMETERS, ENDPOINT)
        checks.whole(self.repeat, "repeat", least=0)
        for tool in self.tools:
            if not isinstance(tool, dict) or set(tool) != {"name", "description", "parameters"}:
                raise UsageError("a tool needs exactly name, description and parameters")
        for schema in (self.schema, *(tool["parameters"] for tool in self.tools)):
            if schema is not None:
                _validator(canonical(schema))

    def plain(self, model: str) -> dict[str, Any]:
        """Return what the ledger's key is computed from: everything that decides the answer."""
        names = ("messages", "parameters", "schema", "tools", "repeat")
        return {"kind": "openai.chat", "model": model} | {n: getattr(self, n) for n in names}

    def repair(self, message: Mapping[str, Any], reason: str) -> Request:
        """Return the request that shows the model its invalid answer and asks once more."""
        from ragkit.llm.prompts import load_prompt

        said = message.get("content") or ""
        if message.get("tool_calls"):
            said = canonical([call.get("function") for call in message["tool_calls"]])
        prompt = load_prompt("repair")
        invalid = {"role": "assistant", "content": said or "(nothing)"}
        messages = [*self.messages, invalid, *prompt.messages(error=reason)]
        return replace(self, messages=messages, prompt=prompt.id)


@dataclass(frozen=True)
class ToolCall:
    """A tool call of the model; `arguments` satisfy the tool's schema."""

    id: str
    name: str
    arguments: dict[str, Any]


class _Result:
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
    - budget, stopped: not asked.

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


@dataclass(frozen=True)
class Tally:
    """Counts of results; `str(tally)` is one line. Tokens are None if an answer lacks them."""

    requests: int
    values: int
    repaired: int
    failures: Mapping[str, int]
    prompt_tokens: int | None
    completion_tokens: int | None

    def __str__(self) -> str:
        line = f"{self.values:,} of {self.requests:,} requests answered"
        if self.repaired:
            line += f" ({self.repaired:,} after a repair)"
        if self.failures:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.failures.items())
            line += f"; {sum(self.failures.values()):,} failed: {kinds}"
        return line


def tally(results: Iterable[Value | Failure]) -> Tally:
    """Count values and failures, so that no average leaves the failures out unnoticed."""
    results = list(results)
    kinds = Counter(result.kind for result in results if not result.ok)
    answered = [
        result
        for result in results
        if result.ok or result.kind in FINAL - {"rejected"} or result.prompt_tokens is not None
    ]
    return Tally(
        requests=len(results),
        values=sum(result.ok for result in results),
        repaired=sum(result.ok and result.repaired for result in results),
        failures=dict(sorted(kinds.items())),
        prompt_tokens=add(*(result.prompt_tokens for result in answered)),
        completion_tokens=add(*(result.completion_tokens for result in answered)),
    )


class Invalid(Exception):
    """An answer that is not valid; `again` says whether a repair is asked for."""

    def __init__(self, kind: str, reason: str, message: Mapping[str, Any]):
        super().__init__(reason)
        self.kind, self.reason, self.message = kind, reason, message
        self.again = kind == "invalid"


def check_envelope(text: str) -> str | None:
    """Return what is wrong with a reply of the chat endpoint, or None if it holds a message."""
    try:
        reply = json.loads(text)
        message = reply["choices"][0]["message"]
    except (KeyError, IndexError, TypeError):
        return f"the reply holds no message: {reply!r:.200}"
    except (ValueError, RecursionError):
        return "the reply is not JSON"
    if not isinstance(message, dict) or not isinstance(message.get("content"), str | None):
        return "the reply's message is not a chat message"
    if not isinstance(message.get("tool_calls"), list | None):
        return "the reply's tool calls are not a list"
    return None


def usage(text: str) -> tuple[int | None, int | None]:
    """Return the tokens of request and answer that a reply reports; None where it does not."""
    counts = json.loads(text).get("usage")
    counts = counts if isinstance(counts, dict) else {}
    pair = counts.get("prompt_tokens"), counts.get("completion_tokens")
    return tuple(count if type(count) is int and count >= 0 else None for count in pair)


def read(request: Request, text: str) -> dict[str, Any]:
    """Return the fields of a `Value` that a reply determines.

    Raises
    ------
    Invalid
        If the reply is a refusal, is empty, or does not satisfy the schema of answer or tool.
    """
    reply = json.loads(text)
    choice = reply["choices"][0]
    message, finish = choice["message"], choice.get("finish_reason")
    if message.get("refusal"):
        raise Invalid("refused", f"the model refused: {message['refusal']}", message)
    if finish == "content_filter":
        raise Invalid("filtered", "the provider's filter stopped the answer", message)
    content, calls, data = message.get("content"), message.get("tool_calls"), None
    try:
        if calls:
            calls = tuple(_tool_call(request, n, call) for n, call in enumerate(calls))
        elif request.parameters.get("tool_choice") == "required":
            raise ValueError("the answer calls no tool, though a call was required")
        elif not (content or "").strip():
            raise ValueError("the answer is empty")
        elif request.schema is not None:
            # Endpoints that ignore the schema often wrap the object in a Markdown fence.
            fenced = re.fullmatch(r"\s*```.*?\n(.*)```\s*", content, re.DOTALL)
            data = _conforming(fenced[1] if fenced else content, request.schema, "the answer")
    except ValueError as error:
        cut = " (the answer was cut off at its length limit)" if finish == "length" else ""
        raise Invalid("invalid", f"{error}{cut}", message) from None
    return {
        "text": content,
        "data": data,
        "tool_calls": calls or (),
        "finish_reason": finish,
        "served_by": reply.get("model"),
    }


def answer_fields(request: Request, text: str) -> dict[str, Any]:
    """Return the fields of the ledger's exchange that a reply determines."""
    state, kind, reason = "value", None, None
    try:
        read(request, text)
    except Invalid as error:
        state, kind, reason = "invalid", error.kind, error.reason
    tokens = dict(zip(("prompt_tokens", "completion_tokens"), usage(text), strict=True))
    return {"state": state, "kind": kind, "reason": reason, "response": text, **tokens}


def body(model: str, plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON body that sends a request, as `Request.plain` gives it, to the endpoint."""
    parameters = dict(plain["parameters"])
    sent = {"model": model, "messages": plain["messages"], **parameters.pop("extra_body", {})}
    sent.update(parameters)
    if (schema := plain["schema"]) is not None:
        answer = {"name": "answer", "schema": schema, "strict": _is_strict(schema)}
        sent["response_format"] = {"type": "json_schema", "json_schema": answer}
    if plain["tools"]:
        sent["tools"] = [{"type": "function", "function": tool} for tool in plain["tools"]]
    return sent


def add(*counts: int | None) -> int | None:
    """Return the sum of `counts`, or None if one of them is unknown."""
    return None if None in counts else sum(counts)


@lru_cache(maxsize=256)
def _validator(schema: str):
    from jsonschema import Draft202012Validator, SchemaError
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    parsed = json.loads(schema)
    registry = Registry()  # an empty registry fetches nothing
    try:
        Draft202012Validator.check_schema(parsed)
        resolver = registry.with_resource("", DRAFT202012.create_resource(parsed)).resolver()
        for reference in re.findall(r'"\$ref":"([^"]*)"', schema):
            resolver.lookup(reference)
    except SchemaError as error:
        raise UsageError(f"not a JSON schema: {error.message} at {error.json_path}") from None
    except Unresolvable as error:
        raise UsageError(f"the schema refers to {error.ref!r}, which it lacks") from None
    return Draft202012Validator(parsed, registry=registry)


def _no_constant(name: str):
    raise ValueError(f"{name} is not JSON")


def _conforming(text: str, schema: Mapping[str, Any], what: str) -> Any:
    """Return the JSON value of a text, or raise `ValueError` if it does not fit the schema."""
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what} is not valid JSON: {error}") from None
    errors = _validator(canonical(schema)).iter_errors(data)
    listed = sorted((error.json_path, error.message) for error in errors)[:3]
    if listed:
        said = "; ".join(f"at {path}: {message}" for path, message in listed)
        raise ValueError(f"{what} does not fit the schema: {said}"[:1000])
    return data


def _tool_call(request: Request, number: int, call: Any) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise ValueError(f"tool call {number + 1} names no function")
    name, arguments = function.get("name"), function.get("arguments") or "{}"
    tools = {tool["name"]: tool for tool in request.tools}
    if name not in tools:
        raise ValueError(f"there is no tool {name!r}; known: {', '.join(tools) or 'none'}")
    if not isinstance(arguments, str):  # some servers send the object itself
        arguments = json.dumps(arguments)
    arguments = _conforming(arguments, tools[name]["parameters"], f"the arguments of {name}")
    if not isinstance(arguments, dict):
        raise ValueError(f"the arguments of {name} are not an object")
    return ToolCall(str(call.get("id") or f"call_{number}"), name, arguments)


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
