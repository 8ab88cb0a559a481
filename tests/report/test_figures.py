"""Figures: identical bytes for identical runs, embeddable fonts, fixed marks."""

from __future__ import annotations

import errno

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from ragkit.errors import UsageError
from ragkit.report import figures


@pytest.fixture(autouse=True)
def _style():
    mpl.use("Agg")
    with plt.style.context("default"):
        figures.use_style()
        yield
    plt.close("all")


def draw():
    fig, ax = plt.subplots(figsize=figures.size("column"))
    ax.scatter(np.arange(50), np.arange(50) ** 2, rasterized=True, color=figures.mark("liverag")[0])
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


def test_sizes_by_name():
    assert figures.size("column")[0] == 3.3
    assert figures.size("page", 2)[1] == 2
    with pytest.raises(UsageError, match="did you mean 'column'"):
        figures.size("colunm")
