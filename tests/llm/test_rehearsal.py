"""What a run would ask is counted without asking, and is what it then asks."""

from __future__ import annotations

import json

import pytest

from ragkit.errors import ModelError
from ragkit.files import read_jsonl, write_jsonl
from ragkit.llm import Client, Rehearsal, Request, count_tokens, import_results
from ragkit.llm.prices import request_tokens
from ragkit.llm.rehearsal import example
from ragkit.llm.requests import canonical, validator
from tests.llm.server import SCHEMA, Reply, chat


def asked(count=5):
    plain = [Request(f"Question {n}?", purpose="reader") for n in range(count)]
    return [*plain, plain[0], Request("Is it so?", schema=SCHEMA, purpose="judge")]


def test_calls_are_counted_once_and_without_an_endpoint(path):
    with Rehearsal("openai:gpt-4o", ledger=path, guesses=["an answer of six words or so"]) as dry:
        results = dry.complete(asked())
        results += dry.complete(asked())  # equal requests of a later stage
        reader, judge = dry.shares()
    assert all(one.ok for one in results)
    assert len({one.text for one in results[:5]}) == 5  # different answers are judged apart
    assert results[0].text == results[5].text or results[0].key == results[5].key
    assert (reader.purpose, reader.requests, reader.kept, reader.calls) == ("reader", 5, 0, 5)
    assert (judge.purpose, judge.calls) == ("judge", 1)
    rows = [request_tokens(one.plain("openai:gpt-4o"))[0] for one in asked()[:5]]
    assert reader.tokens_in == sum(rows)
    assert reader.cost == pytest.approx((2.5 * reader.tokens_in + 10 * reader.tokens_out) / 1e6)
    assert reader.most is None  # no limit on output tokens


def test_what_the_ledger_holds_is_answered_from_it(path, endpoint):
    server = endpoint(lambda body, nth, digest: chat("kept"))
    with Client("openai:toy", ledger=path) as client:
        client.complete(asked()[:2])
    with Rehearsal("openai:toy", ledger=path, guesses=["guess"]) as dry:
        texts = [one.text for one in dry.complete(asked()[:3])]
        share = dry.shares()[0]
    assert texts[:2] == ["kept", "kept"]
    assert texts[2].startswith("guess")
    assert (share.requests, share.kept, share.calls, share.cost) == (3, 2, 1, None)
    assert sum(server.asked.values()) == 2


def test_a_batch_is_written_and_answered(path, tmp_path):
    with Rehearsal("openai:toy", ledger=path) as waiting:
        results = waiting.complete(asked())
        assert {one.kind for one in results} == {"pending"}
        assert waiting.write(tmp_path / "b.jsonl") == 6
    good = {"status_code": 200, "body": json.loads(chat('{"verdict": "yes", "score": 1}'))}
    ids = (one["custom_id"] for one in read_jsonl(tmp_path / "b.jsonl"))
    write_jsonl(tmp_path / "r.jsonl", ({"custom_id": name, "response": good} for name in ids))
    with Rehearsal("openai:toy", ledger=path) as again:
        assert import_results(again.ledger, tmp_path / "r.jsonl")[0] == 6
        assert all(one.ok for one in again.complete(asked()))
        assert [share.calls for share in again.shares()] == [0, 0]


@pytest.mark.parametrize(
    "schema",
    [
        SCHEMA,
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": "number"}}},
    ],
)
def test_an_example_satisfies_its_schema(schema):
    assert not list(validator(canonical(schema)).iter_errors(example(schema)))


def test_a_schema_can_stand_in_the_prompt(path, endpoint, monkeypatch):
    """A vendor without JSON mode: one error that names the setting, and the setting works."""

    def answer(body, nth, digest):
        if "response_format" in body:
            said = {"error": {"message": "response_format is not supported"}}
            return Reply(json.dumps(said), 400, paid=False)
        assert '"verdict"' in body["messages"][-1]["content"]
        return chat('{"verdict": "no", "score": 3}')

    endpoint(answer)
    request = asked()[-1]
    with Client("openai:toy", ledger=path) as client:
        with pytest.raises(ModelError, match="takes no JSON schema") as caught:
            client.complete([request] * 3)
        assert "OPENAI_JSON=prompt" in caught.value.hint
        assert len(client.ledger) == 0  # nothing stands in the way of the next try
        monkeypatch.setenv("OPENAI_JSON", "prompt")
        assert client.complete([request])[0].data == {"verdict": "no", "score": 3}


def test_a_key_goes_to_its_own_vendor_alone(path, monkeypatch):
    monkeypatch.setenv("MISTRAL_API_KEY", "k-1234567890")
    with Client("openai:toy", ledger=path, environment="MISTRAL") as client:
        with pytest.raises(ModelError, match="MISTRAL_BASE_URL is not set"):
            client.complete(["x"])
        assert "anthropic" in Client("openai:x", ledger=None, environment="ANTHROPIC").endpoint.url


def test_expected_tokens_are_those_of_the_guesses(path):
    with Rehearsal("openai:gpt-4o", ledger=path, guesses=["one two three four"] * 2) as dry:
        texts = [one.text for one in dry.complete(asked()[:4])]
        assert dry.shares()[0].tokens_out == sum(count_tokens(text) for text in texts)
