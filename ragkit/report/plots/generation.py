"""The figures of generated companies: data in, figure out. Style and saving are `ragkit.report.figures`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ragkit.report.figures import BLACK, BLUE, SKY, size

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def volumes(sizes: pd.DataFrame, printed: pd.DataFrame, *, label: str = "") -> Figure:
    """Draw each source's share of the documents and their lengths, beside the printed ones.

    Parameters
    ----------
    sizes : DataFrame
        The result of `ragkit.measures.describe.composition`: indexed by source, documents, median, p95.
    printed : DataFrame
        The reported numbers of EnterpriseRAG-Bench's Table 9.
    label : str
        What was measured, for the legend.
    """
    import matplotlib.pyplot as plt
    from matplotlib.ticker import MultipleLocator

    given = printed.pivot(index="row", columns="column", values="value")
    rows = [name for name in given.sort_values("documents").index if name in sizes.index]
    rows = [name for name in rows if name != "total"]
    places = np.arange(len(rows))
    fig, axes = plt.subplots(1, 2, sharey=True, figsize=size("page", 2.7))
    for frame, paint, shape, shift, name in (
        (sizes, BLUE, "o", 0.17, label or "generated"),
        (given, BLACK, "x", -0.17, "printed"),
    ):
        part = frame.loc[rows]
        share = 100 * part["documents"] / part["documents"].sum()
        axes[0].plot(share, places + shift, shape, color=paint, label=name)
        axes[1].hlines(places + shift, part["median"], part["p95"], color=paint, linewidth=1)
        axes[1].plot(part["median"], places + shift, shape, color=paint)
        axes[1].plot(part["p95"], places + shift, "|", color=paint, markersize=6)
    axes[0].set_xscale("log")
    axes[0].xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes[0].set_xlabel("share of the documents (%, log scale)")
    axes[1].set_xlim(left=0)
    axes[1].xaxis.set_major_locator(MultipleLocator(4000))
    axes[1].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes[1].set_xlabel("characters in a document: median to 95 % quantile")
    axes[0].set_yticks(places, [name.replace("_", " ") for name in rows])
    for ax in axes:
        ax.grid(axis="x")
    fig.legend(loc="outside upper right", ncols=2)
    return fig


def misfiled(moves: pd.DataFrame, documents: pd.Series, printed: pd.Series) -> Figure:
    """Draw the share of each source's documents that lie in a wrong place.

    Parameters
    ----------
    moves : DataFrame
        Indexed by source: random and plausible, counts.
    documents : Series
        Documents by source.
    printed : Series
        The printed shares (%) of the two kinds, in the same order.
    """
    import matplotlib.pyplot as plt

    share = 100 * moves[["random", "plausible"]].div(documents.reindex(moves.index), axis=0)
    share = share.loc[documents.reindex(moves.index).sort_values().index]
    places = np.arange(len(share))
    fig, ax = plt.subplots(figsize=size("column", 2.5))
    ax.barh(places, share["random"], color=BLUE, height=0.65, label="anywhere")
    ax.barh(
        places, share["plausible"], left=share["random"], color=SKY, height=0.65, label="nearby"
    )
    for at in np.cumsum(printed.to_numpy()):
        ax.axvline(at, color=BLACK, linewidth=0.8, linestyle="--")
    names = [f"{name.replace('_', ' ')} ({documents[name]:,.0f})" for name in share.index]
    ax.set_yticks(places, names)
    first, both = printed.iloc[0], printed.sum()
    ax.set_xlabel(f"misfiled documents (%)\ndashed: printed, {first:g} and {both:g} in all")
    fig.legend(loc="outside upper right", ncols=2)
    return fig
