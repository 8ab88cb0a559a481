"""Retrieval against corpus size: nested samples of one stream of documents, recall and costs."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

import joblib
import numpy as np
import pandas as pd

from ragkit import checks, display, models, schema
from ragkit.errors import DataError, UsageError
from ragkit.measures import corpus, metrics, stats
from ragkit.store import Store
from ragkit.systems.retrieval import BM25, Dense
from ragkit.systems.retrieval.frames import document_texts
from ragkit.systems.retrieval.saved import Saved

NEIGHBOURS = 10  # of local density: EnterpriseRAG-Bench, section 3.2
RATED = 48  # documents that an encoder's speed is measured on
COSTS = (
    *("index_seconds", "cpu_seconds", "indexed", "query_ms", "query_ms_p95", "queries"),
    *("index_bytes", "memory_bytes", "cores"),
)
PROCESS = Path("/proc/self")  # on Linux
WORDS = 100_000  # vocabulary: the most frequent words


class LSA:
    """An encoder of word counts, fitted to a sample of documents.

    Latent semantic analysis: counts are weighted by tf-idf, with logarithmic term frequencies, and
    projected onto the leading singular vectors of the sample (`dimensions` of them, by a
    randomised decomposition with `seed`). `words_` is the size of the vocabulary: words of at
    least two documents of the sample; others are ignored.

    References
    ----------
    Deerwester, Dumais, Furnas, Landauer and Harshman (1990), Indexing by latent semantic analysis;
    Halko, Martinsson and Tropp (2011), Finding structure with randomness (the decomposition).

    >>> texts = ["the pump leaks", "a pump leaks", "pay the invoice", "the invoice is late"]
    >>> LSA(2).fit(texts).encode(["which invoice?"]).shape
    (1, 2)
    """

    def __init__(self, dimensions: int = 256, *, seed: int = 0):
        self.dimensions = checks.whole(dimensions, "dimensions", least=2)
        self.seed = checks.whole(seed, "seed", least=0)
        self.name = f"lsa-{dimensions}"

    def fit(self, texts: Iterable[str]) -> LSA:
        """Fit to texts; there must be more texts, and more words shared by two, than dimensions."""
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import Normalizer

        texts = list(texts)
        words = TfidfVectorizer(sublinear_tf=True, min_df=2, max_features=WORDS, dtype=np.float32)
        axes = TruncatedSVD(self.dimensions, random_state=self.seed)
        try:
            weights = words.fit_transform(texts)
        except ValueError:  # no text, or no word that two of them share
            weights = np.empty((len(texts), 0))
        if min(weights.shape) <= self.dimensions:
            raise DataError(
                f"{self.dimensions} dimensions need more documents and words, found "
                f"{weights.shape[0]:,} documents that share {weights.shape[1]:,} words",
                "take a larger sample or fewer dimensions",
            )
        self._steps = make_pipeline(words, axes.fit(weights), Normalizer(copy=False))
        self.words_ = weights.shape[1]
        return self

    def encode(self, texts: Sequence[str], kind: str | None = "passage") -> np.ndarray:
        """Return unit vectors, (n, dimensions) float32; zero for a text without a known word."""
        if not hasattr(self, "words_"):
            raise UsageError("LSA is not fitted yet", "call fit(texts) first")
        return self._steps.transform(texts).astype(np.float32)


class Tested(NamedTuple):
    """A system's fit to all sizes, to all but the largest, and its prediction of the largest."""

    fit: corpus.ScalingFit
    before: corpus.ScalingFit
    extrapolation: corpus.Extrapolation


