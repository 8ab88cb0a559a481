"""The command line as a whole: help, misspelt commands, exit states, no tracebacks."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest

from ragkit import paths
from ragkit.cli import declare, root
from ragkit.errors import DataError, RagkitError


def test_help_lists_every_command():
    command = [sys.executable, "-m", "ragkit", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    for name, command in root.commands.items():
        assert name in done.stdout
        assert command.short_help in done.stdout


@pytest.mark.parametrize("name", list(declare.helps()))
def test_every_command_has_help(ragkit, name):
    code, out, _ = ragkit(*name.split(), "--help")
    assert (code, f"Usage: ragkit {name}" in out) == (0, True)


@pytest.mark.parametrize("typed", ["reprduce", "generate smaple"])
def test_a_misspelt_command(ragkit, typed):
    code, _, err = ragkit(*typed.split())
    assert (code, "did you mean '" in err) == (2, True)


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (DataError("a.csv: line 2: no number", "write one"), 1, "line 2: no number\n  hint: write"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (OSError(28, "No space left on device", "x.csv"), 1, "No space left on device x.csv"),
    ],
)
def test_errors_are_one_message(monkeypatch, ragkit, error, status, words):
    def fail(**kwargs):
        raise error

    monkeypatch.setattr(root, "main", fail)
    code, _, said = ragkit("data")
    assert (code, words in said, "Traceback" in said) == (status, True, False)


def test_every_error_is_in_the_tree_of_the_docstring():
    from ragkit import errors

    for kind in RagkitError.__subclasses__() + DataError.__subclasses__():
        assert kind.__name__ in errors.__doc__ or kind.__module__ != "ragkit.errors"


@pytest.mark.parametrize("option", [("-p", "data"), ("--data",)])
def test_a_data_folder_is_not_ignored_in_the_sample_profile(ragkit, option, tmp_path):
    code, _, err = ragkit("notebook", "run", "00-data-overview", *option, tmp_path)
    assert code == 1
    assert "the profile 'sample' reads no data folder\n  hint: add --profile paper" in err


def options() -> set[str]:
    declared = [*declare.DECLARED.values(), declare.SHARED]
    return {flag for words in declared for name in words for flag in re.findall(r"--[\w-]+", name)}


def test_the_same_command_continues_so_no_option_does():
    names = "missing again overwrite resume systems-only continue restart"
    assert not options() & {f"--{name}" for name in names.split()}


def test_a_message_names_options_that_there_are():
    """Of every flag in an error's message or hint; a hint is to be typed."""
    named, known = {}, options()
    for path in (paths.ROOT / "ragkit").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Error"):
                texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
                said = " ".join(text for text in texts if isinstance(text, str))
                named |= dict.fromkeys(re.findall(r"(?<![\w-])--[a-z][\w-]+", said), path.name)
    assert len(named) > 5
    assert set(named) <= known | {"--help"}, named
