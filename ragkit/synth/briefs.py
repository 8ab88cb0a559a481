"""Briefs: what each document has to say, before anybody writes it.

The high-volume part of a company is planned here: topics of each source are split until a leaf
holds at most 500 documents (EnterpriseRAG-Bench, appendix B.3), and the brief of document j of a
source is a pure function of the seed and j.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from datetime import date, timedelta

from ragkit.errors import UsageError, did_you_mean
from ragkit.synth import banks
from ragkit.synth.banks import Topic
from ragkit.synth.pen import CASE, Pen, Slots, cap
from ragkit.synth.streams import Stream, digest64
from ragkit.synth.world import FIRST_DAY, LAST_DAY, Fact, Subject, World

LEAF = 500  # most documents under one topic
SOURCES = "slack gmail linear google_drive hubspot fireflies github jira confluence".split()
AREAS = {
    "linear": "hardware firmware platform app data product support field security",
    "hubspot": "sales success support field quality hardware product data",
    "fireflies": "sales success support people finance product quality legal marketing field",
    "github": "firmware platform app data security product",
    "jira": "support security field quality office manufacturing platform hardware",
}
KINDS = {
    "slack": (("case", 50), ("question", 25), ("standup", 13), ("announcement", 12)),
    "gmail": (("case", 45), ("figures", 30), ("replies", 25)),
    "linear": (("case", 75), ("task", 25)),
    "google_drive": (("memo", 45), ("sheet", 30), ("checklist", 25)),
    "hubspot": (("company", 45), ("deal", 30), ("contact", 25)),
    "fireflies": (("meeting", 100),),
    "github": (("pull", 100),),
    "jira": (("case", 70), ("task", 30)),
    "confluence": (("guide", 45), ("reference", 30), ("questions", 25)),
}
QUARTERS = ("2025-q1", "2025-q2", "2025-q3", "2025-q4", "2026-q1", "2026-q2", "2026-q3")
CLASSES = (("A", "B", "C"), ("1", "2", "3"), ("blue", "amber", "red"), ("K", "L", "M"))
SPLITTABLE = frozenset("case memo meeting guide replies task pull company questions".split())
# How often a document of a kind treats a second matter.
LONG = {
    "case": 0.4,
    "replies": 0.6,
    "figures": 0.5,
    "memo": 0.8,
    "meeting": 0.9,
    "guide": 0.8,
    "company": 0.5,
    "deal": 0.4,
    "reference": 0.6,
    "questions": 0.7,
    "checklist": 0.5,
}
INTRA_SHARE = 0.14  # of volume documents carry a fact that is split over distant passages


@dataclass(frozen=True)
class Point:
    """One thing to say: a clause (problem, cause, fix, fact) or finished text, table or heading."""

    role: str
    text: str


@dataclass
class Brief:
    """What a document has to say, to whom and where: the author does the rest.

    Parameters
    ----------
    doc_id, source, kind, path, title : str
        `path` is where it belongs; noise may move it later.
    day : datetime.date
    people : list of str
        Those who write or are spoken to; the first is the owner.
    points : list of Point
        In order. Whatever an author writes has to state all of role "fact".
    facts : tuple of Fact
    topic : Topic or None
    subject : Subject or None
    scope : str
    group : str
        Project code, cluster or pair that the document is part of, if any.
    metadata : dict
        Fields of the source's records that the brief fixes.
    split : dict
        For intra-document questions: how to ask (a rule of the bank `glue`), scope, answer and
        facts, spread over distant points.
    """

    doc_id: str
    source: str
    kind: str
    path: str
    title: str
    day: date
    people: list[str]
    points: list[Point]
    facts: tuple[Fact, ...] = ()
    topic: Topic | None = None
    subject: Subject | None = None
    scope: str = ""
    group: str = ""
    metadata: dict[str, str | int] = field(default_factory=dict)
    split: dict = field(default_factory=dict)
    voice: str = ""  # documents with the same voice are written in the same words


@dataclass(frozen=True)
class Leaf:
    """A topic's directory with at most 500 documents: those from `start` on."""

    source: str
    topic: str
    quarter: str
    region: str
    start: int
    count: int
    folder: str


