"""Which files exist, where they come from, and whether the bytes at hand are the right ones.

`data/registry.toml` lists every file. A `Store` looks for them: first in the data folder that the
caller names (`DATA=...` or `$RAGKIT_DATA`), then in the cache of fetched files. A file with a
registered digest is accepted by its bytes alone, under whatever name it lies there.
"""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ragkit import paths
from ragkit.errors import DataError, HashMismatch, MissingData, UsageError, did_you_mean
from ragkit.files import read_json, read_text, sha256


@dataclass(frozen=True)
class Entry:
    """One registered file; see the head of `data/registry.toml` for the meaning of the fields."""

    path: str
    dataset: str
    origin: str
    licence: str
    revision: str = ""
    url: str = ""
    sha256: str = ""
    bytes: int | None = None
    rows: int | None = None
    part_of: str = ""
    note: str = ""

    @property
    def official(self) -> bool:
        """Whether this is a file of the benchmark's own release, not a stand-in for one."""
        return not self.part_of

    @property
    def fetch_command(self) -> str:
        """The command that gets this file, or the empty string."""
        name = self.dataset if self.official else self.path
        return f"ragkit data fetch {name}" if self.url else ""


@dataclass(frozen=True)
class Found:
    """A registered file at hand.

    Parameters
    ----------
    wanted : Entry
        What was asked for.
    entry : Entry
        What was found: the same, or a stand-in for it.
    path : pathlib.Path
    """

    wanted: Entry
    entry: Entry
    path: Path

    @property
    def partial(self) -> bool:
        return self.entry is not self.wanted

    @property
    def extent(self) -> str:
        """How much of the wanted file this is, in words."""
        if not self.partial:
            return "complete"
        rows = f"{self.entry.rows:,} of {self.wanted.rows:,} rows"
        return f"{rows}: {self.entry.note}" if self.entry.rows == self.wanted.rows else rows


@cache
def entries(registry: Path = paths.REGISTRY) -> dict[str, Entry]:
    """Return the registered files by path.

    Raises
    ------
    DataError
        If the registry is malformed: an unknown or missing field, a repeated path or one that
        leaves the data folder, a digest that is none or comes without a size, a `part_of` that is
        no registered path or whose rows are not counted.
    """
    try:
        rows = tomllib.loads(read_text(registry)).get("file")
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{registry}: not a registry ({error})") from None
    if not isinstance(rows, list) or not rows:
        raise DataError(f"{registry}: not a registry (expected [[file]] tables)")
    found: dict[str, Entry] = {}
    for number, row in enumerate(rows, start=1):
        unknown = set(row) - set(Entry.__dataclass_fields__)
        if unknown:
            name = min(unknown)
            hint = did_you_mean(name, Entry.__dataclass_fields__)
            raise DataError(f"{registry}: file {number} has an unknown field {name!r}", hint)
        for name in ("path", "dataset", "origin", "licence"):
            if name not in row:
                raise DataError(f"{registry}: file {number} has no field {name!r}")
        entry = Entry(**row)
        if entry.path in found:
            raise DataError(f"{registry}: file {number} repeats the path {entry.path!r}")
        problem = _problem(entry)
        if problem:
            raise DataError(f"{registry}: {entry.path}: {problem}")
        found[entry.path] = entry
    for entry in found.values():
        if not entry.part_of:
            continue
        if entry.part_of not in found:
            raise DataError(f"{registry}: {entry.path} is part of the unknown {entry.part_of!r}")
        if not (entry.rows and found[entry.part_of].rows):
            raise DataError(f"{registry}: {entry.path} and what it is part of need their rows")
    return found


def _problem(entry: Entry) -> str:
    path = Path(entry.path)
    if path.is_absolute() or ".." in path.parts:
        return "the path leaves the data folder"
    if entry.sha256 and not re.fullmatch(r"[0-9a-f]{64}", entry.sha256):
        return "sha256 is not 64 lower-case hexadecimal digits"
    if entry.sha256 and not entry.bytes:
        return "sha256 comes without bytes"
    return ""


def entry(path: str) -> Entry:
    """Return the registered file of that path."""
    known = entries()
    if path not in known:
        raise UsageError(f"no file {path!r} is registered", did_you_mean(path, known))
    return known[path]


