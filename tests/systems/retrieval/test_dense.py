"""Dense search by hand, against brute force, ties, chunks, from a folder, and bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ragkit import schema
from ragkit.errors import DataError, ModelError, UsageError
from ragkit.systems.retrieval import Dense
from ragkit.systems.retrieval import dense as module
from tests.models.support import fetched
from tests.systems.retrieval.support import Letters, Rows, Spaces, frame, lists


def brute_force(matrix, queries, k):
    """Return each query's first k rows: 64-bit sums, rounded to 32 bits, ties in row order."""
    found = {}
    for number, query in enumerate(queries.astype(np.float32).astype(np.float64)):
        rows = matrix.astype(np.float32).astype(np.float64)
        scores = np.array([(row * query).sum() for row in rows]).astype(np.float32)
        found[str(number)] = [str(row) for row in np.argsort(-scores, kind="stable")[:k]]
    return found


def numbered(matrix):
    return frame(*map(str, range(len(matrix))), ids=[str(row) for row in range(len(matrix))])


def found_by(matrix, queries, k=10):
    dense = Dense(Rows(matrix, queries)).fit(numbered(matrix))
    return dense.search([str(row) for row in range(len(queries))], k)


def test_by_hand():
    # "ab" = (1, 1, 0)/sqrt 2, "aab" = (2, 1, 0)/sqrt 5, "c" = (0, 0, 1); asked "a" = (1, 0, 0)
    questions = pd.DataFrame({"question_id": ["q 1"], "text": ["a"]})
    documents = frame("ab", "aab", "c", ids=["one", "two 2", "3"])
    runs = Dense(Letters()).fit(documents).search(questions, k=50)
    schema.check(runs, "runs")
    assert runs.drop(columns="score").values.tolist() == [
        ["dense-letters", "q 1", 1, "two 2"],
        ["dense-letters", "q 1", 2, "one"],
        ["dense-letters", "q 1", 3, "3"],
    ]
    assert runs["score"].tolist() == pytest.approx([2 / 5**0.5, 1 / 2**0.5, 0], abs=1e-7)


def test_texts_without_words_are_not_found_and_find_nothing():
    dense = Dense(Letters()).fit(frame("a", None, " \n", "b"))
    assert lists(dense.search(["a", " ", "b"], k=9)) == {"0": ["d0", "d3"], "2": ["d3", "d0"]}
    assert dense.search([], k=3).empty
    assert Dense(Letters()).fit(frame(None)).search(["a"]).empty


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_few_values_many_ties_equal_brute_force(data):
    n, q = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 30))
    values = st.sampled_from([0.0, 1.0, -1.0, 0.1, 0.3, 1e-4, 3e4])
    matrix = data.draw(arrays(np.float32, (n, 3), elements=values.map(np.float32)))
    queries = data.draw(arrays(np.float32, (q, 3), elements=values.map(np.float32)))
    k = data.draw(st.integers(1, 45))
    found = lists(found_by(matrix, queries, k))
    assert found == brute_force(matrix, queries, k)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_near_ties_equal_brute_force(dtype):
    rng = np.random.default_rng(0)
    base = rng.standard_normal((40, 64))
    matrix = np.repeat(base, 30, axis=0) + rng.standard_normal((1200, 64)) * 1e-7
    matrix = np.concatenate([matrix, np.repeat(matrix[:2], 100, axis=0)]).astype(dtype)
    queries = rng.standard_normal((25, 64))
    found = lists(found_by(matrix, queries, 20))
    assert found == brute_force(matrix, queries, 20)


def test_few_queries_take_another_way_through_faiss_to_the_same_lists():
    rng = np.random.default_rng(1)
    matrix, queries = rng.standard_normal((3000, 32)), rng.standard_normal((64, 32))
    dense = Dense(Rows(matrix, queries)).fit(numbered(matrix))
    asked = pd.DataFrame({"question_id": map(str, range(64)), "text": map(str, range(64))})
    alone = [dense.search(asked.iloc[row : row + 1]) for row in range(64)]
    together = dense.search(asked)
    pd.testing.assert_frame_equal(together, pd.concat(alone, ignore_index=True))


def test_chunks_give_the_document_its_best_one():
    documents = frame("a b b b b b b", "a a b b b b b", "c c c")
    dense = Dense(Spaces(), long="chunks", chunk_tokens=2, overlap=1).fit(documents)
    # d0: ab bb bb ..., d1: aa ab bb ..., d2: cc cc
    assert dense.owners_.tolist() == [0] * 6 + [1] * 6 + [2] * 2
    assert dense.system == "dense-spaces-chunks"
    runs = dense.search(["a", "b", "c"], k=2)
    assert lists(runs) == {"0": ["d1", "d0"], "1": ["d0", "d1"], "2": ["d2", "d0"]}
    assert runs["score"].tolist() == pytest.approx([1, 0.5**0.5, 1, 1, 1, 0], abs=1e-7)


