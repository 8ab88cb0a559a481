"""Read and write files: every reader names file, line and column; every writer is atomic.

`read_frame` and `read_scores` are the one reader of users' files: JSON lines, JSON, CSV, TSV or
Parquet, each of the text formats also gzipped, the released archive of EnterpriseRAG-Bench and the
released Parquet file of LiveRAG. `ragkit.schema` has the columns and the other names for them.
"""

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
import zipfile
import zlib
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ragkit import schema
from ragkit.errors import DataError, MissingData, UsageError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

csv.field_size_limit(1 << 28)

MAX_BYTES = 4 * 2**30  # of a file's text once it is decompressed

# The errors of a disk that takes no more bytes; they name no file.
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
        # An error about another file, raised inside the block, is left as it is.
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
        If the file cannot be read, the gzip stream is cut or damaged, the text is larger than
        `MAX_BYTES`, or the bytes are not UTF-8 (with the line).
    """
    path = Path(path)
    try:
        with open(path, "rb") as stream:
            raw = _decompress(path, stream) if path.suffix == ".gz" else stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise MissingData(f"{path}: no such file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    if len(raw) > MAX_BYTES:
        raise DataError(
            f"{path}: more than {MAX_BYTES:,} bytes of text", "split the file into smaller ones"
        )
    return _decode(raw, str(path))


def _decompress(path: Path, stream) -> bytes:
    try:
        with gzip.open(stream) as text:
            raw = text.read(MAX_BYTES + 1)
        if not raw and not path.stat().st_size:
            raise EOFError("no bytes")
    except (EOFError, OSError, ValueError, zlib.error) as error:
        raise DataError(f"{path}: the gzip stream is cut short or damaged ({error})") from None
    return raw


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

    Raises
    ------
    DataError
        With line and column, if the text is not JSON, holds NaN or an infinite number, repeats a
        key of an object, or holds half of a surrogate pair.
    """
    text = read_text(path)
    with _named(path):
        return _parse(text, 1)


def read_jsonl(path: str | os.PathLike, columns: Sequence[str] = ()) -> list[dict]:
    """Return the objects of a JSON-lines file, each holding at least `columns`.

    Raises
    ------
    DataError
        With file, line and column, if a line is not a JSON object (see `read_json`) or lacks a
        column.
    """
    return _listed(path, _json_lines(read_text(path)), columns)


def read_table(
    path: str | os.PathLike,
    columns: Sequence[str] = (),
    *,
    numbers: Sequence[str] | None = (),
) -> list[dict]:
    """Return the rows of a CSV or TSV file as strings, each holding at least `columns`.

    Parameters
    ----------
    path : path-like
        `.tsv` separates by tabs, every other name by commas.
    columns : sequence of str
    numbers : sequence of str, or None
        Columns to return as finite floats, NaN for an empty cell; None stands for all.

    Raises
    ------
    DataError
        With file, line and column, if a column is missing or repeated, a row has too few or too
        many values, or a value is not a number where one was expected.
    """
    with _named(path):
        header, lines = _table(path)
        require(dict.fromkeys(header), columns, "line 1")
        rows = []
        for line, values in lines:
            row = dict(zip(header, values, strict=True))
            for column in header if numbers is None else numbers:
                row[column] = _number(row[column], f"{line}: {column}")
            rows.append(row)
        if not rows:
            raise DataError("no rows")
    return rows


def read_rows(path: str | os.PathLike, columns: Sequence[str] = ()) -> list[dict]:
    """Return the rows of a JSON-lines, JSON, CSV, TSV or Parquet file.

    A JSON file holds a list of objects, or an object whose lists of objects are joined.

    Raises
    ------
    DataError
        As `read_jsonl` and `read_table`; also if the name has another ending.
    """
    return _listed(path, _located(path), columns)


