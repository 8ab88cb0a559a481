"""Exact neighbours against the full matrix, and every kind of array."""

import numpy as np
import pytest

from ragkit.errors import DataError, UsageError
from ragkit.measures import corpus
from ragkit.measures.corpus import geometry, neighbours


def brute(array, k):
    units = array / np.linalg.norm(array, axis=1, keepdims=True)
    cosines = units.astype(float) @ units.astype(float).T
    np.fill_diagonal(cosines, -np.inf)
    ids = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    return ids, np.take_along_axis(cosines, ids, axis=1)


def test_by_hand():
    # Directions at 0, 10, 30 and 90 degrees, at any length.
    angles = np.radians([0, 10, 30, 90])
    array = np.column_stack([np.cos(angles), np.sin(angles)]) * [[1], [5], [0.1], [2]]
    found = neighbours(array, k=2)
    assert found.ids.tolist() == [[1, 2], [0, 2], [1, 0], [2, 1]]
    expected = np.cos(np.radians([[10, 30], [10, 20], [20, 30], [60, 80]]))
    np.testing.assert_allclose(found.similarity, expected, atol=1e-12)


@pytest.mark.parametrize("block", [7, 512])
def test_equals_the_full_matrix_whatever_the_block(clustered, monkeypatch, block):
    monkeypatch.setattr(geometry, "BLOCK", block)
    ids, similarity = brute(clustered, 10)
    found = neighbours(clustered, k=10)
    assert np.array_equal(found.ids, ids)
    np.testing.assert_allclose(found.similarity, similarity, atol=1e-6)


def test_duplicates_are_neighbours_and_a_document_never_its_own(clustered):
    array = np.concatenate([np.repeat(clustered[:1], 30, axis=0), clustered])
    found = neighbours(array, k=10)
    assert (found.ids != np.arange(len(array))[:, None]).all()
    np.testing.assert_allclose(found.similarity[:31], 1, atol=1e-12)
    assert (found.ids[:31] < 31).all()


@pytest.mark.parametrize(
    "turn",
    [lambda a: a.astype(np.float16), lambda a: a.astype(">f4"), lambda a: a.astype(np.float64)]
    + [np.asfortranarray, lambda a: a[::2], lambda a: np.round(a * 10).astype(int).tolist()],
)
def test_other_types_and_layouts(clustered, turn):
    array = turn(clustered)
    expected = brute(np.asarray(array, dtype=float), 5)[1]
    np.testing.assert_allclose(neighbours(array, k=5).similarity, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("value", "words"), [(0.0, "zero"), (np.nan, "not finite"), (np.inf, "not finite")]
)
def test_bad_embeddings_are_named_everywhere(clustered, value, words):
    array = clustered.copy()
    array[41] = value
    measures = (neighbours, corpus.local_density, corpus.cluster_similarity, corpus.map_tsne)
    for call in (*measures, corpus.intrinsic_dimension, corpus.map_umap):
        with pytest.raises(DataError, match=f"embedding of document 42 is {words}"):
            call(array)


@pytest.mark.parametrize(
    ("array", "k", "error", "words"),
    [
        (np.eye(10), 10, DataError, "10 neighbours needs at least 11 documents, found 10"),
        (np.ones(5), 1, DataError, "embeddings should"),
        (np.ones((3, 0)), 1, DataError, "embeddings should"),
        ([["a", "b"], ["c", "d"]], 1, DataError, "embeddings should"),
        (np.eye(10), 0, UsageError, "k should be a whole number"),
        (np.eye(10), 2.5, UsageError, "k should be a whole number"),
    ],
)
def test_what_has_no_neighbours(array, k, error, words):
    with pytest.raises(error, match=words):
        neighbours(array, k=k)
    assert neighbours(np.eye(11), k=10).ids.shape == (11, 10)
