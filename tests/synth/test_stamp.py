"""A generated folder after a kill, and with two runs in it."""

from __future__ import annotations

import signal
import subprocess
import sys

from ragkit.synth.stamp import begin

WRITER = """
import sys, time
from ragkit.files import atomic_path
with atomic_path(sys.argv[1]) as path:
    path.write_text("half")
    print(path, flush=True)
    time.sleep(60)
"""


def writer(path):
    """Start a process that writes a file and does not end; return it and its temporary file."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    )
    return process, process.stdout.readline().strip()


def test_what_a_killed_run_left_goes_and_what_another_run_writes_stays(tmp_path):
    begin(tmp_path, {"seed": 1})
    (tmp_path / ".of-a-user").write_text("kept")
    killed, left = writer(tmp_path / "stages" / "1-core" / "documents.jsonl")
    alive, written = writer(tmp_path / "stages" / "1-core" / "facts.jsonl")
    try:
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        begin(tmp_path, {"seed": 1})
        hidden = {str(path) for path in tmp_path.rglob(".*")}
        assert left not in hidden
        assert hidden == {written, str(tmp_path / ".of-a-user")}
    finally:
        alive.kill()
        alive.communicate()
