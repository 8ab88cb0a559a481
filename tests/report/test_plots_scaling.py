"""The figures of the scaling study show what they are given."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from ragkit.report.plots import scaling
from ragkit.systems import sweep

SIZES = [500, 1000, 2000]


@pytest.fixture
def result():
    rng = np.random.default_rng(0)
    chance = rng.random((30, 1)) < [[0.9, 0.7, 0.5]]
    recalls = [
        (
            system,
            size,
            f"q{question}",
            ("basic", "semantic")[question % 2],
            float(chance[question, n]),
        )
        for system, last in (("BM25", 3), ("vectors", 2))
        for n, size in enumerate(SIZES[:last])
        for question in range(30)
    ]
    columns = ["system", "size", "question_id", "type", "recall"]
    density = pd.DataFrame({"system": "vectors", "size": SIZES[:2], "mean": [0.4, 0.5]})
    density = density.assign(low=density["mean"] - 0.02, high=density["mean"] + 0.02)
    costs = pd.DataFrame({"system": "BM25", "size": SIZES, "index_seconds": [1.0, 2.0, 4.0]})
    costs = costs.assign(query_ms=1.0, index_bytes=1e6 * costs["size"], memory_bytes=np.nan)
    yield sweep.Scaling(pd.DataFrame(recalls, columns=columns), costs, density, 10)
    plt.close("all")


def test_scaling(result):
    summary, tested = result.summary(n_resamples=100), result.tested(n_resamples=50)
    fig = scaling.scaling(summary, result.density, tested, label="recall@10")
    left, right = fig.axes
    drawn = {
        (x, round(y, 9))
        for line in left.get_lines()
        if line.get_marker() in ("o", "s")
        for x, y in zip(*line.get_data(), strict=True)
    }
    assert drawn == {(row.size, round(row.mean, 9)) for row in summary.itertuples(index=False)}
    hollow = [line for line in left.get_lines() if line.get_markerfacecolor() == "white"]
    assert [x for line in hollow for x in line.get_xdata()] == [2000]  # of the system with a fit
    assert [text.get_text() for text in left.get_xticklabels()] == ["500", "1k", "2k"]
    assert list(right.get_lines()[0].get_ydata()) == [0.4, 0.5]
    assert "density" in right.get_ylabel()
    assert "recall@10" in left.get_xlabel()


def test_scaling_without_vectors_or_fits(result):
    summary = result.summary(n_resamples=100)
    fig = scaling.scaling(summary, result.density.iloc[:0], {})
    assert len(fig.axes) == 2


def test_costs_and_types(result):
    fig = scaling.costs(result.costs)
    assert [ax.get_lines()[0].get_ydata().tolist() for ax in fig.axes[:2]] == [[1, 2, 4], [1, 1, 1]]
    fig = scaling.by_type(result.summary(by_type=True, n_resamples=100), label="recall@10")
    titles = [ax.get_title() or ax.get_title(loc="left") for ax in fig.axes]
    assert titles == ["basic (15)", "semantic (15)"]
