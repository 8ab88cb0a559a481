"""`ragkit prompts`: the prompts that the papers print."""

from __future__ import annotations

import click

from ragkit.cli import declare

command = declare.Group("prompts")


@command.define
def import_(paper, file):
    from ragkit.llm import printed

    wanted, found = printed.known(paper), printed.import_printed(paper, file)
    for one in found:
        click.echo(f"{one.name} ({one.place}): {one.path}")
    if missing := [one for one in wanted.values() if one not in found]:
        names = ", ".join(f"{one.name} ({one.place})" for one in missing)
        click.echo(f"not in {file}: {names}", err=True)
    if not wanted:
        click.echo(f"{paper} prints no prompts")


@command.define
def list_(form):
    from ragkit.llm import printed

    rows = [
        {"paper": one.paper, "name": one.name, "place": one.place}
        | {"state": "missing" if one.text() is None else "imported", "command": one.command}
        for one in printed.known().values()
    ]
    declare.table(rows, form)
