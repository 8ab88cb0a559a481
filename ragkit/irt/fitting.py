"""`fit`: one door to four engines."""

from __future__ import annotations

import inspect
import time
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version

import numpy as np
import pandas as pd

from ragkit.errors import UsageError, did_you_mean
from ragkit.irt.data import Scores, prepare
from ragkit.irt.graded import every_level, fit_graded, levels_of
from ragkit.irt.large import LARGE, fit_large
from ragkit.irt.likelihood import Likelihood, get_likelihood
from ragkit.irt.map import (
    DENSE_MAX,
    Hyper,
    Posterior,
    Prior,
    State,
    fit_map,
    inverted,
    item_moments,
    runs_backwards,
    standard_errors,
    widened,
)
from ragkit.irt.result import IRTResult, modes

FEW = 5
MODELS = ("1pl", "2pl")
DISCS = ("positive", "signed")
SCALES = ("sample", "population")
ML_COUNT = 100  # scores per item from which `em` goes without a prior


def fit(
    scores: pd.DataFrame,
    model: str = "2pl",
    likelihood: str = "cb",
    disc: str = "positive",
    engine: str = "map",
    score_range: tuple[float, float] = (0, 1),
    seed: int = 0,
    *,
    prior: str | Prior = "auto",
    group: str | None = None,
    disconnected: str = "raise",
    scale: str = "sample",
    levels: Sequence[float] | None = None,
    **options,
) -> IRTResult:
    """Fit an item response model to scores.

    The expected score of subject i on item j rises with a_j (theta_i - b_j): theta is ability, b
    difficulty (higher is harder) and a discrimination (the LiveRAG paper, section 3, equations 1
    and 2). The likelihood is the continuous Bernoulli, or the Bernoulli for scores of 0 and 1.

    Parameters
    ----------
    scores : pandas.DataFrame
        Long: `subject_id`, `item_id`, `score`, one row per score; or wide: subjects in the index,
        items in the columns, NaN for missing. It is not changed.
    model : {"2pl", "1pl"}
        "1pl" gives all items one discrimination.
    likelihood : {"cb", "bernoulli", "fractional", "graded"}
        "cb" is the paper's; it has no highest density at scores of exactly 0 or 1, so where many
        lie there its discriminations run to the prior's bounds. "bernoulli" takes only the two
        ends. "fractional" is a quasi-likelihood that bears both: see `Fractional`. "graded", for
        scores that take a few ordered levels, gives every level a probability of its own
        (Samejima's graded response model); it needs `engine="em"`.
    disc : {"positive", "signed"}
        Whether a discrimination may be negative. A signed item with few scores has a mode on
        either side of zero; its estimate and error are those of one.
    engine : {"map", "em", "nuts", "py-irt"}
        "map": posterior mode by Newton, empirical-Bayes priors, Laplace errors; milliseconds.
        "em": abilities integrated out, for many subjects with few scores each.
        "nuts": the whole posterior, the reference; minutes.
        "py-irt": the paper's route, stochastic variational inference; a minute.
    score_range : (low, high)
        The range of the scores, mapped linearly to [0, 1]. A score outside raises.
    seed : int
        Of "nuts" and "py-irt"; the other engines draw nothing.
    prior : {"auto", "hierarchical", "none"} or Prior
        "hierarchical" estimates means and sds of difficulty and discrimination; a `Prior` fixes
        some. "none" is maximum likelihood, for "em" only. "auto" is "none" for "em" when every
        item has at least 100 scores and is not constant (graded: got every level), else
        "hierarchical".
    group : str, optional
        A column that names the judge or condition of each score; its severities are estimated
        (engines "map" and "nuts").
    disconnected : {"raise", "assume-equal"}
        What to do with parts of the design that share no subject and no item.
    scale : {"sample", "population"}
        What the errors refer to. Estimates are the same: abilities of mean 0 and mean square 1
        (error included). "sample": 0 and 1 are mean and sd of these subjects. "population": the
        subjects are a draw from N(0, 1), so location and scale carry a sampling error.
    levels : sequence of float, optional
        For "graded": the values a score can take, ascending. The distinct scores by default.
    **options
        Of the engine. "map": tol, max_iter. "em": tol, max_iter. "nuts": draws, warmup, chains,
        progress. "py-irt": epochs, lr, dropout, progress.

    Returns
    -------
    IRTResult

    Raises
    ------
    UsageError
        An unknown model, likelihood, engine or option.
    DataError
        Scores that cannot be fitted; see `prepare`.

    Examples
    --------
    >>> from ragkit import irt
    >>> made = irt.simulate(20, 50, seed=1)
    >>> result = irt.fit(made.scores)
    >>> result.converged
    True
    """
    model, engine = str(model).lower(), str(engine).lower()
    for name, value, known in (
        ("model", model, MODELS),
        ("disc", disc, DISCS),
        ("engine", engine, ENGINES),
        ("scale", scale, SCALES),
    ):
        if value not in known:
            raise UsageError(f"{name}={value!r} is unknown", did_you_mean(value, known))
    if likelihood == "graded":
        if engine != "em":
            raise UsageError(f"engine {engine!r} cannot fit likelihood='graded'", "use engine='em'")
        if disc != "positive":
            raise UsageError("likelihood='graded' takes disc='positive' only")
    elif levels is not None:
        raise UsageError("levels are for likelihood='graded'")
    family = None if likelihood == "graded" else get_likelihood(likelihood)
    run = ENGINES[engine] if family else _run_graded
    known = [
        name
        for name, parameter in inspect.signature(run).parameters.items()
        if parameter.default is not inspect.Parameter.empty
    ]
    for name in options:
        if name not in known:
            raise UsageError(f"engine {engine!r} has no option {name!r}", did_you_mean(name, known))
    if group is not None and engine in ("em", "py-irt"):
        raise UsageError(
            f"engine {engine!r} has no judge or group effect", "use engine='map' or engine='nuts'"
        )
    data = prepare(
        scores,
        score_range=score_range,
        likelihood=likelihood,
        group=group,
        disconnected=disconnected,
    )
    found_levels = levels_of(data, levels) if family is None else None
    chosen = _prior(prior, engine, data, found_levels)
    begin = time.perf_counter()
    setup = {
        "shared": model == "1pl",
        "positive": disc == "positive",
        "prior": chosen,
        "scale": scale,
        "seed": seed,
        "levels": found_levels,
    }
    core, extreme = _without_extremes(data, engine, likelihood)
    found = run(core, family, setup, **options)
    if extreme.any():
        _place(data, core, extreme, found, family, positive=setup["positive"])
    found["info"] = {
        "model": model,
        "likelihood": likelihood,
        "disc": disc,
        "engine": engine,
        "score_range": [float(end) for end in score_range],
        "scale": scale,
        "seed": seed,
        "group": group,
        "prior": "none" if chosen is None else asdict(chosen),
        "n_scores": int(data.n_cells),
        "seconds": time.perf_counter() - begin,
        **found["info"],
        "versions": {name: version(name) for name in _packages(engine)},
    }
    return _result(data, found, signed=disc == "signed")


