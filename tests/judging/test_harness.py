import json
import math

import numpy as np
import pandas as pd
import pytest

from ragkit import schema
from ragkit.errors import DataError, UsageError
from ragkit.judging import Options, aggregate, evaluate, read, read_questions
from ragkit.judging.report import (
    METRICS,
    agreement,
    completeness,
    document_recall,
    invalid_extra_documents,
    leaderboard_score,
)
from ragkit.measures import stats
from tests.judging.helpers import (
    DOCUMENTS,
    Scripted,
    answer_rows,
    answers,
    failing,
    literal,
    question_rows,
    questions,
    write_jsonl,
)


@pytest.fixture
def files(tmp_path):
    return (
        write_jsonl(tmp_path / "q.jsonl", question_rows()),
        write_jsonl(tmp_path / "sys.jsonl", answer_rows()),
    )


def run(given=None, judge=None, options=None, **more):
    """Evaluate with a literal judge, unless told otherwise."""
    given = answers() if given is None else given
    return evaluate(questions(), given, judge or Scripted(literal), options, **more)


def overall(report):
    return report.summary.query("group == 'overall'").set_index("metric")


def test_metrics_of_one_question():
    for correct, share, score in ((1.0, 0.5, 0.5), (0.0, 0.5, 0.0), (1.0, None, None)):
        assert leaderboard_score(correct, share) == score
    assert leaderboard_score(0.0, None) == 0  # incorrect is 0 whatever the facts
    assert leaderboard_score(None, 0.5) is None
    assert completeness([True, False, True, True]) == 0.75
    assert completeness([True, None]) is None
    assert completeness([]) is None
    assert document_recall(["a", "b", "c"], ["a", "z"]) == 0.5
    assert document_recall([], ["a"]) == 0
    assert document_recall(["a"], []) is None
    assert invalid_extra_documents(["a", "b", "c", "b"], ["a"]) == 2
    classes = {"b": "valid", "c": "invalid", "d": "required", "e": None}
    assert invalid_extra_documents(["a", "b", "c", "d"], ["a"], classes) == 1
    assert invalid_extra_documents(["a", "e"], ["a"], classes) is None
    assert invalid_extra_documents(["a"], [], classes) is None


def test_an_evaluation_by_hand():
    judge = Scripted(literal)
    report = run(judge=judge)
    found = report.questions.set_index("question_id")
    # q1: red is right, one of two facts; q2: "three" is wrong; q3: Ann is right, two of three.
    assert found["correctness"].tolist() == [1, 0, 1]
    assert found["completeness"].tolist() == [0.5, 0, pytest.approx(2 / 3)]
    assert found["score"].tolist() == [0.5, 0, pytest.approx(2 / 3)]
    assert found["document_recall"].tolist()[:2] == [1, 0.5]
    assert found["invalid_extra_documents"].tolist()[:2] == [1, 2]
    assert math.isnan(found.loc["q3", "document_recall"])
    table = report.summary.set_index(["group", "metric"])
    means = {"correctness": 2 / 3, "completeness": 7 / 18, "score": 7 / 18}
    means |= {"document_recall": 0.75, "invalid_extra_documents": 1.5, "answered": 1}
    assert table.loc["overall", "value"].to_dict() == pytest.approx(means)
    assert table.loc[("overall", "document_recall"), ["n", "of"]].tolist() == [2, 2]
    assert table.loc[("basic", "score"), "value"] == 0.25
    assert table.loc[("high", "document_recall"), "of"] == 0
    assert math.isnan(table.loc[("high", "document_recall"), "value"])
    wilson = stats.wilson_interval(2, 3)
    ends = table.loc[("overall", "correctness"), ["low", "high"]]
    assert ends.tolist() == [wilson.low, wilson.high]
    # The judge sees no citation and no more than its task.
    assert [task.kind for task, _ in judge.asked].count("fact") == 6
    assert judge.asked[0][0].fields == {"question": "Which colour?", "gold": "red", "answer": "red"}
    assert judge.asked[1][0].fields == {"question": "Which colour?", "fact": "red", "answer": "red"}
    assert repr(report) == "<Evaluation of sys: 3 answers, judge scripted>"
    page = report._repr_html_()
    assert "invalid_extra_documents" in page
    assert "<code>.verdicts</code> every verdict" in page


