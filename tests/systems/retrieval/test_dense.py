"""Dense search by hand, against brute force, both backends, ties, chunks, and bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ragkit import models, schema
from ragkit.errors import DataError, UsageError
from ragkit.systems.retrieval import Dense
from ragkit.systems.retrieval import dense as module
from tests.models.support import fetched

BACKENDS = pytest.mark.parametrize("backend", ["faiss", "numpy"])


class Letters:
    """An encoder for tests: how often a, b and c occur, at unit length."""

    name = "letters"

    def encode(self, texts, kind="passage"):
        assert kind in ("passage", "query")
        counts = np.array([[text.count(letter) for letter in "abc"] for text in texts], float)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def frame(*texts, ids=None):
    ids = ids or [f"d{number}" for number in range(len(texts))]
    return pd.DataFrame({"doc_id": ids, "title": None, "text": texts})


def lists(runs):
    return {name: part["doc_id"].tolist() for name, part in runs.groupby("question_id")}


def brute_force(matrix, queries, k):
    """Return each query's first k rows: 64-bit sums, rounded to 32 bits, ties in row order."""
    found = []
    for query in queries.astype(np.float32).astype(np.float64):
        rows = matrix.astype(np.float32).astype(np.float64)
        scores = np.array([(row * query).sum() for row in rows]).astype(np.float32)
        found.append(np.argsort(-scores, kind="stable")[:k])
    return found


def test_by_hand():
    # "ab" = (1, 1, 0)/sqrt 2, "aab" = (2, 1, 0)/sqrt 5, "c" = (0, 0, 1); asked "a" = (1, 0, 0)
    runs = Dense(Letters()).fit(frame("ab", "aab", "c")).search(["a"], k=3)
    assert runs["doc_id"].tolist() == ["d1", "d0", "d2"]
    assert runs["score"].tolist() == pytest.approx([2 / 5**0.5, 1 / 2**0.5, 0], abs=1e-7)


def test_runs_are_a_frame_of_the_shared_kind():
    questions = pd.DataFrame({"question_id": ["q 1", "q2"], "text": ["a", "c"]})
    runs = Dense(Letters()).fit(frame("ab", "c", ids=["doc one", "2"])).search(questions, k=1)
    schema.check(runs, "runs")
    assert runs.drop(columns="score").values.tolist() == [
        ["dense-letters", "q 1", 1, "doc one"],
        ["dense-letters", "q2", 1, "2"],
    ]


@BACKENDS
def test_k_larger_than_the_corpus_and_one_document(backend):
    dense = Dense(Letters(), backend=backend).fit(frame("ab"))
    assert lists(dense.search(["a", "b"], k=50)) == {"0": ["d0"], "1": ["d0"]}


def test_texts_without_words_are_not_found_and_find_nothing():
    dense = Dense(Letters()).fit(frame("a", None, " \n", "b"))
    assert lists(dense.search(["a", " ", "b"], k=9)) == {"0": ["d0", "d3"], "2": ["d3", "d0"]}
    assert dense.search([], k=3).empty
    assert Dense(Letters()).fit(frame(None)).search(["a"]).empty


@BACKENDS
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_few_values_many_ties_equal_brute_force(backend, data):
    n, q = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 30))
    values = st.sampled_from([0.0, 1.0, -1.0, 0.1, 0.3, 1e-4, 3e4])
    matrix = data.draw(arrays(np.float32, (n, 3), elements=values.map(np.float32)))
    queries = data.draw(arrays(np.float32, (q, 3), elements=values.map(np.float32)))
    k = data.draw(st.integers(1, 45))
    ids = [str(row) for row in range(n)]
    runs = Dense(None, backend=backend).fit_vectors(ids, matrix).search_vectors(queries, k)
    found = lists(runs)
    for number, expected in enumerate(brute_force(matrix, queries, k)):
        assert found[str(number)] == [str(row) for row in expected]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_backends_agree_to_the_bit_on_near_ties(dtype, monkeypatch):
    rng = np.random.default_rng(0)
    base = rng.standard_normal((40, 64))
    matrix = np.repeat(base, 30, axis=0) + rng.standard_normal((1200, 64)) * 1e-7
    matrix = np.concatenate([matrix, np.repeat(matrix[:2], 100, axis=0)]).astype(dtype)
    queries = rng.standard_normal((25, 64))
    monkeypatch.setattr(module, "ROWS", 512)
    ids = [str(row) for row in range(len(matrix))]
    runs = {
        backend: Dense(None, backend=backend).fit_vectors(ids, matrix).search_vectors(queries, 20)
        for backend in ("faiss", "numpy")
    }
    pd.testing.assert_frame_equal(runs["faiss"], runs["numpy"])
    for number, expected in enumerate(brute_force(matrix, queries, 20)):
        assert lists(runs["faiss"])[str(number)] == [str(row) for row in expected]


