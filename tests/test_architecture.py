"""The package's floors: imports run down only, stay cheap, and no cycle closes."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections import Counter
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

from ragkit import store
from tests.conftest import ROOT

PACKAGE = ROOT / "ragkit"

# The drawing in ARCHITECTURE.md, from the ground up.
DRAWING = (ROOT / "ARCHITECTURE.md").read_text("utf-8").split("```")[1]
FLOORS = [line.split() for line in reversed(DRAWING.strip().splitlines())]
FLOOR = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


FILES = sorted(p for p in PACKAGE.rglob("*.py") if room(p) not in ("__init__", "__main__"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_run_down(path):
    own = room(path)
    assert own in FLOOR, f"draw {own} in ARCHITECTURE.md"
    for name, line in imported(path):
        parts = name.split(".")
        if parts[0] != "ragkit" or len(parts) < 2 or parts[1] == own or parts[1] not in FLOOR:
            continue
        assert FLOOR[parts[1]] <= FLOOR[own], f"{path.name}:{line} imports {name} from above"


def test_every_import_finds_what_it_names():
    """Imports inside functions too: those of a command run only when somebody types it."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ragkit"):
                module = importlib.import_module(node.module)
                for alias in node.names:
                    if not hasattr(module, alias.name):
                        importlib.import_module(f"{node.module}.{alias.name}")


def test_only_the_command_line_imports_synth():
    for path in FILES:
        if room(path) not in ("synth", "cli"):
            for name, line in imported(path):
                assert not name.startswith("ragkit.synth"), f"{path.name}:{line} imports {name}"


def test_subpackages_form_no_circle():
    graph = {}
    for path in FILES:
        found = {name.split(".")[1] for name, _ in imported(path) if name.startswith("ragkit.")}
        graph.setdefault(room(path), set()).update(found & FLOOR.keys() - {room(path)})
    list(TopologicalSorter(graph).static_order())


def test_modules_form_no_circle():
    """Imports inside functions count; those for type checkers alone do not."""
    names = {
        path.relative_to(ROOT).with_suffix("").as_posix().replace("/", "."): path for path in FILES
    }
    graph = {}
    for name, path in names.items():
        found = {
            part for other in store.imports(path) for part in (other, other.rpartition(".")[0])
        }
        graph[name] = found & names.keys() - {name}
    list(TopologicalSorter(graph).static_order())


def test_files_and_functions_are_short():
    for path in FILES:
        place = path.relative_to(ROOT).as_posix()
        text = path.read_text("utf-8")
        assert text.count("\n") <= 600, place
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[1:2] if ast.get_docstring(node) else node.body[:1]
                lines = node.end_lineno - (first[0].lineno if first else node.end_lineno) + 1
                assert lines <= 80, f"{place}:{node.name} has {lines} lines, docstring aside"


def test_subpackages_are_as_small_as_the_drawing_says():
    """The table of ARCHITECTURE.md: lines of Python, docstrings included."""
    table = re.findall(
        r"^\| (\w+) \| ([\d,]+) \|", (ROOT / "ARCHITECTURE.md").read_text("utf-8"), re.M
    )
    most = {name: int(lines.replace(",", "")) for name, lines in table}
    found = Counter()
    for path in FILES:
        if path.parent != PACKAGE:
            found[room(path)] += path.read_text("utf-8").count("\n")
    assert found.keys() == most.keys()
    assert {name: n for name, n in found.items() if n > most[name]} == {}


def test_irt_knows_nothing_of_rag():
    for path in (PACKAGE / "irt").rglob("*.py"):
        for name, line in imported(path):
            if name.startswith("ragkit."):
                allowed = ("ragkit.irt", "ragkit.errors", "ragkit.checks", "ragkit.display")
                assert name.startswith(allowed), f"{path.name}:{line} imports {name}"


def test_heavy_libraries_are_not_imported_early():
    heavy = "torch spacy umap matplotlib sklearn pyro openai snakemake onnxruntime transformers"
    heavy += " sentence_transformers tokenizers faiss"
    code = "import ragkit, ragkit.cli, ragkit.datasets, ragkit.models, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(heavy.split()) & set(done.stdout.split())


def test_every_declared_command_has_a_function():
    from ragkit.cli import declare

    for words in declare.DECLARED.values():
        if "call" in words:
            module, function = words["call"].split(":")
            assert callable(getattr(import_module(f"ragkit.cli.{module}"), function)), words
