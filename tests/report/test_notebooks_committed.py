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


def test_anatomy(book):
    path, content = book
    ids = [cell["id"] for cell in content.cells]
    assert ids[:3] == ["title", "params", "setup"]
    assert {"takeaways", "export"} <= set(ids)
    assert len(ids) == len(set(ids)) <= 25
    assert "out.export(" in next(cell.source for cell in content.cells if cell["id"] == "export")
    for cell in content.cells:
        assert re.fullmatch(r"[a-z][a-z0-9-]{,38}", cell["id"]), cell["id"]
        assert not cell.get("outputs")
        assert not cell.get("execution_count")


def test_short_cells_no_functions_no_path_tricks_no_blanket_filters(book):
    path, content = book
    for cell in (cell for cell in content.cells if cell.cell_type == "code"):
        where = f"{path.stem} > {cell['id']}"
        assert len([line for line in cell.source.split("\n") if line.strip()]) <= 15, where
        nodes = ast.walk(ast.parse(cell.source))
        assert not [n for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))], where
        assert "sys.path" not in cell.source
        assert "filterwarnings" not in cell.source


def test_parameters(book):
    path, content = book
    known = notebook.parameters(content, path.stem)
    assert known["profile"] == "sample"
    assert known["data"] == ""
    (step,) = [step for step in pipeline.catalogue() if step.name == path.stem]
    notebook.check_parameters(step.paper, known, path.stem)
