"""What the size of a corpus does to retrieval: one stream of documents, nested samples, costs.

>>> from ragkit import sweep
>>> result = sweep.scaling(stream, questions, [5_000, 50_000, 500_000], {"BM25": "bm25"})
>>> result.summary(), result.tested(), result.costs
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ragkit import checks, models, schema
from ragkit.errors import DataError, UsageError, did_you_mean
from ragkit.measures import corpus
from ragkit.systems.retrieval import BM25, Dense
from ragkit.systems.retrieval.frames import document_texts
from ragkit.systems.sweep.cells import Cells, code, key
from ragkit.systems.sweep.lsa import LSA

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("bm25", "dense", "lsa")
NEIGHBOURS = 10  # of local density: section 3.2
RATED = 48  # documents that tell an encoder's speed
BY_QUESTION = ("system", "size", "question_id", "type", "recall")
COSTS = (
    *("index_seconds", "cpu_seconds", "indexed", "query_ms", "query_ms_p95", "queries"),
    *("index_bytes", "memory_bytes", "cores"),
)


class Tested(NamedTuple):
    """A system's fit of all sizes, that of all but the largest, and what it said of the largest."""

    fit: corpus.ScalingFit
    before: corpus.ScalingFit
    extrapolation: corpus.Extrapolation


@dataclass(frozen=True)
class Scaling:
    """What was found, in tidy frames.

    Parameters
    ----------
    recalls : DataFrame
        system, size, question_id, type, recall in [0, 1]: of questions with gold documents.
    costs : DataFrame
        One row a system and size. `index_seconds` for reading the texts, encoding and indexing
        them, `cpu_seconds` the same over all cores, of which `indexed` documents were timed: fewer
        than the size where vectors come from a cache and the seconds from the encoder's speed. `query_ms`, `query_ms_p95`: median and
        95th percentile of `queries` questions asked one by one, their encoding included.
        `index_bytes`: what the index holds, ids included. `memory_bytes`: what the whole
        process held while it indexed and searched, libraries and all, at its highest (read every 5
        ms); missing where the system does not tell. `cores` of the processor at hand.
    density : DataFrame
        system, size, mean, low, high, n (documents asked), left_out (documents without a
        direction): local density of systems that have vectors.
    k : int
        Of recall.
    """

    recalls: pd.DataFrame
    costs: pd.DataFrame
    density: pd.DataFrame
    k: int

    def table(self, system: str) -> pd.DataFrame:
        """Return a system's recalls, questions by sizes."""
        rows = self.recalls[self.recalls["system"] == system]
        if rows.empty:
            known = list(dict.fromkeys(self.recalls["system"]))
            raise UsageError(f"no system {system!r}", did_you_mean(system, known))
        return rows.pivot(index="question_id", columns="size", values="recall")

    def summary(
        self, *, by_type: bool = False, n_resamples: int = 9999, seed: int = 0
    ) -> pd.DataFrame:
        """Return mean recall with its 95 % interval (bootstrap over questions, BCa).

        Returns
        -------
        DataFrame with columns system, size, (type,) n, mean, low, high
        """
        from ragkit.measures import stats

        keys = ["system", "size", *(["type"] if by_type else [])]
        rows = []
        for names, group in self.recalls.groupby(keys, sort=False):
            values = group.sort_values("question_id")["recall"]
            found = stats.bootstrap_interval(values, n_resamples=n_resamples, seed=seed)
            rows.append((*names, found.n, found.estimate, found.low, found.high))
        return _frame(rows, [*keys, "n", "mean", "low", "high"])

    def tested(self, *, n_resamples: int = 2000, seed: int = 0) -> dict[str, Tested]:
        """Fit every system of at least three sizes, with and without the largest.

        Returns
        -------
        dict of str to Tested

        Raises
        ------
        DataError
            As in `ragkit.measures.corpus.fit_scaling`.
        """
        found = {}
        for system in dict.fromkeys(self.recalls["system"]):
            table, options = self.table(system), {"n_resamples": n_resamples, "seed": seed}
            if table.shape[1] < 3:
                continue
            values, sizes = table.to_numpy(), list(table.columns)
            found[system] = Tested(
                corpus.fit_scaling(values, sizes, **options),
                corpus.fit_scaling(values[:, :-1], sizes[:-1], **options),
                corpus.extrapolate(values, sizes, **options),
            )
        return found


