"""How sure a measured number is, and whether two systems differ: intervals and paired tests.

Everything works on scores per item (question), because systems answer the same questions: a
comparison is paired, and what is resampled is the question. Measures that are no mean, such as
corpus BLEU, take part as *statistics of sums*: each item contributes a row of counts, and the
measure is a function of the column sums.

All random draws come from `numpy.random.default_rng(seed)`. A pair of systems gets the same
numbers whatever other systems stand in the table and in whatever order the rows come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri
from scipy.stats import binomtest

from ragkit.errors import DataError, UsageError, did_you_mean

METHODS = ("bca", "percentile")
# Up to so many items that differ, all 2^m exchanges are enumerated and the test is exact.
EXACT_ITEMS = 16
# Numbers per block of resamples: bounds the memory, never changes a result.
BLOCK = 4_000_000

Statistic = Callable[[np.ndarray, int], np.ndarray]


class Interval(NamedTuple):
    """An estimate from `n` items with its confidence interval, low <= high (NaN where n < 2)."""

    estimate: float
    low: float
    high: float
    n: int


class PairedBootstrap(NamedTuple):
    """A mean difference a - b, its interval, and a two-sided p-value in (0, 1]."""

    difference: float
    low: float
    high: float
    p: float
    n: int


class PairedPermutation(NamedTuple):
    """A mean difference a - b and a two-sided p-value in (0, 1], exact or sampled."""

    difference: float
    p: float
    n: int
    exact: bool


def bootstrap_interval(
    values: Sequence[float],
    *,
    level: float = 0.95,
    method: str = "bca",
    n_resamples: int = 9999,
    seed: int = 0,
) -> Interval:
    """Return the mean of `values` with a bootstrap confidence interval.

    Parameters
    ----------
    values : sequence of float, length n >= 1
        Scores of independent items, without NaN.
    level : float in (0, 1), default=0.95
    method : {"bca", "percentile"}, default="bca"
        BCa corrects the percentile interval for bias and skewness.
    n_resamples : int >= 1, default=9999
    seed : int, default=0

    Returns
    -------
    Interval
        `low` and `high` lie within the range of the values; NaN for a single value.

    Raises
    ------
    DataError
        If there is no value, or one is NaN or infinite.
    UsageError
        If an option is out of range.

    References
    ----------
    Efron and Tibshirani (1993), An Introduction to the Bootstrap, sections 13.3 and 14.3.
    """
    rows = _numbers(values, "values")[:, None]
    return bootstrap_statistic(
        rows, _mean, level=level, method=method, n_resamples=n_resamples, seed=seed
    )


def bootstrap_statistic(
    rows: np.ndarray,
    statistic: Statistic,
    *,
    level: float = 0.95,
    method: str = "bca",
    n_resamples: int = 9999,
    seed: int = 0,
) -> Interval:
    """Return a statistic of column sums with a bootstrap confidence interval over items.

    Parameters
    ----------
    rows : array of float, shape (n, m)
        What each item adds to the sums.
    statistic : callable
        `statistic(sums, n)` with sums of shape (..., m) returns an array of shape (...).
    level, method, n_resamples, seed
        As in `bootstrap_interval`.

    Returns
    -------
    Interval

    Raises
    ------
    DataError, UsageError
        As in `bootstrap_interval`.
    """
    _check_options(level, method, n_resamples)
    rows = np.asarray(rows, dtype=float)
    if rows.ndim != 2 or len(rows) == 0:
        raise DataError(f"expected one row per item, found an array of shape {rows.shape}")
    n = len(rows)
    estimate = float(statistic(rows.sum(axis=0), n))
    if n < 2:
        return Interval(estimate, np.nan, np.nan, n)
    draws, jackknife = _bootstrap(rows[:, None, :], statistic, n_resamples, seed)
    low, high = _limits(draws[:, 0], estimate, jackknife[:, 0], level, method)
    return Interval(estimate, low, high, n)


def wilson_interval(successes: int, n: int, *, level: float = 0.95) -> Interval:
    """Return the proportion `successes / n` with Wilson's score interval, within [0, 1].

    Parameters
    ----------
    successes : int, 0 <= successes <= n
    n : int >= 1
    level : float in (0, 1), default=0.95

    Raises
    ------
    DataError
        If the counts are no integers or out of range.

    References
    ----------
    Wilson (1927), Probable inference, the law of succession, and statistical inference.
    """
    _check_options(level, "percentile", 1)
    if not (_is_integer(successes) and _is_integer(n) and 0 <= successes <= n and n >= 1):
        raise DataError(f"expected 0 <= successes <= n with n >= 1, found {successes!r} of {n!r}")
    ends = binomtest(int(successes), int(n)).proportion_ci(level, method="wilson")
    return Interval(successes / n, float(ends.low), float(ends.high), int(n))


def paired_bootstrap(
    a: Sequence[float],
    b: Sequence[float],
    *,
    level: float = 0.95,
    method: str = "bca",
    n_resamples: int = 9999,
    seed: int = 0,
) -> PairedBootstrap:
    """Return the mean difference a - b with its bootstrap interval and p-value.

    The p-value is the share of resamples whose difference lies at least as far from the observed
    one as that lies from 0, with one added above and below.

    Parameters
    ----------
    a, b : sequence of float, length n >= 2
        Scores of two systems on the same items, in the same order.
    level, method, n_resamples, seed
        As in `bootstrap_interval`.

    Raises
    ------
    DataError
        If the lengths differ, there are fewer than two items, or a score is NaN or infinite.
    UsageError
        If an option is out of range.

    References
    ----------
    Berg-Kirkpatrick, Burkett and Klein (2012), An empirical investigation of statistical
    significance in NLP, section 2.
    """
    _check_options(level, method, n_resamples)
    rows = _pair(a, b, at_least=2)
    estimate = float(rows.mean())
    draws, jackknife = _bootstrap(rows[:, None, None], _mean, n_resamples, seed)
    low, high = _limits(draws[:, 0], estimate, jackknife[:, 0], level, method)
    slack = _slack(np.abs(rows).max())
    extreme = np.abs(draws[:, 0] - estimate) >= abs(estimate) - slack
    return PairedBootstrap(
        estimate, low, high, float((1 + extreme.sum()) / (1 + n_resamples)), len(rows)
    )


def paired_permutation(
    a: Sequence[float], b: Sequence[float], *, n_resamples: int = 9999, seed: int = 0
) -> PairedPermutation:
    """Return the mean difference a - b and the p-value of the paired permutation test.

    Under the null hypothesis the two scores of an item could as well be exchanged. All exchanges
    are enumerated where at most 16 items differ; otherwise `n_resamples` are drawn, and the
    p-value has one added above and below, so that it is never 0.

    Parameters
    ----------
    a, b : sequence of float, length n >= 1
        Scores of two systems on the same items, in the same order.
    n_resamples : int >= 1, default=9999
    seed : int, default=0

    Raises
    ------
    DataError
        If the lengths differ, there is no item, or a score is NaN or infinite.
    UsageError
        If `n_resamples` is out of range.

    References
    ----------
    Fisher (1935), The Design of Experiments, section 21; Phipson and Smyth (2010), Permutation
    p-values should never be zero.
    """
    _check_options(0.95, "percentile", n_resamples)
    difference = _pair(a, b, at_least=1)
    rows = np.stack([_numbers(a, "a"), _numbers(b, "b")], axis=1)[:, :, None]
    p, exact = _permutation(rows, [(0, 1)], _mean, n_resamples, seed)
    return PairedPermutation(float(difference.mean()), float(p[0]), len(rows), bool(exact[0]))


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Return p-values adjusted for several comparisons by Holm's step-down method.

    Parameters
    ----------
    p_values : sequence of float in [0, 1], length k
        NaN stands for a comparison that was not made: it stays NaN and is not counted.

    Returns
    -------
    array of float in [0, 1], shape (k,)
        In the order given, each at least as large as the p-value itself.

    Raises
    ------
    DataError
        If a p-value is outside [0, 1].

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure.
    """
    p = np.array(p_values, dtype=float)
    if p.ndim != 1:
        raise DataError(f"expected a list of p-values, found an array of shape {p.shape}")
    made = ~np.isnan(p)
    if ((p[made] < 0) | (p[made] > 1)).any():
        bad = p[made][(p[made] < 0) | (p[made] > 1)][0]
        raise DataError(f"a p-value lies between 0 and 1, found {bad:g}")
    adjusted = np.full(len(p), np.nan)
    order = np.flatnonzero(made)[np.argsort(p[made], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1) if len(order) else []
    return adjusted


def summarise(
    scores: pd.DataFrame,
    *,
    level: float = 0.95,
    method: str = "bca",
    n_resamples: int = 9999,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the mean score of each system with its confidence interval.

    Parameters
    ----------
    scores : DataFrame
        Columns subject_id, item_id, score and, if there are several measures, metric.
    level, method, n_resamples, seed
        As in `bootstrap_interval`.

    Returns
    -------
    DataFrame
        One row per metric (if there is such a column) and subject_id, in order of appearance:
        n, mean, low, high.

    Raises
    ------
    DataError
        If a column is missing, a score is missing or infinite, or an item repeats.
    UsageError
        If an option is out of range.
    """
    keys = _score_keys(scores)
    table = []
    for key, group in scores.groupby(keys, sort=False):
        values = group.sort_values("item_id")["score"]
        estimate, low, high, n = bootstrap_interval(
            values, level=level, method=method, n_resamples=n_resamples, seed=seed
        )
        table.append((*key, n, estimate, low, high))
    return pd.DataFrame(table, columns=[*keys, "n", "mean", "low", "high"])


def compare_systems(
    scores: pd.DataFrame,
    *,
    baseline: str | None = None,
    level: float = 0.95,
    method: str = "bca",
    n_resamples: int = 9999,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare all pairs of systems, or each with a baseline, on the items that both have.

    Parameters
    ----------
    scores : DataFrame
        Columns subject_id, item_id, score and, if there are several measures, metric.
    baseline : str, optional
        The subject_id that all others are compared with; default: all pairs.
    level, method, n_resamples, seed
        As in `bootstrap_interval`.

    Returns
    -------
    DataFrame
        One row per metric and pair, the system with the higher mean of all its items first (the
        baseline second): metric (if there is such a column), system_a, system_b, n items that
        both have, left_out items that only one has, a and b (means over the n), difference a - b,
        its bootstrap interval low and high, p of the paired permutation test, whether it is
        exact, and p_holm, adjusted over the pairs of one metric. The interval needs two items,
        the rest one; else NaN.

    Raises
    ------
    DataError
        If there are fewer than two systems, a column or a score is missing, or an item repeats.
    UsageError
        If the baseline is unknown or an option is out of range.
    """
    keys = _score_keys(scores)
    if len(keys) == 2:
        parts = []
        for metric, group in scores.groupby("metric", sort=False):
            part = compare_systems(
                group.drop(columns="metric"),
                baseline=baseline,
                level=level,
                method=method,
                n_resamples=n_resamples,
                seed=seed,
            )
            part.insert(0, "metric", metric)
            parts.append(part)
        return pd.concat(parts, ignore_index=True)
    matrix = scores.pivot(index="item_id", columns="subject_id", values="score").sort_index()
    means = matrix.mean().sort_index().sort_values(ascending=False, kind="stable")
    values = matrix[means.index].to_numpy(float)[:, :, None]
    return compare_statistics(
        np.nan_to_num(values),
        ~np.isnan(values[:, :, 0]),
        list(means.index),
        _mean,
        baseline=baseline,
        level=level,
        method=method,
        n_resamples=n_resamples,
        seed=seed,
    )


def compare_statistics(
    rows: np.ndarray,
    present: np.ndarray,
    systems: Sequence[str],
    statistic: Statistic,
    *,
    baseline: str | None = None,
    level: float = 0.95,
    method: str = "bca",
    n_resamples: int = 9999,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare pairs of systems by a statistic of column sums.

    Parameters
    ----------
    rows : array of float, shape (n, k, m)
        What each of n items adds to the m sums of each of k systems.
    present : array of bool, shape (n, k)
        Whether the system has that item; where not, its row is not used.
    systems : sequence of str, length k
    statistic : callable
        As in `bootstrap_statistic`.
    baseline, level, method, n_resamples, seed
        As in `compare_systems`.

    Returns
    -------
    DataFrame
        As `compare_systems`, for pairs in the order of `systems`, with the statistics in a and b.

    Raises
    ------
    DataError, UsageError
        As in `compare_systems`.
    """
    _check_options(level, method, n_resamples)
    systems = list(systems)
    if len(systems) < 2:
        raise DataError(f"a comparison needs at least two systems, found {len(systems)}")
    if baseline is None:
        pairs = list(combinations(range(len(systems)), 2))
    elif baseline in systems:
        second = systems.index(baseline)
        pairs = [(first, second) for first in range(len(systems)) if first != second]
    else:
        raise UsageError(f"no system {baseline!r}", did_you_mean(baseline, systems))
    # Pairs that share their items share their draws.
    groups: dict[bytes, list[int]] = {}
    for number, (a, b) in enumerate(pairs):
        groups.setdefault((present[:, a] & present[:, b]).tobytes(), []).append(number)
    table: list = [None] * len(pairs)
    for mask, numbers in groups.items():
        items = np.frombuffer(mask, dtype=bool)
        used = sorted({system for number in numbers for system in pairs[number]})
        local = [tuple(used.index(system) for system in pairs[number]) for number in numbers]
        results = _compare(rows[items][:, used], local, statistic, level, method, n_resamples, seed)
        for number, result in zip(numbers, results, strict=True):
            a, b = pairs[number]
            n = int(items.sum())
            either = int((present[:, a] | present[:, b]).sum())
            table[number] = (systems[a], systems[b], n, either - n, *result)
    frame = pd.DataFrame(
        table,
        columns=["system_a", "system_b", "n", "left_out", "a", "b"]
        + ["difference", "low", "high", "p", "exact"],
    )
    frame["p_holm"] = holm(frame["p"])
    return frame


def _compare(rows, pairs, statistic, level, method, n_resamples, seed) -> Iterator[tuple]:
    n = len(rows)
    if n == 0:
        yield from [(np.nan,) * 6 + (False,)] * len(pairs)
        return
    estimates = statistic(rows.sum(axis=0), n)
    p_values, exact = _permutation(rows, pairs, statistic, n_resamples, seed)
    if n > 1:
        draws, jackknife = _bootstrap(rows, statistic, n_resamples, seed)
    for number, (a, b) in enumerate(pairs):
        difference = float(estimates[a] - estimates[b])
        low = high = np.nan
        if n > 1:
            low, high = _limits(
                draws[:, a] - draws[:, b],
                difference,
                jackknife[:, a] - jackknife[:, b],
                level,
                method,
            )
        yield (
            float(estimates[a]),
            float(estimates[b]),
            difference,
            low,
            high,
            float(p_values[number]),
            bool(exact[number]),
        )


def _mean(sums: np.ndarray, n: int) -> np.ndarray:
    return sums[..., 0] / n


def _bootstrap(rows, statistic, n_resamples, seed) -> tuple[np.ndarray, np.ndarray]:
    """Return draws (n_resamples, k) and jackknife values (n, k) of rows (n, k, m)."""
    n, k, m = rows.shape
    rng = np.random.default_rng(seed)
    flat = rows.reshape(n, k * m)
    draws = np.empty((n_resamples, k))
    for start, stop in _blocks(n_resamples, max(n, k * m)):
        # Uniform doubles, one a draw: the stream does not depend on the size of the block.
        picks = (rng.random((stop - start, n)) * n).astype(np.int64)
        picks += np.arange(stop - start)[:, None] * n
        counts = np.bincount(picks.ravel(), minlength=(stop - start) * n).reshape(-1, n)
        draws[start:stop] = statistic((counts.astype(float) @ flat).reshape(-1, k, m), n)
    return draws, statistic(rows.sum(axis=0) - rows, n - 1)


def _limits(draws, estimate, jackknife, level, method) -> tuple[float, float]:
    tail = (1 - level) / 2
    shares = np.array([tail, 1 - tail])
    if method == "bca":
        slack = _slack(np.abs(draws).max())
        equal = np.abs(draws - estimate) <= slack
        below = (draws < estimate) & ~equal
        share = below.mean() + equal.mean() / 2
        edge = 0.5 / len(draws)
        bias = ndtri(np.clip(share, edge, 1 - edge))
        spread = jackknife.mean() - jackknife
        squares = (spread**2).sum()
        # All scores alike: no skewness to correct.
        lively = squares > (_slack(np.abs(jackknife).max()) ** 2) * len(jackknife)
        skew = (spread**3).sum() / (6 * squares**1.5) if lively else 0.0
        z = bias + ndtri(shares)
        shares = ndtr(bias + z / (1 - skew * z))
    low, high = np.quantile(draws, shares)
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


def _numbers(values, name: str) -> np.ndarray:
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"{name} should be numbers, found {values!r:.80}") from None
    if numbers.ndim != 1 or len(numbers) == 0:
        raise DataError(
            f"{name} should be a list of at least one number, found shape {numbers.shape}"
        )
    if not np.isfinite(numbers).all():
        place = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise DataError(
            f"{name}: number {place + 1} of {len(numbers)} is {numbers[place]}",
            "leave missing scores out and report how many there are",
        )
    return numbers


def _pair(a, b, *, at_least: int) -> np.ndarray:
    a, b = _numbers(a, "a"), _numbers(b, "b")
    if len(a) != len(b):
        raise DataError(
            f"a paired comparison needs the same items, found {len(a)} and {len(b)} scores"
        )
    if len(a) < at_least:
        raise DataError(f"this comparison needs at least {at_least} items, found {len(a)}")
    return a - b


def _score_keys(scores: pd.DataFrame) -> list[str]:
    for column in ("subject_id", "item_id", "score"):
        if column not in scores.columns:
            raise DataError(
                f"scores lack the column {column!r}",
                f"found {', '.join(map(str, scores.columns))}",
            )
    keys = [name for name in ("metric", "subject_id") if name in scores.columns]
    if scores.empty:
        raise DataError("there are no scores")
    repeated = scores.duplicated([*keys, "item_id"])
    if repeated.any():
        row = scores[repeated].iloc[0]
        raise DataError(
            f"scores: {row['subject_id']!r} has two scores for {row['item_id']!r}",
            None if "metric" in keys else "several measures need a column 'metric'",
        )
    _numbers(scores["score"].to_numpy(), "score")
    return keys


def _check_options(level: float, method: str, n_resamples: int) -> None:
    if not 0 < level < 1:
        raise UsageError(f"level lies between 0 and 1, found {level!r}", "95 % is level=0.95")
    if method not in METHODS:
        raise UsageError(f"no bootstrap interval {method!r}", did_you_mean(method, METHODS))
    if not _is_integer(n_resamples) or n_resamples < 1:
        raise UsageError(f"n_resamples should be an integer of at least 1, found {n_resamples!r}")


def _is_integer(value) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
