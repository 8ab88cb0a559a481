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
    """List every registered file: whether it is at hand, and whether its bytes are known.

    A file is present, another release than the registered one, partial (another file with fewer
    rows stands in), cut or damaged, or missing. The exit status is 1 if a file is cut or damaged,
    and 0 whatever is missing.
    """
    import json

    from ragkit import checks
    from ragkit.datasets.registry import Store, entries

    if dataset:
        checks.choice(dataset, "dataset", {file.dataset for file in entries().values()})
    store = Store(data)
    damaged: set[str] = set()
    rows = []
    for file in entries().values():
        if dataset not in (None, file.dataset):
            continue
        state, detail = _look(store, file, damaged)
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
        raise RagkitError(f"cut or damaged files: {len(damaged)} of {len(rows)}", "see above")


def _look(store, file, damaged: set[str]) -> tuple[str, str]:
    """Return the state of a file and what there is to say of it."""
    from ragkit.datasets.registry import count_rows

    try:
        found = store.find(file.path)
        if found is None:
            return "missing", file.fetch_command
        if found.state != "verified":
            found.rows = count_rows(found.path, found.entry)
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
    return state, ", ".join(words)


@command.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--refresh", is_flag=True, help="Ask whether the source has another version.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def fetch(names, refresh, quiet):
    """Download datasets (or single files) into the cache; continue where an earlier call stopped.

    $HF_ENDPOINT names a mirror of the Hugging Face hub.
    """
    from ragkit.datasets import fetch as fetching
    from ragkit.datasets.registry import read_pin

    files = [file for name in names for file in fetching.wanted(name)]
    for file in files:
        path = fetching.fetch(file, refresh=refresh, progress=not quiet)
        pin = read_pin(path)
        word = "verified"
        if pin and not pin.get("published"):
            word = "pinned, no digest is published to verify it by"
        elif pin and file.sha256:
            word = "other release than the registered one"
        click.echo(f"{file.path}: {path.stat().st_size:,} bytes, {word}")


COLOURS = {
    "present": "green",
    "other release": "yellow",
    "partial": "yellow",
    "missing": None,
    "cut or damaged": "red",
}


def _print(rows: list[dict]) -> None:
    width = max(len(row["file"]) for row in rows)
    dataset = None
    for row in sorted(rows, key=lambda row: row["dataset"]):
        if row["dataset"] != dataset:
            dataset = row["dataset"]
            click.secho(f"\n{dataset}", bold=True)
        state = click.style(f"{row['state']:<14}", fg=COLOURS[row["state"]])
        count = f"{row['rows']:,}" if row["rows"] else ""
        click.echo(f"  {state} {row['file']:<{width}} {count:>8}  {row['origin']}")
        click.echo(
            f"                 licence: {row['licence']}"
            + (f"; {row['detail']}" if row["detail"] else "")
        )
    counts = {state: sum(row["state"] == state for row in rows) for state in COLOURS}
    click.echo("\n" + ", ".join(f"{n} {state}" for state, n in counts.items() if n))
