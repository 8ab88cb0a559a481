"""The reference engine: the whole posterior by the No-U-Turn Sampler, as a plain Pyro model.

Model and priors are those of the default engine (`ragkit.irt.engine`). Draws are moved to the
scale on which each draw's abilities have mean 0 and sd 1, and turned so that ability rises with the
mean score.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ragkit import display
from ragkit.checks import whole
from ragkit.irt.data import Scores
from ragkit.irt.engine import Estimates, climb, start
from ragkit.irt.marginal import DISC_END, SEVERITY_SD, Model, Setup

_DEPTH = 6  # of a trajectory's tree: at most 63 steps
_R_HAT, _ESS = 1.05, 100  # what every parameter has to reach


def log_normalizer(eta, likelihood: str):
    """Return A(eta) of a natural likelihood for a torch tensor, stable near and far from 0."""
    import torch

    if likelihood != "cb":
        return torch.nn.functional.softplus(eta)
    small = eta.abs() < 0.3
    size = torch.where(small, torch.ones_like(eta), eta.abs())
    far = 0.5 * size + torch.log(-torch.expm1(-size) / size)
    square = torch.where(small, 0.25 * eta * eta, torch.zeros_like(eta))
    near = square * (1 / 6 + square * (-1 / 180 + square / 2835))
    return 0.5 * eta + torch.where(small, near, far)


def _model(data: Scores, setup: Setup):
    """Return the Pyro model; items are sampled as standard normals around their prior."""
    import pyro
    import pyro.distributions as dist
    import torch

    subject, item, x = (torch.as_tensor(np.array(values)) for values in data.cells())
    subject, item = subject.long(), item.long()
    group = None if data.group is None else torch.as_tensor(data.group).long()
    prior, many = setup.prior, 1 if setup.shared else data.n_items

    def normals(name: str, size: int, mean: float = 0.0, sd: float = 1.0):
        zero = torch.zeros(size, dtype=torch.float64)
        return mean + sd * pyro.sample(name, dist.Normal(zero, 1.0).to_event(1))

    def model():
        theta = normals("theta", data.n_subjects)
        place = normals("place", data.n_items, prior.diff_mean, prior.diff_sd)
        alpha = normals("alpha", many, prior.disc_mean, prior.disc_sd)
        a = (alpha.exp() if setup.positive else alpha).expand(data.n_items)
        pyro.factor("end", -0.25 * (a[:many] / DISC_END).pow(4).sum())
        ability = theta[subject]
        if group is not None:
            severity = normals("severity", data.n_groups, 0.0, SEVERITY_SD)
            ability = ability - (severity - severity.mean())[group]
        if setup.on_difficulty:
            eta = a[item] * (ability - place[item])
        else:
            eta = a[item] * ability + place[item]
        pyro.factor("scores", (x * eta - log_normalizer(eta, setup.family.name)).sum())

    return model


def _start(data: Scores, setup: Setup, rng: np.random.Generator) -> dict:
    """Return the default engine's optimum, spread by a normal error of 0.3 in prior sds."""
    import torch

    model = Model(data, setup)
    optimum = climb(model, start(model), tol=1e-3, max_iter=200)
    alpha, d, _, severity = model.unpack(optimum.vector)
    place = -d / model.slopes(alpha) if model.on_difficulty else d
    prior = setup.prior
    sites = {
        "theta": optimum.abilities.mean,
        "place": (place - prior.diff_mean) / prior.diff_sd,
        "alpha": ((alpha[:1] if setup.shared else alpha) - prior.disc_mean) / prior.disc_sd,
    }
    if data.n_groups:
        sites["severity"] = severity / SEVERITY_SD
    return {
        name: torch.as_tensor(value + 0.3 * rng.normal(size=value.shape))
        for name, value in sites.items()
    }


