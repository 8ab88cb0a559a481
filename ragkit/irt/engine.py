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

from collections.abc import Callable
from dataclasses import asdict, dataclass, field

import numpy as np
from scipy.optimize import minimize

from ragkit import display
from ragkit.checks import whole
from ragkit.irt.data import Scores, quoted
from ragkit.irt.marginal import (
    COMPONENTS,
    DISC_END,
    NODES,
    Abilities,
    Information,
    Model,
    Prior,
    Setup,
    interpolation,
)

DISC_NEAR, ABILITY_NEAR = 9.5, 6.0  # too near the ends of their ranges to be estimates
HYPER_BOUNDS = {
    "diff_mean": (-4, 4),
    "diff_sd": (0.2, 6),
    "disc_mean": (-2, 2),
    "disc_sd": (0.1, 1),
}
_STARTS = 4  # Newton steps before the climb
_NEWTON = 25  # steps at the end
_ROUND = 15  # iterations of L-BFGS in the same coordinates
_TOL = 1e-6  # distance from the optimum, in errors of the estimates, at which the climb stops
_HYPER_ROUNDS, _HYPER_TOL = 60, 5e-3


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
            outside = outside + 1 if any(_at_ends(model, vector, model.quadrature.centre)) else 0
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


def _at_ends(model: Model, vector: np.ndarray, ability: np.ndarray) -> tuple[int, int]:
    """Return how many discriminations and abilities are too near the ends of their ranges."""
    slopes = np.abs(model.slopes(model.unpack(vector)[0]))
    return int((slopes > DISC_NEAR).sum()), int((np.abs(ability) > ABILITY_NEAR).sum())


