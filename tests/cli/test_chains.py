"""Chains of commands as a user types them: each ends in the right number, or in one error."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from click.testing import CliRunner

from ragkit.cli import root
from ragkit.errors import RagkitError
from ragkit.files import read_frame, write_jsonl
from tests.conftest import ROOT
from tests.datasets import release
from tests.datasets.official import PARQUET
from tests.test_files import holder

SYSTEMS = """
[bm25]
retriever = "bm25"
reader = { kind = "extractive", sentences = 1, threshold = 0.0 }

[titles]
retriever = { kind = "bm25", fields = ["title"] }
reader = { kind = "extractive", sentences = 1, threshold = 0.0 }
"""
TOPICS = ["ferry", "pump", "harbour", "invoice", "lighthouse", "anchor", "compass", "sail"]


def run(*arguments):
    done = CliRunner().invoke(root, [str(argument) for argument in arguments])
    if done.exception and not isinstance(done.exception, SystemExit | RagkitError):
        raise done.exception
    return done


def ran(*arguments):
    """Run a command that has to succeed, and return what it says."""
    done = run(*arguments)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A swept benchmark in the column names that other people's files have."""
    folder = tmp_path_factory.mktemp("chain")
    weights = ROOT / "data" / "cache" / "models"
    if not weights.is_dir():
        pytest.skip("no reranker: ragkit models fetch --offline-set")
    (folder / "cache").mkdir()
    (folder / "cache" / "models").symlink_to(weights)
    (folder / "systems.toml").write_text(SYSTEMS)
    documents, questions = [], []
    for n, topic in enumerate(TOPICS):
        fact = f"The {topic} costs {n + 100} euros."
        documents.append({"id": n, "title": f"Note {n}", "contents": fact})
        asked = {"question_id": f"q{n}", "question": f"What does the {topic} cost?"}
        questions.append(asked | {"answer": fact, "article_ids": [n], "answer_facts": [fact]})
    write_jsonl(folder / "documents.jsonl", documents)
    write_jsonl(folder / "questions.jsonl", questions)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAGKIT_CACHE", str(folder / "cache"))
        ran("sweep", *options(folder), "--out", folder / "out", "--jobs", 1)
    return folder


def options(folder):
    names = ("systems.toml", "documents.jsonl", "questions.jsonl")
    for name in names:
        yield from (f"--{name.split('.')[0]}", folder / name)


def test_a_sweep_reads_other_names_of_columns(swept):
    summary = pd.read_csv(swept / "out" / "summary.csv").set_index("system")
    assert summary.loc["bm25", "R@5"] == 1.0
    assert summary.loc["titles", "R@5"] < 1.0


def test_what_sweep_writes_evaluate_reads(swept, tmp_path):
    given = ("--questions", swept / "questions.jsonl", "--answers", swept / "out" / "answers.jsonl")
    out = ("--judge", "offline", "--out", tmp_path / "report.json")
    ran("evaluate", *given, *out)
    assert sorted(path.name for path in tmp_path.iterdir() if "report" in path.name) == [
        "report.bm25.json",
        "report.titles.json",
    ]
    for system, recall in (("bm25", 1.0), ("titles", 0.0)):
        report = json.loads((tmp_path / f"report.{system}.json").read_text())
        rows = [row for row in report["summary"] if row["group"] == "overall"]
        overall = {row["metric"]: row for row in rows}
        assert overall["document_recall"]["value"] == recall
        assert overall["correctness"]["of"] == len(TOPICS)


def test_what_sweep_writes_irt_fits_one_metric_at_a_time(swept, tmp_path):
    scores = swept / "out" / "scores.csv"
    several = run("irt", "fit", scores, "--out", tmp_path / "fit")
    assert isinstance(several.exception, RagkitError)
    assert "--metric" in str(several.exception)
    ran("irt", "fit", scores, "--metric", "token_f1", "--out", tmp_path / "fit")
    items = pd.read_csv(tmp_path / "fit" / "items.csv", index_col="item_id")
    assert set(items.index) == {f"q{n}" for n in range(len(TOPICS))}
    subjects = pd.read_csv(tmp_path / "fit" / "subjects.csv", index_col="subject_id")
    assert subjects["theta"].idxmax() == "bm25"


