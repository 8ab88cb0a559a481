"""Where a notebook puts its products: `build/PROFILE/{figures,results,tables}/NOTEBOOK/`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from ragkit import paths
from ragkit.datasets import reported
from ragkit.errors import MissingData
from ragkit.files import atomic_path
from ragkit.report import figures, tables

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def folder(profile: str) -> Path:
    """Return the folder of a profile's products: `$RAGKIT_BUILD/PROFILE`, else `build/PROFILE`.

    >>> folder("sample").name
    'sample'
    """
    return Path(os.environ.get("RAGKIT_BUILD", paths.BUILD)) / profile


class Results:
    """The products of one notebook; sets the style of all its figures.

    `notebook` is its name without suffix, `profile` the name of a profile.

    >>> out = Results("my-notebook", "my-profile")
    >>> _ = out.frame(pd.DataFrame({"score": [1 / 3]}), "scores")
    >>> read("my-profile", "my-notebook", "scores")
          score
    0  0.333333
    """

    def __init__(self, notebook: str, profile: str):
        self.notebook, self.root = notebook, folder(profile)
        self._measured = tables.nothing()
        figures.use_style()

    def figure(self, fig: Figure, name: str):
        """Save a figure as PDF and PNG; return the saved PNG for display."""
        from IPython.display import Image

        path = figures.save(fig, self.root / "figures" / self.notebook / name)
        width = int(fig.get_figwidth() * 110)
        return Image(filename=str(path), width=width, alt=figures.told(path))

    def frame(self, frame: pd.DataFrame, name: str) -> Path:
        """Save a frame as CSV, numbers to ten significant digits."""
        return write_frame(frame, self.root / "results" / self.notebook / f"{name}.csv")

    def table(self, frame: pd.DataFrame, name: str, *, caption: str = "", **marked):
        """Save a table as HTML, Markdown and LaTeX; return it for display.

        `marked` are the options of `ragkit.report.tables.show` by which the best values are bold.
        """
        tables.write(frame, self.root / "tables" / self.notebook / name, caption=caption, **marked)
        return tables.show(frame, caption, **marked)

    def versus(self, paper: str, table: str, values: pd.DataFrame, *, caption: str = "", **options):
        """Set measured numbers beside the printed ones of a table; save and return the table.

        The numbers are kept for `board` and `export`. A second call for the same table adds
        numbers to it. Printed rows without a measured number are not shown, unless none has one.

        `values` and `options` are those of `ragkit.report.tables.fill`; `caption` follows the table's
        name. `DataError` if a value fits no printed number, more than one, or one that has a value.
        """
        printed = reported.load(paper, table)
        found = tables.fill(printed, values, **options)
        self._measured = pd.concat([self._measured, found], ignore_index=True)
        board = self.board(paper, table)
        rows = set(board.loc[board["measured"].notna(), "row"])
        shown = board[board["row"].isin(rows)] if rows else board
        name = f"table-{table}" if table.isdigit() else table.replace(":", "-")
        title = tables.title(paper, table) + (f": {caption}" if caption else "")
        return self.table(tables.wide(shown), name, caption=title)

    def board(self, paper: str = "", table: str = "") -> pd.DataFrame:
        """Return what `versus` has compared, as `ragkit.report.tables.compare` does.

        By default of all tables that `versus` was called for, else of the one given.
        """
        found = self._measured
        if paper:
            found = found[(found["paper"] == paper) & (found["table"] == table)]
            return tables.compare(reported.load(paper, table), found)
        keys = found[["paper", "table"]].drop_duplicates().itertuples(index=False)
        printed = [reported.load(*key) for key in keys]
        return tables.compare(pd.concat(printed), found) if printed else found

    def statuses(self) -> str:
        """Return the measured numbers by status in words: "5 match, 1 differs"."""
        measured = self.board().dropna(subset="measured")
        states = list(measured["status"]) if len(measured) else []
        counts = {state: states.count(state) for state in tables.STATUSES}
        return ", ".join(f"{n} {state}" for state, n in counts.items() if n) or "none"

    def export(self, **frames: pd.DataFrame) -> Path:
        """Save frames by name, and the measured numbers for the scoreboard; return the latter."""
        for name, frame in frames.items():
            self.frame(frame, name)
        return self.frame(self._measured, "measured")


def write_frame(frame: pd.DataFrame, path: Path) -> Path:
    """Write a frame as CSV, numbers to ten significant digits; return its path."""
    with atomic_path(path) as temporary:
        frame.to_csv(temporary, index=False, float_format="%.10g", lineterminator="\n")
    return path


def read(profile: str, notebook: str, name: str) -> pd.DataFrame:
    """Return a frame that a notebook saved; `MissingData` if it has not run in this profile."""
    path = folder(profile) / "results" / notebook / f"{name}.csv"
    if not path.is_file():
        raise MissingData(f"{path} is not here", f"make reproduce PROFILE={profile}")
    return pd.read_csv(path, dtype={"table": str})
