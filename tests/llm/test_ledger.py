import gzip
import json
import multiprocessing
import os
import pickle
import sqlite3
import time

import pytest

from ragkit.errors import DataError, MissingData, UsageError
from ragkit.llm import Client, Exchange, Ledger, Request
from tests.llm.server import chat


def exchange(name="q", **fields):
    asked = Exchange.pending(Request(name), "openai:m")
    fields = {"state": "value", "response": chat()} | fields
    return Exchange(key=asked.key, model="openai:m", request=asked.request, **fields)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "llm.sqlite"


def test_what_is_put_comes_back_byte_for_byte(path):
    row = exchange(response='{"x": "\\u00e9 \u2028"}', prompt_tokens=5, asked_at="2025-01-01")
    with Ledger(path) as ledger:
        assert ledger.get(row.key) is None
        assert ledger.put(row) == row
    with Ledger(path) as again:
        assert again.get(row.key) == row
        assert (len(again), list(again)) == (1, [row])
        assert again.get_many([row.key, "other"]) == {row.key: row}


def test_a_final_exchange_is_never_replaced_but_a_failed_one_is(path):
    failed = exchange(state="failed", response=None, kind="timeout", reason="late")
    answered = exchange(response=chat("first"))
    with Ledger(path) as ledger:
        ledger.put(failed)
        assert ledger.put(answered) == answered
        assert ledger.put(exchange(response=chat("second"))) == answered
        assert ledger.put(failed) == answered
        assert len(ledger) == 1


def _claim(path, key, seconds, say):
    say.send(Ledger(path).claim(key))
    time.sleep(seconds)


@pytest.fixture
def elsewhere(path):
    """Return a function that claims a key in a process of its own, which keeps it for a time."""
    context = multiprocessing.get_context("fork")
    children = []

    def claim(key, seconds=60):
        hear, say = context.Pipe()
        children.append(context.Process(target=_claim, args=(path, key, seconds, say)))
        children[-1].start()
        return hear.recv(), children[-1]

    yield claim
    for child in children:
        child.kill()
        child.join()


def test_a_claim_is_exclusive_until_it_is_released_or_its_process_ends(path, elsewhere):
    first, second = "a" * 64, "b" * 64
    with Ledger(path) as one, Ledger(path) as two, Ledger(None) as other:
        assert [one.claim(first), two.claim(first), other.claim(first)] == [True, False, True]
        assert elsewhere(first)[0] is False
        claimed, child = elsewhere(second)
        assert (claimed, one.claim(second)) == (True, False)
        two.close()  # another ledger's end leaves the claims of the first
        assert elsewhere(first)[0] is False
        one.release(first)
        assert elsewhere(first, 0)[0] is True
        child.kill()
        child.join()
        assert two.claim(second) is True


def _write_rows(path, start, stop, barrier):
    barrier.wait()
    with Ledger(path) as ledger:
        for i in range(start, stop):
            ledger.put(exchange(str(i), purpose=str(os.getpid())))


def test_processes_that_open_and_write_at_once_lose_and_double_nothing(path):
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(3)
    spans = [(0, 60), (0, 60), (40, 100)]
    children = [context.Process(target=_write_rows, args=(path, *span, barrier)) for span in spans]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
    assert [child.exitcode for child in children] == [0, 0, 0]
    with Ledger(path) as ledger:
        assert {row.key for row in ledger} == {exchange(str(i)).key for i in range(100)}
        assert len(ledger) == 100


def _foreign_database(path):
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE calls (a)")
    db.commit()
    db.close()


def _newer(path):
    Ledger(path).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()


