"""How retrieval changes with the size of a corpus (EnterpriseRAG-Bench, section 6.2 and Figure 3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from ragkit import checks, display
from ragkit.errors import DataError, UsageError
from ragkit.measures.corpus.geometry import LEVEL
from ragkit.measures.stats import Interval

# Keeps a resample whose recall is 1 up to some size and 0 beyond it from having no finite slope.
RIDGE = 1e-4
STEPS = 50


class Extrapolation(NamedTuple):
    """What a fit without the largest size predicts for it, what was measured, and the difference."""

    predicted: Interval
    observed: Interval
    difference: Interval


@dataclass(frozen=True)
class ScalingFit:
    """Recall as a function of corpus size: logit(recall) = intercept + slope log10(size).

    A slope of -0.5 halves the odds of a found document about every four-fold of the corpus.
    `draws`, of shape (b, 2), are intercept and slope for resampled questions.
    """

    intercept: float
    slope: float
    draws: np.ndarray
    sizes: tuple[int, ...]
    questions: int

    def __repr__(self) -> str:
        sizes = f"{self.questions:,} questions at {len(self.sizes)} sizes"
        return f"<ScalingFit of {sizes}: slope {self.slope:.3g}>"

    def _repr_html_(self) -> str:
        odds, low, high, _ = _percentiles(np.exp(self.slope), np.exp(self.draws[:, 1]), 0)
        facts = {"questions": f"{self.questions:,}"}
        facts["sizes"] = ", ".join(f"{size:,.0f}" for size in self.sizes) + " documents"
        facts["slope"] = f"{self.slope:.3g} in log-odds a tenfold corpus"
        facts["odds of a tenfold corpus"] = (
            f"{odds:.3g} times, 95 % interval {low:.3g} to {high:.3g}"
        )
        after = "Next: `.predict(size)` is the recall to expect at another size."
        return display.card("Fit of recall to the size of a corpus", facts, after=after)

    def predict(self, size: float) -> Interval:
        """Return the expected recall at a size, with its 95 % interval over questions."""
        return _percentiles(*self._recalls(size), self.questions)

    def _recalls(self, size: float) -> tuple[float, np.ndarray]:
        at = np.array([1, np.log10(size)])
        return expit(at @ [self.intercept, self.slope]), expit(self.draws @ at)


def nested(
    doc_ids: Sequence[str], gold: Iterable[str], sizes: Iterable[int], seed: int = 0
) -> dict[int, np.ndarray]:
    """Return nested samples of a corpus that all hold the gold documents.

    The other documents come in one random order, so that each sample is part of the next larger
    one. `doc_ids` are the n ids of the corpus, `gold` those in every sample; `sizes` include them.

    Returns for each size the places of its documents in `doc_ids`, rising. Raises `DataError` if
    an id repeats, a gold document is not in the corpus, or a size does not fit.

    >>> nested(["a", "b", "c", "d"], gold=["c"], sizes=[2, 3])
    {2: array([2, 3]), 3: array([0, 2, 3])}
    """
    checks.whole(seed, "seed", least=0)
    places = {doc_id: place for place, doc_id in enumerate(doc_ids)}
    n, gold = len(doc_ids), set(gold)
    if len(places) < n:
        raise DataError(f"{n - len(places):,} of {n:,} document ids repeat")
    if lost := gold - places.keys():
        raise DataError(
            f"{len(lost):,} gold documents are not in the corpus, such as {min(lost)!r}"
        )
    kept = np.array(sorted(places[doc_id] for doc_id in gold), dtype=np.int64)
    others = np.setdiff1d(np.arange(n), kept, assume_unique=True)
    others = np.random.default_rng(seed).permutation(others)
    samples = {}
    for size in sizes:
        if not len(kept) <= checks.whole(size, "a size") <= n:
            raise DataError(
                f"a sample of {size:,} does not fit: {len(kept):,} gold of {n:,} documents"
            )
        samples[int(size)] = np.sort(np.concatenate([kept, others[: size - len(kept)]]))
    return samples


def fit_scaling(
    recalls: np.ndarray, sizes: Sequence[int], *, n_resamples: int = 2000, seed: int = 0
) -> ScalingFit:
    """Fit how recall falls with the logarithm of the corpus size, by a fractional logit.

    Questions are resampled whole, with their recall at all sizes. `recalls` have the shape
    (questions, sizes): `DataError` if one is missing or outside [0, 1], there are fewer than two
    questions, or all are 0 or all are 1. Raises `UsageError` unless `sizes` are at least two
    different positive numbers.

    Source: Papke and Wooldridge (1996), Econometric methods for fractional response variables.

    >>> recalls = np.array([[1, 1, 0], [1, 1, 1], [1, 0, 0], [1, 1, 1]] * 5)
    >>> fit = fit_scaling(recalls, [100, 1000, 10_000])
    >>> round(fit.slope, 2), fit.predict(10_000)
    (-1.7, Interval(estimate=0.4626..., low=0.2215..., high=0.7223..., n=20))
    """
    return _fit(*_resampled(recalls, sizes, n_resamples, seed))


def extrapolate(
    recalls: np.ndarray, sizes: Sequence[int], *, n_resamples: int = 2000, seed: int = 0
) -> Extrapolation:
    """Fit all sizes but the largest, and compare the prediction with the recall measured there.

    Takes at least three sizes, otherwise as `fit_scaling`. The difference, predicted minus
    observed, has the same resampled questions on both sides: its interval says whether the line
    bends.

    >>> recalls = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 1], [1, 1, 1]] * 5)
    >>> extrapolate(recalls, [100, 1000, 10_000]).observed
    Interval(estimate=0.5, low=0.3, high=0.7, n=20)
    """
    means, drawn, places, n = _resampled(recalls, sizes, n_resamples, seed)
    if len(places) < 3:
        raise UsageError(f"an extrapolation needs at least three sizes, found {len(places)}")
    fit = _fit(means[:-1], drawn[:, :-1], places[:-1], n)
    value, draws = fit._recalls(places[-1])
    return Extrapolation(
        _percentiles(value, draws, n),
        _percentiles(means[-1], drawn[:, -1], n),
        _percentiles(value - means[-1], draws - drawn[:, -1], n),
    )


def _resampled(recalls, sizes, n_resamples: int, seed: int) -> tuple:
    """Return mean recalls by rising size, those of resampled questions, the sizes, and n."""
    table, places = np.asarray(recalls, dtype=float), np.asarray(sizes, dtype=float)
    if table.ndim != 2 or table.shape[1:] != places.shape:
        raise UsageError(f"recalls of shape {table.shape} do not fit {places.shape} sizes")
    if len(places) < 2 or len(set(places)) < len(places) or not (places > 0).all():
        raise UsageError("sizes should be at least two different positive numbers")
    if (n := len(table)) < 2:
        raise DataError(f"a fit needs at least two questions, found {n}")
    bad = ~((table >= 0) & (table <= 1))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise DataError(
            f"the recall of question {row + 1} at size {places[column]:,.0f} is "
            f"{table[row, column]}, expected 0 to 1"
        )
    if table.max() == 0 or table.min() == 1:
        raise DataError(f"all recalls are {table.flat[0]:.0f}: nothing falls")
    table, places = table[:, np.argsort(places)], np.sort(places)
    rng, means = np.random.default_rng(seed), []
    for _ in range(checks.whole(n_resamples, "n_resamples")):
        means.append(np.bincount(rng.integers(n, size=n), minlength=n) @ table / n)
    return table.mean(axis=0), np.array(means), places, n


def _fit(means, drawn, places, questions) -> ScalingFit:
    rows = _logit_lines(np.vstack([means, drawn]), np.log10(places), questions)
    sizes = tuple(int(place) for place in places)
    return ScalingFit(float(rows[0, 0]), float(rows[0, 1]), rows[1:], sizes, questions)


def _logit_lines(means: np.ndarray, x: np.ndarray, n: int) -> np.ndarray:
    """Fit a line on the logit scale to each row of means by Newton's method, all rows at once."""
    middle = x.mean()
    design = np.column_stack([np.ones(len(x)), x - middle])
    lines = np.zeros((len(means), 2))
    for _ in range(STEPS):
        fitted = expit(lines @ design.T)
        slope = n * (means - fitted) @ design - RIDGE * lines
        weights = n * fitted * (1 - fitted)
        curve = np.einsum("rs,si,sj->rij", weights, design, design) + RIDGE * np.eye(2)
        step = np.linalg.solve(curve, slope[..., None])[..., 0]
        # Far out the curve is flat and a full step leaves the plane.
        step *= np.minimum(1, 2 / np.maximum(np.abs(step).max(axis=1, keepdims=True), 1e-300))
        lines += step
        if np.abs(step).max() < 1e-10:
            break
    lines[:, 0] -= lines[:, 1] * middle
    return lines


def _percentiles(value, draws, n) -> Interval:
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(value), float(low), float(high), n)
