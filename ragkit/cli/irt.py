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