def _sample(data: Scores, setup: Setup, draws: int, warmup: int, chains: int, shown):
    """Return the draws of every site, chains x draws x size, and the number of divergences."""
    import pyro
    import torch
    from pyro.infer.mcmc import MCMC, NUTS

    threads, kept, divergences = torch.get_num_threads(), [], 0
    try:
        torch.set_num_threads(1)
        for chain in range(chains):
            pyro.clear_param_store()
            pyro.set_rng_seed(setup.seed * 1000 + chain)
            begin = _start(data, setup, np.random.default_rng([setup.seed, chain]))
            model = _model(data, setup)
            kernel = NUTS(model, max_tree_depth=_DEPTH, jit_compile=True, ignore_jit_warnings=True)
            told = {"disable_progbar": True, "hook_fn": lambda *_: shown.update()}
            sampler = MCMC(kernel, draws, warmup, initial_params=begin, **told)
            sampler.run()
            kept.append({name: value.numpy() for name, value in sampler.get_samples().items()})
            divergences += len(sampler.diagnostics()["divergences"]["chain 0"])
    finally:
        torch.set_num_threads(threads)
    return {name: np.stack([chain[name] for chain in kept]) for name in kept[0]}, divergences


def _scaled(data: Scores, setup: Setup, found: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return draws of theta, diff, alpha and severity on the reported scale."""
    prior, positive, theta = setup.prior, setup.positive, found["theta"]
    place = prior.diff_mean + prior.diff_sd * found["place"]
    alpha = np.broadcast_to(prior.disc_mean + prior.disc_sd * found["alpha"], place.shape)
    b = place if setup.on_difficulty else -place / (np.exp(alpha) if positive else alpha)
    score = data.per_subject("mean")
    turned = (theta * (score - score.mean())).sum(-1, keepdims=True) < 0
    sign = np.where(turned & (not positive), -1.0, 1.0)
    middle, unit = theta.mean(-1, keepdims=True), theta.std(-1, keepdims=True)
    scaled = {
        "theta": sign * (theta - middle) / unit,
        "diff": sign * (b - middle) / unit,
        "alpha": alpha + np.log(unit) if positive else sign * alpha * unit,
    }
    if data.n_groups:
        severity = SEVERITY_SD * (found["severity"] - found["severity"].mean(-1, keepdims=True))
        scaled["severity"] = sign * severity / unit
    return scaled


def fit_nuts(data: Scores, setup: Setup, *, draws=500, warmup=300, chains=2) -> Estimates:
    """Draw from the posterior and return its means and variances.

    Converged means no divergence, every r-hat below 1.05, which takes two chains to compute, and
    every effective sample size (of the bulk) at least 100.
    """
    whole(draws, "draws", least=4)  # r-hat and effective sizes need as many
    whole(warmup, "warmup")
    whole(chains, "chains")
    with display.Bar("NUTS", chains * (warmup + draws)) as shown:
        found, divergences = _sample(data, setup, draws, warmup, chains, shown)
    scaled = _scaled(data, setup, found)
    moments = {name: (v.mean((0, 1)), v.var((0, 1))) for name, v in scaled.items()}
    alpha = scaled.pop("alpha")
    kept = {**scaled, "disc": np.exp(alpha) if setup.positive else alpha}
    summary = _chain_summary(kept)
    worst = max(row["max_r_hat"] for row in summary.values())
    fewest = min(row["min_ess_bulk"] for row in summary.values())
    problems = []
    if divergences:
        problems.append(f"{divergences} divergent transitions: raise warmup")
    if chains < 2:
        problems.append("one chain cannot show convergence: use chains=2 or more")
    elif not worst < _R_HAT:
        problems.append(f"the largest r-hat is {worst:.2f}: raise draws and warmup")
    if not fewest >= _ESS:
        problems.append(f"the smallest effective sample size is {fewest:.0f}: raise draws")
    info = {"problems": problems, "iterations": chains * (draws + warmup)}
    info |= {"divergences": divergences, "chains": summary}
    return Estimates(moments, info, draws=kept)


def _chain_summary(draws: Mapping[str, np.ndarray]) -> dict[str, dict[str, float]]:
    """Return the worst r-hat and the smallest effective sample sizes of each kind of parameter.

    `draws` holds arrays of shape (chains, draws, parameters).
    """
    az = arviz_quiet()
    data = az.convert_to_dataset(dict(draws))
    found = {
        "max_r_hat": az.rhat(data).max(),
        "min_ess_bulk": az.ess(data, method="bulk").min(),
        "min_ess_tail": az.ess(data, method="tail").min(),
    }
    return {name: {what: float(row[name]) for what, row in found.items()} for name in draws}


def arviz_quiet():
    """Return arviz, without the warning that it prints when it is imported."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # printed on every import of 0.23
        import arviz
    return arviz
