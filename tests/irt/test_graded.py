"""The graded response model: against the Bernoulli 2PL, published fits, and its own derivatives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from ragkit import irt
from tests.irt.conftest import EM, graded, log_probabilities, near

# --- probabilities ------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(
    theta=st.floats(-5, 5),
    a=st.floats(0.1, 5),
    b=st.lists(st.floats(-4, 4), min_size=1, max_size=6, unique=True),
)
def test_probabilities_are_differences_of_logistics(theta, a, b):
    b = np.sort(b)
    p = np.exp(log_probabilities(np.array(theta), np.array(a), b))
    above = np.concatenate([[1], expit(a * (theta - b)), [0]])
    assert p == pytest.approx(above[:-1] - above[1:], abs=1e-12)
    assert p.sum() == pytest.approx(1, abs=1e-12)


# --- the fit ------------------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", ["fractional", "graded"])
@pytest.mark.parametrize("model", ["1pl", "2pl"])
def test_right_or_wrong_is_the_bernoulli_model(model, likelihood):
    scores = irt.simulate(400, 8, likelihood="bernoulli", diff_sd=1.0, seed=4).scores
    one, two = (irt.fit(scores, model, name, prior="none") for name in ("bernoulli", likelihood))
    assert two.info["log_likelihood"] == pytest.approx(one.info["log_likelihood"], abs=1e-6)
    near(two.items, one.items, "diff", "disc", "se_diff", "se_disc", abs=1e-6)
    near(two.subjects, one.subjects, "theta", "se_theta", abs=1e-6)
    if likelihood == "graded":
        assert two.items["threshold_1"].to_numpy() == pytest.approx(two.items["diff"].to_numpy())


def test_recovery_and_coverage():
    """Maximum likelihood of 600 subjects; 90 % intervals, ten simulations of twelve items.

    The standard error of a coverage of .9 over 120 intervals is .027; the bound is three of them.
    """
    inside = {"diff": [], "log_disc": [], "theta": []}
    for seed in range(10):
        frame, theta, a, b = graded(seed, n=600)
        result = irt.fit(frame, **EM, score_range=(0, 3), prior="none")
        assert result.converged
        items = result.items
        truth = {"diff": b.mean(1), "log_disc": np.log(a)}
        for name, true in truth.items():
            inside[name] += list(abs(items[name] - true) <= 1.645 * items[f"se_{name}"])
        subjects = result.subjects
        inside["theta"] += list(abs(subjects["theta"] - theta) <= 1.645 * subjects["se_theta"])
    for name in ("diff", "log_disc"):
        assert np.mean(inside[name]) == pytest.approx(0.9, abs=0.08)
    # its intervals are Bayes's, and 6,000 of them
    assert np.mean(inside["theta"]) == pytest.approx(0.9, abs=0.02)
    assert np.corrcoef(items["diff"], b.mean(1))[0, 1] > 0.99
    thresholds = items.filter(like="threshold_").to_numpy()
    assert np.corrcoef(thresholds.ravel(), b.ravel())[0, 1] > 0.99


def test_a_prior_bears_flat_items_and_levels_never_given():
    frame, theta, *_ = graded(5, n=60, m=20)
    frame["q03"] = 3.0
    frame["q04"] = 0.0
    frame["q05"] = frame["q05"].replace({1.0: 0.0})
    result = irt.fit(frame, **EM, score_range=(0, 3))
    assert result.converged
    numbers = result.items.drop(columns="flag")
    assert np.isfinite(numbers).all(axis=None)
    thresholds = result.items.filter(like="threshold_").to_numpy()
    assert (np.diff(thresholds, axis=1) > 0).all()
    assert thresholds.mean(1) == pytest.approx(result.items["diff"].to_numpy())
    assert result.items["diff"].idxmin() == "q03"
    assert result.items["diff"].idxmax() == "q04"
    assert result.items.loc["q03", "se_log_disc"] > result.items.loc["q06", "se_log_disc"]
    assert np.corrcoef(result.subjects["theta"], theta)[0, 1] > 0.9


# --- the result ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result():
    return irt.fit(graded(8, n=80, m=10)[0], **EM, score_range=(0, 3))


def test_expected_scores_are_those_of_the_levels(result):
    row = result.items.iloc[0]
    thresholds = row.filter(like="threshold_").to_numpy(float)
    curve = result.characteristic_curves(np.array([0.3]))
    # E x = sum over thresholds of P(x above it), the levels being 0, 1, 2, 3
    assert curve.iloc[0, 0] == pytest.approx(expit(row["disc"] * (0.3 - thresholds)).sum())
    frame = result.data.frame()
    residual = (result.predict(frame) - frame["score"]).mean()
    assert residual == pytest.approx(0, abs=0.05)


def test_graded_scores_pass_their_own_check(result):
    checks = irt.posterior_predictive(result, draws=59)
    assert checks["p"].between(0.01, 0.99).all()


def test_a_declared_level_that_nobody_got_is_borne():
    frame, *_ = graded(10, n=60, m=8, levels=3)
    result = irt.fit(frame, **EM, score_range=(0, 3), levels=(0, 1, 2, 3))
    assert result.converged
    assert result.info["levels"] == [0.0, 1.0, 2.0, 3.0]
    assert np.isfinite(result.items.drop(columns="flag")).all(axis=None)


def test_a_signed_graded_item_that_runs_backwards():
    frame, theta, *_ = graded(12, n=80, m=15)
    frame["q04"] = 3 - frame["q04"]
    result = irt.fit(frame, **EM, disc="signed", score_range=(0, 3))
    assert result.converged
    assert result.items.index[result.items["flag"] == "negative"].tolist() == ["q04"]
    assert np.corrcoef(result.subjects["theta"], theta)[0, 1] > 0.9
