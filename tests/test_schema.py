import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit import schema
from ragkit.errors import DataError, UsageError

QUICK = settings(max_examples=60, deadline=None)
IDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8
).filter(str.strip)
KINDS = sorted(schema.COLUMNS)
ID = {"documents": "doc_id", "scores": "item_id"}  # else question_id


def frame(kind, ids):
    """A valid frame of a kind with one row an id."""
    values = {"rank": 1, "score": 0.5, "answer": None}
    row = {column: values.get(column, "x") for column in schema.COLUMNS[kind]}
    row |= {column: [("a",)] * len(ids) for column in schema.TUPLES[kind]}
    return pd.DataFrame(row | {ID.get(kind, "question_id"): ids}, index=range(len(ids)))


def complaint(bad, kind):
    with pytest.raises(DataError) as info:
        schema.check(bad, kind, "here.jsonl")
    assert info.value.message.startswith("here.jsonl: ")
    return info.value.message


@QUICK
@given(kind=st.sampled_from(KINDS), ids=st.lists(IDS, unique=True, max_size=6), data=st.data())
def test_valid_frames_pass_and_a_planted_duplicate_is_found_at_its_row(kind, ids, data):
    good = frame(kind, ids)
    before = good.copy(deep=True)
    assert schema.check(good, kind) is good
    pd.testing.assert_frame_equal(good, before)
    if ids:
        again = data.draw(st.sampled_from(ids))
        place = data.draw(st.integers(ids.index(again) + 1, len(ids)))
        message = complaint(frame(kind, [*ids[:place], again, *ids[place:]]), kind)
        assert f"row {place + 1} of {kind} repeats" in message
        assert repr(again) in message


@pytest.mark.parametrize("kind", KINDS)
def test_every_column_is_needed_and_ids_are_strings(kind):
    for column in schema.COLUMNS[kind]:
        bad = frame(kind, ["a"]).rename(columns={column: column + "s"})
        with pytest.raises(DataError, match=f"{kind} lack the column '{column}'") as info:
            schema.check(bad, kind)
        assert column + "s" in info.value.hint
    for wrong in (7, 2.5, ("a",), True, None, float("nan"), " ", "a\0"):
        bad = frame(kind, pd.Series(["a", wrong], dtype=object))
        assert f"row 2 of {kind}: {ID.get(kind, 'question_id')} " in complaint(bad, kind)


@pytest.mark.parametrize(
    ("kind", "column", "values"),
    [
        ("documents", "text", ["\xa0", None, 7, ["x"]]),
        ("scores", "score", [float("nan")]),
        ("runs", "rank", [float("nan")]),
        # A bare string would be read as one document id a character.
        *((kind, column, ["doc-1", ["doc-1"], None, (1,), (None,)])
          for kind, some in schema.TUPLES.items() for column in some),
    ],
)  # fmt: skip
def test_a_bad_value_is_found_at_its_row(kind, column, values):
    for wrong in values:
        bad = frame(kind, ["a", "b"])
        bad[column] = pd.Series([bad[column][0], wrong], dtype=object)
        message = complaint(bad, kind)
        assert f"row 2 of {kind}" in message
        assert column in message
    with pytest.raises(UsageError, match=f"no frame '{kind}s'"):
        schema.check(bad, kind + "s")


@QUICK
@given(
    known=st.lists(IDS, unique=True, min_size=1, max_size=5),
    gold=st.lists(st.lists(IDS, max_size=3), min_size=1, max_size=4),
)
def test_check_gold_names_the_first_document_that_is_not_there(known, gold):
    questions = frame("questions", [f"q{n}" for n in range(len(gold))])
    questions["gold_doc_ids"] = [tuple(ids) for ids in gold]
    lost = [(n, doc) for n, ids in enumerate(gold) for doc in ids if doc not in known]
    if not lost:
        schema.check_gold(questions, frame("documents", known), "q.jsonl")
        return
    number, doc_id = lost[0]
    with pytest.raises(DataError) as info:
        schema.check_gold(questions, frame("documents", known), "q.jsonl")
    assert f"question 'q{number}' names the gold document {doc_id!r}" in info.value.message
