"""The scaling study: recall, density and costs against the size of a corpus.

>>> from ragkit import datasets
>>> from ragkit.systems import sweep
>>> wixqa = datasets.load("wixqa").part(documents=40, questions=5)
>>> found = sweep.scaling(wixqa.documents, wixqa.questions, [20, 30, 40], {"bm25": "bm25"}, k=1)
>>> summary, tested = found.summary(n_resamples=99), found.tested(n_resamples=99)
>>> figures = [scaling(summary, found.density, tested), costs(found.costs)]
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ragkit.report.figures import BLACK, marks_of
from ragkit.report.plots.base import axes, legend, sizes, trends

DIM = "#666666"  # the right axis, and all that belongs to it
COSTS = {
    "time to index\n(s)": ("index_seconds", 1.0),
    "time to answer\n(ms, median)": ("query_ms", 1.0),
    "index\n(MB)": ("index_bytes", 1e6),
    "whole process\n(GB, peak)": ("memory_bytes", 1e9),
}


def scaling(
    summary: pd.DataFrame, density: pd.DataFrame, tested: Mapping, *, label: str = ""
) -> Figure:
    """Draw recall and local density against corpus size (EnterpriseRAG-Bench, Figure 3).

    `summary`: system, size, mean, low, high (`Scaling.summary`). `density` (`Scaling.density`) is
    drawn on the right axis; `tested` (`Scaling.tested`) gives the line through all sizes but the
    largest, whose point is hollow.
    """
    fig, ax = axes("page", 3.3)
    right = ax.twinx()
    right.spines["right"].set(visible=True, color=DIM)
    right.tick_params(axis="y", colors=DIM)
    marks = marks_of(summary["system"])
    for system, rows in summary.groupby("system", sort=False):
        paint, shape = marks[system]
        if system in tested:
            _line(ax, tested[system], paint)
        else:
            ax.plot(rows["size"], rows["mean"], color=paint, linewidth=1)
        ax.vlines(rows["size"], rows["low"], rows["high"], color=paint, linewidth=0.9, zorder=3)
        held = (rows["size"] == rows["size"].max()) & (system in tested)
        for part, face in ((rows[~held], paint), (rows[held], "white")):
            style = {"color": paint, "markerfacecolor": face, "markersize": 5, "zorder": 4}
            ax.plot(part["size"], part["mean"], shape, **style)
    for system, rows in density.groupby("system", sort=False):
        right.vlines(rows["size"], rows["low"], rows["high"], color=DIM, linewidth=0.7)
        style = {"color": DIM, "markersize": 3, "markerfacecolor": "white", "linewidth": 1}
        right.plot(rows["size"], rows["mean"], ":", marker=marks[system][1], **style)
    sizes(ax, summary["size"])
    ax.set(ylim=(0, 1), ylabel="recall (solid), higher is better")
    right.margins(y=0.12)  # so that the two families of lines keep apart
    right.set_ylabel("local density (cosine, dotted),\nhigher is harder", color=DIM)
    ax.grid(axis="y")
    ax.set_xlabel(f"documents (log scale)\n{label}".strip())
    shown = dict(marks)
    if tested:
        shown |= {"fit without the largest size": (BLACK, "-"), "held out": (BLACK, "open o")}
    legend(fig, shown | {"local density (right axis)": (DIM, ":")}, loc="upper center", ncols=3)
    return fig


def _line(ax, found, paint: str) -> None:
    """Draw the fit without the largest size, extended to that size, and its band."""
    xs = np.geomspace(min(found.fit.sizes), max(found.fit.sizes), 80)
    curve = [found.before.predict(x) for x in xs]
    ax.plot(xs, [point.estimate for point in curve], color=paint, linewidth=1.1)
    ends = [point.low for point in curve], [point.high for point in curve]
    ax.fill_between(xs, *ends, color=paint, alpha=0.15, linewidth=0)


def costs(table: pd.DataFrame) -> Figure:
    """Draw each system's time to index and to answer, index and memory by size (`Scaling.costs`)."""
    from matplotlib.ticker import LogLocator

    shown = table[["system", "size"]].assign(
        **{label: table[column] / unit for label, (column, unit) in COSTS.items()}
    )
    long = shown.melt(["system", "size"], var_name="cost")
    style = {"hue": "system", "log": True, "col": "cost", "sharey": False, "height": 2.3}
    fig = trends(long, "size", "value", "documents (log scale)", **style)
    for ax, label in zip(fig.axes, COSTS, strict=True):
        if "peak" in label:
            ax.set_ylim(bottom=0)
            continue
        ax.set_yscale("log")
        wide = shown[label].max() > 50 * shown[label].min()
        ax.yaxis.set_major_locator(LogLocator(subs=(1,) if wide else (1, 2, 5)))
        ax.yaxis.set_major_formatter("{x:,.10g}")
        ax.minorticks_off()
    return fig
