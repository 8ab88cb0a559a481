import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.datasets import reported
from ragkit.errors import DataError, MissingData, UsageError
from ragkit.paths import REPORTED

HEADER = ",".join(reported.COLUMNS)
ROW = "wixqa,2,expertwritten,multi_article,multi_article_share,27%,27,percent,,,"


@pytest.fixture(scope="module")
def numbers():
    return reported.load()


@pytest.fixture(scope="module")
def audit():
    return reported.audit()


@pytest.fixture
def folder(tmp_path):
    for paper in reported.PAPERS:
        shutil.copy(REPORTED / f"{paper}.csv", tmp_path)
    return tmp_path


def test_every_restored_number_cites_repository_commit_and_file(numbers):
    restored = numbers[numbers["note"].str.contains("restored")]
    cited = r"\(GitHub [\w-]+/[\w-]+ at [0-9a-f]{12}: \w+\.md\)"
    assert len(restored) == 126
    assert restored["note"].str.contains(cited).all()


def write(folder, *lines, paper="wixqa"):
    (folder / f"{paper}.csv").write_text("\n".join([*lines, ""]), encoding="utf-8")


# ------------------------------------------------------------------------------ what is there


@pytest.mark.parametrize(
    ("paper", "table", "row", "column", "metric", "printed", "value", "decimals"),
    [
        ("wixqa", "2", "synthetic", "size", "n_questions", "6,221", 6221, 0),
        ("wixqa", "1", "emrqa", "size", "n_questions", "2M", 2e6, -6),
        ("enterpriserag_bench", "1", "slack", "approximate", "n_documents", "275k", 275e3, -3),
        ("enterpriserag_bench", "7", "semantic", "vector", "document_recall", "24.8", 24.8, 1),
        ("liverag", "text:4", "hd", "lower", "diff_bound", "−6", -6, 0),
        ("liverag", "text:3.2", "diff", "acs", "pearson_correlation", "-0.979", -0.979, 3),
    ],
)
def test_numbers_as_the_papers_print_them(
    numbers, paper, table, row, column, metric, printed, value, decimals
):
    key = [paper, table, row, column, metric]
    (found,) = numbers[(numbers[list(reported.KEY)] == key).all(axis=1)].to_dict("records")
    assert (found["printed"], found["value"], found["decimals"]) == (printed, value, decimals)


def test_lost_cells_have_no_value_and_say_why(numbers):
    lost = numbers[numbers["value"].isna()]
    assert lost.groupby(["paper", "table"]).size().to_dict() == {
        ("enterpriserag_bench", "3"): 9,
        ("enterpriserag_bench", "figure:3"): 15,
        ("liverag", "figure:3"): 20,
        ("liverag", "figure:4"): 54,
    }
    assert lost["note"].str.startswith("lost").all()
    assert (lost["printed"] == "").all()
    assert lost["decimals"].isna().all()


@pytest.mark.parametrize(
    ("units", "low", "high"),
    [
        (["percent"], 0, 100),
        (["fraction"], 0, 1),
        (["correlation", "cosine"], -1, 1),
        (["logit"], -6, 6),  # the ends of LiveRAG's outer quartiles
        (["questions"], 0, 2e6),
        (["documents"], 0, 511_962),
        (["nats"], 0, np.log(895)),
    ],
)
def test_range_of_unit(numbers, units, low, high):
    assert numbers.loc[numbers["unit"].isin(units), "value"].dropna().between(low, high).all()


def test_unknown_names():
    with pytest.raises(UsageError, match="did you mean 'liverag'"):
        reported.load("liverga")
    with pytest.raises(UsageError, match="no table of liverag '6'"):
        reported.load("liverag", 6)
    with pytest.raises(UsageError, match=r"did you mean 'text:3\.2'"):
        reported.load("liverag", "test:3.2")


# ------------------------------------------------------------------------------ parse


PRINTED = {"27%": (27, 0), "0.061": (0.061, 3), ".5": (0.5, 1), "−2.143": (-2.143, 3)}
PRINTED |= {"511,962": (511_962, 0), "~500k": (5e5, -3), "335M": (335e6, -6), "10BT": (1e10, -9)}
PRINTED |= {"10T": (1e13, -12), "1.5k": (1500, -2), "4×": (4, 0), "three": (3, 0), "single": (1, 0)}


