"""What a ranking tells, by hand and against the statistics that it is made of."""

import pandas as pd
import pytest

from ragkit.measures import rankings, stats


@pytest.fixture
def scores():
    right = {"a/x": 54, "a/y": 51, "b/x": 12, "b/y": 6}
    rows = [
        ("judge", system, f"q{q}", float(q < n)) for system, n in right.items() for q in range(60)
    ]
    return pd.DataFrame(rows, columns=["judge_group", "subject_id", "item_id", "score"])


def test_systems_without_nearly_all_questions_are_left_out(scores):
    kept, left_out = rankings.complete(scores.iloc[10:])
    assert left_out == 1
    assert set(kept["subject_id"]) == {"a/y", "b/x", "b/y"}


def test_ranking_and_what_it_tells_apart(scores):
    ranks = rankings.ranking(scores, n_resamples=99)
    means = scores.groupby("subject_id")["score"].mean().sort_values(ascending=False)
    assert ranks["subject_id"].tolist() == means.index.tolist()
    assert ranks["mean"].tolist() == pytest.approx(means.tolist())
    groups, beside = rankings.told_apart(scores, ranks, n_resamples=999)
    assert beside["above"].tolist() == means.index[:-1].tolist()
    pair = scores[scores["subject_id"].isin(means.index[1:3])]
    pair = pair.pivot(index="item_id", columns="subject_id", values="score")[means.index[1:3]]
    test = stats.paired_permutation(*pair.to_numpy().T, n_resamples=999)
    assert beside["p"][1] == test.p
    assert groups.loc["judge", "systems"] == 4
    assert groups.loc["judge", "neighbours that differ"] == 1
    assert groups.loc["judge", "not told from the best"] == 1


def test_like_named_systems_of_two_folders_are_correlated(scores, monkeypatch):
    ranks = rankings.ranking(scores, n_resamples=99)
    assert rankings.same_configurations(ranks).empty
    monkeypatch.setattr(rankings, "LEAST", 2)
    found = rankings.same_configurations(ranks)
    assert found[["folder_a", "folder_b", "configurations"]].to_numpy().tolist() == [["a", "b", 2]]
    assert found["spearman"].tolist() == pytest.approx([1.0])


def test_wilson_intervals_are_those_of_single_proportions():
    table = stats.wilson_intervals([3, 10.0], [10, 10])
    assert tuple(table.iloc[0]) == pytest.approx(stats.wilson_interval(3, 10))
    assert table["estimate"].tolist() == [0.3, 1.0]
