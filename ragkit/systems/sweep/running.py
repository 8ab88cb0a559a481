"""Systems x questions, each cell computed once: rank, rerank, read."""

from __future__ import annotations

import json
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragkit import schema
from ragkit.errors import RagkitError, UsageError
from ragkit.systems.readers.base import Library
from ragkit.systems.sweep.cells import FILE, Cells, code, corpus_digest, key
from ragkit.systems.sweep.result import Failed, Sweep
from ragkit.systems.sweep.systems import System, build, build_reader, build_rerank, canonical, check

if TYPE_CHECKING:
    import pandas as pd

# The most cells in one task: what is lost, times the jobs, when a run is killed.
RANK, RERANK, READ = 1000, 8, 16


class Need(NamedTuple):
    """A value to compute: `key` stands for all that decides it; one task has one `group`."""

    key: bytes
    group: Any
    item: Any


def run(
    systems: Iterable[System],
    documents: pd.DataFrame,
    questions: pd.DataFrame,
    *,
    out: str | Path | None = None,
    jobs: int = 1,
    progress: bool | None = None,
    k: int = 10,
) -> Sweep:
    """Run every system on every question.

    Parameters
    ----------
    systems : iterable of System
        See `load`.
    documents, questions : DataFrame
        See `ragkit.schema`.
    out : path-like, optional
        A folder where each cell is kept as soon as it is known. A run that was killed goes on from
        there, and after a change only what it concerns runs again: a cell is known by its system's
        settings, the corpus, the question and the code of the rooms that compute it. Any number
        of runs may share a folder. None keeps nothing.
    jobs : int
        How many processes of joblib, or of its backend that `joblib.parallel_config` has set; each
        computes with one thread.
    progress : bool, optional
        Show a progress bar for each stage. Default: on a terminal.
    k : int
        Length of the ranked lists in `runs`; a reader sees its `top` documents, whatever k is, and
        of a reranked list no more than were reranked.

    Returns
    -------
    Sweep
        Cells that could not be computed (weights that are not there, an endpoint that does not
        answer) are in its `failures`, and nowhere else.

    Raises
    ------
    UsageError
        If there is no system, two have one name, or an option is out of range.
    DataError
        If a frame is not valid, or the folder holds another file in place of the cells.
    """
    systems = check(systems)
    _check(documents, questions, jobs, k)
    texts = list(dict.fromkeys(questions["text"]))
    with ExitStack() as stack:
        cells = stack.enter_context(Cells(None if out is None else Path(out)))
        corpus = stack.enter_context(_Corpus(documents, shared=jobs > 1))
        compute = partial(_compute, cells=cells, jobs=jobs, progress=progress)
        lists = _lists(systems, texts, corpus, k, compute)
        readings = _readings(systems, texts, documents, lists, compute)
    return Sweep.assemble(systems, questions, lists, readings, k)


def plan(
    systems: Iterable[System],
    documents: pd.DataFrame,
    questions: pd.DataFrame,
    *,
    out: str | Path | None = None,
    k: int = 10,
) -> pd.DataFrame:
    """Return what `run` would do, and compute nothing.

    Returns
    -------
    DataFrame
        One row a system: system, retriever, rerank, reader, cells, kept (ranked lists that the
        folder holds) and to_rank. Readings depend on the lists and are not looked up.
    """
    import pandas as pd

    systems = check(systems)
    _check(documents, questions, 1, k)
    texts = list(dict.fromkeys(questions["text"]))
    held: set[bytes] = set()
    needs = {}
    corpus = _Corpus(documents, shared=False)
    for system in systems:
        needs[system.name] = [_rank_need(system, text, corpus, k).key for text in texts]
    if out is not None and (Path(out) / FILE).is_file():
        with Cells(Path(out)) as cells:
            held = set(cells.get(name for names in needs.values() for name in names))
    rows = []
    for system in systems:
        kept = sum(name in held for name in needs[system.name])
        rerank = system.rerank["reranker"] if system.rerank else ""
        reader = system.reader["kind"] if system.reader else ""
        row = (system.name, system.retriever["kind"], rerank, reader, len(texts), kept)
        rows.append((*row, len(texts) - kept))
    columns = ["system", "retriever", "rerank", "reader", "cells", "kept", "to_rank"]
    return pd.DataFrame(rows, columns=columns)


# -- stages -----------------------------------------------------------------------------------


