"""How long a user waits for the package itself: import, help, and a run with nothing to do."""

from __future__ import annotations

import subprocess
import sys
from time import perf_counter

from ragkit.report import pipeline
from tests.bench import Row


def run():
    bare = _time("-c", "pass")
    ours = _time("-c", "import ragkit")
    yield Row("import ragkit, whole process", ours, bare, "python alone", ours, 0.5, False)
    ours = _time("-m", "ragkit", "--help")
    yield Row("ragkit --help, whole process", ours, bare, "python alone", ours, 1.0, False)
    plan = pipeline.make_plan("sample")
    if not pipeline.stale(plan):
        ours = _time("-m", "ragkit", "reproduce", repeats=1)
        yield Row("make reproduce with nothing to do", ours, bare, "python alone", ours, 10, False)


def _time(*arguments, repeats=5):
    best = float("inf")
    for _ in range(repeats):
        start = perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        best = min(best, perf_counter() - start)
    return best
