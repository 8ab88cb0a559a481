"""`ragkit sweep`: files in, files out, and what it says."""

from __future__ import annotations

import pandas as pd
import pytest
from click.testing import CliRunner

from ragkit import paths
from ragkit.cli import root
from ragkit.errors import ModelError, UsageError
from ragkit.systems import sweep
from ragkit.systems.sweep import running

FILES = {
    "d.jsonl": """{"doc_id": 1, "text": "The ferry leaves at noon."}
{"doc_id": "2", "text": "The crew eats fish.", "title": "Crew", "page": 7}""",
    "q.jsonl": """{"question_id": "q1", "text": "when does the ferry leave", "gold_doc_ids": [1]}
{"question_id": "q2", "text": "what does the crew eat", "answer": "Fish."}""",
    "s.toml": """[one]\nretriever = "bm25"\n[two]\nretriever = { kind = "bm25", b = 0.1 }""",
}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text + "\n")
    return tmp_path


def call(folder, *more, systems=("--systems", "s.toml")):
    options = [folder / part if "." in part else part for part in systems]
    options += ["--documents", folder / "d.jsonl"]
    options += ["--questions", folder / "q.jsonl", "--out", folder / "out", "--jobs", 1, *more]
    return CliRunner().invoke(
        root.commands["sweep"], list(map(str, options)), catch_exceptions=True
    )


def test_writes_what_it_says(folder):
    done = call(folder)
    assert done.exit_code == 0, done.exception
    assert "2 systems x 2 questions, 0 of 4 cells failed" in done.output
    runs = pd.read_parquet(folder / "out" / "runs.parquet")
    assert set(runs["system"]) == {"one", "two"}
    assert runs.loc[runs["question_id"] == "q1", "doc_id"].iloc[0] == "1"
    scores = pd.read_csv(folder / "out" / "scores.csv")
    assert set(scores["item_id"]) == {"q1"}
    assert len(pd.read_csv(folder / "out" / "failures.csv")) == 0
    assert (folder / "out" / "answers.jsonl").read_text() == ""
    # Questions without gold give lists and no scores.
    (folder / "q.jsonl").write_text('{"question_id": "q", "text": "ferry"}\n')
    assert call(folder).exit_code == 0
    assert len(pd.read_parquet(folder / "out" / "runs.parquet")) == 2
    assert (folder / "out" / "scores.csv").read_text() == "subject_id,item_id,metric,score\n"


def test_a_few_systems_and_a_dry_run(folder):
    done = call(folder, "--system", "two", "--dry-run")
    assert done.exit_code == 0, done.exception
    assert "1 systems x 2 questions over 2 documents; 2 of 2 lists to rank" in done.output
    assert not (folder / "out").exists()
    done = call(folder, "--system", "twoo")
    assert isinstance(done.exception, UsageError)
    assert "did you mean 'two'" in str(done.exception)
    done = call(folder, "--dry-run", systems=())  # those of the workspace
    free, left_out = running.free(sweep.load(paths.NOTEBOOKS / "systems.toml"))
    assert {"text-embedding-3-large", "bash-agent-model"} <= set(left_out)
    count = len(free)
    assert f"{count} systems x 2 questions" in done.output


def test_failed_cells_are_written_and_make_the_exit_status(folder, monkeypatch):
    from ragkit.systems.retrieval import BM25

    class Offline(BM25):
        def fit(self, documents):
            raise ModelError("the server does not answer")

    monkeypatch.setattr("ragkit.systems.retrieval.bm25.BM25", Offline)
    done = call(folder)
    assert isinstance(done.exception, ModelError)
    assert "4 cells failed" in str(done.exception)
    assert "does not answer" in str(done.exception)
    assert set(pd.read_csv(folder / "out" / "failures.csv")["system"]) == {"one", "two"}
    assert (folder / "out" / "runs.parquet").is_file()


def test_an_interrupted_run_says_how_to_go_on(folder, monkeypatch, ragkit):
    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(sweep, "run", stop)
    options = ["--documents", folder / "d.jsonl", "--questions", folder / "q.jsonl"]
    code, _, err = ragkit("sweep", *options, "--out", folder / "out")
    assert (code, "the same command continues" in err) == (130, True)
