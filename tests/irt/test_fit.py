"""Laws that any fit obeys."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit import irt
from tests.irt.conftest import matrix, near, survives_saving


@pytest.fixture(scope="module", params=[0.1, 0.0], ids=["gaps", "full"])
def made(request):
    return irt.simulate(15, 40, missing=request.param, seed=11)


@pytest.fixture(scope="module")
def result(made):
    return irt.fit(made.scores)


@pytest.mark.parametrize("likelihood", ["cb", "graded"])
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_order_and_names_do_not_matter(likelihood, seed):
    rng, fit = np.random.default_rng(seed), partial(irt.fit, likelihood=likelihood)
    scores = irt.simulate(10, 25, missing=0.1, seed=1).scores
    scores = irt.nearest(scores, np.arange(4) / 3) if likelihood == "graded" else scores
    one, two = fit(scores), fit(scores.sample(frac=1, random_state=seed))
    pd.testing.assert_frame_equal(one.items, two.items)
    pd.testing.assert_frame_equal(one.subjects, two.subjects)
    subjects = dict(zip(one.subjects.index, rng.permutation(one.subjects.index), strict=True))
    items = dict(zip(one.items.index, rng.permutation(one.items.index), strict=True))
    renamed = scores.replace({"subject_id": subjects, "item_id": items})
    two = fit(renamed)
    diff, theta = one.items["diff"].rename(items), one.subjects["theta"].rename(subjects)
    assert two.items["diff"].to_numpy() == pytest.approx(diff[two.items.index], abs=1e-6)
    assert two.subjects["theta"].to_numpy() == pytest.approx(theta[two.subjects.index], abs=1e-6)


@pytest.mark.parametrize("disc", ["positive", "signed"])
@pytest.mark.parametrize("model", ["1pl", "2pl"])
def test_reflecting_the_scores_reflects_the_solution(made, model, disc):
    one = irt.fit(made.scores, model=model, disc=disc)
    turned = made.scores.assign(score=1 - made.scores["score"])
    two = irt.fit(turned, model=model, disc=disc)
    near(two.subjects, -one.subjects[["theta"]], "theta", abs=1e-6)
    near(two.items, -one.items[["diff"]], "diff", abs=1e-6)
    near(two.items, one.items, "disc", "se_diff", abs=1e-6)


def test_a_doubled_subject_pulls_the_items_its_way(made, result):
    best = made.subjects["theta"].idxmax()
    extra = made.scores[made.scores["subject_id"] == best].assign(subject_id="twin")
    doubled = irt.fit(pd.concat([made.scores, extra]))
    assert doubled.subjects["theta"]["twin"] == pytest.approx(doubled.subjects["theta"][best])
    assert doubled.subjects["se_theta"]["twin"] == pytest.approx(
        doubled.subjects["se_theta"][best], rel=1e-6
    )
    seen = extra["item_id"]
    assert doubled.items["se_log_disc"][seen].mean() < result.items["se_log_disc"][seen].mean()
    assert (doubled.items["n"][seen] == result.items["n"][seen] + 1).all()


@pytest.mark.parametrize("likelihood", ["fractional", "bernoulli"])
@pytest.mark.parametrize("model", ["1pl", "2pl"])
@pytest.mark.parametrize("disc", ["positive", "signed"])
def test_constant_items_and_subjects_stay_finite(likelihood, model, disc):
    scores = matrix(irt.simulate(12, 30, seed=0).scores)
    scores["q00"], scores["q01"], scores.loc["s03"], scores.loc["s04"] = 1.0, 0.0, 0.0, 1.0
    scores.loc["s03", "q00"] = scores.loc["s04", "q01"] = np.nan
    if likelihood == "bernoulli":
        scores = scores.round()
    result = irt.fit(scores, likelihood=likelihood, model=model, disc=disc)
    numbers = result.items.drop(columns=["flag", "log_disc", "se_log_disc"])
    assert np.isfinite(numbers.to_numpy(dtype=float)).all()
    assert np.isfinite(result.subjects.drop(columns="flag").to_numpy(dtype=float)).all()
    assert (result.subjects["se_theta"] > 0).all()
    order = result.subjects["theta"].sort_values().index
    assert (order[0], order[-1]) == ("s03", "s04")
    assert result.subjects["flag"]["s03"] == result.items["flag"]["q00"] == "constant"
    assert result.items["diff"]["q00"] < -1 < 1 < result.items["diff"]["q01"]


def named(change):
    """Scores with other ids."""
    return lambda s: s.assign(**{name: change(s[name]) for name in ("subject_id", "item_id")})


SAME = {
    "order": lambda s: s.sample(frac=1, random_state=1),
    "form": matrix,
    "units": lambda s: s.assign(score=3 * s["score"] - 1),
    "numbers": named(lambda ids: ids.str[1:].astype(int)),
    "odd ids": named(lambda ids: ids + ', "é"\n界 NA'),
    "two types": named(lambda ids: ids.map(lambda name: {"s00": 0, "s01": "0"}.get(name, name))),
}


@pytest.mark.parametrize("name", SAME)
def test_order_form_units_and_ids_change_nothing(made, result, tmp_path, name):
    given, before = SAME[name](made.scores), SAME[name](made.scores)
    low, high = ends = (-1, 2) if name == "units" else (0, 1)
    other = irt.fit(given, score_range=ends)
    pd.testing.assert_frame_equal(given, before)  # the caller's frame is untouched
    near(other.items, result.items, "diff", "disc", "se_diff", "n", abs=1e-6)
    near(other.subjects, result.subjects, "theta", "se_theta", abs=1e-6)
    near(other.items, low + (high - low) * result.items[["mean_score"]], "mean_score")
    want = low + (high - low) * result.predict().to_numpy()
    assert other.predict().to_numpy() == pytest.approx(want, abs=1e-6)
    survives_saving(other, tmp_path)


def test_two_by_two_scores_say_little_but_do_not_break():
    result = irt.fit(pd.DataFrame([[0.2, 0.4], [0.6, 0.9]]))
    assert np.isfinite(result.items["diff"]).all()
    assert result.items["flag"].str.contains("few").all()
    assert result.info["reliability"] < 0.5


def test_a_category_that_nobody_answered_is_no_item():
    long = irt.simulate(6, 5, seed=0).scores
    known = pd.Categorical(long["item_id"], categories=[*long["item_id"].unique(), "unused"])
    assert "unused" not in irt.fit(long.assign(item_id=known)).items.index


def test_disconnected_parts_are_said(made):
    scores = made.scores
    first = (scores["subject_id"] < "s07") & (scores["item_id"] < "q20")
    second = (scores["subject_id"] >= "s07") & (scores["item_id"] >= "q20")
    apart = scores[first | second]
    result = irt.fit(apart, disconnected="assume-equal")
    assert result.items["flag"].str.contains("disconnected").all()
    assert any("equally able" in note for note in result.info["notes"])
