"""Read and write files: every reader names file, line and column; every writer is atomic.

`read_rows` reads rows of any format: JSON lines, JSON, CSV, TSV or Parquet, each of the text formats
also gzipped. `read_frame` is the one reader of users' files; it also reads the released archive of
EnterpriseRAG-Bench and the released Parquet file of LiveRAG. `ragkit.schema` has the columns and the
other names for them. What a compressed file may hold is bounded by its size.
"""

from __future__ import annotations

import csv
import errno
import fcntl
import gzip
import hashlib
import io
import json
import lzma
import math
import os
import sqlite3
import tempfile
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ragkit import schema
from ragkit.errors import DataError, MissingData, RagkitError, UsageError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

csv.field_size_limit(1 << 28)

MAX_BYTES = 4 * 2**30  # of a file's text once it is decompressed
# A compressed file may hold that many times its own bytes, and small ones this much.
RATIO, SMALL = 100, 128 * 2**20

# The errors of a disk that takes no more bytes; they name no file.
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)


def write_ahead(base: sqlite3.Connection, seconds: float) -> None:
    """Put an SQLite file into WAL mode, waiting for other processes that do the same.

    SQLite itself does not wait there, whatever the timeout of the connection. It raises
    `sqlite3.OperationalError` if the file stays locked for so many seconds.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            base.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.02)


@contextmanager
def atomic_path(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a temporary path beside `path`; move it there if the block succeeds.

    After an exception (a full disk, Ctrl-C) the temporary file is removed and what stood at
    `path` before is untouched. Raises `OSError`, whose `filename` is `path`, if the folder or the
    disk does not take the file.
    """
    path, temporary, handle = Path(path), None, None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(path.suffix, f".tmp-{path.stem}-", path.parent)
        temporary = Path(name)
        with suppress(OSError):  # a disk without locks
            fcntl.flock(handle, fcntl.LOCK_EX)  # until it is written: see `remove_temporary`
        yield temporary
        # mkstemp makes the file private; a result should be as readable as any other file.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        os.replace(temporary, path)
    except OSError as error:
        # An error about another file, raised inside the block, is left as it is.
        if temporary and error.errno not in _DISK and error.filename != str(temporary):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        if temporary:
            temporary.unlink(missing_ok=True)
            os.close(handle)


def remove_temporary(folder: str | os.PathLike) -> None:
    """Remove the temporary files of `atomic_path` below a folder whose writers were killed."""
    for path in Path(folder).rglob(".tmp-*"):
        with suppress(OSError), open(path, "rb") as stream:  # one of another process is locked
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


@contextmanager
def held(folder: str | os.PathLike, name: str = "") -> Iterator[None]:
    """Hold a folder, or one name in it, for this process until the block or the process ends.

    Raises `RagkitError`, which names the other process, if one holds it; `UsageError` for a file.
    """
    path, new = Path(folder) / f".tmp-{name}.lock", not Path(folder).exists()
    if Path(folder).is_file():
        raise UsageError(f"{folder} is a file, not a folder")
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            taken = not os.fstat(stream.fileno()).st_nlink  # its holder ended just now
        except BlockingIOError:
            taken = True
        except OSError:  # a disk without locks
            taken = False
        if taken:
            stream.seek(0)
            who, place = stream.read() or "that has just begun", Path(folder) / name
            hint = "wait until it has ended, or choose another place"
            raise RagkitError(f"{place}: the process {who} is writing there", hint)
        stream.truncate(0)
        stream.write(str(os.getpid()))
        stream.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            if new:
                with suppress(OSError):  # it holds something by now
                    path.parent.rmdir()


def write_text(path: str | os.PathLike, text: str) -> Path:
    """Write `text` as UTF-8 with unix line ends, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))
    return Path(path)


def sha256(path: str | os.PathLike) -> str:
    """Return the SHA-256 of a file's bytes as 64 lower-case hexadecimal digits."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def most_bytes(path: str | os.PathLike) -> int:
    """Return how many bytes a compressed file may hold; more is taken for a damaged or hostile file."""
    return min(MAX_BYTES, max(SMALL, RATIO * Path(path).stat().st_size))


