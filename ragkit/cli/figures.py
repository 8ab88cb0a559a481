"""`ragkit figures`: the figures and tables of a run, for a paper."""

from __future__ import annotations

import click

from ragkit.cli import declare


@declare.command("figures")
def command(style, profile, data):
    from ragkit.report import paper, pipeline

    folder = paper.export(pipeline.make_plan(profile, data), style)
    click.echo(f"wrote {folder}: contact-sheet.png shows the figures, paper.tex takes them in")