def _definite(blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the items' blocks' eigenvalues, made positive, and eigenvectors."""
    low, axes = np.linalg.eigh(blocks)
    return np.maximum(np.abs(low), 0.05 * np.abs(low).max(1, keepdims=True) + 1e-6), axes


def start(model: Model) -> np.ndarray:
    """Return items fitted by Newton's method to abilities taken from the mean scores."""
    data = model.data
    expected = data.per_item("mean") @ np.isfinite(data.x) / data.per_subject("count")
    theta = data.per_subject("mean") - expected  # less the mean score of the same items
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


# --- from scores to estimates: priors, convergence, scale and errors ------------------------------


def fit_em(data: Scores, setup: Setup, *, max_iter: int = 500) -> Estimates:
    """Fit, judge the optimum, and report estimates and errors on the scale of the population."""
    whole(max_iter, "max_iter")
    model = Model(data, setup)
    vector, problems = start(model), []
    for turn in range(_HYPER_ROUNDS if setup.hierarchical else 1):
        optimum = climb(model, vector, tol=_TOL, max_iter=max_iter, near=turn > 0)
        if not (setup.hierarchical and optimum.information.definite):
            break
        vector, before = optimum.vector, model.prior
        model.prior, bounded = _estimated(model, optimum)
        moved = max(abs(x - vars(before)[name]) for name, x in vars(model.prior).items())
        if bounded:
            problems = [f"the prior's {bounded} reached its bound: fix the prior (prior='weak')"]
        if bounded or moved < _HYPER_TOL:
            break
    else:
        problems = ["the estimates of the prior did not settle: fix the prior (prior='weak')"]
    problems += _problems(model, optimum, max_iter)
    return _estimates(model, optimum, problems)


def _estimated(model: Model, optimum: Optimum) -> tuple[Prior, str]:
    """Return the prior of largest marginal density given the items, and what reached a bound."""
    alpha, d, _, _ = model.unpack(optimum.vector)
    variances = optimum.information.blocks
    new = vars(model.prior).copy()
    place = -d / np.exp(alpha) if model.on_difficulty else d
    spread = variances[:, 0, 0] if model.shared else variances[:, 1, 1]
    if model.on_difficulty:
        spread = _delta(lambda alpha, d: -d * np.exp(-alpha), (alpha, d), variances[:, :2, :2])
    new["diff_mean"] = float(place.mean())
    new["diff_sd"] = float(np.sqrt(np.mean((place - place.mean()) ** 2 + spread)))
    if not model.shared:
        new["disc_mean"] = float(alpha.mean())
        new["disc_sd"] = float(np.sqrt(np.mean((alpha - alpha.mean()) ** 2 + variances[:, 0, 0])))
    bounded = ""
    for name, (low, high) in HYPER_BOUNDS.items():
        if not low < new[name] < high:
            bounded, new[name] = name, float(np.clip(new[name], low, high))
    return Prior(**new), bounded


def _problems(model: Model, optimum: Optimum, max_iter: int) -> list[str]:
    """Return why the optimum is not to be trusted, each with what to do about it."""
    out, data, theta = [], model.data, np.abs(optimum.abilities.mean)
    a = np.abs(model.slopes(model.unpack(optimum.vector)[0]))
    steep, far = _at_ends(model, optimum.vector, theta)
    narrow = "use prior='weak'" if model.prior is None else "use a narrower prior"
    advice = f"its scores are separated by ability: leave it out, or {narrow}"
    constant = "leave out subjects with constant scores"
    if cb := model.family.name == "cb":
        ends = 100 * np.isin(data.x, (0, 1)).sum() / data.n_cells
        constant = advice = (
            f"{ends:.0f} % of the scores lie exactly at the ends, where the continuous Bernoulli has "
            "no highest density: use likelihood='fractional' or 'graded'"
        )
    if steep:
        out.append(
            f"the discrimination of {steep} items, such as "
            f"{quoted(data.items, a.argmax())}, reached the end of its range ({DISC_END:g}): {advice}"
        )
    if far:
        out.append(
            f"the ability of {far} subjects, such as "
            f"{quoted(data.subjects, theta.argmax())}, reached the end of its range "
            f"({NODES[-1]:g} sd): {constant}"
        )
    if not optimum.information.definite:
        said = "the information matrix is not positive definite, so errors are missing"
        out.append(f"{said}: {narrow}")
    limit = 0.05 if optimum.information.form == "apart" else _TOL
    if not out and not optimum.gradient <= limit:
        hint = "raise max_iter" if optimum.iterations >= max_iter else advice if cb else narrow
        out.append(
            f"the optimiser stopped after {optimum.iterations} iterations, "
            f"{optimum.gradient:.1e} errors from the optimum: {hint}"
        )
    return out


def _estimates(model: Model, optimum: Optimum, problems: list[str]) -> Estimates:
    """Move the scale to mean 0 and variance 1 of the population; carry the errors along.

    What is reported is a function of an item's or a subject's own parameters and of two errors of
    the scale: `shift`, of the abilities' mean, and `stretch`, of the logarithm of their sd.
    """
    alpha, d, gaps, severity = model.unpack(optimum.vector)
    abilities = optimum.abilities
    middle = float(abilities.mean.mean())
    unit = float(np.sqrt(np.mean((abilities.mean - middle) ** 2 + abilities.sd**2)))

    def moved(ability, shift=0.0, stretch=0.0):
        return (ability - middle - shift) * np.exp(-stretch) / unit

    def difficulty(alpha, d, shift=0.0, stretch=0.0):
        return moved(-d / model.slopes(alpha), shift, stretch)

    def slope(alpha, d, shift=0.0, stretch=0.0):
        if model.positive:
            return alpha + np.log(unit) + stretch
        return alpha * unit * np.exp(stretch)

    with np.errstate(divide="ignore", invalid="ignore"):
        variances = _variances(model, optimum, (moved, difficulty, slope), unit)
        b = difficulty(alpha, d)
        thresholds = moved((model.offsets(gaps) - d[:, None]) / model.slopes(alpha)[:, None])
    means = moved(abilities.mean), b, slope(alpha, d), severity / unit
    apart = "too large for the joint information: item errors take abilities as known"
    info = {
        "problems": problems,
        "iterations": optimum.iterations,
        "gradient_norm": optimum.gradient,
        "log_likelihood": float(abilities.log_likelihood.sum()),
        "ability_prior": [-middle / unit, 1 / unit],
        "hyperparameters": {} if model.prior is None else asdict(model.prior),
        "notes": [apart] if optimum.information.form == "apart" else [],
    }
    pairs = zip(means, variances, strict=True)
    moments = dict(zip(("theta", "diff", "alpha", "severity"), pairs, strict=True))
    return Estimates(moments, info, thresholds.T if model.family.graded else thresholds[:0])


def _variances(model: Model, optimum: Optimum, functions, unit: float) -> list[np.ndarray]:
    """Return variances of abilities, difficulties, alphas and severities on the reported scale.

    The errors of the abilities' mean and sd are taken out: 0 and 1 are those of these subjects.
    """
    moved, difficulty, slope = functions
    alpha, d, _, _ = model.unpack(optimum.vector)
    abilities, information, m = optimum.abilities, optimum.information, model.m
    n, mean, sd = model.data.n_subjects, abilities.mean, abilities.sd
    if not information.definite:
        missing = np.full(m, np.nan)
        return [sd**2 / unit**2, missing, missing, np.full(model.groups, np.nan)]
    along = np.column_stack([sd / n, moved(mean) * sd / (n * unit)])
    cross, own, var_z, cross_z = information.with_abilities(along)
    joint = _covariance((sd**2 * var_z)[:, None, None], (sd[:, None] * cross_z)[:, None], own)
    var_theta = _delta(moved, (mean, 0.0, 0.0), joint)
    # (alpha, d) of every item, and their covariances with the scale
    pairs, scales = information.blocks[:, :2, :2], np.stack([model.items(c) for c in cross.T], -1)
    if model.shared:
        with_top = model.items(information.solve(model.moves[0]))[:, 0]
        pairs = np.array(np.broadcast_arrays(information.top[0, 0], with_top, pairs[:, 0, 0]))
        pairs = pairs[[0, 1, 1, 2]].T.reshape(m, 2, 2)
        scales = np.concatenate([np.broadcast_to(cross[0], (m, 1, 2)), scales], 1)
    joint = _covariance(pairs, scales[:, :2], own)
    place = alpha, d, 0.0, 0.0
    var_b, var_alpha = _delta(difficulty, place, joint), _delta(slope, place, joint)
    if model.positive and model.prior is not None:
        # the second-order part: b = -d exp(-alpha) is curved over the posterior of (alpha, d)
        a = np.exp(alpha)
        bend = np.array([[-d / a, 1 / a], [1 / a, np.zeros(m)]]).transpose(2, 0, 1) / unit
        bent = bend @ pairs
        var_b += 0.5 * np.einsum("jpr,jrp->j", bent, bent) + 0.25 * np.einsum("jpp->j", bent) ** 2
    var_severity = np.zeros(0)
    if model.groups:
        part = information.top[int(model.shared) :, int(model.shared) :]
        var_severity = np.diag(model.contrasts @ part @ model.contrasts.T) / unit**2
    var_theta = np.maximum(var_theta, 1e-12 / unit**2)
    return [var_theta, var_b, np.maximum(var_alpha, 1e-12), var_severity]


def _covariance(own: np.ndarray, cross: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Return each one's joint covariance with the scale from its blocks, n x p x p and n x p x 2."""
    scale = np.broadcast_to(scale, (len(own), 2, 2))
    return np.block([[own, cross], [cross.transpose(0, 2, 1), scale]])


def _delta(function: Callable, at: tuple, covariance: np.ndarray) -> np.ndarray:
    """Return the variances of a function by the delta method; its slopes are complex steps."""
    steps = 1e-20j * np.eye(len(at))
    slopes = [function(*(x + s for x, s in zip(at, step, strict=True))).imag for step in steps]
    slopes = np.stack(np.broadcast_arrays(*slopes), -1) / 1e-20
    return np.einsum("nk,nkl,nl->n", slopes, covariance, slopes)
