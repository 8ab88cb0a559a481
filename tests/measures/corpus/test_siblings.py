"""Closest siblings against hand-worked pairs and the slow reference."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ragkit.errors import DataError, UsageError
from ragkit.measures.corpus import closest_siblings


def test_hand_worked():
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
def test_against_sets(n):
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


def test_bad_input():
    with pytest.raises(DataError, match="at least two"):
        closest_siblings(["a b c d e"])
    with pytest.raises(DataError, match="5 words in a row"):
        closest_siblings(["a b", "c d"])
    with pytest.raises(UsageError, match="n should"):
        closest_siblings(["a b", "c d"], n=0)