def _without_extremes(data: Scores, engine: str, likelihood: str) -> tuple[Scores, np.ndarray]:
    """Set aside subjects whose scores all lie at one end, if what is left can be fitted.

    In a continuous-Bernoulli model nothing bounds such an ability but its prior, and it would take
    the scale of all others with it. The samplers keep everybody.
    """
    low, high = data.per_subject("max") == 0, data.per_subject("min") == 1
    extreme = low | high
    none = np.zeros(data.n_subjects, bool)
    if likelihood != "cb" or engine not in ("map", "em"):
        return data, none
    if not extreme.any() or (~extreme).sum() < 2:
        return data, none
    subject, item, x = data.cells()
    keep = ~extreme[subject]
    if np.bincount(item[keep], minlength=data.n_items).min() == 0 or np.ptp(x[keep]) == 0:
        return data, none
    core = data.take(keep)
    core.subject = (np.cumsum(~extreme) - 1)[core.subject].astype(np.int32)
    core.subjects = data.subjects[~extreme]
    return core, extreme


def _place(data, core, extreme, found: dict, family: Likelihood, *, positive: bool) -> None:
    """Give the subjects set aside their most probable ability on the fitted items."""
    alpha = np.broadcast_to(found["alpha"], (data.n_items,))
    a = np.exp(alpha) if positive else alpha
    subject, item, x = data.cells()
    mine = extreme[subject]
    subject, item, x = subject[mine], item[mine], x[mine]
    b = found["b"][item]
    if data.n_groups:
        b = b + found["severity"][data.group[mine]]
    theta, curvature = modes(subject, a[item], b, x, data.n_subjects, family)
    for name, own in (("theta", theta), ("var_theta", 1 / curvature)):
        both = own.copy()
        both[~extreme] = found[name]
        found[name] = both
    found["info"]["notes"].append(
        f"{int(extreme.sum())} subjects with all scores at one end were set aside and placed "
        "afterwards: their abilities rest on the prior"
    )


