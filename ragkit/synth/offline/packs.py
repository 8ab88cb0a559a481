"""The data packs of the offline author, read once: `packs/*.toml`."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
_RANGE = re.compile(r"(\d+(?:\.\d+)?)\.\.(\d+(?:\.\d+)?)(?::(\d+(?:\.\d+)?))?\s*(.*)")


@dataclass(frozen=True, slots=True)
class Attribute:
    """What can be said about a part of a subject: its values, and phrases for facts and questions.

    `values` is a range with a unit (`2.5..3.5:0.1 V`), a list, `@person` or `@date`. `say` are clauses
    with `{v}`, `ask` questions with `{s}` in the document's words, `far` with `{f}` in others.
    """

    key: str
    name: str
    values: str
    say: list[str]
    ask: list[str]
    far: list[str]


@dataclass(frozen=True)
class Topic:
    """A subject matter: things, cases (problem, cause, fix), attributes and remarks.

    `kind` says whom it is about: customer, vendor, team, office, or a thing of an informal one.
    """

    key: str
    area: str
    kind: str
    title: str
    things: tuple[str, ...]
    cases: tuple[tuple[str, str, str], ...]
    talk: tuple[str, ...]
    attributes: tuple[Attribute, ...]


@cache
def read(name: str) -> dict:
    """Return a pack."""
    return tomllib.loads((FOLDER / "packs" / f"{name}.toml").read_text("utf-8"))


@cache
def topics(informal: bool = False) -> dict[str, Topic]:
    """Return the topics by key, the planned ones or the informal ones."""
    rows = [row for row in read("topics")["topic"] if (row["kind"] == "thing") == informal]
    return {row["key"]: _topic(row) for row in rows}


def _topic(row: dict) -> Topic:
    row = {name: tuple(v) if isinstance(v, list) else v for name, v in row.items()}
    row["cases"] = tuple(map(tuple, row.get("cases", ())))
    row["attributes"] = tuple(
        Attribute(f"{row['key']}.{one['name']}", *(one[name] for name in Attribute.__slots__[1:]))
        for one in row["attributes"]
    )
    return Topic(**row)


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
