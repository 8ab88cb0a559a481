import csv
import errno
import gzip
import hashlib
import io
import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit import files
from ragkit.errors import DataError, MissingData

# Everything that UTF-8 can hold; weighted towards what breaks readers.
TEXT = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from("\n\r\t\"'\\,;\x00\x0b\x0c\x1c\x85\u2028\u2029\ufeff{}[]: "),
    ),
    max_size=20,
)
QUICK = settings(max_examples=60, deadline=None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# ---------------------------------------------------------------------------- writing whole files


def test_write_text_writes_utf8_with_unix_line_ends(tmp_path):
    path = files.write_text(tmp_path / "new" / "a.txt", "Grüße\nzwei\n")
    assert path.read_bytes() == "Grüße\nzwei\n".encode()
    assert names(path.parent) == ["a.txt"]


def test_a_result_is_as_readable_as_any_other_file(tmp_path):
    files.write_text(tmp_path / "a.txt", "x")
    (tmp_path / "b.txt").write_text("x")
    modes = {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("a.txt", "b.txt")}
    assert len(modes) == 1


def test_the_temporary_file_keeps_the_suffix_and_the_folder(tmp_path):
    # Writers choose a format by the suffix; another folder could be another disk.
    with files.atomic_path(tmp_path / "figure.pdf") as temporary:
        assert temporary.suffix == ".pdf"
        assert temporary.parent == tmp_path
        temporary.write_bytes(b"%PDF")
    assert names(tmp_path) == ["figure.pdf"]


@QUICK
@given(
    old=st.none() | st.binary(max_size=50),
    parts=st.lists(st.binary(max_size=50), max_size=4),
    stop=st.integers(0, 4),
    error=st.sampled_from(
        [KeyboardInterrupt, SystemExit, ValueError, MemoryError, OSError(errno.ENOSPC, "full")]
    ),
)
def test_atomic_path_leaves_the_old_or_the_new_content(folder, old, parts, stop, error):
    path = folder / "atomic.bin"
    path.unlink(missing_ok=True)
    if old is not None:
        path.write_bytes(old)
    interrupted = stop < len(parts)
    try:
        with files.atomic_path(path) as temporary, open(temporary, "wb") as stream:
            for number, part in enumerate(parts):
                if number == stop:
                    raise error
                stream.write(part)
    except (KeyboardInterrupt, SystemExit, ValueError, MemoryError, OSError):
        assert interrupted
    now = path.read_bytes() if path.is_file() else None
    assert now == (old if interrupted else b"".join(parts))
    assert not list(folder.glob(".atomic*"))


def refused(path, write):
    """Return the error of a write, having seen that it names the file and leaves the old one."""
    path.write_text("old")
    with pytest.raises(OSError) as info:
        write()
    assert info.value.filename == str(path)
    assert path.read_text() == "old"
    return info.value


@pytest.mark.parametrize("step", ["mkstemp", "chmod", "replace"])
def test_a_full_disk_is_one_error_that_names_the_file(tmp_path, step):
    path = tmp_path / "results.csv"
    owner = {"mkstemp": files.tempfile, "chmod": Path, "replace": files.os}[step]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, step, full)
        error = refused(path, lambda: files.write_text(path, "new"))
    assert error.errno == errno.ENOSPC
    assert names(tmp_path) == ["results.csv"]


def test_a_disk_that_fills_up_while_writing_is_one_error(tmp_path):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full on this system")
    path = tmp_path / "results.csv"

    def write():
        with files.atomic_path(path), open("/dev/full", "wb", buffering=0) as stream:
            stream.write(b"new")

    assert refused(path, write).errno == errno.ENOSPC
    assert names(tmp_path) == ["results.csv"]


def test_the_command_line_prints_a_full_disk_in_one_line(tmp_path, monkeypatch, capsys):
    import click

    from ragkit import cli

    path = tmp_path / "results.csv"
    path.write_text("old")
    monkeypatch.setattr(files.os, "replace", full)
    command = click.Command("save", callback=lambda: files.write_text(path, "new"))
    monkeypatch.setattr(cli, "root", command)
    with pytest.raises(SystemExit) as info:
        cli.main([])
    assert info.value.code == 1
    assert capsys.readouterr().err == f"ragkit: No space left on device {path}\n"
    assert path.read_text() == "old"


def test_another_files_error_passes_through_the_block_unchanged(tmp_path):
    with (
        pytest.raises(FileNotFoundError, match="input.txt"),
        files.atomic_path(tmp_path / "out.txt"),
    ):
        (tmp_path / "input.txt").read_text()
    assert names(tmp_path) == []


