"""Corpora: similarity, clusters and maps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from ragkit.report.figures import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION
from ragkit.report.plots.base import axes, dots, facets, legend, lines, marks_of, palette, words
from ragkit.report.tables import plain

# Sources of documents: seven colours, the second seven with another marker.
_SOURCES = "slack gmail linear google_drive hubspot fireflies github jira confluence article"
_SOURCES += " feature_request known_issue web"
SOURCES = {
    name: ((BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)[number % 7], "o^"[number // 7])
    for number, name in enumerate(_SOURCES.split())
}
SIMILARITIES = {
    "local_similarity": "ten nearest",
    "in_exact": "same cluster",
    "cross_exact": "other cluster",
}
SWEPT = {
    "in_cluster": "in-cluster similarity",
    "cross_cluster": "cross-cluster similarity",
    "gap": "their gap",
    "silhouette": "silhouette",
}


def similarity(profiles: pd.DataFrame, by_size: pd.DataFrame, *, label: str = "") -> Figure:
    """Draw EnterpriseRAG-Bench's Table 3 at equal size, and local density against size.

    `profiles` and `by_size` are rows of `profile` and `density_by_size` of
    `ragkit.measures.corpus`, with the columns corpus and (profiles) variant.
    """
    long = profiles.melt(["corpus", "variant"], list(SIMILARITIES), "measure")
    found = long.groupby(["measure", "variant", "corpus"], sort=False)["value"]
    found = found.agg(value="mean", low="min", high="max").reset_index()
    found["row"] = found["measure"].map(SIMILARITIES) + ", " + found["variant"]
    marks = marks_of(profiles["corpus"])
    fig, (left, right) = axes("page", 2.6, 1, 2, width_ratios=[1.5, 1])
    dots(left, found, "row", hue="corpus", marks=marks)
    left.set_xlabel("mean cosine similarity (line: range over parts)")
    lines(right, by_size, "size", "local_density", "corpus", marks)
    right.set_xscale("log")
    right.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    shown = sorted(set(by_size["size"]))
    right.set_xticks(shown[:: 1 + (len(shown) - 1) // 6])
    right.minorticks_off()
    right.set(xlabel=f"{label or 'documents'} (log scale)", ylabel="local density (cosine)")
    legend(fig, marks)
    return fig


def by_clusters(swept: pd.DataFrame) -> Figure:
    """Draw cluster measures of several corpora against the number of clusters.

    `swept` is the result of `ragkit.measures.corpus.sweep`; the dashed line is the paper's k.
    """
    marks = marks_of(swept["corpus"])
    long = swept.melt(["corpus", "k"], list(SWEPT), "measure")

    def draw(ax, rows):
        lines(ax, rows, "k", "value", "corpus", marks)
        ax.axvline(10, color=GREY, linewidth=0.6, linestyle="--")
        ax.set_xlabel("clusters k")

    fig, panels = facets(long, draw, col="measure", sharey=False, height=2.1)
    for measure, ax in panels.items():
        ax.set_title(SWEPT[measure], fontweight="normal")
    legend(fig, marks)
    return fig


def maps(points: pd.DataFrame) -> Figure:
    """Draw maps of several corpora, a column each and a row a method, coloured by source.

    `points` are rows of `ragkit.measures.corpus.atlas` with a column corpus. The number in the
    middle of a cluster refers to its terms, below the map.
    """
    present = list(dict.fromkeys(points["source"]))
    sources = [name for name in SOURCES if name in present]
    sources += sorted(name for name in present if name not in SOURCES)
    marks = {name: _source(name) for name in sources}

    def draw(ax, rows):
        sns.scatterplot(
            rows, x="x", y="y", **palette("source", marks), linewidth=0, rasterized=True, ax=ax,
            s=float(np.clip(220 / np.sqrt(len(rows)), 3, 16)),
        )  # fmt: skip
        middles = rows.groupby("terms")[["x", "y"]].median()
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
        titles="{col_name}\n{row_name}",
        small=True, height=0.6 + (1.9 + 0.11 * clusters) * rows,
    )  # fmt: skip
    names = {words(name): found for name, found in marks.items()}
    legend(fig, names, loc="lower center", ncols=min(7, len(names)))
    return fig


class Page:
    """A plotly figure that a notebook and its HTML page show without network."""

    def __init__(self, figure):
        self.figure = figure

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        import json

        from plotly.io import to_json

        # A fixed id gives the same figure the same bytes.
        page = self.figure.to_html(full_html=False, include_plotlyjs=True, div_id="explorer")
        described = json.loads(to_json(self.figure))
        return {"application/vnd.plotly.v1+json": described, "text/html": page}


def explorer(points: pd.DataFrame) -> Page:
    """Draw the maps of one method for reading: the mouse shows a document's title and source.

    `points` are rows of `ragkit.measures.corpus.atlas`, of one method, with a column corpus.
    """
    from html import escape

    from plotly.graph_objects import Scattergl
    from plotly.subplots import make_subplots

    corpora = list(dict.fromkeys(points["corpus"]))
    trust = points.groupby("corpus")["trustworthiness"].first()
    titles = [f"{name} (trustworthiness {trust[name]:.2f})" for name in corpora]
    fig = make_subplots(1, len(corpora), subplot_titles=titles, horizontal_spacing=0.02)
    shapes, seen = {"o": "circle", "^": "triangle-up"}, set()
    for (name, source), group in points.groupby(["corpus", "source"], sort=False):
        paint, shape = _source(source)
        told = group[["title", "source", "terms"]].map(lambda value: escape(plain(str(value))))
        trace = Scattergl(
            x=group["x"].round(2).tolist(), y=group["y"].round(2).tolist(), mode="markers",
            name=str(source), legendgroup=str(source), showlegend=source not in seen,
            marker={"color": paint, "size": 5, "symbol": shapes[shape]},
            customdata=told.to_numpy().tolist(),
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}, cluster: %{customdata[2]}<extra></extra>",
        )  # fmt: skip
        fig.add_trace(trace, row=1, col=corpora.index(name) + 1)
        seen.add(source)
    fig.update_xaxes(visible=False)
    fig.update_yaxes(visible=False)
    margin, below = {"l": 10, "r": 10, "t": 60, "b": 10}, {"orientation": "h", "y": -0.02}
    fig.update_layout(template="plotly_white", height=520, margin=margin, legend=below)
    return Page(fig)


def _source(name: str) -> tuple[str, str]:
    return SOURCES.get(name, (GREY, "o"))
