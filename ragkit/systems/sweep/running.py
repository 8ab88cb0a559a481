"""Run systems on questions: rank, then read; the store keeps every list and every answer."""

from __future__ import annotations

import fcntl
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from ragkit import checks, datasets, display, models, paths, schema
from ragkit.errors import ModelError, RagkitError, UsageError
from ragkit.store import Store, canonical, digest
from ragkit.systems.readers.base import Document, Library
from ragkit.systems.retrieval.frames import ranked_lists
from ragkit.systems.sweep.result import Sweep, assembled
from ragkit.systems.sweep.systems import System, build, build_reader, load

READ = 16  # questions that are read by one task
BATCH = 1000  # cells that are computed, and then kept, together
MEMORY = ":memory:"  # a store that keeps nothing
MODEL = '"openai:'  # begins the name of a language model in settings
SYSTEMS = paths.NOTEBOOKS / "systems.toml"
DOCUMENTS = 160  # of the sample: encoding all of its texts takes minutes
K = 100  # on the sample: in long lists, few reciprocal ranks are 0


class Task(NamedTuple):
    """Items for one process: `prepare()` returns the function, `kept` the options of `Store.map`.

    `cells` names, for each item, the cells that it is computed for: (system, text).
    """

    prepare: Callable[[], Callable[[list], list]]
    items: list
    cells: list[list[tuple[str, str]]]
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

    The store keeps ranked lists and answers, the cache folder indexes: a run that was stopped
    continues when it is started again, and after a change of code, settings, documents or questions
    computes only what the change concerns. The answers of language models are kept in their ledger.

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
    UsageError, DataError
        If there is no system, two have the same name, an option is out of range, a frame is not
        valid, documents lack a column that a system is to index, or a gold document is not among
        them.
    ModelError
        If weights of a system are missing: nothing has been computed then.
    """
    systems = _check(systems, documents, questions, jobs, k)
    if missing := _missing_weights(systems):
        said = "; ".join(dict.fromkeys(error.message for error in missing.values()))
        hints = dict.fromkeys(error.hint for error in missing.values() if error.hint)
        names = ", ".join(map(repr, missing))
        raise ModelError(f"{len(missing)} systems cannot run ({names}): {said}", "; ".join(hints))
    with tempfile.TemporaryDirectory(prefix="ragkit-sweep-") as folder:
        place = Path(folder) / "documents.pickle"
        documents.to_pickle(place)
        lists = _compute("rank", _ranking(systems, documents, questions, store, k, place), jobs)
    answers = _compute("read", _reading(systems, documents, questions, lists, store), jobs)
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
    to_rank = {}
    for task in _ranking(systems, documents, questions, store, k, Path()):
        to_rank |= dict.fromkeys((name for name, _ in task.cells[0]), _missing(task))
    weights, cells = _missing_weights(systems), questions["text"].nunique()
    rows = [
        {
            "system": system.name,
            "retriever": system.retriever["kind"],
            "rerank": system.rerank["reranker"] if system.rerank else "",
            "reader": system.reader["kind"] if system.reader else "",
            "cells": cells,
            "kept": cells - to_rank[system.name],
            "to_rank": to_rank[system.name],
            "missing": weights[system.name].hint if system.name in weights else "",
        }
        for system in systems
    ]
    return pd.DataFrame(rows)


def free(systems: Iterable[System]) -> tuple[list[System], list[str]]:
    """Return the systems that ask no endpoint and whose weights are here, and the others' names."""
    systems = list(systems)
    missing = _missing_weights(system for system in systems if not system.paid)
    able = [one for one in systems if not one.paid and one.name not in missing]
    return able, [one.name for one in systems if one not in able]


def sample_systems() -> list[System]:
    """Return the retrievers of `notebooks/systems.toml` whose weights come with the installation.

    Of systems with the same ranking the first is returned, without its reader, so that the list
    is the same on every machine and no two systems always have the same score.

    >>> [one.name for one in sample_systems()][:2]
    ['bm25', 'bm25-flashrag']
    """
    installed = {card.name for card in models.cards().values() if card.package}
    distinct: dict[str, System] = {}
    for system in load(SYSTEMS):
        if system.models <= installed:
            distinct.setdefault(canonical(system.ranking), replace(system, reader=None))
    return list(distinct.values())


