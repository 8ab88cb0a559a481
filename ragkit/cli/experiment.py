"""`ragkit experiment`: the papers' experiments with models."""

from __future__ import annotations

import click

from ragkit.cli import declare
from ragkit.errors import MissingData, RagkitError

PRICED = 8  # questions whose requests give the price in a list


def list_(profile, data, form):
    from ragkit.llm import dollars
    from ragkit.report import experiments
    from ragkit.report.trial import Trial

    rows = []
    for one in experiments.load().values():
        options = {"profile": profile, "data": str(data or ""), "mode": "dry", "ranks": False}
        trial, price = Trial(one, **options), ""
        lacking = trial.lacks()
        try:
            every = trial.scale * len(trial.questions)
            if one.retrievers and trial.documents.empty:
                raise MissingData("no documents")
            part = Trial(one, **options, limit=PRICED)
            part.run()
            shares = part.shares()
            scale = every / len(part.questions)
            unknown = any(share.cost is None for share in shares)
            price = dollars(scale * sum(share.cost or 0.0 for share in shares))
            price = f"{price} and unknown prices" if unknown else f"about {price}"
        except RagkitError as error:
            price = f"unknown ({error.message})"
        done = len(experiments.records(profile, one.name))
        rows.append(
            {"experiment": one.name, "cells": len(one.cells), "systems run": done}
            | {"price": price, "needs": lacking, "title": one.title}
        )
    if form:
        return declare.table(rows, form)
    for row in rows:
        click.echo(f"{row['experiment']}: {row['title']}")
        click.echo(f"  fills {row['cells']:,} printed cells; {row['systems run']:,} systems run")
        click.echo(f"  price of all of it: {row['price']}")
        for lack in row["needs"] or ["nothing more"]:
            click.echo(f"  needs {lack}")


def run(name, dry_run, batch, yes, **given):
    from ragkit.report import experiments
    from ragkit.report.trial import Trial

    given["data"] = str(given["data"] or "")
    given = {key: value for key, value in given.items() if value is not None}
    given["replay"] = given.pop("replay") or None
    experiment = experiments.get(name)
    planned = Trial(experiment, **given, mode="dry")
    if dry_run and (lacking := planned.lacks()):
        click.echo("\n".join(f"needs {lack}" for lack in lacking), err=True)
    planned.run()
    asks = _announce(planned)
    planned.close()
    if dry_run:
        return
    if batch is not None:
        waiting = Trial(experiment, **given, mode="batch")
        waiting.run()
        if _batched(waiting, batch):
            return
        waiting.close()
    lacking = Trial(experiment, **given).lacks()
    if asks and planned.remote and not lacking and not yes and given.get("budget") is None:
        click.confirm("Go ahead?", abort=True, err=True)
    trial = Trial(experiment, **given)
    try:
        trial.run(click.echo)
    finally:
        trial.close()
    for note in dict.fromkeys(trial.notes):
        click.echo(note, err=True)
    _results(experiment.name, given)


def _announce(planned) -> int:
    """Say calls, tokens and money; return the number of calls."""
    from ragkit.llm import dollars
    from ragkit.report.trial import totals

    shares = planned.shares()
    rows = [
        {"model": share.model, "purpose": share.purpose, "requests": share.requests}
        | {"in the ledger": share.kept, "calls": share.calls, "tokens in": share.tokens_in}
        | {"tokens out": share.tokens_out, "cost": dollars(share.cost)}
        for share in shares
    ]
    declare.table(rows, None, totals(shares))
    for note in dict.fromkeys(planned.notes):
        click.echo(note)
    return sum(share.calls for share in shares)


def _batched(waiting, path) -> int:
    """Write the requests that wait, a file for each model; return their number."""
    from ragkit.llm import Rehearsal

    asking = [one for one in waiting.clients.values() if isinstance(one, Rehearsal)]
    asking = [one for one in asking if any(share.calls for share in one.shares())]
    for client in asking:
        own = path
        if len(asking) > 1:
            model = client.model.removeprefix("openai:").replace("/", "-")
            own = path.with_name(f"{path.stem}.{model}{path.suffix}")
        click.echo(f"{client.write(own):,} requests to {client.model} written to {own}")
    for note in dict.fromkeys(waiting.notes):
        click.echo(note)
    if asking:
        book = asking[0].ledger.path
        click.echo(f"when the results are there: ragkit llm import RESULTS.jsonl --ledger {book}")
        click.echo("then the same command goes on")
    return len(asking)


def _results(name: str, given: dict) -> None:
    from ragkit.report import experiments

    table = experiments.summary(given.get("profile", "paper"))
    table = table[(table["experiment"] == name) & (table["type"] == experiments.OVERALL)]
    if len(table):
        wide = table.pivot(index=["system", "judge"], columns="metric", values="value")
        click.echo(wide.round(4).to_string())
