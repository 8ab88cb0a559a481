"""The first page of JupyterLab: the notebooks with figures, what was run, and what each needs."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from ragkit import datasets
from ragkit.files import write_text
from ragkit.report import figures, pipeline, results
from ragkit.report.site import render
from ragkit.report.site.executed import Executed


def index() -> Path:
    """Write `build/index.ipynb` from the catalogue and what was executed; return its path."""
    build = results.folder("").resolve()
    rows = [_row(step, build) for step in pipeline.catalogue()]
    names = list(datasets.PROFILES)
    sites = [name for name in names if (build / name / "site" / "index.html").is_file()]
    parts = render("lab", rows=rows, profiles=names, sites=sites).split("--cell--\n")
    cells = [new_markdown_cell(part.strip(), id=f"part-{n}") for n, part in enumerate(parts)]
    cells.append(new_code_cell("!ragkit data status", id="status"))
    book = new_notebook(cells=cells)
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    return write_text(build / "index.ipynb", nbformat.writes(book) + "\n")


def _row(step: pipeline.Step, build: Path) -> dict:
    """Return what the page says of a notebook; of several runs, the figure of the last profile."""
    row = {"name": step.name, "title": "", "question": "", "figure": "", "alt": "", "run": []}
    executed = [Executed(step, step.path.parent.parent)]
    for profile in datasets.PROFILES:
        if (build / profile / "notebooks" / step.path.name).is_file():
            one = Executed(step, build / profile)
            executed.append(one)
            row["run"].append(f"{profile}: {one.minutes:.1f} min")
            for path in one.figures[:1]:
                row["figure"] = path.relative_to(build).as_posix()
                row["alt"] = figures.told(path)
    row["title"], row["question"] = executed[-1].title, executed[-1].question
    row["run"] = "<br>".join(row["run"]) or "not yet"
    needs = [*step.datasets, *(f"{name} (optional)" for name in step.optional)]
    needs += ["the other notebooks" if "*" in step.after else name for name in step.after]
    row["needs"] = ", ".join(needs) or "nothing"
    return row
