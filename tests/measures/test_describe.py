import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit.errors import DataError, UsageError
from ragkit.measures import describe

QUICK = settings(max_examples=60, deadline=None)


def test_lengths_by_hand():
    frame = pd.DataFrame(
        {"source": ["mail", "chat", "mail", "mail"], "text": ["ab", "abcd", None, "abcdef"]}
    )
    table = describe.lengths(frame, by="source")
    assert list(table.index) == ["mail", "chat"]  # in the order of the frame
    assert list(table.columns) == ["n", "missing", "mean", "median", "p95"]
    assert table.loc["mail"].tolist() == pytest.approx([2, 1, 4.0, 4.0, 2 + 0.95 * 4])
    assert table.loc["chat"].tolist() == [1, 0, 4.0, 4.0, 4.0]
    # Rows without a group are counted, whatever the index.
    frame = pd.DataFrame({"source": ["mail", None], "text": ["ab", "abcd"]}, index=[5, 5])
    assert describe.lengths(frame, by="source")["n"].tolist() == [1, 1]


@QUICK
@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.none() | st.text("xy z", max_size=12)), min_size=1
    ),
    st.sampled_from(["characters", "words"]),
)
def test_lengths_against_numpy(rows, unit):
    frame = pd.DataFrame(rows, columns=["group", "text"])
    measure = len if unit == "characters" else lambda text: len(text.split())
    if frame["text"].isna().all():
        with pytest.raises(DataError, match="no row has a text"):
            describe.lengths(frame, by="group", unit=unit)
        return
    table = describe.lengths(frame, by="group", unit=unit)
    assert list(table.index) == list(dict.fromkeys(group for group, _ in rows))
    for group in table.index:
        sizes = [measure(text) for name, text in rows if name == group and text is not None]
        assert table.loc[group, "n"] == len(sizes)
        assert table.loc[group, "n"] + table.loc[group, "missing"] == sum(
            name == group for name, _ in rows
        )
        if not sizes:
            assert table.loc[group, ["mean", "median", "p95"]].isna().all()
            continue
        expected = [np.mean(sizes), np.median(sizes), np.percentile(sizes, 95)]
        assert table.loc[group, ["mean", "median", "p95"]].tolist() == pytest.approx(expected)


@pytest.mark.parametrize("wrong", [{"by": "sources"}, {"by": "source", "column": "texts"}])
def test_an_unknown_column_gets_the_nearest_name(wrong):
    frame = pd.DataFrame({"source": ["a"], "text": ["b"]})
    with pytest.raises(UsageError, match="no column") as info:
        describe.lengths(frame, **wrong)
    assert info.value.hint in ("did you mean 'source'?", "did you mean 'text'?")


def questions():
    return pd.DataFrame(
        {
            "type": ["basic", "basic", "project", "none", "project"],
            "text": ["one two", "one", "one two three", "one", "a b c d e"],
            "gold_doc_ids": [("a",), ("a", "b"), ("a", "b", "c"), (), ("d",)],
            "source_types": [("mail",), ("mail", "chat"), ("chat", "chat"), (), ("wiki",)],
        }
    )


def test_gold_sizes_by_hand():
    table = describe.gold_sizes(questions())
    assert list(table.index) == ["basic", "project"]  # "none" has no gold document
    assert table.loc["basic"].tolist() == [2, 1.5, 1.5, 1, 2]
    assert table.loc["project"].tolist() == [2, 2, 2, 1, 3]
    shares = describe.multi_gold_share(questions())
    assert shares.to_dict() == {"basic": 0.5, "project": 0.5, "none": 0.0}


def test_source_coverage_counts_questions_not_mentions():
    table = describe.source_coverage(questions())
    assert list(table.index) == ["basic", "project"]
    assert table.loc["basic"].to_dict() == {"chat": 1, "mail": 2, "wiki": 0}
    assert table.loc["project"].to_dict() == {"chat": 1, "mail": 0, "wiki": 1}
    assert describe.source_coverage(questions().iloc[[3]]).empty


def test_median_tokens_has_a_median_in_every_unit_of_token():
    table = describe.median_tokens(questions(), "text", by="type")
    assert list(table.columns) == ["words", "words_and_marks", "cl100k_base", "o200k_base"]
    assert table["words"].to_dict() == {"basic": 1.5, "project": 4.0, "none": 1.0}


def test_composition_and_sources_of_gold_documents_by_hand():
    documents = pd.DataFrame({"source": ["mail", "chat", "mail"], "text": ["ab", "abc", "abcd"]})
    table = describe.composition(documents)
    assert table["documents"].to_dict() == {"mail": 2, "chat": 1, "total": 3}
    assert table.loc["mail", ["mean", "median"]].tolist() == [3, 3]
    shares = describe.gold_source_share(questions())
    assert shares.to_dict() == {"mail": 0.5, "chat": 0.5, "wiki": 0.25}
