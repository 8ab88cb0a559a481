"""The examples of docstrings run, and every public function has one."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect

import matplotlib.pyplot as plt
import pytest

from ragkit.report.site import code
from tests.conftest import ROOT
from tests.llm.server import chat

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((ROOT / "ragkit").rglob("*.py"))
    if ">>> " in path.read_text("utf-8")
]
# What has no example that runs, and why.
MODEL = "writes a whole benchmark with a model; the tests of synth do, with a stand-in"
WITHOUT = {
    "ragkit.judging.verdicts.judged_answers": "needs public answers, which no sample has",
    "ragkit.synth.company.generate_company": MODEL,
    "ragkit.synth.datamorgana.make.make_questions": MODEL,
    "ragkit.synth.helpcentre.generate_helpcentre": MODEL,
}


def runs(example: doctest.Example) -> bool:
    return not example.options.get(doctest.SKIP)


def shown() -> set[tuple[str, str]]:
    """Return the names that an example of their own module, or of its package's head, calls.

    A class is also shown by an example of its own, which may get it from a function.
    """
    found = set()
    for name in MODULES:
        module = importlib.import_module(name)
        for test in doctest.DocTestFinder().find(module, name):
            sources = [example.source for example in test.examples if runs(example)]
            called = [node.func for node in ast.walk(ast.parse("".join(sources)))
                      if isinstance(node, ast.Call)]  # fmt: skip
            words = {getattr(one, "id", getattr(one, "attr", "")) for one in called}
            if sources:
                words.add(test.name.removeprefix(f"{name}."))
            for word in words:
                value = getattr(module, word, None)
                found.add((getattr(value, "__module__", ""), word))
    return found


def used() -> set[tuple[str, str]]:
    """Return the functions and classes that notebooks, guides and the README use."""
    return set().union(*map(code.taken, code._sources()))


@pytest.fixture
def own_cache(tmp_path, monkeypatch, endpoint):
    """Weights and sample that are here, a server that says yes, a folder to write to."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "models").symlink_to(ROOT / "data" / "cache" / "models")
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    plt.switch_backend("agg")
    endpoint(lambda *given: chat("Yes."))
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
        runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_every_public_function_has_an_example():
    public = {
        getattr(importlib.import_module(module), name)
        for modules in code.modules().values()
        for module, names in modules.items()
        for name in names
    }
    assert len(public) > 300
    wanted = {(one.__module__, one.__name__) for one in public if not inspect.isclass(one)}
    classes = {(one.__module__, one.__name__) for one in public
               if inspect.isclass(one) and not issubclass(one, Exception)}  # fmt: skip
    wanted |= classes & used()
    assert len(classes & used()) > 5
    lacking = {".".join(pair) for pair in wanted - shown()}
    assert lacking == WITHOUT.keys()


def test_what_code_takes_out_of_the_package():
    source = """
from ragkit import datasets, irt as models
from ragkit.measures import metrics
datasets.load("wixqa"), models.fit(metrics.nothing), metrics.token_f1
"""
    fit, load = ("ragkit.irt.fitting", "fit"), ("ragkit.datasets", "load")
    assert code.taken(source) == {fit, load, ("ragkit.measures.metrics", "token_f1")}