def _lists(systems, texts, corpus, k, compute) -> dict[tuple[str, str], Any]:
    """Return the ranked list [[doc_id, score], ...] of every system and text, or `Failed`."""
    cells = [(system, text) for system in systems for text in texts]
    ranks = {(s.name, text): _rank_need(s, text, corpus, k) for s, text in cells}
    ranked = compute("rank", ranks.values(), partial(_rank, corpus), RANK)
    lists = {cell: ranked[need.key] for cell, need in ranks.items()}
    again = {}
    for system, text in cells:
        found = lists[system.name, text]
        if system.rerank and found and not _failed(found):
            options = canonical(system.rerank)
            rooms = code("systems/retrieval", "models")
            name = key("rerank", rooms, corpus.digest, options, found, text)
            again[system.name, text] = Need(name, options, (text, found))
    reranked = compute("rerank", again.values(), partial(_rerank, corpus), RERANK)
    for cell, need in again.items():
        lists[cell] = reranked[need.key]
    return lists


def _readings(systems, texts, documents, lists, compute) -> dict[tuple[str, str], Any]:
    """Return {answer, abstained} with doc_ids of every reading system and text, or `Failed`."""
    library = Library(documents)
    cells = [(s, text) for text in texts for s in systems if s.reader]
    needs: dict[tuple[str, str], Need] = {}
    readings: dict[tuple[str, str], Any] = {}
    for system, text in cells:
        found = lists[system.name, text]
        if _failed(found):
            readings[system.name, text] = found
            continue
        shown = library.take([doc_id for doc_id, _ in found[: system.top]])
        reader = canonical(system.reader)
        name = key("read", code("systems/readers", "models"), reader, shown, text)
        # What asks an endpoint is asked at once; the others share scores by question.
        group = reader if system.reader["kind"].startswith("openai:") else ""
        needs[system.name, text] = Need(name, group, (reader, text, shown))
    read = compute("read", needs.values(), _read, READ)
    for cell, need in needs.items():
        value = read[need.key]
        shown = tuple(document.doc_id for document in need.item[2])
        readings[cell] = value if _failed(value) else {**value, "doc_ids": shown}
    return readings


def _failed(value: Any) -> bool:
    return isinstance(value, Failed)


def _rank_need(system: System, text: str, corpus: _Corpus, k: int) -> Need:
    depth = max(k, system.top if system.reader else 1)
    if system.rerank:
        depth = system.rerank["depth"]
    group = canonical(system.retriever), system.words
    rooms = code("systems/retrieval", "models")
    return Need(key("rank", rooms, corpus.digest, *group, depth, text), group, (depth, text))


def _compute(
    stage: str,
    needs: Iterable[Need],
    work: Callable[[Any, list], list],
    size: int,
    *,
    cells: Cells,
    jobs: int,
    progress: bool | None,
) -> dict[bytes, Any]:
    """Return the value or `Failed` of every need: from the cells, or computed and kept."""
    from joblib import Parallel, delayed
    from tqdm.auto import tqdm

    distinct = {need.key: need for need in needs}
    values = cells.get(distinct)
    groups: dict[Any, list[Need]] = {}
    for need in distinct.values():
        if need.key not in values:
            groups.setdefault(need.group, []).append(need)
    tasks = []
    for group, members in groups.items():
        step = len(members) if str(group).startswith('{"kind":"openai:') else size
        tasks += [(group, members[at : at + step]) for at in range(0, len(members), step)]
    disable = None if progress is None else not progress
    with tqdm(
        total=len(distinct), initial=len(values), desc=stage, unit="cell", disable=disable
    ) as bar:
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
        calls = (
            delayed(_task)(number, stage, work, group, [need.item for need in members])
            for number, (group, members) in enumerate(tasks)
        )
        for number, results in parallel(calls) if tasks else ():
            names = [need.key for need in tasks[number][1]]
            found = dict(zip(names, results, strict=True))
            values |= found
            cells.put({name: value for name, value in found.items() if not _failed(value)})
            bar.update(len(names))
    return values


def _task(number: int, stage: str, work, group, items: list) -> tuple[int, list]:
    """Do the work of one task with one thread; an error that a user can act on is its result."""
    from threadpoolctl import threadpool_limits

    try:
        with threadpool_limits(limits=1):
            return number, work(group, items)
    except RagkitError as error:
        return number, [Failed(stage, " ".join(str(error).split()))] * len(items)


# -- what a task does -------------------------------------------------------------------------


