"""`ragkit irt`: fit item response models to files of scores."""

from __future__ import annotations

import click

from ragkit.files import named, require


def fit(scores, out, metric, assume_equal, **options):
    from ragkit import irt
    from ragkit.files import read_frame

    click.echo(f"reading {scores}", err=True)
    frame = read_frame(scores, "scores", metric=metric)
    subjects, items = frame["subject_id"].nunique(), frame["item_id"].nunique()
    click.echo(
        f"fitting {len(frame):,} scores of {subjects:,} subjects on {items:,} items by "
        f"{options['engine']}",
        err=True,
    )
    disconnected = "assume-equal" if assume_equal else "raise"
    with named(scores):
        result = irt.fit(frame, disconnected=disconnected, **options)
    result.save(out)
    click.echo(f"{result!r} -> {out}")
    for note in [*result.info["problems"], *result.info["notes"]]:
        click.echo(f"note: {note}", err=True)


def short_form(scores, size, out, family, metric, folds, **options):
    from ragkit import irt
    from ragkit.files import read_frame

    frame = read_frame(scores, "scores", metric=metric)
    with named(scores):
        if family is not None:
            require(dict.fromkeys(frame.columns), [family], "line 1")
            options["families"] = frame.groupby("subject_id")[family].first()
        form = irt.short_form(frame, size, **options)
        form.save(out)
        click.echo(f"{form!r} -> {out}")
        if folds:
            check = irt.check_short_forms(frame, [size], folds=folds, **options)
            check.to_csv(out / "check.csv", index=False)
            click.echo(check.round(4).to_string(index=False))


def estimate(form, scores, out, metric):
    from ragkit import irt
    from ragkit.files import read_frame

    known = irt.load_short_form(form)
    with named(scores):
        table = known.estimate(read_frame(scores, "scores", metric=metric))
    if out is not None:
        table.to_csv(out)
    click.echo(table.round(4).to_string())
