"""The papers' own files alone carry the profile "paper"."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import papermill
import pytest

from ragkit import datasets, paths
from ragkit.report import pipeline, scoreboard, tables
from tests.datasets import others, release

SHORT = {"most_documents": 100, "most_questions": 20}
# All notebooks but the last, with what makes each small.
SMALL = {
    "00-data-overview": {},
    "10-wixqa-statistics": {},
    "11-wixqa-retrieval": {"systems": "bm25 bm25-flashrag minilm", "splits": 2, **SHORT},
    "12-wixqa-answers": {"most_documents": 80, "most_questions": 12, "systems": "bm25 e5-small"},
    "20-erb-statistics": {},
    "21-erb-baselines": {"most_documents": 150, "most_questions": 20, "resamples": 99},
    "22-erb-corpus-geometry": {"most_documents": 100, "repeats": 2},
    "23-erb-scaling": {"sizes": [200, 250, 320], "smaller": [180], "vectors_most": 200}
    | {"lsa": 32, "resamples": 99},
    "24-erb-generation": {},
    "30-liverag-irt": {"epochs": 50, "draws": 20},
    "31-liverag-difficulty": {},
    "32-liverag-diversity": {"size": 30, "repeats": 3},
    "33-liverag-generation": {},
    "34-irt-trust": {"items": 60, "shared": 10, "simulations": 1, "splits": 2, "draws": 20},
    "40-short-forms": {"sizes": [10], "folds": 2, "simulated_items": 60, "form_size": 20},
    "41-judge-agreement": {"resamples": 20},
    "50-your-benchmark": {"systems": "bm25 minilm", **SHORT},
}
WIXQA = "wixqa/wixqa_expertwritten/test.jsonl"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The papers' own files, which no test changes."""
    return release.make(tmp_path_factory.mktemp("made") / "official")


@pytest.fixture
def official(made, tmp_path):
    """The papers' own files, to be changed."""
    return Path(shutil.copytree(made, tmp_path / "official"))


def test_the_official_files_are_enough_for_every_notebook(made):
    plan = pipeline.make_plan("paper", str(made))
    assert plan.missing == {}
    assert not any(datasets.load(name, profile="paper", data=made).gaps for name in release.NAMES)


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
    assert all(why in words and how for words, how in plan.missing.values())
    board = next(step for step in plan.steps if step.name == "90-scoreboard")
    assert board in plan.runnable
    assert not own & {step.name for step in plan.before(board)}


def test_what_a_notebook_can_do_without_is_loaded_as_such():
    for step in STEPS:
        named = re.findall(r'datasets\.load\(\\"(\w+)\\", profile=profile', step.path.read_text())
        assert set(named) <= set(step.datasets), step.name


def test_slices_of_the_corpus_decide_whether_a_notebook_is_fresh(official):
    whole = official / release.DOCUMENTS
    part = whole.rename(whole.with_name("slack_slice_0001.zip"))
    plan = pipeline.make_plan("paper", str(official))
    step = next(step for step in plan.steps if step.name == "20-erb-statistics")
    assert str(part) in plan.inputs(step)


def test_what_is_left_out_is_said_in_a_sentence(made, capsys):
    assert datasets.load_optional("grag", profile="paper", data=made) is None
    said = "Without grag: liverag/grag_factor_analysis_query_level_scores.csv is not here."
    assert capsys.readouterr().out == f"{said} What needs it is left out.\n"
    assert datasets.load_optional("liverag", profile="paper", data=made).questions["diff"].any()


