"""`ragkit generate`: generate a company's documents and questions from a seed."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click

FILE = click.Path(dir_okay=False, path_type=Path)
new_folder = click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="A new folder."
)
seeded = click.option("--seed", type=int, default=0, show_default=True)


def authored(function):
    """Add the options of a command that a model may write for: they arrive as keywords."""
    options = [
        click.option("--author", default="offline", show_default=True, help="or openai:MODEL."),
        click.option("--dry-run", is_flag=True, help="Print counts, and for a model the cost."),
        click.option("--ledger", type=FILE, help="Keeps a model's answers. Default: with --out."),
        click.option("--budget", type=float, metavar="USD", help="The most that a model may cost."),
        click.option("--concurrency", type=click.IntRange(1), default=8, show_default=True),
        click.option("--yes", is_flag=True, help="Do not ask before a model is paid."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@click.group(help="Generate documents and questions: a company from a seed.")
def command():
    pass


@command.command()
@new_folder
@click.option("--documents", type=int, required=True, help="All documents, noise included.")
@seeded
@click.option("--questions", type=int, help="Default: one for ten documents, at most 500.")
@click.option("--metadata-questions", type=int, help="Default: a fifth of the questions.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@authored
def erb(out, dry_run, jobs, ledger, budget, concurrency, yes, **counts):
    """Generate a benchmark in the layout of EnterpriseRAG-Bench.

    The same options give the same bytes, whatever --jobs. A run that was interrupted continues
    when the same command is given again.
    """
    from ragkit.synth.pipeline import Plan, Settings, generate

    settings = Settings(**counts)
    options = _options(settings.author, ledger or out / "ledger.sqlite", budget, concurrency)
    if dry_run or options:
        plan = Plan(settings)
        if dry_run:
            _show(plan.summary())
        if options:
            from ragkit.synth.model import estimate

            click.echo(str(estimate(plan, _unwritten(options) if dry_run else options)))
        if dry_run:
            return
        _confirm(options, yes)
    with _progress(1) as progress:
        statistics = generate(out, **counts, jobs=jobs, progress=progress, author_options=options)
    made = sum(row["documents"] for row in statistics["sources"].values())
    asked = sum(row["questions"] for row in statistics["questions"].values())
    left = sum(stage.get("left_out", 0) for stage in statistics["stages"].values())
    click.echo(f"{made:,} documents and {asked:,} questions in {out}")
    if left:
        click.echo(f"{left:,} documents were left out by the author: see left_out.jsonl in stages")


@command.command()
@new_folder
@click.option("--articles", type=int, required=True, help="All three types together.")
@seeded
@click.option("--expertwritten", type=int, help="Default: 200, at most two thirds of the articles.")
@click.option("--simulated", type=int, help="Default: 200, at most two thirds of the articles.")
@click.option("--dry-run", is_flag=True, help="Print counts; no more.")
def helpcentre(out, dry_run, **counts):
    """Generate a help centre and its three question sets in the layout of WixQA.

    The synthetic set has one question for each article. No language model is used, and the same
    options give the same bytes.
    """
    from ragkit.synth.helpcentre import HelpCentre, generate_helpcentre

    if dry_run:
        _show(HelpCentre(**counts).summary())
        return
    with _progress(counts["articles"]) as progress:
        found = generate_helpcentre(out, **counts, progress=progress)
    asked = sum(row["questions"] for row in found["sets"].values())
    click.echo(f"{counts['articles']:,} articles and {asked:,} questions in {out}")


@command.command()
@click.option(
    "--documents",
    type=click.Path(path_type=Path),
    required=True,
    help="A folder with documents.jsonl and, for the offline author, facts.jsonl.",
)
@click.option("--questions", type=int, required=True, help="How many.")
@click.option("--config", type=FILE, help="Categories (TOML). Default: those of LiveRAG.")
@seeded
@click.option("--out", type=FILE, default="datamorgana.jsonl", show_default=True)
@authored
def datamorgana(documents, out, dry_run, ledger, budget, concurrency, yes, **asked):
    """Generate LiveRAG-style questions with DataMorgana's categories.

    Without a model, the questions ask about the facts of a folder from `ragkit generate erb`, and
    the same options give the same bytes. A model asks about any documents. Its answers are kept in
    the ledger, so a run that was interrupted continues when the same command is given again. Notes
    and a report are written beside the questions.
    """
    from ragkit.files import read_json
    from ragkit.synth.author import check_author
    from ragkit.synth.datamorgana import estimate, load_config, make_questions
    from ragkit.synth.datamorgana.make import beside, settings
    from ragkit.synth.stamp import check_same

    check_author(asked["author"])
    ledger = ledger or out.with_suffix(".ledger.sqlite")
    options = _options(asked["author"], ledger, budget, concurrency)
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
    _confirm(options, yes)
    with _progress(asked["questions"]) as progress:
        made = make_questions(documents, **asked, progress=progress, author_options=options)
    made.write(out)
    used = made.report["documents"]["asked about"]
    click.echo(f"{len(made.rows):,} questions about {used:,} documents in {out}")
    failed = made.report.get("failed", {})
    if failed:
        click.echo(f"{sum(failed.values()):,} left out: see the report beside it")


@command.command()
@click.option("--out", type=click.Path(path_type=Path), help="Default: data/sample.")
def sample(out):
    """Generate the sample that comes with ragkit again, byte for byte."""
    from ragkit import paths
    from ragkit.synth.sample import write_sample

    out = out or paths.SAMPLE
    with _progress(1) as progress:
        files = write_sample(out, progress=progress)
    click.echo(f"{files} files in {out}")


def _options(author, ledger, budget, concurrency):
    """Return how a model is asked, or None for the offline author."""
    from ragkit.synth.author import AuthorOptions

    return None if author == "offline" else AuthorOptions(ledger, budget, concurrency)


def _unwritten(options):
    """Return options without a ledger that does not exist: an estimate leaves no file behind."""
    return options if not options or options.ledger.exists() else replace(options, ledger=None)


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