def test_missing_verdicts_are_counted_and_never_0():
    judge = failing(
        lambda t: (
            (t.kind, t.fields.get("gold")) == ("correctness", "red")
            or t.fields.get("fact") == "Bob"
        )
    )
    report = run(judge=judge)
    q1, _, q3 = (record["scores"] for record in report.records)
    assert (q1["correctness"], q1["completeness"], q1["score"]) == (None, 0.5, None)
    assert (q3["correctness"], q3["completeness"], q3["score"]) == (1, None, None)
    for metric, value, n in (("correctness", 0.5, 2), ("completeness", 0.25, 2), ("score", 0, 1)):
        found = overall(report).loc[metric, ["value", "n", "of", "missing"]]
        assert found.tolist() == [value, n, 3, 3 - n]
    assert report.data["counts"]["sys"]["missing_verdicts"] == 2
    high = report.summary.query("group == 'high' and metric == 'score'").iloc[0]
    assert high[["value", "low"]].isna().all()
    assert (high["n"], high["missing"]) == (0, 1)
    assert "failed: down" in report.verdicts["reason"].tolist()
    assert report.verdicts["value"].isna().sum() == 2
    assert len(report.scores.query("metric == 'score'")) == 1


def test_a_question_without_an_answer_earns_nothing():
    """Half of the answers, all right, are half of the score."""
    judge = Scripted(literal)
    report = run(answers(q1=("red, dark", ("d1",)), q2=(" [1]", ()), q3=None), judge)
    table = overall(report)
    for metric in ("answered", "correctness", "completeness", "score"):
        assert table.loc[metric, ["value", "n", "of"]].tolist() == [pytest.approx(1 / 3), 3, 3]
    assert table.loc["document_recall", ["value", "of"]].tolist() == [0.5, 2]
    _, empty, absent = report.records
    assert empty["verdicts"][0]["reason"] == "the answer is empty"
    assert absent["verdicts"][0]["reason"] == "no answer was given"
    assert "invalid_extra_documents" not in absent["scores"]
    assert len(judge.asked) == 3


def test_answers_or_documents_alone(tmp_path):
    nothing = answers(q1=(None, ("d1",)), q2=(None, ("d9",)), q3=None)
    with pytest.raises(DataError, match="no row has an answer") as caught:
        run(nothing)
    assert "--parts documents" in caught.value.hint
    report = run(nothing, Scripted(None), Options(parts="documents"))
    assert report.verdicts.empty
    table = overall(report)
    assert (table.loc["document_recall", "value"], table.loc["correctness", "of"]) == (0.5, 0)
    path = write_jsonl(tmp_path / "silent.jsonl", [{"question_id": "q1", "answer": "red"}])
    table = overall(run(path, options=Options(parts="answers")))
    assert (table.loc["document_recall", "of"], table.loc["correctness", "n"]) == (0, 3)


def test_one_system_of_several():
    both = pd.concat([answers("a"), answers("b", q1=("blue", ()))])
    with pytest.raises(UsageError, match="answers of 2 systems: a, b") as caught:
        run(both)
    assert "--system a" in caught.value.hint
    report = run(both, system="b")
    assert report.data["systems"] == ["b"]
    assert report.questions["correctness"].tolist() == [0, 0, 1]


def test_missing_verdicts_widen_the_interval():
    def entry(metric, scores, **more):
        rows = [{"question_type": "t", "scores": {metric: score}, **more} for score in scores]
        return aggregate(rows).set_index(["group", "metric"]).loc[("overall", metric)]

    found = entry("correctness", [1.0] * 6 + [0.0] * 2 + [None] * 2)
    assert found[["value", "n", "of", "missing"]].tolist() == [0.75, 8, 10, 2]
    least, most = (stats.wilson_interval(k, 10) for k in (6, 8))
    assert (found["low"], found["high"]) == (least.low, most.high)
    metric = "invalid_extra_documents"
    found = entry(metric, (1, 3, None), most={metric: 5})
    assert found["value"] == 2
    assert found["low"] == stats.bootstrap_interval([1, 3, 0]).low
    assert found["high"] == stats.bootstrap_interval([1, 3, 5]).high


