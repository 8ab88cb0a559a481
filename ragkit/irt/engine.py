r"""The default engine: items by marginal maximum a posteriori, abilities by EAP.

The items' parameters maximise the marginal log-likelihood (`ragkit.irt.marginal`; MML of Bock and
Aitkin, Psychometrika 1981) plus a fixed, weakly informative log prior:

    positive   b_j ~ N(0, 2.5^2),  log a_j ~ N(0, 0.6^2)
    signed     d_j ~ N(0, 4^2),  a_j ~ N(1, 0.7^2)      where d = -a b
    1PL        d_j ~ N(0, 4^2),  log a ~ N(0, 0.6^2)
    graded     log gaps between thresholds ~ N(0, 1)
    judges     severities ~ N(0, 5^2), summing to zero

and the factor exp(-(a / 10)^4 / 4), which ends the range of a discrimination. In slope and
intercept the signed log-likelihood is concave, so an item can cross a = 0. The maximum is that of
the density of (alpha, d), in which posteriors are closest to normal.

By Fisher's identity the gradient is that of an M step. From items fitted to the subjects' mean
scores, L-BFGS climbs in coordinates whitened by each item's information, and Newton's method with
the observed information finishes. The distribution of ability is N(0, 1) in the fit; afterwards the
scale is moved so that the abilities of the population have mean 0 and variance 1 exactly, that is
mean(EAP) = 0 and mean(EAP^2 + error^2) = 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import LinAlgError, block_diag, cho_factor, cho_solve

from ragkit import display
from ragkit.irt.data import Scores
from ragkit.irt.marginal import (
    COMPONENTS,
    NODES,
    Abilities,
    Quadrature,
    Statistics,
    interpolation,
)

DISC_END = 10.0  # where the range of a discrimination ends
DISC_NEAR, ABILITY_NEAR = 9.5, 6.0  # too near the ends of their ranges to be estimates
SEVERITY_SD = 5.0
MOST_WORK = 3e9  # multiplications up to which the joint information is inverted: some seconds
HYPER_BOUNDS = {
    "diff_mean": (-4, 4),
    "diff_sd": (0.2, 6),
    "disc_mean": (-2, 2),
    "disc_sd": (0.1, 1),
}
_DIFFERENCE = 1e-4  # step of a numerical derivative
_STARTS = 4  # Newton steps before the climb
_NEWTON = 25  # steps at the end
_ROUND = 15  # iterations of L-BFGS in the same coordinates


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


@dataclass
class Estimates:
    """What an engine returns.

    `moments` holds estimates and variances of theta, diff, alpha (log disc, or disc itself for
    signed models) and, with judges, severity; `info` at least problems and iterations.
    """

    moments: dict[str, tuple[np.ndarray, np.ndarray]]
    info: dict
    thresholds: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))  # x items
    draws: dict | None = None


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

    def outside(self, vector: np.ndarray) -> bool:
        """Return whether a discrimination or an ability is at the end of its range."""
        a = np.abs(self.slopes(self.unpack(vector)[0]))
        return bool(a.max() > DISC_NEAR or np.abs(self.quadrature.centre).max() > ABILITY_NEAR)

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
        """Return the inverse times a vector."""
        if self.form == "joint":
            return self.inverse @ gradient
        h, m, w = self.model.head, self.model.m, self.model.width
        own = gradient[h:]
        right = -self.load.T @ own
        right[:h] += gradient[:h]
        kept = self.k @ right
        items = (self.b_inverse @ own.reshape(m, w, 1)).ravel() - self.load @ kept
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
        h = self.model.head
        one = slice(h, h + n)  # the first component is the ability itself
        if self.form == "kept":
            wide = self.k[:, one] @ along
            cross = np.concatenate([wide[:h], -self.load @ wide])
            return cross, along.T @ wide[one], np.diag(self.k)[one], wide[one]
        first = self.u[:, :n]
        spread = self.inverse @ first
        wide = along + first.T @ (spread @ along)
        return spread @ along, along.T @ wide, 1 + (first * spread).sum(0), wide


@dataclass
class Optimum:
    """Where the climb ended, on the scale of the fit."""

    vector: np.ndarray
    abilities: Abilities
    information: Information
    gradient: float  # largest entry, in units of the items' errors
    iterations: int


def climb(
    model: Model, vector: np.ndarray, *, tol: float, max_iter: int, near: bool = False
) -> Optimum:
    """Maximise the log posterior: L-BFGS, then Newton's method where the information is at hand.

    With `near` the vector is taken to be near the optimum and Newton's method begins at once.
    """
    iterations = outside = 0
    with display.Bar("fitting") as bar:
        for _ in range(0 if near else 1 + max_iter // _ROUND):  # the information changes on the way
            vector, used = _whitened(model, vector, min(_ROUND, max_iter), bar)
            iterations += used
            outside = outside + 1 if model.outside(vector) else 0
            if used < _ROUND or outside == 2:
                break
        for newton in range(_NEWTON + 1):
            abilities, slopes = model.expect(vector, COMPONENTS + 1)
            information = Information(model, vector, abilities, slopes)
            value, gradient = model.objective(vector)
            norm, known = float("inf"), information.definite
            if known:
                step = information.solve(gradient)
                norm = float(np.sqrt(max(gradient @ step, 0.0)))
            done = norm <= tol or iterations >= max_iter or newton == _NEWTON or outside == 2
            if done or not known or information.form == "apart":
                return Optimum(vector, abilities, information, norm, iterations)
            iterations += 1
            bar.update()
            for _ in range(10):  # a step that does not gain is halved
                if model.objective(vector + step)[0] >= value - 1e-9 * abs(value):
                    break
                step = step / 2
            vector = vector + step


def _definite(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the items' blocks' eigenvalues, made positive, and eigenvectors."""
    low, axes = np.linalg.eigh(blocks)
    return np.maximum(np.abs(low), 0.05 * np.abs(low).max(1, keepdims=True) + 1e-6), axes


