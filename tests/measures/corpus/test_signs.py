"""Profiles at equal size, and signs of generated text."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from ragkit.errors import DataError, UsageError
from ragkit.measures import corpus


def test_profile_is_made_of_the_measures(clustered):
    table = corpus.profile(clustered, repeats=2, k=6, seed=3)
    assert len(table) == 2
    row = table.iloc[1]
    found = corpus.cluster_similarity(clustered, k=6, seed=4)
    assert row["in_cluster_similarity"] == found.in_cluster.value
    assert row["cross_exact"] == found.cross_exact
    assert row["gap"] == found.in_exact - found.cross_exact
    assert row["local_similarity"] == corpus.local_density(clustered).value
    assert row["intrinsic_dimension"] == corpus.intrinsic_dimension(clustered, k=10).value
    assert row["silhouette"] == corpus.silhouette(clustered, found.clusters)


def test_profile_of_a_part(clustered):
    doubled = np.concatenate([clustered, clustered])
    table = corpus.profile(doubled, size=100, repeats=3)
    assert table["local_similarity"].nunique() == 3
    few = np.concatenate([clustered[:30], clustered[:1] * 2])
    near = corpus.profile(few, repeats=1)["near_duplicates"].item()
    assert near == corpus.profile(clustered[:30], repeats=1)["near_duplicates"].item() * 30 / 31 + (
        2 / 31
    )
    with pytest.raises(DataError, match="301 documents"):
        corpus.profile(clustered, size=301)


def test_signs_by_hand():
    texts = ["a b c d", "a b c e f g"]
    table = corpus.text_signs(texts, characters=len("".join(texts)), repeats=1, n=3)
    row = table.iloc[0]
    # Phrases: abc, bcd | abc, bce, cef, efg: of six, the two abc stand in another text too.
    assert row["shared_phrases"] == pytest.approx(2 / 6)
    assert row["distinct_words"] == pytest.approx(7 / 10)
    assert row["length_variation"] == pytest.approx(1 / 5)
    packed = {
        len(raw) / len(gzip.compress(raw, mtime=0))
        for raw in (b"a b c d\na b c e f g", b"a b c e f g\na b c d")
    }
    assert row["compression_ratio"] in packed


def test_signs_tell_a_template_from_prose():
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(2000)]
    prose = [" ".join(rng.choice(words, 60)) for _ in range(30)]
    made = [
        f"this page says how to set {w} in your account and what it means for you"
        for w in words[:90]
    ]
    free, template = (corpus.text_signs(texts, characters=4000).mean() for texts in (prose, made))
    assert template["shared_phrases"] > 0.1
    assert free["shared_phrases"] == 0
    assert template["compression_ratio"] > free["compression_ratio"]
    assert template["distinct_words"] < free["distinct_words"]
    assert corpus.text_signs(prose, characters=4000).equals(
        corpus.text_signs(prose, characters=4000)
    )


def test_signs_bad_input():
    with pytest.raises(DataError, match="needs as many"):
        corpus.text_signs(["short"], characters=100)
    with pytest.raises(UsageError, match="8 words in a row"):
        corpus.text_signs(["too few words"], characters=5)
