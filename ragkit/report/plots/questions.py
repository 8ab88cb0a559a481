"""Figures of made sets of questions: shares by category, effects on the words, diversity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ragkit.errors import DataError
from ragkit.report.figures import BLACK, BLUE, GREY, NAMES, VERMILION, size
from ragkit.report.plots.language import DIVERSITY

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


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

    Parameters
    ----------
    table : DataFrame
        categorization, category, share, low, high, in the order to be drawn.
    label : str
        Of the values, with unit and direction.
    titles : dict of str to str, optional
        Said behind a categorization's name.
    mark, marked : str
        A column of values to be marked beside, and what they are.
    line, lined : float and str
        A value drawn through all panels, and what it is.

    Raises
    ------
    DataError
        If there is no row.
    """
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MaxNLocator

    if table.empty:
        raise DataError("no categories to draw")
    groups = dict(list(table.groupby("categorization", sort=False)))
    columns = _columns({name: len(group) for name, group in groups.items()})
    tallest = max(sum(len(groups[n]) + 1.1 for n in names) for names in columns)
    fig = plt.figure(figsize=size("page", 0.155 * tallest + 0.75))
    halves = np.atleast_1d(fig.subfigures(1, len(columns)))
    top = min(1.0, 1.08 * float(table["high"].max()))
    low = float(table["low"].min())
    bottom = 0 if low < 0.25 * top else max(0, low - 0.1 * (top - low))
    ticks = MaxNLocator(6, steps=[1, 2, 5, 10]).tick_values(bottom, top)
    for half, names in zip(halves, columns, strict=True):
        heights = [len(groups[name]) for name in names]
        axes = np.atleast_1d(
            half.subplots(len(names), 1, sharex=True, gridspec_kw={"height_ratios": heights})
        )
        for ax, name in zip(axes, names, strict=True):
            group = groups[name]
            places = np.arange(len(group))[::-1]
            if line is not None:
                ax.axvline(line, color=GREY, linewidth=0.8, linestyle="--", zorder=1)
            ax.hlines(places, group["low"], group["high"], color=BLUE, linewidth=1.4, zorder=2)
            ax.plot(group["share"], places, "o", color=BLUE, markersize=3.6, zorder=4)
            if mark:
                ax.plot(
                    group[mark],
                    places,
                    "|",
                    color=VERMILION,
                    markersize=9,
                    markeredgewidth=1.6,
                    zorder=3,
                )
            ax.set_yticks(places, group["category"])
            ax.set_ylim(-0.6, len(group) - 0.4)
            ax.set_xticks([tick for tick in ticks if bottom <= tick <= top])
            ax.set_xlim(bottom, top)
            ax.tick_params(axis="y", length=0)
            ax.grid(axis="x")
            ax.set_title(name, pad=3)
            said = (titles or {}).get(name, "")
            if said:
                ax.set_title(said, loc="right", pad=3, fontweight="normal", fontsize=7)
        for ax in axes[:-1]:
            ax.tick_params(axis="x", length=0)
        axes[-1].set_xlabel(label)
    handles = [
        plt.Line2D([], [], color=BLUE, marker="o", markersize=3.6, label="value, 95 % interval")
    ]
    if mark:
        handles.append(
            plt.Line2D(
                [], [], color=VERMILION, marker="|", markersize=9, markeredgewidth=1.6, linestyle="none", label=marked
            )
        )  # fmt: skip
    if line is not None:
        handles.append(plt.Line2D([], [], color=GREY, linewidth=0.8, linestyle="--", label=lined))
    fig.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return fig


