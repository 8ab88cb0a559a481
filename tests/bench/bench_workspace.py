"""How long a user waits for the package itself: import, help, and a run with nothing to do."""

from __future__ import annotations

import subprocess
import sys

from ragkit.report import pipeline
from tests.bench import Row, timed


def run():
    bare = _time("-c", "pass")
    waits = [("import ragkit", 0.5, 5, "-c", "import ragkit")]
    waits += [("ragkit --help", 1.0, 5, "-m", "ragkit", "--help")]
    if not pipeline.stale(pipeline.make_plan("sample")):
        waits += [("make reproduce with nothing to do", 10, 1, "-m", "ragkit", "reproduce")]
    for what, target, repeats, *arguments in waits:
        ours = _time(*arguments, repeats=repeats)
        yield Row(f"{what}, whole process", ours, bare, "python alone", ours, target, False)


def _time(*arguments, repeats=5):
    command = [sys.executable, *arguments]
    return timed(lambda: subprocess.run(command, check=True, capture_output=True), repeats)[0]