def _truncated(path):
    with Ledger(path) as ledger:
        for i in range(50):
            ledger.put(exchange(str(i), response=chat("x" * 2000)))
    path.write_bytes(path.read_bytes()[:-5000])


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda p: p.write_text("my thesis\n" * 50), "not a ledger"),
        (lambda p: p.write_bytes(b"SQLite format 3\0" + b"x" * 30), "not a ledger"),
        (_foreign_database, "not a ledger"),
        (_newer, "format 99"),
        (_truncated, "truncated"),
    ],
)
@pytest.mark.parametrize("readonly", [False, True])
def test_a_foreign_or_truncated_file_is_refused_and_left_alone(tmp_path, spoil, says, readonly):
    path = tmp_path / "llm.sqlite"
    spoil(path)
    before = path.read_bytes()
    with pytest.raises(DataError, match=says) as caught:
        Ledger(path, readonly=readonly)
    assert str(path) in caught.value.message
    with pytest.raises(DataError, match=says):
        Client("openai:m", ledger=path, replay=readonly)
    assert path.read_bytes() == before


def test_a_damaged_page_is_reported_when_it_is_met(path):
    with Ledger(path) as ledger:
        for i in range(200):
            ledger.put(exchange(str(i), response=chat("x" * 500)))
    data = bytearray(path.read_bytes())
    for start in range(4096 * 4, len(data) - 4096, 4096):
        data[start : start + 64] = b"\xff" * 64
    path.write_bytes(data)
    with Ledger(path) as ledger, pytest.raises(DataError, match="damaged"):
        list(ledger)


@pytest.mark.parametrize("column", ["response", "purpose", "prompt_tokens", "checksum"])
def test_a_changed_row_is_refused_with_a_sentence(path, tmp_path, column):
    with Ledger(path) as ledger:
        ledger.put(exchange("a", prompt_tokens=7))
        ledger.export(tmp_path / "a.jsonl")
        with ledger._open() as db:
            db.execute(f"UPDATE calls SET {column} = replace({column}, 'i', 'j') || '8'")
        with pytest.raises(DataError, match="was changed after it was recorded: its checksum"):
            ledger.get(exchange("a").key)
    with pytest.raises(DataError, match="checksum does not match"):
        Client("openai:m", ledger=path, replay=True).complete(["a"])
    line = json.loads((tmp_path / "a.jsonl").read_text().splitlines()[1])
    line[column] = f"{line[column]}8"
    head = '{"calls":1,"ragkit_ledger":2}'
    (tmp_path / "a.jsonl").write_text(f"{head}\n{json.dumps(line)}\n")
    with pytest.raises(DataError, match="a.jsonl: line 2: the exchange .* was changed"):
        Ledger(tmp_path / "a.jsonl", readonly=True)


def test_reading_alone_needs_a_file_and_writes_nothing(path):
    with pytest.raises(MissingData, match="there is no ledger"):
        Ledger(path, readonly=True)
    with Ledger(path) as ledger:
        ledger.put(exchange())
        assert len(pickle.loads(pickle.dumps(ledger))) == 1
    with Ledger(path, readonly=True) as ledger, pytest.raises(UsageError, match="reading only"):
        ledger.put(exchange())
    with pytest.raises(UsageError, match="can only be replayed"):
        Client("openai:m", ledger=ledger, replay=False)
    with pytest.raises(UsageError, match="give it a file"):
        pickle.dumps(Ledger(None))


def test_an_export_has_the_same_bytes_each_time_and_reads_back(path, tmp_path):
    rows = [exchange("é\u2028"), exchange("b", purpose="judge")]
    rows.append(exchange("c", state="failed", response=None, kind="timeout", reason="late"))
    with Ledger(path) as ledger:
        for row in rows:
            ledger.put(row)
        assert ledger.export(tmp_path / "a.jsonl.gz") == 3
        assert ledger.export(tmp_path / "b.jsonl.gz") == 3
        assert ledger.export(tmp_path / "judge.jsonl", purpose="judge") == 1
        with pytest.raises(UsageError, match="ends with .jsonl"):
            ledger.export(tmp_path / "a.csv")
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    with Ledger(tmp_path / "a.jsonl.gz", readonly=True) as shipped:
        assert sorted(shipped, key=lambda r: r.key) == sorted(rows, key=lambda r: r.key)
    with Ledger(tmp_path / "new.sqlite") as other:
        assert other.import_(tmp_path / "judge.jsonl") == (1, 0)
        assert other.import_(tmp_path / "a.jsonl.gz") == (2, 1)
        assert sorted(other, key=lambda r: r.key) == sorted(rows, key=lambda r: r.key)
    with pytest.raises(UsageError, match="ragkit llm import"):
        Ledger(tmp_path / "a.jsonl.gz")


