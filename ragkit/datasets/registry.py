"""Which datasets and files exist, where they come from, and whether the bytes at hand are right.

`data/registry.toml` declares them. A `Store` looks for the files: first in the data folder that the
caller names (`DATA=...` or `$RAGKIT_DATA`), then in the cache of fetched files. A file with a
registered digest is also found by its bytes, under whatever name it lies there. A file with other
bytes than the registered ones is another release, used and named, if it can be read to its end.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from string import Formatter

from ragkit import checks, paths
from ragkit.errors import DataError, HashMismatch, MissingData
from ragkit.files import opened_zip, read_json, read_rows, read_text, sha256

UNVERIFIED = "unverified: no digest was ever pinned"


@dataclass(frozen=True)
class Entry:
    """One registered file; the head of `data/registry.toml` says what the fields mean."""

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
    caveat: str = ""
    sample: str = ""
    optional: bool = False
    extra: bool = False
    read: dict = field(default_factory=dict, hash=False)

    @property
    def official(self) -> bool:
        """Whether this is a file of the benchmark's own release, not a substitute for one."""
        return not self.part_of

    @property
    def fetch_command(self) -> str:
        """The command that gets this file, or the empty string."""
        name = self.dataset if self.official else self.path
        return f"ragkit data fetch {name}" if self.url else ""

    def columns(self) -> list[str]:
        """Return the names of the columns that the file has to have."""
        found: list[str] = []
        for name in self.read.get("columns", {}).values():
            fields = [part[1] for part in Formatter().parse(name) if part[1]]
            found += fields or [name]
        return list(dict.fromkeys(found))


@dataclass(frozen=True)
class Declaration:
    """One registered dataset: its name, the reader of its files and the reader's options."""

    name: str
    reader: str = ""
    options: dict = field(default_factory=dict, hash=False)


@dataclass
class Found:
    """A registered file at hand, or its absence.

    `wanted` is the entry asked for, `entry` the one found: the same, or a part used in its place.
    `state` is verified, pinned (the digest was recorded when it was fetched, and nobody publishes
    another), unverified, other release, slices (`slices` hold a part of it each), sample, own or
    missing. `rows` are known once it was read.
    """

    wanted: Entry
    entry: Entry
    path: Path | None
    state: str
    rows: int | None = None
    slices: tuple[Path, ...] = ()

    @property
    def partial(self) -> bool:
        """Whether rows or columns of the official file are missing."""
        cut = self.state == "slices" and self.rows != self.wanted.rows
        return self.entry is not self.wanted or self.state == "missing" or cut

    @property
    def read(self) -> dict:
        """How to read it: as declared for the file, else for the file that it is part of."""
        return self.entry.read or self.wanted.read

    @property
    def other(self) -> bool:
        """Whether bytes or rows are not the registered ones."""
        if self.state in ("sample", "missing", "slices", "own"):
            return False
        differs = None not in (self.rows, self.entry.rows) and self.rows != self.entry.rows
        return differs or self.state == "other release"

    def read_rows(self, columns: Sequence[str] = (), **options) -> list[dict]:
        """Read the file and count its rows; see `ragkit.files.read_rows`."""
        rows = read_rows(self.path, columns, **options)
        self.rows = len(rows)
        return rows

    @property
    def extent(self) -> str:
        """How much of the wanted file this is, and what is known of its bytes, in words."""
        if self.state in ("sample", "missing"):
            return self.state
        words = []
        rows = self.entry.rows if self.rows is None else self.rows
        if self.partial:
            words.append(f"{rows:,} of {self.wanted.rows:,} rows")
            if rows == self.wanted.rows and self.entry.note:
                words[0] += f": {self.entry.note}"
        if self.other and rows != self.entry.rows:
            words.append(f"other release: {rows:,} rows instead of {self.entry.rows:,}")
        elif self.other:
            words.append("other release: not the registered bytes")
        elif self.state == "unverified":
            words.append(UNVERIFIED)
        return ", ".join(filter(None, [*words, self.entry.caveat])) or "complete"

    @property
    def provenance(self) -> dict[str, str]:
        """The file, its origin, extent, licence and note."""
        one = self.entry
        told = (one.path, one.origin, self.extent, one.licence, one.note)
        if self.state == "missing":
            told = (one.path, "", self.extent, "", "")
        elif self.state == "sample":
            told = (one.sample, "embedded sample", self.extent, "MIT", "")
        return dict(zip(("file", "origin", "extent", "licence", "note"), told, strict=True))


