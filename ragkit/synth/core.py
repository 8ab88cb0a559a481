"""High-fidelity documents: projects whose documents refer to one another, and completeness clusters.

EnterpriseRAG-Bench, appendices B.1 and B.2. A project is decided first: people, dates, choices
and their reasons, an incident and what followed. Each document then states its share of that, as
the script in `banks/project.md` says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from ragkit.synth import banks
from ragkit.synth.briefs import (
    Brief,
    Point,
    document_id,
    folder,
    slug,
    ticket_prefix,
    volume_brief,
)
from ragkit.synth.pen import Pen, Slots, cap, voices
from ragkit.synth.streams import Stream
from ragkit.synth.world import FIRST_DAY, Fact, World, say_date

CLUSTER_SIZES = (4, 10)
ORDINALS = ("", "second ", "third ", "fourth ", "fifth ", "sixth ")
# Gold documents of completeness questions by source in the paper's Table 10, and kinds of document.
CLUSTER_SOURCES = {
    "confluence": (16, "guide"),
    "jira": (5, "case"),
    "slack": (5, "case"),
    "fireflies": (3, "meeting"),
    "gmail": (3, "case"),
    "google_drive": (2, "memo"),
    "github": (1, "pull"),
}
# Documents of a project beside its story: source and kind.
EXTRAS = (
    ("slack", "case"),
    ("slack", "case"),
    ("gmail", "case"),
    ("linear", "case"),
    ("google_drive", "memo"),
    ("jira", "case"),
    ("fireflies", "meeting"),
)


@dataclass
class Draft:
    """A question as its flow makes it, before validation.

    Parameters
    ----------
    kind : str
        ERB's question type.
    text, answer : str
    facts : tuple of str
    gold : tuple of str
        Ids of the documents that are needed.
    needed : dict of str to tuple of str
        Strings that each gold document must contain.
    absent : tuple of str
        Strings that no single document may contain together.
    distractors : tuple of str
    pattern : str
        The paper's pattern or our construction, for the statistics.
    """

    kind: str
    text: str
    answer: str
    facts: tuple[str, ...]
    gold: tuple[str, ...] = ()
    needed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    distractors: tuple[str, ...] = ()
    pattern: str = ""


@dataclass
class Group:
    """A project or cluster: its documents, its facts, and the questions it can carry."""

    name: str
    title: str
    kind: str
    briefs: list[Brief]
    facts: list[Fact]
    drafts: list[Draft]
    manifest: dict = field(default_factory=dict)


def turn(world: World, section: str, number: int) -> str:
    """Return a line of the bank `questions`, another one for each number until all had theirs."""
    lines = banks.sections("questions")[section]
    return lines[(number + Stream(world.seed, "turn", section).below(len(lines))) % len(lines)]


def answered(lines: Sequence[str], slots: Slots, lists: Mapping[str, list[dict]] = {}) -> dict:
    """Return what a script says of a question: answer, facts, absent strings, strings by document.

    A line after `*` or `absent*` is said of each item of a list.
    """
    fill = Pen(None, slots).fill
    found: dict = {"answer": fill(lines[0]), "facts": (), "absent": (), "needed": {}}
    for line in lines[1:]:
        word, _, rest = line.partition(" ")
        name, _, strings = rest.partition(" = " if word == "gold:" else ": ")
        each = [Pen(None, Slots(slots | item)).fill(strings) for item in lists.get(name, ())]
        if word == "gold:":
            found["needed"][name] = tuple(map(fill, banks.fields(strings)))
        elif word in ("-", "*"):
            found["facts"] += (fill(rest),) if word == "-" else tuple(each)
        else:
            found["absent"] = tuple(each or map(fill, banks.fields(rest)))
    return found


# Projects


@dataclass
class _Story:
    """What is decided of a project before anybody writes: slots, days, and lists to write about."""

    slots: Slots
    days: dict[str, date]
    lists: dict[str, list[dict]]
    people: list[str]


def project(world: World, number: int, size: int) -> Group:
    """Return project `number` with about `size` documents, 24 of which carry its story."""
    rows = [*map(_archetype, banks.sections("projects").items())]
    row = rows[number % len(rows)]
    stream = Stream(world.seed, "project", number)
    code = world.code(20 + number)
    story = _story(world, row, code, stream)
    pen, script = Pen(stream, story.slots), banks.sections("project")
    facts = {}
    for name, day, attribute, value, statement in map(banks.fields, script["facts"]):
        key, attribute, value = f"{code}.{name}", pen.fill(attribute), pen.fill(value)
        since, statement = story.days[day].isoformat(), pen.fill(statement)
        facts[name] = Fact(key, since, code, attribute, value, statement, entity=code, key=key)
    briefs: dict[str, Brief] = {}
    for head, lines in script.items():
        name, colon, place = head.partition(": ")
        if not colon or name.startswith("ask "):
            continue
        listed = next((line[6:] for line in lines if line.startswith("each: ")), "")
        for i, item in enumerate(story.lists[listed] if listed else [{}]):
            story.slots.update(item, i=str(i))
            own = f"{name}{i}" if listed else name
            briefs[own] = _scripted(world, code, len(briefs) + 1, place, lines, pen, story, facts)
    extras = [
        _extra(world, number, code, extra, row["topics"], pen)
        for extra in range(max(0, size - len(briefs)))
    ]
    drafts = []
    asked = {name: story.slots[name] for name in _ASKED} | {"part": story.slots["part0"]}
    asked |= {"theme": row["goal"], "part2": story.slots["part1"]}
    for head, lines in script.items():
        if head.startswith("ask "):
            section, pattern = head.removeprefix("ask ").split(": ")
            line = turn(world, section, number)
            text = cap(Pen(stream, voices(world, stream) | asked).fill(line))
            told = answered(lines, story.slots)
            told["needed"] = {briefs[name].doc_id: part for name, part in told["needed"].items()}
            gold = tuple(told["needed"])
            drafts.append(Draft("project_related", text, gold=gold, pattern=pattern, **told))
    every = [*briefs.values(), *extras]
    manifest = {name: story.slots[name] for name in ("code", "title", "initiative", "goal")}
    manifest |= {name: story.slots[name] for name in ("lead", "sponsor")}
    manifest |= {"people": story.people, "start": story.days["start"].isoformat()}
    manifest["documents"] = [_listed(b) | {"states": [f.fact_id for f in b.facts]} for b in every]
    return Group(code, row["title"], "project", every, list(facts.values()), drafts, manifest)


_ASKED = ("code", "measure", "planned", "vendor", "ticket")


def _archetype(section: tuple[str, Sequence[str]]) -> dict:
    name, initiative, topics = banks.fields(section[0])
    row: dict = {"title": name, "initiative": initiative, "topics": topics.split(", ")}
    row["decision"] = []
    for line in section[1]:
        word, _, rest = line.partition(": ")
        if word == "decision":
            row[word].append([part.strip() for part in rest.split("=>")])
        elif word == "incident":
            row[word] = [part.strip() for part in rest.split("=>")]
        elif word in ("acronym", "metric"):
            row[word] = banks.fields(rest)
        elif word in ("risk", "part"):
            row[word] = banks.alternatives(rest)
        else:
            row[word] = rest
    return row


def _story(world: World, row: dict, code: str, stream: Stream) -> _Story:
    """Decide who, when, how much, and what goes wrong."""
    between = stream.between
    people = stream.sample(world.staff[9:], 8)
    sponsor = stream.pick(world.staff[1:9])
    start = FIRST_DAY + timedelta(days=between(20, 230))
    planned = start + timedelta(days=between(120, 210))
    incident = planned - timedelta(days=between(20, 50))
    moved = planned + timedelta(days=between(33, 95))
    after = moved + timedelta(days=between(25, 60))
    budget = between(84, 640) * 1000 + between(1, 9) * 100
    hours = between(5, 47)
    ticket = f"INC-{between(200, 899)}"
    measure, *values, unit = row["metric"]
    base, goal_value, got = (f"{world.value(value, stream)} {unit}" for value in values)
    pilots = stream.sample(world.subjects["customer"], 3)
    devices = [f"{between(14, 190)} devices" for _ in pilots]
    vendor = stream.pick(world.subjects["vendor"])
    offer = between(21, 88) * 1000 + between(1, 9) * 50
    cost = offer - between(3, 12) * 500
    days = {"start": start, "planned": planned, "incident": incident, "moved": moved}
    days |= {"after": after, "changed_day": incident - timedelta(days=2)}
    for name, later in (("pilot_day", 64), ("pilots_day", 88), ("away", 60)):
        days[name] = start + timedelta(days=later)
    money = {"budget": budget, "offer": offer, "planned_cost": cost, "difference": offer - cost}
    lists = _lists(row, people, pilots, devices)
    slots = Slots(
        row,
        code=code,
        scarce=row["short"],
        lead=people[0],
        sponsor=sponsor,
        short=row["acronym"][1],
        long=row["acronym"][0],
        measure=measure,
        base=base,
        goal_value=goal_value,
        got=got,
        offer_number=f"{offer:,}",
        planned_number=f"{cost:,}",
        vendor=vendor.name,
        vendor_contact=vendor.contact,
        ticket=ticket,
        hours=str(hours),
        opened=str(max(1, hours // 4)),
        away_month=say_date(days["away"]).split()[1],
        someone=lambda pen: pen.stream.pick(people),
        Risk=lambda pen: pen.stream.pick(row["risk"]).capitalize(),
        **{name: f"{amount:,} euros" for name, amount in money.items()},
        **{name: say_date(day) for name, day in days.items()},
        **dict(zip(("what", "cause", "effect", "follow"), row["incident"], strict=True)),
    )
    for own in ("decisions", "pilots", "parts"):
        for i, item in enumerate(lists[own]):
            slots |= {f"{name}{i}": value for name, value in item.items()}
    first = [name.split()[0] for name in people]
    for name, values in (("person", people), ("first", first), ("risk", row["risk"])):
        slots |= {f"{name}{i}": value for i, value in enumerate(values)}
    return _Story(slots, days, lists, people)


def _lists(row: dict, people: list[str], pilots: list, devices: list[str]) -> dict[str, list[dict]]:
    """Return what a project has several of, each with its slots."""
    sources = ("confluence", "google_drive", "confluence")
    first, questions = [name.split()[0] for name in people], [d[0] for d in row["decision"]]
    return {
        "decisions": [
            dict(zip(("question", "chosen", "rejected", "reason"), decision, strict=True))
            | {"source": sources[i], "number": str(i + 1), "part": row["part"][i]}
            | {"owner": people[i + 1], "owner_first": first[i + 1]}
            for i, decision in enumerate(row["decision"])
        ],
        "pilots": [
            {"pilot": pilot.name, "contact": pilot.contact, "devices": count, "subject": pilot}
            | {"states": f"pilot{i} short" if i == 2 else f"pilot{i}"}
            for i, (pilot, count) in enumerate(zip(pilots, devices, strict=True))
        ],
        "parts": [
            {"part": part, "owner": people[1 + i], "question": questions[i % 3]}
            for i, part in enumerate(row["part"])
        ],
        "weeks": [
            {"part": row["part"][i], "pilot": pilots[i].name, "first": first[i + 1]}
            | {"week": str(4 * i + 5), "again": f" ({i + 1})" if i else ""}
            for i in range(3)
        ],
    }


def _scripted(world, code, number, place, lines, pen, story, facts) -> Brief:
    """Return the brief of a scripted document; what its lines draw, they draw in their order."""
    slots, stream = story.slots, pen.stream
    head = {"people": "", "states": "", "kind": "project"}
    points: list[Point] = []
    for line in lines:
        word, colon, rest = line.partition(": ")
        if variable := re.fullmatch(r"(\w+) = (.+)", line):
            slots[variable[1]] = pen.fill(variable[2])
        elif colon and word == "day":
            day = _day(rest, story.days, int(slots["i"]), stream)
        elif colon and word in ("title", "people", "states", "kind", "key", "each"):
            head[word] = pen.fill(rest)
        elif line.startswith("## "):
            points.append(Point("head", line[3:]))
        elif line.startswith("|"):
            above = [points.pop().text] if points and points[-1].role == "table" else []
            points.append(Point("table", "\n".join([*above, pen.fill(line)])))
        elif not (only := re.match(r"(\d)\? ", line)) or only[1] == slots["i"]:
            points.append(Point("text", pen.fill(line[only.end() if only else 0 :])))
    source, _, what = pen.fill(place).partition("/")
    what, title, own = what.replace(" ", "-"), head["title"], slug(code)
    metadata: dict[str, str | int] = {}
    stem = f"{day.isoformat()}-{slug(title, 50)}"
    if source in ("linear", "jira"):
        key = f"{ticket_prefix(own, source)}-{100 + number * 7 + stream.below(6)}"
        stem = metadata["identifier" if source == "linear" else "key"] = head.get("key", key)
        path = f"{source}/projects/{own}/{stem}.json"
    elif source == "github":
        metadata["number"] = 300 + number * 9 + stream.below(8)
        path = f"github/{own}/{what}/{metadata['number']}-{slug(title, 40)}.json"
    elif source == "slack":
        path = f"slack/proj-{own}/{stem}.json"
    else:
        path = f"{source}/projects/{own}/{what}/{stem}.json"
    people = [slots[name] for name in head["people"].split()]
    others = [p for p in world.staff[1:40] if p not in people]
    people += stream.sample(others, max(0, 4 - len(people)))
    return Brief(
        document_id(world, "project", code, number),
        source,
        head["kind"],
        path,
        title,
        day,
        people,
        points,
        tuple(facts[name] for name in head["states"].split()),
        subject=slots["subject"] if head["kind"] == "deal" else None,
        group=code,
        metadata=metadata,
    )


def _day(text: str, days: dict[str, date], i: int, stream: Stream) -> date:
    """Return a day such as `start + 30 + 11i` or `start + 15..70`."""
    name, *terms = text.split(" + ")
    day = days[name]
    for term in terms:
        low, dots, high = term.partition("..")
        step = stream.between(int(low), int(high)) if dots else int(term.removesuffix("i"))
        day += timedelta(days=step * i if term.endswith("i") else step)
    return day


def _extra(world: World, number: int, code: str, extra: int, topics: list[str], pen: Pen) -> Brief:
    """Return a document on one of the project's topics that mentions the project."""
    topic = banks.topics()[topics[extra % len(topics)]]
    stream = Stream(world.seed, "project", number, "extra", extra)
    subject = stream.pick(world.pool(topic.kind, topic.area, topic.key))
    source, kind = stream.pick(EXTRAS)
    place = f"{source}/projects/{slug(code)}"
    scope, own = stream.pick(subject.scopes), number * 1000 + extra
    names = {"name": "project-extra", "tag": code}
    brief = volume_brief(world, stream, source, kind, topic, subject, scope, own, place, **names)
    if source in ("linear", "jira"):
        key = f"{ticket_prefix(slug(code), source)}-{500 + extra}"
        brief.metadata["identifier" if source == "linear" else "key"] = key
        brief.path = f"{place}/{key}.json"
    brief.points.insert(
        1, Point("text", pen.fill(stream.pick(banks.sections("project")["around"])))
    )
    return brief


