import numpy as np
import pandas as pd
import pytest

from ragkit import irt
from tests.irt.conftest import EM, graded, judged, survives_saving


@pytest.fixture(scope="module")
def made():
    return irt.simulate(25, 60, missing=0.1, score_range=(-1, 2), seed=21)


@pytest.fixture(scope="module")
def result(made):
    return irt.fit(made.scores, score_range=(-1, 2))


def test_a_curve_passes_the_middle_at_the_difficulty(result):
    item = result.items.iloc[3]
    curve = result.characteristic_curves(item["diff"])
    assert curve.iloc[0, 3] == pytest.approx(0.5)  # the middle of [-1, 2]
    curves = result.characteristic_curves()
    assert curves.shape == (121, 60)
    assert (curves.diff().dropna() > 0).all().all()
    assert curves.to_numpy().min() > -1
    assert curves.to_numpy().max() < 2


def test_information_by_hand(result):
    item = result.items.iloc[0]
    value = result.information([item["diff"]]).iloc[0, 0]
    assert value == pytest.approx(item["disc"] ** 2 / 12)  # the variance at eta = 0
    test = result.information().sum(axis=1)
    assert test.idxmax() == pytest.approx(result.items["diff"].mean(), abs=2)


def test_prediction_by_hand(result, made):
    cells = made.scores.head(3)
    one = cells.iloc[0]
    item, theta = result.items.loc[one["item_id"]], result.subjects["theta"][one["subject_id"]]
    eta = item["disc"] * (theta - item["diff"])
    mean = 1 / (1 - np.exp(-eta)) - 1 / eta
    assert result.predict(cells).iloc[0] == pytest.approx(-1 + 3 * mean)
    table = result.predict()
    assert table.loc[one["subject_id"], one["item_id"]] == pytest.approx(-1 + 3 * mean)


def test_log_likelihood_is_the_sum_of_its_points(result, made):
    assert result.pointwise().sum() == pytest.approx(result.pointwise(made.scores).sum())


@pytest.mark.parametrize("ends", [(-2.2, 0.7), (-1.2, 1.5), (0.1, 0.7)])
def test_a_fit_takes_its_own_scores_back_in_any_range(ends):
    """low + (high - low) is not always high in floating point."""
    scores = irt.simulate(6, 8, likelihood="bernoulli", score_range=ends, seed=1).scores
    result = irt.fit(scores, likelihood="bernoulli", score_range=ends)
    assert result.data.frame()["score"].isin(ends).all()
    assert np.isfinite(result.pointwise()).all()


def test_a_new_subject_with_known_scores(result, made):
    old = made.scores["subject_id"] == "s07"
    new = made.scores[old].assign(subject_id="new")
    scored = result.score(new)
    want = result.subjects.loc["s07"]
    assert scored["theta"]["new"] == pytest.approx(want["theta"], abs=1e-6)
    assert scored["se_theta"]["new"] == pytest.approx(want["se_theta"], rel=0.3)
    assert scored["n"]["new"] == old.sum()


SAVED = {
    "signed and judged": lambda: irt.fit(
        judged(20, 40, {"a": -0.5, "b": 0.5}, negative=0.3, seed=2), disc="signed", group="group"
    ),
    "graded": lambda: irt.fit(graded(8, n=40, m=10)[0], **EM, score_range=(0, 3)),
    "draws": lambda: irt.fit(irt.simulate(10, 12, seed=2).scores, engine="nuts", draws=4, warmup=4),
}


@pytest.mark.parametrize("make", SAVED.values(), ids=SAVED)
def test_saving_and_loading(make, tmp_path):
    survives_saving(make(), tmp_path)


def test_html_says_what_it_is(result):
    page = result._repr_html_()
    assert "2pl, cb likelihood, positive disc" in page
    assert "converged after" in page
    assert "reliability of ability" in page
    assert "font-weight: bold" in page  # the ablest subject
    assert "<code>.characteristic_curves()</code>" in page
    assert "reliability 0.8" in repr(result)
    assert repr(result).startswith("<IRTResult 2pl cb by em, 25 subjects x 60 items")


def test_others_say_what_they_are():
    made = irt.simulate(30, 20, seed=1)
    assert repr(made) == "<Simulation of 30 subjects x 20 items, 600 scores>"
    form = irt.short_form(made.scores, 5)
    assert "5 of 20" in form._repr_html_()
    assert "30 subjects, 0.0% of scores missing" in form._repr_html_()
    fits = [irt.fit(irt.simulate(30, 20, seed=seed).scores) for seed in (1, 2)]
    link = irt.link(*fits)
    assert repr(link).startswith("<Link: theta = ")
    assert f"{link.slope:.3f} (error {link.se_slope:.3f})" in link._repr_html_()


def test_simulation_has_the_challenge_design():
    made = irt.simulate(sessions=2, shared=105, seed=0)
    assert len(made.scores) == 20_000
    sessions = made.subjects["session"]
    asked = {
        s: set(made.scores["item_id"][made.scores["subject_id"].map(sessions) == s]) for s in (1, 2)
    }
    assert [len(asked[s]) for s in (1, 2)] == [500, 500]
    assert len(asked[1] & asked[2]) == 105
    assert made.subjects["theta"].mean() == pytest.approx(0, abs=1e-12)
    assert made.subjects["theta"].std(ddof=0) == pytest.approx(1)
    pd.testing.assert_frame_equal(made.scores, irt.simulate(sessions=2, shared=105, seed=0).scores)
