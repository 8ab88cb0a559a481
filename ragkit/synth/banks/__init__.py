"""The phrase banks: Markdown files of this folder, read once.

A `#` heading opens a section; what follows depends on the file. Alternatives stand between
` / `, fields between ` | `. In a phrase `{name}` is filled in, `[a|b]` is a choice and `{3..9}` a
number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from ragkit.errors import DataError

FOLDER = Path(__file__).parent
_TOKEN = re.compile(r"\{(\w+)\}|\[([^\[\]]*\|[^\[\]]*)\]|\{(\d+)\.\.(\d+)\}")
_RANGE = re.compile(r"(\d+(?:\.\d+)?)\.\.(\d+(?:\.\d+)?)(?::(\d+(?:\.\d+)?))?\s*(.*)")


class Range(NamedTuple):
    """A whole number to draw, both ends included, with at least `width` digits."""

    low: int
    high: int
    width: int


@dataclass(frozen=True)
class Attribute:
    """What can be said about a subject: its name, its values, and phrases for facts and questions."""

    key: str
    name: str
    values: str
    say: tuple[str, ...]
    ask: tuple[str, ...]
    far: tuple[str, ...]


@dataclass(frozen=True)
class Topic:
    """A subject matter: things, cases (problem, cause, fix), attributes and remarks."""

    key: str
    area: str
    kind: str
    title: str
    things: tuple[str, ...]
    cases: tuple[tuple[str, str, str], ...]
    attributes: tuple[Attribute, ...]
    talk: tuple[str, ...]


def alternatives(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(" / ") if part.strip())


def fields(text: str) -> list[str]:
    return [part.strip() for part in text.split(" | ")]


@cache
def sections(name: str) -> dict[str, tuple[str, ...]]:
    """Return the lines of a bank by its `#` headings."""
    path = FOLDER / f"{name}.md"
    found: dict[str, list[str]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("# "):
            lines = found.setdefault(line[2:].strip(), [])
        elif line.strip():
            if not found:
                raise DataError(f"{path}: line {number}: text before the first heading")
            lines.append(line.strip())
    return {key: tuple(lines) for key, lines in found.items()}


@cache
def words(section: str) -> tuple[str, ...]:
    """Return the alternatives of a section of the bank `world`."""
    return alternatives(" / ".join(sections("world")[section]))


@cache
def rows(section: str, bank: str = "world") -> tuple[tuple[str, ...], ...]:
    """Return a section whose lines are fields."""
    return tuple(tuple(fields(line)) for line in sections(bank)[section])


@cache
def topics(bank: str = "topics") -> dict[str, Topic]:
    """Return the topics of a bank by key."""
    path = FOLDER / f"{bank}.md"
    further = {row[0]: row[1:] for row in rows("more", "asks")}
    found: dict[str, Topic] = {}
    for area, lines in sections(bank).items():
        for block in "\n".join(lines).split("## ")[1:]:
            head, *items = block.strip().split("\n")
            heads = fields(head)
            key, title = heads[0], heads[-1]
            kind = heads[1] if len(heads) == 3 else "thing"
            got: dict[str, list[str]] = {"things": [], "case": [], "attr": [], "talk": []}
            for item in items:
                word, _, text = item.partition(": ")
                word = {"line": "talk"}.get(word, word)
                if word not in got:
                    raise DataError(f"{path}: {key}: no field {word!r}")
                got[word].append(text)
            attributes = []
            for text in got["attr"]:
                parts = fields(text)
                if len(parts) != 5:
                    raise DataError(f"{path}: {key}: five fields expected in {text!r}")
                name, values, *phrases = parts
                say, ask, far = map(alternatives, phrases)
                *asks, roundabout = further.get(f"{key}.{name}", ("",))
                ask, far = (*ask, *asks), (*far, *([roundabout] if roundabout else []))
                attributes.append(Attribute(f"{key}.{name}", name, values, say, ask, far))
            cases = tuple(tuple(p.strip() for p in text.split("=>")) for text in got["case"])
            found[key] = Topic(
                key,
                area,
                kind,
                title,
                alternatives(" / ".join(got["things"])),
                cases,
                tuple(attributes),
                alternatives(" / ".join(got["talk"])),
            )
    return found


@cache
def compiled(text: str) -> tuple[object, ...]:
    """Return a phrase as literals (str), slots (one name), choices (lists of phrases), numbers."""
    parts: list[object] = []
    position = 0
    for match in _TOKEN.finditer(text):
        if match.start() > position:
            parts.append(text[position : match.start()])
        if match[1]:
            parts.append((match[1],))
        elif match[2]:
            parts.append([compiled(option) for option in match[2].split("|")])
        else:
            width = len(match[3]) if match[3].startswith("0") else 0
            parts.append(Range(int(match[3]), int(match[4]), width))
        position = match.end()
    if position < len(text):
        parts.append(text[position:])
    return tuple(parts)


@cache
def slots(text: str) -> frozenset[str]:
    """Return the names of the slots in a phrase."""
    return frozenset(match[1] for match in re.finditer(r"\{(\w+)\}", text))


@cache
def attributes() -> dict[str, Attribute]:
    """Return every attribute by key."""
    both = (*topics().values(), *topics("misc").values())
    return {attribute.key: attribute for topic in both for attribute in topic.attributes}


@cache
def siblings(topic: str) -> tuple[Topic, ...]:
    """Return the other topics of the same area about the same kind of subject."""
    own = topics()[topic]
    return tuple(
        t for t in topics().values() if t.area == own.area and t.kind == own.kind and t is not own
    )


@cache
def number_range(text: str) -> tuple[float, float, float, int, str] | None:
    """Return low, high, step, decimals and unit of `2.5..3.5:0.1 V`, or None."""
    match = _RANGE.fullmatch(text)
    if match is None:
        return None
    low, high, step, unit = match.groups()
    step = step or "1"
    decimals = max(len(part.partition(".")[2]) for part in (low, high, step))
    return float(low), float(high), float(step), decimals, unit


def fingerprint() -> str:
    """Return the SHA-256 of all banks: a run is only resumed with the banks it was begun with."""
    digest = sha256()
    for path in sorted(path for end in ("md", "txt") for path in FOLDER.rglob(f"*.{end}")):
        digest.update(path.relative_to(FOLDER).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
