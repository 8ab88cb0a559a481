"""`ragkit readme`: the generated parts of the README."""

from __future__ import annotations

import click

from ragkit.errors import DataError


@click.command()
@click.option("--check", help="A fresh scoreboard.csv to hold against the committed one.")
def command(check):
    """Write the scoreboard and the strip of figures into README.md, from data/results/.

    With --check nothing is written: the exit status is 1 if the fresh scoreboard has another
    status, or another value at the printed decimals, than the committed one.
    """
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
