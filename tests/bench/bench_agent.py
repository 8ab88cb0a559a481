"""The agent's sandboxes beside bash without one: what a command line costs.

Both search the same tree of 5,000 generated documents, from warm caches.
"""

from __future__ import annotations

import subprocess
import tempfile

from tests.bench import beside, timed

DOCUMENTS = 5_000
LINES = {
    "a rare word": "grep -r -i -l -e zri .",
    "a word's forms": r"grep -r -i -o -h -E -e '\boxco[a-z]*' . | sort | uniq -c",
    "one file": "head -n 1 s0/0/0",
}
FLOOR = {"sandlock": 0.05, "bashkit": 0.005}


def run():
    import pandas as pd

    from ragkit.systems.agent import corpus_tree, open_sandbox
    from ragkit.systems.agent.sandbox import SANDBOXES
    from tests.systems.retrieval import zipf

    documents = pd.DataFrame(
        {
            **entry,
            "title": f"document {n}",
            "source": f"s{n % 9}",
            "path": f"s{n % 9}/{n // 50}/{n}",
        }
        for n, entry in enumerate(zipf.documents(DOCUMENTS))
    )
    with tempfile.TemporaryDirectory() as folder:
        tree = corpus_tree(documents, folder)
        for name, kind in SANDBOXES.items():
            if kind.missing():
                continue
            box = open_sandbox(tree.root, name, output_bytes=1 << 24, seconds=60)
            for what, line in LINES.items():
                ours, text = timed(lambda line=line, box=box: box.run(line).text, 3)
                peer, expected = timed(lambda line=line: _bash(line, tree.root), 3)
                if sorted(text.splitlines()) != sorted(expected.splitlines()):
                    raise AssertionError(f"{name}: {line}: not what bash prints")
                title = f"{name}, {DOCUMENTS:,} documents, {what}"
                yield beside(title, ours, peer, "bash", FLOOR[name])


def _bash(line, folder):
    command = ["bash", "-c", line]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout
