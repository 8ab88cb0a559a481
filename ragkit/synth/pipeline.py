"""The stages from a seed to a benchmark on disk, for the offline author.

    1-scaffolding   overview.md, initiatives.md, directory.jsonl, agents.md a place
    2-core          projects and completeness clusters: documents.jsonl, groups.json
    3-volume        SOURCE-NNNN.jsonl, at most 5,000 documents each, with .npz indices
    4-noise         moves.jsonl, near_duplicates.jsonl, documents.jsonl (duplicates, informal)
    5-questions     questions.jsonl, extra_questions.jsonl, notes.jsonl, rejected.json
    6-export        the benchmark's own layout in OUT/enterpriserag_bench, statistics.json

A stage is a function of the run that returns its counts. A file appears under its name when it is
complete, and a stage that has its `done.json` is not run again. All files are the same for the
same settings, wherever and however often the run was interrupted.
"""

from __future__ import annotations

import errno
import json
import math
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path

import numpy as np

from ragkit.errors import DataError, RagkitError, UsageError
from ragkit.files import atomic_path, read_json, read_jsonl, write_text
from ragkit.synth import banks, noise
from ragkit.synth.briefs import SOURCES, Brief, Point
from ragkit.synth.corpus import Corpus, visible
from ragkit.synth.index import Index, shard_path, write_shard
from ragkit.synth.offline import Offline
from ragkit.synth.plan import SHARD, TYPES, Plan, Settings
from ragkit.synth.questions import make_questions, metadata_questions
from ragkit.synth.stamp import begin
from ragkit.synth.streams import Stream

SMALL = 20_000  # up to so many documents there are documents.jsonl and facts.jsonl, too
VERSION = 7


