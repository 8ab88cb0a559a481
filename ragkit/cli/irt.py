"""`ragkit irt`: fit item response models to files of scores."""

from __future__ import annotations

from pathlib import Path

import click

from ragkit.errors import DataError, MissingData


@click.group(name="irt")
def command():
    """Item response models of scores."""


def _read(path: Path):
    import pandas as pd

    if not path.exists():
        raise MissingData(f"{path} does not exist")
    name = path.name.lower()
    try:
        if name.endswith(".parquet"):
            return pd.read_parquet(path)
        if name.endswith((".csv", ".csv.gz")):
            ids = {"subject_id": str, "item_id": str}
            return pd.read_csv(
                path,
                dtype=ids,
                keep_default_na=False,
                na_values={"score": [""]},
                float_precision="round_trip",
            )
    except (ValueError, OSError, pd.errors.ParserError) as error:
        raise DataError(f"{path} cannot be read: {error}") from None
    raise DataError(f"{path} is not .csv, .csv.gz or .parquet")


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
    "fractional where scores pile up at the ends; graded for a few ordered levels (--engine em).",
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
    type=click.Choice(["map", "em", "nuts", "py-irt"]),
    default="map",
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
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--group", default=None, metavar="COLUMN", help="Column of the judge or condition.")
@click.option(
    "--assume-equal",
    is_flag=True,
    help="Allow parts without a shared item, assuming equally able subjects.",
)
def fit(scores, out, model, likelihood, disc, engine, score_range, seed, group, assume_equal):
    """Fit SCORES, a long table with the columns subject_id, item_id and score.

    Writes items.csv, subjects.csv and fit.json (and facets.csv with --group) to the folder.
    """
    from ragkit import irt

    frame = _read(scores)
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
    for note in result.info["notes"]:
        click.echo(f"note: {note}", err=True)