def _packages(engine: str) -> list[str]:
    extra = {"nuts": ["torch", "pyro-ppl"], "py-irt": ["torch", "pyro-ppl", "py-irt"]}
    return ["ragkit", "numpy", "scipy", *extra.get(engine, [])]


def _prior(
    prior: str | Prior, engine: str, data: Scores, levels: np.ndarray | None
) -> Prior | None:
    if isinstance(prior, Prior):
        for name in ("diff_sd", "disc_sd"):
            value = getattr(prior, name)
            if value is not None and not value > 0:
                raise UsageError(f"Prior({name}={value}) is not positive")
        if engine in ("nuts", "py-irt"):
            raise UsageError(f"engine {engine!r} estimates its own prior", "use 'map' or 'em'")
        return prior
    if prior not in ("auto", "hierarchical", "none"):
        raise UsageError(
            f"prior={prior!r} is unknown", did_you_mean(prior, ["auto", "hierarchical", "none"])
        )
    if prior == "none" and engine != "em":
        raise UsageError(f"engine {engine!r} needs a prior", "use engine='em' for prior='none'")
    if prior == "none":
        return None
    if prior == "auto" and engine == "em":
        if levels is None:
            telling = (data.per_item("min") < data.per_item("max")).all()
        else:
            telling = every_level(data, levels)
        if data.per_item("count").min() >= ML_COUNT and telling:
            return None
    return Prior()


def _run_map(data: Scores, family: Likelihood, setup: dict, tol=1e-8, max_iter=200) -> dict:
    engine = fit_large if data.n_cells >= LARGE and not data.n_groups else fit_map
    found = engine(
        data,
        family,
        shared=setup["shared"],
        positive=setup["positive"],
        prior=setup["prior"],
        scale=setup["scale"],
        tol=tol,
        max_iter=max_iter,
    )
    theta = found.state.theta
    mean = float(theta.mean())
    sd = float(np.sqrt(np.mean((theta - mean) ** 2 + found.var_theta)))
    positive, severity = setup["positive"], found.state.severity
    middle = float(severity.mean()) if len(severity) else 0.0
    reliability = 1 - float(np.mean(found.var_theta)) / sd**2
    notes = []
    if reliability < 0.7:
        notes.append(
            f"abilities are measured with reliability {reliability:.2f}: the joint mode is biased, "
            "prefer engine='em'"
        )
    if found.bounded:
        notes.append(
            "the typical discrimination reached its bound: "
            + (
                "many scores lie exactly at the ends of the range, where the continuous Bernoulli "
                "has no highest density"
                if family.name == "cb"
                else "the scores hardly say how steep the items are"
            )
        )
    return {
        "theta": (theta - mean) / sd,
        "var_theta": found.var_theta / sd**2,
        "severity": (severity - middle) / sd,
        "var_severity": found.var_severity / sd**2,
        "b": (found.moments.b - mean + middle) / sd,
        "var_b": found.var_b / sd**2,
        "alpha": found.moments.alpha + np.log(sd) if positive else found.moments.alpha * sd,
        "var_alpha": found.var_alpha if positive else found.var_alpha * sd**2,
        "info": {
            "converged": found.converged,
            "iterations": found.iterations,
            "gradient_norm": found.gradient_norm,
            "objective": found.objective,
            "log_likelihood": found.system.log_likelihood,
            "hyperparameters": _hyper(found.hyper, setup["shared"]),
            "notes": notes,
        },
    }


def _hyper(hyper: Hyper | None, shared: bool) -> dict:
    if hyper is None:
        return {}
    names = ["diff_mean", "diff_sd"] + ([] if shared else ["disc_mean", "disc_sd", "tilt"])
    return {name: float(getattr(hyper, name)) for name in names}


