"""What a notebook keeps: measured numbers beside printed ones, tables, an explorer to read."""

from __future__ import annotations

import pandas as pd
import pytest

from ragkit import explore
from ragkit.datasets import reported
from ragkit.errors import DataError, MissingData, UsageError
from ragkit.report import results
from tests.report.test_hostile import questions
from tests.report.test_plots import points


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
    out.versus("wixqa", "1", pd.DataFrame({"size": [200]}, ["wixqa_ew"]))
    assert out.board().set_index("row").at["wixqa_ew", "status"] == "match"
    path = out.export(extra=pd.DataFrame({"a": [1 / 3]}))
    assert results.read("sample", out.notebook, "extra")["a"][0] == pytest.approx(1 / 3)
    measured = pd.read_csv(path)
    assert measured["measured"].tolist() == [200]
    assert results.Results("a", "sample").statuses() == "none"
    assert len(pd.read_csv(results.Results("a", "sample").export())) == 0
    with pytest.raises(MissingData, match="make reproduce PROFILE=paper"):
        results.read("paper", out.notebook, "extra")


def test_the_explorer_shows_the_question_that_is_chosen():
    scores = pd.DataFrame({"subject_id": ["low", "best"], "item_id": "q2", "score": [0.1, 0.9]})
    view = explore.questions(questions(), scores, most=2)
    assert "question</th>" in view.shown.value
    view.choose.value = "q2"
    page = view.shown.value
    assert "&lt;/table&gt;" in page
    assert page.index("0.9") < page.index("0.1")  # the best system first
    bundle = view._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "The first 2 of 6 questions" in bundle["text/html"]
    with pytest.raises(DataError, match="no question"):
        explore.questions(questions().iloc[:0])


def test_maps_need_no_network_and_are_the_same_bytes():
    rows = points().query("method == 'UMAP'")
    bundle = explore.maps(rows)._repr_mimebundle_()
    assert "<script src=" not in bundle["text/html"]
    assert bundle["text/html"] == explore.maps(rows)._repr_mimebundle_()["text/html"]
    traces = bundle["application/vnd.plotly.v1+json"]["data"]
    assert len([row for trace in traces for row in trace["customdata"]]) == 160


def test_cards_show_claims_and_mark_what_the_document_states():
    long = "Title\n" + "filler " * 300 + "the rent is 34 euros. " + "more " * 100
    documents = pd.DataFrame({"doc_id": ["a"], "source": "web", "title": "Title", "text": long})
    asked = {"text": "What rent?", "answer": "It is 34.", "type": "short", "gold_doc_ids": ("a",)}
    claims = {"claims_direct": ("34 euros",), "claims_useless": ("no",), "facts": ("a fact",)}
    marked = pd.DataFrame([asked | claims | {"marks": ("the rent is 34 euros",)}])
    page = explore.cards(marked, documents, characters=200).data
    for part in ("<mark>the rent is 34 euros</mark>", f"({len(long):,} characters in all)"):
        assert part in page
    assert page.index("It is 34.") < page.index("34 euros") < page.index("useless</span> no")
    assert "a fact" not in page
    other = asked | {"facts": ("a fact",), "gold_doc_ids": ("a", "lost")}
    plain = explore.cards(pd.DataFrame([other]), documents).data
    assert "<li>a fact</li>" in plain
    assert plain.index("web: Title</div>") < plain.index("lost</div>not in the corpus")
    assert "<mark>" not in plain


def test_documents_stand_side_by_side_with_words_marked():
    text = "It took 12 hours, not 120, 3.12 or 12."
    row = {"doc_id": "a", "source": "slack", "title": "A <b>", "text": text, "channel": "ops & co"}
    page = explore.documents([row], marks=["12"], notes=["Why?"]).data
    assert "A &lt;b&gt;" in page
    assert "source: slack · channel: ops &amp; co" in page
    assert page.count("<mark>") == 2
    with pytest.raises(UsageError, match="as many notes"):
        explore.documents([row], notes=["a", "b"])
