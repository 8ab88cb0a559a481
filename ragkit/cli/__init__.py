"""The command line: `ragkit COMMAND ...`.

Each command lives in `ragkit.cli.NAME` and is imported when it is called; `commands.toml` declares
its parameters and help. Errors that a user can act on are printed in one or two lines, without a
traceback; the exit status is 1 for those, 2 for a misspelt option, and 130 after Ctrl-C.
"""

from __future__ import annotations

import importlib
import sys

import click

from ragkit import __version__
from ragkit.cli.declare import DECLARED
from ragkit.errors import RagkitError, did_you_mean

COMMANDS = {name: words["help"] for name, words in DECLARED.items() if " " not in name}


class LazyGroup(click.Group):
    def list_commands(self, ctx):
        return list(COMMANDS)

    def get_command(self, ctx, name):
        if name not in COMMANDS:
            return None
        return importlib.import_module(f"ragkit.cli.{name}").command

    def resolve_command(self, ctx, args):
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"no command {args[0]!r}; {did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx, formatter):
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="ragkit")
def root():
    """Benchmarks of retrieval-augmented generation: data, baselines, analyses, notebooks."""


def main(argv: list[str] | None = None) -> None:
    """Run the command line; print a `RagkitError` in one line and exit with status 1."""
    try:
        sys.exit(root.main(args=argv, prog_name="ragkit", standalone_mode=False))
    except RagkitError as error:
        click.echo(f"ragkit: {error}", err=True)
        sys.exit(1)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("ragkit: interrupted", err=True)
        sys.exit(130)
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        click.echo(f"ragkit: {error.strerror or error}{where}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
