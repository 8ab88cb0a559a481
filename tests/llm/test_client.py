import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from email.utils import formatdate

import pytest

from ragkit import display
from ragkit.errors import ModelError, UsageError
from ragkit.llm import Client, Failure, Ledger, ReplayMiss, Request, Value
from ragkit.llm.endpoint import _retry_after
from tests.llm.server import ROOT, SCHEMA, Reply, calls, chat, process, tool_call

GOOD = json.dumps({"verdict": "yes", "score": 5})


def said(body):
    return body["messages"][-1]["content"]


def echo(body, nth, digest):
    return chat(f"re: {said(body)}")


def make(path, **options):
    options = {"backoff": 0.01, "timeout": 5} | options
    return Client("openai:m", ledger=path, **options)


def test_results_come_in_order_and_a_warm_run_makes_no_call(endpoint, path):
    server = endpoint(lambda body, *_: Reply(chat(said(body)), delay=0.05 * (said(body) < "3")))
    asked = [str(i) for i in range(20)]
    with make(path, concurrency=3) as client:
        cold = client.complete(asked)
        warm = client.complete(asked)
    with make(path) as again:
        other = again.complete(reversed(asked))
    assert [value.text for value in cold] == asked
    assert warm == cold == list(reversed(other))
    assert json.dumps([v.to_dict() for v in warm]) == json.dumps([v.to_dict() for v in cold])
    assert [v.cached for v in cold] == [False] * 20
    assert [v.cached for v in warm] == [True] * 20
    assert (server.asked.total(), server.most_open) == (20, 3)


def test_the_bar_counts_what_the_ledger_had_and_is_not_begun_if_it_has_all(
    endpoint, path, monkeypatch
):
    begun, seen, begin = [], [], display.Bar

    @contextmanager
    def bar(*options):
        begun.append(options)
        with begin(*options) as made:
            yield made
            seen.append(made.done)

    monkeypatch.setattr(display, "Bar", bar)
    endpoint(echo)
    with make(path) as client:
        client.complete(["a", "b"])
        client.complete(["a", "b", "c", "c"])
        client.complete(["a", "b"])
    assert begun == [("openai:m", 2, "request"), ("openai:m", 3, "request")]
    assert seen == [2, 3]


def test_equal_requests_are_asked_once_and_repeats_apart(endpoint, path):
    server = endpoint(lambda *_: chat(str(server.asked.total())))
    requests = [Request("q", purpose="a"), Request("q", purpose="b"), Request("q", repeat=1)]
    with make(path) as client:
        first, second, third = client.complete(requests)
    assert (first.text, first.purpose, second.purpose) == (second.text, "a", "b")
    assert first.text != third.text
    assert server.asked.total() == 2


def test_structured_output_is_repaired_once_and_recorded(endpoint, path):
    def answer(body, nth, digest):
        assert body["response_format"]["json_schema"]["schema"] == SCHEMA
        if len(body["messages"]) == 1:
            return chat('{"verdict": "perhaps"}')
        assert body["messages"][1]["content"] == '{"verdict": "perhaps"}'
        return chat(GOOD if body["messages"][0]["content"] == "good" else "no idea")

    server = endpoint(answer)
    requests = [Request(q, schema=SCHEMA, purpose="judge") for q in ("good", "bad")]
    with make(path) as client:
        good, bad = client.complete(requests)
        assert client.complete(requests) == [good, bad]
        (line,) = client.ledger.summary()
        assert [f.reason for f in client.ledger.failures()] == [bad.reason]
    assert (good.data, good.repaired) == ({"verdict": "yes", "score": 5}, True)
    assert (good.prompt_tokens, good.completion_tokens) == (14, 6)
    assert isinstance(bad, Failure)
    assert (bad.kind, bad.text) == ("invalid", "no idea")
    assert "not valid JSON" in bad.reason
    assert server.asked.total() == 4
    assert (line["requests"], line["calls"], line["repaired"], line["failed"]) == (2, 4, 1, 1)


