"""Windows of documents, and parts pooled from them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import DataError, UsageError
from ragkit.measures import corpus


def frame(*texts):
    return pd.DataFrame(
        {
            "doc_id": [f"d{i}" for i in range(len(texts))],
            "source": "wiki",
            "title": [f"Title {i}" for i in range(len(texts))],
            "text": list(texts),
        }
    )


def test_windows_have_so_many_tokens():
    documents = frame("one two three four five six seven", "short")
    windows = corpus.split(documents, tokens=3)
    assert windows["text"].tolist() == ["one two three", " four five six", " seven", "short"]
    assert windows["start"].tolist() == [0, 3, 6, 0]
    assert windows["tokens"].tolist() == [3, 3, 1, 1]
    assert windows["doc_id"].tolist() == ["d0", "d0", "d0", "d1"]
    assert windows["title"].tolist() == ["Title 0"] * 3 + ["Title 1"]


@given(st.text(min_size=1, max_size=60), st.integers(1, 5))
def test_windows_joined_are_the_text(text, tokens):
    from ragkit import text as texts

    windows = corpus.split(frame(text), tokens=tokens)
    assert "".join(windows["text"]) == text
    # A character of several tokens stays with its first one; a window of the others alone is empty.
    assert (windows["text"] != "").all()
    assert windows["tokens"].max() <= tokens
    total = texts.lengths([text], "cl100k_base")[0]
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


def test_pooling_bad_input():
    windows = corpus.split(frame("one two three four five six seven"), tokens=2)
    with pytest.raises(UsageError, match="cut through windows of 2"):
        corpus.pool(windows, np.eye(4), tokens=3)
    with pytest.raises(UsageError, match="4 windows, but 3 vectors"):
        corpus.pool(windows, np.eye(3), tokens=4)
    with pytest.raises(DataError, match="zero"):
        corpus.pool(windows, np.zeros((4, 2)), tokens=4)


def test_splitting_bad_input():
    with pytest.raises(DataError, match="'d1' has no text"):
        corpus.split(frame("one", None))
    with pytest.raises(DataError, match="'title'"):
        corpus.split(frame("one").drop(columns="title"))
    with pytest.raises(UsageError, match="tokens"):
        corpus.split(frame("one"), tokens=0)
    with pytest.raises(UsageError, match="cl100k"):
        corpus.split(frame("one"), encoding="cl100k")
