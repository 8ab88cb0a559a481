"""What a leaderboard tells: systems in order, which of them differ, and whether orders agree.

Systems are ranked inside groups (column judge_group), since scores of different judges cannot be
compared. Scores are long frames with the columns judge_group, subject_id, item_id and score;
`n_resamples` is that of `stats.bootstrap_interval`.

>>> scores = pd.DataFrame({"subject_id": ["one"] * 8 + ["two"] * 8, "item_id": [*"abcdefgh"] * 2})
>>> scores["score"] = [1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0]
>>> scores, left_out = complete(scores.assign(judge_group="A"))
>>> ranked = ranking(scores)
>>> ranked[["subject_id", "n", "mean"]]
  subject_id  n   mean
0        one  8  0.875
1        two  8  0.125
>>> groups, tests = told_apart(scores, ranked)
>>> tests[["above", "below", "difference", "p"]]
  above below  difference        p
0   one   two        0.75  0.03125
"""

from __future__ import annotations

from itertools import combinations, pairwise

import pandas as pd

from ragkit import display
from ragkit.measures import stats

# The least share of its group's questions for a system to be ranked, the level of p values, and
# how many systems two folders must share for a correlation.
SHARE, LEVEL, LEAST = 0.99, 0.05, 10


def complete(scores: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Leave out systems without scores for 99 % of their group's questions; say how many."""
    size = scores.groupby("judge_group")["item_id"].transform("nunique")
    kept = scores.groupby("subject_id")["item_id"].transform("size") >= SHARE * size
    return scores[kept], int(scores.loc[~kept, "subject_id"].nunique())


def ranking(scores: pd.DataFrame, *, n_resamples: int = 9999) -> pd.DataFrame:
    """Return each group's systems, best first, with 95 % intervals.

    Columns judge_group, subject_id, n (questions), mean, low, high.
    """
    named = scores[["subject_id", "item_id", "score"]].assign(metric=scores["judge_group"])
    ranks = stats.summarise(named, n_resamples=n_resamples)
    ranks = ranks.rename(columns={"metric": "judge_group"})
    return ranks.sort_values(["judge_group", "mean"], ascending=[True, False])


def told_apart(
    scores: pd.DataFrame, ranks: pd.DataFrame, *, n_resamples: int = 9999
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return how many differences of a ranking hold up, by group, and the tests of neighbours.

    Each system of `ranks`, the `ranking` of `scores`, is compared with the next of its group, and
    with the best, by paired permutation tests at a level of 0.05 with Holm's correction. Returns by
    group: systems, best, worst, neighbours that differ, not told from the best; and the tests of
    neighbours: judge_group, above, below, difference, p and p_holm.
    """
    found = ranks.groupby("judge_group")["mean"].agg(systems="size", best="max", worst="min")
    rows = []
    groups = ranks.groupby("judge_group")["subject_id"]
    for group, names in display.progress(groups, "neighbours"):
        part = scores.loc[scores["judge_group"] == group, ["subject_id", "item_id", "score"]]
        grid = part.pivot(index="item_id", columns="subject_id", values="score")
        for above, below in pairwise(names):
            both = grid[[above, below]].dropna()
            test = stats.paired_permutation(both[above], both[below], n_resamples=n_resamples)
            rows.append((group, above, below, test.difference, test.p))
        versus = stats.compare_systems(part, baseline=names.iloc[0], n_resamples=n_resamples)
        found.loc[group, "not told from the best"] = int((versus["p_holm"] >= LEVEL).sum())
    beside = pd.DataFrame(rows, columns=["judge_group", "above", "below", "difference", "p"])
    beside["p_holm"] = beside.groupby("judge_group")["p"].transform(stats.holm)
    differ = beside["p_holm"].lt(LEVEL).groupby(beside["judge_group"]).sum()
    found.insert(3, "neighbours that differ", differ)
    return found, beside


def same_configurations(ranks: pd.DataFrame) -> pd.DataFrame:
    """Correlate the scores of like-named systems in different folders.

    Two folders of a `ranking` whose systems are called FOLDER/NAME must share ten systems. Columns
    folder_a, folder_b, configurations, spearman.

    >>> names = [f"{folder}/run-{n}" for folder in ("old", "new") for n in range(10)]
    >>> ranks = pd.DataFrame({"judge_group": "g", "subject_id": names, "mean": [*range(10)] * 2})
    >>> same_configurations(ranks)
      folder_a folder_b  configurations  spearman
    0      new      old              10       1.0
    """
    name = ranks["subject_id"].str.rpartition("/")
    folders = ranks.assign(folder=name[0], run=name[2])
    folders = folders.pivot(index="run", columns="folder", values="mean")
    rows = []
    for pair in combinations(folders, 2):
        both = folders[list(pair)].dropna()
        if len(both) >= LEAST:
            rows.append((*pair, len(both), both.corr("spearman").iloc[0, 1]))
    return pd.DataFrame(rows, columns=["folder_a", "folder_b", "configurations", "spearman"])
