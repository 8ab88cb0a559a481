"""The agent's sandbox beside GNU grep, and its patterns on lines that make backtracking explode.

Both search the same tree of 5,000 made documents, from warm caches; GNU's side pays for its
process. That Python needs some times as long is the price of running no program at all.
"""

from __future__ import annotations

import math
import subprocess
import tempfile
from time import perf_counter

from tests.bench import Row

DOCUMENTS = 5_000
LINES = {
    "a rare word": "grep -r -i -l -e zri .",
    "no line": "grep -r -i -l -e zzzqq .",
    "a word's forms": "grep -r -i -o -E -e '\\<oxco[[:alnum:]]*' .",
    "every line": "grep -r -c -e e .",
}


def run():
    import pandas as pd

    from ragkit.systems.agent import Sandbox, corpus_tree
    from tests.systems.retrieval import zipf

    made = (
        {
            **entry,
            "title": f"document {n}",
            "source": f"s{n % 9}",
            "path": f"s{n % 9}/{n // 50}/{n}",
        }
        for n, entry in enumerate(zipf.documents(DOCUMENTS))
    )
    with tempfile.TemporaryDirectory() as folder:
        tree = corpus_tree(pd.DataFrame(made), folder)
        with Sandbox(tree.root, output_bytes=1 << 24) as sandbox:
            for what, line in LINES.items():
                ours, text = _best(lambda line=line: sandbox.run(line).text)
                peer, expected = _best(lambda line=line: _gnu(line, tree.root))
                if sorted(text.splitlines()) != sorted(expected.splitlines()):
                    raise AssertionError(f"{line}: not what GNU grep prints")
                title = f"sandbox grep, {DOCUMENTS:,} documents, {what}"
                yield Row(title, ours, peer, "GNU grep", peer / ours, 0.2)
    yield _linear()


def _linear():
    """Twice the line, twice the time: the ratio would be astronomical with backtracking."""
    from ragkit.systems.agent.patterns import Pattern

    pattern = Pattern(["(a|aa)+(a*)*b"], syntax="extended")
    line = "a" * 200_000
    pattern.matches(line)
    short, _ = _best(lambda: pattern.matches(line))
    long, _ = _best(lambda: pattern.matches(2 * line))
    what = "ambiguous pattern, line of 400,000"
    return Row(what, long, math.nan, "(bound)", long / short, 4.0, at_least=False)


def _best(work, times=3):
    seconds = math.inf
    for _ in range(times):
        start = perf_counter()
        result = work()
        seconds = min(seconds, perf_counter() - start)
    return seconds, result


def _gnu(line, folder):
    command = ["bash", "-c", line]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout
