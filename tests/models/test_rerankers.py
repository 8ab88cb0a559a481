"""Rerankers: the published scores, independence of the batch, the cache, bad input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ragkit import models
from ragkit.errors import DataError, UsageError
from ragkit.models import base, rerankers
from ragkit.models.registry import card
from tests.models import support

NAME = "ms-marco-MiniLM-L-12-v2-int8"
QUERY = "How many people live in Berlin?"
PASSAGES = [
    "Berlin had a population of 3,520,031 registered inhabitants in an area of 891.82 square "
    "kilometers.",
    "Berlin is well known for its museums.",
    "",
    "The ferry leaves at noon. " * 200,
]


@pytest.fixture
def reranker():
    return support.fetched(NAME)[0]


def test_scores_are_the_logits_of_the_model_card(reranker):
    # The card of the full-precision model prints 9.218911 and -4.0780387.
    assert reranker.score(QUERY, PASSAGES[:2]) == pytest.approx([9.2189, -4.0780], abs=0.06)


def test_a_score_depends_on_its_pair_alone(reranker):
    together = reranker.score(QUERY, PASSAGES)
    assert together.shape == (4,)
    alone = [reranker.score(QUERY, [passage])[0] for passage in PASSAGES]
    assert together.tolist() == alone
    pairs = [(QUERY, passage) for passage in PASSAGES]
    assert reranker.score_pairs(pairs[::-1]).tolist() == alone[::-1]
    assert reranker.score_pairs([]).shape == (0,)


def test_a_long_passage_loses_its_end(reranker):
    start = "The ferry leaves at noon. " * 120
    pairs = [(QUERY, start + "whale"), (QUERY, start + PASSAGES[0] * 9)]
    one, other = reranker.score_pairs(pairs)
    assert one == other
    assert reranker.score(QUERY, ["The ferry leaves at noon. " * 400_000])[0] == one


def test_a_second_run_scores_nothing(reranker, tmp_path, monkeypatch):
    first = reranker.score(QUERY, PASSAGES, cache=tmp_path)
    base._opened.cache_clear()

    def fail(self, *texts):
        raise AssertionError("scored again")

    monkeypatch.setattr(rerankers.Reranker, "_run", fail)
    assert (models.reranker(NAME).score(QUERY, PASSAGES, cache=tmp_path) == first).all()
    with pytest.raises(AssertionError, match="scored again"):
        models.reranker(NAME).score_pairs([(PASSAGES[0], QUERY)], cache=tmp_path)


def test_a_reranker_of_the_hub(tmp_path, monkeypatch):
    made = replace(card("ms-marco-MiniLM-L-12-v2"), name="tiny", max_tokens=32)
    folder = support.in_hub_cache(monkeypatch, tmp_path, made, support.tiny_reranker)
    tiny = models.reranker("tiny")
    passages = ["harbour master", "noon", "at noon the ferry leaves " * 3]
    scores = tiny.score("the ferry", passages)
    import torch
    from transformers import AutoTokenizer, BertForSequenceClassification

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = BertForSequenceClassification.from_pretrained(folder)
    options = {"return_tensors": "pt", "truncation": True, "max_length": 32}
    with torch.no_grad():
        plain = [
            model(**tokenizer("the ferry", text, **options)).logits.item() for text in passages
        ]
    assert scores.tolist() == pytest.approx(plain, abs=1e-6)
    assert [tiny.score("the ferry", [text])[0] for text in passages] == scores.tolist()
    assert tiny.windows("the ferry leaves at noon", 2, 0) == ["the ferry", "leaves at", "noon"]


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("a",)], "pair 1 should be .query, passage."),
        ([("a", "b"), ("a", None)], "passages of pairs: number 2 should be a string, found None"),
        ([(None, "b")], "queries of pairs: number 1 should be a string"),
    ],
)
def test_bad_pairs(reranker, pairs, message):
    with pytest.raises(UsageError, match=message):
        reranker.score_pairs(pairs)


def test_a_score_that_is_no_number_is_an_error(reranker, monkeypatch):
    monkeypatch.setattr(rerankers.Reranker, "_run", lambda *_: np.array([np.nan]))
    with pytest.raises(DataError, match="gives nan for the passage 'b'"):
        reranker.score("a", ["b"])
