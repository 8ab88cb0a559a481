"""The default engine for millions of scores.

Abilities are then known far better than items, so the joint Hessian need not be formed:

1. a sample of the items, spread evenly, is fitted by `map`: abilities, prior;
2. each subject is split between the two nearest nodes of a fine grid of abilities, so that an
   item's scores reduce to sums and counts at the nodes (one matrix product) and its two
   parameters to a handful of Newton steps on those;
3. each subject's log-likelihood on all items is taken at the nodes (another product) and its
   maximum found by a parabola through the best three;
4. 2 and 3 are repeated. Transcendental functions are evaluated items x nodes times, not items x
   subjects times.

The last step is an item step, so the gradient reported is that of the items given abilities.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ragkit.irt.data import Scores
from ragkit.irt.likelihood import Likelihood
from ragkit.irt.map import (
    QUADRATURE_MAX,
    Hyper,
    MapFit,
    Moments,
    Prior,
    State,
    fit_map,
    runs_backwards,
    soft_end,
    turned,
)

LARGE = 3_000_000  # scores from which this path is taken
_SAMPLE = 600_000  # scores of the items fitted first
_NODES = np.linspace(-6.0, 6.0, 101)
_ROUNDS = 2
_CHUNK = 8192  # items at a time


def sample_items(data: Scores) -> tuple[Scores, np.ndarray]:
    """Return the scores of evenly spaced items, about `_SAMPLE` scores, and which items."""
    per_item = data.n_cells / data.n_items
    keep = max(20, int(_SAMPLE / per_item))
    chosen = np.unique(np.linspace(0, data.n_items - 1, min(keep, data.n_items)).astype(int))
    if data.full:
        part = Scores(
            data.subjects,
            data.items[chosen],
            None,
            None,
            data.x[chosen].astype(float),
            data.score_range,
        )
        return part, chosen
    position = np.full(data.n_items, -1)
    position[chosen] = np.arange(len(chosen))
    cells = position[data.item] >= 0
    return (
        Scores(
            data.subjects,
            data.items[chosen],
            data.subject[cells],
            position[data.item[cells]].astype(np.int32),
            data.x[cells],
            data.score_range,
        ),
        chosen,
    )


def splits(theta: np.ndarray) -> np.ndarray:
    """Return subjects x nodes weights: two neighbours each, their mean the ability."""
    step = _NODES[1] - _NODES[0]
    at = np.clip((theta - _NODES[0]) / step, 0, len(_NODES) - 1 - 1e-9)
    left = at.astype(int)
    weight = np.zeros((len(theta), len(_NODES)), np.float32)
    rows = np.arange(len(theta))
    weight[rows, left] = 1 - (at - left)
    weight[rows, left + 1] = at - left
    return weight


def fit_large(
    data: Scores,
    likelihood: Likelihood,
    *,
    shared: bool,
    positive: bool,
    prior: Prior,
    scale: str,
    tol: float,
    max_iter: int,
) -> MapFit:
    """Fit; the arguments are those of `fit_map`."""
    part, chosen = sample_items(data)
    options = {"shared": shared, "positive": positive, "scale": scale}
    first = fit_map(part, likelihood, prior=prior, tol=tol, max_iter=max_iter, **options)
    theta, hyper = first.state.theta.copy(), first.hyper
    m = data.n_items
    model = _Items(data, likelihood, shared, positive)
    if shared:
        alpha = first.state.alpha.copy()
    else:
        alpha = np.full(m, hyper.disc_prior()[0])
        if not positive:
            size = np.hypot(*hyper.disc_prior())
            alpha = np.where(runs_backwards(data, theta), -size, size)
        alpha[chosen] = first.state.alpha
    b = np.full(m, hyper.diff_mean)
    b[chosen] = first.state.b
    for round_ in range(_ROUNDS):
        last = round_ == _ROUNDS - 1
        if not (positive or shared):
            b, alpha, _ = turned(data, theta, b, alpha, model.flat)
        sums, counts = model.reduce(splits(theta))
        alpha, b, gradient = model.climb(alpha, b, sums, counts, hyper, 1e-7 if last else 1e-2)
        if not last:
            theta, curvature = model.abilities(alpha, b)
            theta, alpha, b = model.standardised(theta, curvature, alpha, b)
    moments = model.moments(alpha, b, sums, counts, hyper)
    curvature = model.abilities(alpha, b)[1]
    n = data.n_subjects
    var_theta, var_b, var_alpha = 1 / curvature, moments.var_b, moments.var_alpha
    if shared:  # from the sample of the items
        var_alpha = np.full(m, first.var_alpha[0])
    elif scale == "population":
        var_alpha = var_alpha + (1.0 if positive else moments.alpha**2) / (2 * n)
    if scale == "population":
        var_theta = var_theta + 1 / n + theta**2 / (2 * n)
        var_b = var_b + 1 / n + moments.b**2 / (2 * n)
    return MapFit(
        State(theta, np.zeros(0), b, alpha),
        moments,
        hyper,
        replace(first.system, log_likelihood=model.log_likelihood, couplings=[]),
        var_theta,
        np.zeros(0),
        var_b,
        var_alpha,
        converged=bool(first.converged and gradient <= 1e-6),
        iterations=first.iterations + _ROUNDS,
        gradient_norm=gradient,
        objective=float("nan"),
        bounded=first.bounded,
    )


class _Items:
    """Products of the scores with functions of ability, and items fitted to their results."""

    def __init__(self, data: Scores, likelihood: Likelihood, shared: bool, positive: bool):
        self.data, self.likelihood, self.shared, self.positive = data, likelihood, shared, positive
        low, high = data.per_item("min"), data.per_item("max")
        self.flat = ((high == 0) | (low == 1)) & (not shared)
        self.log_likelihood = float("nan")
        if data.full:
            self.x, self.mask = data.x.astype(np.float32, copy=False), None
        else:
            from scipy.sparse import csr_array

            shape, at = (data.n_items, data.n_subjects), (data.item, data.subject)
            self.x = csr_array((data.x.astype(np.float32), at), shape=shape)
            self.mask = csr_array((np.ones(data.n_cells, np.float32), at), shape=shape)

    def reduce(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sums = np.asarray(self.x @ weight)
        if self.mask is None:
            return sums, np.broadcast_to(weight.sum(0), sums.shape)
        return sums, np.asarray(self.mask @ weight)

    def slope(self, alpha: np.ndarray) -> np.ndarray:
        return np.exp(alpha) if self.positive else alpha

    def _used(self, counts: np.ndarray) -> np.ndarray:
        return np.flatnonzero(counts.max(0) > 0)

    def climb(self, alpha, b, sums, counts, hyper: Hyper, tol: float):
        """Take each item to its mode; return alpha, b and the largest entry of the gradient.

        The common slope of a 1PL stays.
        """
        m, used = self.data.n_items, self._used(counts)
        nodes = _NODES[used]
        new_alpha, new_b = np.broadcast_to(alpha, (m,)).copy(), b.copy()
        worst = 0.0
        for start in range(0, m, _CHUNK):
            rows = np.arange(start, min(start + _CHUNK, m))
            s, c = (x[rows[0] : rows[-1] + 1][:, used].astype(float) for x in (sums, counts))
            for step in range(500):
                al, bb = new_alpha[rows], new_b[rows]
                g_a, g_b, i_aa, i_ab, i_bb = self._derivatives(
                    al, bb, s, c, nodes, hyper, self.flat[rows]
                )
                norm = np.abs(g_b) if self.shared else np.maximum(np.abs(g_a), np.abs(g_b))
                going = norm > tol
                if not going.any():
                    break
                if self.shared:
                    new_b[rows] = bb + np.clip(g_b / i_bb, -1, 1)
                else:
                    det = np.maximum(i_aa * i_bb - i_ab**2, 1e-8 * i_aa * i_bb)
                    step_a = (i_bb * g_a - i_ab * g_b) / det
                    step_b = (i_aa * g_b - i_ab * g_a) / det
                    damp = 1 / np.maximum(1, np.maximum(np.abs(step_a) / 0.5, np.abs(step_b)))
                    damp *= 1.0 if step < 30 else 0.5 if step < 100 else 0.2  # few circle else
                    new_alpha[rows], new_b[rows] = al + damp * step_a, bb + damp * step_b
                if going.mean() < 0.5:
                    rows, s, c = rows[going], s[going], c[going]
            worst = max(worst, float(norm.max()))
        return (alpha if self.shared else new_alpha), new_b, worst

    def moments(self, alpha, b, sums, counts, hyper: Hyper, n_nodes: int = 5) -> Moments:
        """Return the items' posterior means and variances given the abilities.

        By quadrature on the sums and counts where scores are few, as in `map.item_moments`; by the
        curvature at the mode elsewhere.
        """
        m, used = self.data.n_items, self._used(counts)
        nodes = _NODES[used]
        few = self.data.per_item("count") <= QUADRATURE_MAX
        al = np.broadcast_to(alpha, (m,)).copy()
        out = Moments(b.copy(), al.copy(), np.zeros(m), np.zeros(m))
        z, weight = np.polynomial.hermite_e.hermegauss(n_nodes)
        z_a = np.zeros(1) if self.shared else z
        log_weight = np.log(weight) + 0.5 * z**2
        for start in range(0, m, _CHUNK):
            part = slice(start, min(start + _CHUNK, m))
            s, c = sums[part][:, used].astype(float), counts[part][:, used].astype(float)
            flat = self.flat[part]
            _, _, i_aa, i_ab, i_bb = self._derivatives(al[part], b[part], s, c, nodes, hyper, flat)
            if self.shared:
                v_b, v_a, cov = 1 / i_bb, np.zeros_like(i_bb), np.zeros_like(i_bb)
            else:
                det = np.maximum(i_aa * i_bb - i_ab**2, 1e-8 * i_aa * i_bb)
                v_b, v_a, cov = i_aa / det, i_bb / det, -i_ab / det
            out.var_b[part], out.var_alpha[part] = v_b, v_a
            mine = np.flatnonzero(few[part])
            if mine.size:
                values = (x[mine] for x in (al[part], b[part], v_a, v_b, cov, flat))
                found = self._integrate(*values, s[mine], c[mine], nodes, hyper, z, z_a, log_weight)
                for target, value in zip(vars(out).values(), found, strict=True):
                    target[start + mine] = value
        if not self.shared:
            out.alpha[self.flat], out.var_alpha[self.flat] = hyper.disc_mean, hyper.disc_sd**2
        return out

    def _integrate(self, alpha, b, v_a, v_b, cov, flat, s, c, nodes, hyper, z, z_a, log_weight):
        s_a = np.sqrt(np.minimum(v_a, 1.5 * hyper.disc_prior()[1] ** 2))
        s_a[flat] = 0.0
        lean = np.divide(cov, s_a, out=np.zeros_like(s_a), where=s_a > 0)
        lean = np.clip(lean, -hyper.diff_sd, hyper.diff_sd)
        s_b = np.sqrt(np.clip(v_b - lean**2, 1e-12, 1.5 * hyper.diff_sd**2))
        told = np.maximum(s_b**-2 - hyper.diff_sd**-2, 0)
        total, logs, at_a, at_b = s.sum(1), [], [], []
        weighted = s @ nodes
        for i, z_i in enumerate(z_a):
            alpha_i = alpha + z_i * s_a
            a_i, width = self.slope(alpha_i), s_b
            if self.positive:
                width = (told * np.exp(2 * z_i * s_a) + hyper.diff_sd**-2) ** -0.5
            for j, z_j in enumerate(z):
                b_j = b + z_i * lean + z_j * width
                eta = (a_i[:, None] * (nodes - b_j[:, None])).astype(np.float32)
                value = a_i * (weighted - b_j * total)
                value -= (c * self.likelihood.rough_log_normalizer(eta)).sum(1)
                value += log_weight[j] + np.log(width)
                value -= 0.5 * ((b_j - hyper.diff_mean) / hyper.diff_sd) ** 2
                if not self.shared:
                    value += log_weight[i] + soft_end(a_i, self.positive)[0]
                    value -= 0.5 * ((alpha_i - hyper.disc_mean) / hyper.disc_sd) ** 2
                logs.append(value)
                at_a.append(alpha_i)
                at_b.append(b_j)
        logs, at_a, at_b = np.array(logs), np.array(at_a), np.array(at_b)
        p = np.exp(logs - logs.max(0))
        p /= p.sum(0)
        mean_b, mean_a = (p * at_b).sum(0), (p * at_a).sum(0)
        return mean_b, mean_a, (p * (at_b - mean_b) ** 2).sum(0), (p * (at_a - mean_a) ** 2).sum(0)

    def _derivatives(self, alpha, b, sums, counts, nodes, hyper: Hyper, flat):
        a = self.slope(alpha)
        distance = nodes - b[:, None]
        mean, w = self.likelihood.mean_variance(a[:, None] * distance)
        r = sums - counts * mean
        w *= counts
        lift = a if self.positive else np.ones_like(a)
        rt, wd = (r * distance).sum(1), w * distance
        g_b = -a * r.sum(1) - (b - hyper.diff_mean - hyper.centre) / hyper.diff_sd**2
        i_bb = a**2 * w.sum(1) + hyper.diff_sd**-2
        g_a, i_ab = lift * rt, -a * lift * wd.sum(1)
        i_aa = lift**2 * (wd * distance).sum(1)
        if not self.shared:
            centre, sd = hyper.disc_prior()
            _, end_1, end_2 = soft_end(a, self.positive)
            g_a = np.where(flat, 0.0, g_a - (alpha - centre) / sd**2 - end_1)
            i_ab = np.where(flat, 0.0, i_ab)
            i_aa = np.where(flat, sd**-2, i_aa + sd**-2 + end_2)
        return g_a, g_b, i_aa, i_ab, i_bb

    def abilities(self, alpha, b) -> tuple[np.ndarray, np.ndarray]:
        """Return the most probable abilities and the curvature of their log posterior."""
        a = np.broadcast_to(self.slope(alpha), (self.data.n_items,))
        q, n, m = len(_NODES), self.data.n_subjects, self.data.n_items
        logs, normalizers = np.zeros((n, q)), np.zeros(q)
        for start in range(0, m, _CHUNK):
            part = slice(start, min(start + _CHUNK, m))
            eta = (a[part, None] * (_NODES - b[part, None])).astype(np.float32)
            fall = self.likelihood.rough_log_normalizer(eta)
            logs += self.x[part].T @ eta
            if self.mask is None:
                normalizers += fall.sum(0, dtype=float)
            else:
                logs -= self.mask[part].T @ fall
        logs -= normalizers + 0.5 * _NODES**2
        best = np.clip(logs.argmax(1), 1, q - 2)
        rows, h = np.arange(n), _NODES[1] - _NODES[0]
        before, at, after = (logs[rows, best + k] for k in (-1, 0, 1))
        curvature = np.maximum(-(before - 2 * at + after) / h**2, 1.0)
        shift = np.clip((after - before) / (2 * h * curvature), -h, h)
        theta = _NODES[best] + shift
        top = at + 0.5 * curvature * shift**2
        self.log_likelihood = float(np.sum(top + 0.5 * theta**2))
        return theta, curvature

    def standardised(self, theta, curvature, alpha, b):
        """Bring the abilities back to mean 0 and mean square 1, errors included."""
        mean = theta.mean()
        sd = np.sqrt(np.mean((theta - mean) ** 2 + 1 / curvature))
        alpha = alpha + np.log(sd) if self.positive else alpha * sd
        return (theta - mean) / sd, alpha, (b - mean) / sd
