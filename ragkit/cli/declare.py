"""The tree of commands from `commands.toml`: parameters and help are data, a function does the work."""

from __future__ import annotations

import importlib
import json
import tomllib
from pathlib import Path

import click

from ragkit import __version__
from ragkit.errors import did_you_mean

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


class Group(click.Group):
    """Commands in the order of their declaration; one that is misspelt is told the nearest."""

    def list_commands(self, ctx):
        return list(self.commands)

    def resolve_command(self, ctx, args):
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            ctx.fail(f"no command {args[0]!r}; {did_you_mean(args[0], self.commands)}")
        return super().resolve_command(ctx, args)


def _command(name: str) -> click.Command:
    words = dict(DECLARED[name])
    text = words.pop("help")
    made = {"name": name.split()[-1], "short_help": text.partition("\n")[0]}
    made["help"] = "\n\n".join(filter(None, (text, words.pop("more", ""))))
    if "call" not in words:
        return Group(**made)
    module, function = words.pop("call").split(":")

    def call(**given):
        return getattr(importlib.import_module(f"ragkit.cli.{module}"), function)(**given)

    parameters = [_parameter(key, settings) for key, settings in words.items()]
    shown = {"show_default": True}
    return click.Command(context_settings=shown, callback=call, params=parameters, **made)


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


def helps() -> dict[str, str]:
    """Return the help of every command, by its name."""
    made = {name: _command(name) for name, words in DECLARED.items() if "call" in words}
    return {
        name: one.get_help(click.Context(one, info_name=f"ragkit {name}"))
        for name, one in made.items()
    }


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


@click.version_option(__version__, prog_name="ragkit")
@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
def root():
    """Benchmarks of retrieval-augmented generation: data, baselines, analyses, notebooks."""


for _name in DECLARED:
    *_above, _ = _name.split()
    (root.commands[_above[0]] if _above else root).add_command(_command(_name))
