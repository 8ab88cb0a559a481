"""What will be generated: settings, counts, and the brief of every document; nothing is written."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from ragkit.datasets import reported
from ragkit.errors import UsageError
from ragkit.synth import core, noise
from ragkit.synth.briefs import SOURCES, Brief, Volume, shares
from ragkit.synth.world import World

SHARD = 5000  # documents in one file, and in one slice of the export
TYPES = (
    "basic semantic intra_document_reasoning project_related constrained conflicting_info "
    "completeness miscellaneous high_level info_not_found"
).split()


@dataclass(frozen=True)
class Settings:
    """What a run is made from.

    Parameters
    ----------
    documents : int
        All documents, noise included.
    seed : int
    questions : int, optional
        By default one for ten documents, at most 500, as in the paper.
    metadata_questions : int, optional
        By default a fifth of the questions: 100 beside 500.
    """

    documents: int
    seed: int
    questions: int | None = None
    metadata_questions: int | None = None

    def __post_init__(self):
        if self.documents < 1:
            raise UsageError(f"documents must be at least 1, not {self.documents}")
        if self.seed < 0:
            raise UsageError(f"seed must be at least 0, not {self.seed}")
        if self.questions is None:
            object.__setattr__(self, "questions", min(500, self.documents // 10))
        if self.metadata_questions is None:
            object.__setattr__(self, "metadata_questions", self.questions // 5)
        if self.questions < 0 or self.metadata_questions < 0:
            raise UsageError("questions must be at least 0")


class Plan:
    """Counts and briefs of everything that will be written; nothing is written here.

    Attributes
    ----------
    questions : dict of str to int, by type
    counts : dict of str to int
        All documents by source.
    volume_counts : dict of str to int
        High-volume documents by source.
    gold_sources : dict of str to dict
        Weights of the sources as gold sources, by question type (Table 10).
    """

    def __init__(self, settings: Settings):
        self.settings = settings
        n, q = settings.documents, settings.questions
        weights, sizes, self.gold_sources = printed()
        parts = shares(q, [weights[kind] for kind in TYPES])
        self.questions = need = dict(zip(TYPES, parts, strict=True))
        self.world = World(settings.seed, n)
        self.n_projects = max(1, math.ceil(need["project_related"] * 1.2 / 9), min(40, n // 12_000))
        self.n_clusters = math.ceil(need["completeness"] * 1.25) + 1
        self.n_duplicates = max(math.ceil(need["conflicting_info"] * 2.5), n // 100)
        self.n_misc = max(math.ceil(need["miscellaneous"] * 1.6), n // 200)
        self.project_size = max(24, min(100, int(0.12 * n / self.n_projects)))
        target = dict(zip(SOURCES, shares(n, [sizes[s] for s in SOURCES]), strict=True))
        fixed = Counter(brief.source for group in self.groups for brief in group.briefs)
        fixed.update(noise.duplicate_source(self.world, i) for i in range(self.n_duplicates))
        fixed.update(noise.misc_source(i) for i in range(self.n_misc))
        # A small source keeps most of its volume, even where core and noise fill its share.
        volume = {s: max(target[s] - fixed[s], math.ceil(0.8 * target[s])) for s in SOURCES}
        surplus = sum(volume.values()) + sum(fixed.values()) - n
        # Where core and noise exceed a small source's share, the largest sources give way.
        for source in sorted(SOURCES, key=lambda s: -volume[s]):
            cut = min(surplus, volume[source] // 2)
            volume[source] -= cut
            surplus -= cut
        if surplus > 0 or sum(volume.values()) < q:
            raise UsageError(
                f"{n:,} documents cannot carry {q:,} questions: {sum(fixed.values()):,} documents "
                "would be projects, clusters and noise, and each question needs facts of its own",
                f"ask for at most {max(0, n // 8):,} questions or make at least {q * 8:,} documents",
            )
        self.volume_counts = volume
        self.counts = {s: volume[s] + fixed[s] for s in SOURCES}

    @cached_property
    def groups(self) -> list[core.Group]:
        """Projects and clusters."""
        made = [core.project(self.world, i, self.project_size) for i in range(self.n_projects)]
        return made + [core.cluster(self.world, i) for i in range(self.n_clusters)]

    @cached_property
    def volume(self) -> Volume:
        return Volume(self.world, self.volume_counts)

    @cached_property
    def misc(self) -> list[Brief]:
        """Informal documents."""
        return [noise.misc(self.world, i) for i in range(self.n_misc)]

    @property
    def core(self) -> list[Brief]:
        """The documents of projects and clusters."""
        return [brief for group in self.groups for brief in group.briefs]

    def shards(self, *sources: str) -> Iterator[tuple[str, int]]:
        """Yield the shards of the volume: source and number."""
        for source in sources or SOURCES:
            for k in range(math.ceil(self.volume_counts[source] / SHARD)):
                yield source, k

    def shard(self, source: str, k: int) -> list[tuple[int, Brief]]:
        """Return the numbers and briefs of a shard."""
        numbers = range(k * SHARD, min((k + 1) * SHARD, self.volume_counts[source]))
        return [(number, self.volume.brief(source, number)) for number in numbers]

    def summary(self) -> dict:
        """Return the counts that a dry run prints."""
        kinds = Counter()
        for group in self.groups:
            kinds[group.kind] += len(group.briefs)
        return {
            "company": self.world.company,
            "documents": dict(self.counts),
            "of which": {
                "projects": kinds["project"],
                "clusters": kinds["cluster"],
                "volume": sum(self.volume_counts.values()),
                "near-duplicates": self.n_duplicates,
                "informal": self.n_misc,
            },
            "questions": dict(self.questions),
            "metadata questions": self.settings.metadata_questions,
            "leaf topics": sum(map(len, self.volume.leaves.values())),
        }


@cache
def printed() -> tuple[dict, dict, dict]:
    """Return the paper's counts: questions by type, documents by source, gold sources by type."""
    frame = reported.load()
    frame = frame[(frame["paper"] == "enterpriserag_bench") & frame["value"].notna()]

    def cells(table, metric):
        part = frame[(frame["table"] == table) & (frame["metric"] == metric)]
        return zip(part["row"], part["column"], part["value"], strict=True)

    gold: dict[str, dict[str, float]] = {}
    for kind, source, value in cells("10", "questions_with_source"):
        gold.setdefault(kind, {})[source] = value
    questions = {row: value for row, _, value in cells("2", "n_questions")}
    return questions, {row: value for row, _, value in cells("9", "n_documents")}, gold
