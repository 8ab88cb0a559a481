from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ragkit import irt
from ragkit.irt.nuts import _chain_summary
from tests.irt.conftest import matrix


@pytest.fixture(scope="module")
def made():
    return irt.simulate(40, 80, seed=31)


@pytest.fixture(scope="module")
def result(made):
    return irt.fit(made.scores)


@pytest.mark.parametrize("seeds", [4, pytest.param(20, marks=pytest.mark.slow)])
def test_recovery_at_the_challenge_size(seeds):
    table = irt.recovery(seeds=range(seeds), simulation={"sessions": 2, "shared": 105})
    mean = table.groupby("parameter").mean()
    assert (table.loc[table["parameter"] == "theta", "r"] >= 0.97).all()
    assert mean.loc["diff", "r"] >= 0.86
    assert mean.loc["log_disc", "r_disc"] >= 0.50
    assert mean["coverage"].between(0.83, 0.95).all()
    assert mean.loc["theta", "bias"] == pytest.approx(0, abs=1e-9)


def test_agreement_of_a_fit_with_itself(result):
    table = irt.agreement({"one": result, "two": result})
    assert table["r"].to_numpy() == pytest.approx(1)
    assert table["tau"].to_numpy() == pytest.approx(1)
    assert (table["shift"] == 0).all()
    assert table["parameter"].tolist() == ["theta", "diff", "disc"]


def test_split_half_finds_the_reliability(made, result):
    table = irt.split_half(made.scores, splits=4)
    reliability = table["reliability"].mean()
    assert reliability == pytest.approx(1 - (result.subjects["se_theta"] ** 2).mean(), abs=0.08)
    r = table["r"].to_numpy()
    assert table["reliability"].to_numpy() == pytest.approx(2 * r / (1 + r))
    halves = irt.split_half(made.scores, splits=2, by="subjects")
    assert halves.groupby("parameter")["r"].mean()["diff"] > 0.7
    again = irt.split_half(made.scores, splits=4)
    pd.testing.assert_frame_equal(table, again)


def test_prior_sensitivity_is_nil_at_factor_one_and_grows(made):
    table = irt.prior_sensitivity(made.scores, factors=(0.5, 1.0))
    near = table[table["factor"] == 1.0]
    assert (near["shift"] < 0.1).all()
    far = table[(table["factor"] == 0.5) & (table["prior_sd"] == "disc_sd")]
    assert far.loc[far["parameter"] == "disc", "shift"].item() > near["shift"].max()


def test_heldout_prefers_the_model_that_made_the_scores():
    two = irt.simulate(60, 80, log_disc_sd=0.8, seed=1).scores
    table = irt.heldout(two, folds=3)
    assert table.loc["1PL", "difference"] == 0
    assert table.loc["2PL", "difference"] > 2 * table.loc["2PL", "se_difference"]
    assert table.loc["2PL", "rmse"] < table.loc["1PL", "rmse"]
    assert (table["n"] == len(two)).all()
    one = irt.simulate(60, 80, log_disc_sd=0.0, seed=1).scores
    flat = irt.heldout(one, folds=3)
    assert flat.loc["2PL", "difference"] < 2 * flat.loc["2PL", "se_difference"]


def test_what_is_made_of_fits_that_did_not_converge_says_so(made):
    scores, few = made.scores, {"max_iter": 1}
    for options in ({}, few):
        sure = not options
        table = irt.recovery(n_subjects=20, n_items=30, seeds=[1], **options)
        assert (table["converged"] == sure).all()
        assert (irt.split_half(scores, splits=1, **options)["converged"] == sure).all()
        table = irt.prior_sensitivity(scores, factors=[2.0], **options)
        assert (table["converged"] == sure).all()
    found = irt.heldout(scores, {"all": {}, "one step": few}, folds=2)
    assert found["converged"].tolist() == [True, False]
    found = irt.compare_likelihoods(scores, {"all": {}, "one step": few}, folds=2, splits=1)
    assert found["converged"].tolist()[1:] == [True, False]
    assert not found.loc["one step", "trusted"]


def test_a_fit_that_did_not_converge_is_left_out(result):
    lost = replace(result, info={**result.info, "converged": False, "problems": ["r-hat: more"]})
    kept, sentence = irt.converged({"one": result, "two": lost})
    assert list(kept) == ["one"]
    assert sentence == "Left out, because they did not converge: two (r-hat: more)."
    assert irt.converged({"one": result}) == ({"one": result}, "")


def test_posterior_predictive_knows_its_own_and_sees_atoms(made, result):
    own = irt.posterior_predictive(result, draws=39)
    assert ((own["low"] <= own["observed"]) & (own["observed"] <= own["high"])).all()
    assert own.loc["at_low", "observed"] == 0
    pd.testing.assert_frame_equal(own, irt.posterior_predictive(result, draws=39))
    rounded = made.scores.assign(score=(made.scores["score"] * 2).round() / 2)
    atoms = irt.posterior_predictive(irt.fit(rounded), draws=19)
    assert atoms.loc["at_high", "observed"] > 0.2
    assert atoms.loc["at_high", "high"] < 0.05
    assert atoms.loc["at_high", "p"] == 1 / 20  # the scores' own place among 20


def test_posterior_predictive_of_a_fit_without_errors(made, result):
    items = result.items.assign(se_diff=np.nan, se_disc=np.nan, se_log_disc=np.nan)
    table = irt.posterior_predictive(replace(result, items=items), draws=19)
    assert table.notna().all(axis=None)


