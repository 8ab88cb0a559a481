"""Maps: the same for a seed, as trustworthy as they say, and clear about what cannot be mapped."""

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
    assert found.trustworthiness > 0.85
    assert np.array_equal(found.coordinates, draw(clustered, seed=1).coordinates)
    assert not [w for w in recwarn if issubclass(w.category, UserWarning)]


@pytest.mark.parametrize("draw", MAPS)
@pytest.mark.parametrize("n", [8, 31])
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
    duplicates = np.concatenate([np.repeat(clustered[:1], 100, axis=0), clustered[:60]])
    assert np.isfinite(draw(duplicates.astype(np.float16)).coordinates).all()


def test_trustworthiness_by_hand(clustered):
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
    with pytest.raises(UsageError, match="k should be a whole number from 1 to 149"):
        corpus.trustworthiness(clustered, clustered[:, :2], k=150)


def test_terms_by_hand():
    texts = ["cats purr and cats sleep", "dogs bark", "dogs sleep", "the 42 of 7"]
    terms = corpus.cluster_terms(texts, ["c", "d", "d", "z"], n=2)
    # In "c": cats 2/4, purr and sleep 1/4 each; sleep is in "d" too, so purr weighs more.
    assert terms == {"c": ["cats", "purr"], "d": ["dogs", "bark"], "z": []}
    with pytest.raises(DataError, match="no text"):
        corpus.cluster_terms(["the", "of"], [1, 2])


def test_an_atlas_has_both_maps_and_names(clustered):
    array = clustered[:60]
    documents = pd.DataFrame(
        {
            "doc_id": [f"d{i}" for i in range(60)],
            "source": ["slack", "a <new> source"] * 30,
            "title": [f"Title {i}" for i in range(60)],
            "text": [f"word{'abc'[i % 3]} topic" for i in range(60)],
        },
        index=range(1000, 1060),
    )
    table = corpus.atlas(documents, array, k=3, sample=40, seed=2)
    assert len(table) == 80
    flat = corpus.map_tsne(array, seed=2, sample=40)
    assert not np.array_equal(flat.rows, corpus.map_tsne(array, seed=3, sample=40).rows)
    own = table[table["method"] == "t-SNE"]
    assert own["doc_id"].tolist() == [f"d{i}" for i in flat.rows]
    assert np.array_equal(own[["x", "y"]], flat.coordinates)
    assert set(own["trustworthiness"]) == {flat.trustworthiness}
    labels = corpus.cluster(array, 3, 2).labels
    assert own["cluster"].tolist() == labels[flat.rows].tolist()
    names = corpus.cluster_terms(documents["text"], labels, n=2)
    assert own["terms"].iloc[0] == ", ".join(names[own["cluster"].iloc[0]])
    with pytest.raises(UsageError, match="60 documents, but 59"):
        corpus.atlas(documents, array[:59])
