"""`ragkit notebook`: one notebook at a time."""

from __future__ import annotations

import ast
import shutil
import sys
import time
from pathlib import Path

import click

from ragkit import paths
from ragkit.cli import declare
from ragkit.errors import UsageError

command = declare.Group("notebook")


@command.define
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


@command.define
def code(path):
    from ragkit.report import notebook

    click.echo(notebook.code(path))


@command.define
def parameters(name):
    from ragkit.report import notebook

    path = _path(name)
    for key, value in notebook.parameters(notebook.read(path), path.stem).items():
        click.echo(f"{key} = {value!r}")


@command.define
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
