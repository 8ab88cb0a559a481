"""Reranking by hand, best window, ties, and bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragkit import models, schema
from ragkit.errors import DataError, UsageError
from ragkit.systems.retrieval import BM25, Rerank
from tests.models.support import fetched
from tests.systems.retrieval.support import Given, Spaces, frame


class Overlap:
    """A reranker: the share of the passage's words that are in the query."""

    name = "overlap"

    def score_pairs(self, pairs):
        self.pairs = pairs
        return np.array(
            [np.mean([word in query.split() for word in text.split()]) for query, text in pairs]
        )


class OverlapInWindows(Overlap, models.Reranker):
    name = "overlap"
    spans = Spaces.spans

    def __init__(self):
        pass

    def score_pairs(self, pairs, *, cache):
        return super().score_pairs(pairs)


DOCUMENTS = frame("red fox runs far", "red fox", "blue whale", "fox sleeps", ids=list("abcd"))
FIRST = Given("first", {"red fox": [(name, 0.0) for name in "acbd"]})


def test_by_hand():
    rerank = Rerank(FIRST, Overlap(), long="truncate").fit(DOCUMENTS)
    runs = rerank.search(["red fox"])
    schema.check(runs, "runs")
    assert runs.values.tolist() == [
        ["first+overlap", "0", 1, "b", 1.0],
        ["first+overlap", "0", 2, "a", 0.5],
        ["first+overlap", "0", 3, "d", 0.5],  # a stood before d
        ["first+overlap", "0", 4, "c", 0.0],
    ]
    assert rerank.search(["red fox"], k=1)["doc_id"].tolist() == ["b"]
    # The depth limits what is scored and returned.
    runs = Rerank(FIRST, Overlap(), depth=2, long="truncate").fit(DOCUMENTS).search(["red fox"], 9)
    assert runs["doc_id"].tolist() == ["a", "c"]


def test_the_best_window_counts():
    reranker = OverlapInWindows()
    rerank = Rerank(FIRST, reranker, window_tokens=2, overlap=1).fit(DOCUMENTS)
    runs = rerank.search(["red fox"])
    # a: "red fox" 1, "fox runs" 1/2, "runs far" 0
    assert runs["doc_id"].tolist() == ["a", "b", "d", "c"]
    assert runs["score"].tolist() == [1, 1, 0.5, 0]
    assert ("red fox", "runs far") in reranker.pairs


def test_questions_keep_their_order_and_those_without_documents_have_no_row():
    first = Given("first", {"fox": [("a", 1.0)], "whale": [("c", 1.0), ("a", 0.5)]})
    rerank = Rerank(first, Overlap(), long="truncate").fit(iter(DOCUMENTS.to_dict("records")))
    questions = pd.DataFrame({"question_id": ["z", "y 1", "x"], "text": ["whale", "?", "fox"]})
    runs = rerank.search(questions)
    assert runs[["question_id", "doc_id"]].values.tolist() == [["z", "c"], ["z", "a"], ["x", "a"]]
    assert rerank.search(["?"]).empty
    assert rerank.search([]).empty


def test_bad_options_and_calls():
    for options, message in (
        ({"long": "window"}, "no rule for long documents 'window'\n.*'windows'"),
        ({}, "windows need a reranker of ragkit.models"),
        ({"window_tokens": 8, "overlap": 8}, "overlap .* whole number from 0 to 7, found 8"),
    ):
        with pytest.raises(UsageError, match=message):
            Rerank(FIRST, Overlap(), **options)
    rerank = Rerank(FIRST, Overlap(), long="truncate")
    with pytest.raises(UsageError, match="Rerank has no index yet"):
        rerank.search(["fox"])
    with pytest.raises(DataError, match="document 2 repeats the doc_id"):
        rerank.fit(pd.concat([DOCUMENTS[:1], DOCUMENTS[:1]]))
    with pytest.raises(Exception, match="ms-marco-MiniLM-L-12-v2-int8 can stand in for it"):
        Rerank(BM25(), "ms-marco-MiniLM-L-12-v2")


def test_the_real_reranker_sees_what_words_do_not(tmp_path):
    fetched("ms-marco-MiniLM-L-12-v2-int8")
    documents = frame(
        "Paris is a city. Many people visit Paris, and Paris has a river.",
        "With about two million inhabitants, Paris is the largest city of France.",
    )
    question = ["how many people live in Paris"]
    words = BM25().fit(documents)
    assert words.search(question)["doc_id"].tolist()[0] == "d0"
    rerank = Rerank(words, cache=tmp_path).fit(documents)
    assert rerank.search(question, k=1)["doc_id"].tolist() == ["d1"]