def shares(total: int, weights: list[float]) -> list[int]:
    """Return whole numbers in proportion to weights that add up to `total` (largest remainder)."""
    whole = sum(weights)
    exact = [total * w / whole for w in weights]
    counts = [int(x) for x in exact]
    order = sorted(range(len(weights)), key=lambda i: (counts[i] - exact[i], i))
    for i in order[: total - sum(counts)]:
        counts[i] += 1
    return counts


def slug(text: str, limit: int = 48) -> str:
    """Return `text` as lower-case words joined by hyphens, fit for a path."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:limit].strip("-")


class Volume:
    """The plan of the high-volume documents.

    Parameters
    ----------
    world : World
    counts : dict of str to int
        Documents by source.

    Attributes
    ----------
    leaves : dict of str to list of Leaf, by source
    """

    def __init__(self, world: World, counts: dict[str, int]):
        for source in counts:
            if source not in SOURCES:
                raise UsageError(f"no source {source!r}", did_you_mean(source, SOURCES))
        self.world = world
        self.counts = counts
        self.leaves = {source: self._leaves(source, n) for source, n in counts.items()}
        self._starts = {s: [leaf.start for leaf in leaves] for s, leaves in self.leaves.items()}

    def _leaves(self, source: str, count: int) -> list[Leaf]:
        areas = AREAS.get(source)
        topics = [t for t in banks.topics().values() if areas is None or t.area in areas.split()]
        if source == "hubspot":
            topics = [t for t in topics if t.kind == "customer"]
        weights = [
            0.4 + 1.6 * Stream(self.world.seed, "weight", source, t.key).draw() for t in topics
        ]
        regions = [row[0] for row in banks.rows("regions")]
        leaves: list[Leaf] = []
        start = 0

        def add(topic: Topic, n: int, quarter: str, region: str):
            nonlocal start
            if n > LEAF and not quarter:
                for part, size in zip(QUARTERS, shares(n, [1.0] * len(QUARTERS)), strict=True):
                    add(topic, size, part, "")
            elif n > LEAF and not region:
                for part, size in zip(regions, shares(n, [1.0] * len(regions)), strict=True):
                    add(topic, size, quarter, part)
            elif n:
                part = folder(source, topic.area, topic.key, quarter, region)
                leaves.append(Leaf(source, topic.key, quarter, region, start, n, part))
                start += n

        for topic, n in zip(topics, shares(count, weights), strict=True):
            add(topic, n, "", "")
        too_large = [leaf for leaf in leaves if leaf.count > LEAF]
        if too_large:
            raise UsageError(
                f"{source} cannot hold {count:,} documents: the topic {too_large[0].topic!r} would "
                f"have {too_large[0].count:,} in one place, and {LEAF} are the most"
            )
        return leaves

    def members(self, source: str) -> dict[str, list[int]]:
        """Return the numbers of a source's documents by folder."""
        found: dict[str, list[int]] = {}
        for leaf in self.leaves[source]:
            found.setdefault(leaf.folder, []).extend(range(leaf.start, leaf.start + leaf.count))
        return found

    def brief(self, source: str, number: int) -> Brief:
        """Return the brief of document `number` (from 0) of a source."""
        leaves = self.leaves[source]
        leaf = leaves[bisect_right(self._starts[source], number) - 1]
        world = self.world
        stream = Stream(world.seed, "volume", source, number)
        topic = banks.topics()[leaf.topic]
        subject = stream.pick(world.pool(topic.kind, topic.area, topic.key, leaf.region))
        scope = stream.pick(subject.scopes) if stream.chance(0.85) else ""
        kind = stream.weighted(*zip(*KINDS[source], strict=True))
        return volume_brief(
            world, stream, source, kind, topic, subject, scope, number, leaf.folder, leaf.quarter
        )


def folder(source: str, area: str, topic: str, quarter: str = "", region: str = "") -> str:
    """Return the directory of a topic within a source."""
    place = area
    if source == "slack":
        place, topic = (f"{area}-{topic}" if len(area) + len(topic) < 22 else topic), ""
    elif source == "github":
        place = f"{area}-{'core' if len(topic) % 2 else 'services'}"
    elif source == "jira":
        place = ticket_prefix(area, "jira")
    elif source == "hubspot":
        place = {"sales": "deals", "success": "accounts"}.get(area, "companies")
    return "/".join(filter(None, (source, place, topic, quarter, slug(region))))


