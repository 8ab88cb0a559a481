"""`ragkit reproduce`: run the notebooks, and `--preflight` to only look."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext

import click

from ragkit.cli import declare
from ragkit.errors import RagkitError
from ragkit.files import held


@declare.command("reproduce")
def command(profile, data, cores, preflight, force, report, export):
    from ragkit.report import pipeline

    plan = pipeline.make_plan(profile, data or os.environ.get("RAGKIT_DATA"))
    with nullcontext() if preflight else held(plan.root):
        late = {step.name for step in plan.runnable} if force else pipeline.stale(plan)
        _show(plan, late)
        if preflight:
            return
        if late:
            _run(plan, late, cores or os.cpu_count() or 1, force)
        if report:
            from ragkit.report import site

            click.echo(f"the site: {site.build(plan, declare.helps())}")
        click.echo(f"\n{len(plan.runnable)} notebooks done")
        if not report:
            click.echo(f"to read them as one site: make report PROFILE={plan.profile}")
        if export:
            written = pipeline.export(plan)
            click.echo(f"{len(written)} files exported to figures/ and data/results/")


def _run(plan, late: set[str], cores: int, force: bool) -> None:
    from ragkit.report import pipeline

    arguments = ["--cores", str(cores), "--keep-going", "--rerun-incomplete", "--quiet", "all"]
    start = time.monotonic()
    done = pipeline.snakemake(plan, *arguments, *(["--forceall"] if force else []))
    click.echo(f"{time.monotonic() - start:.0f} s", err=True)
    if done.returncode:
        unfinished = sorted(pipeline.stale(plan) & late)
        if not unfinished:
            raise RagkitError(f"the workflow failed with status {done.returncode}")
        raise RagkitError(
            f"failed or not run: {', '.join(unfinished)}",
            f"the log of each is in {plan.root / 'logs'}, Snakemake's own in "
            f"{plan.root / '.snakemake' / 'log'}; the same command resumes",
        )


def _show(plan, late: set[str]) -> None:
    where = f", data from {plan.data}" if plan.data else ""
    click.echo(f"profile {plan.profile}{where}\n")
    width = max(len(step.name) for step in plan.steps)
    for step in plan.steps:
        state, colour, detail = "fresh", "green", ""
        if step.name in plan.missing:
            reason, how = plan.missing[step.name]
            state, colour, detail = "missing", "yellow", f"{reason}; get it: {how}"
        elif step.name in late:
            state, colour = "to run", "cyan"
        shown = click.style(f"{state:<8}", fg=colour)
        click.echo(f"  {shown} {step.name:<{width}}  {detail}".rstrip())
    n = len(plan.missing)
    click.echo(f"\n  {len(late)} to run, {len(plan.runnable) - len(late)} fresh, {n} missing\n")
