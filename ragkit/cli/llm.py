"""`ragkit llm` and `ragkit prompts`: a model in bulk, the ledger of its answers, printed prompts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from ragkit import checks
from ragkit.cli import declare
from ragkit.errors import DataError, ModelError, UsageError
from ragkit.files import json_lines, named, read_text, write_text

FIELDS = ("id", "messages", "schema", "tools", "parameters", "repeat", "purpose", "prompt")


def ledger(file, form, failures):
    from ragkit.llm import Ledger, dollars, ledger_path, load_prices

    with Ledger(ledger_path(file), readonly=True) as book:
        if failures:
            names = ("model", "purpose", "kind", "reason", "attempts", "key")
            lines = [{name: getattr(row, name) for name in names} for row in book.failures()]
            declare.table(lines, form, f"{len(lines):,} requests without a value")
            return
        lines = book.summary()
    prices = load_prices()
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
    declare.table(lines, form, f"{total}, by prices of {prices.date} ({prices.path})")


def export(out, ledger, model, purpose):
    from ragkit.llm import Ledger, ledger_path

    with Ledger(ledger_path(ledger), readonly=True) as book:
        for option, given in (("model", model), ("purpose", purpose)):
            if given is not None:
                checks.choice(given, option, {line[option] for line in book.summary()})
        count = book.export(out, model=model, purpose=purpose)
    click.echo(f"{count:,} exchanges written to {out}")


def import_(file, ledger):
    from ragkit.llm import Ledger, import_results, ledger_path

    with Ledger(ledger_path(ledger)) as book:
        if '"custom_id"' in read_text(file).partition("\n")[0]:
            answers, failed, held, waiting = import_results(book, file)
            said = f"{answers:,} answers recorded, {failed:,} requests failed"
            click.echo(f"{said}, {held:,} already there, {waiting:,} without a result yet")
        else:
            new, held = book.import_(file)
            click.echo(f"{new:,} exchanges added, {held:,} already there")


def complete(requests, model, out, dry_run, batch, **given):
    from ragkit.llm import Client, tally, write_batch

    ids, asked = _read_requests(requests)
    with Client(model, **client_options(given)) as client:
        if dry_run:
            click.echo(str(client.dry_run(asked)))
            return
        if batch is not None:
            count = write_batch(client, client.missing(asked), batch)
            click.echo(
                f"{count:,} requests written to {batch}; when the results are there: "
                f"ragkit llm import RESULTS.jsonl --ledger {client.ledger.path}"
            )
            return
        results = client.complete(asked)
    lines = [
        json.dumps({"id": name, **result.to_dict()}, ensure_ascii=False) + "\n"
        for name, result in zip(ids, results, strict=True)
    ]
    if out is None:
        click.echo("".join(lines), nl=False)
    else:
        write_text(out, "".join(lines))
    click.echo(tally(results), err=True)
    if failed := sum(not result.ok for result in results):
        raise ModelError(f"{failed:,} of {len(results):,} requests have no value")


def check(model, timeout):
    from ragkit.llm import Client, load_prompt

    properties = {"capital": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": ["capital"]}
    schema["additionalProperties"] = False
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
        told = f"${price[0]:g} in, ${price[1]:g} out, per million tokens" if price else "unknown"
        click.echo(f"price      {told} ({client.prices.path})")
        for name, request in tries.items():
            result = client.complete([trial.request({}, **request)])[0]
            if result.ok:
                said = result.tool_calls[0].arguments if result.tool_calls else result.text
                told = f"ok in {client.ledger.get(result.key).seconds:.2f} s: {str(said)[:60]!r}"
            else:
                failed.append(name)
                told = f"failed: {result.reason}"
            click.echo(f"{name:<10} {told}")
    if failed:
        raise ModelError(f"{model} failed: {', '.join(failed)}")


def client_options(given: dict) -> dict:
    """Take what concerns the client out of a command's options, and return it."""
    from ragkit.llm import ledger_path

    limits = {name: given.pop(name) for name in ("temperature", "max_tokens")}
    options = {name: given.pop(name) for name in ("concurrency", "timeout", "budget")}
    options["parameters"] = {name: value for name, value in limits.items() if value is not None}
    options["ledger"] = ledger_path(given.pop("ledger"))
    return options | {"replay": given.pop("replay") or None}


def _read_requests(path: Path):
    from ragkit.llm import Request

    text = sys.stdin.read() if str(path) == "-" else read_text(path)
    ids, requests = [], []
    with named(path):
        for place, fields in json_lines(text):
            with named(place):
                try:
                    checks.options(fields, FIELDS, "a request")
                    ids.append(fields.pop("id", int(place.removeprefix("line "))))
                    requests.append(Request(**fields))
                except UsageError as error:
                    raise DataError(error.message, error.hint) from None
                except (TypeError, ValueError) as error:
                    raise DataError(f"not a request: {error}") from None
        if not requests:
            raise DataError("no request in it")
    return ids, requests


def import_prompts(paper, file):
    from ragkit.llm import printed

    wanted, found = printed.known(paper), printed.import_printed(paper, file)
    for one in found:
        click.echo(f"{one.name} ({one.place}): {one.path}")
    if missing := [one for one in wanted.values() if one not in found]:
        names = ", ".join(f"{one.name} ({one.place})" for one in missing)
        click.echo(f"not in {file}: {names}", err=True)
    if not wanted:
        click.echo(f"{paper} prints no prompts")


def list_prompts(form):
    from ragkit.llm import printed

    rows = [
        {"paper": one.paper, "name": one.name, "place": one.place}
        | {"state": "missing" if one.text() is None else "imported", "command": one.command}
        for one in printed.known().values()
    ]
    declare.table(rows, form)
