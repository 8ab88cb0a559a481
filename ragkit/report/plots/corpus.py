"""Corpora as maps.

>>> points = pd.DataFrame({"corpus": "mine", "method": "UMAP", "source": ["chat", "mail"]})
>>> points = points.assign(x=[0.0, 1.0], y=[1.0, 0.0], cluster=[0, 1], terms=["pump", "invoice"])
>>> figure = maps(points.assign(trustworthiness=0.9))
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from ragkit.report.figures import BLACK, GREY, SOURCES
from ragkit.report.plots.base import facets, legend, palette, words
from ragkit.report.tables import plain


def maps(points: pd.DataFrame) -> Figure:
    """Draw maps of several corpora, a column each and a row a method, coloured by source.

    `points` are rows of `ragkit.measures.corpus.atlas` with a column corpus. The number in the
    middle of a cluster refers to its terms, below the map.
    """
    present = list(dict.fromkeys(points["source"]))
    sources = [name for name in SOURCES if name in present]
    sources += sorted(name for name in present if name not in SOURCES)
    marks = {name: SOURCES.get(name, (GREY, "o")) for name in sources}

    def draw(ax, rows):
        sns.scatterplot(
            rows, x="x", y="y", **palette("source", marks), linewidth=0, rasterized=True, ax=ax,
            s=float(np.clip(220 / np.sqrt(len(rows)), 3, 16)),
        )  # fmt: skip
        middles = _apart(rows.groupby("terms")[["x", "y"]].median(), rows)
        for number, (x, y) in enumerate(middles.to_numpy(), start=1):
            box = {"boxstyle": "circle,pad=0.2", "fc": "white", "ec": BLACK, "lw": 0.5}
            ax.annotate(str(number), (x, y), ha="center", va="center", fontsize=6, bbox=box)
        listed = [f"{n}  {plain(terms)}" for n, terms in enumerate(middles.index, start=1)]
        first = f"{len(rows):,} points, trustworthiness {rows['trustworthiness'].iloc[0]:.2f}"
        ax.set_xlabel("\n".join([first, *listed]), fontsize=6.5, loc="left")
        ax.set(ylabel="", xticks=[], yticks=[])
        ax.set_aspect("equal", "datalim")
        ax.spines[["left", "bottom"]].set_visible(False)

    rows, clusters = points["method"].nunique(), points.groupby("corpus")["terms"].nunique().max()
    fig, _ = facets(
        points, draw, row="method", col="corpus", sharex=False, sharey=False,
        titles="{col_name}\n{row_name}", small=True, height=0.6 + (1.9 + 0.11 * clusters) * rows,
    )  # fmt: skip
    names = {words(name): found for name, found in marks.items()}
    legend(fig, names, loc="lower center", ncols=min(7, len(names)))
    return fig


def _apart(places: pd.DataFrame, points: pd.DataFrame, share: float = 0.09) -> pd.DataFrame:
    """Return places that lie at least a share of the map apart: of two that touch both give way."""
    moved = places.copy()
    least = share * float(np.ptp(points[["x", "y"]].to_numpy(), axis=0).max())
    for _ in range(50):
        for i in range(len(moved)):
            for j in range(i):
                gap = moved.iloc[i] - moved.iloc[j]
                far = float(np.hypot(*gap))
                if far < least:
                    push = gap / far if far else pd.Series({"x": 0.0, "y": 1.0})
                    moved.iloc[i] += push * (least - far) / 2
                    moved.iloc[j] -= push * (least - far) / 2
    return moved
