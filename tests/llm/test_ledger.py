import errno
import fcntl
import gzip
import json
import multiprocessing
import os
import pickle
import random
import sqlite3
import time

import pytest

from ragkit.errors import DataError, MissingData, RagkitError, UsageError
from ragkit.llm import Client, Exchange, Ledger, Request, import_results, write_batch
from tests.llm.server import SCHEMA, chat


def exchange(name="q", **fields):
    asked = Exchange.pending(Request(name), "openai:m")
    fields = {"state": "value", "response": chat()} | fields
    return Exchange(key=asked.key, model="openai:m", request=asked.request, **fields)


LATE = {"state": "failed", "response": None, "kind": "timeout", "reason": "late"}


def test_what_is_put_comes_back_byte_for_byte(path):
    row = exchange(response='{"x": "\\u00e9 \u2028"}', prompt_tokens=5, asked_at="2025-01-01")
    with Ledger(path) as ledger:
        assert ledger.get(row.key) is None
        assert ledger.put(row) == row
    with Ledger(path) as again:
        assert again.get(row.key) == row
        assert (len(again), list(again)) == (1, [row])
        assert again.get_many([row.key, "other"]) == {row.key: row}
        assert len(pickle.loads(pickle.dumps(again))) == 1
    with pytest.raises(UsageError, match="give it a file"):
        pickle.dumps(Ledger(None))


def test_a_final_exchange_is_never_replaced_but_a_failed_one_is(path, tmp_path):
    failed, answered = exchange(**LATE), exchange(response=chat("first"))
    with Ledger(tmp_path / "new.sqlite") as ledger:
        ledger.put(exchange(response=chat("second")))
        ledger.export(tmp_path / "new.jsonl")
        assert ledger.import_(tmp_path / "new.jsonl") == (0, 1)
    with Ledger(path) as ledger:
        assert ledger.put(failed) == failed
        assert ledger.put(answered) == answered
        assert ledger.put(exchange(response=chat("second"))) == answered
        assert ledger.put(failed) == answered
        assert ledger.import_(tmp_path / "new.jsonl") == (0, 1)
        assert list(ledger) == [answered]
    with Ledger(None) as ledger:
        ledger.put(failed)
        assert ledger.import_(tmp_path / "new.jsonl") == (1, 0)
        assert ledger.get(failed.key).response == chat("second")


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


def test_a_disk_without_locks_is_refused(path, monkeypatch):
    def lockf(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", lockf)
    with pytest.raises(DataError, match="claims: cannot be locked .*No locks.*\n.*local disk"):
        Ledger(path).claim("a" * 64)


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


def test_many_processes_create_one_ledger(tmp_path):
    context = multiprocessing.get_context("fork")
    for place in (tmp_path / str(n) / "llm.sqlite" for n in range(20)):
        barrier = context.Barrier(6)
        given = (place, 0, 1, barrier)
        children = [context.Process(target=_write_rows, args=given) for _ in range(6)]
        for child in children:
            child.start()
        for child in children:
            child.join(60)
        assert [child.exitcode for child in children] == [0] * 6


def _sql(path, statement):
    db = sqlite3.connect(path)
    db.execute(statement)
    db.commit()
    db.close()


def _newer(path):
    Ledger(path).close()
    _sql(path, "PRAGMA user_version = 99")


def _truncated(path):
    with Ledger(path) as ledger:
        ledger.add(exchange(str(i), response=chat("x" * 2000)) for i in range(50))
    path.write_bytes(path.read_bytes()[:-5000])


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda p: p.write_text("my thesis\n" * 50), "not a ledger"),
        (lambda p: p.write_bytes(b"SQLite format 3\0" + b"x" * 30), "not a ledger"),
        (lambda p: _sql(p, "CREATE TABLE calls (a)"), "not a ledger"),
        (_newer, "format 99"),
        (_truncated, "truncated"),
    ],
)
@pytest.mark.parametrize("readonly", [False, True])
def test_a_foreign_or_truncated_file_is_refused_and_left_alone(tmp_path, spoil, says, readonly):
    path = tmp_path / "llm.sqlite"
    spoil(path)
    before = path.read_bytes()
    with pytest.raises(DataError, match=f"{path}: .*{says}"):
        Client("openai:m", ledger=path, replay=readonly)
    assert path.read_bytes() == before


def test_a_ledger_that_cannot_be_written_names_the_cause_and_replay(path):
    with pytest.raises(MissingData, match="there is no ledger"):
        Ledger(path, readonly=True)
    with Ledger(path) as ledger:
        ledger.put(exchange())
    with Ledger(path, readonly=True) as ledger, pytest.raises(UsageError, match="reading only"):
        ledger.put(exchange("r"))
    with pytest.raises(UsageError, match="can only be replayed"):
        Client("openai:m", ledger=ledger, replay=False)
    with Ledger(path) as ledger, ledger._open() as db:
        db.execute(
            "PRAGMA query_only = 1"
        )  # as on a disk that is mounted for reading: root may all
        with pytest.raises(DataError, match="cannot be used .*readonly.*\n.*--replay, or RAGKIT_"):
            ledger.put(exchange("r"))


