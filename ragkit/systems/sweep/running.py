"""Run systems on questions: rank, then read; the store keeps every list and every answer."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragkit import checks, schema
from ragkit.errors import ModelError, RagkitError, UsageError
from ragkit.store import Store, canonical, digest
from ragkit.systems.readers.base import Document, Library
from ragkit.systems.sweep.result import Failed, Sweep
from ragkit.systems.sweep.steps import ranked_lists
from ragkit.systems.sweep.systems import System, build, build_reader

if TYPE_CHECKING:
    import pandas as pd

RANK, READ = 1000, 16  # questions that are ranked, or read, and then kept together
MEMORY = ":memory:"  # a store that keeps nothing


class Task(NamedTuple):
    """The items of one step for one process.

    `prepare()` returns the function that `Store.map` applies to items; `kept` are its options.
    """

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

    A ranked list is kept by the retriever's settings and code, the documents and the question; an
    answer by the reader's settings and code, the documents shown and the question. A run that was
    stopped continues when it is started again, and after a change computes only what the change
    concerns. The answers of language models are kept in their ledger instead.

    Parameters
    ----------
    systems : iterable of System
        See `load`.
    documents, questions : DataFrame
        See `ragkit.schema`.
    store : path-like, optional
        The file of `ragkit.store.Store`; default: that of the cache folder. ":memory:" keeps
        nothing. Any number of runs may share a file.
    jobs : int
        Processes of joblib, or of the backend that `joblib.parallel_config` has set; each computes
        with one thread. On other machines they need the folder of `store` as well.
    k : int
        Length of the ranked lists in `runs`. A reader sees its `top` documents whatever k is; of
        a reranked list, no more than were reranked.

    Returns
    -------
    Sweep
        Its `failures` are the cells that could not be computed, for example because a server did
        not answer; they are tried again next time.

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
    with _shared(documents, jobs) as place:
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
    return Sweep.assemble(systems, questions, lists, answers, k)


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
        store), to_rank, and missing: the command that fetches missing weights. Answers depend on
        the lists and are not counted.
    """
    import pandas as pd

    systems = _check(systems, documents, questions, 1, k)
    texts = list(dict.fromkeys(questions["text"]))
    names, tasks = _ranking(systems, documents, texts, store, k, documents)
    weights, rows = _missing_weights(systems), []
    for system in systems:
        to_rank = _missing(tasks[names[system.name]])
        row = {
            "system": system.name,
            "retriever": system.retriever["kind"],
            "rerank": system.rerank["reranker"] if system.rerank else "",
            "reader": system.reader["kind"] if system.reader else "",
            **{"cells": len(texts), "kept": len(texts) - to_rank, "to_rank": to_rank},
            "missing": weights[system.name].hint if system.name in weights else "",
        }
        rows.append(row)
    return pd.DataFrame(rows)


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
        path = MEMORY if _asks_a_model(given) else store
        names[system.name] = name = canonical(given)
        tasks[name] = Task(partial(_ranker, system, place, depth), texts, path, kept)
    return names, tasks


def _ranker(system: System, place: pd.DataFrame | Path, depth: int) -> Callable[[list], list]:
    import pandas as pd

    documents = pd.read_pickle(place) if isinstance(place, Path) else place
    return partial(ranked_lists, build(system).fit(documents), k=depth)


def _reading(systems, documents, texts, lists, store) -> tuple[dict[str, list], dict[str, Task]]:
    """Return the cells of each task in the order of its items, and the tasks, reader by reader."""
    library = Library(documents)
    cells, tasks = {}, {}
    for name, reader in {canonical(s.reader): s.reader for s in systems if s.reader}.items():
        asks = _asks_a_model(reader)  # at once; its own ledger keeps the answers
        size, path = (len(texts), MEMORY) if asks else (READ, store)
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

    waiting = {name: task for name, task in tasks.items() if _missing(task)}
    results = {name: _finish(task) for name, task in tasks.items() if name not in waiting}
    parallel = Parallel(n_jobs=jobs if waiting else 1, return_as="generator")
    total = sum(len(task.items) for task in waiting.values())
    with tqdm(total=total, desc=step, unit="cell", disable=None) as bar:
        calls = parallel(delayed(_finish)(task) for task in waiting.values())
        for name, values in zip(waiting, calls, strict=True):
            results[name] = values
            bar.update(len(values))
    return results


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


def _asks_a_model(settings: Any) -> bool:
    return '"openai:' in canonical(settings)


@contextmanager
def _shared(documents: pd.DataFrame, jobs: int):
    """Yield documents for tasks: the frame, or the path of a file for other processes."""
    if jobs == 1:
        yield documents
        return
    with tempfile.TemporaryDirectory(prefix="ragkit-sweep-") as folder:
        path = Path(folder) / "documents.pickle"
        documents.to_pickle(path)
        yield path


# -- before anything is computed -------------------------------------------------------------------


def _check(systems, documents, questions, jobs, k) -> list[System]:
    """Return the systems if they, the frames and the options are valid."""
    systems = list(systems)
    names = [system.name for system in systems]
    if not systems:
        raise UsageError("there is no system to run", "declare at least one")
    for name in names:
        if names.count(name) > 1:
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
