"""Generated questions: shares by category, and what the categories changed in the words."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ragkit.errors import DataError
from ragkit.report.figures import BLACK, BLUE, GREY, MARKS, NAMES, VERMILION, size
from ragkit.report.plots.base import dots, facets, legend, marks_of, words


def columns_of(heights: dict[str, int], label: str) -> tuple[Figure, dict[str, Axes]]:
    """Return a page of panels in two columns of about equal height, each as high as its rows.

    `heights` are the rows of each panel; `label` is that of the horizontal axes, which the panels
    of a column share.
    """
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
    `DataError` if `table` lacks one of them.
    """
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


# Metrics of LiveRAG's Table 4 with their direction.
DIVERSITY = {
    "ngram_diversity": "NGD\nmore diverse →",
    "pos_compression_ratio": "PoS-CR\n← more diverse",
    "homogenization_score": "HS (cosine)\n← more diverse",
    "length_entropy": "length entropy (nats)\nmore diverse →",
    "mean_length": "length (words)\n",
}


def diversity(
    samples: pd.DataFrame, printed: pd.DataFrame, *, aims: dict[str, float] | None = None
) -> Figure:
    """Draw Table 4: for every set the printed numbers, and the mean and range of our samples.

    `samples`: row (a set) and the metrics of `DIVERSITY`, one or more samples a set; `printed` is
    LiveRAG's Table 4; `aims` are values that generated questions aim at, by metric.
    """
    rows = list(dict.fromkeys([*samples["row"], *printed["row"]]))
    long = samples.melt("row", list(DIVERSITY), "metric")
    found = long.groupby(["row", "metric"])["value"].agg(value="mean", low="min", high="max")
    found, marks = found.reset_index(), marks_of(rows)
    found["printed"], columns = False, ["row", "metric", "value"]
    given = printed.loc[printed["metric"].isin(DIVERSITY), columns].assign(printed=True)

    def draw(ax, part):
        metric = part["metric"].iloc[0]
        if metric in (aims or {}):
            ax.axvline(aims[metric], color=VERMILION, linewidth=0.8, linestyle="--")
        own = part[~part["printed"].astype(bool)]
        dots(ax, own, "row", hue="row", marks=marks, order=rows, dodge=0.001, markersize=4.5)
        known = part[part["printed"].astype(bool)]
        dots(ax, known, "row", order=rows, color=BLACK, markers="x", markersize=4)
        ax.set_xlabel(DIVERSITY[metric])
        ax.margins(x=0.12)
        ax.set_yticks(range(len(rows)), [NAMES.get(row, row) for row in rows])

    fig, _ = facets(
        pd.concat([found, given]), draw, col="metric", col_order=list(DIVERSITY), sharex=False,
        titles="", height=0.22 * len(rows) + 1.0,
    )  # fmt: skip
    shown = {"measured (line: range over samples)": (GREY, "o"), "printed": MARKS["printed"]}
    legend(fig, shown | ({"the generator's aim": (VERMILION, "--")} if aims else {}))
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
        label = f"{NAMES.get(name, name)}\nmean {mean:.1f}"
        ax.set_yticks([])
        ax.set_ylabel(label, rotation=0, ha="right", va="center")
        ax.spines["left"].set_visible(False)

    fig, _ = facets(
        table, draw, row="set", sharey=False, titles="", width="column", height=0.4 + 0.5 * len(words)
    )  # fmt: skip
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
        ax.set(xlabel="", ylabel="", xticks=[], yticks=[], title=NAMES.get(name, name))
        ax.spines[["left", "bottom"]].set_visible(False)

    fig, panels = facets(
        points, draw, col="set", col_wrap=columns, height=2.2 * -(-len(marks) // columns)
    )
    for name, ax in panels.items():
        ax.set_title(NAMES.get(name, name))
    fig.supxlabel(
        f"UMAP of {len(points):,} embeddings; trustworthiness {trustworthiness:.3f}", fontsize=8
    )
    return fig