def read_frame(
    path: str | os.PathLike,
    kind: str,
    *,
    only: Container[str] | None = None,
    bad: list[dict] | None = None,
) -> pd.DataFrame:
    """Read a user's documents, questions, answers or runs.

    Parameters
    ----------
    path : path-like
        `.jsonl`, `.json`, `.csv` or `.tsv` (each also with `.gz`) or `.parquet`. Documents may
        also be the released archive of EnterpriseRAG-Bench (`.zip`).
    kind : {"documents", "questions", "answers", "runs"}
    only : container of str, optional
        Read only the documents with these ids.
    bad : list of dict, optional
        Collect bad rows here, as {"line", "reason"}, instead of raising an error for the first.

    Returns
    -------
    DataFrame
        With the columns of `ragkit.schema`, other names translated (`schema.ALIASES`), ids as
        strings, what a row leaves open filled in (`schema.DEFAULTS`), further columns kept.
        Answers without a system get the file's name.

    Raises
    ------
    MissingData
        If there is no such file.
    DataError
        With file, line and column, if a row is not what it should be.
    """
    import pandas as pd

    path = Path(path)
    archive = kind == "documents" and path.suffix == ".zip"
    located = read_archive(path, only) if archive else _located(path, bad)
    rows, places = [], {}
    with _named(path):
        for place, row in schema.released(located, kind):
            try:
                row = schema.complete(row, kind, path.name.partition(".")[0])
                key = tuple(row[column] for column in schema.KEYS[kind])
                if key in places:
                    words = f"{schema.KEYS[kind][-1]} {key[-1]!r}"
                    raise DataError(f"{words} was in {places[key]} before")
                places[key] = place
                if only is None or row["doc_id"] in only:
                    rows.append(row)
            except DataError as error:
                _bad(place, error, bad)
        if not rows:
            raise DataError(bad[0]["reason"] if bad else "no rows")
    return schema.check(pd.DataFrame(rows), kind, str(path))


def read_scores(path: str | os.PathLike, *, metric: str | None = None) -> pd.DataFrame:
    """Read a user's scores, in any of the formats of `read_frame`.

    Parameters
    ----------
    path : path-like
    metric : str, optional
        The metric to keep of a file with a column `metric`; needed if it holds several.

    Returns
    -------
    DataFrame
        subject_id, item_id and score; further columns are kept, `metric` is not.

    Raises
    ------
    MissingData
        If there is no such file.
    DataError
        If a column is missing, or a score is missing, not a number or there twice; with the line.
    UsageError
        If the file holds several metrics and none is named, or not the one that is named.
    """
    import pandas as pd

    path = Path(path)
    with _named(path):
        if _format(path) in (".csv", ".tsv"):
            header, lines = _table(path)
            lines = list(lines)
            frame = pd.DataFrame([values for _, values in lines], columns=header, dtype=str)
        else:
            lines = list(_located(path))
            frame = pd.DataFrame([row for _, row in lines])
        if frame.empty:
            raise DataError("no rows")
        frame.index = [place for place, _ in lines]
        frame = frame.rename(columns=schema.names(frame.columns, "scores"))
        require(dict.fromkeys(frame.columns), schema.COLUMNS["scores"], "line 1")
        for column in ("subject_id", "item_id"):
            if pd.api.types.is_integer_dtype(frame[column]):
                frame[column] = frame[column].astype(str)
        numbers = frame["score"].map(_float).astype(float)
        wrong = ~numbers.abs().lt(math.inf) | frame["score"].map(lambda v: isinstance(v, bool))
        if wrong.any():
            place = wrong.idxmax()
            raise DataError(
                f"{place}: score should be a number, found {frame.at[place, 'score']!r}",
                "leave the row out if the score is missing: a missing score is not 0",
            )
        frame["score"] = numbers
        if "metric" in frame:
            frame = _one_metric(frame, metric)
        elif metric is not None:
            raise UsageError(f"{path}: no column 'metric' to find {metric!r} in")
        again = frame.duplicated(["subject_id", "item_id"])
        if again.any():
            row = frame.loc[again.idxmax()]
            words = f"subject_id {row['subject_id']!r}, item_id {row['item_id']!r}"
            raise DataError(f"{again.idxmax()}: {words} was there before")
    return schema.check(frame.reset_index(drop=True), "scores", str(path))


