import hashlib
import json

import pytest

from ragkit.errors import UsageError
from ragkit.llm import Client, Exchange, Request, tally
from ragkit.llm.exchange import _is_strict, answered, body, check_envelope, read
from tests.llm.server import SCHEMA, chat

GREP = {"properties": {"pattern": {"type": "string"}}, "required": ["pattern"]}
TOOL = {"name": "grep", "description": "Search files.", "parameters": {"type": "object", **GREP}}


def key(request, model="openai:m"):
    return Exchange.pending(request, model).key


def reading(reply, **options):
    return read(Request("q", **options).plain("openai:m"), reply)


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
    assert key(Request("q", parameters={"temperature": 1.0})) == keys[4]


def test_the_key_is_the_sha256_of_the_canonical_request():
    client = Client("openai:m", ledger=None, parameters={"seed": 1, "top_p": 0.5})
    (row,) = client.missing([Request("é", parameters={"seed": 2})])
    assert row.request == (
        '{"kind":"openai.chat","messages":[{"content":"é","role":"user"}],"model":"openai:m",'
        '"parameters":{"seed":2,"top_p":0.5},"repeat":0,"schema":null,"tools":[]}'
    )
    assert row.key == hashlib.sha256(row.request.encode()).hexdigest()


@pytest.mark.parametrize(
    ("messages", "options", "says"),
    [
        ([], {}, "at least one message"),
        ([{"role": "robot", "content": "x"}], {}, "no role of message 1: 'robot'"),
        (["x"], {}, "no role of message 1: None"),
        ("q", {"parameters": {"temprature": 0}}, "did you mean 'temperature'"),
        ("q", {"parameters": {"n": 2}}, "no option of the chat endpoint 'n'"),
        ("q", {"parameters": {"seed": float("nan")}}, "cannot be written as JSON"),
        ("q", {"repeat": -1}, "repeat"),
        ("q", {"repeat": True}, "repeat"),
        ("q", {"schema": {"type": "nonsense"}}, "not a JSON schema"),
        ("q", {"schema": {"$ref": "http://127.0.0.1/x"}}, "which it lacks"),
        ("q", {"schema": {"$ref": "#/$defs/no"}}, "which it lacks"),
        ("q", {"tools": [{"name": "x"}]}, "name, description and parameters"),
        ("\ud800", {}, "cannot be written as JSON"),
        ([{"role": "user", "content": {1, 2}}], {}, "cannot be written as JSON"),
    ],
)
def test_a_malformed_request_is_refused(messages, options, says):
    with pytest.raises(UsageError, match=says):
        Request(messages, **options)


def test_the_body_is_what_the_endpoint_expects():
    parameters = {"temperature": 0, "extra_body": {"top_k": 5}}
    request = Request("q", schema=SCHEMA, tools=[TOOL], parameters=parameters)
    assert body(request.plain("openai:m")) == {
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
        (chat("half \ud83d"), "half of a surrogate pair"),
    ],
)
def test_a_reply_that_is_no_reply_is_told_from_one(text, wrong):
    assert wrong in check_envelope(text)
    assert check_envelope(chat("whole \U0001f600")) is None


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 3}, (7, 3)),
        (None, (None, None)),
        ({"prompt_tokens": 5, "completion_tokens": "3"}, (5, None)),
        ({"prompt_tokens": -5, "completion_tokens": True}, (None, None)),
        ({"prompt_tokens": 2**64}, (None, None)),
    ],
)
def test_usage_that_is_not_reported_is_not_zero(usage, tokens):
    asked = Exchange.pending(Request("q"), "openai:m")
    row = answered(asked, json.dumps(json.loads(chat()) | {"usage": usage}))
    assert (row.state, row.prompt_tokens, row.completion_tokens) == ("value", *tokens)