def _listed(brief: Brief) -> dict:
    return {"doc_id": brief.doc_id, "path": brief.path, "title": brief.title}


# Clusters


def cluster(world: World, number: int) -> Group:
    """Return completeness cluster `number`: 4 to 10 documents with a share of one answer each."""
    rows = list(banks.sections("clusters").items())
    head, lines = rows[number % len(rows)]
    title, kind, topic_key, story, _, values = banks.fields(head)
    phrases = {
        word: banks.alternatives(rest) for word, _, rest in (s.partition(": ") for s in lines)
    }
    stream = Stream(world.seed, "cluster", number)
    code = f"Operation {world.code(60 + number).capitalize()}"
    ordinal = number // len(rows)
    alias = f"the {(*ORDINALS, f'{ordinal + 1}th ')[min(ordinal, len(ORDINALS))]}{title} round"
    topic = banks.topics()[topic_key]
    size = stream.between(*CLUSTER_SIZES)
    subjects = stream.sample(world.pool(kind, topic.area, topic.key), size)
    day = FIRST_DAY + timedelta(days=stream.between(30, 480))
    sources = list(CLUSTER_SOURCES)
    if topic.area not in ("firmware", "platform", "app", "data", "security"):
        sources.remove("github")
    weights = [CLUSTER_SOURCES[source][0] for source in sources]
    briefs: list[Brief] = []
    facts: list[Fact] = []
    for i, subject in enumerate(subjects):
        source = stream.weighted(sources, weights)
        value = world.other_value(values, stream, {fact.value for fact in facts})
        say = stream.pick(phrases["say"])
        name = code if stream.chance(0.45) else alias
        statement = say.replace("{v}", value).replace("{n}", subject.name).replace("{c}", name)
        about = {"entity": subject.name, "key": f"{code}.{title}"}
        since = day.isoformat()
        own = f"{code}@{subject.name}"
        facts.append(Fact(own, since, subject.name, title, value, statement, **about))
        brief = volume_brief(
            world,
            Stream(world.seed, "cluster", number, i),
            source,
            CLUSTER_SOURCES[source][1],
            topic,
            subject,
            "",
            900_000 + number * 100 + i,
            folder(source, topic.area, topic.key),
            name="cluster",
            tag=code,
        )
        brief.split = {}
        brief.points = [p for p in brief.points if p.role != "text"]
        brief.points.insert(stream.between(1, len(brief.points)), Point("text", statement))
        brief.facts = (*brief.facts, facts[-1])
        brief.day = day + timedelta(days=stream.below(25))
        briefs.append(brief)
    people = stream.sample(world.staff, 6)
    slots = {"code": code, "alias": alias, "story": story, "day": say_date(day)}
    around = _around(world, code, topic, day, people, Pen(stream, slots))
    own = ordinal == 0 and stream.chance(0.4)
    ask = stream.pick(phrases["ask"]) if own else turn(world, "cluster", number)
    asked = voices(world, stream) | {"c": code if stream.chance(0.5) else alias}
    draft = Draft(
        "completeness",
        cap(Pen(stream, asked).fill(ask)),
        *_listing(facts),
        tuple(b.doc_id for b in briefs),
        {b.doc_id: (f.value,) for b, f in zip(briefs, facts, strict=True)},
        tuple(f"{f.entity}\n{f.value}" for f in facts),
        tuple(b.doc_id for b in around),
        f"{len(briefs)} documents",
    )
    manifest = {"code": code, "alias": alias, "title": title, "documents": [*map(_listed, briefs)]}
    return Group(code, title, "cluster", [*briefs, *around], facts, [draft], manifest)