def test_a_folder_that_cannot_be_made_or_is_a_file_is_one_error(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(OSError, match="taken/out.txt"):
        files.write_text(tmp_path / "taken" / "out.txt", "x")
    (tmp_path / "place").mkdir()
    with pytest.raises(IsADirectoryError, match="place'$"):
        files.write_text(tmp_path / "place", "x")
    assert names(tmp_path) == ["place", "taken"]


def test_text_that_utf8_cannot_hold_leaves_the_old_content(tmp_path):
    path = files.write_text(tmp_path / "a.txt", "old")
    with pytest.raises(UnicodeEncodeError):
        files.write_text(path, "half a pair: \ud800")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


@QUICK
@given(st.binary(max_size=300))
def test_sha256_is_that_of_the_bytes(folder, raw):
    (folder / "raw").write_bytes(raw)
    assert files.sha256(folder / "raw") == hashlib.sha256(raw).hexdigest()


# --------------------------------------------------------------------------------- reading bytes


@QUICK
@given(TEXT)
def test_read_text_undoes_utf8_and_gzip(folder, text):
    (folder / "t.txt").write_bytes(text.encode())
    (folder / "t.txt.gz").write_bytes(gzip.compress(text.encode()))
    expected = text.removeprefix("\ufeff")
    assert files.read_text(folder / "t.txt") == expected
    assert files.read_text(folder / "t.txt.gz") == expected


def test_a_missing_file_is_missing_data(tmp_path):
    with pytest.raises(MissingData, match="gone.jsonl: no such file"):
        files.read_jsonl(tmp_path / "gone.jsonl")


def test_a_folder_in_place_of_a_file_is_a_data_error(tmp_path):
    (tmp_path / "rows.jsonl").mkdir()
    with pytest.raises(DataError, match=r"rows\.jsonl: cannot be read .*directory"):
        files.read_jsonl(tmp_path / "rows.jsonl")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize(
    ("raw", "line", "byte"),
    [
        (b"\xff", 1, "ff"),
        (b"one\ntwo\xe9\n", 2, "e9"),
        (b"a\n\n\n\xc3", 4, "c3"),
        (b"\n\x80", 2, "80"),
    ],
)
def test_what_is_not_utf8_is_named_by_line_and_byte(tmp_path, mark, raw, line, byte):
    path = tmp_path / "t.txt"
    path.write_bytes(mark + raw)
    with pytest.raises(DataError, match=rf"t\.txt: line {line} is not UTF-8 \(byte 0x{byte}\)"):
        files.read_text(path)


@QUICK
@given(lines=st.lists(TEXT, max_size=5), at=st.integers(0, 5), mark=st.booleans())
def test_the_line_that_is_not_utf8_is_the_right_one(folder, lines, at, mark):
    lines = [line.encode().replace(b"\n", b" ") for line in lines]
    lines.insert(min(at, len(lines)), b"bad \xff byte")
    raw = b"\n".join(lines)
    (folder / "u.txt").write_bytes((b"\xef\xbb\xbf" if mark else b"") + raw)
    number = lines.index(b"bad \xff byte") + 1
    with pytest.raises(DataError, match=rf"line {number} is not UTF-8 \(byte 0xff\)"):
        files.read_text(folder / "u.txt")


def test_every_truncation_of_a_gzip_stream_is_noticed(tmp_path):
    whole = gzip.compress(b'{"a": 1}\n{"a": 2}\n' * 3)
    path = tmp_path / "rows.jsonl.gz"
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match=r"rows\.jsonl\.gz: the gzip stream is cut short"):
            files.read_jsonl(path)
    path.write_bytes(whole)
    assert len(files.read_jsonl(path)) == 6


def test_every_flipped_byte_of_gzip_is_noticed_or_harmless(tmp_path):
    rows = b'{"a": 1}\n{"a": 2}\n'
    whole = gzip.compress(rows)
    path = tmp_path / "rows.jsonl.gz"
    for place in range(len(whole)):
        spoiled = bytearray(whole)
        spoiled[place] ^= 0xFF
        path.write_bytes(spoiled)
        noticed = ""
        try:
            text = files.read_text(path)
        except DataError as error:
            noticed = error.message
        assert "gzip stream" in noticed or text == rows.decode()  # the header's time, for example


# ------------------------------------------------------------------------------------ JSON lines

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


