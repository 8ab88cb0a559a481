"""`ragkit models`: which encoders and rerankers are here, and how to get the others."""

from __future__ import annotations

import click

from ragkit.errors import HashMismatch, RagkitError, UsageError


@click.group(help="Encoders and rerankers: what is here, and how to get the rest.")
def command():
    pass


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def list_(as_json):
    """Show every model: kind, whether it is here, size, licence, where it comes from."""
    import json

    from tabulate import tabulate

    from ragkit.models import registry
    from ragkit.models.registry import find, verified

    rows = []
    for model in registry.cards().values():
        folder, detail = find(model), ""
        state = "present" if folder else "missing"
        try:
            _ = folder and verified(model, folder)
        except HashMismatch as error:
            state, detail = "damaged", error.message
        rows.append(
            {
                "name": model.name,
                "kind": model.kind,
                "state": state,
                "megabytes": round(model.bytes / 1e6),
                "licence": model.licence,
                "origin": model.origin,
                "command": "" if state == "present" else model.command,
                "detail": detail,
            }
        )
    if as_json:
        click.echo(json.dumps(rows, indent=1))
    else:
        shown = [{name: row[name] for name in row if name != "detail"} for row in rows]
        click.echo(tabulate(shown, headers="keys", tablefmt="plain"))
        for detail in filter(None, (row["detail"] for row in rows)):
            click.echo(detail)
    damaged = [row["name"] for row in rows if row["state"] == "damaged"]
    if damaged:
        raise RagkitError(f"damaged weights: {', '.join(damaged)}", "see above")


@command.command()
@click.argument("names", nargs=-1)
@click.option(
    "--offline-set", is_flag=True, help="The small models that need no hub: what samples use."
)
def fetch(names, offline_set):
    """Get the weights of models by NAME; those that are here are checked and kept."""
    from ragkit.models import fetch as fetching
    from ragkit.models.registry import card

    wanted = [card(name) for name in names] + (fetching.offline_set() if offline_set else [])
    if not wanted:
        raise UsageError("which models?", "name some, or say --offline-set; ragkit models list")
    folders = fetching.fetch(dict.fromkeys(wanted))
    for name, folder in folders.items():
        click.echo(f"{name}: {folder}")
