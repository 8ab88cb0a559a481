"""What a leaderboard tells: systems in order, which of them differ, and whether orders agree.

Systems are ranked inside groups (column judge_group), since scores of different judges cannot be
compared. Scores are long frames with the columns judge_group, subject_id, item_id and score.
"""

from __future__ import annotations

from itertools import combinations, pairwise

import pandas as pd

from ragkit.measures import stats


def complete(scores: pd.DataFrame, *, share: float = 0.99) -> tuple[pd.DataFrame, int]:
    """Leave out systems without scores for nearly all questions of their group.

    Parameters
    ----------
    scores : DataFrame
    share : float in (0, 1], default=0.99
        The least share of the group's questions.

    Returns
    -------
    DataFrame, int
        The scores of the other systems, and how many systems were left out.
    """
    size = scores.groupby("judge_group")["item_id"].transform("nunique")
    kept = scores.groupby("subject_id")["item_id"].transform("size") >= share * size
    return scores[kept], int(scores.loc[~kept, "subject_id"].nunique())


def ranking(scores: pd.DataFrame, *, n_resamples: int = 9999) -> pd.DataFrame:
    """Return each group's systems, best first.

    Returns
    -------
    DataFrame
        judge_group, subject_id, n (questions), mean, and low and high: a 95 % interval.
    """
    named = scores[["subject_id", "item_id", "score"]].assign(metric=scores["judge_group"])
    ranks = stats.summarise(named, n_resamples=n_resamples)
    ranks = ranks.rename(columns={"metric": "judge_group"})
    return ranks.sort_values(["judge_group", "mean"], ascending=[True, False], kind="stable")


def neighbours(
    scores: pd.DataFrame, ranks: pd.DataFrame, *, n_resamples: int = 9999
) -> pd.DataFrame:
    """Compare each system with the next one of its group by paired permutation tests.

    Returns
    -------
    DataFrame
        judge_group, above, below, difference, p, and p_holm: adjusted within the group.
    """
    rows = []
    for group, part in ranks.groupby("judge_group"):
        grid = scores[scores["judge_group"] == group]
        grid = grid.pivot(index="item_id", columns="subject_id", values="score")
        for above, below in pairwise(part["subject_id"]):
            both = grid[[above, below]].dropna()
            test = stats.paired_permutation(both[above], both[below], n_resamples=n_resamples)
            rows.append((group, above, below, test.difference, test.p))
    found = pd.DataFrame(rows, columns=["judge_group", "above", "below", "difference", "p"])
    return found.assign(p_holm=found.groupby("judge_group")["p"].transform(stats.holm))


def told_apart(
    scores: pd.DataFrame,
    ranks: pd.DataFrame,
    *,
    level: float = 0.05,
    n_resamples: int = 9999,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return how many differences of a ranking hold up, by group.

    Parameters
    ----------
    scores, ranks : DataFrame
        Scores, and their `ranking`.
    level : float, default=0.05
        Of p values that are adjusted by Holm's method within a group.
    n_resamples : int

    Returns
    -------
    DataFrame, DataFrame
        By group: systems, best, worst, neighbours that differ, not told from the best. And the
        comparisons of `neighbours`.
    """
    beside = neighbours(scores, ranks, n_resamples=n_resamples)
    found = ranks.groupby("judge_group")["mean"].agg(systems="size", best="max", worst="min")
    differ = beside["p_holm"].lt(level).groupby(beside["judge_group"]).sum()
    found["neighbours that differ"] = differ.reindex(found.index, fill_value=0)
    for group, rows in ranks.groupby("judge_group"):
        part = scores.loc[scores["judge_group"] == group, ["subject_id", "item_id", "score"]]
        best = rows["subject_id"].iloc[0]
        versus = stats.compare_systems(part, baseline=best, n_resamples=n_resamples)
        found.loc[group, "not told from the best"] = int((versus["p_holm"] >= level).sum())
    return found, beside


def same_configurations(ranks: pd.DataFrame, *, least: int = 10) -> pd.DataFrame:
    """Correlate the scores of like-named systems in different folders.

    Parameters
    ----------
    ranks : DataFrame
        A `ranking` whose systems are called FOLDER/NAME.
    least : int, default=10
        Systems that two folders must share.

    Returns
    -------
    DataFrame
        folder_a, folder_b, configurations, spearman.
    """
    name = ranks["subject_id"].str.rpartition("/")
    folders = ranks.assign(folder=name[0], run=name[2])
    folders = folders.pivot(index="run", columns="folder", values="mean")
    rows = []
    for pair in combinations(folders, 2):
        both = folders[list(pair)].dropna()
        if len(both) >= least:
            rows.append((*pair, len(both), both.corr("spearman").iloc[0, 1]))
    return pd.DataFrame(rows, columns=["folder_a", "folder_b", "configurations", "spearman"])