def test_an_aggregate_by_hand():
    def rows(kind, metric, scores, **more):
        return [{"question_type": kind, "scores": {metric: one}} | more for one in scores]

    records = rows("z", "completeness", (0.5, None, 1.0)) + rows("y", "completeness", (0.25, 0.5))
    records += rows("y", "answered", (True, False, True))
    for options in ({}, {"n_resamples": 99, "seed": 3}):
        table = aggregate(records, **options)
        assert table["group"].unique().tolist() == ["overall", "z", "y"]
        assert table["metric"].unique().tolist() == list(METRICS)
        table = table.set_index(["group", "metric"])
        ends = [
            stats.bootstrap_interval([0.5, lost, 1, 0.25, 0.5], **options) for lost in (0.0, 1.0)
        ]
        row = table.loc[("overall", "completeness")]
        assert row[["n", "of", "missing"]].tolist() == [4, 5, 1]
        assert row[["value", "low", "high"]].tolist() == [2.25 / 4, ends[0].low, ends[1].high]
        one = stats.bootstrap_interval([0.25, 0.5], **options)
        row = table.loc[("y", "completeness")]
        assert row[["value", "low", "high"]].tolist() == list(one[:3])
        two = stats.wilson_interval(2, 3)
        assert table.loc[("y", "answered"), ["value", "low", "high"]].tolist() == list(two[:3])
        assert table.loc[("z", "answered"), ["n", "of", "missing"]].tolist() == [0, 0, 0]
        numbers = ["value", "low", "high", "spread", "alpha"]
        assert table.loc[("z", "answered"), numbers].isna().all()
        assert table[numbers].dtypes.astype(str).eq("float64").all()
    many = (np.sqrt(np.arange(2, 40)) % 1).tolist()
    found = aggregate(rows("z", "score", many)).set_index(["group", "metric"])
    ends = found.loc[("z", "score"), ["low", "high"]]
    assert ends.tolist() == list(stats.bootstrap_interval(many)[1:3])
    lost = aggregate(rows("z", "score", (None, None))).set_index(["group", "metric"])
    assert lost.loc[("z", "score"), ["low", "high"]].tolist() == [0, 1]
    assert np.isnan(lost.loc[("z", "score"), "value"])


def test_repeats_of_an_aggregate_by_hand():
    repeats = ([0.0, 1.0], [0.5, None], [1.0, 1.0], [0.5, 0.5])
    records = [
        {"question_type": "t", "scores": {"score": 0.5}, "repeats": {"score": own}}
        for own in repeats
    ]
    records.append({"question_type": "t", "scores": {"score": 0.5}, "repeats": {}})
    row = aggregate(records).set_index(["group", "metric"]).loc[("t", "score")]
    # means of 0, 1/2, 1, 1/2 and of 1, 1, 1/2
    assert row["by_repeat"] == [0.5, pytest.approx(5 / 6)]
    assert row["spread"] == pytest.approx(1 / 6)
    alpha, nominal = (
        agreement([[0, 1], [1, 1], [0.5, 0.5]], level=level)["alpha"]
        for level in ("interval", "nominal")
    )
    assert row["alpha"] == alpha != nominal
    single = [{"question_type": "t", "scores": {"score": 0.5}, "repeats": {"score": [0.5]}}]
    row = aggregate(single).set_index(["group", "metric"]).loc[("t", "score")]
    assert row["by_repeat"] == [0.5]
    assert row[["spread", "alpha"]].isna().all()
    silent = [single[0] | {"repeats": {"score": [0.5, None]}}]
    row = aggregate(silent).set_index(["group", "metric"]).loc[("t", "score")]
    assert row["by_repeat"] == [0.5, None]
    assert np.isnan(row["spread"])


def test_a_cutoff_looks_at_the_first_documents():
    frame = answers(q2=("three", ("d9", "d9", "d2", "d3")))
    found = run(frame, options=Options(cutoff=2)).questions
    assert found["document_recall"][1] == 0.5
    assert found["invalid_extra_documents"][1] == 1


