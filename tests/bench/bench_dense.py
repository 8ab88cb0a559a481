"""Exact dense search beside numpy in blocks, and the store of vectors.

1,000 queries over 512,000 made unit vectors of length 384, the first 10 of each. The peer multiplies
blocks of 65,536 rows and keeps the largest products by argpartition. Both sides use the threads
that the environment gives them.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from tests.bench import beside, least, timed
from tests.systems.retrieval.support import Rows

DOCUMENTS, QUERIES, WIDTH, K = 512_000, 1_000, 384, 10
BLOCK = 65_536
KEPT = 100_000


def run():
    from ragkit.systems.retrieval import Dense

    matrix, queries = made(DOCUMENTS, 0), made(QUERIES, 1)
    names = [str(row) for row in range(DOCUMENTS)]
    documents = pd.DataFrame({"doc_id": names, "title": None, "text": names})
    dense = Dense(Rows(matrix, queries)).fit(documents)
    dense.search(names[:32], K)
    ours, runs = timed(lambda: dense.search(names[:QUERIES], K))
    peer, theirs = timed(lambda: in_blocks(matrix, queries, K))
    found = runs["doc_id"].to_numpy().astype(np.int64).reshape(QUERIES, K)
    what = f"dense search, {QUERIES:,} x {DOCUMENTS:,} x {WIDTH}"
    yield beside(what, ours, peer, "numpy in blocks", 2.5)
    yield least(f"{what}: equal sets", same(found, theirs), 1, "share", "numpy in blocks")
    yield from _cache()


def same(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the share of rows with the same set of numbers."""
    return float((np.sort(found, axis=1) == np.sort(expected, axis=1)).all(axis=1).mean())


def made(rows: int, seed: int) -> np.ndarray:
    """Return unit vectors in all directions."""
    matrix = np.random.default_rng(seed).standard_normal((rows, WIDTH), dtype=np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix


def in_blocks(matrix: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    """Return each query's k nearest rows, best first."""
    scores = np.empty((len(queries), 0), dtype=np.float32)
    rows = np.empty((len(queries), 0), dtype=np.int64)
    for start in range(0, len(matrix), BLOCK):
        products = queries @ matrix[start : start + BLOCK].T
        best = np.argpartition(products, -k, axis=1)[:, -k:]
        scores = np.hstack([scores, np.take_along_axis(products, best, axis=1)])
        rows = np.hstack([rows, best + start])
    order = np.argsort(-scores, axis=1)[:, :k]
    return np.take_along_axis(rows, order, axis=1)


def _cache():
    """Yield how fast the store of results takes and gives back vectors."""
    from ragkit.store import Store

    matrix = made(KEPT, 2)
    options = {"step": "encode", "code": (), "batch": 64}
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for function in (lambda part: matrix[part], None):  # the second run computes nothing
            with Store(Path(folder) / "store.sqlite") as store:
                work = partial(store.map, function, range(KEPT), **options)
                spent, found = timed(work)
            seconds.append(spent)
    if not (np.array(found) == matrix).all():
        raise AssertionError("other vectors came back")
    for verb, target, spent in zip(("kept", "read"), (5_000, 20_000), seconds, strict=True):
        what = f"store of {KEPT:,} vectors of {WIDTH}, {verb}"
        yield least(what, KEPT / spent, target, "vectors/s")
