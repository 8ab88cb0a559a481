import hashlib
import json

import pytest

from ragkit.errors import UsageError
from ragkit.llm import Client, Request, tally
from ragkit.llm.exchange import (
    Invalid,
    _is_strict,
    body,
    check_envelope,
    read,
    usage,
)
from tests.llm.server import SCHEMA, chat

TOOL = {
    "name": "grep",
    "description": "Search files.",
    "parameters": {
        "type": "object",
        "properties": {"pattern": {"type": "string"}},
        "required": ["pattern"],
    },
}


def key(request, **client):
    return Client(**{"model": "openai:m", "ledger": None} | client)._job(request).key


def call(name="grep", arguments='{"pattern": "x"}', id="c1"):
    function = {"name": name, "arguments": arguments}
    return chat(None, tool_calls=[{"id": id, "type": "function", "function": function}])


def test_the_key_covers_all_that_changes_an_answer_and_nothing_else():
    base = Request("q")
    keys = [
        key(base),
        key(base, model="openai:n"),
        key(Request("r")),
        key(Request([{"role": "system", "content": "q"}])),
        key(Request("q", parameters={"temperature": 1})),
        key(Request("q", parameters={"temperature": 0.5})),
        key(Request("q", schema=SCHEMA)),
        key(Request("q", schema=SCHEMA | {"title": "other"})),
        key(Request("q", tools=[TOOL])),
        key(Request("q", tools=[TOOL | {"description": "other"}])),
        key(Request("q", repeat=1)),
    ]
    assert len(set(keys)) == len(keys)
    assert key(base) == key(Request("q", purpose="judge", prompt="p@1"))
    assert key(base, parameters={"temperature": 1}) == keys[4]
    assert key(Request("q", parameters={"temperature": 1.0})) == keys[4]


def test_the_key_is_the_sha256_of_the_canonical_request():
    client = Client("openai:m", ledger=None, parameters={"seed": 1, "top_p": 0.5})
    job = client._job(Request("é", parameters={"seed": 2}))
    assert job.text == (
        '{"kind":"openai.chat","messages":[{"content":"é","role":"user"}],"model":"openai:m",'
        '"parameters":{"seed":2,"top_p":0.5},"repeat":0,"schema":null,"tools":[]}'
    )
    assert job.key == hashlib.sha256(job.text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: Request([]), "at least one message"),
        (lambda: Request([{"role": "robot", "content": "x"}]), "no role of message 1: 'robot'"),
        (lambda: Request(["x"]), "no role of message 1: None"),
        (lambda: Request("q", parameters={"temprature": 0}), "did you mean 'temperature'"),
        (lambda: Request("q", parameters={"n": 2}), "no option of the chat endpoint 'n'"),
        (lambda: Request("q", parameters={"seed": float("nan")}), "cannot be written as JSON"),
        (lambda: Request("q", repeat=-1), "repeat"),
        (lambda: Request("q", repeat=True), "repeat"),
        (lambda: Request("q", schema={"type": "nonsense"}), "not a JSON schema"),
        (lambda: Request("q", schema={"$ref": "http://127.0.0.1/x"}), "which it lacks"),
        (lambda: Request("q", schema={"$ref": "#/$defs/no"}), "which it lacks"),
        (lambda: Request("q", tools=[{"name": "x"}]), "name, description and parameters"),
        (lambda: Request("\ud800"), "cannot be written as JSON"),
        (lambda: Request([{"role": "user", "content": {1, 2}}]), "cannot be written as JSON"),
    ],
)
def test_a_malformed_request_is_refused(build, says):
    with pytest.raises(UsageError, match=says):
        build()


def test_a_schema_with_an_inner_reference_is_followed():
    schema = {"$defs": {"n": {"type": "integer"}}, "type": "array", "items": {"$ref": "#/$defs/n"}}
    request = Request("q", schema=schema)
    assert read(request, chat("[1, 2]"))["data"] == [1, 2]
    with pytest.raises(Invalid, match=r"\$\[1\]"):
        read(request, chat('[1, "2"]'))


def test_the_body_is_what_the_endpoint_expects():
    request = Request(
        "q",
        schema=SCHEMA,
        tools=[TOOL],
        parameters={"temperature": 0, "extra_body": {"top_k": 5}},
    )
    sent = body("m", Client("openai:m", ledger=None)._job(request).plain)
    assert sent == {
        "model": "m",
        "messages": [{"role": "user", "content": "q"}],
        "temperature": 0,
        "top_k": 5,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
        },
        "tools": [{"type": "function", "function": TOOL}],
    }