@pytest.mark.parametrize("printed", PRINTED)
def test_parse(printed):
    assert reported.parse(printed) == PRINTED[printed]


@pytest.mark.parametrize(
    "printed", ["", " ", "-", "%", "k", "1,00", "1 000", "0.5.1", "27 %", "1e3", "nan", "eleven"]
)
def test_parse_refuses(printed):
    with pytest.raises(DataError, match="is not a number"):
        reported.parse(printed)


@given(st.integers(-(10**12), 10**12), st.integers(0, 6), st.booleans(), st.sampled_from("- −"))
def test_parse_reads_what_format_writes(scaled, decimals, commas, minus):
    value = scaled / 10**decimals
    printed = f"{value:{',' if commas else ''}.{decimals}f}".replace("-", minus.strip() or "-")
    assert reported.parse(printed) == (value, decimals)


# ------------------------------------------------------------------------------ audit


def find(audit, paper, start):
    (claim,) = audit[(audit["paper"] == paper) & audit["claim"].str.startswith(start)].to_dict(
        "records"
    )
    return claim


def test_the_findings_are_the_same_as_ever(audit):
    """Every claim with its numbers, those that the papers' own numbers contradict among them."""
    golden = pd.read_csv(Path(__file__).with_name("audit.csv")).fillna({"note": ""})
    assert (~golden["holds"]).sum() == 28
    pd.testing.assert_frame_equal(audit, golden, rtol=1e-12)


@pytest.mark.parametrize(
    ("paper", "old", "new", "start"),
    [
        ("liverag", "n_questions,137,137,", "n_questions,138,138,", "Table 3: single-"),
        ("liverag", "n_questions,105,105,", "n_questions,104,104,", "section 1: the sessions"),
        ("liverag", ",3.207,3.207,", ",3.107,3.107,", "section 5.3: LiveRAG has the highest le"),
        ("liverag", "1,phrasing,categories", "1,phrasing,other", "Table 1: as many categ"),
        ("wixqa", "context_recall,0.55,0.55", "context_recall,0.67,0.67", "section 4.4: E5 has"),
        ("enterpriserag_bench", '"5,189",5189', '"5,188",5188', "Table 9: the sources add up"),
        ("enterpriserag_bench", ",43.2,43.2,", ",43.9,43.9,", "Table 7: with one gold document"),
        ("enterpriserag_bench", ",44.8,44.8,", ",49.6,49.6,", "Table 7: the correctness of bm25"),
    ],
)
def test_audit_sees_a_changed_number(folder, audit, paper, old, new, start):
    path = folder / f"{paper}.csv"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    assert find(audit, paper, start)["holds"]
    assert not find(reported.audit(folder=folder), paper, start)["holds"]


def test_a_contradiction_in_words_is_listed_with_the_numbers_it_names(folder, audit):
    start = "section 4.2: the generators run with their default"
    assert "temperature (0)" in find(audit, "wixqa", start)["note"]
    path = folder / "wixqa.csv"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("temperature,0,0,", "temperature,1,1,"), encoding="utf-8")
    found = find(reported.audit(folder=folder), "wixqa", start)
    assert "temperature (1)" in found["note"]
    assert not found["holds"]


@pytest.mark.parametrize(
    ("paper", "line", "message"),
    [
        ("liverag", "text:3.2,diff,acs,", r"liverag: the audit misses .*text:3\.2.*'row': 'diff'"),
        ("liverag", ",4,popqa,ngd,", r"liverag: the audit misses .*table 4.*\('popqa', 'ngd'\)"),
        ("liverag", ",text:4,hd,upper,", "liverag: the audit misses .*hd"),
        ("enterpriserag_bench", ",9,total,", "enterpriserag_bench: the audit misses 'total'"),
    ],
)
def test_audit_names_a_number_that_is_not_there(folder, paper, line, message):
    lines = (folder / f"{paper}.csv").read_text("utf-8").splitlines()
    kept = [text for text in lines if line not in text]
    assert len(kept) == len(lines) - 1
    write(folder, *kept, paper=paper)
    with pytest.raises(DataError, match=message):
        reported.audit(folder=folder)