def _run_em(data: Scores, family: Likelihood, setup: dict, tol=1e-7, max_iter=5000) -> dict:
    from ragkit.irt.em import fit_em

    shared, positive, scale = setup["shared"], setup["positive"], setup["scale"]
    found = fit_em(
        data,
        family,
        shared=shared,
        positive=positive,
        prior=setup["prior"],
        tol=tol,
        max_iter=max_iter,
    )
    n, m = data.n_subjects, data.n_items
    b, alpha = found.b, np.broadcast_to(found.alpha, (m,)).copy()
    var_theta = found.sd_theta**2
    notes = []
    if found.covariance is not None:
        diagonal = np.diag(found.covariance)
        var_b, var_alpha = diagonal[:m].copy(), np.broadcast_to(diagonal[m:], (m,)).copy()
        if not (diagonal > 0).all():
            notes.append("the information matrix is not positive definite: errors are missing")
            var_b, var_alpha = np.full(m, np.nan), np.full(m, np.nan)
        along = np.ones(m) if positive else alpha
        var_b, var_alpha, var_theta = _on_scale(
            scale, found.theta, var_theta, b, var_b, along, var_alpha
        )
    elif n > DENSE_MAX:
        var_b, var_alpha = found.var_b, np.broadcast_to(found.var_alpha, (m,))
        notes.append(f"more than {DENSE_MAX:,} subjects: item errors take abilities as known")
    else:
        var_theta, var_b, var_alpha, b, alpha = _laplace(data, family, setup, found)
    return {
        "theta": found.theta,
        "var_theta": var_theta,
        "b": b,
        "var_b": var_b,
        "alpha": alpha,
        "var_alpha": var_alpha,
        "info": {
            "converged": found.converged,
            "iterations": found.iterations,
            "gradient_norm": found.gradient_norm,
            "log_likelihood": found.log_likelihood,
            "hyperparameters": _hyper(found.hyper, shared),
            "notes": notes,
        },
    }


def _run_graded(data: Scores, _, setup: dict, tol=1e-7, max_iter=2000) -> dict:
    levels, prior = setup["levels"], setup["prior"]
    found = fit_graded(
        data, levels, shared=setup["shared"], prior=prior, tol=tol, max_iter=max_iter
    )
    var_b, var_alpha, var_theta = _on_scale(
        setup["scale"],
        found.theta,
        found.sd_theta**2,
        found.b,
        found.var_b,
        np.ones(data.n_items),
        found.var_alpha,
    )
    low, high = data.score_range
    return {
        "theta": found.theta,
        "var_theta": var_theta,
        "b": found.b,
        "var_b": var_b,
        "alpha": found.alpha,
        "var_alpha": var_alpha,
        "thresholds": found.thresholds,
        "info": {
            "converged": found.converged,
            "iterations": found.iterations,
            "gradient_norm": found.gradient_norm,
            "log_likelihood": found.log_likelihood,
            "hyperparameters": found.hyper.named(shared=setup["shared"]) if found.hyper else {},
            "levels": [float(low + level * (high - low)) for level in levels],
            "notes": found.notes,
        },
    }


def _on_scale(scale: str, theta, var_theta, b, var_b, along, var_alpha):
    """Return variances of marginal estimates on the sample's or the population's scale.

    They are those of the population: the location and scale of n subjects, 1 / n and 1 / (2 n),
    are part of them. `along` is how alpha moves with the logarithm of the scale.
    """
    n = len(theta)
    if scale == "population":
        return var_b, var_alpha, var_theta + 1 / n + theta**2 / (2 * n)
    return (
        np.maximum(var_b - 1 / n - b**2 / (2 * n), 0.1 * var_b),
        np.maximum(var_alpha - along**2 / (2 * n), 0.1 * var_alpha),
        var_theta,
    )


def _laplace(data: Scores, family: Likelihood, setup: dict, found):
    """Return errors at the EM solution by the default engine's formulas, and items' means."""
    posterior = Posterior(data, family, shared=setup["shared"], positive=setup["positive"])
    wide = {"diff_sd": 1e3, "disc_sd": 1e3, "diff_mean": 0.0, "disc_mean": 0.0}
    hyper = found.hyper or Hyper(**wide, positive=setup["positive"])
    state = State(found.theta, np.zeros(0), found.b, found.alpha)
    system, _ = inverted(posterior, state, posterior.system(state, hyper), hyper)
    moments = item_moments(posterior, state, system, hyper)
    whole = widened(posterior, state, system, hyper)
    var_theta, _, var_b, var_alpha = standard_errors(
        posterior, state, whole, moments, setup["scale"]
    )
    return var_theta, var_b, var_alpha, moments.b, moments.alpha


