"""What will be generated: counts, who has which facts, and the brief of every document.

Facts are handed out, not drawn: the documents of a topic take the cells (subject, part, half of the
attributes) in a shuffled order, each cell once. So one document alone states a fact, anybody can
compute which, and every document can be written by itself, in any order, on any machine.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

from ragkit import checks
from ragkit.errors import UsageError, did_you_mean
from ragkit.synth.layout import SOURCES, TYPES, printed, shares, slug
from ragkit.synth.offline import packs, stories
from ragkit.synth.offline.documents import Author, Brief, about, fact, place, split, updated
from ragkit.synth.offline.packs import Topic
from ragkit.synth.offline.world import FIRST_DAY, LAST_DAY, PARTS, Fact, World, group
from ragkit.synth.streams import Stream

LEAF = 500  # most documents in one folder
SPANS = (1, 7, 21, 90)  # periods into which the documents of a large topic are divided
KIND_WEIGHTS = {"customer": 1.0, "vendor": 0.4, "team": 0.25, "office": 0.12}
CELLS = {"customer": 1.6, "vendor": 1.25, "team": 1.25, "office": 1.25}  # for each document
FEWEST = (10, 32)  # subjects of a group, in a small company and in a large one
TOGETHER = 4  # of so many pairs of documents one is about two parts of one subject; divides PARTS
SPLIT_SHARE = 0.3  # of the documents with one attribute have a fact of two passages
SAME_SOURCE = 0.6  # of the near-duplicates stay in their source
UPDATED = timedelta(days=120)  # the most between a document and its near-duplicate
REFUSED = {
    "high_level": "its answer is an impression of the whole company, and recorded facts hold none",
}


@dataclass(frozen=True)
class Settings:
    """What a run is made from.

    Parameters
    ----------
    documents, seed : int
        All documents, noise included.
    questions, metadata_questions : int, optional
        By default one for ten documents, at most 500, as in the paper; and a fifth of them.
    types : sequence of str, optional
        Question types; by default all that this author can hold.

        `UsageError` for one that is unknown or that this author refuses.
    """

    documents: int
    seed: int
    questions: int | None = None
    metadata_questions: int | None = None
    types: Sequence[str] | None = None

    def __post_init__(self):
        checks.whole(self.documents, "documents")
        checks.whole(self.seed, "seed", least=0)
        asked = self.questions if self.questions is not None else min(500, self.documents // 10)
        extra = self.metadata_questions if self.metadata_questions is not None else asked // 5
        types = self.types or (kind for kind in TYPES if kind not in REFUSED)
        types = tuple(dict.fromkeys(types))  # one that is named twice counts once
        for name, value in (("questions", asked), ("metadata_questions", extra)):
            object.__setattr__(self, name, checks.whole(value, name, least=0))
        object.__setattr__(self, "types", types)
        for kind in types:
            if kind not in TYPES:
                raise UsageError(f"no question type {kind!r}", did_you_mean(kind, TYPES))
            if kind in REFUSED:
                raise UsageError(
                    f"the offline author writes no questions of type {kind!r}: {REFUSED[kind]}",
                    "a model can: ragkit generate company",
                )


@dataclass(frozen=True)
class Leaf:
    """The documents of one topic in one source: `count` from number `start` on.

    `first` is the number of the first among all of the topic; `span` periods have folders of their own.
    """

    topic: Topic
    start: int
    count: int
    first: int
    folder: str
    span: int

    def place(self, k: int) -> tuple[str, date, int]:
        """Return the folder of document `k` of the leaf, the first day of its period, and its days."""
        days = (LAST_DAY - FIRST_DAY).days + 1
        low, high = (days * (k * self.span // self.count + i) // self.span for i in (0, 1))
        first = FIRST_DAY + timedelta(days=low)
        return f"{self.folder}/{first}" if self.span > 1 else self.folder, first, high - low


class Plan:
    """Counts and briefs of everything that will be written; nothing is written here.

    `volume` counts the documents that are no part of a story or the noise, by source; `special` names
    the others, and `counts` has all. `numbers` counts stories and noise, `questions` is by type.
    """

    def __init__(self, settings: Settings):
        self.settings = settings
        n, seed = settings.documents, settings.seed
        weights = {kind: printed("2", "n_questions")[kind] for kind in settings.types}
        need = self.questions = shares(settings.questions, weights)
        asked = len(packs.read("stories")["question"])
        projects = math.ceil(need.get("project_related", 0) * 1.2 / asked)
        self.numbers = {
            "project": max(projects, min(40, n // 12_000)),
            "cluster": need.get("completeness", 0),
            "update": max(math.ceil(need.get("conflicting_info", 0) * 1.5), n // 100),
            "informal": max(math.ceil(need.get("miscellaneous", 0) * 1.5), n // 200),
        }
        size = max(24, min(100, n // 20 // max(1, self.numbers["project"])))
        informal = [t.area.partition("/")[0] for t in packs.topics(informal=True).values()]
        sources = {
            "project": lambda i: stories.project_sources(size),
            "cluster": lambda i: stories.cluster_sources(seed, i),
            "update": lambda i: [_update_sources(seed, i)[1]],
            "informal": lambda i: [informal[i % len(informal)]],
        }
        self.special: dict[str, list[tuple[str, int, int]]] = {source: [] for source in SOURCES}
        for kind, count in self.numbers.items():
            for i in range(count):
                for k, source in enumerate(sources[kind](i)):
                    self.special[source].append((kind, i, k))
        self.volume = self._volumes()
        self.counts = {s: self.volume[s] + len(self.special[s]) for s in SOURCES}
        self.totals: Counter[str] = Counter()
        self.leaves = {source: self._leaves(source) for source in SOURCES}
        groups: Counter[str] = Counter()
        fewest = min(max(FEWEST[0], n // 40), FEWEST[1])
        for topic in packs.topics().values():
            cells = math.ceil(self.totals[topic.key] * CELLS[topic.kind] / PARTS / 2)
            groups[group(topic)] = max(groups[group(topic)], fewest, cells)
        self.world = World(seed, min(4000, 70 + n // 60), dict(groups))
        self.author = Author(self.world)
        self.stories = stories.Stories(self.world, self.author, size)
        self._orders: dict[str, tuple[int, int, int]] = {}

    def _volumes(self) -> dict[str, int]:
        """Return the volume documents by source: the printed shares, less what is special.

        A small source keeps most of its volume, and the largest sources give way.
        """
        n, q, sizes = self.settings.documents, self.settings.questions, printed("9", "n_documents")
        target = shares(n, {s: sizes[s] for s in SOURCES})
        special = {s: len(rows) for s, rows in self.special.items()}
        volume = {s: max(target[s] - special[s], math.ceil(0.8 * target[s])) for s in SOURCES}
        surplus = sum(volume.values()) + sum(special.values()) - n
        for source in sorted(SOURCES, key=lambda s: -volume[s]):
            cut = min(surplus, volume[source] // 2)
            volume[source] -= cut
            surplus -= cut
        if surplus > 0 or sum(volume.values()) < 2 * q:
            raise UsageError(
                f"{n:,} documents cannot carry {q:,} questions: {sum(special.values()):,} documents "
                "would be stories and noise, and each question needs facts of its own",
                f"ask for at most {max(0, n // 9):,} questions or make at least {q * 9:,} documents",
            )
        return volume

    def _leaves(self, source: str) -> list[Leaf]:
        """Divide the volume of a source into topics, and count the documents of each topic."""
        areas = packs.read("sources")[source].get("areas")
        kinds = ("customer",) if source == "hubspot" else KIND_WEIGHTS
        topics = [t for t in packs.topics().values() if t.kind in kinds]
        topics = [t for t in topics if areas is None or t.area in areas]
        seed, total = self.settings.seed, self.volume[source]
        weights = {
            t.key: KIND_WEIGHTS[t.kind] * (0.5 + Stream(seed, "weight", source, t.key).draw())
            for t in topics
        }
        leaves, start, counts = [], 0, shares(total, weights)
        for topic in topics:
            count = counts[topic.key]
            span = next((s for s in SPANS if count <= LEAF * s), 0)
            if not span:
                raise UsageError(
                    f"{source} cannot hold {total:,} documents: {count:,} on {topic.key!r} alone, "
                    f"and {LEAF * SPANS[-1]:,} are the most of a topic"
                )
            if count:
                first, folder = self.totals[topic.key], place(source, topic)
                leaves.append(Leaf(topic, start, count, first, folder, span))
            start += count
            self.totals[topic.key] += count
        return leaves

    # -- who has which facts

    def _order(self, topic: Topic) -> tuple[int, int, int]:
        """Return factor, offset and number of pairs of cells: document 2 i of a topic has the even
        part of pair factor * i + offset. Document 2 i + 1 has the odd part of the same pair, for
        every fourth i, and otherwise of another."""
        if topic.key not in self._orders:
            pairs = PARTS * len(self.world.pool(topic))
            stream = Stream(self.settings.seed, "order", topic.key)
            factor = stream.between(pairs // 3, pairs // 2)
            while math.gcd(factor, pairs) != 1:
                factor += 1
            self._orders[topic.key] = factor, stream.below(pairs), pairs
        return self._orders[topic.key]

    def cell(self, topic: Topic, j: int) -> tuple[int, int, int]:
        """Return subject, part and half of the attributes of document `j` of a topic."""
        factor, offset, pairs = self._order(topic)
        i, odd = divmod(j, 2)
        i += pairs // 2 if odd and i % TOGETHER else 0
        rest, subject = divmod((factor * i + offset) % pairs, pairs // PARTS)
        half, two = divmod(rest, PARTS // 2)
        return subject, 2 * two + odd, half

    def stating(self, topic: Topic, subject: int, part: int, half: int) -> tuple[str, int] | None:
        """Return source and number of the volume document that has a cell, or None."""
        factor, offset, pairs = self._order(topic)
        pair = (half * (PARTS // 2) + part // 2) * (pairs // PARTS) + subject
        i = (pair - offset) * pow(factor, -1, pairs) % pairs
        if part % 2 and i % TOGETHER:
            i = (i - pairs // 2) % pairs
        j = 2 * i + part % 2
        for source, leaves in self.leaves.items():
            for leaf in leaves:
                if leaf.topic is topic and leaf.first <= j < leaf.first + leaf.count:
                    return source, leaf.start + j - leaf.first
        return None

    # -- briefs

    def brief(self, source: str, number: int) -> Brief:
        """Return the brief of volume document `number` (from 0) of a source."""
        leaves, world = self.leaves[source], self.world
        leaf = leaves[bisect_right(leaves, number, key=lambda leaf: leaf.start) - 1]
        topic, k, stream = leaf.topic, number - leaf.start, Stream(world.seed, source, number)
        subject, part, half = self.cell(topic, leaf.first + k)
        folder, first, days = leaf.place(k)
        day = first + timedelta(days=stream.below(days))
        subject = world.pool(topic)[subject]
        made = about(world, stream, (source, number), source, topic, subject, part, day)
        made.folder = folder
        attributes = topic.attributes[1:] if half else topic.attributes[:1]
        made.facts = tuple(fact(world, stream, one, made, made.people) for one in attributes)
        if not half and stream.chance(SPLIT_SHARE):
            made.split = split(self.author, stream, made)
        return made

    def entry(self, source: str, at: int) -> Brief:
        """Return the brief of document `at` of a source: first the special ones, then the volume."""
        special = self.special[source]
        if at >= len(special):
            return self.brief(source, at - len(special))
        kind, i, k = special[at]
        if kind in ("project", "cluster"):
            return self.stories.story(kind, i).briefs[k]
        return self.update(i)[0] if kind == "update" else self.informal(i)

    @cached_property
    def originals(self) -> list[tuple[str, int]]:
        """The volume documents that are updated, each once: they have one fact, which is not split.

        Where a source has none left, another one gives the original.
        """
        found: dict[tuple[str, int], None] = {}
        filled = [source for source in SOURCES if self.volume[source]]
        for i in range(self.numbers["update"]):
            stream = Stream(self.settings.seed, "original", i)
            wanted = _update_sources(self.settings.seed, i)[0]
            for attempt in range(4000):
                source = wanted if attempt < 200 and wanted in filled else stream.pick(filled)
                at = source, stream.below(self.volume[source])
                brief = self.brief(*at)
                alone = len(brief.facts) == 1 and not brief.split
                if alone and at not in found and brief.day < LAST_DAY - UPDATED:
                    found[at] = None
                    break
            else:
                raise UsageError("no document is left to update", "make more documents")
        return list(found)

    def update(self, i: int) -> tuple[Brief, Fact, Fact, Brief]:
        """Return near-duplicate `i`, the old and the new fact, and the original."""
        source, number = self.originals[i]
        original = self.brief(source, number)
        made, old, new = updated(original, i, self.world)
        made.source = _update_sources(self.settings.seed, i)[1]
        made.folder = original.folder
        if made.source != source:
            made.folder = place(made.source, original.topic)
        made.key, made.stem = f"UPD-{10 + i}", f"{original.stem[:60]}-update-{i:x}"
        return made, old, new, original

    def informal(self, i: int) -> Brief:
        """Return an informal document in a place that nobody plans: memes, lost gloves, hackathons."""
        topics = [*packs.topics(informal=True).values()]
        topic, turn = topics[i % len(topics)], i // len(topics)
        stream, world = Stream(self.settings.seed, "informal", i), self.world
        offices = world.subjects["office"]
        office = offices[turn // len(topic.things) % len(offices)].name
        thing = f"{topic.things[turn % len(topic.things)]} at the {office}"
        day = FIRST_DAY + timedelta(days=stream.below((LAST_DAY - FIRST_DAY).days))
        source, _, rest = topic.area.partition("/")
        made = Brief(("informal", i), source, topic, day, world.people(stream, 5), (thing, thing))
        made.folder, made.stem = f"{source}/{rest or 'informal'}", f"{slug(thing, 44)}-{i:x}"
        made.key, pen = f"WISH-{10 + i}", self.author.pen(made, stream)
        chosen = stream.pick(topic.attributes)
        made.facts = (fact(world, stream, chosen, made, made.people),)
        pen.slots |= {"name": chosen.name, "say": made.facts[0].statement}
        lines = [pen.say("informal.open"), *stream.sample(topic.talk, stream.between(2, 4))]
        lines.insert(stream.between(1, len(lines)), pen.say("informal.fact"))
        made.lines, made.title = tuple(lines), pen.say("informal.title")
        return made

    def shards(self, size: int) -> list[tuple[str, int]]:
        """Return the shards: source and number, with `size` documents in each."""
        return [(s, k) for s in SOURCES for k in range(math.ceil(self.counts[s] / size))]

    def summary(self) -> dict:
        """Return the counts that a dry run prints."""
        kinds = Counter(kind for rows in self.special.values() for kind, _, _ in rows)
        return {
            "company": self.world.company,
            "documents": dict(self.counts),
            "of which": dict(kinds) | {"volume": sum(self.volume.values())},
            "questions": dict(self.questions),
            "metadata questions": self.settings.metadata_questions,
        }


def _update_sources(seed: int, i: int) -> tuple[str, str]:
    """Return the sources of the original and of near-duplicate `i`."""
    stream = Stream(seed, "update source", i)
    weights = [packs.read("sources")[s]["duplicates"] for s in SOURCES]
    source = stream.weighted(SOURCES, weights)
    return source, source if stream.chance(SAME_SOURCE) else stream.weighted(SOURCES, weights)
