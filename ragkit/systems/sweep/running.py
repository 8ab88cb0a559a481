"""Run systems on questions: rank, then read; the store keeps every list and every answer."""

from __future__ import annotations

import fcntl
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ragkit import checks, datasets, models, paths, schema
from ragkit.errors import ModelError, RagkitError, UsageError
from ragkit.store import Store, canonical, digest
from ragkit.systems.readers.base import Document, Library
from ragkit.systems.sweep.result import Failed, Sweep, assembled
from ragkit.systems.sweep.steps import ranked_lists
from ragkit.systems.sweep.systems import System, build, build_reader, load

RANK, READ = 1000, 16  # questions that are ranked, or read, and then kept together
MEMORY = ":memory:"  # a store that keeps nothing
MODEL = '"openai:'  # begins the name of a language model in settings
SYSTEMS = paths.NOTEBOOKS / "systems.toml"
DOCUMENTS = 300  # of the sample: encoding all of it takes minutes for each encoder
K = 100  # on the sample: in long lists, few reciprocal ranks are 0


class Task(NamedTuple):
    """Items for one process: `prepare()` returns the function, `kept` the options of `Store.map`."""

    prepare: Callable[[], Callable[[list], list]]
    items: list
    path: str | Path | None
    kept: dict[str, Any]


def run(
    systems: Iterable[System],
    documents: pd.DataFrame,
    questions: pd.DataFrame,
    *,
    store: str | Path | None = None,
    jobs: int = 1,
    k: int = 10,
) -> Sweep:
    """Run every system on every question.

    The store keeps ranked lists and answers: a run that was stopped continues when it is started
    again, and after a change of code, settings, documents or questions computes only what the
    change concerns. The answers of language models are kept in their ledger instead.

    Parameters
    ----------
    systems : iterable of System
        See `load`.
    documents, questions : DataFrame
        See `ragkit.schema`.
    store : path-like, optional
        The file of `ragkit.store.Store`; default: that of the cache folder.
    jobs : int
        Processes of joblib, or of the backend that `joblib.parallel_config` has set; each computes
        with one thread. On other machines they need the folder of `store` as well.
    k : int
        Length of the ranked lists in `runs`. A reader sees its `top` documents whatever k is; of
        a reranked list, no more than were reranked.

    Returns
    -------
    Sweep
        Its `failures` could not be computed, for example because a server did not answer; they
        are tried again next time.

    Raises
    ------
    UsageError
        If there is no system, two have the same name, or an option is out of range.
    DataError
        If a frame is not valid, a gold document is not among the documents, or `store` is another
        kind of file.
    ModelError
        If weights of a system are missing: nothing has been computed then.
    """
    systems = _check(systems, documents, questions, jobs, k)
    if missing := _missing_weights(systems):
        said = "; ".join(dict.fromkeys(error.message for error in missing.values()))
        hints = dict.fromkeys(error.hint for error in missing.values() if error.hint)
        names = ", ".join(map(repr, missing))
        raise ModelError(f"{len(missing)} systems cannot run ({names}): {said}", "; ".join(hints))
    texts = list(dict.fromkeys(questions["text"]))
    with tempfile.TemporaryDirectory(prefix="ragkit-sweep-") as folder:
        place = Path(folder) / "documents.pickle"
        documents.to_pickle(place)
        names, tasks = _ranking(systems, documents, texts, store, k, place)
        ranked = _compute("rank", tasks, jobs)
    lists = {
        (system.name, text): found
        for system in systems
        for text, found in zip(texts, ranked[names[system.name]], strict=True)
    }
    cells, tasks = _reading(systems, documents, texts, lists, store)
    read = _compute("read", tasks, jobs)
    answers = {
        cell: found for name in tasks for cell, found in zip(cells[name], read[name], strict=True)
    }
    return assembled(systems, questions, lists, answers, k)