def _around(world, code, topic, day, people, pen) -> list[Brief]:
    """Return the documents that speak of a cluster and hold no part of its answer."""
    found = []
    for i, (head, (title, *lines)) in enumerate(banks.sections("cluster").items()):
        source, sent = head.partition(": ")[2], day - timedelta(days=6 - 5 * i)
        place = folder(source, topic.area, topic.key)
        found.append(
            Brief(
                document_id(world, "cluster", code, "around", i),
                source,
                "project",
                f"{place}/{sent.isoformat()}-{slug(code)}-{i}.json",
                pen.fill(title),
                sent,
                people,
                [Point("text", pen.fill(line)) for line in lines],
                topic=topic,
                group=code,
            )
        )
    return found


def _listing(facts: list[Fact]) -> tuple[str, tuple[str, ...]]:
    """Return the answer that lists all shares of a cluster, and its facts; counts have a total."""
    unit = facts[0].value.partition(" ")[2]
    answer = cap("; ".join(f"{fact.entity}: {fact.value}" for fact in facts)) + "."
    stated = [f"{fact.entity} has {fact.value}." for fact in facts]
    if unit != "%":
        total = sum(int(fact.value.split()[0].replace(",", "")) for fact in facts)
        answer += f" Together {total:,} {unit}."
        stated.append(f"The total is {total:,} {unit}.")
    return answer, tuple(stated)