def _rank(corpus: _Corpus, group: tuple[str, int | None], items: list) -> list:
    retriever, words = group
    fitted = _fitted(corpus, retriever, words)
    found: list[Any] = [None] * len(items)
    for depth in {depth for depth, _ in items}:
        places = [place for place, item in enumerate(items) if item[0] == depth]
        lists = _by_question(fitted, [items[place][1] for place in places], depth)
        for place, ranking in zip(places, lists, strict=True):
            found[place] = ranking
    return found


@lru_cache(maxsize=1)
def _fitted(corpus: _Corpus, retriever: str, words: int | None):
    """Return a fitted retriever; tasks of one retriever follow each other."""
    documents = corpus.frame()
    if words is not None:
        leads = documents["text"].str.split(n=words).str[:words].str.join(" ")
        documents = documents.assign(text=leads)
    return build(json.loads(retriever)).fit(documents)


def _by_question(retriever, texts: Sequence[str], k: int) -> list[list]:
    """Return the ranked list of each text."""
    import pandas as pd

    ids = [str(number) for number in range(len(texts))]
    runs = retriever.search(pd.DataFrame({"question_id": ids, "text": list(texts)}), k)
    lists: dict[str, list] = {name: [] for name in ids}
    for name, doc_id, score in zip(runs["question_id"], runs["doc_id"], runs["score"], strict=True):
        lists[name].append([doc_id, float(score)])
    return list(lists.values())


class _Given:
    """A retriever whose ranked lists are known."""

    system = "given"

    def __init__(self):
        self.lists: list[list] = []

    def fit(self, documents):
        return self

    def search(self, queries, k: int):
        from ragkit.systems.retrieval.frames import runs_frame

        found = [tuple(zip(*ranking, strict=True)) or ((), ()) for ranking in self.lists]
        return runs_frame(self.system, queries["question_id"].tolist(), found)


def _rerank(corpus: _Corpus, group: str, items: list) -> list:
    rerank = _reranker(corpus, group)
    rerank.retriever.lists = [ranking for _, ranking in items]
    return _by_question(rerank, [text for text, _ in items], json.loads(group)["depth"])


@lru_cache(maxsize=1)
def _reranker(corpus: _Corpus, options: str):
    return build_rerank(json.loads(options), _Given()).fit(corpus.frame())


def _read(group: str, items: list) -> list:
    found: list[Any] = [None] * len(items)
    for reader in {reader for reader, _, _ in items}:
        places = [place for place, item in enumerate(items) if item[0] == reader]
        readings = _reader(reader).read([items[place][1:] for place in places])
        for place, reading in zip(places, readings, strict=True):
            found[place] = (
                Failed("read", reading.failure)
                if reading.answer is None
                else {"answer": reading.answer, "abstained": reading.abstained}
            )
    return found


@lru_cache(maxsize=16)
def _reader(spec: str):
    return build_reader(json.loads(spec))


# -- documents, here and in other processes -----------------------------------------------------


class _Corpus:
    """Documents, known by their digest; other processes read them from a file.

    Parameters
    ----------
    documents : DataFrame
    shared : bool
        Whether there are other processes.
    """

    def __init__(self, documents: pd.DataFrame, *, shared: bool):
        self.digest = corpus_digest(documents)
        self._documents = documents
        self._folder = tempfile.mkdtemp(prefix="ragkit-sweep-") if shared else None
        if shared:
            with open(self._file, "wb") as stream:
                pickle.dump(documents, stream, protocol=pickle.HIGHEST_PROTOCOL)

    def __enter__(self) -> _Corpus:
        return self

    def __exit__(self, *exc) -> None:
        _fitted.cache_clear()
        _reranker.cache_clear()
        if self._folder is not None:
            shutil.rmtree(self._folder)

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_documents": None}

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other) -> bool:
        return isinstance(other, _Corpus) and self.digest == other.digest

    def frame(self) -> pd.DataFrame:
        """Return the documents."""
        if self._documents is None:
            with open(self._file, "rb") as stream:
                self._documents = pickle.load(stream)
        return self._documents

    @property
    def _file(self) -> Path:
        return Path(self._folder) / "documents.pickle"


def _check(documents: pd.DataFrame, questions: pd.DataFrame, jobs: int, k: int) -> None:
    schema.check(documents, "documents", "documents")
    schema.check(questions, "questions", "questions")
    if documents.empty or questions.empty:
        raise UsageError(f"there are no {'documents' if documents.empty else 'questions'}")
    for name, value in (("jobs", jobs), ("k", k)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UsageError(f"{name} should be a whole number from 1, found {value!r}")