def test_strict_mode_is_asked_for_only_where_the_schema_allows_it():
    assert _is_strict(SCHEMA)
    assert not _is_strict({"type": "object", "properties": {}, "required": []})
    assert not _is_strict(SCHEMA | {"required": ["verdict"]})
    open_inside = {"type": "array", "items": {"type": "object", "properties": {"a": {}}}}
    assert not _is_strict(open_inside)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("<html>", "not JSON"),
        ('{"choices": [', "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "no message"),
        ("3", "no message"),
        ('{"choices": []}', "no message"),
        ('{"error": {"message": "busy"}}', "busy"),
        ('{"choices": [{"message": 5}]}', "not a chat message"),
        ('{"choices": [{"message": {"content": 5}}]}', "not a chat message"),
        ('{"choices": [{"message": {"tool_calls": 5}}]}', "not a list"),
    ],
)
def test_a_reply_that_is_no_reply_is_told_from_one(text, wrong):
    assert wrong in check_envelope(text)
    assert check_envelope(chat()) is None


def test_usage_that_is_not_reported_is_not_zero():
    assert usage(chat(tokens=(7, 3))) == (7, 3)
    assert usage(chat(tokens=None)) == (None, None)
    assert usage('{"usage": {"prompt_tokens": 5, "completion_tokens": "3"}}') == (5, None)
    assert usage('{"usage": {"prompt_tokens": -5, "completion_tokens": true}}') == (None, None)


def test_an_answer_is_taken_as_it_is_and_structured_output_is_parsed():
    fields = read(Request("q"), chat(" yes\n"))
    assert (fields["text"], fields["data"], fields["served_by"]) == (" yes\n", None, "toy")
    plain = '{"verdict": "no", "score": 3}'
    for content in (plain, f"```json\n{plain}\n```", f" ```\n{plain}```\n"):
        assert read(Request("q", schema=SCHEMA), chat(content))["data"] == json.loads(plain)


@pytest.mark.parametrize(
    ("reply", "kind", "again", "says"),
    [
        (chat('{"verdict": "no"}'), "invalid", True, "'score' is a required property"),
        (chat('{"verdict": "no", "score": NaN}'), "invalid", True, "NaN is not JSON"),
        (chat('{"verdict": "maybe", "score": 1}'), "invalid", True, r"at \$.verdict"),
        (chat('{"verdict"', finish="length"), "invalid", True, "cut off"),
        (chat("Sure! Here it is."), "invalid", True, "not valid JSON"),
        (chat("[" * 100_000), "invalid", True, "nested too deep|not valid JSON"),
        (chat("  "), "invalid", True, "empty"),
        (chat(None), "invalid", True, "empty"),
        (chat(None, refusal="I can't."), "refused", False, "I can't"),
        (chat("", finish="content_filter"), "filtered", False, "filter"),
    ],
)
def test_what_is_not_an_answer_is_said_with_its_reason(reply, kind, again, says):
    with pytest.raises(Invalid, match=says) as caught:
        read(Request("q", schema=SCHEMA), reply)
    assert (caught.value.kind, caught.value.again) == (kind, again)


def test_tool_calls_are_parsed_and_checked():
    request = Request("q", tools=[TOOL], parameters={"tool_choice": "required"})
    (made,) = read(request, call())["tool_calls"]
    assert (made.id, made.name, made.arguments) == ("c1", "grep", {"pattern": "x"})
    (made,) = read(request, call(arguments={"pattern": "x"}, id=None))["tool_calls"]
    assert (made.id, made.arguments) == ("call_0", {"pattern": "x"})
    for reply, says in [
        (call(name="rm"), "no tool 'rm'"),
        (call(arguments='{"pattern": 1}'), r"at \$.pattern"),
        (call(arguments='{"pattern'), "arguments of grep"),
        (chat(None, tool_calls=["x"]), "names no function"),
        (chat("I would rather talk"), "calls no tool"),
    ]:
        with pytest.raises(Invalid, match=says):
            read(request, reply)


def test_the_repair_shows_the_answer_and_the_reason():
    request = Request("q", schema=SCHEMA, purpose="judge", repeat=2)
    again = request.repair({"role": "assistant", "content": "oops"}, "it is not JSON")
    assert [m["role"] for m in again.messages] == ["user", "assistant", "user"]
    assert again.messages[1]["content"] == "oops"
    assert "it is not JSON" in again.messages[2]["content"]
    assert (again.schema, again.purpose, again.repeat) == (SCHEMA, "judge", 2)
    assert again.prompt.startswith("repair@1:")
    assert request.repair({"content": None}, "empty").messages[1]["content"] == "(nothing)"


def test_the_tally_counts_failures_apart(endpoint):
    replies = {"a": chat("fine"), "b": chat("", finish="content_filter"), "c": chat(tokens=None)}
    endpoint(lambda body, nth, digest: replies[body["messages"][0]["content"]])
    with Client("openai:m", ledger=None) as client:
        results = client.complete(["a", "b", "a"])
        unknown = client.complete(["c"])
    counts = tally(results)
    assert (counts.requests, counts.values, counts.failures) == (3, 2, {"filtered": 1})
    assert (counts.prompt_tokens, counts.completion_tokens) == (21, 9)
    assert str(counts) == "2 of 3 requests answered; 1 failed: 1 filtered"
    assert tally(unknown).prompt_tokens is None
    assert str(tally([])) == "0 of 0 requests answered"