def plan(
    systems: Iterable[System],
    documents: pd.DataFrame,
    questions: pd.DataFrame,
    *,
    store: str | Path | None = None,
    k: int = 10,
) -> pd.DataFrame:
    """Return what `run` would compute, without computing it; parameters are those of `run`.

    Returns
    -------
    DataFrame
        One row per system: system, retriever, rerank, reader, cells, kept (ranked lists in the
        store), to_rank, and missing: the command that fetches missing weights.
    """
    systems = _check(systems, documents, questions, 1, k)
    texts = list(dict.fromkeys(questions["text"]))
    names, tasks = _ranking(systems, documents, texts, store, k, Path())
    weights, rows = _missing_weights(systems), []
    for system in systems:
        to_rank = _missing(tasks[names[system.name]])
        rerank = system.rerank["reranker"] if system.rerank else ""
        reader = system.reader["kind"] if system.reader else ""
        counts = (len(texts), len(texts) - to_rank, to_rank)
        hint = weights[system.name].hint if system.name in weights else ""
        rows.append((system.name, system.retriever["kind"], rerank, reader, *counts, hint))
    columns = "system retriever rerank reader cells kept to_rank missing".split()
    return pd.DataFrame(rows, columns=columns)


def sample_systems() -> list[System]:
    """Return the retrievers of `notebooks/systems.toml` whose weights come with the installation.

    Of systems with the same ranking the first is returned, without its reader, so that the list
    is the same on every machine and no two systems always have the same score.
    """
    installed = {card.name for card in models.cards().values() if card.package}
    distinct: dict[str, System] = {}
    for system in load(SYSTEMS):
        if system.models <= installed:
            distinct.setdefault(canonical(system.ranking), replace(system, reader=None))
    return list(distinct.values())


