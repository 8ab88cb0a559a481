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

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, block_diag, cho_factor, cho_solve

from ragkit.irt.data import Scores

STEP = 0.2
NODES = np.arange(-32, 33) * STEP
# A linear function of ability is (f(NODES[0]), f(NODES[-1])) @ _LINEAR at the nodes.
_LINEAR = np.stack([NODES[-1] - NODES, NODES - NODES[0]]) / (NODES[-1] - NODES[0])
_OFFSETS = np.arange(-14, 15) * 0.5  # in posterior standard deviations
_POINTS = 6  # of an interpolating polynomial
COMPONENTS = 3
DISC_END = 10.0  # where the range of a discrimination ends
SEVERITY_SD = 5.0
MOST_WORK = 3e9  # multiplications up to which the joint information is inverted: some seconds
_DIFFERENCE = 1e-4  # step of a numerical derivative
_PART = 1 << 20  # entries of an array of a part: small enough to be reused by the allocator


@dataclass(frozen=True)
class Prior:
    """Normal prior of the items; a part left out has the weak default.

    Attributes
    ----------
    diff_mean, diff_sd : float
        Of the difficulty b (default 0 and 2.5), or with `disc="signed"` and in a 1PL of the
        intercept -a b (default 0 and 4).
    disc_mean, disc_sd : float
        Of log discrimination (default 0 and 0.6), or with `disc="signed"` of the discrimination
        itself (default 1 and 0.7).
    """

    diff_mean: float | None = None
    diff_sd: float | None = None
    disc_mean: float | None = None
    disc_sd: float | None = None

    def filled(self, *, positive: bool, shared: bool) -> Prior:
        """Return the prior with every part given."""
        disc = (0.0, 0.6) if positive else (1.0, 0.7)
        weak = Prior(0.0, 2.5 if positive and not shared else 4.0, *disc)
        given = {name: float(x) for name, x in vars(self).items() if x is not None}
        return replace(weak, **given)


