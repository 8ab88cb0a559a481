"""Benchmarks: what is at hand, and what they consist of.

>>> from ragkit import datasets
>>> from ragkit.datasets import reported
>>> from ragkit.measures import describe
>>> from ragkit.report import scoreboard, tables
>>> board = scoreboard.exported()
>>> figures = [statuses(tables.counts(board)), differences(board)]
>>> bench, printed = datasets.load("enterpriserag_bench"), reported.load("enterpriserag_bench", "9")
>>> figures += [volumes(describe.composition(bench.documents), printed, label="sample")]
>>> counted, printed = describe.source_coverage(bench.questions), reported.load("enterpriserag_bench", "10")
>>> compared = tables.compare(printed, tables.fill(printed, counted))
>>> figures += [coverage(compared, order=list(counted.index))]
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ragkit.report.figures import BLACK, BLUE, NAMES, STYLE, VERMILION
from ragkit.report.plots.base import axes, forest, heat, legend, words
from ragkit.report.tables import title

STATUS_MARKS = {status: tuple(row["mark"]) for status, row in STYLE["status"].items()}


def coverage(comparison: pd.DataFrame, *, order: list[str]) -> Figure:
    """Draw EnterpriseRAG-Bench's Table 10 as measured; cells that differ show the printed number.

    `comparison` is the result of `ragkit.report.tables.compare` on that table.
    """
    cells = comparison[comparison["column"] != "questions"]
    rows = [kind for kind in order if kind in set(cells["row"])]
    off = cells["status"].isin(["close", "differs"])
    text = cells["measured"].map("{:.0f}".format).where(cells["measured"].notna(), "")
    cells = cells.assign(off=off, text=text + (" (" + cells["printed"] + ")").where(off, ""))
    grid, texts, frames = (
        cells.pivot(index="row", columns="column", values=name).loc[rows]
        for name in ("measured", "text", "off")
    )
    fig, ax = axes("page", 2.9)
    bar = {"label": "questions with the source", "shrink": 0.8}
    style = {"annot": texts, "fmt": "", "annot_kws": {"size": 6.5}, "cbar_kws": bar}
    heat(ax, grid, cmap="Blues", vmin=0, **style)
    for i, j in zip(*frames.to_numpy(dtype=bool).nonzero(), strict=True):
        ax.add_patch(plt.Rectangle((j + 0.02, i + 0.04), 0.96, 0.92, fill=False, ec=VERMILION))
    ax.set_xticks(ax.get_xticks(), [words(name, 10) for name in grid.columns], rotation=0)
    if off.any():
        ax.set_title("framed: measured (printed)", fontsize=7, fontweight="normal", loc="right")
    return fig


def volumes(sizes: pd.DataFrame, printed: pd.DataFrame, *, label: str = "generated") -> Figure:
    """Draw each source's share of the documents and their lengths, and the printed ones.

    `sizes` is the result of `ragkit.measures.describe.composition`; `printed` is
    EnterpriseRAG-Bench's Table 9; `label` names what was measured.
    """
    given = printed.pivot(index="row", columns="column", values="value").drop(index="total")
    given = given.loc[given.index.isin(sizes.index)].sort_values("documents", ascending=False)
    share, length = "share of documents (%, log scale)", "characters: median, to 95 % quantile"
    parts = []
    for name, table in {label: sizes.loc[given.index], "printed": given}.items():
        table = table.rename(words).rename_axis("source").reset_index().assign(number=name)
        part = 100 * table["documents"] / table["documents"].sum()
        ends = {"value": table["median"], "low": table["median"], "high": table["p95"]}
        parts += [table.assign(panel=share, value=part), table.assign(panel=length, **ends)]
    fig = forest(
        pd.concat(parts), "source", {share: share, length: length}, hue="number", log={share: True},
        marks={label: (BLUE, "o"), "printed": (BLACK, "x")}, ends={length: (0, None)},
        panels={"col": "panel"}, width="page", height=2.7,
    )  # fmt: skip
    fig.axes[1].xaxis.set_major_locator(plt.MultipleLocator(4000))
    fig.axes[1].xaxis.set_major_formatter("{x:,.0f}")
    return fig


def statuses(counts: pd.DataFrame) -> Figure:
    """Draw how many printed numbers of each paper have each status (`tables.counts`)."""
    papers = counts.drop(index="all")
    total = counts.loc["all"]
    found = {name: paint for name, (paint, _) in STATUS_MARKS.items() if total[name]}
    shown = papers[list(found)].rename(index=NAMES).iloc[::-1]
    fig, ax = axes("page", 1.9)
    shown.plot.barh(stacked=True, color=[*found.values()], width=0.75, legend=False, ax=ax)
    for bars, status in zip(ax.containers, shown, strict=True):
        wide = shown[status] > 0.03 * papers["numbers"].max()
        labels = shown[status].astype(str).where(wide, "")
        ax.bar_label(bars, labels, label_type="center", fontsize=7)
    ax.set(xlabel="printed numbers", ylabel="")
    marks = {f"{name} ({total[name]})": (paint, "s") for name, paint in found.items()}
    legend(fig, marks, loc="upper center", ncols=min(6, len(marks)))
    return fig


def differences(shown: pd.DataFrame) -> Figure:
    """Draw how far measured numbers lie from printed ones, by table.

    `shown` are rows of a scoreboard; those without a measured number are left out.
    """
    rows = shown.dropna(subset=["measured", "value"])
    most = np.maximum(rows["measured"].abs(), rows["value"].abs())
    rows = rows.assign(
        percent=(100 * (rows["measured"] - rows["value"]) / most).fillna(0),
        place=[title(*key) for key in zip(rows["paper"], rows["table"], strict=True)],
    )
    marks = {name: STATUS_MARKS[name] for name in STATUS_MARKS if name in set(rows["status"])}
    places = list(dict.fromkeys(rows["place"]))
    fig, ax = axes("page", 0.9 + 0.24 * len(places))
    for status, (paint, shape) in reversed(marks.items()):
        own = rows[rows["status"] == status]
        style = {"s": 20, "lw": 0.3, "edgecolor": BLACK, "alpha": 0.8}
        ax.scatter(
            own["percent"], own["place"].map(places.index), color=paint, marker=shape, **style
        )
    ax.set_yticks(range(len(places)), places)
    ax.set_ylim(len(places) - 0.5, -0.5)
    ends = [-100, -10, -1, 0, 1, 10, 100]
    ax.set_xscale("symlog", linthresh=1)
    ax.set_xticks(ends, [f"{end:+g}" if end else "0" for end in ends])
    ax.set_xlim(-260, 260)
    ax.axvline(0, color=BLACK, linewidth=0.6, zorder=0)
    for place in range(1, len(places), 2):
        ax.axhspan(place - 0.5, place + 0.5, color="0.96", zorder=-1, linewidth=0)
    ax.set(xlabel="measured less printed (% of the larger; log scale beyond 1 %)", ylabel="")
    ax.tick_params(axis="y", length=0)
    legend(fig, marks)
    return fig
