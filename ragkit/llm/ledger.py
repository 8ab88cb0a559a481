"""The ledger: every request to a model and its answer, in one SQLite file for all processes.

A row of `calls` is one exchange, with a checksum that is verified whenever the row is read. Its key
is the sha256 of the request, so that an equal request gets the recorded answer. Who asks for a key
holds a lock on one byte of the file `LEDGER-claims`, so that two processes never pay for one
request; the lock ends with its process. The ledger is in WAL mode and must be on a local disk.

>>> from ragkit.llm import Client
>>> with Client("openai:gpt-4o-mini", ledger="llm.sqlite") as client:
...     results = client.complete(["Is 7 prime?", "Is 8 prime?"])
>>> ledger = Ledger("llm.sqlite")
>>> len(ledger.failures())
0
>>> ledger_path("llm.sqlite").exists()
True
"""

from __future__ import annotations

import fcntl
import gzip
import json
import lzma
import os
import shutil
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import Any

from ragkit import display, paths
from ragkit.errors import DataError, MissingData, UsageError
from ragkit.files import atomic_path, json_lines, named, read_text, require, write_ahead
from ragkit.llm.exchange import Exchange
from ragkit.llm.prices import dollars, load_prices
from ragkit.llm.requests import canonical, digest

FORMAT = 2
BUSY_S = 60  # that another process may hold the file
SPARE = 1 << 22  # bytes on disk that are left to the answers under way
_APPLICATION = 0x52474B4C  # "RGKL" in SQLite's header marks a file as a ledger
_PACK = {".gz": partial(gzip.compress, mtime=0), ".xz": lzma.compress}
_RESTORE = "it was left as it was; continue with a copy from before, or an export of it"
_NAMES = (*(field.name for field in fields(Exchange)), "checksum")
_PUT = f"REPLACE INTO calls VALUES ({', '.join('?' * len(_NAMES))})"
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS calls (key PRIMARY KEY, {", ".join(_NAMES[1:])});
CREATE INDEX IF NOT EXISTS calls_repair_of ON calls (repair_of) WHERE repair_of IS NOT NULL;
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {FORMAT};
COMMIT;
"""
_LOST = """state != 'value'
    AND key NOT IN (SELECT repair_of FROM calls WHERE repair_of IS NOT NULL)"""
_SUMMARY = f"""
WITH lost AS (SELECT model, purpose, kind, count(*) AS n FROM calls WHERE {_LOST} GROUP BY 1, 2, 3)
SELECT model, purpose, sum(repair_of IS NULL) AS requests, sum(state != 'failed') AS calls,
    sum(attempts) AS attempts, sum(repair_of IS NOT NULL AND state = 'value') AS repaired,
    coalesce(sum(prompt_tokens), 0) AS prompt_tokens,
    coalesce(sum(completion_tokens), 0) AS completion_tokens,
    sum(state != 'failed' AND prompt_tokens + completion_tokens IS NULL) AS tokens_unknown,
    (SELECT json_group_object(kind, n) FROM lost
     WHERE lost.model = calls.model AND lost.purpose = calls.purpose) AS failures
