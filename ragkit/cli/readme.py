"""`ragkit readme`: the generated parts of the README."""

from __future__ import annotations

import click

from ragkit.cli import declare
from ragkit.errors import DataError


@declare.command("readme")
def command(check):
    from ragkit.files import write_text
    from ragkit.report import scoreboard

    committed = scoreboard.exported()
    if check:
        changed = scoreboard.drift(scoreboard.read(check), committed)
        if len(changed):
            click.echo(changed.to_string(index=False))
            raise DataError(
                f"{len(changed)} numbers differ from data/results/scoreboard.csv",
                "if that is right: make figures DATA=..., and commit what it wrote",
            )
        click.echo("the committed scoreboard is up to date")
        return
    page = scoreboard.README
    write_text(page, scoreboard.update(page.read_text("utf-8"), scoreboard.render(committed)))
    click.echo(f"wrote {page}")
