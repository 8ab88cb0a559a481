"""Confidence intervals of measured scores, and paired tests of whether two systems differ.

Scores are per item (question), comparisons are paired, and questions are what is resampled. A
measure that is no mean, such as corpus BLEU, takes part as a *statistic of sums*: each item
contributes a row of counts, and the measure is a function of the column sums.

The resampling is the project's own because scipy draws anew for every pair, which takes 100 times
as long for 24 systems (`python -m tests.bench metrics`); the tests hold both methods against scipy.
A pair gets the same numbers whatever other systems are in the table and in whatever order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri
from scipy.stats import binomtest

from ragkit import checks
from ragkit.errors import DataError, UsageError

# If at most this many items differ, all 2^m exchanges are enumerated and the test is exact.
EXACT_ITEMS = 16
# Numbers per block of resamples: bounds the memory, never changes a result.
BLOCK = 4_000_000

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


def bootstrap_interval(
    values: Sequence[float] | np.ndarray,
    statistic: Statistic | None = None,
    *,
    level: float = 0.95,
    n_resamples: int = 9999,
    seed: int = 0,
) -> Interval:
    """Return a mean, or a statistic of sums, with its BCa bootstrap confidence interval.

    `values` are the scores of n >= 1 items, or rows of shape (n, m) with what each item adds to m
    sums; then `statistic(sums, n)` turns sums of shape (..., m) into an array of shape (...).
    `level` lies in (0, 1). Raises `DataError` if there is no value, or one is NaN or infinite,
    `UsageError` if an option is out of range.

    Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, sections 13.3 and 14.3.
    """
    _check_options(level, n_resamples)
    rows = _numbers(values, "values", most_axes=2)
    rows, statistic, n = rows.reshape(len(rows), -1), statistic or _mean, len(rows)
    estimate = float(statistic(rows.sum(axis=0), n))
    if n < 2:
        return Interval(estimate, np.nan, np.nan, n)
    draws, jackknife = _bootstrap(rows[:, None, :], statistic, n_resamples, seed)
    return Interval(estimate, *_limits(draws[:, 0], estimate, jackknife[:, 0], level), n)


def wilson_interval(successes: int, n: int, *, level: float = 0.95) -> Interval:
    """Return the proportion `successes / n` with Wilson's score interval, within [0, 1].

    Raises `UsageError` unless 0 <= successes <= n and n >= 1 are whole numbers. Source: Wilson
    (1927), Probable inference, the law of succession, and statistical inference.
    """
    _check_options(level)
    n = checks.whole(n, "n")
    successes = checks.whole(successes, "successes", least=0, most=n)
    ends = binomtest(successes, n).proportion_ci(level, method="wilson")
    return Interval(successes / n, float(ends.low), float(ends.high), n)


def wilson_intervals(successes: Sequence[int], n: Sequence[int]) -> pd.DataFrame:
    """Return `wilson_interval` at 95 % of several proportions: columns estimate, low, high, n."""
    pairs = zip(successes, n, strict=True)
    return pd.DataFrame([wilson_interval(round(k), int(size)) for k, size in pairs])


def paired_permutation(
    a: Sequence[float], b: Sequence[float], *, n_resamples: int = 9999, seed: int = 0
) -> PairedPermutation:
    """Return the mean difference a - b and the p-value of the paired permutation test.

    `a` and `b` are the scores of two systems on the same items, in the same order; under the null
    hypothesis an item's two scores are exchangeable. All exchanges are enumerated if at most 16
    items differ. Otherwise `n_resamples` are drawn, and one is added to both counts of the
    p-value, so that it is never 0. Raises `DataError` if the lengths differ, there is no item, or
    a score is NaN or infinite.

    Source: Fisher (1935), The Design of Experiments, section 21; Phipson and Smyth (2010),
    Permutation p-values should never be zero.
    """
    _check_options(n_resamples=n_resamples)
    a, b = _numbers(a, "a"), _numbers(b, "b")
    if len(a) != len(b):
        raise DataError(
            f"a paired comparison needs the same items, found {len(a)} and {len(b)} scores"
        )
    rows = np.stack([a, b], axis=1)[:, :, None]
    p, exact = _permutation(rows, [(0, 1)], _mean, n_resamples, seed)
    return PairedPermutation(float((a - b).mean()), float(p[0]), len(a), bool(exact[0]))


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Return p-values adjusted for several comparisons by Holm's step-down method (Holm 1979).

    NaN marks a comparison that was not made: it stays NaN and is not counted. The order is kept.
    Raises `DataError` if a p-value is outside [0, 1].
    """
    p = np.array(p_values, dtype=float)
    if p.ndim != 1 or ((p < 0) | (p > 1)).any():
        raise DataError(f"expected p-values between 0 and 1, found {p_values!r:.80}")
    order = np.argsort(p, kind="stable")[: np.isfinite(p).sum()]  # NaN sorts last
    adjusted = np.full(len(p), np.nan)
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1)
    return adjusted