@cache
def _registry(path: Path) -> tuple[dict[str, Declaration], dict[str, Entry]]:
    try:
        rows = tomllib.loads(read_text(path)).get("dataset")
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path}: not a registry ({error})") from None
    if not isinstance(rows, list) or not rows:
        raise DataError(f"{path}: not a registry (expected [[dataset]] tables)")
    declared: dict[str, Declaration] = {}
    known: dict[str, Entry] = {}
    fields = set(Entry.__dataclass_fields__) - {"path", "dataset"}
    for row in rows:
        where = f"{path}: dataset {row.get('name')!r}"
        files = row.pop("file", ())
        shared = {name: row.pop(name) for name in fields & set(row)}
        try:
            dataset = Declaration(**row)
            entries = [Entry(**{"dataset": dataset.name, **shared, **file}) for file in files]
        except TypeError as error:  # "Entry.__init__() got an unexpected keyword argument 'sha'"
            raise DataError(f"{where}: a table {str(error).partition('() ')[2]}") from None
        if declared.setdefault(dataset.name, dataset) is not dataset:
            raise DataError(f"{where} is there twice")
        for one in entries:
            if known.setdefault(one.path, one) is not one:
                raise DataError(f"{where} repeats the path {one.path!r}")
    for one in known.values():
        if problem := _problem(one, known):
            raise DataError(f"{path}: {one.path}: {problem}")
    return declared, known


def _problem(one: Entry, known: dict[str, Entry]) -> str:
    """Return what is wrong with an entry, in words."""
    path, whole = Path(one.path), known.get(one.part_of)
    problems = {
        "the path leaves the data folder": path.is_absolute() or ".." in path.parts,
        "sha256 is not 64 lower-case hexadecimal digits": one.sha256
        and not re.fullmatch(r"[0-9a-f]{64}", one.sha256),
        "sha256 comes without bytes": one.sha256 and not one.bytes,
        f"part of the unknown {one.part_of!r}": one.part_of and whole is None,
        "a part, and what it is part of, need their rows": whole and not (one.rows and whole.rows),
    }
    return next((words for words, wrong in problems.items() if wrong), "")


def declared() -> dict[str, Declaration]:
    """Return the registered datasets by name.

    >>> declared()["wixqa"].name
    'wixqa'
    """
    return _registry(paths.REGISTRY)[0]


def entries(registry: Path = paths.REGISTRY) -> dict[str, Entry]:
    """Return the registered files by path; `DataError` if the registry is malformed.

    >>> file = entries()["wixqa/wixqa_expertwritten/test.jsonl"]
    >>> file.dataset, file.rows
    ('wixqa', 200)
    """
    return _registry(registry)[1]


def entry(path: str) -> Entry:
    """Return the registered file of that path.

    >>> entry("wixqa/wixqa_expertwritten/test.jsonl").rows
    200
    """
    return entries()[checks.choice(path, "registered file", entries())]


def files(name: str) -> list[Entry]:
    """Return the files that a dataset is read from, without those that stand in for a part.

    >>> [file.path for file in files("liverag")]
    ['liverag/LiveRAG_banchmark_20250910.parquet']
    """
    known = entries().values()
    return [file for file in known if file.dataset == name and file.read and file.official]


