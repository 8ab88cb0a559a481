"""The offline judge: judgements per time, against plain word coverage and the time it may take."""

from __future__ import annotations

import re
from time import process_time

import numpy as np

from ragkit.judging import Task
from ragkit.judging.offline import OfflineJudge
from tests.bench import beside, most

JUDGEMENTS = 10_000
MINUTES = 10


def run():
    tasks = _tasks(JUDGEMENTS)
    judge = OfflineJudge()
    start = process_time()
    verdicts = judge.judge(tasks)
    ours = process_time() - start
    start = process_time()
    for task in tasks:
        _coverage(task)
    peer = process_time() - start
    assert len(verdicts) == JUDGEMENTS
    what = f"offline judge, {JUDGEMENTS:,} answers"
    yield most(what, ours, 60 * MINUTES, name="ten minutes, one core")
    # The judge does far more than the plain coverage; the ratio only bounds how much more.
    yield beside(f"{what}, ratio", ours, peer, "word coverage", 0.002)


def _tasks(n: int) -> list[Task]:
    """Return tasks of the size of the benchmark's: 40 words wanted, 110 answered, none alike."""
    rng = np.random.default_rng(0)
    letters = rng.choice(list("abcdefghijklmnoprstu"), (5000, 8))
    words = ["".join(row[: 3 + number % 6]) for number, row in enumerate(letters)]

    def text(size: int) -> str:
        drawn = [words[place] for place in rng.integers(len(words), size=size)]
        drawn[::15] = [f"{number} MiB." for number in rng.integers(999, size=len(drawn[::15]))]
        return " ".join(drawn)

    return [
        Task("correctness", {"question": text(20), "gold": text(40), "answer": text(110)})
        for _ in range(n)
    ]


def _coverage(task: Task) -> float:
    gold, answer = (
        set(re.findall(r"\w+", task.fields[name].lower())) for name in ("gold", "answer")
    )
    return len(gold & answer) / len(gold)
