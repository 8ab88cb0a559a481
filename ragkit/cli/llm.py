"""`ragkit llm`: ask a model in bulk, and show the ledger of its answers."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import click

from ragkit import checks, paths
from ragkit.errors import DataError, ModelError, UsageError
from ragkit.files import read_text, write_text

FIELDS = ("id", "messages", "schema", "tools", "parameters", "repeat", "purpose", "prompt")

_file = click.Path(dir_okay=False, path_type=Path)
_ledger = click.option(
    "--ledger",
    type=_file,
    help="The ledger. Default: $RAGKIT_LEDGER, else build/llm.sqlite of the workspace.",
)


@click.group(help="Ask a language model, and show the ledger of its answers.")
def command():
    pass


@command.command()
@click.argument("file", required=False, type=_file)
@click.option("--csv", "form", flag_value="csv", help="Write the table as CSV.")
@click.option("--json", "form", flag_value="json", help="Write the table as JSON.")
@click.option("--failures", is_flag=True, help="List every request without a value, and why.")
def ledger(file, form, failures):
    """Show the calls, cost and failures in a ledger.

    FILE is the ledger; each line is a model and a purpose.
    """
    from ragkit.llm import Ledger, dollars, load_prices

    with Ledger(_path(file), readonly=True) as book:
        if failures:
            names = ("model", "purpose", "kind", "reason", "attempts", "key")
            lines = [{name: getattr(row, name) for name in names} for row in book.failures()]
            _print_table(lines, form, f"{len(lines):,} requests without a value")
            return
        lines = book.summary()
    prices = load_prices()
    for line in lines:
        cost = prices.cost(line["model"], line["prompt_tokens"], line["completion_tokens"])
        line["cost_usd"] = None if line["tokens_unknown"] else cost
    costs = [line["cost_usd"] for line in lines]
    known = sum(cost for cost in costs if cost is not None)
    total = f"cost {dollars(known)}"
    if None in costs:
        total = f"cost at least {dollars(known)}: {costs.count(None)} lines have no known cost"
    if form is None:
        for line in lines:
            kinds = line.pop("failures")
            line["failed"] = ", ".join(f"{n:,} {kind}" for kind, n in kinds.items()) or "0"
            line["cost_usd"] = dollars(line["cost_usd"])
    _print_table(lines, form, f"{total}, by prices of {prices.date} ({prices.path})")


@command.command()
@click.argument("out", type=_file)
@_ledger
@click.option("--model", help="Only the exchanges with this model.")
@click.option("--purpose", help="Only the exchanges with this purpose.")
def export(out, ledger, model, purpose):
    """Write the ledger to a file to share and replay.

    The name of OUT ends with .jsonl or .jsonl.gz.
    """
    from ragkit.llm import Ledger

    with Ledger(_path(ledger), readonly=True) as book:
        for option, given in (("model", model), ("purpose", purpose)):
            if given is not None:
                checks.choice(given, option, {line[option] for line in book.summary()})
        count = book.export(out, model=model, purpose=purpose)
    click.echo(f"{count:,} exchanges written to {out}")


@command.command("import")
@click.argument("file", type=_file)
@_ledger
def import_(file, ledger):
    """Add an export, or the results of a batch."""
    from ragkit.llm import Ledger, import_results

    with Ledger(_path(ledger)) as book:
        if '"custom_id"' in read_text(file).partition("\n")[0]:
            answers, failed = import_results(book, file)
            click.echo(f"{answers:,} answers recorded, {failed:,} requests failed")
        else:
            new, held = book.import_(file)
            click.echo(f"{new:,} exchanges added, {held:,} already there")


@command.command()
@click.argument("requests", type=click.Path(path_type=Path, allow_dash=True))
@click.option("-m", "--model", required=True, help="openai:NAME")
@click.option("-o", "--out", type=_file, help="Write results to this file. Default: stdout.")
@_ledger
@click.option("--replay", is_flag=True, help="Answer from the ledger alone.")
@click.option("--dry-run", is_flag=True, help="Show calls, tokens and price, without a call.")
@click.option("--batch", type=_file, help="Write unanswered requests in OpenAI's batch format.")
@click.option("--budget", type=float, metavar="USD", help="Spend no more than this.")
@click.option("--concurrency", type=click.IntRange(1), default=8, show_default=True)
@click.option("--timeout", type=click.FloatRange(0.001), default=120.0, show_default=True)
@click.option("--temperature", type=float, help="For requests that do not set it.")
@click.option("--max-tokens", type=click.IntRange(1), help="For requests that do not set it.")
def complete(requests, model, out, ledger, replay, dry_run, batch, temperature, max_tokens, **more):
    """Ask the requests of a file, one a line.

    REQUESTS is JSON lines (- for standard input), and so are the results. A line has `messages`
    (a string or a chat), and may have `id`, `schema`, `tools`, `parameters`, `repeat`, `purpose`
    and `prompt`. The exit status is 1 if any request failed; all results are written nevertheless.
    """
    from ragkit.llm import Client, tally, write_batch

    ids, asked = _read_requests(requests)
    limits = {"temperature": temperature, "max_tokens": max_tokens}
    parameters = {name: value for name, value in limits.items() if value is not None}
    options = {"ledger": _path(ledger), "replay": replay or None, **more}
    with Client(model, parameters=parameters, **options) as client:
        if dry_run:
            click.echo(str(client.dry_run(asked)))
            return
        if batch is not None:
            count = write_batch(client, asked, batch)
            click.echo(
                f"{count:,} requests written to {batch}; when the results are there: "
                f"ragkit llm import RESULTS.jsonl --ledger {client.ledger.path}"
            )
            return
        results = client.complete(asked)
    lines = [
        json.dumps({"id": name, **result.to_dict()}, ensure_ascii=False)
        for name, result in zip(ids, results, strict=True)
    ]
    text = "".join(line + "\n" for line in lines)
    if out is None:
        click.echo(text, nl=False)
    else:
        write_text(out, text)
    counts = tally(results)
    click.echo(str(counts), err=True)
    if counts.failures:
        failed = sum(counts.failures.values())
        raise ModelError(f"{failed:,} of {counts.requests:,} requests have no value")


@command.command()
@click.argument("model")
@click.option("--timeout", type=click.FloatRange(0.001), default=30.0, show_default=True)
def check(model, timeout):
    """Test the endpoint with a model.

    The tests are a chat, an answer by schema and a tool call; nothing is recorded. The exit
    status is 1 if any of the three fails.
    """
    from ragkit.llm import Client, load_prompt

    schema = {
        "type": "object",
        "properties": {"capital": {"type": "string"}},
        "required": ["capital"],
        "additionalProperties": False,
    }
    tool = {"name": "answer", "description": "Give the answer.", "parameters": schema}
    tries = {
        "chat": {},
        "schema": {"schema": schema},
        "tool call": {"tools": [tool], "parameters": {"tool_choice": "required"}},
    }
    trial, failed = load_prompt("check"), []
    options = {"timeout": timeout, "max_attempts": 2, "max_wait": timeout, "replay": False}
    with Client(model, ledger=None, parameters={"max_tokens": 100}, **options) as client:
        click.echo(f"endpoint   {client.endpoint.url}")
        price = client.prices.models.get(model.removeprefix("openai:"))
        told = "unknown" if price is None else f"${price[0]:g} in, ${price[1]:g} out"
        click.echo(f"price      {told} per million tokens ({client.prices.path})")
        for name, request in tries.items():
            result = client.complete([trial.request({}, **request)], progress=False)[0]
            if result.ok:
                said = result.tool_calls[0].arguments if result.tool_calls else result.text
                told = f"ok in {client.ledger.get(result.key).seconds:.2f} s: {str(said)[:60]!r}"
            else:
                failed.append(name)
                told = f"failed: {result.reason}"
            click.echo(f"{name:<10} {told}")
    if failed:
        raise ModelError(f"{model} failed: {', '.join(failed)}")


def _path(given: Path | None) -> Path:
    return Path(given or os.environ.get("RAGKIT_LEDGER") or paths.BUILD / "llm.sqlite")


def _read_requests(path: Path):
    from ragkit.llm import Request

    text = sys.stdin.read() if str(path) == "-" else read_text(path)
    ids, requests = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                fields = dict(json.loads(line))
                checks.options(fields, FIELDS, "a request")
                ids.append(fields.pop("id", number))
                requests.append(Request(**fields))
            except UsageError as error:
                raise DataError(f"{path}: line {number}: {error.message}", error.hint) from None
            except (ValueError, TypeError) as error:
                raise DataError(f"{path}: line {number}: not a request: {error}") from None
    if not requests:
        raise DataError(f"{path}: no request in it")
    return ids, requests


def _print_table(lines: list[dict], form: str | None, foot: str) -> None:
    if form == "json":
        click.echo(json.dumps(lines, indent=1))
    elif form == "csv":
        import pandas as pd

        table = pd.DataFrame(lines)
        if "failures" in table:
            table["failures"] = table["failures"].map(json.dumps)
        click.echo(table.to_csv(index=False) if lines else "", nl=False)
    else:
        from tabulate import tabulate

        if lines:
            click.echo(tabulate(lines, headers="keys", intfmt=",", missingval="-"))
        click.echo(foot)
