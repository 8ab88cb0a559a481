"""Other people's runs of the benchmark, as they recorded them: our metrics must say the same."""

import json
import math
import zipfile
from collections import Counter

import pytest

from ragkit.judging import aggregate, read_answers, read_questions
from ragkit.judging.report import document_recall, invalid_extra_documents, leaderboard_score

AUTHOR = "victormocioiu__rag-api"
# Which answers a report was made of: found by the recorded recalls.
PAIRS = {
    "results-submission-final": "answers-submission-final",
    "results-submission-rerank": "answers-submission-rerank",
    "results-submission-official": "answers-submission",
    "erb-official-judge-v1": "answers-official",
}
RECORDED = {
    "correctness": ("average_correctness_pct", 100),
    "completeness": ("average_completeness_pct", 100),
    "score": ("combined_correctness_completeness_score", 100),
    "document_recall": ("average_recall_pct", 100),
    "invalid_extra_documents": ("average_invalid_extra_docs", 1),
}


@pytest.fixture(scope="module")
def folder(mirror):
    return mirror / "enterpriserag_bench"


@pytest.fixture(scope="module")
def reports(folder):
    with zipfile.ZipFile(folder / "judge_eval_json_originals.zip") as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


def test_document_metrics_of_every_question_that_was_not_corrected(folder, reports, tmp_path):
    questions, _ = read_questions(folder / "questions.jsonl")
    gold = dict(zip(questions["question_id"], questions["gold_doc_ids"], strict=True))
    with zipfile.ZipFile(folder / "system_answers_jsonl.zip") as archive:
        archive.extractall(tmp_path)
    counts = Counter()
    for report, file in PAIRS.items():
        path = tmp_path / AUTHOR / "bench" / f"{file}.jsonl"
        frame, _ = read_answers(path, questions)
        retrieved = dict(zip(frame["question_id"], frame["doc_ids"], strict=True))
        for row in reports[f"{AUTHOR}/results/{report}.json"]["questions"]:
            name = row["question_id"]
            if not gold[name]:
                assert row["document_recall_pct"] is None
                assert row["invalid_extra_docs"] is None
            elif not row["corrected"]:
                recall = document_recall(retrieved[name], gold[name])
                assert round(100 * recall, 2) == row["document_recall_pct"]
                extra = invalid_extra_documents(retrieved[name], gold[name])
                assert extra == row["invalid_extra_docs"]
                counts["same"] += 1
    assert counts["same"] == 1846


@pytest.mark.parametrize(
    ("whose", "numbers"), [(AUTHOR, 1071), pytest.param("", 7918, marks=pytest.mark.slow)]
)
def test_recorded_verdicts_aggregate_to_the_recorded_numbers(reports, whose, numbers):
    checked = 0
    for report in (one for name, one in reports.items() if name.startswith(whose)):
        found = aggregate([_record(row) for row in report["questions"]], n_resamples=1)
        groups = {"overall": report["aggregate_stats"], **report["question_type_stats"]}
        for ours in found[found["metric"].isin(RECORDED)].itertuples():
            recorded, scale = RECORDED[ours.metric]
            theirs = groups[ours.group][recorded]
            if ours.of == 0:
                assert theirs == 0  # no documents: theirs 0, ours no value
                assert math.isnan(ours.value)
                continue
            assert scale * ours.value == pytest.approx(theirs, abs=0.00501)
            checked += 1
    assert checked == numbers


def _record(row):
    correct, share = float(row["answer_correct"]), row["completeness_pct"] / 100
    scores = {
        "correctness": correct,
        "completeness": share,
        "score": leaderboard_score(correct, share),
    }
    if row["document_recall_pct"] is not None:
        scores["document_recall"] = row["document_recall_pct"] / 100
        scores["invalid_extra_documents"] = row["invalid_extra_docs"]
    return {"question_type": row["question_type"], "scores": scores}
