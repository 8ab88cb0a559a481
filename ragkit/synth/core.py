"""High-fidelity documents: projects whose documents refer to one another, and completeness clusters.

EnterpriseRAG-Bench, appendices B.1 and B.2. A project is decided first: people, dates, choices
and their reasons, an incident and what followed. Each document then states its share of that.
"""

from __future__ import annotations

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
from ragkit.synth.pen import Pen, cap, voices
from ragkit.synth.streams import Stream
from ragkit.synth.world import FIRST_DAY, Fact, Subject, World, say_date

CLUSTER_SIZES = (4, 10)
ORDINALS = ("", "second ", "third ", "fourth ", "fifth ", "sixth ")
# Gold documents of completeness questions by source in the paper's Table 10.
CLUSTER_SOURCES = {
    "confluence": 16,
    "jira": 5,
    "slack": 5,
    "fireflies": 3,
    "gmail": 3,
    "google_drive": 2,
    "github": 1,
}


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


class _Maker:
    """Make briefs of one group."""

    def __init__(self, world: World, name: str, area: str, stream: Stream):
        self.world, self.name, self.area, self.stream = world, name, area, stream
        self.briefs: list[Brief] = []
        self.facts: dict[str, Fact] = {}

    def fact(self, key: str, day: date, attribute: str, value: str, statement: str) -> Fact:
        self.facts[key] = Fact(
            f"{self.name}.{key}",
            day.isoformat(),
            self.name,
            attribute,
            value,
            statement,
            entity=self.name,
            key=f"{self.name}.{key}",
        )
        return self.facts[key]

    def add(
        self,
        source: str,
        what: str,
        title: str,
        day: date,
        people: list[str],
        points: list[Point],
        states: tuple[str, ...] = (),
        subject: Subject | None = None,
        kind: str = "project",
        **metadata: str | int,
    ) -> Brief:
        number = len(self.briefs) + 1
        doc_id = document_id(self.world, "project", self.name, number)
        stem = f"{day.isoformat()}-{slug(title, 50)}"
        code = slug(self.name)
        if source in ("linear", "jira"):
            key = metadata.setdefault(
                "identifier" if source == "linear" else "key",
                f"{ticket_prefix(code, source)}-{100 + number * 7 + self.stream.below(6)}",
            )
            path = f"{source}/projects/{code}/{key}.json"
        elif source == "github":
            metadata.setdefault("number", 300 + number * 9 + self.stream.below(8))
            path = f"github/{code}/{what}/{metadata['number']}-{slug(title, 40)}.json"
        elif source == "slack":
            path = f"slack/proj-{code}/{stem}.json"
        else:
            path = f"{source}/projects/{code}/{what}/{stem}.json"
        others = [p for p in self.world.staff[1:40] if p not in people]
        people = [*people, *self.stream.sample(others, max(0, 4 - len(people)))]
        brief = Brief(
            doc_id,
            source,
            kind,
            path,
            title,
            day,
            people,
            points,
            tuple(self.facts[key] for key in states),
            None,
            subject,
            "",
            self.name,
            dict(metadata),
        )
        self.briefs.append(brief)
        return brief


def turn(world: World, section: str, number: int) -> str:
    """Return a line of the bank `questions`, another one for each number until all had theirs."""
    lines = banks.sections("questions")[section]
    return lines[(number + Stream(world.seed, "turn", section).below(len(lines))) % len(lines)]


def text(*parts: str) -> list[Point]:
    return [Point("text", part) for part in parts]


def head(part: str) -> Point:
    return Point("head", part)


def _archetypes() -> list[dict]:
    found = []
    for title, lines in banks.sections("projects").items():
        name, initiative, topics = banks.fields(title)
        row: dict = {
            "title": name,
            "initiative": initiative,
            "topics": topics.split(", "),
            "decision": [],
        }
        for line in lines:
            word, _, rest = line.partition(": ")
            if word == "decision":
                row["decision"].append([part.strip() for part in rest.split("=>")])
            elif word == "incident":
                row[word] = [part.strip() for part in rest.split("=>")]
            elif word in ("acronym", "metric"):
                row[word] = banks.fields(rest)
            elif word in ("risk", "part"):
                row[word] = banks.alternatives(rest)
            else:
                row[word] = rest
        found.append(row)
    return found