def sample_scores(metric: str = "RR") -> pd.DataFrame:
    """Return the scores of `sample_systems` on the sample's LiveRAG questions: a `scores` frame.

    `metric` is a measure of ranked lists. The corpus is a part of the embedded sample: the gold
    documents, and as many others of the company and its help centre as make 300.
    """
    names = ("liverag", "enterpriserag_bench", "wixqa")
    sets = {name: datasets.load(name, profile="sample") for name in names}
    columns = list(schema.COLUMNS["documents"])
    documents = pd.concat([sets[name].documents[columns] for name in names], ignore_index=True)
    documents = documents.drop_duplicates("doc_id", ignore_index=True)
    whole = replace(sets["liverag"], frames=sets["liverag"].frames | {"documents": documents})
    part = whole.part(DOCUMENTS)
    paths.cache_dir().mkdir(parents=True, exist_ok=True)
    with open(paths.cache_dir() / "sample-scores.lock", "w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)  # another process may compute the same
        result = run(sample_systems(), part.documents, part.questions, k=K)
    if len(result.failures):
        first = result.failures.iloc[0]
        raise ModelError(f"the sample's system {first['system']!r} failed: {first['reason']}")
    return result.scores(metric).drop(columns="metric")


# -- tasks -------------------------------------------------------------------------------------


def _ranking(systems, documents, texts, store, k, place) -> tuple[dict[str, str], dict[str, Task]]:
    """Return each system's task by name, and the tasks: one for each different ranking."""
    known = digest(documents[sorted(documents)].astype(str))
    names, tasks = {}, {}
    for system in sorted(systems, key=lambda system: system.rerank is None):  # the slowest first
        depth = max(k, system.top if system.reader else 1)
        depth = system.rerank["depth"] if system.rerank else depth
        given = {**system.ranking, "depth": depth, "documents": known}
        code = (*system.modules, "ragkit.systems.sweep.steps")
        kept = {"step": "rank", "code": code, "given": given, "batch": RANK}
        names[system.name] = name = canonical(given)
        path = MEMORY if MODEL in name else store
        tasks[name] = Task(partial(_ranker, system, place, depth), texts, path, kept)
    return names, tasks


def _ranker(system: System, documents: Path, depth: int) -> Callable[[list], list]:
    return partial(ranked_lists, build(system).fit(pd.read_pickle(documents)), k=depth)


def _reading(systems, documents, texts, lists, store) -> tuple[dict[str, list], dict[str, Task]]:
    """Return the cells of each task in the order of its items, and the tasks, reader by reader."""
    library = Library(documents)
    cells, tasks = {}, {}
    for name, reader in {canonical(s.reader): s.reader for s in systems if s.reader}.items():
        # A model is asked at once; its own ledger keeps the answers.
        size, path = (len(texts), MEMORY) if MODEL in name else (READ, store)
        code = (type(build_reader(reader)).__module__,)
        for start in range(0, len(texts), size):
            part = [
                (system, text)
                for text in texts[start : start + size]
                for system in systems
                if system.reader == reader and not isinstance(lists[system.name, text], Failed)
            ]
            shown = [[doc_id for doc_id, _ in lists[s.name, text][: s.top]] for s, text in part]
            items = [(text, library.take(ids)) for (_, text), ids in zip(part, shown, strict=True)]
            kept = {"step": "read", "code": code, "given": reader, "batch": max(1, len(items))}
            cells[f"{start} {name}"] = [(system.name, text) for system, text in part]
            tasks[f"{start} {name}"] = Task(partial(_answerer, reader), items, path, kept)
    return cells, tasks


def _answerer(spec) -> Callable[[list], list]:
    reader = build_reader(spec)

    def answers(items: list[tuple[str, list[Document]]]) -> list:
        return [
            Failed("read", reading.failure)
            if reading.answer is None
            else [reading.answer, reading.abstained]
            for reading in reader.read(items)
        ]

    return answers


def _compute(step: str, tasks: dict[str, Task], jobs: int) -> dict:
    """Return the results of each task: kept, or computed by the processes."""
    from joblib import Parallel, delayed
    from tqdm.auto import tqdm

    jobs = jobs if any(map(_missing, tasks.values())) else 1
    calls = Parallel(n_jobs=jobs, return_as="generator")(map(delayed(_finish), tasks.values()))
    return dict(zip(tasks, tqdm(calls, step, len(tasks), unit="task", disable=None), strict=True))


def _missing(task: Task) -> int:
    kept = {name: value for name, value in task.kept.items() if name != "batch"}
    with Store(task.path) as store:
        return store.missing(task.items, **kept)


def _finish(task: Task) -> list:
    """Return the results of a task; an error that a user can act on is each item's result."""
    from threadpoolctl import threadpool_limits

    prepare, failures = cache(task.prepare), {}

    def compute(items: list) -> list:
        values = prepare()(items)
        for item, value in zip(items, values, strict=True):
            if isinstance(value, Failed):
                failures[canonical(item)] = value
        return [None if isinstance(value, Failed) else value for value in values]

    try:
        with threadpool_limits(limits=1), Store(task.path) as store:
            values = store.map(compute, task.items, **task.kept)
    except RagkitError as error:
        return [Failed(task.kept["step"], " ".join(str(error).split()))] * len(task.items)
    return [
        failures[canonical(item)] if value is None else value
        for item, value in zip(task.items, values, strict=True)
    ]


def _check(systems, documents, questions, jobs, k) -> list[System]:
    systems = list(systems)
    if not systems:
        raise UsageError("there is no system to run", "declare at least one")
    name, most = Counter(system.name for system in systems).most_common(1)[0]
    if most > 1:
        raise UsageError(f"two systems are called {name!r}")
    schema.check(documents, "documents", "documents")
    schema.check(questions, "questions", "questions")
    if documents.empty or questions.empty:
        raise UsageError(f"there are no {'documents' if documents.empty else 'questions'}")
    schema.check_gold(questions, documents)
    checks.whole(jobs, "jobs")
    checks.whole(k, "k")
    return systems


def _missing_weights(systems: Iterable[System]) -> dict[str, ModelError]:
    """Return the errors of the systems whose weights are not there."""
    missing = {}
    for system in systems:
        try:
            build(system)
            if system.reader:
                build_reader(system.reader)
        except ModelError as error:
            missing[system.name] = error
    return missing
