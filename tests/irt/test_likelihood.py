import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import UsageError
from ragkit.irt.likelihood import Bernoulli, ContinuousBernoulli, get_likelihood

SMALL = 10.0 ** np.arange(-14, 3, 0.37)
GRID = np.concatenate([[0.0], SMALL, -SMALL, [0.499999, 0.5, 0.500001, -0.5, 700.0, -700.0]])


def exact(eta):
    """A, A' and A'' in 60 digits."""
    with mpmath.workdps(60):
        e = mpmath.mpf(float(eta))
        if e == 0:
            return 0.0, 0.5, 1 / 12
        log_normalizer = mpmath.log(mpmath.expm1(e) / e)
        mean = 1 / (1 - mpmath.exp(-e)) - 1 / e
        variance = 1 / e**2 - 1 / (4 * mpmath.sinh(e / 2) ** 2)
        return float(log_normalizer), float(mean), float(variance)


def test_continuous_bernoulli_agrees_with_mpmath_everywhere():
    log_normalizer, mean, variance = ContinuousBernoulli.terms(GRID.copy())
    want = np.array([exact(eta) for eta in GRID])
    assert np.abs(log_normalizer - want[:, 0]).max() < 1e-12
    assert np.abs(mean - want[:, 1]).max() < 1e-15
    assert np.abs(variance / want[:, 2] - 1).max() < 1e-13


def test_scalars_keep_their_shape():
    assert ContinuousBernoulli.log_normalizer(0.0).shape == ()
    assert float(ContinuousBernoulli.log_normalizer(0.0)) == 0.0
    mean, variance = ContinuousBernoulli.mean_variance(0.0)
    assert (float(mean), float(variance)) == (0.5, 1 / 12)


@given(st.floats(-300, 300))
def test_reflection(eta):
    one = [x[0] for x in ContinuousBernoulli.terms(np.array([eta]))]
    two = [x[0] for x in ContinuousBernoulli.terms(np.array([-eta]))]
    assert one[0] - eta == pytest.approx(two[0], abs=1e-10)  # A(eta) - eta = A(-eta)
    assert one[1] == pytest.approx(1 - two[1], abs=1e-15)
    assert one[2] == pytest.approx(two[2], rel=1e-12)
    assert 0 < one[1] < 1
    assert 0 < one[2] <= 1 / 12


def test_density_integrates_to_one():
    x = (np.arange(20_000) + 0.5) / 20_000
    for eta in (-8.0, -0.3, 0.0, 1.7, 20.0):
        density = np.exp(x * eta - ContinuousBernoulli.log_normalizer(eta))
        assert density.mean() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("eta", [-40.0, -2.0, 0.0, 1e-9, 0.4, 6.0])
@pytest.mark.parametrize("family", [ContinuousBernoulli, Bernoulli])
def test_samples_have_the_mean_and_variance_of_the_family(family, eta):
    rng = np.random.default_rng(1)
    x = family.sample(np.full(200_000, eta), rng)
    mean, variance = family.mean_variance(eta)
    assert x.min() >= 0
    assert x.max() <= 1
    assert abs(x.mean() - mean) < 5 * np.sqrt(variance / len(x)) + 1e-12
    assert x.var() == pytest.approx(float(variance), rel=0.1, abs=1e-12)


def test_bernoulli_by_hand():
    mean, variance = Bernoulli.mean_variance(np.array([0.0, np.log(3)]))
    assert mean == pytest.approx([0.5, 0.75])
    assert variance == pytest.approx([0.25, 0.1875])
    assert Bernoulli.log_normalizer(np.log(3)) == pytest.approx(np.log(4))


def test_unknown_likelihood_is_named():
    with pytest.raises(UsageError, match="cbb"):
        get_likelihood("cbb")
