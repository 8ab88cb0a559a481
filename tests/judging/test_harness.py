import json
import math

import pandas as pd
import pytest

from ragkit import schema
from ragkit.errors import DataError, UsageError
from ragkit.judging import (
    ModelJudge,
    Options,
    aggregate,
    completeness,
    document_recall,
    estimate,
    evaluate,
    invalid_extra_documents,
    leaderboard_score,
    read,
    read_questions,
)
from ragkit.llm import Client
from ragkit.measures import stats
from ragkit.store import Store
from tests.judging.helpers import (
    Scripted,
    answer_rows,
    answers,
    literal,
    literal_reply,
    question_rows,
    questions,
    replies,
    write_jsonl,
)

# -- the measures, one question ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("correct", "share", "score"),
    [
        (1.0, 0.5, 0.5),
        (0.0, 0.5, 0.0),
        (0.0, None, 0.0),  # incorrect is 0 whatever the facts
        (1.0, None, None),
        (None, 0.5, None),
        (None, None, None),
    ],
)
def test_leaderboard_score(correct, share, score):
    assert leaderboard_score(correct, share) == score


def test_completeness():
    assert completeness([True, False, True, True]) == 0.75
    assert completeness([True, None]) is None
    assert completeness([]) is None


def test_documents():
    assert document_recall(["a", "b", "c"], ["a", "z"]) == 0.5
    assert document_recall([], ["a"]) == 0
    assert document_recall(["a"], []) is None
    assert invalid_extra_documents(["a", "b", "c", "b"], ["a"]) == 2
    classes = {"b": "valid", "c": "invalid", "d": "required", "e": None}
    assert invalid_extra_documents(["a", "b", "c", "d"], ["a"], classes) == 1
    assert invalid_extra_documents(["a", "e"], ["a"], classes) is None
    assert invalid_extra_documents(["a"], [], classes) is None


# -- all questions ----------------------------------------------------------------------------


def test_an_evaluation_by_hand():
    judge = Scripted(literal)
    report = evaluate(questions(), answers(), judge)
    found = report.questions.set_index("question_id")
    # q1: red is right, one of two facts; q2: "three" is wrong; q3: Ann is right, two of three.
    assert found["correctness"].tolist() == [1, 0, 1]
    assert found["completeness"].tolist() == [0.5, 0, pytest.approx(2 / 3)]
    assert found["score"].tolist() == [0.5, 0, pytest.approx(2 / 3)]
    assert found["document_recall"].tolist()[:2] == [1, 0.5]
    assert found["invalid_extra_documents"].tolist()[:2] == [1, 2]
    assert math.isnan(found.loc["q3", "document_recall"])
    overall = report.data["aggregate"]["overall"]
    assert overall["correctness"]["value"] == pytest.approx(2 / 3)
    assert overall["completeness"]["value"] == pytest.approx(7 / 18)
    assert overall["score"]["value"] == pytest.approx(7 / 18)
    assert overall["document_recall"]["value"] == 0.75
    assert (overall["document_recall"]["n"], overall["document_recall"]["of"]) == (2, 2)
    assert overall["invalid_extra_documents"]["value"] == 1.5
    by_type = report.data["aggregate"]["by_type"]
    assert by_type["basic"]["score"]["value"] == 0.25
    assert by_type["high"]["score"]["value"] == pytest.approx(2 / 3)
    assert by_type["high"]["document_recall"]["of"] == 0
    assert by_type["high"]["document_recall"]["value"] is None
    # Wilson, 2 of 3 at 95 %, by its formula.
    z, p, n = 1.959963984540054, 2 / 3, 3
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    assert overall["correctness"]["low"] == pytest.approx(middle - half)
    assert overall["correctness"]["high"] == pytest.approx(middle + half)


def test_the_judge_sees_no_citation_and_no_more_than_its_task():
    judge = Scripted(literal)
    evaluate(questions(), answers(), judge)
    tasks = [task for task, _ in judge.asked]
    assert [task.kind for task in tasks] == [
        *("correctness", "fact", "fact"),
        *("correctness", "fact"),
        *("correctness", "fact", "fact", "fact"),
    ]
    assert tasks[0].fields == {"question": "Which colour?", "gold": "red", "answer": "red"}
    assert tasks[1].fields == {"question": "Which colour?", "fact": "red", "answer": "red"}