def test_a_repair_that_is_not_answered_keeps_what_the_first_answer_cost(endpoint, path):
    endpoint(lambda body, *_: chat("oops") if len(body["messages"]) == 1 else Reply("{}", 500))
    with make(path, max_attempts=2) as client:
        (failure,) = client.complete([Request("q", schema=SCHEMA)])
    assert (failure.kind, failure.text) == ("server_error", "oops")
    assert "asking again because the answer is not valid JSON" in failure.reason
    assert (failure.prompt_tokens, failure.completion_tokens) == (7, 3)


def test_a_run_that_stopped_before_a_repair_goes_on_with_it(endpoint, path, tmp_path):
    server = endpoint(lambda body, *_: chat(GOOD if len(body["messages"]) > 1 else "oops"))
    request = Request("q", schema=SCHEMA)
    with make(path) as client:
        (value,) = client.complete([request])
        first = client.ledger.get(value.key)
    with make(tmp_path / "other.sqlite") as client:
        client.ledger.put(first)
        assert client.complete([request]) == [value]
    assert server.asked.total() == 3


def test_tool_calls_make_a_chat(endpoint, path):
    tool = {"name": "add", "description": "Add.", "parameters": {"required": ["a", "b"]}}

    def answer(body, nth, digest):
        if body["messages"][-1]["role"] == "tool":
            return chat(f"It is {body['messages'][-1]['content']}.")
        return calls(tool_call("add", {"a": 2, "b": 3}, "c9"))

    endpoint(answer)
    with make(path) as client:
        messages = [{"role": "user", "content": "2+3?"}]
        (value,) = client.complete([Request(messages, tools=[tool])])
        (call,) = value.tool_calls
        result = {"role": "tool", "tool_call_id": call.id, "content": str(call.arguments["a"] + 3)}
        messages += [value.message, result]
        (value,) = client.complete([Request(messages, tools=[tool])])
    assert value.text == "It is 5."


@pytest.mark.parametrize(
    ("reply", "kind", "asked"),
    [
        (Reply("{}", 500), "server_error", 3),
        (Reply("{}", 503), "server_error", 3),
        (Reply("{}", 429), "rate_limit", 3),
        (Reply(reset=True), "connection", 3),
        (Reply("<html>"), "garbage", 3),
        (Reply(b"\xff"), "garbage", 3),
        (Reply(chat()[:30]), "garbage", 3),
        (Reply(drip=30.0), "timeout", 3),
        (Reply('{"error": {"message": "too long"}}', 400), "rejected", 1),
        (Reply("{}", 403), "forbidden", 1),
        (Reply(chat("", finish="content_filter")), "filtered", 1),
    ],
)
def test_each_fault_ends_as_a_failure_of_its_kind(endpoint, path, reply, kind, asked):
    server = endpoint(lambda body, *_: reply if said(body) == "bad" else chat())
    with make(path, max_attempts=3, timeout=0.25) as client:
        good, bad = client.complete(["good", "bad"])
        assert isinstance(good, Value)
        assert isinstance(bad, Failure)
        assert (bad.kind, bool(bad.reason), bad.prompt_tokens) == (
            kind,
            True,
            7 if kind == "filtered" else None,
        )
        assert server.asked.total() == 1 + asked
        # What the endpoint would only repeat is not asked again; the rest is.
        assert client.complete(["bad"])[0].kind == kind
        final = kind in ("rejected", "filtered")
        assert server.asked.total() == 1 + asked + (0 if final else asked)
    with make(path, replay=True) as replayed:
        assert replayed.complete(["bad"]) == [bad]
    with Ledger(path) as ledger:
        row = ledger.get(bad.key)
        assert row.attempts == asked
        if not final:
            assert json.loads(row.faults) == {kind: asked}


def test_faults_that_pass_and_waits_that_a_server_asks_for_are_recorded(endpoint, path):
    wait = Reply("{}", 429, {"retry-after": "0.2"})
    busy = Reply("{}", 500)
    endpoint(lambda body, nth, _: chat() if nth == 2 else wait if said(body) == "w" else busy)
    with make(path, max_attempts=3) as client:
        fault = client.ledger.get(client.complete(["q"])[0].key)
    with make(path, max_attempts=1) as client:  # a wait that was asked for is no attempt
        waited = client.ledger.get(client.complete(["w"])[0].key)
    assert (fault.state, fault.attempts, fault.faults) == ("value", 3, '{"server_error":2}')
    assert 0.01 + 0.02 <= fault.waited_s <= 0.02 + 0.03  # doubled, plus at most `backoff`
    assert (waited.state, waited.attempts, waited.waited_s) == ("value", 3, 0.4)
    assert waited.seconds >= 0.4


