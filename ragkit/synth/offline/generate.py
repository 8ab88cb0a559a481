"""From a seed to a benchmark on disk, by the offline author.

    enterpriserag_bench/ the benchmark's own layout: SOURCE_slice_N.zip, questions.jsonl ...
    shards/              the lengths of a slice's documents; a slice with its lengths is complete
    records/             what was planted: moves.jsonl, near_duplicates.jsonl, notes.jsonl

Documents are written by shards, the slices of the benchmark, and a complete shard is not written
again. The rest takes seconds and is written anew. All files are the same for the same settings,
wherever and however often a run was interrupted; `statistics.json` comes last.
"""

from __future__ import annotations

import errno
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cached_property, lru_cache, partial
from pathlib import Path

import numpy as np

from ragkit import checks, store
from ragkit.datasets import reported
from ragkit.errors import RagkitError
from ragkit.files import atomic_path, read_archive, read_json
from ragkit.synth.layout import SOURCES, tables
from ragkit.synth.noise import Tree, moves
from ragkit.synth.offline.documents import Brief
from ragkit.synth.offline.plan import REFUSED, Plan, Settings
from ragkit.synth.offline.questions import Asker
from ragkit.synth.stamp import begin, finish, once
from ragkit.synth.streams import Stream

SHARD = 5000  # documents in a slice
SMALL = 20_000  # up to so many documents there are documents.jsonl and facts.jsonl, too
GENERATOR = "ragkit.synth.offline.generate"


def version() -> str:
    """Return a digest of the generator: its code, packs and forms, and the numbers that it reads."""
    return store.digest([store.code_digest(GENERATOR), store.digest(reported.load())])[:12]


def generate(
    out: str | Path,
    *,
    documents: int,
    seed: int,
    questions: int | None = None,
    metadata_questions: int | None = None,
    types: tuple[str, ...] | None = None,
    jobs: int = 1,
    progress: Callable[[str, int, int], None] | None = None,
) -> dict:
    """Make a company's documents and questions in `out`; return the statistics.

    Parameters
    ----------
    out : path-like
        A new or empty folder, or one that the same settings have begun: the run continues there.
    documents, seed, questions, metadata_questions, types
        See `Settings`.
    jobs : int, default=1
        Processes that write documents. The result, what `statistics.json` holds, does not depend on it.
    progress : callable, optional
        Called with stage, steps done and steps in all.

    Raises
    ------
    UsageError
        If the counts are impossible, a question type is refused, or the folder holds other files.
    RagkitError
        If the disk does not take a file; complete shards are kept.
    """
    checks.whole(jobs, "jobs")
    settings = Settings(documents, seed, questions, metadata_questions, types)
    run = Run(Path(out), settings)
    begin(run.out, asdict(settings) | {"types": list(settings.types), "version": version()})
    try:
        if not (run.out / "statistics.json").exists():
            run.make(jobs, progress or (lambda stage, done, total: None))
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        kept = len(list((run.out / "shards").glob("*.npy")))
        raise RagkitError(
            f"{error.filename or out}: {error.strerror}; {kept} complete shards are kept in {out}",
            "make room and run the same command again",
        ) from None
    return read_json(run.out / "statistics.json")


