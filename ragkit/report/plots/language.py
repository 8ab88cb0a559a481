"""Linguistic diversity of question sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ragkit.report.figures import BLACK, GREY, MARKS, NAMES, VERMILION
from ragkit.report.plots.base import dots, facets, legend, marks_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    import seaborn as sns

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
    import seaborn as sns

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
