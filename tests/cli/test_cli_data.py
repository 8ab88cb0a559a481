import hashlib
import json

import pytest

from ragkit import paths
from ragkit.datasets import fetch, registry
from tests.datasets.official import KB, LSAT, NQ, OFFICIAL, ZIP, encode, entry, register, write
from tests.datasets.server import BODY, Server, interrupt_after

PART = "wixqa/kb_part.jsonl"
SLICE = "enterpriserag_bench/{}_slice_0001.zip"


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A folder with a complete, a partial, a missing and (once spoiled) a damaged dataset."""
    register(
        monkeypatch,
        entry(NQ, note="the development part"),
        entry(KB, pinned=False, rows=6),
        entry(PART, b"part", part_of=KB, rows=2, dataset="wixqa", url=""),
        entry(LSAT, url="", revision="0123456789abcdef"),
    )
    folder = tmp_path / "data"
    return write(folder, {NQ: OFFICIAL["natural_questions"][NQ], PART: b"part"})


def rows(out):
    return {row["file"]: row for row in json.loads(out)}


def status(ragkit, *options):
    """Return the exit status, the errors and the rows of `ragkit data status`."""
    code, out, err = ragkit("data", "status", *options, "--json")
    return code, err, rows(out)


def test_status_says_of_every_file_what_it_is(ragkit, data):
    code, err, table = status(ragkit, "--data", data)
    assert (code, err) == (0, "")
    assert list(table) == [NQ, KB, PART, LSAT]
    states = {path: row["state"] for path, row in table.items()}
    assert states == {NQ: "present", KB: "partial", PART: "present", LSAT: "missing"}
    assert table[NQ]["detail"] == str(data / NQ)
    assert table[KB]["detail"] == "2 of 6 rows"
    assert table[LSAT] == {
        "state": "missing",
        "dataset": "lsat",
        "file": LSAT,
        "rows": 3,
        "origin": "the test@012345678",
        "licence": "CC0",
        "detail": "",
    }


def test_status_names_the_command_that_gets_a_file(ragkit, data, monkeypatch):
    (data / PART).unlink()
    monkeypatch.setenv("RAGKIT_DATA", str(data))
    code, _, table = status(ragkit, "--dataset", "wixqa")
    assert code == 0
    details = {path: row["detail"] for path, row in table.items()}
    assert details == {KB: "ragkit data fetch wixqa", PART: ""}  # the part has no address


def test_the_table_holds_the_same(ragkit, data):
    code, out, err = ragkit("data", "status", "--data", data)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    for path in (NQ, KB, PART, LSAT):
        assert sum(f" {path} " in line for line in lines) == 1
    assert sum("licence: CC0" in line for line in lines) == 4
    assert {"2 present, 1 partial, 1 missing", f"searched {data.resolve()}"} <= set(lines)
    assert "\x1b" not in out  # no colours where nobody looks


def test_unknown_names_are_one_error(ragkit, data):
    code, out, err = ragkit("data", "status", "--data", data, "--dataset", "WixQAA")
    assert (code, out) == (1, "")
    assert err == "ragkit: no dataset 'WixQAA'\n  hint: did you mean 'wixqa'?\n"
    code, out, err = ragkit("data", "status", "--data", data / "gone")
    assert (code, out) == (1, "")
    assert err.startswith(f"ragkit: {data / 'gone'}: no such data folder\n")


@pytest.mark.parametrize("form", [["--json"], []])
def test_damaged_files_are_listed_with_all_others_and_the_status_is_1(ragkit, data, form):
    (data / NQ).write_bytes(b"wrong")
    code, out, err = ragkit("data", "status", "--data", data, *form)
    assert code == 1
    assert err == "ragkit: cut or damaged files: 1 of 4\n  hint: see above\n"
    assert all(path in out for path in (NQ, KB, PART, LSAT))
    assert f"{data / NQ}: cut or damaged, line 1" in out
    assert "delete it and run: ragkit data fetch natural_questions" in out
    if form:
        states = [row["state"] for row in rows(out).values()]
        assert states == ["cut or damaged", "partial", "present", "missing"]
    else:
        assert "1 present, 1 partial, 1 missing, 1 cut or damaged" in out


@pytest.mark.parametrize(("spoiled", "damaged"), [("part", {KB, PART}), ("pin", {KB})])
def test_a_damaged_stand_in_or_pin_is_a_damaged_file(ragkit, data, spoiled, damaged):
    if spoiled == "part":
        (data / PART).write_bytes(b"wrong")
    else:
        write(data, {KB: b"{}"})
        registry.pin_path(data / KB).write_text("oops")
    code, err, table = status(ragkit, "--data", data)
    assert code == 1
    assert "cut or damaged files: 1 of 4" in err  # a part and what it stands in for are one
    assert {path for path, row in table.items() if row["state"] == "cut or damaged"} == damaged
    assert spoiled == "part" or "pin.json" in table[KB]["detail"]


def test_status_of_the_mirror(ragkit, mirror):
    code, err, table = status(ragkit, "--data", mirror)
    assert (code, err) == (0, "")
    assert set(table) == set(registry.entries())
    missing = {path for path, row in table.items() if row["state"] == "missing"}
    assert missing == {
        "wixqa/wixqa_simulated/test.jsonl",
        "wixqa/wixqa_synthetic/test.jsonl",
        "enterpriserag_bench/all_documents.zip",
        "enterpriserag_bench/extra_questions.jsonl",
    }
    partial = {path: row["detail"] for path, row in table.items() if row["state"] == "partial"}
    assert partial == {
        KB: "173 of 6,221 rows, 108 of them cut at 2,400 characters (109 of the 160 questions have a "
        "cut gold article)",
        "wixqa/wixqa_expertwritten/test.jsonl": "160 of 200 rows",
        "liverag/LiveRAG_banchmark_20250910.parquet": "895 of 895 rows: questions and sessions only",
    }


def test_status_with_nothing_at_hand(ragkit, tmp_path):
    code, err, table = status(ragkit)
    assert (code, err) == (0, "")
    assert {row["state"] for row in table.values()} == {"missing"}
    assert not (tmp_path / "cache").exists()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with Server() as one:
        yield one


def test_fetch_says_what_it_verified(ragkit, server, monkeypatch):
    register(
        monkeypatch,
        entry(NQ, BODY, url=server.url),
        entry(KB, BODY, url=server.url, pinned=False),
    )
    code, out, err = ragkit("data", "fetch", "natural_questions", KB)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"{NQ}: 512,000 bytes, verified",
        f"{KB}: 512,000 bytes, pinned, no digest is published to verify it by",
    ]
    assert (paths.cache_dir() / NQ).read_bytes() == BODY
    assert len(server.requests) == 2
    assert ragkit("data", "fetch", NQ)[1] == f"{NQ}: 512,000 bytes, verified\n"
    assert len(server.requests) == 2
    assert status(ragkit)[2][NQ]["state"] == "present"


def test_a_file_that_is_gone_leaves_no_other_behind(ragkit, server, monkeypatch):
    gone = server.url.replace(str(server.http.server_port), "1")
    register(
        monkeypatch,
        entry(NQ, BODY, url=gone),
        entry(LSAT, BODY, url=gone),
        entry(KB, BODY, url=server.url, pinned=False),
    )
    code, out, err = ragkit("data", "fetch", "natural_questions", LSAT, KB)
    assert code == 1
    assert out.splitlines() == [
        f"{KB}: 512,000 bytes, pinned, no digest is published to verify it by"
    ]
    told = [line for line in err.splitlines() if line.startswith("ragkit: ")]
    assert [NQ in told[0], LSAT in told[1], len(told)] == [True, True, 2]


def test_fetch_of_an_unknown_name_fetches_nothing(ragkit, server, monkeypatch):
    register(monkeypatch, entry(NQ, BODY, url=server.url))
    code, out, err = ragkit("data", "fetch", NQ, "natural_question")
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "ragkit: no dataset or file 'natural_question'",
        "  hint: did you mean 'natural_questions'?",
    ]
    assert server.requests == []


def test_fetch_of_what_has_no_address_or_no_name(ragkit, data):
    code, _, err = ragkit("data", "fetch", "lsat")
    assert code == 1
    assert "lsat cannot be fetched" in err
    assert "DATA=" in err
    code, _, err = ragkit("data", "fetch")
    assert code == 2
    assert "Missing argument" in err


def test_ctrl_c_during_a_fetch(ragkit, server, monkeypatch):
    register(monkeypatch, entry(NQ, BODY, url=server.url))
    with monkeypatch.context() as patch:
        interrupt_after(patch, 1000)
        code, out, err = ragkit("data", "fetch", NQ)
    assert (code, out, err.strip()) == (130, "", "ragkit: interrupted")
    part = paths.cache_dir() / (NQ + ".part")
    assert part.stat().st_size >= 1000
    assert ragkit("data", "fetch", NQ)[0] == 0
    assert server.requests[-1]["Range"].startswith("bytes=")


def test_status_names_other_releases_and_unverified_files(ragkit, data):
    write(data, {NQ: [{"question": "who", "answer": ["x"]}], LSAT: b"Item1\n1\n0\n1\n1\n"})
    write(data, {KB: OFFICIAL["wixqa"][KB]})
    table = status(ragkit, "--data", data)[2]
    assert (table[NQ]["state"], table[KB]["state"]) == ("other release", "other release")
    assert table[NQ]["detail"] == "other release: 1 rows instead of 2"
    assert table[KB]["detail"] == "other release: 3 rows instead of 6"
    write(data, {KB: OFFICIAL["wixqa"][KB] * 2})
    row = status(ragkit, "--data", data)[2][KB]
    assert row["state"] == "present"
    assert row["detail"] == f"{data / KB}, unverified: no digest was ever pinned"
    lacking = [{k: v for k, v in one.items() if k != "contents"} for one in OFFICIAL["wixqa"][KB]]
    write(data, {KB: lacking})
    code, _, table = status(ragkit, "--data", data)
    assert code == 1
    assert "no column 'contents'" in table[KB]["detail"]


def test_status_looks_into_slices_and_names_the_revision(ragkit, data, monkeypatch):
    register(monkeypatch, entry(ZIP, pinned=False, rows=9), entry(NQ))
    members = OFFICIAL["enterpriserag_bench"][ZIP]
    first, last = dict(list(members.items())[:2]), dict(list(members.items())[2:])
    write(data, {SLICE.format("slack"): first, SLICE.format("jira"): last})
    registry.pin_path(data / NQ).write_text(
        json.dumps({"sha256": registry.sha256(data / NQ), "revision": "0123456789abcdef"})
    )
    table = status(ragkit, "--data", data)[2]
    assert (table[ZIP]["state"], table[ZIP]["detail"]) == ("partial", "3 of 9 rows")
    assert table[NQ]["detail"] == f"{data / NQ}, revision 012345678"


def test_a_hub_in_all_its_moods(ragkit, server, monkeypatch):
    """Each fault has its sentence, and what was there before is there after it."""
    one, two, three = (encode(KB, OFFICIAL["wixqa"][KB][:n]) for n in (3, 2, 1))
    register(monkeypatch, entry(KB, pinned=False, rows=3, url=f"{fetch.HUB}file"))
    monkeypatch.setenv("HF_ENDPOINT", server.url.removesuffix("/file"))
    path = paths.cache_dir() / KB
    part = path.with_name(path.name + ".part")

    def get(*options, **server_does):
        defaults = {"cut_after": None, "status": None, "published": None}
        for name, value in (defaults | server_does).items():
            setattr(server, name, value)
        return ragkit("data", "fetch", *options, KB)

    def state():
        return status(ragkit)[2][KB]

    code, out, err = get(body=one, cut_after=20)  # truncated
    assert (code, out) == (1, "")
    assert "after 20 bytes from 127.0.0.1" in err
    assert "run the same command again: it continues where it stopped" in err
    assert state()["state"] == "missing"
    code, out, err = get(status=404)
    assert (code, err) == (1, f"ragkit: {KB}: 404 Not Found from 127.0.0.1\n")
    assert part.read_bytes() == one[:20]
    told = f"{KB}: {len(one)} bytes, pinned, no digest is published to verify it by\n"
    assert get() == (0, told, "")  # resumed, no digest
    assert server.ranges_asked[-1] == "bytes=20-"
    assert path.read_bytes() == one
    assert state()["state"] == "present"
    assert "no digest is published" in state()["detail"]

    assert get("--refresh", body=two, etag='"version-2"', cut_after=20)[0] == 1
    assert path.read_bytes() == one
    get("--refresh", body=three, etag='"version-3"')  # changed in flight: nothing is mixed
    assert path.read_bytes() == three
    assert state()["state"] == "other release"
    assert state()["detail"].startswith("other release: 1 rows instead of 3")  # wrong rows

    code, _, err = get("--refresh", body=one, etag='"version-4"', published="0" * 64)
    assert code == 1
    assert "expected 000000000000..." in err
    assert "nothing was kept" in err
    assert path.read_bytes() == three
    path.write_bytes(b"changed after")
    assert state()["state"] == "cut or damaged"
    assert "run: ragkit data fetch wixqa" in state()["detail"]
    told = f"{KB}: {len(one)} bytes, verified\n"
    assert get(body=one, published=hashlib.sha256(one).hexdigest()) == (0, told, "")
    assert state()["state"] == "present"
