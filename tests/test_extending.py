"""A dataset, a metric, a system, a figure and a notebook, added by the steps that the README names."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from ragkit import paths
from tests.conftest import python

DATASET = """
[[dataset]]
name = "harbour"
reader = "frames"

[[dataset.file]]
path = "harbour/asked.csv"
origin = "the README"
licence = "CC0"
rows = 2
[dataset.file.read]
frame = "questions"
columns = { question_id = "no", text = "asked", answer = "said" }
fixed = { type = "harbour" }
"""
METRIC = '''

def word_share(prediction: str, golds: Sequence[str]) -> float:
    """Return the words of a prediction over those of the longest gold answer, at most 1."""
    return min(1.0, len(prediction.split()) / max(len(gold.split()) for gold in golds))


METRICS["word_share"] = word_share
'''
SYSTEM = """
[bm25-mine]
retriever = { kind = "bm25", k1 = 0.9 }
"""
FIGURE = '''

def word_shares(scores):
    """Draw the word shares of answers."""
    import seaborn as sns

    fig, ax = axes("column", 2.0)
    sns.histplot(scores["score"], ax=ax)
    return fig
'''
CATALOGUE = """
[[notebook]]
name = "60-mine"
datasets = ["wixqa"]
"""
CELLS = {
    "work": """from ragkit import datasets, paths
from ragkit.measures import metrics
from ragkit.report.plots import data as drawn
from ragkit.report.results import Results
from ragkit.systems import sweep

out = Results("60-mine", profile)
wixqa = datasets.load("wixqa", profile=profile, data=data).part(30, 10)
system = sweep.select(sweep.load(paths.NOTEBOOKS / "systems.toml"), ["bm25-mine"])
found = sweep.run(system, wixqa.documents, wixqa.questions, jobs=1)
harbour = datasets.load("harbour", profile="paper", data="mine")""",
    "score": """answers = wixqa.questions[["question_id", "answer"]].assign(system="gold", doc_ids=[()] * 10)
scores = metrics.score_answers(answers, wixqa.questions, metrics=["word_share"])
out.frame(scores, "scores")
out.frame(found.runs, "runs")
out.frame(harbour.questions[["question_id", "text", "type"]], "asked")""",
    "fig-shares": 'out.figure(drawn.word_shares(scores), "shares")',
    "export": "out.export()",
}


@pytest.fixture
def workspace(tmp_path):
    copy = tmp_path / "copy"
    skip = shutil.ignore_patterns("__pycache__", "results", "cache")
    for name in ("ragkit", "notebooks", "data"):
        shutil.copytree(paths.ROOT / name, copy / name, ignore=skip)
    for name in ("Snakefile", "requirements.lock"):
        shutil.copy(paths.ROOT / name, copy)
    return copy


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text("utf-8") + text, "utf-8")


def test_a_dataset_a_metric_a_system_a_figure_and_a_notebook(workspace):
    append(workspace / "data" / "registry.toml", DATASET)
    (workspace / "mine" / "harbour").mkdir(parents=True)
    (workspace / "mine" / "harbour" / "asked.csv").write_text(
        "no,asked,said\n7,Who?,Ann\n8,Why?,\n"
    )
    append(workspace / "ragkit" / "measures" / "metrics.py", METRIC)
    append(workspace / "notebooks" / "systems.toml", SYSTEM)
    append(workspace / "ragkit" / "report" / "plots" / "data.py", FIGURE)
    append(workspace / "notebooks" / "catalogue.toml", CATALOGUE)
    parameters = new_code_cell(
        'profile = "sample"\ndata = ""', id="params", metadata={"tags": ["parameters"]}
    )
    cells = [parameters, *(new_code_cell(source, id=name) for name, source in CELLS.items())]
    book = new_notebook(cells=cells)
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(book, workspace / "notebooks" / "60-mine.ipynb")

    def ragkit(*words):
        done = python(workspace, "ragkit", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    ragkit("notebook", "run", "60-mine")
    built = workspace / "build" / "sample"
    scores = (built / "results" / "60-mine" / "scores.csv").read_text().splitlines()
    assert len(scores) == 11
    assert all(line.endswith("word_share,1") for line in scores[1:])
    assert "bm25-mine" in (built / "results" / "60-mine" / "runs.csv").read_text()
    asked = (built / "results" / "60-mine" / "asked.csv").read_text().splitlines()
    assert asked[1:] == ["7,Who?,harbour", "8,Why?,harbour"]
    status = ragkit("data", "status", "--dataset", "harbour", "--data", "mine")
    assert "1 present" in status
    assert "no digest was ever pinned" in status
    assert (built / "figures" / "60-mine" / "shares.pdf").is_file()
    assert "60-mine" in ragkit("reproduce", "--preflight")
