"""Diversity measures against the full matrix of pairs and a plain n-gram count."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from ragkit.measures import diversity
from tests.bench import Row


def run():
    rng = np.random.default_rng(0)
    vectors = rng.normal(0.05, 1, size=(6221, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ours, score = _time(lambda: diversity.homogenization_score(vectors))
    peer, _ = _time(lambda: _matrix(vectors))
    gap = abs(score - _matrix(vectors.astype(np.float64)))
    yield Row("homogenization, 6,221 x 384", ours, peer, "numpy, all pairs", peer / ours, 50)
    yield Row("homogenization, error", gap, np.nan, "all pairs, float64", gap, 1e-8, False, "")
    words = [" ".join(rng.choice(list("abcdefghijklmnop"), 12)) for _ in range(20_000)]
    ours, _ = _time(lambda: diversity.ngram_diversity(words))
    peer, _ = _time(lambda: _sets(words))
    yield Row("n-gram diversity, 20,000 texts", ours, peer, "Python sets of tuples", peer / ours, 1)


def _matrix(unit):
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    pairs = unit @ unit.T
    n = len(pairs)
    return (pairs.sum(dtype=np.float64) - np.trace(pairs)) / (n * (n - 1))


def _sets(texts):
    tokens = " ".join(texts).split(" ")
    total = 0.0
    for n in range(1, 5):
        grams = list(zip(*(tokens[i:] for i in range(n)), strict=False))
        total += len(set(grams)) / len(grams)
    return total


def _time(call, repeats=5):
    best, value = float("inf"), None
    for _ in range(repeats):
        start = perf_counter()
        value = call()
        best = min(best, perf_counter() - start)
    return best, value