@dataclass(frozen=True)
class Scaling:
    """Recall and costs of systems at several corpus sizes.

    Parameters
    ----------
    recalls : DataFrame
        system, size, question_id, type, recall in [0, 1]: of questions with gold documents.
    costs : DataFrame
        One row per system and size. `index_seconds` and `cpu_seconds` (summed over cores): to
        read, encode and index the texts; `indexed`: the documents timed, fewer than the size
        where the seconds follow from an encoder's speed. `query_ms`, `query_ms_p95`: median and
        95th percentile of `queries` questions searched one by one. `index_bytes`: size of the
        saved index. `memory_bytes`: peak resident memory of the process; missing where
        the operating system does not report it. `cores`: processor cores available.
    density : DataFrame
        system, size, mean, low, high, n (documents sampled), left_out (documents without a
        vector): local density, for systems that have vectors.
    k : int
        Cutoff of recall.
    """

    recalls: pd.DataFrame
    costs: pd.DataFrame
    density: pd.DataFrame
    k: int

    def __repr__(self) -> str:
        sizes = sorted(self.recalls["size"].unique())
        return (
            f"<Scaling: {self.recalls['system'].nunique()} systems, {len(sizes)} sizes from "
            f"{sizes[0]:,} to {sizes[-1]:,} documents, {self.recalls['question_id'].nunique():,} "
            "questions>"
        )

    def _repr_html_(self) -> str:
        means = self.recalls.groupby(["system", "size"], sort=False)["recall"].mean().unstack()
        caption = f"Mean recall@{self.k} (0 to 1, higher is better) by documents in the corpus"
        facts = {"questions": f"{self.recalls['question_id'].nunique():,}"}
        after = "Next: `.summary()` has intervals, `.tested()` trends, `.costs` seconds and bytes."
        shown = display.table(means, caption, high=list(means), digits=3)
        return display.card("Retrieval over corpus sizes", facts, shown, after=after)

    def table(self, system: str) -> pd.DataFrame:
        """Return a system's recalls, questions by sizes."""
        checks.choice(system, "system", dict.fromkeys(self.recalls["system"]))
        rows = self.recalls[self.recalls["system"] == system]
        return rows.pivot(index="question_id", columns="size", values="recall")

    def summary(
        self, *, by_type: bool = False, n_resamples: int = 9999, seed: int = 0
    ) -> pd.DataFrame:
        """Return mean recall with its 95 % interval (bootstrap over questions, BCa).

        The columns are system, size, (type,) n, mean, low and high.
        """
        keys, rows = ["system", "size", *(["type"] if by_type else [])], []
        for names, group in self.recalls.groupby(keys, sort=False):
            values = group.sort_values("question_id")["recall"]
            found = stats.bootstrap_interval(values, n_resamples=n_resamples, seed=seed)
            rows.append((*names, found.n, found.estimate, found.low, found.high))
        return pd.DataFrame(rows, columns=[*keys, "n", "mean", "low", "high"])

    def tested(self, *, n_resamples: int = 2000, seed: int = 0) -> dict[str, Tested]:
        """Fit each system with at least three sizes, with and without the largest.

        See `ragkit.measures.corpus.fit_scaling`, also for its errors.
        """
        found, options = {}, {"n_resamples": n_resamples, "seed": seed}
        for system in dict.fromkeys(self.recalls["system"]):
            table = self.table(system)
            values, sizes = table.to_numpy(), list(table.columns)
            if len(sizes) >= 3:
                whole = corpus.fit_scaling(values, sizes, **options)
                before = corpus.fit_scaling(values[:, :-1], sizes[:-1], **options)
                last = corpus.extrapolate(values, sizes, **options)
                found[system] = Tested(whole, before, last)
        return found


def slopes(tested: Mapping[str, Tested]) -> pd.DataFrame:
    """Return the slopes and predictions of `Scaling.tested`, one row per system.

    Returns
    -------
    DataFrame
        system, questions, size; `odds`: the factor of the odds of finding a document when the
        corpus grows tenfold, from all sizes; `predicted`: recall at the largest `size`, from the
        others; `observed`; `difference`: predicted minus observed; `inside`: the observed recall
        lies in the interval of the predicted one; `straight`: the interval of the difference
        contains 0. The columns ``*_low`` and ``*_high`` are 95 % intervals.

    Raises `DataError` if no system was measured at three sizes.
    """
    if not tested:
        words = "no system was measured at three sizes, which a fit needs"
        raise DataError(words, "give `sizes` that are below the number of documents")
    rows = []
    for system, (fit, _, (predicted, observed, difference)) in tested.items():
        odds = np.exp([fit.slope, *np.quantile(fit.draws[:, 1], [0.025, 0.975])])
        row = {"system": system, "questions": fit.questions, "size": max(fit.sizes)}
        row |= _interval("odds", odds) | _interval("predicted", predicted)
        row |= {"observed": observed.estimate} | _interval("difference", difference)
        row["inside"] = predicted.low <= observed.estimate <= predicted.high
        rows.append(row | {"straight": difference.low <= 0 <= difference.high})
    return pd.DataFrame(rows)


def _interval(name: str, found: Iterable[float]) -> dict[str, float]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), found, strict=False))


