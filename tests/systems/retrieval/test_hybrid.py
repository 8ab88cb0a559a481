"""Fusion of ranked lists by hand, against a plain second implementation, and bad input."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit import schema
from ragkit.errors import DataError, UsageError
from ragkit.systems.retrieval import BM25, Hybrid
from ragkit.systems.retrieval.frames import query_texts, runs_frame


class Given:
    """A retriever whose lists are told: {query: [(doc_id, score), ...]}."""

    def __init__(self, system, lists):
        self.system, self.lists, self.fitted = system, lists, None

    def fit(self, documents):
        self.fitted = list(documents)
        return self

    def search(self, queries, k=10):
        ids, texts = query_texts(queries)
        found = [self.lists.get(text, [])[:k] for text in texts]
        return runs_frame(
            self.system, ids, [([d for d, _ in part], [s for _, s in part]) for part in found]
        )


ONE = Given("one", {"q": [("a", 9.0), ("b", 5.0), ("c", 1.0)]})
TWO = Given("two", {"q": [("c", 0.8), ("d", 0.6), ("a", 0.4)], "r": [("d", 0.5)]})


def pairs(runs):
    return list(zip(runs["doc_id"], runs["score"], strict=True))


def test_reciprocal_ranks_by_hand():
    runs = Hybrid([ONE, TWO]).search(["q"])
    schema.check(runs, "runs")
    # a and c: 1/61 + 1/63; b and d: 1/62. Ties as the first list has them.
    assert pairs(runs) == [
        ("a", pytest.approx(1 / 61 + 1 / 63)),
        ("c", pytest.approx(1 / 61 + 1 / 63)),
        ("b", pytest.approx(1 / 62)),
        ("d", pytest.approx(1 / 62)),
    ]
    assert runs["system"].unique().tolist() == ["rrf(one+two)"]
    assert runs["rank"].tolist() == [1, 2, 3, 4]


def test_weights_and_k0_by_hand():
    runs = Hybrid([ONE, TWO], k0=0, weights=[1, 3]).search(["q"], k=2)
    assert pairs(runs) == [("c", pytest.approx(1 / 3 + 3)), ("a", pytest.approx(1 + 1))]
    runs = Hybrid([ONE, TWO], k0=0, weights=[1, 0]).search(["q"])
    assert runs["doc_id"].tolist() == ["a", "b", "c", "d"]


def test_convex_by_hand():
    # one: a 1, b 0.5, c 0; two: c 1, d 0.5, a 0; weights 1/4 and 3/4
    runs = Hybrid([ONE, TWO], method="convex", weights=[1, 3]).search(["q", "r"])
    assert pairs(runs) == [
        ("c", pytest.approx(0.75)),
        ("d", pytest.approx(0.375)),
        ("a", pytest.approx(0.25)),
        ("b", pytest.approx(0.125)),
        ("d", pytest.approx(0.75)),
    ]


def test_a_question_that_nobody_answers_has_no_row():
    runs = Hybrid([ONE, TWO]).search(
        pd.DataFrame({"question_id": ["x 1", "y"], "text": ["?", "r"]})
    )
    assert runs[["question_id", "doc_id"]].values.tolist() == [["y", "d"]]
    assert Hybrid([ONE, TWO]).search(["?"]).empty
    assert Hybrid([ONE, TWO]).search([]).empty


def test_depth_bounds_what_is_read_but_never_below_k():
    assert Hybrid([ONE, TWO], depth=1).search(["q"], k=1)["doc_id"].tolist() == ["a"]
    assert len(Hybrid([ONE, TWO], depth=1).search(["q"], k=3)) == 3


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
    for doc_id, score in pairs(runs):
        expected = sum(
            weight / (k0 + own.index(doc_id) + 1)
            for own, weight in zip(lists, weights, strict=True)
            if doc_id in own
        )
        assert score == pytest.approx(expected, rel=1e-12)
    assert runs["score"].is_monotonic_decreasing


def test_fit_reads_a_generator_once_for_all():
    documents = [
        {"doc_id": name, "title": "", "text": text}
        for name, text in [("a", "red fox"), ("b", "blue whale")]
    ]
    both = Hybrid([BM25(), BM25(k1=2.0, system="bm25-2")]).fit(document for document in documents)
    assert both.search(["fox"])["doc_id"].tolist() == ["a"]
    assert both.system == "rrf(bm25+bm25-2)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "rff"}, "no method 'rff'\n.*'rrf'"),
        ({"k0": -1}, "k0 should be 0 or more"),
        ({"k0": float("nan")}, "k0 should be 0 or more"),
        ({"depth": 0}, "depth should be a whole number from 1"),
        ({"weights": [1]}, "expected 2 weights, found 1"),
        ({"weights": [0, 0]}, "not all 0"),
        ({"weights": [1, -1]}, "weights should be 0 or more"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(UsageError, match=message):
        Hybrid([ONE, TWO], **options)


def test_bad_calls():
    with pytest.raises(UsageError, match="two retrievers or more, found 1"):
        Hybrid([ONE])
    with pytest.raises(UsageError, match="k should be a whole number from 1"):
        Hybrid([ONE, TWO]).search(["q"], k=0)
    with pytest.raises(DataError, match="put it into a list"):
        Hybrid([ONE, TWO]).search("q")
