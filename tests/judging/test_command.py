import json
import re
from types import SimpleNamespace

import pytest

from ragkit.judging import read
from tests.judging.helpers import (
    answer_rows,
    answers,
    literal_reply,
    question_rows,
    replies,
    write_jsonl,
)
from tests.llm.server import Reply


@pytest.fixture
def run(tmp_path, ragkit, endpoint):
    """Return a function that runs `ragkit evaluate`, to end with `status`."""
    write_jsonl(tmp_path / "q.jsonl", question_rows())
    write_jsonl(tmp_path / "a.jsonl", answer_rows())
    server = endpoint(replies(literal_reply))

    def call(*more, out="R.json", answers_file="a.jsonl", judge="openai:toy", status=0):
        arguments = ["--questions", tmp_path / "q.jsonl", "--answers", tmp_path / answers_file]
        arguments += ["--judge", judge, "--out", tmp_path / out]
        code, *said = ragkit("evaluate", *arguments, "--ledger", tmp_path / "l.sqlite", *more)
        assert code == status, said
        return SimpleNamespace(out=said[0], err=said[1])

    call.server, call.folder = server, tmp_path
    return call


def test_from_files_to_a_report(run):
    said = run()
    assert "a: 3 of 3 questions answered; 0 of 9 verdicts unsure" in said.out
    report = read(run.folder / "R.json")
    assert report.questions["correctness"].tolist() == [1, 0, 1]
    assert report.data["judge"]["prompts"].keys() == {"correctness", "fact"}
    said = run(out="S.json")
    assert (run.folder / "S.json").read_bytes() == (run.folder / "R.json").read_bytes()
    assert sum(run.server.asked.values()) == 9


def test_a_dry_run_asks_and_writes_nothing(run):
    said = run("--dry-run", "--repeat", "2")
    assert "answers of a: 18 verdicts by openai:toy" in said.out
    assert "18 calls" in said.out
    assert "nothing to pay" in run("--dry-run", judge="offline").out
    assert not (run.folder / "R.json").exists()
    assert sum(run.server.asked.values()) == 0


def test_all_systems_of_a_file_or_one(run):
    """Neither the first system alone, nor several under the name of the file."""
    rows = [
        {"system": name, **row}
        for name, frame in (("x", answers()), ("y/z", answers(q1=("blue", ("d1",)), q3=None)))
        for row in answer_rows(frame)
    ]
    write_jsonl(run.folder / "two.jsonl", rows)
    said = run(answers_file="two.jsonl")
    assert "x: 3 of 3 questions answered" in said.out
    assert "y/z: 2 of 3 questions answered" in said.out
    assert read(run.folder / "R.y-z.json").questions["correctness"].tolist() == [0, 0, 0]
    assert not (run.folder / "R.json").exists()
    run("--system", "x", answers_file="two.jsonl")
    write_jsonl(
        run.folder / "near.jsonl",
        [{**row, "system": f"y{row['system'][1:2] or '-'}z"} for row in rows],
    )
    said = run(answers_file="near.jsonl", out="N.json", status=1)
    assert "two systems would have one report" in said.err
    assert not list(run.folder.glob("N*"))
    assert read(run.folder / "R.json").data["systems"] == ["x"]
    said = run("--system", "u", answers_file="two.jsonl", status=1)
    assert "no answers of 'u'" in said.err
    pair = ["--versus", run.folder / "two.jsonl", "--system", "x", "--versus-system", "y/z"]
    run.server.answer = replies(
        lambda said, *rest: "tie" if "<first>" in said else literal_reply(said, *rest)
    )
    said = run(*pair, answers_file="two.jsonl")
    assert "2 of 2 questions that both answered were judged" in said.out


def test_answers_of_a_sweep_are_read_as_they_are(run):
    """`doc_ids` and `document_ids` are one column; without it there is no recall and no report."""
    rows = answer_rows()
    named = [{"doc_ids": row.pop("document_ids"), **row} for row in rows]
    write_jsonl(run.folder / "sweep.jsonl", named)
    run(answers_file="sweep.jsonl")
    assert read(run.folder / "R.json").questions["document_recall"].tolist()[:2] == [1, 0.5]
    for change in ({}, {"document_ids": None}, {"other": 1}):
        write_jsonl(run.folder / "none.jsonl", [{**row, **change} for row in rows])
        said = run(answers_file="none.jsonl", out="S.json", status=1)
        assert "no row has doc_ids, so document recall cannot be computed" in said.err
    assert not (run.folder / "S.json").exists()
    write_jsonl(run.folder / "empty.jsonl", [{**row, "doc_ids": []} for row in rows])
    run(answers_file="empty.jsonl", out="S.json")
    assert read(run.folder / "S.json").questions["document_recall"].tolist()[:2] == [0, 0]


def test_half_of_the_answers_are_half_of_the_score_and_repeats_show_their_agreement(run):
    row = {"question_id": "q1", "answer": "red", "doc_ids": ["d1"]}
    write_jsonl(run.folder / "half.jsonl", [row])
    said = run("--repeat", "3", answers_file="half.jsonl").out
    assert "half: 1 of 3 questions answered" in said
    assert re.search(r"correctness +0\.3333 .* 3 of 3", said)
    assert re.search("spread +alpha", said)


