"""The README's generated part is what the exported results say."""

from __future__ import annotations

import numpy as np
import pytest

from ragkit import paths
from ragkit.errors import DataError
from ragkit.report import experiments, figures, pipeline, scoreboard


def test_the_readme_is_not_stale():
    text = scoreboard.README.read_text("utf-8")
    part = scoreboard.render(scoreboard.exported())
    assert part in text, "the README is stale: make figures, or ragkit readme"


def test_the_strip_and_the_table_of_notebooks_are_complete():
    for path in [paths.FIGURES / name for name in figures.STYLE["strip"].values()]:
        assert path.is_file(), f"{path} is missing: make figures"
    text = scoreboard.README.read_text("utf-8")
    for step in pipeline.catalogue():
        assert f"`{step.name}`" in text, step.name


def test_the_exported_numbers_are_of_the_paper_profile():
    board = scoreboard.exported()
    # What the sample stands in for, it stands in for by name.
    stand_in = board["note"].fillna("").str.contains("embedded sample")
    lost = board["value"].isna()  # nothing to stand in for
    assert set(board.loc[stand_in & ~lost, "status"]) <= {"substitute"}
    assert set(board.loc[stand_in & lost, "status"]) <= {"not available"}
    # EnterpriseRAG-Bench's generation and sizes (24), LiveRAG's bounds of difficulty (31)
    tables = {"2", "3", "4", "9", "text:4", "text:4.1", "text:4.3", "appendix:D.1"}
    assert set(board.loc[stand_in, "table"]) <= tables
    row = board.query("paper == 'liverag' and table == '4' and row == 'liverag'")
    assert row["status"].tolist() == ["match"] * 5


def test_update_replaces_only_the_generated_part():
    text = f"before\n{scoreboard.START}\nold\n{scoreboard.END}\nafter\n"
    part = f"{scoreboard.START}\nnew\n{scoreboard.END}"
    assert scoreboard.update(text, part) == f"before\n{part}\nafter\n"
    with pytest.raises(DataError):
        scoreboard.update("no marks", part)


def test_drift_finds_what_changed():
    board = scoreboard.exported()
    assert scoreboard.drift(board, board).empty
    place = board.index[board["status"] == "match"][0]
    other = board.copy()
    other.loc[place, "measured"] += 1
    assert len(scoreboard.drift(other, board)) == 1
    other = board.copy()
    other.loc[place, ["measured", "status"]] = [np.nan, "not run"]
    assert len(scoreboard.drift(other, board)) == 1


def test_every_exported_result_belongs_to_a_notebook():
    names = {step.name for step in pipeline.catalogue()} | {experiments.EXPORTED.name}
    for folder in (paths.FIGURES, paths.RESULTS):
        for path in folder.iterdir():
            if path.is_dir():
                assert path.name in names, path
