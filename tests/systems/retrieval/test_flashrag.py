"""The flashrag mode against bm25s, called the way FlashRAG called it."""

from __future__ import annotations

import numpy as np
import pytest

from ragkit.systems.retrieval import BM25
from ragkit.systems.retrieval.analysis import flashrag_terms
from tests.systems.retrieval import zipf
from tests.systems.retrieval.support import frame, hits

TEXTS = [
    "Connecting your domains: domains are connected in the dashboard.",
    "Payment providers and how they process payments",
    "",
    "the of and",
    "How do I connect a domain to the site",
    "x y z 5 sites' site-wide payments_page",
]
ASKED = ["connect domain", "connecting domains", "payments and providers", "site", "The"]


def tool(texts, queries, k):
    """Documents stemmed, queries not: [[(doc_id, score), ...], ...] of scores above 0."""
    bm25s = pytest.importorskip("bm25s")
    import Stemmer

    tokenizer = bm25s.tokenization.Tokenizer(
        stopwords="en", stemmer=Stemmer.Stemmer("english").stemWord
    )
    index = bm25s.BM25()
    tokens = tokenizer.tokenize(texts, return_as="tuple", show_progress=False)
    index.index(tokens, show_progress=False)
    for words in bm25s.tokenize(queries, return_ids=False, show_progress=False):
        scores = index.get_scores(words) if words else np.zeros(len(texts))
        best = sorted(range(len(texts)), key=lambda n, scores=scores: (-scores[n], n))
        yield [(f"d{n}", float(scores[n])) for n in best if scores[n] > 0][:k]


MANY = [entry["text"] for entry in zipf.documents(500, words=60)]


@pytest.mark.parametrize(
    ("texts", "asked", "k"),
    [(TEXTS, ASKED, 1), (TEXTS, ASKED, 10), (MANY, zipf.queries(MANY, 100), 10)],
    ids=["first", "few", "many"],
)
def test_equals_the_tool(texts, asked, k):
    runs = BM25(mode="flashrag", fields=("text",)).fit(frame(*texts)).search(asked, k)
    assert set(runs["system"]) == {"bm25-flashrag"}
    for number, expected in enumerate(tool(texts, asked, k)):
        ours = hits(runs, str(number))
        assert [s for _, s in ours] == pytest.approx([s for _, s in expected], rel=1e-5)
        if texts is TEXTS:  # among many, rounding may swap two
            assert [doc for doc, _ in ours] == [doc for doc, _ in expected]


def test_a_query_word_that_stemming_changes_finds_nothing():
    index = BM25(mode="flashrag", fields=("text",)).fit(frame("payments", "refund"))
    assert index.search(["payments"]).empty
    assert index.search(["payment"])["doc_id"].tolist() == ["d0"]


def test_terms():
    assert flashrag_terms("The C++ don't, A-list ünï 5 42") == ["don", "list", "ünï", "42"]
