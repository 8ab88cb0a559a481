"""The ledger: every request to a model and its answer, in one SQLite file for all processes.

A row of `calls` is one exchange, with a checksum that is verified whenever the row is read. Its key
is the sha256 of the request, so that an equal request gets the recorded answer. A row of `claims`
says that a process is asking for a key; it ends with the answer, with its process, or `LEASE`
seconds after it was last renewed, so that two processes never pay for one request and a killed
process blocks nobody. A row of `pending` is a request of a batch file. The file is in WAL mode and
must be on a local disk.
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
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from ragkit.errors import DataError, MissingData, RagkitError, UsageError
from ragkit.files import atomic_path, read_text
from ragkit.llm.exchange import FINAL, canonical, digest

FORMAT = 2
LEASE = 60.0
SPARE = 1 << 22  # bytes on disk set aside for the answers under way
_APPLICATION = 0x52474B4C  # "RGKL" in SQLite's header marks a file as a ledger
_OPTIONS = {"isolation_level": None, "check_same_thread": False, "timeout": 60}
_RESTORE = "it was left as it was; continue with a copy from before, or an export of it"


@dataclass(frozen=True)
class Exchange:
    """One row of the ledger; `request` and `response` are JSON, byte for byte.

    `state` is "value" (a valid answer), "invalid" (an answer that is empty, refused or does not
    satisfy the schema) or "failed" (no answer); `kind` and `reason` say why. `repair_of` is the key
    of the exchange whose invalid answer this one repairs.
    """

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
        """Whether asking again would only repeat this."""
        return self.state != "failed" or self.kind in FINAL

    @property
    def row(self) -> tuple:
        """All fields, and a checksum of them."""
        values = tuple(vars(self).values())
        return *values, digest(canonical(values))


_COLUMNS = ", ".join(field.name for field in fields(Exchange))
_PUT = f"REPLACE INTO calls VALUES ({', '.join('?' * (len(fields(Exchange)) + 1))})"
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS calls ({_COLUMNS.replace("key", "key PRIMARY KEY", 1)}, checksum);
CREATE INDEX IF NOT EXISTS calls_repair_of ON calls (repair_of) WHERE repair_of IS NOT NULL;
CREATE TABLE IF NOT EXISTS claims (key PRIMARY KEY, owner, until);
CREATE TABLE IF NOT EXISTS pending (key PRIMARY KEY, request);
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {FORMAT};
COMMIT;
"""


class DiskFull(DataError):
    """The disk does not take another row of the ledger."""


