"""All printed numbers beside all measured ones, over every notebook of a run."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ragkit.report import pipeline, results, tables


def path(profile: str) -> Path:
    """Return where a profile's scoreboard is: `build/PROFILE/results/scoreboard.csv`."""
    return results.folder(profile) / "results" / "scoreboard.csv"


def collect(profile: str, notebooks: list[str]) -> pd.DataFrame:
    """Return the measured numbers of several notebooks, with the notebook in each note."""
    frames = [tables.nothing()]
    for name in notebooks:
        frame = results.read(profile, name, "measured")
        for column in ("substitute", "note"):
            frame[column] = frame[column].fillna("").astype(str)
        if len(frame):
            frames.append(frame.astype({"measured": float}))
    return pd.concat(frames, ignore_index=True) if len(frames) > 1 else frames[0]


def reasons(profile: str, data: str) -> dict[str, str]:
    """Return, for tables whose notebook cannot run, why: "PAPER:TABLE" to words."""
    plan = pipeline.make_plan(profile, data or None)
    found = {}
    for step in plan.steps:
        if step.name in plan.missing:
            reason, how = plan.missing[step.name]
            for table in step.covers:
                found[table] = f"{step.name} did not run: {reason} ({how})"
    return found


def write(board: pd.DataFrame, profile: str) -> Path:
    """Write the scoreboard, numbers to ten significant digits."""
    return results.write_frame(board, path(profile))


def read(source: Path) -> pd.DataFrame:
    """Return a scoreboard written by `write`."""
    return pd.read_csv(source, dtype={"table": str, "printed": str, "note": str, "status": str})
