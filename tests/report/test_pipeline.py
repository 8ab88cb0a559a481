"""The workflow on a small workspace of its own: order, freshness, failure, missing data."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner
from nbformat.v4 import new_code_cell, new_notebook

from ragkit import paths
from ragkit.cli import root
from ragkit.datasets import reported
from ragkit.errors import DataError, MissingData, UsageError
from ragkit.report import pipeline
from tests.conftest import python
from tests.test_files import holder

ROOT = Path(__file__).resolve().parents[2]
EXPORT = "from ragkit.report.results import Results\nResults({name!r}, profile).export()"


@pytest.fixture(scope="module")
def inputs():
    """The inputs of every notebook in the profile "sample", by its number."""
    plan = pipeline.make_plan("sample")
    return {step.name[:2]: set(plan.inputs(step)) for step in plan.runnable}


def write_notebook(path: Path, source: str) -> None:
    tags = {"tags": ["parameters"]}
    cells = [
        new_code_cell("profile = 'sample'\ndata = ''", id="params", metadata=tags),
        new_code_cell(source, id="work"),
        new_code_cell(EXPORT.format(name=path.stem), id="export"),
    ]
    book = new_notebook(cells=cells)
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(book, path)


@pytest.fixture
def workspace(tmp_path):
    """A copy of the package with three notebooks: b fails on demand, c comes after b."""
    for name in ("ragkit", "data/sample", "data/reported"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Snakefile", "requirements.lock", "data/registry.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    books = tmp_path / "notebooks"
    books.mkdir()
    write_notebook(books / "a.ipynb", "1 + 1")
    write_notebook(books / "b.ipynb", "import pathlib\nassert not pathlib.Path('break').exists()")
    write_notebook(books / "c.ipynb", "2 + 2")
    rows = [f"[[notebook]]\nname = '{name}'\n" for name in "abc"]
    (books / "catalogue.toml").write_text("".join(rows) + "after = ['b']\n")
    return tmp_path


def reproduce(workspace, *arguments):
    return python(workspace, "ragkit", "reproduce", "--cores", "2", *arguments)


@pytest.mark.slow
def test_a_failure_stops_its_dependents_only_and_resumes(workspace):
    (workspace / "break").touch()
    first = reproduce(workspace)
    said = first.stdout + first.stderr
    assert first.returncode == 1, said
    assert "b > work: AssertionError" in said
    assert "resume with: make reproduce PROFILE=sample" in said
    assert "failed or not run: b, c" in said
    built = workspace / "build" / "sample"
    assert (built / "notebooks" / "a.ipynb").is_file()
    assert not (built / "notebooks" / "b.ipynb").exists()
    assert not (built / "notebooks" / "c.ipynb").exists()

    (workspace / "break").unlink()
    second = reproduce(workspace)
    said = second.stdout + second.stderr
    assert second.returncode == 0, said
    assert "2 to run, 1 fresh" in said
    assert "start   a" not in said

    # A touch is no change, an edit of one notebook is; its dependents follow, others do not.
    for path in (workspace / "notebooks").glob("*.ipynb"):
        os.utime(path)
    assert "0 to run, 3 fresh" in reproduce(workspace, "--preflight").stdout
    write_notebook(workspace / "notebooks" / "b.ipynb", "1 + 2")
    look = reproduce(workspace, "--preflight")
    assert "2 to run, 1 fresh" in look.stdout, look.stdout

    # So is an edit of a module that a notebook imports.
    with open(workspace / "ragkit" / "report" / "tables.py", "a") as stream:
        stream.write("\n# changed\n")
    assert "3 to run, 0 fresh" in reproduce(workspace, "--preflight").stdout


def test_one_run_writes_a_profile_while_others_may_look(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGKIT_BUILD", str(tmp_path))
    with holder(tmp_path / "sample") as process:
        run = CliRunner().invoke(root.commands["reproduce"], ["--force"])
        assert f"the process {process.pid} is writing there" in str(run.exception)
        look = CliRunner().invoke(root.commands["reproduce"], ["--force", "--preflight"])
        assert look.exit_code == 0, look.exception
        assert ", 0 fresh" in look.output


def test_the_catalogue_is_sound_and_complete():
    steps = pipeline.catalogue()
    names = [step.name for step in steps]
    assert names == sorted(names)
    assert {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")} == set(names)
    frame = reported.load()
    covered = {table for step in steps for table in step.covers}
    assert covered <= set(frame["paper"] + ":" + frame["table"])


def test_before_a_first_run_all_are_late_and_shared_scores_come_first(tmp_path, monkeypatch):
    monkeypatch.setenv("RAGKIT_BUILD", str(tmp_path))
    plan = pipeline.make_plan("sample")
    monkeypatch.setattr(pipeline, "snakemake", None)  # it is not asked
    assert pipeline.stale(plan) == {step.name for step in plan.steps}
    sharing = [s for s in plan.steps if "sweep.sample_scores()" in s.path.read_text("utf-8")]
    assert [step.name[:2] for step in sharing] == ["30", "31", "34", "40"]
    assert max(plan.steps, key=lambda step: step.priority) is sharing[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[notebook]]\nname = '00-data-overveiw'", "has no file"),
        ("[[notebook]]\nname = '00-data-overview'\nneeds = []", "has the unknown field 'needs'"),
        ("[[notebook]]\nname = '00-data-overview'\ndatasets = ['wixq']", "unknown dataset 'wixq'"),
        ("[[notebook]]\nname = '00-data-overview'\nafter = ['x']", "must stand after 'x'"),
        ("[[notebook]", "Expected"),
    ],
)
def test_a_wrong_catalogue_is_refused(tmp_path, text, words):
    path = tmp_path / "catalogue.toml"
    path.write_text(text)
    with pytest.raises(DataError, match=words):
        pipeline.catalogue(path)


def test_missing_data_is_said_with_the_command_that_gets_it(tmp_path):
    plan = pipeline.make_plan("paper", str(tmp_path))
    reason, how = plan.missing["32-liverag-diversity"]
    assert "LiveRAG_banchmark_20250910.parquet is missing" in reason
    assert how == "ragkit data fetch liverag"
    assert "00-data-overview" in [step.name for step in plan.runnable]
    with pytest.raises(MissingData, match="no such data folder"):
        pipeline.make_plan("paper", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="did you mean 'paper'"):
        pipeline.make_plan("papre")


def test_everything_runs_on_the_sample_and_nothing_of_it_is_exported():
    plan = pipeline.make_plan("sample")
    assert plan.missing == {}
    with pytest.raises(UsageError, match="only the profile 'paper'"):
        pipeline.export(plan)
    board = next(step for step in plan.steps if "*" in step.after)
    assert plan.before(board) == [step for step in plan.steps if step is not board]


@pytest.mark.parametrize(
    ("file", "stale", "fresh"),
    [
        ("notebooks/systems.toml", "11 12 21 30 31 34", "00 10 20 22 32 41"),
        ("ragkit/models/registry.toml", "11 12 21 22 23 24 32 33", "00 10 20 90"),
        ("ragkit/synth/offline/packs/topics.toml", "23", "00 10 11 12 20 21 22 24 30 31 33"),
        ("ragkit/synth/datamorgana/prompts/question.md", "33", "00 10 11 12 20 21 22 30 31 32 34"),
        ("ragkit/report/ragkit.mplstyle", "00 10 11 12 20 21 22 23 24 30 31 32 33 34 41 90", ""),
        ("notebooks/catalogue.toml", "90", "00 10 11 12 20 21 22 23 24 30 31 32 33 34 41"),
        ("data/reported/liverag.csv", "00 10 32", ""),
        ("requirements.lock", "00 10 32", ""),
        ("notebooks/32-liverag-diversity.ipynb", "32", "00 10 11 12 20 21 22 30 31 34 41"),
        ("ragkit/cli/notebook.py", "", "00 10 11 12 20 21 22 23 24 30 31 32 33 34 41 90"),
        ("README.md", "", "00 10 11 12 20 21 22 23 24 30 31 32 33 34 41 90"),
    ],
)
def test_an_edit_makes_those_notebooks_stale_that_read_the_file(inputs, file, stale, fresh):
    assert (ROOT / file).is_file(), file
    for number, found in inputs.items():
        if number in stale:
            assert str(ROOT / file) in found, f"{number} does not depend on {file}"
        if number in fresh:
            assert str(ROOT / file) not in found, f"{number} depends on {file}"


def test_the_statistics_of_a_benchmark_depend_on_few_modules(inputs):
    assert len([path for path in inputs["10"] if path.endswith(".py")]) <= 35
    assert not [path for path in inputs["10"] if "/synth/" in path or "/systems/" in path]


def test_a_notebook_that_shows_the_sample_is_stale_when_the_sample_changes(tmp_path):
    """Whoever loads the sample by name says so in the catalogue, and depends on its files."""
    plan = pipeline.make_plan("paper", str(tmp_path))
    sample = {str(path) for path in paths.SAMPLE.rglob("*") if path.is_file()}
    for step in pipeline.catalogue():
        text = step.path.read_text("utf-8")
        loads = 'profile=\\"sample\\"' in text or "sweep.sample_" in text
        assert step.shows_sample == loads, step.name
        assert sample <= set(plan.inputs(step)) if loads else sample.isdisjoint(plan.inputs(step))


@pytest.mark.slow
def test_a_scheduler_runs_the_notebooks_that_snakemake_submits(workspace):
    """The executor cluster-generic, with a local script in the place of a scheduler's command."""
    submit = workspace / "submit.sh"
    job = 'echo "$1" >> submitted.txt\nnohup sh "$1" > job.log 2>&1 &\necho $!\n'
    submit.write_text(f"#!/bin/sh\n{job}")
    submit.chmod(0o755)
    command = ["snakemake", "notebooks/a.ipynb", "--snakefile", workspace / "Snakefile"]
    command += ["--directory", "build/sample", "--jobs", "1"]
    command += ["--executor", "cluster-generic", "--cluster-generic-submit-cmd", submit]
    done = python(workspace, *command)
    assert done.returncode == 0, done.stdout + done.stderr
    built = workspace / "build" / "sample"
    assert (built / "results" / "a" / "measured.csv").is_file()
    assert (built / "notebooks" / "a.ipynb").is_file()
    (submitted,) = (built / "submitted.txt").read_text().split()
    assert submitted.endswith(".sh")
