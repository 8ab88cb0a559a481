"""The LiveRAG paper's route (section 3.2): stochastic variational inference by py-irt.

py-irt has no continuous likelihood, so a model is registered with it, through its own registry:
hierarchical priors and a mean-field guide like its 2PL, the continuous Bernoulli in natural form.
`disc="positive"` has a log-normal discrimination (py-irt since 0.7.1), `disc="signed"` a normal
one (py-irt up to 0.7.0, the likely origin of the negative values that the paper prints).

`dropout` is accepted, passed on and recorded because the paper names it, but py-irt's 2PL never
reads it. py-irt does not use its own seed; Pyro is seeded here.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from functools import cache

import numpy as np
import pandas as pd

from ragkit.irt.data import Scores
from ragkit.irt.em import Estimates, Setup
from ragkit.irt.nuts import log_likelihood


@cache
def _model(irt):
    """Return the generative model of a fit."""
    import pyro
    import pyro.distributions as dist

    from ragkit.irt.nuts import log_normalizer

    def hyper(name):
        mean = pyro.sample(f"mu_{name}", dist.Normal(0.0, 1e6))
        precision = pyro.sample(f"u_{name}", dist.Gamma(1.0, 1.0))
        return mean, 1 / precision

    def model(subjects, items, obs):
        type(irt).on_epoch()
        theta_prior, b_prior = hyper("theta"), hyper("b")
        with pyro.plate("subjects", irt.num_subjects):
            theta = pyro.sample("theta", dist.Normal(*theta_prior))
        if not irt.shared:
            mean, sd = hyper("a")
            mean, sd = mean.clamp(-5, 5), sd.clamp(max=2.0)
        with pyro.plate("items", irt.num_items):
            b = pyro.sample("b", dist.Normal(*b_prior))
            if not irt.shared:
                family = dist.LogNormal if irt.positive else dist.Normal
                a = pyro.sample("a", family(mean, sd))
        eta = theta[subjects] - b[items]
        if not irt.shared:
            eta = a[items] * eta
        pyro.factor("obs", (obs * eta - log_normalizer(eta, irt.likelihood)).sum())

    return model


def _guide(irt):
    """Return the variational family of a fit."""
    import pyro
    import pyro.distributions as dist
    import torch
    from torch.distributions import constraints

    def normal(site, size=None, sd=1.0):
        shape = () if size is None else (size,)
        where = pyro.param(f"loc_{site}", torch.zeros(shape))
        scale = pyro.param(f"scale_{site}", torch.full(shape, sd), constraint=constraints.positive)
        return where, scale

    def hyper(name):
        pyro.sample(f"mu_{name}", dist.Normal(*normal(f"mu_{name}", sd=10.0)))
        shape, rate = (
            pyro.param(f"{part}_{name}", torch.tensor(1.0), constraint=constraints.positive)
            for part in ("alpha", "beta")
        )
        pyro.sample(f"u_{name}", dist.Gamma(shape, rate))

    def guide(subjects, items, obs):
        hyper("theta")
        hyper("b")
        if not irt.shared:
            hyper("a")
        with pyro.plate("subjects", irt.num_subjects):
            pyro.sample("theta", dist.Normal(*normal("theta", irt.num_subjects)))
        with pyro.plate("items", irt.num_items):
            pyro.sample("b", dist.Normal(*normal("b", irt.num_items)))
            if not irt.shared:
                family = dist.LogNormal if irt.positive else dist.Normal
                pyro.sample("a", family(*normal("a", irt.num_items)))

    return guide


def _base() -> type:
    """Define the model; its class attributes are set by the subclass that is registered."""
    import pyro
    from py_irt.models.abstract_model import IrtModel

    class ContinuousIrt(IrtModel):
        likelihood = "cb"
        positive = True
        shared = False
        on_epoch = staticmethod(lambda: None)

        def __init__(self, *, num_items, num_subjects, device="cpu", verbose=False, **inert):
            # `inert` is what the trainer passes to every model: priors, dropout, hidden, vocab_size
            super().__init__(
                num_items=num_items, num_subjects=num_subjects, device=device, verbose=verbose
            )

        def get_model(self):
            return _model(self)

        def get_guide(self):
            return _guide(self)

        def export(self):
            sites = ["theta", "b"] + ([] if self.shared else ["a"])
            return {
                f"{part}_{site}": pyro.param(f"{part}_{site}").detach().numpy().copy()
                for site in sites
                for part in ("loc", "scale")
            }

    return ContinuousIrt


def _train(data: Scores, setup: Setup, *, epochs, lr, dropout, progress) -> dict[str, np.ndarray]:
    """Return the variational means and sds, on py-irt's own scale."""
    import pyro
    import torch
    from py_irt.config import IrtConfig
    from py_irt.dataset import Dataset
    from py_irt.models.abstract_model import IrtModel
    from py_irt.training import IrtModelTrainer
    from tqdm import tqdm

    subject, item, x = data.cells()
    wide = np.full((data.n_subjects, data.n_items), np.nan)
    wide[subject, item] = x
    frame = pd.DataFrame(
        wide,
        index=[f"s{i}" for i in range(data.n_subjects)],
        columns=[f"i{j}" for j in range(data.n_items)],
    )
    threads = torch.get_num_threads()
    bar = tqdm(total=epochs, desc="py-irt", unit="epoch", disable=not progress, mininterval=1)
    calls = iter(range(-1, epochs + 1))  # the trainer calls the model once before the first epoch

    def tick():
        if next(calls) >= 0:
            bar.update()

    likelihood, shared, positive = setup.family.name, setup.shared, setup.positive
    name = f"ragkit-{likelihood}-{'1pl' if shared else '2pl'}-{'log' if positive else 'signed'}"

    @IrtModel.register(name)
    class Model(_base()):
        pass

    Model.likelihood, Model.positive, Model.shared = likelihood, positive, shared
    Model.on_epoch = staticmethod(tick)
    config = IrtConfig(
        model_type=name,
        priors="hierarchical",
        epochs=epochs,
        lr=lr,
        dropout=dropout,
        seed=setup.seed,
    )
    try:
        torch.set_num_threads(1)
        pyro.set_rng_seed(setup.seed)
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(), bar:
            # the trainer calls the model once outside of inference, to create its parameters
            warnings.filterwarnings("ignore", "trying to observe", RuntimeWarning)
            dataset = Dataset.from_pandas(frame)
            trainer = IrtModelTrainer(config=config, data_path=None, dataset=dataset, verbose=False)
            trainer.train()
    finally:
        torch.set_num_threads(threads)
    names = ("loc_", "scale_")
    params = trainer.last_params.items()
    return {key: value.astype(float) for key, value in params if key.startswith(names)}


