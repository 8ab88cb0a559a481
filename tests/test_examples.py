"""The examples of docstrings run, and every name that a notebook or a guide calls has one."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import json

import matplotlib.pyplot as plt
import pytest

from tests.conftest import ROOT
from tests.guides import GUIDES, blocks
from tests.llm.server import chat, serve

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((ROOT / "ragkit").rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]
# What has no example, and why.
WITHOUT = {"ragkit.judging.verdicts.judged_answers": "needs public answers, which no sample has"}
# Their examples write a whole benchmark with a model; the tests of `tests/synth` do, with a stand-in.
SKIPPED = {"ragkit.synth.company", "ragkit.synth.datamorgana", "ragkit.synth.helpcentre"}


def calls(source: str) -> set[tuple[str, str]]:
    """Return what code takes out of `ragkit`, as module and name of its definition."""
    tree, known, found = ast.parse(source), {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ragkit"):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                home = importlib.import_module(node.module)
                value = getattr(home, alias.name, None)
                value = importlib.import_module(whole) if value is None else value
                known[alias.asname or alias.name] = value
    for node in ast.walk(tree):
        names, value = [], node
        while isinstance(value, ast.Attribute):
            names, value = [value.attr, *names], value.value
        value = known.get(value.id) if isinstance(value, ast.Name) else None
        while inspect.ismodule(value) and names:
            value = getattr(value, names.pop(0), None)
        error = inspect.isclass(value) and issubclass(value, Exception)
        if (inspect.isfunction(value) or inspect.isclass(value)) and not error:
            found.add((value.__module__, value.__name__))
    return found


def used() -> set[tuple[str, str]]:
    """Return the functions and classes that notebooks, guides and the README call."""
    sources = [
        block.text for guide in GUIDES for block in blocks(guide) if block.language == "python"
    ]
    sources = [text for text in sources if "xllamacpp" not in text]
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        sources.append("\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code"))
    return {pair for text in sources for pair in calls(text) if pair[0].startswith("ragkit.")}


def shown() -> set[tuple[str, str]]:
    """Return the names that an example of their own module, or of its package's head, calls."""
    found = set()
    for name in MODULES:
        module = importlib.import_module(name)
        for test in doctest.DocTestFinder().find(module, name):
            tree = ast.parse("".join(example.source for example in test.examples))
            called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
            for word in (getattr(one, "id", getattr(one, "attr", "")) for one in called):
                value = getattr(module, word, None)
                found.add((getattr(value, "__module__", ""), word))
    return found


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """Weights that are here, a server that says yes in a model's place, a folder to write to."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "models").symlink_to(ROOT / "data" / "cache" / "models")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    plt.switch_backend("agg")
    with serve(lambda *given: chat("Yes.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield
    plt.close("all")


@pytest.mark.slow
@pytest.mark.usefixtures("own_cache")
@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    said = []
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        skipped = [e for e in test.examples if e.options.get(doctest.SKIP)]
        assert not skipped or name in SKIPPED, test.name
        runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_what_notebooks_and_guides_call_has_an_example():
    wanted = used()
    assert len(wanted) > 150
    lacking = {".".join(pair) for pair in wanted - shown()}
    assert sorted(lacking - WITHOUT.keys()) == []
