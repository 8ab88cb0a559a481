"""The stages from a seed to a benchmark on disk, each resumable.

    1-scaffolding   world.json, overview.md, initiatives.md, directory.jsonl, agents.md a place
    2-core          projects and completeness clusters: documents.jsonl, groups.json
    3-volume        SOURCE-NNNN.jsonl, at most 5,000 documents each, with .npz indices
    4-noise         moves.jsonl, near_duplicates.jsonl, documents.jsonl (duplicates, informal)
    5-questions     questions.jsonl, extra_questions.jsonl, notes.jsonl, rejected.json
    6-export        the benchmark's own layout in OUT/enterpriserag_bench, statistics.json

A file appears under its name when it is complete, and a stage that has its `done.json` is not
run again. All files are the same for the same settings, wherever and however often it was
interrupted.
"""

from __future__ import annotations

import errno
import json
import math
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from ragkit.errors import DataError, RagkitError, UsageError
from ragkit.files import atomic_path, read_json, read_jsonl, write_text
from ragkit.synth import banks, core, noise
from ragkit.synth.author import AuthorOptions, LeftOut, check_author, make_author
from ragkit.synth.briefs import SOURCES, Brief, Volume, shares
from ragkit.synth.questions import (
    TYPES,
    Corpus,
    counts_by_type,
    make_questions,
    metadata_questions,
    visible,
)
from ragkit.synth.stamp import begin
from ragkit.synth.streams import digest64
from ragkit.synth.world import World

