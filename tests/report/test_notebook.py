"""The strict runner: what must stop before a kernel starts, and what a failure says."""

from __future__ import annotations

import json

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from ragkit import paths
from ragkit.errors import DataError, NotebookError, UsageError
from ragkit.report import notebook
from ragkit.report.site import executed
from tests.llm.server import chat


def make(
    path, *cells, tags=("parameters",), parameters="profile = 'sample'\nseed = 0\nshare = 0.5"
):
    book = new_notebook()
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    first = new_code_cell(parameters, metadata={"tags": list(tags)}, id="params")
    book.cells = [new_markdown_cell("# A title", id="title"), first]
    book.cells += [new_code_cell(text, id=name) for name, text in cells]
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(book, path)
    return path


def known(path):
    return notebook.parameters(notebook.read(path), path.stem)


def test_parameters_are_literals(tmp_path):
    path = make(tmp_path / "a.ipynb", parameters="a = 1\nb = [1, 'x']\nc = -2.5\n# a comment")
    assert known(path) == {"a": 1, "b": [1, "x"], "c": -2.5}


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ("a = 1\nb = a + 1", "line 2: b is derived"),
        ("import os", "line 1: only"),
        ("a, b = 1, 2", "line 1: only"),
        ("a = ", "line 1"),
    ],
)
def test_other_parameter_cells_are_refused(tmp_path, parameters, words):
    with pytest.raises(DataError, match=words):
        known(make(tmp_path / "a.ipynb", parameters=parameters))
    with pytest.raises(DataError, match="0 cells are tagged"):
        known(make(tmp_path / "a.ipynb", tags=(), parameters=parameters))


def test_a_parameter_may_not_be_overwritten(tmp_path):
    path = make(tmp_path / "a.ipynb", ("later", "x = 1\nseed = 3"))
    with pytest.raises(DataError, match="a > later: line 2 assigns to the parameter 'seed'"):
        known(path)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sede": 1}, "did you mean 'seed'"),
        ({"seed": "one"}, "seed expects int, got str"),
        ({"seed": True}, "seed expects int, got bool"),
        ({"share": "x"}, "share expects float"),
        ({"profile": 1}, "profile expects str"),
    ],
)
def test_parameters_are_strict_and_no_kernel_starts(tmp_path, monkeypatch, given, words):
    path = make(tmp_path / "a.ipynb")
    monkeypatch.setattr(notebook, "_execute", lambda *_: pytest.fail("a kernel was started"))
    with pytest.raises(UsageError, match=words):
        notebook.run(path, tmp_path / "out.ipynb", given)
    notebook.check_parameters({"share": 1}, known(path), "a")


def test_a_run_writes_the_executed_copy_and_a_log(tmp_path):
    path = make(tmp_path / "a.ipynb", ("work", "print('seed', seed)\nseed + 1"))
    target = tmp_path / "out" / "a.ipynb"
    assert notebook.run(path, target, {"seed": 41}) > 0
    assert "42" in json.dumps(nbformat.read(target, 4))
    log = target.with_suffix(".log").read_text("utf-8")
    assert "seed=41" in log
    assert "[work]\nseed 41" in log
    assert set(nbformat.read(target, 4).metadata["ragkit"]) == {"commit", "calls"}
    assert nbformat.read(target, 4).metadata["ragkit"]["calls"] == []


ASKING = """from ragkit.llm import Client

Client("openai:m", ledger=None).complete(["Is 7 prime?"])[0].text"""


@pytest.mark.slow
def test_a_run_records_what_it_asked_and_a_page_shows_no_bar(tmp_path, endpoint):
    bar = "import time\n\nfrom ragkit import display\n\n"
    bar += "for _ in display.progress(range(6), 'slow'):\n    time.sleep(0.5)"
    path = make(tmp_path / "a.ipynb", ("bar", bar), ("ask", ASKING))
    endpoint(lambda *_: chat("yes"))
    notebook.run(path, tmp_path / "out" / "a.ipynb", {})
    book = nbformat.read(tmp_path / "out" / "a.ipynb", 4)
    (call,) = book.metadata["ragkit"]["calls"]
    assert (call["model"], call["requests"], call["prompt_tokens"]) == ("openai:m", 1, 7)
    outputs = {cell["id"]: cell.outputs for cell in book.cells if cell.cell_type == "code"}
    assert "slow" in str(outputs["bar"])
    assert [one for one in map(executed._shown, outputs["bar"]) if one] == []