class Store:
    """The files at hand.

    `data` is a data folder, `$RAGKIT_DATA` if not given; the cache of fetched files is searched
    after it. Raises `MissingData` if the named folder does not exist.
    """

    def __init__(self, data: str | os.PathLike | None = None):
        named = data if data else os.environ.get("RAGKIT_DATA")
        if named and not Path(named).is_dir():
            raise MissingData(f"{named}: no such data folder", "give an existing one as DATA=...")
        self.folders = [Path(named).resolve()] if named else []
        if paths.cache_dir().is_dir():
            self.folders.append(paths.cache_dir())

    def find(self, path: str) -> Found | None:
        """Return the file registered as `path`, a part that stands in for it, or None.

        The official file comes first; of several parts the one with most rows. Raises
        `HashMismatch` if a file lies at that path which is cut or damaged, or was changed since it
        was fetched, and the right bytes are nowhere.
        """
        wanted = entry(path)
        parts = [other for other in entries().values() if other.part_of == path]
        for candidate in [wanted, *sorted(parts, key=lambda part: -(part.rows or 0))]:
            if located := self._locate(candidate):
                return Found(wanted, candidate, *located)
        return None

    def find_slices(self, wanted: Entry) -> Found | None:
        """Return the files at hand that hold a part of a file each; one in two folders counts once."""
        slices = {}
        for folder in reversed(self.folders if "slices" in wanted.read else []):
            slices |= {path.name: path for path in folder.glob(wanted.read["slices"])}
        if not slices:
            return None
        files = tuple(slices[name] for name in sorted(slices))
        return Found(wanted, wanted, files[0].parent, "slices", slices=files)

    def need(self, path: str) -> Found:
        """Return what `find` finds, or raise `MissingData` with the command that gets it."""
        if found := self.find(path):
            return found
        wanted = entry(path)
        hint = f"{wanted.fetch_command}, or name a folder that has it as DATA=..."
        if not wanted.url:
            hint = f"it cannot be fetched ({wanted.origin}): name a folder that has it"
        raise MissingData(f"{path} is not here", hint)

    def _locate(self, wanted: Entry) -> tuple[Path, str] | None:
        others = []
        for path in filter(Path.is_file, (folder / wanted.path for folder in self.folders)):
            state = _state(path, wanted)
            if state not in ("changed", "other release"):
                return path, state
            others.append((path, state))
        for path in self._by_size.get(wanted.bytes, []) if wanted.sha256 else ():
            if sha256(path) == wanted.sha256:
                return path, "verified"
        if others:
            _refuse_damaged(*others[0], wanted)
        return others[0] if others else None

    @cached_property
    def _by_size(self) -> dict[int, list[Path]]:
        found: dict[int, list[Path]] = {}
        for folder in self.folders:
            for path in filter(Path.is_file, sorted(folder.rglob("*"))):
                found.setdefault(path.stat().st_size, []).append(path)
        return found


def _state(path: Path, wanted: Entry) -> str:
    """Return what the digests say of a file at its registered path."""
    pin = read_pin(path)
    if not (pin or wanted.sha256):
        return "unverified"
    found = sha256(path)
    if pin and found != pin["sha256"] and found != wanted.sha256:
        return "changed"
    if wanted.sha256:
        return "verified" if found == wanted.sha256 else "other release"
    return "verified" if pin.get("published") else "pinned"


def _refuse_damaged(path: Path, state: str, wanted: Entry) -> None:
    """Raise `HashMismatch` unless a file with unregistered bytes is whole."""
    why = "changed since it was fetched"
    if state != "changed":
        try:
            count_rows(path, wanted, thorough=True)
            return
        except DataError as error:
            why = f"cut or damaged, {error.message.removeprefix(f'{path}: ')}"
    expected = read_pin(path).get("sha256") or wanted.sha256
    why += f" (sha256 {sha256(path)[:12]}..., expected {expected[:12]}..."
    if wanted.bytes:
        why += f", {path.stat().st_size:,} bytes instead of {wanted.bytes:,}"
    hint = f"replace it by the file of {wanted.origin}"
    if wanted.url:
        hint = f"delete it and run: {wanted.fetch_command}"
    raise HashMismatch(f"{path}: {why})", hint)


def count_rows(path: Path, wanted: Entry, *, thorough: bool = False) -> int:
    """Read a file of a registered format to its end and return how many rows it has.

    `thorough` checks every byte of an archive, not only its list of entries. Raises `DataError` if
    the file is cut or damaged, or lacks a column that its reader needs.
    """
    if path.suffix == ".zip":
        with opened_zip(path) as archive:
            if thorough and (bad := archive.testzip()):
                raise DataError(f"{path}: the entry {bad} is damaged")
            names = archive.namelist()
            if documents := sum(name.endswith(".txt") for name in names):
                return documents  # beside the questions, which the release has in there too
            texts = [archive.read(name) for name in names if name.endswith(".jsonl")]
        return sum(bool(line.strip()) for text in texts for line in text.split(b"\n"))
    rows = read_rows(path, wanted.columns())
    shorter = thorough and path.stat().st_size < (wanted.bytes or 0)
    if shorter and path.suffix in (".csv", ".tsv") and not path.read_bytes().endswith(b"\n"):
        raise DataError(f"{path}: the last line has no end")
    return len(rows)


def pin_path(path: Path) -> Path:
    """Return where the digest of a fetched file without a registered one is kept."""
    return path.with_name(path.name + ".pin.json")


def read_pin(path: Path) -> dict:
    """Return what was recorded when a file was fetched, or an empty dict; `DataError` if damaged."""
    at = pin_path(path)
    if not at.is_file():
        return {}
    pin = read_json(at)
    if not isinstance(pin, dict) or not isinstance(pin.get("sha256"), str):
        raise DataError(f"{at}: expected an object with sha256", f"delete it and {path.name}")
    return pin
