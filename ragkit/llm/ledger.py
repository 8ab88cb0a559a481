"""The ledger: every exchange with a model, in one sqlite file that several processes share.

A row of `calls` is one exchange. Its key is the sha256 of what was asked (endpoint kind, model,
messages, parameters, schema, tools, repeat index), so that whoever asks the same thing again
gets the recorded bytes. `state` is

- value: answered, and what was asked for;
- invalid: answered, but empty, refused, or breaking the schema; a repair is a row of its own
  whose `repair_of` names this one;
- failed: no answer, with the `kind` of the last fault.

A row of `claims` says that somebody is asking for a key just now. A claim ends with the answer,
when its process is dead, or when it was not renewed for `LEASE` seconds; so two processes do not
pay twice, and a killed one blocks nobody. Answers are committed one by one as they come. The
file is in WAL mode and must lie on a local disk.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ragkit.errors import DataError, MissingData, RagkitError, UsageError
from ragkit.llm.exchange import FINAL, canonical, digest

FORMAT = 1
LEASE = 60.0
_APPLICATION = 0x52474B4C  # "RGKL" in sqlite's header marks a file as a ledger
_SIDES = ("-wal", "-shm")


@dataclass(frozen=True)
class Exchange:
    """One row of the ledger; `request` and `response` are JSON texts, the bytes as they were."""

    key: str
    model: str
    request: str
    state: str
    response: str | None = None
    kind: str | None = None
    reason: str | None = None
    purpose: str = ""
    prompt: str = ""
    repair_of: str | None = None
    endpoint: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    attempts: int = 1
    faults: str = "{}"
    waited_s: float = 0.0
    seconds: float = 0.0
    asked_at: str = ""

    @property
    def final(self) -> bool:
        """Whether asking again would only give the same."""
        return self.state != "failed" or self.kind in FINAL


_COLUMNS = tuple(field.name for field in fields(Exchange))
_SCHEMA = f"""
CREATE TABLE calls (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, request TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('value', 'invalid', 'failed')),
    response TEXT, kind TEXT, reason TEXT, purpose TEXT NOT NULL, prompt TEXT NOT NULL,
    repair_of TEXT, endpoint TEXT NOT NULL, prompt_tokens INTEGER, completion_tokens INTEGER,
    attempts INTEGER NOT NULL, faults TEXT NOT NULL, waited_s REAL NOT NULL,
    seconds REAL NOT NULL, asked_at TEXT NOT NULL,
    CHECK ((state = 'failed') = (response IS NULL))
) STRICT;
CREATE INDEX calls_repair_of ON calls (repair_of) WHERE repair_of IS NOT NULL;
CREATE TABLE claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL, until REAL NOT NULL) STRICT;
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {FORMAT};
"""


class Ledger:
    """A ledger file, opened; it is made if it is not there.

    Parameters
    ----------
    path : path or None
        A sqlite file, or, with `readonly`, an export (`.jsonl`, `.jsonl.gz`). None keeps the
        ledger in memory: nothing is left when the process ends.
    readonly : bool
        Open for reading alone; the file must be there.

    Raises
    ------
    DataError
        If the file is not a ledger, is truncated or damaged, or of a newer format. It is left
        as it was.
    MissingData
        If `readonly` is set and there is no file.
    """

    def __init__(self, path: str | Path | None, *, readonly: bool = False):
        self.path = None if path is None else Path(path)
        self.readonly = readonly
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None
        self._pid = os.getpid()
        if self._exported and not readonly:
            raise UsageError(
                f"{self.path} is an export: it can be replayed, not added to",
                f"to go on from it: ragkit llm import {self.path} LEDGER.sqlite",
            )
        with self._open():
            pass

    def __repr__(self) -> str:
        return f"Ledger({str(self.path) if self.path else None!r})"

    def __reduce__(self):
        if self.path is None:
            raise UsageError("a ledger in memory cannot go to another process; give it a file")
        return _reopen, (str(self.path), self.readonly)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *exc) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. A later call opens it again."""
        with self._lock:
            if self._db is not None and self._pid == os.getpid() and self.path is not None:
                self._db.close()
                self._db = None

    # Reading

    def __len__(self) -> int:
        with self._open() as db:
            return db.execute("SELECT count(*) FROM calls").fetchone()[0]

    def __iter__(self) -> Iterator[Exchange]:
        """Yield all exchanges in the order of their keys."""
        last = ""
        while True:
            with self._open() as db:
                rows = db.execute(
                    "SELECT * FROM calls WHERE key > ? ORDER BY key LIMIT 500", (last,)
                ).fetchall()
            if not rows:
                return
            yield from (Exchange(*row) for row in rows)
            last = rows[-1][0]

    def get(self, key: str) -> Exchange | None:
        """Return the exchange with this key, if it is there."""
        with self._open() as db:
            row = db.execute("SELECT * FROM calls WHERE key = ?", (key,)).fetchone()
        return Exchange(*row) if row else None

    def get_many(self, keys: Iterable[str]) -> dict[str, Exchange]:
        """Return those of `keys` that are there."""
        keys, found = list(keys), {}
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            marks = ",".join("?" * len(part))
            with self._open() as db:
                for row in db.execute(f"SELECT * FROM calls WHERE key IN ({marks})", part):
                    found[row[0]] = Exchange(*row)
        return found

    def alike(self, messages: str) -> list[Exchange]:
        """Return exchanges about the same messages (canonical JSON): what a miss came close to."""
        with self._open() as db:
            rows = db.execute(
                "SELECT * FROM calls WHERE instr(request, ?) ORDER BY key LIMIT 20", (messages,)
            ).fetchall()
        return [Exchange(*row) for row in rows]

    # Asking

    def claim(self, key: str, owner: str) -> Exchange | bool:
        """Take the right to ask for `key`.

        Returns
        -------
        Exchange or bool
            The final exchange, if there is one; else True if the right is `owner`'s now, False
            if somebody else is asking.
        """
        now = time.time()
        with self._write() as db:
            row = db.execute("SELECT * FROM calls WHERE key = ?", (key,)).fetchone()
            if row and (exchange := Exchange(*row)).final:
                return exchange
            held = db.execute("SELECT owner, until FROM claims WHERE key = ?", (key,)).fetchone()
            if held and held[1] > now and not _is_dead(held[0]):
                return False
            db.execute("REPLACE INTO claims VALUES (?, ?, ?)", (key, owner, now + LEASE))
            return True

    def renew(self, owner: str) -> None:
        """Prolong all claims of `owner`."""
        with self._write() as db:
            db.execute("UPDATE claims SET until = ? WHERE owner = ?", (time.time() + LEASE, owner))

    def release(self, owner: str) -> None:
        """Give up all claims of `owner`."""
        with self._write() as db:
            db.execute("DELETE FROM claims WHERE owner = ?", (owner,))

    def put(self, exchange: Exchange, owner: str) -> Exchange:
        """Record an exchange and end its claim; return what the ledger holds now.

        A final exchange is never replaced: the first one stays, and is what everybody gets.
        """
        marks = ",".join("?" * len(_COLUMNS))
        values = tuple(getattr(exchange, name) for name in _COLUMNS)
        with self._write() as db:
            row = db.execute("SELECT * FROM calls WHERE key = ?", (exchange.key,)).fetchone()
            if row and (held := Exchange(*row)).final:
                exchange = held
            else:
                db.execute(f"REPLACE INTO calls VALUES ({marks})", values)
            db.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (exchange.key, owner))
        return exchange

    # Looking and shipping

    def summary(self) -> list[dict[str, Any]]:
        """Return one dict for each model and purpose, in order.

        `requests` counts what was asked for, `calls` the answers that came, repairs among them,
        `attempts` all tries, `repaired` the requests that the second answer settled, `failed`
        those without a value, `failures` the same by kind. `tokens_unknown` counts answers whose
        tokens the endpoint did not report; they are missing from the two sums.
        """
        with self._open() as db:
            groups = db.execute(
                """
                SELECT model, purpose, sum(repair_of IS NULL), sum(state != 'failed'),
                       sum(attempts), sum(repair_of IS NOT NULL AND state = 'value'),
                       coalesce(sum(prompt_tokens), 0), coalesce(sum(completion_tokens), 0),
                       sum(state != 'failed' AND (prompt_tokens IS NULL
                                                  OR completion_tokens IS NULL))
                FROM calls GROUP BY model, purpose ORDER BY model, purpose
                """
            ).fetchall()
        names = ["model", "purpose", "requests", "calls", "attempts", "repaired"]
        names += ["prompt_tokens", "completion_tokens", "tokens_unknown"]
        table = [dict(zip(names, group, strict=True)) for group in groups]
        kinds: dict[tuple[str, str], dict[str, int]] = {}
        for failure in self.failures():
            counts = kinds.setdefault((failure.model, failure.purpose), {})
            counts[failure.kind] = counts.get(failure.kind, 0) + 1
        for line in table:
            counts = kinds.get((line["model"], line["purpose"]), {})
            line["failed"] = sum(counts.values())
            line["failures"] = dict(sorted(counts.items()))
        return table

    def failures(self) -> list[Exchange]:
        """Return the last exchange of every request that has no value, by model and purpose."""
        with self._open() as db:
            rows = db.execute(
                """
                SELECT c.key, r.key FROM calls c LEFT JOIN calls r ON r.repair_of = c.key
                WHERE c.repair_of IS NULL AND c.state != 'value'
                      AND (r.key IS NULL OR r.state != 'value')
                ORDER BY c.model, c.purpose, c.asked_at, c.key
                """
            ).fetchall()
        last = [repair or first for first, repair in rows]
        found = self.get_many(last)
        return [found[key] for key in last]

    def export(
        self, path: str | Path, *, model: str | None = None, purpose: str | None = None
    ) -> int:
        """Write the exchanges, or those of a model or purpose, to `path`; return how many.

        The file is JSON lines (gzipped if it ends with .gz), sorted by key: the same exchanges
        give the same bytes. It can be replayed as it is.
        """
        path = Path(path)
        if not _is_export(path):
            raise UsageError(f"{path}: an export ends with .jsonl or .jsonl.gz")
        lines = []
        for exchange in self:
            if model not in (None, exchange.model) or purpose not in (None, exchange.purpose):
                continue
            row = asdict(exchange)
            row["request"] = json.loads(exchange.request)
            lines.append(canonical(row))
        lines.insert(0, canonical({"ragkit_ledger": FORMAT, "calls": len(lines)}))
        text = ("\n".join(lines) + "\n").encode()
        if path.suffix == ".gz":
            text = gzip.compress(text, mtime=0)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        part.write_bytes(text)
        part.replace(path)
        return len(lines) - 1

    def import_(self, path: str | Path) -> tuple[int, int]:
        """Add the exchanges of an export; return how many were new and how many were here."""
        exchanges = _read_export(Path(path))
        marks = ",".join("?" * len(_COLUMNS))
        new = 0
        with self._write() as db:
            for exchange in exchanges:
                row = db.execute("SELECT * FROM calls WHERE key = ?", (exchange.key,)).fetchone()
                if row and (Exchange(*row).final or not exchange.final):
                    continue
                values = tuple(getattr(exchange, name) for name in _COLUMNS)
                db.execute(f"REPLACE INTO calls VALUES ({marks})", values)
                new += 1
        return new, len(exchanges) - new

    # The file

    @property
    def _exported(self) -> bool:
        return self.path is not None and _is_export(self.path)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._pid != os.getpid():  # a connection must not be carried over a fork
                self._db, self._pid = None, os.getpid()
            try:
                if self._db is None:
                    self._db = self._connect()
                yield self._db
            except sqlite3.Error as error:
                raise self._explain(error) from None

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        if self.readonly:
            raise UsageError(f"the ledger {self.path} is open for reading alone")
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    def _connect(self) -> sqlite3.Connection:
        if self.path is None or self._exported:
            db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            db.executescript(_SCHEMA)
            if self._exported:
                marks = ",".join("?" * len(_COLUMNS))
                rows = (
                    tuple(getattr(exchange, name) for name in _COLUMNS)
                    for exchange in _read_export(self.path)
                )
                db.executemany(f"INSERT INTO calls VALUES ({marks})", rows)
            return db
        if not self.path.exists():
            if self.readonly:
                raise MissingData(f"there is no ledger {self.path}")
            _create(self.path)
        suspect = _check_header(self.path)
        mode = "ro" if self.readonly else "rw"
        uri = f"{self.path.resolve().as_uri()}?mode={mode}"
        wal = self.path.with_name(self.path.name + "-wal")
        if self.readonly and not os.access(self.path.parent, os.W_OK) and not wal.exists():
            uri += "&immutable=1"  # sqlite cannot make its side files there, and needs none
        db = sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, timeout=60
        )
        try:
            if suspect and (found := db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise sqlite3.DatabaseError(found)
            db.execute("PRAGMA synchronous = NORMAL")  # outlives a kill; a power cut may cost rows
        except sqlite3.Error:
            db.close()
            raise
        return db

    def _explain(self, error: sqlite3.Error) -> RagkitError:
        if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
            return DataError(f"{self.path}: the ledger was locked for a minute by somebody else")
        if isinstance(error, sqlite3.OperationalError) and "malformed" not in str(error):
            return DataError(f"{self.path}: the ledger cannot be used: {error}")
        return DataError(
            f"{self.path}: the ledger is truncated or damaged: {error}",
            "keep the file and go on with a copy from before, or an export of it",
        )


def owner_name() -> str:
    """Return a name for one batch of this process: host, process id and something unique."""
    return f"{_host()}/{os.getpid()}/{uuid.uuid4().hex[:12]}"


def _host() -> str:
    host = platform.node()
    with suppress(OSError):  # containers may share host names and disks, but not process ids
        host += f":{os.stat('/proc/self/ns/pid').st_ino}"
    return host


def _is_dead(owner: str) -> bool:
    host, pid, _ = owner.rsplit("/", 2)
    if host != _host():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _reopen(path: str, readonly: bool) -> Ledger:
    return Ledger(path, readonly=readonly)


def _is_export(path: Path) -> bool:
    return path.name.endswith((".jsonl", ".jsonl.gz"))


def _create(path: Path) -> None:
    """Make an empty ledger beside `path` and link it there, so that it appears complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.part")
    try:
        db = sqlite3.connect(part, isolation_level=None)
        db.execute("PRAGMA journal_mode = WAL")
        db.executescript(_SCHEMA)
        db.close()
        with suppress(FileExistsError):  # another process was first: its ledger is as good
            os.link(part, path)
    except sqlite3.Error as error:
        raise DataError(f"{path}: the ledger cannot be made: {error}") from None
    finally:
        for side in ("", *_SIDES):
            part.with_name(part.name + side).unlink(missing_ok=True)


def _check_header(path: Path) -> bool:
    """Refuse, before sqlite opens it, what is no ledger; return whether to look closer.

    A file may be shorter than its header says only while the rest is in the write-ahead log.
    """
    with open(path, "rb") as file:
        header = file.read(100)
        size = file.seek(0, os.SEEK_END)
    if len(header) < 100 or header[:16] != b"SQLite format 3\0":
        what = "empty" if not header else "not a ledger, or the stump of one"
        raise DataError(f"{path}: the file is {what}", "it was not touched; name another")
    if int.from_bytes(header[68:72], "big") != _APPLICATION:
        raise DataError(f"{path}: a sqlite file, but not a ledger", "it was not touched")
    if (version := int.from_bytes(header[60:64], "big")) != FORMAT:
        raise DataError(f"{path}: a ledger of format {version}; this is for {FORMAT}")
    page = int.from_bytes(header[16:18], "big")
    expected = (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big")
    wal = path.with_name(path.name + "-wal")
    if size >= expected:
        return False
    if not (wal.exists() and wal.stat().st_size):
        raise DataError(
            f"{path}: the ledger is truncated: {size:,} of {expected:,} bytes are there",
            "it was not touched; go on with a copy from before, or an export of it",
        )
    return True


def _read_export(path: Path) -> list[Exchange]:
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    except FileNotFoundError:
        raise MissingData(f"there is no export {path}") from None
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: the export cannot be read: {error}") from None
    lines = text.removesuffix("\n").split("\n")
    try:
        head = json.loads(lines[0])
    except ValueError:
        head = None
    if not isinstance(head, dict) or "ragkit_ledger" not in head:
        raise DataError(f"{path}: line 1: not the export of a ledger")
    if head["ragkit_ledger"] != FORMAT:
        raise DataError(f"{path}: an export of format {head['ragkit_ledger']}, not {FORMAT}")
    if head.get("calls") != len(lines) - 1:
        raise DataError(
            f"{path}: the export is truncated: {len(lines) - 1:,} of {head.get('calls')} calls"
        )
    return [_exchange(path, number, line) for number, line in enumerate(lines[1:], 2)]


def _exchange(path: Path, number: int, line: str) -> Exchange:
    try:
        row = json.loads(line)
        row["request"] = canonical(row["request"])
        exchange = Exchange(**row)
    except (ValueError, TypeError, KeyError) as error:
        raise DataError(f"{path}: line {number}: not an exchange: {error}") from None
    if digest(exchange.request) != exchange.key:
        raise DataError(f"{path}: line {number}: the request was changed; its key does not fit")
    return exchange
