"""The flashrag mode against bm25s, called the way FlashRAG called it."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

from ragkit.errors import ModelError
from ragkit.systems.retrieval import BM25, analysis
from ragkit.systems.retrieval.analysis import flashrag_terms
from tests.systems.retrieval import zipf
from tests.systems.retrieval.test_bm25 import frame, hits

TEXTS = [
    "Connecting your domains: domains are connected in the dashboard.",
    "Payment providers and how they process payments",
    "",
    "the of and",
    "How do I connect a domain to the site",
    "x y z 5 sites' site-wide payments_page",
]


@pytest.fixture(autouse=True)
def _stemmer():
    pytest.importorskip("Stemmer", reason="PyStemmer is not installed")


def tool(texts, queries, k):
    """Documents stemmed, queries not: [[(number, score), ...], ...] of scores above 0."""
    bm25s = pytest.importorskip("bm25s")
    import Stemmer

    tokenizer = bm25s.tokenization.Tokenizer(
        stopwords="en", stemmer=Stemmer.Stemmer("english").stemWord
    )
    index = bm25s.BM25()
    tokens = tokenizer.tokenize(texts, return_as="tuple", show_progress=False)
    index.index(tokens, show_progress=False)
    asked = bm25s.tokenize(queries, return_ids=False, show_progress=False)
    found = []
    for words in asked:
        scores = index.get_scores(words) if words else np.zeros(len(texts))
        best = sorted(range(len(texts)), key=lambda n, scores=scores: (-scores[n], n))
        found.append([(f"d{n}", float(scores[n])) for n in best if scores[n] > 0][:k])
    return found


@pytest.mark.parametrize("k", [1, 3, 10])
def test_equals_the_tool(k):
    queries = ["connect domain", "connecting domains", "payments and providers", "site", "The"]
    runs = BM25(mode="flashrag", fields=("text",)).fit(frame(*TEXTS)).search(queries, k)
    for number, expected in enumerate(tool(TEXTS, queries, k)):
        ours = hits(runs, str(number))
        assert [doc for doc, _ in ours] == [doc for doc, _ in expected]
        assert [s for _, s in ours] == pytest.approx([s for _, s in expected], rel=1e-5)


def test_equals_the_tool_on_many_documents():
    texts = [entry["text"] for entry in zipf.documents(500, words=60)]
    queries = zipf.queries(texts, 100)
    runs = BM25(mode="flashrag", fields=("text",)).fit(frame(*texts)).search(queries)
    assert set(runs["system"]) == {"bm25-flashrag"}
    for number, expected in enumerate(tool(texts, queries, 10)):
        ours = [score for _, score in hits(runs, str(number))]
        assert ours == pytest.approx([score for _, score in expected], rel=1e-5)


def test_a_query_word_that_stemming_changes_finds_nothing():
    index = BM25(mode="flashrag", fields=("text",)).fit(frame("payments", "refund"))
    assert index.search(["payments"]).empty
    assert index.search(["payment"])["doc_id"].tolist() == ["d0"]


def test_terms():
    assert flashrag_terms("The C++ don't, A-list ünï 5 42") == ["don", "list", "ünï", "42"]


def test_a_copy_for_another_process_finds_the_same():
    index = BM25(mode="flashrag", fields=("text",)).fit(frame(*TEXTS))
    expected = index.search(["connect domain"])
    assert pickle.loads(pickle.dumps(index)).search(["connect domain"]).equals(expected)


def test_without_the_stemmer(monkeypatch):
    analysis._stemmer.cache_clear()
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(ModelError, match="PyStemmer"):
        BM25(mode="flashrag")