def test_missing_verdicts_are_counted_and_never_0():
    def script(task, number):
        if task.kind == "correctness" and task.fields["gold"] == "red":
            raise LookupError("down")
        if task.fields.get("fact") == "Bob":
            raise LookupError("down")
        return literal(task, number)

    report = evaluate(questions(), answers(), Scripted(script))
    scores = {record["question_id"]: record["scores"] for record in report.records}
    assert scores["q1"]["correctness"] is None
    assert scores["q1"]["completeness"] == 0.5
    assert scores["q1"]["score"] is None
    assert scores["q3"]["correctness"] == 1
    assert scores["q3"]["completeness"] is None
    assert scores["q3"]["score"] is None
    overall = report.data["aggregate"]["overall"]
    for metric, value in (("correctness", 0.5), ("completeness", 0.25), ("score", 0.0)):
        entry = overall[metric]
        n = 1 if metric == "score" else 2
        assert (entry["value"], entry["n"], entry["of"], entry["missing"]) == (value, n, 3, 3 - n)
    assert report.data["counts"]["missing_verdicts"] == 2
    high = report.data["aggregate"]["by_type"]["high"]["score"]
    assert (high["value"], high["low"], high["n"], high["missing"]) == (None, None, 0, 1)
    assert "failed: down" in report.verdicts["reason"].tolist()
    assert report.verdicts["value"].isna().sum() == 2
    assert len(report.scores.query("metric == 'score'")) == 1


def test_a_question_without_an_answer_earns_nothing():
    """Half of the answers, all right, are half of the score."""
    frame = answers(q1=("red, dark", ("d1",)), q2=(" [1]", ()), q3=None)
    judge = Scripted(literal)
    report = evaluate(questions(), frame, judge)
    overall = report.data["aggregate"]["overall"]
    for metric in ("answered", "correctness", "completeness", "score"):
        entry = overall[metric]
        assert (entry["value"], entry["n"], entry["of"]) == (pytest.approx(1 / 3), 3, 3)
    assert (overall["document_recall"]["value"], overall["document_recall"]["of"]) == (0.5, 2)
    _, empty, absent = report.records
    assert empty["verdicts"]["correctness"]["reason"] == "the answer is empty"
    assert absent["verdicts"]["correctness"]["reason"] == "no answer was given"
    assert "invalid_extra_documents" not in absent["applies"]
    assert len(judge.asked) == 3
    counts = report.data["counts"]
    assert (counts["questions"], counts["answered"], counts["missing_verdicts"]) == (3, 1, 0)


def test_answers_or_documents_alone(files, tmp_path):
    nothing = answers(q1=(None, ("d1",)), q2=(None, ("d9",)), q3=None)
    with pytest.raises(DataError, match="no row has an answer") as caught:
        evaluate(questions(), nothing, Scripted(literal))
    assert "--parts documents" in caught.value.hint
    report = evaluate(questions(), nothing, Scripted(None), Options(parts="documents"))
    overall = report.data["aggregate"]["overall"]
    assert (overall["document_recall"]["value"], overall["document_recall"]["of"]) == (0.5, 2)
    assert overall["correctness"]["of"] == 0
    silent = answers(q1=("red", ()), q2=("three", ()))
    path = write_jsonl(tmp_path / "silent.jsonl", answer_rows(silent))
    with pytest.raises(DataError, match="no row has doc_ids, so document recall cannot"):
        evaluate(files[0], path, Scripted(literal))
    assert evaluate(questions(), silent, Scripted(literal)).questions["document_recall"][0] == 0
    report = evaluate(questions(), silent, Scripted(literal), Options(parts="answers"))
    assert report.data["aggregate"]["overall"]["document_recall"]["of"] == 0
    assert report.data["aggregate"]["overall"]["correctness"]["n"] == 3


def test_one_system_of_several():
    both = pd.concat([answers("a"), answers("b", q1=("blue", ()))])
    with pytest.raises(UsageError, match="answers of 2 systems: a, b") as caught:
        evaluate(questions(), both, Scripted(literal))
    assert "--system a" in caught.value.hint
    report = evaluate(questions(), both, Scripted(literal), system="b")
    assert report.data["system"] == "b"
    assert report.questions["correctness"].tolist() == [0, 0, 1]
    with pytest.raises(UsageError, match="no answers of 'c'"):
        evaluate(questions(), both, Scripted(literal), system="c")