@given(st.integers(0, 60), st.integers(1, 12), st.data())
def test_windows_cover_every_token_and_overlap_as_told(count, tokens, data):
    overlap = data.draw(st.integers(0, tokens - 1))
    words = [f"w{number}" for number in range(count)]
    pieces = [piece.split() for piece in Spaces().windows(" ".join(words), tokens, overlap)]
    assert all(len(piece) <= tokens for piece in pieces)
    assert pieces[0] + [word for piece in pieces[1:] for word in piece[overlap:]] == words
    for left, right in zip(pieces, pieces[1:], strict=False):
        assert left[len(left) - overlap :] == right[:overlap]


def test_streaming_gives_the_same_index(monkeypatch):
    documents = frame("ab", "aab", "", "c", "bc")
    whole = Dense(Letters()).fit(documents).search(["a", "b"])
    monkeypatch.setattr(module, "AT_ONCE", 2)
    streamed = Dense(Letters()).fit(iter(documents.to_dict("records"))).search(["a", "b"])
    pd.testing.assert_frame_equal(streamed, whole)


CHUNKS = {"long": "chunks", "chunk_tokens": 3, "overlap": 1}


@pytest.mark.parametrize(
    ("encoder", "options", "message"),
    [
        (Letters(), {"long": "chunk"}, "no rule for long documents 'chunk'\n.*'chunks'"),
        (Letters(), {"overlap": -1}, "overlap should be a whole number from 0 to 127"),
        (Letters(), {"long": "chunks"}, "chunks need an encoder of ragkit.models"),
        (Spaces(), CHUNKS | {"chunk_tokens": 5}, "chunk_tokens .* number from 1 to 4, found 5"),
        (Spaces(), CHUNKS | {"overlap": 3}, "overlap .* whole number from 0 to 2, found 3"),
        ("e5-large-v2", {}, "all-MiniLM-L6-v2 can stand in for it"),
    ],
)
def test_bad_options(encoder, options, message):
    with pytest.raises((UsageError, ModelError), match=message):
        Dense(encoder, **options)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones((1, 0)), "passage vectors of rows should be a matrix"),
        (np.array([["a"]]), "vectors of rows should be numbers"),
        (np.array([[1, 2], [np.nan, 0]]), r"row 2 \('1'\) holds NaN"),
        (np.array([[np.inf]], np.float16), r"row 1 \('0'\) holds NaN"),
    ],
)
def test_bad_vectors(vectors, message):
    with pytest.raises(DataError, match=message):
        Dense(Rows(vectors)).fit(numbered(vectors))


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        (np.ones((1, 2)), "question vectors have length 2, documents 3"),
        (np.array([[1.0, 0, 0], [1e20, 0, 0]]), r"query vectors of rows: row 2 \('1'\) holds NaN"),
    ],
)
def test_bad_questions(queries, message):
    with pytest.raises(DataError, match=message):
        found_by(np.ones((1, 3)), queries)


def test_an_encoder_that_gives_no_numbers_is_named():
    class Broken(Letters):
        def encode(self, texts, kind="passage"):
            return super().encode(texts, kind)[:1]

    with pytest.raises(DataError, match=r"passage vectors of letters .* 2 rows, found .* \(1, 3\)"):
        Dense(Broken()).fit(frame("a", "b"))
    with (
        np.errstate(invalid="ignore"),
        pytest.raises(DataError, match=r"row 2 \('xyz'\) holds NaN"),
    ):
        Dense(Letters()).fit(frame("a", "xyz"))


def test_the_real_encoder_finds_meaning(tmp_path):
    fetched("bge-small-en-v1.5-int8")
    documents = frame("The cat sleeps on the sofa.", "Interest rates rose again in May.")
    dense = Dense("bge-small-en-v1.5-int8", cache=tmp_path).fit(documents)
    dense = Dense("bge-small-en-v1.5-int8").load(dense.save(tmp_path / "index"))
    runs = dense.search(["Where is my pet?", "What did the central bank do?"], k=1)
    assert runs["doc_id"].tolist() == ["d0", "d1"]
    assert runs["system"].unique().tolist() == ["dense-bge-small-en-v1.5-int8"]
