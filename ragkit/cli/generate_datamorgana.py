"""`ragkit generate datamorgana`: questions of configured kinds about the documents of a folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click


@click.command()
@click.option(
    "--documents",
    type=click.Path(path_type=Path),
    required=True,
    help="A folder with documents.jsonl and, for the offline author, facts.jsonl.",
)
@click.option("--questions", type=int, required=True, help="How many.")
@click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Categories and their probabilities (TOML). Default: LiveRAG's eight categorizations.",
)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default="datamorgana.jsonl",
    show_default=True,
    help="A new file; notes and a report are written beside it.",
)
@click.option("--author", default="offline", show_default=True, help="offline or openai:MODEL.")
@click.option("--dry-run", is_flag=True, help="Print counts, and for a model the cost; no more.")
@click.option(
    "--ledger",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where a model's answers are kept. Default: beside --out.",
)
@click.option("--budget", type=float, metavar="USD", help="The most that a model may cost.")
@click.option("--concurrency", type=click.IntRange(1), default=8, show_default=True)
@click.option("--yes", is_flag=True, help="Do not ask before a model is paid.")
def datamorgana(
    documents,
    questions,
    config,
    seed,
    out,
    author,
    dry_run,
    ledger,
    budget,
    concurrency,
    yes,
):
    """Generate LiveRAG-style questions with DataMorgana's categories.

    Without a model, the questions ask about the facts of a folder from `ragkit generate erb`, and
    the same options give the same bytes. A model asks about any documents. Its answers are kept in
    the ledger, so a run that was interrupted continues when the same command is given again.
    """
    from tqdm import tqdm

    from ragkit.synth.author import AuthorOptions, check_author
    from ragkit.synth.datamorgana import estimate, load_config, make_questions
    from ragkit.synth.datamorgana.make import settings

    check_author(author)
    options = None
    if author != "offline":
        options = AuthorOptions(ledger or out.with_suffix(".ledger.sqlite"), budget, concurrency)
    asked = {"questions": questions, "config": config, "seed": seed, "author": author}
    if dry_run or options:
        seen = options and Path(options.ledger).exists()
        fresh = options if seen or not options else replace(options, ledger=None)
        for line in estimate(documents, **asked, author_options=fresh):
            click.echo(line)
        if dry_run:
            return
    if out.exists():
        _same(out, settings(documents, load_config(config), questions, seed, author))
        click.echo(f"{out} is complete")
        return
    if options and not yes:
        click.confirm("Go ahead?", abort=True, err=True)
    with tqdm(total=questions, unit="step", leave=False, disable=None) as bar:

        def progress(stage: str, done: int, total: int) -> None:
            bar.set_description(stage)
            bar.total, bar.n = total, done
            bar.refresh()

        made = make_questions(
            documents,
            **asked,
            progress=progress,
            author_options=options,
        )
    made.write(out)
    used = made.report["documents"]["asked about"]
    click.echo(f"{len(made.rows):,} questions about {used:,} documents in {out}")
    failed = made.report.get("failed", {})
    if failed:
        click.echo(f"{sum(failed.values()):,} left out: see the report beside it")


def _same(out: Path, settings: dict) -> None:
    """Check that a finished file was made with these settings. It is written last, so it is whole."""
    from ragkit.files import read_json
    from ragkit.synth.datamorgana.make import beside
    from ragkit.synth.stamp import check_same

    path = beside(out, "report.json")
    found = read_json(path) if path.exists() else {}
    check_same(found, settings, f"{out} was made")
