"""The world: a company, its people and partners, drawn from a seed; whoever asks twice gets the same."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from itertools import product

from ragkit.errors import UsageError
from ragkit.synth.offline import packs
from ragkit.synth.offline.packs import Topic
from ragkit.synth.streams import Stream

FIRST_DAY = date(2025, 1, 6)
LAST_DAY = date(2026, 9, 25)
MONTHS = (
    "January February March April May June July August September October November December"
).split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday".split()
PARTS = 8  # of a subject, each with facts of its own
BUSINESS = frozenset(("manufacturing", "quality", "marketing", "finance", "people", "legal"))


@dataclass(frozen=True)
class Subject:
    """A customer, supplier, team or office that facts are about.

    A customer has `goods` to keep cold, is `told` in documents ("a family-owned dairy on the Saltcoast")
    and `described` in questions, by words for its style, segment and region. No two share all three.
    """

    name: str
    goods: str
    contact: str
    parts: tuple[str, ...]
    told: str = ""
    described: tuple[tuple[str, ...], ...] = ()

    def phrase(self, part: str) -> str:
        """Return name and part as one noun phrase."""
        return f"{self.name}{chr(39) if self.name.endswith('s') else chr(39) + 's'} {part}"


@dataclass(frozen=True)
class Fact:
    """One thing that is so: recorded when a document is planned, and said by it.

    `fact_id` is the attribute's `key` and the `subject`, which is the `entity` with its `part`; an
    updated value has its own. `statement` is a clause with the value, in the words of the documents,
    and `time` the day of the document.
    """

    fact_id: str
    subject: str
    attribute: str
    value: str
    statement: str
    key: str
    entity: str
    part: str
    time: str

    def __str__(self) -> str:
        return f"{self.subject}, {self.attribute}: {self.value}."


def say_date(day: date) -> str:
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def group(topic: Topic) -> str:
    """Return the group of subjects that a topic is about: one kind, or one trade of suppliers."""
    if topic.kind == "team":
        return "team/business" if topic.area in BUSINESS else "team/engineering"
    return f"vendor/{topic.key}" if topic.kind == "vendor" else topic.kind


class World:
    """The seeded world, with a number of employees and of subjects in each group."""

    def __init__(self, seed: int, people: int, sizes: dict[str, int]):
        self.seed, self.size, self.sizes = seed, people, sizes
        self.bank = packs.read("world")
        self.company = Stream(seed, "company").pick(self.bank["companies"])
        self.codes = Stream(seed, "codes").sample(self.bank["codewords"], 10_000)
        words = (self.bank[name] for name in ("styles", "segments", "regions"))
        self._triples = Stream(seed, "triples").sample(list(product(*words)), 10_000)
        if sizes["customer"] > len(self._triples):
            raise UsageError(
                f"{sizes['customer']:,} customers are too many: {len(self._triples):,} can be told apart",
                "make fewer documents",
            )

    @cached_property
    def staff(self) -> list[str]:
        names = [
            " ".join(pair) for pair in product(self.bank["given_names"], self.bank["surnames"])
        ]
        return Stream(self.seed, "staff").sample(names, self.size)

    def people(self, stream: Stream, count: int, not_in: Container[str] = ()) -> list[str]:
        """Return employees whose first names differ, and are none of some others."""
        found: dict[str, str] = {}
        while len(found) < count:
            name = stream.pick(self.staff)
            first = name.partition(" ")[0]
            if first not in not_in:
                found.setdefault(first, name)
        return list(found.values())

    @cached_property
    def subjects(self) -> dict[str, list[Subject]]:
        """Subjects by group."""
        taken: set[str] = set()
        return {
            name: [self._subject(name, i, taken) for i in range(count)]
            for name, count in self.sizes.items()
        }

    def _subject(self, name: str, i: int, taken: set[str]) -> Subject:
        stream, bank = Stream(self.seed, name, i), self.bank
        kind, _, own = name.partition("/")
        parts = bank["parts"][own if kind == "team" else kind]
        contact = f"{stream.pick(('Ms', 'Mr'))} {stream.pick(bank['surnames'])}"
        few = tuple(stream.sample(parts, PARTS))
        if kind != "customer":
            endings = {"office": ["office"], "vendor": bank["vendors"].get(own)}
            endings["team"] = [f"{task} team" for task in bank["teams"].get(own, ())]
            full = self._name(stream, endings[kind], kind == "vendor", taken)
            return Subject(full, "", contact, few)
        triple = self._triples[i]
        told = " ".join(word["said"] for word in triple)
        told = f"a{'n' * (told[0] in 'aeiou')} {told}"
        asked = tuple(tuple(word["asked"]) for word in triple)
        full = self._name(stream, triple[1]["names"], False, taken)
        return Subject(full, triple[1]["goods"], contact, few, told, asked)

    def _name(self, stream: Stream, endings: Sequence[str], surname: bool, taken: set[str]) -> str:
        """Return a name that nobody else has: a surname or a place, and an ending."""
        bank = self.bank
        for attempt in range(10_000):
            names = [stream.pick(bank["surnames"]) for _ in range(1 + (attempt > 20))]
            place = stream.pick(bank["place_heads"]) + stream.pick(bank["place_tails"])
            name = f"{' & '.join(names) if surname else place} {stream.pick(endings)}"
            if name not in taken:
                taken.add(name)
                return name
        raise UsageError(f"no name is left with {endings[0]!r}", "make fewer documents")

    def pool(self, topic: Topic) -> list[Subject]:
        """Return the subjects that a topic is about."""
        return self.subjects[group(topic)]

    def value(self, values: str, stream: Stream, not_in: Sequence[str] = ()) -> str:
        """Return one value of a pack's notation that is not among some others."""
        for _ in range(200):
            if (value := self._value(values, stream)) not in not_in:
                return value
        raise UsageError(f"{values!r} has no value beside {list(not_in)}")

    def _value(self, values: str, stream: Stream) -> str:
        if values == "@person":
            return stream.pick(self.staff)
        if values == "@date":
            return say_date(LAST_DAY + timedelta(days=stream.between(6, 450)))
        limits = packs.number_range(values)
        if limits is None:
            return stream.pick(values.split(", "))
        low, high, step, decimals, unit = limits
        number = low + step * stream.between(0, round((high - low) / step))
        return f"{number:,.{decimals}f} {unit}".rstrip()
