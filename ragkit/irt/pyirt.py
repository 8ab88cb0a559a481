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
from collections.abc import Callable

import numpy as np
import pandas as pd

from ragkit import display
from ragkit.checks import number, whole
from ragkit.irt.data import Scores
from ragkit.irt.engine import Estimates
from ragkit.irt.marginal import Setup
from ragkit.irt.nuts import log_normalizer


def _register(data: Scores, setup: Setup, on_epoch: Callable[[], None]) -> str:
    """Register the model and guide of a fit with py-irt, and return their name."""
    import pyro
    import pyro.distributions as dist
    import torch
    from py_irt.models.abstract_model import IrtModel
    from torch.distributions import constraints

    likelihood, shared = setup.family.name, setup.shared
    slope = dist.LogNormal if setup.positive else dist.Normal
    kinds = {"theta": (dist.Normal, data.n_subjects), "b": (dist.Normal, data.n_items)}
    if not shared:
        kinds["a"] = (slope, data.n_items)

    def prior(name):
        mean = pyro.sample(f"mu_{name}", dist.Normal(0.0, 1e6))
        return mean, 1 / pyro.sample(f"u_{name}", dist.Gamma(1.0, 1.0))

    def model(subjects, items, obs):
        on_epoch()
        theta_prior, b_prior = prior("theta"), prior("b")
        with pyro.plate("subjects", data.n_subjects):
            theta = pyro.sample("theta", dist.Normal(*theta_prior))
        if not shared:
            mean, sd = prior("a")
        with pyro.plate("items", data.n_items):
            b = pyro.sample("b", dist.Normal(*b_prior))
            if not shared:
                a = pyro.sample("a", slope(mean.clamp(-5, 5), sd.clamp(max=2.0)))
        eta = theta[subjects] - b[items]
        eta = eta if shared else a[items] * eta
        pyro.factor("obs", (obs * eta - log_normalizer(eta, likelihood)).sum())

    def positive(name, start):
        return pyro.param(name, start, constraint=constraints.positive)

    def fitted(name, family, shape=(), sd=1.0):
        where = pyro.param(f"loc_{name}", torch.zeros(shape))
        pyro.sample(name, family(where, positive(f"scale_{name}", torch.full(shape, sd))))

    def guide(subjects, items, obs):
        for name in kinds:
            fitted(f"mu_{name}", dist.Normal, sd=10.0)
            rates = (positive(f"{part}_{name}", torch.tensor(1.0)) for part in ("alpha", "beta"))
            pyro.sample(f"u_{name}", dist.Gamma(*rates))
        for plate, names in {"subjects": ("theta",), "items": ("b", "a")}.items():
            with pyro.plate(plate, kinds[names[0]][1]):
                for name in names if not shared else names[:1]:
                    fitted(name, kinds[name][0], (kinds[name][1],))

    name = f"ragkit-{likelihood}-{'1pl' if shared else '2pl'}-{slope.__name__}"

    @IrtModel.register(name)
    class Model(IrtModel):
        def __init__(self, *, num_items, num_subjects, device="cpu", verbose=False, **inert):
            # `inert` is what the trainer passes to every model: priors, dropout, hidden, vocab_size
            super().__init__(
                num_items=num_items, num_subjects=num_subjects, device=device, verbose=verbose
            )

        def get_model(self):
            return model

        def get_guide(self):
            return guide

        def export(self):
            names = [f"{part}_{site}" for site in kinds for part in ("loc", "scale")]
            return {name: pyro.param(name).detach().numpy().astype(float) for name in names}

    return name


def _train(data: Scores, setup: Setup, *, epochs, lr, dropout, shown) -> dict[str, np.ndarray]:
    """Return the variational means and sds, on py-irt's own scale."""
    import pyro
    import torch
    from py_irt import anchor_utils
    from py_irt.config import IrtConfig
    from py_irt.dataset import Dataset
    from py_irt.training import IrtModelTrainer

    frame = pd.DataFrame(data.x.T.astype(float)).rename(index="s{}".format, columns="i{}".format)
    threads = torch.get_num_threads()
    calls = iter(range(-1, epochs + 1))  # the trainer calls the model once before the first epoch

    def tick():
        if next(calls) >= 0:
            shown.update()

    anchor_utils.console.quiet = True  # in a notebook it writes past stdout
    config = {"priors": "hierarchical", "epochs": epochs, "lr": lr, "dropout": dropout}
    config = IrtConfig(model_type=_register(data, setup, tick), seed=setup.seed, **config)
    try:
        torch.set_num_threads(1)
        pyro.set_rng_seed(setup.seed)
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            # the trainer calls the model once outside of inference, to create its parameters
            warnings.filterwarnings("ignore", "trying to observe", RuntimeWarning)
            dataset = Dataset.from_pandas(frame)
            trainer = IrtModelTrainer(config=config, data_path=None, dataset=dataset, verbose=False)
            trainer.train()
    finally:
        torch.set_num_threads(threads)
    return trainer.last_params


def fit_pyirt(data: Scores, setup: Setup, *, epochs=10_000, lr=0.01, dropout=0.2) -> Estimates:
    """Train as in the LiveRAG paper: learning rate 0.01, 10,000 epochs, dropout 0.2."""
    whole(epochs, "epochs")
    number(lr, "lr", least=0)
    with display.Bar("py-irt", epochs, "epoch") as shown:
        found = _train(data, setup, epochs=epochs, lr=lr, dropout=dropout, shown=shown)
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
    theta, b = (theta - mean) / sd, (b - mean) / sd
    variances = [(x / sd) ** 2 for x in (sd_theta, found["scale_b"])]
    notes = [
        f"dropout={dropout} is recorded but has no effect: py-irt's 2PL does not use it",
        "errors are those of a mean-field approximation, which is too narrow",
        "py-irt stops after its epochs: that the training converged was not tested",
    ]
    info = {"problems": problems, "iterations": epochs, "learning_rate": lr, "dropout": dropout}
    info |= {"prior": "py-irt", "hyperparameters": {}, "notes": notes}  # its priors are its own
    moments = {"theta": (theta, variances[0]), "diff": (b, variances[1])}
    return Estimates({**moments, "alpha": (alpha, sd_alpha**2)}, info)