def _run_nuts(
    data: Scores,
    family: Likelihood,
    setup: dict,
    draws=500,
    warmup=300,
    chains=2,
    progress=True,
) -> dict:
    from ragkit.irt.nuts import sample

    positive = setup["positive"]
    found = sample(
        data,
        family,
        shared=setup["shared"],
        positive=positive,
        draws=draws,
        warmup=warmup,
        chains=chains,
        seed=setup["seed"],
        progress=progress,
    )
    theta, severity, b, alpha = found.theta, found.severity, found.b, found.alpha
    alpha = np.broadcast_to(alpha, b.shape).copy()
    score = data.per_subject("mean")
    turned = (theta * (score - score.mean())).sum(-1, keepdims=True) < 0
    sign = np.where(turned & (not positive), -1.0, 1.0)
    theta, severity, b, alpha = (
        theta * sign,
        severity * sign,
        b * sign,
        (alpha if positive else alpha * sign),
    )
    if data.n_groups:
        middle = severity.mean(-1, keepdims=True)
        severity, b = severity - middle, b + middle
    if setup["scale"] == "sample":
        mean, sd = theta.mean(-1, keepdims=True), theta.std(-1, keepdims=True)
        theta, b, severity = (theta - mean) / sd, (b - mean) / sd, severity / sd
        alpha = alpha + np.log(sd) if positive else alpha * sd
    from ragkit.irt.diagnostics import chain_summary

    disc = np.exp(alpha) if positive else alpha
    kept = {"theta": theta, "diff": b, "disc": disc}
    summary = chain_summary(kept)
    worst = max(row["max_r_hat"] for row in summary.values())

    def moments(x):
        flat = x.reshape(x.shape[0] * x.shape[1], x.shape[2])
        return flat.mean(0), flat.var(0)

    out = {}
    for name, value in (("theta", theta), ("severity", severity), ("b", b), ("alpha", alpha)):
        out[name], out[f"var_{name}"] = moments(value)
    names = ["diff_mean", "diff_sd", "disc_mean", "disc_sd"]
    hyper = found.hyper.reshape(-1, found.hyper.shape[-1]).mean(0)
    posterior = Posterior(data, family, shared=setup["shared"], positive=positive)
    state = State(
        out["theta"],
        out["severity"],
        out["b"],
        out["alpha"][:1] if setup["shared"] else out["alpha"],
    )
    if severity.shape[-1]:
        kept["severity"] = severity
    out["draws"] = kept
    out["info"] = {
        "converged": bool(worst < 1.05 and found.divergences == 0),
        "iterations": chains * (draws + warmup),
        "log_likelihood": posterior.log_likelihood(state),
        "hyperparameters": dict(zip(names, map(float, hyper), strict=False)),
        "divergences": found.divergences,
        "chains": summary,
        "notes": [],
    }
    return out


def _run_pyirt(
    data: Scores,
    family: Likelihood,
    setup: dict,
    epochs=10_000,
    lr=0.01,
    dropout=0.2,
    progress=True,
) -> dict:
    from ragkit.irt.pyirt import fit_pyirt

    shared, positive = setup["shared"], setup["positive"]
    found = fit_pyirt(
        data,
        family.name,
        shared=shared,
        positive=positive,
        epochs=epochs,
        lr=lr,
        dropout=dropout,
        seed=setup["seed"],
        progress=progress,
    )
    m = data.n_items
    theta, b = found.theta, found.b
    alpha, sd_alpha = (np.broadcast_to(x, (m,)).copy() for x in (found.alpha, found.sd_alpha))
    score = data.per_subject("mean")
    notes = [
        f"dropout={dropout} is recorded but inert: py-irt's 2PL does not use it",
        "errors are those of a mean-field approximation, which is too narrow",
    ]
    turned = np.sum((theta - theta.mean()) * (score - score.mean())) < 0
    if turned and positive:
        notes.append("abilities run against the mean scores: another seed may do better")
    elif turned:
        theta, b, alpha = -theta, -b, -alpha
    mean = theta.mean()
    sd = float(np.sqrt(np.mean((theta - mean) ** 2 + found.sd_theta**2)))
    alpha, sd_alpha = (alpha + np.log(sd), sd_alpha) if positive else (alpha * sd, sd_alpha * sd)
    state = State((theta - mean) / sd, np.zeros(0), (b - mean) / sd, alpha[:1] if shared else alpha)
    posterior = Posterior(data, family, shared=shared, positive=positive)
    return {
        "theta": state.theta,
        "var_theta": (found.sd_theta / sd) ** 2,
        "b": state.b,
        "var_b": (found.sd_b / sd) ** 2,
        "alpha": alpha,
        "var_alpha": sd_alpha**2,
        "info": {
            "converged": bool(np.isfinite(theta).all() and not (turned and positive)),
            "iterations": epochs,
            "log_likelihood": posterior.log_likelihood(state),
            "hyperparameters": {},
            "learning_rate": lr,
            "dropout": dropout,
            "notes": notes,
        },
    }


