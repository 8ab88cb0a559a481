"""Corpus geometry against blocked numpy and all pairs, maps against the three libraries for them.

The vectors are drawn like embeddings of a company's documents: a direction common to all, unequal
topics with unequal subtopics, variation along a few directions, and noise.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ragkit.measures import corpus
from tests.bench import Row, beside, least, most, timed
from tests.bench.bench_dense import in_blocks, same

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
    before = _memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", "ascii")  # sets VmHWM to VmRSS
    ours, _ = timed(lambda: corpus.local_density(vectors, ASKED), 3)
    gained = _memory("VmHWM") - before
    peer, ids = timed(lambda: in_blocks(vectors, vectors[asked], 11), 2)
    what = "local density, 1,000 of 512k x 384"
    yield beside(what, ours, peer, "numpy in blocks", 2.5)
    yield most(f"{what}, seconds", ours, 3)
    yield most(f"{what}, GB beside", gained, 2, "GB")
    others = ids[ids != asked[:, None]].reshape(len(asked), 10)
    share = same(corpus.neighbours(vectors, asked).ids, others)
    yield least("neighbours, share of identical sets", share, 1, name="numpy in blocks")


def _clusters(vectors):
    large, found = timed(lambda: corpus.cluster_similarity(vectors))
    for name, part, whole in (
        ("in", found.in_cluster, found.in_exact),
        ("cross", found.cross_cluster, found.cross_exact),
    ):
        gap = abs(part.estimate - whole) / (part.high - part.estimate)
        yield most(f"{name}-cluster, half widths from exact", gap, 1.5, "", "sampled")
    labels = found.clusters.labels
    ours, _ = timed(lambda: corpus.partition(vectors, labels), 2)
    part, own = vectors[:64_000], labels[:64_000]
    eighth, exact = timed(lambda: corpus.partition(part, own).in_cluster, 3)
    yield Row("closed form, 8 x the documents", ours, eighth, "64k", ours / eighth, 12, False)
    peer, pairs = timed(lambda: _all_pairs(part, own))
    yield beside("closed form, 64k x 384", eighth, peer, "all pairs, numpy", 10)
    yield most("closed form, error", abs(exact - pairs), 1e-6, "", "all pairs, numpy")
    yield most("cluster similarity, 512k x 384", large, 20)


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
    ours, found = timed(lambda: corpus.map_tsne(vectors))
    peers = {
        "UMAP": lambda: umap.UMAP(metric="cosine", random_state=0, n_jobs=1).fit_transform(vectors),
        "openTSNE": lambda: TSNE(random_state=0, n_jobs=jobs).fit(_reduced(PCA, vectors)),
        "scikit-learn": lambda: SklearnTSNE(random_state=0, n_jobs=jobs).fit_transform(
            _reduced(PCA, vectors)
        ),
    }
    times, worth = {}, {}
    for name, call in peers.items():
        times[name], flat = timed(call)
        worth[name] = corpus.trustworthiness(vectors, np.asarray(flat))
        yield beside(f"t-SNE, 10,000, against {name}", ours, times[name], name, 0)
        what = f"its trustworthiness less that of {name}"
        gap = found.trustworthiness - worth[name]
        yield Row(what, found.trustworthiness, worth[name], name, gap, -0.002, unit="")
    fastest = min(times, key=times.get)
    if found.trustworthiness >= worth[fastest] - 0.002:
        what = f"map of 10,000, against the fastest ({fastest})"
        yield beside(what, ours, times[fastest], fastest, 1 / 1.2)


def _reduced(pca, vectors):
    return pca(50, random_state=0).fit_transform(vectors)


def _directions(rng, n):
    rows = rng.normal(size=(n, DIMENSIONS)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _all_pairs(vectors, labels):
    total = pairs = 0.0
    for label in np.unique(labels):
        part = vectors[labels == label]
        total += (part @ part.T).sum(dtype=np.float64) - len(part)
        pairs += len(part) * (len(part) - 1.0)
    return total / pairs


def _memory(of: str) -> float:
    """Return "VmRSS", the resident memory of this process, or "VmHWM", its highest, in GB."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(re.search(rf"{of}:\s+(\d+)", status)[1]) / 1e6