def read_text(path: str | os.PathLike) -> str:
    """Return the text of a UTF-8 file, which may be compressed (`.gz`, `.xz`).

    Raises `MissingData` if there is no such file, and `DataError` if it cannot be read, the
    compressed stream is cut or damaged, the text is larger than `MAX_BYTES` or `most_bytes`, or the
    bytes are not UTF-8 (with the line).
    """
    path = Path(path)
    opened = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    zipped = opened is not open
    try:
        most = most_bytes(path) if zipped else MAX_BYTES
        with opened(path, "rb") as stream:
            raw = stream.read(most + 1)
        if zipped and not raw and not path.stat().st_size:
            raise EOFError("no bytes")
    except FileNotFoundError:
        raise MissingData(f"{path}: no such file") from None
    except (EOFError, ValueError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
        kind = "xz" if path.suffix == ".xz" else "gzip"
        raise DataError(f"{path}: the {kind} stream is cut short or damaged ({error})") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    if len(raw) > most:
        raise DataError(f"{path}: more than {most:,} bytes of text", "split it into smaller files")
    return _decode(raw, str(path))


def _decode(raw: bytes, where: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The codec counts from behind a byte-order mark, in its own copy of the bytes.
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{where}: line {line} is not UTF-8 (byte 0x{error.object[error.start]:02x})",
            "convert the file to UTF-8",
        ) from None


def read_json(path: str | os.PathLike):
    """Return the value of a JSON file.

    Raises `DataError`, with line and column, if the text is not JSON, holds NaN or an infinite
    number, repeats a key of an object, or holds half of a surrogate pair.
    """
    text = read_text(path)
    with named(path):
        return _parse(text, 1)


def read_jsonl(path: str | os.PathLike, columns: Sequence[str] = ()) -> list[dict]:
    """Return the objects of a file of JSON lines, whatever its name ends in; see `read_rows`."""
    return _listed(path, json_lines(read_text(path)), columns)


def write_jsonl(path: str | os.PathLike, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Write one JSON object a line by way of `write_text`."""
    return write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def read_rows(
    path: str | os.PathLike,
    columns: Sequence[str] = (),
    *,
    numbers: Sequence[str] | None = (),
) -> list[dict]:
    """Return the rows of a JSON-lines, JSON, CSV, TSV or Parquet file.

    The ending names the format, perhaps before `.gz`. A JSON file holds a list of objects, or an
    object whose lists of objects are joined. The values of CSV and TSV are strings. Each row has to
    have `columns`; `numbers` are returned as finite floats, NaN for an empty cell; None: all.

    Raises `MissingData` if there is no such file, and `DataError`, with file, line and column, if
    it has another ending, is cut or damaged, or has no rows; a column is missing or repeated, a row
    has too few or too many values, or a value is no number. For JSON see `read_json`.
    """
    return _listed(path, _located(path, columns), columns, numbers)


def read_frame(
    path: str | os.PathLike,
    kind: str,
    *,
    only: Container[str] | None = None,
    bad: list[dict] | None = None,
    metric: str | None = None,
) -> pd.DataFrame:
    """Read a user's documents, questions, answers, runs or scores, the `kind`.

    The file has a format of `read_rows`; documents may also be the released archive of
    EnterpriseRAG-Bench (`.zip`). `only` are the ids of the documents to read; `bad` collects bad
    rows as {"line", "reason"} instead of raising an error for the first; `metric` is the one to
    keep of scores with a column `metric`.

    Returns a frame with the columns of `ragkit.schema`, see `ragkit.schema.complete`; further
    columns are kept, but not `metric`. Answers without a system get the file's name.
    `attrs["given"]` has the names of the columns that a row of the file gives.

    Raises `MissingData` if there is no such file, `DataError`, with file, line and column, if a row
    is not what it should be, `UsageError` if scores of several metrics lack the one that is named.

    >>> path = write_text("questions.csv", "id,question\\nq1,Where?\\n")
    >>> read_frame(path, "questions")[["question_id", "text"]]
      question_id    text
    0          q1  Where?
    """
    import pandas as pd

    path, keys = Path(path), schema.KEYS[kind]
    if kind == "scores":
        with named(path), suppress(DataError):  # read by rows below, to name the line
            if (plain := _plain_table(path, kind)) is not None:
                return schema.check(_one_metric(plain, metric), kind)
    archive = kind == "documents" and path.suffix == ".zip"
    rows, places, given, texts = [], {}, set(), {}
    with named(path):
        located = read_archive(path, only=only) if archive else _located(path, bad=bad)
        for position, (place, raw) in enumerate(located, start=1):
            try:
                for row in schema.released(raw, kind, position, texts):
                    given.update(name for name, value in row.items() if value is not None)
                    row = schema.complete(row, kind, path.name.partition(".")[0])
                    key = (*map(row.get, keys), str(row.get("metric")))
                    if key in places:
                        words = ", ".join(f"{name} {row[name]!r}" for name in keys)
                        raise DataError(f"{words} was in {places[key]} before")
                    places[key] = place
                    if only is None or row["doc_id"] in only:
                        rows.append(row)
            except DataError as error:
                _bad(place, error, bad)
        if not rows:
            raise DataError(bad[0]["reason"] if bad else "no rows")
        frame = pd.DataFrame(rows)
        if kind == "scores":
            frame = _one_metric(frame, metric)
    frame.attrs["given"] = given.union(*(schema.names((n,), kind).values() for n in given))
    return schema.check(frame, kind, str(path))


def _plain_table(path: Path, kind: str) -> pd.DataFrame | None:
    """Read a CSV or TSV file without quotation marks by columns, or return None.

    Millions of rows take a second. None unless reading by rows is certain to give the same frame.
    """
    import pyarrow
    from pyarrow import csv as tables

    ending = Path(path.name.removesuffix(".gz")).suffix
    if ending not in (".csv", ".tsv"):
        return None
    text, separator = read_text(path), "\t" if ending == ".tsv" else ","
    header = text[: text.find("\n")].rstrip("\r").split(separator)
    other = schema.names(tuple(header), kind)
    columns = [other.get(name, name) for name in header]
    odd = any(mark in text for mark in '"\0') or text.count("\r") != text.count("\r\n")
    if odd or len(set(columns)) < len(header) or not set(schema.COLUMNS[kind]) <= set(columns):
        return None
    numbers = schema.NUMBERS[kind]
    types = {n: pyarrow.float64() if n in numbers else pyarrow.string() for n in columns}
    try:
        table = tables.read_csv(
            pyarrow.py_buffer(text.encode()),
            tables.ReadOptions(column_names=columns, skip_rows=1),
            tables.ParseOptions(delimiter=separator, quote_char=False),
            tables.ConvertOptions(column_types=types, null_values=[], strings_can_be_null=False),
        )
    except pyarrow.ArrowInvalid:
        return None
    frame = table.to_pandas()
    finite = frame[list(numbers)].abs().lt(math.inf).all(axis=None)
    keys = [name for name in (*schema.KEYS[kind], "metric") if name in columns]
    if not len(frame) or not finite or frame.duplicated(keys).any():
        return None
    frame.attrs["given"] = {*header, *columns}
    return frame


def _one_metric(frame: pd.DataFrame, metric: str | None) -> pd.DataFrame:
    if "metric" not in frame:
        if metric is None:
            return frame
        raise UsageError(f"no column 'metric' to find {metric!r} in")
    frame["metric"] = frame["metric"].astype(str)
    known = list(dict.fromkeys(frame["metric"]))
    if metric is None and len(known) > 1:
        raise UsageError(
            f"the scores are of {len(known)} metrics: {', '.join(known)}",
            f"choose one, such as --metric {known[0]} (metric={known[0]!r})",
        )
    if metric is not None and metric not in known:
        raise UsageError(f"no scores of the metric {metric!r}", did_you_mean(metric, known))
    frame = frame[frame["metric"] == (known[0] if metric is None else metric)]
    return frame.drop(columns="metric").reset_index(drop=True)


def read_archive(
    *archives: str | os.PathLike, only: Container[str] | None = None
) -> Iterator[tuple[str, dict]]:
    """Yield the names and documents of EnterpriseRAG-Bench's released archives, in their order.

    A document has doc_id, source, title, text (its name if it is empty) and path; `only` names
    those to read. The release has ids of two files: the second is called ID~2. Raises `DataError`
    as `zip_texts`; also if an entry is not called SOURCE/.../DOCID__NAME.txt.
    """
    wanted = bool if only is None else lambda name: name.split("/")[-1].split("__")[0] in only
    copies: Counter[str] = Counter()
    texts = ((path, *entry) for path in archives for entry in zip_texts(path, ".txt", wanted))
    for path, name, text in texts:
        parts = PurePosixPath(name).parts
        doc_id, separator, slug = parts[-1].partition("__")
        sources = [part for part in parts if part in schema.SOURCES]
        if not separator or not sources:
            known = ", ".join(schema.SOURCES)
            words = f"expected SOURCE/.../DOCID__NAME.txt with a source of {known}"
            raise DataError(f"{path}: {name}: {words}")
        copies[doc_id] += 1
        doc_id += f"~{copies[doc_id]}" if copies[doc_id] > 1 else ""
        title, _, content = (part.strip() for part in text.partition("\n"))
        row = {"doc_id": doc_id, "source": sources[0], "title": title, "path": name}
        yield name, row | {"text": content or title or slug.removesuffix(".txt")}


def zip_texts(
    path: str | os.PathLike, ending: str, wanted: Callable[[str], bool] = bool
) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of the entries of an archive that have an ending, in its order.

    Raises `MissingData` if there is no such file, and `DataError` if it is not a readable zip file,
    holds more than `most_bytes`, has no entry with that ending, or one is not UTF-8.
    """
    with opened_zip(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(ending)]
        if not names:
            raise DataError(f"{path}: no documents, expected entries that end in {ending}")
        for name in filter(wanted, names):
            yield name, _decode(archive.read(name), f"{path}: {name}")


@contextmanager
def opened_zip(path: str | os.PathLike) -> Iterator[zipfile.ZipFile]:
    """Open an archive; what is wrong with it is a `MissingData` or `DataError`."""
    try:
        with zipfile.ZipFile(path) as archive:
            # No entry is read beyond the size that the list of entries states.
            if sum(entry.file_size for entry in archive.infolist()) > most_bytes(path):
                raise DataError(f"{path}: more than {most_bytes(path):,} bytes once unpacked")
            yield archive
    except FileNotFoundError:
        raise MissingData(f"{path}: no such file") from None
    # The others: names, flags and methods that no zip file has.
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: a damaged or incomplete zip file ({error})") from None


def require(row: dict, columns: Sequence[str], where: str) -> None:
    """Raise `DataError` if a row lacks a column, and name the nearest that it has."""
    for column in columns:
        if column not in row:
            hint = did_you_mean(column, row) if row else f"expected {', '.join(columns)}"
            raise DataError(f"{where}: no column {column!r}", hint)


# ------------------------------------------------------------------------------- rows by format


@contextmanager
def named(path) -> Iterator[None]:
    """Put the file's name in front of an error's message."""
    try:
        yield
    except (DataError, UsageError) as error:
        if error.message.startswith(str(path)):
            raise
        raise type(error)(f"{path}: {error.message}", error.hint) from None


def _bad(place: str, error: DataError, bad: list[dict] | None) -> None:
    """Raise the error of a row with its place, or collect it."""
    message = error.message if place in error.message else f"{place}: {error.message}"
    if bad is None:
        raise DataError(message, error.hint) from None
    line = place.rpartition(" ")[2]
    bad.append({"line": int(line) if line.isdigit() else 0, "reason": message})


def _listed(
    path, located: Iterable[tuple[str, dict]], columns: Sequence[str], numbers=()
) -> list[dict]:
    rows = []
    with named(path):
        for place, row in located:
            require(row, columns, place)
            for column in row if numbers is None else numbers:
                row[column] = schema.number(row[column], f"{place}: {column}")
            rows.append(row)
        if not rows:
            raise DataError("no rows")
    return rows


def _located(
    path: str | os.PathLike, columns: Sequence[str] = (), bad: list[dict] | None = None
) -> Iterator[tuple[str, dict]]:
    """Yield the rows of a file with their places in it, such as "line 3"."""
    path = Path(path)
    ending = Path(path.name.removesuffix(".gz")).suffix
    if ending == ".jsonl":
        yield from json_lines(read_text(path), bad)
    elif ending == ".json":
        value = read_json(path)
        for name, rows in value.items() if isinstance(value, dict) else [("", value)]:
            for number, row in enumerate(rows if isinstance(rows, list) else (), start=1):
                place = f"{name}: row {number}" if name else f"row {number}"
                yield place, _object(row, place)
    elif ending in (".csv", ".tsv"):
        yield from table_lines(read_text(path), "\t" if ending == ".tsv" else ",", columns)
    elif ending == ".parquet":
        yield from ((f"row {number}", row) for number, row in enumerate(_parquet(path), start=1))
    else:
        raise DataError(
            f"no reader for {ending or 'a name without an ending'}",
            "expected .jsonl, .json, .csv, .tsv (each also with .gz) or .parquet",
        )


def _parquet(path: Path) -> Iterator[dict]:
    import pyarrow
    from pyarrow import parquet

    held = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(1024):
                held += batch.nbytes
                if held > most_bytes(path):
                    raise DataError(f"more than {most_bytes(path):,} bytes once unpacked")
                yield from batch.to_pylist()
    except FileNotFoundError:
        raise MissingData(f"{path}: no such file") from None
    except (OSError, pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not a readable parquet file ({error})") from None


def json_lines(text: str, bad: list[dict] | None = None) -> Iterator[tuple[str, dict]]:
    """Yield the objects of JSON lines with their places; `bad` is that of `read_frame`."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                row = _object(_parse(line, number), f"line {number}")
            except DataError as error:
                _bad(f"line {number}", error, bad)
            else:
                yield f"line {number}", row


def _object(value, place: str) -> dict:
    if not isinstance(value, dict):
        raise DataError(f"{place}: expected an object, found {value!r:.60}")
    return value


def table_lines(
    text: str, separator: str = ",", columns: Sequence[str] = ()
) -> Iterator[tuple[str, dict]]:
    """Yield the rows of CSV or TSV text with their places; see `read_rows`."""
    # Strict, so that a quotation mark left open does not swallow the rest of the file.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        header = next(reader, [])
        if not any(header):
            raise DataError("no header in line 1")
        for name in header:
            if header.count(name) > 1:
                raise DataError(f"line 1: the column {name!r} stands there twice")
        if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
            word = "tabs" if separator == "\t" else "commas"
            raise DataError(f"line 1: expected columns separated by {word}")
        require(dict.fromkeys(header), columns, "line 1")
        for values in reader:
            if values and len(values) != len(header):
                found = f"expected {len(header)} columns, found {len(values)}"
                raise DataError(f"line {reader.line_num}: {found}")
            if values:
                yield f"line {reader.line_num}", dict(zip(header, values, strict=True))
    except csv.Error as error:
        raise DataError(f"line {reader.line_num}: {error}") from None


def _parse(text: str, line: int):
    """Return a JSON value whose first line is the given one of the file."""
    try:
        value = json.loads(text, **_STRICT)
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        place = f"line {line + error.lineno - 1}, column {error.colno}"
        raise DataError(f"{place}: not valid JSON ({error.msg})") from None
    except UnicodeEncodeError:
        words = "half of a surrogate pair, which is not a character"
        raise DataError(f"line {line}: {words}") from None
    except (ValueError, RecursionError) as error:
        # Numbers of thousands of digits, or brackets nested as deep.
        raise DataError(f"line {line}: JSON that cannot be read ({error})") from None
    return value


def _no_constant(name: str):
    raise ValueError(f"{name} is not a number in JSON")


def _number(text: str) -> int | float:
    found = float(text)
    if not math.isfinite(found):
        raise ValueError(f"{text:.20}... is too large a number")
    return int(text) if text.removeprefix("-").isdigit() else found


def _distinct(pairs: list[tuple]) -> dict:
    row = dict(pairs)
    if len(row) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands there twice")
    return row


_STRICT = {"parse_constant": _no_constant, "object_pairs_hook": _distinct}
_STRICT |= {"parse_int": _number, "parse_float": _number}
