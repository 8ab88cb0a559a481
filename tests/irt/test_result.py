import numpy as np
import pandas as pd
import pytest

from ragkit import irt
from tests.irt.conftest import EM, graded, judged, matrix, near, survives_saving


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


@pytest.mark.parametrize("ends", [(-2.2, 0.7), (-1.2, 1.5), (0.1, 0.7)])
def test_a_fit_takes_its_own_scores_back_in_any_range(ends):
    """low + (high - low) is not always high in floating point."""
    scores = irt.simulate(6, 8, likelihood="bernoulli", score_range=ends, seed=1).scores
    result = irt.fit(scores, likelihood="bernoulli", score_range=ends)
    assert result.data.frame()["score"].isin(ends).all()
    assert np.isfinite(result.pointwise()).all()


RANGE = irt.simulate(25, 60, missing=0.1, score_range=(-1, 2), seed=21).scores
JUDGED = judged(20, 40, {"a": -0.5, "b": 0.5}, negative=0.3, seed=2)
FITS = {
    "range": (RANGE, {"score_range": (-1, 2)}),
    "judged": (JUDGED, {"disc": "signed", "group": "group"}),
    "graded": (graded(8, n=40, m=10)[0], {**EM, "score_range": (0, 3)}),
    "draws": (irt.simulate(10, 12, seed=2).scores, {"engine": "nuts", "draws": 4, "warmup": 4}),
}


@pytest.mark.parametrize("name", FITS)
def test_what_is_asked_of_a_fit_agrees_with_it(tmp_path, name):
    scores, options = FITS[name]
    result = irt.fit(scores, **options)
    survives_saving(result, tmp_path)
    scores = result.data.frame()
    assert result.pointwise(scores).sum() == pytest.approx(result.pointwise().sum())
    assert (result.information().sum(axis=1) > 0).all()
    if name != "judged":  # whose table is that of a judge of severity 0
        table = matrix(scores.assign(score=result.predict(scores)))
        assert table.to_numpy() == pytest.approx(result.predict().where(table.notna()), nan_ok=True)
    new = result.score(scores.replace({"subject_id": {result.subjects.index[7]: "new"}}))
    new = new.rename({"new": result.subjects.index[7]}).loc[result.subjects.index]
    near(new, result.subjects, "n", "mean_score")
    if name != "draws":  # which are few
        near(new, result.subjects, "theta", abs=1e-6)
        near(new, result.subjects, "se_theta", rel=0.3)
    link = irt.link(result, result)
    assert (link.slope, link.intercept) == pytest.approx((1, 0), abs=1e-6)
    moved = link.apply(result)
    near(moved.items, result.items, *result.items.drop(columns="flag"), abs=1e-5, nan_ok=True)


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