def fit_pyirt(
    data: Scores, setup: Setup, *, epochs: int, lr: float, dropout: float, progress: bool
) -> Estimates:
    """Train as in the LiveRAG paper: learning rate 0.01, 10,000 epochs, dropout 0.2."""
    found = _train(data, setup, epochs=epochs, lr=lr, dropout=dropout, progress=progress)
    shared, positive, m = setup.shared, setup.positive, data.n_items
    theta, b, sd_theta = found["loc_theta"], found["loc_b"], found["scale_theta"]
    if shared:
        alpha, sd_alpha = np.full(m, 0.0 if positive else 1.0), np.full(m, np.nan)
    else:
        alpha, sd_alpha = found["loc_a"], found["scale_a"]
    score = data.per_subject("mean")
    problems = []
    turned = np.sum((theta - theta.mean()) * (score - score.mean())) < 0
    if turned and positive:
        problems.append("abilities run against the mean scores: try another seed")
    elif turned:
        theta, b, alpha = -theta, -b, -alpha
    if not np.isfinite(theta).all():
        problems.append("the training diverged: lower lr")
    mean = theta.mean()
    sd = float(np.sqrt(np.mean((theta - mean) ** 2 + sd_theta**2)))
    alpha, sd_alpha = (alpha + np.log(sd), sd_alpha) if positive else (alpha * sd, sd_alpha * sd)
    at = {"theta": (theta - mean) / sd, "b": (b - mean) / sd, "alpha": alpha}
    return Estimates(
        **at,
        var_theta=(sd_theta / sd) ** 2,
        var_b=(found["scale_b"] / sd) ** 2,
        var_alpha=sd_alpha**2,
        info={
            "converged": not problems,
            "problems": problems,
            "iterations": epochs,
            "log_likelihood": log_likelihood(data, setup, at),
            "hyperparameters": {},
            "learning_rate": lr,
            "dropout": dropout,
            "notes": [
                f"dropout={dropout} is recorded but has no effect: py-irt's 2PL does not use it",
                "errors are those of a mean-field approximation, which is too narrow",
            ],
        },
    )
