import re
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit import datasets, paths
from ragkit.datasets import registry
from ragkit.datasets.registry import Entry, Store
from ragkit.errors import DataError, HashMismatch, MissingData
from tests.datasets.official import KB, LSAT, NQ, encode, entry, register, sha256_of, write


def put(folder, path, raw):
    return write(folder, {path: raw}) / path


# ---------------------------------------------------------------------------------- the real one


def test_every_dataset_reads_registered_files():
    known = registry.entries()
    for name in datasets.names():
        assert datasets.files(name), name
        for path in datasets.files(name):
            assert path in known
            assert known[path].rows, f"{path} needs its rows, or a cut file would pass"
        assert set(datasets.files(name, optional=False)) <= set(datasets.files(name))


def test_entries_are_whole():
    for file in registry.entries().values():
        assert file.licence
        assert file.origin
        assert file.revision
        assert not file.url or file.url.startswith("https://")
        # What cannot be fetched can only be accepted by its digest.
        assert file.url or file.sha256
        # A commit in the address is the registered one.
        assert "github" not in file.url or file.revision in file.url
        assert file.official or registry.entries()[file.part_of].official


def test_the_manifest_of_the_mirror_agrees(mirror):
    text = (mirror / "MANIFEST.md").read_text("utf-8")
    seen = 0
    for file in registry.entries().values():
        section = text.partition(f"### `{file.path}`\n")[2].partition("\n### ")[0]
        if section:
            seen += 1
            assert file.sha256 == re.search(r"sha256: `([0-9a-f]{64})`", section)[1]
            assert file.bytes == int(re.search(r"bytes: ([\d,]+)", section)[1].replace(",", ""))
    assert seen == text.count("\n### `")


# ------------------------------------------------------------------------- a registry that is off

DATASET = '[[dataset]]\nname = "d"\norigin = "o"\nlicence = "l"\n'
FILE = '[[dataset.file]]\npath = "a.csv"\n'
HASH = f'sha256 = "{"0" * 64}"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[dataset]\n", "not a registry"),
        ("", "not a registry"),
        ("dataset = []\n", "not a registry"),
        ("[dataset]\n", "not a registry"),
        (DATASET + "readr = 'x'\n", "dataset 'd': a table got an unexpected .* 'readr'"),
        ("[[dataset]]\n", "dataset None: a table missing .* 'name'"),
        (DATASET * 2, "dataset 'd' is there twice"),
        (DATASET + FILE + 'licnce = "x"\n', "dataset 'd': a table got an unexpected .* 'licnce'"),
        (DATASET.replace('origin = "o"\n', "") + FILE, "a table missing .* 'origin'"),
        (DATASET + FILE * 2, "repeats the path 'a.csv'"),
        (DATASET + FILE + 'part_of = "b.csv"\n', "a.csv: part of the unknown 'b.csv'"),
        (
            DATASET + FILE + FILE.replace("a.csv", "b.csv") + 'part_of = "a.csv"\n',
            "b.csv: a part, and what it is part of, need their rows",
        ),
        (DATASET + FILE + 'sha256 = "beef"\n', "a.csv: sha256 is not 64 lower-case"),
        (DATASET + FILE + HASH, "a.csv: sha256 comes without bytes"),
        (DATASET + FILE.replace("a.csv", "../a.csv"), "leaves the data folder"),
        (DATASET + FILE.replace("a.csv", "/etc/a.csv"), "leaves the data folder"),
    ],
)
def test_a_malformed_registry_is_named(tmp_path, text, message):
    path = tmp_path / "registry.toml"
    path.write_text(text)
    with pytest.raises(DataError) as info:
        registry.entries(path)
    assert info.value.message.startswith(str(path))
    assert re.search(message, info.value.message)


# -------------------------------------------------------------------------------- finding by path


def test_a_folder_that_is_not_there_is_an_error(tmp_path, monkeypatch):
    with pytest.raises(MissingData, match="nowhere: no such data folder"):
        Store(tmp_path / "nowhere")
    monkeypatch.setenv("RAGKIT_DATA", str(tmp_path / "gone"))
    with pytest.raises(MissingData, match="gone: no such data folder"):
        datasets.overview(profile="paper")


def test_the_named_folder_counts_before_the_variable_and_the_cache(data, tmp_path, monkeypatch):
    register(monkeypatch, entry(NQ, b"right"))
    other = tmp_path / "other"
    put(other, NQ, b"right")
    put(paths.cache_dir(), NQ, b"right")
    monkeypatch.setenv("RAGKIT_DATA", str(other))
    assert Store().find(NQ).path == other / NQ
    assert Store(data).find(NQ).path == paths.cache_dir() / NQ
    put(data, NQ, b"right")
    assert Store(data).find(NQ).path == data / NQ


def test_nothing_is_found_where_nothing_is(data, monkeypatch):
    register(monkeypatch, entry(NQ), entry(KB, url=""))
    assert Store(data).find(NQ) is None
    for path, hint in ((NQ, "ragkit data fetch natural_questions"), (KB, "cannot be fetched")):
        with pytest.raises(MissingData, match="is not here") as info:
            Store(data).need(path)
        assert hint in info.value.hint


# ------------------------------------------------------------------------------ finding by digest