def _one_metric(frame: pd.DataFrame, metric: str | None) -> pd.DataFrame:
    known = list(dict.fromkeys(frame["metric"]))
    if metric is None and len(known) > 1:
        raise UsageError(
            f"the scores are of {len(known)} metrics: {', '.join(map(str, known))}",
            f"choose one, such as --metric {known[0]} (metric={known[0]!r})",
        )
    if metric is not None and metric not in known:
        raise UsageError(f"no scores of the metric {metric!r}", did_you_mean(metric, known))
    frame = frame[frame["metric"] == (known[0] if metric is None else metric)]
    return frame.drop(columns="metric")


def read_archive(
    path: str | os.PathLike, only: Container[str] | None = None
) -> Iterator[tuple[str, dict]]:
    """Yield the documents of EnterpriseRAG-Bench's released archive, in its order.

    Yields
    ------
    place : str
        The entry's name.
    document : dict
        doc_id, source, title, text and path.

    Raises
    ------
    MissingData
        If there is no such file.
    DataError
        If it is not a readable zip file, holds no document, or an entry has not the name of a
        document or is not UTF-8.
    """
    found = False
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                name = info.filename
                if info.is_dir() or not name.endswith(".txt"):
                    continue
                found = True
                doc_id = name.rpartition("/")[2].partition("__")[0]
                if only is None or doc_id in only:
                    with _named(path):
                        yield (
                            name,
                            schema.released_document(name, _decode(archive.read(info), name)),
                        )
    except FileNotFoundError:
        raise MissingData(f"{path}: no such file") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
        raise DataError(f"{path}: a damaged or incomplete zip file ({error})") from None
    except (RuntimeError, NotImplementedError) as error:
        raise DataError(f"{path}: a zip file of an unknown kind ({error})") from None
    if not found:
        raise DataError(f"{path}: no documents, expected entries SOURCE/.../DOCID__NAME.txt")


def read_json_lines(raw: bytes, where: str) -> Iterator[tuple[str, dict]]:
    """Yield the objects of JSON lines, such as those of an archive's entry, with their places."""
    with _named(where):
        yield from _json_lines(_decode(raw, where))


def require(row: dict, columns: Sequence[str], where: str) -> None:
    """Raise `DataError` if a row lacks a column, and name the nearest that it has."""
    for column in columns:
        if column not in row:
            hint = did_you_mean(column, row) if row else f"expected {', '.join(columns)}"
            raise DataError(f"{where}: no column {column!r}", hint)


# ------------------------------------------------------------------------------- rows by format


@contextmanager
def _named(path) -> Iterator[None]:
    """Put the file's name in front of an error's message."""
    try:
        yield
    except (DataError, UsageError) as error:
        if error.message.startswith(str(path)):
            raise
        raise type(error)(f"{path}: {error.message}", error.hint) from None


def _format(path: Path) -> str:
    return Path(path.name.removesuffix(".gz")).suffix


def _bad(place: str, error: DataError, bad: list[dict] | None) -> None:
    """Raise the error of a row with its place, or collect it."""
    message = error.message if place in error.message else f"{place}: {error.message}"
    if bad is None:
        raise DataError(message, error.hint) from None
    line = place.rpartition(" ")[2]
    bad.append({"line": int(line) if line.isdigit() else 0, "reason": message})


def _listed(path, located: Iterator[tuple[str, dict]], columns: Sequence[str]) -> list[dict]:
    rows = []
    with _named(path):
        for place, row in located:
            require(row, columns, place)
            rows.append(row)
        if not rows:
            raise DataError("no rows")
    return rows


def _located(path: str | os.PathLike, bad: list[dict] | None = None) -> Iterator[tuple[str, dict]]:
    """Yield the rows of a file with their places in it, such as "line 3"."""
    path = Path(path)
    ending = _format(path)
    if ending == ".jsonl":
        yield from _json_lines(read_text(path), bad)
    elif ending == ".json":
        yield from _json_lists(read_json(path))
    elif ending in (".csv", ".tsv"):
        header, lines = _table(path)
        for line, values in lines:
            yield line, dict(zip(header, values, strict=True))
    elif ending == ".parquet":
        yield from _parquet(path)
    else:
        raise DataError(f"no reader for {ending or 'a name without an ending'}", HINT)