@pytest.mark.parametrize("column", ["response", "purpose", "prompt_tokens", "checksum"])
def test_a_changed_row_is_refused_with_a_sentence(path, tmp_path, column):
    with Ledger(path) as ledger:
        ledger.put(exchange("a", prompt_tokens=7))
        ledger.export(tmp_path / "a.jsonl")
    _sql(path, f"UPDATE calls SET {column} = replace({column}, 'i', 'j') || '8'")
    with pytest.raises(DataError, match="was changed after it was recorded: its checksum"):
        Client("openai:m", ledger=path, replay=True).complete(["a"])
    head, line = (tmp_path / "a.jsonl").read_text().splitlines()
    line = json.loads(line)
    (tmp_path / "a.jsonl").write_text(f"{head}\n{json.dumps(line | {column: f'{line[column]}8'})}")
    with pytest.raises(DataError, match="a.jsonl: line 2: the exchange .* was changed"):
        Ledger(tmp_path / "a.jsonl", readonly=True)


def test_an_export_has_the_same_bytes_each_time_and_reads_back(path, tmp_path):
    rows = [exchange("é\u2028"), exchange("b", purpose="judge"), exchange("c", **LATE)]
    rows = sorted(rows, key=lambda row: row.key)
    with Ledger(path) as ledger:
        ledger.add(rows)
        assert ledger.export(tmp_path / "a.jsonl.gz") == 3
        assert ledger.export(tmp_path / "b.jsonl.gz") == 3
        assert ledger.export(tmp_path / "judge.jsonl", purpose="judge") == 1
        with pytest.raises(UsageError, match="ends with .jsonl"):
            ledger.export(tmp_path / "a.csv")
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    with Ledger(tmp_path / "a.jsonl.gz", readonly=True) as shipped:
        assert list(shipped) == rows
    with Ledger(tmp_path / "new.sqlite") as other:
        assert other.import_(tmp_path / "judge.jsonl") == (1, 0)
        assert other.import_(tmp_path / "a.jsonl.gz") == (2, 1)
        assert list(other) == rows
    with pytest.raises(UsageError, match="ragkit llm import"):
        Ledger(tmp_path / "a.jsonl.gz")


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda t: "", "line 1: not the export"),
        (lambda t: '{"a": 1}\n', "line 1: not the export"),
        (lambda t: t.replace('"ragkit_ledger":2', '"ragkit_ledger":7'), "line 1: .* of format 2"),
        (lambda t: "\n".join(t.split("\n")[:2]), "truncated: 1 of 2"),
        (lambda t: t[: len(t) - 30], "line 3, column .* not valid JSON"),
        (lambda t: t.replace('"content":"b"', '"content":"B"'), "line .* request was changed"),
        (lambda t: t.replace('"attempts":1', '"tries":1'), "line 2: no column 'attempts'"),
    ],
)
def test_a_spoilt_export_is_refused_with_its_line(path, tmp_path, spoil, says):
    with Ledger(path) as ledger:
        ledger.add([exchange("a"), exchange("b")])
        ledger.export(tmp_path / "a.jsonl")
    (tmp_path / "a.jsonl").write_text(spoil((tmp_path / "a.jsonl").read_text()))
    with pytest.raises(DataError, match=f"a.jsonl: {says}"):
        Ledger(tmp_path / "a.jsonl", readonly=True)


def mutated(raw, seed):
    """Return bytes with one random change: bytes replaced, cut, doubled, inserted, or a JSON value."""
    draw = random.Random(seed)
    start = draw.randrange(len(raw))
    stop = min(len(raw), start + draw.choice([1, 3, 40]))
    values = [b"null", b"-1", b"1e999", b"[[]]", b'{"a":{}}', b'"\\ud800"', b"9" * 5000, b"true"]
    changes = [
        draw.randbytes(stop - start),
        b"",
        raw[start:stop] * 2,
        draw.choice([b"\n", b"\0", b'"', b"\xff", b"{", b"," * 9]),
    ]
    if draw.random() < 0.4:  # the value of a random key
        colon = raw.find(b":", start)
        ends = [end for end in (raw.find(mark, colon) for mark in b",}") if end > 0]
        if colon > 0 and ends:
            return raw[: colon + 1] + draw.choice(values) + raw[min(ends) :]
    return raw[:start] + draw.choice(changes) + raw[stop:]


