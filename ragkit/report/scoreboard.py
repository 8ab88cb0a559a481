"""All printed numbers beside all measured ones, over every notebook of a run, and in the README.

>>> board = exported()
>>> drift(board, board).empty
True
>>> collect("sample", [])["measured"].tolist(), reasons("sample", "")
([], {})
>>> write(board, "my-profile").name
'scoreboard.csv'
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from ragkit import paths
from ragkit.errors import DataError, MissingData
from ragkit.report import experiments, figures, pipeline, results, tables

README = paths.ROOT / "README.md"
PAGE = Path(__file__).with_name("readme.md")
START, END = "<!-- generated: ragkit readme -->", "<!-- end of generated part -->"


def path(profile: str) -> Path:
    """Return where a profile's scoreboard is: `build/PROFILE/results/scoreboard.csv`."""
    return results.folder(profile) / "results" / "scoreboard.csv"


def collect(profile: str, notebooks: list[str]) -> pd.DataFrame:
    """Return the measured numbers of several notebooks and of the experiments that were run."""
    frames = [results.read(profile, name, "measured") for name in notebooks]
    frames = [frame.fillna({"substitute": "", "note": ""}) for frame in frames]
    return joined(frames, experiments.measured(profile)[tables.MEASURED])


def joined(frames: list[pd.DataFrame], ran: pd.DataFrame) -> pd.DataFrame:
    """Return measured numbers in one frame; those of experiments stand in the place of others."""
    taken = pd.MultiIndex.from_frame(ran[tables.KEY])
    kept = [one[~pd.MultiIndex.from_frame(one[tables.KEY]).isin(taken)] for one in frames]
    filled = [frame for frame in (*kept, ran) if len(frame)]
    return pd.concat(filled or [tables.nothing()], ignore_index=True)


def reasons(profile: str, data: str) -> dict[str, str]:
    """Return, for tables whose notebook cannot run, why: "PAPER:TABLE" to words."""
    plan = pipeline.make_plan(profile, data or None)
    return {
        table: "{} did not run: {} ({})".format(step.name, *plan.missing[step.name])
        for step in plan.steps
        if step.name in plan.missing
        for table in step.covers
    }


def write(board: pd.DataFrame, profile: str) -> Path:
    """Write the scoreboard, numbers to ten significant digits."""
    return results.write_frame(board, path(profile))


def read(source: Path) -> pd.DataFrame:
    """Return a scoreboard written by `write`."""
    return pd.read_csv(source, dtype={"table": str, "printed": str, "note": str, "status": str})


def render(board: pd.DataFrame) -> str:
    """Return the generated part (`readme.md`): counts by paper and status, LiveRAG's Table 4, figures.

    `board` is a scoreboard of the profile "paper".
    """
    counts = tables.counts(board)
    counts = counts.loc[:, counts.any()].assign(matching=matching(board))
    counts = counts.rename(index=figures.NAMES).rename(columns={"matching": "what matches"})
    counts = counts.fillna("").reset_index()
    table4 = tables.wide(board[(board["paper"] == "liverag") & (board["table"] == "4")])
    cells = pd.DataFrame(index=pd.Index(table4.index.map(figures.NAMES), name="set"))
    for column in dict.fromkeys(column for column, _ in table4.columns):
        pairs = zip(table4[column, "printed"], table4[column, "measured"], strict=True)
        cells[column] = [f"{printed} / {measured}" for printed, measured in pairs]
    return PAGE.read_text("utf-8").format(
        start=START,
        end=END,
        counts=counts.to_markdown(index=False),
        table=cells.to_markdown(disable_numparse=True),
        figures="\n\n".join(f"![{t}](figures/{f})" for t, f in figures.STYLE["strip"].items()),
    )


def matching(board: pd.DataFrame) -> pd.Series:
    """Return, by paper, in words how many numbers of each metric match: "32 gold documents"."""
    rows = board[(board["status"] == "match") & (board["table"] != "leaderboard")]
    found = rows.groupby("paper")["metric"].value_counts().reset_index()
    named = found["metric"].str.removeprefix("n_").str.replace("_", " ")
    words = found["count"].astype(str) + " " + named
    return words.groupby(found["paper"]).agg(", ".join)


def update(text: str, part: str) -> str:
    """Return the README's text with its generated part replaced."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise DataError(f"{README}: no lines {START} and {END}")
    return before + part + after


def exported() -> pd.DataFrame:
    """Return the committed scoreboard of the profile "paper"."""
    committed = paths.RESULTS / "scoreboard.csv"
    if not committed.is_file():
        raise MissingData(f"{committed} is not here", "make figures DATA=...")
    return read(committed)


def drift(board: pd.DataFrame, committed: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers whose status, or value at the printed decimals, differ from the committed."""
    both = board.merge(committed, on=tables.KEY, how="outer", suffixes=("", "_committed"))
    places = both["printed"].map(tables.decimals)
    # Half a printed unit; for substitutes, which hang on floats of a model, 1 % if that is more.
    slack = 0.5 * 10.0**-places
    loose = (0.01 * both["measured_committed"].abs()).where(both["status"] == "substitute", 0.0)
    far = (both["measured"] - both["measured_committed"]).abs() > np.maximum(slack, loose)
    lost = both["measured"].isna() != both["measured_committed"].isna()
    changed = both["status"] != both["status_committed"]
    columns = [*tables.KEY, "measured", "measured_committed", "status", "status_committed"]
    return both.loc[far | lost | changed, columns]
