"""Printed numbers beside measured ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ragkit.report.figures import BLACK, GREEN, NAMES, SKY, VERMILION, YELLOW, size

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


STATUS_COLOURS = {
    "match": GREEN,
    "close": YELLOW,
    "differs": VERMILION,
    "substitute": SKY,
    "not run": "#cccccc",
    "not available": "#888888",
}


def statuses(counts: pd.DataFrame) -> Figure:
    """Draw how many printed numbers of each paper have each status.

    Parameters
    ----------
    counts : DataFrame
        The result of `ragkit.report.tables.counts`.
    """
    import matplotlib.pyplot as plt

    rows = [row for row in counts.index if row != "all"][::-1]
    fig, ax = plt.subplots(figsize=size("page", 1.7))
    left = np.zeros(len(rows))
    for status, paint in STATUS_COLOURS.items():
        width = counts.loc[rows, status].to_numpy()
        bars = ax.barh(
            rows, width, left=left, color=paint, label=f"{status} ({counts.loc['all', status]})"
        )
        labels = [str(n) if n > 0.03 * counts["numbers"].max() else "" for n in width]
        ax.bar_label(bars, labels, label_type="center", fontsize=7)
        left += width
    ax.set_yticks(range(len(rows)), [NAMES.get(row, row) for row in rows])
    ax.set_xlabel("printed numbers")
    fig.legend(loc="outside upper center", ncols=6, columnspacing=1, handlelength=1)
    return fig


def differences(shown: pd.DataFrame) -> Figure:
    """Draw how far measured numbers lie from printed ones, by table.

    Parameters
    ----------
    shown : DataFrame
        Rows of a scoreboard with a measured number.
    """
    import matplotlib.pyplot as plt

    rows = shown[shown["value"].abs() > 0].copy()
    rows["percent"] = 100 * (rows["measured"] / rows["value"] - 1)
    words = [
        f"table {table}"
        if table.isdigit()
        else table.replace("text:", "section ").replace(":", " ")
        for table in rows["table"]
    ]
    rows["where"] = [
        f"{NAMES[paper]}, {table}" for paper, table in zip(rows["paper"], words, strict=True)
    ]
    places = {name: place for place, name in enumerate(dict.fromkeys(rows["where"]))}
    fig, ax = plt.subplots(figsize=size("page", 0.9 + 0.24 * len(places)))
    for status, group in rows.groupby("status"):
        spread = np.linspace(-0.25, 0.25, len(group)) if len(group) > 1 else np.zeros(1)
        heights = group["where"].map(places) + spread
        ax.plot(
            group["percent"],
            heights,
            "o",
            color=STATUS_COLOURS[status],
            markeredgecolor="white",
            markeredgewidth=0.3,
            label=status,
        )
    ax.set_xscale("symlog", linthresh=1)
    ax.axvline(0, color=BLACK, linewidth=0.6)
    ax.set_yticks(list(places.values()), list(places))
    ax.invert_yaxis()
    ax.set_xlabel("measured against printed (%, linear within 1 %, then logarithmic)")
    fig.legend(loc="outside upper right", ncols=4)
    return fig
