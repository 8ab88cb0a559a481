"""Confidence intervals of measured scores, and paired tests of whether two systems differ.

Scores are per item (question), comparisons are paired, and questions are resampled. A measure that
is no mean, such as corpus BLEU, is a *statistic of sums*: a function of the sums over items of rows
of counts.

Questions that share documents or topics are not independent. With `clusters`, which say what
belongs together, intervals and tests come from the jackknife over clusters and Student's t (Bell
and McCaffrey 2002); `python -m tests.bench stats` shows their errors of the first kind.

The resampling is the project's own: scipy draws anew for every pair, 100 times as slow for 24
systems (`python -m tests.bench metrics`). A pair gets the same numbers whatever else is compared.

>>> scores = pd.DataFrame({"subject_id": ["one"] * 8 + ["two"] * 8, "item_id": [*"abcdefgh"] * 2})
>>> scores["score"] = [1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0]
>>> summarise(scores)
  subject_id  n   mean       low  high
0        one  8  0.875  0.409441   1.0
1        two  8  0.125  0.000000   0.5
>>> compared = compare_systems(scores)
>>> compared[["system_a", "system_b", "n", "difference", "p"]]
  system_a system_b  n  difference        p
0      one      two  8        0.75  0.03125
>>> ranks(compared)
  system  rank  low  high
0    one     1    1     1
1    two     2    2     2
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtr, ndtri
from scipy.stats import binomtest, false_discovery_control, t

from ragkit import checks, display
from ragkit.errors import DataError, UsageError

# If at most this many items differ, all 2^m exchanges are enumerated and the test is exact.
EXACT_ITEMS = 16
# Numbers per block of resamples: bounds the memory, never changes a result.
BLOCK = 4_000_000
# With which probability a difference of the size `detectable` is found.
POWER = 0.8
SLACK = 1e-12  # how far two equal numbers may drift apart by rounding, relative to their size

Statistic = Callable[[np.ndarray, int], np.ndarray]


class Interval(NamedTuple):
    """An estimate from `n` items with its confidence interval, low <= high (NaN if n < 2)."""

    estimate: float
    low: float
    high: float
    n: int


class PairedPermutation(NamedTuple):
    """A mean difference a - b and a two-sided p-value in (0, 1], exact or sampled."""

    difference: float
    p: float
    n: int
    exact: bool


class Powered(NamedTuple):
    """A mean with its interval and the p-value of its being 0; see `prediction_powered`.

    `weight`, 0 to 1, is that of the predictions; `labels` is the mean of the n labels alone.
    """

    estimate: float
    low: float
    high: float
    p: float
    n: int
    weight: float
    labels: Interval


def bootstrap_interval(
    values: Sequence[float] | np.ndarray,
    statistic: Statistic | None = None,
    *,
    clusters: Sequence | None = None,
    level: float = 0.95,
    n_resamples: int = 9999,
    seed: int = 0,
) -> Interval:
    """Return a mean, or a statistic of sums, with its BCa bootstrap confidence interval.

    `values` are n >= 1 scores, or rows of shape (n, m), which add to m sums; `statistic(sums, n)`
    then turns sums of shape (..., m) into values of shape (...). With `clusters`, n labels, the
    interval is that of the jackknife. Raises `DataError` if there is no value, or one is NaN or
    infinite, `UsageError` if an option is out of range; `level` lies in (0, 1).

    Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, sections 13.3 and 14.3.

    >>> bootstrap_interval([1, 1, 1, 0, 1, 1, 1, 0, 1, 1])
    Interval(estimate=0.8, low=0.5, high=1.0, n=10)
    """
    _check_options(level, n_resamples)
    rows = _numbers(values, "values", most_axes=2)
    rows, statistic, n = rows.reshape(len(rows), -1), statistic or _mean, len(rows)
    estimate = float(statistic(rows.sum(axis=0), n))
    jackknife = _left_out(rows[:, None, :], clusters, statistic)[:, 0]
    if clusters is not None:
        return Interval(estimate, *_student(estimate, jackknife, level)[:2], n)
    if n < 2:
        return Interval(estimate, np.nan, np.nan, n)
    draws = _bootstrap(rows[:, None, :], statistic, n_resamples, seed)[:, 0]
    return Interval(estimate, *_limits(draws, estimate, jackknife, level), n)


def wilson_interval(successes: int, n: int) -> Interval:
    """Return the proportion `successes / n` with Wilson's (1927) 95 % score interval.

    Raises `UsageError` unless 0 <= successes <= n and n >= 1 are whole numbers.

    >>> wilson_interval(8, 10)
    Interval(estimate=0.8, low=0.4901..., high=0.9433..., n=10)
    """
    n = checks.whole(n, "n")
    successes = checks.whole(successes, "successes", least=0, most=n)
    ends = binomtest(successes, n).proportion_ci(0.95, method="wilson")
    return Interval(successes / n, float(ends.low), float(ends.high), n)


def wilson_intervals(successes: Sequence[int], n: Sequence[int]) -> pd.DataFrame:
    """Return the `wilson_interval` of several proportions: columns estimate, low, high, n.

    >>> wilson_intervals([8, 80], [10, 100]).round(3)
       estimate    low   high    n
    0       0.8  0.490  0.943   10
    1       0.8  0.711  0.867  100
    """
    pairs = zip(successes, n, strict=True)
    return pd.DataFrame([wilson_interval(round(k), int(size)) for k, size in pairs])


def paired_permutation(
    a: Sequence[float], b: Sequence[float], *, n_resamples: int = 9999, seed: int = 0
) -> PairedPermutation:
    """Return the mean difference a - b and the p-value of the paired permutation test.

    `a` and `b` are scores of the same items, in the same order; under the null hypothesis an
    item's two scores are exchangeable. All exchanges are enumerated if at most 16 items differ.
    Otherwise `n_resamples` are drawn, and the p-value is never 0 (Phipson and Smyth 2010). Raises
    `DataError` if the lengths differ, there is no item, or a score is NaN or infinite.

    Source: Fisher (1935), The Design of Experiments, section 21.

    >>> paired_permutation([1, 1, 1, 1, 1], [0, 0, 0, 0, 1])
    PairedPermutation(difference=0.8, p=0.125, n=5, exact=True)
    """
    _check_options(n_resamples=n_resamples)
    a, b = _numbers(a, "a"), _numbers(b, "b")
    if len(a) != len(b):
        raise DataError(
            f"a paired comparison needs the same items, found {len(a)} and {len(b)} scores"
        )
    rows = np.stack([a, b], axis=1)
    p, exact = _permutation(rows, [(0, 1)], n_resamples, seed)
    return PairedPermutation(float((a - b).mean()), float(p[0]), len(a), bool(exact[0]))


def prediction_powered(labels: Sequence[float], predictions: Sequence[float]) -> Powered:
    """Return a mean of labels that are known for some items only, by predictions for all.

    The mean of the predictions (of a cheap judge) over the items without a label, less their mean
    error on the others. If the labelled items are drawn at random, the 95 % interval is valid
    however wrong the predictions are. For two systems, both arguments are differences per item.

    `labels` are n numbers, NaN where there is none; `predictions` n numbers. Raises `DataError` if
    the lengths differ, a prediction is missing, or there are fewer than two labels or items
    without one.

    Source: Angelopoulos, Duchi and Zrnic (2023), PPI++, as in the package ppi-python 0.2.3.

    >>> labels = [1, 0, 1, 1] + [np.nan] * 96
    >>> found = prediction_powered(labels, [1, 0, 1, 0] * 25)
    >>> found.estimate, found.n
    (0.75, 4)
    """
    labels, predictions = np.asarray(labels, dtype=float), _numbers(predictions, "predictions")
    if labels.shape != predictions.shape:
        raise DataError(f"found {labels.shape} labels for {predictions.shape} predictions")
    known = ~np.isnan(labels)
    n, rest = int(known.sum()), int((~known).sum())
    if min(n, rest) < 2:
        raise DataError(f"expected two labels and two items without, found {n} and {rest}")
    truth, seen, unseen = labels[known], predictions[known], predictions[~known]
    spread = (1 + n / rest) * predictions.var(ddof=1)
    shared = np.mean((truth - truth.mean()) * (seen - seen.mean()))
    weight = float(np.clip(shared / spread, 0, 1)) if spread > 0 else 0.0
    estimate = weight * unseen.mean() + (truth - weight * seen).mean()
    error = np.sqrt((truth - weight * seen).var() / n + (weight * unseen).var() / rest)
    z = ndtri(0.975)
    half, p = z * error, 2 * ndtr(-abs(estimate) / max(error, 1e-16))
    alone, mean = z * truth.std() / np.sqrt(n), truth.mean()
    numbers = map(float, (estimate, estimate - half, estimate + half, p))
    return Powered(*numbers, n, weight, Interval(mean, mean - alone, mean + alone, n))


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Return p-values adjusted for several comparisons by Holm's step-down method (Holm 1979).

    The order is kept; NaN, a comparison that was not made, stays NaN and is not counted. Raises
    `DataError` if a p-value is outside [0, 1].

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    p = _p_values(p_values)
    order = np.argsort(p, kind="stable")[: np.isfinite(p).sum()]  # NaN sorts last
    adjusted = np.full(len(p), np.nan)
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted


def false_discovery(p_values: Sequence[float]) -> np.ndarray:
    """Return p-values adjusted for the false discovery rate (Benjamini and Hochberg 1995).

    The rest is as in `holm`.
    """
    p = _p_values(p_values)
    known = np.isfinite(p)
    p[known] = false_discovery_control(p[known]) if known.any() else p[known]
    return p


def _p_values(p_values: Sequence[float]) -> np.ndarray:
    p = np.array(p_values, dtype=float)
    if p.ndim != 1 or ((p < 0) | (p > 1)).any():
        raise DataError(f"expected p-values between 0 and 1, found {p_values!r:.80}")
    return p


def summarise(scores: pd.DataFrame, *, clusters: Mapping | None = None, **options) -> pd.DataFrame:
    """Return the mean score of each system with its confidence interval.

    `scores` have the columns subject_id, item_id, score and perhaps metric; `clusters` maps an
    item_id to its cluster; the options are those of `bootstrap_interval`. One row per metric and
    subject_id, in order of appearance: n, mean, low, high. Raises `DataError` if a column is
    missing, a score is missing or infinite, an item repeats or has no cluster.
    """
    keys = _score_keys(scores)
    table = []
    groups = scores.groupby(keys, sort=False)
    for key, group in display.progress(groups, "intervals"):
        group = group.sort_values("item_id")
        of = _clusters(group["item_id"], clusters)
        estimate, low, high, n = bootstrap_interval(group["score"], clusters=of, **options)
        table.append((*key, n, estimate, low, high))
    return pd.DataFrame(table, columns=[*keys, "n", "mean", "low", "high"])


def compare_systems(
    scores: pd.DataFrame,
    *,
    baseline: str | None = None,
    clusters: Mapping | None = None,
    level: float = 0.95,
    n_resamples: int = 9999,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare all pairs of systems, or each with a baseline, on the items that both have.

    `baseline` is the subject_id that all others are compared with (default: all pairs); the rest
    is as in `summarise`. There must be at least two systems.

    Returns one row per metric and pair, the system with the higher mean of all its items first
    (the baseline second): metric (if scores have it), system_a, system_b, n items that both have,
    left_out items that only one has, a and b (means over the n), difference a - b, its bootstrap
    interval low and high, p of the paired permutation test and whether it is exact (with clusters
    both by Student's t), detectable (the true difference that 80 % of such benchmarks would find
    at the 5 % level), and p_holm over the pairs of a metric. NaN where there are too few items.
    """
    _check_options(level, n_resamples)
    _score_keys(scores)
    parts = []
    for key, group in _by_metric(scores):
        matrix = group.pivot(index="item_id", columns="subject_id", values="score").sort_index()
        means = matrix.mean().sort_index().sort_values(ascending=False, kind="stable")
        matrix, of = matrix[means.index], _clusters(matrix.index, clusters)
        part = _compared(matrix, baseline, of, level, n_resamples, seed)
        parts.append(part.assign(**key)[[*key, *part]])
    return pd.concat(parts, ignore_index=True)