def test_missing_verdicts_widen_the_interval():
    scores = [1.0] * 6 + [0.0] * 2 + [None] * 2
    records = [
        {"type": "t", "applies": ["correctness"], "scores": {"correctness": s}} for s in scores
    ]
    entry = aggregate(records)["overall"]["correctness"]
    assert (entry["value"], entry["n"], entry["of"], entry["missing"]) == (0.75, 8, 10, 2)
    least, most = (stats.wilson_interval(k, 10) for k in (6, 8))
    assert (entry["low"], entry["high"]) == (least.low, most.high)
    extra = [
        {"type": "t", "applies": ["invalid_extra_documents"], "most": {"invalid_extra_documents": 5},
         "scores": {"invalid_extra_documents": s}} for s in (1, 3, None)
    ]  # fmt: skip
    entry = aggregate(extra)["overall"]["invalid_extra_documents"]
    assert entry["value"] == 2
    assert entry["low"] <= 4 / 3
    assert entry["high"] >= 3


def test_a_cutoff_looks_at_the_first_documents():
    frame = answers(q2=("three", ("d9", "d9", "d2", "d3")))
    found = evaluate(questions(), frame, Scripted(literal), Options(cutoff=2)).questions
    assert found["document_recall"].tolist()[1] == 0.5
    assert found["invalid_extra_documents"].tolist()[1] == 1


# -- repeats ----------------------------------------------------------------------------------


def test_repeats_by_hand():
    # Correctness of q1, q2, q3 by repeat; facts all hold.
    table = {"red": [1, 1, 0], "two": [0, 0, 0], "Ann": [1, 1, 1]}

    def script(task, number):
        return bool(table[task.fields["gold"]][number]) if task.kind == "correctness" else True

    report = evaluate(questions(), answers(), Scripted(script), Options(repeat=3))
    entry = report.data["aggregate"]["overall"]["correctness"]
    assert entry["value"] == pytest.approx(2 / 3)
    assert entry["by_repeat"] == pytest.approx([2 / 3, 2 / 3, 1 / 3])
    assert entry["spread"] == pytest.approx(math.sqrt(2 / 81))
    # 9 values, 5 of them 1. Observed disagreement: q1 has 4 of 6 ordered pairs unequal, each
    # with weight 1 / 2: 2 / 9. Expected: 2 * 5 * 4 / (9 * 8) = 5 / 9. Alpha = 1 - 2 / 5.
    assert entry["alpha"] == pytest.approx(0.6)
    assert report.data["agreement"]["correctness"]["alpha"] == pytest.approx(0.6)
    assert report.data["agreement"]["correctness"]["unanimous"] == pytest.approx(2 / 3)
    assert report.data["agreement"]["fact"]["alpha"] is None  # all the same
    first = report.records[0]
    assert first["verdicts"]["correctness"]["values"] == [True, True, False]
    assert first["verdicts"]["correctness"]["spread"] == pytest.approx(math.sqrt(2 / 9))
    assert first["repeats"]["score"] == [1, 1, 0]
    assert report.summary.query("group == 'overall' and metric == 'score'")["alpha"].notna().all()


# -- gold sets --------------------------------------------------------------------------------

DOCUMENTS = {name: f"text of {name}" for name in ("d1", "d2", "d3", "d8", "d9")}


def reviewing(classes):
    def script(task, number):
        if task.kind == "validity":
            return classes[task.fields["document"].removeprefix("text of ")]
        if task.kind == "regenerate":
            return {"answer": "three", "facts": ["three", "more"]}
        return literal(task, number)

    return Scripted(script)


CLASSES = {"d1": "required", "d2": "required", "d3": "invalid", "d8": "required", "d9": "valid"}


def test_classes_of_extra_documents_with_a_fixed_gold_set():
    report = evaluate(questions(), answers(), reviewing(CLASSES), Options(documents=DOCUMENTS))
    found = report.questions.set_index("question_id")
    assert found.loc["q1", "invalid_extra_documents"] == 0  # d9 is valid
    assert found.loc["q2", "invalid_extra_documents"] == 0  # d8 is required, though not gold
    assert found.loc["q2", "document_recall"] == 0.5
    assert report.data["counts"]["corrected"] == 0
    assert report.data["agreement"]["panel"]["units"] == 4  # the review of q1 stopped at once
    validity = report.verdicts.query("kind == 'validity' and question_id == 'q2'")
    classes = dict(zip(validity["item"], validity["verdict"], strict=True))
    assert classes == {"d2": "required", "d3": "invalid", "d8": "required", "d9": "valid"}


