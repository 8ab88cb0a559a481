"""The offline author: time and memory of the paper's size, and how alike documents and questions are."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench import least, most

DOCUMENTS = 2_000
FULL = 512_000
QUESTIONS = 895  # as many as LiveRAG has
QUESTION_DOCUMENTS = 9_000


def run():
    with tempfile.TemporaryDirectory(prefix="ragkit-synth-") as folder:
        seconds, processor, memory = whole(Path(folder) / "whole")
        what = f"{FULL:,} documents, two processes"
        yield most(f"{what}, seconds", seconds, 70)
        yield most(f"{what}, processor time", processor, 140)
        yield most(f"{what}, memory of all", memory, 1, "GB")
        yield from _likeness(Path(folder))


def _likeness(folder):
    from ragkit import datasets, models
    from ragkit.measures import corpus, diversity
    from ragkit.synth import generate

    generate(folder / "few", documents=DOCUMENTS, seed=7)
    made = datasets.load(str(folder / "few"))
    share = close_siblings(made.documents, folder / "few", corpus.closest_siblings)
    yield most("close siblings, 5-word phrases > 0.5", share, 0.05, "")
    generate(folder / "asked", documents=QUESTION_DOCUMENTS, seed=7, questions=QUESTIONS)
    asked = datasets.load(str(folder / "asked")).questions["text"]
    written = datasets.load("liverag", profile="sample").questions["text"]
    sets = (("offline", asked, 2.6, 0.2), ("written sample", written, 2.95, 0.12))
    for name, texts, diverse, alike in sets:
        what = f"{len(texts)} questions, {name}"
        found = diversity.ngram_diversity(list(texts))
        yield least(f"n-gram diversity, {what}", found, diverse)
        vectors = models.encoder("all-MiniLM-L6-v2").encode(list(texts), kind="query")
        score = diversity.homogenization_score(vectors)
        yield most(f"homogenization, {what}", score, alike, "")


def whole(out: Path) -> tuple[float, float, float]:
    """Return seconds, processor seconds and GB of a company in the paper's size, by the command."""
    import psutil

    arguments = ["--out", out, "--documents", FULL, "--seed", 7, "--jobs", 2]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start, most = time.perf_counter(), 0
    process = psutil.Popen(
        [sys.executable, "-m", "ragkit", "generate", "erb", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
    )
    while process.poll() is None:
        try:
            family = [process, *process.children(recursive=True)]
            most = max(most, sum(one.memory_info().rss for one in family))
        except psutil.NoSuchProcess:  # one ended between the two calls
            pass
        time.sleep(0.2)
    if process.returncode:
        raise RuntimeError(f"ragkit generate ended with {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - start, processor, most / 1e9


def close_siblings(documents, folder: Path, closest) -> float:
    """Return the share of documents that have more than half of all phrases in common with one.

    Planted near-duplicates and their originals are left out.
    """
    lines = (folder / "records" / "near_duplicates.jsonl").read_text("utf-8").splitlines()
    pairs = map(json.loads, lines)
    planted = {row[side] for row in pairs for side in ("original", "duplicate")}
    texts = documents.loc[~documents["doc_id"].isin(planted), "text"].tolist()
    similarity, _ = closest(texts)
    return float((similarity > 0.5).mean())
