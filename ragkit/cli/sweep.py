"""`ragkit sweep`: run the systems of a file on documents and questions of one's own."""

from __future__ import annotations

import click

from ragkit.errors import ModelError


def run(systems, documents, questions, out, jobs, names, k, dry_run):
    import joblib

    from ragkit.files import held, read_frame
    from ragkit.systems import sweep
    from ragkit.systems.sweep.running import SYSTEMS, free

    declared = sweep.load(systems or SYSTEMS)
    if names:
        declared = sweep.select(declared, names)
    elif systems is None:
        declared, left_out = free(declared)
        if left_out:
            click.echo(f"left out unless named with --system: {', '.join(left_out)}", err=True)
    frames = [read_frame(documents, "documents"), read_frame(questions, "questions")]
    if dry_run:
        plan = sweep.plan(declared, *frames, k=k)
        click.echo(plan.to_string(index=False))
        click.echo(
            f"{len(plan)} systems x {len(frames[1]):,} questions over {len(frames[0]):,} "
            f"documents; {plan['to_rank'].sum():,} of {plan['cells'].sum():,} lists to rank"
        )
        return
    with held(out):
        try:
            result = sweep.run(declared, *frames, jobs=jobs or joblib.cpu_count(), k=k)
        except KeyboardInterrupt:
            text = "\nragkit: the results so far are kept; the same command continues"
            click.echo(text, err=True)
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
