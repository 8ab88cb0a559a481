"""`ragkit generate`: generate a company's documents and questions from a seed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from ragkit.cli.generate_datamorgana import datamorgana


@click.group(help="Generate documents and questions: a company from a seed.")
def command():
    pass


command.add_command(datamorgana)


@command.command()
@click.option("--out", type=click.Path(path_type=Path), required=True, help="A new folder.")
@click.option("--documents", type=int, required=True, help="All documents, noise included.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--questions", type=int, help="Default: one for ten documents, at most 500.")
@click.option("--metadata-questions", type=int, help="Default: a fifth of the questions.")
@click.option("--author", default="offline", show_default=True, help="offline or openai:MODEL.")
@click.option("--dry-run", is_flag=True, help="Print counts, and for a model the cost; no more.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option(
    "--ledger",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where a model's answers are kept. Default: OUT/ledger.sqlite.",
)
@click.option("--budget", type=float, metavar="USD", help="The most that a model may cost.")
@click.option("--concurrency", type=click.IntRange(1), default=8, show_default=True)
@click.option("--yes", is_flag=True, help="Do not ask before a model is paid.")
def erb(
    out,
    documents,
    seed,
    questions,
    metadata_questions,
    author,
    dry_run,
    jobs,
    ledger,
    budget,
    concurrency,
    yes,
):
    """Generate a benchmark in the layout of EnterpriseRAG-Bench.

    The same options give the same bytes, whatever --jobs. A run that was interrupted continues
    when the same command is given again.
    """
    from tqdm import tqdm

    from ragkit.synth.author import AuthorOptions
    from ragkit.synth.pipeline import Plan, Settings, generate

    settings = Settings(documents, seed, questions, metadata_questions, author)
    options = None
    if author != "offline":
        options = AuthorOptions(ledger or out / "ledger.sqlite", budget, concurrency)
    if dry_run or options:
        plan = Plan(settings)
        if dry_run:
            _show(plan.summary())
        if options:
            from ragkit.synth.model import estimate

            # An estimate leaves no file behind.
            seen = dry_run and Path(options.ledger).exists()
            click.echo(str(estimate(plan, options if seen else replace(options, ledger=None))))
            if not dry_run and not yes:
                click.confirm("Go ahead?", abort=True, err=True)
        if dry_run:
            return
    with tqdm(total=1, unit="step", leave=False, disable=None) as bar:
        statistics = generate(
            out,
            documents=documents,
            seed=seed,
            questions=questions,
            metadata_questions=metadata_questions,
            author=author,
            jobs=jobs,
            progress=_follow(bar),
            author_options=options,
        )
    made = sum(row["documents"] for row in statistics["sources"].values())
    asked = sum(row["questions"] for row in statistics["questions"].values())
    left = sum(stage.get("left_out", 0) for stage in statistics["stages"].values())
    click.echo(f"{made:,} documents and {asked:,} questions in {out}")
    if left:
        click.echo(f"{left:,} documents were left out by the author: see left_out.jsonl in stages")


@command.command()
@click.option("--out", type=click.Path(path_type=Path), required=True, help="A new folder.")
@click.option("--articles", type=int, required=True, help="All three types together.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--expertwritten", type=int, help="Default: 200, at most two thirds of the articles.")
@click.option("--simulated", type=int, help="Default: 200, at most two thirds of the articles.")
@click.option("--dry-run", is_flag=True, help="Print counts; no more.")
def helpcentre(out, articles, seed, expertwritten, simulated, dry_run):
    """Generate a help centre and its three question sets in the layout of WixQA.

    The synthetic set has one question for each article. No language model is used, and the same
    options give the same bytes.
    """
    from tqdm import tqdm

    from ragkit.synth.helpcentre import HelpCentre, generate_helpcentre

    counts = {"articles": articles, "seed": seed}
    counts |= {"expertwritten": expertwritten, "simulated": simulated}
    if dry_run:
        _show(HelpCentre(**counts).summary())
        return
    with tqdm(total=articles, leave=False, disable=None) as bar:
        found = generate_helpcentre(out, **counts, progress=_follow(bar))
    asked = sum(row["questions"] for row in found["sets"].values())
    click.echo(f"{articles:,} articles and {asked:,} questions in {out}")


@command.command()
@click.option("--out", type=click.Path(path_type=Path), help="Default: data/sample.")
def sample(out):
    """Generate the sample that comes with ragkit again, byte for byte."""
    from tqdm import tqdm

    from ragkit import paths
    from ragkit.synth.sample import write_sample

    out = out or paths.SAMPLE
    with tqdm(total=1, unit="step", leave=False, disable=None) as bar:
        files = write_sample(out, progress=_follow(bar))
    click.echo(f"{files} files in {out}")


def _follow(bar):
    """Return a progress function that moves a bar through stages of different lengths."""

    def progress(stage: str, done: int, total: int) -> None:
        bar.set_description(stage, refresh=False)
        bar.total, bar.n = total, done
        bar.refresh()

    return progress


def _show(summary: dict) -> None:
    for name, value in summary.items():
        if isinstance(value, dict):
            click.echo(f"{name}: {sum(value.values()):,}")
            for part, count in value.items():
                click.echo(f"  {part:<26}{count:>10,}")
        else:
            click.echo(f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value}")
