r"""Likelihoods of one score.

Two are one-parameter exponential families in the natural parameter eta,

    log p(x | eta) = x * eta - A(eta),

so the mean of a score is A'(eta), its variance A''(eta), and the log-likelihood is concave.

continuous Bernoulli, x in [0, 1] (Loaiza-Ganem and Cunningham, NeurIPS 2019; the LiveRAG paper,
section 3.2, fits it to scores)::

    A(eta) = log(expm1(eta) / eta) = eta / 2 + log(sinh(h) / h),   h = |eta| / 2

Bernoulli, x in {0, 1}::

    A(eta) = log(1 + exp(eta))

The textbook form of the continuous Bernoulli's normaliser, 2 artanh(1 - 2p) / (1 - 2p), loses all
its digits near p = 1/2 and near 0 and 1; nothing here computes p.

The third is Samejima's graded response model (GRM; Psychometrika Monograph 17, 1969), for scores
that take a few ordered levels v_0 < ... < v_(K-1)::

    P(score >= v_k | theta) = logistic(a_j (theta - b_jk)),   k = 1, ..., K - 1

so every level has a probability of its own and many scores at the ends of the range do no harm.
With two levels it is the Bernoulli 2PL. An item's difficulty is the mean of its thresholds b_jk.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.polynomial.polynomial import polyval
from scipy.special import bernoulli, expit, factorial, log_expit

from ragkit.checks import choice, number
from ragkit.errors import DataError, UsageError
from ragkit.irt.data import Scores

MOST_LEVELS = 20
# log(sinh h / h) = sum_k c_k h^(2k), c_k = 2^(2k) B_2k / (2k (2k)!), k = 1, 2, ...
_K = np.arange(1, 9)
_SERIES = 4.0**_K * bernoulli(16)[2::2] / (2 * _K * factorial(2 * _K))
_SERIES_MEAN = _K * _SERIES  # of A' - 1/2, over eta/2
_SERIES_VARIANCE = _K * (2 * _K - 1) / 2 * _SERIES  # of A''
_SMALL = 0.25  # half of |eta| below which the series is used; its next term is below 1e-16


class _Natural:
    """A family in one natural parameter; for the engine, statistics (x, 1) x curves (eta, -A).

    `terms` returns A, A' and A'' at eta (A's absolute error is below 1e-12 while |eta| < 1,000), and
    `sample` one score for each entry of eta.
    """

    features, thresholds, graded = 2, 1, False

    @staticmethod
    def statistics(x: np.ndarray) -> np.ndarray:
        """Return the features of scores, items x features x subjects, 0 where one is missing."""
        seen = np.isfinite(x)
        return np.stack([np.where(seen, x, 0.0), seen], 1)

    @classmethod
    def curves(cls, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the curves, items x features x nodes, and their derivatives in each eta.

        `eta` is items x thresholds x nodes, the derivatives items x features x thresholds x nodes.
        """
        normalizer, mean, _ = cls.terms(eta[:, 0])
        slopes = np.stack([np.ones_like(mean), -mean], 1)[:, :, None]
        return np.stack([eta[:, 0], -normalizer], 1), slopes

    @classmethod
    def mean_variance(cls, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean A'(eta) and the variance A''(eta), shapes as `eta`."""
        return cls.terms(eta)[1:]

    @classmethod
    def log_density(cls, eta: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return log p(x | eta)."""
        return x * eta - cls.terms(eta)[0]

    @classmethod
    def information(cls, eta: np.ndarray) -> np.ndarray:
        """Return Fisher's information about eta."""
        return cls.terms(eta)[2]

    @classmethod
    def crps(cls, eta: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the continuous ranked probability score of each score on [0, 1]."""
        return (x - cls.terms(eta)[1]) ** 2

    @classmethod
    def start(cls, data) -> tuple[np.ndarray, np.ndarray]:
        """Return first guesses of intercepts and log gaps from the items' mean scores."""
        n = data.per_item("count")
        share = (data.per_item("mean") * n + 0.5) / (n + 1)
        return cls.scale * np.log(share / (1 - share)), np.zeros((len(n), 0))


class ContinuousBernoulli(_Natural):
    """Continuous Bernoulli: a density on [0, 1]."""

    name = "cb"
    scale = 3.0  # of eta, against the logit of the mean

    @staticmethod
    def terms(eta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        eta = np.asarray(eta, dtype=float)
        half = np.atleast_1d(np.abs(eta)) / 2
        small = half < _SMALL
        h = np.maximum(half, _SMALL)
        e = np.exp(-2 * h)
        normalizer = h + np.log((1 - e) / (2 * h))
        mean = (1 + e) / (2 * (1 - e)) - 0.5 / h
        variance = 0.25 / h**2 - e / (1 - e) ** 2
        square = half[small] ** 2
        normalizer[small] = square * polyval(square, _SERIES)
        mean[small] = half[small] * polyval(square, _SERIES_MEAN)
        variance[small] = polyval(square, _SERIES_VARIANCE)
        normalizer, mean, variance = (
            out.reshape(eta.shape) for out in (normalizer, mean, variance)
        )
        return normalizer + eta / 2, np.copysign(mean, eta) + 0.5, variance

    @staticmethod
    def sample(eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:  # by inversion
        eta = np.asarray(eta, dtype=float)
        u = rng.random(eta.shape)
        size = np.abs(eta)
        safe = np.maximum(size, 1e-6)
        x = 1 + np.log(u + (1 - u) * np.exp(-safe)) / safe
        x = np.where(size < 1e-6, u, x)
        return np.clip(np.where(eta < 0, 1 - x, x), 0.0, 1.0)

    @classmethod
    def crps(cls, eta: np.ndarray, x: np.ndarray) -> np.ndarray:
        return cls._below(eta, x) + cls._below(-eta, 1 - x)

    @staticmethod
    def _below(eta: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Integrate F(t)^2 from 0 to x, F(t) = expm1(eta t) / expm1(eta), where it is not 0 or 1."""
        node, weight = np.polynomial.legendre.leggauss(48)
        size = np.maximum(np.abs(eta), 1e-9)
        length, up = np.minimum(x, 30 / size), eta > 0
        t = np.where(up, x - length, 0)[:, None] + length[:, None] * (node + 1) / 2
        size = size[:, None]
        distribution = np.expm1(-size * t) / np.expm1(-size)
        distribution *= np.where(up[:, None], np.exp(size * (t - 1)), 1)
        return length / 2 * (distribution**2 @ weight) + np.where(up, 0, x - length)


class Bernoulli(_Natural):
    """Bernoulli: right or wrong."""

    name = "bernoulli"
    scale = 1.0

    @staticmethod
    def terms(eta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        p = expit(eta)
        return np.logaddexp(0, eta), p, p * expit(-eta)

    @staticmethod
    def sample(eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return (rng.random(np.shape(eta)) < expit(eta)).astype(float)


class Fractional(Bernoulli):
    """Bernoulli's log likelihood for scores anywhere in [0, 1]: a quasi-likelihood.

    Consistent wherever the expected score is the logistic function of eta, whatever the
    distribution around it, so scores that pile up at 0 and 1 do no harm, as they do to the
    continuous Bernoulli. Its errors are those of one right-or-wrong answer a score: too wide for
    scores that vary less (Papke and Wooldridge, 1996).
    """

    name = "fractional"

    @classmethod
    def crps(cls, eta: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return NaN: it predicts a mean and no distribution."""
        return np.full(np.shape(x), np.nan)


class Graded:
    """The graded likelihood: for the engine, indicators of the level x log probabilities.

    `eta` has a last axis of thresholds, as many as levels less one. `values` are the levels on the
    original scale, `levels` those on [0, 1].
    """

    name, graded = "graded", True

    def __init__(self, levels: Sequence[float], score_range: tuple[float, float]):
        self.score_range = low, high = score_range
        given = np.atleast_1d(levels).tolist()
        self.values = [number(level, "a level", least=low, most=high) for level in given]
        if not 2 <= len(self.values) <= MOST_LEVELS or not (np.diff(self.values) > 0).all():
            raise UsageError(f"levels={levels!r} are not 2 to {MOST_LEVELS} ascending numbers")
        self.levels = (np.array(self.values) - low) / (high - low)
        self.features, self.thresholds = len(self.levels), len(self.levels) - 1

    def log_probabilities(self, eta: np.ndarray) -> np.ndarray:
        """Return log P of each level (last axis)."""
        above = log_expit(eta)
        out = np.empty((*eta.shape[:-1], self.features))
        out[..., 0] = above[..., 0] - eta[..., 0]
        out[..., -1] = above[..., -1]
        # logistic(u) - logistic(l) = logistic(u) logistic(-l) (1 - exp(l - u)), u > l
        between = -np.expm1(eta[..., 1:] - eta[..., :-1])
        out[..., 1:-1] = above[..., :-1] + above[..., 1:] - eta[..., 1:]
        out[..., 1:-1] += np.log(np.maximum(between, 1e-300))
        return out

    def categories(self, x: np.ndarray) -> np.ndarray:
        """Return the position of each rescaled score among the levels, or raise on one between."""
        x, levels = np.asarray(x), self.levels
        place = np.searchsorted((levels[1:] + levels[:-1]) / 2, x)
        off = np.abs(x - levels[place]) > 1e-6
        if off.any():
            low, high = self.score_range
            wrong = low + float(x[off][0]) * (high - low)
            raise DataError(
                f"the score {wrong:g} is none of the levels "
                + ", ".join(f"{value:g}" for value in self.values),
                "declare all levels: levels=(...)",
            )
        return place

    def log_density(self, eta: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return log P(x | eta)."""
        log_p, place = self.log_probabilities(eta), self.categories(x)[..., None]
        place = np.broadcast_to(place, (*log_p.shape[:-1], 1))
        return np.take_along_axis(log_p, place, -1)[..., 0]

    def mean_variance(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of the score."""
        p = np.exp(self.log_probabilities(eta))
        mean = p @ self.levels
        return mean, np.maximum(p @ self.levels**2 - mean**2, 0)

    def information(self, eta: np.ndarray) -> np.ndarray:
        """Return Fisher's information about a shift of all eta (Samejima 1969, chapter 6)."""
        p = np.exp(self.log_probabilities(eta))
        w = expit(eta) * expit(-eta)
        zero = np.zeros((*w.shape[:-1], 1))
        slope = np.concatenate([zero, w], -1) - np.concatenate([w, zero], -1)
        return np.sum(slope**2 / np.maximum(p, 1e-300), -1)

    def sample(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw one score per entry of `eta`."""
        p = np.exp(self.log_probabilities(eta))
        level = (p.cumsum(-1) < rng.random((*p.shape[:-1], 1))).sum(-1)
        return self.levels[np.minimum(level, self.thresholds)]

    def crps(self, eta: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return E|X - x| - E|X - X'| / 2, the continuous ranked probability score on [0, 1]."""
        p = np.exp(self.log_probabilities(eta))
        to_score = np.sum(p * np.abs(self.levels - x[:, None]), 1)
        apart = np.abs(self.levels[:, None] - self.levels)
        return to_score - 0.5 * np.einsum("ij,jk,ik->i", p, apart, p)

    def statistics(self, x: np.ndarray) -> np.ndarray:
        """Return indicators of the levels, items x levels x subjects, 0 where a score is missing."""
        reached = self.categories(x)[:, None] == np.arange(self.features)[:, None]
        return np.where(reached & np.isfinite(x)[:, None], 1.0, 0.0)

    def curves(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log P, items x levels x nodes, and its derivatives in each eta."""
        eta = np.moveaxis(eta, 1, -1)  # items x nodes x thresholds
        log_p = self.log_probabilities(eta)
        log_w = log_expit(eta) + log_expit(-eta)
        slopes = np.zeros((len(eta), self.features, self.thresholds, eta.shape[1]))
        for k in range(self.thresholds):
            slopes[:, k + 1, k] = np.exp(log_w[..., k] - log_p[..., k + 1])
            slopes[:, k, k] = -np.exp(log_w[..., k] - log_p[..., k])
        return np.moveaxis(log_p, -1, 1), slopes

    def start(self, data: Scores) -> tuple[np.ndarray, np.ndarray]:
        """Return first guesses of intercepts and log gaps from the smoothed shares of the levels."""
        share = self.statistics(data.x).sum(2) + 0.5
        above = np.cumsum(share[:, ::-1], 1)[:, ::-1][:, 1:] / share.sum(1, keepdims=True)
        level = np.log(above / (1 - above))
        return level.mean(1), np.log(np.maximum(-np.diff(level, axis=1), 0.05))


LIKELIHOODS = {"cb": ContinuousBernoulli, "bernoulli": Bernoulli, "fractional": Fractional}


def get_likelihood(
    name: str, levels: Sequence[float] | None = None, score_range: tuple[float, float] = (0, 1)
) -> type[_Natural] | Graded:
    """Return the likelihood called `name`: "cb", "bernoulli", "fractional" or "graded".

    "graded" needs `levels`, the values that a score can take, ascending, and their range, which it
    maps to [0, 1]. An unknown name, or "graded" without levels, raises `UsageError`.

    >>> get_likelihood("cb")
    <class 'ragkit.irt.likelihood.ContinuousBernoulli'>
    """
    if name == "graded" and levels is not None:
        return Graded(levels, score_range)
    return LIKELIHOODS[choice(name, "likelihood", LIKELIHOODS)]