def summarise(scores: pd.DataFrame, **options) -> pd.DataFrame:
    """Return the mean score of each system with its confidence interval.

    `scores` have the columns subject_id, item_id, score and, if there are several measures,
    metric; the options are those of `bootstrap_interval`. One row per metric (if there is such a
    column) and subject_id, in order of appearance: n, mean, low, high. Raises `DataError` if a
    column is missing, a score is missing or infinite, or an item repeats.
    """
    keys = _score_keys(scores)
    table = []
    for key, group in scores.groupby(keys, sort=False):
        values = group.sort_values("item_id")["score"]
        estimate, low, high, n = bootstrap_interval(values, **options)
        table.append((*key, n, estimate, low, high))
    return pd.DataFrame(table, columns=[*keys, "n", "mean", "low", "high"])


def compare_systems(
    scores: pd.DataFrame, *, baseline: str | None = None, **options
) -> pd.DataFrame:
    """Compare all pairs of systems, or each with a baseline, on the items that both have.

    Scores, options and errors are those of `summarise`; `baseline` is the subject_id that all
    others are compared with (default: all pairs). There must be at least two systems.

    Returns one row per metric and pair, the system with the higher mean of all its items first
    (the baseline second): metric (if there is such a column), system_a, system_b, n items that
    both have, left_out items that only one has, a and b (means over the n), difference a - b, its
    bootstrap interval low and high, p of the paired permutation test, whether it is exact, and
    p_holm, adjusted over the pairs of one metric. The interval needs two items, the rest one; else
    NaN.
    """
    keys, parts = _score_keys(scores), []
    for key, group in scores.groupby(keys[:-1], sort=False) if keys[1:] else [((), scores)]:
        matrix = group.pivot(index="item_id", columns="subject_id", values="score").sort_index()
        means = matrix.mean().sort_index().sort_values(ascending=False, kind="stable")
        values = matrix[means.index].to_numpy(float)
        part = compare_statistics(
            np.nan_to_num(values)[:, :, None],
            ~np.isnan(values),
            list(means.index),
            _mean,
            baseline=baseline,
            **options,
        )
        for name, value in zip(keys, key, strict=False):
            part.insert(0, name, value)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def compare_statistics(
    rows: np.ndarray,
    present: np.ndarray,
    systems: Sequence[str],
    statistic: Statistic,
    *,
    baseline: str | None = None,
    level: float = 0.95,
    n_resamples: int = 9999,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare pairs of systems by a statistic of sums; the table is that of `compare_systems`.

    `rows` of shape (n, k, m) hold what each of n items adds to the m sums of each of k systems;
    `present`, of shape (n, k), says whether the system has that item; if not, its row is not used.
    The statistic and the other options are those of `bootstrap_interval`.
    """
    _check_options(level, n_resamples)
    systems = list(systems)
    if len(systems) < 2:
        raise DataError(f"a comparison needs at least two systems, found {len(systems)}")
    pairs = list(combinations(range(len(systems)), 2))
    if baseline is not None:
        second = systems.index(checks.choice(baseline, "system", systems))
        pairs = [(first, second) for first in range(len(systems)) if first != second]
    # Pairs that share their items share their draws.
    groups: dict[bytes, list[int]] = {}
    for number, (a, b) in enumerate(pairs):
        groups.setdefault((present[:, a] & present[:, b]).tobytes(), []).append(number)
    table: list = [None] * len(pairs)
    for mask, numbers in groups.items():
        items = np.frombuffer(mask, dtype=bool)
        chosen = [pairs[number] for number in numbers]
        results = _compare(rows[items], chosen, statistic, level, n_resamples, seed)
        for (a, b), number, result in zip(chosen, numbers, results, strict=True):
            n, either = int(items.sum()), int((present[:, a] | present[:, b]).sum())
            table[number] = (systems[a], systems[b], n, either - n, *result)
    columns = "system_a system_b n left_out a b difference low high p exact".split()
    frame = pd.DataFrame(table, columns=columns)
    return frame.assign(p_holm=holm(frame["p"]))


def _compare(rows, pairs, statistic, level, n_resamples, seed) -> Iterator[tuple]:
    n = len(rows)
    if n == 0:
        yield from [(np.nan,) * 6 + (False,)] * len(pairs)
        return
    estimates = statistic(rows.sum(axis=0), n)
    p_values, exact = _permutation(rows, pairs, statistic, n_resamples, seed)
    if n > 1:
        draws, jackknife = _bootstrap(rows, statistic, n_resamples, seed)
    for number, (a, b) in enumerate(pairs):
        gap, low, high = float(estimates[a] - estimates[b]), np.nan, np.nan
        if n > 1:
            gaps = jackknife[:, a] - jackknife[:, b]
            low, high = _limits(draws[:, a] - draws[:, b], gap, gaps, level)
        means = float(estimates[a]), float(estimates[b])
        yield *means, gap, low, high, float(p_values[number]), bool(exact[number])


def _mean(sums: np.ndarray, n: int) -> np.ndarray:
    return sums[..., 0] / n


def _bootstrap(rows, statistic, n_resamples, seed) -> tuple[np.ndarray, np.ndarray]:
    """Return draws (n_resamples, k) and jackknife values (n, k) of rows (n, k, m)."""
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
    return draws, statistic(rows.sum(axis=0) - rows, n - 1)


def _limits(draws, estimate, jackknife, level) -> tuple[float, float]:
    """Return the ends of the BCa interval, those of the percentile interval if nothing varies."""
    equal = np.abs(draws - estimate) <= _slack(np.abs(draws).max())
    share = ((draws < estimate) & ~equal).mean() + equal.mean() / 2
    edge = 0.5 / len(draws)
    bias = ndtri(np.clip(share, edge, 1 - edge))
    spread = jackknife.mean() - jackknife
    squares = (spread**2).sum()
    varies = squares > (_slack(np.abs(jackknife).max()) ** 2) * len(jackknife)
    skew = (spread**3).sum() / (6 * squares**1.5) if varies else 0.0
    z = bias + ndtri([(1 - level) / 2, (1 + level) / 2])
    low, high = np.quantile(draws, ndtr(bias + z / (1 - skew * z)))
    return float(low), float(high)


def _permutation(rows, pairs, statistic, n_resamples, seed) -> tuple[np.ndarray, np.ndarray]:
    """Return the p-value of each pair and whether it is exact; rows (n, k, m), n >= 1."""
    n, _, m = rows.shape
    totals = rows.sum(axis=0)
    first, second = np.array(pairs).T
    gain = rows[:, second] - rows[:, first]  # what an exchange adds to a and takes from b
    observed = np.abs(statistic(totals[first], n) - statistic(totals[second], n))
    scale = np.maximum(np.abs(statistic(totals, n)).max(), np.abs(gain).max() / n)
    threshold = observed - _slack(scale)

    def extreme(exchanged, chosen, items):
        step = gain[items][:, chosen].reshape(exchanged.shape[1], len(chosen) * m)
        shift = (exchanged @ step).reshape(len(exchanged), len(chosen), m)
        a, b = totals[first[chosen]] + shift, totals[second[chosen]] - shift
        gaps = np.abs(statistic(a, n) - statistic(b, n))
        return (gaps >= threshold[chosen]).sum(axis=0)

    differing = (gain != 0).any(axis=2)
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
        for start, stop in _blocks(n_resamples, max(n, len(sampled) * m)):
            exchanged = (rng.random((stop - start, n)) < 0.5).astype(float)
            hits += extreme(exchanged, sampled, slice(None))
        p[sampled] = (1 + hits) / (1 + n_resamples)
    return p, exact


def _blocks(total: int, width: int) -> Iterator[tuple[int, int]]:
    step = max(1, BLOCK // width)
    for start in range(0, total, step):
        yield start, min(start + step, total)


def _slack(scale: float) -> float:
    """Return how far two equal numbers may drift apart by rounding."""
    return 1e-12 * float(scale)


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