def test_repeats_by_hand():
    # Correctness of q1, q2, q3 by repeat; facts all hold.
    table = {"red": [1, 1, 0], "two": [0, 0, 0], "Ann": [1, 1, 1]}

    def script(task, number):
        return bool(table[task.fields["gold"]][number]) if task.kind == "correctness" else True

    report = run(judge=Scripted(script), options=Options(repeat=3))
    entry = next(row for row in report.data["summary"] if row["metric"] == "correctness")
    assert entry["value"] == pytest.approx(2 / 3)
    assert entry["by_repeat"] == pytest.approx([2 / 3, 2 / 3, 1 / 3])
    assert entry["spread"] == pytest.approx(math.sqrt(2 / 81))
    # 9 values, 5 of them 1. Observed disagreement: q1 has 4 of 6 ordered pairs unequal, each
    # with weight 1 / 2: 2 / 9. Expected: 2 * 5 * 4 / (9 * 8) = 5 / 9. Alpha = 1 - 2 / 5.
    assert entry["alpha"] == pytest.approx(0.6)
    agreement = report.data["agreement"]["sys"]
    assert agreement["correctness"]["alpha"] == pytest.approx(0.6)
    assert agreement["fact"]["alpha"] is None  # all the same
    first = report.records[0]
    assert first["verdicts"][0]["values"] == [True, True, False]
    assert first["verdicts"][0]["spread"] == pytest.approx(math.sqrt(2 / 9))
    assert first["repeats"]["score"] == [1, 1, 0]


# -- gold sets --------------------------------------------------------------------------------


def reviewing(**changes):
    classes = {"d1": "required", "d2": "required", "d3": "invalid", "d8": "required"}
    classes |= {"d9": "valid", **changes}

    def script(task, number):
        if task.kind == "validity":
            return classes[task.fields["document"].removeprefix("text of ")]
        if task.kind == "regenerate":
            return {"answer": "three", "facts": ["three", "more"]}
        return literal(task, number)

    return Scripted(script)


CORRECTING = Options(documents=DOCUMENTS, correct_gold=True)


def test_classes_of_extra_documents_with_a_fixed_gold_set():
    report = run(judge=reviewing(), options=Options(documents=DOCUMENTS))
    found = report.questions.set_index("question_id")
    # d9 is valid; d8 is required, though not gold
    assert found["invalid_extra_documents"].tolist()[:2] == [0, 0]
    assert found.loc["q2", "document_recall"] == 0.5
    assert report.data["counts"]["sys"]["corrected"] == 0
    # The review of q1 stopped at once.
    assert report.data["agreement"]["sys"]["panel"]["units"] == 4
    validity = report.verdicts.query("kind == 'validity' and question_id == 'q2'")
    classes = dict(zip(validity["item"], validity["verdict"], strict=True))
    assert classes == {"d2": "required", "d3": "invalid", "d8": "required", "d9": "valid"}


def test_a_corrected_gold_set_is_scored_flagged_and_written_beside(files, tmp_path):
    out, path = tmp_path / "R.json", files[0]
    before = path.read_bytes()
    report = evaluate(path, answers(), reviewing(), CORRECTING, out=out)
    record = report.records[1]
    assert [one["corrected"] for one in report.records] == [False, True, False]
    assert (record["expected_doc_ids"], record["gold_answer"]) == (["d2", "d8"], "three")
    assert list(record["scores"].values()) == [1, 1, 0.5, 0.5, 1, 0]
    assert report.data["counts"]["sys"]["corrected"] == 1
    assert path.read_bytes() == before
    (row,) = (json.loads(line) for line in (tmp_path / "R.corrected.jsonl").open())
    assert row["expected_doc_ids"] == ["d2", "d8"]
    assert row["answer_facts"] == ["three", "more"]
    assert row["before"]["gold_answer"] == "two"
    # What was written is a file of questions again.
    again, _ = read_questions(tmp_path / "R.corrected.jsonl")
    assert again["gold_doc_ids"].tolist() == [("d2", "d8")]
    evaluate(path, answers(), reviewing(), Options(documents=DOCUMENTS), out=out)
    assert not (tmp_path / "R.corrected.jsonl").exists()


def test_a_gold_document_that_lost_its_place_is_an_invalid_extra_one():
    report = run(answers(q2=("three", ("d3", "d8"))), reviewing(d2="invalid"), CORRECTING)
    assert report.records[1]["expected_doc_ids"] == ["d8"]
    assert report.records[1]["scores"]["invalid_extra_documents"] == 1


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"panel": []}, UsageError, "the panel is empty"),
        ({"panel": [], "documents": DOCUMENTS}, UsageError, "the panel is empty"),
        ({"panel": [Scripted(literal)]}, UsageError, "a panel judges documents"),
        ({"correct_gold": True}, UsageError, "texts of the documents"),
        ({"rules": "mine"}, UsageError, "no rules 'mine'"),
        ({"parts": "all"}, UsageError, "no parts 'all'"),
        ({"repeat": 0}, UsageError, "repeat"),
        ({"round": -1}, UsageError, "round"),
        ({"cutoff": 0}, UsageError, "cutoff"),
        ({"documents": dict.fromkeys(["d1", "d2", "d3", "d9"], "")}, DataError, "document 'd8'"),
    ],
)
def test_options_that_do_not_go_together(options, error, message):
    judge = Scripted(literal)
    with pytest.raises(error, match=message):
        run(judge=judge, options=Options(**options))
    judge.kinds = frozenset({"correctness"})
    with pytest.raises(UsageError, match="no verdicts of fact"):
        run(judge=judge)
    assert judge.asked == []