def slopes(tested: Mapping[str, Tested]) -> pd.DataFrame:
    """Return what the fits say, one row a system.

    Returns
    -------
    DataFrame with columns system, questions, size, odds, odds_low, odds_high, predicted,
        predicted_low, predicted_high, observed, difference, difference_low, difference_high,
        inside, straight
        `odds`: what a tenfold corpus multiplies the odds of a found document by, from all sizes.
        Predicted from all sizes but the largest, `size`; the difference is predicted less
        observed. `inside`: the observed recall lies in the interval of the predicted one;
        `straight`: the interval of the difference holds 0.
    """
    rows = []
    for system, (fit, _, found) in tested.items():
        odds = np.exp([fit.slope, *np.quantile(fit.draws[:, 1], [0.025, 0.975])])
        predicted, observed, difference = found
        rows.append(
            (
                *(system, fit.questions, max(fit.sizes), *odds, *predicted[:3], observed.value),
                *difference[:3],
                predicted.low <= observed.value <= predicted.high,
                difference.low <= 0 <= difference.high,
            )
        )
    three = ("", "_low", "_high")
    columns = ["system", "questions", "size", *(f"odds{end}" for end in three)]
    columns += [*(f"predicted{end}" for end in three), "observed"]
    columns += [*(f"difference{end}" for end in three), "inside", "straight"]
    return _frame(rows, columns)


def scaling(
    documents: pd.DataFrame | Callable[[], Iterable],
    questions: pd.DataFrame,
    sizes: Sequence[int] | Mapping[str, Sequence[int]],
    systems: Mapping[str, Any],
    *,
    fields: tuple[str, ...] = ("title", "text"),
    k: int = 10,
    seed: int = 0,
    density: int = 1000,
    timed: int = 100,
    identity: str | None = None,
    out: str | os.PathLike | None = None,
    progress: bool | None = None,
) -> Scaling:
    """Measure retrieval on nested samples of a corpus that all hold the gold documents.

    The corpus is read once, its texts go to a temporary file as large as they are, and no more of
    them is in memory than a system itself keeps.

    Parameters
    ----------
    documents : DataFrame or callable
        Documents, or what returns an iterable of frames or mappings, such as a generator, with
        `doc_id` and the columns of `fields`. It is called at most once.
    questions : DataFrame
        See `ragkit.schema`. All are searched; recall is that of those with gold documents.
    sizes : sequence of int, or mapping of system to such
        Documents in a sample, the gold ones included.
    systems : mapping of str to declaration
        Each under its name: "bm25"; "dense:ENCODER", an encoder of `ragkit.models` with exact
        search, on a graphics card where there is one; "lsa:DIMENSIONS", `ragkit.systems.sweep.LSA` taught by
        that system's smallest sample, with exact search; or a callable that returns a retriever
        of your own (`fit(mappings with doc_id and text)`, `search(queries, k)`), which is measured
        anew each time.
    fields : tuple of str
        The columns that make a document's text, joined by an empty line.
    k : int, default=10
    seed : int, default=0
        Of the samples, of LSA and of the documents asked for local density.
    density : int, default=1000
        Documents asked for local density.
    timed : int, default=100
        Questions asked one by one for the latency, the first ones.
    identity : str, optional
        What stands for the corpus in the cache, if you know it: then a second run need not even
        read it. A digest of all ids and texts by default.
    out : path-like, optional
        A folder where what a system did at a size is kept: known by the corpus, the questions, the
        settings and the code. Costs are then those of the run that measured them.
    progress : bool, optional
        Whether to show a bar. Default: on a terminal.

    Returns
    -------
    Scaling

    Raises
    ------
    UsageError
        If there is no system or size, a declaration or a number is none, or sizes lack a system.
    DataError
        As in `ragkit.measures.corpus.nested`; if a frame is not valid or no question has gold documents.
    ModelError
        If an encoder's weights are not here.

    References
    ----------
    EnterpriseRAG-Bench, section 6.2 and Figure 3.
    """
    from tqdm.auto import tqdm

    for value, name in ((k, "k"), (density, "density"), (timed, "timed")):
        checks.whole(value, name)
    wanted = _wanted(systems, sizes)
    schema.check(questions, "questions", "questions")
    gold = {
        question: frozenset(ids)
        for question, ids in zip(questions["question_id"], questions["gold_doc_ids"], strict=True)
        if len(ids)
    }
    if not gold:
        raise DataError("no question has gold documents, so there is no recall")
    settings = _Settings(questions, gold, k, seed, density, timed)
    todo = [(name, size) for name, its in wanted.items() for size in its]
    disable = None if progress is None else not progress
    with (
        Cells(None if out is None else Path(out)) as cells,
        _Corpus(documents, fields, out, identity) as texts,
        tqdm(total=len(todo), desc="sizes", disable=disable) as bar,
    ):
        found = {}
        for name, size in todo:
            kept = {}
            if not callable(systems[name]):
                cell = settings.key(texts.identity, systems[name], size, min(wanted[name]))
                kept = cells.get([cell])
            if not kept:
                rows = texts.samples(frozenset().union(*gold.values()), wanted, seed)
                value = _measure(
                    systems[name], texts, rows[size], rows[min(wanted[name])], settings
                )
                kept = {0: value}
                if not callable(systems[name]):
                    cells.put({cell: value})
            found[name, size] = next(iter(kept.values()))
            bar.update()
    return _assembled(found, questions, k)