def project(world: World, number: int, size: int) -> Group:
    """Return project `number` with about `size` documents, 24 of which carry its story."""
    rows = _archetypes()
    row = rows[number % len(rows)]
    stream = Stream(world.seed, "project", number)
    code = world.code(20 + number)
    area = banks.topics()[row["topics"][0]].area
    make = _Maker(world, code, area, stream)
    people = stream.sample(world.staff[9:], 8)
    lead, sponsor = people[0], stream.pick(world.staff[1:9])
    start = FIRST_DAY + timedelta(days=stream.between(20, 230))
    planned = start + timedelta(days=stream.between(120, 210))
    incident_day = planned - timedelta(days=stream.between(20, 50))
    moved = planned + timedelta(days=stream.between(33, 95))
    after = moved + timedelta(days=stream.between(25, 60))
    budget = stream.between(84, 640) * 1000 + stream.between(1, 9) * 100
    hours = stream.between(5, 47)
    ticket = f"INC-{stream.between(200, 899)}"
    long, short = row["acronym"]
    measure, low, target, result, unit = row["metric"]
    base = f"{world.value(low, stream)} {unit}"
    goal_value = f"{world.value(target, stream)} {unit}"
    got = f"{world.value(result, stream)} {unit}"
    pilots = stream.sample(world.subjects["customer"], 3)
    devices = [f"{stream.between(14, 190)} devices" for _ in pilots]
    vendors = world.subjects["vendor"]
    vendor = stream.pick(vendors)
    offer = stream.between(21, 88) * 1000 + stream.between(1, 9) * 50
    planned_cost = offer - stream.between(3, 12) * 500
    parts = row["part"]
    owners = {part: people[1 + i] for i, part in enumerate(parts)}
    what, cause, effect, follow = row["incident"]
    d = row["decision"]
    initiative = next(i for i in world.initiatives if i.title == row["initiative"])
    title = row["title"]
    fact = make.fact
    fact("lead", start, "lead", lead, f"{lead} leads {code}")
    fact("sponsor", start, "sponsor", sponsor, f"{sponsor} pays for {code}")
    fact("budget", start, "budget", f"{budget:,} euros", f"{code} has {budget:,} euros")
    fact(
        "planned",
        start,
        "planned launch",
        say_date(planned),
        f"{code} is to start on {say_date(planned)}",
    )
    fact("launch", incident_day, "launch", say_date(moved), f"{code} starts on {say_date(moved)}")
    fact("base", start, f"{measure} before", base, f"before {code} it was {base}")
    fact("target", start, f"{measure}, target", goal_value, f"the target of {code} is {goal_value}")
    fact("result", after, f"{measure}, measured", got, f"with {code} it is {got}")
    fact("incident", incident_day, "incident", ticket, f"{ticket} lasted {hours} hours")
    fact(
        "cause", incident_day, "cause of the incident", cause, f"{ticket} happened because {cause}"
    )
    fact("follow", incident_day, "consequence", follow, f"after {ticket} there is {follow}")
    fact("short", start, "what is scarce", row["short"], f"{code} waits for {row['short']}")
    fact(
        "offer",
        start,
        "vendor's price",
        f"{offer:,} euros",
        f"{vendor.name} asks for {offer:,} euros",
    )
    fact(
        "plan",
        start,
        "planned cost",
        f"{planned_cost:,} euros",
        f"the plan has {planned_cost:,} euros for {vendor.name}",
    )
    for i, (pilot, count) in enumerate(zip(pilots, devices, strict=True)):
        fact(
            f"pilot{i}",
            start,
            "pilot",
            f"{pilot.name}: {count}",
            f"{pilot.name} tries {code} with {count}",
        )
    for i, (question, chosen, rejected, reason) in enumerate(d):
        fact(
            f"choice{i}",
            start,
            question,
            chosen,
            f"{question} The choice is: {chosen}, not {rejected}, because {reason}",
        )

    def due(days: int) -> date:
        return start + timedelta(days=days)

    charter = make.add(
        "confluence",
        "charter",
        stream.pick((f"{code}: charter", f"Charter of {code}", f"{code}, what and why")),
        start,
        [lead, sponsor],
        [
            *text(
                f"{code} is our attempt to {row['goal']}. It belongs to the initiative {initiative.title}."
            ),
            head("Why"),
            *text(f"{cap(row['why'])}."),
            head("Facts"),
            Point(
                "table",
                "\n".join(
                    [
                        "| what | value |",
                        "|---|---|",
                        f"| lead | {lead} |",
                        f"| sponsor | {sponsor} |",
                        f"| budget | {budget:,} euros |",
                        f"| start | {say_date(start)} |",
                        f"| planned launch | {say_date(planned)} |",
                        f"| {measure}, today | {base} |",
                        f"| {measure}, target | {goal_value} |",
                    ]
                ),
            ),
            head("Words"),
            *text(
                f"In this project {short} stands for {long}. Please do not use it outside, nobody will understand it."
            ),
            head("Risks"),
            *text(*(f"{cap(risk)}." for risk in row["risk"])),
            head("Not part of it"),
            *text(
                f"Anything that needs a new contract, and whatever {stream.pick(people)} calls phase two."
            ),
        ],
        ("lead", "sponsor", "budget", "planned", "base", "target"),
        kind="project",
    )
    records = []
    for i, (question, chosen, rejected, reason) in enumerate(d):
        source = ("confluence", "google_drive", "confluence")[i]
        records.append(
            make.add(
                source,
                "decisions",
                stream.pick(
                    (
                        f"{code} decision {i + 1}: {question}",
                        f"{question} ({code})",
                        f"Decision record: {question}",
                    )
                ),
                due(stream.between(15, 70)),
                [people[i + 1], lead],
                [
                    *text(
                        stream.pick(
                            (
                                f"Status: decided. Present were {people[1]}, {people[2]} and {lead}.",
                                f"Decided in a meeting of {stream.between(25, 90)} minutes, {stream.between(3, 8)} people.",
                                f"This was open for {stream.between(2, 6)} weeks. It is not any more.",
                            )
                        )
                    ),
                    head("Question"),
                    *text(question),
                    head("Options"),
                    Point(
                        "table",
                        "\n".join(
                            [
                                "| option | remark |",
                                "|---|---|",
                                f"| {rejected} | looked simpler at first |",
                                f"| {chosen} | chosen |",
                                f"| do nothing | {stream.pick(('cheap until winter', 'what we do today', 'not for ever'))} |",
                            ]
                        ),
                    ),
                    head("Reason"),
                    *text(
                        f"We go with this: {chosen}. The alternative ({rejected}) was rejected, because {reason}."
                    ),
                    head("Consequences"),
                    *text(
                        f"{cap(owners[parts[i]].split()[0])} changes the {parts[i]} accordingly. {stream.pick(row['risk']).capitalize()}: watched by {people[3]}."
                    ),
                ],
                (f"choice{i}",),
                kind="project",
            )
        )
    kickoff = make.add(
        "fireflies",
        "meetings",
        f"Kick-off {code}",
        due(6),
        [lead, *people[1:4]],
        text(
            f"Welcome to {code}. The aim is to {row['goal']}",
            f"Why now? Because {row['why']}",
            *(f"{cap(part)} is with {owner}" for part, owner in owners.items()),
            f"What worries me: {row['risk'][0]}",
            f"And we are short of {row['short']} already, I had to borrow some for the demo",
            f"We will say {short} a lot, which is {long}. {people[2].split()[0]} owes a euro for each time it is explained",
            f"{pilots[0].name} is on board, I spoke to {pilots[0].contact} last week",
            "Next meeting in two weeks, shorter",
        ),
        ("short",),
    )
    weeks = stream.between(4, 11)
    plan = make.add(
        "google_drive",
        "plan",
        stream.pick(
            (f"{code} plan and money", f"Plan for {code}", f"{code}: milestones, costs, people")
        ),
        due(11),
        [people[1], lead],
        [
            *text(f"Milestones, costs and people of {code}, kept by {people[1]}."),
            head("Milestones"),
            Point(
                "table",
                "\n".join(
                    [
                        "| milestone | day |",
                        "|---|---|",
                        f"| first pilot | {say_date(due(64))} |",
                        f"| second and third pilot | {say_date(due(88))} |",
                        f"| launch | {say_date(planned)} |",
                    ]
                ),
            ),
            head("Costs"),
            *text(
                f"For {vendor.name} the plan has {planned_cost:,} euros. People are not counted here.",
                f"Travel to the pilots: {stream.between(3, 14)},{stream.between(100, 990)} euros.",
            ),
            head("Bottlenecks"),
            *text(
                f"Not enough {row['short']}; ordering takes {weeks} weeks.",
                f"{people[4].split()[0]} is away in {say_date(due(60)).split()[1]}.",
            ),
        ],
        ("planned", "plan", "short"),
        kind="project",
    )
    quote = make.add(
        "gmail",
        "vendors",
        stream.pick(
            (
                f"Offer from {vendor.name}",
                f"{vendor.name}, prices",
                f"{code}: what {vendor.name} wants",
            )
        ),
        due(34),
        [people[1], lead],
        text(
            f"the offer from {vendor.name} is here. They want {offer:,} euros, delivery in {stream.between(3, 9)} weeks",
            f"{vendor.contact} is friendly and firm. I asked for less and got a calendar",
            stream.pick(
                (
                    f"I know that this is not what the plan of {code} says. Prices went up in spring",
                    f"That is more than we put down for {code} in the plan, I know",
                    f"{code} had expected less. So had I",
                )
            ),
            "If you agree I sign on Friday; after that the price is no longer held",
        ),
        ("offer",),
    )
    notes = []
    for i, (pilot, count) in enumerate(zip(pilots, devices, strict=True)):
        own = [
            f"{pilot.name} takes part in the pilot of {code} with {count}",
            f"{pilot.contact} wants a weekly line by mail and no meetings",
            f"first week went {stream.pick(('well', 'so-so', 'better than the weather', 'quietly'))}; night shift asked what {short} means",
        ]
        if i == 2:
            own.append(f"could not start on the day agreed, no {row['short']} left")
        notes.append(
            make.add(
                "hubspot",
                "pilots",
                stream.pick(
                    (f"{pilot.name}: pilot", f"Pilot at {pilot.name}", f"{pilot.name} and {code}")
                ),
                due(64 + 9 * i),
                [people[5], people[6]],
                text(*own),
                (f"pilot{i}", "short") if i == 2 else (f"pilot{i}",),
                subject=pilot,
                kind="deal",
            )
        )
    noticed = stream.pick(people[5:])
    jira_ticket = make.add(
        "jira",
        "incidents",
        f"{ticket}: {what}",
        incident_day,
        [people[2], people[3]],
        text(
            f"{cap(what)}. Noticed by {noticed} at {stream.between(1, 23):02d}:{stream.between(10, 59)}, over after {hours} hours",
            f"Affects the pilots of {code}. Effect: {effect}",
            f"Cause not known yet, see the thread. {people[3].split()[0]} looks into the {parts[0]}",
            f"Update: closed, the review is in the project pages of {code}",
        ),
        ("incident",),
        key=ticket,
    )
    thread = make.add(
        "slack",
        "chat",
        stream.pick((f"{ticket}, what we know", f"{ticket}: live", f"{cap(what)}")),
        incident_day,
        people[2:6],
        text(
            f"{ticket} is open. {cap(what)}",
            "Is that the network again?",
            "No, the network is fine, I looked at three sites",
            f"Could be the {parts[1]}, it was changed on {say_date(incident_day - timedelta(days=2))}",
            f"{pilots[1].name} called. They say: {effect}",
            f"Switched the {parts[0]} off for now. Readings are back",
            f"Over after {hours} hours. Thanks to everyone, go to sleep",
        ),
        ("incident",),
    )
    review = make.add(
        "confluence",
        "reviews",
        stream.pick(
            (
                f"Review of {ticket}",
                f"{ticket}: what happened and why",
                f"{code}, review of the incident",
            )
        ),
        incident_day + timedelta(days=6),
        [people[3], people[2]],
        [
            *text(f"What happened: {what}. It lasted {hours} hours."),
            head("Cause"),
            *text(f"{cap(cause)}. Nobody was careless; the check did not exist."),
            head("Effect"),
            *text(f"{cap(effect)}."),
            head("Time line"),
            Point(
                "table",
                "\n".join(
                    [
                        "| time | event |",
                        "|---|---|",
                        "| 0 h | first sign, taken for noise |",
                        f"| {max(1, hours // 4)} h | {ticket} opened |",
                        f"| {hours} h | normal again |",
                    ]
                ),
            ),
            head("What we change"),
            *text(f"From now on: {follow}. Owner: {people[4]}."),
        ],
        ("incident", "cause", "follow"),
        kind="project",
    )
    news = make.add(
        "slack",
        "chat",
        stream.pick((f"{code}: new date", f"When {code} starts", f"{code} will be later")),
        incident_day + timedelta(days=9),
        [lead, *people[1:4]],
        text(
            f"Hello all. {code} will not start on {say_date(planned)} as the charter says. The new date is {say_date(moved)}",
            f"Reason: after {ticket} we want {follow} first, and that takes its time",
            f"Does {pilots[0].name} know?",
            "They were the first to know. They said thank you, which scared me",
            "I change the page tomorrow. Until then this message counts",
        ),
        ("launch",),
    )
    pulls = []
    for i in range(2):
        opened = incident_day + timedelta(days=12) if i else due(80)
        pull = make.add(
            "github",
            parts[i].replace(" ", "-"),
            stream.pick(
                (
                    f"{cap(parts[i])}: {d[i][1]}",
                    f"{code}: {parts[i]} as decided",
                    f"{cap(parts[i])} follows decision {i + 1}",
                )
            ),
            opened,
            [owners[parts[i]], *people[4:7]],
            [
                head("What"),
                *text(f"Puts decision {i + 1} of {code} into the {parts[i]}: {d[i][1]}"),
                head("Why"),
                *text(f'See the decision record, "{d[i][0]}"'),
                *text(
                    f"Follow-up of {ticket} comes in a change of its own"
                    if i
                    else f"Half of this waited for {row['short']}"
                ),
            ],
            ("short",) if not i else (),
        )
        pulls.append(pull)
    issues = []
    for i, part in enumerate(parts):
        issues.append(
            make.add(
                "linear",
                "issues",
                stream.pick((f"{cap(part)} for {code}", f"{code}: {part}", f"Build the {part}")),
                due(30 + 11 * i),
                [owners[part], lead],
                text(
                    f"The {part} is what {code} needs {stream.pick(('first', 'before the pilots', 'most', 'for the demo'))}. Owner is {owners[part]}",
                    f"It is done when {stream.between(3, 12)} people have used it for {stream.between(2, 6)} weeks without asking",
                    f"Depends on the answer to: {d[i % len(d)][0]}",
                ),
            )
        )
    ordered = stream.between(6, 40)
    order = make.add(
        "jira",
        "orders",
        stream.pick(
            (
                f"Order more {row['short']}",
                f"{cap(row['short'])} missing again",
                f"{cap(row['short'])} for {code}",
            )
        ),
        due(50),
        [people[4], people[1]],
        text(
            f"We run out of {row['short']}. {code} needs {ordered} more",
            f"{vendor.name} cannot help, not their trade",
            "Approved, arrives when it arrives",
        ),
        ("short",),
    )
    report = make.add(
        "gmail",
        "reports",
        stream.pick(
            (f"{code}: what came out", f"Result of {code}", f"{cap(measure)}, after {code}")
        ),
        after,
        [lead, sponsor],
        text(
            f"you asked for one number. {cap(measure)}: {got}, measured over {stream.between(4, 9)} weeks after the start",
            stream.pick(
                (
                    "I leave it to you whether that is a success. I think it is",
                    "Not quite what we promised in every month, but the curve is flat",
                    "The first two weeks are left out, there were guests",
                )
            ),
            f"What it cost in nerves is in the minutes. {people[1].split()[0]} and {people[2].split()[0]} deserve a holiday",
        ),
        ("result",),
    )
    retro = make.add(
        "fireflies",
        "meetings",
        f"{code} looking back",
        after + timedelta(days=5),
        [lead, *people[1:4]],
        text(
            f"What went well: the pilots. {pilots[0].contact} sent a cake",
            f"What went badly: {ticket}, and that we learned of it from a customer",
            f"And {row['short']}. From the first week to the last we did not have enough",
            f'I would decide the same again, even "{d[1][0]}"',
            "Next time we ask the night shift in the first week and not in the last",
        ),
        ("short",),
    )
    for week in range(3):
        make.add(
            "slack",
            "chat",
            stream.pick(
                (f"{code} week {week * 4 + 5}", f"{code}: where we are", f"Short news on {code}")
            )
            + (f" ({week + 1})" if week else ""),
            due(38 + 28 * week),
            people[:4],
            text(
                f"{cap(parts[week])}: {stream.pick(('half done', 'in review', 'works on my bench', 'waiting for a key', 'done, if nobody looks closely'))}",
                f"{pilots[week % 3].name} {stream.pick(('is happy', 'is curious', 'has a question about the bill', 'wants to show it to a friend', 'found a typo'))}",
                f"{stream.pick(row['risk']).capitalize()}. I know, I know",
                f"{people[week + 1].split()[0]} is {stream.pick(('on leave next week', 'at the depot tomorrow', 'back on Monday', 'nearly done'))}",
            ),
        )
    for extra in range(max(0, size - len(make.briefs))):
        topic = banks.topics()[row["topics"][extra % len(row["topics"])]]
        s = Stream(world.seed, "project", number, "extra", extra)
        pool = world.pool(topic.kind, topic.area, topic.key)
        subject = s.pick(pool)
        source, kind = s.pick(
            (
                ("slack", "case"),
                ("slack", "case"),
                ("gmail", "case"),
                ("linear", "case"),
                ("google_drive", "memo"),
                ("jira", "case"),
                ("fireflies", "meeting"),
            )
        )
        brief = volume_brief(
            world,
            s,
            source,
            kind,
            topic,
            subject,
            s.pick(subject.scopes),
            number * 1000 + extra,
            f"{source}/projects/{slug(code)}",
            name="project-extra",
            tag=code,
        )
        if source in ("linear", "jira"):
            key = f"{ticket_prefix(slug(code), source)}-{500 + extra}"
            brief.metadata["identifier" if source == "linear" else "key"] = key
            brief.path = f"{source}/projects/{slug(code)}/{key}.json"
        brief.points.insert(
            1,
            Point(
                "text",
                s.pick(
                    (
                        f"This is part of {code}",
                        f"It came up while we prepared {code}",
                        f"{lead.split()[0]} wants it for {code}",
                        f"Not {code}'s fault, but {code} has to live with it",
                        f"Needed for {code} and useful without",
                    )
                ),
            ),
        )
        make.briefs.append(brief)

    def draft(pattern, texts, answer, facts, gold, needed, absent=()):
        line = turn(world, texts, number)
        return Draft(
            "project_related",
            cap(Pen(stream, voices(world, stream) | asked).fill(line)),
            answer,
            tuple(facts),
            tuple(b.doc_id for b in gold),
            {b.doc_id: tuple(n) for b, n in zip(gold, needed, strict=True)},
            tuple(absent),
            (),
            pattern,
        )

    asked = {
        "code": code,
        "theme": row["goal"],
        "measure": measure,
        "planned": say_date(planned),
        "vendor": vendor.name,
        "ticket": ticket,
        "part": parts[0],
        "part2": parts[1],
    }
    drafts = [
        draft(
            "multi-document synthesis",
            "history",
            f"{lead} leads {code}. It starts on {say_date(moved)} instead of {say_date(planned)}, after {ticket}, in which {what} because {cause}.",
            (
                f"{lead} leads {code}.",
                f"{code} starts on {say_date(moved)}.",
                f"The delay followed {ticket}.",
                f"{ticket} happened because {cause}.",
            ),
            (charter, news, review),
            ((lead,), (say_date(moved),), (cap(cause),)),
            (lead, say_date(moved), cause),
        ),
        draft(
            "multi-document synthesis",
            "figures",
            f"{cap(measure)}: {base} before {code}, {goal_value} as the target, and {got} as measured afterwards.",
            (
                f"The figure before {code} is {base}.",
                f"The target is {goal_value}.",
                f"The figure measured after the start is {got}.",
            ),
            (charter, report),
            ((base, goal_value), (got,)),
            (base, goal_value, got),
        ),
        draft(
            "multi-document synthesis",
            "pilots",
            "; ".join(f"{p.name} with {c}" for p, c in zip(pilots, devices, strict=True)) + ".",
            tuple(f"{p.name} took part with {c}." for p, c in zip(pilots, devices, strict=True)),
            notes,
            [(p.name, c) for p, c in zip(pilots, devices, strict=True)],
            devices,
        ),
        draft(
            "multi-document synthesis",
            "decisions",
            " ".join(f"{q} {cap(c)} rather than {r}, because {w}." for q, c, r, w in d),
            tuple(f"{q} {cap(c)}, because {w}." for q, c, r, w in d),
            records,
            [(c, w) for _, c, _, w in d],
            [w for *_, w in d],
        ),
        draft(
            "cross-cutting theme",
            "shortage",
            f"{code} was short of {row['short']}: it is mentioned in the kick-off, the plan, a pilot, an order, a pull request and the look back.",
            (
                f"{code} was short of {row['short']}.",
                "The shortage lasted from the kick-off to the final meeting.",
            ),
            (kickoff, plan, order, retro, notes[2], pulls[0]),
            [(row["short"],)] * 6,
        ),
        draft(
            "contradiction",
            "date",
            f"{say_date(moved)} holds. Charter and plan still say {say_date(planned)}; the announcement after {ticket} moved it because {follow} was wanted first.",
            (
                f"{code} starts on {say_date(moved)}.",
                f"Charter and plan name {say_date(planned)}, which is out of date.",
                f"It was moved after {ticket}.",
            ),
            (charter, plan, news),
            ((say_date(planned),), (say_date(planned),), (say_date(moved),)),
        ),
        draft(
            "contradiction",
            "money",
            f"The plan has {planned_cost:,} euros and {vendor.name} asks for {offer:,} euros: {offer - planned_cost:,} euros are missing.",
            (
                f"The plan has {planned_cost:,} euros for {vendor.name}.",
                f"{vendor.name} asks for {offer:,} euros.",
                f"The difference is {offer - planned_cost:,} euros.",
            ),
            (plan, quote),
            ((f"{planned_cost:,}",), (f"{offer:,}",)),
            (f"{planned_cost:,}", f"{offer:,}"),
        ),
        draft(
            "causal chain",
            "chain",
            f"{cap(cause)}; so {what} for {hours} hours and {effect}. Therefore {follow} was introduced and the start moved to {say_date(moved)}.",
            (
                f"The cause was that {cause}.",
                f"It lasted {hours} hours.",
                f"The effect was that {effect}.",
                f"The consequence is {follow}.",
                f"The start moved to {say_date(moved)}.",
            ),
            (jira_ticket, thread, review, news),
            ((f"{hours} hours",), (f"{hours} hours",), (cap(cause), follow), (say_date(moved),)),
            (cause, say_date(moved)),
        ),
        draft(
            "causal chain",
            "part",
            f"{owners[parts[0]]} owns the {parts[0]}. The decision: {d[0][1]}, because {d[0][3]}.",
            (
                f"{owners[parts[0]]} owns the {parts[0]}.",
                f"The decision is: {d[0][1]}.",
                f"The reason is that {d[0][3]}.",
            ),
            (issues[0], records[0], pulls[0]),
            ((owners[parts[0]],), (d[0][3],), (d[0][1],)),
            (owners[parts[0]], d[0][3]),
        ),
        draft(
            "multi-document synthesis",
            "built",
            f"In the {parts[0]}: {d[0][1]}, because {d[0][3]}. In the {parts[1]}: {d[1][1]}, because {d[1][3]}.",
            (
                f"The {parts[0]} follows this decision: {d[0][1]}.",
                f"The reason is that {d[0][3]}.",
                f"The {parts[1]} follows this decision: {d[1][1]}.",
                f"The reason for that is that {d[1][3]}.",
            ),
            (*pulls, *records[:2]),
            ((d[0][1],), (d[1][1],), (d[0][3],), (d[1][3],)),
            (d[0][1], d[1][1], d[0][3], d[1][3]),
        ),
        draft(
            "causal chain",
            "noticed",
            f"{noticed} noticed {ticket}. The cause was that {cause}.",
            (f"{noticed} noticed {ticket}.", f"The cause of {ticket} was that {cause}."),
            (jira_ticket, review),
            ((noticed, ticket), (cap(cause),)),
            (noticed, cause),
        ),
        draft(
            "multi-document synthesis",
            "order",
            f"{code} runs out of {row['short']} and needs {ordered} more; ordering takes {weeks} weeks.",
            (
                f"{code} runs out of {row['short']}.",
                f"{ordered} more are needed.",
                f"Ordering takes {weeks} weeks.",
            ),
            (order, plan),
            ((row["short"], f"needs {ordered} more"), (f"ordering takes {weeks} weeks",)),
            (f"needs {ordered} more", f"takes {weeks} weeks"),
        ),
        draft(
            "causal chain",
            "lesson",
            f"What follows from {ticket}: {follow}. It is not part of the change to the {parts[1]}, which carries out decision 2; it comes in a change of its own.",
            (
                f"What follows from {ticket} is this: {follow}.",
                f"The follow-up of {ticket} comes in a change of its own.",
            ),
            (pulls[1], review),
            ((f"Follow-up of {ticket} comes in a change of its own",), (follow,)),
            (f"Follow-up of {ticket}", follow),
        ),
    ]
    manifest = {
        "code": code,
        "title": title,
        "initiative": initiative.title,
        "goal": row["goal"],
        "lead": lead,
        "sponsor": sponsor,
        "people": people,
        "start": start.isoformat(),
        "documents": [
            {
                "doc_id": b.doc_id,
                "path": b.path,
                "title": b.title,
                "states": [f.fact_id for f in b.facts],
            }
            for b in make.briefs
        ],
    }
    return Group(code, title, "project", make.briefs, list(make.facts.values()), drafts, manifest)


