r"""The marginal likelihood of an item response model, its gradient and its information matrix.

For the score x of subject i on item j under judge k (rescaled to [0, 1]),

    eta_t = a_j (theta_i - s_k) + d_j - c_jt,     theta_i ~ N(0, 1),     b_j = -d_j / a_j

and a likelihood gives log p(x | eta). The continuous Bernoulli and the Bernoulli have one eta; a
graded model has one for each threshold, with offsets c_jt that ascend and sum to 0. `alpha` is
log a (or a itself where discriminations may be negative).

Quadrature. The log-likelihood of each item is evaluated at 65 equally spaced abilities. Between
them a subject's log-likelihood is interpolated by polynomials of degree 5, and its posterior is
integrated by the trapezoidal rule on 29 points around its mean, half a standard deviation apart.
So the special functions grow with items x 65 and not with the scores, and a posterior that is
much narrower than the grid is integrated as exactly as a wide one.

Information. With the abilities' posterior held fixed, items do not share second derivatives: B is
block-diagonal. Louis's identity (Journal of the Royal Statistical Society B 1982) gives the
observed information as B - U U', where the columns of U are the covariances of the items' scores
with polynomials in each subject's ability, orthonormal under its posterior. Three of them suffice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ragkit.irt.data import Scores

STEP = 0.2
NODES = np.arange(-32, 33) * STEP
_OFFSETS = np.arange(-14, 15) * 0.5  # in posterior standard deviations
_POINTS = 6  # of an interpolating polynomial
COMPONENTS = 3
_PART = 1 << 20  # entries of an array of a part: small enough to be reused by the allocator


def interpolation(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first of six neighbouring nodes and their Lagrange weights (last axis)."""
    place = (theta - NODES[0]) / STEP
    first = np.clip(np.floor(place).astype(int) - _POINTS // 2 + 1, 0, len(NODES) - _POINTS)
    apart = (place - first)[..., None] - np.arange(_POINTS)
    weight = np.empty_like(apart)
    for k in range(_POINTS):
        rest = [other for other in range(_POINTS) if other != k]
        weight[..., k] = apart[..., rest].prod(-1) / np.prod([k - other for other in rest])
    return first, weight


@dataclass
class Abilities:
    """Subjects' posteriors: means, sds, and expectations of functions that are known at the nodes.

    `log_likelihood` has one entry per subject. `weights[k]`, subjects x nodes, gives the
    expectation of f(theta) times the k-th orthonormal polynomial as `weights[k] @ f(NODES)`.
    """

    mean: np.ndarray
    sd: np.ndarray
    log_likelihood: np.ndarray
    weights: np.ndarray


class Quadrature:
    """Integrates abilities out; remembers where each posterior was."""

    def __init__(self, n_subjects: int):
        self.centre = np.zeros(n_subjects)
        self.spread = np.full(n_subjects, 1.0)

    def integrate(self, logs: np.ndarray, components: int = 1) -> Abilities:
        """Return the posteriors for log-likelihoods `logs`, subjects x nodes."""
        n = len(logs)
        rows = np.arange(n)[:, None, None]
        for _ in range(30):
            theta = self.centre[:, None] + self.spread[:, None] * _OFFSETS
            first, weight = interpolation(theta)
            at = first[..., None] + np.arange(_POINTS)
            value = (logs[rows, at] * weight).sum(-1) - 0.5 * theta**2
            value[np.abs(theta) > NODES[-1]] = -np.inf
            top = value.max(1, keepdims=True)
            p = np.exp(value - top)
            norm = p.sum(1)
            p /= norm[:, None]
            mean = (p * theta).sum(1)
            sd = np.sqrt((p * (theta - mean[:, None]) ** 2).sum(1))
            sd = np.maximum(sd, 0.1 * self.spread)  # between two points: look closer
            step = 0.5 * self.spread
            near = np.abs(mean - self.centre) < 0.1 * sd
            if (near & (np.abs(np.log(sd / self.spread)) < 0.1)).all():
                break
            self.centre, self.spread = mean, sd
        log_likelihood = top[:, 0] + np.log(norm * step) - 0.5 * np.log(2 * np.pi)
        basis = self._basis(theta, p, mean, sd, components)
        place = (rows * len(NODES) + at).ravel()
        weights = [
            np.bincount(place, ((p * f)[..., None] * weight).ravel(), n * len(NODES)) for f in basis
        ]
        return Abilities(
            mean, sd, log_likelihood, np.array(weights).reshape(len(basis), n, len(NODES))
        )

    @staticmethod
    def _basis(theta, p, mean, sd, components: int) -> list[np.ndarray]:
        """Return 1, then polynomials orthonormal under the posterior (Gram and Schmidt)."""
        z = (theta - mean[:, None]) / sd[:, None]
        basis = [np.ones_like(z)]
        for degree in range(1, components):
            new = z**degree
            for known in basis:
                new = new - (p * new * known).sum(1, keepdims=True) * known
            scale = np.sqrt((p * new**2).sum(1, keepdims=True))
            basis.append(new / np.maximum(scale, 1e-12))
        return basis


class Statistics:
    """The scores as statistics that are linear in each item's curves.

    log p(x) of a cell is the sum over features of statistic x curve: (x, 1) x (eta, -A(eta)), or
    for a graded model indicators of the level x log probabilities; a missing score has zeros. A
    "unit" is an item, or an item under one judge.
    """

    def __init__(self, data: Scores, family):
        self.family, self.n, self.x = family, data.n_subjects, data.x
        self.unit_item, self.unit_group = np.arange(data.n_items), None
        if data.n_groups:
            subject, item, x = data.cells()
            found, unit = np.unique(item * data.n_groups + data.group, return_inverse=True)
            self.unit_item, self.unit_group = np.divmod(found, data.n_groups)
            self.x = np.full((len(found), self.n), np.nan)
            self.x[unit, subject] = x
        self.full = data.n_cells == self.x.size and not family.graded
        self.units = len(self.unit_item)
        wide = max(self.n, family.features * family.thresholds * len(NODES))
        step = max(1, _PART // wide)
        starts = range(0, self.units, step)
        self.parts = [slice(start, min(start + step, self.units)) for start in starts]

    def log_likelihood(self, part: slice, curves: np.ndarray) -> np.ndarray:
        """Return subjects x nodes from the curves of a part, units x features x nodes."""
        if self.full:
            return self.x[part].T.astype(float) @ curves[:, 0] + curves[:, 1].sum(0)
        return self.of_units(part).reshape(-1, self.n).T @ curves.reshape(-1, len(NODES))

    def expected(self, weights: np.ndarray) -> list[np.ndarray]:
        """Return the statistics' expectations of each part, units x features x nodes."""
        if self.full:
            count = weights.sum(0)
            sums = (self.x[part].astype(float) @ weights for part in self.parts)
            return [np.stack([x, np.broadcast_to(count, x.shape)], 1) for x in sums]
        return [self.of_units(part) @ weights for part in self.parts]

    def of_units(self, part: slice) -> np.ndarray:
        """Return units x features x subjects."""
        return self.family.statistics(self.x[part])
