"""Judges: calibration, and what they do to a leaderboard."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from ragkit.report.figures import GREY, marks_of
from ragkit.report.plots.base import axes, forest, legend, lines


def calibration(curves: pd.DataFrame) -> Figure:
    """Draw the share of answers that are correct by the probability that they are.

    `curves`: against, probability, correct, low, high.
    """
    marks = marks_of(curves["against"])
    fig, ax = axes("column", 2.9)
    ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=0.9)
    for side, rows in curves.groupby("against", sort=False):
        ax.vlines(rows["probability"], rows["low"], rows["high"], color=marks[side][0], linewidth=1)
    bare = curves.drop(columns=["low", "high"])
    lines(ax, bare, "probability", "correct", "against", marks)
    ax.set(
        xlabel="probability of the offline judge (ten bins)", ylabel="share correct by the verdicts"
    )
    ax.set_aspect("equal")
    legend(fig, marks)
    return fig


def standings(table: pd.DataFrame, *, label: str) -> Figure:
    """Draw the systems' scores on several judges' scales, a panel a scale, one order for all.

    `table`: scale, system, value, low, high. The first scale gives the order.
    """
    scales = table["scale"].unique()
    first = table[table["scale"] == scales[0]]
    order = list(first.sort_values("value", ascending=False, kind="stable")["system"])
    fig = forest(
        table, "system", order=order, panels={"col": "scale"}, markersize=4.5, titles="{col_name}", small=True,
        width="page" if len(scales) > 1 else "column", height=1.0 + 0.2 * len(order),
    )  # fmt: skip
    for ax, scale in zip(fig.axes, scales, strict=True):
        rows = table[table["scale"] == scale].set_index("system")
        low, high = rows["low"].min(), rows["high"].max()
        room = max(high - low, 0.02)
        ax.set_xlim(low - 0.1 * room, high + 0.3 * room)
        ax.locator_params(axis="x", nbins=4)
        style = {"xycoords": ax.get_yaxis_transform(), "fontsize": 7, "ha": "right", "va": "center"}
        ranks = rows["value"].rank(ascending=False, method="min")
        for place, system in enumerate(order):
            ax.annotate(f"{ranks[system]:.0f}", (1, place), **style)
    fig.supxlabel(label, fontsize=8)
    return fig
