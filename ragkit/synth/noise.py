"""Noise: documents in wrong places, near-duplicates with changed facts, and informal documents.

EnterpriseRAG-Bench, section 4.2, Table 4 and appendix B.4.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from ragkit.synth import banks
from ragkit.synth.briefs import (
    KINDS,
    Brief,
    Point,
    day_in,
    document_id,
    folder,
    slug,
    volume_brief,
)
from ragkit.synth.pen import Pen, Slots, cap
from ragkit.synth.streams import Stream
from ragkit.synth.world import LAST_DAY, Subject, World, say_date

RANDOM_SHARE = 0.05
PLAUSIBLE_SHARE = 0.03
# Weights of the sources of near-duplicates.
DUPLICATES = {
    "confluence": 14,
    "google_drive": 8,
    "jira": 5,
    "linear": 4,
    "gmail": 6,
    "slack": 6,
    "fireflies": 2,
}
VERSIONS = ("updated", "new version", "corrected", "second version")


class Tree:
    """The directories of one source, for walks.

    Parameters
    ----------
    members : dict of str to list of int
        Documents (numbers) by folder.
    """

    def __init__(self, members: dict[str, list[int]]):
        self.members = members
        self.children: dict[str, list[str]] = {}
        for path in sorted(members):
            parts = path.split("/")
            for i in range(1, len(parts)):
                parent, child = "/".join(parts[:i]), "/".join(parts[: i + 1])
                known = self.children.setdefault(parent, [])
                if child not in known:
                    known.append(child)
        self.root = next(iter(members)).split("/")[0] if members else ""

    def folder(self, stream: Stream) -> str:
        """Return a folder with documents, reached from the root by choosing a child at a time."""
        at = self.root
        while True:
            options = self.children.get(at, [])
            stays = at in self.members
            choice = stream.below(len(options) + stays)
            if choice == len(options):
                return at
            at = options[choice]

    def near(self, path: str, stream: Stream) -> str:
        """Return a folder beside, above or next door, where somebody might well put it."""
        parent = path.rpartition("/")[0]
        options = [f for f in self.children.get(parent, []) if f != path and f in self.members]
        if parent in self.members:
            options.append(parent)
        up = parent.rpartition("/")[0]
        if up and (not options or stream.chance(0.3)):
            for cousin in self.children.get(up, []):
                if cousin in self.members and cousin != path:
                    options.append(cousin)
                options += [
                    f for f in self.children.get(cousin, []) if f in self.members and f != path
                ][:4]
        return stream.pick(options) if options else ""


def moves(world: World, source: str, members: dict[str, list[int]]) -> dict[int, tuple[str, str]]:
    """Return what is misfiled in a source: document number to (kind, new folder).

    Five per cent of the source go to a folder reached by a second walk, three more to a place
    nearby. Documents are found by a walk over the tree, so that full folders are not preferred.
    """
    tree = Tree(members)
    total = sum(map(len, members.values()))
    if len(members) < 2:
        return {}
    stream = Stream(world.seed, "moves", source)
    found: dict[int, tuple[str, str]] = {}
    left = {path: list(numbers) for path, numbers in members.items()}
    for kind, share in (("random", RANDOM_SHARE), ("plausible", PLAUSIBLE_SHARE)):
        wanted = round(share * total)
        tries = 0
        while wanted and tries < 400 * (wanted + 10):
            tries += 1
            path = tree.folder(stream)
            pool = left[path]
            # A small folder is not emptied: at most a third of it is misplaced.
            if len(pool) * 3 <= len(members[path]) * 2 or not pool:
                continue
            target = tree.folder(stream) if kind == "random" else tree.near(path, stream)
            if not target or target == path:
                continue
            i = stream.below(len(pool))
            pool[i], pool[-1] = pool[-1], pool[i]
            found[pool.pop()] = (kind, target)
            wanted -= 1
    return found


def duplicate_source(world: World, number: int) -> str:
    """Return the source type of near-duplicate `number`."""
    stream = Stream(world.seed, "duplicate", number)
    return stream.weighted(list(DUPLICATES), list(DUPLICATES.values()))


def duplicate(world: World, number: int, original: Brief) -> tuple[Brief, dict]:
    """Return a later near-duplicate of a document in which one fact has changed, and its record.

    In the same source, which is the rarer case, people and title are those of the original and the
    text is its text up to the remark that states the new value; what follows is reworded in part,
    and asides of the original are left out. In another source it is a text of its own in that
    source's form, and shares the topic, the subject and the changed fact with the original. It is
    dated after the original, and not after the world's last day.
    """
    source = duplicate_source(world, number)
    stream = Stream(world.seed, "duplicate", number, "text")
    old = next(f for f in original.facts if f.scope == original.scope)
    attribute = banks.attributes()[old.key]
    value = world.other_value(attribute.values, stream, {old.value})
    room = max(1, (LAST_DAY - original.day).days)
    day = original.day + timedelta(days=stream.between(min(18, room), min(120, room)))
    statement = stream.pick(attribute.say).replace("{v}", value)
    new = replace(old, value=value, time=day.isoformat(), statement=statement)
    new = replace(new, fact_id=f"{old.fact_id}#{number}")
    doc_id = document_id(world, "duplicate", number)
    topic, subject, scope = original.topic, original.subject, original.scope
    place = folder(source, topic.area, topic.key)
    if source == original.source:
        keys = ("identifier", "key", "number")
        brief = replace(
            original,
            facts=tuple(new if f is old else f for f in original.facts),
            points=[p for p in original.points if p.text != old.statement],
            path=f"{place}/{slug(original.title, 40)}-v2-{number:x}.json",
            title=f"{original.title} ({stream.pick(VERSIONS)})",
            voice=original.doc_id,
            metadata={k: v for k, v in original.metadata.items() if k not in keys},
        )
    else:
        kinds = [k for k, _ in KINDS[source] if k not in ("sheet", "standup", "question")]
        kind, own = stream.pick(kinds), 800_000 + number
        names = {"name": "duplicate", "facts": (new,)}
        brief = volume_brief(
            world, stream, source, kind, topic, subject, scope, own, place, **names
        )
    said = stream.pick(banks.sections("glue")["update.same"])
    slots = {"thing": topic.title, "s": subject.phrase(scope), "fact": statement}
    slots |= {"olddate": say_date(original.day), "date": say_date(day)}
    said = Point("text", Pen(stream, slots).fill(said))
    points = [p for p in brief.points if p.role != "text" and p.text != statement]
    points.insert(min(1, len(points)), said)
    metadata = brief.metadata
    if source in ("linear", "jira"):
        metadata.setdefault("identifier" if source == "linear" else "key", f"UPD-{number + 10}")
    brief = replace(brief, doc_id=doc_id, day=day, points=points, split={}, group=f"pair-{number}")
    record = {
        "original": original.doc_id,
        "duplicate": doc_id,
        "original_path": original.path,
        "duplicate_path": brief.path,
        "attribute": old.attribute,
        "subject": old.subject,
        "old": old.value,
        "new": value,
        "old_day": original.day.isoformat(),
        "new_day": day.isoformat(),
        "key": old.key,
        "entity": old.entity,
        "scope": old.scope,
    }
    return brief, record


def misc_source(number: int) -> str:
    """Return the source type of informal document `number`."""
    topics = list(banks.topics("misc").values())
    return topics[number % len(topics)].area.split("/")[0]


def misc(world: World, number: int) -> Brief:
    """Return an informal document in a place that nobody plans: memes, lost gloves, hackathons."""
    topics = list(banks.topics("misc").values())
    topic = topics[number % len(topics)]
    stream = Stream(world.seed, "misc", number)
    source = topic.area.split("/")[0]
    office = stream.pick(world.subjects["office"])
    turn = number // len(topics)
    thing = topic.things[turn % len(topic.things)]
    name = thing if turn < len(topic.things) else f"{thing} of {office.name}"
    if turn >= 2 * len(topic.things):
        name += f" ({2018 + turn % 9}, no. {turn})"
    subject = Subject("thing", name, name, topic.title, office.region, (), stream.pick(world.staff))
    chosen = stream.sample(topic.attributes, stream.between(1, 2))
    facts = tuple(world.fact(attribute, subject, "") for attribute in chosen)
    points = [Point("text", line) for line in stream.sample(topic.talk, stream.between(3, 5))]
    pen, lines = Pen(stream, Slots(thing=name, title=topic.title)), banks.sections("glue")
    points.insert(0, Point("text", pen.say_from(lines["misc.open"])))
    for fact in facts:
        said = Point("text", f"{cap(fact.statement)}.")
        points.insert(stream.between(1, len(points)), said)
    day = day_in(stream)
    keys = {"github": {"number": 10 + number}, "jira": {"key": f"WISH-{10 + number}"}}
    place = f"{topic.area}/{day.year}" if source in ("github", "fireflies") else topic.area
    return Brief(
        document_id(world, "misc", number),
        source,
        "misc",
        f"{place}/{slug(name, 44)}-{number:x}.json",
        pen.say_from(lines["misc.title"]),
        day,
        stream.sample(world.staff, 4),
        points,
        facts,
        topic,
        group="misc",
        metadata=dict(keys.get(source, {})),
    )
