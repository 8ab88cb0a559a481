"""What is asked of a model, what came of it, and the rule that tells an answer from a failure."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from functools import lru_cache
from typing import Any

from ragkit.errors import UsageError, did_you_mean

KIND = "openai.chat"
ROLES = ("system", "developer", "user", "assistant", "tool")
# Sampling and length options of the chat endpoint. What only one server knows goes in extra_body.
PARAMETERS = frozenset(
    [
        "temperature",
        "top_p",
        "max_tokens",
        "max_completion_tokens",
        "stop",
        "seed",
        "frequency_penalty",
        "presence_penalty",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "reasoning_effort",
        "verbosity",
        "tool_choice",
        "parallel_tool_calls",
        "service_tier",
        "extra_body",
    ]
)
# Failures that the endpoint would only repeat: they are recorded for good.
FINAL = frozenset({"invalid", "refused", "filtered", "rejected"})
# Failures of requests that were answered, if not usably.
ANSWERED = FINAL - {"rejected"}


def canonical(value: Any) -> str:
    """Return `value` as JSON with sorted keys and no spaces: equal values give equal text."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def digest(text: str) -> str:
    """Return the sha256 of `text` in UTF-8, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Request:
    """One thing to ask of a model.

    Parameters
    ----------
    messages : str or sequence of mappings
        A chat in the endpoint's own form, each message with a `role`; a string is one message
        of the user.
    schema : mapping, optional
        A JSON schema that the answer must satisfy; the result then has it parsed, as `data`.
    tools : sequence of mappings
        Functions that the model may call, each with `name`, `description` and `parameters`
        (a JSON schema of an object). Calls are checked against it.
    parameters : mapping
        Options of the endpoint, such as `temperature` and `max_tokens`. They win over those of
        the client.
    repeat : int
        0, 1, 2, ... to ask the same thing several times; it is part of the ledger's key.
    purpose : str
        A label for the ledger's tables: "judge", "reader". Not part of the key.
    prompt : str
        Name and version of the prompt, as `Prompt.id` gives it. Not part of the key, since the
        messages are.

    Raises
    ------
    UsageError
        If any of these is not of its form.
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
        def put(name, value):
            object.__setattr__(self, name, value)

        messages = self.messages
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        put("messages", _plain(messages, "messages"))
        put("tools", _plain(list(self.tools), "tools"))
        put("parameters", _plain(_whole(self.parameters), "parameters"))
        put("schema", None if self.schema is None else _plain(self.schema, "schema"))
        if not isinstance(self.messages, list) or not self.messages:
            raise UsageError("messages must be a string or a list with at least one message")
        for number, message in enumerate(self.messages, 1):
            role = message.get("role") if isinstance(message, dict) else None
            if role not in ROLES:
                raise UsageError(
                    f"message {number} has the role {role!r}", "known: " + ", ".join(ROLES)
                )
        check_parameters(self.parameters)
        if type(self.repeat) is not int or self.repeat < 0:
            raise UsageError(f"repeat must be an integer of at least 0, not {self.repeat!r}")
        if self.schema is not None:
            _validator(canonical(self.schema))
        for tool in self.tools:
            if not isinstance(tool, dict) or set(tool) != {"name", "description", "parameters"}:
                raise UsageError("a tool needs exactly name, description and parameters")
            _validator(canonical(tool["parameters"]))

    def repair(self, message: Mapping[str, Any], reason: str) -> Request:
        """Return the request that shows the model its invalid answer and asks once more."""
        from ragkit.llm.prompts import load_prompt

        said = message.get("content") or ""
        if message.get("tool_calls"):
            said = canonical([call.get("function") for call in message["tool_calls"]])
        prompt = load_prompt("repair")
        return Request(
            [
                *self.messages,
                {"role": "assistant", "content": said or "(nothing)"},
                *prompt.messages(error=reason),
            ],
            schema=self.schema,
            tools=self.tools,
            parameters=self.parameters,
            repeat=self.repeat,
            purpose=self.purpose,
            prompt=prompt.id,
        )


@dataclass(frozen=True)
class ToolCall:
    """A call that the model wants made; `arguments` satisfy the tool's schema."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Value:
    """An answer that is what was asked for.

    `text` is the answer (None beside tool calls), `data` the parsed answer where a schema was
    given, `tool_calls` the calls wanted. `repaired` says that the second try gave it. Tokens
    count both tries, as the endpoint reported them; None where it did not. `cached` says that
    no call was made; it takes no part in comparisons or in `to_dict`.
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
        """The assistant's message, to go on with the chat."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.tool_calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": canonical(call.arguments)},
                }
                for call in self.tool_calls
            ]
        return message

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold: the same for the first run and a warm one."""
        return _to_dict(self)


