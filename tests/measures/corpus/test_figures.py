"""Atlases, and the figures that are drawn from them."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from ragkit.errors import UsageError
from ragkit.measures import corpus
from ragkit.report import figures
from ragkit.report.plots import corpus as plots


@pytest.fixture(scope="module")
def atlas(clustered):
    array = clustered[:60]
    documents = pd.DataFrame(
        {
            "doc_id": [f"d{i}" for i in range(60)],
            "source": ["slack", "a <new> source"] * 30,
            "title": [f"Title </script> {i}" for i in range(60)],
            "text": [f"word{'abc'[i % 3]} topic" for i in range(60)],
        }
    )
    return documents, array, corpus.atlas(documents, array, k=3, sample=40, seed=2)


def test_an_atlas_has_both_maps_and_names(atlas):
    documents, array, table = atlas
    assert len(table) == 80
    flat = corpus.map_tsne(array, seed=2, sample=40)
    own = table[table["method"] == "t-SNE"]
    assert np.array_equal(own[["x", "y"]], flat.coordinates)
    assert set(own["trustworthiness"]) == {flat.trustworthiness}
    labels = corpus.cluster(array, 3, 2).labels
    assert own["cluster"].tolist() == labels[flat.rows].tolist()
    names = corpus.cluster_terms(documents["text"], labels, n=2)
    assert own["terms"].iloc[0] == ", ".join(names[own["cluster"].iloc[0]])
    with pytest.raises(UsageError, match="60 documents, but 59"):
        corpus.atlas(documents, array[:59])


def test_maps_have_a_panel_for_each_corpus_and_method(atlas, tmp_path):
    points = pd.concat([atlas[2].assign(corpus=name) for name in ("company", "web")])
    figures.use_style()
    fig = plots.maps(points)
    titles = [ax.get_title("left") for ax in fig.axes]
    assert titles == ["company, t-SNE", "web, t-SNE", "company, UMAP", "web, UMAP"]
    assert sum(len(dots.get_offsets()) for dots in fig.axes[0].collections) == 40
    assert "40 points, trustworthiness 0." in fig.axes[0].get_xlabel()
    (legend,) = fig.legends
    assert [text.get_text() for text in legend.get_texts()] == ["slack", "a <new> source"]
    assert figures.save(fig, tmp_path / "maps").stat().st_size > 0


def test_the_page_needs_no_network_and_shows_titles_as_text(atlas):
    points = atlas[2][atlas[2]["method"] == "UMAP"].assign(corpus="web")
    bundle = plots.explorer(points)._repr_mimebundle_()
    page = bundle["text/html"]
    assert not re.search(r"""(src|href)=["']""", page)
    # One script, which no title can end.
    assert page.count("</script>") == 1
    assert len(page) < 2_500_000
    assert page == plots.explorer(points)._repr_mimebundle_()["text/html"]
    data = bundle["application/vnd.plotly.v1+json"]["data"]
    shown = [row for trace in data for row in trace["customdata"]]
    assert len(shown) == 40
    assert all(title.startswith("Title &lt;/script&gt;") for title, _, _ in shown)


def test_measures_of_every_corpus_are_drawn(clustered):
    corpora = {"company": clustered, "web": clustered[:120]}
    found = {
        (name, variant): corpus.profile(array, size=60, repeats=2)
        for name, array in corpora.items()
        for variant in ("chunks", "documents")
    }
    profiles = pd.concat(found, names=["corpus", "variant", "part"]).reset_index()
    sizes = {n: corpus.density_by_size(a, [20, 60], repeats=2) for n, a in corpora.items()}
    by_size = pd.concat(sizes, names=["corpus", "row"]).reset_index("corpus")
    fig = plots.similarity(profiles, by_size)
    assert len(fig.axes[0].lines) == 2 * 2 * 2 * 3
    line = fig.axes[1].lines[0]
    expected = sizes["company"].groupby("size")["local_density"].mean()
    assert np.array_equal(line.get_ydata(), expected)
    swept = corpus.similarity_by_k(corpora, ks=[5, 10], seeds=range(2), size=60)
    fig = plots.sweep(swept)
    assert len(fig.axes) == 4
    means = swept[swept["corpus"] == "web"].groupby("k")["gap"].mean()
    assert np.array_equal(fig.axes[2].lines[1].get_ydata(), means)


@pytest.mark.parametrize("heights", [[0.0, 0.1, 0.2], [0.0, 5.0, 5.0, 9.0], [1.0]])
def test_labels_lie_apart_and_keep_their_order(heights):
    moved = plots._apart(np.array(heights), 1.0)
    assert (np.diff(moved) >= 1 - 1e-9).all()
    assert moved.mean() == pytest.approx(np.mean(heights))
