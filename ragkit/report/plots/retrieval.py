"""Systems compared: by type of question, by rank, by recall and overlap."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from ragkit.report.figures import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    NAMES,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    size,
)
from ragkit.report.plots.marks import broken, marks_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


WIDTH = 46  # characters of a line below a figure one column wide


def by_type(table: pd.DataFrame, *, order: list[str], label: str, note: str = "") -> Figure:
    """Draw what systems reach on each type of question, with intervals.

    Parameters
    ----------
    table : DataFrame
        Columns type, system, n (questions), value, low, high; NaN limits draw no interval.
    order : list of str
        Types, top to bottom; those without a row are left out.
    label : str
        What is measured, with unit and direction.
    note : str
        What it was measured on, for the legend's line.
    """
    import matplotlib.pyplot as plt

    kinds = [kind for kind in order if kind in set(table["type"])]
    systems = list(dict.fromkeys(table["system"]))
    shifts = np.linspace(0.28, -0.28, len(systems)) if len(systems) > 1 else [0.0]
    marks = marks_of(systems)
    fig, ax = plt.subplots(figsize=size("column", 1.0 + 0.3 * len(kinds)))
    for system, shift in zip(systems, shifts, strict=True):
        rows = table[table["system"] == system].set_index("type").reindex(kinds)
        places = np.arange(len(kinds))[::-1] + shift
        paint, shape = marks[system]
        ax.hlines(places, rows["low"], rows["high"], color=paint, linewidth=1)
        ax.plot(rows["value"], places, shape, color=paint, markersize=3.5, label=system)
    sizes = table.groupby("type")["n"].max()
    names = [f"{broken(kind.replace('_', ' '))} ({sizes[kind]:.0f})" for kind in kinds]
    ax.set_yticks(np.arange(len(kinds))[::-1], names)
    ax.set_ylim(-0.6, len(kinds) - 0.4)
    ax.grid(axis="x")
    fig.supxlabel("\n".join([label, *wrap(note, WIDTH)]), fontsize=8)
    fig.legend(loc="outside upper right", ncols=min(len(systems), 4), columnspacing=1)
    return fig


def ranking(table: pd.DataFrame, *, label: str) -> Figure:
    """Draw systems from best to worst with their intervals, one panel a group of judges.

    Parameters
    ----------
    table : DataFrame
        Columns judge_group, subject_id, mean, low, high.
    label : str
        What is measured, with unit and direction.
    """
    import matplotlib.pyplot as plt

    groups = dict(iter(table.groupby("judge_group")))
    widths = [max(len(rows), 0.18 * len(table)) for rows in groups.values()]
    fig, axes = plt.subplots(
        1, len(groups), sharey=True, figsize=size("page", 2.5), width_ratios=widths, squeeze=False
    )
    paints = (BLUE, VERMILION, GREEN, PURPLE, ORANGE)
    for ax, (group, rows), paint in zip(axes.flat, groups.items(), paints, strict=False):
        rows = rows.sort_values("mean", ascending=False, kind="stable")
        places = np.arange(1, len(rows) + 1)
        ax.vlines(places, rows["low"], rows["high"], color=paint, linewidth=0.8, alpha=0.5)
        ax.plot(places, rows["mean"], "o", color=paint, markersize=2)
        ax.axhline(rows["low"].iloc[0], color=BLACK, linewidth=0.6, linestyle="--")
        ax.set_title(broken(group) if len(groups) > 1 else group, fontsize=7)
        ax.set_xlabel("rank")
        ax.grid(axis="y")
    axes.flat[0].set_ylabel(label)
    fig.supxlabel("dashed: lower end of the best system's interval", fontsize=7)
    return fig


def type_map(scores: pd.DataFrame, *, order: list[str], label: str) -> Figure:
    """Draw mean scores by type of question and system, one panel a group of judges.

    Parameters
    ----------
    scores : DataFrame
        Columns judge_group, subject_id, question_type, score in [0, 1].
    order : list of str
        Types, top to bottom; those without a score are left out.
    label : str
        What is measured, with unit and direction.
    """
    import matplotlib.pyplot as plt

    groups = dict(iter(scores.groupby("judge_group")))
    counts = {name: rows["subject_id"].nunique() for name, rows in groups.items()}
    widths = [max(count, 0.18 * sum(counts.values())) for count in counts.values()]
    kinds = [kind for kind in order if kind in set(scores["question_type"])]
    fig, axes = plt.subplots(
        1, len(groups), sharey=True, figsize=size("page", 2.4), width_ratios=widths, squeeze=False
    )
    for ax, (name, rows) in zip(axes.flat, groups.items(), strict=True):
        means = rows.groupby("subject_id")["score"].mean().sort_values(kind="stable")
        grid = rows.pivot_table(index="question_type", columns="subject_id", values="score")
        image = ax.imshow(
            grid.reindex(index=kinds, columns=means.index),
            aspect="auto",
            vmin=0,
            vmax=1,
            interpolation="nearest",
        )
        title = broken(name) if len(groups) > 1 else name
        ax.set_title(f"{title}\n({counts[name]} systems)", fontsize=7)
        ax.set_xticks([])
        ax.set_xlabel("worst to best")
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    axes.flat[0].set_yticks(range(len(kinds)), [kind.replace("_", " ") for kind in kinds])
    fig.colorbar(image, ax=axes, label=label, shrink=0.9)
    return fig


def first_ranks(ranks: pd.DataFrame, *, depth: int, label: str = "") -> Figure:
    """Draw the rank of the first gold document under two systems, a point a question.

    Parameters
    ----------
    ranks : DataFrame
        Two columns named after the systems, and `type`; NaN where no gold document was found.
    depth : int
        How deep the lists are; what was not found stands beyond.
    label : str
        What it was measured on.
    """
    import matplotlib.pyplot as plt

    one, other = [column for column in ranks.columns if column != "type"]
    beyond = 2 * depth
    fig, ax = plt.subplots(figsize=size("column", 3.2))
    rng = np.random.default_rng(0)  # moves equal points apart, the same way each time
    shown = ranks[[one, other]].fillna(beyond) * np.exp(rng.normal(0, 0.05, (len(ranks), 2)))
    kinds = list(dict.fromkeys(ranks["type"]))
    marks = dict(
        zip(kinds, [(c, m) for m in "os^" for c in (BLUE, VERMILION, GREEN, PURPLE)], strict=False)
    )
    for kind in kinds:
        part = shown[ranks["type"] == kind]
        paint, shape = marks[kind]
        ax.plot(
            part[one],
            part[other],
            shape,
            color=paint,
            markersize=3,
            alpha=0.7,
            markeredgewidth=0,
            label=kind.replace("_", " "),
            rasterized=len(ranks) > 300,
        )
    ticks = [tick for tick in (1, 2, 3, 5, 10, 20, 50, 100) if tick <= depth]
    for axis, scale in ((ax.xaxis, ax.set_xscale), (ax.yaxis, ax.set_yscale)):
        scale("log")
        axis.set_ticks([*ticks, beyond], [*map(str, ticks), f">{depth}"])
        axis.set_ticks([], minor=True)
    ax.plot([1, beyond], [1, beyond], color=GREY, linewidth=0.6)
    below = [f"rank of the first gold document, {one}", *wrap(label, WIDTH)]
    ax.set_xlabel("\n".join(below))
    ax.set_ylabel(f"the same, {other}")
    fig.legend(loc="outside upper center", ncols=2, handletextpad=0.1, columnspacing=0.8)
    return fig


def recalls(table: pd.DataFrame, *, label: str) -> Figure:
    """Draw recall at several cutoffs for each system, with intervals, best at the top.

    Parameters
    ----------
    table : DataFrame
        Columns system, metric ("R@1", "R@5", ...), value, low, high: means in [0, 1].
    label : str
        What it was measured on.
    """
    import matplotlib.pyplot as plt

    cutoffs = sorted(set(table["metric"]), key=lambda name: int(name.split("@")[1]))
    values = table.pivot(index="system", columns="metric", values="value")
    systems = values.sort_values(cutoffs[len(cutoffs) // 2], kind="stable").index.tolist()
    paints = ((SKY, "o"), (BLUE, "s"), (VERMILION, "D"), (PURPLE, "^"))
    shifts = np.linspace(0.2, -0.2, len(cutoffs)) if len(cutoffs) > 1 else [0.0]
    fig, ax = plt.subplots(figsize=size("column", 0.9 + 0.26 * len(systems)))
    for cutoff, shift, (paint, shape) in zip(cutoffs, shifts, paints, strict=False):
        rows = table[table["metric"] == cutoff].set_index("system").reindex(systems)
        places = np.arange(len(systems)) + shift
        ax.hlines(places, rows["low"], rows["high"], color=paint, linewidth=1)
        ax.plot(rows["value"], places, shape, color=paint, markersize=3.5, label=cutoff)
    ax.set_yticks(np.arange(len(systems)), systems)
    ax.set_ylim(-0.6, len(systems) - 0.4)
    ax.set_xlim(right=1.02)
    ax.grid(axis="x")
    ax.set_xlabel("\n".join(["recall, 95 % interval →", *wrap(label, WIDTH)]))
    fig.legend(loc="outside upper right", ncols=len(cutoffs))
    return fig


def overlap(
    table: pd.DataFrame, printed: pd.DataFrame, *, tables: dict[str, str], label: str
) -> Figure:
    """Draw each system's overlap with the gold answers beside the range that a paper prints.

    Parameters
    ----------
    table : DataFrame
        Columns set (of questions), system, metric, value, low, high: means in [0, 1].
    printed : grouped Series
        The printed values by (table, metric).
    tables : dict of str to str
        The printed table of each set of questions.
    label : str
        What it was measured with.
    """
    import matplotlib.pyplot as plt

    sets, names = list(dict.fromkeys(table["set"])), list(dict.fromkeys(table["metric"]))
    systems = list(dict.fromkeys(table["system"]))[::-1]
    fig, axes = plt.subplots(
        len(sets),
        len(names),
        sharex="col",
        sharey=True,
        squeeze=False,
        figsize=size("page", 0.7 + (0.35 + 0.13 * len(systems)) * len(sets)),
    )
    ranges = printed.agg(["min", "max"])
    for line, kind in zip(axes, sets, strict=True):
        for ax, name in zip(line, names, strict=True):
            rows = table[(table["set"] == kind) & (table["metric"] == name)]
            rows = rows.set_index("system").reindex(systems)
            low, high = ranges.loc[(tables[kind], name)]
            ax.axvspan(low, high, color=GREY, alpha=0.25, linewidth=0)
            places = np.arange(len(systems))
            ax.hlines(places, rows["low"], rows["high"], color=BLUE, linewidth=1)
            ax.plot(rows["value"], places, "o", color=BLUE, markersize=3)
            ax.grid(axis="x")
        line[0].set_yticks(np.arange(len(systems)), systems)
        line[0].set_ylabel(kind)
    for ax, name in zip(axes[-1], names, strict=True):
        ax.set_xlim(left=0)
        ax.set_xlabel(NAMES.get(name, name.replace("_", " ")) + " →")
    fig.supxlabel(f"grey: from the least to the most that the paper prints\n{label}", fontsize=7)
    return fig
