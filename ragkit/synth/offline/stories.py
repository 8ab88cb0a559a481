"""Stories that several documents tell together: projects and completeness clusters.

EnterpriseRAG-Bench, appendices B.1 and B.2. A story is decided first, as slots; `packs/stories.toml`
says what each document states of it, which questions it carries, and which documents each needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta

from ragkit.synth.layout import slug
from ragkit.synth.offline import packs
from ragkit.synth.offline.documents import Author, Brief, about
from ragkit.synth.offline.grammar import Pen, cap
from ragkit.synth.offline.world import FIRST_DAY, MONTHS, PARTS, Fact, World, say_date
from ragkit.synth.streams import Stream

CLUSTER_SIZES = (4, 10)
BEGINNINGS = 18  # months in which a cluster may begin


@dataclass
class Draft:
    """A question as its flow makes it, before validation.

    `needed` has by the id of each gold document what it must say, `pattern` how it was made.
    """

    kind: str
    text: str
    answer: str
    facts: tuple[str, ...]
    needed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    distractors: tuple[str, ...] = ()
    pattern: str = ""


@dataclass
class Story:
    """A project or cluster: its documents and the questions that it carries."""

    briefs: list[Brief]
    drafts: list[Draft]


def project_sources(size: int) -> list[str]:
    """Return the sources of a project's documents: the script's, then those that only mention it."""
    pack = packs.read("stories")
    script, more = [row["source"] for row in pack["document"]], pack["mentioning"]
    return script + [more[k % len(more)] for k in range(size - len(script))]


def cluster_sources(seed: int, number: int) -> list[str]:
    """Return the sources of a cluster's documents: the announcement, the members, and those around."""
    stream, pack = Stream(seed, "cluster", number), packs.read("stories")
    weights, size = pack["operation"]["sources"], stream.between(*CLUSTER_SIZES)
    members = [stream.weighted(list(weights), list(weights.values())) for _ in range(size)]
    around = [row["source"] for row in pack["around"]]
    return ["confluence", *members, *around]


