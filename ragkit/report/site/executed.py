"""An executed notebook as a page: its answer, figures and minutes; what was found comes first."""

from __future__ import annotations

import base64
import html
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import nbformat
import pandas as pd
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output

from ragkit.report import figures, notebook
from ragkit.report.pipeline import Step, measured
from ragkit.report.plots.base import words

# Outputs that say nothing on a page: where a file was written, and progress bars.
_NOISE = re.compile(r"PosixPath\(|WindowsPath\(|VBox\(|HBox\(|[^\n]*(?:\d%\||\w/s\])")
_WIDGET = "application/vnd.jupyter.widget-view+json"
_PLOTLY = "application/vnd.plotly.v1+json"


@dataclass
class Executed:
    """An executed notebook of a profile, `root` being the folder of its products."""

    step: Step
    root: Path
    cells: dict[str, NotebookNode] = field(init=False)

    def __post_init__(self):
        self.book = notebook.read(self.root / "notebooks" / f"{self.step.name}.ipynb")
        parts = {"title": new_markdown_cell(f"# {self.step.name}")}
        self.cells = parts | {cell["id"]: cell for cell in self.book.cells}

    @cached_property
    def title(self) -> str:
        return self.cells["title"].source.split("\n")[0].lstrip("# ")

    @cached_property
    def question(self) -> str:
        """The question of the title cell: its first bold text."""
        found = re.search(r"\*\*(.+?)\*\*", self.cells["title"].source, flags=re.DOTALL)
        return " ".join(found[1].split()) if found else ""

    @cached_property
    def findings(self) -> list[str]:
        """The lines of the takeaways."""
        lines = []
        for output in self.cells.get("takeaways", {}).get("outputs", []):
            lines += output.get("data", {}).get("text/markdown", "").splitlines()
        return [line.removeprefix("- ").strip() for line in lines if line.strip()]

    @cached_property
    def answer(self) -> str:
        """The line of the takeaways that has the words `answer` of the catalogue, else the first."""
        found = [line for line in self.findings if self.step.answer in line]
        return next(iter(found or self.findings), "")

    @property
    def name(self) -> str:
        return self.step.name

    @property
    def minutes(self) -> float:
        return self.book.metadata["papermill"]["duration"] / 60

    @cached_property
    def figures(self) -> list[Path]:
        """The saved figures, the one that the catalogue names first."""
        found = sorted((self.root / "figures" / self.step.name).glob("*.png"))
        return sorted(found, key=lambda path: path.stem != self.step.figure)

    @cached_property
    def statuses(self) -> str:
        """The printed numbers that it measures, in words."""
        path = measured(self.root, self.name)
        rows = len(pd.read_csv(path)) if path.is_file() else 0
        return f", {rows} printed numbers measured" if rows else ""

    def cell_of(self, caption: str) -> str:
        """Return the id of the cell that shows a table whose caption begins so, or nothing."""
        for name, cell in self.cells.items():
            for output in cell.get("outputs", []):
                page = output.get("data", {}).get("text/html", "")
                if re.search(rf"<caption>{re.escape(caption)}(:|</caption>)", page):
                    return name
        return ""

    def page(self, provenance: str) -> str:
        """Return the notebook for the site, as JSON: findings first, headings, anchors, provenance last.

        A part is headed by its own heading, or by the name of its first cell. Left out are the cells
        that set parameters, stderr, progress bars and paths; the live side of a widget or a plotly
        figure goes where its HTML stands beside it.
        """
        cells, about, last = [self.cells["title"]], None, ""
        if self.findings:
            lines = "\n".join(f"- {line}" for line in self.findings)
            cells.append(new_markdown_cell(f"## What was found\n\n{lines}"))
        hidden = {"title", "takeaways", "params"}
        for name, cell in self.cells.items():
            if name in hidden or "injected-parameters" in cell.metadata.get("tags", []):
                continue
            if cell.cell_type == "markdown":
                about = None if about else name
                own = not about or cell.source.startswith("#")
                cells += [cell] if own else [_heading(name), cell]
                last = _words(name)
                continue
            cell.outputs = [out for out in map(_shown, cell.outputs) if out]
            if cell.outputs and not about and last != _words(name):
                cells.append(_heading(name))
                last = _words(name)
            about = None
            drawn = [self._drawn(output) for output in cell.outputs]
            cell.outputs = [out for out, own in zip(cell.outputs, drawn, strict=True) if not own]
            cells += [new_markdown_cell(f'<span id="cell-{name}"></span>'), cell]
            cells += filter(None, drawn)
        cells.append(new_markdown_cell(f"## Where the numbers come from\n\n{provenance}"))
        for number, cell in enumerate(cells):
            cell["id"] = f"page-{number}"
        self.book.cells = cells
        self.book.metadata.pop("widgets", None)
        return nbformat.writes(self.book)

    def _drawn(self, output: NotebookNode) -> NotebookNode | None:
        """Return a cell with the saved file of a figure that an output shows, or nothing."""
        data = output.get("data", {}).get("image/png", "")
        if path := self._saved.get("".join(data.split())):
            place = f"../figures/{self.name}/{path.name}"
            wide = output.metadata.get("image/png", {}).get("width", 759)
            told = figures.told(path)
            text = f"```{{image}} {place}\n:alt: {told}\n:width: {wide}px\n```\n*{told}.*"
            return new_markdown_cell(text)
        return None

    @cached_property
    def _saved(self) -> dict[str, Path]:
        """The saved figures by their bytes as an output has them."""
        return {base64.b64encode(path.read_bytes()).decode(): path for path in self.figures}


def _words(name: str) -> str:
    return words(re.sub(r"^(about|fig|score|versus)-", "", name).replace("-", " ")).capitalize()


def _heading(name: str) -> NotebookNode:
    return new_markdown_cell(f"## {_words(name)}")


def _shown(output: NotebookNode) -> NotebookNode | None:
    """Return an output as a page shows it, or nothing."""
    if output.output_type == "stream":
        return output if output.name == "stdout" else None
    data = output.get("data", {})
    if data.get("text/html", "").startswith("<pre style"):
        # Rich's coloured print, whose colours are hard to read on a page.
        return new_output("stream", text=html.unescape(re.sub(r"<[^>]+>", "", data["text/html"])))
    if "text/html" in data:
        data.pop(_PLOTLY, None)
    if _WIDGET in data and "text/html" not in data:
        return None
    data.pop(_WIDGET, None)
    return None if set(data) == {"text/plain"} and _NOISE.match(data["text/plain"]) else output