@settings(max_examples=40, deadline=None)
@given(raw=st.binary(min_size=1, max_size=80), place=st.integers(0, 79), name=st.booleans())
def test_bytes_decide(tmp_path_factory, raw, place, name):
    data = tmp_path_factory.mktemp("bytes")
    file = Entry("x/a.gz", "d", "o", "l", sha256=sha256_of(raw), bytes=len(raw))
    with pytest.MonkeyPatch.context() as patch:
        register(patch, file)
        at = put(data, "x/a.gz" if name else "elsewhere/deep/other.name", raw)
        assert Store(data).find("x/a.gz").path == at
        spoiled = bytearray(raw)
        spoiled[place % len(raw)] ^= 1
        at.write_bytes(spoiled)
        if not name:
            assert Store(data).find("x/a.gz") is None
            return
        with pytest.raises(HashMismatch):
            Store(data).find("x/a.gz")


@pytest.mark.parametrize("cut", [b"wrong", b'{"question": "a", "answer": ["b"]}\n{"quest'])
def test_cut_bytes_are_refused_with_file_digests_and_a_command_that_works(data, monkeypatch, cut):
    # A stand-in is fetched by its path; what has no address cannot be fetched at all.
    right = b"right one" * 10
    part = entry("kb_part.jsonl", right, part_of=KB, rows=1, dataset="wixqa")
    register(
        monkeypatch, entry(KB, pinned=False), part, entry(NQ, right), entry(LSAT, right, url="")
    )
    fetched = "delete it and run: ragkit data fetch"
    hints = {
        KB: ("kb_part.jsonl", f"{fetched} kb_part.jsonl"),
        NQ: (NQ, f"{fetched} natural_questions"),
    }
    for path, (name, hint) in (
        hints | {LSAT: (LSAT, "replace it by the file of the test")}
    ).items():
        at = put(data, name, cut)
        with pytest.raises(HashMismatch) as info:
            Store(data).find(path)
        assert info.value.message.startswith(f"{at}: cut or damaged, ")
        for words in (sha256_of(cut)[:12], f"expected {sha256_of(right)[:12]}", "instead of 90"):
            assert words in info.value.message
        assert info.value.hint == hint


def test_whole_files_with_other_bytes_are_another_release(data, monkeypatch):
    csv, zipped = LSAT, "enterpriserag_bench/system_answers_jsonl.zip"
    register(monkeypatch, entry(NQ), entry(csv), entry(zipped))
    put(data, NQ, b'{"question": "a", "answer": ["b"]}\n')
    put(data, csv, b"Item1\n1\n")
    put(data, zipped, encode(zipped, {"a.jsonl": '{"question_id": "1"}\n', "b.txt": "x" * 99}))
    for path in (NQ, csv, zipped):
        found = Store(data).find(path)
        assert (found.state, found.other, found.partial) == ("other release", True, False)
        assert registry.count_rows(found.path, found.entry) in (1, 2)
    put(data, csv, b"Item1\n1\n0")  # a last line that may have lost its end
    with pytest.raises(HashMismatch, match="the last line has no end"):
        Store(data).find(csv)
    put(data, zipped, (data / zipped).read_bytes()[:-30])
    with pytest.raises(HashMismatch, match="damaged or incomplete zip"):
        Store(data).find(zipped)


def test_wrong_bytes_at_the_path_do_not_hide_a_right_copy(data, monkeypatch):
    register(monkeypatch, entry(NQ, b"right", pinned=False))
    put(data, "other.jsonl", b"right")
    assert Store(data).find(NQ) is None, "without a digest a path alone counts"
    register(monkeypatch, entry(NQ, b"right"))
    put(data, NQ, b"wrong")
    put(data, "backup/nq (1).jsonl", b"right")
    assert Store(data).find(NQ).path == data / "backup" / "nq (1).jsonl"
    shutil.rmtree(data / "backup")
    put(paths.cache_dir(), NQ, b"right")
    assert Store(data).find(NQ).path == paths.cache_dir() / NQ


# -------------------------------------------------------------------------------------- stand-ins


def test_the_official_file_comes_first_then_the_largest_part(data, monkeypatch):
    few = entry("few.jsonl", b"few", part_of=KB, rows=2, note="two of them")
    more = entry("more.jsonl", b"more", part_of=KB, rows=3)
    all_ = entry("all.jsonl", b"all", part_of=KB, rows=6, note="without titles")
    register(monkeypatch, few, more, entry(KB, pinned=False, rows=6), all_)
    put(data, "few.jsonl", b"few")
    found = Store(data).find(KB)
    assert (found.entry, found.partial, found.extent) == (few, True, "2 of 6 rows")
    put(data, "more.jsonl", b"more")
    assert Store(data).find(KB).entry == more
    put(data, "all.jsonl", b"all")
    assert Store(data).find(KB).extent == "6 of 6 rows: without titles"
    put(data, KB, b"{}")
    found = Store(data).need(KB)
    assert (found.partial, found.extent) == (False, registry.UNVERIFIED)


# ------------------------------------------------------------------------------------------- pins


@pytest.mark.parametrize("pin", ["", "[]", "{}", '{"sha256": 5}', '{"sha256": null}', "oops"])
def test_a_damaged_pin_is_named(data, monkeypatch, pin):
    register(monkeypatch, entry(NQ, pinned=False))
    at = put(data, NQ, b"first")
    registry.pin_path(at).write_text(pin)
    with pytest.raises(DataError) as info:
        Store(data).find(NQ)
    assert info.value.message.startswith(f"{registry.pin_path(at)}: ")
