"""Laws that any fit obeys."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit import irt
from tests.irt.conftest import matrix, near, survives_saving


@pytest.fixture(scope="module")
def made():
    return irt.simulate(15, 40, missing=0.1, seed=11)


@pytest.fixture(scope="module")
def result(made):
    return irt.fit(made.scores)


@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_order_and_names_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    scores = irt.simulate(10, 25, missing=0.1, seed=1).scores
    one, two = irt.fit(scores), irt.fit(scores.sample(frac=1, random_state=seed))
    pd.testing.assert_frame_equal(one.items, two.items)
    pd.testing.assert_frame_equal(one.subjects, two.subjects)
    subjects = dict(zip(one.subjects.index, rng.permutation(one.subjects.index), strict=True))
    items = dict(zip(one.items.index, rng.permutation(one.items.index), strict=True))
    renamed = scores.replace({"subject_id": subjects, "item_id": items})
    two = irt.fit(renamed)
    diff, theta = one.items["diff"].rename(items), one.subjects["theta"].rename(subjects)
    assert two.items["diff"].to_numpy() == pytest.approx(diff[two.items.index], abs=1e-6)
    assert two.subjects["theta"].to_numpy() == pytest.approx(theta[two.subjects.index], abs=1e-6)


@pytest.mark.parametrize("disc", ["positive", "signed"])
@pytest.mark.parametrize("model", ["1pl", "2pl"])
def test_reflecting_the_scores_reflects_the_solution(made, model, disc):
    one = irt.fit(made.scores, model=model, disc=disc)
    turned = made.scores.assign(score=1 - made.scores["score"])
    two = irt.fit(turned, model=model, disc=disc)
    assert two.subjects["theta"].to_numpy() == pytest.approx(-one.subjects["theta"], abs=1e-6)
    assert two.items["diff"].to_numpy() == pytest.approx(-one.items["diff"], abs=1e-6)
    assert two.items["disc"].to_numpy() == pytest.approx(one.items["disc"], abs=1e-6)
    assert two.items["se_diff"].to_numpy() == pytest.approx(one.items["se_diff"], abs=1e-6)


def test_range_is_a_change_of_units(made, result):
    wide = made.scores.assign(score=made.scores["score"] * 3 - 1)
    other = irt.fit(wide, score_range=(-1, 2))
    assert other.items["diff"].to_numpy() == pytest.approx(result.items["diff"], abs=1e-6)
    assert other.items["mean_score"].to_numpy() == pytest.approx(result.items["mean_score"] * 3 - 1)
    assert other.predict().to_numpy() == pytest.approx(
        result.predict().to_numpy() * 3 - 1, abs=1e-6
    )


def test_wide_and_long_are_the_same(made, result):
    wide = matrix(made.scores)
    again = irt.fit(wide)
    assert again.items["diff"].to_numpy() == pytest.approx(result.items["diff"].to_numpy())
    full = irt.simulate(10, 12, seed=2).scores
    table = matrix(full)
    assert irt.fit(table).items["disc"].to_numpy() == pytest.approx(
        irt.fit(full).items["disc"].to_numpy()
    )


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


@pytest.mark.parametrize("form", [pd.DataFrame.copy, matrix])
def test_the_callers_frame_is_untouched(made, form):
    given, before = form(made.scores), form(made.scores)
    irt.fit(given)
    pd.testing.assert_frame_equal(given, before)


@pytest.mark.parametrize("likelihood", ["fractional", "bernoulli"])
@pytest.mark.parametrize("model", ["1pl", "2pl"])
@pytest.mark.parametrize("disc", ["positive", "signed"])
def test_constant_items_and_subjects_stay_finite(likelihood, model, disc):
    scores = matrix(irt.simulate(12, 30, seed=0).scores)
    scores["q00"], scores["q01"], scores.loc["s03"], scores.loc["s04"] = 1.0, 0.0, 0.0, 1.0
    if likelihood == "bernoulli":
        scores = scores.round()
    result = irt.fit(scores, likelihood=likelihood, model=model, disc=disc)
    numbers = result.items.drop(columns=["flag", "log_disc", "se_log_disc"])
    assert np.isfinite(numbers.to_numpy(dtype=float)).all()
    assert np.isfinite(result.subjects.drop(columns="flag").to_numpy(dtype=float)).all()
    assert (result.subjects["se_theta"] > 0).all()
    order = result.subjects["theta"].sort_values().index
    assert (order[0], order[-1]) == ("s03", "s04")
    assert result.subjects["flag"]["s03"] == "constant"


IDS = {
    "numbers": lambda ids: ids.str[1:].astype(int),
    "odd": lambda ids: ids + ', "é"\n界 NA',
    "of two types": lambda ids: ids.map(lambda name: {"s00": 0, "s01": "0"}.get(name, name)),
}


@pytest.mark.parametrize("change", IDS.values(), ids=IDS)
def test_ids_of_any_kind_change_nothing_and_survive_saving(made, result, tmp_path, change):
    ids = {name: change(made.scores[name]) for name in ("subject_id", "item_id")}
    other = irt.fit(made.scores.assign(**ids))
    assert other.items["diff"].to_numpy() == pytest.approx(result.items["diff"].to_numpy())
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
