r"""Samejima's graded response model (GRM): scores that take a few ordered levels.

For the levels v_0 < ... < v_(K-1) (Samejima, Psychometrika Monograph 17, 1969),

    P(score >= v_k | theta) = logistic(a_j (theta - b_jk)),   k = 1, ..., K - 1,

so every level has a probability of its own and many scores at the ends of the range do no harm.
With two levels it is the Bernoulli 2PL. An item's difficulty is the mean of its thresholds b_jk.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import expit, log_expit

from ragkit.checks import number
from ragkit.errors import DataError, UsageError
from ragkit.irt.data import Scores

MOST_LEVELS = 20


def levels_of(data: Scores, levels: Sequence[float] | None) -> Graded:
    """Return the likelihood with the declared levels, or with the scores' distinct values."""
    low, high = data.score_range
    if levels is None:
        found = np.unique(data.x).astype(float)
        if len(found) > MOST_LEVELS:
            raise DataError(
                f"the scores take {len(found):,} distinct values, too many for a graded model",
                f"round them to at most {MOST_LEVELS} levels, or use likelihood='fractional'",
            )
        return Graded(found, data.score_range)
    wanted = np.array([number(level, "a level", least=low, most=high) for level in levels])
    if not 2 <= len(wanted) <= MOST_LEVELS or not (np.diff(wanted) > 0).all():
        raise UsageError(f"levels={levels!r} are not 2 to {MOST_LEVELS} ascending numbers")
    return Graded((wanted - low) / (high - low), data.score_range)


def threshold_columns(items: pd.DataFrame) -> list[str]:
    """Return the names of the columns that hold thresholds, in order."""
    return [name for name in items.columns if name.startswith("threshold_")]


def _log_levels(eta: np.ndarray, above: np.ndarray) -> np.ndarray:
    """Return log P(level) from eta at the thresholds (last axis) and its log logistic."""
    out = np.empty((*eta.shape[:-1], eta.shape[-1] + 1))
    out[..., 0] = above[..., 0] - eta[..., 0]
    out[..., -1] = above[..., -1]
    # logistic(u) - logistic(l) = logistic(u) logistic(-l) (1 - exp(l - u)), u > l
    between = -np.expm1(eta[..., 1:] - eta[..., :-1])
    out[..., 1:-1] = above[..., :-1] + above[..., 1:] - eta[..., 1:]
    out[..., 1:-1] += np.log(np.maximum(between, 1e-300))
    return out


class Graded:
    """The graded likelihood: for the engine, indicators of the level x log probabilities.

    `eta` has a last axis of thresholds, as many as levels less one. `levels` are on [0, 1].
    """

    name, graded = "graded", True

    def __init__(self, levels: np.ndarray, score_range: tuple[float, float]):
        self.levels, self.score_range = levels, score_range
        self.features, self.thresholds = len(levels), len(levels) - 1

    # --- of scores -----------------------------------------------------------------------------

    def log_probabilities(self, eta: np.ndarray) -> np.ndarray:
        """Return log P of each level (last axis)."""
        return _log_levels(eta, log_expit(eta))

    def categories(self, x: np.ndarray) -> np.ndarray:
        """Return the position of each rescaled score among the levels, or raise on one between."""
        x, levels = np.asarray(x, float), self.levels
        place = np.searchsorted((levels[1:] + levels[:-1]) / 2, x)
        off = np.abs(x - levels[place]) > 1e-6
        if off.any():
            low, high = self.score_range
            wrong = low + float(x[off][0]) * (high - low)
            raise DataError(
                f"the score {wrong:g} is none of the levels "
                + ", ".join(f"{low + level * (high - low):g}" for level in levels),
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

    # --- of the engine --------------------------------------------------------------------------

    def statistics(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the level of each score, and 1, both scores x 1."""
        place = self.categories(x)[:, None]
        return place, np.ones(place.shape)

    def curves(self, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log P, items x levels x nodes, and its derivatives in each eta."""
        eta = np.moveaxis(eta, 1, -1)  # items x nodes x thresholds
        above = log_expit(eta)
        log_p = _log_levels(eta, above)
        log_w = 2 * above - eta
        slopes = np.zeros((len(eta), self.features, self.thresholds, eta.shape[1]))
        for k in range(self.thresholds):
            slopes[:, k + 1, k] = np.exp(log_w[..., k] - log_p[..., k + 1])
            slopes[:, k, k] = -np.exp(log_w[..., k] - log_p[..., k])
        return np.moveaxis(log_p, -1, 1), slopes

    def counts(self, data: Scores) -> np.ndarray:
        """Return how often each item got each level."""
        _, item, x = data.cells()
        at = item.astype(np.int64) * self.features + self.statistics(x)[0][:, 0]
        size = data.n_items * self.features
        return np.bincount(at, minlength=size).reshape(data.n_items, self.features)

    def start(self, data: Scores) -> tuple[np.ndarray, np.ndarray]:
        """Return first guesses of intercepts and log gaps from the smoothed shares of the levels."""
        share = self.counts(data) + 0.5
        above = np.cumsum(share[:, ::-1], 1)[:, ::-1][:, 1:] / share.sum(1, keepdims=True)
        level = np.log(above / (1 - above))
        return level.mean(1), np.log(np.maximum(-np.diff(level, axis=1), 0.05))