# -- what is asked for --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Settings:
    questions: pd.DataFrame
    gold: Mapping[str, frozenset]
    k: int
    seed: int
    density: int
    timed: int

    def key(self, identity: str, spec: str, size: int, smallest: int) -> bytes:
        asked = [
            (question, text, sorted(self.gold.get(question, ())))
            for question, text in zip(
                self.questions["question_id"], self.questions["text"], strict=True
            )
        ]
        rooms = code("systems/retrieval", "models", "measures/corpus", "systems/sweep")
        taught = smallest if spec.startswith("lsa") else 0
        numbers = (int(size), int(taught), self.k, self.seed, self.density, self.timed)
        return key("scaling", rooms, identity, spec, *map(int, numbers), asked)


def _wanted(systems, sizes) -> dict[str, list[int]]:
    """Return the sizes of each system, rising, after a look at both."""
    if not isinstance(systems, Mapping) or not systems:
        raise UsageError("systems should be named, as in {'BM25': 'bm25'}")
    wanted = {}
    for name, spec in systems.items():
        if not callable(spec):
            _check(name, spec)
        if isinstance(sizes, Mapping) and name not in sizes:
            raise UsageError(f"no sizes are given for {name!r}", did_you_mean(name, sizes))
        its = list(sizes[name] if isinstance(sizes, Mapping) else sizes)
        for size in its:
            checks.whole(size, "a size")
        if not its or len(set(its)) < len(its):
            raise UsageError(f"the sizes for {name!r} should be different numbers, found {its}")
        wanted[name] = sorted(map(int, its))
    return wanted


def _check(name: str, spec: Any) -> None:
    kind, colon, rest = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    if kind not in KINDS or bool(colon) == (kind == "bm25"):
        raise UsageError(
            f"system {name!r}: expected 'bm25', 'dense:ENCODER', 'lsa:DIMENSIONS' or a callable, "
            f"found {spec!r}"
        )
    if kind == "lsa" and not rest.isdecimal():
        raise UsageError(f"system {name!r}: lsa needs a number of dimensions, found {rest!r}")
    if kind == "dense":
        models.encoder(rest)  # says at once if its weights are not here


