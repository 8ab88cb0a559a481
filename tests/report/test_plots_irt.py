import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from ragkit import irt
from ragkit.report.plots import irt as plots


@pytest.fixture(scope="module")
def made():
    return irt.simulate(12, 30, seed=1)


@pytest.fixture(scope="module")
def result(made):
    return irt.fit(made.scores)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_joint_draws_every_item_once(result):
    fig = plots.joint(result)
    drawn = np.vstack([c.get_offsets() for c in fig.axes[2].collections if len(c.get_offsets())])
    points = result.items[["diff", "log_disc"]].to_numpy()
    assert {tuple(p) for p in points} <= {tuple(p) for p in np.asarray(drawn)}
    assert "harder" in fig.axes[2].get_xlabel()


def test_abilities_are_in_order_and_thinned(result):
    heights = plots.abilities(result, most=5).axes[0].lines[0].get_ydata()
    assert len(heights) == 5
    assert (np.diff(heights) >= 0).all()
    assert heights[-1] == result.subjects["theta"].max()


def test_bins_are_means_of_the_scores(made, result):
    bins = pd.qcut(result.items["diff"], 2, labels=["easy", "hard"])
    ax = plots.over_bins(made.scores, bins, systems=["s03"], label="score").axes[0]
    own = made.scores[made.scores["subject_id"] == "s03"]
    want = own.groupby(own["item_id"].map(bins), observed=False)["score"].mean()
    assert ax.containers[0].lines[0].get_ydata() == pytest.approx(want.to_numpy())


def test_boxes_have_one_box_a_category_with_its_count(result):
    kinds = pd.DataFrame({"kind": ["a", "b", "b"] * 10, "other": ["x"] * 30}, result.items.index)
    fig = plots.boxes(result.items["diff"], kinds)
    labels = {label.get_text() for ax in fig.axes for label in ax.get_yticklabels()}
    assert {"a (10)", "b (20)", "x (30)"} <= labels


def test_the_others_draw_what_they_are_given(made, result):
    two = irt.fit(made.scores, model="1pl")
    assert len(plots.side_by_side({"2pl": result, "1pl": two}).axes) == 2
    curve = plots.information({"2pl": result}).axes[0].lines[0]
    assert curve.get_ydata() == pytest.approx(result.information().sum(axis=1).to_numpy() ** -0.5)
    table = irt.posterior_predictive(result, draws=5)
    assert plots.checks(table).axes[0].lines[0].get_xdata() == pytest.approx(table["observed"])
    recovered = irt.recovery(n_subjects=8, n_items=12, seeds=range(2))
    assert len(plots.coverage(recovered).axes) == 2
