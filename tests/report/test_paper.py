"""Figures and tables for a paper: widths, fonts, equal bytes, LaTeX that compiles."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest
from pypdf import PdfReader

from ragkit.errors import MissingData, UsageError
from ragkit.report import figures, paper, pipeline, results
from ragkit.report.plots import base, corpus
from tests.conftest import bytes_of

HOSTILE = "50 % of A & B_c #1 {x} ~ ^ \\ $y$ τ ≤ → “q” é 漢 −1"


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """A run of the profile "sample" with two figures and three tables."""
    monkeypatch.setenv("RAGKIT_BUILD", str(tmp_path))
    out = results.Results("11-wixqa-retrieval", "sample")
    table = pd.DataFrame({"system": ["bm25", "dense"], "value": [0.4, 0.5]})
    out.figure(base.forest(table, "system", "recall"), "column")
    fig, ax = base.axes("page", 2)
    ax.xaxis.set_major_formatter(lambda value, place: f"{value:g}")
    out.figure(fig, "page")
    out.table(pd.DataFrame({"a_b": [HOSTILE], "n": [1.5]}), "hostile", caption=HOSTILE)
    wide = pd.DataFrame({f"column {n}": ["word " * 3] for n in range(12)})
    out.table(wide, "wide")
    index = pd.Index([f"q{n}" for n in range(90)], name="item_id")
    out.table(pd.DataFrame({"x": np.arange(90) / 7}, index=index), "long", caption="Long")
    return pipeline.make_plan("sample")


def test_widths_fonts_and_sheet(plan):
    folder = paper.export(plan, "acl")
    assert (folder / "contact-sheet.png").is_file()
    for name, inches in {"column": 3.03, "page": 6.3}.items():
        page = PdfReader(folder / "figures" / f"11-wixqa-retrieval-{name}.pdf").pages[0]
        assert float(page.mediabox.width) / 72 == pytest.approx(inches, abs=0.01)
    raw = (folder / "figures" / "11-wixqa-retrieval-column.pdf").read_bytes()
    assert b"STIX" in raw
    assert b"FontFile2" in raw
    text = (folder / "figures.tex").read_text("utf-8")
    assert re.findall(r"begin\{(figure\*?)\}", text) == ["figure", "figure*"]
    assert r"\label{fig:11-wixqa-retrieval-page}" in text
    assert "Across: recall" in text


def test_the_same_run_gives_the_same_bytes(plan):
    first = bytes_of(paper.export(plan, "slides"))
    assert first == bytes_of(paper.export(plan, "slides"))
    assert len(first) == 2 * 2 + 2 + 3 + 3


def test_numbers_stand_to_the_right_and_wide_tables_shrink(plan):
    folder = plan.root / "tables" / "11-wixqa-retrieval"
    assert r"\begin{tabular}{p{4cm}r}" in (folder / "hostile.tex").read_text("utf-8")
    assert r"\resizebox{\linewidth}{!}" in (folder / "wide.tex").read_text("utf-8")
    long = (folder / "long.tex").read_text("utf-8")
    assert r"\begin{longtable}" in long
    assert r"item\_id" in long


def test_latex_compiles(plan):
    if not shutil.which("pdflatex"):
        pytest.skip("no pdflatex is installed")
    folder = paper.export(plan, "ieee")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=folder, capture_output=True, text=True, errors="replace", timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-1500:]
    said = "".join(page.extract_text() for page in PdfReader(folder / "paper.pdf").pages)
    assert "50 % of A & B_c #1 {x}" in said


def test_unknown_styles_and_runs_without_figures_are_refused(plan, tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="did you mean 'ieee'"):
        paper.export(plan, "iee")
    monkeypatch.setenv("RAGKIT_BUILD", str(tmp_path / "empty"))
    with pytest.raises(MissingData, match="no saved figures"):
        paper.export(pipeline.make_plan("sample"), "acl")


def test_a_note_below_leaves_room_for_the_panels():
    table = pd.DataFrame({"type": ["expert"] * 2, "value": [1.0, 2.0], "part": ["a", "b"]})
    notes = ["median and quartiles", "of a_file_with_a_very_long_name_indeed.jsonl 160 of 200 rows"]
    fig = base.forest(table, "type", "tokens", panels={"col": "part"}, notes=notes)
    fig.canvas.draw()
    assert min(ax.get_position().height * fig.get_figheight() for ax in fig.axes) > 0.2


def test_numbers_of_clusters_do_not_cover_each_other():
    points = pd.DataFrame({"x": [0.0, 10.0], "y": [0.0, 10.0]})
    places = pd.DataFrame({"x": [5.0, 5.0, 5.1], "y": [5.0, 5.0, 5.1]})
    moved = corpus._apart(places, points).to_numpy()
    gaps = [np.hypot(*(moved[i] - moved[j])) for i in range(3) for j in range(i)]
    assert min(gaps) > 0.85
    far = pd.DataFrame({"x": [0.0, 9.0], "y": [0.0, 9.0]})
    pd.testing.assert_frame_equal(corpus._apart(far, points), far)


def test_a_figure_is_kept_beside_its_files(plan):
    kept = list((plan.root / "figures").rglob("*.pickle"))
    assert len(kept) == 2
    assert all(path.name.startswith(".") for path in kept)
    assert figures.load(kept[0]).get_figwidth() > 3
