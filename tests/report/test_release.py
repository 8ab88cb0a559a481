"""The papers' own files alone carry the profile "paper"."""

from __future__ import annotations

import os
import subprocess
import sys

import pandas as pd
import pytest

from ragkit import datasets
from ragkit.report import pipeline, scoreboard, tables
from tests.datasets import release

# Notebooks that read real files, with what makes each small.
SMALL = {
    "00-data-overview": {},
    "10-wixqa-statistics": {},
    "11-wixqa-retrieval": {
        "most_documents": 100,
        "most_questions": 20,
        "systems": "bm25 bm25-flashrag minilm",
        "splits": 2,
    },
    "12-wixqa-answers": {"most_documents": 80, "most_questions": 12, "systems": "bm25 e5-small"},
    "20-erb-statistics": {},
    "21-erb-baselines": {"most_documents": 150, "most_questions": 20, "resamples": 99},
    "22-erb-corpus-geometry": {"most_documents": 100, "repeats": 2},
    "30-liverag-irt": {"epochs": 50, "draws": 20},
    "31-liverag-difficulty": {},
    "32-liverag-diversity": {"size": 30, "repeats": 3},
}
WIXQA = "wixqa/wixqa_expertwritten/test.jsonl"


@pytest.fixture
def official(tmp_path):
    return release.make(tmp_path / "official")


def test_the_official_files_are_enough_for_every_notebook(official):
    plan = pipeline.make_plan("paper", str(official))
    assert plan.missing == {}
    assert not any(
        datasets.load(name, profile="paper", data=official).gaps for name in release.NAMES
    )


@pytest.mark.parametrize(
    ("damage", "why"), [(None, "is missing"), (b'{"question": "a"}\n', "no column 'answer'")]
)
def test_a_dataset_that_cannot_be_loaded_stops_its_own_notebooks_alone(official, damage, why):
    (official / WIXQA).unlink()
    if damage:
        (official / WIXQA).write_bytes(damage)
    plan = pipeline.make_plan("paper", str(official))
    own = {"10-wixqa-statistics", "11-wixqa-retrieval", "12-wixqa-answers"}
    assert set(plan.missing) == own
    assert all(why in words for words, _ in plan.missing.values())
    board = next(step for step in plan.steps if step.name == "90-scoreboard")
    assert board in plan.runnable
    assert not own & {step.name for step in plan.before(board)}


def test_what_is_left_out_is_said_in_a_sentence(official, capsys):
    assert datasets.load_optional("grag", profile="paper", data=official) is None
    said = "Without grag: liverag/grag_factor_analysis_query_level_scores.csv is not here."
    assert capsys.readouterr().out == f"{said} What needs it is left out.\n"
    assert datasets.load_optional("liverag", profile="paper", data=official).questions["diff"].any()


@pytest.mark.slow
def test_every_notebook_runs_on_the_official_files_alone(official, tmp_path):
    from ragkit.paths import DATA

    environment = dict(
        os.environ, RAGKIT_BUILD=str(tmp_path / "b"), RAGKIT_CACHE=str(DATA / "cache")
    )
    given = SMALL | {"90-scoreboard": {"notebooks": list(SMALL)}}
    for name, parameters in given.items():
        command = [sys.executable, "-m", "ragkit", "notebook", "run", name]
        command += ["--profile", "paper", "--data", str(official)]
        for key, value in parameters.items():
            command += ["-p", key, repr(value)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
    board = scoreboard.read(tmp_path / "b" / "paper" / "results" / "scoreboard.csv")
    measured = board[board["measured"].notna()]
    assert set(measured["paper"]) == set(board["paper"])
    assert len(measured) > 200
    assert isinstance(tables.counts(board), pd.DataFrame)
    # These files are other releases than the registered ones: no number of theirs is a match.
    known = measured[measured["value"].notna()]  # the others lost their printed number
    assert set(known["status"]) == {"substitute"}
    assert set(measured["status"]) <= {"substitute", "not available"}