def ticket_prefix(area: str, source: str) -> str:
    letters = re.sub(r"[aeiou]", "", area.upper().lower()).upper()
    return (letters + area.upper())[:3] + ("D" if source == "jira" else "")


def day_in(stream: Stream, quarter: str = "") -> date:
    """Return a day of a quarter such as 2025-q3, or of the whole time."""
    if quarter:
        year, q = int(quarter[:4]), int(quarter[-1])
        first = date(year, 3 * q - 2, 3)
        return first + timedelta(days=stream.below(82))
    return FIRST_DAY + timedelta(days=stream.below((LAST_DAY - FIRST_DAY).days))


def document_id(world: World, *names: object) -> str:
    return "dsid_" + "".join(f"{digest64(world.seed, 'id', part, *names):016x}" for part in "ab")


def volume_brief(
    world: World,
    stream: Stream,
    source: str,
    kind: str,
    topic: Topic,
    subject: Subject,
    scope: str,
    number: int,
    place: str,
    quarter: str = "",
    *,
    name: str = "volume",
    facts: tuple[Fact, ...] | None = None,
    tag: str = "",
) -> Brief:
    """Return the brief of a document on a topic: a case, figures, a table, as its kind wants.

    Parameters
    ----------
    name : str
        Tells apart documents of different stages with the same number.
    facts : tuple of Fact, optional
        What it has to state; drawn from the topic otherwise.
    tag : str
        The code name of a project that it belongs to.
    """
    doc_id = document_id(world, name, source, number)
    day = day_in(stream, quarter)
    people = stream.sample(world.staff, 5)
    thing = stream.pick(topic.things)
    if facts is None:
        wanted = {"figures": 3, "question": 1, "announcement": 1, "sheet": 3, "reference": 3}
        n = wanted.get(kind) or (1 if stream.chance(0.55) else 2)
        facts = tuple(
            world.fact(attribute, subject, scope)
            for attribute in stream.sample(topic.attributes, n)
        )
        if kind == "sheet":
            others = [part for part in subject.scopes if part != scope][:3]
            facts = tuple(
                world.fact(attribute, subject, part)
                for part in (scope, *others)
                for attribute in topic.attributes
            )
    problem, cause, fix = stream.pick(topic.cases)
    case = [Point("problem", problem), Point("cause", cause), Point("fix", fix)]
    stated = [Point("fact", fact.statement) for fact in facts if fact.scope == scope]
    if kind in ("question", "announcement", "figures", "reference", "sheet", "task"):
        points = stated if kind == "question" else [*stated, case[2]]
        if kind in ("figures", "reference"):
            points = [case[0], *stated, case[2]]
    else:
        points = list(case)
        for point in stated:
            points.insert(stream.between(1, len(points)), point)
    if kind in LONG and stream.chance(LONG[kind]):
        facts, points = _longer(world, stream, topic, subject, scope, facts, points)
    if subject.nick and stream.chance(0.4):
        points.insert(stream.between(1, len(points)), Point("text", _nick(stream, subject, people)))
    split: dict = {}
    if kind in SPLITTABLE and stream.chance(INTRA_SHARE):
        split = split_fact(stream, subject, scope)
        points = [
            points[0],
            Point("text", split["first"]),
            *points[1:],
            Point("text", split["last"]),
        ]
    about = subject.phrase(scope)
    told = problem if points[0].role == "problem" else thing
    names = {"n": subject.name, "contact": subject.contact}
    title = _title(stream, source, kind, names | {"thing": thing, "about": about, "told": told})
    metadata: dict[str, str | int] = {}
    stem = f"{day.isoformat()}-{slug(thing, 24)}-{slug(subject.name, 20)}-{number:x}"
    if source in ("linear", "jira"):
        key = f"{ticket_prefix(topic.area, source)}-{1000 + number}"
        metadata["identifier" if source == "linear" else "key"] = key
        stem = key
    elif source == "github":
        metadata["number"] = 1000 + number
        stem = f"{1000 + number}-{slug(thing)}"
    elif source == "hubspot":
        stem = f"{slug(subject.name)}-{slug(thing, 20)}-{number:x}"
    elif source in ("google_drive", "confluence"):
        stem = f"{slug(title, 56)}-{number:x}"
    return Brief(
        doc_id,
        source,
        kind,
        f"{place}/{stem}.json",
        title,
        day,
        people,
        points,
        facts,
        topic,
        subject,
        scope,
        tag,
        metadata,
        split,
    )


