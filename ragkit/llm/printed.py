"""Prompts that the papers print: taken out of the user's own copy of a paper, known by digest.

`printed.toml` has a digest of each prompt's letters and digits, which is the same whatever a copy
does to spaces, hyphens, line ends and case. The texts are kept beside the cache and are not part of
this repository.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ragkit import checks, paths
from ragkit.errors import DataError, MissingData
from ragkit.files import read_text, write_text
from ragkit.llm.requests import Prompt, digest

FILE = Path(__file__).with_suffix(".toml")
INLINE = frozenset("a b i em strong span sup sub code tt math".split())  # do not end a line
REPEATED = 3  # lines that stand on so many pages are heads or feet


@dataclass(frozen=True)
class Printed:
    """A printed prompt: its `letters` (their number) and their sha256, and where it stands."""

    paper: str
    name: str
    place: str
    letters: int
    sha256: str

    @property
    def path(self) -> Path:
        """Where the text is kept once it was imported."""
        return paths.cache_dir() / "prompts" / self.paper / f"{self.name}.txt"

    @property
    def command(self) -> str:
        """The command that imports it."""
        return f"ragkit prompts import {self.paper} FILE"

    def text(self) -> str | None:
        """Return the text that was imported, or None.

        Raises `DataError` if the kept file is not the printed prompt.
        """
        if not self.path.is_file():
            return None
        text = read_text(self.path).strip()
        if digest(letters(text)[0]) != self.sha256:
            raise DataError(f"{self.path} is not the prompt that the paper prints", self.command)
        return text

    def prompt(self, own: Prompt) -> Prompt:
        """Return the printed text as the system's message, before `own`'s message with the inputs.

        The papers do not print how the inputs follow. `MissingData` if it was not imported.
        """
        text = self.text()
        if text is None:
            raise MissingData(f"{self.paper}'s prompt {self.name!r} was not imported", self.command)
        parts = (("system", text), own.parts[-1])
        sha256 = digest("\n".join(f"--- {role} ---\n{part}" for role, part in parts))
        return Prompt(f"{self.paper}:{self.name}", "printed", parts, sha256)


def known(paper: str | None = None) -> dict[str, Printed]:
    """Return the prompts that a paper prints, by name; of all papers, by PAPER:NAME.

    >>> list(known("wixqa"))
    ['factuality', 'context_recall', 'qa_extraction']
    """
    table = tomllib.loads(FILE.read_text("utf-8"))
    if paper is None:
        return {f"{p}:{name}": one for p in table for name, one in known(p).items()}
    checks.choice(paper, "paper", table)
    return {name: Printed(paper, name, **row) for name, row in table[paper].items()}


def import_printed(paper: str, file: str | Path) -> list[Printed]:
    """Keep the printed prompts that a copy of a paper holds; return them.

    `file` is text, HTML or PDF. Raises `DataError` if none of the paper's prompts is in it.
    """
    wanted = known(paper)
    text = read_paper(file)
    found = []
    for printed in wanted.values():
        if (part := locate(printed, text)) is not None:
            write_text(printed.path, part + "\n")
            found.append(printed)
    if wanted and not found:
        hint = f"give the paper itself; {', '.join(p.place for p in wanted.values())} have them"
        raise DataError(f"{file} holds none of the {len(wanted)} prompts of {paper}", hint)
    return found


def locate(printed: Printed, text: str) -> str | None:
    """Return the part of a text whose letters are the prompt's, or None."""
    plain, places = letters(text)
    size = printed.letters
    for start in range(len(plain) - size + 1):
        if digest(plain[start : start + size]) == printed.sha256:
            first, last = places[start], places[start + size - 1]
            end = re.compile(r"[^\s\w]*").match(text, last + 1).end()
            return _joined(text[first:end])
    return None


def letters(text: str) -> tuple[str, list[int]]:
    """Return a text's letters and digits in lower case, and where in the text each stands."""
    found, places = [], []
    for place, character in enumerate(text):
        for one in unicodedata.normalize("NFKC", character).lower():
            if one.isascii() and one.isalnum():
                found.append(one)
                places.append(place)
    return "".join(found), places


def read_paper(file: str | Path) -> str:
    """Return the text of a paper without the heads and feet of its pages."""
    path = Path(file)
    if path.suffix.lower() == ".pdf":
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError

        try:
            text = "\n".join(page.extract_text() for page in PdfReader(path).pages)
        except (PyPdfError, OSError, ValueError) as error:
            raise DataError(f"{path}: not a PDF that can be read: {error}") from None
    else:
        text = read_text(path)
        if re.search(r"<(html|body|p|div)\b", text[:10_000], re.IGNORECASE):
            from bs4 import BeautifulSoup

            page = BeautifulSoup(text, "html.parser")
            for tag in page.find_all(lambda tag: tag.name not in INLINE):
                tag.insert_before("\n")
                tag.append("\n")
            text = page.get_text()
    lines = [line for line in text.split("\n") if not line.strip().isdigit()]
    seen = Counter(letters(line)[0] for line in lines)
    heads = {line for line, n in seen.items() if n >= REPEATED and len(line) > 20}
    return "\n".join(line for line in lines if letters(line)[0] not in heads)


def _joined(text: str) -> str:
    """Return a text whose words are whole again, where a line's end had cut them."""
    text = re.sub(r"(\w\S*)-\n(?=[a-z])", lambda cut: cut[1] + "-" * ("-" in cut[1]), text)
    return re.sub(r"[ \t]+", " ", text).strip()
