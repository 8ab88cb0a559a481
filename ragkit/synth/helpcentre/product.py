"""The invented product: its things, who may do what, and every page its help centre could have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from ragkit.errors import DataError
from ragkit.synth import banks
from ragkit.synth.pen import cap
from ragkit.synth.streams import Stream

_SMALL = frozenset("a after an and for from in of on or per the to with".split())
GROUPS = ("basic", "setting", "trouble", "chain", "link")


@dataclass(frozen=True)
class Option:
    """A setting: its name, what it decides, its values, how users speak of it."""

    name: str
    what: str
    values: tuple[str, ...]
    lay: tuple[str, ...]


@dataclass(frozen=True)
class Fault:
    """A problem: symptom, cause, fix, how users speak of it."""

    symptom: str
    cause: str
    fix: str
    lay: tuple[str, ...]


@dataclass(frozen=True)
class Thing:
    """A kind of object that users of the product work with."""

    name: str
    plural: str
    area: str
    lay: tuple[str, ...]
    traits: tuple[str, ...]
    purpose: str
    fields: tuple[str, ...]
    states: tuple[str, ...]
    options: tuple[Option, ...]
    faults: tuple[Fault, ...]
    wishes: tuple[tuple[str, str], ...]

    @property
    def menu(self) -> str:
        return f"{self.area} > {title(self.plural)}"


@dataclass(frozen=True)
class Kind:
    """A kind of article: its phrases by field, and its facts with what is asked about them."""

    key: str
    lines: dict[str, tuple[tuple[str, ...], ...]]
    facts: tuple[tuple[str, tuple[str, ...], str, str], ...]


@dataclass(frozen=True)
class Topic:
    """What one article is about: a kind, a thing, and what the kind needs beside it."""

    type: str
    group: str
    kind: str
    thing: Thing
    key: str = ""
    item: object = None

    @property
    def name(self) -> str:
        return "/".join(part for part in (self.thing.name, self.kind, self.key) if part)


def title(text: str) -> str:
    """Return a name as in a headline: `day of the week`, `Day of the Week`."""
    first, *rest = text.split(" ")
    return " ".join([cap(first), *(w if w in _SMALL else cap(w) for w in rest)])


def an(noun: str) -> str:
    """Return the noun with its indefinite article."""
    vowel = noun[:1].lower() in "aeiou" and not noun.lower().startswith(("url", "us", "one"))
    return f"{'an' if vowel else 'a'} {noun}"


def plural(noun: str) -> str:
    """Return the plural of a regular noun, whose head may be followed by `of`, `in` or `for`."""
    for word in (" of ", " in ", " for ", " from ", " on ", " to ", " we "):
        head, found, rest = noun.partition(word)
        if found:
            return plural(head) + found + rest
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


@cache
def things() -> tuple[Thing, ...]:
    """Return every thing of the bank `objects`, in its order."""
    found = []
    for area, lines in banks.sections("helpcentre/objects").items():
        for block in "\n".join(lines).split("## ")[1:]:
            head, *rest = block.strip().split("\n")
            name, many, lay, traits = banks.fields(head)
            got = _by_word(rest, name)
            found.append(
                Thing(
                    name,
                    many,
                    area,
                    banks.alternatives(lay),
                    tuple(traits.split()),
                    got["is"][0],
                    banks.alternatives(got["fields"][0]),
                    banks.alternatives(got["states"][0]),
                    tuple(map(_option, got["set"])),
                    tuple(map(_fault, got["bug"])),
                    tuple(map(_wish, got["req"])),
                )
            )
    return tuple(found)


@cache
def traits() -> dict[str, dict[str, tuple[str, ...]]]:
    return {key: _by_word(lines, key) for key, lines in banks.sections("helpcentre/traits").items()}


@cache
def kinds() -> dict[str, Kind]:
    """Return the kinds of articles by key."""
    found = {}
    for key, lines in banks.sections("helpcentre/kinds").items():
        if not lines[0].startswith(("short:", "title:")):
            continue
        got = _by_word(lines, key)
        facts = []
        for text in got.pop("fact"):
            name, says, formal, lay = banks.fields(text)
            facts.append((name, banks.alternatives(says), formal, lay))
        phrases = {word: tuple(map(banks.alternatives, texts)) for word, texts in got.items()}
        found[key] = Kind(key, phrases, tuple(facts))
    return found


@cache
def phrases(section: str, bank: str = "house") -> tuple[str, ...]:
    """Return the lines of a section."""
    return banks.sections(f"helpcentre/{bank}")[section]


@cache
def words(section: str, bank: str = "house") -> tuple[str, ...]:
    """Return the alternatives of a section."""
    return banks.alternatives(" / ".join(phrases(section, bank)))


def product_name(seed: int) -> str:
    return Stream(seed, "helpcentre", "product").pick(words("products"))


def topics(thing: Thing) -> Iterator[Topic]:
    """Yield every topic about a thing; known issues and troubleshooting share their faults."""
    for key in kinds():
        if key not in GROUPS:
            yield Topic("article", "basic", key, thing)
    several = [traits()[trait] for trait in thing.traits]
    options = [*thing.options, *(_option(t) for trait in several for t in trait["set"])]
    for option in {option.name: option for option in options}.values():
        yield Topic("article", "setting", "setting", thing, option.name, option)
    for fault in (*thing.faults, *trait_faults(thing)):
        yield Topic("article", "trouble", "trouble", thing, fault.symptom, fault)
    for action in fitting("actions", thing):
        for state in thing.states:
            name = banks.fields(action)[0]
            yield Topic("article", "chain", "chain", thing, f"{name}/{state}", (action, state))
    for partner in fitting("partners", thing):
        yield Topic("article", "link", "link", thing, banks.fields(partner)[0], partner)
    wishes = (_wish(t) for trait in (*several, traits()["all"]) for t in trait["req"])
    for wish in (*thing.wishes, *wishes):
        yield Topic("feature_request", "request", "request", thing, wish[0], wish)


def fitting(section: str, thing: Thing) -> list[str]:
    """Return the lines of a section whose last field names a trait of the thing."""
    lines = (line.rsplit(" | ", 1) for line in phrases(section))
    return [line for line, traits in lines if not set(thing.traits).isdisjoint(traits.split())]


def trait_faults(thing: Thing) -> tuple[Fault, ...]:
    """Return the problems that a thing shares with others of its kind."""
    return tuple(_fault(text) for trait in thing.traits for text in traits()[trait]["bug"])


def _by_word(lines, where: str) -> dict[str, tuple[str, ...]]:
    got: dict[str, list[str]] = {}
    for line in lines:
        word, found, text = line.partition(":")
        if not found:
            raise DataError(f"the bank of the help centre: {where}: no field in {line!r}")
        got.setdefault(word, []).append(text.strip())
    return {word: tuple(texts) for word, texts in got.items()}


def _option(text: str) -> Option:
    name, what, values, *lay = banks.fields(text)
    choices = tuple(value.strip() for value in values.split(";"))
    return Option(title(name), what, choices, banks.alternatives(lay[0]) if lay else ())


def _fault(text: str) -> Fault:
    symptom, cause, fix, lay = banks.fields(text)
    return Fault(symptom, cause, fix, banks.alternatives(lay))


def _wish(text: str) -> tuple[str, str]:
    name, instead = banks.fields(text)
    return name, instead
