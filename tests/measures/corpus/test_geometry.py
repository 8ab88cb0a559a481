"""Corpus measures against hand-worked numbers, all pairs, scikit-learn, and known shapes."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import DataError, UsageError
from ragkit.measures import corpus
from ragkit.measures.corpus import geometry

# Two directions, 60 degrees apart; the first twice.
SIX = np.array([[1, 0], [2, 0], [0.5, np.sqrt(0.75)], [0, 3], [0, 1], [0, 0.1]])


def pairs_of(array, labels):
    units = array / np.linalg.norm(array, axis=1, keepdims=True)
    inside, across = [], []
    for i, j in combinations(range(len(units)), 2):
        (inside if labels[i] == labels[j] else across).append(units[i] @ units[j])
    return inside, across


def test_density_by_hand():
    # Nearest two: (1, .5), (1, .5), (.866, .866), and 1, 1 for the three that are equal.
    found = corpus.local_density(SIX, k=2)
    expected = (0.75 + 0.75 + np.sqrt(0.75) + 3) / 6
    assert found.estimate == pytest.approx(expected, abs=1e-12)
    assert (found.low, found.high, found.n) == (found.estimate, found.estimate, 6)


def test_density_of_a_sample_covers_that_of_all(clustered):
    whole = corpus.local_density(clustered, sample=300).estimate
    covered = 0
    for seed in range(60):
        part = corpus.local_density(clustered, sample=60, seed=seed)
        assert part.n == 60
        covered += part.low <= whole <= part.high
    assert covered >= 52  # 95 % of 60 is 57; 52 or fewer happen once in a hundred times


def test_density_grows_with_the_corpus(clustered):
    table = corpus.density_by_size(clustered, [20, 80, 300], repeats=4)
    assert table["size"].tolist() == [20] * 4 + [80] * 4 + [300]
    means = table.groupby("size")["local_density"].mean()
    assert means.is_monotonic_increasing
    assert means[300] == corpus.local_density(clustered, 300).estimate
    with pytest.raises(DataError, match="a part needs at least 301 documents, found 300"):
        corpus.density_by_size(clustered, [301])


def test_similarity_by_hand():
    labels = ["a", "a", "b", "b", "b", "b"]
    found = corpus.partition(SIX, labels)
    root = np.sqrt(0.75)
    assert found.sizes.tolist() == [4, 2]
    assert found.labels.tolist() == [1, 1, 0, 0, 0, 0]
    assert found.in_cluster == pytest.approx((1 + 3 + 3 * root) / 7)
    assert found.cross_cluster == pytest.approx(2 * 0.5 / 8)
    np.testing.assert_allclose(found.tightness, [(3 + 3 * root) / 6, 1])
    assert found.evenness == pytest.approx(-(np.log(2 / 3) * 2 + np.log(1 / 3)) / 3 / np.log(2))


@given(st.integers(0, 10_000), st.integers(4, 30), st.integers(2, 5))
def test_closed_form_is_the_mean_over_all_pairs(seed, n, c):
    rng = np.random.default_rng(seed)
    array, labels = rng.normal(size=(n, 3)), rng.integers(c, size=n)
    labels[:3] = 0, 0, 1
    inside, across = pairs_of(array, labels)
    found = corpus.partition(array, labels)
    assert found.in_cluster == pytest.approx(np.mean(inside), abs=1e-9)
    assert found.cross_cluster == pytest.approx(np.mean(across), abs=1e-9)
    assert (np.diff(found.sizes) <= 0).all()


def test_sampled_pairs_agree_with_all_pairs(clustered):
    hits = np.zeros(2)
    for seed in range(60):
        found = corpus.cluster_similarity(clustered, k=6, pairs=500, seed=seed)
        exact = np.array([found.in_exact, found.cross_exact])
        _, low, high, n = np.array([found.in_cluster, found.cross_cluster]).T
        assert (n == 500).all()
        hits += (low <= exact) & (exact <= high)
    assert (hits >= 52).all()


def test_pairs_are_drawn_uniformly(clustered):
    found = corpus.partition(SIX, [0, 0, 1, 1, 1, 2])
    rng = np.random.default_rng(0)
    within = {(0, 1), (2, 3), (2, 4), (3, 4)}
    for across, expected in ((False, within), (True, set(combinations(range(6), 2)) - within)):
        first, second = geometry._pairs(found, 22_000, rng, across)
        ordered, counts = np.unique(np.column_stack([first, second]), axis=0, return_counts=True)
        pairs = {tuple(sorted(map(int, pair))) for pair in ordered}
        assert pairs == expected
        share = 22_000 / len(ordered)
        assert len(ordered) == 2 * len(expected)
        assert (np.abs(counts - share) < 5 * np.sqrt(share)).all()


def test_clusters_are_found_and_numbered_by_size(clustered):
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score

    units = clustered / np.linalg.norm(clustered, axis=1, keepdims=True)
    found = corpus.cluster(clustered, k=6, seed=3)
    assert (np.diff(found.sizes) <= 0).all()
    peer = KMeans(6, n_init=10, random_state=0).fit(units)
    assert adjusted_rand_score(peer.labels_, found.labels) > 0.95
    again = corpus.cluster(clustered.astype(np.float64) * 3, k=6, seed=3)
    assert np.array_equal(found.labels, again.labels)
    assert np.array_equal(found.labels, corpus.cluster(clustered, k=6, seed=3).labels)


def test_clusters_that_cannot_be(clustered):
    few = corpus.cluster_similarity(np.repeat(clustered[:3], 10, axis=0), k=5).clusters.sizes
    assert 2 <= len(few) <= 3
    for array, k, words in (
        (clustered[:9], 10, "10 clusters needs at least 10 documents, found 9"),
        (clustered[:10], 10, "every cluster is a single document"),
        (np.repeat(clustered[:1], 20, axis=0), 3, "one cluster"),
    ):
        with pytest.raises(DataError, match=words):
            corpus.cluster_similarity(array, k)
    for options in ({"k": 1}, {"pairs": 1}, {"seed": -1}):
        with pytest.raises(UsageError):
            corpus.cluster_similarity(clustered, **options)
    with pytest.raises(UsageError, match="labels"):
        corpus.partition(clustered, [1, 2])


def test_silhouette_by_hand():
    array = np.array([[1, 0], [1, 0], [0, 1], [0.5, np.sqrt(0.75)]])
    root = np.sqrt(0.75)
    far, near, own = 1, 1 / 2, 1 - root  # cosine distances
    first = ((far + near) / 2 - 0) / ((far + near) / 2)
    expected = (2 * first + (far - own) / far + (near - own) / near) / 4
    assert corpus.silhouette(array, [0, 0, 1, 1]) == pytest.approx(expected)


@pytest.mark.parametrize("dimension", [2, 5])
@pytest.mark.parametrize("k", [2, 20])
def test_intrinsic_dimension_of_a_known_surface(dimension, k):
    rng = np.random.default_rng(0)
    flat = rng.uniform(-0.2, 0.2, size=(4000, dimension))
    # A patch of a sphere, turned into 40 dimensions.
    turn = np.linalg.qr(rng.normal(size=(40, dimension + 1)))[0]
    array = np.column_stack([flat, np.ones(len(flat))]) @ turn.T
    found = corpus.intrinsic_dimension(array, k=k)
    assert found.n == 1000
    assert found.low < found.estimate < found.high
    # Near the border of a patch neighbours are missing on one side: the estimate is a bit low.
    assert 0.85 * dimension < found.estimate < 1.1 * dimension


def test_intrinsic_dimension_by_hand():
    # Angles 0, 1 and 3 degrees: the distances of each to its two neighbours, k = 2.
    angles = np.radians([0, 1, 3])
    array = np.column_stack([np.cos(angles), np.sin(angles)])
    chord = {gap: 2 * np.sin(np.radians(gap) / 2) for gap in (1, 2, 3)}
    logs = np.log([chord[3] / chord[1], chord[2] / chord[1], chord[3] / chord[2]])
    found = corpus.intrinsic_dimension(array, k=2)
    assert found.estimate == pytest.approx(1 / logs.mean(), rel=1e-6)


def test_intrinsic_dimension_leaves_duplicates_out(clustered):
    array = np.concatenate([clustered, clustered[:20]])
    assert corpus.intrinsic_dimension(array).n == 280
    with pytest.raises(DataError, match="duplicate"):
        corpus.intrinsic_dimension(np.repeat(clustered[:30], 2, axis=0))
    with pytest.raises(DataError, match="20 neighbours needs at least 21"):
        corpus.intrinsic_dimension(clustered[:20])
    with pytest.raises(UsageError):
        corpus.intrinsic_dimension(clustered, k=1)
    with pytest.raises(DataError, match="equally far"):
        corpus.intrinsic_dimension(np.eye(5), k=3)


def test_similarity_by_k_and_ordering(clustered):
    rng = np.random.default_rng(1)
    corpora = {"tight": clustered, "wide": rng.normal(size=(200, 24))}
    swept = corpus.similarity_by_k(corpora, ks=[5, 10], seeds=range(2))
    assert len(swept) == 8
    first, found = swept.iloc[0], corpus.cluster(clustered, k=5, seed=0)
    assert first["gap"] == found.in_cluster - found.cross_cluster
    assert first["silhouette"] == corpus.silhouette(clustered, found.labels)
    table = corpus.ordering(swept, "in_cluster")
    assert table["order"].tolist() == ["tight > wide"] * 2
    assert table["same"].all()
    assert (table["seeds"] == 1).all()


def test_ordering_that_changes():
    swept = pd.DataFrame(
        [("a", 5, 0, 0.5), ("b", 5, 0, 0.6), ("a", 5, 1, 0.9), ("b", 5, 1, 0.6)]
        + [("a", 10, 0, 0.4), ("b", 10, 0, 0.6), ("a", 10, 1, 0.4), ("b", 10, 1, 0.6)],
        columns=["corpus", "k", "seed", "gap"],
    )
    table = corpus.ordering(swept, "gap").set_index("k")
    assert table["order"].to_dict() == {5: "a > b", 10: "b > a"}
    assert table["same"].to_dict() == {5: False, 10: True}
    assert table["seeds"].to_dict() == {5: 0.5, 10: 1.0}
    with pytest.raises(UsageError, match="gapp"):
        corpus.ordering(swept, "gapp")
    with pytest.raises(UsageError, match="k=20"):
        corpus.ordering(swept, "gap", reference=20)


def test_profile_consists_of_the_measures(clustered):
    table = corpus.profile(clustered, repeats=2, seed=3)
    assert len(table) == 2
    row = table.iloc[1]
    found = corpus.cluster_similarity(clustered, seed=4)
    assert row["in_cluster_similarity"] == found.in_cluster.estimate
    assert row["cross_exact"] == found.cross_exact
    assert row["gap"] == found.in_exact - found.cross_exact
    assert row["local_similarity"] == corpus.local_density(clustered).estimate
    assert row["intrinsic_dimension"] == corpus.intrinsic_dimension(clustered, k=10).estimate
    assert row["silhouette"] == corpus.silhouette(clustered, found.clusters.labels)


def test_profile_of_a_part(clustered):
    doubled = np.concatenate([clustered, clustered])
    table = corpus.profile(doubled, size=100, repeats=3)
    assert table["local_similarity"].nunique() == 3
    few = np.concatenate([clustered[:30], clustered[:1] * 2])
    near = corpus.profile(few, repeats=1)["near_duplicates"].item()
    assert near == corpus.profile(clustered[:30], repeats=1)["near_duplicates"].item() * 30 / 31 + (
        2 / 31
    )
    with pytest.raises(DataError, match="a part needs at least 301 documents, found 300"):
        corpus.profile(clustered, size=301)