def _assembled(found, questions, k) -> Scaling:
    types = dict(zip(questions["question_id"], questions["type"], strict=True))
    cells = list(found.items())
    recalls = [
        (*cell, question, types[question], recall)
        for cell, value in cells
        for question, recall in value["recall"].items()
    ]
    costs = _frame(
        [(*cell, *(value["costs"][name] for name in COSTS)) for cell, value in cells],
        ["system", "size", *COSTS],
    ).astype({"memory_bytes": float})
    density = [(*cell, *value["density"]) for cell, value in cells if value["density"]]
    columns = ["system", "size", "mean", "low", "high", "n", "left_out"]
    return Scaling(_frame(recalls, BY_QUESTION), costs, _frame(density, columns), k)


def _frame(rows, columns) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=list(columns))


# -- the corpus -----------------------------------------------------------------------------------


class _Corpus:
    """Documents that are read when they are first needed, once; their texts wait in a file."""

    def __init__(self, documents, fields, folder, identity: str | None):
        self._documents, self._fields, self._folder = documents, fields, folder
        self._identity, self._file, self._samples = identity, None, None

    def __enter__(self) -> _Corpus:
        return self

    def __exit__(self, *exc) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def identity(self) -> str:
        if self._identity is None:
            self._read()
            self._identity = self._digest
        return self._identity

    def samples(self, gold, wanted, seed) -> dict[int, np.ndarray]:
        """Return the rows of each size."""
        if self._samples is None:
            self._read()
            sizes = sorted({size for its in wanted.values() for size in its})
            self._samples = corpus.nested(self._ids, gold, sizes, seed)
        return self._samples

    def texts(self, rows: np.ndarray) -> Iterator[str]:
        """Yield the texts of some rows, rising."""
        at = self._file.seek(0)
        for row in rows.tolist():
            start = self._ends[row - 1] if row else 0
            if at != start:
                self._file.seek(start)
            at = self._ends[row]
            yield self._file.read(at - start).decode("utf-8", "surrogatepass")

    def documents(self, rows: np.ndarray) -> Iterator[dict]:
        for row, text in zip(rows.tolist(), self.texts(rows), strict=True):
            yield {"doc_id": self._ids[row], "title": None, "text": text}

    def _read(self) -> None:
        if self._file is not None:
            return
        found = self._documents() if callable(self._documents) else self._documents
        digest, end = hashlib.sha256(), 0
        self._ids, self._ends = [], array("q")
        if self._folder is not None:
            Path(self._folder).mkdir(parents=True, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115  closed on exit
        for doc_id, text in document_texts(found, self._fields):
            raw = text.encode("utf-8", "surrogatepass")
            digest.update(f"{len(doc_id)} {len(raw)} {doc_id}".encode("utf-8", "surrogatepass"))
            digest.update(raw)
            self._file.write(raw)
            end += len(raw)
            self._ids.append(doc_id)
            self._ends.append(end)
        self._digest = digest.hexdigest()


# -- one system at one size -----------------------------------------------------------------------


def _measure(spec, texts: _Corpus, rows, taught, settings: _Settings) -> dict:
    """Return recall by question, costs, and local density where there are vectors."""
    questions = settings.questions
    with _Memory() as memory:
        start = _clocks()
        retriever = _build(spec, texts, taught, settings.seed)
        retriever.fit(texts.documents(rows))
        seconds, indexed = _clocks() - start, len(rows)
        runs = retriever.search(questions, settings.k)
    hits: dict[str, set] = {}
    for question, doc_id in zip(runs["question_id"], runs["doc_id"], strict=True):
        hits.setdefault(question, set()).add(doc_id)
    recall = {
        question: len(gold & hits.get(question, set())) / len(gold)
        for question, gold in settings.gold.items()
    }
    if isinstance(getattr(retriever, "encoder", None), models.Encoder):
        retriever.cache = False  # a question that is asked for the first time is encoded
        indexed = min(RATED, len(rows))
        chosen = rows[np.linspace(0, len(rows) - 1, indexed).astype(np.int64)]
        seconds = len(rows) * _seconds_each(retriever.encoder, list(texts.texts(chosen)))
    times = []
    for place in range(min(settings.timed, len(questions))):
        asked = questions.iloc[place : place + 1]
        start = perf_counter()
        retriever.search(asked, settings.k)
        times.append(1000 * (perf_counter() - start))
    values = (
        *(*seconds.tolist(), indexed, *np.quantile(times, [0.5, 0.95]).tolist(), len(times)),
        *(_held(retriever), memory.highest, _cores()),
    )
    return {
        "recall": recall,
        "costs": dict(zip(COSTS, values, strict=True)),
        "density": _density(retriever, settings),
    }


def _build(spec, texts: _Corpus, taught: np.ndarray, seed: int):
    if callable(spec):
        return spec()
    kind, _, rest = spec.partition(":")
    if kind == "bm25":
        return BM25()
    if kind == "dense":
        return Dense(models.encoder(rest, threads=_cores()))
    return Dense(LSA(int(rest), seed=seed).fit(texts.texts(taught)))


def _clocks() -> np.ndarray:
    """Return wall time and processor time, in seconds."""
    return np.array([perf_counter(), process_time()])


def _seconds_each(encoder, texts: list[str]) -> np.ndarray:
    """Return an encoder's seconds for a document, the vectors that are kept left aside."""
    encoder.encode(texts[:8])  # loads the weights
    start = _clocks()
    encoder.encode(texts)
    return (_clocks() - start) / len(texts)


def _density(retriever, settings: _Settings) -> list | None:
    vectors = getattr(retriever, "vectors_", None)
    if vectors is None or len(vectors) <= NEIGHBOURS + 1:
        return None
    whole = np.concatenate([part.any(axis=1) for part in _parts(vectors)])
    owners = retriever.owners_[whole] if len(set(retriever.owners_)) < len(vectors) else None
    if not whole.all():
        vectors = vectors[whole]
    found = corpus.local_density(
        vectors, settings.density, NEIGHBOURS, settings.seed, groups=owners
    )
    return [found.value, found.low, found.high, found.n, int((~whole).sum())]


def _parts(vectors: np.ndarray, rows: int = 1 << 16) -> Iterator[np.ndarray]:
    yield from (vectors[start : start + rows] for start in range(0, len(vectors), rows))


def _held(value: Any) -> int:
    """Return the bytes of arrays and texts in an index, its encoder left out."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, bytes | str):
        return len(value)
    if isinstance(value, list | tuple):
        return sum(map(_held, value))
    if isinstance(value, models.Encoder | LSA) or not hasattr(value, "__dict__"):
        return 0
    left_out = ("_analyzer", "fields", "system", "encoder")
    return sum(_held(part) for name, part in vars(value).items() if name not in left_out)


def _cores() -> int:
    with suppress(AttributeError):  # where the system can bind a process to some of them
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Memory:
    """The process's resident memory at its highest inside the block, read every 5 ms."""

    highest: int | None = None
    _source = Path("/proc/self/statm")

    def __enter__(self) -> _Memory:
        self._thread = None
        if self._source.is_file():
            self._page = os.sysconf("SC_PAGE_SIZE")
            self.highest = self._resident()
            self._done = threading.Event()
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *exc) -> None:
        if self._thread is not None:
            self._done.set()
            self._thread.join()
            self.highest = max(self.highest, self._resident())

    def _watch(self) -> None:
        while not self._done.wait(0.005):
            self.highest = max(self.highest, self._resident())

    def _resident(self) -> int:
        return int(self._source.read_text("ascii").split()[1]) * self._page
