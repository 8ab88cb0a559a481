"""Fusion of ranked lists by hand, against a plain second implementation, and bad input."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit import schema
from ragkit.errors import UsageError
from ragkit.systems.retrieval import BM25, Hybrid
from tests.systems.retrieval.support import Given, hits

ONE = Given("one", {"q": [("a", 9.0), ("b", 5.0), ("c", 1.0)]})
TWO = Given("two", {"q": [("c", 0.8), ("d", 0.6), ("a", 0.4)], "r": [("d", 0.5)]})


def test_reciprocal_ranks_by_hand():
    runs = Hybrid([ONE, TWO]).search(["q"])
    schema.check(runs, "runs")
    # a and c: 1/61 + 1/63; b and d: 1/62. Ties as the first list has them.
    assert hits(runs) == [
        ("a", pytest.approx(1 / 61 + 1 / 63)),
        ("c", pytest.approx(1 / 61 + 1 / 63)),
        ("b", pytest.approx(1 / 62)),
        ("d", pytest.approx(1 / 62)),
    ]
    assert runs["system"].unique().tolist() == ["rrf(one+two)"]
    assert runs["rank"].tolist() == [1, 2, 3, 4]
    runs = Hybrid([ONE, TWO], k0=0, weights=[1, 3]).search(["q"], k=2)
    assert hits(runs) == [("c", pytest.approx(1 / 3 + 3)), ("a", pytest.approx(1 + 1))]


def test_convex_by_hand():
    # one: a 1, b 0.5, c 0; two: c 1, d 0.5, a 0; weights 1/4 and 3/4
    runs = Hybrid([ONE, TWO], method="convex", weights=[1, 3]).search(["q", "r"])
    assert [name for name, _ in hits(runs)] == ["c", "d", "a", "b"]
    assert [score for _, score in hits(runs)] == pytest.approx([0.75, 0.375, 0.25, 0.125])
    assert hits(runs, "1") == [("d", 0.75)]


def test_depth_is_never_below_k_and_a_question_that_nobody_answers_has_no_row():
    assert Hybrid([ONE, TWO], depth=1).search(["q"], k=1)["doc_id"].tolist() == ["a"]
    assert len(Hybrid([ONE, TWO], depth=1).search(["q"], k=3)) == 3
    questions = pd.DataFrame({"question_id": ["x 1", "y"], "text": ["?", "r"]})
    runs = Hybrid([ONE, TWO]).search(questions)
    assert runs[["question_id", "doc_id"]].values.tolist() == [["y", "d"]]
    assert Hybrid([ONE, TWO]).search([]).empty


LISTS = st.lists(st.sampled_from("abcdefgh"), unique=True, max_size=8)


@given(st.lists(LISTS, min_size=2, max_size=4), st.integers(0, 80), st.data())
def test_reciprocal_ranks_equal_the_formula(lists, k0, data):
    weights = data.draw(
        st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=len(lists), max_size=len(lists))
    )
    parts = [
        Given(str(n), {"q": [(doc, -float(rank)) for rank, doc in enumerate(own)]})
        for n, own in enumerate(lists)
    ]
    runs = Hybrid(parts, k0=k0, weights=weights).search(["q"], k=100)
    assert set(runs["doc_id"]) == set().union(*lists)
    for doc_id, score in hits(runs):
        expected = sum(
            weight / (k0 + own.index(doc_id) + 1)
            for own, weight in zip(lists, weights, strict=True)
            if doc_id in own
        )
        assert score == pytest.approx(expected, rel=1e-12)
    assert runs["score"].is_monotonic_decreasing


def test_fit_reads_a_generator_once_for_all():
    texts = {"a": "red fox", "b": "blue whale"}
    documents = ({"doc_id": name, "title": "", "text": text} for name, text in texts.items())
    both = Hybrid([BM25(), BM25(k1=2.0, system="bm25-2")]).fit(documents)
    assert both.search(["fox"])["doc_id"].tolist() == ["a"]
    assert both.system == "rrf(bm25+bm25-2)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "rff"}, "no method of Hybrid 'rff'\n.*'rrf'"),
        ({"k0": float("nan")}, "k0 should be a number"),
        ({"weights": [1]}, r"weights should be 2 numbers, found \[1\]"),
        ({"weights": 3}, "weights should be 2 numbers, found 3"),
        ({"weights": [0, 0]}, "not all be 0"),
        ({"weights": [1, -1]}, "each weight should be a number of at least 0, found -1"),
        ({"retrievers": [ONE]}, "two retrievers or more, found 1"),
    ],
)
def test_bad_options_and_calls(options, message):
    with pytest.raises(UsageError, match=message):
        Hybrid(**({"retrievers": [ONE, TWO]} | options))
    with pytest.raises(UsageError, match="BM25 has no index yet"):
        Hybrid([BM25(), BM25()]).search(["q"])
