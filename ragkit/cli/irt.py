"""`ragkit irt`: fit item response models to files of scores."""

from __future__ import annotations

from pathlib import Path

import click

from ragkit.errors import DataError


@click.group(name="irt")
def command():
    """Item response models of scores."""


@command.command()
@click.argument("scores", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), required=True, help="Folder to write to.")
@click.option("--model", type=click.Choice(["1pl", "2pl"]), default="2pl", show_default=True)
@click.option(
    "--likelihood",
    type=click.Choice(["cb", "bernoulli", "fractional", "graded"]),
    default="cb",
    show_default=True,
    help="Continuous Bernoulli (the paper's); Bernoulli for scores at the two ends of the range; "
    "fractional where scores pile up at the ends; graded for a few ordered levels.",
)
@click.option(
    "--disc",
    type=click.Choice(["positive", "signed"]),
    default="positive",
    show_default=True,
    help="May a discrimination be negative?",
)
@click.option(
    "--engine",
    type=click.Choice(["em", "nuts", "py-irt"]),
    default="em",
    show_default=True,
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
@click.option("--metric", metavar="NAME", help="The metric to fit, of a file with several.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--group", default=None, metavar="COLUMN", help="Column of the judge or condition.")
@click.option(
    "--assume-equal",
    is_flag=True,
    help="Allow parts without a shared item, assuming equally able subjects.",
)
def fit(
    scores, out, model, likelihood, disc, engine, score_range, metric, seed, group, assume_equal
):
    """Fit SCORES, a long table with the columns subject_id, item_id and score.

    Writes items.csv, subjects.csv and fit.json (and facets.csv with --group) to the folder.
    """
    from ragkit import irt
    from ragkit.files import read_scores

    frame = read_scores(scores, metric=metric)
    try:
        result = irt.fit(
            frame,
            model=model,
            likelihood=likelihood,
            disc=disc,
            engine=engine,
            score_range=tuple(score_range),
            seed=seed,
            group=group,
            disconnected="assume-equal" if assume_equal else "raise",
        )
    except DataError as error:
        raise DataError(f"{scores}: {error.message}", error.hint) from None
    result.save(out)
    click.echo(f"{result!r} -> {out}")
    for note in [*result.info["problems"], *result.info["notes"]]:
        click.echo(f"note: {note}", err=True)