def ranks(comparisons: pd.DataFrame) -> pd.DataFrame:
    """Return the rank of each system with an interval, from all pairs of `compare_systems`.

    By Holm's correction all intervals hold together with a probability of 95 %. Columns metric (if
    there is one), system, rank, low, high. Raises `DataError` if a pair is missing.

    Source: Al Mohamad, Goeman and van Zwet (2022), Simultaneous confidence intervals for ranks.
    """
    rows = []
    for key, group in _by_metric(comparisons):
        systems = list(dict.fromkeys([*group["system_a"], *group["system_b"]]))
        if len(group) != len(systems) * (len(systems) - 1) / 2:
            raise DataError("ranks need the comparisons of all pairs", "leave baseline out")
        sure = group[group["p_holm"] <= 0.05]
        better = sure["system_a"].where(sure["difference"] > 0, sure["system_b"])
        worse = sure["system_b"].where(sure["difference"] > 0, sure["system_a"])
        for place, system in enumerate(systems, 1):
            low, high = 1 + (worse == system).sum(), len(systems) - (better == system).sum()
            rows.append({**key, "system": system, "rank": place, "low": low, "high": high})
    return pd.DataFrame(rows)


def _compared(matrix, baseline, clusters, level, n_resamples, seed) -> pd.DataFrame:
    """Return the comparisons of a matrix, items by systems; NaN where a system lacks an item."""
    systems, present, rows = list(matrix), matrix.notna().to_numpy(), matrix.to_numpy(float)
    if len(systems) < 2:
        raise DataError(f"a comparison needs at least two systems, found {len(systems)}")
    pairs = list(combinations(range(len(systems)), 2))
    if baseline is not None:
        second = systems.index(checks.choice(baseline, "system", systems))
        pairs = [(first, second) for first in range(len(systems)) if first != second]
    # Pairs that share their items share their draws.
    groups: dict[bytes, list[tuple[int, int]]] = {}
    for a, b in pairs:
        groups.setdefault((present[:, a] & present[:, b]).tobytes(), []).append((a, b))
    found = {}
    for mask, chosen in groups.items():
        items = np.frombuffer(mask, dtype=bool)
        of = None if clusters is None else np.asarray(clusters)[items]
        results = _compare(np.nan_to_num(rows[items]), of, chosen, level, n_resamples, seed)
        for (a, b), result in zip(chosen, results, strict=True):
            n, either = int(items.sum()), int((present[:, a] | present[:, b]).sum())
            found[a, b] = (systems[a], systems[b], n, either - n, *result)
    columns = "system_a system_b n left_out a b difference low high p exact detectable".split()
    frame = pd.DataFrame([found[pair] for pair in pairs], columns=columns)
    return frame.assign(p_holm=holm(frame["p"]))


