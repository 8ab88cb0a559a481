"""Small retrieval systems: hand-worked ranks, order, bad names."""

from __future__ import annotations

import pandas as pd
import pytest

from ragkit import baselines, datasets, schema
from ragkit.errors import DataError, UsageError

DOCUMENTS = pd.DataFrame(
    {
        "doc_id": ["a", "b", "c"],
        "source": "s",
        "title": ["ferry", "harbour", "crew"],
        "text": ["the ferry leaves at noon", "the harbour master sleeps", "the crew eats fish"],
    }
)
QUESTIONS = pd.DataFrame(
    {
        "question_id": ["1", "2", "3"],
        "text": ["when does the ferry leave", "who sleeps", "anything"],
        "type": "t",
        "answer": None,
        "facts": [()] * 3,
        "gold_doc_ids": [("a",), ("b", "c"), ()],
    }
)


def test_runs_rank_every_document_once():
    runs = baselines.run(DOCUMENTS, QUESTIONS, names=["tfidf/text", "lsa-16/both"])
    schema.check(runs, "runs")
    assert len(runs) == 2 * 3 * 3
    first = runs[(runs["rank"] == 1) & (runs["system"] == "tfidf/text")].set_index("question_id")
    assert first.loc["1", "doc_id"] == "a"
    assert first.loc["2", "doc_id"] == "b"
    # No word of the third question is known: all scores are 0, the documents keep their order.
    third = runs[(runs["question_id"] == "3") & (runs["system"] == "tfidf/text")]
    assert third["doc_id"].tolist() == ["a", "b", "c"]
    assert third["score"].tolist() == [0, 0, 0]


def test_reciprocal_ranks_by_hand():
    runs = pd.DataFrame(
        {
            "system": "s",
            "question_id": ["1"] * 3 + ["2"] * 3,
            "rank": [1, 2, 3] * 2,
            "doc_id": ["b", "c", "a", "a", "c", "b"],
            "score": 1.0,
        }
    )
    scores = baselines.reciprocal_ranks(runs, QUESTIONS).set_index("item_id")["score"]
    assert scores.to_dict() == {"1": 1 / 3, "2": 1 / 2}
    cut = baselines.reciprocal_ranks(runs[runs["rank"] == 1], QUESTIONS).set_index("item_id")
    assert cut["score"].to_dict() == {"1": 0.0, "2": 0.0}
    with pytest.raises(DataError, match="no question has a gold document"):
        baselines.reciprocal_ranks(runs, QUESTIONS.assign(gold_doc_ids=[()] * 3))


def test_unknown_systems_are_refused():
    with pytest.raises(UsageError, match="did you mean 'tfidf/text'"):
        baselines.run(DOCUMENTS, QUESTIONS, names=["tfidf/txt"])


def test_every_system_gives_a_matrix_on_the_sample():
    sample = datasets.load("liverag")
    runs = baselines.run(sample.documents, sample.questions)
    scores = baselines.reciprocal_ranks(runs, sample.questions)
    assert scores["subject_id"].nunique() == len(baselines.systems())
    assert len(scores) == len(baselines.systems()) * len(sample.questions)
    assert scores["score"].between(0, 1).all()
    means = scores.groupby("subject_id")["score"].mean()
    assert means.max() - means.min() > 0.2
