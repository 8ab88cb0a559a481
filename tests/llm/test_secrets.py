"""A planted key must be found nowhere, whatever goes wrong."""

import gzip
import json
import logging
import os
import pickle
import subprocess
import sys
import traceback

import pytest
from click.testing import CliRunner

from ragkit.cli import root
from ragkit.errors import ModelError, UsageError
from ragkit.llm import Client, Request
from tests.llm.server import ROOT, Reply, chat

KEY = "sk-planted-0123456789-do-not-leak"


SPILLS = {
    "good": chat(f"your key is {KEY}"),
    "status": Reply(json.dumps({"error": {"message": f"bad key {KEY}"}}), 400),
    "unavailable": Reply(json.dumps({"error": {"message": f"busy for {KEY}"}}), 500),
    "error": json.dumps({"error": {"message": f"no {KEY}"}}),
    "slow": Reply(drip=30.0),
    "reset": Reply(reset=True),
    "refusal": chat(None, refusal=f"not for {KEY}"),
    "invalid": chat(f"oops {KEY}"),
    "unauthorized": Reply(json.dumps({"error": {"message": f"Incorrect API key: {KEY}"}}), 401),
}


def spill(body, nth, digest):
    """An endpoint that echoes the key wherever it can."""
    return SPILLS.get(body["messages"][0]["content"], chat(f"Paris, by {KEY}"))


def deep(error):
    """Everything a verbose traceback shows: the frames' variables, causes and contexts."""
    shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    return "".join(shown.format()) + repr(error) + repr(error.args)


@pytest.fixture
def planted(endpoint, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return endpoint(spill)


def search(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in files:
        assert KEY.encode() not in path.read_bytes(), path
    return {path.name for path in files}


def test_the_key_is_in_no_file_log_traceback_or_repr(planted, tmp_path, caplog, capfd):
    log = logging.FileHandler(tmp_path / "debug.log")
    root = logging.getLogger()
    root.addHandler(log)
    caplog.set_level(logging.DEBUG)
    shown = []
    asked = ["good", "status", "unavailable", "error", "slow", "reset", "refusal"]
    requests = [Request(q) for q in asked] + [Request("invalid", schema={"type": "integer"})]
    path = tmp_path / "llm.sqlite"
    try:
        with Client("openai:m", ledger=path, timeout=0.5, max_attempts=2, backoff=0.01) as client:
            results = client.complete(requests)
            with pytest.raises(ModelError, match="refused the key") as caught:
                client.complete(["unauthorized"])
            shown.append(deep(caught.value))
            with pytest.raises(UsageError, match="request 2 contains the key") as caught:
                client.complete(["x", f"my key is {KEY}"])
            shown.append(caught.value.message)
            shown += [repr(client), repr(vars(client)), repr(vars(client.endpoint))]
            shown += [repr(results), json.dumps([r.to_dict() for r in results])]
            shown.append(pickle.dumps(client).decode("latin-1"))
            client.ledger.export(tmp_path / "ship.jsonl")
            shown.append(repr(list(client.ledger)))
            # The log of the database is still there: look before the file is closed.
            assert "llm.sqlite-wal" in search(tmp_path)
    finally:
        root.removeHandler(log)
        log.close()
    assert [r.ok for r in results] == [True] + [False] * 7
    assert results[0].text == "your key is [redacted]"
    assert "[redacted]" in results[1].reason
    names = search(tmp_path)
    assert {"debug.log", "llm.sqlite", "ship.jsonl"} <= names
    assert (tmp_path / "debug.log").stat().st_size > 1000
    out, err = capfd.readouterr()
    for text in [*shown, out, err, caplog.text]:
        assert KEY not in text
    sent = [head for head in planted.headers if f"bearer {KEY}" in head.lower()]
    assert len(sent) == len(planted.headers) > 0


def test_the_command_line_shows_no_key(planted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text('{"messages": "good"}\n{"messages": "status"}\n')
    logged = subprocess.run(
        [sys.executable, "-m", "ragkit", "llm", "complete", "in.jsonl"]
        + ["-m", "openai:m", "-o", "out.jsonl", "--ledger", "l.sqlite"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "1 of 2 requests have no value" in logged.stderr
    assert KEY not in logged.stdout + logged.stderr
    for arguments in (
        ["ledger", "l.sqlite", "--failures"],
        ["export", "ship.jsonl.gz", "--ledger", "l.sqlite"],
        ["check", "openai:m"],
    ):
        shown = CliRunner().invoke(root, ["llm", *arguments])
        assert shown.exit_code == (arguments[0] == "check")  # it breaks the schema
        assert KEY not in shown.output
    assert {"out.jsonl", "l.sqlite", "ship.jsonl.gz"} <= search(tmp_path)
    with gzip.open("ship.jsonl.gz", "rt") as shipped:
        assert KEY not in shipped.read()


@pytest.mark.parametrize(
    ("given", "said", "seen"),
    [("ollama", "it is ollama", "it is ollama"), (f"{KEY}\n", KEY, "[redacted]")],
)
def test_a_stand_in_is_a_word_and_a_line_break_is_no_part_of_a_key(
    endpoint, monkeypatch, given, said, seen
):
    server = endpoint(lambda *_: chat(said))
    monkeypatch.setenv("OPENAI_API_KEY", given)
    with Client("openai:m", ledger=None) as client:
        (value,) = client.complete(["is it ollama?"])
    assert value.text == seen
    assert f"Bearer {given.strip()}" in server.headers[0]


@pytest.mark.parametrize("extra", ["user:pass-9876543210@", "pass-9876543210@"])
def test_an_address_with_a_secret_is_refused_without_showing_it(monkeypatch, extra):
    for address in (f"http://{extra}localhost/v1", f"http://localhost/v1?key={extra}"):
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        with Client("openai:m", ledger=None) as client:
            with pytest.raises(ModelError, match="more than an address") as caught:
                client.complete(["q"])
            assert "pass-9876543210" not in str(caught.value) + repr(client)