def cluster(world: World, number: int) -> Group:
    """Return completeness cluster `number`: 4 to 10 documents with a share of one answer each."""
    rows = list(banks.sections("clusters").items())
    head_line, lines = rows[number % len(rows)]
    title, kind, topic_key, story, _, values = banks.fields(head_line)
    phrases = {
        line.partition(": ")[0]: banks.alternatives(line.partition(": ")[2]) for line in lines
    }
    stream = Stream(world.seed, "cluster", number)
    code = f"Operation {world.code(60 + number).capitalize()}"
    ordinal = number // len(rows)
    alias = f"the {(*ORDINALS, f'{ordinal + 1}th ')[min(ordinal, len(ORDINALS))]}{title} round"
    topic = banks.topics()[topic_key]
    size = stream.between(*CLUSTER_SIZES)
    subjects = stream.sample(world.pool(kind, topic.area, topic.key), size)
    day = FIRST_DAY + timedelta(days=stream.between(30, 480))
    briefs: list[Brief] = []
    facts: list[Fact] = []
    taken: set[str] = set()
    sources, weights = list(CLUSTER_SOURCES), list(CLUSTER_SOURCES.values())
    if topic.area not in ("firmware", "platform", "app", "data", "security"):
        sources, weights = sources[:-1], weights[:-1]
    for i, subject in enumerate(subjects):
        source = stream.weighted(sources, weights)
        value = world.other_value(values, stream, taken)
        taken.add(value)
        say = phrases["say"][stream.below(len(phrases["say"]))]
        name = code if stream.chance(0.45) else alias
        statement = say.replace("{v}", value).replace("{n}", subject.name).replace("{c}", name)
        fact = Fact(
            f"{code}@{subject.name}",
            day.isoformat(),
            subject.name,
            title,
            value,
            statement,
            entity=subject.name,
            key=f"{code}.{title}",
        )
        facts.append(fact)
        s = Stream(world.seed, "cluster", number, i)
        doc_kind = {
            "confluence": "guide",
            "jira": "case",
            "slack": "case",
            "fireflies": "meeting",
            "gmail": "case",
            "google_drive": "memo",
            "github": "pull",
        }[source]
        brief = volume_brief(
            world,
            s,
            source,
            doc_kind,
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
        brief.facts = (*brief.facts, fact)
        brief.day = day + timedelta(days=stream.below(25))
        briefs.append(brief)
    people = stream.sample(world.staff, 6)
    around = []
    for i, (source, said) in enumerate(
        (
            (
                "gmail",
                (
                    f"{code} begins on {say_date(day)}. In it, {story}",
                    f"In the calendar it is called {alias}. Please send your count to me and not to the list",
                    "You will get the result when the last answer is here. The last answer is always late",
                ),
            ),
            (
                "slack",
                (
                    f"Reminder: {code} is still open for some of you",
                    "How long does it take?",
                    "Twenty minutes with a torch, an hour without",
                    f"Is that the same as {alias}?",
                    "It is. We were told to find a nicer name",
                ),
            ),
            (
                "slack",
                (
                    f"{code}: please stop sending photos, I only need numbers",
                    "But mine is a very good photo",
                    "It is. It is my wallpaper now",
                    "And where do I put the number?",
                    "Into your own page, as every year",
                ),
            ),
        )
    ):
        around.append(
            Brief(
                document_id(world, "cluster", code, "around", i),
                source,
                "project",
                f"{folder(source, topic.area, topic.key)}/{(day - timedelta(days=6 - 5 * i)).isoformat()}-{slug(code)}-{i}.json",
                (f"{code} begins", f"{code}, reminder", f"{code} and photos")[i],
                day - timedelta(days=6 - 5 * i),
                people,
                text(*said),
                (),
                topic,
                None,
                "",
                code,
            )
        )
    total = sum(int(v.split()[0].replace(",", "")) for v in (f.value for f in facts))
    unit = facts[0].value.partition(" ")[2]
    listed = [f"{f.entity}: {f.value}" for f in facts]
    answer = cap("; ".join(listed)) + (f". Together {total:,} {unit}." if unit != "%" else ".")
    stated = [f"{f.entity} has {f.value}." for f in facts] + (
        [f"The total is {total:,} {unit}."] if unit != "%" else []
    )
    own = ordinal == 0 and stream.chance(0.4)
    ask = stream.pick(phrases["ask"]) if own else turn(world, "cluster", number)
    asked = voices(world, stream) | {"c": code if stream.chance(0.5) else alias}
    draft = Draft(
        "completeness",
        cap(Pen(stream, asked).fill(ask)),
        answer,
        tuple(stated),
        tuple(b.doc_id for b in briefs),
        {b.doc_id: (f.value,) for b, f in zip(briefs, facts, strict=True)},
        tuple(f"{f.entity}\n{f.value}" for f in facts),
        tuple(b.doc_id for b in around),
        f"{len(briefs)} documents",
    )
    manifest = {
        "code": code,
        "alias": alias,
        "title": title,
        "documents": [{"doc_id": b.doc_id, "path": b.path, "title": b.title} for b in briefs],
    }
    return Group(code, title, "cluster", [*briefs, *around], facts, [draft], manifest)
