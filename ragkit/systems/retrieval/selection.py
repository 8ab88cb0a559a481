"""Choose a system on one half of the questions, and say how good it is on the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ragkit.errors import DataError
from ragkit.measures import metrics, stats

if TYPE_CHECKING:
    import pandas as pd


def choose(
    runs: pd.DataFrame,
    questions: pd.DataFrame,
    *,
    measures: Sequence[str] = ("R@1", "R@5"),
    seed: int = 0,
    level: float = 0.95,
    n_resamples: int = 9999,
) -> pd.DataFrame:
    """Choose among systems on one half of the questions and score them all on the other.

    The best on a half is the one with the largest mean over the measures, the earlier one if two
    are equal. What it scores on that half is too good, because it was chosen there; what it scores
    on the other half is not.

    Parameters
    ----------
    runs : DataFrame
        A `runs` frame of all candidates.
    questions : DataFrame
        With question_id and gold_doc_ids; those without gold documents are left out.
    measures : sequence of str
        As in `ragkit.measures.metrics.retrieval`.
    seed : int
        Deals the questions into two halves, of which the first is larger by one if it must.
    level, n_resamples
        Of the bootstrap interval over the questions of the other half.

    Returns
    -------
    DataFrame
        One row per half, system and measure, in the order of `runs`: half ("first", "second": where
        the choice is made), system, chosen (whether it is the best there), metric, here (the mean
        on this half), value, low, high, n (on the other half).

    Raises
    ------
    DataError
        As in `ragkit.measures.metrics.retrieval`, and if there are fewer than two questions.
    """
    import pandas as pd

    scores = metrics.retrieval(runs, questions, measures=measures)
    items = scores["item_id"].unique()
    if len(items) < 2:
        raise DataError(f"two halves need at least 2 questions, found {len(items)}")
    dealt = np.random.default_rng(seed).permutation(items)
    cut = (len(items) + 1) // 2
    parts = {"first": set(dealt[:cut]), "second": set(dealt[cut:])}
    wide = {
        half: scores[scores["item_id"].isin(part)].groupby(["subject_id", "metric"], sort=False)
        for half, part in parts.items()
    }
    rows = []
    for half, other in (("first", "second"), ("second", "first")):
        here = wide[half]["score"].mean()
        best = here.groupby("subject_id", sort=False).mean().idxmax()
        for (system, measure), values in wide[other]["score"]:
            ordered = values.to_numpy()
            value, low, high, n = stats.bootstrap_interval(
                ordered, level=level, n_resamples=n_resamples, seed=seed
            )
            row = (half, system, system == best, measure, here[system, measure])
            rows.append((*row, value, low, high, n))
    columns = ["half", "system", "chosen", "metric", "here", "value", "low", "high", "n"]
    return pd.DataFrame(rows, columns=columns)