# ------------------------------------------------------------------------------ bad files


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (ROW.replace(",27,", ",26,"), "line 2: the value is 26 and the text '27%'"),
        (ROW.replace("27%", "a quarter"), r"line 2: 'a quarter' is not a number"),
        (ROW.replace(",27,", ",many,"), "line 2: value should be a number, found 'many'"),
        (ROW.replace(",27,", ",nan,"), "line 2: value should be a number, found 'nan'"),
        (ROW.replace("27%", ""), r"line 2: '' is not a number"),
        (ROW.replace(",27,", ",,"), "line 2: the value is  and the text"),
        (ROW.replace("27%,27", ","), r"line 2: neither a number nor a note"),
        (
            ROW.replace("percent", "percents"),
            "line 2: unit should match .*percent.*, found 'percents'",
        ),
        (ROW.replace("percent", ""), "line 2: unit should match .* found ''"),
        (ROW.replace("percent,", "percent,someday"), "line 2: status should match"),
        (ROW.replace("expertwritten", " "), "line 2: row should match .* found ' '"),
        (ROW.replace("_share", " share"), "line 2: metric should match"),
        (ROW.replace("wixqa,2", "wixqa,Table 2"), "line 2: table should match .* found 'Table 2'"),
        (ROW.replace("wixqa,", "liverag,"), "line 2: paper should match wixqa, found 'liverag'"),
        (ROW + ",more", r"line 2: expected 11 columns, found 12"),
        (ROW.replace("27%", '"27%'), "line 2: unexpected end of data"),
    ],
)
def test_bad_row(tmp_path, row, message):
    write(tmp_path, HEADER, row)
    with pytest.raises(DataError, match=re.escape(str(tmp_path / "wixqa.csv"))) as error:
        reported.load("wixqa", folder=tmp_path)
    assert re.search(message, str(error.value))


def test_lost_cell_with_a_note(tmp_path):
    write(tmp_path, HEADER, ROW.replace("27%,27", ",") + "unreadable")
    frame = reported.load("wixqa", folder=tmp_path)
    assert frame["value"].isna().all()


@pytest.mark.parametrize("column", reported.COLUMNS)
def test_missing_column(tmp_path, column):
    frame = pd.read_csv(REPORTED / "wixqa.csv", dtype=str).drop(columns=column)
    frame.to_csv(tmp_path / "wixqa.csv", index=False)
    with pytest.raises(DataError, match=f"line 1: no column '{column}'"):
        reported.load("wixqa", folder=tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no header in line 1"),
        (HEADER.encode() + b"\n", "no rows"),
        (f"{HEADER},extra\n{ROW},\n".encode(), "line 1 should have these columns"),
        (f"{HEADER}\n{ROW}\n{ROW}\n".encode(), "line 3: repeats the key of line 2: wixqa, 2, exp"),
        (f"{HEADER}\n{ROW}".encode() + b"\xff\xfe\n", "line 2 is not UTF-8"),
        (f"{HEADER}\n{ROW}\n".encode("utf-16"), "line 1 is not UTF-8"),
    ],
)
def test_bad_file(tmp_path, content, message):
    (tmp_path / "wixqa.csv").write_bytes(content)
    with pytest.raises(DataError, match=message):
        reported.load("wixqa", folder=tmp_path)


def test_missing_file(tmp_path):
    with pytest.raises(MissingData, match=r"wixqa\.csv"):
        reported.load("wixqa", folder=tmp_path)


@pytest.mark.parametrize("eta", [-40.0, -2.5, -0.1, 0.3, 1.56, 30.0])
def test_the_natural_parameter_gives_back_the_mean(eta):
    grid = (np.arange(200_000) + 0.5) / 200_000
    density = np.exp(eta * grid - max(eta, 0.0))
    mean = (grid * density).sum() / density.sum()
    assert reported.natural_parameter(mean) == pytest.approx(eta, rel=1e-4)
    assert reported.natural_parameter(0.5) == 0