@pytest.mark.parametrize(
    ("asked", "options"), [("3600", {"max_wait": 10}), ("0", {"max_wait": 0.5})]
)
def test_a_wait_beyond_patience_is_a_failure(endpoint, path, asked, options):
    server = endpoint(lambda *_: Reply("{}", 429, {"retry-after": asked}))
    with make(path, backoff=0.05, **options) as client:
        (failure,) = client.complete(["q"])
    assert failure.kind == "rate_limit"
    assert "more than max_wait" in failure.reason
    assert server.asked.total() <= 10


def test_a_rate_limit_that_lasts_is_said_once_and_ends_the_batch(endpoint, path, capsys):
    error = '{"error": {"message": "slow down"}}'
    server = endpoint(lambda *_: Reply(error, 429, {"retry-after": "1"}))
    with make(path, concurrency=3, max_wait=2.5, backoff=0.5) as client:
        start = time.monotonic()
        results = client.complete([str(i) for i in range(100)])
    assert time.monotonic() - start < 6
    assert server.asked.total() <= 9
    assert Counter(result.kind for result in results) == {"rate_limit": 3, "stopped": 97}
    assert "waiting for it would take more than max_wait, 2.5 s" in results[-1].reason
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        "ragkit: openai:m: waiting until the endpoint accepts more requests "
        "(status 429: slow down), for at most 2.5 s"
    )


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": formatdate(time.time() + 3600)}, pytest.approx(3600, abs=600)),
        ({"retry-after": "Wed, 01 Jan 2025 11:00:00 GMT"}, 0.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
    ],
)
def test_retry_after_in_all_its_forms(headers, seconds):
    assert _retry_after(headers) == seconds


