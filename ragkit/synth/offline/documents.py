"""One document: a brief with all that is to be said, and the author who says it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from itertools import accumulate

from ragkit.errors import DataError
from ragkit.synth.layout import slug
from ragkit.synth.offline import packs
from ragkit.synth.offline.grammar import Pen, Slots, Talk, cap, form, rule
from ragkit.synth.offline.packs import Attribute, Topic
from ragkit.synth.offline.world import MONTHS, WEEKDAYS, Fact, Subject, World, say_date
from ragkit.synth.streams import Stream, digest128

CLASSES = (("A", "B", "C"), ("1", "2", "3"), ("K", "L", "M"))
TICKETS = ("linear", "jira")


@dataclass
class Brief:
    """What a document has to say: everything that is known of it before it is written.

    `name` names it in its company; its id and its draws follow from it, unless a `voice` gives it the
    draws of another document. Of the `people`, whose first names differ, the last is only spoken of.
    A document with a `case` (problem, cause, fix) is written by the form of its source, with `notes`
    beside the facts; another one follows a script, its `lines`. `replaces` is the day of the document
    whose fact it updates. Noise may move it to another `folder`.
    """

    name: tuple
    source: str
    topic: Topic
    day: date
    people: list[str]
    things: tuple[str, ...]
    subject: Subject | None = None
    part: str = ""
    folder: str = ""
    stem: str = ""
    title: str = ""
    key: str = ""
    facts: tuple[Fact, ...] = ()
    case: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    split: Split | None = None
    voice: tuple = ()
    replaces: date | None = None


@dataclass(frozen=True)
class Split:
    """A fact that two passages state together: a rule with three cases, and which of them holds.

    `slots` has the cases `c1` to `c3` with their values `v1` to `v3`, the one that is `chosen`, its
    `value`, and the `thing` that it is about.
    """

    kind: str
    slots: dict[str, str]
    passages: tuple[str, str]


class Author:
    """Writes documents: a pure function of the seed, the world and the brief."""

    def __init__(self, world: World):
        self.world = world

    def pen(self, brief: Brief, stream: Stream) -> Pen:
        """Return a pen with what the phrases of a document may refer to."""
        day, topic, subject = brief.day, brief.topic, brief.subject
        slots = {
            "thing": brief.things[0],
            "thing2": brief.things[1],
            "title": topic.title,
            "name": brief.facts[0].attribute if brief.facts else topic.attributes[0].name,
            "other": brief.people[-1].partition(" ")[0],
            "day": say_date(day),
            "date": say_date(day - timedelta(days=stream.between(2, 40))),
            "weekday": stream.pick(WEEKDAYS),
            "month": MONTHS[(day.month - stream.between(2, 6)) % 12],
            "few": str(stream.between(2, 9)),
            "few2": str(stream.between(2, 9)),
            "many": str(stream.between(14, 96)),
            "clock": f"{stream.between(5, 22):02d}:{stream.between(0, 59):02d}",
            "talk": stream.pick(topic.talk),
        }
        slots |= zip(("problem", "cause", "fix"), brief.case, strict=False)
        if subject:
            slots |= {"n": subject.name, "part": brief.part, "s": subject.phrase(brief.part)}
            slots |= {"contact": subject.contact, "told": subject.told, "goods": subject.goods}
        return Pen(stream, slots)

    def write(self, brief: Brief, *, metadata: bool = False) -> dict:
        """Return path, doc_id, source_type, title, content and, if wanted, the metadata.

        Raises `DataError` if a fact does not stand in the text: a form or a phrase is wrong.
        """
        stream = Stream(self.world.seed, *(brief.voice or brief.name))
        pen, people = self.pen(brief, stream), brief.people[:-1]
        title = cap(brief.title or pen.say(f"{brief.source}.title"))
        if brief.replaces:
            title += f" ({say_date(brief.day)})"
        given = vars(brief) | {
            "people": people,
            "names": [name.partition(" ")[0] for name in people],
            "split": brief.split and brief.split.passages,
            "place": pen.slots.get("s"),
            "date": pen.slots["day"],
            "say": pen.say,
            "several": pen.several,
            "talk": partial(Talk, stream),
            "between": stream.between,
            "chance": stream.chance,
            "pick": stream.pick,
        }
        if brief.case:
            given |= {"stated": _stated(brief, pen), "intro": pen.say(f"any.{brief.topic.kind}")}
            given |= {"remark": pen.say("any.remark"), "days": _days(brief, stream)}
        content = form(brief.source if brief.case else "script").render(given).strip()
        text = f"{title}\n{content}".lower()
        for one in brief.facts:
            if one.value not in content or one.subject.lower() not in text:
                raise DataError(f"{brief.folder}/{brief.stem}: the text does not say {one}")
        found = {"path": f"{brief.folder}/{brief.stem}.json", "doc_id": self.document_id(brief)}
        found |= {"source_type": brief.source, "title": title}
        return found | (self._metadata(brief) if metadata else {}) | {"content": content}

    def document_id(self, brief: Brief) -> str:
        return f"dsid_{digest128(self.world.seed, 'id', *brief.name):032x}"

    def _metadata(self, brief: Brief) -> dict[str, str]:
        """Return the fields of the source's records, drawn from a stream of their own."""
        stream, cast = Stream(self.world.seed, "metadata", *brief.name), brief.people[:-1]
        slots = {f"person{i}": name for i, name in enumerate(cast, 1)}
        slots |= {
            "cast": "; ".join(cast),
            "place": brief.folder.split("/")[1],
            "iso": brief.day.isoformat(),
            "key": brief.key,
            "minutes": str(15 + 5 * stream.below(10)),
            "address": f"{slug(cast[1]).replace('-', '.')}@{slug(self.world.company)}.example",
        }
        fields = packs.read("sources")[brief.source]["metadata"]
        return {name: Pen(stream, slots).fill(phrase) for name, phrase in fields.items()}


