"""Generating: documents a second, memory, and how alike the documents of a made company are."""

from __future__ import annotations

import math
import re
import resource
import shutil
import tempfile
import time
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

from tests.bench import Row

DOCUMENTS = 2_000
FEW = 5_000
MANY = 20_000
FULL = 511_962
QUESTIONS = 895  # as many as LiveRAG has
QUESTION_DOCUMENTS = 9_000


def run():
    from ragkit import datasets, diversity, models
    from ragkit.retrieval import BM25
    from ragkit.synth import generate

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
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        bound = "bound"
        yield Row(
            f"{DOCUMENTS:,} documents",
            seconds[DOCUMENTS],
            20.0,
            bound,
            seconds[DOCUMENTS],
            20,
            False,
        )
        full = seconds[MANY] / MANY * FULL / 60
        yield Row(
            f"{FULL:,} documents, from {MANY:,}, one process",
            full,
            30.0,
            bound,
            full,
            30,
            False,
            "min",
        )
        ratio = asking[MANY] / asking[FEW]
        yield Row(
            f"500 questions, {MANY:,} / {FEW:,} documents",
            asking[MANY],
            asking[FEW],
            f"{FEW:,}",
            ratio,
            MANY / FEW,
            False,
        )
        yield Row(f"memory, {MANY:,} documents", memory, 2.0, bound, memory, 2, False, "GiB")

        made = datasets.load(str(folder / str(DOCUMENTS)))
        share = close_siblings(made.documents, folder / str(DOCUMENTS))
        yield Row(
            "close siblings, 5-word shingles > 0.5", share, 0.05, bound, share, 0.05, False, ""
        )
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

        texts = list(datasets.load(str(folder / str(QUESTION_DOCUMENTS))).questions["text"])
        value = diversity.ngram_diversity(texts)
        yield Row(
            f"n-gram diversity, {QUESTIONS} questions", value, math.nan, "", value, 2.6, True, ""
        )
        vectors = models.encoder("all-MiniLM-L6-v2").encode(texts, kind="query")
        value = diversity.homogenization_score(vectors)
        yield Row(
            f"homogenization, {QUESTIONS} questions", value, math.nan, "", value, 0.2, False, ""
        )
    finally:
        shutil.rmtree(folder)


def close_siblings(documents, folder: Path) -> float:
    """Return the share of documents with another that has more than half of all shingles in common.

    Planted near-duplicates and their originals are left out.
    """
    import json

    planted: set[str] = set()
    path = folder / "stages" / "4-noise" / "near_duplicates.jsonl"
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        planted |= {row["original"], row["duplicate"]}
    texts = documents.loc[~documents["doc_id"].isin(planted), "text"]
    shingles = []
    for text in texts:
        words = re.findall(r"\w+", text.lower())
        shingles.append({tuple(words[i : i + 5]) for i in range(len(words) - 4)})
    holders = defaultdict(list)
    for i, own in enumerate(shingles):
        for shingle in own:
            holders[shingle].append(i)
    # A shingle in very many documents is glue; pairs it would count are found by their others.
    common = Counter(
        pair
        for group in holders.values()
        if 1 < len(group) <= 300
        for pair in combinations(group, 2)
    )
    close = set()
    for (i, j), count in common.items():
        if 2 * count > len(shingles[i]) + len(shingles[j]) - count:
            close |= {i, j}
    return len(close) / len(shingles)