@dataclass(frozen=True)
class Failure:
    """A request without a usable answer, and why. It is never a score, never a missing row.

    `kind` is one of

    - invalid: the answer, and the one after the repair, broke the schema or was empty;
    - refused, filtered: the model or its provider would not answer;
    - rejected: the endpoint called the request itself wrong; forbidden: it did not let it;
    - rate_limit, server_error, timeout, connection, garbage: no answer, however often asked;
    - budget, stopped: not asked.

    The first four would only come again, so that a later run takes them from the ledger; the
    others are asked again. `text` is the last thing the model said, if it said anything. Tokens
    are None where nothing was answered.
    """

    kind: str
    reason: str
    text: str | None
    model: str
    purpose: str
    prompt: str
    key: str
    prompt_tokens: int | None
    completion_tokens: int | None
    cached: bool = field(default=False, compare=False, repr=False)

    ok = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold."""
        return _to_dict(self)


@dataclass(frozen=True)
class Tally:
    """Results counted; `str(tally)` is one line. Tokens are None if an answer lacks them."""

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
    """Count values and failures, so that no average is taken over what is not there."""
    results = list(results)
    kinds = Counter(result.kind for result in results if not result.ok)
    asked = [
        result
        for result in results
        if result.ok or result.kind in ANSWERED or result.prompt_tokens is not None
    ]
    return Tally(
        requests=len(results),
        values=sum(result.ok for result in results),
        repaired=sum(result.ok and result.repaired for result in results),
        failures=dict(sorted(kinds.items())),
        prompt_tokens=add(*(result.prompt_tokens for result in asked)),
        completion_tokens=add(*(result.completion_tokens for result in asked)),
    )


class Invalid(Exception):
    """An answer that came but is not what was asked for; `again` says whether to ask again."""

    def __init__(self, kind: str, reason: str, message: Mapping[str, Any], again: bool):
        super().__init__(reason)
        self.kind, self.reason, self.message, self.again = kind, reason, message, again


def check_envelope(text: str) -> str | None:
    """Return what is wrong with a reply of the chat endpoint, or None if it holds a message."""
    try:
        reply = json.loads(text)
    except (ValueError, RecursionError):
        return "the reply is not JSON"
    try:
        message = reply["choices"][0]["message"]
    except (KeyError, IndexError, TypeError):
        if isinstance(reply, dict) and reply.get("error"):
            return f"the reply is an error: {canonical(reply['error'])[:200]}"
        return "the reply holds no message"
    if not isinstance(message, dict) or not isinstance(message.get("content"), str | None):
        return "the reply's message is not a chat message"
    if not isinstance(message.get("tool_calls"), list | None):
        return "the reply's tool calls are not a list"
    return None


def usage(text: str) -> tuple[int | None, int | None]:
    """Return the tokens of question and answer that a reply reports; None where it does not."""
    counts = json.loads(text).get("usage")
    counts = counts if isinstance(counts, dict) else {}
    pair = counts.get("prompt_tokens"), counts.get("completion_tokens")
    return tuple(count if type(count) is int and count >= 0 else None for count in pair)


def read(request: Request, text: str) -> dict[str, Any]:
    """Return the fields of a `Value` that a reply decides.

    Raises
    ------
    Invalid
        If the reply is a refusal, empty, or breaks the schema of the answer or of a tool.
    """
    reply = json.loads(text)
    choice = reply["choices"][0]
    message = choice["message"]
    finish = choice.get("finish_reason")
    content = message.get("content")
    calls = message.get("tool_calls") or []
    cut = " (the answer was cut off at its length limit)" if finish == "length" else ""

    def invalid(reason):
        return Invalid("invalid", reason + cut, message, again=True)

    if message.get("refusal"):
        raise Invalid("refused", f"the model refused: {message['refusal']}", message, again=False)
    if finish == "content_filter":
        raise Invalid("filtered", "the provider's filter stopped the answer", message, again=False)
    fields = {
        "text": content,
        "data": None,
        "tool_calls": (),
        "finish_reason": finish,
        "served_by": reply.get("model"),
    }
    if calls:
        try:
            return fields | {"tool_calls": _tool_calls(request, calls)}
        except ValueError as error:
            raise invalid(str(error)) from None
    if request.parameters.get("tool_choice") == "required":
        raise invalid("the answer calls no tool, though a call was required")
    if not (content or "").strip():
        raise invalid("the answer is empty")
    if request.schema is not None:
        try:
            data = _parse(_unfenced(content), "the answer")
            _conform(data, canonical(request.schema), "the answer")
        except ValueError as error:
            raise invalid(str(error)) from None
        fields["data"] = data
    return fields


def body(model: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON body that puts the canonical `request` to the chat endpoint."""
    parameters = dict(request["parameters"])
    sent = {"model": model, "messages": request["messages"], **parameters.pop("extra_body", {})}
    sent.update(parameters)
    if request["schema"] is not None:
        sent["response_format"] = {
            "type": "json_schema",
            "json_schema": {
                "name": "answer",
                "schema": request["schema"],
                "strict": _is_strict(request["schema"]),
            },
        }
    if request["tools"]:
        sent["tools"] = [{"type": "function", "function": tool} for tool in request["tools"]]
    return sent


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise `UsageError` for an option that the chat endpoint does not have."""
    for name in parameters:
        if name not in PARAMETERS:
            raise UsageError(
                f"the chat endpoint has no parameter {name!r}",
                did_you_mean(name, PARAMETERS)
                + " (what only your server knows goes in extra_body)",
            )


def add(*counts: int | None) -> int | None:
    """Return the sum of `counts`, or None if one of them is not known."""
    return None if None in counts else sum(counts)


def _to_dict(result: Value | Failure) -> dict[str, Any]:
    plain = {"ok": result.ok, **asdict(result)}
    del plain["cached"]
    return plain


def _plain(value: Any, name: str) -> Any:
    try:
        text = canonical(value)
        text.encode()
    except (TypeError, ValueError) as error:  # a UnicodeEncodeError is a ValueError
        raise UsageError(f"{name} cannot be written as JSON: {error}") from None
    return json.loads(text)


def _whole(parameters: Mapping[str, Any]) -> dict[str, Any]:
    # A temperature of 0.0 is the same request as one of 0.
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in parameters.items()
    }


@lru_cache(maxsize=256)
def _validator(schema: str):
    from jsonschema import Draft202012Validator, SchemaError
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    parsed = json.loads(schema)
    try:
        Draft202012Validator.check_schema(parsed)
    except SchemaError as error:
        raise UsageError(f"not a JSON schema: {error.message} at {error.json_path}") from None
    registry = Registry()  # an empty one fetches nothing
    resolver = registry.with_resource("", DRAFT202012.create_resource(parsed)).resolver()
    for reference in _references(parsed):
        try:
            resolver.lookup(reference)
        except Unresolvable:
            raise UsageError(f"the schema refers to {reference!r}, which it lacks") from None
    return Draft202012Validator(parsed, registry=registry)


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for part in schema:
            yield from _references(part)
    elif isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for part in schema.values():
            yield from _references(part)


def _conform(data: Any, schema: str, what: str) -> None:
    errors = sorted(_validator(schema).iter_errors(data), key=lambda e: (e.json_path, e.message))
    if errors:
        listed = "; ".join(f"at {error.json_path}: {error.message}" for error in errors[:3])
        raise ValueError(f"{what} does not fit the schema: {listed}"[:1000])


def _parse(text: str, what: str) -> Any:
    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError:
        raise ValueError(f"{what} is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"{what} is not valid JSON: {error}") from None


def _unfenced(text: str) -> str:
    # Endpoints that ignore the schema often wrap the object in a Markdown fence.
    text = text.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        return text[text.index("\n") : -3]
    return text


def _tool_calls(request: Request, calls: Sequence[Any]) -> tuple[ToolCall, ...]:
    tools = {tool["name"]: tool for tool in request.tools}
    made = []
    for number, call in enumerate(calls):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise ValueError(f"tool call {number + 1} names no function")
        name = function.get("name")
        if name not in tools:
            raise ValueError(f"there is no tool {name!r}; known: {', '.join(tools) or 'none'}")
        arguments = function.get("arguments") or "{}"
        if isinstance(arguments, str):
            arguments = _parse(arguments, f"the arguments of {name}")
        _conform(arguments, canonical(tools[name]["parameters"]), f"the arguments of {name}")
        if not isinstance(arguments, dict):
            raise ValueError(f"the arguments of {name} are not an object")
        made.append(ToolCall(str(call.get("id") or f"call_{number}"), name, arguments))
    return tuple(made)


def _is_strict(schema: Any) -> bool:
    """Whether the endpoint's strict mode takes this schema: every object closed and required."""
    if isinstance(schema, list):
        return all(map(_is_strict, schema))
    if not isinstance(schema, dict):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties", {})
        closed = schema.get("additionalProperties") is False
        if not closed or set(schema.get("required", ())) != set(properties):
            return False
    return all(map(_is_strict, schema.values()))
