"""The command line: `ragkit COMMAND ...`.

`commands.toml` declares each command with its parameters, its help, and the function that does it,
whose module is imported when it is called. Errors that a user can act on are printed in one or two
lines, without a traceback; the exit status is 1 for those, 2 for a misspelt option, and 130 after
Ctrl-C.
"""

from __future__ import annotations

import sys

import click

from ragkit.cli.declare import root
from ragkit.errors import RagkitError


def main(argv: list[str] | None = None) -> None:
    """Run the command line; print a `RagkitError` in one line and exit with status 1."""
    try:
        sys.exit(root.main(args=argv, prog_name="ragkit", standalone_mode=False))
    except RagkitError as error:
        message, status = str(error), 1
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        message, status = "interrupted", 130
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        message, status = f"{error.strerror or error}{where}", 1
    click.echo(f"ragkit: {message}", err=True)
    sys.exit(status)
