"""Prompts: Markdown files with a name and a version, filled strictly.

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

What is between double braces must be given, all of it and nothing else. Values are put in as
they are: braces inside a value mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ragkit.errors import DataError, UsageError, did_you_mean
from ragkit.llm.exchange import ROLES, Request, digest

FOLDER = Path(__file__).parent / "templates"
_HOLE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_ROLE = re.compile(r"^--- *([a-z]+) *---$")


@dataclass(frozen=True)
class Prompt:
    """A prompt as loaded: `name`, `version`, `parts` (pairs of role and text) and `sha256`."""

    name: str
    version: str
    parts: tuple[tuple[str, str], ...]
    sha256: str

    @property
    def id(self) -> str:
        """`name@version:hash`; the hash betrays an edit that kept the version."""
        return f"{self.name}@{self.version}:{self.sha256[:8]}"

    @property
    def placeholders(self) -> frozenset[str]:
        return frozenset(name for _, text in self.parts for name in _HOLE.findall(text))

    def messages(self, **values: Any) -> list[dict[str, str]]:
        """Return the chat with every placeholder filled.

        Raises
        ------
        UsageError
            If a placeholder is not given, is None, or is not one of the prompt's.
        """
        missing = sorted(name for name in self.placeholders if values.get(name) is None)
        if missing:
            raise UsageError(f"the prompt {self.name!r} needs a value for {missing[0]!r}")
        unknown = sorted(set(values) - self.placeholders)
        if unknown:
            raise UsageError(
                f"the prompt {self.name!r} has no placeholder {unknown[0]!r}",
                did_you_mean(unknown[0], self.placeholders),
            )
        return [
            {"role": role, "content": _HOLE.sub(lambda hole: str(values[hole[1]]), text)}
            for role, text in self.parts
        ]

    def request(self, values: Mapping[str, Any], **options: Any) -> Request:
        """Return a `Request` with the prompt filled and its id set; `options` as there."""
        return Request(self.messages(**values), prompt=self.id, **options)


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
    return _load(name, Path(folder))


@cache
def _load(name: str, folder: Path) -> Prompt:
    path = folder / f"{name}.md"
    if not path.is_file():
        known = [other.stem for other in folder.glob("*.md")]
        raise UsageError(f"there is no prompt {path}", did_you_mean(name, known))
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or lines[0] != "---" or "---" not in lines[1:]:
        raise DataError(f"{path}: line 1: expected front matter between two lines of ---")
    end = lines.index("---", 1)
    front = {}
    for number, line in enumerate(lines[1:end], 2):
        field, colon, value = line.partition(":")
        field, value = field.strip(), value.strip()
        if not colon or field not in ("name", "version", "description") or not value:
            raise DataError(
                f"{path}: line {number}: expected name, version or description, not {line!r}"
            )
        front[field] = value
    for field in ("name", "version"):
        if field not in front:
            raise DataError(f"{path}: the front matter has no {field}")
    if front["name"] != name:
        raise DataError(f"{path}: the prompt calls itself {front['name']!r}")

    parts: list[tuple[str, list[str]]] = []
    for number, line in enumerate(lines[end + 1 :], end + 2):
        mark = _ROLE.match(line)
        if mark and mark[1] not in ROLES:
            raise DataError(
                f"{path}: line {number}: no role {mark[1]!r}; known: {', '.join(ROLES)}"
            )
        if mark:
            parts.append((mark[1], []))
        elif parts:
            parts[-1][1].append(line)
        elif line.strip():
            parts.append(("user", [line]))
    texts = tuple((role, "\n".join(body).strip()) for role, body in parts)
    if not texts or not all(text for _, text in texts):
        raise DataError(f"{path}: a message is empty")
    sha256 = digest("\n".join(f"--- {role} ---\n{text}" for role, text in texts))
    return Prompt(name, front["version"], texts, sha256)
