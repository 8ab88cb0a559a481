"""`ragkit benchmark`: run the notebook of a benchmark of one's own, and build its site."""

from __future__ import annotations

import click

from ragkit.cli import declare
from ragkit.errors import MissingData


@declare.command("benchmark")
def command(folder, pairs):
    from dataclasses import replace

    from ragkit.cli.new import NAME
    from ragkit.cli.notebook import literal
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
