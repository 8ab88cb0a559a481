"""What a ranking tells, by hand and against the statistics that it is made of."""

import pandas as pd
import pytest

from ragkit.measures import rankings, stats


def scored(right, of=60):
    """Return the scores of systems that have the first so many questions right."""
    rows = [("judge", name, f"q{q}", float(q < n)) for name, n in right.items() for q in range(of)]
    return pd.DataFrame(rows, columns=["judge_group", "subject_id", "item_id", "score"])


@pytest.fixture
def scores():
    return scored({"a/x": 54, "a/y": 51, "b/x": 12, "b/y": 6})


def test_99_of_100_questions_are_nearly_all():
    frame = scored({"all": 100, "99": 99, "98": 98}, of=100)
    kept, left_out = rankings.complete(frame[frame["score"] == 1])
    assert (kept["subject_id"].unique().tolist(), left_out) == (["all", "99"], 1)


def test_groups_stand_apart_in_order_and_the_level_itself_is_not_significant(scores, monkeypatch):
    twins = scores.replace({"subject_id": {"a/x": "c/x", "a/y": "c/y"}})
    twins = twins[twins["subject_id"].str.startswith("c")].assign(judge_group="earlier")
    both = pd.concat([scores, twins])
    ranks = rankings.ranking(both, n_resamples=99)
    assert ranks["subject_id"].tolist() == ["c/x", "c/y", "a/x", "a/y", "b/x", "b/y"]
    wanted = stats.summarise(twins, n_resamples=99).set_index("subject_id")
    assert ranks["low"].tolist()[0] == wanted.loc["c/x", "low"]
    groups, beside = rankings.told_apart(both, ranks)
    columns = "systems,best,worst,neighbours that differ,not told from the best"
    assert list(groups) == columns.split(",")
    assert groups.loc["earlier"].tolist() == [2, 54 / 60, 51 / 60, 0, 1]
    assert groups.loc["judge"].tolist() == [4, 54 / 60, 6 / 60, 1, 1]
    assert list(beside) == ["judge_group", "above", "below", "difference", "p", "p_holm"]
    row = beside.iloc[2]
    assert row[["judge_group", "above", "below"]].tolist() == ["judge", "a/y", "b/x"]
    # 39 answers differ, all in one direction: none of 9,999 exchanges reaches that
    assert (row["difference"], row["p"]) == (39 / 60, 1 / 10_000)
    # 3 answers differ, all in one direction: exactly 2 of 8 exchanges
    monkeypatch.setattr(rankings, "LEVEL", 0.25)
    groups, _ = rankings.told_apart(twins, ranks[:2], n_resamples=99)
    assert groups.loc["earlier", "neighbours that differ"] == 0
    assert groups.loc["earlier", "not told from the best"] == 1


def test_all_others_are_compared_with_the_best():
    frame = scored({"a": 54, "b": 51, "c": 46})
    groups, _ = rankings.told_apart(frame, rankings.ranking(frame, n_resamples=9))
    # exactly: 2/8 from b, 2/256 from c; b and c differ by 5, which is 2/32
    assert groups.loc["judge", "not told from the best"] == 1
    assert groups.loc["judge", "neighbours that differ"] == 0


def test_the_number_of_exchanges_is_passed_on(scores):
    pair = scores[scores["subject_id"].isin(["a/x", "b/y"])]
    pair = pair.assign(score=pair["score"].where(pair["subject_id"] == "b/y", 1.0))
    ranks = rankings.ranking(pair, n_resamples=9)
    groups, beside = rankings.told_apart(pair, ranks, n_resamples=9)
    # p is 1/10: neither differs from the other
    assert beside["p"].tolist() == [0.1]
    assert groups.loc["judge", "not told from the best"] == 1
    for given in ({}, {"n_resamples": 9}):
        named = pair.assign(metric="judge")
        wanted = stats.summarise(named, **given).set_index("subject_id")["low"]
        found = rankings.ranking(pair, **given).set_index("subject_id")["low"]
        assert found.to_dict() == wanted.to_dict()


def test_like_named_systems_of_two_folders_are_correlated(scores, monkeypatch):
    ranks = rankings.ranking(scores, n_resamples=99)
    assert rankings.same_configurations(ranks).empty
    monkeypatch.setattr(rankings, "LEAST", 2)
    found = rankings.same_configurations(ranks)
    assert found[["folder_a", "folder_b", "configurations"]].to_numpy().tolist() == [["a", "b", 2]]
    assert found["spearman"].tolist() == pytest.approx([1.0])


def test_a_configuration_is_what_stands_after_the_last_slash():
    names = [f"{folder}/{run}" for folder in ("a/one", "a/two") for run in range(10)]
    order = [*range(10), 1, 0, *range(2, 10)]
    found = rankings.same_configurations(pd.DataFrame({"subject_id": names, "mean": order}))
    # two neighbours change places: 1 - 6 * 2 / (10 * 99)
    assert found["spearman"].tolist() == pytest.approx([1 - 12 / 990])
    assert found[["folder_a", "folder_b"]].to_numpy().tolist() == [["a/one", "a/two"]]
    assert found["configurations"].tolist() == [10]


def test_wilson_intervals_are_those_of_single_proportions():
    table = stats.wilson_intervals([3, 10.0], [10, 10])
    assert tuple(table.iloc[0]) == pytest.approx(stats.wilson_interval(3, 10))
    assert table["estimate"].tolist() == [0.3, 1.0]
