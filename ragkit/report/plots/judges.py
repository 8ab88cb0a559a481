"""Judges: what they accept, how far they agree, what they do to a leaderboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ragkit.report.figures import BLUE, GREEN, GREY, PURPLE, VERMILION, size

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def damage(table: pd.DataFrame, *, label: str) -> Figure:
    """Draw the share of gold answers, left alone and damaged, that a judge accepts.

    Parameters
    ----------
    table : DataFrame
        Columns change, value, low, high: shares in [0, 1].
    label : str
        What they are gold answers of.
    """
    import matplotlib.pyplot as plt

    places = np.arange(len(table))[::-1]
    fig, ax = plt.subplots(figsize=size("column", 0.6 + 0.28 * len(table)))
    ax.hlines(places, table["low"], table["high"], color=BLUE, linewidth=1.2)
    ax.plot(table["value"], places, "o", color=BLUE)
    ax.set_yticks(
        places, [f"{c} ({n:,})" for c, n in zip(table["change"], table["n"], strict=True)]
    )
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-0.6, len(table) - 0.4)
    ax.grid(axis="x")
    ax.set_xlabel(f"accepted, with 95 % intervals\n{label}")
    return fig


# Up to four judges in one figure.
SIDES = ((BLUE, "o"), (VERMILION, "s"), (GREEN, "^"), (PURPLE, "D"))


def agreement(table: pd.DataFrame, *, targets: dict[str, float]) -> Figure:
    """Draw agreement with real verdicts, a panel a metric, by what was held out.

    Parameters
    ----------
    table : DataFrame
        Columns held_out, against, metric, value, low, high.
    targets : dict of str to float
        Metrics to show, with the value aimed at.
    """
    import matplotlib.pyplot as plt

    schemes, sides = (list(dict.fromkeys(table[column])) for column in ("held_out", "against"))
    marks = dict(zip(sides, SIDES, strict=False))
    fig, axes = plt.subplots(
        1, len(targets), sharey=True, squeeze=False, figsize=size("page", 0.9 + 0.45 * len(schemes))
    )
    for ax, (metric, target) in zip(axes[0], targets.items(), strict=True):
        ax.axvline(target, color=GREY, linestyle="--", linewidth=0.9)
        for number, side in enumerate(sides):
            rows = table[(table["metric"] == metric) & (table["against"] == side)]
            rows = rows.set_index("held_out").reindex(schemes)
            places = np.arange(len(schemes))[::-1] - 0.22 * (number - (len(sides) - 1) / 2)
            paint, shape = marks[side]
            ax.hlines(places, rows["low"], rows["high"], color=paint, linewidth=1.2)
            ax.plot(rows["value"], places, shape, color=paint, label=side)
        ax.set_xlabel(f"{metric}\n(dashed: {target:g})")
        ax.grid(axis="x")
    axes[0, 0].set_yticks(np.arange(len(schemes))[::-1], schemes)
    axes[0, 0].set_ylim(-0.6, len(schemes) - 0.4)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside upper right", ncols=len(sides))
    return fig


def calibration(curves: pd.DataFrame) -> Figure:
    """Draw the share of answers that are correct by the probability that they are.

    Parameters
    ----------
    curves : DataFrame
        Columns against, probability, correct, low, high, n.
    """
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots(figsize=size("column", 2.7))
    ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=0.9)
    sides = list(dict.fromkeys(curves["against"]))
    marks = dict(zip(sides, SIDES, strict=False))
    for side in sides:
        rows, (paint, shape) = curves[curves["against"] == side], marks[side]
        ax.vlines(rows["probability"], rows["low"], rows["high"], color=paint, linewidth=1)
        ax.plot(
            rows["probability"],
            rows["correct"],
            f"{shape}-",
            color=paint,
            label=side,
            linewidth=0.8,
        )
    ax.set_xlabel("probability of the offline judge (ten bins)")
    ax.set_ylabel("share correct by the verdicts")
    ax.set_aspect("equal")
    fig.legend(loc="outside upper right", ncols=2)
    return fig


def standings(table: pd.DataFrame, *, label: str) -> Figure:
    """Draw the systems' scores on several judges' scales, a panel a scale, one order for all.

    Parameters
    ----------
    table : DataFrame
        Columns scale, system, value, low, high. The first scale gives the order.
    label : str
        Of the axes.
    """
    import matplotlib.pyplot as plt

    scales = list(dict.fromkeys(table["scale"]))
    first = table[table["scale"] == scales[0]].sort_values("value", kind="stable")
    order = list(first["system"])
    fig, axes = plt.subplots(
        1, len(scales), sharey=True, squeeze=False, figsize=size("page", 1.0 + 0.2 * len(order))
    )
    for ax, scale in zip(axes[0], scales, strict=True):
        rows = table[table["scale"] == scale].set_index("system").reindex(order)
        places = np.arange(len(order))
        ax.hlines(places, rows["low"], rows["high"], color=BLUE, linewidth=1.2)
        ax.plot(rows["value"], places, "o", color=BLUE)
        ranks = rows["value"].rank(ascending=False, method="min")
        for place, rank, high in zip(places, ranks, rows["high"], strict=True):
            ax.annotate(
                f"{rank:.0f}", (high, place), (4, 0), textcoords="offset points", va="center",
                fontsize=7,
            )  # fmt: skip
        ax.set_xlim(0, 1)
        ax.set_title(scale, fontsize=7, fontweight="normal")
        ax.grid(axis="x")
    axes[0, 0].set_yticks(np.arange(len(order)), order)
    fig.supxlabel(label, fontsize=8)
    return fig