@QUICK
@given(
    rows=st.lists(st.dictionaries(TEXT, JSON, max_size=4), min_size=1, max_size=5),
    ascii_only=st.booleans(),
    end=st.sampled_from(["\n", "\r\n", "\n\n"]),
)
def test_read_jsonl_returns_what_was_written(folder, rows, ascii_only, end):
    text = end.join(json.dumps(row, ensure_ascii=ascii_only) for row in rows)
    for path in (folder / "r.jsonl", folder / "r.jsonl.gz"):
        raw = text.encode()
        path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
        assert files.read_jsonl(path) == rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rows"),
        ("\n \n\n", "no rows"),
        ('{"a": 1}\n{"a": \n', "line 2, column 7: not valid JSON"),
        ('{"a": 1}\n\n{"a" 1}\n', "line 3, column 6: not valid JSON"),
        ('{"a": 1', "line 1, column 8: not valid JSON"),
        ('{"a": 1} {"a": 2}', "line 1, column 10: not valid JSON"),
        ("[1, 2]", "line 1: expected an object, found a list"),
        ('{"a": 1}\n"x"', "line 2: expected an object, found a string"),
        ("null", "line 1: expected an object, found null"),
        ("true", "line 1: expected an object, found a truth value"),
        ("3.5", "line 1: expected an object, found a number"),
        ('{"a": 1}\n{"b": 1}', "line 2: no column 'a'"),
        ("{}", "line 1: no column 'a'"),
        ('{"a": 1}\n{"a": ' + "9" * 5000 + "}", "line 2: JSON that cannot be read"),
        ('{"a": ' + "[" * 100_000, "line 1: JSON that cannot be read"),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, message):
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(DataError) as info:
        files.read_jsonl(path, ("a",))
    assert info.value.message.startswith(f"{path}: {message}")


def test_a_renamed_column_gets_the_nearest_name(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"questions": "x", "answer": "y"}')
    with pytest.raises(DataError, match="no column 'question'") as info:
        files.read_jsonl(path, ("question", "answer"))
    assert info.value.hint == "did you mean 'questions'?"


def test_bad_json_is_named_by_line_and_column(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": 1,\n "b": oops}')
    with pytest.raises(DataError, match=r"a\.json: line 2, column 7: not valid JSON"):
        files.read_json(path)
    path.write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"a\.json: line 1: JSON that cannot be read"):
        files.read_json(path)


# ---------------------------------------------------------------------------------------- tables


def written(header, rows, delimiter):
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, delimiter=delimiter)
    writer.writerow(header)
    writer.writerows(rows)
    return stream.getvalue().encode()


@QUICK
@given(data=st.data(), width=st.integers(2, 4), suffix=st.sampled_from([".csv", ".tsv"]))
def test_read_table_returns_what_was_written(folder, data, width, suffix):
    # A byte-order mark at the very beginning belongs to the encoding, not to the first name.
    cells = st.lists(TEXT, min_size=width, max_size=width)
    header = data.draw(
        st.lists(TEXT, min_size=width, max_size=width, unique=True).filter(
            lambda names: not names[0].startswith("\ufeff")
        )
    )
    rows = data.draw(st.lists(cells, min_size=1, max_size=4))
    raw = written(header, rows, "\t" if suffix == ".tsv" else ",")
    expected = [dict(zip(header, row, strict=True)) for row in rows]
    for path in (folder / f"t{suffix}", folder / f"t{suffix}.gz"):
        path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
        assert files.read_table(path) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no header in line 1"),
        ("\n", "no header in line 1"),
        ("a,b\n", "no rows"),
        ("a,b\n1\n", "line 2: expected 2 columns, found 1"),
        ("a,b\n1,2\n\n1,2,3\n", "line 4: expected 2 columns, found 3"),
        ('a,b\n"x\ny",2\n3\n', "line 4: expected 2 columns, found 1"),
        ("a,b,a\n1,2,3\n", "line 1: the column 'a' stands there twice"),
        ("b,c\n1,2\n", "line 1: no column 'a'"),
        ('a,b\n1,"cut short\n2,3\n', "line 3: unexpected end of data"),
        ('a,b\n1,"x" y\n', "line 2: "),
    ],
)
def test_a_bad_table_is_named_by_line(tmp_path, text, message):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(DataError) as info:
        files.read_table(path, ("a",))
    assert info.value.message.startswith(f"{path}: {message}")


def test_numbers_are_checked_where_they_are_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('id,score\n"two\nlines",1.5\nx,\n')
    first, second = files.read_table(path, numbers=("score",))
    assert first == {"id": "two\nlines", "score": 1.5}
    assert second["score"] != second["score"]  # an empty cell is NaN, never 0
    for bad in ("1,5", "high", "nan", "inf", "0x1"):
        path.write_text(f'id,score\n"two\nlines",1\nx,"{bad}"\n')
        with pytest.raises(DataError) as info:
            files.read_table(path, numbers=("score",))
        assert info.value.message == f"{path}: line 4: score: expected a number, found {bad!r}"


def test_all_columns_can_be_numbers(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,0\n")
    assert files.read_table(path, numbers=None) == [{"a": 1.0, "b": 0.0}]
    path.write_text("a,b\n1,x\n")
    with pytest.raises(DataError, match="line 2: b: expected a number"):
        files.read_table(path, numbers=None)
