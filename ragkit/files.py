"""Files in and out: every reader names file, line and column; every writer is atomic."""

from __future__ import annotations

import csv
import errno
import gzip
import hashlib
import io
import json
import math
import os
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ragkit.errors import DataError, MissingData, did_you_mean

csv.field_size_limit(1 << 28)

# What a disk says that cannot take more: such an error names no file.
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)


@contextmanager
def atomic_path(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary path beside `path`; move it there if the block succeeds.

    After an exception (a full disk, Ctrl-C) the temporary file is removed and what stood at
    `path` before is untouched.

    Raises
    ------
    OSError
        If the folder or the disk does not take the file; its `filename` is `path`.
    """
    path = Path(path)
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix
        )
        temporary = Path(name)
        os.close(handle)
        yield temporary
        # mkstemp makes the file private; a result should be as readable as any other file.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        os.replace(temporary, path)
    except OSError as error:
        # An error about another file, raised inside the block, is not ours to explain.
        if temporary and error.errno not in _DISK and error.filename != str(temporary):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        if temporary:
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
        If the file cannot be read, the gzip stream ends early or is damaged, or the bytes are not
        UTF-8 (with the line).
    """
    path = Path(path)
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise MissingData(f"{path}: no such file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    if path.suffix == ".gz":
        try:
            if not raw:
                raise EOFError("no bytes")
            raw = gzip.decompress(raw)
        except (EOFError, OSError, ValueError, zlib.error) as error:
            raise DataError(f"{path}: the gzip stream is cut short or damaged ({error})") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The codec counts from behind a byte-order mark, in its own copy of the bytes.
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}: line {line} is not UTF-8 (byte 0x{error.object[error.start]:02x})",
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
        row = _parse(line, path, number)
        if not isinstance(row, dict):
            raise DataError(f"{path}: line {number}: expected an object, found {_kind(row)}")
        require(row, columns, f"{path}: line {number}")
        rows.append(row)
    if not rows:
        raise DataError(f"{path}: no rows")
    return rows


def read_json(path: str | os.PathLike):
    """Return the value of a JSON file."""
    return _parse(read_text(path), path, 1)


def read_table(
    path: str | os.PathLike,
    columns: Sequence[str] = (),
    *,
    delimiter: str | None = None,
    numbers: Sequence[str] | None = (),
) -> list[dict]:
    """Return the rows of a CSV or TSV file as strings, each holding at least `columns`.

    Parameters
    ----------
    path : path-like
    columns : sequence of str
    delimiter : str, optional
        Follows from the name (`.tsv`, `.csv`, either gzipped) unless it is given.
    numbers : sequence of str, or None
        Columns to return as finite floats, NaN for an empty cell; None stands for all.

    Raises
    ------
    DataError
        With file, line and column, if a column is missing or repeated, a row has too few or too
        many values, or a value is no number where one was expected.
    """
    path = Path(path)
    if delimiter is None:
        delimiter = "\t" if ".tsv" in path.suffixes else ","
    # Strict, so that a quotation mark left open does not swallow the rest of the file.
    reader = csv.reader(io.StringIO(read_text(path), newline=""), delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
        if not header:
            raise DataError(f"{path}: no header in line 1")
        repeated = [name for name in header if header.count(name) > 1]
        if repeated:
            raise DataError(f"{path}: line 1: the column {repeated[0]!r} stands there twice")
        require(dict.fromkeys(header), columns, f"{path}: line 1")
        rows = []
        for values in reader:
            if not values:
                continue
            if len(values) != len(header):
                raise DataError(
                    f"{path}: line {reader.line_num}: expected {len(header)} columns, "
                    f"found {len(values)}"
                )
            row = dict(zip(header, values, strict=True))
            for column in header if numbers is None else numbers:
                row[column] = _number(row[column], f"{path}: line {reader.line_num}: {column}")
            rows.append(row)
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num}: {error}") from None
    if not rows:
        raise DataError(f"{path}: no rows")
    return rows


def require(row: dict, columns: Sequence[str], where: str) -> None:
    """Raise `DataError` if a row lacks a column, and name the nearest that it has."""
    for column in columns:
        if column not in row:
            hint = did_you_mean(column, row) if row else f"expected {', '.join(columns)}"
            raise DataError(f"{where}: no column {column!r}", hint)


def _parse(text: str, path, line: int):
    """Return a JSON value whose first line is the given one of the file."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{path}: line {line + error.lineno - 1}, column {error.colno}: "
            f"not valid JSON ({error.msg})"
        ) from None
    except (ValueError, RecursionError) as error:
        # Numbers of thousands of digits, or brackets nested as deep.
        raise DataError(f"{path}: line {line}: JSON that cannot be read ({error})") from None


def _number(text: str, where: str) -> float:
    if not text.strip():
        return math.nan
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"{where}: expected a number, found {text!r}")
    return value


def _kind(value) -> str:
    names = {list: "a list", str: "a string", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
