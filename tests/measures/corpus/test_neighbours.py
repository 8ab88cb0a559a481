"""Exact neighbours against the full matrix, and every kind of array."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import DataError, UsageError
from ragkit.measures.corpus import neighbours, vectors


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
    monkeypatch.setattr(vectors, "BLOCK", block)
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


def test_neighbours_of_the_own_group_are_left_out(clustered):
    groups = np.arange(len(clustered)) // 5
    found = neighbours(clustered, k=4, groups=groups)
    assert (groups[found.ids] != groups[:, None]).all()
    units = clustered / np.linalg.norm(clustered, axis=1, keepdims=True)
    cosines = units @ units.T
    cosines[groups[:, None] == groups] = -np.inf
    np.testing.assert_allclose(found.similarity, -np.sort(-cosines, axis=1)[:, :4], atol=1e-6)
    names = [f"document {group}" for group in groups]
    assert np.array_equal(neighbours(clustered, k=4, groups=names).ids, found.ids)


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ">f4"])
def test_other_types(clustered, dtype):
    array = clustered.astype(dtype)
    ids, similarity = brute(array.astype(np.float64), 5)
    np.testing.assert_allclose(neighbours(array, k=5).similarity, similarity, atol=1e-6)


def test_integers_lists_and_other_layouts(clustered):
    whole = np.round(clustered * 10).astype(int)
    expected = brute(whole.astype(float), 3)[1]
    np.testing.assert_allclose(neighbours(whole, k=3).similarity, expected, atol=1e-6)
    np.testing.assert_allclose(neighbours(whole.tolist(), k=3).similarity, expected, atol=1e-6)
    strided = np.asfortranarray(clustered)
    assert np.array_equal(neighbours(strided, k=3).ids, neighbours(clustered, k=3).ids)
    assert np.array_equal(neighbours(clustered[::2], k=3).ids, brute(clustered[::2], 3)[0])


def test_lengths_that_overflow_single_precision(clustered):
    scales = np.where(np.arange(len(clustered)) % 2, 1e-30, 1e30)[:, None]
    found = neighbours(clustered * scales, k=5)
    assert np.array_equal(found.ids, neighbours(clustered, k=5).ids)


@given(st.integers(0, 10_000), st.floats(1e-3, 1e3))
def test_scale_does_not_matter(seed, scale):
    rng = np.random.default_rng(seed)
    array = rng.normal(size=(20, 5))
    ours = neighbours(array * scale, k=4).similarity
    np.testing.assert_allclose(ours, brute(array, 4)[1], atol=1e-6)


@pytest.mark.parametrize(
    ("place", "value", "words"), [(3, 0.0, "4 is zero"), (2, np.nan, "3 is not finite")]
)
def test_a_bad_embedding_is_named(clustered, place, value, words):
    array = clustered.copy()
    array[place] = value
    with pytest.raises(DataError, match=f"document {words}"):
        neighbours(array, k=3)
    with pytest.raises(DataError, match=f"document {words}"):
        neighbours(array, [place], k=3)
    array[place, 1:] = 1
    array[place, 0] = np.inf
    with pytest.raises(DataError, match=f"document {place + 1} is not finite"):
        neighbours(array, k=3)


def test_too_few_documents(clustered):
    with pytest.raises(DataError, match="10 neighbours needs at least 11 documents, found 10"):
        neighbours(clustered[:10], k=10)
    assert neighbours(clustered[:11], k=10).ids.shape == (11, 10)
    with pytest.raises(DataError, match="fewer than 4 others outside its group"):
        neighbours(clustered[:6], k=4, groups=[0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize("array", [np.ones(5), np.ones((3, 0)), np.ones((2, 2, 2))])
def test_other_shapes(array):
    with pytest.raises(DataError, match="shape"):
        neighbours(array, k=1)


def test_no_numbers():
    with pytest.raises(DataError, match="numbers"):
        neighbours([["a", "b"], ["c", "d"]], k=1)


@pytest.mark.parametrize(
    "options",
    [{"k": 0}, {"k": 2.5}, {"k": True}, {"rows": []}, {"rows": [300]}, {"rows": [-1]}]
    + [{"groups": [1, 2]}],
)
def test_options_out_of_range(clustered, options):
    with pytest.raises(UsageError):
        neighbours(clustered, **options)
