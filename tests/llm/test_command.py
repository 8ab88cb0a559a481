import csv
import io
import json

import pytest
from click.testing import CliRunner

from ragkit.cli import root
from ragkit.errors import DataError, MissingData, ModelError, RagkitError, UsageError
from ragkit.files import write_jsonl
from ragkit.llm import Client, Ledger, ReplayMiss, Request
from tests.llm.server import SCHEMA, Reply, calls, chat, tool_call


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAGKIT_LEDGER", str(tmp_path / "l.sqlite"))

    def run(*arguments, input=None, raises=None):
        result = CliRunner().invoke(root, ["llm", *arguments], input=input)
        if raises is not None:
            assert isinstance(result.exception, raises), result.output
            return result.exception
        if isinstance(result.exception, RagkitError):
            raise result.exception
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


def answer(body, nth, digest):
    said = body["messages"][-1]["content"]
    if body.get("tools"):
        return calls(tool_call("answer", {"capital": "Paris"}))
    if "response_format" in body:
        return chat('{"capital": "Paris"}')
    return Reply("{}", 400) if said == "bad" else chat(f"re: {said}")


LINES = '{"id": "x", "messages": "one", "purpose": "judge"}\n\n{"messages": "two"}\n'


def test_complete_writes_one_line_for_each_request(endpoint, run, tmp_path):
    server = endpoint(answer)
    (tmp_path / "in.jsonl").write_text(LINES)
    run("complete", "in.jsonl", "-m", "openai:m", "-o", "deep/out.jsonl")
    text = (tmp_path / "deep" / "out.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(line["id"], line["ok"], line["text"]) for line in lines] == [
        ("x", True, "re: one"),
        (3, True, "re: two"),
    ]
    # A warm run gives the same bytes, live and on replay.
    assert run("complete", "-", "-m", "openai:m", input=LINES) == text
    assert run("complete", "in.jsonl", "-m", "openai:m", "--replay") == text
    assert server.asked.total() == 2


def test_a_failure_is_written_and_sets_the_exit_status(endpoint, run, tmp_path):
    endpoint(answer)
    (tmp_path / "in.jsonl").write_text('{"messages": "bad"}\n{"messages": "one"}\n')
    arguments = ["complete", "in.jsonl", "-m", "openai:m", "-o", "out.jsonl"]
    assert "1 of 2 requests have no value" in str(run(*arguments, raises=ModelError))
    bad, good = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert (bad["ok"], bad["kind"], good["ok"]) == (False, "rejected", True)


def test_a_dry_run_and_replay_ask_nothing_and_a_budget_needs_a_price(run, prices):
    prices()
    ask = ["complete", "-", "-m", "openai:m"]
    out = run(*ask, "--dry-run", "--max-tokens", "50", input=LINES)
    assert "2 requests, 0 in the ledger, 2 calls" in out
    # Two questions of 8 tokens at $10 and at most 100 tokens out at $100 a million.
    assert "16 tokens in" in out
    assert "$0.00016 to $0.01016" in out
    ask[-1] = "openai:other"
    assert "price unknown: no 'other'" in run(*ask, "--dry-run", input=LINES)
    error = run(*ask, "--budget", "1", input=LINES, raises=UsageError)
    assert "a budget needs a price" in str(error)
    miss = run(*ask, "--replay", input=LINES, raises=ReplayMiss)
    assert "2 requests are not in the ledger" in str(miss)
    assert "'one'" in str(miss)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no request in it"),
        ("{", "line 1, column 2: not valid JSON"),
        ('{"messages": "a"}\n[]', "line 2: expected an object"),
        ('{"messages": "a", "purpos": "b"}', "did you mean 'purpose'"),
        ('{"messages": []}', "line 1: messages must be"),
        ('{"messages": "a", "parameters": {"x": 1}}', "line 1: no option of the chat endpoint 'x'"),
    ],
)
def test_a_malformed_line_is_named(run, text, says):
    error = run("complete", "-", "-m", "openai:m", input=text, raises=DataError)
    assert says in str(error)


def test_a_missing_file_is_named(run):
    error = run("complete", "no.jsonl", "-m", "openai:m", raises=MissingData)
    assert "no.jsonl" in str(error)
    assert "there is no ledger" in str(run("ledger", raises=MissingData))


@pytest.fixture
def filled(endpoint, tmp_path, prices):
    endpoint(answer)
    prices()
    path = tmp_path / "l.sqlite"
    with Client("openai:m", ledger=path) as client:
        client.complete([Request("one", purpose="judge"), Request("bad", purpose="judge")])
        client.complete([Request("two", purpose="judge", schema=SCHEMA)])
    with Client("openai:free", ledger=path) as client:
        client.complete([Request("three", purpose="reader")])


def test_the_ledger_is_shown_by_model_and_purpose(run, filled):
    lines = json.loads(run("ledger", "--json"))
    free, m = lines
    assert (free["model"], free["requests"], free["cost_usd"]) == ("openai:free", 1, None)
    # One answer, and one whose repair was invalid too: three calls of 7 and 3 tokens.
    assert (m["requests"], m["calls"], m["failed"]) == (3, 3, 2)
    assert m["failures"] == {"invalid": 1, "rejected": 1}
    assert m["cost_usd"] == pytest.approx(3 * (7 * 10 + 3 * 100) / 1e6)
    table = run("ledger")
    assert "1 invalid, 1 rejected" in table
    assert "cost at least $0.00111: 1 lines have no known cost, by prices of 2025-01-01" in table
    rows = list(csv.DictReader(io.StringIO(run("ledger", "--csv"))))
    assert [row["cost_usd"] for row in rows] == ["", str(m["cost_usd"])]
    assert json.loads(rows[1]["failures"]) == m["failures"]