class Run:
    """One run in one folder."""

    def __init__(self, out: Path, settings: Settings):
        self.out, self.settings, self.plan = out, settings, Plan(settings)

    def make(self, jobs: int, progress: Callable[[str, int, int], None]) -> None:
        """Write everything that is not there."""
        shards = self.plan.shards(SHARD)
        todo = [shard for shard in shards if not self.lengths(*shard).exists()]
        for done, _ in enumerate(self._map(todo, jobs), 1 + len(shards) - len(todo)):
            progress("documents", done, len(shards))
        progress("questions", 0, 1)
        asker = Asker(self.plan)
        asked, extra = asker.questions(), asker.metadata()
        progress("records", 0, 1)
        documents, facts = self._small()
        files = tables(asked, extra, documents) | facts | self._records([*asked, *extra])
        finish(self.out, files, self._statistics(asker))
        progress("records", 1, 1)

    def lengths(self, source: str, k: int) -> Path:
        return self.out / "shards" / f"{source}-{k + 1:04d}.npy"

    def _map(self, shards: list[tuple[str, int]], jobs: int) -> Iterator:
        """Write shards here or in processes."""
        if jobs == 1 or len(shards) < 2:
            return (self.write_shard(*shard) for shard in shards)
        from joblib import Parallel, delayed

        # Joblib's processes do not run the caller's script again, as spawned ones do: this works
        # from a notebook and from a script without a guard.
        calls = (delayed(_apart)(self.out, self.settings, *shard) for shard in shards)
        return Parallel(min(jobs, len(shards)), return_as="generator_unordered")(calls)

    def briefs(self, source: str, start: int = 0, stop: int | None = None) -> Iterator[Brief]:
        """Yield the briefs of a source in their final places."""
        first, moved = len(self.plan.special[source]), self.moves[source]
        for at in range(start, min(stop or self.plan.counts[source], self.plan.counts[source])):
            brief = self.plan.entry(source, at)
            if at - first in moved:
                brief.folder = moved[at - first][1]
            yield brief

    @cached_property
    def moves(self) -> dict[str, dict[int, tuple[str, str]]]:
        """What is misfiled in each source: numbers of volume documents, kinds and new folders."""
        found: dict[str, dict[int, tuple[str, str]]] = {}
        for source in SOURCES:
            members: dict[str, list[int]] = {}
            for leaf in self.plan.leaves[source]:
                for k in range(leaf.count):
                    members.setdefault(leaf.place(k)[0], []).append(leaf.start + k)
            stream = Stream(self.settings.seed, "moves", source)
            found[source] = moves(stream, Tree(members), self.plan.counts[source])
        return found

    def write_shard(self, source: str, k: int) -> None:
        """Write one slice, then the lengths of its documents in characters.

        Entries are stored, not compressed: compressed bytes depend on the library's version.
        """
        sizes = []
        target = self.out / "enterpriserag_bench" / f"{source}_slice_{k + 1}.zip"
        with atomic_path(target) as path, zipfile.ZipFile(path, "w") as archive:
            for brief in self.briefs(source, k * SHARD, (k + 1) * SHARD):
                document = self.plan.author.write(brief)
                text = f"{document['title']}\n\n{document['content']}"
                sizes.append(len(text))
                name = f"{brief.folder}/{document['doc_id']}__{brief.stem}.txt"
                info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                info.create_system = 3
                archive.writestr(info, text.encode())
        with atomic_path(self.lengths(source, k)) as path, open(path, "wb") as file:
            np.save(file, np.array(sizes, np.int64))

    def _records(self, asked: list[dict]) -> dict[str, list[dict]]:
        """Return what was planted."""
        plan, names = self.plan, ("question_id", "pattern", "distractor_doc_ids")
        named, pairs = plan.author.document_id, []
        for later, old, new, original in map(plan.update, range(plan.numbers["update"])):
            pair = {"original": named(original), "duplicate": named(later)}
            pair |= {"subject": new.subject, "attribute": new.attribute, "key": new.key}
            pair |= {"old": old.value, "new": new.value, "old_day": old.time, "new_day": new.time}
            pairs.append(pair)
        moved = [
            {"doc_id": named(plan.brief(source, number)), "kind": kind, "folder": folder}
            for source in SOURCES
            for number, (kind, folder) in sorted(self.moves[source].items())
        ]
        notes = [{name: row[name] for name in names} for row in asked]
        return {"records/notes": notes, "records/near_duplicates": pairs, "records/moves": moved}

    def _small(self) -> tuple[list[dict], dict[str, list[dict]]]:
        """Return all documents and a table of all facts, if they are few."""
        if self.settings.documents > SMALL:
            return [], {}
        briefs = [brief for source in SOURCES for brief in self.briefs(source)]
        written = [self.plan.author.write(brief, metadata=True) for brief in briefs]
        facts: dict[str, dict] = {}
        for brief, document in zip(briefs, written, strict=True):
            for fact in brief.facts:
                row = facts.setdefault(fact.fact_id, asdict(fact) | {"sources": []})
                row["sources"].append(document["doc_id"])
        return written, {"facts": [facts[key] for key in sorted(facts)]}

    def _statistics(self, asker: Asker) -> dict:
        sizes: dict[str, list] = {}
        for source, k in self.plan.shards(SHARD):
            sizes.setdefault(source, []).append(np.load(self.lengths(source, k)))
        medians = {name: float(np.median(np.concatenate(own))) for name, own in sizes.items()}
        return {
            "settings": asdict(self.settings),
            "plan": self.plan.summary(),
            "median_characters": medians,
            "refused": REFUSED,
            "rejected": dict(sorted(asker.rejected.items())),
        }


def cached_company(
    documents: int,
    *,
    seed: int = 0,
    questions: int | None = None,
    metadata_questions: int | None = None,
    jobs: int = 2,
) -> Path:
    """Return the folder of a generated company; generate it if it is not in the cache folder.

    The parameters are those of `generate`. The folder's name has the settings and a digest of what
    the result depends on: the generator's code, its packs, and the printed numbers that it reads
    (see `ragkit.store`). An interrupted run continues. If two processes ask for the same company,
    one waits for the other. 512,000 documents take 0.8 GB.

    >>> folder = cached_company(500, questions=10)
    >>> next(stream(folder)).keys()
    dict_keys(['doc_id', 'title', 'path', 'source_type', 'content'])
    """
    settings = Settings(documents, seed, questions, metadata_questions)
    counts = {"questions": settings.questions, "metadata_questions": settings.metadata_questions}
    name = "-".join(map(str, ("erb", documents, *counts.values(), seed, version())))
    options = counts | {"documents": documents, "seed": seed, "jobs": jobs}
    return once(name, partial(generate, **options))


def stream(folder: str | Path) -> Iterator[dict]:
    """Yield the documents of a folder that `cached_company` made, in the order of its slices.

    Each is a dict with doc_id, source_type, path, title and content.
    """
    bench = Path(folder) / "enterpriserag_bench"
    for source in SOURCES:
        for k in range(1, 1 + len(list(bench.glob(f"{source}_slice_*.zip")))):
            for name, row in read_archive(bench / f"{source}_slice_{k}.zip"):
                row["source_type"], row["content"] = row.pop("source"), row.pop("text")
                yield row | {"path": name}


_run = lru_cache(maxsize=1)(Run)  # of a process of its own, kept for the next shard


def _apart(out: Path, settings: Settings, source: str, k: int) -> None:
    _run(out, settings).write_shard(source, k)
