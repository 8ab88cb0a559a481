"""The notebooks: one at a time, all, their figures for a paper, and their numbers in the README."""

from __future__ import annotations

import ast
import os
import shutil
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import click

from ragkit import paths
from ragkit.cli import declare
from ragkit.errors import DataError, RagkitError, UsageError
from ragkit.files import held


def run(name, pairs, profile, data, out, timeout):
    # nbformat's jsonschema would compile a grammar of IRIs for a second; no notebook needs it.
    sys.modules.setdefault("rfc3987_syntax", None)
    from ragkit.report import notebook, pipeline, results

    path = _path(name)
    step = next((s for s in pipeline.catalogue() if path == _path(s.name)), None)
    given = dict(step.paper) if step and profile == "paper" else {}
    given |= {"profile": profile, "data": str(Path(data).resolve()) if data else ""}
    given.update((key, literal(value)) for key, value in pairs)
    if given["data"] and given["profile"] == "sample":
        raise UsageError(
            "the profile 'sample' reads no data folder", "add --profile paper to use it"
        )
    root = results.folder(profile)
    target = out or root / "notebooks" / path.name
    resume = f"make reproduce PROFILE={profile}" + (f" DATA={data}" if data else "")
    click.echo(f"{time.strftime('%H:%M:%S')}  start   {path.stem}", err=True)
    for kind in ("figures", "results", "tables"):
        shutil.rmtree(root / kind / path.stem, ignore_errors=True)
        (root / kind / path.stem).mkdir(parents=True)
    log = root / "logs" / f"{path.stem}.log"
    seconds = notebook.run(path, target, given, log=log, resume=resume, timeout=timeout)
    click.echo(f"{time.strftime('%H:%M:%S')}  done    {path.stem}  {seconds:.0f} s", err=True)


def code(path):
    from ragkit.report import notebook

    click.echo(notebook.code(path))


def parameters(name):
    from ragkit.report import notebook

    path = _path(name)
    for key, value in notebook.parameters(notebook.read(path), path.stem).items():
        click.echo(f"{key} = {value!r}")


def index():
    from ragkit.report.site import lab

    click.echo(f"wrote {lab.index()}")


def _path(name: str) -> Path:
    return Path(name) if name.endswith(".ipynb") else paths.NOTEBOOKS / f"{name}.ipynb"


def literal(text: str):
    """Return the value of a parameter that was typed: a Python literal, else the text."""
    if text in ("true", "false"):
        raise UsageError(f"{text!r} is no Python literal", f"write {text.capitalize()}")
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def reproduce(profile, data, cores, preflight, force, report, export):
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


def figures(style, profile, data):
    from ragkit.report import paper, pipeline

    folder = paper.export(pipeline.make_plan(profile, data), style)
    click.echo(f"wrote {folder}: contact-sheet.png shows the figures, paper.tex takes them in")


def readme(check):
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