def test_a_corrected_gold_set_is_scored_flagged_and_written_beside(tmp_path):
    out = tmp_path / "R.json"
    path = write_jsonl(tmp_path / "q.jsonl", question_rows())
    before = path.read_bytes()
    correcting = Options(documents=DOCUMENTS, correct_gold=True)
    report = evaluate(path, answers(), reviewing(CLASSES), correcting, out=out)
    record = report.records[1]
    assert record["corrected"]
    assert record["gold_doc_ids"] == ["d2", "d8"]
    assert record["gold_answer"] == "three"
    assert record["scores"] == {
        "answered": 1.0,
        "correctness": 1.0,
        "completeness": 0.5,
        "score": 0.5,
        "document_recall": 1.0,
        "invalid_extra_documents": 0,
    }
    assert [one["corrected"] for one in report.records] == [False, True, False]
    assert report.data["counts"]["corrected"] == 1
    assert path.read_bytes() == before
    rows = [json.loads(line) for line in (tmp_path / "R.corrected.jsonl").open()]
    assert len(rows) == 1
    assert rows[0]["expected_doc_ids"] == ["d2", "d8"]
    assert rows[0]["answer_facts"] == ["three", "more"]
    assert rows[0]["before"]["gold_answer"] == "two"
    other = tmp_path / "S.corrected.jsonl"
    other.write_text("not ours")
    with pytest.raises(UsageError, match="S.corrected.jsonl exists"):
        evaluate(path, answers(), reviewing(CLASSES), out=tmp_path / "S.json")
    assert other.read_text() == "not ours"
    # What was written is a file of questions again.
    again, _ = read_questions(tmp_path / "R.corrected.jsonl")
    assert again["gold_doc_ids"].tolist() == [("d2", "d8")]
    evaluate(path, answers(), reviewing(CLASSES), Options(documents=DOCUMENTS), out=out)
    assert not (tmp_path / "R.corrected.jsonl").exists()


def test_a_gold_document_that_lost_its_place_is_an_invalid_extra_one():
    frame = answers(q2=("three", ("d3", "d8")))
    classes = {**CLASSES, "d2": "invalid"}
    correcting = Options(documents=DOCUMENTS, correct_gold=True)
    report = evaluate(questions(), frame, reviewing(classes), correcting)
    assert report.records[1]["gold_doc_ids"] == ["d8"]
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
        evaluate(questions(), answers(), judge, Options(**options))
    judge.kinds = frozenset({"correctness"})
    with pytest.raises(UsageError, match="no verdicts of fact"):
        evaluate(questions(), answers(), judge)
    assert judge.asked == []


def test_frames_are_checked():
    judge = Scripted(literal)
    changed = questions()
    changed.at[1, "facts"] = ()
    with pytest.raises(DataError, match="question 'q2' has no facts"):
        evaluate(changed, answers(), judge)
    with pytest.raises(DataError, match="'q9' is none of the questions"):
        evaluate(questions(), answers().replace("q1", "q9"), judge)
    with pytest.raises(DataError, match="lack the column"):
        evaluate(questions(), answers().drop(columns="doc_ids"), judge)


# -- reports, journals, one question again ----------------------------------------------------


@pytest.fixture
def files(tmp_path):
    return (
        write_jsonl(tmp_path / "q.jsonl", question_rows()),
        write_jsonl(tmp_path / "sys.jsonl", answer_rows()),
    )


def test_round_trip(files, tmp_path):
    out = tmp_path / "R.json"
    report = evaluate(*files, Scripted(literal), Options(repeat=2), out=out)
    again = read(out)
    assert again == report
    assert again.text == out.read_text("utf-8")
    assert again.questions.equals(report.questions)
    assert again.verdicts.equals(report.verdicts)
    assert again.data["schema"] == "ragkit.evaluation"
    assert again.data["system"] == "sys"
    schema.check(again.scores.query("metric == 'score'"), "scores")
    assert len(again.verdicts) == 9
    assert again.verdicts["repeats"].eq(2).all()
    report.write(tmp_path / "copy.json")
    assert (tmp_path / "copy.json").read_bytes() == out.read_bytes()


def test_reports_that_are_none(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"schema": "other"}')
    with pytest.raises(DataError, match="not a report"):
        read(path)
    path.write_text('{"schema": "ragkit.evaluation", "version": 9}')
    with pytest.raises(DataError, match="version 9"):
        read(path)