@pytest.fixture
def filled(path, tmp_path):
    """Return a ledger's rows, an export of it, and a file of results for its batch."""
    asked = [Request("free"), Request("typed", schema=SCHEMA), "no answer"]
    with Client("openai:m", ledger=path) as client:
        write_batch(client, client.missing(asked), tmp_path / "batch.jsonl")
        client.ledger.add([exchange("a"), exchange("b", prompt_tokens=7), exchange("c", **LATE)])
        client.ledger.export(tmp_path / "export.jsonl")
        rows = list(client.ledger)
    replies = [(200, chat()), (200, chat('{"verdict": "yes", "score": 1}')), (500, '{"error": {}}')]
    results = ""
    for line, reply in zip(
        (tmp_path / "batch.jsonl").read_text().splitlines(), replies, strict=True
    ):
        response = {"status_code": reply[0], "body": json.loads(reply[1])}
        results += json.dumps({"custom_id": json.loads(line)["custom_id"], "response": response})
        results += "\n"
    return rows, (tmp_path / "export.jsonl").read_bytes(), results.encode()


def refused(path, act):
    """Return whether `act` raises a named error; it must name the file."""
    try:
        act()
    except RagkitError as error:
        said = error.message
    else:
        return False
    assert str(path) in said
    return True


def test_300_mutations_of_an_export_are_refused_or_change_nothing(filled, tmp_path):
    rows, export, _ = filled

    def read():
        assert list(Ledger(path, readonly=True)) == rows

    count = 0
    for seed in range(300):
        path = tmp_path / ("m.jsonl.gz" if seed % 3 == 0 else "m.jsonl")
        path.write_bytes(mutated(gzip.compress(export) if seed % 3 == 0 else export, seed))
        count += refused(path, read)
    assert count > 200


def test_300_mutations_of_batch_results_are_refused_or_recorded_as_they_are(filled, tmp_path):
    rows, _, results = filled
    file, count = tmp_path / "m.jsonl", 0
    for seed in range(300):
        file.write_bytes(mutated(results, seed))
        with Client("openai:m", ledger=Ledger(None), replay=True) as client:
            client.ledger.add(rows)
            if refused(file, lambda ledger=client.ledger: import_results(ledger, file)):
                assert list(client.ledger) == rows
                count += 1
                continue
            assert [row.key for row in client.ledger] == [row.key for row in rows]
            answers = client.complete(["a", "b", "c"])  # recorded before, and left alone
            assert [answer.ok for answer in answers] == [True, True, False]
            client.ledger.export(tmp_path / "e.jsonl")
            assert list(Ledger(tmp_path / "e.jsonl", readonly=True)) == list(client.ledger)
    assert count > 50


def test_300_times_three_changed_bytes_never_give_another_answer(filled, path, tmp_path):
    rows, whole, file = filled[0], path.read_bytes(), tmp_path / "m.sqlite"

    def read():
        with Ledger(file, readonly=True) as ledger:
            assert all(row in rows for row in ledger)
            ledger.summary()

    count = 0
    for seed in range(300):
        draw, data = random.Random(seed), bytearray(whole)
        for _ in range(3):
            data[draw.randrange(100 if seed % 2 else 0, len(data))] = draw.randrange(256)
        file.write_bytes(data)
        count += refused(file, read)
    assert count > 30


def test_the_summary_counts_by_model_and_purpose(path):
    invalid = {"purpose": "judge", "state": "invalid", "kind": "invalid", "reason": "x"}
    rows = [
        exchange("a", purpose="judge", prompt_tokens=10, completion_tokens=1, attempts=3),
        exchange("b", **invalid),
        exchange("c", **invalid),
        exchange("d", **invalid | {"kind": "refused"}),
        exchange("e", **invalid | LATE),
        exchange("f", purpose="reader", prompt_tokens=5, completion_tokens=2),
    ]
    rows.append(exchange("b2", purpose="judge", repair_of=rows[1].key))
    rows.append(exchange("c2", **invalid | {"reason": "y"}, repair_of=rows[2].key))
    with Ledger(path) as ledger:
        ledger.add(rows)
        judge, reader = ledger.summary()
        failures = ledger.failures()
    failed = {"failed": 3, "failures": {"invalid": 1, "refused": 1, "timeout": 1}}
    counts = {"requests": 5, "calls": 6, "attempts": 9, "repaired": 1, "tokens_unknown": 5}
    tokens = {"prompt_tokens": 10, "completion_tokens": 1}
    failed["cost_usd"] = None  # the model has no price
    assert judge == {"model": "openai:m", "purpose": "judge", **counts, **tokens, **failed}
    page = ledger._repr_html_()
    assert "<code>.failures()</code> says why" in page
    assert page.count("<td") == 2 + 2 * 7  # two facts; two lines
    assert (reader["requests"], reader["tokens_unknown"], reader["failed"]) == (1, 0, 0)
    found = sorted((failure.kind, failure.reason) for failure in failures)
    assert found == [("invalid", "y"), ("refused", "x"), ("timeout", "late")]
