"""Diversity measures against the full matrix of pairs and a plain n-gram count."""

from __future__ import annotations

import numpy as np

from ragkit.measures import diversity
from tests.bench import beside, most, timed


def run():
    rng = np.random.default_rng(0)
    vectors = rng.normal(0.05, 1, size=(6221, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ours, score = timed(lambda: diversity.homogenization_score(vectors), 5)
    peer, _ = timed(lambda: _matrix(vectors), 5)
    gap = abs(score - _matrix(vectors.astype(np.float64)))
    yield beside("homogenization, 6,221 x 384", ours, peer, "numpy, all pairs", 50)
    yield most("homogenization, error", gap, 1e-8, "", "all pairs, float64")
    words = [" ".join(rng.choice(list("abcdefghijklmnop"), 12)) for _ in range(20_000)]
    ours, _ = timed(lambda: diversity.ngram_diversity(words), 5)
    peer, _ = timed(lambda: _sets(words), 5)
    yield beside("n-gram diversity, 20,000 texts", ours, peer, "Python sets of tuples", 1)


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