class Stories:
    """The projects and clusters of a world, each made when it is first asked for."""

    def __init__(self, world: World, author: Author, size: int):
        self.world, self.author, self.size = world, author, size
        self._made: dict[tuple[str, int], Story] = {}

    def story(self, kind: str, number: int) -> Story:
        """Return project or cluster `number`."""
        if (kind, number) not in self._made:
            make = self._project if kind == "project" else self._cluster
            self._made[kind, number] = make(number)
        return self._made[kind, number]

    def _code(self, number: int) -> str:
        turn, i = divmod(number, len(self.world.codes))
        return self.world.codes[i] + (f" {turn + 1}" if turn else "")

    def _scripted(self, name: tuple, row: dict, pen: Pen, topic: str, day: date) -> Brief:
        """Return the brief of a document whose text the script has."""
        # Whom the story tells of does not write it: nobody speaks of themselves by name.
        told = {value.partition(" ")[0] for value in pen.slots.values()}
        known = packs.topics()[topic]
        people = self.world.people(pen.stream, 5, told)
        made = Brief(name, row["source"], known, day, people, known.things[:2])
        made.title, key = pen.fill(row["title"]), pen.fill(row.get("key", ""))
        made.folder = f"{made.source}/{name[0]}-{slug(pen.slots['code'])}"
        made.stem = f"{key or day.isoformat()}-{slug(made.title, 50)}"
        made.key = key or f"{slug(pen.slots['code'])[:3].upper()}-{100 + name[-1]}"
        made.lines = tuple(cap(pen.fill(line)) for line in row["lines"])
        about, states = pen.fill(row.get("about", "{code}")), row.get("states", ())
        made.facts = tuple(_fact(about, pen.fill(a), pen.fill(value), day) for a, value in states)
        return made

    def _about(self, name: tuple, source: str, topic: str, day: date, subject=None) -> Brief:
        """Return a document on a topic, without facts of the topic."""
        stream, known = Stream(self.world.seed, *name), packs.topics()[topic]
        subject = subject or stream.pick(self.world.pool(known))
        day += timedelta(days=stream.below(300 if name[0] == "project" else 25))
        part = stream.below(PARTS)
        return about(self.world, stream, name, source, known, subject, part, day)

    def _project(self, number: int) -> Story:
        pack, world = packs.read("stories"), self.world
        row = pack["project"][number % len(pack["project"])]
        stream, topics = Stream(world.seed, "project", number), row["topics"]
        slots, days = _decide(world, row, self._code(number), stream)
        pen, briefs, ids, drafts = Pen(stream, slots), [], {}, []
        for k, one in enumerate(pack["document"]):
            after, later = one["day"]
            day = days[after] + timedelta(days=later)
            briefs.append(self._scripted(("project", number, k), one, pen, topics[0], day))
            ids[one["name"]] = self.author.document_id(briefs[-1])
        for one in pack["question"]:
            gold = one["gold"].items()
            needed = {ids[name]: tuple(slots[slot] for slot in said) for name, said in gold}
            facts = tuple(cap(pen.fill(line)) for line in one["facts"])
            text, answer = pen.fill(stream.pick(one["text"])), cap(pen.fill(one["answer"]))
            draft = Draft("project_related", text, answer, facts, needed, pattern=one["pattern"])
            drafts.append(draft)
        for k, source in list(enumerate(project_sources(self.size)))[len(briefs) :]:
            name, topic = ("project", number, k), topics[k % len(topics)]
            brief = self._about(name, source, topic, days["start"])
            said = self.author.pen(brief, stream)
            said.slots |= {"code": slots["code"], "lead": slots["lead"]}
            brief.notes = (said.fill(stream.pick(pack["mention"])),)
            briefs.append(brief)
        return Story(briefs, drafts)

    def _cluster(self, number: int) -> Story:
        pack, world = packs.read("stories"), self.world
        turn, i = divmod(number, len(pack["cluster"]))
        row, stream = pack["cluster"][i], Stream(world.seed, "cluster", number, "story")
        month = (i + 5 * turn) % BEGINNINGS + 1  # clusters of one kind begin in different months
        start = date(2025 + month // 12, month % 12 + 1, 1 + stream.below(27))
        code, sources = self._code(40 + number), cluster_sources(world.seed, number)
        pen = Pen(stream, {"code": code, "day": say_date(start), "lead": stream.pick(world.staff)})
        pen.slots |= {name: row[name] for name in ("title", "story", "measure")}
        pen.slots["start"] = f"{MONTHS[start.month - 1]} {start.year}"
        head = pack["operation"] | {"source": sources[0]}
        briefs = [self._scripted(("cluster", number, 0), head, pen, row["topic"], start)]
        count = len(sources) - 1 - len(pack["around"])
        members = stream.sample(world.pool(packs.topics()[row["topic"]]), count)
        facts: list[Fact] = []
        for k, member in enumerate(members, 1):
            value = world.value(row["values"], stream, [fact.value for fact in facts])
            brief = self._about(("cluster", number, k), sources[k], row["topic"], start, member)
            pen.slots |= {"n": member.name, "v": value}
            said = cap(pen.fill(stream.pick(row["say"])))
            facts.append(_fact(member.name, f"Operation {code}", value, brief.day, said))
            brief.facts = (facts[-1],)
            briefs.append(brief)
        for k, one in enumerate(pack["around"], len(briefs)):
            day = start + timedelta(days=6 * k)
            briefs.append(self._scripted(("cluster", number, k), one, pen, row["topic"], day))
        return Story(briefs, [self._listing(row, pen, facts, briefs)])

    def _listing(self, row: dict, pen: Pen, facts: list[Fact], briefs: list[Brief]) -> Draft:
        """Return the question whose answer lists what every member reported."""
        told, ids = packs.read("stories")["operation"], list(map(self.author.document_id, briefs))
        pen.slots["list"] = ", ".join(f"{one.entity} ({one.value})" for one in facts)
        answer, code = pen.fill(told["answer"]), pen.slots["code"]
        said = [told["fact"].format(code=code, n=one.entity, v=one.value) for one in facts]
        text = pen.fill(pen.stream.pick(row["ask"]))
        if row.get("sum", True):
            total = sum(int(one.value.split()[0].replace(",", "")) for one in facts)
            pen.slots["total"] = f"{total:,} {facts[0].value.partition(' ')[2]}"
            said.append(pen.fill(told["total"]))
            answer, text = f"{answer} {said[-1]}", f"{text} {told['total_ask']}"
        needed = {ids[0]: (code, row["story"])}
        needed |= {i: (f.entity, f.value, code) for i, f in zip(ids[1:], facts, strict=False)}
        around, pattern = tuple(ids[len(needed) :]), f"{len(facts)} members"
        return Draft("completeness", text, answer, tuple(said), needed, around, pattern)


def _fact(subject: str, attribute: str, value: str, day: date, said: str = "") -> Fact:
    key = f"{attribute}@{subject}"
    return Fact(key, subject, attribute, value, said or value, key, subject, "", day.isoformat())


def _decide(world: World, row: dict, code: str, stream: Stream) -> tuple[dict, dict[str, date]]:
    """Return what is decided of a project before anybody writes: slots and days."""
    between = stream.between
    start = FIRST_DAY + timedelta(days=between(5, 200))
    planned = start + timedelta(days=between(140, 170))
    incident = planned - timedelta(days=between(20, 40))
    moved = planned + timedelta(days=between(33, 95))
    days = {"start": start, "planned": planned, "incident": incident, "moved": moved}
    days["back"] = start + timedelta(days=between(80, 95))
    people, pilots = world.people(stream, 7), stream.sample(world.subjects["customer"], 3)
    counts = [between(14, 190) for _ in pilots]
    measure, *values, unit = row["metric"]
    numbers = dict(zip(("base", "target", "got"), values, strict=True))
    numbers = {name: int(world.value(value, stream)) for name, value in numbers.items()}
    gap = numbers["got"] - numbers["target"]
    reached = gap >= 0 if numbers["target"] > numbers["base"] else gap <= 0
    budget, saved = between(84, 640) * 100, between(3, 30) * 50
    money = {"budget": budget, "price": budget - saved, "left": saved}
    money["list_price"] = budget + between(1, 20) * 50
    slots = {"code": code, "measure": measure, "devices": str(sum(counts))}
    slots |= {name: say_date(day) for name, day in days.items()}
    slots |= {name: row[name] for name in ("goal", "why", "short")}
    slots |= {name: f"{number} {unit}" for name, number in numbers.items()}
    slots |= {name: f"{amount:,} euros" for name, amount in money.items()}
    slots |= zip(("what", "cause", "effect", "follow"), row["incident"], strict=True)
    slots |= zip(("deputy", "reviewer", "lead"), people[4:], strict=True)
    for i, (part, owner) in enumerate(zip(row["parts"], people, strict=False)):
        slots |= {f"part{i}": part, f"owner{i}": owner}
    for i, (pilot, count) in enumerate(zip(pilots, counts, strict=True)):
        slots |= {f"pilot{i}": pilot.name, f"devices{i}": f"{count} devices"}
        names = (f"{name}{i}" for name in ("question", "chosen", "rejected", "reason"))
        slots |= zip(names, row[f"decision{i}"], strict=True)
    slots |= zip(
        ("verdict", "reached"), ("yes reached" if reached else "no missed").split(), strict=True
    )
    slots["ticket"] = f"INC-{1000 + 7 * world.codes.index(code.split()[0]) + between(0, 6)}"
    slots |= {"hours": f"{between(5, 47)} hours", "number": str(700 + between(0, 299))}
    slots["vendor"] = stream.pick(world.subjects["vendor/parts"]).name
    return slots, days
