"""A cheap judge's verdicts on all answers, and a stricter one's labels of some."""

import json

import numpy as np
import pandas as pd
import pytest

from ragkit.errors import DataError
from ragkit.judging import Options, compare, evaluate
from ragkit.judging.report import labelled
from ragkit.judging.validation import with_labels
from ragkit.measures import stats
from tests.judging.helpers import Scripted, literal, write_jsonl

NAMES = [f"q{number:02}" for number in range(40)]


def questions():
    rows = {"question_id": NAMES, "text": "Which colour?", "type": "basic", "answer": "red"}
    frame = pd.DataFrame(rows)
    return frame.assign(facts=[("red",)] * 40, gold_doc_ids=[()] * 40)


def answers(system, every):
    texts = ["blue" if number % every == 0 else "red" for number in range(40)]
    frame = pd.DataFrame({"system": system, "question_id": NAMES, "answer": texts})
    return frame.assign(doc_ids=[()] * 40)


def labels(system, step):
    """Labels of the first 15 answers, of which the literal judge accepts one too many."""
    rows = [(system, NAMES[k], float(k % step != 0 and k % 7 != 0)) for k in range(15)]
    return pd.DataFrame(rows, columns=["subject_id", "item_id", "score"])


def judge():
    return Scripted(lambda task, n: "tie" if task.kind == "preference" else literal(task, n))


def test_labels_and_verdicts_give_a_prediction_powered_mean():
    given = pd.concat([labels("one", 4), labels("other", 3)])
    report = evaluate(questions(), answers("one", 4), judge(), Options(labels=given))
    (row,) = report.data["labelled"]
    told = [float(number % 4 != 0) for number in range(40)]
    known = [*given["score"].head(15), *[float("nan")] * 25]
    found = stats.prediction_powered(known, told)
    assert [row["value"], row["low"], row["high"], row["p"]] == pytest.approx(found[:4])
    assert (row["system"], row["n"], row["of"]) == ("one", 15, 40)
    assert row["labels"] == given["score"].head(15).mean()
    assert evaluate(questions(), answers("one", 4), judge()).data["labelled"] == []
    inputs = report.data["inputs"]["labels"]
    assert inputs["rows"] == 15


def test_of_two_systems_the_difference_is_estimated_too():
    given = pd.concat([labels("one", 4), labels("other", 3)])
    pair = questions(), answers("one", 4), answers("other", 3)
    report = compare(*pair, judge(), Options(labels=given))
    rows = pd.DataFrame(report.data["labelled"]).set_index("system")
    assert list(rows.index) == ["one", "other", "one - other"]
    gap = given["score"].to_numpy().reshape(2, 15)
    assert rows.loc["one - other", "labels"] == pytest.approx((gap[0] - gap[1]).mean())


def test_what_counts_as_a_verdict_and_as_a_label():
    def record(system, name, value, score=None, kind="correctness"):
        verdict = {"kind": kind, "value": value} | ({} if score is None else {"score": score})
        facts = {"kind": "fact", "value": True, "score": None}
        return {"system": system, "question_id": name, "verdicts": [facts, verdict]}

    told = {"q1": True, "q2": False, "q3": True, "q4": False}
    records = [record("z", name, value) for name, value in told.items()]
    records += [record("z", "q5", None), record("z", "q6", True, kind="fact")]
    shares = {"q1": 0.9, "q2": 0.2, "q3": 0.7}
    records += [record("y", name, value > 0.5, value) for name, value in shares.items()]
    given = {("z", "q1"): 1.0, ("z", "q2"): 0.0, ("z", "q5"): 1.0, ("y", "q1"): 1.0}
    table = labelled(records, given)
    columns = "system value low high p n of weight labels labels_low labels_high"
    assert list(table) == columns.split()
    assert table["system"].tolist() == ["z", "y", "z - y"]
    assert table[["n", "of"]].to_numpy().tolist() == [[2, 4], [1, 3], [1, 3]]
    found = stats.prediction_powered([1, 0, np.nan, np.nan], [1, 0, 1, 0])
    numbers = [*found[:4], found.weight, *found.labels[:3]]
    assert table.drop(columns=["system", "n", "of"]).loc[0].tolist() == pytest.approx(numbers)
    assert table.loc[1:, "value"].isna().all()
    # two differences have labels, two have none
    records += [record("y", "q4", False, 0.25)]
    given |= {("y", "q2"): 1.0}
    row = labelled(records, given).loc[2]
    gaps = [1 - 0.9, 0 - 0.2, 1 - 0.7, 0 - 0.25]
    found = stats.prediction_powered([0, -1, np.nan, np.nan], gaps)
    assert found.weight > 0
    assert row[["value", "low", "high", "p"]].tolist() == pytest.approx(found[:4])
    # where all answers have a label, there is nothing to predict
    given |= {("z", "q3"): 1.0, ("z", "q4"): 1.0}
    assert np.isnan(labelled(records[:4], given).loc[0, "value"])
    assert labelled(records, {})["n"].tolist() == [0, 0, 0]
    assert list(labelled([], {})) == columns.split()


def test_coverage_and_width_of_means_by_labels_and_probabilities():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"judge": "A", "system": ["x"] * 300 + ["y"] * 300})
    frame["question_id"] = [*range(300)] * 2
    frame["correct"] = rng.random(600) < 0.4
    frame["probability"] = 0.3 + 0.4 * frame["correct"] + 0.3 * rng.normal(size=600)
    table = with_labels(frame, labels=100, resamples=400)
    assert table["system"].tolist() == ["x", "y", "y - x"]
    assert table["coverage"].between(0.92, 0.98).all()
    assert table["width"].to_numpy() == pytest.approx(table["possible"], abs=0.02)
    assert (table["width"] < 0.92).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"score": 2.0}, "from 0 to 1"),
        ({"subject_id": "two"}, "two labels of 'one' are needed, found 0"),
        ({"item_id": [f"x{k}" for k in range(15)]}, "'x0' is none of the questions"),
    ],
)
def test_bad_labels_are_refused_before_anything_is_judged(change, words):
    asked, given = judge(), Options(labels=labels("one", 4).assign(**change))
    with pytest.raises(DataError, match=words):
        evaluate(questions(), answers("one", 4), asked, given)
    assert not asked.asked


def test_the_command_prints_both_estimates(tmp_path, ragkit):
    asked = questions().rename(columns={"answer": "gold_answer", "facts": "answer_facts"})
    q = write_jsonl(tmp_path / "q.jsonl", asked.to_dict("records"))
    a = write_jsonl(tmp_path / "a.jsonl", answers("one", 4).to_dict("records"))
    labels("one", 4).to_csv(tmp_path / "labels.csv", index=False)
    out = tmp_path / "report.json"
    command = ["evaluate", "--questions", q, "--answers", a, "--out", out, "--judge", "offline"]
    command += ["--parts", "answers", "--labels", tmp_path / "labels.csv"]
    _, said, _ = ragkit(*command)
    assert "one: correctness by 15 labels and 40 verdicts 0." in said
    assert "; by the labels alone 0." in said
    row = json.loads(out.read_text("utf-8"))["labelled"][0]
    assert row["low"] <= row["value"] <= row["high"]
    everything = pd.DataFrame({"system": "one", "question_id": NAMES, "score": 1})
    everything.to_csv(tmp_path / "labels.csv", index=False)
    assert "cannot be estimated" in ragkit(*command)[1]
