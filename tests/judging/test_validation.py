from itertools import product

import numpy as np
import pandas as pd
import pytest

from ragkit.errors import DataError, MissingData, UsageError
from ragkit.judging.calibrate import main
from ragkit.judging.offline import COEFFICIENTS, OfflineJudge
from ragkit.judging.validation import (
    auc,
    calibration_curve,
    calibration_error,
    clustered,
    concordance,
    dependence,
    held_out,
    mean_of,
    predict,
    repeatability,
    variance_shares,
)
from ragkit.judging.verdicts import fact_tasks, judged_answers


def verdicts(judges=("A", "B"), systems=3, questions=24, seed=0):
    """Return answers that are right, wrong or missing at random, with verdicts to match."""
    rng = np.random.default_rng(seed)
    rows = []
    for judge, system, number in product(judges, range(systems), range(questions)):
        days, kind = 10 + number, rng.integers(3)
        gold = f"Refunds take {days} days on plan {number}."
        said = ["I could not find it.", f"They take {days + 3} weeks."]
        said.append(f"Refunds of plan {number} take {days} days.")
        rows.append(
            {
                **{"judge": judge, "system": f"{judge}{system}", "question_id": f"q{number}"},
                **{"question": "How long do refunds take?", "gold": gold, "answerable": True},
                **{"type": ["basic", "semantic"][number % 2], "answer": said[kind]},
                **{"facts": (gold, f"The plan is number {number}."), "correct": kind == 2},
                "completeness": float(kind == 2),
            }
        )
    return pd.DataFrame(rows)


def test_calibration_by_hand():
    # bin 2: mean .25, half right; bin 9: mean .95, all right
    probability = [0.2, 0.3, 0.9, 1.0]
    frame = pd.DataFrame({"probability": probability, "correct": [False, True, True, True]})
    curve = calibration_curve(frame, bins=2)
    assert curve["n"].tolist() == [2, 2]
    assert curve["correct"].tolist() == [0.5, 1]
    assert curve["probability"].tolist() == pytest.approx([0.25, 0.95])
    assert calibration_error(frame, bins=2) == pytest.approx((0.5 + 0.1) / 4)
    sure = pd.DataFrame({"probability": [1.0, 0.0], "correct": [1.0, 0.0]})
    assert calibration_error(sure) == 0
    assert auc(frame) == 1
    assert np.isnan(auc(frame[1:]))


def test_intervals_resample_questions():
    def frame(names):
        return pd.DataFrame({"question_id": list(names), "value": [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]})

    def found(names, statistics=None):
        return clustered(frame(names), statistics or mean_of("value")).iloc[0]

    columns = ["metric", "value", "low", "high", "n", "questions"]
    assert found("aaabbb")[columns].tolist() == ["value", 0.5, 0, 1, 6, 2]
    rows = found("abcdef")
    assert 0 < rows["low"] < rows["high"] < 1
    assert found("abcdef").equals(rows)
    one = found("aaaaaa")
    assert (one["value"], one["n"]) == (0.5, 6)
    assert np.isnan(one["low"])
    assert np.isnan(found("aaabbb", {"none": lambda rows: np.nan})["high"])
    both = clustered(frame("abcdef").assign(side=list("xyxyxy")), mean_of("value"), by=["side"])
    assert both["side"].tolist() == ["x", "y"]
    assert both["value"].tolist() == pytest.approx([1 / 3, 2 / 3])


def test_variance_by_hand():
    def layout(values):
        grid = pd.DataFrame(values, index=["q", "r"]).rename_axis("question_id")
        grid = grid.melt(ignore_index=False, var_name="system", value_name="correct")
        return grid.reset_index()

    for values, kind in (
        ([[1, 1], [0, 0]], "question"),
        ([[1, 0], [1, 0]], "system"),
        ([[1, 0], [0, 1]], "answer"),
        # means of rows 1, 1/2: variance 1/8; of columns the same; residuals 1/4 each: 4/16 / 1
        ([[1, 1], [1, 0]], "answer"),
    ):
        expected = {name: float(name == kind) for name in ("question", "system", "answer")}
        assert variance_shares(layout(values)) == expected
    with pytest.raises(DataError, match="two systems"):
        variance_shares(layout([[1, 1], [0, 0]]).query("system == 0"))


def test_concordance_by_hand():
    frame = pd.DataFrame(
        {
            "question_id": ["q", "q", "q", "r", "r", "s"],
            "correct": [True, False, False, True, False, True],
            "probability": [0.5, 0.2, 0.5, 0.1, 0.9, 0.9],
        }
    )
    found = concordance(frame)
    # q: higher, equal; r: lower; s has no pair
    assert found == 0.5
    with pytest.raises(DataError, match="different verdicts"):
        concordance(frame[frame["question_id"] == "s"])


def test_answers_of_other_systems_are_predicted():
    frame = verdicts()
    for scheme in ("systems", "systems and questions", "systems and types"):
        found = held_out(frame, scheme=scheme, folds=3)
        assert found.index.equals(frame.index)
        assert found["probability"].notna().all()
        table = clustered(found, resamples=50).set_index("metric")
        assert table.loc["ROC AUC", "value"] > 0.95
        assert table.loc["ROC AUC", "n"] == len(frame)
        assert (table["low"] <= table["high"]).all()
    typed = clustered(found, {"ROC AUC": auc}, by=["type", "judge"], resamples=10)
    assert typed["questions"].tolist() == [12] * 4