def effects(
    frame: pd.DataFrame, table: pd.DataFrame, *, measures: dict[str, tuple[str, str]]
) -> Figure:
    """Draw what categories did to the questions: all values as a box, the mean with its interval.

    Parameters
    ----------
    frame : DataFrame
        A row a question, with the columns of `measures` and of their categorizations.
    table : DataFrame
        categorization, measure, category, value, low, high.
    measures : dict of str to (str, str)
        Column of `frame` to categorization and measure of `table`: a panel each. The measure is
        the label of its axis.
    """
    import matplotlib.pyplot as plt

    groups = {}
    for column, (name, measure) in measures.items():
        rows = table[(table["categorization"] == name) & (table["measure"] == measure)]
        if rows.empty:
            raise DataError(f"no {measure!r} of {name!r} to draw")
        groups[column] = rows
    heights = [len(rows) for rows in groups.values()]
    columns = 2
    lines = -(-len(groups) // columns)
    tall = sum(max(heights[i * columns : (i + 1) * columns]) for i in range(lines))
    fig, axes = plt.subplots(
        lines, columns, figsize=size("page", 0.2 * tall + 0.6 * lines + 0.3), squeeze=False,
        gridspec_kw={"height_ratios": [max(heights[i * columns : (i + 1) * columns]) for i in range(lines)]},
    )  # fmt: skip
    for ax, (column, rows) in zip(axes.flat, groups.items(), strict=False):
        name, measure = measures[column]
        places = np.arange(len(rows))[::-1]
        values = [frame.loc[frame[name] == c, column].dropna().to_numpy() for c in rows["category"]]
        ax.boxplot(
            values, positions=places, orientation="horizontal", widths=0.62, showfliers=False, whis=(5, 95),
            boxprops={"color": GREY, "linewidth": 0.7}, whiskerprops={"color": GREY, "linewidth": 0.7},
            capprops={"color": GREY, "linewidth": 0.7}, medianprops={"color": GREY, "linewidth": 1.2},
        )  # fmt: skip
        ax.hlines(places, rows["low"], rows["high"], color=BLUE, linewidth=2.2, zorder=4)
        ax.plot(rows["value"], places, "o", color=BLUE, markersize=3.6, zorder=5)
        ax.set_yticks(places, rows["category"])
        ax.set_ylim(-0.6, len(rows) - 0.4)
        ax.set_xlim(left=0)
        ax.tick_params(axis="y", length=0)
        ax.set_title(name)
        ax.set_xlabel(measure)
        ax.grid(axis="x")
    for ax in axes.flat[len(groups) :]:
        ax.set_visible(False)
    handles = [
        plt.Line2D([], [], color=BLUE, marker="o", markersize=3.6, label="mean, 95 % interval"),
        plt.Line2D(
            [], [], color=GREY, marker="s", markersize=8, markerfacecolor="none", linestyle="none", label="quartiles, median; whiskers 5 to 95 %"
        ),
    ]  # fmt: skip
    fig.legend(handles=handles, loc="outside upper center", ncols=2)
    return fig


def diversity(
    profiles: pd.DataFrame,
    printed: pd.DataFrame,
    *,
    generated: str,
    aims: dict[str, float] | None = None,
) -> Figure:
    """Draw the measures of LiveRAG's Table 4 for a generated set beside the printed ones.

    Parameters
    ----------
    profiles : DataFrame
        row (a set) and the five metrics, as measured.
    printed : DataFrame
        The reported numbers of Table 4.
    generated : str
        The row that is no set of the paper.
    aims : dict of str to float, optional
        A line by metric.
    """
    import matplotlib.pyplot as plt

    rows = list(dict.fromkeys([generated, "liverag", *profiles["row"], *printed["row"]]))
    places = np.arange(len(rows))[::-1]
    values = printed.set_index(["row", "metric"])["value"]
    measured = profiles.set_index("row")
    height = 0.22 * len(rows) + 1.0
    fig, axes = plt.subplots(1, len(DIVERSITY), sharey=True, figsize=size("page", height))
    for ax, (metric, label) in zip(axes, DIVERSITY.items(), strict=True):
        if metric in (aims or {}):
            ax.axvline(aims[metric], color=VERMILION, linewidth=0.8, linestyle="--")
        for place, row in zip(places, rows, strict=True):
            both = row in measured.index and (row, metric) in values.index
            if row in measured.index:
                shade = VERMILION if row == generated else BLUE
                level = place + 0.16 * both
                ax.plot(measured.loc[row, metric], level, "o", color=shade, markersize=4.5)
            if (row, metric) in values.index:
                ax.plot(values[row, metric], place - 0.16 * both, "x", color=BLACK, markersize=4)
        ax.set_xlabel(label)
        ax.grid(True)
        ax.margins(x=0.12)
    axes[0].set_yticks(places, [NAMES.get(row, row) for row in rows])
    axes[0].set_ylim(-0.6, len(rows) - 0.4)
    marks = [("o", VERMILION, "generated, measured"), ("x", BLACK, "printed, 895 questions")]
    if len(profiles) > 1:
        marks.insert(1, ("o", BLUE, "real, measured"))
    handles = [
        plt.Line2D([], [], marker=shape, color=shade, linestyle="none", label=label)
        for shape, shade, label in marks
    ]
    if aims:
        line = plt.Line2D([], [], color=VERMILION, linewidth=0.8, linestyle="--")
        line.set_label("the generator's aim")
        handles.append(line)
    fig.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return fig


def _columns(heights: dict[str, int]) -> list[list[str]]:
    """Return the names in two columns of about equal height, in their order as far as that goes."""
    names = list(heights)
    if len(names) < 3:
        return [names]
    total = sum(h + 1 for h in heights.values())
    best = min(
        range(1, len(names)),
        key=lambda k: abs(2 * sum(heights[n] + 1 for n in names[:k]) - total),
    )
    return [names[:best], names[best:]]
