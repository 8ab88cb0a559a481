"""The default engine from scores to estimates: priors, convergence, scale and errors."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import numpy as np

from ragkit.irt.data import Scores
from ragkit.irt.engine import (
    ABILITY_NEAR,
    DISC_END,
    DISC_NEAR,
    HYPER_BOUNDS,
    Model,
    Optimum,
    Prior,
    climb,
    start,
)
from ragkit.irt.marginal import NODES

_HYPER_ROUNDS, _HYPER_TOL = 60, 5e-3


@dataclass
class Setup:
    """What an engine is told besides the scores."""

    family: object
    shared: bool
    positive: bool
    prior: Prior | None
    hierarchical: bool
    scale: str
    seed: int


@dataclass
class Estimates:
    """What an engine returns; `alpha` is log disc, or disc itself for signed models."""

    theta: np.ndarray
    var_theta: np.ndarray
    b: np.ndarray
    var_b: np.ndarray
    alpha: np.ndarray
    var_alpha: np.ndarray
    info: dict
    severity: np.ndarray = field(default_factory=lambda: np.zeros(0))
    var_severity: np.ndarray = field(default_factory=lambda: np.zeros(0))
    thresholds: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    draws: dict | None = None


def fit_em(data: Scores, setup: Setup, *, tol: float, max_iter: int) -> Estimates:
    """Fit, judge the optimum, and report estimates and errors on the scale of the population.

    `tol` is the distance from the optimum, in errors of the estimates, at which the climb stops.
    """
    model = Model(
        data, setup.family, shared=setup.shared, positive=setup.positive, prior=setup.prior
    )
    vector, problems = start(model), []
    for turn in range(_HYPER_ROUNDS if setup.hierarchical else 1):
        optimum = climb(model, vector, tol=tol, max_iter=max_iter, near=turn > 0)
        if not (setup.hierarchical and optimum.information.definite):
            break
        vector, before = optimum.vector, model.prior
        model.prior, bounded = _estimated(model, optimum)
        moved = max(abs(x - vars(before)[name]) for name, x in vars(model.prior).items())
        if bounded:
            problems = [f"the prior's {bounded} reached its bound: fix the prior (prior='weak')"]
            break
        if moved < _HYPER_TOL:
            break
    else:
        if setup.hierarchical:
            problems = ["the estimates of the prior did not settle: fix the prior (prior='weak')"]
    problems += _problems(model, optimum, tol)
    return _estimates(model, optimum, setup.scale, problems)


def _estimated(model: Model, optimum: Optimum) -> tuple[Prior, str]:
    """Return the prior of largest marginal density given the items, and what reached a bound."""
    alpha, d, _, _ = model.unpack(optimum.vector)
    variances = optimum.information.blocks
    new = vars(model.prior).copy()
    place = -d / np.exp(alpha) if model.on_difficulty else d
    at = 0 if model.shared else 1
    spread = variances[:, at, at]
    if model.on_difficulty:
        along = np.column_stack([-place, -np.exp(-alpha)])
        spread = np.einsum("jp,jpr,jr->j", along, variances[:, :2, :2], along)
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


def _problems(model: Model, optimum: Optimum, tol: float) -> list[str]:
    """Return why the optimum is not to be trusted, each with what to do about it."""
    out = []
    alpha, _, _, _ = model.unpack(optimum.vector)
    a = np.abs(model.slopes(alpha))
    data = model.data
    steep = a > DISC_NEAR
    ends = (data.x == 0) | (data.x == 1)
    if model.family.name == "cb":
        advice = (
            f"{100 * ends.mean():.0f} % of the scores lie exactly at the ends, where the continuous "
            "Bernoulli has no highest density: use likelihood='fractional' or 'graded'"
        )
    elif model.prior is None:
        advice = "its scores are separated by ability: use prior='weak'"
    else:
        advice = "its scores are separated by ability: leave it out, or use a narrower prior"
    if steep.any():
        name = data.items[int(a.argmax())]
        out.append(
            f"the discrimination of {int(steep.sum())} items, such as {name!r}, reached the end of "
            f"its range ({DISC_END:g}): {advice}"
        )
    far = np.abs(optimum.abilities.mean) > ABILITY_NEAR
    if far.any():
        name = data.subjects[int(np.abs(optimum.abilities.mean).argmax())]
        out.append(
            f"the ability of {int(far.sum())} subjects, such as {name!r}, reached the end of its "
            f"range ({NODES[-1]:g} sd): "
            + (advice if model.family.name == "cb" else "leave out subjects with constant scores")
        )
    if not optimum.information.definite:
        out.append(
            "the information matrix is not positive definite, so errors are missing: "
            + ("use prior='weak'" if model.prior is None else "use a narrower prior")
        )
    limit = 0.05 if optimum.information.form == "apart" else tol
    if not out and not optimum.gradient <= limit:
        out.append(
            f"the optimiser stopped after {optimum.iterations} iterations, "
            f"{optimum.gradient:.1e} errors from the optimum: raise max_iter"
        )
    return out


def _estimates(model: Model, optimum: Optimum, scale: str, problems: list[str]) -> Estimates:
    """Move the scale to mean 0 and variance 1 of the population; carry the errors along."""
    alpha, d, gaps, severity = model.unpack(optimum.vector)
    a = model.slopes(alpha)
    abilities, information = optimum.abilities, optimum.information
    middle = float(abilities.mean.mean())
    unit = float(np.sqrt(np.mean((abilities.mean - middle) ** 2 + abilities.sd**2)))
    with np.errstate(divide="ignore", invalid="ignore"):
        b = -d / a
        thresholds = (model.offsets(gaps) - d[:, None]) / a[:, None]
    notes = []
    if information.form == "apart":
        notes.append("too large for the joint information: item errors take abilities as known")
    variances = _variances(model, optimum, middle, unit, sample=True)
    if scale == "population":
        variances = [
            np.maximum(own + drawn, free)
            for own, drawn, free in zip(
                variances,
                _drawn(model, optimum, middle, unit),
                _variances(model, optimum, middle, unit, sample=False),
                strict=True,
            )
        ]
    var_theta, var_b, var_alpha, var_severity = variances
    return Estimates(
        theta=(abilities.mean - middle) / unit,
        var_theta=var_theta,
        b=(b - middle) / unit,
        var_b=var_b,
        alpha=alpha + np.log(unit) if model.positive else alpha * unit,
        var_alpha=var_alpha,
        severity=severity / unit,
        var_severity=var_severity,
        thresholds=(thresholds - middle) / unit if model.family.graded else np.zeros((0, 0)),
        info={
            "converged": not problems,
            "problems": problems,
            "iterations": optimum.iterations,
            "gradient_norm": optimum.gradient,
            "objective": optimum.objective,
            "log_likelihood": float(abilities.log_likelihood.sum()),
            "ability_prior": [-middle / unit, 1 / unit],
            "hyperparameters": {} if model.prior is None else asdict(model.prior),
            "notes": notes,
        },
    )


def _drawn(model: Model, optimum: Optimum, middle: float, unit: float) -> list[np.ndarray]:
    """Return the variances that come with a draw of the subjects from N(0, 1): 1/n and 1/(2n)."""
    alpha, d, _, severity = model.unpack(optimum.vector)
    n = model.data.n_subjects
    theta = (optimum.abilities.mean - middle) / unit
    with np.errstate(divide="ignore", invalid="ignore"):
        b = (-d / model.slopes(alpha) - middle) / unit
    stretch = np.ones(model.m) if model.positive else alpha * unit
    return [
        1 / n + theta**2 / (2 * n),
        1 / n + b**2 / (2 * n),
        stretch**2 / (2 * n),
        (severity / unit) ** 2 / (2 * n),
    ]


def _variances(
    model: Model, optimum: Optimum, middle: float, unit: float, *, sample: bool
) -> list[np.ndarray]:
    """Return variances of abilities, difficulties, alphas and severities on the reported scale.

    With `sample` the errors of the abilities' mean and sd are taken out.
    """
    alpha, d, _, _ = model.unpack(optimum.vector)
    abilities, information, h, m = optimum.abilities, optimum.information, model.head, model.m
    n, mean, sd = model.data.n_subjects, abilities.mean, abilities.sd
    if not information.definite:
        missing = np.full(m, np.nan)
        return [sd**2 / unit**2, missing, missing, np.full(model.groups, np.nan)]
    a = model.slopes(alpha)
    z = (mean - middle) / unit
    # errors of the scale: of the mean, and of the sd in units of the sd
    along = np.column_stack([sd / n, z * sd / (n * unit)])
    if not sample:
        along = np.zeros_like(along)
    cross, own, var_z, cross_z = information.with_abilities(along)
    theta = np.column_stack([-np.ones(n), -(mean - middle)])
    var_theta = (
        sd**2 * var_z
        + 2 * sd * (cross_z * theta).sum(1)
        + np.einsum("ip,pr,ir->i", theta, own, theta)
    )
    # (alpha, d) of every item: blocks, and covariances with the scale
    at = 0 if model.shared else 1
    by_item = model.items(cross[:, 0]), model.items(cross[:, 1])
    pairs = np.empty((m, 2, 2))
    pairs[:, 1, 1] = information.blocks[:, at, at]
    scales = np.empty((m, 2, 2))  # parameters x functionals
    for k in range(2):
        scales[:, 1, k] = by_item[k][:, at]
        scales[:, 0, k] = cross[0, k] if model.shared else by_item[k][:, 0]
    if model.shared:
        pairs[:, 0, 0] = information.top[0, 0]
        pairs[:, 0, 1] = pairs[:, 1, 0] = _with_top(model, information)
    else:
        pairs[:, 0, 0] = information.blocks[:, 0, 0]
        pairs[:, 0, 1] = pairs[:, 1, 0] = information.blocks[:, 0, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        b = -d / a
        along_b = np.column_stack([-b if model.positive else -b / a, -1 / a])

    def variance(parameters: np.ndarray, scale_part: np.ndarray) -> np.ndarray:
        return (
            np.einsum("jp,jpr,jr->j", parameters, pairs, parameters)
            + 2 * np.einsum("jp,jpk,jk->j", parameters, scales, scale_part)
            + np.einsum("jk,kl,jl->j", scale_part, own, scale_part)
        )

    var_b = variance(along_b, np.column_stack([-np.ones(m), -(b - middle)]))
    if model.positive and model.prior is not None:
        # the second-order part: b = -d exp(-alpha) is curved over the posterior of (alpha, d)
        bend = np.zeros((m, 2, 2))
        bend[:, 0, 0], bend[:, 0, 1], bend[:, 1, 0] = b, 1 / a, 1 / a
        bent = bend @ pairs
        var_b = var_b + 0.5 * np.einsum("jpr,jrp->j", bent, bent)
        var_b = var_b + 0.25 * np.einsum("jpp->j", bent) ** 2
    var_b = var_b / unit**2
    one = np.tile([1.0, 0.0], (m, 1))
    stretch = np.ones(m) if model.positive else alpha
    var_alpha = variance(one, np.column_stack([np.zeros(m), stretch]))
    var_alpha *= 1 if model.positive else unit**2
    var_severity = np.zeros(0)
    if model.groups:
        part = slice(int(model.shared), h)
        var_severity = np.diag(
            model.contrasts @ information.top[part, part] @ model.contrasts.T
        ).copy()
        var_severity /= unit**2
    floor = 1e-12
    return [
        np.maximum(var_theta, floor) / unit**2,
        var_b,
        np.broadcast_to(np.maximum(var_alpha, floor), (m,)),
        var_severity,
    ]


def _with_top(model: Model, information) -> np.ndarray:
    """Return the covariances of a common alpha with the items' intercepts."""
    if information.form == "joint":
        return information.inverse[0, model.head :].reshape(model.m, model.width)[:, 0]
    return -(information.load @ information.k[:, 0]).reshape(model.m, model.width)[:, 0]
