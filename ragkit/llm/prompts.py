"""Prompts: Markdown files with a name and a version, whose placeholders must all be filled.

A prompt file begins with its front matter; lines of the form `--- ROLE ---` divide the rest into
messages (without one, all of it is one message of the user)::

    ---
    name: judge
    version: 2
    ---
    --- system ---
    You compare an answer with a fact.
    --- user ---
    Fact: {{fact}}
    Answer: {{answer}}

Braces inside the values of placeholders have no meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ragkit import checks
from ragkit.errors import DataError, UsageError
from ragkit.files import read_text
from ragkit.llm.exchange import ROLES, Request, digest

FOLDER = Path(__file__).parent / "templates"
_HOLE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_ROLE = re.compile(r"^--- *([a-z]+) *---$", re.MULTILINE)


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
        return frozenset(name for _, text in self.parts for name in _HOLE.findall(text))

    def messages(self, **values: Any) -> list[dict[str, str]]:
        """Return the chat with every placeholder filled.

        Raises
        ------
        UsageError
            If a placeholder has no value or None, or a value has no placeholder.
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

    Raises
    ------
    UsageError
        If there is no such file.
    DataError
        If the file lacks name or version, has another field, an unknown role, an empty message
        or a name that is not the file's.
    """
    path = Path(folder) / f"{name}.md"
    if not path.is_file():
        checks.choice(name, f"prompt in {folder}:", [p.stem for p in Path(folder).glob("*.md")])
    text = read_text(path)
    head = re.match(r"---\n(.*?)^---$", text, re.DOTALL | re.MULTILINE)
    if not head:
        raise DataError(f"{path}: line 1: expected front matter between two lines of ---")
    front = {}
    for number, line in enumerate(head[1].splitlines(), 2):
        field, _, value = (part.strip() for part in line.partition(":"))
        if field not in ("name", "version", "description") or not value:
            raise DataError(
                f"{path}: line {number}: expected name, version or description, not {line!r}"
            )
        front[field] = value
    if front.get("name") != name or "version" not in front:
        raise DataError(f"{path}: expected the name {name!r} and a version in the front matter")
    lead, *pieces = _ROLE.split(text[head.end() :])
    parts = [("user", lead)] if lead.strip() else []
    parts += zip(pieces[::2], pieces[1::2], strict=True)
    texts = tuple((role, part.strip()) for role, part in parts)
    for role, part in texts:
        if role not in ROLES:
            raise DataError(f"{path}: no role {role!r}; known: {', '.join(ROLES)}")
        if not part:
            raise DataError(f"{path}: the message of the {role} is empty")
    if not texts:
        raise DataError(f"{path}: the prompt is empty")
    sha256 = digest("\n".join(f"--- {role} ---\n{text}" for role, text in texts))
    return Prompt(name, front["version"], texts, sha256)
