"""`ragkit new` and `ragkit benchmark`: a benchmark of one's own, from its files to its site."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from ragkit.cli import declare
from ragkit.cli.notebook import literal
from ragkit.errors import MissingData, UsageError

NAME = "50-your-benchmark"


def new(name, source, organization):
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


def benchmark(folder, pairs):
    from ragkit.report import notebook, pipeline, results, site

    path = folder / f"{NAME}.ipynb"
    if not path.is_file():
        raise MissingData(f"{path} is not here", f"ragkit new {folder} --from SOURCE")
    name = folder.resolve().name
    (template,) = [step for step in pipeline.catalogue() if step.name == NAME]
    plan = pipeline.Plan(name, "", [replace(template, headline=True)], {}, None)
    given = {"profile": name, "benchmark": str(folder.resolve())}
    given |= {key: literal(value) for key, value in pairs}
    target = results.folder(name) / "notebooks" / path.name
    log = results.folder(name) / "logs" / f"{NAME}.log"
    seconds = notebook.run(path, target, given, log=log, resume=f"ragkit benchmark {folder}")
    click.echo(f"{NAME} done in {seconds:.0f} s; the site: {site.build(plan, declare.helps())}")
