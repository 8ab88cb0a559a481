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
    runs = baselines.run(DOCUMENTS, QUESTIONS, names=["tfidf/all", "lsa-16/8"])
    schema.check(runs, "runs")
    assert len(runs) == 2 * 3 * 3
    first = runs[(runs["rank"] == 1) & (runs["system"] == "tfidf/all")].set_index("question_id")
    assert first.loc["1", "doc_id"] == "a"
    assert first.loc["2", "doc_id"] == "b"
    # No word of the third question is known: all scores are 0, the documents keep their order.
    third = runs[(runs["question_id"] == "3") & (runs["system"] == "tfidf/all")]
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
    with pytest.raises(UsageError, match="did you mean 'tfidf/all'"):
        baselines.run(DOCUMENTS, QUESTIONS, names=["tfidf/al"])


def test_depth_is_words_after_the_title():
    documents = DOCUMENTS.assign(text=["one two three four five six seven eight nine"] * 3)
    asked = QUESTIONS.assign(text=["nine", "crew", "x"])
    runs = baselines.run(documents, asked, names=["tf/8", "tf/all"])
    best = runs[(runs["rank"] == 1) & (runs["question_id"] == "1")].set_index("system")["score"]
    assert best["tf/8"] == 0
    assert best["tf/all"] > 0


@pytest.mark.slow
def test_the_sample_has_a_real_matrix():
    scores = baselines.sample_scores()
    schema.check(scores, "scores")
    questions = datasets.load("liverag").questions
    assert set(scores["item_id"]) == set(questions["question_id"])
    assert scores["subject_id"].nunique() == len(baselines.systems()) == 45
    assert len(scores) == 45 * len(questions)
    assert scores["score"].between(0, 1).all()
    means = scores.groupby("subject_id")["score"].mean()
    assert means.min() < 0.4 < 0.9 < means.max()
