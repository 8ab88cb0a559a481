"""What a notebook keeps: measured numbers beside printed ones, tables, an explorer to read."""

from __future__ import annotations

import nbformat
import numpy as np
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from ragkit.datasets import reported
from ragkit.errors import DataError, MissingData
from ragkit.report import explore, notebook, results, tables

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</table></script>",
    "cost $5 and 100 % of a_b \\input{x} & more #1 {y} ~ ^",
    "a|b [link](javascript:alert(1)) `code` *bold*",
    "\u202eesrever \u2067mark\u2069 \u200f\x07",
]
UNSEEN = "\u202e\u2067\u2069\u200f\x07"


@pytest.fixture
def out():
    return results.Results("32-liverag-diversity", "sample")


def test_versus_fills_compares_saves_and_collects(out):
    printed = reported.load("liverag", "4").pivot(index="row", columns="metric", values="value")
    shown = out.versus("liverag", "4", printed.loc[["liverag"]], columns="metric")
    assert list(shown.data.index) == ["liverag"]  # rows without a measured number are left out
    stand_in = {"popqa": "another sample"}
    out.versus("liverag", "4", printed.loc[["popqa"]], columns="metric", substitute=stand_in)
    board = out.board("liverag", "4")
    assert board.groupby("row")["status"].agg(set)["liverag"] == {"match"}
    assert board.groupby("row")["status"].agg(set)["popqa"] == {"substitute"}
    assert out.statuses() == "5 match, 5 substitute"
    with pytest.raises(DataError, match="measured twice"):
        out.versus("liverag", "4", printed.loc[["liverag"]], columns="metric")
    page = (out.root / "tables" / out.notebook / "table-4.html").read_text("utf-8")
    assert "LiveRAG, Table 4" in page


def test_export_writes_what_was_measured_and_read_returns_it(out):
    out.versus("wixqa", "1", None, unavailable="no documents at hand")
    assert set(out.board()["status"]) <= {"not available"}
    path = out.export(extra=pd.DataFrame({"a": [1 / 3]}))
    assert results.read("sample", out.notebook, "extra")["a"][0] == pytest.approx(1 / 3)
    measured = pd.read_csv(path)
    assert measured["note"].eq("no documents at hand").all()
    assert results.Results("a", "sample").statuses() == "none"
    assert len(pd.read_csv(results.Results("a", "sample").export())) == 0
    with pytest.raises(MissingData, match="make reproduce PROFILE=paper"):
        results.read("paper", out.notebook, "extra")


@pytest.mark.parametrize(
    ("table", "title"),
    [("4", "Table 4"), ("text:3.2", "section 3.2"), ("leaderboard", "leaderboard"), ("figure:3", "Figure 3")],
)  # fmt: skip
def test_the_title_of_a_printed_table(table, title):
    assert tables.title("liverag", table) == f"LiveRAG, {title}"


def hostile_frame():
    frame = pd.DataFrame(dict.fromkeys(HOSTILE[:2], HOSTILE), pd.Index(HOSTILE, name=HOSTILE[2]))
    return frame.assign(number=1.5, listed=[[text] for text in HOSTILE], lost=None)


@pytest.mark.parametrize("index", ["labels", "range", "two levels"])
def test_hostile_text_stays_text_in_every_table(tmp_path, index):
    frame = hostile_frame()
    if index == "range":
        frame = frame.reset_index(drop=True)
    if index == "two levels":
        frame.columns = pd.MultiIndex.from_product([frame.columns, ["printed"]], names=HOSTILE[:2])
    tables.write(frame, tmp_path / "table", caption=HOSTILE[0] + HOSTILE[3])
    page, marked, tex = (
        (tmp_path / f"table.{kind}").read_text("utf-8") for kind in ("html", "md", "tex")
    )
    for text in (page, marked, tables.show(frame, HOSTILE[0]).to_html()):
        assert not any(
            mark in text for mark in ("<script>alert", "<img", "</table></script", *UNSEEN)
        )
    assert page.count("</table>") == 1
    assert "](javascript" not in marked.replace(r"\]", "")
    assert all(line.startswith("|") for line in marked.strip().split("\n"))
    for special in (r"100 \%", r"\$5", r"a\_b", r"\&", r"\#1", r"\textbackslash{}input"):
        assert special in tex
    assert "\\input{" not in tex
    rows = [line for line in tex.split("\n") if line.endswith(r"\\")]
    assert len({line.replace(r"\&", "").count("&") for line in rows}) == 1


def questions():
    frame = pd.DataFrame({"text": HOSTILE, "answer": HOSTILE[::-1], "diff": np.arange(6) / 3})
    return frame.set_axis([f"q{n}" for n in range(6)]).rename_axis("question_id")


def test_the_explorer_shows_the_question_that_is_chosen():
    scores = pd.DataFrame({"subject_id": ["low", HOSTILE[0]], "item_id": "q2", "score": [0.1, 0.9]})
    view = explore.questions(questions(), scores, most=2)
    assert "&lt;script&gt;" in view.shown.value
    view.choose.value = "q2"
    page = view.shown.value
    assert "&lt;/table&gt;" in page
    assert page.index("0.9") < page.index("0.1")  # the best system first
    assert not any(mark in page for mark in ("<script>", "<img", *UNSEEN))
    bundle = view._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "The first 2 of 6 questions" in bundle["text/html"]
    assert "<script>" not in bundle["text/html"]
    with pytest.raises(DataError, match="no questions"):
        explore.questions(questions().iloc[:0])


def test_a_page_shows_the_static_table_of_a_widget(tmp_path):
    view = {"model_id": "x", "version_major": 2, "version_minor": 0}
    data = {"application/vnd.jupyter.widget-view+json": view, "text/html": "<p>static</p>"}
    cell = new_code_cell("1", id="a", outputs=[new_output("display_data", data=data)])
    book = new_notebook(cells=[cell], metadata={"widgets": {}})
    nbformat.write(book, tmp_path / "a.ipynb")
    notebook.to_html(tmp_path / "a.ipynb", tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text("utf-8")
    assert "<p>static</p>" in page
    assert "widget-view+json" not in page
    assert "<script src=" not in page


def test_cards_show_claims_and_mark_what_the_document_states():
    long = "Title\n" + "filler " * 300 + "the rent is 34 euros. " + "more " * 100
    example = {"question": HOSTILE[0], "correct": HOSTILE[1], "categories": HOSTILE[2:4]}
    example |= {"claims": {"direct": HOSTILE, "useless": ["no"]}, "documents": [long, HOSTILE[0]]}
    page = explore.cards(
        [{**example, "marked": ["the rent is 34 euros"]}], characters=200
    )._repr_html_()
    assert "<mark>the rent is 34 euros</mark>" in page
    assert f"({len(long):,} characters in all)" in page
    assert "without mistakes:" in page
    assert not any(mark in page for mark in ("<script>", "<img", "</table>", *UNSEEN))