def test_an_endpoint_that_is_down_is_given_up(path, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with make(path, max_attempts=2, concurrency=2) as client:
        results = client.complete([str(i) for i in range(200)])
        assert len(client.ledger) < 60
    kinds = [result.kind for result in results]
    assert set(kinds) == {"connection", "stopped"}
    assert kinds.count("stopped") > 140
    assert "in a row had no answer" in results[-1].reason


@pytest.mark.parametrize(("status", "says"), [(401, "refused the key"), (404, "no such model")])
def test_a_setup_that_cannot_work_stops_the_batch(endpoint, path, status, says):
    endpoint(lambda body, *_: chat() if said(body) == "0" else Reply("{}", status))
    with make(path, concurrency=1) as client:
        with pytest.raises(ModelError, match=says):
            client.complete([str(i) for i in range(100)])
        assert len(client.ledger) == 1


def test_an_exhausted_quota_stops_the_batch_and_keeps_the_results(endpoint, path):
    error = json.dumps({"error": {"message": "pay first", "code": "insufficient_quota"}})
    server = endpoint(lambda body, *_: chat() if said(body) == "0" else Reply(error, 429))
    with make(path, concurrency=1) as client:
        results = client.complete([str(i) for i in range(50)])
    assert results[0].ok
    assert {r.kind for r in results[1:]} == {"rate_limit", "stopped"}
    assert "pay first" in results[-1].reason
    assert server.asked.total() == 2


@pytest.mark.parametrize(
    ("address", "key", "says"),
    [
        ("", "", "OPENAI_API_KEY is not set"),
        ("ftp//x", "", "not an address"),
        ("http://127.0.0.1:9/v1", "sk-with blank 12345", "a blank"),
    ],
)
def test_an_endpoint_that_cannot_be_asked_is_refused(path, monkeypatch, address, key, says):
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with make(path) as client, pytest.raises(ModelError, match=says):
        client.complete(["q"])


def test_a_second_endpoint_has_its_own_environment(endpoint, path):
    endpoint(echo)
    judge = endpoint(lambda *_: chat("judged"), environment="JUDGE")
    with make(path) as reader, make(None, environment="JUDGE") as other:
        texts = [client.complete(["q"])[0].text for client in (reader, other)]
    assert (texts, judge.asked.total()) == (["re: q", "judged"], 1)


def test_replay_asks_nothing_and_says_what_it_misses(endpoint, path, tmp_path, monkeypatch):
    server = endpoint(echo)
    requests = [Request("q", parameters={"temperature": 0}), Request("r")]
    with make(path) as client:
        live = client.complete(requests)
        client.ledger.export(tmp_path / "paper.jsonl.gz")
    monkeypatch.setenv("RAGKIT_REPLAY", "1")
    for shipped in (path, tmp_path / "paper.jsonl.gz"):
        before = shipped.read_bytes()
        with make(shipped) as client:
            assert client.complete(requests) == live
            with pytest.raises(ReplayMiss, match="2 requests are not in the ledger .*'new'"):
                client.complete(["new", Request("q", repeat=3), requests[0]])
            first, lost, again, last = client.complete(
                [requests[1], "new", "new", requests[0]], partly=True
            )
            assert [first, last] == live[::-1]
            assert (lost.kind, lost == again) == ("unasked", True)
            assert f"not in the ledger {shipped}" in lost.reason
            with pytest.raises(ReplayMiss, match="'new'"):  # of nothing, nothing is a part
                client.complete(["new"], partly=True)
        assert shipped.read_bytes() == before
    assert server.asked.total() == 2
    with make(path, replay=False) as client:
        assert client.complete(["new"])[0].ok


def test_the_dry_run_counts_without_a_call(endpoint, path):
    server = endpoint(echo)
    limits = {"max_tokens": 100}
    with Client("openai:gpt-4o-mini", ledger=path, parameters=limits) as client:
        client.complete(["one"])
        estimate = client.dry_run(["one", "hello world", "hello world", "hello world"])
        assert "nothing has been asked" in estimate._repr_html_()
        unlimited = client.dry_run([Request("q", parameters={"max_tokens": 5}), "one"])
    assert server.asked.total() == 1
    assert (estimate.requests, estimate.cached, estimate.calls) == (4, 1, 1)
    # "user" and "hello world" are 1 + 2 tokens; 3 for the message and 3 for the reply.
    assert (estimate.prompt_tokens, estimate.completion_tokens) == (9, 100)
    assert "(counted with o200k_base)" in str(estimate)
    assert estimate.cost_low == pytest.approx(9 * 0.15e-6)
    assert estimate.cost_high == pytest.approx(9 * 0.15e-6 + 100 * 0.60e-6)
    assert "at most 100 out" in str(estimate)
    assert unlimited.completion_tokens == 5


def test_an_unknown_price_is_said_and_never_zero(path):
    for model, says in (("my-llama", "price unknown: no 'my-llama'"), ("gpt-4o", "at least $")):
        estimate = Client(f"openai:{model}", ledger=None).dry_run(["hello"])
        assert (estimate.cost_high, estimate.completion_tokens) == (None, None)
        assert says in str(estimate)
    with pytest.raises(UsageError, match="a budget needs a price"):
        Client("openai:my-llama", ledger=path, budget=1.0)


def test_a_budget_stops_cleanly_and_what_is_paid_is_kept(endpoint, path, prices):
    prices('date = 2025-01-01\ncurrency = "USD"\n[models.m]\ninput = 0\noutput = 1000000\n')
    server = endpoint(lambda *_: chat(tokens=(7, 2)))
    options = {"parameters": {"max_tokens": 3}}
    asked = [str(i) for i in range(20)]
    with make(path, budget=11.0, **options) as client:
        results = client.complete(asked)
        # Each answer costs $2 and may cost $3: the fifth fits (8 + 3), the sixth does not.
        assert client.spent == 10.0
        assert sum(r.ok for r in results) == server.asked.total() == 5
        assert {r.kind for r in results if not r.ok} == {"budget"}
        reasons = {r.reason for r in results if not r.ok}
        assert reasons == {"not asked: the budget of $11.00 would be exceeded ($10.00 spent)"}
        assert len(client.ledger) == 5
    with make(path, **options) as client:
        assert all(r.ok for r in client.complete(asked))
    assert server.asked.total() == 20


def test_a_client_works_from_several_threads_and_after_a_fork(endpoint, path):
    server = endpoint(lambda body, *_: Reply(chat(said(body)), delay=0.01))
    client = make(path)
    texts = {}

    def work(name):
        asked = [f"{name}{i}" for i in range(5)] + ["shared"]
        texts[name] = [result.text for result in client.complete(asked)]

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert texts["c"] == ["c0", "c1", "c2", "c3", "c4", "shared"]
    assert server.asked.total() == 21
    child = os.fork()
    if child == 0:
        os._exit(0 if client.complete(["forked", "a0"])[0].text == "forked" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert client.complete(["forked"])[0].cached
    assert server.asked.total() == 22
    client.close()


SCRIPT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored in the background
from ragkit.llm import Client
Client("openai:m", ledger=sys.argv[1], concurrency=4).complete([str(i) for i in range(400)])
"""


def recorded(path):
    """Return the number of answers in a ledger."""
    with Ledger(path) as ledger:
        return sum(row.state == "value" for row in ledger)


def interrupted(path, url, ready, often=1):
    """Run the script, interrupt it once `ready()`, and return what it says as it ends."""
    environment = os.environ | {"OPENAI_BASE_URL": url}
    command = [sys.executable, "-c", SCRIPT, path]
    pipes = {"stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, env=environment, **pipes) as child:
        while not ready():
            time.sleep(0.02)
        for _ in range(often):
            child.send_signal(signal.SIGINT)
            time.sleep(0.5)
        said = child.communicate(timeout=30)[1]
    assert child.returncode != 0
    assert "KeyboardInterrupt" in said
    return said


@pytest.mark.parametrize(("latency", "often"), [(0.3, 1), (50.0, 2)])
def test_ctrl_c_records_the_answers_under_way_and_a_second_one_drops_them(path, latency, often):
    counted = "paid" if often == 1 else "asked"
    with process(latency=latency) as server:
        said = interrupted(path, server.url, lambda: len(server.stats()[counted]) >= 4, often)
        stats = server.stats()
    assert "recording the answers under way" in said
    asked, paid = sum(stats["asked"].values()), len(stats["paid"])
    assert recorded(path) == paid
    assert (asked, paid) == (4, 0) if often == 2 else asked == paid < 400


def test_ctrl_c_waits_for_the_slowest_answer_too(endpoint, path):
    """Python 3.11 takes a thread for dead whose `join` was interrupted: the slowest comes first."""
    server = endpoint(lambda body, *_: Reply(delay=3.0 if said(body) == "0" else 0.8))
    interrupted(path, server.url, lambda: server.asked.total() >= 4)
    assert recorded(path) == 4


def test_ctrl_c_while_threads_start_waits_for_those_that_did(endpoint, path, monkeypatch):
    server, begun, start = endpoint(lambda *_: Reply(delay=0.3)), [], threading.Thread.start

    def starts(thread):
        if "ragkit-asks" in thread.name:
            begun.append(thread)
            if len(begun) == 3:
                while server.asked.total() < 2:
                    time.sleep(0.01)
                raise KeyboardInterrupt
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starts)
    with make(path, concurrency=8) as client, pytest.raises(KeyboardInterrupt):
        client.complete([str(i) for i in range(20)])
    assert recorded(path) == server.asked.total() == 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"model": "gpt-4o"}, "openai:NAME"),
        ({"model": "openai:"}, "openai:NAME"),
        ({"model": "anthropic:x"}, "openai:NAME"),
        ({"concurrency": 0}, "concurrency"),
        ({"max_attempts": 1.5}, "max_attempts"),
        ({"timeout": float("inf")}, "timeout"),
        ({"backoff": "1"}, "backoff"),
        ({"budget": -1}, "budget"),
        ({"parameters": {"max_token": 1}}, "did you mean 'max_tokens'"),
    ],
)
def test_a_wrong_option_is_refused(options, says):
    options = {"model": "openai:gpt-4o", "ledger": None} | options
    with pytest.raises(UsageError, match=says):
        Client(options.pop("model"), **options)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("q", "a list of requests"),
        (Request("q"), "a list of requests"),
        (["q", {"role": "user"}], "request 2 is a dict"),
    ],
)
def test_what_is_no_list_of_requests_is_refused(wrong, says):
    with Client("openai:m", ledger=None) as client:
        assert client.complete([]) == []
        with pytest.raises(UsageError, match=says):
            client.complete(wrong)