def sample_scores() -> pd.DataFrame:
    """Return reciprocal ranks of `sample_systems` on the sample's LiveRAG questions: a `scores` frame.

    The corpus is a part of the embedded sample: the gold documents, and as many others of the
    company and its help centre as make 160.
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
    return result.scores("RR").drop(columns="metric")


# -- tasks -------------------------------------------------------------------------------------


def _ranking(systems, documents, questions, store, k, place) -> list[Task]:
    """Return a task for each different ranking."""
    known, tasks = digest(documents[sorted(documents)].astype(str)), {}
    texts = list(dict.fromkeys(questions["text"]))
    for system in sorted(systems, key=lambda system: system.rerank is None):  # the slowest first
        depth = max(k, system.top if system.reader else 1)
        depth = system.rerank["depth"] if system.rerank else depth
        given = {**system.ranking, "depth": depth, "documents": known}
        name, code = canonical(given), (*system.modules, "ragkit.systems.retrieval.frames")
        if name not in tasks:
            kept = {"step": "rank", "code": code, "given": given}
            ranker = partial(_ranker, system, place, depth)
            path = MEMORY if MODEL in name else store
            tasks[name] = Task(ranker, texts, [[] for _ in texts], path, kept)
        for cells, text in zip(tasks[name].cells, texts, strict=True):
            cells.append((system.name, text))
    return list(tasks.values())


def _ranker(system: System, documents: Path, depth: int) -> Callable[[list], list]:
    return partial(ranked_lists, build(system).fit(pd.read_pickle(documents)), k=depth)


def _reading(systems, documents, questions, lists, store) -> list[Task]:
    """Return tasks of some questions each, reader by reader."""
    library, tasks = Library(documents), []
    texts = list(dict.fromkeys(questions["text"]))
    for name, reader in {canonical(s.reader): s.reader for s in systems if s.reader}.items():
        # A model is asked at once; its own ledger keeps the answers.
        size, path = (len(texts), MEMORY) if MODEL in name else (READ, store)
        code = (type(build_reader(reader)).__module__,)
        own = [system for system in systems if system.reader == reader]
        for start in range(0, len(texts), size):
            items, cells = [], []
            for text, system in product(texts[start : start + size], own):
                if not isinstance(ranked := lists[system.name, text], Exception):
                    shown = [doc_id for doc_id, _ in ranked[: system.top]]
                    items.append((text, library.take(shown)))
                    cells.append([(system.name, text)])
            kept = {"step": "read", "code": code, "given": reader}
            tasks.append(Task(partial(_answerer, reader), items, cells, path, kept))
    return tasks


def _answerer(spec) -> Callable[[list], list]:
    reader = build_reader(spec)

    def answers(items: list[tuple[str, list[Document]]]) -> list:
        return [
            ModelError(reading.failure)
            if reading.answer is None
            else [reading.answer, reading.abstained]
            for reading in reader.read(items)
        ]

    return answers


def _compute(step: str, tasks: list[Task], jobs: int) -> dict[tuple[str, str], Any]:
    """Return the result of each cell: kept, or computed by the processes, or an error."""
    from joblib import Parallel, delayed

    jobs, found = jobs if any(map(_missing, tasks)) else 1, {}
    calls = Parallel(n_jobs=jobs, return_as="generator")(map(delayed(_finish), tasks))
    with warnings.catch_warnings():  # it starts another one
        warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
        for task, values in zip(tasks, display.progress(calls, step, len(tasks)), strict=True):
            for cells, value in zip(task.cells, values, strict=True):
                found |= dict.fromkeys(cells, value)
    return found


def _missing(task: Task) -> int:
    with Store(task.path) as store:
        return store.missing(task.items, **task.kept)


def _finish(task: Task) -> list:
    """Return the results of a task; an error that a user can act on is each item's result."""
    from threadpoolctl import threadpool_limits

    prepare = cache(task.prepare)
    try:
        with threadpool_limits(limits=1), Store(task.path) as store:
            return store.map(lambda its: prepare()(its), task.items, batch=BATCH, **task.kept)
    except RagkitError as error:
        return [error] * len(task.items)


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
    for system in systems:
        for field in system.fields:
            if field not in documents:
                words = f"system {system.name!r}: documents lack the column {field!r}"
                raise UsageError(words, f"found {', '.join(map(str, documents))}")
    checks.whole(jobs, "jobs")
    checks.whole(k, "k")
    return systems


def _missing_weights(systems: Iterable[System]) -> dict[str, ModelError]:
    """Return the errors of the systems whose weights are missing."""
    missing = {}
    for system in systems:
        try:
            build(system)
            if system.reader:
                build_reader(system.reader)
        except ModelError as error:
            missing[system.name] = error
    return missing
