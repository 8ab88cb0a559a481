"""`ragkit data`: what is here, and how to get the rest."""

from __future__ import annotations

import click

from ragkit.errors import RagkitError


@click.group()
def command():
    """What data is here, and how to get the rest."""


@command.command()
@click.option("--data", help="A folder with real files; default: $RAGKIT_DATA.")
@click.option("--dataset", help="Only this dataset.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def status(data, dataset, as_json):
    """List every registered file: present, partial or missing, where from, licence.

    The exit status is 0 whatever is missing, and 1 if a file has the wrong bytes.
    """
    import json

    from ragkit.datasets.registry import Store, entries
    from ragkit.errors import UsageError, did_you_mean

    known = {file.dataset for file in entries().values()}
    if dataset and dataset not in known:
        raise UsageError(f"no dataset {dataset!r}", did_you_mean(dataset.lower(), known))
    store = Store(data)
    rows, damaged = [], set()
    for file in entries().values():
        if dataset and file.dataset != dataset:
            continue
        try:
            found = store.find(file.path)
            state = "missing" if found is None else "partial" if found.partial else "present"
            detail = "" if found is None else found.extent if found.partial else str(found.path)
            if found is None:
                detail = file.fetch_command
        except RagkitError as error:
            # A damaged stand-in shows in its own row and in that of the file it stands for.
            state, detail = "damaged", str(error).replace("\n ", ";")
            damaged.add(error.message)
        rows.append(
            {
                "state": state,
                "dataset": file.dataset,
                "file": file.path,
                "rows": file.rows,
                "origin": f"{file.origin}@{file.revision[:9]}",
                "licence": file.licence,
                "detail": detail,
            }
        )
    if as_json:
        click.echo(json.dumps(rows, indent=1))
    else:
        _print(rows)
        for folder in store.folders:
            click.echo(f"searched {folder}")
    if damaged:
        raise RagkitError(f"damaged files: {len(damaged)} of {len(rows)}", "see above")


@command.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--quiet", is_flag=True, help="No progress bar.")
def fetch(names, quiet):
    """Download datasets (or single files) into the cache; continue where an earlier call stopped."""
    from ragkit.datasets import fetch as fetching
    from ragkit.datasets.registry import read_pin

    files = [file for name in names for file in fetching.wanted(name)]
    for file in files:
        path = fetching.fetch(file, progress=not quiet)
        checked = file.sha256 or read_pin(path).get("published")
        word = "verified" if checked else "no digest is published to verify it by"
        click.echo(f"{file.path}: {path.stat().st_size:,} bytes, {word}")


COLOURS = {"present": "green", "partial": "yellow", "missing": None, "damaged": "red"}


def _print(rows: list[dict]) -> None:
    width = max(len(row["file"]) for row in rows)
    dataset = None
    for row in sorted(rows, key=lambda row: row["dataset"]):
        if row["dataset"] != dataset:
            dataset = row["dataset"]
            click.secho(f"\n{dataset}", bold=True)
        state = click.style(f"{row['state']:<8}", fg=COLOURS[row["state"]])
        count = f"{row['rows']:,}" if row["rows"] else ""
        click.echo(f"  {state} {row['file']:<{width}} {count:>8}  {row['origin']}")
        click.echo(
            f"           licence: {row['licence']}"
            + (f"; {row['detail']}" if row["detail"] else "")
        )
    counts = {state: sum(row["state"] == state for row in rows) for state in COLOURS}
    click.echo("\n" + ", ".join(f"{n} {state}" for state, n in counts.items() if n))