def test_posterior_predictive_sees_scores_that_vary_too_little(made, result):
    expected = result.predict(made.scores[["subject_id", "item_id"]])
    halved = made.scores.assign(score=(made.scores["score"] + expected) / 2)
    table = irt.posterior_predictive(irt.fit(halved), draws=19, seed=3)
    assert table.loc["sd", "observed"] < table.loc["sd", "low"]
    assert table.loc["item_total", "observed"] > table.loc["item_total", "high"]
    assert table.loc["mean", "low"] < table.loc["mean", "observed"] < table.loc["mean", "high"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "diff_mean"),
    [
        ({}, 0.0),
        ({"likelihood": "bernoulli"}, 0.0),
        ({"likelihood": "bernoulli"}, -2.0),  # most scores at the top
        ({"disc": "signed"}, 0.0),
        ({"model": "1pl"}, 0.0),
    ],
)
def test_a_true_model_passes_the_posterior_predictive_check_at_its_rate(options, diff_mean):
    """90 % of the intervals hold the observed statistic: within three binomial errors, each.

    Abilities are a plain draw from N(0, 1), which is moved to the scale of `simulate`.
    """
    made = {"likelihood": options.get("likelihood", "cb")}
    made["log_disc_sd"] = 0.0 if options.get("model") else 0.5
    inside = []
    for seed in range(40):
        theta = np.random.default_rng(seed).normal(size=40)  # as `simulate` draws them
        made["diff_mean"] = (diff_mean - theta.mean()) / theta.std()
        made |= {"diff_sd": 1.5 / theta.std(), "log_disc_mean": np.log(theta.std())}
        scores = irt.simulate(40, 60, seed=seed, **made).scores
        table = irt.posterior_predictive(irt.fit(scores, **options), draws=19, seed=seed)
        inside.append((table["low"] <= table["observed"]) & (table["observed"] <= table["high"]))
    share = pd.DataFrame(inside)[["mean", "sd", "item_sd", "subject_sd", "item_total"]].mean()
    assert (share >= 0.9 - 3 * (0.9 * 0.1 / 40) ** 0.5).all(), share
    assert abs(share.mean() - 0.9) < 0.06, share


def test_item_fit_finds_the_item_that_does_not_fit():
    truth = irt.simulate(600, 12, likelihood="bernoulli", diff_sd=1.0, seed=2)
    scores = truth.scores.copy()
    theta = scores["subject_id"].map(truth.subjects["theta"])
    odd = scores["item_id"] == "q05"  # right in the middle of the range only
    scores.loc[odd, "score"] = (theta[odd].abs() < 0.7).astype(float)
    table = irt.item_fit(irt.fit(scores, likelihood="bernoulli"))
    others = table.drop("q05")
    assert table["p"].idxmin() == "q05"
    assert table.loc["q05", "p"] < 1e-6
    assert (others["p"] < 0.05).sum() <= 3
    assert others["infit"].between(0.6, 1.15).all()
    assert (others["outfit"] < 1.3).all()
    assert (others["df"] > 0).all()
    # scores in between have no total-score test
    assert irt.item_fit(irt.fit(irt.simulate(20, 30, seed=1).scores))["s_x2"].isna().all()


def test_sums_of_right_answers_by_hand():
    from ragkit.irt.itemfit import _sums

    assert _sums(np.array([[0.5, 0.2]]))[0] == pytest.approx([0.4, 0.5, 0.1])


def test_q3_finds_two_items_that_share_more_than_ability():
    scores = irt.simulate(200, 15, seed=3).scores
    wide = matrix(scores)
    wide["q04"] = wide["q03"]
    table = irt.q3(irt.fit(wide))
    assert set(table.loc[0, ["one", "two"]]) == {"q03", "q04"}
    assert table.loc[0, "excess"] > 0.5
    assert table["excess"][1:].abs().max() < 0.35
    assert len(table) == 105
    assert len(irt.q3(irt.fit(wide.head(9)))) == 0  # too few subjects


def test_chain_summary_tells_mixed_from_stuck():
    rng = np.random.default_rng(0)
    good = rng.normal(size=(2, 500, 3))
    bad = good + np.array([0, 5])[:, None, None]
    table = _chain_summary({"good": good, "bad": bad})
    assert table["good"]["max_r_hat"] < 1.02
    assert table["good"]["min_ess_bulk"] > 500
    assert table["bad"]["max_r_hat"] > 1.5


def test_linking_two_sessions():
    made = irt.simulate(120, 150, sessions=2, shared=60, seed=5)
    session = made.scores["subject_id"].map(made.subjects["session"])
    scores = made.scores.copy()
    one, two = (irt.fit(scores[session == s]) for s in (1, 2))
    both = irt.fit(scores)
    truth = made.subjects.groupby("session")["theta"].agg(["mean", lambda x: x.std(ddof=0)])
    slope = truth.iloc[1, 1] / truth.iloc[0, 1]
    intercept = (truth.iloc[1, 0] - truth.iloc[0, 0]) / truth.iloc[0, 1]
    link = irt.link(one, two)
    assert link.slope == pytest.approx(slope, abs=max(0.1, 3 * link.se_slope))
    assert link.intercept == pytest.approx(intercept, abs=max(0.1, 3 * link.se_intercept))
    assert len(link.items) == 60
    moved = link.apply(two)
    own = both.subjects["theta"][moved.subjects.index]
    assert np.corrcoef(moved.subjects["theta"], own)[0, 1] > 0.99
    # new subjects on the new scale: the prior of ability moves too
    scored = moved.score(scores[session == 2])
    assert scored["theta"].to_numpy() == pytest.approx(moved.subjects["theta"], abs=1e-6)
    # the same expected scores on the new scale
    assert moved.predict().to_numpy() == pytest.approx(two.predict().to_numpy())
