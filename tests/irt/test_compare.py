"""Readings compared on the scale of the scores."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad

from ragkit import irt
from ragkit.irt.compare import OWN, _own
from ragkit.irt.likelihood import ContinuousBernoulli
from tests.irt.conftest import EM, graded, long


@pytest.mark.parametrize("eta", [-300.0, -9.0, -7.9, -1e-9, 0.0, 0.3, 7.9, 8.1, 40.0])
def test_crps_of_the_continuous_bernoulli_is_its_integral(eta):
    def distribution(t):
        return t if abs(eta) < 1e-8 else np.expm1(eta * t) / np.expm1(eta)

    for x in (0.0, 0.2, 0.97, 1.0):
        edge = [1 - 3 / abs(eta), 3 / abs(eta)] if abs(eta) > 10 else None
        below = quad(lambda t: distribution(t) ** 2, 0, x, points=edge, limit=200)[0]
        above = quad(lambda t: (1 - distribution(t)) ** 2, x, 1, points=edge, limit=200)[0]
        got = ContinuousBernoulli.crps(np.array([eta]), np.array([x]))
        assert got[0] == pytest.approx(below + above, abs=1e-8)


def test_crps_of_right_or_wrong_is_briers():
    scores = irt.simulate(10, 12, likelihood="bernoulli", seed=1).scores
    result = irt.fit(scores, likelihood="bernoulli")
    want = (result.predict(scores) - scores["score"]) ** 2
    assert irt.crps(result, scores).to_numpy() == pytest.approx(want.to_numpy())
    levels = irt.fit(scores, **EM)
    want = (levels.predict(scores) - scores["score"]) ** 2
    assert irt.crps(levels, scores).to_numpy() == pytest.approx(want.to_numpy())


def test_crps_is_in_units_of_the_score():
    one = irt.simulate(10, 12, seed=1).scores
    wide = one.assign(score=4 * one["score"] - 2)
    a, b = irt.fit(one), irt.fit(wide, score_range=(-2, 2))
    assert irt.crps(b, wide).to_numpy() == pytest.approx(4 * irt.crps(a, one).to_numpy())
    assert irt.crps(irt.fit(one, likelihood="fractional"), one).isna().all()


def test_an_items_own_scores_by_hand():
    train = pd.DataFrame({"item_id": ["a", "a", "b"], "score": [0.0, 1.0, 0.5]})
    test = pd.DataFrame({"item_id": ["b", "a"], "score": [1.0, 1.0]})
    found = _own(train, test)
    assert found[OWN, "squared"].tolist() == [0.25, 0.25]
    # half of the distribution at 0, half at 1: E|y - 1| - E|y - y'| / 2 = 1/2 - 1/4
    assert found[OWN, "crps"].tolist() == [0.5, 0.25]


def test_nearest_moves_scores_and_leaves_the_frame():
    scores = pd.DataFrame({"score": [0.0, 0.24, 0.25, 0.26, 0.9]})
    assert irt.nearest(scores, [1, 0, 0.5])["score"].tolist() == [0, 0, 0, 0.5, 1]
    assert scores["score"].tolist() == [0.0, 0.24, 0.25, 0.26, 0.9]


def test_the_likelihood_that_generated_the_scores_predicts_them_best():
    scores = long(graded(1, n=30, m=16)[0])
    table = irt.compare_likelihoods(scores, score_range=(0, 3), folds=3, splits=1)
    assert table.index.tolist() == [OWN, "continuous Bernoulli", "fractional", "graded"]
    assert table["crps"].idxmin() == "graded"
    row = table.loc["graded"]
    assert row["crps_difference"] < -2 * row["se_crps_difference"]
    assert row["crps"] < table.loc[OWN, "crps"]
    assert np.isnan(table.loc["fractional", "crps"])
    assert table.loc["continuous Bernoulli", "mse_difference"] == 0
    assert (table["n"] == 480).all()
    assert row["theta_reliability"] > 0.7


def test_scores_of_many_values_are_fitted_in_levels():
    scores = irt.simulate(16, 14, seed=2).scores
    likelihoods = {"continuous": {}, "graded": EM}
    levels = [0, 0.5, 1]
    table = irt.compare_likelihoods(scores, likelihoods, levels=levels, folds=2, splits=1)
    # made by the continuous Bernoulli, which levels can only approach
    assert table.loc["graded", "crps_difference"] > 0
