"""The table of promises names tests that exist, and figures that are the code's."""

import re

import pytest

from tests.conftest import ROOT

ROWS = [
    line.strip("|").split(" | ")
    for line in (ROOT / "tests/README.md").read_text("utf-8").splitlines()
    if line.startswith("| ") and "`tests/" in line
]
FILES = {"test_hostile_lines": "hostile", "test_bombs": "bombs", "test_ordinary": "ordinary"}


def test_the_table_is_read():
    assert len(ROWS) >= 33


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip())
def test_the_test_exists_and_the_figure_holds(row):
    path, _, name = row[1].strip(" `").partition("::")
    source = (ROOT / path).read_text("utf-8")
    assert f"def {name}(" in source if name else "def test_" in source
    figure = row[2].strip()
    for start, file in FILES.items():
        if name.startswith(start):
            lines = (ROOT / f"tests/systems/agent/{file}.txt").read_text("utf-8").splitlines()
            assert figure.startswith(f"{len(lines)} lines")
    if "mutations" in figure:
        assert re.search(rf"\b{figure.split()[0]}\b", source)
