import errno
import io
import json
import logging
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from ragkit import display, paths
from ragkit.datasets import fetch
from ragkit.datasets.registry import Entry, Store, pin_path
from ragkit.errors import FetchError, HashMismatch, RagkitError, UsageError
from tests.conftest import bytes_of
from tests.datasets.official import EXPERT as PATH
from tests.datasets.official import entry, register, sha256_of
from tests.datasets.server import BODY, Server

TOKEN = "hf_plantedForThisTestOnly0123456789"


@pytest.fixture(autouse=True)
def _no_proxy_and_no_token(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "HF_TOKEN", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def _server():
    with Server() as one:
        yield one


server = pytest.fixture(_server, name="server")
mirror_host = pytest.fixture(_server, name="mirror_host")


def pinned(server=None, body=BODY) -> Entry:
    url = server.url if server else "https://data.example/file"
    return entry(PATH, body, url=url)


def unpinned(server) -> Entry:
    return entry(PATH, BODY, pinned=False, url=server.url)


def get(file, **options):
    return fetch.fetch(file, timeout=5, **options)


def cached():
    return bytes_of(paths.cache_dir())


TARGET, PART, ETAG = PATH, PATH + ".part", PATH + ".part.etag"


@pytest.mark.parametrize("habit", ["usual", "no ranges", "no etag", "chunked", "no length"])
def test_a_registered_file_is_fetched_once_verified_and_kept(server, habit):
    server.ranges = habit != "no ranges"
    server.etag = None if habit == "no etag" else server.etag
    server.chunked = habit == "chunked"
    server.length = habit != "no length"
    path = get(pinned(server))
    assert path == paths.cache_dir() / PATH == get(pinned(server))
    assert cached() == {TARGET: BODY}
    assert len(server.requests) == 1


def cut(server, after):
    """Fetch with the connection cut after some bytes; return what is left to continue."""
    server.cut_after = after
    with pytest.raises(FetchError, match="after [0-9,]+ bytes from 127.0.0.1") as info:
        get(pinned(server))
    assert "continues where it stopped" in info.value.hint
    server.cut_after = None
    assert TARGET not in cached()
    return cached().get(PART, b"")


@pytest.mark.parametrize("after", [0, 1, 1000, 300_000, len(BODY) - 1])
def test_a_cut_download_is_continued_from_where_it_stopped(server, after):
    assert cut(server, after) == BODY[:after]
    get(pinned(server))
    assert server.ranges_asked == [None, f"bytes={after}-" if after else None]
    assert cached() == {TARGET: BODY}


def test_the_bar_counts_bytes_from_where_the_download_goes_on(server, monkeypatch):
    told, stage = [], display.Bar.stage
    monkeypatch.setattr(display.Bar, "stage", lambda bar, *at: (told.append((*at, bar.unit)), stage(bar, *at)))  # fmt: skip
    cut(server, 1000)
    told.clear()
    get(pinned(server))
    name, total = Path(PATH).name, len(BODY)
    assert told[0] == (name, 1000, total, "B")
    assert told[-1] == (name, total, total, "B")


@pytest.mark.parametrize("fault", ["chunked", "short range", "wrong start"])
def test_other_cuts_are_noticed_and_nothing_wrong_is_appended(server, fault):
    server.chunked = fault == "chunked"
    cut(server, 1000)
    server.chunked, server.wrong_start = False, fault == "wrong start"
    if fault == "short range":
        server.short_range = 500
        with pytest.raises(FetchError, match="1,500 of 512,000 bytes came"):
            get(pinned(server))
        server.short_range = None
    get(pinned(server))
    assert cached() == {TARGET: BODY}


def test_a_part_of_an_older_version_is_not_mixed_with_a_newer_one(server):
    server.cut_after = 1000
    with pytest.raises(FetchError):
        get(unpinned(server))
    assert cached()[ETAG] == b'"version-1"'
    server.cut_after, server.etag, server.body = None, '"version-2"', BODY[::-1]
    get(unpinned(server))
    assert server.ranges_asked == [None, "bytes=1000-", None]
    assert cached()[TARGET] == BODY[::-1]
    assert ETAG not in cached()


@pytest.mark.parametrize("etag", [None, 'W/"weak"'])
def test_without_digest_and_version_nothing_is_continued(server, etag):
    server.cut_after, server.etag = 1000, etag
    with pytest.raises(FetchError):
        get(unpinned(server))
    server.cut_after, server.length = None, False
    with pytest.raises(FetchError, match="states neither size nor digest"):
        get(unpinned(server))
    server.length = True
    get(unpinned(server))
    assert server.ranges_asked == [None, None, None]
    assert cached()[TARGET] == BODY


def test_what_is_fetched_is_pinned_and_the_pin_enforced(server, tmp_path, monkeypatch):
    register(monkeypatch, unpinned(server))
    path = get(unpinned(server))
    assert json.loads(pin_path(path).read_text()) == {
        "url": server.url,
        "sha256": sha256_of(BODY),
        "published": False,
        "revision": "",
        "etag": '"version-1"',
    }
    assert Store().find(PATH).path == path
    path.write_bytes(BODY + b"!")
    with pytest.raises(HashMismatch, match=f"expected {sha256_of(BODY)[:12]}") as info:
        Store().find(PATH)
    assert "ragkit data fetch wixqa" in info.value.hint
    # A damaged copy is no reason to call it verified; it is fetched again.
    get(unpinned(server))
    assert Store().find(PATH).path.read_bytes() == BODY


def test_what_the_server_publishes_in_another_version_is_another_release(server, monkeypatch):
    register(monkeypatch, entry(PATH, b"registered", url=server.url))
    server.body = b'{"question": "a", "answer": "b", "article_ids": []}\n'
    with pytest.raises(HashMismatch):  # nobody vouches for these bytes
        get(entry(PATH, b"registered", url=server.url))
    server.published = sha256_of(server.body)
    path = get(entry(PATH, b"registered", url=server.url))
    assert json.loads(pin_path(path).read_text())["published"] is True
    found = Store().find(PATH)
    assert (found.state, found.path) == ("other release", path)
    get(entry(PATH, b"registered", url=server.url))
    assert len(server.requests) == 2
    path.write_bytes(b"changed")
    with pytest.raises(HashMismatch, match="changed since it was fetched"):
        Store().find(PATH)


def test_refresh_asks_whether_the_source_has_changed(server):
    path = get(unpinned(server))
    assert get(unpinned(server), refresh=True).read_bytes() == BODY
    assert server.requests[-1]["If-None-Match"] == '"version-1"'
    server.body, server.etag, server.published = b"new", '"version-2"', sha256_of(b"new")
    assert get(unpinned(server), refresh=True).read_bytes() == b"new"
    assert json.loads(pin_path(path).read_text())["sha256"] == sha256_of(b"new")


def test_a_mirror_of_the_hub_is_asked_in_its_place(server, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", server.url.removesuffix("/file"))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    get(entry(PATH, BODY, url=fetch.HUB + "file"))
    assert cached() == {TARGET: BODY}
    assert server.requests[0]["Authorization"] == f"Bearer {TOKEN}"
    assert fetch._token(fetch.HUB) == {}


def test_a_digest_stated_before_the_redirect_counts(server, mirror_host):
    server.redirect, server.published = mirror_host.url, sha256_of(b"something else")
    with pytest.raises(HashMismatch):
        get(unpinned(server))
    server.published = sha256_of(BODY)
    path = get(unpinned(server))
    assert json.loads(pin_path(path).read_text())["published"] is True


def test_wrong_bytes_are_refused_and_not_kept(server):
    server.body = BODY[:-1] + b"?"
    with pytest.raises(HashMismatch) as info:
        get(pinned(server))
    assert info.value.message.startswith(f"{PATH}: the download has sha256 ")
    assert f"expected {sha256_of(BODY)[:12]}" in info.value.message
    assert "nothing was kept" in info.value.hint
    assert cached() == {}


@pytest.mark.parametrize("status", [204, 206, 304, 400, 401, 403, 404, 416, 429, 500, 503])
def test_any_other_answer_is_an_error(server, status):
    server.status = status
    with pytest.raises(FetchError, match=f"{PATH}: {status} .*from 127.0.0.1") as info:
        get(pinned(server))
    # A gated file names the variable to set.
    assert ("set HF_TOKEN" in str(info.value.hint)) == (status in (401, 403))
    assert cached() == {}


def test_a_server_that_is_not_there_or_falls_silent(server, monkeypatch):
    release = threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(server, "answer", lambda request: release.wait(10))
        with pytest.raises(FetchError, match="ReadTimeout after 0 bytes"):
            fetch.fetch(pinned(server), timeout=0.2)
        release.set()
    server.http.shutdown()  # a thread that still polls would keep the socket alive
    server.http.server_close()
    with pytest.raises(FetchError, match="ConnectError after 0 bytes from 127.0.0.1"):
        get(pinned(server))


@pytest.mark.parametrize("url", ["ftp://data.example/a", "no address", "http://", "http://[::"])
def test_an_address_that_is_none(url):
    with pytest.raises(FetchError, match=PATH):
        get(entry(PATH, BODY, url=url))


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_too_little_space_is_said_before_the_first_byte(server, monkeypatch):
    monkeypatch.setattr(fetch.shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    with pytest.raises(FetchError, match="needs 512,000 bytes, .* has 10 free"):
        get(pinned(server))
    assert cached() == {}


def test_a_disk_that_fills_up_keeps_what_came_and_is_continued(server, monkeypatch):
    class Small(io.FileIO):
        def write(self, chunk):
            if self.tell() + len(chunk) > 200_000:
                full()
            return super().write(chunk)

    with monkeypatch.context() as patch:
        patch.setattr(fetch, "open", Small, raising=False)
        with pytest.raises(FetchError, match=f"{PATH}: cannot write .*No space left") as info:
            get(pinned(server))
    assert "free some space" in info.value.hint
    begun = cached()[PART]
    assert 0 < len(begun) <= 200_000
    assert TARGET not in cached()
    get(pinned(server))
    assert server.ranges_asked[-1] == f"bytes={len(begun)}-"
    assert cached() == {TARGET: BODY}


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("old", [None, b"old"])
def test_a_disk_that_refuses_the_last_step_loses_nothing(server, monkeypatch, known, old):
    file = pinned(server) if known else unpinned(server)
    target = paths.cache_dir() / PATH
    if old:
        target.parent.mkdir(parents=True)
        target.write_bytes(old)
        pin_path(target).write_text(json.dumps({"sha256": "0" * 64}))  # so that it is damaged
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(RagkitError, match="No space left"):
            get(file)
    assert cached().get(TARGET) == old
    get(file)
    assert cached()[TARGET] == BODY
    assert not [name for name in cached() if name.endswith((".part", ".etag"))]


@pytest.fixture
def hub(server, monkeypatch):
    """The loopback server in the place of the hub, and a planted token."""
    monkeypatch.setenv("HF_ENDPOINT", server.url.removesuffix("file"))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    return server


@pytest.fixture
def secret(tmp_path, capfd, caplog):
    """Check at the end that the token is in no file, log or output."""
    caplog.set_level(logging.DEBUG)
    yield
    for path in filter(os.path.isfile, tmp_path.rglob("*")):
        assert TOKEN.encode() not in str(path).encode() + path.read_bytes()
    assert TOKEN not in "".join(capfd.readouterr()) + caplog.text


@pytest.mark.usefixtures("secret")
def test_the_token_goes_to_the_hub_and_nowhere_else(hub, mirror_host):
    hub.redirect = mirror_host.url
    fetch.fetch(unpinned(hub), timeout=5)
    assert hub.requests[0]["Authorization"] == f"Bearer {TOKEN}"
    assert "Authorization" not in mirror_host.requests[0]
    assert not any(TOKEN in value for value in mirror_host.requests[0].values())
    assert cached()[TARGET] == BODY


@pytest.mark.parametrize(
    "url",
    [
        "http://huggingface.co/datasets/a",  # in the clear
        "https://huggingface.co.evil.example/a",
        "https://huggingface.co@evil.example/a",
        "https://cdn-lfs.huggingface.co/a",
        "",
    ],
)
def test_hosts_that_only_look_like_the_hub(url, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert fetch._token(url) == {}
    assert fetch._token("https://huggingface.co/datasets/a") == {"Authorization": f"Bearer {TOKEN}"}


@pytest.mark.usefixtures("secret")
@pytest.mark.parametrize("fault", ["401", "500", "cut", "wrong bytes", "gone", "disk"])
def test_no_error_shows_the_token(hub, fault, monkeypatch):
    if fault.isdigit():
        hub.status = int(fault)
    elif fault == "cut":
        hub.cut_after = 10
    elif fault == "wrong bytes":
        hub.body = b"wrong"
    elif fault == "gone":
        hub.http.server_close()
    else:
        monkeypatch.setattr(fetch.shutil, "disk_usage", full)
    with pytest.raises(RagkitError) as info:
        fetch.fetch(pinned(hub), timeout=5)
    error = info.value
    while error is not None:
        assert TOKEN not in f"{error!s} {error!r} {getattr(error, 'hint', '')}"
        error = error.__cause__


@pytest.mark.parametrize("token", [TOKEN + "é", TOKEN + "\x07"])
def test_a_token_that_is_none_is_refused_without_being_shown(hub, monkeypatch, token):
    monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(FetchError, match="HF_TOKEN holds characters") as info:
        get(pinned(hub))
    assert "planted" not in str(info.value)
    assert hub.requests == []


def test_a_dataset_is_its_official_files_and_a_file_is_itself(monkeypatch):
    part = entry("part.jsonl", b"x", part_of=PATH, rows=1, dataset="wixqa")
    derived = entry("derived.csv", b"y", url="", dataset="wixqa")
    register(monkeypatch, pinned(), part, derived, entry("liverag/q.csv", b"z", dataset="liverag"))
    assert [file.path for file in fetch.wanted("wixqa")] == [PATH]
    assert [file.path for file in fetch.wanted("part.jsonl")] == ["part.jsonl"]
    with pytest.raises(FetchError, match="derived.csv cannot be fetched") as info:
        fetch.wanted("derived.csv")
    assert "DATA=" in info.value.hint
    with pytest.raises(UsageError, match="no dataset or file 'WixQA'") as info:
        fetch.wanted("WixQA")
    assert info.value.hint == "did you mean 'wixqa'?"
