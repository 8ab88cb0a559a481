"""Commands from `commands.toml`: parameters and help are data, a function does the work."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import click

TYPES = {
    "int": int,
    "float": float,
    "count": click.IntRange(1),
    "whole": click.IntRange(0),
    "seconds": click.FloatRange(0.001),
    "file": click.Path(dir_okay=False, path_type=Path),
    "folder": click.Path(file_okay=False, path_type=Path),
    "path": click.Path(path_type=Path),
    "input": click.Path(path_type=Path, allow_dash=True),
}
DECLARED = tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))
SHARED = DECLARED.pop("shared")


def command(name: str) -> Callable[[Callable], click.Command]:
    """Return a decorator that makes a function the command `name` of `commands.toml`."""
    words = dict(DECLARED[name])
    text = "\n\n".join(filter(None, (words.pop("help"), words.pop("more", ""))))
    parameters = [_parameter(key, settings) for key, settings in words.items()]

    def declared(function: Callable) -> click.Command:
        last = name.split()[-1]
        shown = {"show_default": True}
        return click.Command(last, shown, callback=function, params=parameters, help=text)

    return declared


def helps() -> dict[str, str]:
    """Return the help of every command, by its name."""
    texts = {}
    for name in (name for name in DECLARED if not _is_group(name)):
        made = command(name)(lambda: None)
        texts[name] = made.get_help(click.Context(made, info_name=f"ragkit {name}"))
    return texts


def _is_group(name: str) -> bool:
    return any(other.startswith(f"{name} ") for other in DECLARED)


class Group(click.Group):
    """A command with commands of its own: functions are added by `define`."""

    def __init__(self, name: str):
        super().__init__(name, help=DECLARED[name]["help"])

    def define(self, function: Callable) -> click.Command:
        """Add a function as the command of its name, `a_b` as a-b, `import_` as import."""
        name = function.__name__.strip("_").replace("_", "-")
        added = command(f"{self.name} {name}")(function)
        self.add_command(added)
        return added


def _parameter(key: str, settings: dict) -> click.Parameter:
    settings = dict(settings) if settings or not key.startswith("-") else dict(SHARED[key])
    if "choice" in settings:
        settings["type"] = click.Choice(settings.pop("choice"))
    elif "type" in settings:
        settings["type"] = TYPES[settings["type"]]
    if not key.startswith("-"):
        return click.Argument([key], **settings)
    if "/" in key:  # neither of the two, unless declared
        settings.setdefault("default", None)
    return click.Option(key.split(), **settings)


def table(rows: list[dict], form: str | None, foot: str = "") -> None:
    """Print rows as a table with a last line, or as the form "json" or "csv"."""
    if form == "json":
        click.echo(json.dumps(rows, indent=1))
    elif form == "csv":
        import pandas as pd

        texts = [
            {k: json.dumps(v) if isinstance(v, dict) else v for k, v in row.items()} for row in rows
        ]
        click.echo(pd.DataFrame(texts).to_csv(index=False) if rows else "", nl=False)
    else:
        from tabulate import tabulate

        if rows:
            click.echo(tabulate(rows, headers="keys", tablefmt="plain", intfmt=",", missingval="-"))
        if foot:
            click.echo(foot)
