"""Printed numbers beside measured ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ragkit.report.figures import BLACK, GREEN, NAMES, SKY, VERMILION, YELLOW
from ragkit.report.plots.base import axes, legend
from ragkit.report.tables import title

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

STATUS_MARKS = {
    "match": (GREEN, "o"),
    "close": (YELLOW, "s"),
    "differs": (VERMILION, "D"),
    "substitute": (SKY, "^"),
    "not run": ("#cccccc", "s"),
    "not available": ("#888888", "s"),
}


def statuses(counts: pd.DataFrame) -> Figure:
    """Draw how many printed numbers of each paper have each status (`tables.counts`)."""
    papers = counts.drop(index="all")
    shown = papers[list(STATUS_MARKS)].rename(index=NAMES).iloc[::-1]
    fig, ax = axes("page", 1.7)
    paints = [paint for paint, _ in STATUS_MARKS.values()]
    shown.plot.barh(stacked=True, color=paints, width=0.75, legend=False, ax=ax)
    for bars, status in zip(ax.containers, shown, strict=True):
        wide = shown[status] > 0.03 * papers["numbers"].max()
        labels = shown[status].astype(str).where(wide, "")
        ax.bar_label(bars, labels, label_type="center", fontsize=7)
    ax.set(xlabel="printed numbers", ylabel="")
    marks = {f"{status} ({counts.loc['all', status]})": (STATUS_MARKS[status][0], "s") for status in shown}  # fmt: skip
    legend(fig, marks, loc="upper center")
    return fig


def differences(shown: pd.DataFrame) -> Figure:
    """Draw how far measured numbers lie from printed ones, by table.

    `shown` are rows of a scoreboard; those without a measured number are left out.
    """
    import seaborn as sns

    rows = shown.dropna(subset=["measured", "value"])
    most = np.maximum(rows["measured"].abs(), rows["value"].abs())
    rows = rows.assign(
        percent=(100 * (rows["measured"] - rows["value"]) / most).fillna(0),
        place=[title(*key) for key in zip(rows["paper"], rows["table"], strict=True)],
    )
    states = [status for status in STATUS_MARKS if status in set(rows["status"])]
    places = list(dict.fromkeys(rows["place"]))
    fig, ax = axes("page", 0.9 + 0.24 * len(places))
    for status in reversed(states):
        paint, shape = STATUS_MARKS[status]
        sns.stripplot(
            rows[rows["status"] == status], x="percent", y="place", order=places, color=paint,
            marker=shape, jitter=False, size=4.5, linewidth=0.3, edgecolor=BLACK, alpha=0.8, ax=ax,
        )  # fmt: skip
    ends = [-100, -10, -1, 0, 1, 10, 100]
    ax.set_xscale("symlog", linthresh=1)
    ax.set_xticks(ends, [f"{end:+g}" if end else "0" for end in ends])
    ax.set_xlim(-260, 260)
    ax.axvline(0, color=BLACK, linewidth=0.6, zorder=0)
    for place in range(1, len(places), 2):
        ax.axhspan(place - 0.5, place + 0.5, color="0.96", zorder=-1, linewidth=0)
    ax.set(xlabel="measured less printed (% of the larger; log scale beyond 1 %)", ylabel="")
    ax.tick_params(axis="y", length=0)
    legend(fig, {status: STATUS_MARKS[status] for status in states})
    return fig
