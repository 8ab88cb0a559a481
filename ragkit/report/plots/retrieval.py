"""Systems and judges compared: by type of question, by rank, on several scales.

>>> table = pd.DataFrame({"system": ["one", "two"], "value": [0.6, 0.4], "low": [0.5, 0.3]})
>>> table = table.assign(high=table["value"] + 0.1, type="basic", n=20, scale="judge A")
>>> figures = [by_type(table, order=["basic"], label="recall"), standings(table, label="correct")]
>>> scores = table.rename(columns={"system": "subject_id", "type": "question_type", "value": "score"})
>>> scores = scores.assign(judge_group="judge A", mean=scores["score"])
>>> figures += [ranking(scores, label="correct"), type_map(scores, order=["basic"], label="correct")]
>>> ranks = pd.DataFrame({"bm25": [1, 4, np.nan], "dense": [2, 1, 3], "type": "basic"})
>>> curves = table.assign(against="judge A", probability=[0.3, 0.7], correct=table["value"])
>>> figures += [first_ranks(ranks, depth=10), calibration(curves)]
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from ragkit.report.figures import BLACK, BLUE, GREY, marks_of
from ragkit.report.plots import base

NARROWEST = 0.18  # of all systems: the width of a panel that can still be read


def by_type(table: pd.DataFrame, *, order: list[str], label: str, note: str = "") -> Figure:
    """Draw what systems reach on each type of question; a single one needs no legend.

    `table`: type, system, n (questions), value, low, high.
    """
    hue = "system" if table["system"].nunique() > 1 else None
    sizes = table.groupby("type")["n"].max()
    kinds = {kind: f"{base.words(kind, 16)} ({sizes[kind]:.0f})" for kind in order if kind in sizes}
    shown = table.assign(type=table["type"].map(kinds)).dropna(subset="type")
    style = {"dodge": 0.6, "height": 1.0 + 0.34 * len(kinds)}
    return base.forest(shown, "type", hue=hue, order=kinds.values(), notes=(label, note), **style)


def ranking(table: pd.DataFrame, *, label: str) -> Figure:
    """Draw systems from best to worst, one panel a group of judges.

    `table`: judge_group, subject_id, mean, low, high.
    """
    counts = table["judge_group"].value_counts().sort_index()
    table = table.sort_values("mean", ascending=False, kind="stable")
    table = table.assign(rank=table.groupby("judge_group").cumcount() + 1)

    def draw(ax, rows):
        ax.vlines(rows["rank"], rows["low"], rows["high"], color=BLUE, linewidth=0.8, alpha=0.5)
        ax.plot(rows["rank"], rows["mean"], "o", color=BLUE, markersize=2)
        ax.axhline(rows["low"].iloc[0], color=BLACK, linewidth=0.6, linestyle="--")
        ax.set(xlabel="rank", xlim=(0, len(rows) + 1))
        ax.locator_params(axis="x", integer=True, nbins=max(2, min(6, len(rows) // 3)))
        ax.grid(axis="y")

    fig, panels = base.facets(
        table, draw, col="judge_group", col_order=list(counts.index), sharex=False, height=2.5,
        gridspec_kws={"width_ratios": counts.clip(lower=NARROWEST * counts.sum()).tolist()},
    )  # fmt: skip
    for name, ax in panels.items():
        ax.set_title(base.words(name, 18), fontsize=7)
    fig.axes[0].set_ylabel(label)
    told = "mean, 95 % interval; dashed: lower end of the best system's interval"
    fig.supxlabel(told, fontsize=7)
    return fig


def type_map(scores: pd.DataFrame, *, order: list[str], label: str) -> Figure:
    """Draw mean scores by type of question and system, one panel a group of judges.

    `scores`: judge_group, subject_id, question_type, score in [0, 1].
    """
    counts = scores.groupby("judge_group")["subject_id"].nunique()
    kinds = [kind for kind in order if kind in set(scores["question_type"])]
    widths = counts.clip(lower=NARROWEST * counts.sum()).tolist()
    style = {"sharey": True, "width_ratios": widths, "squeeze": False}
    fig, panels = base.axes("page", 2.5, 1, len(counts), **style)
    for ax, (name, rows) in zip(panels.flat, scores.groupby("judge_group"), strict=True):
        means = rows.groupby("subject_id")["score"].mean().sort_values(kind="stable")
        grid = rows.pivot_table(index="question_type", columns="subject_id", values="score")
        grid = grid.reindex(index=kinds, columns=means.index)
        base.heat(ax, grid, vmin=0, vmax=1, cbar=False, xticklabels=False)
        ax.set_title(f"{base.words(name, 18)}\n({len(means)} systems)", fontsize=7)
        ax.set_xlabel("worst to best")
    fig.colorbar(panels.flat[0].collections[0], ax=panels, label=label, shrink=0.9)
    return fig


def first_ranks(ranks: pd.DataFrame, *, depth: int, label: str = "") -> Figure:
    """Draw the rank of the first gold document under two systems, a point a question.

    `ranks` has two columns named after the systems, and `type`; NaN where no gold document was
    found, which is drawn beyond `depth`, the length of the lists.
    """
    one, other = [column for column in ranks.columns if column != "type"]
    beyond, marks = 2 * depth, marks_of(ranks["type"])
    rng = np.random.default_rng(0)  # moves equal points apart, the same way each time
    shown = ranks[[one, other]].fillna(beyond) * np.exp(rng.normal(0, 0.05, (len(ranks), 2)))
    fig, ax = base.axes("column", 3.5)
    ax.plot([1, beyond], [1, beyond], color=GREY, linewidth=0.6)
    sns.scatterplot(
        shown.assign(type=ranks["type"]), x=one, y=other, **base.palette("type", marks), s=14, alpha=0.7,
        linewidth=0, ax=ax, rasterized=len(ranks) > 300,
    )  # fmt: skip
    ticks = [tick for tick in (1, 2, 3, 5, 10, 20, 50, 100) if tick <= depth]
    ax.set(xscale="log", yscale="log")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks([*ticks, beyond], [*map(str, ticks), f">{depth}"])
        axis.set_ticks([], minor=True)
    ax.set(xlabel=f"rank of the first gold document, {one}", ylabel=f"the same, {other}")
    base.below(fig, label)
    marks = {base.words(name): found for name, found in marks.items()}
    base.legend(fig, marks, loc="upper center", ncols=2, handletextpad=0.1)
    return fig


def calibration(curves: pd.DataFrame) -> Figure:
    """Draw the share of answers that are correct by the probability that they are.

    `curves`: against, probability, correct, low, high.
    """
    marks = marks_of(curves["against"])
    fig, ax = base.axes("column", 2.9)
    ax.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=0.9)
    for side, rows in curves.groupby("against", sort=False):
        ax.vlines(rows["probability"], rows["low"], rows["high"], color=marks[side][0], linewidth=1)
    base.lines(ax, curves.drop(columns=["low", "high"]), "probability", "correct", "against", marks)
    ax.set_xlabel("probability of the offline judge (ten bins)")
    ax.set_ylabel("share correct by the verdicts\n(95 % interval)")
    ax.set_aspect("equal")
    base.legend(fig, marks)
    return fig


def standings(table: pd.DataFrame, *, label: str) -> Figure:
    """Draw the systems' scores on several judges' scales, a panel a scale, one order for all.

    `table`: scale, system, value, low, high. The first scale gives the order.
    """
    scales = table["scale"].unique()
    first = table[table["scale"] == scales[0]]
    order = list(first.sort_values("value", ascending=False, kind="stable")["system"])
    panels = {"col": "scale", "titles": "{col_name}", "small": True}
    style = {"width": "page" if len(scales) > 1 else "column", "height": 1.0 + 0.2 * len(order)}
    fig = base.forest(table, "system", order=order, panels=panels, markersize=4.5, **style)
    for ax, scale in zip(fig.axes, scales, strict=True):
        values = table[table["scale"] == scale].set_index("system")["value"]
        ranks = values.rank(ascending=False, method="min")
        ax.margins(x=0.1)
        ax.locator_params(axis="x", nbins=4)
        for place, system in enumerate(order):
            ax.text(1.02, place, f"{ranks[system]:.0f}", transform=ax.get_yaxis_transform(), size=7, va="center")  # fmt: skip
    fig.supxlabel(label, fontsize=8)
    return fig
