"""BM25 beside bm25s and rank_bm25: index time, peak memory, queries per second.

Each engine runs in a process of its own, which reads the same made documents of about 300 words
from a file into a list of strings. The peak memory is that of the whole process: Python, the
engine's imports and the texts included. 500,000 documents, streamed from a generator, take some
minutes: `python -m tests.bench.bench_bm25 stream`.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench import Row, least, most, timed

ROOT = Path(__file__).resolve().parents[2]
K = 10
SIZES = (6_000, 50_000)
PEERS = ("bm25s", "rank_bm25")
ASKED = {"rank_bm25": 10}  # it answers some ten queries a second
STREAMED, STREAM_MB = 500_000, 3000


def run():
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            made = _write(Path(folder) / "made.txt", size)
            ours = measure("ragkit", made)
            for peer in PEERS:
                yield from _rows(f"{size:,} documents", ours, measure(peer, made), peer)
    yield least(f"BM25 queries, {size:,} documents", ours["qps"], 1000, "queries/s")


def stream():
    """Yield the rows of streaming: not part of `make bench`, because it takes minutes."""
    got, what = measure("stream", STREAMED), f"{STREAMED:,} documents streamed"
    yield most(f"BM25 memory, {what}", got["mb"], STREAM_MB, "MB")
    yield most(f"BM25 index, {what}", got["index"], 600)
    yield least(f"BM25 queries, {what}", got["qps"], 0, "queries/s")


def _rows(what, ours, peer, name):
    """Yield a row a measure; only bm25s sets targets, rank_bm25 is there to be seen beside it."""
    bound = name == "bm25s"
    for measured, key, unit, target in (
        ("index", "index", "s", 1.0),
        ("memory", "mb", "MB", 2.0),
        ("queries", "qps", "queries/s", 0.0),
    ):
        ratio = ours[key] / peer[key] if key == "qps" else peer[key] / ours[key]
        target = target if bound else 0.0
        yield Row(f"BM25 {measured}, {what}", ours[key], peer[key], name, ratio, target, unit=unit)


def _write(path: Path, size: int) -> Path:
    from tests.systems.retrieval import zipf

    texts = [entry["text"] for entry in zipf.documents(size)]
    lines = [json.dumps(zipf.queries(texts, 1000)), *texts]
    path.write_text("\n".join(lines), "ascii")
    return path


def measure(engine: str, made) -> dict:
    """Run one engine in a fresh process and return seconds, queries per second and megabytes."""
    command = [sys.executable, "-m", "tests.bench.bench_bm25", engine, str(made)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def _measured(engine: str, made: str) -> dict:
    if engine == "stream":
        from tests.systems.retrieval import zipf

        sample = [entry["text"] for entry in zipf.documents(1000)]
        engine, held, asked = "ragkit", zipf.documents(int(made)), zipf.queries(sample, 1000)
    else:
        with open(made, encoding="ascii") as lines:
            asked, held = json.loads(next(lines)), [line.rstrip("\n") for line in lines]
    asked = asked[: ASKED.get(engine)]
    build, ask = ENGINES[engine]
    built, index = timed(lambda: build(held))
    ask(index, asked[:1])
    seconds, _ = timed(lambda: ask(index, asked))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"index": built, "qps": len(asked) / seconds, "mb": peak}


def _build_ragkit(held):
    from ragkit.systems.retrieval import BM25

    if isinstance(held, list):
        held = ({"doc_id": str(n), "title": None, "text": text} for n, text in enumerate(held))
    return BM25().fit(held)


def _ask_ragkit(index, asked):
    index.search(asked, K)


def _build_bm25s(texts):
    import bm25s

    index = bm25s.BM25(k1=1.2, b=0.75, method="lucene", backend="numba")
    index.index(bm25s.tokenize(texts, stopwords=None, show_progress=False), show_progress=False)
    return index


def _ask_bm25s(index, asked):
    import bm25s

    tokens = bm25s.tokenize(asked, stopwords=None, show_progress=False)
    index.retrieve(tokens, k=K, show_progress=False)


def _build_rank_bm25(texts):
    from rank_bm25 import BM25Okapi

    return BM25Okapi([text.lower().split() for text in texts], k1=1.2, b=0.75)


def _ask_rank_bm25(index, asked):
    for text in asked:
        scores = index.get_scores(text.lower().split())
        scores.argsort()[-K:]


ENGINES = {
    "ragkit": (_build_ragkit, _ask_ragkit),
    "bm25s": (_build_bm25s, _ask_bm25s),
    "rank_bm25": (_build_rank_bm25, _ask_rank_bm25),
}

if __name__ == "__main__":
    if sys.argv[1:] == ["stream"]:
        for row in stream():
            print(f"{row.what}: {row.ours:,.1f} {row.unit}, target {row.target:,}")
    else:
        print(json.dumps(_measured(*sys.argv[1:])))