def _compare(rows, clusters, pairs, level, n_resamples, seed) -> Iterator[tuple]:
    """Yield the numbers of each pair of columns of scores, shape (n, k)."""
    n, sums = len(rows), rows[:, :, None]
    if n == 0:
        yield from [(np.nan,) * 6 + (False, np.nan)] * len(pairs)
        return
    estimates, jackknife = rows.sum(axis=0) / n, _left_out(sums, clusters, _mean)
    if clusters is None:
        p_values, exact = _permutation(rows, pairs, n_resamples, seed)
        draws = _bootstrap(sums, _mean, n_resamples, seed)
    for number, (a, b) in enumerate(pairs):
        gap, gaps = float(estimates[a] - estimates[b]), jackknife[:, a] - jackknife[:, b]
        low, high, p, detectable = _student(gap, gaps, level)
        certain = False
        if clusters is None:
            p, certain = float(p_values[number]), bool(exact[number])
            if n > 1:
                low, high = _limits(draws[:, a] - draws[:, b], gap, gaps, level)
        means = float(estimates[a]), float(estimates[b])
        yield *means, gap, low, high, p, certain, detectable


def _left_out(rows, clusters, statistic) -> np.ndarray:
    """Return a statistic of rows (n, k, m) without each item or cluster in turn, shape (c, k)."""
    clusters = range(len(rows)) if clusters is None else clusters
    if len(clusters) != len(rows):
        raise UsageError(f"clusters should name {len(rows)} items, found {len(clusters)}")
    _, codes, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    if len(sizes) < 2:
        return np.full((1, rows.shape[1]), np.nan)
    sums = np.zeros((len(sizes), *rows.shape[1:]))
    np.add.at(sums, codes, rows)
    return statistic(sums.sum(axis=0) - sums, (len(rows) - sizes)[:, None])


def _student(estimate, jackknife, level) -> tuple[float, float, float, float]:
    """Return the ends, the p-value and the detectable distance from 0, by the jackknife."""
    free = len(jackknife) - 1
    if free < 1:
        return (np.nan,) * 4
    error = np.sqrt(free / (free + 1) * ((jackknife - jackknife.mean()) ** 2).sum())
    half, power = t.ppf([(1 + level) / 2, POWER], free) * error
    p = 2 * t.sf(abs(estimate) / error, free) if error > 0 else float(estimate == 0)
    return float(estimate - half), float(estimate + half), float(p), float(half + power)


def sharing(questions: pd.DataFrame, column: str = "gold_doc_ids") -> dict[str, int]:
    """Return the cluster of each question_id: questions that a chain of shared entries links.

    `column` holds tuples; a question without an entry is a cluster of its own.
    """
    pairs = questions[column].reset_index(drop=True).explode().dropna()
    entries, n = pd.factorize(pairs)[0], len(questions)
    places = pairs.index, n + entries
    links = coo_array((np.ones(len(pairs)), places), shape=(n + len(pairs),) * 2)
    labels = connected_components(links)[1][:n]
    return dict(zip(questions["question_id"], labels.tolist(), strict=True))


def _clusters(items, clusters: Mapping | None) -> list | None:
    if clusters is None:
        return None
    found = [clusters.get(item) for item in items]
    if None in found:
        raise DataError(f"the item {list(items)[found.index(None)]!r} has no cluster")
    return found


