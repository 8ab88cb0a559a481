"""Choose a system on one half of the questions, and say how good it is on the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ragkit.errors import DataError
from ragkit.measures import metrics, stats


def choose(
    runs: pd.DataFrame,
    questions: pd.DataFrame,
    *,
    measures: Sequence[str] = ("R@1", "R@5"),
    seed: int = 0,
) -> pd.DataFrame:
    """Choose among systems on one half of the questions and score them all on the other.

    The best system on a half has the largest mean over the measures; of equal ones, the first.
    Its score on that half is biased upwards, because it was chosen there; its score on the other
    half is not.

    Parameters
    ----------
    runs, questions, measures
        As in `ragkit.measures.metrics.retrieval`; the runs of all candidates.
    seed : int
        Deals the questions into two halves; the first is larger by one if their number is odd.

    Returns
    -------
    DataFrame
        One row per half, system and measure, in the order of `runs`: half ("first", "second": where
        the choice is made), system, chosen (whether it is the best there), metric, here (the mean
        on this half), value, low, high (a 95 % interval), n (on the other half).

    Examples
    --------
    >>> from ragkit import datasets
    >>> wixqa = datasets.load("wixqa").part(documents=40, questions=5)
    >>> from ragkit.systems.retrieval import BM25
    >>> runs = pd.concat(BM25(b=b, system=f"b={b}").fit(wixqa.documents).search(wixqa.questions) for b in (0.2, 0.8))
    >>> choose(runs, wixqa.questions, measures=["R@5"])[["half", "system", "n"]]
         half system  n
    0   first  b=0.2  2
    1   first  b=0.8  2
    2  second  b=0.2  3
    3  second  b=0.8  3
    """
    scores = metrics.retrieval(runs, questions, measures=measures)
    items = scores["item_id"].unique()
    if len(items) < 2:
        raise DataError(f"two halves need at least 2 questions, found {len(items)}")
    first = np.random.default_rng(seed).permutation(items)[: (len(items) + 1) // 2]
    in_first = scores["item_id"].isin(first)
    halves = {"first": scores[in_first], "second": scores[~in_first]}
    rows = []
    for half, other in (("first", "second"), ("second", "first")):
        here = halves[half].groupby(["subject_id", "metric"], sort=False)["score"].mean()
        best = here.groupby("subject_id", sort=False).mean().idxmax()
        groups = halves[other].groupby(["subject_id", "metric"], sort=False)["score"]
        for (system, measure), values in groups:
            interval = stats.bootstrap_interval(values.to_numpy(), n_resamples=9999, seed=seed)
            mean = here[system, measure]
            rows.append((half, system, system == best, measure, mean, *interval))
    columns = ["half", "system", "chosen", "metric", "here", "value", "low", "high", "n"]
    return pd.DataFrame(rows, columns=columns)
