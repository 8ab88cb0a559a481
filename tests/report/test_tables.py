"""Comparison tables: one status per number, by hand and by law."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.datasets import reported
from ragkit.datasets.registry import UNVERIFIED
from ragkit.errors import DataError, UsageError
from ragkit.report import tables
from tests.test_display import bold


def printed(*rows):
    frame = pd.DataFrame(rows, columns=[*tables.KEY, "printed", "value", "note"])
    return frame.astype({"value": float})


TABLE = printed(
    ("p", "1", "a", "x", "m", "3.062", 3.062, ""),
    ("p", "1", "a", "y", "n", "27%", 27, ""),
    ("p", "1", "b", "x", "m", "", math.nan, "lost"),
    ("p", "1", "b", "y", "n", "5", 5, "odd"),
)


@pytest.mark.parametrize(
    ("text", "value", "measured", "metric", "expected"),
    [
        ("3.062", 3.062, 3.0621968, "", "match"),
        ("3.062", 3.062, 3.0625, "", "match"),
        ("3.062", 3.062, 3.0626, "", "close"),
        ("27%", 27, 27.4, "", "match"),
        ("27%", 27, 26.0, "", "close"),
        ("5", 5, 6, "", "differs"),  # one unit, but 20 %
        ("511,962", 511962, 511000, "", "close"),
        ("0.09", 0.09, 0.08, "", "differs"),
        ("0", 0, 0.6, "", "differs"),
        ("275k", 275e3, 275_499, "", "match"),  # right to its last printed digit
        ("275k", 275e3, 275_501, "", "close"),
        ("~500k", 500e3, 511_962, "", "close"),  # about
        ("~500k", 500e3, 530_000, "", "differs"),
        # A count or a share of rows is exact: never close.
        ("27%", 27, 26.0, "multi_article_share", "differs"),  # 52 of 200
        ("27%", 27, 26.6, "multi_article_share", "match"),
        ("511,962", 511962, 511961, "n_documents", "differs"),
        ("16", 16, 15.5, "questions_with_source", "match"),
        ("1.4", 1.4, 1.46, "gold_documents", "differs"),
        ("~500k", 500e3, 511_962, "n_documents", "close"),
        ("172", 172, 173, "median_answer_tokens", "close"),
    ],
)
def test_status_by_hand(text, value, measured, metric, expected):
    assert tables.status(text, value, measured, metric=metric) == expected
    # A number made with a substitute never matches, and a lost one cannot be compared.
    assert tables.status(text, value, measured, "embedded sample", metric) == "substitute"
    assert tables.status("", math.nan, measured, "embedded sample", metric) == "not available"
    assert tables.status(text, value, math.nan, metric=metric) == "not available"


def test_bytes_that_no_digest_verifies_are_no_other_data():
    words = f"test.jsonl {UNVERIFIED}"
    assert tables.status("5", 5, 5, words) == "unverified"
    assert tables.status("5", 5, 5, f"{words}; kb.jsonl {UNVERIFIED}") == "unverified"
    assert tables.status("5", 5, 5, f"{words}; judge offline") == "substitute"
    one = TABLE.assign(metric="n_x", command="ragkit data fetch wixqa").iloc[[3]]
    values = pd.DataFrame({"row": ["b"], "measured": [5.0]})
    board = tables.compare(one, tables.fill(one, values, substitute=words))
    assert board["status"].tolist() == ["unverified"]
    assert board["command"].tolist() == ["ragkit data fetch wixqa"]


@given(st.floats(-1e6, 1e6), st.integers(0, 4))
def test_a_rounded_number_matches_itself(value, places):
    text = f"{value:.{places}f}"
    assert tables.status(text, float(text), value) == "match"


@given(
    st.floats(-1e3, 1e3, allow_nan=False),
    st.one_of(st.floats(-1e3, 1e3, allow_nan=False), st.just(math.nan)),
    st.sampled_from(["", "another model"]),
)
def test_every_number_has_one_known_status(value, measured, substitute):
    assert tables.status(f"{value:.2f}", round(value, 2), measured, substitute) in tables.STATUSES


def test_compare_keeps_every_printed_number_in_order():
    values = pd.DataFrame({"row": ["a"], "column": ["x"], "measured": [3.0622]})
    board = tables.compare(TABLE, tables.fill(TABLE, values))
    assert list(board.columns) == tables.SCOREBOARD
    assert board["status"].tolist() == ["match", "not run", "not available", "not run"]
    assert board["measured"].isna().tolist() == [False, True, True, True]
    assert board["note"].tolist() == ["", "", "lost", "odd"]
    board = tables.compare(TABLE, tables.nothing(), reasons={"p:1": "no data"})
    assert board["note"].tolist() == ["no data", "no data", "lost", "odd; no data"]


def test_compare_refuses_what_is_measured_twice_or_never_printed():
    once = tables.fill(TABLE, pd.DataFrame({"row": ["b"], "column": ["y"], "measured": [5.0]}))
    with pytest.raises(DataError, match="measured twice: p / 1 / b / y / n"):
        tables.compare(TABLE, pd.concat([once, once]))
    with pytest.raises(DataError, match="never printed: p / 2") as caught:
        tables.compare(TABLE, once.assign(table="2"))
    assert caught.value.hint


def test_fill_needs_one_fitting_number():
    with pytest.raises(DataError, match="called c") as caught:
        tables.fill(TABLE, pd.DataFrame({"row": ["c"], "measured": [1.0]}))
    assert "known: a, a, b, b" in caught.value.hint
    with pytest.raises(DataError, match="more than one printed number"):
        tables.fill(TABLE, pd.DataFrame({"row": ["a"], "measured": [1.0]}))


def test_counts_add_up_on_the_real_numbers():
    board = tables.compare(reported.load(), tables.nothing())
    counts = tables.counts(board)
    printed = board["table"] != "leaderboard"
    assert counts.loc["all", "numbers"] == printed.sum()
    assert counts.loc["leaderboard", "numbers"] == (~printed).sum() == 29
    assert (counts[list(tables.STATUSES)].sum(axis=1) == counts["numbers"]).all()
    with pytest.raises(UsageError, match="no status 'mtach'"):
        tables.counts(board.assign(status="mtach"))


def test_best_knows_which_way_is_better():
    metrics = ["ngram_diversity"] * 2 + ["homogenization_score"] * 2
    frame = pd.DataFrame({"row": ["a", "b"] * 2, "metric": metrics, "measured": [1.0, 2, 0.1, 0.2]})
    assert tables.best(frame, "ngram_diversity") == "b"
    assert tables.best(frame, "homogenization_score") == "a"
    with pytest.raises(DataError):
        tables.best(frame.assign(measured=np.nan), "ngram_diversity")


def test_written_tables_are_the_same_bytes_and_complete(tmp_path):
    values = pd.DataFrame({"row": ["a"], "column": ["x"], "measured": [3.0622]})
    wide = tables.wide(tables.compare(TABLE, tables.fill(TABLE, values)))
    for folder in ("one", "two"):
        tables.write(wide, tmp_path / folder / "table", caption="Café & 100 %")
    for suffix in (".html", ".md", ".tex"):
        one, two = (tmp_path / folder / f"table{suffix}" for folder in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()
        assert "3.062" in one.read_text("utf-8")
    assert tables.COLOURS["match"] in (tmp_path / "one" / "table.html").read_text("utf-8")
    assert r"100 \%" in (tmp_path / "one" / "table.tex").read_text("utf-8")


SYSTEMS = pd.DataFrame(
    {"set": ["a", "a", "b"], "system": ["x&1", "y|2", "x"], "R@5": [0.5, 0.75, 0.25]}
).assign(mae=[0.1, 0.2, None], n=[3, 3, 3])


def test_the_best_values_are_bold_in_every_format(tmp_path):
    marked = {"best": ["R@5", "mae", "n"], "within": ["set"]}
    shown = tables.show(SYSTEMS, "Recall", **marked)
    assert bold(shown) == {("col2", "0.75"), ("col3", "0.1")}
    assert "Recall; bold: the best (mae: the lowest)" in shown.to_html()
    with pytest.raises(UsageError, match="no column 'R@6'") as caught:
        tables.show(SYSTEMS, best=["R@6"])
    assert "R@5" in caught.value.hint
    tables.write(SYSTEMS.set_index(["set", "system"]), tmp_path / "mine", best=["R@5"], caption="C")
    html, marked, tex = ((tmp_path / f"mine.{kind}").read_text("utf-8") for kind in ("html", "md", "tex"))  # fmt: skip
    assert html.count("font-weight: bold") == 1
    assert ("| **0.75** |" in marked, marked.count("**")) == (True, 2)
    rows = [line for line in tex.split("\n") if line.endswith(r"\\")]
    assert rows[1:] == [r"a & x\&1 & 0.5 & 0.1 & 3 \\", r"a & y|2 & \textbf{0.75} & 0.2 & 3 \\", r"b & x & 0.25 &  & 3 \\"]  # fmt: skip
    assert r"\caption{C; bold: the best}" in tex
    assert "{llrrr}" in tex


@pytest.mark.parametrize(
    "rows", [SYSTEMS.head(1), SYSTEMS.assign(**{"R@5": 0.5}), SYSTEMS.assign(**{"R@5": None})]
)
def test_nothing_is_marked_where_nothing_is_better(rows, tmp_path):
    tables.write(rows, tmp_path / "mine", best=["R@5"], caption="C")
    for kind, mark in {"html": "bold", "md": "**", "tex": "textbf"}.items():
        assert mark not in (tmp_path / f"mine.{kind}").read_text("utf-8")


def test_an_unmeasured_number_is_what_its_row_declares():
    board = tables.compare(reported.load(), tables.nothing()).set_index(tables.KEY)
    erb = "enterpriserag_bench"
    rows = {
        ("wixqa", "3", "bm25+gpt_4o", "f1", "token_f1"): "needs a model",
        ("wixqa", "2", "simulated", "size", "n_questions"): "needs data",
        ("wixqa", "text:3.4", "synthetic", "sample", "n_reviewed_questions"): "human",
        ("wixqa", "appendix:F", "flashrag", "temperature", "temperature"): "setting",
        ("wixqa", "text:abstract", "simulated", "size", "n_questions"): "restated",
        (erb, "appendix:B.4", "llm_shuffle", "share", "moved_share"): "by construction",
        ("liverag", "5", "easy", "acs", "acs"): "needs data",
        ("wixqa", "1", "techqa", "size", "n_questions"): "quoted",
    }
    assert board.loc[list(rows), "status"].to_dict() == rows
    assert "not run" not in set(board["status"])
    named = board["command"].str.startswith("ragkit ")
    assert (named == board["status"].isin(["needs data", "needs a model"])).all()
    restated = board[board["status"] == "restated"]
    assert restated["note"].str.contains("printed (first in|in Table)").all()
