"""Rankings of systems within groups of one judge, by hand."""

import numpy as np
import pandas as pd
import pytest

from ragkit.measures import rankings, stats

RNG = np.random.default_rng(0)
SCORES = pd.DataFrame(
    [
        (group, f"{group}/{name}", f"q{item}", mean + RNG.normal(0, 0.1))
        for group in ("x", "y")
        for name, mean in (("good", 0.9), ("fair", 0.5), ("same", 0.5))
        for item in range(12)
    ],
    columns=["judge_group", "subject_id", "item_id", "score"],
)


def test_incomplete_systems_are_left_out_and_counted():
    kept, left_out = rankings.complete(SCORES.drop(index=0))
    assert (left_out, set(SCORES["subject_id"]) - set(kept["subject_id"])) == (1, {"x/good"})
    assert len(rankings.complete(SCORES.drop(index=0), share=0.9)[0]) == len(SCORES) - 1


def test_neighbours_that_differ():
    ranks = rankings.ranking(SCORES, n_resamples=99)
    assert ranks.groupby("judge_group")["subject_id"].first().tolist() == ["x/good", "y/good"]
    assert ranks["mean"].tolist() == pytest.approx(
        SCORES.groupby("subject_id")["score"].mean()[ranks["subject_id"]].tolist()
    )
    found, beside = rankings.told_apart(SCORES, ranks, n_resamples=99)
    assert found["neighbours that differ"].tolist() == [1, 1]
    assert found["not told from the best"].tolist() == [0, 0]
    assert (beside["difference"] > 0).all()
    for _, part in beside.groupby("judge_group"):
        np.testing.assert_array_equal(part["p_holm"], stats.holm(part["p"]))


def test_configurations_of_two_folders():
    ranks = pd.DataFrame(
        [
            (f"{folder}/{run}", run * sign)
            for folder, sign in (("a", 1), ("b", -1))
            for run in (1, 2, 3)
        ]
        + [("c/1", 0.0)],
        columns=["subject_id", "mean"],
    )
    table = rankings.same_configurations(ranks, least=2)
    assert table.to_numpy().tolist() == [["a", "b", 3, pytest.approx(-1)]]
