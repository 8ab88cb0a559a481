"""Corpus geometry against blocked numpy and all pairs, maps against the three libraries for them.

The vectors are drawn like embeddings of a company's documents: a direction common to all, unequal
topics with unequal subtopics, variation along a few directions, and noise.
"""

from __future__ import annotations

import threading
from pathlib import Path
from time import perf_counter

import numpy as np

from ragkit.measures import corpus
from tests.bench import Row

DOCUMENTS, DIMENSIONS, ASKED = 512_000, 384, 1_000


def run():
    vectors = embeddings(DOCUMENTS)
    yield from _density(vectors)
    yield from _clusters(vectors)
    del vectors
    yield from _maps(embeddings(10_000, seed=1))


def embeddings(n: int, *, topics: int = 60, seed: int = 0) -> np.ndarray:
    """Return n unit vectors, float32."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(topics, 0.7))
    centres = _directions(rng, topics)
    subtopics = _directions(rng, topics * 12)
    common, axes = _directions(rng, 1)[0], _directions(rng, 30)
    vectors = np.empty((n, DIMENSIONS), dtype=np.float32)
    for start in range(0, n, 16_384):
        size = min(16_384, n - start)
        topic = rng.choice(topics, size, p=shares)
        subtopic = topic * 12 + np.minimum(rng.geometric(0.2, size) - 1, 11)
        part = 0.35 * common + 0.55 * centres[topic] + 0.45 * subtopics[subtopic]
        spread = rng.normal(size=(size, 30), scale=0.5 / np.sqrt(30)).astype(np.float32)
        noise = rng.standard_normal((size, DIMENSIONS), dtype=np.float32)
        vectors[start : start + size] = part + spread @ axes + 0.35 / DIMENSIONS**0.5 * noise
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _density(vectors):
    asked = corpus.geometry.draw(len(vectors), ASKED, 0)
    with _Memory() as memory:
        ours, _ = _time(lambda: corpus.local_density(vectors, ASKED), 3)
    peer, ids = _time(lambda: _blocked(vectors, asked, 10), 2)
    what = "local density, 1,000 of 512k x 384"
    yield Row(what, ours, peer, "numpy in blocks", peer / ours, 2.5)
    yield Row(f"{what}, seconds", ours, np.nan, "bound", ours, 3, False)
    yield Row(f"{what}, GB beside", memory.gigabytes, np.nan, "bound", memory.gigabytes, 2, False)
    found = corpus.neighbours(vectors, asked).ids
    same = float((np.sort(found, axis=1) == np.sort(ids, axis=1)).all(axis=1).mean())
    yield Row("neighbours, share of identical sets", same, np.nan, "numpy in blocks", same, 1)


def _clusters(vectors):
    large, found = _time(lambda: corpus.cluster_similarity(vectors), 1)
    for name, part, whole in (
        ("in", found.in_cluster, found.in_exact),
        ("cross", found.cross_cluster, found.cross_exact),
    ):
        gap = abs(part.value - whole) / (part.high - part.value)
        yield Row(
            f"{name}-cluster, half widths from exact", gap, np.nan, "sampled", gap, 1.5, False
        )
    labels = found.clusters.labels
    ours, _ = _time(lambda: corpus.partition(vectors, labels).in_cluster, 2)
    part, own = vectors[:64_000], labels[:64_000]
    eighth, exact = _time(lambda: corpus.partition(part, own).in_cluster, 3)
    yield Row("closed form, 8 x the documents", ours, eighth, "64k", ours / eighth, 12, False)
    peer, pairs = _time(lambda: _all_pairs(part, own), 1)
    yield Row("closed form, 64k x 384", eighth, peer, "all pairs, numpy", peer / eighth, 10)
    gap = abs(exact - pairs)
    yield Row("closed form, error", gap, np.nan, "all pairs, numpy", gap, 1e-6, False, "")
    yield Row("cluster similarity, 512k x 384", large, np.nan, "bound", large, 20, False)


def _maps(vectors):
    import faiss
    import umap
    from openTSNE import TSNE
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE as SklearnTSNE

    jobs = faiss.omp_get_max_threads()
    corpus.map_tsne(vectors[:200])  # what is compiled or loaded once is no part of a map
    umap.UMAP(random_state=0, n_jobs=1).fit_transform(vectors[:200])
    # openTSNE and scikit-learn get 50 components, which is quicker and less trustworthy.
    ours, found = _time(lambda: corpus.map_tsne(vectors), 1)
    peers = {
        "UMAP": lambda: umap.UMAP(metric="cosine", random_state=0, n_jobs=1).fit_transform(vectors),
        "openTSNE": lambda: TSNE(random_state=0, n_jobs=jobs).fit(_reduced(PCA, vectors)),
        "scikit-learn": lambda: SklearnTSNE(random_state=0, n_jobs=jobs).fit_transform(
            _reduced(PCA, vectors)
        ),
    }
    times, worth = {}, {}
    for name, call in peers.items():
        times[name], flat = _time(call, 1)
        worth[name] = corpus.trustworthiness(vectors, np.asarray(flat))
        yield Row(f"t-SNE, 10,000, against {name}", ours, times[name], name, times[name] / ours, 0)
        what = f"its trustworthiness less that of {name}"
        gap = found.trustworthiness - worth[name]
        yield Row(what, found.trustworthiness, worth[name], name, gap, -0.002, unit="")
    fastest = min(times, key=times.get)
    if found.trustworthiness >= worth[fastest] - 0.002:
        what = f"map of 10,000, against the fastest ({fastest})"
        yield Row(what, ours, times[fastest], fastest, times[fastest] / ours, 1 / 1.2)


def _reduced(pca, vectors):
    return pca(50, random_state=0).fit_transform(vectors)


def _directions(rng, n):
    rows = rng.normal(size=(n, DIMENSIONS)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _blocked(vectors, asked, k):
    best = np.full((len(asked), k), -np.inf, dtype=np.float32)
    ids = np.zeros((len(asked), k), dtype=np.int64)
    for start in range(0, len(vectors), 32_768):
        scores = vectors[asked] @ vectors[start : start + 32_768].T
        own = (asked >= start) & (asked < start + scores.shape[1])
        scores[np.flatnonzero(own), asked[own] - start] = -np.inf
        top = np.argpartition(scores, -k, axis=1)[:, -k:]
        best = np.concatenate([best, np.take_along_axis(scores, top, axis=1)], axis=1)
        ids = np.concatenate([ids, top + start], axis=1)
        keep = np.argpartition(best, -k, axis=1)[:, -k:]
        best, ids = (np.take_along_axis(part, keep, axis=1) for part in (best, ids))
    return ids


def _all_pairs(vectors, labels):
    total = pairs = 0.0
    for label in np.unique(labels):
        part = vectors[labels == label]
        total += (part @ part.T).sum(dtype=np.float64) - len(part)
        pairs += len(part) * (len(part) - 1.0)
    return total / pairs


class _Memory:
    """The resident memory gained inside the block, at its highest, read every 5 ms."""

    def __enter__(self):
        self._before = self._highest = self._resident()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._done.set()
        self._thread.join()
        self.gigabytes = (self._highest - self._before) * 4096 / 1e9

    def _watch(self):
        while not self._done.wait(0.005):
            self._highest = max(self._highest, self._resident())

    def _resident(self):
        return int(Path("/proc/self/statm").read_text("ascii").split()[1])


def _time(call, repeats):
    best, value = float("inf"), None
    for _ in range(repeats):
        start = perf_counter()
        value = call()
        best = min(best, perf_counter() - start)
    return best, value