HINT = "expected .jsonl, .json, .csv, .tsv (each also with .gz) or .parquet"


def _json_lines(text: str, bad: list[dict] | None = None) -> Iterator[tuple[str, dict]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                row = _parse(line, number)
                if not isinstance(row, dict):
                    raise DataError(f"line {number}: expected an object, found {_kind(row)}")
            except DataError as error:
                _bad(f"line {number}", error, bad)
            else:
                yield f"line {number}", row


def _json_lists(value) -> Iterator[tuple[str, dict]]:
    lists = value.items() if isinstance(value, dict) else [("", value)]
    for name, rows in lists:
        if isinstance(rows, list):
            for number, row in enumerate(rows, start=1):
                place = f"{name}: row {number}" if name else f"row {number}"
                if not isinstance(row, dict):
                    raise DataError(f"{place}: expected an object, found {_kind(row)}")
                yield place, row


def _parquet(path: Path) -> Iterator[tuple[str, dict]]:
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            rows = file.read().to_pylist()
    except FileNotFoundError:
        raise MissingData(f"{path}: no such file") from None
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{path}: not a readable parquet file ({error})") from None
    yield from ((f"row {number}", row) for number, row in enumerate(rows, start=1))


def _table(path: str | os.PathLike) -> tuple[list[str], Iterator[tuple[str, list[str]]]]:
    """Return the header of a CSV or TSV file, and its rows with their places."""
    delimiter = "\t" if ".tsv" in Path(path).suffixes else ","
    # Strict, so that a quotation mark left open does not swallow the rest of the file.
    stream = io.StringIO(read_text(path), newline="")
    reader = csv.reader(stream, delimiter=delimiter, strict=True)
    lines = _table_lines(reader)
    header = next(lines)[1]
    if not any(header):
        raise DataError("no header in line 1")
    repeated = [name for name in header if header.count(name) > 1]
    if repeated:
        raise DataError(f"line 1: the column {repeated[0]!r} stands there twice")
    for other, word in ((";", "semicolons"), ("\t", "tabs")):
        if len(header) == 1 and header[0].count(other):
            expected = "commas" if delimiter == "," else "tabs"
            raise DataError(f"line 1: expected columns separated by {expected}, found {word}")

    def rows():
        for place, values in lines:
            if values:
                if len(values) != len(header):
                    extra = values[len(header) :][:1]
                    raise DataError(
                        f"{place}: expected {len(header)} columns, found {len(values)}"
                        + "".join(f", the first too many is {value!r}" for value in extra)
                    )
                yield place, values

    return header, rows()


def _table_lines(reader) -> Iterator[tuple[str, list[str]]]:
    try:
        yield "line 1", next(reader, [])
        for values in reader:
            yield f"line {reader.line_num}", values
    except csv.Error as error:
        raise DataError(f"line {reader.line_num}: {error}") from None


def _parse(text: str, line: int):
    """Return a JSON value whose first line is the given one of the file."""
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_distinct)
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise DataError(
            f"line {line + error.lineno - 1}, column {error.colno}: not valid JSON ({error.msg})"
        ) from None
    except UnicodeEncodeError:
        raise DataError(
            f"line {line}: half of a surrogate pair, which is not a character"
        ) from None
    except (ValueError, RecursionError) as error:
        # Numbers of thousands of digits, or brackets nested as deep.
        raise DataError(f"line {line}: JSON that cannot be read ({error})") from None
    return value


def _no_constant(name: str):
    raise ValueError(f"{name} is not a number in JSON")


def _distinct(pairs: list[tuple]) -> dict:
    row = dict(pairs)
    if len(row) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(
            f"the key {next(n for n in names if names.count(n) > 1)!r} stands there twice"
        )
    return row


def _float(value) -> float:
    """Return the nearest float, which `pandas.to_numeric` does not, or NaN."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


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
