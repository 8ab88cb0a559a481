"""Answer metrics against the packages that define them; ranked lists and comparisons by the clock.

FlashRAG calls the package `rouge` for ROUGE-1, 2 and L at once and keeps one of them; the target
speaks of that call. The row after it asks the package for ROUGE-1 and 2 only.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
import pandas as pd
from rouge import Rouge
from sacrebleu.metrics import BLEU
from scipy.stats import permutation_test

from ragkit.measures import metrics, stats
from tests.bench import Row


def run():
    rng = np.random.default_rng(0)
    answers, golds = _texts(rng, 200), _texts(rng, 200)
    pairs = list(zip(answers, golds, strict=True))

    ours, values = _time(lambda: [metrics.rouge_n(a, g, n) for a, g in pairs for n in (1, 2)])
    all_three, short = Rouge(), Rouge(metrics=["rouge-1", "rouge-2"])
    peer, theirs = _time(lambda: all_three.get_scores(answers, golds), repeats=1)
    wanted = [score[f"rouge-{n}"]["f"] for score in theirs for n in (1, 2)]
    what = "ROUGE-1 and 2, 200 answers of 100 words"
    yield Row(what, ours, peer, "rouge 1.0.1 as called", peer / ours, 50)
    peer, _ = _time(lambda: short.get_scores(answers, golds))
    yield Row(what, ours, peer, "rouge 1.0.1 without L", peer / ours, 1)
    gap = np.abs(np.subtract(values, wanted)).max()
    yield Row(
        "ROUGE-1 and 2, largest difference", gap, np.nan, "rouge 1.0.1", gap, 1e-12, False, ""
    )

    ours, value = _time(lambda: metrics.corpus_bleu(answers, golds))
    peer, score = _time(
        lambda: BLEU(smooth_method="none", force=True).corpus_score(answers, [golds]).score
    )
    yield Row("corpus BLEU, 200 answers of 100 words", ours, peer, "sacrebleu", peer / ours, 0.5)
    gap = abs(value - score / 100)
    yield Row("corpus BLEU, difference", gap, np.nan, "sacrebleu", gap, 1e-12, False, "")

    runs, questions = _lists(rng, 6221, 100)
    taken, _ = _time(lambda: metrics.retrieval(runs, questions), repeats=2)
    each = 1000 * taken / len(questions)
    what = "7 measures, 6,221 lists of 100, ms a question"
    yield Row(what, each, np.nan, "bound", each, 1, False, "ms")

    scores = _scores(rng, 24, 200)
    ours, _ = _time(lambda: stats.compare_systems(scores), repeats=2)
    a, b = (scores.loc[scores["subject_id"] == name, "score"].to_numpy() for name in ("s0", "s1"))
    peer, _ = _time(
        lambda: permutation_test(
            (a - b,), np.mean, permutation_type="samples", vectorized=True, rng=0
        ),
        repeats=2,
    )
    what = "24 systems, 200 questions: interval and test, s a pair"
    yield Row(what, ours / 276, peer, "scipy, test alone", peer * 276 / ours, 5)


def _texts(rng, n):
    words = np.array([f"word{i}" for i in range(400)])
    return [
        " ".join(word + "." if stop else word for word, stop in zip(chosen, stops, strict=True))
        for chosen, stops in zip(
            rng.choice(words, (n, 100)), rng.random((n, 100)) < 0.08, strict=True
        )
    ]


def _lists(rng, questions, depth):
    documents = rng.integers(0, 50, (questions, depth)) + 50 * np.arange(depth)
    runs = pd.DataFrame(
        {
            "system": "s",
            "question_id": np.repeat([f"q{i}" for i in range(questions)], depth),
            "rank": np.tile(np.arange(1, depth + 1), questions),
            "doc_id": [f"d{i}" for i in documents.ravel()],
            "score": np.tile(-np.arange(depth, dtype=float), questions),
        }
    )
    gold = [tuple(f"d{i}" for i in row) for row in rng.integers(0, 500, (questions, 2))]
    return runs, pd.DataFrame({"question_id": runs["question_id"].unique(), "gold_doc_ids": gold})


def _scores(rng, systems, questions):
    return pd.DataFrame(
        {
            "subject_id": np.repeat([f"s{i}" for i in range(systems)], questions),
            "item_id": np.tile([f"q{i}" for i in range(questions)], systems),
            "score": rng.random(systems * questions),
        }
    )


def _time(call, repeats=5):
    best, value = float("inf"), None
    for _ in range(repeats):
        start = perf_counter()
        value = call()
        best = min(best, perf_counter() - start)
    return best, value
