"""Item response models: speed beside py-irt, and the accuracy that is promised.

One thread; every ratio is taken within this run. The matrix is the challenge's size: 40 subjects,
895 items, 20,000 scores. `RAGKIT_BENCH_EPOCHS` shortens py-irt; its time is then scaled up to the
10,000 epochs of the LiveRAG paper and the row says so. `RAGKIT_BENCH_LARGE=0` leaves out the
100,000,000 scores.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator

import numpy as np

from tests.bench import Row

EPOCHS = 10_000
NAN = float("nan")


def run() -> Iterator[Row]:
    from threadpoolctl import threadpool_limits

    from ragkit import irt

    with threadpool_limits(1):
        made = irt.simulate(sessions=2, shared=105, seed=0)
        irt.fit(made.scores)  # imports
        ours = min(_timed(irt.fit, made.scores) for _ in range(7))
        epochs = int(os.environ.get("RAGKIT_BENCH_EPOCHS", EPOCHS))
        theirs = _timed(irt.fit, made.scores, engine="py-irt", epochs=epochs, progress=False)
        theirs *= EPOCHS / epochs
        name = "py-irt, 10,000 epochs" if epochs == EPOCHS else f"py-irt, from {epochs:,} epochs"
        yield Row("map with errors, 20,000 scores", ours, theirs, name, theirs / ours, 1000)
        yield from _accuracy(irt)
        yield from _reference(irt, made)
    if os.environ.get("RAGKIT_BENCH_LARGE", "1") != "0":
        yield from _large(irt)


def _timed(function, *arguments, **options) -> float:
    start = time.perf_counter()
    function(*arguments, **options)
    return time.perf_counter() - start


def _accuracy(irt) -> Iterator[Row]:
    table = irt.recovery(seeds=range(10), simulation={"sessions": 2, "shared": 105})
    by = table.groupby("parameter")
    what = "recovery, 10 simulations: "
    for label, value, target in (
        ("least r of theta", by["r"].min()["theta"], 0.97),
        ("mean r of diff", by["r"].mean()["diff"], 0.86),
        ("mean r of disc", by["r_disc"].mean()["log_disc"], 0.50),
    ):
        yield Row(what + label, value, NAN, "bound", value, target, unit="")
    for name, value in by["coverage"].mean().items():
        label = f"{what}90 % cover {name}"
        yield Row(label, value, NAN, "bound", value, 0.85, unit="")
        yield Row(label, value, NAN, "bound", value, 0.95, at_least=False, unit="")


def _reference(irt, made) -> Iterator[Row]:
    default = irt.fit(made.scores)
    norm = default.info["gradient_norm"]
    yield Row("map, largest gradient entry", norm, NAN, "bound", norm, 1e-6, False, "")
    start = time.perf_counter()
    nuts = irt.fit(made.scores, engine="nuts", draws=200, warmup=150, progress=False)
    spent = time.perf_counter() - start
    table = irt.agreement({"map": default, "nuts": nuts}).set_index("parameter")
    r, rho = table.loc["theta", "r"], table.loc["diff", "rho"]
    yield Row("map against nuts, r of theta", default.info["seconds"], spent, "nuts", r, 0.998)
    yield Row("map against nuts, rank r of diff", default.info["seconds"], spent, "nuts", rho, 0.99)


def _large(irt) -> Iterator[Row]:
    import pandas as pd

    from ragkit.irt.likelihood import ContinuousBernoulli

    n, m = 1000, 100_000
    rng = np.random.default_rng(0)
    theta, b, log_a = rng.normal(size=n), rng.normal(0, 1.75, m), rng.normal(0, 0.5, m)
    x = np.empty((n, m), np.float32)
    for start in range(0, m, 2000):
        part = slice(start, start + 2000)
        eta = np.exp(log_a[part]) * (theta[:, None] - b[part])
        x[:, part] = ContinuousBernoulli.sample(eta, rng)
    scores = pd.DataFrame(x, copy=False)
    start = time.perf_counter()
    result = irt.fit(scores)
    spent = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    r = float(np.corrcoef(result.items["diff"], b)[0, 1])
    what = "map, 1,000 x 100,000, full: "
    yield Row(what + "seconds", spent, NAN, "bound", spent, 60, at_least=False)
    yield Row(what + "peak GB", peak, NAN, "bound", peak, 4, at_least=False, unit="GB")
    yield Row(what + "r of diff", r, NAN, "bound", r, 0.98, unit="")
