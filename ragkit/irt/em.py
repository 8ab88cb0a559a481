r"""Marginal maximum likelihood: abilities integrated out on a grid, items by EM.

theta ~ N(0, 1) on equally spaced nodes. The E step is two matrix products (scores x natural
parameters at the nodes), the M step one Newton step per item, so the transcendental functions
grow with items x nodes and not with the scores. Every third step is extrapolated (SQUAREM; Varadhan and Roland, Scandinavian Journal of Statistics 2008)
and kept only if the likelihood grows.

Without a prior this is maximum likelihood (Bock and Aitkin, Psychometrika 1981). With one, items
are at the mode of likelihood times prior; the prior's moments are those of the default engine, and the
abilities' variance is kept at one as there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ragkit.errors import DataError
from ragkit.irt.data import Scores
from ragkit.irt.likelihood import Likelihood
from ragkit.irt.map import (
    DENSE_MAX,
    HYPER_ROUNDS,
    HYPER_TOL,
    Hyper,
    Posterior,
    Prior,
    fit_map,
    shrunk_sd,
    soft_end,
)

_SINGLE = 5e6  # cells from which the products are in single precision
_ALPHA_BOUNDS = (-7.0, 5.0)
_NUMERIC_MAX = 200  # item parameters up to which the information is differentiated numerically


@dataclass
class EMFit:
    """Items (a, b), abilities and how the iteration ended."""

    b: np.ndarray
    alpha: np.ndarray
    theta: np.ndarray
    sd_theta: np.ndarray
    hyper: Hyper | None
    log_likelihood: float
    converged: bool
    iterations: int
    gradient_norm: float
    var_b: np.ndarray  # given the abilities' posterior
    var_alpha: np.ndarray
    covariance: np.ndarray | None = None  # of (b, alpha), if it was formed


def grid(data: Scores, variance: float) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and log weights of N(0, 1), close enough for scores of that variance."""
    informed = np.median(data.per_subject("count")) * variance
    step = float(np.clip(0.7 / np.sqrt(1 + informed), 0.06, 0.2))
    nodes = np.arange(-6.0, 6.0 + step / 2, step)
    log_weight = -0.5 * nodes**2
    return nodes, log_weight - np.log(np.exp(log_weight).sum())


