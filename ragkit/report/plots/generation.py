"""Generated companies beside the printed numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from ragkit.report.figures import BLACK, BLUE, ORANGE
from ragkit.report.plots.base import axes, dots, legend, words

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def volumes(sizes: pd.DataFrame, printed: pd.DataFrame, *, label: str = "generated") -> Figure:
    """Draw each source's share of the documents and their lengths, and the printed ones.

    `sizes` is the result of `ragkit.measures.describe.composition`; `printed` is
    EnterpriseRAG-Bench's Table 9; `label` names what was measured.
    """
    from matplotlib.ticker import MultipleLocator

    given = printed.pivot(index="row", columns="column", values="value").drop(index="total")
    given = given.loc[given.index.isin(sizes.index)].sort_values("documents", ascending=False)
    parts = {label: sizes.loc[given.index], "printed": given}
    long = pd.concat(parts, names=["number", "source"]).reset_index()
    long["share"] = 100 * long["documents"] / long.groupby("number")["documents"].transform("sum")
    long["source"] = long["source"].map(words)
    marks = {label: (BLUE, "o"), "printed": (BLACK, "x")}
    fig, (left, right) = axes("page", 2.7, 1, 2, sharey=True)
    dots(left, long, "source", value="share", hue="number", marks=marks)
    left.set_xscale("log")
    left.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    left.set_xlabel("share of the documents (%, log scale)")
    ends = long.assign(low=long["median"], high=long["p95"])
    dots(right, ends, "source", value="median", hue="number", marks=marks)
    right.set_xlim(left=0)
    right.xaxis.set_major_locator(MultipleLocator(4000))
    right.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    right.set_xlabel("characters: median, line to 95 % quantile")
    legend(fig, marks)
    return fig


def misfiled(moves: pd.DataFrame, documents: pd.Series, printed: pd.Series) -> Figure:
    """Draw the share of each source's documents that lie in a wrong place.

    `moves` counts by source (the index) those moved at `random` and to a `plausible` place;
    `documents` counts all; `printed` are the shares (%) of the two kinds, in this order.
    """
    marks = {"anywhere": (BLUE, "o"), "nearby": (ORANGE, "v")}
    share = 100 * moves[["random", "plausible"]].div(documents.reindex(moves.index), axis=0)
    share = share.set_axis(list(marks), axis=1)
    share = share.loc[documents.reindex(moves.index).sort_values(ascending=False).index]
    share.index = [f"{words(name)} ({documents[name]:,.0f})" for name in share.index]
    long = share.rename_axis("source").reset_index().melt("source", var_name="kind")
    fig, ax = axes("column", 2.5)
    for (paint, _), at in zip(marks.values(), printed, strict=True):
        ax.axvline(at, color=paint, linewidth=0.8, linestyle="--")
    dots(ax, long, "source", hue="kind", marks=marks, dodge=0.001)
    ax.set_xlim(left=0)
    ax.set_xlabel("misfiled documents (%); dashed: printed")
    legend(fig, marks)
    return fig
