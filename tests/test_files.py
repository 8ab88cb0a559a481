import contextlib
import csv
import errno
import gzip
import io
import json
import lzma
import os
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit import files
from ragkit.errors import DataError, MissingData, RagkitError, UsageError

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


def put(folder, name, content):
    path = folder / name
    raw = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return path


def complaint(read, path, *args, **options):
    with pytest.raises((DataError, UsageError)) as info:
        read(path, *args, **options)
    message = info.value.message
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


# ---------------------------------------------------------------------------- writing whole files


def test_write_text_writes_utf8_with_unix_line_ends(tmp_path):
    path = files.write_text(tmp_path / "new" / "a.txt", "Grüße\nzwei\n")
    assert path.read_bytes() == "Grüße\nzwei\n".encode()
    assert names(path.parent) == ["a.txt"]
    (tmp_path / "b.txt").write_text("x")
    assert len({stat.S_IMODE(one.stat().st_mode) for one in (path, tmp_path / "b.txt")}) == 1


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
    assert not list(folder.glob(".tmp-*"))


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


def test_a_folder_that_cannot_be_made_or_is_a_file_is_one_error(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(OSError, match="taken/out.txt"):
        files.write_text(tmp_path / "taken" / "out.txt", "x")
    (tmp_path / "place").mkdir()
    with pytest.raises(IsADirectoryError, match="place'$"):
        files.write_text(tmp_path / "place", "x")
    with pytest.raises(FileNotFoundError, match="input.txt"), files.atomic_path(tmp_path / "o.txt"):
        (tmp_path / "input.txt").read_text()
    assert names(tmp_path) == ["place", "taken"]


HOLDER = """
import sys
from ragkit.files import held
with held(*sys.argv[1:]):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def holder(*place):
    """Another process that holds a folder, or a name in it; it ends with the block at the latest."""
    command = [sys.executable, "-c", HOLDER, *map(str, place)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline() == b"held\n"
            yield process
        finally:
            process.kill()


def test_a_folder_is_held_by_one_process_which_the_error_names(tmp_path):
    folder = tmp_path / "out"
    with holder(folder) as process:
        words = f"out: the process {process.pid} is writing there"
        with pytest.raises(RagkitError, match=words), files.held(folder):
            pass
        files.remove_temporary(folder)
        with pytest.raises(RagkitError, match=words), files.held(folder):
            pass
        with files.held(folder, "other.jsonl"):
            pass
        process.stdin.close()
        process.wait(60)
    assert names(tmp_path) == []  # the folder was new and is empty
    with holder(folder) as process:
        process.kill()
        process.wait(60)
        with files.held(folder):  # what was killed holds nothing
            files.write_text(folder / "a.txt", "x")
    assert names(folder) == ["a.txt"]
    with pytest.raises(UsageError, match="a.txt is a file"), files.held(folder / "a.txt"):
        pass


# ------------------------------------------------------------------------------------- text, gzip


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize(
    ("raw", "line"), [(b"\xff", 1), (b"one\ntwo\xe9\n", 2), (b"a\n\n\n\xc3", 4)]
)
def test_what_is_not_utf8_is_named_by_line_and_byte(tmp_path, mark, raw, line):
    path = put(tmp_path, "t.txt", mark + raw)
    byte = f"{raw.strip()[-1]:02x}"
    assert complaint(files.read_text, path) == f"line {line} is not UTF-8 (byte 0x{byte})"
    assert files.read_text(put(tmp_path, "t.txt.gz", mark + b"a\n")) == "a\n"
    packed = tmp_path / "t.txt.xz"
    packed.write_bytes(lzma.compress(mark + b"a\n"))
    assert files.read_text(packed) == "a\n"
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(DataError, match="xz stream is cut short or damaged"):
        files.read_text(packed)


def test_a_file_that_cannot_be_read(tmp_path, monkeypatch):
    with pytest.raises(MissingData, match=r"gone\.jsonl: no such file"):
        files.read_jsonl(tmp_path / "gone.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    assert "cannot be read" in complaint(files.read_jsonl, tmp_path / "folder.jsonl")
    monkeypatch.setattr(files, "MAX_BYTES", 1000)
    for name in ("a.jsonl", "a.jsonl.gz"):  # 1 kB of gzip may hold 1 MB
        path = put(tmp_path, name, b" " * 1_000_000)
        assert complaint(files.read_jsonl, path) == "more than 1,000 bytes of text"


def test_every_cut_and_every_flipped_byte_of_gzip_is_noticed_or_harmless(tmp_path):
    rows = b'{"a": 1}\n{"a": 2}\n'
    path = put(tmp_path, "rows.jsonl.gz", rows)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert complaint(files.read_text, path).startswith("the gzip stream is cut short")
    for place in range(len(whole)):
        spoiled = bytearray(whole)
        spoiled[place] ^= 0xFF
        path.write_bytes(spoiled)
        text = rows.decode()  # what is left if the byte is one of the header's time
        with contextlib.suppress(DataError):
            text = files.read_text(path)
        assert text == rows.decode()


# ------------------------------------------------------------------------------------ rows

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)


@QUICK
@given(
    rows=st.lists(st.dictionaries(TEXT, JSON, max_size=4), min_size=1, max_size=5),
    ascii_only=st.booleans(),
    end=st.sampled_from(["\n", "\r\n", "\n\n"]),
)
def test_json_lines_come_back_as_they_were_written(folder, rows, ascii_only, end):
    text = end.join(json.dumps(row, ensure_ascii=ascii_only) for row in rows)
    for name in ("r.jsonl", "r.jsonl.gz"):
        path = put(folder, name, text)
        assert files.read_jsonl(path) == files.read_rows(path) == rows


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n \n\n", "no rows"),
        ('{"a": 1}\n\n{"a" 1}\n', "line 3, column 6: not valid JSON"),
        ('{"a": 1} {"a": 2}', "line 1, column 10: not valid JSON"),
        ("[1, 2]", "line 1: expected an object, found [1, 2]"),
        ("3.5", "line 1: expected an object, found 3.5"),
        ('{"a": 1}\n{"b": 1}', "line 2: no column 'a'"),
        ("{}", "line 1: no column 'a'"),
        ('{"a": 1}\n{"a": ' + "9" * 5000 + "}", "line 2: JSON that cannot be read"),
        ('{"a": ' + "[" * 100_000, "line 1: JSON that cannot be read"),
        ('{"a": NaN}', "line 1: JSON that cannot be read (NaN is not a number in JSON)"),
        ('{"a": 1, "a": 2}', "line 1: JSON that cannot be read (the key 'a' stands there twice)"),
        ('{"a": "\\ud800"}', "line 1: half of a surrogate pair"),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, message):
    path = put(tmp_path, "rows.jsonl", text)
    assert complaint(files.read_jsonl, path, ("a",)).startswith(message)
    if "NaN" in text or "twice" in message or "surrogate" in message:
        assert complaint(files.read_json, put(tmp_path, "one.json", text)).startswith(message)


def test_json_and_parquet_hold_rows_too(tmp_path):
    parts = put(tmp_path, "b.json", '{"name": "x", "dev": [{"a": 1}], "test": [{"a": 2}]}')
    pd.DataFrame({"a": [1, 2]}).to_parquet(tmp_path / "c.parquet")
    for path in (parts, tmp_path / "c.parquet", put(tmp_path, "a.json", '[{"a": 1}, {"a": 2}]')):
        assert files.read_rows(path, ("a",)) == [{"a": 1}, {"a": 2}]
    damaged = put(tmp_path, "d.parquet", (tmp_path / "c.parquet").read_bytes()[:-9])
    assert "not a readable parquet file" in complaint(files.read_rows, damaged)
    bad = put(tmp_path, "e.json", '{"dev": [1]}')
    assert complaint(files.read_rows, bad) == "dev: row 1: expected an object, found 1"
    assert complaint(files.read_rows, put(tmp_path, "x.doc", "")) == "no reader for .doc"
    with pytest.raises(MissingData):
        files.read_rows(tmp_path / "gone.parquet")


@QUICK
@given(data=st.data(), width=st.integers(2, 4), suffix=st.sampled_from([".csv", ".tsv"]))
def test_tables_come_back_as_they_were_written(folder, data, width, suffix):
    # A byte-order mark at the very beginning belongs to the encoding, not to the first name.
    cells = st.lists(TEXT, min_size=width, max_size=width)
    header = data.draw(
        st.lists(TEXT, min_size=width, max_size=width, unique=True).filter(
            lambda names: not names[0].startswith("\ufeff")
        )
    )
    rows = data.draw(st.lists(cells, min_size=1, max_size=4))
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter="\t" if suffix == ".tsv" else ",").writerows([header, *rows])
    expected = [dict(zip(header, row, strict=True)) for row in rows]
    for name in (f"t{suffix}", f"t{suffix}.gz"):
        assert files.read_rows(put(folder, name, stream.getvalue())) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n", "no header in line 1"),
        ("a,b\n", "no rows"),
        ("a,b\n1\n", "line 2: expected 2 columns, found 1"),
        ("a,b\n1,2\n\n1,2,3\n", "line 4: expected 2 columns, found 3"),
        ('a,b\n"x\ny",2\n3\n', "line 4: expected 2 columns, found 1"),
        ("a,b,a\n1,2,3\n", "line 1: the column 'a' stands there twice"),
        ("a;b\n1;2\n", "line 1: expected columns separated by commas"),
        ("b,c\n1,2\n", "line 1: no column 'a'"),
        ('a,b\n1,"cut short\n2,3\n', "line 3: unexpected end of data"),
        ('a,b\n1,"x" y\n', "line 2: "),
    ],
)
def test_a_bad_table_is_named_by_line(tmp_path, text, message):
    path = put(tmp_path, "t.csv", text)
    assert complaint(files.read_rows, path, ("a",)).startswith(message)


def test_numbers_are_checked_where_they_are_read(tmp_path):
    path = put(tmp_path, "t.csv", 'id,score\n"two\nlines",1.5\nx,\n')
    first, second = files.read_rows(path, numbers=("score",))
    assert first == {"id": "two\nlines", "score": 1.5}
    assert second["score"] != second["score"]  # an empty cell is NaN, never 0
    assert files.read_rows(put(tmp_path, "u.csv", "a\n1\n"), numbers=None) == [{"a": 1.0}]
    for bad in ("1,5", "high", "nan", "inf", "0x1"):
        put(tmp_path, "t.csv", f'id,score\n"two\nlines",1\nx,"{bad}"\n')
        message = complaint(files.read_rows, path, numbers=("score",))
        assert message == f"line 4: score should be a number, found {bad!r}"


# --------------------------------------------------------------------------- the one reader of frames


def test_the_benchmarks_own_names_are_translated(tmp_path):
    articles = put(tmp_path, "kb.jsonl", '{"id": 7, "contents": "x", "url": "u"}\n')
    documents = files.read_frame(articles, "documents")
    assert documents.to_dict("records") == [
        {"doc_id": "7", "text": "x", "url": "u", "source": "own", "title": ""}
    ]
    wixqa = put(tmp_path, "w.jsonl", '{"question": "Q", "answer": "A", "article_ids": [7]}\n')
    question = files.read_frame(wixqa, "questions").iloc[0].to_dict()
    rest = {"question_id": "1", "facts": (), "type": "unknown"}
    assert question == {"text": "Q", "answer": "A", "gold_doc_ids": ("7",)} | rest
    answers = put(tmp_path, "my.system.jsonl", '{"question_id": 3, "document_ids": ["d"]}\n')
    answer = files.read_frame(answers, "answers").iloc[0].to_dict()
    assert answer == {"system": "my", "question_id": "3", "doc_ids": ("d",), "answer": None}
    table = put(tmp_path, "q.csv.gz", 'question_id,question,doc_ids\n1,Why?,"[""a"", 2]"\n')
    assert files.read_frame(table, "questions")["gold_doc_ids"].tolist() == [("a", "2")]


def test_liverag_and_the_archive_are_read_as_released(tmp_path):
    one = {"doc_id": "d1", "content": "The text."}
    claims = {"direct": ["x"], "useful": ["y"], "useless": ["z"]}
    more = {"Answer": "A", "Answer_Claims": claims, "Supporting_Documents": [one]}
    rows = [{"Index": n, "Question": f"Q{n}", **more} for n in (0, 1)]
    pd.DataFrame(rows).to_parquet(tmp_path / "l.parquet")
    questions = files.read_frame(tmp_path / "l.parquet", "questions")
    assert questions["question_id"].tolist() == ["0", "1"]
    assert questions["facts"].tolist() == [("x", "y")] * 2
    assert files.read_frame(tmp_path / "l.parquet", "documents")["doc_id"].tolist() == ["d1"]
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("./slack/a/d1__x.txt", "Title\n\nText.\n")
        archive.writestr("./jira/d2__y.txt", "Only a title")
    found = files.read_frame(tmp_path / "all.zip", "documents")
    assert found[["source", "title", "text"]].to_numpy().tolist() == [
        ["slack", "Title", "Text."],
        ["jira", "Only a title", "Only a title"],
    ]
    some = files.read_frame(tmp_path / "all.zip", "documents", only={"d2"})
    assert some["doc_id"].tolist() == ["d2"]


@pytest.mark.parametrize(
    ("kind", "row", "message"),
    [
        ("documents", {"doc_id": "a", "txt": "x"}, "no column 'text'"),
        ("documents", {"doc_id": True, "text": "x"}, "doc_id should be a text, found True"),
        ("documents", {"doc_id": "a\0", "text": "x"}, "doc_id holds a NUL character"),
        ("documents", {"doc_id": "a", "text": " "}, "text should be a text, found ' '"),
        ("questions", {"id": 1, "text": "x", "answer": 5}, "answer should be a text, found 5"),
        ("questions", {"id": 1, "text": "x", "facts": "a"}, "facts should be a list"),
        ("questions", {"id": 1, "text": "x", "facts": [1.5]}, "facts should hold strings"),
        ("questions", {"id": "good", "text": "x"}, "question_id 'good' was in line 1 before"),
    ],
)
def test_a_bad_row_of_a_frame_is_named_or_collected(tmp_path, kind, row, message):
    good = '{"id": "good", "text": "x"}\n'
    path = put(tmp_path, "rows.jsonl", f"{good}\n{json.dumps(row)}\n")
    assert complaint(files.read_frame, path, kind).startswith(f"line 3: {message}")
    bad = []
    path = put(tmp_path, "rows.jsonl", f"{good}oops\n{json.dumps(row)}\n")
    assert "good" in files.read_frame(path, kind, bad=bad).iloc[0].tolist()
    assert [one["line"] for one in bad] == [2, 3]
    path = put(tmp_path, "rows.jsonl", "oops")
    assert "not valid JSON" in complaint(files.read_frame, path, kind, bad=[])


SCORES = "subject_id,item_id,score\n"


def test_scores_of_one_metric(tmp_path):
    rows = [("s", 1, "RR", 0.5), ("s", 1, "R@5", 1.0)]
    several = pd.DataFrame(rows, columns=["system", "question_id", "metric", "score"])
    several.to_csv(tmp_path / "s.csv", index=False)
    several.to_parquet(tmp_path / "s.parquet")
    for name in ("s.csv", "s.parquet"):
        path = tmp_path / name
        assert "2 metrics: RR, R@5" in complaint(files.read_frame, path, "scores")
        assert "no scores of the metric 'R5'" in complaint(
            files.read_frame, path, "scores", metric="R5"
        )
        found = files.read_frame(path, "scores", metric="R@5")
        expected = [{"subject_id": "s", "item_id": "1", "score": 1.0}]
        assert found.to_dict("records") == expected
    plain = put(tmp_path, "t.tsv", SCORES.replace(",", "\t") + "s\t1\t1\n")
    assert files.read_frame(plain, "scores")["score"].tolist() == [1.0]
    assert "no column 'metric'" in complaint(files.read_frame, plain, "scores", metric="RR")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SCORES, "no rows"),
        ("subject_id,item,score\ns,1,1\n", "line 2: no column 'item_id'"),
        (SCORES + "s,1,1\n\ns,2,high\n", "line 4: score should be a number, found 'high'"),
        (SCORES + "s,1,\n", "line 2: no score"),
        (SCORES + "s,1,inf\n", "line 2: score should be a number, found 'inf'"),
        (SCORES + "s,1,1\ns,1,0\n", "line 3: subject_id 's', item_id '1' was in line 2 before"),
        (SCORES + "s,1,1,2\n", "line 2: expected 3 columns, found 4"),
    ],
)
def test_bad_scores_are_named_by_line(tmp_path, text, message):
    path = put(tmp_path, "s.csv", text)
    assert complaint(files.read_frame, path, "scores").startswith(message)


# Lines that a reader of columns may take for something else, or that are wrong in any reader.
ODD = [
    '"a",q1,1\n', "a,q1\n", "a,q1,1,2\n", "a,q1,x\n", "a,q1,\n", "a,q1,inf\n", ",q1,1\n", " ,q1,1\n",
    "a,q0,1\n", "a,q1,1_0\n", "a,q1, 1\n", "\n", "\r\n", "a\rb,q1,1\n", "a,q\0,1\n", "é,q1,1e-3\n",
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("header", ["subject_id,item_id,score", "System,question_id,value"])
def test_scores_read_by_columns_are_those_read_by_rows(tmp_path, monkeypatch, odd, header):
    path = tmp_path / "scores.csv"
    path.write_text(f"{header}\na,q0,0.5\n{odd}b,q0,1\n", newline="")

    def read():
        try:
            return files.read_frame(path, "scores")
        except DataError as error:
            return error.message

    by_columns = read()
    monkeypatch.setattr(files, "_plain_table", lambda *_: None)
    by_rows = read()
    assert type(by_columns) is type(by_rows)
    if isinstance(by_rows, str):
        assert by_columns == by_rows
    else:
        pd.testing.assert_frame_equal(by_columns, by_rows)
        assert by_columns.attrs == by_rows.attrs


def test_many_plain_scores_are_read_by_columns(tmp_path, monkeypatch):
    path = tmp_path / "scores.tsv"
    rows = [f"s{i % 50}\tq{i // 50}\t{i / 5000}\tRR" for i in range(5000)]
    path.write_text("\n".join(["subject_id\titem_id\tscore\tmetric", *rows]))
    monkeypatch.setattr(files, "_located", None)  # rows are not read one by one
    found = files.read_frame(path, "scores")
    assert found.shape == (5000, 3)
    assert found["score"].tolist() == [i / 5000 for i in range(5000)]
    assert "no scores of the metric 'R5'" in complaint(
        files.read_frame, path, "scores", metric="R5"
    )


@pytest.mark.parametrize(
    ("kind", "columns", "pair", "ours"),
    [
        ("answers", "id,answer,doc_ids,document_ids", "'doc_ids' and 'document_ids'", "doc_ids"),
        ("answers", "id,Article_IDs,document_ids", "'document_ids' and 'Article_IDs'", "doc_ids"),
        ("scores", "system,item_id,score,value", "'score' and 'value'", "score"),
    ],
)
def test_two_names_of_one_column_are_an_error(tmp_path, kind, columns, pair, ours):
    row = dict.fromkeys(columns.split(","), "[]")
    table = put(tmp_path, "t.csv", f"{columns}\n{','.join(row.values())}\n")
    words = f"{pair} are two names of the column {ours!r}"
    assert complaint(files.read_frame, table, kind) == f"line 2: {words}"
    lines = files.write_jsonl(tmp_path / "t.jsonl", [row])
    assert complaint(files.read_frame, lines, kind) == f"line 1: {words}"


def test_our_own_name_of_an_id_or_a_text_counts_before_others(tmp_path):
    row = {"id": 7, "doc_id": "d", "content": "other", "text": "own", "source_type": "slack"}
    files.write_jsonl(tmp_path / "d.jsonl", [row])
    frame = files.read_frame(tmp_path / "d.jsonl", "documents")
    assert frame[["doc_id", "text", "source"]].values.tolist() == [["d", "own", "slack"]]


def test_rows_may_each_have_another_name_of_a_column(tmp_path):
    rows = [{"id": "1", "doc_ids": ["a"]}, {"id": "2", "document_ids": ["b"]}]
    files.write_jsonl(tmp_path / "a.jsonl", rows)
    frame = files.read_frame(tmp_path / "a.jsonl", "answers")
    assert frame["doc_ids"].tolist() == [("a",), ("b",)]
    assert frame.attrs["given"] == {"id", "question_id", "doc_ids", "document_ids"}
