"""Where a notebook puts what it made: `build/PROFILE/{figures,results,tables}/NOTEBOOK/`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ragkit import paths
from ragkit.errors import MissingData
from ragkit.files import atomic_path
from ragkit.report import figures, tables

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def folder(profile: str) -> Path:
    """Return the folder of a profile's products: `$RAGKIT_BUILD/PROFILE`, else `build/PROFILE`."""
    return Path(os.environ.get("RAGKIT_BUILD", paths.BUILD)) / profile


class Results:
    """The products of one notebook.

    Parameters
    ----------
    notebook : str
        Its name, without suffix.
    profile : str
    """

    def __init__(self, notebook: str, profile: str):
        self.notebook = notebook
        self.root = folder(profile)

    def figure(self, fig: Figure, name: str):
        """Save a figure as PDF and PNG; return the saved PNG for display."""
        from IPython.display import Image

        path = figures.save(fig, self.root / "figures" / self.notebook / name)
        return Image(filename=str(path), width=int(fig.get_figwidth() * 110))

    def frame(self, frame: pd.DataFrame, name: str) -> Path:
        """Save a frame as CSV, numbers to ten significant digits."""
        path = self.root / "results" / self.notebook / f"{name}.csv"
        with atomic_path(path) as temporary:
            frame.to_csv(temporary, index=False, float_format="%.10g", lineterminator="\n")
        return path

    def table(self, frame: pd.DataFrame, name: str, *, caption: str = ""):
        """Save a table as HTML, Markdown and LaTeX; return it for display."""
        tables.write(frame, self.root / "tables" / self.notebook / name, caption=caption)
        return tables.show(frame, caption)

    def measured(self, *frames: pd.DataFrame) -> Path:
        """Save measured numbers (see `tables.fill`) for the scoreboard."""
        import pandas as pd

        return self.frame(pd.concat(frames, ignore_index=True), "measured")


def read(profile: str, notebook: str, name: str) -> pd.DataFrame:
    """Return a frame that a notebook saved.

    Raises
    ------
    MissingData
        If that notebook has not run in this profile.
    """
    import pandas as pd

    path = folder(profile) / "results" / notebook / f"{name}.csv"
    if not path.is_file():
        raise MissingData(f"{path} is not here", f"make reproduce PROFILE={profile}")
    return pd.read_csv(path, dtype={"table": str}, keep_default_na=True)