def test_failures_are_listed_and_an_empty_ledger_is_shown_as_such(run, filled, tmp_path):
    lines = json.loads(run("ledger", "--failures", "--json"))
    assert sorted(line["kind"] for line in lines) == ["invalid", "rejected"]
    assert "2 requests without a value" in run("ledger", "--failures")
    Ledger(tmp_path / "empty.sqlite").close()
    assert run("ledger", "empty.sqlite").startswith("cost $0.00, by prices of")
    assert run("ledger", "empty.sqlite", "--csv") == ""
    assert run("ledger", "empty.sqlite", "--json") == "[]\n"


def test_export_and_import(run, filled, tmp_path):
    assert "5 exchanges written" in run("export", "all.jsonl.gz")
    assert "1 exchanges written" in run("export", "free.jsonl", "--model", "openai:free")
    error = run("export", "x.jsonl", "--purpose", "jugde", raises=UsageError)
    assert "did you mean 'judge'" in str(error)
    new = str(tmp_path / "new.sqlite")
    assert "1 exchanges added, 0 already there" in run("import", "free.jsonl", "--ledger", new)
    assert "4 exchanges added, 1 already there" in run("import", "all.jsonl.gz", "--ledger", new)
    assert json.loads(run("ledger", new, "--json")) == json.loads(run("ledger", "--json"))


def test_check_tries_chat_schema_and_tools_and_names_what_failed(endpoint, run, tmp_path):
    endpoint(answer)
    out = run("check", "openai:m")
    names = [line[:9].strip() for line in out.splitlines()]
    assert names == ["endpoint", "price", "chat", "schema", "tool call"]
    assert out.count("ok in") == 3
    assert "price      unknown (" in out
    assert not (tmp_path / "l.sqlite").exists()
    endpoint(lambda body, *_: Reply("{}", 400) if "tools" in body else answer(body, 0, ""))
    error = run("check", "openai:gpt-4o", raises=ModelError)
    assert str(error) == "openai:gpt-4o failed: tool call"


def batched(path, reply, **changes):
    """What the batch service returns for a file of requests, last first."""
    lines = []
    for line in map(json.loads, path.read_text().splitlines()):
        assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
        status, body = reply(line["body"])
        response = {"status_code": status, "request_id": "r", "body": body}
        lines.append({"id": "b", "custom_id": line["custom_id"], "response": response} | changes)
    return [json.dumps(line) + "\n" for line in reversed(lines)]


def test_a_batch_is_written_answered_elsewhere_and_imported(endpoint, run, tmp_path):
    server = endpoint(answer)
    schema = {"type": "object", "required": ["capital"]}
    asked = [{"messages": "one"}, {"messages": "two", "purpose": "p"}]
    asked += [{"messages": "three", "schema": schema}, {"messages": "bad"}]
    write_jsonl(tmp_path / "in.jsonl", asked)
    arguments, file = ["complete", "in.jsonl", "-m", "openai:m"], tmp_path / "r.jsonl"
    run("complete", "-", "-m", "openai:m", input='{"messages": "one"}')

    def reply(body):
        if body["messages"][0]["content"] == "bad":
            return 500, {"error": {"message": "oops"}}
        repaired = len(body["messages"]) > 1
        return 200, json.loads(chat('{"capital": "Rome"}' if repaired else "batched"))

    assert "3 requests written to b.jsonl" in run(*arguments, "--batch", "b.jsonl")
    first, *rest = batched(tmp_path / "b.jsonl", reply)
    file.write_text(first)
    assert run("import", "r.jsonl") == (
        "0 answers recorded, 1 requests failed, 0 already there, 2 without a result yet\n"
    )
    assert "not in the ledger" in str(run(*arguments, "--replay", raises=ReplayMiss))
    file.write_text("".join([*rest, *rest]))
    assert "2 answers recorded, 0 requests failed, 2 already there" in run("import", "r.jsonl")
    # The invalid answer is repaired, and the failed request written again, by the next batch.
    assert "2 requests written" in run(*arguments, "--batch", "b.jsonl")
    file.write_text("".join(batched(tmp_path / "b.jsonl", reply)))
    assert "1 answers recorded, 1 requests failed, 0 already there" in run("import", "r.jsonl")
    run(*arguments, "-o", "out.jsonl", "--replay", raises=ModelError)
    lines = list(map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines()))
    texts = [line.get("text") for line in lines]
    assert texts == ["re: one", "batched", '{"capital": "Rome"}', None]
    assert (lines[2]["repaired"], lines[3]["kind"]) == (True, "server_error")
    assert server.asked.total() == 1


def test_results_of_another_batch_are_refused_and_none_recorded(run, tmp_path):
    run("complete", "-", "-m", "openai:m", "--batch", "b.jsonl", input=LINES)
    good = batched(tmp_path / "b.jsonl", lambda _: (200, json.loads(chat())))
    (tmp_path / "good.jsonl").write_text("".join(good))
    for name in ("foreign", None):
        bad = batched(tmp_path / "b.jsonl", lambda _: (200, json.loads(chat())), custom_id=name)
        (tmp_path / "bad.jsonl").write_text(bad[0] + good[1])
        says = f"bad.jsonl: result 1: no request {name!r} was written from"
        assert says in str(run("import", "bad.jsonl", raises=DataError))
    assert "2 answers recorded" in run("import", "good.jsonl")
    (tmp_path / "b.jsonl").write_text('{"id": "b"}\n')
    error = str(run("import", "b.jsonl", raises=DataError))
    assert "not the export of a ledger" in error
    assert "custom_id" in error