def about(
    world: World, stream: Stream, name: tuple, source: str, topic: Topic, subject: Subject, part: int, day: date
) -> Brief:  # fmt: skip
    """Return the brief of a document on a topic, without facts."""
    people, things = world.people(stream, stream.between(4, 6)), stream.sample(topic.things, 2)
    made = Brief(name, source, topic, day, people, tuple(things), subject, subject.parts[part])
    made.case, number = stream.pick(topic.cases), 1000 + name[-1]
    if source in TICKETS or source == "github":
        made.key = f"{topic.key[:3].upper()}-{number}" if source in TICKETS else str(number)
    made.folder = place(source, topic)
    made.stem = f"{made.key or day.isoformat()}-{slug(things[0], 24)}-{number:x}"
    return made


def place(source: str, topic: Topic) -> str:
    """Return the folder of a topic; a channel of Slack is one folder."""
    parts = (f"{topic.area}-{topic.key}",) if source == "slack" else (topic.area, topic.key)
    return "/".join((source, *parts))


def fact(
    world: World, stream: Stream, attribute: Attribute, brief: Brief, not_in: list[str]
) -> Fact:
    """Draw the value of an attribute for whom a document is about; its people are not the value."""
    value, key = world.value(attribute.values, stream, not_in), attribute.key
    name = brief.subject.name if brief.subject else brief.things[0]
    subject = brief.subject.phrase(brief.part) if brief.subject else name
    said = stream.pick(attribute.say).replace("{v}", value)
    fact_id, day = f"{key}@{subject}", brief.day.isoformat()
    return Fact(fact_id, subject, attribute.name, value, said, key, name, brief.part, day)


def split(author: Author, stream: Stream, brief: Brief) -> Split:
    """Draw a fact of two passages: a rhythm by class, or the price of one of three offers."""
    kind, names = stream.pick(("class", "offer")), stream.pick(CLASSES)
    low, high, unit = (
        (3, 9, stream.pick(("days", "weeks"))) if kind == "class" else (110, 490, "euros")
    )
    numbers = list(accumulate(stream.between(low, high) for _ in range(3)))
    chosen = stream.below(3) if kind == "class" else 1  # the cheapest offer is ruled out
    slots = {f"c{i}": name for i, name in enumerate(names, 1)}
    slots |= {f"v{i}": f"{number:,} {unit}" for i, number in enumerate(numbers, 1)}
    slots |= {"chosen": names[chosen], "value": slots[f"v{chosen + 1}"], "thing": brief.things[1]}
    pen = author.pen(brief, stream)
    pen.slots |= slots | {"thing": brief.things[0]}
    slots["reason"] = pen.slots["reason"] = pen.say("split.reason")
    return Split(kind, slots, (pen.say(f"split.{kind}_rule"), pen.say(f"split.{kind}_place")))


def updated(brief: Brief, number: int, world: World) -> tuple[Brief, Fact, Fact]:
    """Return a later near-duplicate in which the first fact has changed, and both facts."""
    stream, old = Stream(world.seed, "update", number), brief.facts[0]
    attribute = next(one for one in brief.topic.attributes if one.key == old.key)
    made = replace(brief, name=("update", number), voice=brief.name, replaces=brief.day)
    made.day += timedelta(days=stream.between(18, 120))
    new = fact(world, stream, attribute, made, [*brief.people, old.value])
    made.facts = (replace(new, fact_id=f"{old.fact_id}#{number}"),)
    return made, old, made.facts[0]


def _stated(brief: Brief, pen: Pen) -> list[str]:
    """Return a sentence for each fact, and the notes; a fact without a part is a sentence itself."""
    found = [one.statement for one in brief.facts if not one.part]
    facts = [one for one in brief.facts if one.part]
    phrases = pen.stream.sample(rule("any.update" if brief.replaces else "any.fact"), 3)
    for one, wordings in zip(facts, phrases, strict=False):
        slots = Slots(pen.slots | {"name": one.attribute, "say": one.statement, "s": one.subject})
        slots["Name"] = cap(one.attribute)
        if brief.replaces:
            slots["olddate"] = say_date(brief.replaces)
        found.append(pen.stream.pick(wordings).format_map(slots))
    return [*found, *brief.notes]


def _days(brief: Brief, stream: Stream) -> list[str]:
    """Return the days of the notes of a record, which are dated; the last is its own."""
    found = [brief.day]
    while brief.source == "hubspot" and len(found) < 12:
        found.append(found[-1] - timedelta(days=stream.between(1, 9)))
    return [say_date(one) for one in reversed(found)]
