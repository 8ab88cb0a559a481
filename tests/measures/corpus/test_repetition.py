"""Repetition within and between texts: hand-worked numbers and the slow reference."""

from __future__ import annotations

import gzip
import re

import numpy as np
import pytest

from ragkit.errors import DataError, UsageError
from ragkit.measures import corpus
from ragkit.measures.corpus import closest_siblings


def test_repetition_by_hand():
    texts = ["a b c d", "a b c e f g"]
    table = corpus.text_repetition(texts, characters=len("".join(texts)), repeats=1, n=3)
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


def test_repetition_tells_a_template_from_prose():
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(2000)]
    prose = [" ".join(rng.choice(words, 60)) for _ in range(30)]
    made = [
        f"this page says how to set {w} in your account and what it means for you"
        for w in words[:90]
    ]
    free, template = (
        corpus.text_repetition(texts, characters=4000).mean() for texts in (prose, made)
    )
    assert template["shared_phrases"] > 0.1
    assert free["shared_phrases"] == 0
    assert template["compression_ratio"] > free["compression_ratio"]
    assert template["distinct_words"] < free["distinct_words"]
    assert corpus.text_repetition(prose, characters=4000).equals(
        corpus.text_repetition(prose, characters=4000)
    )


def test_repetition_bad_input():
    with pytest.raises(DataError, match="needs as many"):
        corpus.text_repetition(["short"], characters=100)
    with pytest.raises(DataError, match="8 words in a row"):
        corpus.text_repetition(["too few words"], characters=5)


def test_siblings_by_hand():
    # Phrases of two words: {ab, bc, cd}, {bc, cd, de}, {xy}: two of four are shared.
    similarity, sibling = closest_siblings(["a b c d", "B, c d. E", "x y"], n=2)
    assert similarity.tolist() == [0.5, 0.5, 0.0]
    assert sibling.tolist() == [1, 0, -1]


def test_the_same_text_is_its_sibling_and_a_short_one_has_none():
    similarity, sibling = closest_siblings(["one two three", "one two three", "one"], n=3)
    assert similarity[:2].tolist() == [1.0, 1.0]
    assert np.isnan(similarity[2])
    assert sibling.tolist() == [1, 0, -1]


def test_phrases_do_not_run_over_the_end_of_a_text():
    similarity, _ = closest_siblings(["a b", "c d", "b c"], n=2)
    assert similarity.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_siblings_against_sets(n):
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(list("abcd"), rng.integers(1, 12))) for _ in range(600)]
    phrases = []
    for text in texts:
        words = re.findall(r"\w+", text)
        phrases.append({tuple(words[i : i + n]) for i in range(len(words) - n + 1)})
    similarity, sibling = closest_siblings(texts, n=n)
    for i in range(0, 600, 7):
        shares = [
            len(phrases[i] & other) / len(phrases[i] | other) if j != i and phrases[i] else 0.0
            for j, other in enumerate(phrases)
        ]
        if not phrases[i]:
            assert np.isnan(similarity[i])
            continue
        assert similarity[i] == max(shares)
        assert sibling[i] == (shares.index(max(shares)) if max(shares) else -1)


def test_siblings_bad_input():
    with pytest.raises(DataError, match="at least two"):
        closest_siblings(["a b c d e"])
    with pytest.raises(DataError, match="5 words in a row"):
        closest_siblings(["a b", "c d"])
    with pytest.raises(UsageError, match="n should"):
        closest_siblings(["a b", "c d"], n=0)
