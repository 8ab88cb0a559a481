"""The fenced blocks of the guides, which `tests/test_guides.py` runs as they are written.

Blocks of bash and Python run in order, those of a page in one folder. What keeps one from running
stands behind the language, in the line that opens it, which no page shows:

    bash needs="a network"   is not run, for the reason given
    bash ci                  each of its lines is one of `.ci/run`
    sh file=submit.sh        is written to that file first

Any other language is a listing: it holds nothing to type.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

from tests.conftest import ROOT

GUIDES = [ROOT / "README.md", *sorted((ROOT / "ragkit/report/site/pages/guides").glob("*.md"))]
_FENCE = re.compile(r"^```(\w+)[ ]*([^\n]*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block: its place, its language, what is said of it, and its text."""

    place: str
    language: str
    needs: str
    file: str
    ci: bool
    text: str


def blocks(guide: Path) -> list[Block]:
    """Return the blocks of a guide; an attribute that is not known is an error."""
    text, found = guide.read_text("utf-8"), []
    for fence in _FENCE.finditer(text):
        place = f"{guide.name}:{text[: fence.start()].count(chr(10)) + 1}"
        words = [word.partition("=") for word in shlex.split(fence[2])]
        given = {name: value for name, _, value in words}
        needs, file, ci = given.pop("needs", ""), given.pop("file", ""), "ci" in given
        assert set(given) <= {"ci"}, f"{place}: {fence[2]}"
        found.append(Block(place, fence[1], needs, file, ci, fence[3]))
    return found
