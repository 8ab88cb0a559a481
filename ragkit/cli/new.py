"""`ragkit new` and `ragkit benchmark`: a benchmark of one's own, from its files to its site."""

from __future__ import annotations

from pathlib import Path

import click

from ragkit.cli import declare
from ragkit.errors import UsageError

NAME = "50-your-benchmark"


@declare.command("new")
def command(name, source, organization):
    import shutil

    import nbformat
    from jinja2 import Template

    from ragkit import datasets, paths
    from ragkit.datasets.convert import convert
    from ragkit.files import write_text

    folder = Path(name)
    if (
        folder.name in datasets.PROFILES
        or not folder.name.replace("-", "").replace("_", "").isalnum()
    ):
        raise UsageError(f"{folder.name!r} is no name for a benchmark", "letters, digits, - and _")
    made = convert(source, folder)
    book = nbformat.read(paths.NOTEBOOKS / f"{NAME}.ipynb", as_version=4)
    given = {"profile": folder.name, "benchmark": str(folder.resolve()), "most_documents": 1000}
    given |= {"most_questions": 100, "organization": organization, "jobs": 2}
    (cell,) = [cell for cell in book.cells if cell["id"] == "params"]
    lines = (line.partition(" = ") for line in cell.source.splitlines())
    cell.source = "\n".join(
        f"{key} = {given[key]!r}" if key in given else f"{key} = {value}" for key, _, value in lines
    )
    write_text(folder / f"{NAME}.ipynb", nbformat.writes(book) + "\n")
    shutil.copy(paths.NOTEBOOKS / "systems.toml", folder)
    card = Path(__file__).with_name("card.md").read_text("utf-8")
    card = Template(card).render(name=folder.name, source=source, made=made)
    write_text(folder / "README.md", card)
    click.echo(f"{made!r}\nwrote {folder}; next: ragkit benchmark {folder}")