def scaling(
    documents: pd.DataFrame | Callable[[], Iterable],
    questions: pd.DataFrame,
    sizes: Sequence[int] | Mapping[str, Sequence[int]],
    systems: Mapping[str, str],
    *,
    fields: tuple[str, ...] = ("title", "text"),
    k: int = 10,
    seed: int = 0,
    density: int = 1000,
    timed: int = 100,
    identity: str | None = None,
    store: str | os.PathLike | None = None,
) -> Scaling:
    """Measure retrieval on nested samples of a corpus that all contain the gold documents.

    The corpus is read once, into a temporary file of its texts. The store keeps recall and costs
    of each system and size, the costs as they were when they were measured.

    Parameters
    ----------
    documents : DataFrame or callable
        Documents, or a function that returns an iterable of frames or mappings, such as a
        generator, with `doc_id` and the columns of `fields`. It is called once at most.
    questions : DataFrame
        See `ragkit.schema`. All are searched; recall is that of those with gold documents.
    sizes : sequence of int, or mapping of system to such
        Documents in a sample, the gold ones included.
    systems : mapping of str to declaration
        By name: "bm25"; "dense:ENCODER", an encoder of `ragkit.models` with exact search, whose
        idf weights, if it has any, are those of that system's smallest sample; or
        "lsa:DIMENSIONS", `LSA` fitted to that system's smallest sample, with exact search.
    fields
        As in `ragkit.systems.retrieval.BM25`.
    k : int
        Cutoff of recall.
    seed : int
        Of the samples, of LSA and of the documents sampled for local density.
    density, timed : int
        How many documents to sample for local density, and how many questions, the first ones,
        to search one by one for the latency.
    identity : str, optional
        A name that identifies the corpus in the store, so that a second run need not read it.
        Default: a digest of all ids and texts.
    store : path-like, optional
        As in `ragkit.systems.sweep.run`; errors as there and in `ragkit.measures.corpus.nested`.

    References
    ----------
    EnterpriseRAG-Bench, section 6.2 and Figure 3.
    """
    options = {"k": k, "density": density, "timed": timed}
    options = {name: checks.whole(value, name) for name, value in options.items()} | {"seed": seed}
    wanted = _wanted(systems, sizes)
    schema.check(questions, "questions", "questions")
    asked = questions[["question_id", "text", "gold_doc_ids"]].values.tolist()
    gold = frozenset().union(*questions["gold_doc_ids"])
    if not gold:
        raise DataError("no question has gold documents, so there is no recall")
    read = cache(lambda: _Texts(documents() if callable(documents) else documents, fields))
    every = sorted(set().union(*wanted.values()))
    samples = cache(lambda: corpus.nested(read().ids, gold, every, seed))
    found = {}
    with Store(store) as kept:
        cells = [(name, size) for name, its in wanted.items() for size in its]
        for name, size in display.progress(cells, "sizes"):
            spec, smallest = systems[name], min(wanted[name])

            def measure(spec=spec, size=size, smallest=smallest) -> dict:
                rows = samples()
                return _measure(spec, read(), rows[size], rows[smallest], questions, **options)

            given = [identity or read().digest, spec, size, smallest, options, asked]
            found[name, size] = kept.call(measure, step="scaling", code=(__name__,), given=given)
    return _assembled(found, questions, k)


def _wanted(systems, sizes) -> dict[str, list[int]]:
    """Return the sizes of each system, ascending, if both are valid."""
    if not isinstance(systems, Mapping) or not systems:
        raise UsageError("systems should be named, as in {'BM25': 'bm25'}")
    wanted = {}
    for name, spec in systems.items():
        _encoder(name, spec, seed=0)
        given = sizes
        if isinstance(sizes, Mapping):
            given = sizes[checks.choice(name, "sizes for the system", sizes)]
        wanted[name] = sorted(checks.whole(size, "a size") for size in given)
        if not wanted[name] or len(set(wanted[name])) < len(wanted[name]):
            raise UsageError(f"the sizes for {name!r} should be different numbers, found {given}")
    return wanted


def _encoder(name: str, spec: str, seed: int) -> models.Encoder | LSA | None:
    """Return the encoder of a declaration, or None for BM25."""
    kind, _, rest = str(spec).partition(":")
    if spec == "bm25":
        return None
    if kind == "dense" and rest:
        return models.encoder(rest, threads=joblib.cpu_count())
    if kind == "lsa" and rest.isdecimal():
        return LSA(int(rest), seed=seed)
    known = "'bm25', 'dense:ENCODER' or 'lsa:DIMENSIONS'"
    raise UsageError(f"system {name!r}: expected {known}, found {spec!r}")


def _assembled(found: Mapping[tuple[str, int], dict], questions, k: int) -> Scaling:
    types, recalls, costs, density = questions.set_index("question_id")["type"], [], [], []
    for cell, value in found.items():
        recalls += [(*cell, name, types[name], recall) for name, recall in value["recall"].items()]
        costs.append((*cell, *(value["costs"][name] for name in COSTS)))
        density += [(*cell, *value["density"])] if value["density"] else []
    cell = ["system", "size"]
    return Scaling(
        pd.DataFrame(recalls, columns=[*cell, "question_id", "type", "recall"]),
        pd.DataFrame(costs, columns=[*cell, *COSTS]).astype({"memory_bytes": float}),
        pd.DataFrame(density, columns=[*cell, "mean", "low", "high", "n", "left_out"]),
        k,
    )


