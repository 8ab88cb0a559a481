"""`ragkit sweep`: run the systems of a file on documents and questions of one's own."""

from __future__ import annotations

from pathlib import Path

import click

from ragkit.errors import ModelError

FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(name="sweep")
@click.option("--systems", type=FILE, help="TOML file; default: notebooks/systems.toml.")
@click.option(
    "--documents",
    type=FILE,
    required=True,
    help="JSON lines, CSV or Parquet with doc_id and text; and, where known, title and source; "
    "or the released archive of EnterpriseRAG-Bench.",
)
@click.option(
    "--questions",
    type=FILE,
    required=True,
    help="JSON lines, CSV or Parquet with question_id and text; and, where known, answer and "
    "gold_doc_ids.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Folder to write to.",
)
@click.option("--jobs", type=click.IntRange(1), help="Processes. Default: one per core.")
@click.option("--system", "names", multiple=True, metavar="NAME", help="Run only this system.")
@click.option("-k", type=click.IntRange(1), default=10, show_default=True, help="List length.")
@click.option("--dry-run", is_flag=True, help="Show what would run, without running it.")
def command(systems, documents, questions, out, jobs, names, k, dry_run):
    """Run every system on every question; repeat --system to run several of them.

    Writes runs.parquet, answers.jsonl, scores.csv, summary.csv and failures.csv to the folder.
    Ranked lists and answers are kept in the cache folder: the same command continues a run that
    was stopped, and after a change computes what the change concerns.
    """
    import joblib

    from ragkit.files import read_frame
    from ragkit.systems import sweep
    from ragkit.systems.sweep.running import SYSTEMS

    declared = sweep.load(systems or SYSTEMS)
    if names:
        declared = sweep.select(declared, names)
    frames = [read_frame(documents, "documents"), read_frame(questions, "questions")]
    if dry_run:
        plan = sweep.plan(declared, *frames, k=k)
        click.echo(plan.to_string(index=False))
        click.echo(
            f"{len(plan)} systems x {len(frames[1]):,} questions over {len(frames[0]):,} "
            f"documents; {plan['to_rank'].sum():,} of {plan['cells'].sum():,} lists to rank"
        )
        return
    try:
        result = sweep.run(declared, *frames, jobs=jobs or joblib.cpu_count(), k=k)
    except KeyboardInterrupt:
        click.echo("\nragkit: the results so far are kept; the same command continues", err=True)
        raise
    paths = result.save(out)
    click.echo(result.summary().to_string(float_format="{:.3f}".format, na_rep=""))
    click.echo(f"{result!r} -> {', '.join(path.name for path in paths)} in {out}")
    if len(result.failures):
        first = result.failures.iloc[0]
        raise ModelError(
            f"{len(result.failures):,} cells failed; the first is {first['question_id']!r} by "
            f"{first['system']!r} ({first['stage']}): {first['reason']}",
            f"{out / 'failures.csv'} has them all; the same command tries them again",
        )
