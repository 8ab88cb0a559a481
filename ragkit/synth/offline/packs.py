"""The data packs of the offline author, read once: `packs/*.toml`."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
_RANGE = re.compile(r"(\d+(?:\.\d+)?)\.\.(\d+(?:\.\d+)?)(?::(\d+(?:\.\d+)?))?\s*(.*)")


@dataclass(frozen=True)
class Attribute:
    """What can be said about a part of a subject: its values, and phrases for facts and questions.

    `values` is a range with a unit (`2.5..3.5:0.1 V`), a list, `@person` or `@date`; `say` are
    clauses with `{v}`, `ask` questions with `{s}` in the document's words, `far` in others, with
    `{f}`.
    """

    key: str
    name: str
    values: str
    say: tuple[str, ...]
    ask: tuple[str, ...]
    far: tuple[str, ...]


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
    found = {}
    for row in read("topics")["topic"]:
        if (row["kind"] == "thing") == informal:
            key, phrases = row["key"], ("say", "ask", "far")
            row = row | {
                "things": tuple(row["things"]),
                "cases": tuple(map(tuple, row.get("cases", ()))),
                "talk": tuple(row["talk"]),
                "attributes": tuple(
                    Attribute(
                        f"{key}.{one['name']}",
                        one["name"],
                        one["values"],
                        *(tuple(one[field]) for field in phrases),
                    )
                    for one in row["attributes"]
                ),
            }
            found[key] = Topic(**row)
    return found


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