def test_a_gold_document_that_is_missing_is_an_error(swept, tmp_path):
    rows = (swept / "questions.jsonl").read_text()
    (swept / "wrong.jsonl").write_text(rows.replace('"article_ids": [3]', '"article_ids": [99]'))
    wrong = ("--questions", swept / "wrong.jsonl")
    done = run("sweep", *options(swept), *wrong, "--out", tmp_path / "out")
    assert "names the gold document '99'" in str(done.exception)
    assert not (tmp_path / "out").exists()


OFFICIAL = {
    "WixQA": ("wixqa/wix_kb_corpus/wix_kb_corpus.jsonl", "wixqa/wixqa_expertwritten/test.jsonl"),
    "EnterpriseRAG-Bench": (release.DOCUMENTS, "enterpriserag_bench/questions.jsonl"),
    "LiveRAG": (PARQUET, PARQUET),
}


@pytest.mark.parametrize("name", OFFICIAL)
def test_released_files_are_taken_as_they_are(tmp_path, name):
    folder = release.make(tmp_path / "official")
    documents, questions = (folder / path for path in OFFICIAL[name])
    (tmp_path / "systems.toml").write_text('[bm25]\nretriever = "bm25"\n')
    given = ("--documents", documents, "--questions", questions)
    ran("sweep", "--systems", tmp_path / "systems.toml", *given, "--out", tmp_path / "runs")
    runs = pd.read_parquet(tmp_path / "runs" / "runs.parquet")
    asked, texts = read_frame(questions, "questions"), read_frame(documents, "documents")
    assert set(runs["question_id"]) <= set(asked["question_id"])
    assert set(runs["doc_id"]) <= set(texts["doc_id"])
    gold = asked["gold_doc_ids"].explode().dropna()
    assert gold.isin(texts["doc_id"]).all()
    asked = ("--documents", documents, "--questions", 2, "--author", "openai:none", "--dry-run")
    said = ran("generate", "datamorgana", *asked, "--out", tmp_path / "made.jsonl")
    assert f"{len(texts):,} documents, 2 questions" in said
    frame = read_frame(questions, "questions").rename(columns={"gold_doc_ids": "document_ids"})
    rows = frame[["question_id", "answer", "document_ids"]].to_dict("records")
    answers = write_jsonl(tmp_path / "answers.jsonl", rows)
    given = ("--questions", questions, "--answers", answers)
    ran("evaluate", *given, "--judge", "offline", "--out", tmp_path / "report.json")


def test_a_file_with_a_semicolon_is_one_error(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("subject_id;item_id;score\na;q1;0,5\nb;q1;0,7\n")
    done = run("irt", "fit", path, "--out", tmp_path / "fit")
    assert isinstance(done.exception, RagkitError)
    assert "scores.csv" in str(done.exception)


@pytest.mark.parametrize(
    ("command", "given"),
    [
        ("sweep", "--documents documents.jsonl --questions q.jsonl --systems s.toml"),
        ("generate", "erb --documents 500 --seed 1"),
        ("generate", "sample"),
        ("generate", "company --page p.md --author openai:toy --yes"),
        ("generate", "helpcentre --page p.md --articles 8 --author openai:toy --yes"),
        ("generate", "datamorgana --documents . --questions 2 --author openai:toy --yes"),
    ],
)
def test_two_runs_do_not_write_into_one_place(tmp_path, monkeypatch, command, given):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text('[a]\nretriever = "bm25"')
    (tmp_path / "p.md").write_text("A company that makes pumps.")
    text = "The pump runs all day and all night. " * 40
    (tmp_path / "documents.jsonl").write_text(json.dumps({"doc_id": "1", "text": text}))
    (tmp_path / "q.jsonl").write_text('{"id": "q", "text": "a"}')
    place = (tmp_path, "out") if "datamorgana" in given else (tmp_path / "out",)
    with holder(*place) as process:
        done = run(command, *given.split(), "--out", "out")
        assert f"out: the process {process.pid} is writing there" in str(done.exception)
        assert {path.name for path in (tmp_path / "out").rglob("*")} <= {".tmp-.lock"}
        assert not (tmp_path / "out").is_file()