def _mean(sums: np.ndarray, n: int) -> np.ndarray:
    return sums[..., 0] / n


def _bootstrap(rows, statistic, n_resamples, seed) -> np.ndarray:
    """Return draws of a statistic, shape (n_resamples, k), of rows (n, k, m)."""
    n, k, m = rows.shape
    rng = np.random.default_rng(seed)
    flat = rows.reshape(n, k * m)
    draws = np.empty((n_resamples, k))
    for start, stop in _blocks(n_resamples, max(n, k * m)):
        # One uniform double per draw: the stream does not depend on the size of the block.
        picks = (rng.random((stop - start, n)) * n).astype(np.int64)
        picks += np.arange(stop - start)[:, None] * n
        counts = np.bincount(picks.ravel(), minlength=(stop - start) * n).reshape(-1, n)
        draws[start:stop] = statistic((counts.astype(float) @ flat).reshape(-1, k, m), n)
    return draws


def _limits(draws, estimate, jackknife, level) -> tuple[float, float]:
    """Return the ends of the BCa interval, those of the percentile interval if nothing varies."""
    equal = np.abs(draws - estimate) <= SLACK * np.abs(draws).max()
    share = ((draws < estimate) & ~equal).mean() + equal.mean() / 2
    edge = 0.5 / len(draws)
    bias = ndtri(np.clip(share, edge, 1 - edge))
    spread = jackknife.mean() - jackknife
    squares = (spread**2).sum()
    varies = squares > (SLACK * np.abs(jackknife).max()) ** 2 * len(jackknife)
    skew = (spread**3).sum() / (6 * squares**1.5) if varies else 0.0
    z = bias + ndtri([(1 - level) / 2, (1 + level) / 2])
    low, high = np.quantile(draws, ndtr(bias + z / (1 - skew * z)))
    return float(low), float(high)


