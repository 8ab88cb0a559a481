"""Generated questions: shares by category, and what the categories changed in the words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ragkit.errors import DataError
from ragkit.report.figures import BLUE, GREY, VERMILION, size
from ragkit.report.plots.base import dots, legend, words

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def columns_of(heights: dict[str, int], label: str) -> tuple[Figure, dict[str, Axes]]:
    """Return a page of panels in two columns of about equal height, each as high as its rows.

    `heights` are the rows of each panel; `label` is that of the horizontal axes, which the panels
    of a column share.
    """
    import matplotlib.pyplot as plt

    names, space = list(heights), 1.3
    ends = np.cumsum([heights[name] + space for name in names])
    half = int(np.argmin(np.abs(2 * ends - ends[-1]))) + 1 if len(names) > 2 else len(names)
    columns = [part for part in (names[:half], names[half:]) if part]
    tallest = max(sum(heights[name] + space for name in part) for part in columns)
    fig = plt.figure(figsize=size("page", 0.155 * tallest + 0.75))
    panels = {}
    halves = np.atleast_1d(fig.subfigures(1, len(columns)))
    for side, part in zip(halves, columns, strict=True):
        rows = {"height_ratios": [heights[name] for name in part]}
        made = side.subplots(len(part), 1, sharex=True, squeeze=False, gridspec_kw=rows)[:, 0]
        made[-1].set_xlabel(label)
        panels |= dict(zip(part, made, strict=True))
    return fig, panels


def by_category(
    table: pd.DataFrame,
    *,
    label: str,
    titles: dict[str, str] | None = None,
    mark: str = "",
    marked: str = "",
    line: float | None = None,
    lined: str = "",
) -> Figure:
    """Draw a value of each category with its interval, one panel a categorization.

    `table`: categorization, category, share, low, high, in the order to be drawn. `titles` are
    added to the names of categorizations; `mark` is a column of values to be marked as well, and
    `marked` says what they are; `line` is a value drawn through all panels, and `lined` says what.

    Raises
    ------
    DataError
        If there is no row.
    """
    if table.empty:
        raise DataError("no categories to draw")
    groups = dict(iter(table.groupby("categorization", sort=False)))
    fig, panels = columns_of({name: len(group) for name, group in groups.items()}, label)
    top, low = 1.08 * float(table["high"].max()), float(table["low"].min())
    bottom = 0 if low < 0.25 * top else low - 0.1 * (top - low)
    for name, ax in panels.items():
        below = ax.get_xlabel()
        if line is not None:
            ax.axvline(line, color=GREY, linewidth=0.8, linestyle="--", zorder=1)
        dots(ax, groups[name], "category", value="share")
        if mark:
            bare = groups[name].drop(columns=["low", "high"])
            style = {"color": VERMILION, "markers": "|", "markersize": 9, "markeredgewidth": 1.6}
            dots(ax, bare, "category", value=mark, **style)
        ax.set(xlim=(bottom, min(top, 1.02)), xlabel=below)
        ax.set_title(words(name), pad=3)
        ax.set_title(
            (titles or {}).get(name, ""), loc="right", pad=3, fontweight="normal", fontsize=7
        )
    marks = {"value, 95 % interval": (BLUE, "o")}
    marks |= {marked: (VERMILION, "|")} if mark else {}
    legend(fig, marks | ({lined: (GREY, "--")} if line is not None else {}), loc="upper center")
    return fig


def effects(
    frame: pd.DataFrame, table: pd.DataFrame, *, measures: dict[str, tuple[str, str]]
) -> Figure:
    """Draw what categories changed in the questions: a box of all values, the mean, its interval.

    `frame` has a row a question, with the columns of `measures` and of their categorizations;
    `table`: categorization, measure, category, value, low, high. `measures` maps a column of
    `frame` to a categorization and a measure of `table`, the label of its axis: a panel each.

    Raises
    ------
    DataError
        If `table` lacks one of them.
    """
    import matplotlib.pyplot as plt
    import seaborn as sns

    groups = {}
    for column, (name, measure) in measures.items():
        groups[column] = table[(table["categorization"] == name) & (table["measure"] == measure)]
        if groups[column].empty:
            raise DataError(f"no {measure!r} of {name!r} to draw")
    lines = -(-len(groups) // 2)
    sizes = [len(rows) for rows in groups.values()]
    heights = [max(sizes[2 * n : 2 * n + 2]) for n in range(lines)]
    fig, panels = plt.subplots(
        lines, 2, figsize=size("page", 0.2 * sum(heights) + 0.6 * lines + 0.3), squeeze=False,
        gridspec_kw={"height_ratios": heights},
    )  # fmt: skip
    for ax, (column, rows) in zip(panels.flat, groups.items(), strict=False):
        name, measure = measures[column]
        sns.boxplot(
            frame, x=column, y=name, order=rows["category"], color="white", linecolor=GREY, width=0.62,
            showfliers=False, whis=(5, 95), linewidth=0.7, ax=ax,
        )  # fmt: skip
        dots(ax, rows, "category", order=rows["category"], zorder=5)
        ax.set(xlim=(0, None), xlabel=measure)
        ax.set_title(words(name))
    for ax in panels.flat[len(groups) :]:
        ax.set_visible(False)
    marks = {"mean, 95 % interval": (BLUE, "o")}
    marks |= {"box: quartiles, median; whiskers: 5 to 95 %": (GREY, "-")}
    legend(fig, marks, loc="upper center")
    return fig
