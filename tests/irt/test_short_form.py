import numpy as np
import pandas as pd
import pytest

from ragkit import irt
from ragkit.irt.short_form import _Normal
from tests.irt.conftest import matrix
from tests.irt.test_command import run


@pytest.fixture(scope="module")
def simulated():
    return irt.simulate(40, 60, likelihood="bernoulli", log_disc_mean=0.5, seed=7)


@pytest.fixture(scope="module")
def form(simulated):
    return irt.short_form(simulated.scores, 12)


def test_two_items_by_hand():
    # Items 0 and 1 are the same, item 2 is constant: one of the pair tells the most.
    x = np.array([[0.0, 0.0, 0.5], [1.0, 1.0, 0.5], [0.0, 0.0, 0.5], [1.0, 1.0, 0.5]])
    model = _Normal(x, 0.5)
    covariance = model.columns([0, 1, 2])
    variance = np.array([1 / 4, 1 / 4, 0]) + (1 / 6) / 4
    # slopes on the mean score are 3/2, 3/2 and 0, its variance is 4/27
    shared = 9 / 4 * 4 / 27
    assert covariance[0, 1] == pytest.approx(0.5 * 1 / 3 + 0.5 * shared)
    residual = max(variance[0] - shared, 0.05 * variance[0])
    assert covariance[0, 0] == pytest.approx(0.5 * 1 / 3 + 0.5 * (shared + residual))
    assert covariance[2, 2] == pytest.approx(0.5 * variance[2])
    assert model.with_score == pytest.approx(covariance.mean(1))
    chosen, left = model.greedy(2)
    assert chosen[0] in (0, 1)
    assert left[0] == pytest.approx(
        covariance.mean() - covariance[0].mean() ** 2 / covariance[0, 0]
    )


def test_greedy_leaves_the_conditional_variance():
    x = np.random.default_rng(0).random((20, 8))
    model = _Normal(x, 0.3)
    chosen, left = model.greedy(3)
    own = model.columns(range(8))
    weight = np.linalg.solve(own[np.ix_(chosen, chosen)], own[chosen].mean(1))
    assert left[-1] == pytest.approx(own.mean() - weight @ own[chosen].mean(1))
    assert (np.diff(left) < 0).all()


def test_estimates_of_new_subjects_and_their_intervals(simulated, form):
    rng, items = np.random.default_rng(1), simulated.items
    eta = items["disc"].to_numpy() * (rng.normal(size=(400, 1)) - items["diff"].to_numpy())
    x = irt.get_likelihood("bernoulli").sample(eta, rng)
    new = pd.DataFrame(x, columns=items.index).rename_axis("subject_id")
    table = form.estimate(new)
    full = new.mean(axis=1)
    assert table["estimate"].corr(full) > 0.9
    assert 0.82 <= ((table["low"] <= full) & (full <= table["high"])).mean() <= 0.97
    assert (table["n"] == 12).all()
    long = new.reset_index().melt("subject_id", var_name="item_id", value_name="score")
    pd.testing.assert_frame_equal(form.estimate(long), table)


def test_a_missing_score_makes_the_error_larger(simulated, form):
    wide = matrix(simulated.scores)
    gap = wide.copy()
    gap.loc[gap.index[0], form.items.index[0]] = np.nan
    before, after = form.estimate(wide), form.estimate(gap)
    assert after["error"].iloc[0] > before["error"].iloc[0]
    assert after["n"].iloc[0] == 11
    pd.testing.assert_frame_equal(after.iloc[1:], before.iloc[1:])


def test_rows_ids_and_scale_change_nothing(simulated, form):
    scores = simulated.scores.sample(frac=1, random_state=0)
    scores["score"] = 2 * scores["score"] - 1
    other = irt.short_form(scores, 12, score_range=(-1, 1))
    assert other.items.index.tolist() == form.items.index.tolist()
    assert other.items["error"].to_numpy() == pytest.approx(2 * form.items["error"].to_numpy())


def test_missing_training_scores_are_counted(simulated):
    part = simulated.scores.sample(frac=0.8, random_state=1)
    assert irt.short_form(part, 5).info["filled"] == pytest.approx(0.2)


def test_saved_and_loaded(simulated, form, tmp_path):
    loaded = irt.load_short_form(form.save(tmp_path / "form"))
    pd.testing.assert_frame_equal(loaded.items, form.items)
    pd.testing.assert_frame_equal(
        loaded.estimate(simulated.scores), form.estimate(simulated.scores)
    )


def test_it_beats_random_choice_on_left_out_families():
    rng = np.random.default_rng(3)
    simulated = irt.simulate(60, 150, likelihood="bernoulli", log_disc_sd=1.0, seed=3)
    families = pd.Series(rng.integers(0, 12, 60), index=simulated.subjects.index)
    table = irt.check_short_forms(
        simulated.scores, [15], families=families, methods=["short form", "random", "irt"], folds=6
    ).set_index("method")
    assert table.loc["short form", "mae"] < table.loc["random", "mae"]
    assert 0.7 <= table.loc["short form", "coverage"] <= 1
    assert table["coverage"].isna().sum() == 2
    assert table["tau"].between(-1, 1).all()


def test_commands(simulated, tmp_path):
    path, out = tmp_path / "scores.csv", tmp_path / "form"
    family = simulated.scores["subject_id"].str[-1]
    simulated.scores.assign(family=family).to_csv(path, index=False)
    arguments = ("short-form", path, "--size", 10, "--out", out, "--folds", 2)
    ran = run(*arguments, "--family", "family")
    assert ran.exit_code == 0, ran.output
    assert "<ShortForm of 10 of 60 items" in ran.output
    assert sorted(p.name for p in out.iterdir()) == ["check.csv", "items.csv", "short_form.json"]
    ran = run("estimate", out, path, "--out", tmp_path / "e.csv")
    assert ran.exit_code == 0, ran.output
    table = pd.read_csv(tmp_path / "e.csv", index_col=0)
    assert table["estimate"].between(0, 1).all()
    assert len(table) == 40
    ran = run(*arguments, "--family", "kind")
    assert "line 1: no column 'kind'" in str(ran.exception)