@dataclass(frozen=True)
class Setup:
    """What an engine is told besides the scores."""

    family: object
    shared: bool  # one discrimination
    positive: bool
    prior: Prior | None
    hierarchical: bool = False
    seed: int = 0

    @property
    def on_difficulty(self) -> bool:
        """Whether the prior is that of the difficulty, not of the intercept."""
        return self.positive and not self.shared


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
        if self.full:  # multiplied in every step
            self.x = self.x.astype(float)
        self.units = len(self.unit_item)
        wide = max(self.n, family.features * family.thresholds * len(NODES))
        step = max(1, _PART // wide)
        starts = range(0, self.units, step)
        self.parts = [slice(start, min(start + step, self.units)) for start in starts]

    def log_likelihood(self, part: slice, curves: np.ndarray) -> np.ndarray:
        """Return subjects x nodes from the curves of a part, units x features x nodes."""
        if self.full:
            return self.x[part].T @ curves[:, 0, [0, -1]] @ _LINEAR + curves[:, 1].sum(0)
        return self.of_units(part).reshape(-1, self.n).T @ curves.reshape(-1, len(NODES))

    def expected(self, weights: np.ndarray) -> list[np.ndarray]:
        """Return the statistics' expectations of each part, units x features x nodes.

        Those of full scores are put on the first and last node: eta is linear in ability, so its
        statistic is multiplied by nothing but linear functions of the nodes.
        """
        if not self.full:
            return [self.of_units(part) @ weights for part in self.parts]
        out, ends = np.zeros((self.units, 2, len(NODES))), weights @ _LINEAR.T
        out[:, 0, [0, -1]], out[:, 1] = self.x @ ends, weights.sum(0)
        return [out[part] for part in self.parts]

    def of_units(self, part: slice) -> np.ndarray:
        """Return units x features x subjects."""
        return self.family.statistics(self.x[part])


class Model:
    """The log posterior of the items of one data set.

    A vector of parameters has a head, the common alpha (1PL) and the contrasts of the severities,
    then for each item alpha (2PL), the intercept d and the log gaps between offsets (graded).
    Derivatives in it are taken by complex steps, f'(x) = Im f(x + i h) / h, which lose no digits
    (Squire and Trapp, SIAM Review 1998); `moves` are their directions: each parameter of the head,
    then each kind of the items' parameters, of all items at once.
    """

    def __init__(self, data: Scores, setup: Setup):
        self.data, self.family, self.prior = data, setup.family, setup.prior
        self.shared, self.positive = setup.shared, setup.positive
        self.on_difficulty = setup.on_difficulty
        self.stats = Statistics(data, self.family)
        self.quadrature = Quadrature(data.n_subjects)
        self.m, self.k, self.groups = data.n_items, self.family.thresholds, data.n_groups
        self.width = self.k if self.shared else self.k + 1
        self.head = int(self.shared) + max(0, self.groups - 1)
        self.size = self.head + self.m * self.width
        self.moves = block_diag(np.eye(self.head), np.tile(np.eye(self.width), self.m))
        after = np.arange(self.k)[:, None] > np.arange(self.k - 1)
        self.spread = after - after.mean(0, keepdims=True)  # thresholds x gaps
        if self.groups:
            ones = np.column_stack([np.ones(self.groups), np.eye(self.groups)[:, 1:]])
            self.contrasts = np.linalg.qr(ones)[0][:, 1:]

    # --- parameters ---------------------------------------------------------------------------

    def items(self, vector: np.ndarray) -> np.ndarray:
        """Return the items' own part of a vector, items x width (a view)."""
        return vector[self.head :].reshape(self.m, self.width)

    def unpack(self, vector: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return alpha, intercepts, log gaps (items x gaps) and severities."""
        own = self.items(vector)
        alpha = np.full(self.m, vector[0]) if self.shared else own[:, 0]
        own = own[:, 0 if self.shared else 1 :]
        contrast = vector[int(self.shared) : self.head]
        severity = self.contrasts @ contrast if self.groups else np.zeros(0)
        return alpha, own[:, 0], own[:, 1:], severity

    def slopes(self, alpha: np.ndarray) -> np.ndarray:
        return np.exp(alpha) if self.positive else alpha

    def offsets(self, gaps: np.ndarray) -> np.ndarray:
        """Return the thresholds' offsets from their mean, items x thresholds."""
        return np.exp(gaps) @ self.spread.T

    def natural(self, vector: np.ndarray) -> np.ndarray:
        """Return the slope in ability and the levels of eta, units x (1 + thresholds)."""
        alpha, d, gaps, severity = self.unpack(vector)
        a, level = self.slopes(alpha), d[:, None] - self.offsets(gaps)
        if self.groups:
            a, level = a[self.stats.unit_item], level[self.stats.unit_item]
            level = level - (a * severity[self.stats.unit_group])[:, None]
        return np.column_stack([a, level])

    def tangents(self, function, vector: np.ndarray) -> list[np.ndarray]:
        """Return a function's derivatives along each of the moves."""
        return [function(vector + 1e-20j * move).imag / 1e-20 for move in self.moves]

    def curves(self, vector: np.ndarray):
        """Yield each part of the units, its curves and their derivatives in eta."""
        units = self.natural(vector)
        for part in self.stats.parts:
            eta = units[part, :1, None] * NODES + units[part, 1:, None]
            yield part, *self.family.curves(eta)

    def start(self) -> np.ndarray:
        """Return intercepts from the mean scores, and equal discriminations."""
        vector = np.zeros(self.size)
        own = self.items(vector)
        if not self.positive:
            (vector if self.shared else own.T)[0] = 1.0
        intercept, gaps = self.family.start(self.data)
        own[:, 0 if self.shared else 1] = intercept
        own[:, 1 if self.shared else 2 :] = gaps
        return vector

    # --- log posterior ------------------------------------------------------------------------

    def expect(self, vector: np.ndarray, components: int = 1) -> tuple[Abilities, list]:
        """Return the abilities' posteriors and the curves' derivatives in eta, by parts."""
        logs, slopes = np.zeros((self.stats.n, len(NODES))), []
        for part, curves, slope in self.curves(vector):
            logs += self.stats.log_likelihood(part, curves)
            slopes.append(slope)
        return self.quadrature.integrate(logs, components), slopes

    def objective(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the log posterior and its gradient."""
        abilities, slopes = self.expect(vector)
        value, gradient = self.log_prior(vector)
        expected = self.stats.expected(abilities.weights[0])
        gradient += self.chain(vector, expected, slopes)
        return float(abilities.log_likelihood.sum()) + value, gradient

    def chain(self, vector, expected: list, slopes) -> np.ndarray:
        """Return the gradient of the expected complete log-likelihood; arguments by parts."""
        pull = np.empty((self.stats.units, self.k, 1))
        along = np.empty_like(pull)
        for part, own, slope in zip(self.stats.parts, expected, slopes, strict=True):
            by_node = np.einsum("vfq,vftq->vtq", own, slope)
            pull[part, :, 0], along[part, :, 0] = by_node.sum(-1), by_node @ NODES
        return self.pullback(vector, pull, along)[:, 0]

    def complete(self, vector, expected: list) -> np.ndarray:
        """Return the gradient of the log posterior with the abilities' posterior held fixed."""
        slopes = (slope for _, _, slope in self.curves(vector))
        return self.chain(vector, expected, slopes) + self.log_prior(vector)[1]

    def pullback(self, vector, pull: np.ndarray, along: np.ndarray) -> np.ndarray:
        """Return derivatives in the parameters from those in eta.

        `pull` and `along`, units x thresholds x columns, are sums over the nodes, `along` those
        with the ability as a factor. Returns parameters x columns.
        """
        natural = np.concatenate([along.sum(1, keepdims=True), pull], 1)
        tangents = self.tangents(self.natural, vector)
        parts = [np.einsum("vt,vtc->vc", tangent, natural) for tangent in tangents]
        head, own = [part.sum(0, keepdims=True) for part in parts[: self.head]], parts[self.head :]
        if self.groups:
            first = np.searchsorted(self.stats.unit_item, np.arange(self.m))
            own = [np.add.reduceat(part, first) for part in own]
        return np.concatenate([*head, np.stack(own, 1).reshape(-1, pull.shape[-1])])

    def log_priors(self, vector: np.ndarray) -> np.ndarray:
        """Return the log prior densities, up to a constant: of the head, then of each item."""
        alpha, d, gaps, severity = self.unpack(vector)
        a, prior = self.slopes(alpha), self.prior
        place = -d / a if self.on_difficulty else d
        items = -0.5 * ((place - prior.diff_mean) / prior.diff_sd) ** 2 - 0.5 * (gaps**2).sum(1)
        if self.on_difficulty:
            items = items - alpha  # the density is that of (alpha, d)
        slopes = (
            -0.5 * ((alpha - prior.disc_mean) / prior.disc_sd) ** 2
            - 0.25 * ((a / DISC_END) ** 2) ** 2
        )
        head = -0.5 * (severity @ severity) / SEVERITY_SD**2
        if self.shared:
            return np.concatenate([[head + slopes[0]], items])
        return np.concatenate([[head], items + slopes])

    def log_prior(self, vector: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the log prior density, up to a constant, and its gradient."""
        if self.prior is None:
            return 0.0, np.zeros(self.size)
        tangents = self.tangents(self.log_priors, vector)
        head = [tangent.sum() for tangent in tangents[: self.head]]
        own = np.stack([tangent[1:] for tangent in tangents[self.head :]], 1)
        return float(self.log_priors(vector).sum()), np.concatenate([head, own.ravel()])

    def curvature(self, vector: np.ndarray, expected: list) -> tuple[np.ndarray, np.ndarray]:
        """Return minus the second derivatives with the abilities' posterior held fixed.

        The items' blocks, items x width x width, and the rows of the parameters before them.
        """
        changes = []
        for move in _DIFFERENCE * self.moves:
            up, down = (self.complete(vector + s * move, expected) for s in (1, -1))
            changes.append((down - up) / (2 * _DIFFERENCE))
        blocks = np.stack([self.items(change) for change in changes[self.head :]], -1)
        border = np.array(changes[: self.head]).reshape(self.head, self.size)
        return (blocks + blocks.transpose(0, 2, 1)) / 2, border

    def covariances(self, vector, abilities: Abilities, slopes: list) -> np.ndarray:
        """Return U: parameters x (components x subjects)."""
        parts = []
        for weight in abilities.weights[1:]:
            pull = np.empty((self.stats.units, self.k, self.stats.n))
            along = np.empty_like(pull)
            for part, slope in zip(self.stats.parts, slopes, strict=True):
                x = self.stats.of_units(part)
                for out, factor in ((pull, 1.0), (along, NODES)):
                    out[part] = np.einsum("vfi,vfti->vti", x, slope @ (weight * factor).T)
            parts.append(self.pullback(vector, pull, along))
        return np.concatenate(parts, 1)


class Information:
    """The inverse of the observed information, in the form that is cheaper.

    Attributes
    ----------
    form : {"kept", "joint", "apart"}
        Which side was inverted; "apart": too large for either, the abilities are taken as known.
    definite : bool
        Whether the matrix is positive definite.
    """

    def __init__(self, model: Model, vector: np.ndarray, abilities: Abilities, slopes: list):
        self.model = model
        n = model.data.n_subjects
        expected = model.stats.expected(abilities.weights[0])
        blocks, border = model.curvature(vector, expected)
        side = COMPONENTS * n
        work = {"kept": model.size * side**2, "joint": model.size**2 * (model.size + side)}
        self.form = min(work, key=work.get)
        if work[self.form] > MOST_WORK:
            self.form, self.u = "apart", np.zeros((model.size, 0))
        else:
            self.u = model.covariances(vector, abilities, slopes)
        try:
            (self._joint if self.form == "joint" else self._kept)(blocks, border)
            self.definite = True
        except LinAlgError:
            self.definite = False

    def _joint(self, blocks: np.ndarray, border: np.ndarray) -> None:
        h, w = self.model.head, self.model.width
        whole = np.zeros((self.model.size, self.model.size))
        whole[h:, h:] = block_diag(*blocks)
        whole[:h], whole[:, :h] = border, border.T
        whole[:h, :h] = (border[:, :h] + border[:, :h].T) / 2
        whole -= self.u @ self.u.T
        self.inverse = cho_solve(cho_factor(whole), np.eye(len(whole)))
        own = self.inverse[h:, h:].reshape(self.model.m, w, self.model.m, w)
        every = np.arange(self.model.m)
        self.blocks, self.top = own[every, :, every], self.inverse[:h, :h]

    def _kept(self, blocks: np.ndarray, border: np.ndarray) -> None:
        """Eliminate the items; what is kept are the head and the ability components."""
        h, m, w = self.model.head, self.model.m, self.model.width
        np.linalg.cholesky(blocks)
        inverse = np.linalg.inv(blocks)
        top, side = (border[:, :h] + border[:, :h].T) / 2, self.u.shape[1]
        coupling = np.concatenate([border[:, h:].T, -self.u[h:]], 1)
        base = np.block([[top, -self.u[:h]], [-self.u[:h].T, np.eye(side)]])
        load = (inverse @ coupling.reshape(m, w, -1)).reshape(m * w, -1)
        self.b_inverse, self.load = inverse, load
        self.k = cho_solve(cho_factor(base - coupling.T @ load), np.eye(len(base)))
        by_item = load.reshape(m, w, -1)
        self.blocks = inverse + (by_item @ self.k) @ by_item.transpose(0, 2, 1)
        self.top = self.k[:h, :h]

    def solve(self, gradient: np.ndarray) -> np.ndarray:
        """Return the inverse times a vector, or the columns of a matrix."""
        if self.form == "joint":
            return self.inverse @ gradient
        h, m, w = self.model.head, self.model.m, self.model.width
        own = gradient[h:]
        right = -self.load.T @ own
        right[:h] += gradient[:h]
        kept = self.k @ right
        items = (self.b_inverse @ own.reshape(m, w, -1)).reshape(own.shape) - self.load @ kept
        return np.concatenate([kept[:h], items])

    def with_abilities(self, along: np.ndarray):
        """Return covariances with functionals of the abilities' errors, in posterior sds.

        `along` is subjects x functionals. Returns the parameters' covariances with them, their
        own, the subjects' variances and the subjects' covariances with them.
        """
        n = len(along)
        if self.form == "apart":
            zero = np.zeros((self.model.size, along.shape[1]))
            return zero, along.T @ along, np.ones(n), along
        first = self.u[:, :n]  # the first component is the ability itself
        spread = self.solve(first)
        wide = along + first.T @ (spread @ along)
        return spread @ along, along.T @ wide, 1 + (first * spread).sum(0), wide