class _Texts:
    """The ids of documents, and their texts in a temporary file."""

    def __init__(self, documents, fields):
        self.ids, self._ends, digest = [], array("q", [0]), hashlib.sha256()
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed with this object
        for doc_id, text in document_texts(documents, fields):
            raw = text.encode("utf-8", "surrogatepass")
            digest.update(f"{len(doc_id)} {len(raw)} {doc_id}".encode("utf-8", "surrogatepass"))
            digest.update(raw)
            self._file.write(raw)
            self.ids.append(doc_id)
            self._ends.append(self._ends[-1] + len(raw))
        self.digest = digest.hexdigest()

    def documents(self, rows: np.ndarray) -> Iterator[dict]:
        """Yield the documents of some rows."""
        for row in rows.tolist():
            start, end = self._ends[row : row + 2]
            self._file.seek(start)
            text = self._file.read(end - start).decode("utf-8", "surrogatepass")
            yield {"doc_id": self.ids[row], "title": None, "text": text}

    def __call__(self, rows: np.ndarray) -> Iterator[str]:
        return (document["text"] for document in self.documents(rows))


# -- one system at one size -----------------------------------------------------------------------


def _measure(spec, texts, rows, smallest, questions, *, k, seed, density, timed) -> dict:
    """Return recall by question, costs, and local density where there are vectors."""
    known, start = _peak(reset=True), _clocks()
    encoder = _encoder("", spec, seed)
    if isinstance(encoder, LSA) or getattr(encoder, "unfitted", False):
        encoder = encoder.fit(texts(smallest))
    retriever = BM25() if encoder is None else Dense(encoder)
    retriever.fit(texts.documents(rows))
    seconds, indexed = _clocks() - start, len(rows)
    runs = retriever.search(questions, k)
    memory = _peak() if known else None
    recall = dict.fromkeys(
        questions.loc[questions["gold_doc_ids"].map(len) > 0, "question_id"], 0.0
    )
    if not runs.empty:
        scores = metrics.retrieval(runs, questions, measures=[f"R@{k}"])
        recall |= dict(zip(scores["item_id"], scores["score"], strict=True))
    if isinstance(encoder, models.Encoder) and not isinstance(encoder, models.StaticEncoder):
        retriever.cache = False  # a kept vector would cost nothing
        chosen = rows[np.linspace(0, len(rows) - 1, min(RATED, len(rows))).astype(np.int64)]
        batch, indexed = list(texts(chosen)), len(chosen)
        encoder.encode(batch[:8])  # loads the weights
        start = _clocks()
        encoder.encode(batch)
        seconds = len(rows) * (_clocks() - start) / indexed
    times = []
    for place in range(min(timed, len(questions))):
        begun = perf_counter()
        retriever.search(questions.iloc[place : place + 1], k)
        times.append(1000 * (perf_counter() - begun))
    query_ms = np.quantile(times, [0.5, 0.95]).tolist()
    values = [*seconds.tolist(), indexed, *query_ms, len(times), _size(retriever), memory]
    return {
        "recall": recall,
        "costs": dict(zip(COSTS, [*values, joblib.cpu_count()], strict=True)),
        "density": _density(retriever, density, seed),
    }


def _density(retriever, sample: int, seed: int) -> list | None:
    vectors = getattr(retriever, "vectors_", None)
    if vectors is None or len(vectors) <= NEIGHBOURS + 1:
        return None
    whole = vectors.any(axis=1)
    vectors = vectors if whole.all() else vectors[whole]
    found = corpus.local_density(vectors, sample, NEIGHBOURS, seed)
    return [found.estimate, found.low, found.high, found.n, int((~whole).sum())]


def _size(retriever: Saved) -> int:
    """Return the bytes of an index as it would be saved."""
    parts = retriever._parts().values()
    return sum(sum(map(len, part)) if isinstance(part, list) else part.nbytes for part in parts)


def _clocks() -> np.ndarray:
    """Return wall time and processor time, in seconds."""
    return np.array([perf_counter(), process_time()])


def _peak(*, reset: bool = False) -> int | None:
    """Return the process's peak resident memory in bytes, since `reset`; None if it is unknown."""
    try:
        if reset:
            (PROCESS / "clear_refs").write_text("5")
        return 1024 * int(re.search(r"VmHWM:\s*(\d+)", (PROCESS / "status").read_text())[1])
    except OSError:
        return None