def test_a_report_replaces_a_report_and_nothing_else(files, tmp_path):
    out = tmp_path / "R.json"
    evaluate(*files, Scripted(literal), out=out)
    before = out.read_bytes()
    evaluate(*files, Scripted(lambda task, number: True), out=out)
    assert out.read_bytes() != before
    for path in files:
        with pytest.raises(UsageError, match="is no report"):
            evaluate(*files, Scripted(literal), out=path)
    gold = files[0].rename(tmp_path / "S.corrected.jsonl")
    with pytest.raises(UsageError, match=r"S.corrected.jsonl exists"):
        evaluate(gold, files[1], Scripted(literal), out=tmp_path / "S.json")
    evaluate(gold, files[1], Scripted(literal), out=tmp_path / "other.json").write(
        tmp_path / "T.json"
    )
    gold.rename(tmp_path / "T.corrected.jsonl")
    with pytest.raises(UsageError, match="an input would be overwritten"):
        evaluate(
            tmp_path / "T.corrected.jsonl", files[1], Scripted(literal), out=tmp_path / "T.json"
        )


def test_verdicts_are_kept_by_the_store_until_the_task_changes(files, tmp_path):
    """The same call judges again only what failed, and what is new."""
    down = [True]

    def script(task, number):
        if down[0] and task.fields.get("fact") == "Bob":
            raise LookupError("down")
        return literal(task, number)

    def run(frame=files[1], **options):
        judge = Scripted(script)
        judge.code = ("ragkit.judging.judges",)
        with Store(tmp_path / "s.sqlite") as store:
            report = evaluate(files[0], frame, judge, Options(store=store, **options))
        return report, [(task.fields.get("fact"), number) for task, number in judge.asked]

    first, asked = run()
    assert len(asked) == 9
    assert first.data["counts"]["missing_verdicts"] == 1
    assert "failed: down" in first.verdicts["reason"].tolist()
    down[0] = False
    second, asked = run()
    assert asked == [("Bob", 0)]
    assert second.data["counts"]["missing_verdicts"] == 0
    again, asked = run()
    assert asked == []
    assert again == second
    changed, asked = run(answers("sys", q1=("dark red", ("d1",))))
    assert len(asked) == 3
    assert changed.records[0]["scores"]["score"] == 1
    # Another round is another set of verdicts.
    _, asked = run(round=2)
    assert {number for _, number in asked} == {2}


def test_the_cache_has_a_store_by_default(files):
    def run():
        judge = Scripted(literal)
        judge.code = ("ragkit.judging.judges",)
        evaluate(*files, judge)
        return len(judge.asked)

    assert (run(), run()) == (9, 0)


def test_bad_lines_are_listed_in_the_report(files, tmp_path):
    questions_file, _ = files
    rows = [*answer_rows(), {"question_id": "q9", "answer": "x"}]
    path = write_jsonl(tmp_path / "bad.jsonl", rows)
    with pytest.raises(DataError, match="none of the 3 questions"):
        evaluate(questions_file, path, Scripted(literal))
    report = evaluate(questions_file, path, Scripted(literal), Options(skip_bad=True))
    assert report.data["skipped"] == [
        {
            "file": "bad.jsonl",
            "line": 0,
            "reason": "question_id 'q9' is none of the 3 questions",
        }
    ]
    assert report.data["counts"]["skipped_lines"] == 1


# -- through the endpoint ---------------------------------------------------------------------


def test_model_calls_are_made_once_and_at_once(endpoint, files, tmp_path):
    server = endpoint(replies(literal_reply))
    ledger = tmp_path / "llm.sqlite"

    def judge():
        return ModelJudge(Client("openai:toy", ledger=ledger, concurrency=4, backoff=0.0))

    one = judge()
    report = evaluate(*files, one, out=tmp_path / "R.json")
    one.close()
    assert sum(server.asked.values()) == 9
    assert report.questions["correctness"].tolist() == [1, 0, 1]
    assert report.data["judge"]["prompts"].keys() == {"correctness", "fact"}
    two = judge()
    evaluate(*files, two, out=tmp_path / "S.json")
    two.close()
    assert sum(server.asked.values()) == 9
    assert (tmp_path / "S.json").read_bytes() == (tmp_path / "R.json").read_bytes()


def test_an_estimate_asks_nothing(endpoint, files):
    server = endpoint(replies(literal_reply))
    judge = ModelJudge(Client("openai:toy", ledger=None))
    options = Options(repeat=2, documents=DOCUMENTS)
    parts = estimate(files[0], [(files[1], None)], judge, options)
    judge.close()
    assert sum(server.asked.values()) == 0
    assert [part["verdicts"] for part in parts] == [18, 6, 6, 6]
    assert parts[0]["estimate"].calls == 18
    assert parts[1]["estimate"].calls == 6
    # The members are one judge on three seats: three verdicts, none of them the other's.
    assert estimate(files[0], [(files[1], None)], Scripted(literal))[0]["estimate"] is None
