"""Figures: identical bytes for identical runs, embeddable fonts, fixed marks."""

from __future__ import annotations

import errno

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from ragkit.datasets import reported
from ragkit.errors import UsageError
from ragkit.report import figures, tables
from ragkit.report.plots import language, scoreboard


@pytest.fixture(autouse=True)
def _style():
    mpl.use("Agg")
    with plt.style.context("default"):
        figures.use_style()
        yield
    plt.close("all")


def draw():
    fig, ax = plt.subplots(figsize=figures.size("column"))
    ax.scatter(np.arange(50), np.arange(50) ** 2, rasterized=True, color=figures.colour("liverag"))
    ax.set_xlabel("document length (words)")
    return fig


def test_saving_twice_gives_the_same_bytes(tmp_path):
    one, two = (figures.save(draw(), tmp_path / name / "plot") for name in ("one", "two"))
    for suffix in (".png", ".pdf"):
        assert one.with_suffix(suffix).read_bytes() == two.with_suffix(suffix).read_bytes()
    assert one.suffix == ".png"
    pdf = one.with_suffix(".pdf").read_bytes()
    assert b"CreationDate" not in pdf
    assert b"/Type3" not in pdf  # Type 42 fonts can be edited and searched


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = figures.save(draw(), tmp_path / "plot")
    before = path.read_bytes()
    fig = draw()

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(fig, "savefig", full)
    with pytest.raises(OSError, match="No space"):
        figures.save(fig, tmp_path / "plot")
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["plot.pdf", "plot.png"]


def test_sizes_and_marks():
    assert figures.size("column")[0] == 3.3
    assert figures.size("page", 2)[1] == 2
    with pytest.raises(UsageError, match="did you mean 'column'"):
        figures.size("colunm")
    with pytest.raises(UsageError, match="did you mean 'liverag'"):
        figures.colour("liverga")
    colours = [figures.colour(n) for n in ("liverag", "triviaqa", "popqa", "webquestions")]
    assert len(set(colours)) == 4


def test_every_plot_draws_from_small_frames():
    rng = np.random.default_rng(0)
    printed = reported.load("liverag", "4")
    metrics = list(language.DIVERSITY)
    names = ["triviaqa", "popqa", "webquestions", "simpleqa", "natural_questions"]
    samples = pd.DataFrame(rng.random((10, 5)), columns=metrics).assign(row=names * 2)
    fig = language.diversity(samples, dict.fromkeys(metrics, 1.0), printed)
    assert len(fig.axes) == len(metrics)
    fig = language.lengths({name: rng.integers(1, 20, 30) for name in names})
    assert len(fig.axes) == len(names)
    board = tables.compare(printed, tables.nothing())
    fig = scoreboard.statuses(tables.counts(board))
    assert fig.legends


def test_the_map_is_seeded_and_measured():
    rng = np.random.default_rng(0)
    vectors = {name: rng.normal(size=(30, 8)) for name in ("liverag", "popqa")}
    first, trust = language.question_map(vectors, size=25, seed=1)
    again, same = language.question_map(vectors, size=25, seed=1)
    assert 0 < trust <= 1
    assert trust == same
    one, two = (fig.axes[0].collections[0].get_offsets() for fig in (first, again))
    assert np.array_equal(one, two)
