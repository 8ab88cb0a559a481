"""Cells that need not be computed twice: one row for each, kept as soon as it is known."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragkit.errors import DataError
from ragkit.systems.sweep.systems import canonical

if TYPE_CHECKING:
    import pandas as pd

FILE = "cells.sqlite"
PACKAGE = Path(__file__).resolve().parents[2]
BUSY = 60.0  # seconds to wait for another process that writes


class Cells:
    """Values by key, on disk or (without a folder) in memory.

    Any number of processes may read and write one file; a key stands for all that decides its
    value, so that it does not matter which of them comes first.

    Parameters
    ----------
    folder : path-like or None

    Raises
    ------
    DataError
        If the file there is not one of cells.
    """

    def __init__(self, folder: Path | None):
        self.path = None if folder is None else Path(folder) / FILE
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self._base = sqlite3.connect(self.path or ":memory:", timeout=BUSY, isolation_level=None)
        try:
            self._base.execute("PRAGMA journal_mode=WAL")
            self._base.execute("PRAGMA synchronous=NORMAL")
            self._base.execute(
                "CREATE TABLE IF NOT EXISTS cells (key BLOB PRIMARY KEY, value TEXT NOT NULL) "
                "WITHOUT ROWID"
            )
        except sqlite3.DatabaseError as error:
            self._base.close()
            raise DataError(
                f"{self.path}: not a file of cells ({error})", "delete it; its cells run again"
            ) from None

    def __enter__(self) -> Cells:
        return self

    def __exit__(self, *exc) -> None:
        self._base.close()

    def get(self, keys: Iterable[bytes]) -> dict[bytes, Any]:
        """Return the values that are there, by key."""
        keys, found = list(dict.fromkeys(keys)), {}
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            marks = ",".join("?" * len(part))
            with closing(
                self._base.execute(f"SELECT key, value FROM cells WHERE key IN ({marks})", part)
            ) as rows:
                for key, value in rows:
                    found[key] = self._parsed(value)
        return found

    def put(self, values: Mapping[bytes, Any]) -> None:
        """Keep values, all or none of them; what is there already stays."""
        self._base.execute("BEGIN IMMEDIATE")
        try:
            self._base.executemany(
                "INSERT OR IGNORE INTO cells VALUES (?, ?)",
                [(key, canonical(value)) for key, value in values.items()],
            )
        except BaseException:
            self._base.execute("ROLLBACK")
            raise
        self._base.execute("COMMIT")

    def _parsed(self, value: str) -> Any:
        try:
            return json.loads(value)
        except ValueError:
            raise DataError(
                f"{self.path}: a cell is no JSON", "delete the file; its cells run again"
            ) from None


def key(*parts: Any) -> bytes:
    """Return the key of plain data."""
    return hashlib.sha256(canonical(parts).encode()).digest()


def corpus_digest(documents: pd.DataFrame) -> str:
    """Return a digest of all columns of a frame, in the order of its rows."""
    digest = hashlib.sha256()
    for column in sorted(documents.columns):
        digest.update(f"\0{column}\0{len(documents)}\0".encode())
        for value in documents[column]:
            raw = str(value).encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "little"))
            digest.update(raw)
    return digest.hexdigest()


@cache
def code(*rooms: str) -> str:
    """Return a digest of the sources of rooms of the package: other code, other cells."""
    digest = hashlib.sha256()
    for room in rooms:
        for path in sorted((PACKAGE / room).rglob("*")):
            if path.suffix in (".py", ".toml", ".md"):
                digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0")
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
