"""Vectors of an endpoint: batched, paid once, kept, and refused where they are wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ragkit import models
from ragkit.errors import DataError, ModelError, UsageError
from ragkit.models import endpoint as module
from ragkit.systems.sweep import run
from ragkit.systems.sweep.systems import System
from tests.conftest import frame_of
from tests.llm.server import Reply


def vector(text, length=8):
    """Letters counted by their code: near texts have near vectors."""
    counts = np.zeros(length)
    for letter in text.lower():
        counts[ord(letter) % length] += 1
    return counts + 0.01


def embedded(body, nth=0, digest="", length=8):
    rows = [
        {"index": n, "embedding": vector(text, length).tolist()}
        for n, text in enumerate(body["input"])
    ]
    return Reply(json.dumps({"data": rows[::-1], "model": body["model"]}))


@pytest.fixture
def server(endpoint):
    return endpoint(embedded)


def test_vectors_are_unit_in_order_batched_and_paid_once(server, monkeypatch):
    monkeypatch.setattr(module, "TEXTS", 4)
    encoder = models.encoder("openai:toy")
    texts = [f"text number {n}" for n in range(10)]
    found = encoder.encode(texts)
    assert found.shape == (10, 8)
    assert np.allclose(np.linalg.norm(found, axis=1), 1)
    expected = vector(texts[3]) / np.linalg.norm(vector(texts[3]))
    assert np.allclose(found[3], expected, atol=1e-6)
    assert sum(server.asked.values()) == 3  # 4 + 4 + 2
    again = models.encoder("openai:toy")
    assert np.array_equal(again.encode(texts[::-1]), found[::-1])
    assert sum(server.asked.values()) == 3
    assert again.estimate([*texts, "new"])[0] == 1


def test_embed_takes_an_endpoint(server):
    found = models.embed(["a", "bc"], model="openai:toy", cache=False)
    assert np.array_equal(found, models.encoder("openai:toy").encode(["a", "bc"]))
    assert server.asked.total() == 1  # kept, whatever `cache` says


def test_a_vector_retriever_of_systems(server):
    documents = frame_of("documents", ("a", "", "", "aaaa"), ("b", "", "", "bbbb"))
    questions = frame_of("questions", ("q", "bb", "x", None, (), ("b",)))
    system = System("v", {"kind": "dense", "encoder": "openai:toy"})
    assert system.paid
    assert run([system], documents, questions).runs["doc_id"].tolist() == ["b", "a"]
    asked = sum(server.asked.values())
    run([system], documents, questions)
    assert sum(server.asked.values()) == asked  # index and question are kept


def test_what_is_answered_survives_a_failure(server, monkeypatch):
    monkeypatch.setattr(module, "TEXTS", 2)
    monkeypatch.setattr(module, "BACKOFF_S", 0.0)
    server.answer = lambda body, nth, digest: (
        Reply("{}", 500) if "text 5" in body["input"] else embedded(body)
    )
    texts = [f"text {n}" for n in range(8)]
    with pytest.raises(ModelError, match="gave no vectors") as caught:
        models.encoder("openai:toy").encode(texts)
    assert "the same command goes on" in caught.value.hint
    server.answer = embedded
    before = sum(server.paid.values())
    assert models.encoder("openai:toy").encode(texts).shape == (8, 8)
    assert sum(server.paid.values()) - before == 2  # texts 4 to 7


def test_a_budget_ends_before_it_is_exceeded(server, tmp_path, monkeypatch):
    prices = (
        'date = 2026-01-01\ncurrency = "USD"\n[models]\ntoy = { input = 1000000, output = 0 }\n'
    )
    (tmp_path / "p.toml").write_text(prices)
    monkeypatch.setenv("RAGKIT_PRICES", str(tmp_path / "p.toml"))
    monkeypatch.setattr(module, "TEXTS", 1)
    encoder = module.EndpointEncoder("openai:toy", budget=4.0)
    with pytest.raises(ModelError, match="budget would be exceeded"):
        encoder.encode(["one two", "three four", "five six"])
    assert encoder.spent <= 4
    assert encoder.calls == 2


@pytest.mark.parametrize(
    ("reply", "error", "words"),
    [
        (lambda body: embedded(body, length=7), DataError, "length 3072, found 7"),
        (lambda body: Reply('{"data": []}'), ModelError, "0 of 1 vectors"),
        (lambda body: Reply('{"choices": []}'), ModelError, "holds no vectors"),
        (lambda body: Reply('{"error": {"message": "no"}}', 401), ModelError, "refused the key"),
        (lambda body: Reply('{"error": {"message": "no"}}', 404), ModelError, "no such model"),
    ],
)
def test_what_is_wrong_is_one_error(server, monkeypatch, reply, error, words):
    monkeypatch.setattr(module, "BACKOFF_S", 0.0)
    server.answer = lambda body, nth, digest: reply(body)
    with pytest.raises(error, match=words):
        models.encoder("openai:text-embedding-3-large").encode(["x"])


def test_no_name_is_one_error():
    with pytest.raises(UsageError, match="no encoder is called"):
        models.encoder("openai:")
