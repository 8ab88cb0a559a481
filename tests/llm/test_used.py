"""What was asked while something ran: counted once, by whichever process, with its price."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ragkit.llm import Client, Ledger, Request
from ragkit.llm.used import VARIABLE, record
from tests.llm.server import Reply, chat

PRICES = 'date = "2026-01-02"\ncurrency = "USD"\n[models]\nm = {input = 2.0, output = 10.0}\n'


def ask(path, *texts, purpose="reader"):
    with Client("openai:m", ledger=path, backoff=0.01, max_attempts=1) as client:
        return client.complete([Request(text, purpose=purpose, prompt="p@1") for text in texts])


def test_requests_tokens_and_price_by_hand(endpoint, path, prices):
    prices(PRICES)
    server = endpoint(lambda *_: chat("yes"))
    ask(path, "before")
    with record() as used:
        ask(path, "before", "one", "one", "two")
        ask(path, "two")
        ask(path, "two", purpose="judge")
        assert used == []  # known at the end
    judge, reader = used
    # Before, one, two: what was asked before counts.
    known = {"model": "openai:m", "purpose": "reader", "prompt": "p@1", "requests": 3, "failed": 0}
    assert reader | known == reader
    assert (judge["purpose"], judge["requests"]) == ("judge", 1)
    (total,) = [line for line in Ledger(path).summary() if line["purpose"] == "reader"]
    for name in ("prompt_tokens", "completion_tokens", "cost_usd"):
        assert reader[name] == total[name]
    tokens = reader["prompt_tokens"], reader["completion_tokens"]
    assert reader["cost_usd"] == pytest.approx((2 * tokens[0] + 10 * tokens[1]) / 1e6)
    assert reader["prices"] == "2026-01-02"
    assert reader["ledger"].endswith("llm.sqlite")
    assert server.asked.total() == 3


def test_what_nobody_answered_is_counted_and_costs_nothing(endpoint, path, prices):
    prices(PRICES)
    endpoint(lambda body, *_: Reply(status=400) if "bad" in str(body) else chat("yes"))
    with record() as used:
        ask(path, "good", "bad")
    (line,) = used
    assert (line["requests"], line["failed"]) == (2, 1)
    assert line["cost_usd"] > 0


def test_no_call_no_record_and_the_environment_is_as_before(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(KeyError), record() as used:
        raise KeyError
    assert used == []
    assert VARIABLE not in os.environ


def test_records_inside_one_another_both_have_it(endpoint, path):
    endpoint(lambda *_: chat("yes"))
    with record() as outer:
        ask(path, "one")
        with record() as inner:
            ask(path, "two")
    assert (outer[0]["requests"], inner[0]["requests"]) == (2, 1)
    assert outer[0]["cost_usd"] is None  # the price of the model is not known


def test_what_another_process_asks_is_counted(endpoint, path):
    endpoint(lambda *_: chat("yes"))
    code = f"from tests.llm.test_used import ask; ask({str(path)!r}, 'far')"
    with record() as used:
        subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    assert used[0]["requests"] == 1