class Marginal:
    """The marginal likelihood on a grid of abilities."""

    def __init__(self, data: Scores, likelihood: Likelihood, *, shared: bool, positive: bool):
        self.data, self.likelihood = data, likelihood
        self.shared, self.positive = shared, positive
        self.nodes, self.log_weight = grid(data, 1 / 12 if likelihood.name == "cb" else 1 / 4)
        low, high = data.per_item("min"), data.per_item("max")
        self.flat = ((high == 0) | (low == 1)) & (not shared)
        dtype = np.float32 if data.n_cells > _SINGLE else np.float64
        if data.full:
            self.x = data.x.astype(dtype, copy=False)
            self.mask = None
        else:
            from scipy.sparse import csr_array

            shape = (data.n_items, data.n_subjects)
            self.x = csr_array((data.x.astype(dtype), (data.item, data.subject)), shape=shape)
            self.mask = csr_array(
                (np.ones(data.n_cells, dtype), (data.item, data.subject)), shape=shape
            )
            if data.n_cells > 0.2 * shape[0] * shape[1] and shape[0] * shape[1] < 5e7:
                self.x, self.mask = self.x.toarray(), self.mask.toarray()
        self.dtype = dtype

    def expect(self, alpha: np.ndarray, b: np.ndarray):
        """Return the log-likelihood, subjects' posterior on the nodes, and items' statistics.

        Statistics are the expected score sums and counts of each item at each node.
        """
        m, q = self.data.n_items, len(self.nodes)
        a = self.slopes(alpha)
        logs = np.zeros((self.data.n_subjects, q))
        step = max(1, (1 << 21) // q)
        total_normalizer = np.zeros(q)
        for start in range(0, m, step):
            part = slice(start, min(start + step, m))
            eta = a[part, None] * (self.nodes - b[part, None])
            normalizer = self.likelihood.log_normalizer(eta)
            logs += self.x[part].T @ eta.astype(self.dtype)
            if self.mask is None:
                total_normalizer += normalizer.sum(0)
            else:
                logs -= self.mask[part].T @ normalizer.astype(self.dtype)
        logs += self.log_weight - total_normalizer
        top = logs.max(1, keepdims=True)
        p = np.exp(logs - top)
        norm = p.sum(1, keepdims=True)
        p /= norm
        log_likelihood = float((top + np.log(norm)).sum())
        short = p.astype(self.dtype)
        sums = np.asarray(self.x @ short, dtype=float)
        if self.mask is None:
            counts = np.broadcast_to(p.sum(0), sums.shape)
        else:
            counts = np.asarray(self.mask @ short, dtype=float)
        return log_likelihood, p, sums, counts

    def slopes(self, alpha: np.ndarray) -> np.ndarray:
        a = np.exp(alpha) if self.positive else alpha
        return np.broadcast_to(a, (self.data.n_items,)) if self.shared else a

    def derivatives(self, alpha, b, sums, counts, hyper: Hyper | None):
        """Return the gradient in (alpha, b) per item and the expected information.

        For 1PL the first entry, too, is per item, to be summed.
        """
        a, m, q = self.slopes(alpha), self.data.n_items, len(self.nodes)
        out = np.empty((5, m))
        step = max(1, (1 << 20) // q)
        theta = self.nodes
        for start in range(0, m, step):
            part = slice(start, min(start + step, m))
            mean, w = self.likelihood.mean_variance(a[part, None] * (theta - b[part, None]))
            residual = sums[part] - counts[part] * mean
            w = w * counts[part]
            out[0, part], out[1, part] = residual @ theta, residual.sum(1)
            out[2, part], out[3, part], out[4, part] = w @ theta**2, w @ theta, w.sum(1)
        r1, r0, w2, w1, w0 = out
        lift = a if self.positive else np.ones(m)
        g_alpha, g_b = lift * (r1 - b * r0), -a * r0
        i_aa, i_ab, i_bb = (
            lift**2 * (w2 - 2 * b * w1 + b**2 * w0),
            -a * lift * (w1 - b * w0),
            a**2 * w0,
        )
        if hyper is not None:
            g_b = g_b - (b - hyper.diff_mean) / hyper.diff_sd**2
            i_bb = i_bb + hyper.diff_sd**-2
            if not self.shared:
                centre, sd = hyper.disc_prior()
                _, end_1, end_2 = soft_end(a, self.positive)
                g_alpha = g_alpha - (alpha - centre) / sd**2 - end_1
                i_aa = i_aa + sd**-2 + end_2
                g_alpha[self.flat] = -((alpha - centre) / sd**2)[self.flat]
                i_ab[self.flat] = 0.0
                i_aa[self.flat] = sd**-2
        return g_alpha, g_b, i_aa, i_ab, i_bb


def fit_em(
    data: Scores,
    likelihood: Likelihood,
    *,
    shared: bool,
    positive: bool,
    prior: Prior | None,
    tol: float = 1e-6,
    max_iter: int = 5000,
) -> EMFit:
    """Fit; stop when no entry of the gradient exceeds `tol` times the item's count.

    Where abilities are measured closely, EM creeps; it also stops when 30 iterations have gained
    less than 1e-4 in log-likelihood.

    With `prior=None` an item whose scores are all at one end has no finite estimate; that raises.
    """
    model = Marginal(data, likelihood, shared=shared, positive=positive)
    count = data.per_item("count")
    if prior is None:
        low, high = data.per_item("max") == 0, data.per_item("min") == 1
        if (low | high).any():
            item = data.items[int((low | high).argmax())]
            raise DataError(
                f"the item {item!r} has the same extreme score everywhere: without a prior it has "
                "no finite difficulty",
                "use prior='hierarchical', or engine='map'",
            )
    hyper, begin = (prior.start(positive) if prior else None), None
    if prior is not None and data.n_subjects <= DENSE_MAX:
        # the default engine integrates the items out, which tells their spread better than modes
        found = fit_map(data, likelihood, shared=shared, positive=positive, prior=prior)
        hyper, begin = found.hyper, found.state
        prior = Prior(hyper.diff_mean, hyper.diff_sd, hyper.disc_mean, hyper.disc_sd)
    if begin is None:
        begin = Posterior(data, likelihood, shared=shared, positive=positive).start()
    alpha, b = begin.alpha.copy(), begin.b
    if hyper is not None:
        alpha[model.flat[: len(alpha)]] = hyper.disc_prior()[0]
    scale = np.maximum(count, 1).astype(float)
    last, iterations, norm, converged = -np.inf, 0, np.inf, False
    settled, rounds = hyper is None, 0
    history: list[np.ndarray] = []
    safe = None  # objective and parameters to return to if an extrapolation goes too far
    k = len(alpha)
    gains: list[float] = []
    while iterations < max_iter:
        iterations += 1
        log_likelihood, p, sums, counts = model.expect(alpha, b)
        objective = log_likelihood + _log_prior(model, alpha, b, hyper)
        if safe is not None and not objective >= safe[0] - 1e-7 * abs(safe[0]):
            _, alpha, b = safe
            safe, history = None, []
            continue
        safe = None
        parts = model.derivatives(alpha, b, sums, counts, hyper)
        gradient, move = _newton(model, parts, fixed=hyper is not None and shared)
        norm = float(max(np.abs(g).max() for g in gradient))
        relative = max(
            float(np.max(np.abs(gradient[0])) / scale.sum())
            if shared
            else float(np.max(np.abs(gradient[0]) / scale)),
            float(np.max(np.abs(gradient[1]) / scale)),
        )
        still = abs(objective - last) < 1e-9 * max(1.0, abs(objective))
        gains.append(objective)
        if settled and ((relative < tol and still) or _stalled(gains)):
            converged = True
            break
        if not settled and iterations % 4 == 0:
            hyper, alpha, b, moved = _tune(model, p, alpha, b, parts, hyper, prior)
            rounds += 1
            settled = moved < HYPER_TOL or rounds == 10 * HYPER_ROUNDS
            last, history = -np.inf, []
            gains.clear()
            continue
        last = objective
        now = np.concatenate([alpha, b])
        new = now + np.concatenate(move)
        history.append(now)
        if len(history) == 3:
            first, second = history[1] - history[0], history[2] - history[1]
            bend = second - first
            length = np.linalg.norm(bend)
            factor = min(np.linalg.norm(first) / length, 50.0) if length > 0 else 1.0
            if factor > 1:
                safe = (objective, new[:k], new[k:])
                new = history[0] + 2 * factor * first + factor**2 * bend
            history = []
        alpha, b = new[:k], new[k:]
        if positive:  # a slope beyond these is a flat line or a step
            alpha = np.clip(alpha, *_ALPHA_BOUNDS)
    log_likelihood, p, sums, counts = model.expect(alpha, b)
    theta = p @ model.nodes
    sd = np.sqrt(np.maximum(p @ model.nodes**2 - theta**2, 1e-12))
    parts = model.derivatives(alpha, b, sums, counts, hyper)
    variances = _variances(model, parts)
    fit = EMFit(b, alpha, theta, sd, hyper, log_likelihood, converged, iterations, norm, *variances)
    score = data.per_subject("mean")
    if not positive and np.sum((theta - theta.mean()) * (score - score.mean())) < 0:
        fit = replace(fit, theta=-theta, b=-b, alpha=-alpha)
    if data.n_items + k <= _NUMERIC_MAX:
        fit.covariance = _covariance(model, fit)
    return fit


def _stalled(objectives: list[float], window: int = 30, gain: float = 1e-4) -> bool:
    """Say whether the last `window` iterations gained less than `gain` in log-likelihood."""
    return len(objectives) > window and objectives[-1] - objectives[-1 - window] < gain


def _log_prior(model: Marginal, alpha, b, hyper: Hyper | None) -> float:
    if hyper is None:
        return 0.0
    value = -0.5 * np.sum((b - hyper.diff_mean) ** 2) / hyper.diff_sd**2
    if not model.shared:
        centre, sd = hyper.disc_prior()
        value -= 0.5 * np.sum((alpha - centre) ** 2) / sd**2
        value += soft_end(model.slopes(alpha), model.positive)[0].sum()
    return float(value)


def _newton(model: Marginal, parts, *, fixed: bool):
    """Return the gradient in (alpha, b) and a damped Newton step.

    With `fixed`, the common slope of a 1PL stays: under a prior it is set by the ability's scale.
    """
    g_alpha, g_b, i_aa, i_ab, i_bb = parts
    if model.shared:
        total = np.zeros(1) if fixed else np.array([g_alpha.sum()])
        schur = i_aa.sum() - np.sum(i_ab**2 / i_bb)
        step = np.clip((total - np.sum(i_ab * g_b / i_bb)) / schur, -1, 1) * (not fixed)
        return (total, g_b), (step, np.clip((g_b - i_ab * step) / i_bb, -2, 2))
    det = np.maximum(i_aa * i_bb - i_ab**2, 1e-10 * i_aa * i_bb + 1e-300)
    step_alpha, step_b = (i_bb * g_alpha - i_ab * g_b) / det, (i_aa * g_b - i_ab * g_alpha) / det
    damp = 1 / np.maximum(1, np.maximum(np.abs(step_alpha) / 0.7, np.abs(step_b)))
    return (g_alpha, g_b), (step_alpha * damp, step_b * damp)


def _variances(model: Marginal, parts) -> tuple[np.ndarray, np.ndarray]:
    """Return the variances of b and alpha from the information of the M step."""
    _, _, i_aa, i_ab, i_bb = parts
    if model.shared:
        var_alpha = 1 / max(i_aa.sum() - np.sum(i_ab**2 / i_bb), 1e-10)
        return 1 / i_bb + (i_ab / i_bb) ** 2 * var_alpha, np.array([var_alpha])
    det = np.maximum(i_aa * i_bb - i_ab**2, 1e-10 * i_aa * i_bb + 1e-300)
    return i_aa / det, i_bb / det


def _tune(model: Marginal, p, alpha, b, parts, hyper: Hyper, prior: Prior):
    """Update the prior from the items' modes and curvatures; bring the abilities to N(0, 1).

    Returns the prior, the items on the new scale, and the largest change.
    """
    var_b, var_alpha = _variances(model, parts)
    changes = {}
    if prior.diff_mean is None:
        changes["diff_mean"] = float(b.mean())
    if prior.diff_sd is None:
        square = float(np.mean((b - changes.get("diff_mean", hyper.diff_mean)) ** 2 + var_b))
        changes["diff_sd"] = shrunk_sd(square, len(b), "diff_sd")
    new = replace(hyper, **changes)
    if not model.shared:
        centre, sd = hyper.disc_mean, hyper.disc_sd
        if prior.disc_mean is None:
            centre = float(alpha.mean())
        if prior.disc_sd is None:
            kind = "disc_sd" if hyper.positive else "signed_sd"
            sd = shrunk_sd(float(np.mean((alpha - centre) ** 2 + var_alpha)), len(b), kind)
        new = new.with_disc(centre, sd)
    mean = float(np.mean(p @ model.nodes))
    shift = mean if prior.diff_sd is None and prior.diff_mean is None else 0.0
    stretch = float(np.sqrt(np.mean(p @ model.nodes**2) - 2 * shift * mean + shift**2))
    stretch, _ = new.allowed(stretch, float(alpha[0]) if model.shared else None)
    new = new.rescaled(prior, stretch, shift)
    moved = new.distance(hyper)
    alpha = alpha + np.log(stretch) if model.positive else alpha * stretch
    alpha[model.flat[: len(alpha)]] = new.disc_prior()[0]
    return new, alpha, (b - shift) / stretch, moved


def _covariance(model: Marginal, fit: EMFit) -> np.ndarray:
    """Return the inverse of the observed information of (b, alpha), by central differences."""
    m = len(fit.b)
    x = np.concatenate([fit.b, fit.alpha])

    def gradient(x: np.ndarray) -> np.ndarray:
        b, alpha = x[:m], x[m:]
        _, _, sums, counts = model.expect(alpha, b)
        g_alpha, g_b, *_ = model.derivatives(alpha, b, sums, counts, fit.hyper)
        return np.concatenate([g_b, [g_alpha.sum()] if model.shared else g_alpha])

    information = np.empty((len(x), len(x)))
    for j in range(len(x)):
        move = np.zeros(len(x))
        move[j] = h = 1e-4 * max(1.0, abs(x[j]))
        information[:, j] = -(gradient(x + move) - gradient(x - move)) / (2 * h)
    try:
        return np.linalg.inv((information + information.T) / 2)
    except np.linalg.LinAlgError:
        return np.full_like(information, np.nan)