SHARD = 5000  # documents in one file, and in one slice of the export
SMALL = 20_000  # up to so many documents there are documents.jsonl and facts.jsonl, too
VERSION = 5
# What documents are counted by, see `Index.count`.
KEYS = ("full", "pair", "topic", "split", "told")
STAGES = ("1-scaffolding", "2-core", "3-volume", "4-noise", "5-questions", "6-export")


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
    author : str
        `offline` or `openai:MODEL`.
    """

    documents: int
    seed: int
    questions: int | None = None
    metadata_questions: int | None = None
    author: str = "offline"

    def __post_init__(self):
        if self.documents < 1:
            raise UsageError(f"documents must be at least 1, not {self.documents}")
        if self.seed < 0:
            raise UsageError(f"seed must be at least 0, not {self.seed}")
        if self.questions is None:
            object.__setattr__(self, "questions", min(500, self.documents // 10))
        if self.metadata_questions is None:
            object.__setattr__(self, "metadata_questions", self.questions // 5)
        check_author(self.author)
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
    """

    def __init__(self, settings: Settings):
        self.settings = settings
        printed = _printed()
        n, q = settings.documents, settings.questions
        self.gold_sources = printed["10"]
        self.questions = counts_by_type(q, printed["2"])
        self.world = World(settings.seed, n)
        need = self.questions
        self.n_projects = max(1, math.ceil(need["project_related"] * 1.2 / 9), min(40, n // 12_000))
        self.n_clusters = math.ceil(need["completeness"] * 1.25) + 1
        self.n_duplicates = max(math.ceil(need["conflicting_info"] * 2.5), n // 100)
        self.n_misc = max(math.ceil(need["miscellaneous"] * 1.6), n // 200)
        self.project_size = max(24, min(100, int(0.12 * n / self.n_projects)))
        target = dict(zip(SOURCES, shares(n, [printed["9"][s] for s in SOURCES]), strict=True))
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
    def shards(self) -> list[tuple[str, int]]:
        """The shards of the volume: source and number."""
        return [
            (source, k)
            for source in SOURCES
            for k in range(math.ceil(self.volume_counts[source] / SHARD))
        ]

    def shard_briefs(self, source: str, k: int) -> Iterator[Brief]:
        for number in range(k * SHARD, min((k + 1) * SHARD, self.volume_counts[source])):
            yield self.volume.brief(source, number)

    def summary(self) -> dict:
        """Return the counts that a dry run prints."""
        return {
            "company": self.world.company,
            "documents": dict(self.counts),
            "of which": {
                "projects": sum(len(g.briefs) for g in self.groups if g.kind == "project"),
                "clusters": sum(len(g.briefs) for g in self.groups if g.kind == "cluster"),
                "volume": sum(self.volume_counts.values()),
                "near-duplicates": self.n_duplicates,
                "informal": self.n_misc,
            },
            "questions": dict(self.questions),
            "metadata questions": self.settings.metadata_questions,
            "leaf topics": sum(map(len, self.volume.leaves.values())),
        }


def _printed() -> dict:
    """Return the paper's proportions: questions (2), documents (9), gold sources (10)."""
    from ragkit.datasets import reported

    frame = reported.load()
    frame = frame[(frame["paper"] == "enterpriserag_bench") & frame["value"].notna()]

    def cells(table, metric):
        part = frame[(frame["table"] == table) & (frame["metric"] == metric)]
        return zip(part["row"], part["column"], part["value"], strict=True)

    gold: dict[str, dict[str, float]] = {}
    for kind, source, value in cells("10", "questions_with_source"):
        gold.setdefault(kind, {})[source] = value
    return {
        "2": {row: value for row, _, value in cells("2", "n_questions")},
        "9": {row: value for row, column, value in cells("9", "n_documents")},
        "10": gold,
    }


def generate(
    out: str | Path,
    *,
    documents: int,
    seed: int,
    questions: int | None = None,
    metadata_questions: int | None = None,
    author: str = "offline",
    jobs: int = 1,
    progress: Callable[[str, int, int], None] | None = None,
    author_options: AuthorOptions | None = None,
) -> dict:
    """Make a company's documents and questions in `out`; return the statistics.

    Parameters
    ----------
    out : path-like
        A new or empty folder, or one that the same settings have begun: the run continues there.
    documents, seed, questions, metadata_questions, author
        See `Settings`.
    jobs : int, default=1
        Processes for the volume and the export. The result does not depend on it.
    progress : callable, optional
        Called with stage, steps done and steps in all.
    author_options : AuthorOptions, optional
        For a model as author.

    Returns
    -------
    dict
        What `statistics.json` holds.

    Raises
    ------
    UsageError
        If the counts are impossible, or the folder holds other files or was begun with other
        settings.
    RagkitError
        If the disk does not take a file; what is complete is kept.
    """
    if jobs < 1:
        raise UsageError(f"jobs must be at least 1, not {jobs}")
    settings = Settings(documents, seed, questions, metadata_questions, author)
    run = Run(Path(out), settings, jobs=jobs, progress=progress, author_options=author_options)
    run.open()
    try:
        return run.all()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        kept = [stage for stage in STAGES if (run.out / "stages" / stage / "done.json").exists()]
        raise RagkitError(
            f"{error.filename or out}: {error.strerror}; kept in {out}: "
            f"{', '.join(kept) if kept else 'no stage'} and every complete file of the next",
            "make room and run the same command again",
        ) from None


class Run:
    """One run in one folder."""

    def __init__(self, out, settings, *, jobs=1, progress=None, author_options=None):
        self.out = Path(out)
        self.settings = settings
        self.jobs = jobs
        self.progress = progress or (lambda stage, done, total: None)
        self.author_options = author_options
        self.plan = Plan(settings)

    @cached_property
    def author(self):
        return make_author(self.settings.author, self.plan.world, self.author_options)

    def folder(self, number: int) -> Path:
        return self.out / "stages" / STAGES[number - 1]

    def open(self) -> None:
        """Check that the folder may be written to, and say what it is made from."""
        stamp = {**asdict(self.settings), "version": VERSION, "banks": banks.fingerprint()}
        begin(self.out, stamp)

    def all(self) -> dict:
        """Run the stages that are not done, in order."""
        steps = (
            self.scaffolding,
            self.core,
            self.volume,
            self.noise,
            self.questions,
            self.export,
        )
        for number, step in enumerate(steps, 1):
            done = self.folder(number) / "done.json"
            if not done.exists():
                self.progress(STAGES[number - 1], 0, 1)
                _json(done, step())
            self.progress(STAGES[number - 1], 1, 1)
        return read_json(self.out / "statistics.json")

    # (a)

    def scaffolding(self) -> dict:
        """Write what every later stage refers to."""
        world, folder = self.plan.world, self.folder(1)
        lines = [
            f"# {world.company}",
            "",
            world.mission,
            "",
            f"Founded {world.founded} in {world.seat}. Product: {world.product}.",
            "",
            f"Thesis. {world.thesis}",
            "",
            f"Model. {world.model}",
            "",
            "How we work together: " + "; ".join(world.values) + ".",
        ]
        write_text(folder / "overview.md", "\n".join(lines) + "\n")
        lines = ["# Initiatives", ""]
        for item in world.initiatives:
            lines += [
                f"## {item.title}",
                "",
                f"Aim: {item.goal}. Reason: {item.why}.",
                f"Measure: {item.measure}, from {item.start} to {item.target}. Owner: {item.owner}.",
                "",
            ]
        write_text(folder / "initiatives.md", "\n".join(lines))
        _jsonl(folder / "directory.jsonl", [asdict(person) for person in world.employees])
        _jsonl(
            folder / "subjects.jsonl", [asdict(s) for kind in world.subjects.values() for s in kind]
        )
        _json(
            folder / "topics.json",
            {
                source: [asdict(leaf) for leaf in leaves]
                for source, leaves in self.plan.volume.leaves.items()
            },
        )
        for place, text in agents(self.plan).items():
            write_text(folder / "tree" / place / "agents.md", text)
        summary = self.plan.summary()
        _json(folder / "plan.json", summary)
        return {"employees": len(world.employees), "places": len(agents(self.plan))}

    # (b)

    def core(self) -> dict:
        """Write projects and clusters."""
        folder = self.folder(2)
        briefs = [brief for group in self.plan.groups for brief in group.briefs]
        written, left = self._write(briefs, "2-core")
        _jsonl(folder / "documents.jsonl", written)
        _jsonl(folder / "left_out.jsonl", left)
        _json(folder / "groups.json", [g.manifest for g in self.plan.groups])
        return {"documents": len(written), "left_out": len(left)}

    def _write(self, briefs: list[Brief], stage: str) -> tuple[list[dict], list[dict]]:
        written: list[dict] = []
        left: list[dict] = []
        for start in range(0, len(briefs), 500):
            for document in self.author.write_all(briefs[start : start + 500]):
                if isinstance(document, LeftOut):
                    left.append(asdict(document))
                else:
                    written.append(document)
            self.progress(stage, min(start + 500, len(briefs)), len(briefs))
        return written, left

    # (c)

    def volume(self) -> dict:
        """Write the shards that are not there yet."""
        folder = self.folder(3)
        todo = [
            (s, k) for s, k in self.plan.shards if not (folder / f"{_shard(s, k)}.npz").exists()
        ]
        before = len(self.plan.shards) - len(todo)
        for done, _ in enumerate(self._map(_write_shard, todo), before + 1):
            self.progress("3-volume", done, len(self.plan.shards))
        counts = Counter()
        left = 0
        for source, k in self.plan.shards:
            with np.load(folder / f"{_shard(source, k)}.npz") as index:
                counts[source] += len(index["offsets"])
                left += int(index["left"])
        return {"documents": dict(counts), "left_out": left}

    def _map(self, function, tasks):
        """Run tasks here or in processes; a model author stays in this process."""
        if self.jobs == 1 or len(tasks) < 2 or self.settings.author != "offline":
            for task in tasks:
                yield function(self, task)
            return
        from joblib import Parallel, delayed

        # Joblib's processes do not run the caller's script again, as spawned ones do: this works
        # from a notebook and from a script without a guard.
        calls = (delayed(_apart)(function, self.out, self.settings, task) for task in tasks)
        yield from Parallel(min(self.jobs, len(tasks)), return_as="generator_unordered")(calls)

    # (d)

    def noise(self) -> dict:
        """Misfile documents, write near-duplicates and informal documents."""
        plan, folder = self.plan, self.folder(4)
        index = Index(self)
        rows = []
        kinds: Counter[str] = Counter()
        core_documents = read_jsonl(self.folder(2) / "documents.jsonl")
        for source in SOURCES:
            members: dict[str, list] = {}
            for leaf in plan.volume.leaves[source]:
                numbers = range(leaf.start, leaf.start + leaf.count)
                members.setdefault(leaf.folder, []).extend(numbers)
            for at, document in enumerate(core_documents):
                if document["source_type"] == source:
                    members.setdefault(document["path"].rpartition("/")[0], []).append(-1 - at)
            for number, (kind, target) in sorted(noise.moves(plan.world, source, members).items()):
                if number < 0:
                    rows.append(
                        {
                            "doc_id": core_documents[-1 - number]["doc_id"],
                            "kind": kind,
                            "folder": target,
                        }
                    )
                else:
                    rows.append(
                        {"source": source, "number": number, "kind": kind, "folder": target}
                    )
                kinds[kind] += 1
        _jsonl(folder / "moves.jsonl", rows)
        briefs, records = [], []
        originals = zip(range(plan.n_duplicates), self._originals(index), strict=False)
        for number, (place, brief) in originals:
            made, record = noise.duplicate(plan.world, number, brief)
            briefs.append(made)
            records.append({**record, "source": place[0], "number": place[1]})
        misc = [noise.misc(plan.world, i) for i in range(plan.n_misc)]
        written, left = self._write([*briefs, *misc], "4-noise")
        _jsonl(folder / "documents.jsonl", written)
        _jsonl(folder / "near_duplicates.jsonl", records)
        _jsonl(folder / "left_out.jsonl", left)
        return {
            "moved": dict(kinds),
            "near_duplicates": len(records),
            "informal": len(misc),
            "left_out": len(left),
        }

    def _originals(self, index: Index) -> Iterator[tuple[tuple[str, int], Brief]]:
        """Yield volume documents found by a walk, with a fact that no other document states."""
        plan = self.plan
        trees = {}
        for source in SOURCES:
            members: dict[str, list[int]] = {}
            for leaf in plan.volume.leaves[source]:
                members.setdefault(leaf.folder, []).extend(
                    range(leaf.start, leaf.start + leaf.count)
                )
            if members:
                trees[source] = noise.Tree(members)
        taken: set[tuple[str, str]] = set()
        stream = core.Stream(plan.world.seed, "originals")
        made = 0
        for _ in range(4000 * plan.n_duplicates):
            if made == plan.n_duplicates:
                return
            source = stream.pick(list(trees))
            tree = trees[source]
            number = stream.pick(tree.members[tree.folder(stream)])
            if not index.has(source, number):
                continue
            brief = plan.volume.brief(source, number)
            if brief.kind in ("sheet", "standup") or not brief.facts:
                continue
            fact = brief.facts[0]
            key = (fact.key, fact.entity)
            if key in taken or index.count("full", fact.key, fact.entity, fact.scope) != 1:
                continue
            taken.add(key)
            made += 1
            yield (source, number), brief
        raise UsageError(
            f"only {made:,} documents state a fact of their own, {plan.n_duplicates:,} are to be "
            "duplicated",
            "make more documents or ask for fewer questions",
        )

    # (e)

    def questions(self) -> dict:
        """Write the questions."""
        plan, folder = self.plan, self.folder(5)
        with Index(self) as index:
            extra = {
                d["doc_id"]: d
                for number in (2, 4)
                for d in _rows(self.folder(number) / "documents.jsonl")
            }
            corpus = Corpus(
                plan.world,
                plan.volume,
                index.read,
                plan.groups,
                extra,
                index.count,
                index.scopes,
                index.stating,
                index.split_once,
                _rows(self.folder(4) / "near_duplicates.jsonl"),
                [noise.misc(plan.world, i) for i in range(plan.n_misc)],
            )
            rows, statistics = make_questions(corpus, plan.questions, plan.gold_sources)
            more = metadata_questions(corpus, self.settings.metadata_questions)
        notes = []
        for row in [*rows, *more]:
            notes.append(
                {
                    "question_id": row["question_id"],
                    "pattern": row.pop("pattern"),
                    "distractor_doc_ids": row.pop("distractor_doc_ids"),
                }
            )
        _jsonl(folder / "questions.jsonl", rows)
        _jsonl(folder / "extra_questions.jsonl", more)
        _jsonl(folder / "notes.jsonl", notes)
        _json(folder / "rejected.json", statistics["rejected"])
        return {"questions": len(rows), "metadata_questions": len(more), **statistics}

    # (f)

    def export(self) -> dict:
        """Write the benchmark in its own layout, and the statistics."""
        target = self.out / "enterpriserag_bench"
        tasks = self._slices()
        lengths: dict[str, list] = {s: [] for s in SOURCES}
        for done, (source, sizes) in enumerate(self._map(_write_slice, tasks), 1):
            lengths[source].append(sizes)
            self.progress("6-export", done, len(tasks))
        questions = _rows(self.folder(5) / "questions.jsonl")
        extra = _rows(self.folder(5) / "extra_questions.jsonl")
        _jsonl(target / "questions.jsonl", questions)
        _jsonl(target / "extra_questions.jsonl", extra)
        answers = [
            {
                "question_id": q["question_id"],
                "answer": q["gold_answer"],
                "document_ids": q["expected_doc_ids"],
            }
            for q in questions
        ]
        _jsonl(target / "gold_answers.jsonl", answers)
        total = sum(len(sizes) for parts in lengths.values() for sizes in parts)
        if total <= SMALL:
            everything = sorted(
                (d for s in SOURCES for d in self.documents(s)), key=lambda d: d["path"]
            )
            _jsonl(target / "documents.jsonl", everything)
            _jsonl(
                self.out / "documents.jsonl",
                [
                    {
                        "doc_id": d["doc_id"],
                        "source": d["source_type"],
                        "title": d["title"],
                        "text": d["content"],
                        "path": d["path"],
                    }
                    for d in everything
                ],
            )
            _jsonl(self.out / "facts.jsonl", self._facts())
        _jsonl(
            self.out / "questions.jsonl",
            [
                {
                    "question_id": q["question_id"],
                    "text": q["question"],
                    "type": q["question_type"],
                    "answer": q["gold_answer"],
                    "facts": q["answer_facts"],
                    "gold_doc_ids": q["expected_doc_ids"],
                    "source_types": q["source_types"],
                }
                for q in questions
            ],
        )
        statistics = self._statistics(lengths, questions)
        _json(self.out / "statistics.json", statistics)
        return {"documents": total, "slices": len(tasks)}

    def documents(self, source: str, start: int = 0, stop: int | None = None) -> Iterator[dict]:
        """Yield the documents of a source with their final paths: core, noise, then volume."""
        at = 0
        moved = self._moves
        for number in (2, 4):
            for document in self._small[number]:
                if document["source_type"] == source:
                    if at >= start and (stop is None or at < stop):
                        yield _placed(document, moved.get(document["doc_id"]))
                    at += 1
        for k in range(math.ceil(self.plan.volume_counts[source] / SHARD)):
            path = self.folder(3) / _shard(source, k)
            with np.load(f"{path}.npz") as index:
                numbers = index["numbers"]
            if at + len(numbers) <= start or (stop is not None and at >= stop):
                at += len(numbers)
                continue
            with open(f"{path}.jsonl", encoding="utf-8") as lines:
                for number, line in zip(numbers.tolist(), lines, strict=True):
                    if at >= start and (stop is None or at < stop):
                        yield _placed(json.loads(line), moved.get((source, number)))
                    at += 1

    @cached_property
    def _small(self) -> dict[int, list[dict]]:
        return {number: _rows(self.folder(number) / "documents.jsonl") for number in (2, 4)}

    @cached_property
    def _moves(self) -> dict:
        return {
            row.get("doc_id") or (row["source"], row["number"]): row["folder"]
            for row in _rows(self.folder(4) / "moves.jsonl")
        }

    def _slices(self) -> list[tuple[str, int, int]]:
        tasks = []
        for source in SOURCES:
            count = sum(d["source_type"] == source for part in self._small.values() for d in part)
            for k in range(math.ceil(self.plan.volume_counts[source] / SHARD)):
                with np.load(self.folder(3) / f"{_shard(source, k)}.npz") as index:
                    count += len(index["numbers"])
            tasks += [(source, k, count) for k in range(math.ceil(count / SHARD))]
        return tasks

    def _facts(self) -> list[dict]:
        """Return every fact once, with the documents that state it."""
        found: dict[str, dict] = {}
        written = {d["doc_id"] for s in SOURCES for d in self.documents(s)}
        for brief in self.briefs():
            if brief.doc_id not in written:
                continue
            for fact in brief.facts:
                row = found.setdefault(fact.fact_id, asdict(fact) | {"sources": []})
                row["sources"].append(brief.doc_id)
        return [found[key] for key in sorted(found)]

    def briefs(self) -> Iterator[Brief]:
        """Yield the brief of every document, whether or not its author wrote it."""
        plan = self.plan
        for group in plan.groups:
            yield from group.briefs
        for source, k in plan.shards:
            yield from plan.shard_briefs(source, k)
        with Index(self) as index:
            originals = zip(range(plan.n_duplicates), self._originals(index), strict=False)
            for number, (_, brief) in originals:
                yield noise.duplicate(plan.world, number, brief)[0]
        for number in range(plan.n_misc):
            yield noise.misc(plan.world, number)

    def _statistics(self, lengths: dict, questions: list[dict]) -> dict:
        by_source = {}
        for source, parts in lengths.items():
            sizes = np.concatenate(parts) if parts else np.zeros(0, int)
            by_source[source] = {
                "documents": len(sizes),
                "mean": round(float(sizes.mean()), 1) if len(sizes) else None,
                "median": float(np.median(sizes)) if len(sizes) else None,
                "p95": round(float(np.percentile(sizes, 95)), 1) if len(sizes) else None,
            }
        kinds = {}
        for kind in TYPES:
            rows = [q for q in questions if q["question_type"] == kind]
            gold = [len(q["expected_doc_ids"]) for q in rows if q["expected_doc_ids"]]
            kinds[kind] = {
                "questions": len(rows),
                "gold_sources": {s: sum(s in q["source_types"] for q in rows) for s in SOURCES},
                "gold_documents": {
                    "mean": round(float(np.mean(gold)), 2),
                    "median": float(np.median(gold)),
                    "min": min(gold),
                    "max": max(gold),
                }
                if gold
                else None,
            }
        stages = {s: read_json(self.out / "stages" / s / "done.json") for s in STAGES[:5]}
        return {
            "settings": asdict(self.settings),
            "plan": self.plan.summary(),
            "sources": by_source,
            "questions": kinds,
            "stages": stages,
        }


def agents(plan: Plan) -> dict[str, str]:
    """Return the text of `agents.md` for every source and each of its areas."""
    rows = dict(banks.rows("agents", "agents"))
    found = {}
    for source in SOURCES:
        found[source] = f"# {source}\n\n{rows[source]}\n"
        for leaf in plan.volume.leaves[source]:
            parts = leaf.folder.split("/")
            place = "/".join(parts[:2])
            topic = banks.topics()[leaf.topic]
            known = found.setdefault(place, f"# {place}\n\n{rows[source]}\n\nHere belongs:\n")
            line = f"- {topic.title} ({', '.join(topic.things[:2])})\n"
            if line not in known:
                found[place] = known + line
    return found


class Index:
    """Who states which fact: hashes of facts and places of volume documents."""

    def __init__(self, run: Run):
        self.run = run
        self.offsets: dict[str, np.ndarray] = {}
        parts: dict[str, list[np.ndarray]] = {k: [] for k in (*KEYS, "where", "about", "split_at")}
        for source in SOURCES:
            places = np.full(run.plan.volume_counts[source], -1, np.int64)
            for k in range(math.ceil(run.plan.volume_counts[source] / SHARD)):
                with np.load(run.folder(3) / f"{_shard(source, k)}.npz") as index:
                    places[index["numbers"]] = index["offsets"]
                    for name in (*KEYS, "about"):
                        parts[name].append(index[name])
                    first = SOURCES.index(source) << 40
                    parts["where"].append(index["at"] + first)
                    parts["split_at"].append(index["split_at"] + first)
            self.offsets[source] = places
        more = {name: [] for name in KEYS}
        for group in run.plan.groups:
            for brief in group.briefs:
                for name, values in _keys(brief).items():
                    more[name] += values
        pair = np.concatenate([*parts["pair"], np.zeros(0, np.uint64)])
        where = np.concatenate([*parts["where"], np.zeros(0, np.int64)])
        order = np.argsort(pair, kind="stable")
        self._pair, self._where = pair[order], where[order]
        about = np.concatenate([*parts["about"], np.zeros(0, np.uint64)])
        order = np.argsort(about, kind="stable")
        self._about, self._about_where = about[order], where[order]
        self._sorted = {
            name: np.sort(np.concatenate([*parts[name], np.array(more[name], np.uint64)]))
            for name in more
        }
        split = np.concatenate([*parts["split"], np.zeros(0, np.uint64)])
        places = self._sorted["split"]
        once = np.searchsorted(places, split, "right") - np.searchsorted(places, split, "left") == 1
        self._split_where = np.concatenate([*parts["split_at"], np.zeros(0, np.int64)])[once]
        self._files: dict[tuple[str, int], object] = {}

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *exc) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()

    def count(self, kind: str, *names: str) -> int:
        """Return how many documents outside the noise have a key."""
        key = np.uint64(digest64(*names))
        keys = self._sorted[kind]
        return int(np.searchsorted(keys, key, "right") - np.searchsorted(keys, key, "left"))

    def scopes(self, *names: str) -> list[tuple[str, int]]:
        """Return the volume documents that state an attribute of an entity."""
        rows = sorted(set(_under(self._pair, self._where, names).tolist()))
        return [(SOURCES[row >> 40], row & ((1 << 40) - 1)) for row in rows]

    def stating(self, source: str, key: str) -> np.ndarray:
        """Return the numbers of a source's volume documents that state an attribute of anybody."""
        return _under(self._about, self._about_where, (source, key)) & ((1 << 40) - 1)

    def split_once(self, source: str) -> np.ndarray:
        """Return the numbers of a source's volume documents that alone split a fact on a place."""
        own = self._split_where >> 40 == SOURCES.index(source)
        return self._split_where[own] & ((1 << 40) - 1)

    def has(self, source: str, number: int) -> bool:
        return self.offsets[source][number] >= 0

    def read(self, source: str, number: int) -> dict | None:
        """Return a written volume document, or None if its author left it out."""
        if not self.has(source, number):
            return None
        key = (source, number // SHARD)
        if key not in self._files:
            self._files[key] = open(self.run.folder(3) / f"{_shard(*key)}.jsonl", "rb")  # noqa: SIM115
        file = self._files[key]
        file.seek(self.offsets[source][number])
        return json.loads(file.readline())


def _under(keys: np.ndarray, values: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """Return the values whose key, in sorted order, is that of the names."""
    key = np.uint64(digest64(*names))
    return values[np.searchsorted(keys, key, "left") : np.searchsorted(keys, key, "right")]


def _keys(brief: Brief) -> dict[str, list[int]]:
    keys: dict[str, list[int]] = {name: [] for name in KEYS}
    subject = brief.subject
    for fact in brief.facts:
        keys["full"].append(digest64(fact.key, fact.entity, fact.scope))
        keys["pair"].append(digest64(fact.key, fact.entity))
        if subject and fact.entity == subject.name:
            for name in filter(None, (subject.far, subject.nick)):
                keys["told"].append(digest64(fact.key, subject.kind, name))
                if fact.scope:
                    keys["told"].append(digest64(fact.key, subject.kind, name, fact.scope))
    if brief.topic and brief.subject:
        keys["topic"].append(digest64(brief.topic.key, brief.subject.name))
    if brief.split:
        place = brief.subject.phrase(brief.scope) if brief.scope else brief.subject.name
        keys["split"].append(digest64(place))
    return keys


def _shard(source: str, k: int) -> str:
    return f"{source}-{k + 1:04d}"


def _write_shard(run: Run, task: tuple[str, int]) -> None:
    source, k = task
    folder = run.folder(3)
    keys: dict[str, list[int]] = {name: [] for name in KEYS}
    at: list[int] = []
    about: list[int] = []
    split_at: list[int] = []
    numbers: list[int] = []
    offsets: list[int] = []
    left: list[dict] = []
    position = 0
    briefs = list(enumerate(run.plan.shard_briefs(source, k), k * SHARD))
    with atomic_path(folder / f"{_shard(source, k)}.jsonl") as path, open(path, "wb") as file:
        for start in range(0, len(briefs), 500):
            part = briefs[start : start + 500]
            for (number, brief), document in zip(
                part, run.author.write_all([b for _, b in part]), strict=True
            ):
                if isinstance(document, LeftOut):
                    left.append(asdict(document))
                    continue
                line = json.dumps(document, ensure_ascii=False).encode() + b"\n"
                file.write(line)
                numbers.append(number)
                offsets.append(position)
                position += len(line)
                for name, values in _keys(brief).items():
                    keys[name] += values
                at += [number] * len(brief.facts)
                split_at += [number] * bool(brief.split)
                about += [digest64(source, fact.key) for fact in brief.facts]
    if left:
        _jsonl(folder / f"{_shard(source, k)}.left_out.jsonl", left)
    arrays = {name: np.array(values, np.uint64) for name, values in keys.items()}
    # Last, so that a shard with an index is a complete one.
    with atomic_path(folder / f"{_shard(source, k)}.npz") as path, open(path, "wb") as file:
        np.savez(
            file,
            numbers=np.array(numbers, np.int64),
            offsets=np.array(offsets, np.int64),
            at=np.array(at, np.int64),
            about=np.array(about, np.uint64),
            split_at=np.array(split_at, np.int64),
            left=np.array(len(left)),
            **arrays,
        )


def _write_slice(run: Run, task: tuple[str, int, int]) -> tuple[str, np.ndarray]:
    """Write one slice; return the lengths of its documents in characters.

    Entries are stored, not compressed: compressed bytes depend on the library's version.
    """
    source, k, _ = task
    sizes = []
    target = run.out / "enterpriserag_bench" / f"{source}_slice_{k + 1}.zip"
    with atomic_path(target) as path, zipfile.ZipFile(path, "w") as archive:
        for document in run.documents(source, k * SHARD, (k + 1) * SHARD):
            text = visible(document)
            sizes.append(len(text))
            folder, _, name = document["path"].rpartition("/")
            stem = name.removesuffix(".json")
            info = zipfile.ZipInfo(
                f"{folder}/{document['doc_id']}__{stem}.txt", (1980, 1, 1, 0, 0, 0)
            )
            info.create_system = 3
            archive.writestr(info, text.encode())
    return source, np.array(sizes, np.int64)


def _apart(function, out: Path, settings: Settings, task):
    """Run a task in a process of its own, which keeps its plan for the next one."""
    return function(_run(out, settings), task)


@lru_cache(maxsize=1)
def _run(out: Path, settings: Settings) -> Run:
    return Run(out, settings)


def _placed(document: dict, folder: str | None) -> dict:
    if folder is None:
        return document
    return {**document, "path": f"{folder}/{document['path'].rpartition('/')[2]}"}


def _rows(path: Path) -> list[dict]:
    """Return the rows of a file of ours, which may have none."""
    if not path.exists():
        raise DataError(f"{path}: missing, though its stage is done", "use another folder")
    return read_jsonl(path) if path.stat().st_size else []


def _json(path: Path, value) -> None:
    write_text(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def _jsonl(path: Path, rows: list[dict]) -> None:
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
