"""Windows, parts pooled from them, and repetition: by hand and against the slow reference."""

import gzip
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit import text as tokenizers
from ragkit.errors import DataError, UsageError
from ragkit.measures import corpus


def frame(*texts):
    ids = [f"d{i}" for i in range(len(texts))]
    return pd.DataFrame({"doc_id": ids, "source": "wiki", "title": ids, "text": list(texts)})


def test_windows_have_so_many_tokens():
    windows = corpus.split(frame("one two three four five six seven", "short"), tokens=3)
    assert windows["text"].tolist() == ["one two three", " four five six", " seven", "short"]
    assert windows["start"].tolist() == [0, 3, 6, 0]
    assert windows["tokens"].tolist() == [3, 3, 1, 1]
    assert windows["doc_id"].tolist() == ["d0", "d0", "d0", "d1"]


@given(st.text(min_size=1, max_size=60).filter(str.strip), st.integers(1, 5))
def test_windows_joined_are_the_text(text, tokens):
    windows = corpus.split(frame(text), tokens=tokens)
    assert "".join(windows["text"]) == text
    # A character of several tokens stays with its first one; a window of the others alone is empty.
    assert (windows["text"] != "").all()
    assert windows["tokens"].max() <= tokens
    total = tokenizers.lengths([text], "cl100k_base")[0]
    assert windows["tokens"].sum() == total if text.isascii() else windows["tokens"].sum() <= total


def test_pooled_parts():
    windows = corpus.split(frame("one two three four five six seven", "short"), tokens=2)
    assert windows["tokens"].tolist() == [2, 2, 2, 1, 1]
    vectors = np.array([[3.0, 0], [0, 1], [1, 0], [0, 5], [1, 1]])
    parts, pooled = corpus.pool(windows, vectors, tokens=4)
    assert parts["doc_id"].tolist() == ["d0", "d0", "d1"]
    assert parts["text"].tolist() == ["one two three four", " five six seven", "short"]
    assert parts["tokens"].tolist() == [4, 3, 1]
    assert parts["start"].tolist() == [0, 4, 0]
    half = np.sqrt(0.5)
    expected = [[half, half], [2 / np.sqrt(5), 1 / np.sqrt(5)], [half, half]]
    np.testing.assert_allclose(pooled, expected, atol=1e-6)
    whole, means = corpus.pool(windows, vectors, tokens=8192)
    assert whole["text"].tolist() == ["one two three four five six seven", "short"]
    np.testing.assert_allclose(means[0], np.array([4, 3]) / 5, atol=1e-6)
    assert list(whole.columns) == list(windows.columns)


def test_splitting_and_pooling_bad_input():
    for documents in (frame("one", None), frame("one").drop(columns="title")):
        with pytest.raises(DataError, match="documents"):
            corpus.split(documents)
    for options in ({"tokens": 0}, {"tokens": 2.5}):
        with pytest.raises(UsageError):
            corpus.split(frame("one"), **options)
    windows = corpus.split(frame("one two three four five six seven"), tokens=2)
    with pytest.raises(UsageError, match="cut through windows of 2"):
        corpus.pool(windows, np.eye(4), tokens=3)
    with pytest.raises(UsageError, match="4 windows, but 3 vectors"):
        corpus.pool(windows, np.eye(3), tokens=4)


def test_repetition_by_hand():
    texts = ["a b c d", "a b c e f g"]
    table = corpus.text_repetition(texts, characters=len("".join(texts)), repeats=1, n=3)
    row = table.iloc[0]
    # Phrases: abc, bcd | abc, bce, cef, efg: of six, the two abc stand in another text too.
    assert row["shared_phrases"] == pytest.approx(2 / 6)
    assert row["distinct_words"] == pytest.approx(7 / 10)
    assert row["length_variation"] == pytest.approx(1 / 5)
    orders = (b"a b c d\na b c e f g", b"a b c e f g\na b c d")
    packed = {len(raw) / len(gzip.compress(raw, mtime=0)) for raw in orders}
    assert row["compression_ratio"] in packed


def test_repetition_tells_a_template_from_prose():
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(2000)]
    prose = [" ".join(rng.choice(words, 60)) for _ in range(30)]
    lines = "this page says how to set {} in your account and what it means for you"
    template = [lines.format(word) for word in words[:90]]
    free, same = (corpus.text_repetition(texts, characters=4000) for texts in (prose, template))
    assert (same["shared_phrases"] > 0.1).all()
    assert (free["shared_phrases"] == 0).all()
    assert same["compression_ratio"].mean() > free["compression_ratio"].mean()
    assert same["distinct_words"].mean() < free["distinct_words"].mean()
    assert corpus.text_repetition(prose, characters=4000).equals(free)


def test_siblings_by_hand():
    # Phrases of two words: {ab, bc, cd}, {bc, cd, de}, {xy}: two of four are shared.
    similarity, sibling = corpus.closest_siblings(["a b c d", "B, c d. E", "x y"], n=2)
    assert similarity.tolist() == [0.5, 0.5, 0.0]
    assert sibling.tolist() == [1, 0, -1]
    # Phrases do not run over the end of a text.
    assert corpus.closest_siblings(["a b", "c d", "b c"], n=2)[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_siblings_against_sets(n):
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(list("abcd"), rng.integers(1, 12))) for _ in range(600)]
    phrases = []
    for text in texts:
        words = re.findall(r"\w+", text)
        phrases.append({tuple(words[i : i + n]) for i in range(len(words) - n + 1)})
    similarity, sibling = corpus.closest_siblings(texts, n=n)
    for i in range(0, 600, 7):
        if not phrases[i]:
            assert np.isnan(similarity[i])
            continue
        shares = [len(phrases[i] & other) / len(phrases[i] | other) for other in phrases]
        shares[i] = 0.0
        assert similarity[i] == max(shares)
        assert sibling[i] == (shares.index(max(shares)) if max(shares) else -1)


@pytest.mark.parametrize(
    ("measure", "texts", "options", "words"),
    [
        (corpus.text_repetition, ["short"], {"characters": 100}, "needs as many"),
        (corpus.text_repetition, ["too few words"], {"characters": 5}, "8 words in a row"),
        (corpus.closest_siblings, ["a b c d e"], {}, "at least two"),
        (corpus.closest_siblings, ["a b", "c d"], {}, "5 words in a row"),
    ],
)
def test_texts_without_phrases(measure, texts, options, words):
    with pytest.raises(DataError, match=words):
        measure(texts, **options)