def test_what_is_predicted_takes_no_part_in_the_calibration():
    frame = verdicts()
    turned = frame.assign(
        correct=frame["correct"] ^ (frame["judge"] == "B"),
        completeness=(frame["completeness"] - (frame["judge"] == "B")).abs(),
    )
    one, other = held_out(frame), held_out(turned)
    b = frame["judge"] == "B"
    pd.testing.assert_series_equal(one.loc[b, "probability"], other.loc[b, "probability"])
    assert not one.loc[~b, "probability"].equals(other.loc[~b, "probability"])


def test_an_index_that_repeats_itself_changes_nothing():
    """Two frames that were put one below the other: no row stands for another."""
    frame = verdicts()
    twice = frame.set_axis([*range(len(frame) // 2)] * 2)
    for scheme in ("systems", "systems and questions"):
        one, other = (
            held_out(frame, scheme=scheme, folds=2),
            held_out(twice, scheme=scheme, folds=2),
        )
        assert other.index.equals(twice.index)
        pd.testing.assert_frame_equal(one, other.set_axis(frame.index))


def test_bad_schemes():
    for options, judges, error, message in (
        ({"scheme": "system"}, "AB", UsageError, "no scheme 'system'"),
        ({"scheme": "systems and questions", "folds": 1}, "AB", UsageError, "folds"),
        ({}, "A", DataError, "two judges"),
    ):
        with pytest.raises(error, match=message):
            held_out(verdicts(judges=judges), **options)


def test_what_verdicts_depend_on():
    frame = predict(verdicts(), OfflineJudge(), facts=False)
    found = dependence(frame, resamples=20).set_index("judge")
    silent = frame["answer"] == "I could not find it."
    assert found["accepted_abstaining"].tolist() == [0, 0]
    a = frame["judge"] == "A"
    assert found.loc["A", "accepted_other"] == frame.loc[a & ~silent, "correct"].mean()
    assert found.loc["A", "same_text"] == 1
    assert found.loc["A", "concordance"] > 0.95
    board = clustered(frame, mean_of("correct"), by=["judge", "system"], resamples=20)
    assert board["value"].tolist() == frame.groupby(["judge", "system"])["correct"].mean().tolist()


def test_the_same_judge_repeatability():
    frame = verdicts(judges=("A",))
    again = frame.assign(judge="A again", correct=frame["correct"] ^ (frame.index == 0))
    found = repeatability(pd.concat([frame, again]), "A", "A again")
    assert found["answers"] == len(frame)
    assert found["agreement"] == 1 - 1 / len(frame)
    assert found["spearman"] == pytest.approx(1)


def test_tasks_of_facts_and_no_data(tmp_path):
    frame = verdicts().head(2)
    facts, rows = fact_tasks(frame)
    assert rows == [0, 0, 1, 1]
    assert facts[3].fields["fact"] == frame["facts"].iloc[1][1]
    with pytest.raises(MissingData):
        judged_answers(data=tmp_path)


@pytest.fixture(scope="module")
def public(mirror):
    return judged_answers(data=mirror)


def test_the_public_verdicts(public):
    sizes = public.groupby("judge").agg(n=("correct", "size"), systems=("system", "nunique"))
    assert sizes["systems"].to_dict() == {"A": 7, "A again": 4, "B": 4, "Mistral-7B": 7}
    assert sizes["n"].to_dict() == {"A": 3499, "A again": 1999, "B": 2000, "Mistral-7B": 3498}
    assert (public["answerable"] == (public["type"] != "info_not_found")).all()
    same = repeatability(public, "A", "A again")
    assert same["answers"] == 1999
    assert same["agreement"] > 0.99


def test_each_report_fits_its_own_answers_best(public):
    """Verdicts of a report belong to the answers whose probabilities they follow most."""
    rows = public[(public["judge"] == "B") & public["answerable"]]
    rows = rows[rows["question_id"].isin(sorted(rows["question_id"].unique())[::2])]
    made = predict(rows, OfflineJudge(), facts=False)
    truth = made.pivot(index="question_id", columns="system", values="correct").astype(bool)
    score = made.pivot(index="question_id", columns="system", values="probability")
    for report in truth:
        sides = {
            system: {"correct": truth[report], "probability": score[system]} for system in score
        }
        areas = {system: auc(pd.DataFrame(both).dropna()) for system, both in sides.items()}
        assert max(areas, key=areas.get) == report


@pytest.mark.slow
def test_the_coefficients_come_from_the_public_verdicts(mirror, tmp_path):
    from click.testing import CliRunner

    out = tmp_path / "own.toml"
    ran = CliRunner().invoke(main, ["--data", str(mirror), "--out", str(out)])
    assert ran.exit_code == 0, ran.output
    assert out.read_bytes() == COEFFICIENTS.read_bytes()


@pytest.mark.slow
def test_targets_on_systems_held_out(public):
    strict = public[public["judge"].isin(["A", "B"]) & public["answerable"]]
    table = clustered(held_out(strict), resamples=20).set_index("metric")["value"]
    assert table["ROC AUC"] >= 0.93
    assert table["Spearman, completeness"] >= 0.70
    assert table["tau, share of yes"] >= 0.85
