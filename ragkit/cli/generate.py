"""`ragkit generate`: generate a company's documents and questions from a seed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import click

from ragkit import display
from ragkit.files import held


def erb(out, dry_run, **counts):
    from ragkit.synth.offline.generate import generate
    from ragkit.synth.offline.plan import Plan, Settings

    if dry_run:
        counts.pop("jobs")
        return _show(Plan(Settings(**counts)).summary())
    with held(out), display.Bar() as bar:
        plan = generate(out, **counts, progress=bar.stage)["plan"]
    made, asked = (sum(plan[name].values()) for name in ("documents", "questions"))
    click.echo(f"{made:,} documents and {asked:,} questions in {out}")


def company(page, out, dry_run, batch, yes, **given):
    from ragkit.synth.company import estimate, generate_company

    options, asked = _options(given, out / "ledger.sqlite", batch)
    guess = partial(estimate, page, out, **asked)
    if batch and (out / "plan").exists() and not dry_run:  # of the first batch only
        guess = None
    make = partial(generate_company, page, out, **asked)
    if found := _written(guess, make, options, held(out), dry_run, yes):
        made = sum(found["questions"].values())
        wanted = f" of {asked['questions']:,}" * (made < asked["questions"])
        click.echo(f"{found['documents']:,} documents and {made:,}{wanted} questions in {out}")
        _left_out(found["left_out"], out / "left_out.jsonl")


def helpcentre(out, dry_run, batch, yes, **given):
    from ragkit.synth.helpcentre import estimate, generate_helpcentre

    options, asked = _options(given, out / "ledger.sqlite", batch)
    guess, make = partial(estimate, **asked), partial(generate_helpcentre, out, **asked)
    if found := _written(guess, make, options, held(out), dry_run, yes):
        counts = [sum(found[name].values()) for name in ("articles", "questions")]
        click.echo(f"{counts[0]:,} articles and {counts[1]:,} questions in {out}")
        _left_out(found["left_out"], out / "left_out.jsonl")


def datamorgana(documents, out, dry_run, batch, yes, **given):
    from ragkit.files import read_json
    from ragkit.synth.datamorgana.make import beside, estimate, make_questions, settings
    from ragkit.synth.stamp import check_same

    options, asked = _options(given, out.with_suffix(".ledger.sqlite"), batch)
    if out.exists() and not dry_run:  # it is written last, so it is whole
        report = beside(out, "report.json")
        found = read_json(report) if report.exists() else {}
        wanted = settings(documents, **asked)
        check_same(found.get("settings", {}), wanted, f"{out} was made")
        return click.echo(f"{out} is complete")

    def make(**how):
        made = make_questions(documents, **asked, **how)
        made.write(out)
        return made

    guess, lock = partial(estimate, documents, **asked), held(out.parent, out.name)
    if made := _written(guess, make, options, lock, dry_run, yes):
        click.echo(f"{len(made.rows):,} questions in {out}")
        _left_out(len(made.left_out), beside(out, "left_out.jsonl"))


def sample(out):
    from ragkit import paths
    from ragkit.synth.sample import write_sample

    out = out or paths.SAMPLE
    with held(out), display.Bar() as bar:
        files = write_sample(out, progress=bar.stage)
    click.echo(f"{files} files in {out}")


def _options(given, ledger, batch):
    """Return how a model is asked, and the other settings."""
    from ragkit.synth.stages import AuthorOptions

    ledger = given.pop("ledger") or ledger
    asked = {name: given.pop(name) for name in ("budget", "concurrency")}
    return AuthorOptions(ledger, **asked, batch=batch), given


def _written(guess, make, options, lock, dry_run, yes):
    """Show the estimate, ask, and let the model write; return what is made, if it is."""
    from ragkit.synth.stages import BatchWritten

    if guess:  # an estimate leaves no ledger behind
        kept = {} if options.ledger.exists() else {"ledger": None, "batch": None}
        click.echo("\n".join(guess(author_options=replace(options, **kept))))
    if dry_run:
        return None
    if not (yes or options.batch):
        click.confirm("Go ahead?", abort=True, err=True)
    with lock, display.Bar() as bar:
        try:
            return make(progress=bar.stage, author_options=options)
        except BatchWritten as written:
            click.echo(str(written))


def _left_out(count, path) -> None:
    if count:
        click.echo(f"{count:,} left out: see {path}")


def _show(summary: dict) -> None:
    for name, value in summary.items():
        if isinstance(value, dict):
            click.echo(f"{name}: {sum(value.values()):,}")
            for part, count in value.items():
                click.echo(f"  {part:<26}{count:>10,}")
        else:
            click.echo(f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value}")
