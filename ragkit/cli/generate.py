"""`ragkit generate`: generate a company's documents and questions from a seed."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import click

from ragkit.cli import declare

command = declare.Group("generate")


@command.define
def erb(out, dry_run, **counts):
    from ragkit.synth.pipeline import Run, Settings, generate

    if dry_run:
        counts.pop("jobs")
        return _show(Run(out, Settings(**counts)).plan.summary())
    with _progress(1) as progress:
        statistics = generate(out, **counts, progress=progress)
    made = sum(row["documents"] for row in statistics["sources"].values())
    asked = sum(row["questions"] for row in statistics["questions"].values())
    click.echo(f"{made:,} documents and {asked:,} questions in {out}")


@command.define
def company(page, out, dry_run, ledger, budget, concurrency, yes, batch, **asked):
    from ragkit.synth.company import estimate, generate_company
    from ragkit.synth.stages import BatchWritten

    ledger = ledger or out / "ledger.sqlite"
    options = _options(asked["author"], ledger, budget, concurrency, batch)
    if dry_run or not (batch and (out / "plan").exists()):  # of the first batch only
        for line in estimate(page, out, **asked, author_options=_unwritten(options)):
            click.echo(line)
    if dry_run:
        return
    _confirm(options, yes or batch)
    with _progress(1) as progress:
        try:
            found = generate_company(page, out, **asked, progress=progress, author_options=options)
        except BatchWritten as written:
            return click.echo(str(written))
    made = sum(found["questions"].values())
    wanted = f" of {asked['questions']:,}" * (made < asked["questions"])
    click.echo(f"{found['documents']:,} documents and {made:,}{wanted} questions in {out}")
    if found["left_out"]:
        click.echo(f"{found['left_out']:,} left out: see {out / 'left_out.jsonl'}")


@command.define
def helpcentre(out, dry_run, ledger, budget, concurrency, yes, batch, **asked):
    from ragkit.synth.helpcentre import begun, generate_helpcentre
    from ragkit.synth.stages import BatchWritten

    ledger = ledger or out / "ledger.sqlite"
    options = _options(asked["author"], ledger, budget, concurrency, batch)
    click.echo("\n".join(begun(**asked, options=_unwritten(options)).estimate()))
    if dry_run:
        return
    _confirm(options, yes or batch)
    with _progress(1) as progress:
        try:
            found = generate_helpcentre(out, **asked, progress=progress, author_options=options)
        except BatchWritten as written:
            return click.echo(str(written))
    questions = sum(row["questions"] for row in found["sets"].values())
    click.echo(f"{sum(found['articles'].values()):,} articles and {questions:,} questions in {out}")
    if found.get("left_out"):
        click.echo(f"{found['left_out']:,} left out: see {out / 'left_out.jsonl'}")


@command.define
def datamorgana(documents, out, dry_run, ledger, budget, concurrency, yes, batch, **asked):
    from ragkit.files import read_json
    from ragkit.synth.datamorgana import estimate, load_config, make_questions
    from ragkit.synth.datamorgana.make import settings
    from ragkit.synth.datamorgana.report import beside
    from ragkit.synth.stages import BatchWritten
    from ragkit.synth.stamp import check_same

    ledger = ledger or out.with_suffix(".ledger.sqlite")
    options = _options(asked["author"], ledger, budget, concurrency, batch)
    if dry_run or options:
        for line in estimate(documents, **asked, author_options=_unwritten(options)):
            click.echo(line)
        if dry_run:
            return
    if out.exists():  # it is written last, so it is whole
        wanted = settings(documents, load_config(asked.pop("config")), **asked)
        report = beside(out, "report.json")
        check_same(read_json(report) if report.exists() else {}, wanted, f"{out} was made")
        click.echo(f"{out} is complete")
        return
    _confirm(options, yes or batch)
    with _progress(asked["questions"]) as progress:
        try:
            made = make_questions(documents, **asked, progress=progress, author_options=options)
        except BatchWritten as written:
            return click.echo(str(written))
    made.write(out)
    click.echo(f"{len(made.rows):,} questions in {out}")
    if made.left_out:
        click.echo(f"{len(made.left_out):,} left out: see {beside(out, 'left_out.jsonl')}")


@command.define
def sample(out):
    from ragkit import paths
    from ragkit.synth.sample import write_sample

    out = out or paths.SAMPLE
    with _progress(1) as progress:
        files = write_sample(out, progress=progress)
    click.echo(f"{files} files in {out}")


def _options(author, ledger, budget, concurrency, batch=None):
    """Return how a model is asked, or None for the offline author."""
    from ragkit.synth.author import AuthorOptions

    offline = author == "offline" and not batch  # whose options are refused
    return None if offline else AuthorOptions(ledger, budget, concurrency, batch=batch)


def _unwritten(options):
    """Return options without a ledger that does not exist: an estimate leaves no file behind."""
    kept = not options or options.ledger.exists()
    return options if kept else replace(options, ledger=None, batch=None)


def _confirm(options, yes) -> None:
    if options and not yes:
        click.confirm("Go ahead?", abort=True, err=True)


@contextmanager
def _progress(total: int):
    """Yield a progress function that moves a bar through stages of different lengths."""
    from tqdm import tqdm

    with tqdm(total=total, unit="step", leave=False, disable=None) as bar:

        def progress(stage: str, done: int, total: int) -> None:
            bar.set_description(stage, refresh=False)
            bar.total, bar.n = total, done
            bar.refresh()

        yield progress


def _show(summary: dict) -> None:
    for name, value in summary.items():
        if isinstance(value, dict):
            click.echo(f"{name}: {sum(value.values()):,}")
            for part, count in value.items():
                click.echo(f"  {part:<26}{count:>10,}")
        else:
            click.echo(f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value}")