def test_a_judge_of_correctness_alone_judges_questions_without_facts():
    judge = Scripted(literal)
    judge.kinds = frozenset({"correctness"})
    report = evaluate(questions().assign(facts=[()] * 3), answers(), judge)
    assert report.questions["correctness"].tolist() == [1, 0, 1]
    assert [task.kind for task, _ in judge.asked] == ["correctness"] * 3
    assert report.data["counts"]["sys"]["without_facts"] == 3
    assert overall(report).loc[["completeness", "score"], ["of", "missing"]].to_numpy().max() == 0


def test_frames_are_checked():
    changed = questions()
    changed.at[1, "answer"] = None
    for asked, given, message in (
        (changed, answers(), "question 'q2' has no gold answer"),
        (questions(), answers().replace("q1", "q9"), "'q9' is none of the 3 questions"),
        (questions(), answers().drop(columns="doc_ids"), "lack the column"),
    ):
        with pytest.raises(DataError, match=message):
            evaluate(asked, given, Scripted(literal))


# -- reports, and the same call again ---------------------------------------------------------


def test_round_trip(files, tmp_path):
    out = tmp_path / "R.json"
    report = evaluate(*files, Scripted(literal), Options(repeat=2), out=out)
    again = read(out)
    assert again.data == report.data
    assert again.questions.equals(report.questions)
    assert again.summary.equals(report.summary)
    schema.check(again.scores.query("metric == 'score'"), "scores")
    assert again.verdicts["repeats"].tolist() == [2] * 9
    report.write(tmp_path / "copy.json")
    assert (tmp_path / "copy.json").read_bytes() == out.read_bytes()
    (tmp_path / "x.json").write_text('{"schema": "other"}')
    with pytest.raises(DataError, match="not a report"):
        read(tmp_path / "x.json")


def test_a_report_replaces_a_report_and_nothing_else(files, tmp_path):
    out = tmp_path / "R.json"
    evaluate(*files, Scripted(literal), out=out)
    before = out.read_bytes()
    report = evaluate(*files, Scripted(lambda task, number: True), out=out)
    assert out.read_bytes() != before
    for path in files:
        with pytest.raises(UsageError, match="is no report"):
            evaluate(*files, Scripted(literal), out=path)
    gold = files[0].rename(tmp_path / "S.corrected.jsonl")
    with pytest.raises(UsageError, match=r"S.corrected.jsonl exists"):
        evaluate(gold, files[1], Scripted(literal), out=tmp_path / "S.json")
    report.write(tmp_path / "T.json")
    taken = gold.rename(tmp_path / "T.corrected.jsonl")
    with pytest.raises(UsageError, match="an input would be overwritten"):
        evaluate(taken, files[1], Scripted(literal), out=tmp_path / "T.json")


def test_verdicts_are_kept_by_the_store_until_the_task_changes(files):
    """The same call judges again only what failed, and what is new."""

    def again(frame=files[1], down=(), **options):
        judge = failing(lambda task: task.fields.get("fact") in down)
        judge.code = ("ragkit.judging.judges",)
        report = evaluate(files[0], frame, judge, Options(**options))
        return report.data, [(task.fields.get("fact"), number) for task, number in judge.asked]

    first, asked = again(down=["Bob"])
    assert (len(asked), first["counts"]["sys"]["missing_verdicts"]) == (9, 1)
    second, asked = again()
    assert (asked, second["counts"]["sys"]["missing_verdicts"]) == ([("Bob", 0)], 0)
    assert again() == (second, [])
    changed, asked = again(answers("sys", q1=("dark red", ("d1",))))
    assert (len(asked), changed["questions"][0]["scores"]["score"]) == (3, 1)
    # Another round is another set of verdicts.
    assert {number for _, number in again(round=2)[1]} == {2}