def test_an_import_replaces_a_failure_by_an_answer_but_never_an_answer(path, tmp_path):
    with Ledger(path) as ledger:
        ledger.put(exchange(response=chat("new")))
        ledger.export(tmp_path / "new.jsonl")
    with Ledger(tmp_path / "a.sqlite") as ledger:
        ledger.put(exchange(state="failed", response=None, kind="timeout", reason="late"))
        assert ledger.import_(tmp_path / "new.jsonl") == (1, 0)
        assert next(iter(ledger)).response == chat("new")
    with Ledger(tmp_path / "b.sqlite") as ledger:
        ledger.put(exchange(response=chat("old")))
        assert ledger.import_(tmp_path / "new.jsonl") == (0, 1)
        assert next(iter(ledger)).response == chat("old")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda t: "", "line 1: not the export"),
        (lambda t: '{"a": 1}\n', "line 1: not the export"),
        (lambda t: t.replace('"ragkit_ledger":2', '"ragkit_ledger":7'), "format 7"),
        (lambda t: "\n".join(t.split("\n")[:2]), "truncated: 1 of 2"),
        (lambda t: t[: len(t) - 30], "line 3: not an exchange"),
        (lambda t: t.replace('"content":"b"', '"content":"B"'), "request was changed"),
        (lambda t: t.replace('"attempts":1', '"tries":1'), "not an exchange"),
    ],
)
def test_a_spoilt_export_is_refused_with_its_line(path, tmp_path, spoil, says):
    with Ledger(path) as ledger:
        ledger.put(exchange("a"))
        ledger.put(exchange("b"))
        ledger.export(tmp_path / "a.jsonl")
    text = (tmp_path / "a.jsonl").read_text()
    (tmp_path / "bad.jsonl").write_text(spoil(text))
    (tmp_path / "bad.jsonl.gz").write_bytes(gzip.compress(text.encode())[:-20])
    with pytest.raises(DataError, match=says) as caught:
        Ledger(tmp_path / "bad.jsonl", readonly=True)
    assert "bad.jsonl" in caught.value.message
    with pytest.raises(DataError, match="damaged"):
        Ledger(tmp_path / "bad.jsonl.gz", readonly=True)


def test_the_summary_counts_by_model_and_purpose(path):
    invalid = {"purpose": "judge", "state": "invalid", "kind": "invalid", "reason": "x"}
    rows = [
        exchange("a", purpose="judge", prompt_tokens=10, completion_tokens=1, attempts=3),
        exchange("b", **invalid),
        exchange("c", **invalid),
        exchange("d", **invalid | {"kind": "refused"}),
        exchange("e", **invalid | {"state": "failed", "response": None, "kind": "timeout"}),
        exchange("f", purpose="reader", prompt_tokens=5, completion_tokens=2),
    ]
    rows.append(exchange("b2", purpose="judge", repair_of=rows[1].key))
    rows.append(exchange("c2", **invalid | {"reason": "y"}, repair_of=rows[2].key))
    with Ledger(path) as ledger:
        for row in rows:
            ledger.put(row)
        judge, reader = ledger.summary()
        failures = ledger.failures()
    failed = {"failed": 3, "failures": {"invalid": 1, "refused": 1, "timeout": 1}}
    counts = {"requests": 5, "calls": 6, "attempts": 9, "repaired": 1, "tokens_unknown": 5}
    tokens = {"prompt_tokens": 10, "completion_tokens": 1}
    assert judge == {"model": "openai:m", "purpose": "judge", **counts, **tokens, **failed}
    assert (reader["requests"], reader["tokens_unknown"], reader["failed"]) == (1, 0, 0)
    assert {(f.kind, f.reason) for f in failures} == {
        ("invalid", "y"),
        ("refused", "x"),
        ("timeout", "x"),
    }
