"""Reranking by hand, best window, ties, and bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragkit import models, schema
from ragkit.errors import DataError, UsageError
from ragkit.systems.retrieval import BM25, Rerank
from tests.models.support import fetched
from tests.systems.retrieval.test_dense import Spaces
from tests.systems.retrieval.test_hybrid import Given


class Overlap:
    """A reranker for tests: how many of the passage's words are in the query, per word."""

    name = "overlap"

    def score_pairs(self, pairs):
        return np.array(
            [
                sum(word in query.split() for word in passage.split()) / len(passage.split())
                for query, passage in pairs
            ]
        )


class OverlapInWindows(Overlap, models.Reranker):
    name = "overlap"
    spans = Spaces.spans

    def __init__(self):
        pass

    def score_pairs(self, pairs, *, cache, progress):
        self.pairs = pairs
        return super().score_pairs(pairs)


def frame(**texts):
    return pd.DataFrame({"doc_id": list(texts), "title": None, "text": list(texts.values())})


DOCUMENTS = frame(a="red fox runs far", b="red fox", c="blue whale", d="fox sleeps")
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


def test_depth_bounds_what_is_looked_at_and_returned():
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


def test_questions_keep_their_order_and_the_empty_ones_have_no_row():
    first = Given("first", {"fox": [("a", 1.0)], "whale": [("c", 1.0), ("a", 0.5)]})
    rerank = Rerank(first, Overlap(), long="truncate").fit(DOCUMENTS)
    questions = pd.DataFrame({"question_id": ["z", "y 1", "x"], "text": ["whale", "?", "fox"]})
    runs = rerank.search(questions)
    assert runs[["question_id", "doc_id"]].values.tolist() == [["z", "c"], ["z", "a"], ["x", "a"]]
    assert rerank.search(["?"]).empty
    assert rerank.search([]).empty


def test_bad_options_and_calls():
    with pytest.raises(UsageError, match="no rule 'window'\n.*'windows'"):
        Rerank(FIRST, Overlap(), long="window")
    with pytest.raises(UsageError, match="windows need a reranker of ragkit.models"):
        Rerank(FIRST, Overlap())
    with pytest.raises(UsageError, match=r"overlap should be below window_tokens \(8\), found 8"):
        Rerank(FIRST, Overlap(), long="truncate", window_tokens=8, overlap=8)
    with pytest.raises(UsageError, match="depth should be a whole number from 1"):
        Rerank(FIRST, Overlap(), long="truncate", depth=0)
    rerank = Rerank(FIRST, Overlap(), long="truncate")
    with pytest.raises(UsageError, match="Rerank has no index yet"):
        rerank.search(["fox"])
    with pytest.raises(DataError, match="document 2 repeats the doc_id"):
        rerank.fit(pd.concat([DOCUMENTS[:1], DOCUMENTS[:1]]))
    with pytest.raises(UsageError, match="k should be a whole number from 1"):
        rerank.fit(DOCUMENTS).search(["fox"], k=0)


def test_a_missing_reranker_names_what_can_stand_in():
    with pytest.raises(Exception, match="ms-marco-MiniLM-L-12-v2-int8 can stand in for it"):
        Rerank(BM25(), "ms-marco-MiniLM-L-12-v2")


def test_the_real_reranker_sees_what_words_do_not(tmp_path):
    fetched("ms-marco-MiniLM-L-12-v2-int8")
    documents = frame(
        plain="Paris is a city. Many people visit Paris, and Paris has a river.",
        answer="With about two million inhabitants, Paris is the largest city of France.",
    )
    question = ["how many people live in Paris"]
    words = BM25().fit(documents)
    assert words.search(question)["doc_id"].tolist()[0] == "plain"
    rerank = Rerank(words, cache=tmp_path).fit(documents)
    assert rerank.search(question, k=1)["doc_id"].tolist() == ["answer"]