class Ledger:
    """An open ledger; the file is created if it does not exist.

    Parameters
    ----------
    path : path or None
        A SQLite file, or, with `readonly`, an export (`.jsonl`, `.jsonl.gz`). None keeps the
        ledger in memory.
    readonly : bool
        Open for reading only; the file must exist.

    Attributes
    ----------
    full : bool
        Whether the disk was full when a row was last written.

    Raises
    ------
    DataError
        If the file is not a ledger, is damaged, of another format, or cannot be written.
    MissingData
        If `readonly` is set and there is no file.
    """

    def __init__(self, path: str | Path | None, *, readonly: bool = False):
        self.path = None if path is None else Path(path)
        self.readonly, self.full = readonly, False
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None
        self._pid = os.getpid()
        if self._exported and not readonly:
            raise UsageError(
                f"{self.path} is an export: it can be replayed, not added to",
                f"to go on from it: ragkit llm import {self.path} --ledger LEDGER.sqlite",
            )
        with self._open():
            pass

    def __repr__(self) -> str:
        return f"Ledger({str(self.path) if self.path else None!r})"

    def __reduce__(self):
        if self.path is None:
            raise UsageError("a ledger in memory cannot go to another process; give it a file")
        return partial(Ledger, readonly=self.readonly), (str(self.path),)

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
        rows = self._select("ORDER BY key LIMIT 500")
        while rows:
            yield from rows
            rows = self._select("WHERE key > ? ORDER BY key LIMIT 500", rows[-1].key)

    def get(self, key: str) -> Exchange | None:
        """Return the exchange with this key, or None."""
        return self.get_many([key]).get(key)

    def get_many(self, keys: Iterable[str]) -> dict[str, Exchange]:
        """Return the exchanges of those keys that the ledger holds."""
        keys, found = list(keys), {}
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            rows = self._select(f"WHERE key IN ({', '.join('?' * len(part))})", *part)
            found |= {row.key: row for row in rows}
        return found

    # Asking

    def claim(self, key: str, owner: str) -> Exchange | bool:
        """Claim the right to ask for `key`.

        Returns
        -------
        Exchange or bool
            The final exchange, if there is one; else whether `owner` now holds the claim.
        """
        now = time.time()
        with self._write() as db:
            held = self.get(key)
            if held and held.final:
                return held
            other = db.execute("SELECT owner, until FROM claims WHERE key = ?", (key,)).fetchone()
            if other and other[1] > now and not _is_dead(other[0]):
                return False
            db.execute("REPLACE INTO claims VALUES (?, ?, ?)", (key, owner, now + LEASE))
        return True

    def renew(self, owner: str) -> None:
        """Prolong all claims of `owner`."""
        with self._write() as db:
            db.execute("UPDATE claims SET until = ? WHERE owner = ?", (time.time() + LEASE, owner))

    def reserve(self) -> None:
        """Set disk space aside for the answers under way; `release` gives it back."""
        if self.path is not None and not self._spare.exists():
            try:
                self._spare.write_bytes(bytes(SPARE))
            except OSError as error:
                self._spare.unlink(missing_ok=True)
                raise DiskFull(f"{self._spare}: cannot be written: {error.strerror}") from None

    def release(self, owner: str) -> None:
        """Give up all claims of `owner`."""
        with self._write() as db:
            db.execute("DELETE FROM claims WHERE owner = ?", (owner,))
            others = db.execute("SELECT count(*) FROM claims").fetchone()[0]
        if self.path is not None and not others:
            self._spare.unlink(missing_ok=True)

    def put(self, exchange: Exchange, owner: str = "") -> Exchange:
        """Record an exchange and end its claim; return the exchange that the ledger now holds.

        A final exchange is never replaced. If the disk is full, the space that was set aside is
        used and `full` becomes True; if that is not enough, `DataError` is raised.
        """
        try:
            return self._record(exchange, owner)
        except DiskFull:
            self.full = True
            if self.path is not None:
                self._spare.unlink(missing_ok=True)
        try:
            return self._record(exchange, owner)
        except DiskFull as error:
            raise DataError(
                f"{error.message}: an answer was not recorded",
                "free some space and run again: what is recorded is not asked again",
            ) from None

    def _record(self, exchange: Exchange, owner: str) -> Exchange:
        with self._write() as db:
            exchange = self._insert(db, exchange)[0]
            db.execute("DELETE FROM claims WHERE key = ? AND owner = ?", (exchange.key, owner))
        return exchange

    def _insert(self, db, exchange: Exchange) -> tuple[Exchange, bool]:
        """Insert an exchange unless the ledger has it, or a final one; return what it holds."""
        held = self.get(exchange.key)
        if held and (held.final or held == exchange):
            return held, False
        db.execute(_PUT, exchange.row)
        return exchange, True

    def expect(self, requests: Iterable[Mapping[str, Any]]) -> None:
        """Keep requests of a batch file; each has `plain`, `purpose`, `prompt`, `repair_of`."""
        rows = [(digest(canonical(row["plain"])), canonical(row)) for row in requests]
        with self._write() as db:
            db.executemany("REPLACE INTO pending VALUES (?, ?)", rows)

    def expected(self, key: str) -> dict[str, Any] | None:
        """Return the request of a batch file with this key, or None."""
        with self._open() as db:
            row = db.execute("SELECT request FROM pending WHERE key = ?", (key,)).fetchone()
        return json.loads(row[0]) if row else None

    # Tables and exports

    def summary(self) -> list[dict[str, Any]]:
        """Return one dict for each model and purpose, in order.

        `requests` are requests without their repairs, `calls` the answers, `attempts` all
        attempts, `repaired` the requests whose repair is valid, `failed` those without a value,
        `failures` the same by kind. `tokens_unknown` counts the answers whose tokens the endpoint
        did not report; the two sums leave them out.
        """
        query = """
            SELECT model, purpose, sum(repair_of IS NULL) AS requests,
                sum(state != 'failed') AS calls, sum(attempts) AS attempts,
                sum(repair_of IS NOT NULL AND state = 'value') AS repaired,
                coalesce(sum(prompt_tokens), 0) AS prompt_tokens,
                coalesce(sum(completion_tokens), 0) AS completion_tokens,
                sum(state != 'failed' AND prompt_tokens + completion_tokens IS NULL)
                    AS tokens_unknown
            FROM calls GROUP BY model, purpose ORDER BY model, purpose
        """
        with self._open() as db:
            cursor = db.execute(query)
            names = [column[0] for column in cursor.description]
            table = [dict(zip(names, row, strict=True)) for row in cursor]
        failures = self.failures()
        for line in table:
            own = (line["model"], line["purpose"])
            kinds = Counter(f.kind for f in failures if (f.model, f.purpose) == own)
            line |= {"failed": kinds.total(), "failures": dict(sorted(kinds.items()))}
        return table

    def failures(self) -> list[Exchange]:
        """Return the last exchange of every request without a value, by model and purpose."""
        return self._select(
            "WHERE state != 'value' AND key NOT IN "
            "(SELECT repair_of FROM calls WHERE repair_of IS NOT NULL) "
            "ORDER BY model, purpose, asked_at, key"
        )

    def export(
        self, path: str | Path, *, model: str | None = None, purpose: str | None = None
    ) -> int:
        """Write the exchanges, or those of a model or purpose, to `path`; return their number.

        The file is JSON lines (gzipped if its name ends with .gz) in the order of keys: equal
        exchanges give equal bytes. It can be replayed.
        """
        path = Path(path)
        if not _is_export(path):
            raise UsageError(f"{path}: the name of an export ends with .jsonl or .jsonl.gz")
        lines = []
        for row in self:
            if model in (None, row.model) and purpose in (None, row.purpose):
                line = {"request": json.loads(row.request), "checksum": row.row[-1]}
                lines.append(canonical(asdict(row) | line))
        head = canonical({"ragkit_ledger": FORMAT, "calls": len(lines)})
        data = "".join(f"{line}\n" for line in (head, *lines)).encode()
        with atomic_path(path) as temporary:
            temporary.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
        return len(lines)

    def import_(self, path: str | Path) -> tuple[int, int]:
        """Add the exchanges of an export; return how many were new and how many were not."""
        exchanges = _read_export(Path(path))
        with self._write() as db:
            new = sum(self._insert(db, exchange)[1] for exchange in exchanges)
        return new, len(exchanges) - new

    # The file

    @property
    def _exported(self) -> bool:
        return self.path is not None and _is_export(self.path)

    @property
    def _spare(self) -> Path:
        return self.path.with_name(self.path.name + "-spare")

    def _select(self, clause: str, *values) -> list[Exchange]:
        with self._open() as db:
            rows = db.execute(f"SELECT * FROM calls {clause}", values).fetchall()
        return [_verified(row, f"{self.path}") for row in rows]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._pid != os.getpid():  # a connection must not be used after a fork
                self._db, self._pid = None, os.getpid()
            try:
                if self._db is None:
                    self._db = self._connect()
                yield self._db
            except sqlite3.Error as error:
                raise self._explained(error) from None

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        if self.readonly:
            raise UsageError(f"the ledger {self.path} is open for reading only")
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
            db = sqlite3.connect(":memory:", **_OPTIONS)
            db.executescript(_SCHEMA)
            db.executemany(_PUT, (row.row for row in _read_export(self.path)) if self.path else ())
            return db
        if self.readonly and not self.path.exists():
            raise MissingData(f"there is no ledger {self.path}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        uri = f"{self.path.resolve().as_uri()}?mode={'ro' if self.readonly else 'rwc'}"
        alone = not (os.access(self.path.parent, os.W_OK) or Path(f"{self.path}-wal").exists())
        if self.readonly and alone:
            uri += "&immutable=1"  # SQLite cannot create its side files there, and needs none
        db = sqlite3.connect(uri, uri=True, **_OPTIONS)
        try:
            if not (self.readonly or db.execute("SELECT 1 FROM sqlite_master").fetchone()):
                db.execute("PRAGMA journal_mode = WAL")
                db.executescript(_SCHEMA)
            names = ("application_id", "user_version")
            marks = [db.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
            if marks[0] != _APPLICATION:
                raise DataError(f"{self.path}: not a ledger", "name another file")
            if marks[1] != FORMAT:
                raise DataError(f"{self.path}: a ledger of format {marks[1]}, expected {FORMAT}")
            db.execute("PRAGMA synchronous = NORMAL")  # survives a kill; a power cut may cost rows
        except BaseException:
            db.close()
            raise
        return db

    def _explained(self, error: sqlite3.Error) -> RagkitError:
        said = str(error)
        if "locked" in said:
            return DataError(f"{self.path}: the ledger was locked by another process for a minute")
        if "full" in said or "disk I/O" in said:
            return DiskFull(f"{self.path}: the disk is full ({said})")
        if isinstance(error, sqlite3.OperationalError):
            return DataError(
                f"{self.path}: the ledger cannot be used: {said}",
                "to answer from it alone, without new requests: --replay, or RAGKIT_REPLAY=1",
            )
        return DataError(f"{self.path}: not a ledger, or truncated or damaged: {said}", _RESTORE)


def owner_name() -> str:
    """Return a name for one batch of this process: host, process id and a random part."""
    return f"{_host()}/{os.getpid()}/{uuid.uuid4().hex[:12]}"


def _host() -> str:
    host = platform.node()
    with suppress(OSError):  # containers may share host names and disks, but not process ids
        host += f":{os.stat('/proc/self/ns/pid').st_ino}"
    return host


def _is_dead(owner: str) -> bool:
    host, pid, _ = owner.rsplit("/", 2)
    try:
        if host == _host():
            os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # the process of another user
        pass
    return False


def _is_export(path: Path) -> bool:
    return path.name.endswith((".jsonl", ".jsonl.gz"))


def _verified(row: tuple, where: str) -> Exchange:
    exchange = Exchange(*row[:-1])
    if exchange.row[-1] != row[-1]:
        raise DataError(
            f"{where}: the exchange {exchange.key[:12]} was changed after it was recorded: its "
            "checksum does not match",
            _RESTORE,
        )
    return exchange


def _read_export(path: Path) -> list[Exchange]:
    head, *lines = read_text(path).removesuffix("\n").split("\n")
    try:
        parsed = dict(json.loads(head))
        version, count = parsed["ragkit_ledger"], parsed["calls"]
    except (ValueError, TypeError, KeyError):
        raise DataError(f"{path}: line 1: not the export of a ledger") from None
    if version != FORMAT:
        raise DataError(f"{path}: an export of format {version}, expected {FORMAT}")
    if count != len(lines):
        raise DataError(f"{path}: the export is truncated: {len(lines):,} of {count} calls")
    exchanges = []
    for number, line in enumerate(lines, 2):
        where = f"{path}: line {number}"
        try:
            row = json.loads(line)
            checksum = row.pop("checksum")
            exchange = Exchange(**row | {"request": canonical(row["request"])})
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise DataError(f"{where}: not an exchange: {error}") from None
        if digest(exchange.request) != exchange.key:
            raise DataError(f"{where}: the request was changed; its key does not match")
        exchanges.append(_verified((*vars(exchange).values(), checksum), where))
    return exchanges