FROM calls GROUP BY model, purpose ORDER BY model, purpose
"""
_claims: dict[tuple, tuple] = {}  # open files of claims and the keys claimed, by process and ledger
_claiming = threading.Lock()


def ledger_path(given: str | Path | None = None) -> Path:
    """Return where answers are kept: the path given, `$RAGKIT_LEDGER`, or the workspace's ledger.

    >>> ledger_path("mine.sqlite").name
    'mine.sqlite'
    """
    return Path(given or os.environ.get("RAGKIT_LEDGER") or paths.BUILD / "llm.sqlite")


class DiskFull(DataError):
    """The disk does not take another row of the ledger."""


class Ledger(AbstractContextManager):
    """An open ledger; the file is created if it does not exist.

    Parameters
    ----------
    path : path or None
        A SQLite file, or, with `readonly`, an export (`.jsonl`, also `.gz` or `.xz`). None keeps the
        ledger in memory.
    readonly : bool
        Open for reading only; the file must exist.

    Raises `DataError` if the file is not a ledger, is damaged, of another format, or cannot be
    written, and `MissingData` if `readonly` is set and there is no file.
    """

    def __init__(self, path: str | Path | None, *, readonly: bool = False):
        self.path = None if path is None else Path(path)
        self.readonly = readonly
        self._lock = threading.RLock()
        self._db = self._pid = None
        if _is_export(self.path) and not readonly:
            raise UsageError(
                f"{self.path} is an export: it can be replayed, not added to",
                f"to go on from it: ragkit llm import {self.path} --ledger LEDGER.sqlite",
            )
        with self._open():
            pass

    def __repr__(self) -> str:
        return f"Ledger({str(self.path) if self.path else None!r})"

    def _repr_html_(self) -> str:
        lines = self.summary()
        rows = [
            {name: line[name] for name in ("model", "purpose", "requests", "failed")}
            | {"tokens in": line["prompt_tokens"], "tokens out": line["completion_tokens"]}
            | {"price": dollars(line["cost_usd"])}
            for line in lines
        ]
        facts = {"file": self.path or "in memory", "exchanges": f"{len(self):,}"}
        caption = f"Prices by the list of {load_prices().date}"
        shown = [display.table(rows, caption)] if rows else []
        after = "Next: `.export(path)` writes a file that others can replay."
        if any(line["failed"] for line in lines):
            after = "Next: `.failures()` says why requests have no value; the same run asks again."
        return display.card("Ledger of answers", facts, *shown, after=after)

    def __reduce__(self):
        if self.path is None:
            raise UsageError("a ledger in memory cannot go to another process; give it a file")
        return partial(Ledger, readonly=self.readonly), (str(self.path),)

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
        return iter(self._select("ORDER BY key"))

    def get(self, key: str) -> Exchange | None:
        """Return the exchange with this key, or None."""
        return self.get_many([key]).get(key)

    def get_many(self, keys: Iterable[str]) -> dict[str, Exchange]:
        """Return the exchanges of those keys that the ledger holds."""
        rows = self._select("WHERE key IN (SELECT value FROM json_each(?))", json.dumps(list(keys)))
        return {row.key: row for row in rows}

    # Asking

    def claim(self, key: str) -> bool:
        """Claim the right to ask for `key` until `release`; return whether it was free.

        Raises `DiskFull` if the disk may not have room for the answers under way.
        """
        if self.path is not None and shutil.disk_usage(self.path.parent).free < SPARE:
            raise DiskFull(f"{self.path}: the disk is full")
        try:
            file, claimed = self._claims()
            with _claiming, suppress(BlockingIOError):  # another process has the lock
                if key not in claimed:
                    if file is not None:
                        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, int(key[:15], 16))
                    claimed.add(key)
                    return True
        except OSError as error:
            said = f"{self.path}-claims: cannot be locked ({error.strerror})"
            raise DataError(said, "a ledger must be on a local disk") from None
        return False

    def release(self, key: str) -> None:
        """Give up the claim of `key`."""
        file, claimed = self._claims()
        with _claiming:
            claimed.discard(key)
            if file is not None:
                fcntl.lockf(file, fcntl.LOCK_UN, 1, int(key[:15], 16))

    def put(self, exchange: Exchange) -> Exchange:
        """Record an exchange; return the one that the ledger now holds.

        A final exchange is never replaced. `DataError` if the disk is full.
        """
        with self._lock:
            try:
                self.add([exchange])
            except DiskFull as error:
                said = f"{error.message}: an answer was not recorded"
                hint = "free some space and run again: what is recorded is not asked again"
                raise DataError(said, hint) from None
            return self.get(exchange.key)

    def add(self, exchanges: Iterable[Exchange]) -> int:
        """Record exchanges, all or none; return how many the ledger did not hold.

        A final exchange is never replaced.
        """
        if self.readonly:
            raise UsageError(f"the ledger {self.path} is open for reading only")
        new = 0
        with self._open() as db, db:  # commits, or rolls back
            db.execute("BEGIN IMMEDIATE")
            for exchange in exchanges:
                held = self.get(exchange.key)
                if not (held and (held.final or held == exchange)):
                    db.execute(_PUT, _row(exchange))
                    new += 1
        return new

    # Tables and exports

    def summary(self) -> list[dict[str, Any]]:
        """Return one dict for each model and purpose, in order.

        `requests` are requests without their repairs, `calls` the answers, `attempts` all
        attempts, `repaired` the requests whose repair is valid, `failed` those without a value,
        `failures` the same by kind. `tokens_unknown` counts the answers whose tokens the endpoint
        did not report; the two sums leave them out. `cost_usd` is None if the price or a count is
        unknown.
        """
        with self._open() as db:
            cursor = db.cursor()
            cursor.row_factory = sqlite3.Row
            table = [dict(row) for row in cursor.execute(_SUMMARY)]
        prices = load_prices()
        for line in table:
            line["failures"] = json.loads(line["failures"])
            line["failed"] = sum(line["failures"].values())
            tokens = None if line["tokens_unknown"] else line["prompt_tokens"]
            line["cost_usd"] = prices.cost(line["model"], tokens, line["completion_tokens"])
        return table

    def failures(self) -> list[Exchange]:
        """Return the last exchange of every request without a value, by model and purpose."""
        return self._select(f"WHERE {_LOST} ORDER BY model, purpose, asked_at, key")

    def export(
        self, path: str | Path, *, model: str | None = None, purpose: str | None = None
    ) -> int:
        """Write the exchanges, or those of a model or purpose, to `path`; return their number.

        The file is JSON lines (compressed if its name ends with .gz or .xz) in the order of keys: equal
        exchanges give equal bytes. It can be replayed.
        """
        if not _is_export(path := Path(path)):
            ends = "ends with .jsonl, .jsonl.gz or .jsonl.xz"
            raise UsageError(f"{path}: the name of an export {ends}")
        lines = [
            asdict(row) | {"request": json.loads(row.request), "checksum": row.checksum}
            for row in self
            if model in (None, row.model) and purpose in (None, row.purpose)
        ]
        head = {"ragkit_ledger": FORMAT, "calls": len(lines)}
        data = "".join(f"{canonical(line)}\n" for line in (head, *lines)).encode()
        with atomic_path(path) as temporary:
            temporary.write_bytes(_PACK.get(path.suffix, bytes)(data))
        return len(lines)

    def import_(self, path: str | Path) -> tuple[int, int]:
        """Add the exchanges of an export; return how many were new and how many were not."""
        exchanges = _read_export(Path(path))
        new = self.add(exchanges)
        return new, len(exchanges) - new

    # The files

    def _select(self, clause: str, *values) -> list[Exchange]:
        with self._open() as db:
            rows = db.execute(f"SELECT * FROM calls {clause}", values).fetchall()
        return [_verified(row, f"{self.path}") for row in rows]

    def _claims(self) -> tuple:
        """Return the file whose locks are the claims on this ledger, and this process's claims."""
        with _claiming:
            place = os.getpid(), id(self) if self.path is None else self.path.resolve()
            if place not in _claims:
                file = None if self.path is None else open(f"{self.path}-claims", "ab")  # noqa: SIM115
                _claims[place] = file, set()
            return _claims[place]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._db is None or self._pid != os.getpid():  # none is used after a fork
                    self._db, self._pid = self._connect(), os.getpid()
                yield self._db
            # SQLite's message may quote bytes of a damaged file that are no text.
            except (sqlite3.Error, UnicodeDecodeError) as error:
                raise self._explained(error) from None

    def _connect(self) -> sqlite3.Connection:
        options = {"isolation_level": None, "check_same_thread": False, "timeout": BUSY_S}
        if self.path is None or _is_export(self.path):
            db = sqlite3.connect(":memory:", **options)
            db.executescript(_SCHEMA)
            rows = _read_export(self.path) if self.path else ()
            db.executemany(_PUT, map(_row, rows))
            return db
        if self.readonly and not self.path.exists():
            raise MissingData(f"there is no ledger {self.path}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        uri = f"{self.path.resolve().as_uri()}?mode={'ro' if self.readonly else 'rwc'}"
        alone = not (os.access(self.path.parent, os.W_OK) or Path(f"{self.path}-wal").exists())
        if self.readonly and alone:
            uri += "&immutable=1"  # SQLite cannot create its side files there, and needs none
        db = sqlite3.connect(uri, uri=True, **options)
        try:
            if not (self.readonly or db.execute("SELECT 1 FROM sqlite_master").fetchone()):
                write_ahead(db, BUSY_S)
                db.executescript(_SCHEMA)
            if db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
                raise DataError(f"{self.path}: not a ledger", "name another file")
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version != FORMAT:
                raise DataError(f"{self.path}: a ledger of format {version}, expected {FORMAT}")
            db.execute("PRAGMA synchronous = NORMAL")  # survives a kill; a power cut may cost rows
        except BaseException:
            db.close()
            raise
        return db

    def _explained(self, error: Exception) -> DataError:
        said, kind, hint = str(error), DataError, None
        if "locked" in said:
            why = "the ledger was locked by another process for a minute"
        elif "full" in said or "disk I/O" in said:
            why, kind = "the disk is full", DiskFull
        elif isinstance(error, sqlite3.OperationalError) and "decode" not in said:
            why = "the ledger cannot be used"
            hint = "to answer from it alone, without new requests: --replay, or RAGKIT_REPLAY=1"
        else:
            why, hint = "not a ledger, or truncated or damaged", _RESTORE
        return kind(f"{self.path}: {why} ({said})", hint)


def _is_export(path: Path | None) -> bool:
    return path is not None and path.name.endswith((".jsonl", ".jsonl.gz", ".jsonl.xz"))


def _row(exchange: Exchange) -> tuple:
    return *vars(exchange).values(), exchange.checksum


def _verified(row: Sequence, where: str) -> Exchange:
    exchange = Exchange(*row[:-1])
    with suppress(TypeError, ValueError):  # what is no JSON: bytes, an infinite number
        if exchange.checksum == row[-1]:
            return exchange
    said = f"the exchange {exchange.key!r:.14} was changed after it was recorded"
    raise DataError(f"{where}: {said}: its checksum does not match", _RESTORE)


def _read_export(path: Path) -> list[Exchange]:
    with named(path):
        lines = json_lines(read_text(path))
        _, head = next(lines, (None, {}))
        if head.get("ragkit_ledger") != FORMAT:
            hint = "results of a batch have a custom_id in every line"
            raise DataError(f"line 1: not the export of a ledger of format {FORMAT}", hint)
        exchanges = []
        for place, row in lines:
            require(row, _NAMES, place)
            row["request"] = canonical(row["request"])
            if digest(row["request"]) != row["key"]:
                raise DataError(f"{place}: the request was changed; its key does not match")
            exchanges.append(_verified([row[name] for name in _NAMES], place))
        if head.get("calls") != len(exchanges):
            raise DataError(f"truncated: {len(exchanges):,} of {head.get('calls')!r} calls")
    return exchanges
