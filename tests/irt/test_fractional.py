"""The fractional likelihood: Bernoulli on 0 and 1, and sane where the continuous Bernoulli is not."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from ragkit import irt


def made(seed, *, atoms):
    """Beta scores around the logistic mean; with atoms, rounded to 0, 1/2 and 1."""
    rng = np.random.default_rng(seed)
    theta, b = rng.normal(size=40), rng.normal(0, 1.2, 80)
    mean = expit(1.5 * (theta[:, None] - b))
    x = rng.beta(4 * mean, 4 * (1 - mean))
    if atoms:
        x = np.round(2 * x) / 2
    wide = pd.DataFrame(x, [f"s{i:02d}" for i in range(40)], [f"q{j:02d}" for j in range(80)])
    return wide, theta, b


@pytest.mark.parametrize("atoms", [False, True])
def test_it_recovers_a_logistic_mean_whatever_the_distribution(atoms):
    scores, theta, b = made(1, atoms=atoms)
    fit = irt.fit(scores, likelihood="fractional")
    assert fit.converged
    assert np.corrcoef(fit.subjects["theta"], theta)[0, 1] > 0.97
    assert np.corrcoef(fit.items["diff"], b)[0, 1] > 0.95
    assert fit.items["disc"].between(0.5, 4).all()


def test_every_engine_takes_it():
    scores, _, _ = made(2, atoms=True)
    default = irt.fit(scores, likelihood="fractional")
    py = irt.fit(scores, likelihood="fractional", engine="py-irt", epochs=150)
    assert default.subjects["theta"].corr(py.subjects["theta"], method="spearman") > 0.97