class Store:
    """The files at hand.

    Parameters
    ----------
    data : path-like, optional
        A data folder; `$RAGKIT_DATA` if not given. The cache of fetched files is searched after
        it.

    Raises
    ------
    MissingData
        If the named folder does not exist.
    """

    def __init__(self, data: str | os.PathLike | None = None):
        named = data if data else os.environ.get("RAGKIT_DATA")
        if named and not Path(named).is_dir():
            raise MissingData(f"{named}: no such data folder", "give an existing one as DATA=...")
        self.folders = [Path(named).resolve()] if named else []
        if paths.cache_dir().is_dir():
            self.folders.append(paths.cache_dir())
        self._by_size: dict[int, list[Path]] | None = None

    def find(self, path: str, *, stand_ins: bool = True) -> Found | None:
        """Return the file registered as `path`, a stand-in for it, or None.

        The official file comes first; of several stand-ins the one with most rows.

        Raises
        ------
        HashMismatch
            If a file lies at that path with other bytes, and nowhere with the right ones.
        """
        wanted = entry(path)
        candidates = [wanted]
        if stand_ins:
            parts = [other for other in entries().values() if other.part_of == path]
            candidates += sorted(parts, key=lambda part: -(part.rows or 0))
        for candidate in candidates:
            at = self._locate(candidate)
            if at is not None:
                return Found(wanted, candidate, at)
        return None

    def need(self, path: str) -> Found:
        """Return what `find` finds, or raise `MissingData` with the command that gets it."""
        found = self.find(path)
        if found is None:
            wanted = entry(path)
            hint = f"{wanted.fetch_command}, or name a folder that has it as DATA=..."
            if not wanted.url:
                hint = f"it cannot be fetched ({wanted.origin}): name a folder that has it"
            raise MissingData(f"{path} is not here", hint)
        return found

    def _locate(self, wanted: Entry) -> Path | None:
        mismatch = None
        for folder in self.folders:
            path = folder / wanted.path
            if path.is_file():
                problem = _verify(path, wanted)
                if problem is None:
                    return path
                mismatch = mismatch or problem
        elsewhere = self._by_digest(wanted)
        if elsewhere is None and mismatch:
            raise mismatch
        return elsewhere

    def _by_digest(self, wanted: Entry) -> Path | None:
        if not wanted.sha256:
            return None
        if self._by_size is None:
            self._by_size = {}
            for folder in self.folders:
                for path in sorted(folder.rglob("*")):
                    if path.is_file():
                        self._by_size.setdefault(path.stat().st_size, []).append(path)
        for path in self._by_size.get(wanted.bytes or -1, []):
            if sha256(path) == wanted.sha256:
                return path
        return None


def pin_path(path: Path) -> Path:
    """Return where the digest of a fetched file without a registered one is kept."""
    return path.with_name(path.name + ".pin.json")


def read_pin(path: Path) -> dict:
    """Return what was pinned when a file was fetched, or an empty dict.

    Raises
    ------
    DataError
        If the pin is no object with a sha256.
    """
    at = pin_path(path)
    if not at.is_file():
        return {}
    pin = read_json(at)
    if not isinstance(pin, dict) or not isinstance(pin.get("sha256"), str):
        raise DataError(f"{at}: expected an object with sha256", f"delete it and {path.name}")
    return pin


def expected_digest(path: Path, wanted: Entry) -> str:
    """Return the digest that a file should have: the registered, else the pinned one, else ""."""
    return wanted.sha256 or read_pin(path).get("sha256", "")


def _verify(path: Path, wanted: Entry) -> HashMismatch | None:
    expected = expected_digest(path, wanted)
    if not expected:
        return None
    found = sha256(path)
    if found == expected:
        return None
    size = path.stat().st_size
    bytes_ = f", {size:,} bytes instead of {wanted.bytes:,}" if wanted.bytes else ""
    return HashMismatch(
        f"{path}: sha256 {found[:12]}..., expected {expected[:12]}...{bytes_}",
        f"delete it and run: {wanted.fetch_command}"
        if wanted.url
        else f"replace it by the file of {wanted.origin}",
    )
