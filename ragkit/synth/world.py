"""The world: a company, its people and partners, and the value of every fact about them.

Everything is a pure function of the seed and the size. Whoever asks twice gets the same answer,
so documents can be written in any order, in parallel, on any machine, and still agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

from ragkit.errors import UsageError
from ragkit.synth import banks
from ragkit.synth.banks import Attribute
from ragkit.synth.streams import Stream

FIRST_DAY = date(2025, 1, 6)
LAST_DAY = date(2026, 9, 25)
KINDS = ("customer", "vendor", "team", "office")
BUSINESS_AREAS = {"manufacturing", "quality", "marketing", "finance", "people", "legal"}


@dataclass(frozen=True)
class Subject:
    """Somebody or something that facts are about.

    Parameters
    ----------
    kind : {"customer", "vendor", "team", "office", "thing"}
    name : str
        Unique among the subjects of the world.
    far : str
        A plural description without the name: "the butter makers on the windy plateau".
    label : str
        Trade, segment or role.
    region : str
    scopes : tuple of str
        Parts of it that have facts of their own: sites, contracts, floors, services.
    contact : str
        A person of theirs, for customers and vendors; otherwise the head.
    nick : str
        What people call it, if they do: "the butter makers".
    """

    kind: str
    name: str
    far: str
    label: str
    region: str
    scopes: tuple[str, ...]
    contact: str
    nick: str = ""

    def phrase(self, scope: str) -> str:
        """Return name and scope as one noun phrase."""
        if not scope:
            return self.name
        return f"{self.name}{_genitive(self.name)} {scope}"


@dataclass(frozen=True)
class Fact:
    """One thing that is so: subject, attribute, value, since when, and who says so.

    Parameters
    ----------
    fact_id : str
        Attribute, subject and scope; equal for documents that state the same fact.
    time : str
        The day from which it holds, ISO.
    subject : str
        The subject as a phrase, with its scope.
    attribute : str
    value : str
    statement : str
        A clause that states it, without a full stop.
    sources : tuple of str
        Ids of documents that state it; filled when documents are written.
    entity, scope, key : str
        The subject's name, its part, and the attribute's key.
    """

    fact_id: str
    time: str
    subject: str
    attribute: str
    value: str
    statement: str
    sources: tuple[str, ...] = ()
    entity: str = ""
    scope: str = ""
    key: str = ""


@dataclass(frozen=True)
class Employee:
    name: str
    title: str
    team: str
    office: str
    manager: str | None
    since: int
    handle: str


@dataclass(frozen=True)
class Initiative:
    """A company-wide goal; projects belong to one."""

    code: str
    title: str
    goal: str
    why: str
    measure: str
    start: str
    target: str
    owner: str


class World:
    """The seeded world.

    Parameters
    ----------
    seed : int
    documents : int
        How many documents it has to carry; the numbers of people, customers, vendors, teams and
        offices follow from it.

    Attributes
    ----------
    company, product : str
    employees : list of Employee
    subjects : dict of str to list of Subject, by kind
    initiatives : list of Initiative
    """

    def __init__(self, seed: int, documents: int):
        if documents < 1:
            raise UsageError(f"a world needs at least one document, not {documents}")
        self.seed = seed
        self.documents = documents
        stream = Stream(seed, "company")
        self.company = stream.pick(banks.words("companies"))
        self.product = stream.pick(banks.words("products"))
        self.seat = self._place(stream)
        self.mission = stream.pick(banks.words("mission"))
        self.thesis = stream.pick(banks.words("thesis"))
        self.model = stream.pick(banks.words("model"))
        self.values = tuple(stream.sample(banks.words("values"), 4))
        self.founded = stream.between(2006, 2014)
        self.customers_count = min(2500, 36 + documents // 180)
        self._codes = Stream(seed, "codes").sample(
            banks.words("codewords"), len(banks.words("codewords"))
        )

    def code(self, number: int) -> str:
        """Return the code name with this number; numbers up to 7 are initiatives."""
        word = self._codes[number % len(self._codes)].upper()
        turn = number // len(self._codes)
        return word if turn == 0 else f"{word}-{turn + 1}"

    @cached_property
    def employees(self) -> list[Employee]:
        """The directory; the first is the head, and each manager stands before their people."""
        count = min(4000, 70 + self.documents // 60)
        names = self._unique_names("employee", count)
        teams = self.subjects["team"]
        offices = self.subjects["office"]
        titles = banks.words("titles")
        people = []
        for i, name in enumerate(names):
            stream = Stream(self.seed, "employee", i)
            manager, title = None if i == 0 else names[0], "Head of Department"
            if i >= 9:
                manager = names[1 + stream.below(min(i - 1, count // 8))]
                title = stream.pick(titles)
            title = title if i else "Chief Executive"
            team, office = teams[i % len(teams)].name, stream.pick(offices).name
            since, (given, family) = stream.between(self.founded, 2025), name.split()
            handle = f"{given.lower()}-{family[0].lower()}{i}"
            people.append(Employee(name, title, team, office, manager, since, handle))
        return people

    @cached_property
    def staff(self) -> list[str]:
        return [person.name for person in self.employees]

    @cached_property
    def outsiders(self) -> list[str]:
        taken = set(self.staff)
        return [n for n in self._unique_names("outsider", 400) if n not in taken]

    @cached_property
    def subjects(self) -> dict[str, list[Subject]]:
        """Customers, vendors, teams and offices, by kind."""
        return {kind: self._subjects(kind) for kind in KINDS}

    @cached_property
    def initiatives(self) -> list[Initiative]:
        found = []
        for i, (title, goal, why, measure, *ends) in enumerate(banks.rows("initiatives")):
            stream = Stream(self.seed, "initiative", i)
            start, target = (self.value(end, stream) for end in ends)
            owner = self.staff[1 + i]
            found.append(Initiative(self.code(i), title, goal, why, measure, start, target, owner))
        return found

    def short(self, subject: Subject) -> str:
        """Return the part of a name that colleagues use for short, or "" if others share it."""
        short = _short(subject.name)
        return short if self._shorts[short] == 1 else ""

    @cached_property
    def _shorts(self) -> Counter[str]:
        return Counter(_short(s.name) for part in self.subjects.values() for s in part)

    def pool(self, kind: str, area: str, topic: str, region: str = "") -> list[Subject]:
        """Return the subjects that a topic is about, in a region if any is there."""
        key = (kind, area, topic, region)
        if key not in self._pools:
            pool = self.subjects[kind]
            if kind == "vendor":
                own = [row[0] for row in banks.rows("trades") if row[3] == topic]
                pool = [s for s in pool if s.label in (own or ["supplier"])]
            elif kind == "team":
                part = "business" if area in BUSINESS_AREAS else "engineering"
                roles = {row[0] for row in banks.rows(f"{part} roles")}
                pool = [s for s in pool if s.label in roles]
            near = [s for s in pool if s.region == region] if region else []
            self._pools[key] = near or pool
        return self._pools[key]

    @cached_property
    def _pools(self) -> dict:
        return {}

    def fact(self, attribute: Attribute, subject: Subject, scope: str) -> Fact:
        """Return what is so: the value depends on seed, attribute, subject and scope alone."""
        stream = Stream(self.seed, "fact", attribute.key, subject.name, scope)
        value = self.value(attribute.values, stream)
        day = FIRST_DAY - timedelta(days=stream.between(10, 400))
        return Fact(
            f"{attribute.key}@{subject.name}@{scope}",
            day.isoformat(),
            subject.phrase(scope),
            attribute.name,
            value,
            stream.pick(attribute.say).replace("{v}", value),
            entity=subject.name,
            scope=scope,
            key=attribute.key,
        )

    def value(self, values: str, stream: Stream) -> str:
        """Return one value of a bank's notation: a range, a list, `@person` or `@date`."""
        if values == "@person":
            return stream.pick(self.staff)
        if values == "@outsider":
            return stream.pick(self.outsiders)
        if values == "@date":
            return say_date(FIRST_DAY + timedelta(days=stream.between(200, 760)))
        limits = banks.number_range(values)
        if limits is None:
            return stream.pick([part.strip() for part in values.split(", ")])
        low, high, step, decimals, unit = limits
        steps = round((high - low) / step)
        number = low + step * stream.between(0, steps)
        text = f"{number:,.{decimals}f}"
        return f"{text} {unit}".strip()

    def other_value(self, values: str, stream: Stream, taken: set[str]) -> str:
        """Return a value that is not among `taken`."""
        for _ in range(200):
            value = self.value(values, stream)
            if value not in taken:
                return value
        raise UsageError(f"{values!r} has no value beside {sorted(taken)}")

    def _subjects(self, kind: str) -> list[Subject]:
        """Return the subjects of a kind; the numbers of scopes grow, so that facts do not run out."""
        rows, count, scopes = self._table(kind)
        regions = banks.rows("regions")
        found: list[Subject] = []
        taken: set[str] = set()
        for i in range(count):
            stream = Stream(self.seed, kind, i)
            row = rows[i % len(rows)]
            region, where = regions[stream.below(len(regions))]
            where, nick = banks.alternatives(where)[0], ""
            own = scopes[i % len(scopes)]
            extra = min(len(own) - 3, self.documents // 12000 + stream.below(3))
            few = stream.sample(own, 3 + extra)
            name = self._subject_name(kind, row, stream, taken, i)
            taken.add(name)
            if kind == "office":
                far = f"the people at {row[0]}"
            elif kind == "team":
                far = row[1] if i < len(rows) else f"{row[1]} {where}"
            else:
                nick = stream.pick(banks.alternatives(row[2]))
                far = f"{nick} {where}"
            given, family = (stream.pick(banks.words(part)) for part in ("given names", "surnames"))
            contact = f"{given} {family}"
            found.append(Subject(kind, name, far, row[0], region, tuple(few), contact, nick))
        return found

    def _table(self, kind: str) -> tuple[Sequence, int, list[tuple[str, ...]]]:
        """Return the rows that subjects of a kind are made from, their number, and their scopes."""
        size = self.documents
        if kind == "customer":
            return banks.rows("segments"), self.customers_count, [banks.words("store scopes")]
        if kind == "vendor":
            return banks.rows("trades"), min(1400, 54 + size // 250), [banks.words("vendor scopes")]
        if kind == "office":
            rows = [(trait, trait) for trait in banks.words("office traits")]
            return rows, min(len(rows), 8 + size // 1500), [banks.words("office scopes")]
        roles = [banks.rows(f"{part} roles") for part in ("engineering", "business")]
        rows = [row for pair in zip(*roles, strict=True) for row in pair]
        scopes = [banks.words(f"{part} scopes") for part in ("engineering", "business")]
        return rows, min(96, 24 + size // 4000), scopes

    def _subject_name(self, kind, row, stream, taken, i) -> str:
        for _ in range(1000):
            if kind == "office":
                name = f"the {self._place(stream)} office"
            elif kind == "team":
                words = banks.words("codewords")
                name = f"Team {words[(i * 7 + self.seed) % len(words)]}"
                if name in taken:
                    name = f"Team {stream.pick(words)}"
            else:
                tail = stream.pick(banks.alternatives(row[1]))
                if stream.chance(0.72):
                    head = self._place(stream)
                else:
                    head = stream.pick(banks.words("surnames"))
                    if stream.chance(0.4):
                        head = f"{head} & {stream.pick(banks.words('surnames'))}"
                name = f"{head} {tail}"
            if name not in taken:
                return name
        raise UsageError(f"the banks have no more names for a {kind} after {len(taken):,}")

    def _place(self, stream: Stream) -> str:
        return stream.pick(banks.words("place heads")) + stream.pick(banks.words("place tails"))

    def _unique_names(self, kind: str, count: int) -> list[str]:
        given, family = banks.words("given names"), banks.words("surnames")
        pairs = Stream(self.seed, kind, "names").sample(range(len(given) * len(family)), count)
        return [f"{given[p % len(given)]} {family[p // len(given)]}" for p in pairs]


def _short(name: str) -> str:
    """Return Ebbmoor for Ebbmoor Food Halls, Kettle for Team Kettle, Eldby for the Eldby office."""
    words = name.split()
    if words[0] in ("Team", "the"):
        return words[1]
    return " ".join(words[:3]) if words[1] == "&" else words[0]


def _genitive(name: str) -> str:
    return "'" if name.endswith("s") else "'s"


MONTHS = (
    "January February March April May June July August September October November December".split()
)
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def say_date(day: date) -> str:
    """Return a day as people write it: 4 March 2026."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def short_day(day: date) -> str:
    """Return a day as people note it: 4 Mar."""
    return f"{day.day} {MONTHS[day.month - 1][:3]}"
