"""Requests, and the prompt files that they are made from.

A prompt file is Markdown. It begins with its front matter; lines of the form `--- ROLE ---` divide
the rest into messages (without one, all of it is one message of the user)::

    ---
    name: judge
    version: 2
    ---
    --- system ---
    You compare an answer with a fact.
    --- user ---
    Fact: {{fact}}
    Answer: {{answer}}

Every placeholder must be filled. Braces inside the values have no meaning.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from ragkit import checks
from ragkit.errors import DataError, UsageError
from ragkit.files import read_text

ROLES = ("system", "developer", "user", "assistant", "tool")
ENDPOINT = "the chat endpoint"  # what only one server knows goes in extra_body
PARAMETERS = frozenset(
    "temperature top_p max_tokens max_completion_tokens stop seed frequency_penalty "
    "presence_penalty logit_bias logprobs top_logprobs reasoning_effort verbosity tool_choice "
    "parallel_tool_calls service_tier extra_body".split()
)
# The fields of a request that decide the answer.
DECISIVE = ("messages", "parameters", "schema", "tools", "repeat")
FOLDER = Path(__file__).parent / "templates"
_JSON = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False, sort_keys=True)
_HOLE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_ROLE = re.compile(r"^--- *([a-z]+) *---$", re.MULTILINE)
_FRONT = re.compile(r"---\n((?:[a-z]+:.*\n)*)---$", re.MULTILINE)
_FIELD = re.compile(r"^([a-z]+): *(\S.*?) *$", re.MULTILINE)


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and no spaces: equal values give equal text.

    >>> canonical({"b": 1, "a": [True]})
    '{"a":[true],"b":1}'
    """
    return _JSON.encode(value)


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

    Raises `UsageError` if a parameter does not have its form.

    Examples
    --------
    >>> request = Request("Is 7 prime?", parameters={"temperature": 0})
    >>> request.plain("gpt-4o")["messages"]
    [{'content': 'Is 7 prime?', 'role': 'user'}]
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
                validator(canonical(schema))

    def plain(self, model: str) -> dict[str, Any]:
        """Return what the ledger's key is computed from: everything that decides the answer."""
        fields = {name: getattr(self, name) for name in DECISIVE}
        return {"kind": "openai.chat", "model": model, **fields}

    def repair(self, message: Mapping[str, Any], reason: str) -> Request:
        """Return the request that shows the model its invalid answer and asks once more."""
        said = message.get("content") or ""
        if message.get("tool_calls"):
            said = canonical([call.get("function") for call in message["tool_calls"]])
        prompt = load_prompt("repair")
        invalid = {"role": "assistant", "content": said or "(nothing)"}
        messages = [*self.messages, invalid, *prompt.messages(error=reason)]
        return replace(self, messages=messages, prompt=prompt.id)


@lru_cache(maxsize=256)
def validator(schema: str):
    """Return the validator of a JSON schema; what it refers to must be inside it."""
    from jsonschema import Draft202012Validator, SchemaError
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    parsed = json.loads(schema)
    registry = Registry()  # an empty registry fetches nothing
    try:
        Draft202012Validator.check_schema(parsed)
        inside = registry.with_resource("", DRAFT202012.create_resource(parsed)).resolver()
        for reference in re.findall(r'"\$ref":"([^"]*)"', schema):
            inside.lookup(reference)
    except SchemaError as error:
        raise UsageError(f"not a JSON schema: {error.message} at {error.json_path}") from None
    except Unresolvable as error:
        raise UsageError(f"the schema refers to {error.ref!r}, which it lacks") from None
    return Draft202012Validator(parsed, registry=registry)


@dataclass(frozen=True)
class Prompt:
    """A prompt file: `name`, `version`, `parts` (pairs of role and text) and `sha256`."""

    name: str
    version: str
    parts: tuple[tuple[str, str], ...]
    sha256: str

    @property
    def id(self) -> str:
        """`name@version:hash`; the hash reveals an edit that kept the version."""
        return f"{self.name}@{self.version}:{self.sha256[:8]}"

    @property
    def placeholders(self) -> frozenset[str]:
        """The names of the placeholders."""
        return frozenset(name for _, text in self.parts for name in _HOLE.findall(text))

    def messages(self, **values: Any) -> list[dict[str, str]]:
        """Return the chat with every placeholder filled.

        Raises `UsageError` if a placeholder has no value or None, or a value has no placeholder.
        """
        checks.options(values, self.placeholders, f"the prompt {self.name!r}")
        for name in sorted(self.placeholders):
            if values.get(name) is None:
                raise UsageError(f"the prompt {self.name!r} needs a value for {name!r}")
        return [
            {"role": role, "content": _HOLE.sub(lambda hole: str(values[hole[1]]), text)}
            for role, text in self.parts
        ]

    def request(self, values: Mapping[str, Any], **options: Any) -> Request:
        """Return a `Request` with the filled prompt and its id; `options` are those of `Request`."""
        return Request(self.messages(**values), prompt=self.id, **options)


@cache
def load_prompt(name: str, folder: str | Path = FOLDER) -> Prompt:
    """Load `folder/name.md`.

    Raises `UsageError` if there is no such file, and `DataError` if its front matter, a role or a
    message is not what it should be.

    >>> prompt = load_prompt("check")
    >>> prompt.id, prompt.placeholders
    ('check@1:6d971796', frozenset())
    """
    path = Path(folder) / f"{name}.md"
    if not path.is_file():
        checks.choice(name, f"prompt in {folder}:", [p.stem for p in Path(folder).glob("*.md")])
    head = _FRONT.match(text := read_text(path))
    front = dict(_FIELD.findall(head[1])) if head else {}
    fields = {"name", "version"}
    if front.get("name") != name or not fields <= front.keys() <= fields | {"description"}:
        expected = f"the name {name!r}, a version and, if need be, a description"
        raise DataError(f"{path}: expected {expected} between two lines of ---")
    lead, *pieces = _ROLE.split(text[head.end() :])
    pairs = [
        *([("user", lead)] if lead.strip() or not pieces else []),
        *zip(pieces[::2], pieces[1::2], strict=True),
    ]
    parts = tuple((role, part.strip()) for role, part in pairs)
    for role, part in parts:
        if role not in ROLES:
            raise DataError(f"{path}: no role {role!r}; known: {', '.join(ROLES)}")
        if not part:
            raise DataError(f"{path}: the message of the {role} is empty")
    sha256 = digest("\n".join(f"--- {role} ---\n{text}" for role, text in parts))
    return Prompt(name, front["version"], parts, sha256)