def _nick(stream: Stream, subject: Subject, people: list[str]) -> str:
    """Return a remark on what people call a subject."""
    first = [name.split()[0] for name in people]
    slots = {"n": subject.name, "nick": subject.nick, "p2": first[1], "p3": first[2]}
    return Pen(stream, slots).say("nick")


def _longer(world, stream, topic, subject, scope, facts, points):
    """Return facts and points with a second matter: another case of the topic or of one beside it."""
    beside = banks.siblings(topic.key)
    other = stream.pick(beside) if beside and stream.chance(0.7) else topic
    known = {fact.key for fact in facts}
    told = {point.text for point in points}
    cases = [case for case in other.cases if case[0] not in told]
    case = [Point(role, text) for role, text in zip(CASE, stream.pick(cases), strict=True)]
    left = [a for a in other.attributes if a.key not in known]
    more = [world.fact(a, subject, scope) for a in stream.sample(left, stream.between(1, 2))]
    for fact in more:
        case.insert(stream.between(1, len(case)), Point("fact", fact.statement))
    head = [Point("head", cap(stream.pick(other.things)))]
    return (*facts, *more), [*points, *head, *case]


def split_fact(stream: Stream, subject: Subject, scope: str) -> dict:
    """Return a fact whose halves belong into distant passages, with its answer.

    Either a rule by class with the class told elsewhere, or a price of an option that is
    chosen, or struck out, later on: the sections `class` and `drop` of the bank `glue`.
    """
    rules, place = banks.sections("glue"), subject.phrase(scope)
    slots: dict = {"scope": place, "month": "spring"}
    if stream.chance(0.55):
        kind, names = "class", stream.pick(CLASSES)
        base = stream.between(3, 9)
        numbers = [base, base + stream.between(3, 9), base + stream.between(13, 30)]
        unit = stream.pick(("days", "shifts", "weeks", "loads"))
        chosen = stream.below(3)
        slots |= {f"v{i}": f"{n} {unit}" for i, n in enumerate(numbers, 1)}
        first, last = stream.pick(rules["class.rule"]), stream.pick(rules["class.place"])
        told = {"chosen": names[chosen], "value": slots[f"v{chosen + 1}"]}
    else:
        kind, names = "drop", stream.sample(banks.words("codewords"), 3)
        base = stream.between(12, 60) * 10 + stream.below(10)
        prices = sorted(base + stream.between(13, 190) * i for i in range(1, 4))
        slots |= {f"v{i}": f"{price:,} euros" for i, price in enumerate(prices, 1)}
        first, last = stream.pick(rules["drop.rule"]), stream.pick(rules["drop.place"])
        told = {
            "chosen": names[1],
            "value": slots["v2"],
            "reason": stream.pick(rules["drop.reason"]),
        }
    slots |= {f"{kind[0]}{i}": name for i, name in enumerate(names, 1)}
    pen = Pen(stream, Slots(slots | told))
    said = cap(pen.fill(first))
    if kind == "class":
        pen.slots["c2"] = told["chosen"]
    answer, *facts = map(pen.fill, rules[f"{kind}.answer"])
    return {
        "first": said,
        "last": cap(pen.fill(last)),
        "ask": f"{kind}.ask",
        "scope": place,
        "answer": answer,
        "facts": tuple(facts),
        "needed": (told["chosen"], told["value"]),
    }


def _title(stream: Stream, source: str, kind: str, slots: dict[str, str]) -> str:
    """Return a title from the bank `titles`, by source or by kind."""
    titles = banks.sections("titles")
    line = titles.get(source) or titles.get(kind) or titles["other"]
    return cap(Pen(stream, Slots(slots)).fill(line[0]))
