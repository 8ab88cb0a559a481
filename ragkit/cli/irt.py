"""`ragkit irt`: fit item response models to files of scores."""

from __future__ import annotations

import click

from ragkit.cli import declare
from ragkit.files import named

command = declare.Group("irt")


@command.define
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


@command.command("short-form")
@click.argument("scores", type=click.Path(path_type=Path))
@click.option("--size", type=int, required=True, metavar="N", help="Number of items to choose.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder to write to.")
@click.option(
    "--family",
    metavar="COLUMN",
    help="Column of the family of a subject, such as the pipeline that it is a variant of: "
    "errors are then those of a new family.",
)
@click.option(
    "--range",
    "score_range",
    type=float,
    nargs=2,
    default=(0.0, 1.0),
    show_default=True,
    metavar="LOW HIGH",
    help="The range of the scores.",
)
@click.option("--metric", metavar="NAME", help="The metric to use, of a file with several.")
@click.option("--folds", type=int, default=20, show_default=True, help="Of the check; 0 for none.")
@click.option("--seed", type=int, default=0, show_default=True)
def short_form(scores, size, out, family, score_range, metric, folds, seed):
    """Choose the N items that estimate the mean score over all items best.

    SCORES is a long table with the columns subject_id, item_id and score. Writes items.csv and
    short_form.json, and check.csv: how well this and other ways to choose N items estimate the
    scores of subjects that were left out.
    """
    from ragkit import irt
    from ragkit.files import read_scores

    frame = read_scores(scores, metric=metric)
    families = None
    if family is not None:
        if family not in frame.columns:
            raise DataError(f"{scores}: no column {family!r}", f"found {', '.join(frame.columns)}")
        families = frame.groupby("subject_id")[family].first()
    given = {"families": families, "score_range": tuple(score_range), "seed": seed}
    try:
        form = irt.short_form(frame, size, **given)
        form.save(out)
        click.echo(f"{form!r} -> {out}")
        if folds:
            check = irt.check_short_forms(frame, [size], folds=folds, **given)
            check.to_csv(out / "check.csv", index=False)
            click.echo(check.round(4).to_string(index=False))
    except DataError as error:
        raise DataError(f"{scores}: {error.message}", error.hint) from None


@command.command()
@click.argument("form", type=click.Path(path_type=Path))
@click.argument("scores", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="CSV file to write.")
@click.option("--metric", metavar="NAME", help="The metric to use, of a file with several.")
def estimate(form, scores, out, metric):
    """Estimate full scores from SCORES on the items of a short form.

    FORM is the folder that `ragkit irt short-form` wrote. Prints the estimates with their 90 %
    intervals.
    """
    from ragkit import irt
    from ragkit.files import read_scores

    try:
        table = irt.load_short_form(form).estimate(read_scores(scores, metric=metric))
    except DataError as error:
        raise DataError(f"{scores}: {error.message}", error.hint) from None
    if out is not None:
        table.to_csv(out)
    click.echo(table.round(4).to_string())