def generate(
    out: str | Path,
    *,
    documents: int,
    seed: int,
    questions: int | None = None,
    metadata_questions: int | None = None,
    jobs: int = 1,
    progress: Callable[[str, int, int], None] | None = None,
) -> dict:
    """Make a company's documents and questions in `out`; return the statistics.

    Parameters
    ----------
    out : path-like
        A new or empty folder, or one that the same settings have begun: the run continues there.
    documents, seed, questions, metadata_questions
        See `Settings`.
    jobs : int, default=1
        Processes for the volume and the export. The result does not depend on it.
    progress : callable, optional
        Called with stage, steps done and steps in all.

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
    settings = Settings(documents, seed, questions, metadata_questions)
    run = Run(Path(out), settings, jobs=jobs, progress=progress)
    begin(run.out, {**asdict(settings), "version": VERSION, "banks": banks.fingerprint()})
    try:
        for name, stage in STAGES.items():
            run.stage(name, stage)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        kept = [name for name in STAGES if run.done(name).exists()]
        raise RagkitError(
            f"{error.filename or out}: {error.strerror}; kept in {out}: "
            f"{', '.join(kept) if kept else 'no stage'} and every complete file of the next",
            "make room and run the same command again",
        ) from None
    return read_json(run.out / "statistics.json")


class Run:
    """One run in one folder: where its files are, and who writes."""

    def __init__(self, out, settings, *, jobs=1, progress=None):
        self.out, self.settings, self.jobs = Path(out), settings, jobs
        self.progress = progress or (lambda stage, done, total: None)
        self.plan = Plan(settings)
        self.author = Offline(self.plan.world)

    def folder(self, number: int) -> Path:
        return self.out / "stages" / list(STAGES)[number - 1]

    def done(self, name: str) -> Path:
        return self.out / "stages" / name / "done.json"

    def stage(self, name: str, stage: Callable[[Run], dict]) -> None:
        """Run a stage unless it is done."""
        if not self.done(name).exists():
            self.progress(name, 0, 1)
            _json(self.done(name), stage(self))
        self.progress(name, 1, 1)

    def missing_shards(self) -> list[tuple[str, int]]:
        """Return the shards that are not complete: those without an index."""
        shards = self.plan.shards()
        return [s for s in shards if not self.shard(*s).with_suffix(".npz").exists()]

    def write(self, briefs: list[Brief], stage: int) -> None:
        """Write the documents of a small stage."""
        folder = self.folder(stage)
        self.progress(folder.name, 0, len(briefs))
        _jsonl(folder / "documents.jsonl", (self.author.write(brief) for brief in briefs))

    def map(self, function, tasks: list) -> Iterator:
        """Run tasks here or in processes."""
        if self.jobs == 1 or len(tasks) < 2:
            for task in tasks:
                yield function(self, task)
            return
        from joblib import Parallel, delayed

        # Joblib's processes do not run the caller's script again, as spawned ones do: this works
        # from a notebook and from a script without a guard.
        calls = (delayed(_apart)(function, self.out, self.settings, task) for task in tasks)
        yield from Parallel(min(self.jobs, len(tasks)), return_as="generator_unordered")(calls)

    def shard(self, source: str, k: int) -> Path:
        return shard_path(self.folder(3), source, k)

    def small(self, source: str | None = None) -> list[dict]:
        """Return the documents of core and noise, all or those of a source."""
        return [d for d in self._small if source in (None, d["source_type"])]

    @cached_property
    def _small(self) -> list[dict]:
        return [d for stage in (2, 4) for d in self.rows(stage, "documents.jsonl")]

    def rows(self, stage: int, name: str) -> list[dict]:
        """Return the rows of a file of ours, which may have none."""
        path = self.folder(stage) / name
        if not path.exists():
            raise DataError(f"{path}: missing, though its stage is done", "use another folder")
        return read_jsonl(path) if path.stat().st_size else []

    def documents(self, source: str, start: int = 0, stop: float = math.inf) -> Iterator[dict]:
        """Yield the documents of a source with their final paths: core, noise, then volume."""
        at = 0
        for document in self.small(source):
            if start <= at < stop:
                yield _placed(document, self._moves.get(document["doc_id"]))
            at += 1
        for _, k in self.plan.shards(source):
            with np.load(self.shard(source, k).with_suffix(".npz")) as index:
                numbers = index["numbers"].tolist()
            if at + len(numbers) > start and at < stop:
                with open(self.shard(source, k), encoding="utf-8") as lines:
                    for i, (number, line) in enumerate(zip(numbers, lines, strict=True), at):
                        if start <= i < stop:
                            yield _placed(json.loads(line), self._moves.get((source, number)))
            at += len(numbers)

    @cached_property
    def _moves(self) -> dict:
        return {
            row.get("doc_id") or (row["source"], row["number"]): row["folder"]
            for row in self.rows(4, "moves.jsonl")
        }

    def originals(self, index: Index) -> Iterator[tuple[tuple[str, int], Brief]]:
        """Yield volume documents found by a walk, with a fact that no other document states."""
        plan, stream = self.plan, Stream(self.plan.world.seed, "originals")
        trees = {s: noise.Tree(members) for s in SOURCES if (members := plan.volume.members(s))}
        taken: set[tuple[str, str]] = set()
        for _ in range(4000 * plan.n_duplicates):
            if len(taken) == plan.n_duplicates:
                return
            source = stream.pick(list(trees))
            number = stream.pick(trees[source].members[trees[source].folder(stream)])
            brief = plan.volume.brief(source, number)
            if brief.kind in ("sheet", "standup") or not brief.facts:
                continue
            fact = brief.facts[0]
            key = (fact.key, fact.entity)
            if key not in taken and index.count("full", *key, fact.scope) == 1:
                taken.add(key)
                yield (source, number), brief
        raise UsageError(
            f"only {len(taken):,} documents state a fact of their own, {plan.n_duplicates:,} are "
            "to be duplicated",
            "make more documents or ask for fewer questions",
        )

    def duplicates(self, index: Index) -> Iterator[tuple[Brief, dict]]:
        """Yield the near-duplicates, each with its record."""
        pairs = zip(range(self.plan.n_duplicates), self.originals(index), strict=False)
        for i, ((source, number), original) in pairs:
            brief, record = noise.duplicate(self.plan.world, i, original)
            yield brief, {**record, "source": source, "number": number}


def scaffolding(run: Run) -> dict:
    """Write what every later stage refers to."""
    world, folder, plan = run.plan.world, run.folder(1), run.plan
    lines = banks.sections("scaffolding")
    slots = vars(world) | {"principles": "; ".join(world.values)}
    overview = [line.format_map(slots) for line in lines["overview"]]
    write_text(folder / "overview.md", f"# {world.company}\n\n" + "\n\n".join(overview) + "\n")
    parts = [
        f"## {item.title}\n\n"
        + "\n".join(line.format_map(vars(item)) for line in lines["initiative"])
        for item in world.initiatives
    ]
    write_text(folder / "initiatives.md", "\n\n".join(["# Initiatives", *parts]) + "\n")
    subjects = chain.from_iterable(world.subjects.values())
    _jsonl(folder / "directory.jsonl", map(asdict, world.employees))
    _jsonl(folder / "subjects.jsonl", map(asdict, subjects))
    leaves = plan.volume.leaves.items()
    _json(folder / "topics.json", {s: [asdict(leaf) for leaf in own] for s, own in leaves})
    places = agents(plan)
    for place, text in places.items():
        write_text(folder / "tree" / place / "agents.md", text)
    _json(folder / "plan.json", plan.summary())
    return {"employees": len(world.employees), "places": len(places)}


def agents(plan: Plan) -> dict[str, str]:
    """Return the text of `agents.md` for every source and each of its areas."""
    rows = dict(banks.rows("agents", "agents"))
    found = {}
    for source in SOURCES:
        found[source] = f"# {source}\n\n{rows[source]}\n"
        for leaf in plan.volume.leaves[source]:
            place = "/".join(leaf.folder.split("/")[:2])
            topic = banks.topics()[leaf.topic]
            known = found.setdefault(place, f"# {place}\n\n{rows[source]}\n\nHere belongs:\n")
            line = f"- {topic.title} ({', '.join(topic.things[:2])})\n"
            if line not in known:
                found[place] = known + line
    return found


def core(run: Run) -> dict:
    """Write projects and clusters."""
    briefs = run.plan.core
    run.write(briefs, 2)
    _json(run.folder(2) / "groups.json", [group.manifest for group in run.plan.groups])
    return {"documents": len(briefs)}


def volume(run: Run) -> dict:
    """Write the shards that are not there yet."""
    shards, todo = list(run.plan.shards()), run.missing_shards()
    for done, _ in enumerate(run.map(_write_shard, todo), 1 + len(shards) - len(todo)):
        run.progress("3-volume", done, len(shards))
    counts: Counter[str] = Counter()
    for source, k in shards:
        with np.load(run.shard(source, k).with_suffix(".npz")) as index:
            counts[source] += len(index["numbers"])
    return {"documents": dict(counts)}


def _write_shard(run: Run, task: tuple[str, int]) -> None:
    briefs = run.plan.shard(*task)
    write_shard(run.shard(*task), [(n, brief, run.author.write(brief)) for n, brief in briefs])


def misfile(run: Run) -> dict:
    """Misfile documents, write near-duplicates and informal documents."""
    plan, folder = run.plan, run.folder(4)
    rows: list[dict] = []
    known = run.rows(2, "documents.jsonl")
    for source in SOURCES:
        members = plan.volume.members(source)
        for at, document in enumerate(known):
            if document["source_type"] == source:
                members.setdefault(document["path"].rpartition("/")[0], []).append(-1 - at)
        for number, (kind, target) in sorted(noise.moves(plan.world, source, members).items()):
            own = {"source": source, "number": number}
            own = {"doc_id": known[-1 - number]["doc_id"]} if number < 0 else own
            rows.append({**own, "kind": kind, "folder": target})
    _jsonl(folder / "moves.jsonl", rows)
    with Index(plan, run.folder(3)) as index:
        made = list(run.duplicates(index))
    run.write([*(brief for brief, _ in made), *plan.misc], 4)
    _jsonl(folder / "near_duplicates.jsonl", [record for _, record in made])
    kinds = dict(Counter(row["kind"] for row in rows))
    counts = {"near_duplicates": len(made), "informal": len(plan.misc)}
    return {"moved": kinds, **counts}


def questions(run: Run) -> dict:
    """Write the questions."""
    plan, folder = run.plan, run.folder(5)
    extra = {d["doc_id"]: d for d in run.small()}
    pairs = run.rows(4, "near_duplicates.jsonl")
    with Index(plan, run.folder(3)) as index:
        corpus = Corpus(plan, index, extra, pairs)
        asked, rejected = make_questions(corpus, plan.questions, plan.gold_sources)
        more = metadata_questions(corpus, run.settings.metadata_questions)
    names = ("pattern", "distractor_doc_ids")
    notes = [
        {"question_id": row["question_id"]} | {name: row.pop(name) for name in names}
        for row in [*asked, *more]
    ]
    _jsonl(folder / "questions.jsonl", asked)
    _jsonl(folder / "extra_questions.jsonl", more)
    _jsonl(folder / "notes.jsonl", notes)
    _json(folder / "rejected.json", rejected)
    return {"questions": len(asked), "metadata_questions": len(more), "rejected": rejected}


# Names of the workspace, or of an answer, with those of the benchmark's files.
ANSWERS = "question_id answer=gold_answer document_ids=expected_doc_ids"
ASKED = (
    "question_id text=question type=question_type answer=gold_answer facts=answer_facts "
    "gold_doc_ids=expected_doc_ids source_types"
)
WRITTEN = "doc_id source=source_type title text=content path"


def export(run: Run) -> dict:
    """Write the benchmark in its own layout, and the statistics."""
    target = run.out / "enterpriserag_bench"
    tasks = list(_slices(run))
    lengths: dict[str, list] = {s: [] for s in SOURCES}
    for done, (source, sizes) in enumerate(run.map(_write_slice, tasks), 1):
        lengths[source].append(sizes)
        run.progress("6-export", done, len(tasks))
    asked = run.rows(5, "questions.jsonl")
    _jsonl(target / "questions.jsonl", asked)
    _jsonl(target / "extra_questions.jsonl", run.rows(5, "extra_questions.jsonl"))
    _jsonl(target / "gold_answers.jsonl", _renamed(asked, ANSWERS))
    total = sum(len(sizes) for parts in lengths.values() for sizes in parts)
    if total <= SMALL:
        every = sorted((d for s in SOURCES for d in run.documents(s)), key=lambda d: d["path"])
        _jsonl(target / "documents.jsonl", every)
        _jsonl(run.out / "documents.jsonl", _renamed(every, WRITTEN))
        written = {d["doc_id"] for d in every}
        briefs = [brief for brief in _briefs(run) if brief.doc_id in written]
        _jsonl(run.out / "facts.jsonl", _facts(briefs))
        _jsonl(run.out / "cases.jsonl", _cases(briefs))
    _jsonl(run.out / "questions.jsonl", _renamed(asked, ASKED))
    _json(run.out / "statistics.json", _statistics(run, lengths, asked))
    return {"documents": total, "slices": len(tasks)}


def _slices(run: Run) -> Iterator[tuple[str, int]]:
    for source in SOURCES:
        count = len(run.small(source))
        for _, k in run.plan.shards(source):
            with np.load(run.shard(source, k).with_suffix(".npz")) as index:
                count += len(index["numbers"])
        yield from ((source, k) for k in range(math.ceil(count / SHARD)))


def _write_slice(run: Run, task: tuple[str, int]) -> tuple[str, np.ndarray]:
    """Write one slice; return the lengths of its documents in characters.

    Entries are stored, not compressed: compressed bytes depend on the library's version.
    """
    source, k = task
    sizes = []
    target = run.out / "enterpriserag_bench" / f"{source}_slice_{k + 1}.zip"
    with atomic_path(target) as path, zipfile.ZipFile(path, "w") as archive:
        for document in run.documents(source, k * SHARD, (k + 1) * SHARD):
            text = visible(document)
            sizes.append(len(text))
            folder, _, name = document["path"].rpartition("/")
            name = f"{folder}/{document['doc_id']}__{name.removesuffix('.json')}.txt"
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.create_system = 3
            archive.writestr(info, text.encode())
    return source, np.array(sizes, np.int64)


def _briefs(run: Run) -> Iterator[Brief]:
    plan = run.plan
    volume = (brief for task in plan.shards() for _, brief in plan.shard(*task))
    with Index(plan, run.folder(3)) as index:
        copies = [brief for brief, _ in run.duplicates(index)]
    yield from chain(plan.core, volume, copies, plan.misc)


def _facts(briefs: list[Brief]) -> list[dict]:
    """Return every fact once, with the documents that state it."""
    found: dict[str, dict] = {}
    for brief in briefs:
        for fact in brief.facts:
            row = found.setdefault(fact.fact_id, asdict(fact) | {"sources": []})
            row["sources"].append(brief.doc_id)
    return [found[key] for key in sorted(found)]


def _cases(briefs: list[Brief]) -> Iterator[dict]:
    """Yield the troubles that documents tell of, with cause and remedy, as they were planned."""
    for brief in briefs:
        if not (brief.subject and brief.topic):
            continue
        about = {"subject": brief.subject.phrase(brief.scope), "topic": brief.topic.key}
        case: dict[str, str] = {}
        for point in [*brief.points, Point("problem", "")]:
            if point.role == "problem":
                if {"cause", "fix"} <= set(case):
                    yield {**about, **case}
                case = {"doc_id": brief.doc_id, "problem": point.text}
            elif point.role in ("cause", "fix"):
                case.setdefault(point.role, point.text)


def _statistics(run: Run, lengths: dict[str, list], asked: list[dict]) -> dict:
    sources, kinds = {}, {}
    for source, parts in lengths.items():
        sizes = np.concatenate([*parts, np.zeros(0, int)])
        sources[source] = {"documents": len(sizes), "mean": None, "median": None, "p95": None}
        if len(sizes):
            mean, p95 = round(float(sizes.mean()), 1), round(float(np.percentile(sizes, 95)), 1)
            sources[source] |= {"mean": mean, "median": float(np.median(sizes)), "p95": p95}
    for kind in TYPES:
        rows = [q for q in asked if q["question_type"] == kind]
        gold = [len(q["expected_doc_ids"]) for q in rows if q["expected_doc_ids"]]
        sources_of = {s: sum(s in q["source_types"] for q in rows) for s in SOURCES}
        kinds[kind] = {"questions": len(rows), "gold_sources": sources_of, "gold_documents": None}
        if gold:
            mean, median = round(float(np.mean(gold)), 2), float(np.median(gold))
            spread = {"mean": mean, "median": median, "min": min(gold), "max": max(gold)}
            kinds[kind]["gold_documents"] = spread
    return {
        "settings": asdict(run.settings),
        "plan": run.plan.summary(),
        "sources": sources,
        "questions": kinds,
        "stages": {name: read_json(run.done(name)) for name in list(STAGES)[:5]},
    }


STAGES: dict[str, Callable[[Run], dict]] = {
    "1-scaffolding": scaffolding,
    "2-core": core,
    "3-volume": volume,
    "4-noise": misfile,
    "5-questions": questions,
    "6-export": export,
}


@lru_cache(maxsize=1)
def _run(out: Path, settings: Settings) -> Run:
    """Return the run of a process of its own, kept for the next task."""
    return Run(out, settings)


def _apart(function, out: Path, settings: Settings, task):
    return function(_run(out, settings), task)


def _placed(document: dict, folder: str | None) -> dict:
    if folder is None:
        return document
    return {**document, "path": f"{folder}/{document['path'].rpartition('/')[2]}"}


def _renamed(rows: list[dict], names: str) -> list[dict]:
    pairs = [(new, old or new) for new, _, old in (n.partition("=") for n in names.split())]
    return [{new: row[old] for new, old in pairs} for row in rows]


def _json(path: Path, value) -> None:
    write_text(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def _jsonl(path: Path, rows) -> None:
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
