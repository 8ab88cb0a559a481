"""`ragkit llm`: ask a model in bulk, and look into the ledger of what was asked."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from pathlib import Path

import click

from ragkit import paths
from ragkit.errors import DataError, MissingData, ModelError, UsageError, did_you_mean

FIELDS = ("id", "messages", "schema", "tools", "parameters", "repeat", "purpose", "prompt")

_ledger = click.option(
    "--ledger",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The ledger. Default: $RAGKIT_LEDGER, else build/llm.sqlite of the workspace.",
)


@click.group(help="The language-model endpoint and its ledger.")
def command():
    pass


@command.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--csv", "form", flag_value="csv", help="Write the table as CSV.")
@click.option("--json", "form", flag_value="json", help="Write the table as JSON.")
@click.option("--failures", is_flag=True, help="List every request without a value, and why.")
def ledger(file, form, failures):
    """Show calls, tokens, cost and failures of the ledger FILE, by model and purpose."""
    from ragkit.llm import Ledger, dollars, load_prices

    with Ledger(_path(file), readonly=True) as book:
        if failures:
            lines = [
                {
                    "model": failure.model,
                    "purpose": failure.purpose,
                    "kind": failure.kind,
                    "reason": failure.reason,
                    "attempts": failure.attempts,
                    "key": failure.key,
                }
                for failure in book.failures()
            ]
            _print_table(lines, form, f"{len(lines):,} requests without a value")
            return
        lines = book.summary()
    prices = load_prices()
    costs = []
    for line in lines:
        cost = prices.cost(line["model"], line["prompt_tokens"], line["completion_tokens"])
        if line["tokens_unknown"]:
            cost = None
        costs.append(cost)
        line["cost_usd"] = cost
    known = sum(cost for cost in costs if cost is not None)
    total = f"cost {dollars(known)}"
    if None in costs:
        total = f"cost at least {dollars(known)}: {costs.count(None)} lines have no known cost"
    if form is None:
        for line in lines:
            kinds = line.pop("failures")
            line["failed"] = ", ".join(f"{n:,} {kind}" for kind, n in kinds.items()) or "0"
            line["cost_usd"] = dollars(line["cost_usd"])
            if not line["tokens_unknown"]:
                line["tokens_unknown"] = ""
    _print_table(lines, form, f"{total}, by prices of {prices.date} ({prices.path})")


@command.command()
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@_ledger
@click.option("--model", help="Only this model's exchanges.")
@click.option("--purpose", help="Only those of this purpose.")
def export(out, ledger, model, purpose):
    """Write the ledger as JSON lines to OUT (.jsonl or .jsonl.gz), to ship and to replay."""
    from ragkit.llm import Ledger

    with Ledger(_path(ledger), readonly=True) as book:
        for option, given in (("model", model), ("purpose", purpose)):
            known = {line[option] for line in book.summary()}
            if given is not None and given not in known:
                raise UsageError(
                    f"the ledger has no {option} {given!r}", did_you_mean(given, known)
                )
        count = book.export(out, model=model, purpose=purpose)
    click.echo(f"{count:,} exchanges written to {out}")


@command.command("import")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@_ledger
def import_(file, ledger):
    """Add the exchanges of an export FILE to the ledger."""
    from ragkit.llm import Ledger

    with Ledger(_path(ledger)) as book:
        new, held = book.import_(file)
    click.echo(f"{new:,} exchanges added, {held:,} were there")


@command.command()
@click.argument("requests", type=click.Path(path_type=Path, allow_dash=True))
@click.option("-m", "--model", required=True, help="openai:NAME")
@click.option(
    "-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="Default: stdout."
)
@_ledger
@click.option("--replay", is_flag=True, help="Answer from the ledger alone; a miss is an error.")
@click.option("--dry-run", is_flag=True, help="Say calls, tokens and price; ask nothing.")
@click.option("--budget", type=float, metavar="USD", help="Stop before more than this is spent.")
@click.option("--concurrency", type=click.IntRange(1), default=8, show_default=True)
@click.option("--timeout", type=click.FloatRange(0.001), default=120.0, show_default=True)
@click.option("--temperature", type=float, help="For requests that do not set it.")
@click.option("--max-tokens", type=click.IntRange(1), help="For requests that do not set it.")
def complete(requests, model, out, ledger, replay, dry_run, budget, concurrency, timeout, **limits):
    """Ask what REQUESTS says (JSON lines; - is standard input), write one result a line.

    A line has `messages` (a string, or a chat), and may have `id`, `schema`, `tools`,
    `parameters`, `repeat`, `purpose` and `prompt`. Exit status 1 if any request failed; every
    other result is written all the same.
    """
    from ragkit.llm import Client, tally

    ids, asked = _read_requests(requests)
    with Client(
        model,
        ledger=_path(ledger),
        parameters={name: value for name, value in limits.items() if value is not None},
        concurrency=concurrency,
        timeout=timeout,
        budget=budget,
        replay=replay or None,
    ) as client:
        if dry_run:
            click.echo(str(client.dry_run(asked)))
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
        out.parent.mkdir(parents=True, exist_ok=True)
        part = out.with_name(f".{out.name}.{os.getpid()}.part")
        part.write_text(text, encoding="utf-8")
        part.replace(out)
    counts = tally(results)
    click.echo(str(counts), err=True)
    if counts.failures:
        failed = sum(counts.failures.values())
        raise ModelError(f"{failed:,} of {counts.requests:,} requests have no value")


@command.command()
@click.argument("model")
@click.option("--timeout", type=click.FloatRange(0.001), default=30.0, show_default=True)
def check(model, timeout):
    """Try the endpoint with MODEL: a chat, an answer by schema, a tool call. Nothing is kept."""
    from ragkit.llm import Client, load_prompt

    trial = load_prompt("check")
    schema = {
        "type": "object",
        "properties": {"capital": {"type": "string"}},
        "required": ["capital"],
        "additionalProperties": False,
    }
    tool = {"name": "answer", "description": "Give the answer.", "parameters": schema}
    limits = {"max_tokens": 100}
    tries = {
        "chat": trial.request({}, parameters=limits),
        "schema": trial.request({}, parameters=limits, schema=schema),
        "tool call": trial.request(
            {}, parameters={**limits, "tool_choice": "required"}, tools=[tool]
        ),
    }
    with Client(model, ledger=None, timeout=timeout, max_attempts=2, replay=False) as client:
        click.echo(f"endpoint   {client.endpoint.url}")
        price = client.prices.models.get(model.removeprefix("openai:"))
        told = "unknown" if price is None else f"${price[0]:g} in, ${price[1]:g} out"
        click.echo(f"price      {told} per million tokens ({client.prices.path})")
        answered = 0
        for name, request in tries.items():
            result = client.complete([request], progress=False)[0]
            seconds = sum(row.seconds for row in client.ledger if row.key == result.key)
            if result.ok:
                answered += 1
                said = result.tool_calls[0].arguments if result.tool_calls else result.text
                told = f"ok in {seconds:.2f} s: {str(said)[:60]!r}"
            else:
                told = f"failed: {result.reason}"
            click.echo(f"{name:<10} {told}")
    if answered == 0:
        raise ModelError(f"{model} answered nothing")


def _path(given: Path | None) -> Path:
    return Path(given or os.environ.get("RAGKIT_LEDGER") or paths.BUILD / "llm.sqlite")


def _read_requests(path: Path):
    from ragkit.llm import Request

    try:
        text = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MissingData(f"there is no file {path}") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8: {error}") from None
    ids, requests = [], []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}: line {number}"
        try:
            fields = json.loads(line)
        except ValueError as error:
            raise DataError(f"{where}: not JSON: {error}") from None
        if not isinstance(fields, dict) or "messages" not in fields:
            raise DataError(f"{where}: expected an object with messages")
        unknown = sorted(set(fields) - set(FIELDS))
        if unknown:
            raise DataError(
                f"{where}: a request has no {unknown[0]!r}", did_you_mean(unknown[0], FIELDS)
            )
        ids.append(fields.pop("id", number))
        try:
            requests.append(Request(**fields))
        except UsageError as error:
            raise DataError(f"{where}: {error.message}", error.hint) from None
    if not requests:
        raise DataError(f"{path}: no request in it")
    return ids, requests


def _print_table(lines: list[dict], form: str | None, foot: str) -> None:
    if form == "json":
        click.echo(json.dumps(lines, indent=1))
    elif form == "csv":
        plain = [
            {
                name: json.dumps(cell) if isinstance(cell, dict) else cell
                for name, cell in line.items()
            }
            for line in lines
        ]
        file = io.StringIO()
        if plain:
            writer = csv.DictWriter(file, plain[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(plain)
        click.echo(file.getvalue(), nl=False)
    else:
        from tabulate import tabulate

        if lines:
            click.echo(tabulate(lines, headers="keys", intfmt=",", missingval="-"))
        click.echo(foot)
