"""The figures of the scaling study: data in, figure out. Style and saving are `ragkit.report.figures`."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from ragkit.report.figures import BLACK, BLUE, GREEN, ORANGE, PURPLE, VERMILION, size

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from ragkit.systems.sweep import Tested

# BM25 as everywhere; then exact search over vectors.
DIM = "#666666"  # of the right axis, and all that belongs to it
PAINTS = ((BLUE, "o"), (VERMILION, "s"), (GREEN, "^"), (PURPLE, "D"), (ORANGE, "v"))


def scaling(
    summary: pd.DataFrame, density: pd.DataFrame, tested: Mapping[str, Tested], *, label: str = ""
) -> Figure:
    """Draw recall and local density against corpus size (EnterpriseRAG-Bench, Figure 3).

    Parameters
    ----------
    summary : DataFrame
        Rows of `Scaling.summary`: system, size, mean, low, high.
    density : DataFrame
        `Scaling.density`; drawn on the right axis.
    tested : mapping of str to Tested
        `Scaling.tested`: the line through all sizes but the largest, whose point is hollow.
    label : str
        What it was measured on, and which recall.
    """
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D

    fig, ax = plt.subplots(figsize=size("page", 3.3))
    right = ax.twinx()
    right.spines["right"].set(visible=True, color=DIM)
    right.tick_params(axis="y", colors=DIM)
    marks = _marks(summary["system"])
    for system, rows in summary.groupby("system", sort=False):
        paint, shape = marks[system]
        if system in tested:
            _line(ax, tested[system], paint)
        errors = [rows["mean"] - rows["low"], rows["high"] - rows["mean"]]
        ax.errorbar(
            rows["size"], rows["mean"], errors, fmt="none", ecolor=paint, elinewidth=0.9, zorder=3
        )
        held = (rows["size"] == rows["size"].max()) & (system in tested)
        for part, face in ((rows[~held], paint), (rows[held], "white")):
            ax.plot(
                part["size"],
                part["mean"],
                shape,
                color=paint,
                markerfacecolor=face,
                markersize=5,
                zorder=4,
            )
        if system not in tested and len(rows) > 1:
            ax.plot(rows["size"], rows["mean"], color=paint, linewidth=1)
    for system, rows in density.groupby("system", sort=False):
        _, shape = marks[system]
        errors = [rows["mean"] - rows["low"], rows["high"] - rows["mean"]]
        right.errorbar(
            rows["size"],
            rows["mean"],
            errors,
            fmt=":",
            marker=shape,
            markersize=3,
            color=DIM,
            markerfacecolor="white",
            elinewidth=0.7,
            linewidth=1,
        )
    _sizes(ax, summary["size"])
    ax.set_ylim(0, 1)
    ax.set_ylabel("recall (solid), higher is better")
    # Room below and above, so that the two families of lines share the panel, not the space.
    if len(density):
        low, high = density["low"].min(), density["high"].max()
        pad = 0.12 * max(high - low, 0.02)
        right.set_ylim(low - pad, high + pad)
    right.set_ylabel("local density (cosine, dotted),\nhigher is harder", color=DIM)
    ax.grid(axis="y")
    ax.set_xlabel(f"documents (log scale)\n{label}".strip())
    handles = [
        Line2D([], [], color=paint, marker=shape, label=system, markersize=5)
        for system, (paint, shape) in marks.items()
    ]
    plain = {"color": BLACK, "linewidth": 1}
    if tested:
        handles += [
            Line2D([], [], **plain, label="fit without the largest size"),
            Line2D(
                [],
                [],
                color=BLACK,
                marker="o",
                linestyle="",
                markerfacecolor="white",
                label="held out",
            ),
        ]
    handles.append(
        Line2D([], [], color=DIM, linewidth=1, linestyle=":", label="local density (right axis)")
    )
    fig.legend(handles=handles, loc="outside upper center", ncols=3)
    return fig


def costs(table: pd.DataFrame) -> Figure:
    """Draw what each system costs at each size: time to index, time to answer, index, memory.

    Parameters
    ----------
    table : DataFrame
        `Scaling.costs`.
    """
    import matplotlib.pyplot as plt
    from matplotlib.ticker import LogLocator, NullLocator

    panels = (
        ("index_seconds", 1.0, "time to index\n(s)"),
        ("query_ms", 1.0, "time to answer\n(ms, median)"),
        ("index_bytes", 1e6, "index\n(MB)"),
        ("memory_bytes", 1e9, "whole process\n(GB, peak)"),
    )
    fig, axes = plt.subplots(1, len(panels), figsize=size("page", 2.3), sharex=True)
    marks = _marks(table["system"])
    for ax, (column, unit, label) in zip(axes, panels, strict=True):
        for system, rows in table.groupby("system", sort=False):
            paint, shape = marks[system]
            values = rows[column] / unit
            ax.plot(rows["size"], values, color=paint, marker=shape, label=system, markersize=3.5)
        _sizes(ax, table["size"], few=True)
        ax.set_title(label, fontweight="normal")
        if column != "memory_bytes":
            ax.set_yscale("log")
            wide = table[column].max() > 50 * table[column].min()
            ax.yaxis.set_major_locator(LogLocator(subs=(1,) if wide else (1, 2, 5)))
            ax.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
            ax.yaxis.set_minor_locator(NullLocator())
        else:
            ax.set_ylim(bottom=0)
        ax.grid(axis="y")
    fig.supxlabel("documents (log scale)", fontsize=8)
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(marks))
    return fig


def by_type(summary: pd.DataFrame, *, label: str = "recall") -> Figure:
    """Draw recall against corpus size for each type of question, a panel each.

    Parameters
    ----------
    summary : DataFrame
        Rows of `Scaling.summary(by_type=True)`.
    label : str
        Which recall.
    """
    import matplotlib.pyplot as plt

    types, marks = list(dict.fromkeys(summary["type"])), _marks(summary["system"])
    columns = min(4, len(types))
    lines = -(-len(types) // columns)
    fig, axes = plt.subplots(
        lines,
        columns,
        figsize=size("page", 0.7 + 1.35 * lines),
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    for ax, kind in zip(axes.flat, types, strict=False):
        part = summary[summary["type"] == kind]
        for system, rows in part.groupby("system", sort=False):
            paint, shape = marks[system]
            ax.fill_between(
                rows["size"], rows["low"], rows["high"], color=paint, alpha=0.13, linewidth=0
            )
            ax.plot(rows["size"], rows["mean"], color=paint, marker=shape, markersize=3)
        title = f"{kind.replace('_', ' ').replace('intra document', 'intra-document')}"
        ax.set_title(f"{fill(title, 20)} ({part['n'].max()})", fontweight="normal")
        _sizes(ax, summary["size"], few=True)
        ax.set_ylim(-0.05, 1.05)
        ax.grid(axis="y")
    for ax in list(axes.flat)[len(types) :]:
        ax.set_visible(False)
    fig.supylabel(f"{label}, higher is better", fontsize=8)
    fig.supxlabel("documents (log scale)", fontsize=8)
    handles = [
        plt.Line2D([], [], color=paint, marker=shape, markersize=4, label=system)
        for system, (paint, shape) in marks.items()
    ]
    fig.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return fig


def _marks(systems) -> dict[str, tuple[str, str]]:
    names = list(dict.fromkeys(systems))
    return {name: PAINTS[number % len(PAINTS)] for number, name in enumerate(names)}


def _line(ax, found: Tested, paint: str) -> None:
    """Draw the fit without the largest size, on to that size, and its band."""
    xs = np.geomspace(min(found.fit.sizes), max(found.fit.sizes), 80)
    curve = [found.before.predict(x) for x in xs]
    ax.plot(xs, [point.value for point in curve], color=paint, linewidth=1.1)
    ax.fill_between(
        xs,
        [point.low for point in curve],
        [point.high for point in curve],
        color=paint,
        alpha=0.15,
        linewidth=0,
    )


def _sizes(ax, sizes, *, few: bool = False) -> None:
    """Put each size on a logarithmic axis under its own number; only some where there is no room."""
    shown = sorted(set(sizes))
    if few and len(shown) > 3:
        shown = sorted({shown[0], shown[len(shown) // 2], shown[-1]})
    ax.set_xscale("log")
    ax.set_xticks(shown, [_short(number) for number in shown])
    ax.minorticks_off()
    ax.set_xlim(min(sizes) / 1.25, max(sizes) * 1.25)


def _short(number: int) -> str:
    return f"{number / 1000:,.10g}k" if number >= 1000 else f"{number}"