def test_few_queries_take_another_way_through_faiss_to_the_same_lists():
    rng = np.random.default_rng(1)
    matrix, queries = rng.standard_normal((3000, 32)), rng.standard_normal((64, 32))
    dense = Dense(None).fit_vectors([str(row) for row in range(3000)], matrix)
    together = dense.search_vectors(queries, 10)
    alone = pd.concat(
        dense.search_vectors(queries[n : n + 1], 10, question_ids=[str(n)]) for n in range(64)
    )
    pd.testing.assert_frame_equal(together, alone.reset_index(drop=True))


@BACKENDS
def test_a_memory_mapped_matrix_is_not_copied(tmp_path, backend, monkeypatch):
    monkeypatch.setattr(module, "ROWS", 100)
    matrix = np.random.default_rng(2).standard_normal((1000, 8)).astype(np.float16)
    np.save(tmp_path / "m.npy", matrix)
    mapped = np.load(tmp_path / "m.npy", mmap_mode="r")
    dense = Dense(None, backend=backend).fit_vectors([str(n) for n in range(1000)], mapped)
    assert np.shares_memory(dense.vectors_, mapped)
    found = lists(dense.search_vectors(matrix[:5], 3))
    for number, expected in enumerate(brute_force(matrix, matrix[:5], 3)):
        assert found[str(number)] == [str(row) for row in expected]


def test_zero_vectors_score_zero_and_keep_the_documents_order():
    dense = Dense(None).fit_vectors(["x", "y", "z"], np.array([[1.0, 0], [0, 0], [-1, 0]]))
    runs = dense.search_vectors(np.array([[0.0, 0], [1, 0]]), 3)
    assert lists(runs) == {"0": ["x", "y", "z"], "1": ["x", "y", "z"]}
    assert runs["score"].tolist() == [0, 0, 0, 1, 0, -1]


class Spaces(models.Encoder):
    """An encoder of ragkit.models whose tokens are what white space parts."""

    def __init__(self):
        self.name, self.max_tokens = "spaces", 4

    def encode(self, texts, kind="passage", *, cache=False, progress=False):
        return Letters().encode(texts, kind)

    def count_tokens(self, texts, kind="passage"):
        return np.array([len(text.split()) for text in texts])

    def spans(self, text):
        ends = np.cumsum([len(word) + 1 for word in text.split()]) - 1
        return [(end - len(word), end) for word, end in zip(text.split(), ends, strict=True)]


def test_chunks_give_the_document_its_best_one():
    documents = frame("a b b b b b b", "a a b b b b b", "c c c")
    options = {"long": "chunks", "chunk_tokens": 2, "overlap": 1}
    dense = Dense(Spaces(), **options).fit(documents)
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
    rebuilt = pieces[0] + [word for piece in pieces[1:] for word in piece[overlap:]]
    assert rebuilt == words
    assert all(
        left[len(left) - overlap :] == right[:overlap]
        for left, right in zip(pieces, pieces[1:], strict=False)
    )


def test_streaming_gives_the_same_index(monkeypatch):
    monkeypatch.setattr(module, "AT_ONCE", 2)
    texts = ["ab", "aab", "", "c", "bc"]
    whole = Dense(Letters()).fit(frame(*texts))
    rows = ({"doc_id": f"d{n}", "title": "", "text": text} for n, text in enumerate(texts))
    streamed = Dense(Letters()).fit(rows)
    pd.testing.assert_frame_equal(streamed.search(["a", "b"]), whole.search(["a", "b"]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"long": "chunk"}, "no rule 'chunk'\n.*'chunks'"),
        ({"backend": "fais"}, "no backend 'fais'\n.*'faiss'"),
        ({"fields": "text"}, "fields should be a tuple"),
        ({"chunk_tokens": 0}, "chunk_tokens should be a whole number from 1"),
        ({"overlap": -1}, "overlap should be a whole number from 0"),
        ({"long": "chunks"}, "chunks need an encoder of ragkit.models"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(UsageError, match=message):
        Dense(Letters(), **options)


def test_chunks_must_fit_the_encoder():
    with pytest.raises(UsageError, match="spaces has room for 4 tokens, found chunk_tokens=5"):
        Dense(Spaces(), long="chunks", chunk_tokens=5, overlap=1)
    with pytest.raises(UsageError, match=r"overlap should be below chunk_tokens \(3\), found 3"):
        Dense(Spaces(), long="chunks", chunk_tokens=3, overlap=3)


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        (frame(), "there are no documents to index"),
        (frame("a", ids=[" "]), "document 1 should have a string as doc_id"),
        (frame("a", "b", ids=["x", "x"]), "document 2 repeats the doc_id 'x'"),
        (frame("a", 3.5), r"document 2 \(d1\): text should be a string, found 3.5"),
        (frame("a").drop(columns="title"), "the documents lack the column 'title'"),
        ("text", "expected documents, found one str"),
    ],
)
def test_bad_documents(documents, message):
    with pytest.raises(DataError, match=message):
        Dense(Letters()).fit(documents)


