"""Corpora: similarity, clusters and maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ragkit.report.figures import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION
from ragkit.report.plots.base import axes, dots, facets, legend, marks_of, words
from ragkit.report.tables import plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

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

    Parameters
    ----------
    profiles : DataFrame
        Rows of `ragkit.measures.corpus.profile` with the columns corpus and variant.
    by_size : DataFrame
        Rows of `ragkit.measures.corpus.density_by_size` with a column corpus.
    label : str
        What the second panel's documents are.
    """
    long = profiles.melt(["corpus", "variant"], list(SIMILARITIES), "measure")
    found = long.groupby(["measure", "variant", "corpus"], sort=False)["value"]
    found = found.agg(value="mean", low="min", high="max").reset_index()
    found["row"] = found["measure"].map(SIMILARITIES) + ", " + found["variant"]
    marks = marks_of(profiles["corpus"])
    fig, (left, right) = axes("page", 2.6, 1, 2, width_ratios=[1.5, 1])
    dots(left, found, "row", hue="corpus", marks=marks)
    left.set_xlabel("mean cosine similarity (line: range over parts)")
    _bands(right, by_size, "size", "local_density", marks)
    right.set_xscale("log")
    right.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    shown = sorted(set(by_size["size"]))
    right.set_xticks(shown[:: 1 + (len(shown) - 1) // 6])
    right.minorticks_off()
    right.set(xlabel=f"{label or 'documents'} (log scale)", ylabel="local density (cosine)")
    legend(fig, marks)
    return fig


def sweep(swept: pd.DataFrame, *, reference: int = 10) -> Figure:
    """Draw cluster measures of several corpora against the number of clusters.

    Parameters
    ----------
    swept : DataFrame
        The result of `ragkit.measures.corpus.similarity_by_k`.
    reference : int, default=10
        The k that the paper prints, marked.
    """
    marks = marks_of(swept["corpus"])
    long = swept.melt(["corpus", "k"], list(SWEPT), "measure")

    def draw(ax, rows):
        _bands(ax, rows, "k", "value", marks)
        ax.axvline(reference, color=GREY, linewidth=0.6, linestyle="--")
        ax.set_title(SWEPT[rows["measure"].iloc[0]], fontweight="normal")
        ax.set(xlabel="clusters k", ylabel="")

    fig, panels = facets(long, draw, col="measure", sharey=False, height=2.1)
    for measure, ax in panels.items():
        ax.set_title(SWEPT[measure], fontweight="normal")
    legend(fig, marks)
    return fig


def maps(points: pd.DataFrame) -> Figure:
    """Draw maps of several corpora, a column each and a row a method, coloured by source.

    Parameters
    ----------
    points : DataFrame
        Rows of `ragkit.measures.corpus.atlas` with a column corpus. The number in the middle of
        a cluster refers to its terms, below.
    """
    import seaborn as sns

    present = list(dict.fromkeys(points["source"]))
    sources = [name for name in SOURCES if name in present]
    sources += sorted(name for name in present if name not in SOURCES)
    marks = {name: _source(name) for name in sources}

    def draw(ax, rows):
        sns.scatterplot(
            rows, x="x", y="y", hue="source", style="source", legend=False, linewidth=0, ax=ax,
            palette={name: paint for name, (paint, _) in marks.items()}, rasterized=True,
            markers={name: shape for name, (_, shape) in marks.items()},
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


def _bands(ax, table: pd.DataFrame, x: str, y: str, marks: dict) -> None:
    """Draw means over repeats against x, and bands from the least to the largest value."""
    import seaborn as sns

    sns.lineplot(
        table, x=x, y=y, hue="corpus", style="corpus", errorbar=("pi", 100), dashes=False, ax=ax,
        palette={name: paint for name, (paint, _) in marks.items()}, legend=False, markersize=4,
        markers={name: shape for name, (_, shape) in marks.items()}, markeredgewidth=0,
        err_kws={"alpha": 0.15, "linewidth": 0},
    )  # fmt: skip


class Page:
    """A plotly figure that a notebook and its HTML page show without network.

    JupyterLab draws the figure's description itself. An HTML page gets the library too,
    compressed: 2 MB in place of 5, unpacked by the browser.
    """

    def __init__(self, figure):
        self.figure = figure

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        import base64
        import gzip
        import hashlib
        import json

        from plotly.io import to_json
        from plotly.offline import get_plotlyjs

        packed = base64.b64encode(gzip.compress(get_plotlyjs().encode("utf-8"), mtime=0)).decode()
        description = to_json(self.figure).replace("</", "<\\/")
        place = "figure-" + hashlib.sha256(description.encode("utf-8")).hexdigest()[:12]
        return {
            "application/vnd.plotly.v1+json": json.loads(description),
            "text/html": _PAGE % {"place": place, "packed": packed, "figure": description},
        }


_PAGE = """<div id="%(place)s" style="width:100%%;min-height:520px"></div>
<script>
(async () => {
  const bytes = Uint8Array.from(atob("%(packed)s"), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent =
    "(function (define, module, exports) {" + (await new Response(stream).text()) + "\\n})()";
  document.head.append(script);
  const figure = %(figure)s;
  window.Plotly.newPlot("%(place)s", figure.data, figure.layout, {responsive: true});
})();
</script>"""


def explorer(points: pd.DataFrame) -> Page:
    """Draw the maps of one method for reading: a document's title and source show under the mouse.

    Parameters
    ----------
    points : DataFrame
        Rows of `ragkit.measures.corpus.atlas`, of one method, with a column corpus.
    """
    from html import escape

    from plotly.graph_objects import Scattergl
    from plotly.subplots import make_subplots

    corpora = list(dict.fromkeys(points["corpus"]))
    trust = points.groupby("corpus")["trustworthiness"].first()
    fig = make_subplots(
        1,
        len(corpora),
        subplot_titles=[f"{name} (trustworthiness {trust[name]:.2f})" for name in corpora],
        horizontal_spacing=0.02,
    )
    seen = set()
    for (name, source), group in points.groupby(["corpus", "source"], sort=False):
        paint, shape = _source(source)
        fig.add_trace(
            Scattergl(
                x=group["x"].round(2).tolist(),
                y=group["y"].round(2).tolist(),
                mode="markers",
                name=str(source),
                legendgroup=str(source),
                showlegend=source not in seen,
                marker={
                    "color": paint,
                    "size": 5,
                    "symbol": {"o": "circle", "^": "triangle-up"}[shape],
                },
                customdata=[
                    [escape(plain(str(value))) for value in row]
                    for row in group[["title", "source", "terms"]].itertuples(index=False)
                ],
                hovertemplate="%{customdata[0]}<br>%{customdata[1]}, cluster: %{customdata[2]}"
                "<extra></extra>",
            ),
            row=1,
            col=corpora.index(name) + 1,
        )
        seen.add(source)
    fig.update_xaxes(visible=False)
    fig.update_yaxes(visible=False)
    fig.update_layout(
        template="plotly_white",
        height=520,
        margin={"l": 10, "r": 10, "t": 60, "b": 10},
        legend={"orientation": "h", "y": -0.02},
    )
    return Page(fig)


def _source(name: str) -> tuple[str, str]:
    return SOURCES.get(name, (GREY, "o"))
