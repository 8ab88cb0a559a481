from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.irt.likelihood import (
    Bernoulli,
    ContinuousBernoulli,
    Fractional,
    Graded,
    get_likelihood,
)

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
    log_normalizer = ContinuousBernoulli.terms(0.0)[0]
    assert (log_normalizer.shape, float(log_normalizer)) == ((), 0.0)
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
        assert np.exp(ContinuousBernoulli.log_density(eta, x)).mean() == pytest.approx(1, abs=1e-5)


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


def test_a_family_by_hand():
    eta, x = np.log([1.0, 3.0]), np.array([0.0, 1.0])
    assert Bernoulli.terms(eta)[0] == pytest.approx(np.log([2, 4]))
    mean, variance = Bernoulli.mean_variance(eta)
    assert (mean, variance) == (pytest.approx([1 / 2, 3 / 4]), pytest.approx([1 / 4, 3 / 16]))
    assert Bernoulli.log_density(eta, x) == pytest.approx(np.log([1 / 2, 3 / 4]))
    assert Bernoulli.information(eta) == pytest.approx([1 / 4, 3 / 16])
    assert Bernoulli.crps(eta, x) == pytest.approx([1 / 4, 1 / 16])
    assert np.isnan(Fractional.crps(eta, x)).tolist() == [True, True]
    # an item with a missing score: x, and 1 where it is seen
    found = Bernoulli.statistics(np.array([[0, 0.5, np.nan]]))
    assert found.tolist() == [[[0, 0.5, 0], [1, 1, 0]]]
    # an item at two nodes: eta and -A, and their slopes 1 and -A'
    curves, slopes = Bernoulli.curves(eta[None, None])
    assert curves == pytest.approx(np.array([[[0, np.log(3)], [-np.log(2), -np.log(4)]]]))
    assert slopes == pytest.approx(np.array([[[[1, 1]], [[-1 / 2, -3 / 4]]]]))


def test_a_start_is_the_logit_of_the_mean_with_half_a_score_added_at_either_end():
    # (1 * 3 + 1/2) / 4 = 7/8 and (1/2 * 1 + 1/2) / 2 = 1/2
    columns = {"count": np.array([3.0, 1.0]), "mean": np.array([1.0, 0.5])}
    data = SimpleNamespace(per_item=columns.__getitem__)
    for family, scale in ((Bernoulli, 1), (ContinuousBernoulli, 3)):
        intercept, gaps = family.start(data)
        assert intercept == pytest.approx([scale * np.log(7), 0])
        assert gaps.shape == (2, 0)


class Draws:
    """A generator whose uniform numbers are given."""

    def __init__(self, *numbers):
        self.numbers = np.array(numbers)

    def random(self, shape):
        return np.broadcast_to(self.numbers, shape)


@pytest.mark.parametrize("eta", [-30.0, -0.4, 1e-6, 0.4, 2.0, 30.0])
def test_a_draw_inverts_the_distribution(eta):
    u = np.array([0.03, 0.5, 0.9])
    x = ContinuousBernoulli.sample(np.full(3, eta), Draws(*u))
    share = np.expm1(eta * x) / np.expm1(eta)
    assert share == pytest.approx(u if eta > 0 else 1 - u, abs=1e-9)


def test_single_precision_loses_no_digits():
    eta = np.float32([-2.3, 0.1, 7.7])
    for short, long in zip(*map(ContinuousBernoulli.terms, (eta, eta.astype(float))), strict=True):
        assert short.tolist() == long.tolist()
    draws = [ContinuousBernoulli.sample(x, Draws(0.3)).tolist() for x in (eta, eta.astype(float))]
    assert draws[0] == draws[1]


def test_draws_at_the_ends():
    assert ContinuousBernoulli.sample([0, -0.0, 1e-7], Draws(0.3)).tolist() == [0.3] * 3
    # exp(-800) is 0 in floating point, and its logarithm is not finite
    with np.errstate(divide="ignore"):
        ends = ContinuousBernoulli.sample(np.array([800.0, -800.0]), Draws(0.0))
    assert ends.tolist() == [0, 1]
    assert Bernoulli.sample(np.array([0.0, 0.0]), Draws(0.4, 0.6)).tolist() == [1, 0]
    never = Bernoulli.sample(np.array([-1000.0]), Draws(0.0))
    assert (never.tolist(), never.dtype) == ([0], float)


# --- graded -------------------------------------------------------------------------------------

THREE = Graded((1, 3, 5), (1, 5))
QUARTERS = np.log([3.0, 1.0])  # eta of the probabilities 1/4, 1/4, 1/2


