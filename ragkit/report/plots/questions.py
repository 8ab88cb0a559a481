"""Generated questions: shares by category, and what the categories changed in the words.

>>> from ragkit.datasets import reported
>>> figures = [lengths({"mine": np.array([3, 5, 8, 5])})]
>>> points = pd.DataFrame({"set": "mine", "x": [0.0, 1.0], "y": [0.0, 1.0]})
>>> figures += [question_map(points, trustworthiness=0.9)]
>>> table = pd.DataFrame({"categorization": "phrasing", "category": ["short", "long"]})
>>> table = table.assign(share=[0.4, 0.6], value=[3.0, 9.0], low=0.3, high=9.5, measure="words")
>>> figures += [by_category(table, label="share of the questions")]
>>> asked = pd.DataFrame({"words": [3, 3, 9], "phrasing": ["short", "short", "long"]})
>>> figures += [effects(asked, table, measures={"words": ("phrasing", "words")})]
>>> printed = reported.load("liverag", "4")
>>> samples = printed.pivot(index="row", columns="metric", values="value").reset_index()
>>> figures += [diversity(samples, printed)]
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from ragkit.errors import DataError
from ragkit.report.figures import BLACK, BLUE, GREY, LABELS, MARKS, NAMES, marks_of
from ragkit.report.plots.base import below, boxes, dots, facets, legend, second, stacks, words

DIVERSITY = LABELS["diversity"]


def by_category(
    table: pd.DataFrame,
    *,
    label: str,
    titles: dict[str, str] | None = None,
    also: str = "",
    line: float | None = None,
    lined: str = "",
) -> Figure:
    """Draw a value of each category with its interval, one panel a categorization.

    `table`: categorization, category, share, low, high, in the order to be drawn. `titles` are
    added to the names of categorizations; `also` is a column of values to be marked as well;
    `line` is a value drawn through all panels, and `lined` says what.
    """
    if table.empty:
        raise DataError("no categories to draw")
    groups = dict(iter(table.groupby("categorization", sort=False)))
    fig, panels = stacks({name: len(group) for name, group in groups.items()}, label)
    top, low = 1.08 * float(table["high"].max()), float(table["low"].min())
    bottom = 0 if low < 0.25 * top else low - 0.1 * (top - low)
    for name, ax in panels.items():
        if line is not None:
            ax.axvline(line, color=GREY, linewidth=0.8, linestyle="--", zorder=1)
        dots(ax, groups[name], "category", value="share")
        if also:
            second(ax, groups[name], "category", also)
        ax.set_xlim(bottom, min(top, 1.02))
        style = {"pad": 3, "fontweight": "normal", "fontsize": 7}
        ax.set_title((titles or {}).get(name, ""), loc="right", **style)
    marks = {"value, 95 % interval": (BLUE, "o")} | ({also: MARKS[also]} if also else {})
    legend(fig, marks | ({lined: (GREY, "--")} if line is not None else {}), loc="upper center")
    return fig


def effects(
    frame: pd.DataFrame, table: pd.DataFrame, *, measures: dict[str, tuple[str, str]]
) -> Figure:
    """Draw what categories changed in the questions: a box of all values, the mean, its interval.

    `frame` has a row a question, with the columns of `measures` and of their categorizations;
    `table`: categorization, measure, category, value, low, high. `measures` maps a column of
    `frame` to a categorization and a measure of `table`, the label of its axis: a panel each.
    `DataError` if `table` lacks one of them.
    """
    keyed = dict(iter(table.groupby(["categorization", "measure"], sort=False)))
    if lost := set(measures.values()) - set(keyed):
        raise DataError("no {1!r} of {0!r} to draw".format(*min(lost)))
    heights = {column: 1.2 * len(keyed[key]) for column, key in measures.items()}
    fig, panels = stacks(heights, space=3.2, sharex=False)
    for column, (name, measure) in measures.items():
        ax, rows = panels[column], keyed[name, measure]
        ax.set_title(words(name), pad=3)
        boxes(ax, frame, column, name, rows["category"], showfliers=False, whis=(5, 95))
        dots(ax, rows, "category", order=rows["category"], zorder=5)
        ax.set(xlim=(0, None), xlabel=words(measure, 34))
    marks = {"mean, 95 % interval": (BLUE, "o")}
    marks |= {"box: quartiles, median; whiskers: 5 to 95 %": (GREY, "-")}
    legend(fig, marks, loc="upper center")
    return fig


def diversity(samples: pd.DataFrame, printed: pd.DataFrame) -> Figure:
    """Draw Table 4: for every set the printed numbers, and the mean and range of our samples.

    `samples`: row (a set) and the metrics of `DIVERSITY`, one or more samples a set; `printed` is
    LiveRAG's Table 4.
    """
    rows = list(dict.fromkeys([*samples["row"], *printed["row"]]))
    long = samples.melt("row", list(DIVERSITY), "metric")
    found = long.groupby(["row", "metric"])["value"].agg(value="mean", low="min", high="max")
    given = printed.set_index(["row", "metric"])["value"].rename("printed")
    both = found.join(given, how="outer").reset_index().query("metric in @DIVERSITY")
    marks = marks_of(rows)

    def draw(ax, part):
        metric = part["metric"].iloc[0]
        dots(ax, part, "row", hue="row", marks=marks, order=rows, dodge=0.001, markersize=4.5)
        second(ax, part, "row", "printed", order=rows, markersize=4)
        ax.set_xlabel(DIVERSITY[metric])
        ax.margins(x=0.12)
        ax.set_yticks(range(len(rows)), [NAMES.get(row, row) for row in rows])

    fig, _ = facets(
        both, draw, col="metric", col_order=list(DIVERSITY), sharex=False, titles="",
        height=0.22 * len(rows) + 1.0,
    )  # fmt: skip
    legend(fig, {"measured (line: range over samples)": (GREY, "o"), "printed": MARKS["printed"]})
    return fig


def lengths(words: dict[str, np.ndarray]) -> Figure:
    """Draw the distribution of question lengths of several sets, one panel a set."""
    table = pd.concat({name: pd.Series(counts) for name, counts in words.items()}, names=["set"])
    table = table.rename("words").reset_index("set")
    longest = int(table["words"].quantile(0.995))
    marks = marks_of(words)

    def draw(ax, rows):
        name, mean = rows["set"].iloc[0], rows["words"].mean()
        sns.histplot(
            rows, x="words", binrange=(0.5, longest + 0.5), binwidth=1, stat="percent",
            color=marks[name][0], linewidth=0, alpha=1, ax=ax,
        )  # fmt: skip
        ax.axvline(mean, color=BLACK, linewidth=0.8, linestyle="--")
        ax.set(yticks=[])
        ax.set_ylabel(
            f"{NAMES.get(name, name)}\nmean {mean:.1f}", rotation=0, ha="right", va="center"
        )
        ax.spines["left"].set_visible(False)

    height = 0.4 + 0.5 * len(words)
    fig, _ = facets(table, draw, row="set", sharey=False, titles="", width="column", height=height)
    fig.axes[-1].set_xlabel(f"words in a question (cut at {longest})")
    return fig


def question_map(points: pd.DataFrame, *, trustworthiness: float) -> Figure:
    """Draw a map of the questions of several sets, one panel a set.

    `points`: set, x, y. `trustworthiness` is that of the map, 0 to 1.
    """
    marks = marks_of(points["set"])
    columns = min(3, len(marks))

    def draw(ax, rows):
        name, shown = rows["set"].iloc[0], {"linewidth": 0, "rasterized": True, "ax": ax}
        sns.scatterplot(points, x="x", y="y", s=2, color="0.88", **shown)
        dot = float(np.clip(100 / np.sqrt(len(rows)), 4, 16))
        sns.scatterplot(rows, x="x", y="y", s=dot, color=marks[name][0], **shown)
        ax.set(xlabel="", ylabel="", xticks=[], yticks=[])
        ax.spines[["left", "bottom"]].set_visible(False)

    height = 2.2 * -(-len(marks) // columns)
    fig, panels = facets(points, draw, col="set", col_wrap=columns, height=height)
    for name, ax in panels.items():
        ax.set_title(NAMES.get(name, name))
    below(
        fig, f"UMAP of {len(points):,} embeddings; trustworthiness {trustworthiness:.3f}", width=99
    )
    return fig