def test_a_failure_names_cell_line_log_and_resume(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "sk-planted-secret-1234")
    text = "import os\nraise ValueError('bad ' + os.environ['MY_API_KEY'] + '\\nsecond line')"
    path = make(tmp_path / "a.ipynb", ("fine", "1"), ("broken", text), ("never", "print('ran')"))
    target, log = tmp_path / "out.ipynb", tmp_path / "logs" / "a.log"
    with pytest.raises(NotebookError) as caught:
        notebook.run(path, target, log=log, resume="make reproduce")
    message = str(caught.value)
    assert message.startswith("a > broken: ValueError: bad [MY_API_KEY]")
    assert "second line" not in caught.value.message
    assert str(log) in message
    assert "resume with: make reproduce" in message
    assert not target.exists()
    assert "Traceback" in log.read_text("utf-8")
    failed = nbformat.read(log.with_name("a.failed.ipynb"), 4)
    assert "ran" not in json.dumps([c.get("outputs") for c in failed.cells])
    for written in tmp_path.rglob("*"):
        if written.is_file():
            assert "planted-secret" not in written.read_text("utf-8", errors="replace"), written


def test_a_dead_kernel_is_said(tmp_path):
    path = make(tmp_path / "a.ipynb", ("fatal", "import os\nos._exit(9)"))
    with pytest.raises(NotebookError, match="the kernel died"):
        notebook.run(path, tmp_path / "out.ipynb")


def test_unreadable_notebooks(tmp_path):
    make(tmp_path / "32-diversity.ipynb")
    with pytest.raises(UsageError, match="did you mean '32-diversity'"):
        notebook.read(tmp_path / "32-diversty.ipynb")
    (tmp_path / "bad.ipynb").write_text("{not json")
    with pytest.raises(DataError, match=r"bad\.ipynb: not a valid notebook"):
        notebook.read(tmp_path / "bad.ipynb")


def test_dependencies_are_modules_data_and_named_files():
    code = "%%time\nimport nothing", "from ragkit.report import tables\n%time x = 1"
    book = new_notebook(cells=[new_code_cell(text) for text in code])
    names = {path.relative_to(paths.ROOT).as_posix() for path in notebook.dependencies(book)}
    wanted = {"ragkit/report/tables.py", "ragkit/files.py", "ragkit/report/ragkit.mplstyle"}
    assert wanted <= names
    assert "ragkit/measures/diversity.py" not in names
    assert not any(name.startswith("notebooks/") for name in names)
    named = "from ragkit import datasets, paths\npaths.NOTEBOOKS / 'systems.toml'"
    book.cells.append(new_code_cell(named))
    names = {path.relative_to(paths.ROOT).as_posix() for path in notebook.dependencies(book)}
    assert {"ragkit/datasets/readers.py", "notebooks/systems.toml"} <= names


def test_code_reads_like_code(tmp_path):
    text = notebook.code(make(tmp_path / "a.ipynb", ("work", "x = 1")))
    assert text.startswith("# %% title\n# # A title\n\n# %% params [parameters]\n")


def test_the_profile_paper_has_the_parameters_of_the_catalogue(ragkit, monkeypatch, tmp_path):
    given = []
    monkeypatch.setenv("RAGKIT_BUILD", str(tmp_path))
    monkeypatch.setattr(notebook, "run", lambda *args, **_: given.append(args[2]) or 0.0)
    command = ["notebook", "run", "21-erb-baselines", "-p", "most_questions", "5"]
    for profile in ("paper", "sample"):
        assert ragkit(*command, "--profile", profile)[0] == 0
    paper, sample = given
    assert (paper["most_documents"], paper["most_questions"]) == (0, 5)
    assert "most_documents" not in sample