def test_mean_density_and_information_of_levels_by_hand():
    mean, variance = THREE.mean_variance(QUARTERS)
    assert (mean, variance) == (pytest.approx(5 / 8), pytest.approx(9 / 16 - 25 / 64))
    assert THREE.mean_variance(np.array([60.0, 50.0]))[1] >= 0
    eta, x = np.stack([QUARTERS, QUARTERS + 60, QUARTERS]), np.array([0, 1, 1])
    assert THREE.log_density(eta, x) == pytest.approx(np.log([1 / 4, 1, 1 / 2]))
    both = THREE.log_density(np.stack([eta, eta]), x)
    assert both == pytest.approx(np.stack([THREE.log_density(eta, x)] * 2))
    # slopes -3/16, 3/16 - 1/4 and 1/4 of the probabilities 1/4, 1/4, 1/2
    want = (9 / 256 + 1 / 256) / (1 / 4) + (1 / 16) / (1 / 2)
    assert THREE.information(QUARTERS) == pytest.approx(want)
    # about 1 at 1/4, 1/2, 1/4: slopes of 3/16 at the ends
    deep = np.tile([QUARTERS, np.log([3, 1 / 3])], (3, 1, 1))
    assert THREE.information(deep) == pytest.approx(np.tile([want, 9 / 32], (3, 1)))


def test_probabilities_of_levels_keep_their_digits_far_out():
    # exp(-60) - exp(-61), which a difference of logistics next to 1 would lose
    log_p = THREE.log_probabilities(np.array([60.0, 59.0]))
    want = [-60, -59 + np.log(1 - np.exp(-1)), 0]
    assert log_p == pytest.approx(want, abs=1e-9)
    assert np.isfinite(THREE.log_probabilities(np.array([2.0, 2.0]))).all()


def test_crps_of_levels_by_hand():
    # F is 1/4 up to 1/2 and 1/2 beyond: at the score 1/2, 1/2 of 1/16 and 1/2 of 1/4
    eta = np.stack([QUARTERS, [50.0, -50.0]])  # the second is sure: the absolute error
    assert THREE.crps(eta, np.array([0.5, 0.8])) == pytest.approx([5 / 32, 0.3])


def test_curves_of_levels_and_their_slopes_by_differences():
    eta, h = np.array([[[1.0, 0.3], [-0.2, 0.1], [-2.0, -0.4]]]), 1e-6  # an item, 2 nodes
    family = Graded((0, 1, 2, 3), (0, 3))
    curves, slopes = family.curves(eta)
    want = family.log_probabilities(np.moveaxis(eta, 1, -1))
    assert curves == pytest.approx(np.moveaxis(want, -1, 1))
    for k in range(3):
        move = h * np.eye(3)[k][:, None]
        up, down = (family.curves(eta + sign * move)[0] for sign in (1, -1))
        assert slopes[:, :, k] == pytest.approx((up - down) / (2 * h), abs=1e-8)


def test_a_draw_is_the_level_that_a_uniform_number_falls_in():
    def drawn(*u, eta=QUARTERS):
        source = SimpleNamespace(random=lambda shape: np.reshape(u, shape))
        return THREE.sample(np.broadcast_to(eta, (len(u) // 2, 2, 2)), source).ravel().tolist()

    assert drawn(0.2, 0.3, 0.49, 0.51, 0.99, 0.01) == [0, 0.5, 0.5, 1, 1, 0]
    edges = np.exp(THREE.log_probabilities(QUARTERS)).cumsum()[:2]
    assert drawn(*edges) == [0, 0.5]
    # a sure thing beside another one
    assert drawn(0.2, 0.2, 0.7, 0.7, eta=[[50, -50], [50, 40]]) == [0.5, 1, 0.5, 1]
    assert drawn(1.1, 0.2) == [1, 0]  # probabilities may add up to less by rounding


def test_statistics_and_starts_of_levels_by_hand():
    x = np.full((3, 100), np.nan)
    x[0, :4], x[1, 5:7], x[2] = [0, 0, 0.5, 1], 1, np.repeat([0, 1], 50)
    found = THREE.statistics(x)
    assert found[0, :, :5].tolist() == [[1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0]]
    assert found.sum(2).tolist() == [[2, 1, 1], [0, 0, 2], [50, 0, 50]]
    level, gap = THREE.start(SimpleNamespace(x=x))
    # logits of the shares at or above a level, 1/2 added to each count: 3 to 5/2 and 3/2 to 4
    above = np.log([[3 / 2.5, 1.5 / 4], [3 / 0.5, 2.5 / 1], [51 / 50.5, 50.5 / 51]])
    assert level == pytest.approx(above.mean(1))
    gaps = above[:, 0] - above[:, 1]
    assert gap[:, 0] == pytest.approx(np.log([gaps[0], gaps[1], 0.05]))  # at least 0.05


def test_levels_are_ascending_and_scores_are_among_them():
    assert THREE.levels.tolist() == [0, 0.5, 1]
    assert (THREE.score_range, THREE.features, THREE.thresholds) == ((1, 5), 3, 2)
    assert THREE.categories([0.5 + 1e-7, 1]).tolist() == [1, 2]
    assert Graded(np.linspace(1, 5, 20), (1, 5)).features == 20
    assert get_likelihood("graded", (0, 0.5, 1)).levels.tolist() == [0, 0.5, 1]
    assert get_likelihood("graded", (1, 5), (1, 5)).levels.tolist() == [0, 1]
