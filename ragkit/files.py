"""Files in and out: every reader names file, line and column; every writer is atomic."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ragkit.errors import DataError, MissingData, did_you_mean

csv.field_size_limit(1 << 28)


@contextmanager
def atomic_path(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary path beside `path`; move it there if the block succeeds.

    After an exception (a full disk, Ctrl-C) the temporary file is removed and what stood at
    `path` before is untouched.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes the file private; a result should be as readable as any other file.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike, text: str) -> Path:
    """Write `text` as UTF-8 with unix line ends, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))
    return Path(path)


def sha256(path: str | os.PathLike) -> str:
    """Return the SHA-256 of a file's bytes as 64 lower-case hexadecimal digits."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_text(path: str | os.PathLike) -> str:
    """Return the text of a UTF-8 file, which may be gzipped (`.gz`).

    Raises
    ------
    MissingData
        If there is no such file.
    DataError
        If the gzip stream ends early or is damaged, or the bytes are not UTF-8 (with the line).
    """
    path = Path(path)
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise MissingData(f"{path}: no such file") from None
    if path.suffix == ".gz":
        try:
            raw = gzip.decompress(raw)
        except (EOFError, OSError, ValueError, zlib.error) as error:
            raise DataError(f"{path}: the gzip stream is cut short or damaged ({error})") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}: line {line} is not UTF-8 (byte 0x{raw[error.start]:02x})",
            "convert the file to UTF-8",
        ) from None


def read_jsonl(path: str | os.PathLike, columns: Sequence[str] = ()) -> list[dict]:
    """Return the objects of a JSON-lines file, each holding at least `columns`.

    Raises
    ------
    DataError
        With file, line and column, if a line is no JSON object or lacks a column.
    """
    rows = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(
                f"{path}: line {number}, column {error.colno}: not valid JSON ({error.msg})"
            ) from None
        if not isinstance(row, dict):
            raise DataError(f"{path}: line {number}: expected an object, found {_kind(row)}")
        _require(row, columns, f"{path}: line {number}")
        rows.append(row)
    if not rows:
        raise DataError(f"{path}: no rows")
    return rows


def read_json(path: str | os.PathLike):
    """Return the value of a JSON file."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise DataError(
            f"{path}: line {error.lineno}, column {error.colno}: not valid JSON ({error.msg})"
        ) from None


def read_table(
    path: str | os.PathLike, columns: Sequence[str] = (), *, delimiter: str | None = None
) -> list[dict[str, str]]:
    """Return the rows of a CSV or TSV file as strings, each holding at least `columns`.

    The delimiter follows from the name (`.tsv`, `.csv`, either gzipped) unless it is given.
    """
    path = Path(path)
    if delimiter is None:
        delimiter = "\t" if ".tsv" in path.suffixes else ","
    reader = csv.reader(io.StringIO(read_text(path), newline=""), delimiter=delimiter)
    try:
        header = next(reader, [])
        _require(dict.fromkeys(header), columns, f"{path}: line 1")
        rows = []
        for values in reader:
            if not values:
                continue
            if len(values) != len(header):
                raise DataError(
                    f"{path}: line {reader.line_num}: expected {len(header)} columns, "
                    f"found {len(values)}"
                )
            rows.append(dict(zip(header, values, strict=True)))
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num}: {error}") from None
    if not rows:
        raise DataError(f"{path}: no rows")
    return rows


def _require(row: dict, columns: Sequence[str], where: str) -> None:
    for column in columns:
        if column not in row:
            raise DataError(f"{where}: no column {column!r}", did_you_mean(column, row))


def _kind(value) -> str:
    names = {list: "a list", str: "a string", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
