r"""Samejima's graded response model: scores that take a few ordered levels.

For the levels v_0 < ... < v_(K-1) (Samejima, Psychometrika Monograph 17, 1969),

    P(score >= v_k | theta) = logistic(a_j (theta - b_jk)),   b_j1 < ... < b_j(K-1),   a_j > 0,

so every level has a probability of its own and atoms at the ends of the range are nothing special.
With two levels it is the Bernoulli 2PL. An item's difficulty is the mean of its thresholds b_jk.

Marginal maximum likelihood: theta ~ N(0, 1) on a grid, as in `engine="em"`. The parameters of an
item are alpha = log a, the mean threshold m and the logarithms g of the gaps between thresholds,
which keep their order. By Fisher's identity the gradient of the marginal likelihood is that of
EM's M step; L-BFGS climbs it in coordinates whitened by each item's expected information. With a
prior,

    alpha ~ N(mu_a, sigma_a^2),  m ~ N(mu_b, sigma_b^2),  g_l ~ N(mu_l, sigma_g^2),  mu_l ~ N(0, 1),

the means and sds are set from the items' modes and curvatures between climbs, and the scale is
moved so that abilities have mean 0 and mean square 1, uncertainty included: where items say little
of their slopes the updates alone would creep there. A level that an item never got, or an item with
the same score everywhere, has finite thresholds.

Errors: the inverse of the observed information of the marginal likelihood (Louis, Journal of the
Royal Statistical Society B 1982), abilities' uncertainty included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ragkit.errors import DataError, UsageError
from ragkit.irt.data import Scores
from ragkit.irt.map import Prior, shrunk_sd

MOST_LEVELS = 20
_FULL_WORK = 3e10  # multiplications up to which the joint information is formed
_ROUNDS, _HYPER_TOL = 60, 5e-3


@dataclass(frozen=True)
class GradedHyper:
    """The prior of the items; `gap_mean` has one entry per gap between thresholds."""

    diff_mean: float
    diff_sd: float
    disc_mean: float
    disc_sd: float
    gap_mean: np.ndarray
    gap_sd: float

    def named(self, *, shared: bool) -> dict[str, float]:
        names = ["diff_mean", "diff_sd"] + ([] if shared else ["disc_mean", "disc_sd"])
        out = {name: float(getattr(self, name)) for name in names}
        if len(self.gap_mean):
            out["log_gap_sd"] = float(self.gap_sd)
            out |= {f"log_gap_mean_{k + 1}": float(x) for k, x in enumerate(self.gap_mean)}
        return out


@dataclass
class GradedFit:
    """Items, abilities and how the climb ended. `thresholds` is items x (levels - 1)."""

    alpha: np.ndarray
    b: np.ndarray
    thresholds: np.ndarray
    theta: np.ndarray
    sd_theta: np.ndarray
    hyper: GradedHyper | None
    log_likelihood: float
    converged: bool
    iterations: int
    gradient_norm: float
    var_b: np.ndarray
    var_alpha: np.ndarray
    notes: list[str]


def levels_of(data: Scores, levels: Sequence[float] | None) -> np.ndarray:
    """Return the levels on [0, 1], ascending: the declared ones, or the scores' distinct values."""
    low, high = data.score_range
    if levels is None:
        found = np.unique(data.x)
        if len(found) > MOST_LEVELS:
            raise DataError(
                f"the scores take {len(found):,} distinct values, too many for a graded model",
                f"round them to at most {MOST_LEVELS} levels, or use likelihood='fractional'",
            )
        return found.astype(float)
    try:
        wanted = np.array([float(level) for level in levels])
    except (TypeError, ValueError):
        raise UsageError(f"levels={levels!r} are not numbers") from None
    if len(wanted) < 2 or len(wanted) > MOST_LEVELS or not (np.diff(wanted) > 0).all():
        raise UsageError(f"levels={levels!r} are not 2 to {MOST_LEVELS} ascending numbers")
    if wanted[0] < low or wanted[-1] > high:
        raise UsageError(f"levels={levels!r} leave the range [{low:g}, {high:g}]")
    return (wanted - low) / (high - low)