def _permutation(rows, pairs, n_resamples, seed) -> tuple[np.ndarray, np.ndarray]:
    """Return the p-value of each pair and whether it is exact; rows (n, k), n >= 1."""
    n, totals = len(rows), rows.sum(axis=0)
    first, second = np.array(pairs).T
    gain = rows[:, second] - rows[:, first]  # what an exchange adds to a and takes from b
    observed = np.abs(totals[first] / n - totals[second] / n)
    scale = np.maximum(np.abs(totals / n).max(), np.abs(gain).max() / n)
    threshold = observed - SLACK * scale

    def extreme(exchanged, chosen, items):
        shift = exchanged @ np.ascontiguousarray(gain[items][:, chosen])
        a, b = totals[first[chosen]] + shift, totals[second[chosen]] - shift
        return (np.abs(a / n - b / n) >= threshold[chosen]).sum(axis=0)

    differing = gain != 0
    exact = differing.sum(axis=0) <= EXACT_ITEMS
    p = np.empty(len(pairs))
    for number in np.flatnonzero(exact):
        items = np.flatnonzero(differing[:, number])
        codes = np.arange(2 ** len(items))
        exchanged = (codes[:, None] >> np.arange(len(items)) & 1).astype(float)
        p[number] = extreme(exchanged, [number], items)[0] / len(codes)
    sampled = np.flatnonzero(~exact)
    if len(sampled):
        rng = np.random.default_rng(seed)
        hits = np.zeros(len(sampled), dtype=np.int64)
        for start, stop in _blocks(n_resamples, max(n, len(sampled))):
            exchanged = (rng.random((stop - start, n)) < 0.5).astype(float)
            hits += extreme(exchanged, sampled, slice(None))
        p[sampled] = (1 + hits) / (1 + n_resamples)
    return p, exact


def _blocks(total: int, width: int) -> Iterator[tuple[int, int]]:
    step = max(1, BLOCK // width)
    for start in display.progress(range(0, total, step), "resamples"):
        yield start, min(start + step, total)


def _numbers(values, name: str, most_axes: int = 1) -> np.ndarray:
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"{name} should be numbers, found {values!r:.80}") from None
    if not 1 <= numbers.ndim <= most_axes or numbers.size == 0:
        raise DataError(f"{name} should be at least one number, found shape {numbers.shape}")
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise DataError(
            f"{name}: number {bad[0] + 1} of {numbers.size} is {numbers.flat[bad[0]]}",
            "leave missing scores out and report how many there are",
        )
    return numbers


def _by_metric(frame: pd.DataFrame) -> Iterator[tuple[dict, pd.DataFrame]]:
    """Yield the rows of each metric with its name, all rows without one if there is no column."""
    if "metric" not in frame:
        yield {}, frame
        return
    for name, rows in frame.groupby("metric", sort=False):
        yield {"metric": name}, rows


def _score_keys(scores: pd.DataFrame) -> list[str]:
    for column in ("subject_id", "item_id", "score"):
        if column not in scores.columns:
            raise DataError(f"scores lack the column {column!r}")
    keys = [name for name in ("metric", "subject_id") if name in scores.columns]
    repeated = scores.duplicated([*keys, "item_id"])
    if repeated.any():
        row = scores[repeated].iloc[0]
        raise DataError(
            f"scores: {row['subject_id']!r} has two scores for {row['item_id']!r}",
            None if "metric" in keys else "several measures need a column 'metric'",
        )
    _numbers(scores["score"].to_numpy(), "score")
    return keys


def _check_options(level: float = 0.95, n_resamples: int = 1) -> None:
    if not 0 < checks.number(level, "level") < 1:
        raise UsageError(f"level lies between 0 and 1, found {level!r}", "95 % is level=0.95")
    checks.whole(n_resamples, "n_resamples")
