"""Generating: documents a second, memory, and how alike the documents of a made company are."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.bench import Row, least, most, timed

DOCUMENTS = 2_000
FEW = 5_000
MANY = 20_000
FULL = 512_000
QUESTIONS = 895  # as many as LiveRAG has
QUESTION_DOCUMENTS = 9_000


def run():
    with tempfile.TemporaryDirectory(prefix="ragkit-synth-") as folder:
        yield from _speed(Path(folder))
        yield from _likeness(Path(folder))


def _speed(folder):
    from ragkit.synth import generate

    sizes = {DOCUMENTS: {}, QUESTION_DOCUMENTS: {"questions": QUESTIONS}, FEW: {}, MANY: {}}
    seconds, asking = {}, {}
    for size, options in sizes.items():
        marks = []

        def progress(stage, done, total, marks=marks):
            if stage == "5-questions":
                marks.append(time.perf_counter())

        options = {"documents": size, "seed": 7, "progress": progress, **options}
        work = partial(generate, folder / str(size), **options)
        seconds[size], _ = timed(work)
        asking[size] = marks[-1] - marks[0]
    yield most(f"{DOCUMENTS:,} documents", seconds[DOCUMENTS], 20)
    ratio, what = asking[MANY] / asking[FEW], f"500 questions, {MANY:,} / {FEW:,} documents"
    yield Row(what, asking[MANY], asking[FEW], f"{FEW:,}", ratio, MANY / FEW, False)
    minutes, memory = whole(folder / "whole")
    what = f"{FULL:,} documents, two processes"
    yield most(what, minutes, 30, "min")
    yield most(f"{what}, memory of all", memory, 2, "GB")


def _likeness(folder):
    from ragkit import datasets, models
    from ragkit.measures import corpus, diversity, metrics
    from ragkit.systems.retrieval import BM25

    made = datasets.load(str(folder / str(DOCUMENTS)))
    share = close_siblings(made.documents, folder / str(DOCUMENTS), corpus.closest_siblings)
    yield most("close siblings, 5-word phrases > 0.5", share, 0.05, "")
    runs = BM25().fit(made.documents).search(made.questions, k=10)
    recall = metrics.retrieval(runs, made.questions, measures=["R@10"]).set_index("item_id")[
        "score"
    ]
    yield least("BM25 recall@10, all", recall.mean(), 0.5)
    yield most("BM25 recall@10, all", recall.mean(), 0.9, "")
    mean = recall.groupby(made.questions.set_index("question_id")["type"]).mean()
    for kind in ("semantic", "completeness"):
        yield most(f"recall, {kind} / basic", mean[kind] / mean["basic"], 1, "")
    company = folder / str(QUESTION_DOCUMENTS)
    texts = list(datasets.load(str(company)).questions["text"])
    yield least(f"n-gram diversity, {QUESTIONS} questions", diversity.ngram_diversity(texts), 2.6)
    vectors = models.encoder("all-MiniLM-L6-v2").encode(texts, kind="query")
    score = diversity.homogenization_score(vectors)
    yield most(f"homogenization, {QUESTIONS} questions", score, 0.2, "")


def whole(out: Path) -> tuple[float, float]:
    """Return minutes and GB of a company in the paper's size, made by the command."""
    import psutil

    arguments = ["--out", out, "--documents", FULL, "--seed", 7, "--jobs", 2]
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
    return (time.perf_counter() - start) / 60, most / 1e9


def close_siblings(documents, folder: Path, closest) -> float:
    """Return the share of documents that have more than half of all phrases in common with one.

    Planted near-duplicates and their originals are left out.
    """
    planted: set[str] = set()
    path = folder / "stages" / "4-noise" / "near_duplicates.jsonl"
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        planted |= {row["original"], row["duplicate"]}
    texts = documents.loc[~documents["doc_id"].isin(planted), "text"].tolist()
    similarity, _ = closest(texts)
    return float((similarity > 0.5).mean())