def run(name: str, official: Path, build: Path, **parameters) -> None:
    """Run a notebook of the profile "paper" on a folder of files."""
    cache = str(paths.DATA / "cache")
    environment = dict(os.environ, RAGKIT_BUILD=str(build), RAGKIT_CACHE=cache)
    command = [sys.executable, "-m", "ragkit", "notebook", "run", name]
    command += ["--profile", "paper", "--data", str(official)]
    for key, value in parameters.items():
        command += ["-p", key, repr(value)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


# What other people published and a notebook uses where it is at hand.
STEPS = pipeline.catalogue()
OTHERS = sorted({name for step in STEPS for name in step.optional} - set(release.NAMES))
# The cells that are made of it, beside the papers' own files: a column and its values. All others
# are shown in a notebook and fill no cell there.
FOUND = {"document_recall", "invalid_extra_documents"}
OWN = {name: {"row": {name}} for name in others.SETS} | {
    "grag": {"metric": {"kendall_tau"}},  # of the sample's systems without it
    "datamorgana": {"row": {"browsecomp_plus"}},
    "erb_judged": {"metric": {"correctness", "completeness", "leaderboard_score"}},
    "erb_retrieval": {"metric": FOUND, "column": {"vector"}},
    "erb_ranks": {"metric": FOUND, "column": {"bm25"}},
}
READERS = [step for step in STEPS if step.covers and set(step.optional) & set(OTHERS)]


@contextmanager
def without(name: str, folder: Path):
    """Move the files of a dataset away, and back; yields their paths."""
    found = [path for path in (folder / path for path in datasets.files(name)) if path.exists()]
    assert found
    for path in found:
        path.rename(path.with_name(f"{path.name}.away"))
    yield found
    for path in found:
        path.with_name(f"{path.name}.away").rename(path)


def test_without_a_file_of_others_the_plan_is_the_same_but_for_its_readers(official, monkeypatch):
    # Data alone is asked of.
    monkeypatch.setattr(pipeline.notebook, "dependencies", lambda book: [])
    others.make(official)
    plan = pipeline.make_plan("paper", str(official))
    inputs = {step.name: set(plan.inputs(step)) for step in plan.steps}
    for name in OTHERS:
        with without(name, official) as away:
            plan = pipeline.make_plan("paper", str(official))
            assert plan.missing == {}
            for step in plan.steps:
                gone = inputs[step.name] - set(plan.inputs(step))
                assert gone == (set(map(str, away)) if name in step.optional else set()), name


def measured(name: str, folder: Path, build: Path) -> pd.DataFrame:
    run(name, folder, build, **SMALL[name])
    path = build / "paper" / "results" / name / "measured.csv"
    found = pd.read_csv(path, dtype={"table": str}).set_index(tables.KEY)
    return found.fillna({"substitute": "", "note": ""})


@pytest.mark.slow
@pytest.mark.parametrize("step", READERS, ids=lambda step: step.name)
def test_without_a_file_of_others_its_own_cells_change_and_no_others(official, tmp_path, step):
    others.make(official)
    if step.name == "21-erb-baselines":  # beside the corpus, nothing of others is measured
        (official / release.DOCUMENTS).unlink()
    before = measured(step.name, official, tmp_path / "all")
    cells = before.index.to_frame()
    for name in sorted(set(step.optional) & set(OTHERS)):
        own = [cells[column].isin(values) for column, values in OWN.get(name, {}).items()]
        own = before[pd.concat(own, axis=1).all(axis=1)] if own else before[:0]
        assert len(own) or name not in OWN or step.name == "30-liverag-irt", name
        with without(name, official):
            after = measured(step.name, official, tmp_path / name)
        after = after.drop(index=own.index, errors="ignore")
        pd.testing.assert_frame_equal(after, before.drop(index=own.index))


def test_every_notebook_is_run_on_the_official_files():
    steps = pipeline.catalogue()
    assert [*SMALL, "90-scoreboard"] == [step.name for step in steps]
    for step in steps[:-1]:
        assert SMALL[step.name].keys() <= papermill.inspect_notebook(str(step.path)).keys()


@pytest.mark.slow
def test_every_notebook_runs_on_the_official_files_alone(official, tmp_path):
    for name, parameters in (SMALL | {"90-scoreboard": {"notebooks": list(SMALL)}}).items():
        run(name, official, tmp_path / "b", **parameters)
    board = scoreboard.read(tmp_path / "b" / "paper" / "results" / "scoreboard.csv")
    assert isinstance(tables.counts(board), pd.DataFrame)
    measured = board[board["measured"].notna() & board["value"].notna()]
    # These files are other releases than the registered ones: no number of theirs is a match.
    assert set(measured["status"]) == {"substitute"}
    assert measured["note"].str.contains("other release|sample|generated").all()
    # What needs data is measured: other people's sets and numbers that no file holds are left.
    left = board[board["status"] == "needs data"]
    assert set(left["command"]) <= {f"ragkit data fetch {name}" for name in others.SETS}
    assert not (board["status"] == "not run").any()
    assert board.loc[board["status"] == "needs a model", "command"].str.startswith("ragkit ").all()