def start(model: Model) -> np.ndarray:
    """Return items fitted by Newton's method to abilities taken from the mean scores."""
    x = model.data.x
    theta = np.nanmean(x - model.data.per_item("mean")[:, None], 0)
    theta = theta / max(float(theta.std()), 1e-12)
    first, weight = interpolation(theta)
    known = np.zeros((len(theta), len(NODES)))
    known[np.arange(len(theta))[:, None], first[:, None] + np.arange(weight.shape[-1])] = weight
    expected, vector = model.stats.expected(known), model.start()
    for _ in range(_STARTS):
        blocks, _ = model.curvature(vector, expected)
        gradient = model.complete(vector, expected)
        low, axes = _definite(blocks)
        step = np.swapaxes(axes, 1, 2) @ model.items(gradient)[..., None]
        step = (axes @ (step / low[..., None]))[..., 0]
        step /= np.maximum(1, np.abs(step).max(1, keepdims=True))
        model.items(vector)[:] += step
    return vector


def _whitened(model: Model, origin: np.ndarray, max_iter: int, bar) -> tuple[np.ndarray, int]:
    """Climb by L-BFGS in coordinates in which each item's information is the identity."""
    from scipy.optimize import minimize

    abilities, _ = model.expect(origin)
    blocks, border = model.curvature(origin, model.stats.expected(abilities.weights[0]))
    low, axes = _definite(blocks)
    root = axes / np.sqrt(low)[:, None, :]
    unit = np.maximum(np.abs(np.diagonal(border)), 1e-3) ** -0.5
    h = model.head

    def place(z: np.ndarray) -> np.ndarray:
        own = root @ model.items(z)[..., None]
        return origin + np.concatenate([unit * z[:h], own.ravel()])

    def negative(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = model.objective(place(z))
        own = model.items(gradient)[:, None, :] @ root
        return -value, -np.concatenate([unit * gradient[:h], own.ravel()])

    found = minimize(
        negative,
        np.zeros(model.size),
        jac=True,
        method="L-BFGS-B",
        callback=lambda _: bar.update() and None,
        options={"maxiter": max_iter, "gtol": 1e-3, "ftol": 1e-13, "maxcor": 20, "maxls": 30},
    )
    return place(found.x), int(found.nit)
