"""Corpora: similarity, clusters and maps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ragkit.report.figures import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION, size

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


# The corpora of the geometry notebook, as their benchmarks are drawn elsewhere.
CORPORA = {
    "company": (GREY, "h"),
    "help centre": (BLACK, "X"),
    "web": (BLUE, "o"),
    "generated help centre": (ORANGE, "v"),
}


# Sources of documents: seven colours, the second seven with another marker.
SOURCES = {
    name: ((BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)[number % 7], "o^"[number // 7])
    for number, name in enumerate(
        (
            *("slack", "gmail", "linear", "google_drive", "hubspot", "fireflies", "github"),
            *("jira", "confluence", "article", "feature_request", "known_issue", "web"),
        )
    )
}


SIMILARITIES = {
    "local_similarity": "ten nearest",
    "in_exact": "same cluster",
    "cross_exact": "other cluster",
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
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=size("page", 2.6), width_ratios=[1.5, 1])
    variants, names = (
        list(dict.fromkeys(profiles["variant"])),
        list(dict.fromkeys(profiles["corpus"])),
    )
    rows = [(measure, variant) for measure in SIMILARITIES for variant in variants]
    for (name, variant), group in profiles.groupby(["corpus", "variant"], sort=False):
        paint, shape = CORPORA[name]
        for measure in SIMILARITIES:
            place = -rows.index((measure, variant)) + 0.16 * (
                len(names) / 2 - names.index(name) - 0.5
            )
            values = group[measure]
            axes[0].plot([values.min(), values.max()], [place] * 2, color=paint, linewidth=1)
            axes[0].plot(values.mean(), place, shape, color=paint)
    axes[0].set_yticks(
        [-number for number in range(len(rows))],
        [f"{SIMILARITIES[measure]}, {variant}" for measure, variant in rows],
    )
    axes[0].set_xlabel("mean cosine similarity (line: range over parts)")
    axes[0].grid(axis="x")
    for name, group in by_size.groupby("corpus", sort=False):
        paint, shape = CORPORA[name]
        values = group.groupby("size")["local_density"]
        axes[1].fill_between(
            values.min().index, values.min(), values.max(), color=paint, alpha=0.15, linewidth=0
        )
        axes[1].plot(values.mean(), marker=shape, color=paint, label=name)
    axes[1].set_xscale("log")
    axes[1].xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    shown = sorted(set(by_size["size"]))
    axes[1].set_xticks(shown[:: 1 + (len(shown) - 1) // 6])
    axes[1].minorticks_off()
    axes[1].set_xlabel(f"{label or 'documents'} (log scale)")
    axes[1].set_ylabel("local density (cosine)")
    fig.legend(*axes[1].get_legend_handles_labels(), loc="outside upper right", ncols=len(names))
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
    import matplotlib.pyplot as plt

    labels = {
        "in_cluster": "in-cluster similarity",
        "cross_cluster": "cross-cluster similarity",
        "gap": "their gap",
        "silhouette": "silhouette",
    }
    fig, axes = plt.subplots(1, len(labels), sharex=True, figsize=size("page", 1.9))
    for ax, (measure, label) in zip(axes, labels.items(), strict=True):
        for name, group in swept.groupby("corpus", sort=False):
            paint, shape = CORPORA[name]
            values = group.groupby("k")[measure]
            ax.fill_between(
                values.min().index, values.min(), values.max(), color=paint, alpha=0.15, linewidth=0
            )
            ax.plot(values.mean(), marker=shape, markersize=3, color=paint, label=name)
        ax.axvline(reference, color=GREY, linewidth=0.6, linestyle="--")
        ax.set_title(label, fontweight="normal")
        ax.set_xlabel("clusters k")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside upper right", ncols=4)
    return fig


def maps(points: pd.DataFrame) -> Figure:
    """Draw maps of several corpora, a column each and a row a method, coloured by source.

    Parameters
    ----------
    points : DataFrame
        Rows of `ragkit.measures.corpus.atlas` with a column corpus. A cluster's terms stand in its middle.
    """
    import matplotlib.pyplot as plt
    from matplotlib.patheffects import withStroke

    methods, corpora = (list(dict.fromkeys(points[column])) for column in ("method", "corpus"))
    fig, grid = plt.subplots(
        len(methods), len(corpora), figsize=size("page", 0.5 + 2.2 * len(methods)), squeeze=False
    )
    for (method, name), group in points.groupby(["method", "corpus"], sort=False):
        ax = grid[methods.index(method), corpora.index(name)]
        width = float(np.clip(110 / np.sqrt(len(group)), 1.2, 9))
        for source, own in group.groupby("source", sort=False):
            paint, shape = _source(source)
            ax.scatter(
                own["x"], own["y"], width, paint, marker=shape, linewidths=0, rasterized=True
            )
        places = group.groupby("terms")[["x", "y"]].median().sort_values("y")
        # Labels one above the other, at least a line apart.
        line = 0.055 * float(np.ptp(group["y"]))
        places["y"] = _apart(places["y"].to_numpy(), line)
        for terms, place in places.iterrows():
            ax.annotate(
                terms,
                place,
                ha="center",
                va="center",
                fontsize=6,
                path_effects=[withStroke(linewidth=1.8, foreground="white")],
            )
        ax.set_title(f"{name}, {method}", fontsize=7)
        ax.set_xlabel(
            f"{len(group):,} points, trustworthiness {group['trustworthiness'].iloc[0]:.2f}",
            fontsize=7,
        )
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_aspect("equal", "datalim")
        ax.spines[["left", "bottom"]].set_visible(False)
    present = set(points["source"])
    handles = [
        plt.Line2D(
            [], [], marker=_source(source)[1], color=_source(source)[0], linestyle="none",
            label=str(source).replace("_", " "),
        )
        for source in [*(name for name in SOURCES if name in present), *sorted(present - {*SOURCES})]
    ]  # fmt: skip
    fig.legend(handles=handles, loc="outside lower center", ncols=7, handletextpad=0.2)
    return fig


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
                    [escape(str(value)) for value in row]
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


def _apart(heights: np.ndarray, gap: float) -> np.ndarray:
    """Return rising heights, moved as little as need be to lie at least `gap` apart."""
    from sklearn.isotonic import isotonic_regression

    steps = gap * np.arange(len(heights))
    return isotonic_regression(heights - steps) + steps


def _source(name: str) -> tuple[str, str]:
    return SOURCES.get(name, (GREY, "o"))
