"""One request in five goes wrong: nothing is lost, nothing is paid twice."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from ragkit.llm import Ledger
from ragkit.llm import ledger as module
from tests.llm.asking import client, requests
from tests.llm.server import FAULTS, ROOT, process


def sizes(small):
    """The number of requests, seconds per answer and kinds of faults, in little and in full."""
    return [
        pytest.param(small, 0.01, len(FAULTS) - 1, id=str(small)),
        pytest.param(2000, 0.1, len(FAULTS), id="2000", marks=pytest.mark.slow),
    ]


def worker(path, count, out=os.devnull):
    """Start a process that asks, and writes what it got to `out`."""
    child = multiprocessing.get_context("fork").Process(target=_work, args=(path, count, out))
    child.start()
    return child


def _work(path, count, out):
    with client(path) as asking:
        results = asking.complete(requests(count))
    Path(out).write_text(json.dumps([result.to_dict() for result in results]))


def check_books(ledger, stats, results):
    """What was paid is in the ledger, once; what the results say is what the ledger holds."""
    rows = list(ledger)
    answered = [row for row in rows if row.state != "failed"]
    assert set(stats["paid"].values()) == {1}
    assert len(answered) == len(stats["paid"])
    assert sum(row.attempts for row in rows) == sum(stats["asked"].values())
    firsts = {row.key for row in rows if row.repair_of is None}
    assert firsts == {result.key for result in results}
    (line,) = ledger.summary()
    repaired = sum(result.ok and result.repaired for result in results)
    assert (line["requests"], line["repaired"]) == (len(results), repaired)
    assert line["failures"] == Counter(result.kind for result in results if not result.ok)
    assert line["prompt_tokens"] == 7 * len(answered) == sum(r.prompt_tokens or 0 for r in results)


@pytest.mark.parametrize(("count", "latency", "kinds"), sizes(150))
def test_every_request_ends_as_value_or_failure_and_none_is_paid_twice(
    path, monkeypatch, count, latency, kinds
):
    with process(latency, share=0.2, seed=7, kinds=kinds) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with client(path) as asking:
            cold = asking.complete(requests(count))
            stats = server.stats()
            check_books(asking.ledger, stats, cold)
            assert asking.complete(requests(count)) == cold
        assert server.stats() == stats
        faults = [json.loads(row.faults) for row in Ledger(path, readonly=True)]
    assert len(cold) == count
    assert sum(result.ok for result in cold) >= 0.97 * count
    assert sum(result.ok and result.repaired for result in cold) >= 0.02 * count
    assert stats["statuses"]["429"] >= 0.01 * count
    met = {kind for fault in faults for kind in fault}
    assert {"rate_limit", "server_error", "connection", "garbage"} <= met
    if count >= 2000:
        assert "timeout" in met
        assert any(result.kind == "invalid" for result in cold if not result.ok)
    monkeypatch.delenv("OPENAI_BASE_URL")
    with client(path, replay=True) as replayed:
        assert replayed.complete(requests(count)) == cold


@pytest.mark.parametrize(("count", "latency", "kinds"), sizes(80))
def test_a_killed_run_resumes_without_asking_again(path, monkeypatch, count, latency, kinds):
    with process(latency, share=0.2, seed=8, kinds=kinds) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        child = worker(path, count)
        while len(server.stats()["paid"]) < count // 2:
            time.sleep(0.01)
        child.kill()
        child.join(30)
        killed = server.stats()
        with Ledger(path) as ledger:
            recorded = sum(row.state != "failed" for row in ledger)
        # An answer sent in the moment of the kill may never have reached the ledger.
        assert 0 <= len(killed["paid"]) - recorded <= 32
        assert recorded < count
        assert child.exitcode == -signal.SIGKILL

        with client(path) as asking:
            results = asking.complete(requests(count))
            held = sum(row.state != "failed" for row in asking.ledger)
        stats = server.stats()
    paid = stats["paid"]
    assert max(paid.values()) <= 2
    twice = sum(times == 2 for times in paid.values())
    assert twice <= len(killed["paid"]) - recorded
    assert held == len(paid)
    assert len(results) == count
    assert sum(result.ok for result in results) >= 0.97 * count


@pytest.mark.parametrize(("count", "latency", "kinds"), sizes(80))
def test_two_processes_share_the_work_and_pay_once(
    path, tmp_path, monkeypatch, count, latency, kinds
):
    with process(latency, share=0.2, seed=9, kinds=kinds) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        children = [worker(path, count, tmp_path / name) for name in ("one", "two")]
        for child in children:
            child.join(120)
        stats = server.stats()
    assert [child.exitcode for child in children] == [0, 0]
    one, two = ((tmp_path / name).read_text() for name in ("one", "two"))
    assert one == two
    results = json.loads(one)
    assert len(results) == count
    with Ledger(path) as ledger:
        rows = list(ledger)
    assert set(stats["paid"].values()) == {1}
    assert len({row.key for row in rows}) == len(rows)
    assert sum(row.state != "failed" for row in rows) == len(stats["paid"])
    assert sum(row.attempts for row in rows) == sum(stats["asked"].values())


ASK = """
import sys
from ragkit.llm import Client
client = Client("openai:toy", ledger="llm.sqlite", concurrency=8)
for result in client.complete([f"{n} " + 2000 * "x" for n in range(60)]):
    print(result.ok, getattr(result, "reason", ""))
"""


def ask_in(folder, prefix=(), before=""):
    return subprocess.run(
        [*prefix, sys.executable, "-c", before + ASK],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_disk_that_fills_loses_no_answer(tmp_path, monkeypatch):
    # A disk of its own, in memory, with room for the space set aside and some answers.
    size = module.SPARE + (3 << 18)
    script = f"""
        mount -t tmpfs -o size={size} none {tmp_path}/disk && cd {tmp_path}/disk || exit 77
        "$@"; status=$?; cp llm.sqlite* {tmp_path}; exit $status
    """
    (tmp_path / "disk").mkdir()
    with process(latency=0.02) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        done = ask_in(tmp_path, ["unshare", "-rm", "sh", "-c", script, "sh"])
        paid = server.stats()["paid"]
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("this system does not let a test mount a disk")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    answered = sum(line.startswith("True") for line in lines)
    assert 8 < answered < 60
    failed = [line for line in lines if line.startswith("False")]
    assert all("not asked: llm.sqlite: the disk is full" in line for line in failed)
    assert len(failed) == 60 - answered
    with Ledger(tmp_path / "llm.sqlite") as ledger:
        assert sum(row.state == "value" for row in ledger) == len(paid) == answered


def test_an_answer_that_a_full_disk_does_not_take_is_an_error(tmp_path, monkeypatch):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, 1 << 18))\n"
    before = limit + "from ragkit.llm import ledger; ledger.SPARE = 1 << 16\n"
    with process(latency=0.02) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        done = ask_in(tmp_path, before=before)
    assert "the disk is full" in done.stderr
    assert "an answer was not recorded" in done.stderr
    with Ledger(tmp_path / "llm.sqlite") as ledger:
        assert 0 < len(list(ledger)) < 60