@pytest.mark.parametrize(
    ("ids", "vectors", "message"),
    [
        ([], np.ones((0, 2)), "there are no documents"),
        (["x", "x"], np.ones((2, 2)), "document 2 repeats the doc_id 'x'"),
        (["x"], np.ones((2, 2)), "expected 1 vectors, one a document, found 2"),
        (["x"], np.ones(2), r"vectors should be a matrix, one row each, found shape \(2,\)"),
        (["x"], np.ones((1, 0)), "found shape"),
        (["x"], np.array([["a"]]), "vectors should be numbers"),
        (["x", "y"], np.array([[1, 2], [np.nan, 0]]), r"row 2 \(y\) holds NaN or infinity"),
        (["x"], np.array([[np.inf]], np.float16), r"row 1 \(x\) holds NaN or infinity"),
    ],
)
def test_bad_vectors(ids, vectors, message):
    with pytest.raises(DataError, match=message):
        Dense(None).fit_vectors(ids, vectors)


def test_bad_queries():
    dense = Dense(Letters())
    with pytest.raises(UsageError, match="Dense has no index yet"):
        dense.search(["a"])
    dense.fit(frame("a"))
    with pytest.raises(UsageError, match="k should be a whole number from 1, found 0"):
        dense.search(["a"], k=0)
    with pytest.raises(DataError, match="put it into a list"):
        dense.search("a")
    with pytest.raises(DataError, match=r"query 1 \(0\) should be a string, found None"):
        dense.search([None])
    with pytest.raises(DataError, match="query vectors have length 2, documents 3"):
        dense.search_vectors(np.ones((1, 2)))
    with pytest.raises(DataError, match="query vector 2 holds NaN, infinity or too much"):
        dense.search_vectors(np.array([[1.0, 0, 0], [np.nan, 0, 0]]))
    with pytest.raises(DataError, match="expected 2 query vectors, found 1"):
        dense.search_vectors(np.ones((1, 3)), question_ids=["a", "b"])
    with pytest.raises(UsageError, match="there is no encoder"):
        Dense(None).fit_vectors(["x"], np.ones((1, 3))).search(["a"])
    with pytest.raises(UsageError, match="there is no encoder"):
        Dense(None).fit(frame("a"))


def test_an_encoder_that_gives_no_numbers_is_named():
    class Broken(Letters):
        name = "broken"

        def encode(self, texts, kind="passage"):
            return super().encode(texts, kind)[:1]

    with pytest.raises(DataError, match=r"broken made an array of shape \(1, 3\) of 2 texts"):
        Dense(Broken()).fit(frame("a", "b"))
    with (
        np.errstate(invalid="ignore"),
        pytest.raises(DataError, match=r"row 2 \(d1\) holds NaN"),
    ):
        Dense(Letters()).fit(frame("a", "xyz"))


def test_a_missing_encoder_names_what_can_stand_in():
    with pytest.raises(Exception, match="all-MiniLM-L6-v2 can stand in for it"):
        Dense("e5-large-v2")


def test_the_real_encoder_finds_meaning(tmp_path):
    fetched("bge-small-en-v1.5-int8")
    documents = frame("The cat sleeps on the sofa.", "Interest rates rose again in May.")
    dense = Dense("bge-small-en-v1.5-int8", cache=tmp_path)
    dense.fit(documents)
    runs = dense.search(["Where is my pet?", "What did the central bank do?"], k=1)
    assert runs["doc_id"].tolist() == ["d0", "d1"]
    assert runs["system"].unique().tolist() == ["dense-bge-small-en-v1.5-int8"]