def test_questions_without_facts_are_judged_by_their_gold_answers(run):
    """q2 and q3 lack facts: q2's wrong answer and q3's right one are in no mean of completeness."""
    rows = [
        row if row["question_id"] == "q1" else {**row, "answer_facts": []}
        for row in question_rows()
    ]
    write_jsonl(run.folder / "q.jsonl", rows)
    said = run()
    assert said.out.count("2 of 3 questions have no facts") == 1
    assert re.search(r"correctness +0\.6667 .* 3 of 3", said.out)
    assert re.search(r"completeness +0\.5000 .* 1 of 1", said.out)
    assert re.search(r"score +0\.5000 .* 1 of 1", said.out)
    report = read(run.folder / "R.json")
    assert report.questions["correctness"].tolist() == [1, 0, 1]
    assert report.questions["completeness"].isna().tolist() == [False, True, True]
    assert report.data["counts"]["a"]["missing_verdicts"] == 0
    summary = report.summary.query("group == 'overall'").set_index("metric")
    assert summary.loc[["correctness", "completeness", "score"], "of"].tolist() == [3, 1, 1]
    assert summary["missing"].sum() == 0
    for row in rows:
        row["answer_facts"] = []
    write_jsonl(run.folder / "q.jsonl", rows)
    said = run("--repeat", "2", out="S.json")
    assert "3 of 3 questions have no facts" in said.out
    assert "completeness " not in said.out.split("no facts")[0]
    assert read(run.folder / "S.json").scores["metric"].unique().tolist()[:2] == [
        "answered",
        "correctness",
    ]
    assert "no facts" not in run("--parts", "documents", out="D.json").out


def test_bad_lines(run):
    write_jsonl(run.folder / "bad.jsonl", [*answer_rows(), {"question_id": "q9", "answer": "x"}])
    reason = "question_id 'q9' is none of the 3 questions"
    said = run(answers_file="bad.jsonl", status=1)
    assert f"bad.jsonl: {reason}" in said.err
    said = run("--skip-bad", answers_file="bad.jsonl")
    assert f"left out: bad.jsonl: {reason}" in said.err
    data = read(run.folder / "R.json").data
    assert data["skipped"] == [{"file": "bad.jsonl", "line": 0, "reason": reason}]
    assert data["counts"]["bad"]["skipped_lines"] == 1


def test_missing_verdicts_are_said(run):
    def script(said, properties, nth):
        if "three" in said.split("<candidate>")[1]:
            return Reply("{}", 400)
        return literal_reply(said, properties, nth)

    run.server.answer = replies(script)
    said = run(status=1)
    assert "2 verdicts are missing, none of them counted as 0" in said.err
    assert "2 of 3" in said.out
    assert "the same command asks for them again" in said.err
    assert json.loads((run.folder / "R.json").read_text())["counts"]["a"]["missing_verdicts"] == 2


def test_a_replay_counts_what_the_ledger_lacks_as_missing(run):
    write_jsonl(run.folder / "part.jsonl", answer_rows(answers(q1=None)))
    run(answers_file="part.jsonl", out="P.json")
    asked = sum(run.server.asked.values())
    said = run("--replay", status=1)
    assert "3 verdicts are missing, none of them counted as 0" in said.err
    assert re.search(r"correctness +0\.5000 .* 2 of 3", said.out)
    verdict = read(run.folder / "R.json").records[0]["verdicts"][0]
    assert verdict["reason"].startswith("unasked: not in the ledger")
    said = run("--replay", judge="openai:other", out="O.json", status=1)
    assert "are not in the ledger" in said.err
    assert not (run.folder / "O.json").exists()
    assert sum(run.server.asked.values()) == asked


def test_two_systems_with_documents_and_a_panel(run):
    def script(said, properties, nth):
        if "<document>" in said and "<previous_answer>" not in said:
            return "required" if "text of d1" in said or "text of d2" in said else "invalid"
        if "facts" in properties:
            return {"answer": "new", "facts": ["new"]}
        if "<first>" in said:
            return "tie"
        return literal_reply(said, properties, nth)

    run.server.answer = replies(script)
    write_jsonl(run.folder / "b.jsonl", answer_rows(answers(q1=("blue", ("d1", "d8")))))
    rows = [{"doc_id": name, "text": f"text of {name}"} for name in ("d1", "d2", "d3", "d8", "d9")]
    documents = write_jsonl(run.folder / "d.jsonl", rows)
    options = ["--versus", run.folder / "b.jsonl", "--documents", documents]
    said = run(*options, "--panel", "openai:toy", "--panel", "openai:other")
    assert (
        "preferred: 0 a, 0 b, 3 ties; 3 of 3 questions that both answered were judged" in said.out
    )
    report = read(run.folder / "R.json")
    assert [one["name"] for one in report.data["panel"]] == ["openai:toy", "openai:other"]
    assert report.data["settings"]["correct_gold"] is True
    assert [record["corrected"] for record in report.records] == [False, True, False] * 2
    assert (run.folder / "R.corrected.jsonl").exists()
    said = run(*options, "--dry-run")
    assert "preferences, member 3 of the panel: 3 verdicts by openai:toy" in said.out
    assert "documents (at most), member 1 of the panel: 7 verdicts" in said.out
    assert "together: 48 verdicts; cost at least unknown, at most unknown" in said.out


def test_unknown_judges_and_options(run):
    said = run(judge="opena:toy", status=1)
    assert "no judge is called 'opena:toy'" in said.err
    run("--rules", "mine", status=2)
    said = run("--versus-system", "x", status=1)
    assert "--versus" in said.err
    said = run("--correct-gold", status=1)
    assert "texts of the documents" in said.err
