"""BM25 by hand, against the slow reference, against bm25s, and with bad input."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit import schema
from ragkit.errors import DataError, UsageError
from ragkit.systems.retrieval import BM25
from ragkit.systems.retrieval import bm25 as module
from ragkit.systems.retrieval.reference import lucene_scores, one_byte_length
from tests.systems.retrieval import zipf


def frame(*texts):
    ids = [f"d{number}" for number in range(len(texts))]
    return pd.DataFrame({"doc_id": ids, "title": None, "text": texts})


def hits(runs, question_id="0"):
    part = runs[runs["question_id"] == question_id]
    return list(zip(part["doc_id"], part["score"], strict=True))


def test_by_hand():
    # N = 3, avgdl = 10/3; "a": n = 2, idf = ln(1 + 1.5/2.5) = 0.470004
    # d0: L = 3: 1.2 (0.25 + 0.75 x 0.9) = 1.11; 0.470004 x 1/2.11 = 0.222751
    # d1: the same length, tf = 2: 0.470004 x 2/3.11 = 0.302253
    runs = BM25().fit(frame("a b c", "a a d", "b d e f")).search(["a"])
    assert [doc for doc, _ in hits(runs)] == ["d1", "d0"]
    assert [score for _, score in hits(runs)] == pytest.approx([0.302253, 0.222751], abs=1e-6)


def test_runs_are_a_frame_of_the_shared_kind():
    questions = pd.DataFrame({"question_id": ["q 1", "q2"], "text": ["alpha", "beta gamma"]})
    runs = BM25(system="mine").fit(frame("alpha beta", "gamma")).search(questions, k=1)
    schema.check(runs, "runs")
    assert runs.values.tolist() == [
        ["mine", "q 1", 1, "d0", pytest.approx(runs["score"][0])],
        ["mine", "q2", 1, "d1", pytest.approx(runs["score"][1])],
    ]


def test_lengths_lose_low_bits_in_one_byte():
    lengths = [0, 1, 23, 24, 39, 40, 41, 42, 55, 56, 57, 58, 59, 60, 1000, 2**31 - 1]
    kept = module.DECODED_LENGTHS[module.encode_length(lengths)]
    assert kept.tolist()[:14] == [0, 1, 23, 24, 39, 40, 40, 42, 54, 56, 56, 56, 56, 60]
    assert kept.tolist() == [one_byte_length(length) for length in lengths]
    assert len(set(module.DECODED_LENGTHS.tolist())) == 256


def test_repeated_query_words_count():
    index = BM25().fit(frame("cat dog", "dog bird", "fish"))
    once, twice = hits(index.search(["cat dog"])), hits(index.search(["cat dog dog dog"]))
    assert dict(twice)["d1"] == pytest.approx(3 * dict(once)["d1"], rel=1e-6)


def test_ties_keep_the_order_of_the_documents():
    texts = ["same words here"] * 50
    runs = BM25().fit(frame(*texts)).search(["words"], k=7)
    assert runs["doc_id"].tolist() == [f"d{number}" for number in range(7)]
    assert runs["score"].nunique() == 1


words = st.sampled_from("a b c d e f g h Don't 3.14 x-y".split())
texts = st.lists(st.lists(words, max_size=60).map(" ".join), min_size=1, max_size=12)


@settings(max_examples=120, deadline=None)
@given(texts, st.lists(words, max_size=6).map(" ".join), st.integers(1, 5), st.booleans())
def test_equals_the_reference(documents, query, k, alike):
    k1, b = (1.2, 0.75) if alike else (0.4, 1.0)
    scores = lucene_scores(documents, query, k1=k1, b=b)
    best = sorted(range(len(documents)), key=lambda n: (-scores[n], n))
    expected = [(f"d{n}", float(scores[n])) for n in best if scores[n] > 0][:k]
    assert hits(BM25(k1, b).fit(frame(*documents)).search([query], k)) == expected


def test_skipping_lists_changes_nothing():
    made = [entry["text"] for entry in zipf.documents(3000, words=60)]
    asked = zipf.queries(made, 150)
    index = BM25().fit(frame(*made))
    full = index.search(asked, k=len(made))
    for k in (1, 3, 10, 100):
        first = full[full["rank"] <= k].reset_index(drop=True)
        pd.testing.assert_frame_equal(index.search(asked, k), first)


def test_blocks_change_nothing(monkeypatch):
    made = [entry["text"] for entry in zipf.documents(400, words=50)]
    asked = zipf.queries(made, 50)
    whole = BM25().fit(frame(*made)).search(asked)
    monkeypatch.setattr("ragkit.systems.retrieval.postings.BLOCK", 300)
    monkeypatch.setattr("ragkit.systems.retrieval.postings.CACHED", 20)
    pd.testing.assert_frame_equal(BM25().fit(frame(*made)).search(asked), whole)


def test_a_stream_of_frames_or_mappings_equals_one_frame():
    whole = frame("one two", "two three", "three four-five", "…", "six")
    expected = BM25().fit(whole).search(["two three", "five"])
    parts = (part for part in (whole[:2], whole[2:]))
    pd.testing.assert_frame_equal(BM25().fit(parts).search(["two three", "five"]), expected)
    entries = iter(whole.to_dict("records"))
    pd.testing.assert_frame_equal(BM25().fit(entries).search(["two three", "five"]), expected)


def test_a_copy_for_another_process_finds_the_same():
    index = BM25().fit(frame("one two", "two three"))
    copy = pickle.loads(pickle.dumps(index))
    pd.testing.assert_frame_equal(copy.search(["two three"]), index.search(["two three"]))


def test_fields_make_the_text():
    documents = pd.DataFrame(
        {"doc_id": ["x", "y"], "title": ["Refunds", float("nan")], "text": ["one", "refunds two"]}
    )
    assert set(BM25().fit(documents).search(["refunds"])["doc_id"]) == {"x", "y"}
    assert set(BM25(fields=("text",)).fit(documents).search(["refunds"])["doc_id"]) == {"y"}


def test_documents_without_words_do_not_count():
    padded = BM25().fit(frame("a b", "", "a c", " \n", "—"))
    plain = BM25().fit(frame("a b", "a c"))
    assert padded.search(["b"])["score"].tolist() == plain.search(["b"])["score"].tolist()


@pytest.mark.parametrize("query", ["", "   ", "—", "unheard", "?!"])
def test_a_query_that_finds_nothing_has_no_rows(query):
    runs = BM25().fit(frame("alpha", "beta")).search([query, "beta"])
    assert runs["question_id"].tolist() == ["1"]
    schema.check(BM25().fit(frame("alpha")).search([query]), "runs")


def test_no_queries_give_an_empty_frame():
    runs = BM25().fit(frame("alpha")).search([])
    assert list(runs) == list(schema.COLUMNS["runs"])
    assert runs.empty


def test_one_document_and_k_beyond_the_corpus():
    runs = BM25().fit(frame("alpha beta")).search(["beta"], k=1000)
    assert hits(runs) == [("d0", pytest.approx(0.287682 / 2.2, abs=1e-6))]


def test_no_document_has_a_word():
    assert BM25().fit(frame("", "—")).search(["alpha"]).empty


def test_a_document_of_ten_megabytes():
    large = "needle " + "hay stack, " * 1_000_000
    runs = BM25().fit(frame("needle", large, "hay")).search(["needle", "stack"])
    assert runs["doc_id"].tolist() == ["d0", "d1", "d1"]


def test_a_document_of_one_long_word():
    runs = BM25().fit(frame("x" * 3_000_000, "y")).search(["x" * 255, "x" * 300, "x"])
    assert runs["question_id"].tolist() == ["0", "1"]


@pytest.mark.parametrize("extreme", [(0, 0), (0, 1), (1e6, 0), (1.2, 1)])
def test_extreme_parameters_stay_finite(extreme):
    made = frame("a b", "a", "", "b b b b a")
    runs = BM25(*extreme).fit(made).search(["a b"])
    assert np.isfinite(runs["score"]).all()
    assert len(runs) == 3


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([], "no documents to index"),
        (pd.DataFrame({"doc_id": [], "title": [], "text": []}), "no documents to index"),
        (pd.DataFrame({"doc_id": ["x"], "text": ["y"]}), "lack the column 'title'"),
        ([{"doc_id": "x", "title": None}], "document 1 lacks 'text'"),
        ([{"doc_id": 3, "title": "", "text": "y"}], "document 1 should have a string as doc_id"),
        ([{"doc_id": " ", "title": "", "text": "y"}], "should have a string as doc_id"),
        ([{"doc_id": "x", "title": "", "text": 7}], r"document 1 \(x\): text should be a string"),
        (["only text"], "document 1 should be a mapping or a frame, found str"),
        ("only text", "found one str"),
        ({"doc_id": "x", "title": "", "text": "y"}, "found one dict"),
        (
            pd.concat([frame("a", "b"), frame("c")], ignore_index=True),
            "document 3 repeats the doc_id 'd0'",
        ),
    ],
)
def test_bad_documents(documents, message):
    with pytest.raises(DataError, match=message):
        BM25().fit(documents)


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ("one string", "found one string"),
        (["fine", None], r"query 2 \(1\) should be a string, found None"),
        (pd.DataFrame({"text": ["x"]}), "lack the column 'question_id'"),
        (pd.DataFrame({"question_id": ["x", "x"], "text": ["y", "z"]}), "query 2 repeats"),
        (pd.DataFrame({"question_id": [1], "text": ["y"]}), "query 1 should have a string"),
    ],
)
def test_bad_queries(queries, message):
    with pytest.raises(DataError, match=message):
        BM25().fit(frame("x")).search(queries)


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "10", None])
def test_bad_k(k):
    with pytest.raises(UsageError, match="k should be a whole number from 1"):
        BM25().fit(frame("x")).search(["x"], k)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k1": -1}, "k1 should be"),
        ({"k1": float("nan")}, "k1 should be"),
        ({"b": 1.5}, "b should be"),
        ({"mode": "lucen"}, "no mode 'lucen'"),
        ({"fields": "text"}, "fields should be a tuple"),
        ({"fields": ()}, "fields should be a tuple"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(UsageError, match=message):
        BM25(**options)


def test_searching_before_fitting():
    with pytest.raises(UsageError, match="no index yet"):
        BM25().search(["x"])
