"""Maps: the same for a seed, as trustworthy as they say, and clear about what cannot be mapped."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragkit.errors import DataError, UsageError
from ragkit.measures import corpus

MAPS = (corpus.map_tsne, corpus.map_umap)


@pytest.mark.parametrize("draw", MAPS)
def test_a_map_keeps_neighbours_and_repeats(clustered, draw, recwarn):
    found = draw(clustered, seed=1)
    assert found.coordinates.shape == (300, 2)
    assert found.rows.tolist() == list(range(300))
    assert found.neighbours == 15
    assert found.trustworthiness > 0.85
    again = draw(clustered, seed=1)
    assert np.array_equal(found.coordinates, again.coordinates)
    assert found.settings == again.settings
    assert not [w for w in recwarn if issubclass(w.category, UserWarning)]


def test_the_seed_draws_the_sample(clustered):
    parts = [corpus.map_tsne(clustered, seed=seed, sample=40) for seed in (0, 0, 1)]
    assert np.array_equal(parts[0].rows, parts[1].rows)
    assert not np.array_equal(parts[0].rows, parts[2].rows)
    assert parts[0].settings["documents"] == 40


@pytest.mark.parametrize("draw", MAPS)
@pytest.mark.parametrize("n", [8, 11, 31])
def test_few_documents(clustered, draw, n):
    found = draw(clustered[:n])
    assert found.coordinates.shape == (n, 2)
    assert np.isfinite(found.coordinates).all()


@pytest.mark.parametrize("draw", MAPS)
def test_what_cannot_be_mapped(clustered, draw):
    with pytest.raises(DataError, match="a map needs at least 8 documents, found 7"):
        draw(clustered[:7])
    with pytest.raises(DataError, match="nothing to map"):
        draw(np.repeat(clustered[:1], 20, axis=0))
    with pytest.raises(UsageError):
        draw(clustered, sample=5)


@pytest.mark.parametrize("draw", MAPS)
def test_many_duplicates(clustered, draw):
    array = np.concatenate([np.repeat(clustered[:1], 100, axis=0), clustered[:60]])
    found = draw(array.astype(np.float16))
    assert np.isfinite(found.coordinates).all()


def test_options_out_of_range(clustered):
    assert corpus.map_tsne(clustered[:40]).settings["perplexity"] == 13
    with pytest.raises(UsageError, match="perplexity of 30 does not suit 40 documents") as error:
        corpus.map_tsne(clustered[:40], perplexity=30)
    assert error.value.hint == "take one between 1 and 13"
    for options in ({"perplexity": 0.5}, {"perplexity": float("nan")}):
        with pytest.raises(UsageError):
            corpus.map_tsne(clustered, **options)
    for options in ({"n_neighbors": 300}, {"n_neighbors": 1}):
        with pytest.raises(UsageError):
            corpus.map_umap(clustered, **options)


def test_trustworthiness_by_hand():
    # On the circle each document's nearest is the next one; the map exchanges two of four.
    angles = np.radians([0, 10, 30, 70])
    array = np.column_stack([np.cos(angles), np.sin(angles)])
    line = np.array([[0.0], [1.0], [3.0], [7.0]])
    assert corpus.trustworthiness(array, np.hstack([line, 0 * line]), k=1) == 1
    # Now 0 is beside 30, its second neighbour: one rank beyond k for 0; 10 is beside 70, its
    # third: two; 30 is beside 0, its second: one; 70 is beside 10, its second: one.
    moved = np.array([[0.0], [7.0], [1.0], [6.0]])
    lost = corpus.trustworthiness(array, np.hstack([moved, 0 * moved]), k=1)
    assert lost == pytest.approx(1 - 2 * (1 + 2 + 1 + 1) / (4 * 1 * (8 - 3 - 1)))


def test_trustworthiness_bad_input(clustered):
    flat = clustered[:, :2]
    with pytest.raises(UsageError, match="points on the map"):
        corpus.trustworthiness(clustered, flat[:10])
    with pytest.raises(UsageError, match="k should be a whole number from 1 to 149"):
        corpus.trustworthiness(clustered, flat, k=150)


def test_frame_names_what_was_mapped(clustered):
    found = corpus.map_tsne(clustered, sample=30)
    documents = pd.DataFrame(
        {
            "doc_id": [f"d{i}" for i in range(300)],
            "source": "wiki",
            "title": [f"Title {i}" for i in range(300)],
            "text": "text",
        },
        index=range(1000, 1300),
    )
    table = found.frame(documents)
    assert table.columns.tolist() == ["doc_id", "source", "title", "x", "y"]
    assert table["doc_id"].tolist() == [f"d{i}" for i in found.rows]
    assert np.array_equal(table[["x", "y"]].to_numpy(), found.coordinates)


def test_terms_by_hand():
    texts = ["cats purr and cats sleep", "dogs bark", "dogs sleep", "the 42 of 7"]
    terms = corpus.cluster_terms(texts, ["c", "d", "d", "z"], n=2)
    # In "c": cats 2/4, purr and sleep 1/4 each; sleep is in "d" too, so purr weighs more.
    assert terms == {"c": ["cats", "purr"], "d": ["dogs", "bark"], "z": []}


def test_terms_bad_input():
    with pytest.raises(UsageError, match="labels"):
        corpus.cluster_terms(["a"], [1, 2])
    with pytest.raises(DataError, match="no text"):
        corpus.cluster_terms(["the", "of"], [1, 2])