def test_an_answer_is_taken_as_it_is_and_structured_output_is_parsed():
    fields = reading(chat(" yes\n")).fields
    assert (fields["text"], fields["data"], fields["served_by"]) == (" yes\n", None, "toy")
    plain = '{"verdict": "no", "score": 3}'
    for content in (plain, f"```json\n{plain}\n```", f" ```\n{plain}```\n"):
        assert reading(chat(content), schema=SCHEMA).fields["data"] == json.loads(plain)


INNER = {"$defs": {"n": {"type": "integer"}}, "items": {"$ref": "#/$defs/n"}}


@pytest.mark.parametrize(
    ("reply", "kind", "says", "schema"),
    [
        (chat('{"verdict": "no"}'), "invalid", "'score' is a required property", SCHEMA),
        (chat('{"verdict": "no", "score": NaN}'), "invalid", "not valid JSON", SCHEMA),
        (chat('{"verdict": "maybe", "score": 1}'), "invalid", "at $.verdict", SCHEMA),
        (chat('{"verdict"', finish="length"), "invalid", "cut off", SCHEMA),
        (chat("Sure! Here it is."), "invalid", "not valid JSON", SCHEMA),
        (chat("[" * 100_000), "invalid", "not valid JSON", SCHEMA),
        (chat('[1, "2"]'), "invalid", "at $[1]", INNER),
        (chat("  "), "invalid", "empty", None),
        (chat(None), "invalid", "empty", None),
        (chat(None, refusal="I can't."), "refused", "I can't", None),
        (chat("", finish="content_filter"), "filtered", "filter", None),
    ],
)
def test_what_is_not_an_answer_is_said_with_its_reason(reply, kind, says, schema):
    found = reading(reply, schema=schema)
    assert found.kind == kind
    assert says in found.reason


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (call(name="rm"), "no tool 'rm'"),
        (call(name=["grep"]), "no tool ['grep']"),
        (call(arguments='{"pattern": 1}'), "at $.pattern"),
        (call(arguments='{"pattern'), "arguments of grep"),
        (chat(None, tool_calls=["x"]), "names no function"),
        (chat("I would rather talk"), "calls no tool"),
    ],
)
def test_tool_calls_are_parsed_and_checked(reply, says):
    options = {"tools": [TOOL], "parameters": {"tool_choice": "required"}}
    assert says in reading(reply, **options).reason
    (made,) = reading(call(), **options).fields["tool_calls"]
    assert (made.id, made.name, made.arguments) == ("c1", "grep", {"pattern": "x"})
    (made,) = reading(call(arguments={"pattern": "x"}, id=None), **options).fields["tool_calls"]
    assert (made.id, made.arguments) == ("call_0", {"pattern": "x"})


WRITTEN = '{"name": "grep", "arguments": {"pattern": "x"}}'


@pytest.mark.parametrize(
    "text", [WRITTEN, f"So:\n```json\n{WRITTEN}\n```\n\n\n", f"```\n{WRITTEN}\n```"]
)
def test_a_tool_call_that_is_written_as_text_is_one(text):
    reply = reading(chat(text), tools=[TOOL])
    (made,) = reply.fields["tool_calls"]
    assert (made.id, made.name, made.arguments) == ("call_0", "grep", {"pattern": "x"})
    assert reply.fields["text"] is None
    assert reading(chat(text)).fields["tool_calls"] == ()  # nothing to call
    broken = reading(chat(text.replace('"x"', "1")), tools=[TOOL])
    assert "at $.pattern" in broken.reason
    assert broken.message["content"] == text.replace('"x"', "1")  # what the repair shows


@pytest.mark.parametrize(
    "text", ["grep x", '{"name": "rm"}', '{"name": ["grep"]}', "[1]", '"grep"', "[" * 100_000]
)
def test_other_text_is_no_tool_call(text):
    found = reading(chat(text), tools=[TOOL])
    assert (found.kind, found.fields["tool_calls"], found.fields["text"]) == (None, (), text)


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
        said = tally(client.complete(["a", "b", "a"]))
        assert client.complete(["c"])[0].prompt_tokens is None
    assert said == "2 of 3 requests answered; 1 failed: 1 filtered"
    assert tally([]) == "0 of 0 requests answered"
