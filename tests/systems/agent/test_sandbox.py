"""The two sandboxes against lines of someone who wants out, and lines that a model writes.

`hostile.txt` holds lines that try to read, name, change or reach something outside the corpus;
`bombs.txt` lines that try to use up time, memory, processes or output; `ordinary.txt` lines
as a model writes them, whose output must be that of bash on this machine.
"""

from __future__ import annotations

import hashlib
import os
import socketserver
import subprocess
import threading
import time
from pathlib import Path

import pytest

from ragkit.errors import DataError, ModelError, UsageError
from ragkit.systems.agent import sandbox as module
from ragkit.systems.agent.sandbox import SANDBOXES, Output, open_sandbox
from tests.systems.agent.conftest import plant

HERE = Path(__file__).parent
CONTENT, NAME = "canary-4d1c-sings", "zwitscher"
SECRET = "nightingale-77"
SECONDS = 1.0
SLACK = 8.0  # a busy machine: still far below what a bomb would take
# Lines whose output bashkit prints in another form, known and few.
NOT_IN_BASHKIT = 3


def lines(name):
    return (HERE / f"{name}.txt").read_text("utf-8").splitlines()


def in_bash(line, folder):
    """Run a line in the machine's own bash."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    return subprocess.run(["bash", "-c", line], cwd=folder, env=environment, **pipes)


def fill(line, names):
    for name, value in names.items():
        line = line.replace(f"{{{name}}}", str(value))
    return line


@pytest.fixture(scope="module", params=sorted(SANDBOXES))
def kind(request):
    missing = SANDBOXES[request.param].missing()
    if missing:
        pytest.skip(missing)
    return request.param


@pytest.fixture(scope="module")
def trap(tmp_path_factory):
    """A corpus, a canary beside it, a secret in the environment and a server on loopback."""
    base = tmp_path_factory.mktemp("trap")
    root = plant(base / "corpus")
    (root / "wide.txt").write_text("a" * 200_000 + "!\n")
    with open(root / "sparse.bin", "wb") as stream:
        stream.truncate(6_000_000_000)
    outside = plant(base / NAME, {f"{NAME}.txt": f"{CONTENT}\n"})
    seen = []

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            seen.append("connection")

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        os.environ["SECRET_OF_THE_PARENT"] = SECRET
        names = {"UP": f"../{NAME}/{NAME}.txt", "NAME": NAME, "OUTSIDE": str(outside)}
        yield root, {**names, "PORT": server.server_address[1]}, seen
        del os.environ["SECRET_OF_THE_PARENT"]
        server.shutdown()


@pytest.fixture(scope="module")
def guarded(kind, trap):
    return open_sandbox(trap[0], kind, seconds=SECONDS, memory_bytes=128 << 20)


def fingerprint(folder):
    done = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        info = path.lstat()
        done.update(f"{path} {info.st_mode} {info.st_size} {info.st_mtime_ns}\n".encode())
        if path.is_file() and info.st_size < 1 << 20:
            done.update(path.read_bytes())
    return done.hexdigest()


@pytest.mark.parametrize("start", range(0, len(lines("hostile")), 15))
def test_hostile_lines(start, guarded, trap):
    root, names, seen = trap
    before = fingerprint(root.parent)
    for raw in lines("hostile")[start : start + 15]:
        line = fill(raw, names)
        began = time.monotonic()
        output = guarded.run(line)
        assert time.monotonic() - began < SECONDS + SLACK, line
        shown = output.text.replace(line, "")  # an error message may quote the line
        for word in (CONTENT, SECRET, "root:x", "root:*"):
            assert word not in shown, (line, output.text[:400])
    assert fingerprint(root.parent) == before
    assert not seen


@pytest.mark.parametrize("line", lines("bombs"))
def test_bombs_end_in_time_and_leave_no_process(line, guarded):
    began = time.monotonic()
    output = guarded.run(line, seconds=SECONDS / 2)
    assert time.monotonic() - began < SECONDS + SLACK
    assert len(output.text) <= guarded.output_bytes + 200
    assert guarded.run("echo still here").text == "still here\n"


def test_ordinary_lines_give_what_bash_gives(kind, corpus):
    box = open_sandbox(corpus, kind)
    differ = {}
    for line in lines("ordinary"):
        found, real = box.run(line), in_bash(line, corpus)
        same = sorted(found.text.splitlines()) == sorted(real.stdout.decode().splitlines())
        if not same or found.status != real.returncode:
            differ[line] = (found.text, real.stdout.decode())
    assert len(lines("ordinary")) == 40
    assert len(differ) <= (NOT_IN_BASHKIT if kind == "bashkit" else 0), differ


def test_the_canary_would_be_seen(trap):
    done = in_bash(fill("cat {UP}; echo $SECRET_OF_THE_PARENT", trap[1]), trap[0])
    assert CONTENT.encode() in done.stdout
    assert SECRET.encode() in done.stdout


def test_a_link_planted_later_leads_nowhere(kind, tmp_path):
    root = plant(tmp_path / "corpus", {"a.txt": "hello\n"})
    plant(tmp_path / NAME, {f"{NAME}.txt": CONTENT})
    box = open_sandbox(root, kind, seconds=2.0)
    (root / "link").symlink_to(tmp_path / NAME)
    for line in ("cat link/*", f"cat link/{NAME}.txt", "grep -r canary .", "ls -lR link/"):
        assert CONTENT not in box.run(line).text


def test_output_and_time_have_limits_and_control_characters_are_replaced(kind, corpus):
    box = open_sandbox(corpus, kind, output_bytes=200, seconds=2.0)
    output = box.run("seq 1 5000")
    assert output.truncated
    assert output.text.endswith("[output cut at 200 bytes]\n")
    assert box.run("echo hello") == Output("hello\n", 0)
    assert box.run(r"printf 'a\033[31mb\n'").text == "a\ufffd[31mb\n"
    output = box.run("sleep 20", seconds=0.5)
    assert (output.status, output.truncated) == (124, True)
    assert "stopped after 0.5 s" in output.text


@pytest.mark.parametrize("line", ["ls\0x", 7, "x" * 100_001])
def test_what_is_no_line_is_not_run(line, kind, corpus):
    assert open_sandbox(corpus, kind).run(line).status == 126
    assert open_sandbox(corpus, kind).run("echo \ud800").status == 0


@pytest.mark.parametrize("trouble", ["link", "pipe", "second name"])
def test_only_plain_files_are_searched(trouble, kind, tmp_path):
    root = plant(tmp_path / "corpus", {"a.txt": "a"})
    if trouble == "link":
        (root / "b").symlink_to("/etc")
    elif trouble == "pipe":
        os.mkfifo(root / "b")
    else:
        os.link(root / "a.txt", root / "b")
    with pytest.raises(DataError, match="is no plain file"):
        open_sandbox(root, kind)


def test_bad_options(tmp_path):
    for options in ({"seconds": 0}, {"output_bytes": 5}, {"memory_bytes": "much"}, {"colour": 1}):
        with pytest.raises(UsageError):
            open_sandbox(tmp_path, **options)
    with pytest.raises(UsageError, match="no sandbox 'docker'"):
        open_sandbox(tmp_path, "docker")
    with pytest.raises(DataError, match="is no folder"):
        open_sandbox(tmp_path / "nothing")


def test_without_any_sandbox_the_reasons_are_said(tmp_path, monkeypatch):
    for box in SANDBOXES.values():
        monkeypatch.setattr(box, "missing", staticmethod(lambda: "not today"))
    with pytest.raises(ModelError, match="bashkit: not today") as caught:
        module.open_sandbox(tmp_path)
    assert "offline" in caught.value.hint
