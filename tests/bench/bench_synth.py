"""Generating: documents a second, memory, and how alike the documents of a made company are."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from tests.bench import Row

DOCUMENTS = 2_000
FEW = 5_000
MANY = 20_000
FULL = 512_000
QUESTIONS = 895  # as many as LiveRAG has
QUESTION_DOCUMENTS = 9_000


def run():
    from ragkit import datasets, models
    from ragkit.measures import corpus, diversity
    from ragkit.synth import datamorgana, generate
    from ragkit.systems.retrieval import BM25

    folder = Path(tempfile.mkdtemp(prefix="ragkit-synth-"))
    try:
        seconds, asking = {}, {}
        for size, options in (
            (DOCUMENTS, {}),
            (QUESTION_DOCUMENTS, {"questions": QUESTIONS}),
            (FEW, {}),
            (MANY, {}),
        ):
            marks = []

            def progress(stage, done, total, marks=marks):
                if stage == "5-questions":
                    marks.append(time.perf_counter())

            start = time.perf_counter()
            generate(folder / str(size), documents=size, seed=7, progress=progress, **options)
            asking[size] = marks[-1] - marks[0]
            seconds[size] = time.perf_counter() - start
        bound, took = "bound", seconds[DOCUMENTS]
        yield Row(f"{DOCUMENTS:,} documents", took, math.nan, bound, took, 20, False)
        ratio = asking[MANY] / asking[FEW]
        what = f"500 questions, {MANY:,} / {FEW:,} documents"
        yield Row(what, asking[MANY], asking[FEW], f"{FEW:,}", ratio, MANY / FEW, False)
        minutes, memory = whole(folder / "whole")
        what = f"{FULL:,} documents, two processes"
        yield Row(what, minutes, math.nan, bound, minutes, 30, False, "min")
        yield Row(f"{what}, memory of all", memory, math.nan, bound, memory, 2, False, "GB")

        made = datasets.load(str(folder / str(DOCUMENTS)))
        share = close_siblings(made.documents, folder / str(DOCUMENTS), corpus.closest_siblings)
        what = "close siblings, 5-word phrases > 0.5"
        yield Row(what, share, math.nan, bound, share, 0.05, False, "")
        gold = made.questions[made.questions["gold_doc_ids"].map(len) > 0]
        found = BM25().fit(made.documents).search(gold, k=10)
        lists = found.groupby("question_id")["doc_id"].agg(set).to_dict()
        recalls = defaultdict(list)
        for row in gold.itertuples():
            hit = len(set(row.gold_doc_ids) & lists.get(row.question_id, set()))
            recalls[row.type].append(hit / len(row.gold_doc_ids))
            recalls["all"].append(hit / len(row.gold_doc_ids))
        mean = {kind: sum(values) / len(values) for kind, values in recalls.items()}
        yield Row("BM25 recall@10, all", mean["all"], 0.5, bound, mean["all"], 0.5, True, "")
        yield Row("BM25 recall@10, all", mean["all"], 0.9, bound, mean["all"], 0.9, False, "")
        for kind in ("semantic", "completeness"):
            ratio = mean[kind] / mean["basic"]
            yield Row(
                f"recall, {kind} / basic", mean[kind], mean["basic"], "basic", ratio, 1, False, ""
            )

        company = folder / str(QUESTION_DOCUMENTS)
        made = datamorgana.make_questions(company, questions=QUESTIONS, seed=1)
        sets = {
            "DataMorgana": [row["Question"] for row in made.rows],
            "ERB's types": list(datasets.load(str(company)).questions["text"]),
        }
        for name, texts in sets.items():
            what = f"{QUESTIONS} questions, {name}"
            value = diversity.ngram_diversity(texts)
            yield Row(f"n-gram diversity, {what}", value, math.nan, "", value, 2.6, True, "")
            vectors = models.encoder("all-MiniLM-L6-v2").encode(texts, kind="query")
            value = diversity.homogenization_score(vectors)
            yield Row(f"homogenization, {what}", value, math.nan, "", value, 0.2, False, "")
    finally:
        shutil.rmtree(folder)


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