def categories(x: np.ndarray, levels: np.ndarray, score_range: tuple[float, float]) -> np.ndarray:
    """Return the position of each rescaled score among the levels, or raise on one between them."""
    x = np.asarray(x, float)
    place = np.clip(np.searchsorted((levels[1:] + levels[:-1]) / 2, x), 0, len(levels) - 1)
    off = np.abs(x - levels[place]) > 1e-6
    if off.any():
        low, high = score_range
        wrong = low + float(x[off][0]) * (high - low)
        raise DataError(
            f"the score {wrong:g} is none of the levels "
            + ", ".join(f"{low + level * (high - low):g}" for level in levels),
            "declare all levels: levels=(...)",
        )
    return place


def every_level(data: Scores, levels: np.ndarray) -> bool:
    """Say whether every item got every level."""
    _, item, x = data.cells()
    pairs = np.unique(item.astype(np.int64) * len(levels) + categories(x, levels, data.score_range))
    return len(pairs) == data.n_items * len(levels)


def threshold_columns(items: pd.DataFrame) -> list[str]:
    """Return the names of the columns that hold thresholds, in order."""
    return [name for name in items.columns if name.startswith("threshold_")]


def log_probabilities(theta: np.ndarray, a: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Return log P(level), shape of `theta` and `a` broadcast, then levels.

    `thresholds` has a last axis of levels - 1.
    """
    eta = np.asarray(a)[..., None] * (np.asarray(theta)[..., None] - thresholds)
    return _log_levels(eta, _log_logistic(eta))


def _log_logistic(eta: np.ndarray) -> np.ndarray:
    return np.minimum(eta, 0) - np.log1p(np.exp(-np.abs(eta)))


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


def moments(
    theta: np.ndarray, a: np.ndarray, thresholds: np.ndarray, levels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of the score (on the scale of `levels`)."""
    p = np.exp(log_probabilities(theta, a, thresholds))
    mean = p @ levels
    return mean, np.maximum(p @ levels**2 - mean**2, 0)


def information(theta: np.ndarray, a: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Return Fisher's information about ability (Samejima 1969, chapter 6)."""
    p = np.exp(log_probabilities(theta, a, thresholds))
    eta = np.asarray(a)[..., None] * (np.asarray(theta)[..., None] - thresholds)
    w = np.exp(-np.logaddexp(0, eta) - np.logaddexp(0, -eta))
    zero = np.zeros((*w.shape[:-1], 1))
    slope = np.concatenate([zero, w], -1) - np.concatenate([w, zero], -1)
    return np.asarray(a) ** 2 * np.sum(slope**2 / np.maximum(p, 1e-300), -1)


def abilities(
    subject: np.ndarray, category: np.ndarray, a: np.ndarray, thresholds: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return posterior means and sds of ability under N(0, 1), items known; arrays over cells."""
    nodes = np.linspace(-6, 6, 241)
    logs = np.zeros((n, len(nodes)))
    for q, node in enumerate(nodes):
        log_p = log_probabilities(np.full(len(a), node), a, thresholds)
        logs[:, q] = np.bincount(subject, log_p[np.arange(len(a)), category], n)
    logs -= 0.5 * nodes**2
    p = np.exp(logs - logs.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    mean = p @ nodes
    return mean, np.sqrt(np.maximum(p @ nodes**2 - mean**2, 1e-12))


class GradedMarginal:
    """The marginal likelihood on a grid of abilities.

    Parameters are items x levels: alpha, m, log gaps; in a 1PL all alpha are equal.
    """

    def __init__(self, data: Scores, levels: np.ndarray, *, shared: bool):
        from scipy.sparse import csr_array

        from ragkit.irt.em import grid

        self.data, self.shared = data, shared
        self.m, self.k = data.n_items, len(levels)
        subject, item, x = data.cells()
        self.subject, self.item = subject, item
        self.category = categories(x, levels, data.score_range)
        self.nodes, self.log_weight = grid(data, 1 / 4)
        self.chosen = csr_array(
            (np.ones(len(x)), (subject, item * self.k + self.category)),
            shape=(data.n_subjects, self.m * self.k),
        )
        self.counts = np.asarray(self.chosen.sum(0)).reshape(self.m, self.k)
        after = np.arange(self.k - 1)[:, None] > np.arange(self.k - 2)
        self.spread = after - after.mean(0, keepdims=True)  # thresholds x gaps

    def start(self) -> np.ndarray:
        """Return a first guess from the smoothed shares of the levels."""
        share = self.counts + 0.5
        above = np.cumsum(share[:, ::-1], 1)[:, ::-1][:, 1:] / share.sum(1, keepdims=True)
        b = np.log((1 - above) / above)
        p = np.zeros((self.m, self.k))
        p[:, 1] = b.mean(1)
        p[:, 2:] = np.log(np.maximum(np.diff(b, axis=1), 0.05))
        return p

    def thresholds(self, p: np.ndarray) -> np.ndarray:
        return p[:, 1:2] + np.exp(p[:, 2:]) @ self.spread.T

    def expect(self, p: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return the log-likelihood, subjects' posteriors on the nodes, expected level counts."""
        value, posterior, counts, _ = self._expect(p)
        return value, posterior, counts

    def _expect(self, p: np.ndarray):
        a = np.exp(p[:, 0])[:, None, None]
        eta = a * (self.nodes[:, None] - self.thresholds(p)[:, None, :])
        above = _log_logistic(eta)
        log_p = _log_levels(eta, above)
        logs = self.chosen @ log_p.transpose(0, 2, 1).reshape(self.m * self.k, -1)
        logs += self.log_weight
        top = logs.max(1, keepdims=True)
        posterior = np.exp(logs - top)
        norm = posterior.sum(1, keepdims=True)
        posterior /= norm
        counts = (self.chosen.T @ posterior).reshape(self.m, self.k, -1).transpose(0, 2, 1)
        value = float((top + np.log(norm)).sum())
        log_w = 2 * above - eta
        rise = np.exp(log_w - log_p[..., 1:])  # d log P_k / d eta_k
        fall = np.exp(log_w - log_p[..., :-1])  # - d log P_(k-1) / d eta_k
        return value, posterior, counts, (log_p, eta, rise, fall)

    def scores(self, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return log P and its derivatives: items x nodes x levels (x parameters)."""
        log_p, eta, rise, fall = self._expect(p)[3]
        out = np.zeros((*log_p.shape, self.k))
        out[..., 1:, 0] += rise * eta
        out[..., :-1, 0] -= fall * eta
        along = self._along(p)
        for k in range(self.k - 1):
            out[..., k + 1, 1:] += rise[..., k, None] * along[:, None, k]
            out[..., k, 1:] -= fall[..., k, None] * along[:, None, k]
        return log_p, out

    def _along(self, p: np.ndarray) -> np.ndarray:
        """Return d eta_k / d (m, gaps), items x thresholds x parameters."""
        gaps = self.spread * np.exp(p[:, None, 2:])
        ones = np.ones((self.m, self.k - 1, 1))
        return -np.exp(p[:, :1, None]) * np.concatenate([ones, gaps], 2)

    def gradient(self, p: np.ndarray, counts: np.ndarray, terms=None) -> np.ndarray:
        """Return the M step's gradient, items x parameters; `terms` of `_expect` save work."""
        _, eta, rise, fall = terms or self._expect(p)[3]
        pull = counts[..., 1:] * rise - counts[..., :-1] * fall
        own = np.einsum("jk,jkp->jp", pull.sum(1), self._along(p))
        return np.column_stack([(pull * eta).sum((1, 2)), own])

    def expected_information(self, p: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return items x parameters x parameters."""
        log_p, scores = self.scores(p)
        weight = counts.sum(-1, keepdims=True) * np.exp(log_p)
        return np.einsum("jqk,jqkp,jqkr->jpr", weight, scores, scores, optimize=True)

    def observed_information(self, p: np.ndarray, minus_prior: np.ndarray) -> np.ndarray | None:
        """Return the marginal likelihood's information plus the prior's diagonal, by Louis.

        Parameters in the order of items, then alpha, m, gaps. None if it would be too large.
        """
        size = self.m * self.k
        if self.data.n_subjects * len(self.nodes) * float(size) ** 2 > _FULL_WORK:
            return None
        _, posterior, counts = self.expect(p)
        whole = np.zeros((self.m, self.k, self.m, self.k))
        every = np.arange(self.m)
        for r in range(self.k):  # complete data: items apart, all at once
            move = np.zeros(self.k)
            move[r] = 1e-5
            up, down = (self.gradient(p + s * move, counts) for s in (1, -1))
            whole[every, :, every, r] = -(up - down) / 2e-5
        whole = whole.reshape(size, size)
        whole = (whole + whole.T) / 2
        _, scores = self.scores(p)
        order = np.argsort(self.subject, kind="stable")
        ends = np.searchsorted(self.subject[order], np.arange(self.data.n_subjects + 1))
        for i in range(self.data.n_subjects):
            cells = order[ends[i] : ends[i + 1]]
            own = scores[self.item[cells], :, self.category[cells]]  # cells x nodes x parameters
            flat = own.transpose(0, 2, 1).reshape(-1, len(self.nodes))
            centred = (flat - (flat @ posterior[i])[:, None]) * np.sqrt(posterior[i])
            at = (self.item[cells][:, None] * self.k + np.arange(self.k)).ravel()
            whole[np.ix_(at, at)] -= centred @ centred.T
        return whole + np.diag(minus_prior.ravel())


def fit_graded(
    data: Scores,
    levels: np.ndarray,
    *,
    shared: bool,
    prior: Prior | None,
    tol: float = 1e-6,
    max_iter: int = 2000,
) -> GradedFit:
    """Fit; converged when no entry of the gradient exceeds `tol` times the item's count.

    With `prior=None` every item must have got every level.
    """
    model = GradedMarginal(data, levels, shared=shared)
    if prior is None and (model.counts == 0).any():
        item, level = np.argwhere(model.counts == 0)[0]
        low, high = data.score_range
        raise DataError(
            f"the item {data.items[item]!r} never got the score "
            f"{low + levels[level] * (high - low):g}: without a prior its thresholds are not finite",
            "use prior='hierarchical'",
        )
    p = model.start()
    hyper = None if prior is None else _first(prior, model)
    count = np.maximum(data.per_item("count"), 1)
    iterations, change = 0, 0.0 if prior is None else np.inf
    for _ in range(_ROUNDS):
        settled = change < _HYPER_TOL
        p, used = _climb(model, p, hyper, tol=0.05 if not settled else 0.01 * tol, most=max_iter)
        iterations += used
        if settled or iterations >= max_iter:
            break
        p, new = _tuned(model, p, hyper, prior)
        change, hyper = _distance(new, hyper), new
    log_likelihood, posterior, counts = model.expect(p)
    gradient = model.gradient(p, counts) + _prior_gradient(p, hyper, shared)
    common = abs(gradient[:, 0].sum()) / count.sum()
    relative = np.abs(gradient[:, 1:] / count[:, None]).max()
    relative = max(relative, common if shared else np.abs(gradient[:, 0] / count).max())
    norm = float(
        max(
            np.abs(gradient[:, 1:]).max(),
            np.abs(gradient[:, 0].sum() if shared else gradient[:, 0]).max(),
        )
    )
    theta = posterior @ model.nodes
    var_theta = np.maximum(posterior @ model.nodes**2 - theta**2, 1e-12)
    var_b, var_alpha, notes = _variances(model, p, counts, hyper)
    middle, unit = 0.0, 1.0
    if prior is not None:  # a prior can leave the abilities off their scale, as a joint mode can
        middle = float(theta.mean())
        unit = float(np.sqrt(np.mean((theta - middle) ** 2 + var_theta)))
    return GradedFit(
        p[:, 0] + np.log(unit),
        (p[:, 1] - middle) / unit,
        (model.thresholds(p) - middle) / unit,
        (theta - middle) / unit,
        np.sqrt(var_theta) / unit,
        hyper,
        log_likelihood,
        bool(relative <= tol and change < _HYPER_TOL),
        iterations,
        norm,
        var_b / unit**2,
        var_alpha,
        notes,
    )


def _first(prior: Prior, model: GradedMarginal) -> GradedHyper:
    guess = {"diff_mean": 0.0, "diff_sd": 1.5, "disc_mean": 0.0, "disc_sd": 0.4}
    given = {name: value for name, value in vars(prior).items() if value is not None}
    return GradedHyper(**(guess | given), gap_mean=np.zeros(model.k - 2), gap_sd=0.5)


def _precision(hyper: GradedHyper | None, k: int, shared: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return means and precisions of the prior of an item's parameters."""
    if hyper is None:
        return np.zeros(k), np.zeros(k)
    mean = np.concatenate([[hyper.disc_mean, hyper.diff_mean], hyper.gap_mean])
    sd = np.concatenate([[hyper.disc_sd, hyper.diff_sd], np.full(k - 2, hyper.gap_sd)])
    precision = sd**-2
    if shared:
        precision[0] = 0.0
    return mean, precision


def _prior_gradient(p: np.ndarray, hyper: GradedHyper | None, shared: bool) -> np.ndarray:
    mean, precision = _precision(hyper, p.shape[1], shared)
    return (mean - p) * precision


def _climb(
    model: GradedMarginal, p: np.ndarray, hyper: GradedHyper | None, *, tol: float, most: int
) -> tuple[np.ndarray, int]:
    """Climb to the mode for a given prior, by L-BFGS in whitened coordinates."""
    from scipy.optimize import minimize

    shared, k = model.shared, model.k
    mean, precision = _precision(hyper, k, shared)
    _, _, counts = model.expect(p)
    blocks = model.expected_information(p, counts) + np.diag(precision)
    first = 1 if shared else 0
    blocks = blocks[:, first:, first:]
    ridge = 1e-6 * np.trace(blocks, axis1=1, axis2=2)[:, None, None] * np.eye(k - first)
    root = np.linalg.inv(np.linalg.cholesky(blocks + ridge))  # steps: root^T z
    unit = 0.0
    if shared:
        unit = model.expected_information(p, counts)[:, 0, 0].sum() ** -0.5
    origin = p

    def place(z: np.ndarray) -> np.ndarray:
        own = z[first:].reshape(model.m, k - first)
        step = np.einsum("jrp,jr->jp", root, own)
        return origin + (np.column_stack([np.full(model.m, unit * z[0]), step]) if shared else step)

    def negative(z: np.ndarray) -> tuple[float, np.ndarray]:
        at = place(z)
        value, _, counts, terms = model._expect(at)
        value -= 0.5 * float(((at - mean) ** 2 * precision).sum())
        g = model.gradient(at, counts, terms) + (mean - at) * precision
        own = np.einsum("jrp,jp->jr", root, g[:, first:]).ravel()
        return -value, -np.concatenate([[unit * g[:, 0].sum()], own] if shared else [own])

    found = minimize(
        negative,
        np.zeros(first + model.m * (k - first)),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": most, "maxfun": 2 * most, "gtol": tol, "ftol": 0.0, "maxcor": 30},
    )
    return place(found.x), int(found.nit)


def _tuned(
    model: GradedMarginal, p: np.ndarray, hyper: GradedHyper, prior: Prior
) -> tuple[np.ndarray, GradedHyper]:
    """Return the prior that the items' modes and curvatures ask for, both on the scale of N(0, 1)."""
    _, posterior, counts = model.expect(p)
    _, precision = _precision(hyper, model.k, model.shared)
    information = model.expected_information(p, counts) + np.diag(precision)
    if model.shared:
        information = information[:, 1:, 1:]
    variance = np.diagonal(np.linalg.inv(information), axis1=1, axis2=2)
    variance = np.column_stack([np.zeros(model.m), variance]) if model.shared else variance
    changes = {}
    for column, name in ((1, "diff"),) if model.shared else ((1, "diff"), (0, "disc")):
        mean = getattr(prior, f"{name}_mean")
        mean = float(p[:, column].mean()) if mean is None else mean
        changes[f"{name}_mean"] = mean
        if getattr(prior, f"{name}_sd") is None:
            square = float(np.mean((p[:, column] - mean) ** 2 + variance[:, column]))
            changes[f"{name}_sd"] = shrunk_sd(square, model.m, f"{name}_sd")
    if model.k > 2:
        weight = model.m * hyper.gap_sd**-2
        mean = p[:, 2:].mean(0) * weight / (weight + 1)
        square = float(np.mean((p[:, 2:] - mean) ** 2 + variance[:, 2:]))
        changes["gap_mean"] = mean
        changes["gap_sd"] = shrunk_sd(square, model.m * (model.k - 2), "gap_sd")
    new = replace(hyper, **changes)
    if any(value is not None for value in vars(prior).values()):
        return p, new  # a given part fixes the scale
    shift = float(np.mean(posterior @ model.nodes))
    stretch = float(np.sqrt(np.mean(posterior @ (model.nodes - shift) ** 2)))
    p = p.copy()
    p[:, 0] += np.log(stretch)
    p[:, 1] = (p[:, 1] - shift) / stretch
    p[:, 2:] -= np.log(stretch)
    return p, replace(
        new,
        disc_mean=new.disc_mean + (0 if model.shared else float(np.log(stretch))),
        diff_mean=(new.diff_mean - shift) / stretch,
        diff_sd=new.diff_sd / stretch,
        gap_mean=new.gap_mean - np.log(stretch),
    )


def _distance(new: GradedHyper, old: GradedHyper) -> float:
    sds = [abs(np.log(getattr(new, s) / getattr(old, s))) for s in ("diff_sd", "disc_sd", "gap_sd")]
    means = [abs(getattr(new, s) - getattr(old, s)) for s in ("diff_mean", "disc_mean")]
    return float(max(*sds, *means, np.abs(new.gap_mean - old.gap_mean).max(initial=0)))


def _variances(
    model: GradedMarginal, p: np.ndarray, counts: np.ndarray, hyper: GradedHyper | None
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return the variances of m and alpha and what must be said about them."""
    _, precision = _precision(hyper, model.k, model.shared)
    prior = np.broadcast_to(precision, p.shape)
    whole = model.observed_information(p, prior)
    if whole is None:
        blocks = model.expected_information(p, counts) + np.diag(precision)
        notes = ["too large for the joint information: item errors take abilities as known"]
        if model.shared:
            own, cross = blocks[:, 1:, 1:], blocks[:, 0, 1:]
            inverse = np.linalg.inv(own)
            load = np.einsum("jrp,jp->jr", inverse, cross)
            var_alpha = 1 / (blocks[:, 0, 0].sum() - np.sum(cross * load))
            variance = np.diagonal(inverse, axis1=1, axis2=2)[:, 0] + load[:, 0] ** 2 * var_alpha
            return variance, np.full(model.m, var_alpha), notes
        inverse = np.linalg.inv(blocks)
        return inverse[:, 1, 1], inverse[:, 0, 0], notes
    if model.shared:  # all alpha move together
        m, k = p.shape
        join = np.zeros((m * k, 1 + m * (k - 1)))
        join[np.arange(m) * k, 0] = 1
        rest = np.delete(np.arange(m * k), np.arange(m) * k)
        join[rest, 1 + np.arange(len(rest))] = 1
        whole = join.T @ whole @ join
    try:
        diagonal = np.diag(np.linalg.inv(whole))
    except np.linalg.LinAlgError:
        diagonal = np.full(len(whole), -1.0)
    if not (diagonal > 0).all():
        missing = np.full(model.m, np.nan)
        return missing, missing, ["the information matrix is not positive definite: no errors"]
    if model.shared:
        return diagonal[1 :: model.k - 1], np.full(model.m, diagonal[0]), []
    return diagonal[1 :: model.k], diagonal[:: model.k], []
