"""Judges: what they accept, how far they agree, what they do to a leaderboard."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from ragkit.report.figures import BLUE, GREEN, GREY, PURPLE, VERMILION
from ragkit.report.plots.base import axes, column, dots, facets, legend, lines

# Up to four judges in one figure.
SIDES = ((BLUE, "o"), (VERMILION, "s"), (GREEN, "^"), (PURPLE, "D"))


def damage(table: pd.DataFrame, *, label: str) -> Figure:
    """Draw the share of gold answers, unchanged and damaged, that a judge accepts.

    `table`: change, n, value, low, high, in [0, 1]. `label` says whose gold answers.
    """
    names = [f"{c} ({n:,})" for c, n in zip(table["change"], table["n"], strict=True)]
    fig, ax = column(
        table.assign(name=names), "name", 0.6 + 0.28 * len(table), label, markersize=4.5
    )
    ax.set_xlim(-0.03, 1.03)
    ax.set_xlabel("accepted, with 95 % intervals")
    return fig


def agreement(table: pd.DataFrame, *, targets: dict[str, float]) -> Figure:
    """Draw agreement with real verdicts, a panel a metric, by what was held out.

    `table`: held_out, against, metric, value, low, high. `targets` are the metrics to show, each
    with the value aimed at.
    """
    marks = dict(zip(table["against"].unique(), SIDES, strict=False))
    schemes = list(table["held_out"].unique())
    shown = table[table["metric"].isin(targets)]

    def draw(ax, rows):
        metric = rows["metric"].iloc[0]
        ax.axvline(targets[metric], color=GREY, linestyle="--", linewidth=0.9)
        dots(ax, rows, "held_out", hue="against", marks=marks, order=schemes)
        ax.set_xlabel(f"{metric} →\n(dashed: {targets[metric]:g})")

    fig, _ = facets(
        shown, draw, col="metric", col_order=list(targets), sharex=False, titles="",
        height=0.9 + 0.45 * len(schemes), width="page" if len(targets) > 1 else "column",
    )  # fmt: skip
    legend(fig, marks)
    return fig


def calibration(curves: pd.DataFrame) -> Figure:
    """Draw the share of answers that are correct by the probability that they are.

    `curves`: against, probability, correct, low, high.
    """
    marks = dict(zip(curves["against"].unique(), SIDES, strict=False))
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
    first = table[table["scale"] == table["scale"].iloc[0]]
    order = list(first.sort_values("value", ascending=False, kind="stable")["system"])

    def draw(ax, rows):
        dots(ax, rows, "system", order=order, markersize=4.5)
        ranks = rows.set_index("system")["value"].rank(ascending=False, method="min")
        low, high = rows["low"].min(), rows["high"].max()
        room = max(high - low, 0.02)
        ax.set_xlim(low - 0.1 * room, high + 0.3 * room)
        ax.locator_params(axis="x", nbins=4)
        for place, system in enumerate(order):
            ax.annotate(
                f"{ranks[system]:.0f}", (1, place), xycoords=("axes fraction", "data"), fontsize=7,
                ha="right", va="center",
            )  # fmt: skip

    height = 1.0 + 0.2 * len(order)
    width = "page" if table["scale"].nunique() > 1 else "column"
    shape = {"width": width, "height": height, "small": True}
    fig, _ = facets(table, draw, col="scale", sharex=False, **shape)
    fig.supxlabel(label, fontsize=8)
    return fig
