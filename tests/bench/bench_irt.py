"""Item response models: speed beside py-irt, and the accuracy that is promised.

One thread; every ratio is taken within this run. The matrix is the challenge's size: 40 subjects,
895 items, 20,000 scores. `RAGKIT_BENCH_EPOCHS` shortens py-irt; its time is then scaled up to the
10,000 epochs of the LiveRAG paper and the row says so. `RAGKIT_BENCH_LARGE=0` leaves out the
100,000,000 scores, `RAGKIT_BENCH_NUTS=0` the reference. Real matrices need a mirror (RAGKIT_DATA).
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np
import pandas as pd

from tests.bench import Row, beside, least, most, timed

EPOCHS = 10_000
CHALLENGE = {"sessions": 2, "shared": 105}
STRICT = ("baodangtrandev/RAG-", "victormocioiu/rag-api")


def run() -> Iterator[Row]:
    from threadpoolctl import threadpool_limits

    from ragkit import irt

    with threadpool_limits(1):
        simulated = irt.simulate(**CHALLENGE, seed=0)
        irt.fit(simulated.scores)  # imports
        ours = timed(lambda: irt.fit(simulated.scores), 7)[0]
        epochs = int(os.environ.get("RAGKIT_BENCH_EPOCHS", EPOCHS))
        options = {"engine": "py-irt", "epochs": epochs}
        theirs = timed(lambda: irt.fit(simulated.scores, **options))[0] * EPOCHS / epochs
        name = "py-irt, 10,000 epochs" if epochs == EPOCHS else f"py-irt, from {epochs:,} epochs"
        yield beside("em with errors, 20,000 scores", ours, theirs, name, 200)
        yield from _recovery(irt)
        matrices = dict(_matrices(irt))
        for name, (scores, likelihood) in matrices.items():
            yield from _heldout(irt, name, scores, likelihood)
            yield from _laws(irt, name, scores, likelihood)
        if os.environ.get("RAGKIT_BENCH_NUTS", "1") != "0":
            yield from _reference(irt, simulated, matrices)
    if os.environ.get("RAGKIT_BENCH_LARGE", "1") != "0":
        yield _rows(irt)
        yield from _large(irt)


def _recovery(irt) -> Iterator[Row]:
    for disc, slope in (("positive", 0.50), ("signed", 0.42)):
        table = irt.recovery(seeds=range(10), simulation=CHALLENGE, disc=disc)
        by = table.groupby("parameter")
        what = f"recovery, {disc}, 10 simulations: "
        yield least(what + "least r of theta", by["r"].min()["theta"], 0.97)
        yield least(what + "mean r of disc", by["r_disc"].mean()["log_disc"], slope)
        if disc == "signed":
            flagged = [
                irt.fit(irt.simulate(**CHALLENGE, seed=k).scores, disc=disc).items["flag"]
                for k in range(10)
            ]
            share = np.mean([flag.str.contains("negative").mean() for flag in flagged])
            yield most(what + "false negatives", share, 0.02, "")
            continue
        yield least(what + "mean r of diff", by["r"].mean()["diff"], 0.86)
        for name, value in by["coverage"].mean().items():
            yield least(f"{what}90 % cover {name}", value, 0.86)
            yield most(f"{what}90 % cover {name}", value, 0.94, "")


def _matrices(irt):
    """Yield name, scores on [0, 1] and likelihood of the simulated and the real matrices."""
    from ragkit import datasets
    from ragkit.systems import sweep

    yield "40 x 895", (irt.simulate(**CHALLENGE, seed=3).scores, "cb")
    yield "120 x 300", (irt.simulate(120, 300, missing=0.3, seed=5).scores, "cb")
    yield "sample", (sweep.sample_scores(), "fractional")
    data = os.environ.get("RAGKIT_DATA") or Path(__file__).parents[3] / "shared" / "data"
    if not (Path(data) / "irt").is_dir():
        return
    grag = datasets.load("grag", profile="paper", data=data).scores
    yield "grag", (grag.assign(score=(grag["score"] + 1) / 3), "fractional")
    judged = datasets.load("erb_judged", profile="paper", data=data).scores
    full = judged.groupby("subject_id")["item_id"].transform("count") >= 499
    yield "erb strict", (judged[full & judged["judge_group"].isin(STRICT)], "bernoulli")
    for name in ("lsat6", "lsat7"):
        yield name, (datasets.load(name, profile="paper", data=data).scores, "bernoulli")


def _heldout(irt, name: str, scores, likelihood: str) -> Iterator[Row]:
    """Mean log score of 20 % of the cells, ten splits, against item means and other priors."""
    scores = scores[["subject_id", "item_id", "score"]].reset_index(drop=True)
    models = {"weak": {}, "hierarchical": {"prior": "hierarchical"}, "1pl": {"model": "1pl"}}
    found = {model: [] for model in (*models, "item means")}
    for split in range(10):
        out = np.random.default_rng(split).random(len(scores)) < 0.2
        train, test = scores[~out], scores[out]
        known = test["subject_id"].isin(train["subject_id"])
        test = test[known & test["item_id"].isin(train["item_id"])]
        for model, options in models.items():
            result = irt.fit(train, likelihood=likelihood, disconnected="assume-equal", **options)
            found[model].append(result.pointwise(test).mean())
        found["item means"].append(_item_means(irt.get_likelihood(likelihood), train, test))
    ours, means = np.mean(found["weak"]), np.mean(found["item means"])
    best = max(np.mean(values) for values in found.values())
    what = f"{name}, held-out log score "
    yield Row(what + "against item means", ours, means, "item means", ours - means, 0.0, unit="")
    yield Row(what + "against the best", ours, best, "best engine", ours - best, -0.003, unit="")


def _item_means(family, train, test) -> float:
    grid = np.linspace(-60, 60, 24_001)
    mean = family.mean_variance(grid)[0]
    by_item = train.groupby("item_id")["score"].agg(["sum", "count"])
    share = (by_item["sum"] + 0.5) / (by_item["count"] + 1)
    eta = np.interp(share[test["item_id"]].to_numpy(), mean, grid)
    return float(family.log_density(eta, test["score"].to_numpy()).mean())


def _laws(irt, name: str, scores, likelihood: str) -> Iterator[Row]:
    """Permuted rows, relabelled ids, rescaled and reflected scores."""
    one = irt.fit(scores, likelihood=likelihood)
    yield least(f"{name}, converged", float(one.converged), 1.0)
    rho = one.subjects["theta"].corr(one.subjects["mean_score"], method="spearman")
    yield least(f"{name}, rank r of theta with the mean score", rho, 0.7)
    turned = irt.fit(scores.assign(score=1 - scores["score"]), likelihood=likelihood)
    moved = [(turned.items["diff"] + one.items["diff"]).abs().max()]
    wide = irt.fit(
        scores.assign(score=100 * scores["score"]), likelihood=likelihood, score_range=(0, 100)
    )
    moved.append((wide.items["diff"] - one.items["diff"]).abs().max())
    mixed = irt.fit(scores.sample(frac=1, random_state=0), likelihood=likelihood)
    moved.append((mixed.items["diff"] - one.items["diff"]).abs().max())
    ids = {old: f"x{k}" for k, old in enumerate(reversed(one.items.index))}
    named = irt.fit(scores.assign(item_id=scores["item_id"].map(ids)), likelihood=likelihood)
    named = named.items["diff"][[ids[item] for item in one.items.index]].to_numpy()
    moved.append(np.abs(named - one.items["diff"].to_numpy()).max())
    yield most(f"{name}, largest change under a law", max(moved), 1e-6, "")
    twins = scores.assign(subject_id="twin " + scores["subject_id"].astype(str))
    both = irt.fit(
        pd.concat([scores.astype({"subject_id": str}), twins], ignore_index=True),
        likelihood=likelihood,
    )
    r = both.items["diff"].corr(one.items["diff"])
    yield least(f"{name}, r of diff with every subject doubled", r, 0.99)


def _reference(irt, simulated, matrices) -> Iterator[Row]:
    options = {"engine": "nuts", "draws": 150, "warmup": 200, "chains": 1}
    tried = {"40 x 895, seed 0": (simulated.scores, "cb", 0.998)}
    if "grag" in matrices:
        tried["grag"] = (*matrices["grag"], 0.98)
    for name, (scores, likelihood, target) in tried.items():
        default = irt.fit(scores, likelihood=likelihood)
        work = partial(irt.fit, scores, likelihood=likelihood, **options)
        spent, nuts = timed(work)
        r = irt.agreement({"em": default, "nuts": nuts}).set_index("parameter").loc["theta", "r"]
        what = f"{name}, em against nuts, r of theta"
        yield Row(what, default.info["seconds"], spent, "nuts", r, target)


def _rows(irt) -> Row:
    """Two million rows of a CSV file, from the file to the fit."""
    from ragkit.files import read_frame

    scores = irt.simulate(1000, 2000, seed=1).scores
    with TemporaryDirectory() as folder:
        path = Path(folder) / "scores.csv"
        scores.to_csv(path, index=False)
        begin = process_time()
        result = irt.fit(read_frame(path, "scores"))
    assert result.converged
    return most("em, two million rows of CSV: CPU seconds", process_time() - begin, 15)


def _large(irt) -> Iterator[Row]:
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
    spent, result = timed(lambda: irt.fit(scores))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    r = float(np.corrcoef(result.items["diff"], b)[0, 1])
    what = "em, 1,000 x 100,000, full: "
    yield most(what + "seconds", spent, 60, "s")
    yield most(what + "peak GB", peak, 4, "GB")
    yield least(what + "r of diff", r, 0.98)
