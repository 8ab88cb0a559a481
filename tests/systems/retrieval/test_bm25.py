"""BM25 by hand, against the slow reference, from a folder, and with bad input."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit import schema
from ragkit.errors import DataError, UsageError
from ragkit.systems.retrieval import BM25, Dense
from ragkit.systems.retrieval import bm25 as module
from tests.systems.retrieval import zipf
from tests.systems.retrieval.reference import lucene_scores, one_byte_length
from tests.systems.retrieval.support import frame, hits


def test_by_hand():
    # N = 3, avgdl = 10/3; "a": n = 2, idf = ln(1 + 1.5/2.5) = 0.470004
    # d0: L = 3: 1.2 (0.25 + 0.75 x 0.9) = 1.11; 0.470004 x 1/2.11 = 0.222751
    # d1: the same length, tf = 2: 0.470004 x 2/3.11 = 0.302253
    questions = pd.DataFrame({"question_id": ["q 1", "q2"], "text": ["a", "f"]})
    runs = BM25(system="mine").fit(frame("a b c", "a a d", "b d e f")).search(questions)
    schema.check(runs, "runs")
    assert runs.drop(columns="score").values.tolist() == [
        ["mine", "q 1", 1, "d1"],
        ["mine", "q 1", 2, "d0"],
        ["mine", "q2", 1, "d2"],
    ]
    assert runs["score"][:2].tolist() == pytest.approx([0.302253, 0.222751], abs=1e-6)


def test_lengths_lose_low_bits_in_one_byte():
    lengths = [0, 1, 23, 24, 39, 40, 41, 42, 55, 56, 57, 58, 59, 60, 1000, 2**31 - 1]
    kept = module.one_byte(lengths)
    assert kept.tolist()[:14] == [0, 1, 23, 24, 39, 40, 40, 42, 54, 56, 56, 56, 56, 60]
    assert kept.tolist() == [one_byte_length(length) for length in lengths]


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


@pytest.fixture(scope="module")
def many():
    texts = [entry["text"] for entry in zipf.documents(3000, words=60)]
    return texts, zipf.queries(texts, 150)


def test_skipping_lists_blocks_and_streams_change_nothing(monkeypatch, many):
    texts, asked = many
    whole = frame(*texts, "…")
    full = BM25().fit(whole).search(asked, k=len(texts))
    monkeypatch.setattr(module, "BLOCK", 300)
    for documents, k in (
        *((whole, k) for k in (1, 3, 10)),
        ((part for part in (whole[:2], whole[2:])), 10),
        (iter(whole.to_dict("records")), 100),
    ):
        first = full[full["rank"] <= k].reset_index(drop=True)
        pd.testing.assert_frame_equal(BM25().fit(documents).search(asked, k), first)


def test_fields_make_the_text():
    documents = pd.DataFrame(
        {"doc_id": ["x", "y"], "title": ["Refunds", float("nan")], "text": ["one", "refunds two"]}
    )
    assert set(BM25().fit(documents).search(["refunds"])["doc_id"]) == {"x", "y"}
    assert set(BM25(fields=("text",)).fit(documents).search(["refunds"])["doc_id"]) == {"y"}


def test_documents_and_queries_without_words_do_not_count():
    padded = BM25().fit(frame("a b", "", "a c", " \n", "—"))
    plain = BM25().fit(frame("a b", "a c"))
    assert padded.search(["b"])["score"].tolist() == plain.search(["b"])["score"].tolist()
    assert BM25().fit(frame("", "—")).search(["alpha"]).empty
    runs = BM25().fit(frame("alpha beta")).search(["", "   ", "—", "unheard", "beta"], k=1000)
    assert hits(runs, "4") == [("d0", pytest.approx(0.287682 / 2.2, abs=1e-6))]
    assert len(runs) == 1


def test_documents_of_megabytes():
    large = "needle " + "hay stack, " * 1_000_000
    runs = BM25().fit(frame("needle", large, "hay")).search(["needle", "stack"])
    assert runs["doc_id"].tolist() == ["d0", "d1", "d1"]
    runs = BM25().fit(frame("x" * 3_000_000, "y")).search(["x" * 255, "x" * 300, "x"])
    assert runs["question_id"].tolist() == ["0", "1"]


@pytest.mark.parametrize("extreme", [(0, 0), (0, 1), (1e6, 0), (1.2, 1)])
def test_extreme_parameters_stay_finite_and_ties_keep_the_order(extreme):
    runs = BM25(*extreme).fit(frame("a b", "a", "", "b b b b a")).search(["a b"])
    assert np.isfinite(runs["score"]).all()
    assert len(runs) == 3
    runs = BM25(*extreme).fit(frame(*["same words here"] * 50)).search(["words"], k=7)
    assert runs["doc_id"].tolist() == [f"d{number}" for number in range(7)]
    assert runs["score"].nunique() == 1


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([], "no documents to index"),
        (frame("a").drop(columns="title"), "lack the column 'title'"),
        ([{"doc_id": "x", "title": None}], "document 1 lacks 'text'"),
        ([{"doc_id": 3, "title": "", "text": "y"}], "document 1 should have a string as doc_id"),
        ([{"doc_id": "x", "title": "", "text": 7}], r"document 1 \(x\): text should be a string"),
        (["only text"], "document 1 should be a mapping or a frame, found str"),
        ("only text", "found one str"),
        ({"doc_id": "x", "title": "", "text": "y"}, "found one dict"),
        (pd.concat([frame("a", "b"), frame("c")]), "document 3 repeats the doc_id 'd0'"),
    ],
)
@pytest.mark.parametrize("make", [BM25, lambda: Dense(SimpleNamespace(name="none"))])
def test_bad_documents(make, documents, message):
    with pytest.raises(DataError, match=message):
        make().fit(documents)


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ("one string", "found one string"),
        (["fine", None], r"question 2 \(1\) should be a string, found None"),
        (pd.DataFrame({"text": ["x"]}), "lack the column 'question_id'"),
        (pd.DataFrame({"question_id": ["x", "x"], "text": ["y", "z"]}), "question 2 repeats"),
        (pd.DataFrame({"question_id": [1], "text": ["y"]}), "question 1 should have a string"),
    ],
)
def test_bad_questions(questions, message):
    with pytest.raises(DataError, match=message):
        BM25().fit(frame("x")).search(questions)


@pytest.mark.parametrize("k", [0, 2.5])
def test_bad_k(k):
    with pytest.raises(UsageError, match="k should be a whole number of at least 1"):
        BM25().fit(frame("x")).search(["x"], k)
    with pytest.raises(UsageError, match="BM25 has no index yet"):
        BM25().search(["x"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k1": -1}, "k1 should be a number of at least 0, found -1"),
        ({"mode": "lucen"}, "no mode of BM25 'lucen'"),
        ({"fields": "text"}, "fields should be several column names, found 'text'"),
        ({"fields": ()}, "fields should be several column names"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(UsageError, match=message):
        BM25(**options)