ENGINES = {"map": _run_map, "em": _run_em, "nuts": _run_nuts, "py-irt": _run_pyirt}


def _result(data: Scores, found: dict, *, signed: bool) -> IRTResult:
    low, high = data.score_range
    b, alpha = found["b"], np.broadcast_to(found["alpha"], (data.n_items,))
    se = np.sqrt(np.broadcast_to(found["var_alpha"], (data.n_items,)))
    if signed:
        disc, se_disc = alpha.copy(), se.copy()
        with np.errstate(invalid="ignore", divide="ignore"):
            log_disc = np.where(disc > 0, np.log(disc), np.nan)
            se_log = np.where(disc > 0, se / disc, np.nan)
    else:
        log_disc, se_log = alpha.copy(), se.copy()
        disc, se_disc = np.exp(alpha), np.exp(alpha) * se
    item_n, subject_n = data.per_item("count"), data.per_subject("count")
    apart = data.components.max() > 0
    negative = disc < 0 if signed else runs_backwards(data, found["theta"])
    items = pd.DataFrame(
        {
            "diff": b,
            "disc": disc,
            "log_disc": log_disc,
            "se_diff": np.sqrt(found["var_b"]),
            "se_disc": se_disc,
            "se_log_disc": se_log,
            "n": item_n,
            "mean_score": low + data.per_item("mean") * (high - low),
            "flags": _flags(
                constant=data.per_item("min") == data.per_item("max"),
                negative=negative,
                few=item_n < FEW,
                disconnected=np.full(data.n_items, apart),
            ),
        },
        index=data.items.rename("item_id"),
    )
    subjects = pd.DataFrame(
        {
            "theta": found["theta"],
            "se_theta": np.sqrt(found["var_theta"]),
            "n": subject_n,
            "mean_score": low + data.per_subject("mean") * (high - low),
            "flags": _flags(
                constant=data.per_subject("min") == data.per_subject("max"),
                few=subject_n < FEW,
                disconnected=np.full(data.n_subjects, apart),
            ),
        },
        index=data.subjects.rename("subject_id"),
    )
    for k, column in enumerate(found.get("thresholds", np.zeros((0, 0))).T):
        items.insert(2 + k, f"threshold_{k + 1}", column)
    facets = _facets(data, found) if data.n_groups else None
    notes = found["info"]["notes"]
    if apart:
        notes.append(
            f"{int(data.components.max()) + 1} parts share no subject or item: they are on one "
            "scale only if their subjects are equally able on average"
        )
    if facets is not None and facets["flags"].str.contains("nested").any():
        notes.append(
            "some levels of the facet share no subject with another level: the scores tell the "
            "abilities within a group, and the sum of a group's severity and mean ability; its "
            "severity assumes equally able groups, drawn from one population"
        )
    return IRTResult(items, subjects, found["info"], facets, found.get("draws"), data)


def _flags(**masks: np.ndarray) -> np.ndarray:
    size = len(next(iter(masks.values())))
    out = np.full(size, "", dtype=object)
    for name, mask in masks.items():
        out[mask] = [f"{flag} {name}".strip() for flag in out[mask]]
    return out


def _facets(data: Scores, found: dict) -> pd.DataFrame:
    k = data.n_groups
    pairs = np.unique(np.column_stack([data.subject, data.group]), axis=0)
    levels = np.bincount(pairs[:, 0], minlength=data.n_subjects)
    overlap = np.bincount(pairs[levels[pairs[:, 0]] > 1, 1], minlength=k) > 0
    return pd.DataFrame(
        {
            "severity": found["severity"],
            "se_severity": np.sqrt(found["var_severity"]),
            "n": np.bincount(data.group, minlength=k),
            "n_subjects": np.bincount(pairs[:, 1], minlength=k),
            "flags": _flags(nested=~overlap),
        },
        index=data.groups.rename("group"),
    )
