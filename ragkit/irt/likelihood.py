"""Likelihoods of one score, in their natural form.

Both are one-parameter exponential families in the natural parameter eta,

    log p(x | eta) = x * eta - A(eta),

so the mean of a score is A'(eta), its variance A''(eta), and the log-likelihood is concave.

continuous Bernoulli, x in [0, 1] (Loaiza-Ganem and Cunningham, NeurIPS 2019; the LiveRAG paper,
section 3.2, fits it to scores)::

    A(eta) = log(expm1(eta) / eta) = eta / 2 + log(sinh(h) / h),   h = |eta| / 2

Bernoulli, x in {0, 1}::

    A(eta) = log(1 + exp(eta))

The textbook form of the continuous Bernoulli's normaliser, 2 artanh(1 - 2p) / (1 - 2p), loses all
its digits near p = 1/2 and near 0 and 1; nothing here computes p.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from ragkit.errors import UsageError, did_you_mean

# log(sinh h / h) = sum_k c_k h^(2k), c_k = 2^(2k) B_2k / (2k (2k)!), k = 1, 2, ...
_SERIES = np.array(
    [
        1 / 6,
        -1 / 180,
        1 / 2835,
        -1 / 37800,
        1 / 467775,
        -691 / 3831077250,
        2 / 127702575,
        -3617 / 2605132530000,
    ]
)
_K = np.arange(1, len(_SERIES) + 1)
_SERIES_MEAN = _K * _SERIES  # of A' - 1/2, over eta/2
_SERIES_VARIANCE = _K * (2 * _K - 1) / 2 * _SERIES  # of A''
_SMALL = 0.25  # half of |eta| below which the series is used; its next term is below 1e-16


def _horner(coefficients: np.ndarray, x: np.ndarray) -> np.ndarray:
    total = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total *= x
        total += coefficient
    return total


class _Natural:
    """A family in one natural parameter; for the engine, statistics (x, 1) x curves (eta, -A)."""

    features, thresholds, graded = 2, 1, False

    @staticmethod
    def statistics(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the features' positions and values of each score, both scores x 2."""
        return np.tile([0, 1], (len(x), 1)), np.column_stack([x, np.ones_like(x)])

    @classmethod
    def curves(cls, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the curves, items x features x nodes, and their derivatives in each eta.

        `eta` is items x thresholds x nodes, the derivatives items x features x thresholds x nodes.
        """
        normalizer, mean, _ = cls.terms(eta[:, 0])
        slopes = np.stack([np.ones_like(mean), -mean], 1)[:, :, None]
        return np.stack([eta[:, 0], -normalizer], 1), slopes

    @classmethod
    def log_normalizer(cls, eta: np.ndarray) -> np.ndarray:
        """Return A(eta), shape as `eta`; absolute error below 1e-12 while |eta| < 1,000."""
        return cls.terms(eta)[0]

    @classmethod
    def mean_variance(cls, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean A'(eta) and the variance A''(eta), shapes as `eta`."""
        return cls.terms(eta)[1:]

    @classmethod
    def log_density(cls, eta: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return log p(x | eta)."""
        return x * eta - cls.log_normalizer(eta)

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
        """Return A, A' and A'' at `eta`, sharing the work."""
        eta = np.asarray(eta, dtype=float)
        half = np.atleast_1d(np.abs(eta)) / 2
        small = half < _SMALL
        h = np.maximum(half, _SMALL)
        e = np.exp(-2 * h)
        normalizer = h + np.log((1 - e) / (2 * h))
        mean = (1 + e) / (2 * (1 - e)) - 0.5 / h
        variance = 0.25 / h**2 - e / (1 - e) ** 2
        square = half[small] ** 2
        normalizer[small] = square * _horner(_SERIES, square)
        mean[small] = half[small] * _horner(_SERIES_MEAN, square)
        variance[small] = _horner(_SERIES_VARIANCE, square)
        normalizer, mean, variance = (
            out.reshape(eta.shape) for out in (normalizer, mean, variance)
        )
        return normalizer + eta / 2, np.copysign(mean, eta) + 0.5, variance

    @staticmethod
    def sample(eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw one score per entry of `eta`, by inversion."""
        eta = np.asarray(eta, dtype=float)
        u = rng.random(eta.shape)
        size = np.abs(eta)
        safe = np.maximum(size, 1e-6)
        x = 1 + np.log(u + (1 - u) * np.exp(-safe)) / safe
        x = np.where(size < 1e-6, u, x)
        return np.clip(np.where(eta < 0, 1 - x, x), 0.0, 1.0)

    @classmethod
    def crps(cls, eta: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Return the continuous ranked probability score of each score on [0, 1]."""
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
        """Return A, A' and A'' at `eta`."""
        p = expit(eta)
        return np.logaddexp(0, eta), p, p * expit(-eta)

    @staticmethod
    def sample(eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw one score per entry of `eta`."""
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


LIKELIHOODS = {"cb": ContinuousBernoulli, "bernoulli": Bernoulli, "fractional": Fractional}
Likelihood = type[ContinuousBernoulli] | type[Bernoulli] | type[Fractional]


def get_likelihood(name: str) -> Likelihood:
    """Return the likelihood called `name`, "cb", "bernoulli" or "fractional".

    "graded", which is no family in one natural parameter, is in `ragkit.irt.graded`.
    """
    if name not in LIKELIHOODS:
        known = [*LIKELIHOODS, "graded"]
        raise UsageError(f"no likelihood is called {name!r}", did_you_mean(name, known))
    return LIKELIHOODS[name]
