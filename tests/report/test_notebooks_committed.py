"""The notebooks as committed: anatomy, no outputs, only real parameters."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import nbformat
import pytest

from ragkit.report import notebook, pipeline

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def book(request):
    return request.param, nbformat.read(request.param, 4)


def test_no_outputs_and_readable_ids(book):
    path, content = book
    ids = [cell["id"] for cell in content.cells]
    assert len(ids) == len(set(ids))
    for cell in content.cells:
        assert re.fullmatch(r"[a-z][a-z0-9-]*", cell["id"]), cell["id"]
        assert len(cell["id"]) < 40
        assert not cell.get("outputs")
        assert not cell.get("execution_count")


def test_anatomy(book):
    path, content = book
    ids = [cell["id"] for cell in content.cells]
    assert ids[:3] == ["title", "params", "setup"]
    assert {"takeaways", "export"} <= set(ids)
    (export,) = [cell for cell in content.cells if cell["id"] == "export"]
    assert "out.export(" in export.source
    assert len(ids) <= 25
    for cell in content.cells:
        if cell.cell_type == "code":
            lines = [line for line in cell.source.split("\n") if line.strip()]
            assert len(lines) <= 15, f"{path.stem} > {cell['id']}: {len(lines)} lines"


def test_no_functions_no_path_tricks_no_blanket_filters(book):
    path, content = book
    for cell in content.cells:
        if cell.cell_type != "code":
            continue
        tree = ast.parse(cell.source)
        found = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
        assert not found, f"{path.stem} > {cell['id']} defines something"
        assert "sys.path" not in cell.source
        assert "filterwarnings" not in cell.source


def test_parameters(book):
    path, content = book
    known = notebook.parameters(content, path.stem)
    assert known["profile"] == "sample"
    assert known["data"] == ""
    (step,) = [step for step in pipeline.catalogue() if step.name == path.stem]
    notebook.check_parameters(step.paper, known, path.stem)
