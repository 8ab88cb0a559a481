"""Answer metrics against the packages that define them; ranked lists and comparisons by the clock.

FlashRAG calls the package `rouge` for ROUGE-1, 2 and L at once and keeps one of them; the target
speaks of that call. The row after it asks the package for ROUGE-1 and 2 only.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from rouge import Rouge
from sacrebleu.metrics import BLEU
from scipy.stats import permutation_test

from ragkit.measures import metrics, stats
from tests.bench import beside, most, timed


def run():
    rng = np.random.default_rng(0)
    answers, golds = _texts(rng, 200), _texts(rng, 200)
    pairs = list(zip(answers, golds, strict=True))

    both = [(*pair, n) for pair in pairs for n in (1, 2)]
    ours, _ = timed(lambda: [metrics.rouge_n(*arguments) for arguments in both], 5)
    all_three, short = Rouge(), Rouge(metrics=["rouge-1", "rouge-2"])
    peer, _ = timed(lambda: all_three.get_scores(answers, golds))
    what = "ROUGE-1 and 2, 200 answers of 100 words"
    yield beside(what, ours, peer, "rouge 1.0.1 as called", 50)
    peer, _ = timed(lambda: short.get_scores(answers, golds), 5)
    yield beside(what, ours, peer, "rouge 1.0.1 without L", 1)

    ours, _ = timed(lambda: metrics.corpus_bleu(answers, golds), 5)
    bleu = BLEU(smooth_method="none", force=True)
    peer, _ = timed(lambda: bleu.corpus_score(answers, [golds]), 5)
    yield beside("corpus BLEU, 200 answers of 100 words", ours, peer, "sacrebleu", 0.5)

    runs, questions = _lists(rng, 6221, 100)
    taken, _ = timed(lambda: metrics.retrieval(runs, questions), 2)
    what = "7 measures, 6,221 lists of 100, ms a question"
    yield most(what, 1000 * taken / len(questions), 1, "ms")

    scores = _scores(rng, 24, 200)
    ours, _ = timed(lambda: stats.compare_systems(scores), 2)
    a, b = (scores.loc[scores["subject_id"] == name, "score"].to_numpy() for name in ("s0", "s1"))
    options = {"permutation_type": "samples", "vectorized": True, "rng": 0}
    peer, _ = timed(lambda: permutation_test((a - b,), np.mean, **options), 2)
    what = "24 systems, 200 questions: interval and test, s a pair"
    yield beside(what, ours / 276, peer, "scipy, test alone", 5)


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
