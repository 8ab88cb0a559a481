"""Intervals and tests where questions share documents: how often they are wrong.

Two systems with equal true scores, 30 or 60 clusters of one to eight questions; the correlation of
questions in a cluster is that of the differences (normal) or of what makes answers right (binary).
The peer is Student's test of independent questions.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import ttest_1samp

from ragkit.measures import stats
from tests.bench import Row, least
from tests.measures.test_stats import clustered

REPEATS = 4000


def run():
    for shape in ("normal", "binary"):
        for groups in (30, 60):
            for icc in (0.0, 0.35, 0.7):
                rng, wrong = np.random.default_rng(3), np.zeros(2)
                for _ in range(REPEATS):
                    gaps, of = clustered(rng, icc, shape, groups)
                    _, low, high, _ = stats.bootstrap_interval(gaps, clusters=of)
                    wrong += not low <= 0 <= high, ttest_1samp(gaps, 0).pvalue < 0.05
                ours, peer = wrong / REPEATS
                what = f"type I error, {shape}, {groups} clusters, ICC {icc:.2f}"
                yield Row(what, ours, peer, "t-test of questions", ours, 0.06, False, "")
                yield least(what, ours, 0.04)
