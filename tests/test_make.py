"""The make file: its help, its one-line refusals, and what `clean` must not touch."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from tests.conftest import ROOT

TARGETS = "setup lab data reproduce figures report test bench mutants check lock clean".split()


def make(*arguments):
    # No variables of an outer make, such as the one that runs these tests.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )


def test_make_alone_lists_every_target():
    listed = re.findall(r"^  (\w+) {2,}\S", make().stdout, flags=re.MULTILINE)
    assert listed == TARGETS


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("PYTHON=no-such-python", "make: no no-such-python found: install Python 3.11"),
        ("PYTHON={folder}/python3.12", "is Python 3.12.1, ragkit needs Python 3.11"),
        ("NEEDED_MB=999999999", "MB free here, the environment needs 999999999 MB"),
    ],
)
def test_setup_is_refused_before_anything_is_made(tmp_path, given, says):
    fake = tmp_path / "python3.12"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.12.1\n[ "$1" != -c ]\n')
    fake.chmod(0o755)
    python = f"PYTHON={sys.executable}"  # the last one given counts
    done = make("setup", f"VENV={tmp_path / 'v'}", python, given.format(folder=tmp_path))
    assert done.returncode != 0
    assert says in done.stderr
    assert not (tmp_path / "v").exists()


def test_a_second_setup_does_nothing():
    if not (ROOT / ".venv" / ".ready").is_file():
        pytest.skip("the environment was not made by make")
    done = make("--question", "setup")
    assert done.returncode == 0, "requirements.lock or pyproject.toml is newer: make setup"


def test_clean_keeps_data_and_results():
    said = make("--dry-run", "clean").stdout
    assert ".venv" in said
    for kept in ("build", "data", "figures"):
        assert not re.search(rf"(^|[\s/]){kept}(/|\s|$)", said), said
