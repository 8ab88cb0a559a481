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


def frame(kind, ids):
    """A valid frame of a kind with one row an id."""
    n = len(ids)
    columns = {
        "documents": {"doc_id": ids, "source": "s", "title": "", "text": "body"},
        "questions": {
            "question_id": ids,
            "text": "why?",
            "type": "basic",
            "answer": None,
            "facts": [("a fact",)] * n,
            "gold_doc_ids": [()] * n,
        },
        "runs": {"system": "bm25", "question_id": ids, "rank": 1, "doc_id": "d", "score": 0.5},
        "answers": {"system": "x", "question_id": ids, "answer": None, "doc_ids": [("d",)] * n},
        "scores": {"subject_id": "x", "item_id": ids, "score": 0.0},
    }[kind]
    return pd.DataFrame(columns, index=range(n))


KINDS = sorted(schema.COLUMNS)
ID = {
    "documents": "doc_id",
    "questions": "question_id",
    "runs": "question_id",
    "answers": "question_id",
    "scores": "item_id",
}


def complaint(bad, kind):
    with pytest.raises(DataError) as info:
        schema.check(bad, kind, "here.jsonl")
    assert info.value.message.startswith("here.jsonl: ")
    return info.value.message


@QUICK
@given(kind=st.sampled_from(KINDS), ids=st.lists(IDS, unique=True, max_size=6))
def test_a_valid_frame_comes_back_as_the_same_object(kind, ids):
    good = frame(kind, ids)
    before = good.copy(deep=True)
    assert schema.check(good, kind) is good
    pd.testing.assert_frame_equal(good, before)


@QUICK
@given(
    kind=st.sampled_from(KINDS),
    ids=st.lists(IDS, unique=True, min_size=1, max_size=6),
    data=st.data(),
)
def test_a_planted_duplicate_is_found_at_its_row(kind, ids, data):
    again = data.draw(st.sampled_from(ids))
    place = data.draw(st.integers(ids.index(again) + 1, len(ids)))
    planted = [*ids[:place], again, *ids[place:]]
    message = complaint(frame(kind, planted), kind)
    assert f"row {place + 1} of {kind} repeats" in message
    assert repr(again) in message


@pytest.mark.parametrize("kind", KINDS)
def test_every_column_is_needed(kind):
    for column in schema.COLUMNS[kind]:
        bad = frame(kind, ["a"]).rename(columns={column: column + "s"})
        with pytest.raises(DataError, match=f"{kind} lack the column '{column}'") as info:
            schema.check(bad, kind)
        assert column + "s" in info.value.hint


@pytest.mark.parametrize(
    ("column", "wrong", "message"),
    [
        ("doc_id", None, "row 2 of documents has an empty doc_id"),
        ("doc_id", " ", "row 2 of documents has an empty doc_id"),
        ("doc_id", "a\0", "row 2 of documents: doc_id holds a NUL character"),
        ("text", "\xa0", "row 2 of documents (b) has no text"),
        ("text", ["x"], "row 2 of documents: text should be a string"),
    ],
)
def test_a_bad_value_is_found_at_its_row(column, wrong, message):
    bad = frame("documents", ["a", "b"])
    bad[column] = pd.Series(["a", wrong], dtype=object)
    assert message in complaint(bad, "documents")
    with pytest.raises(UsageError, match="no frame is called 'document'"):
        schema.check(bad, "document")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrong", [7, 2.5, ("a",), True])
def test_ids_are_strings(kind, wrong):
    bad = frame(kind, pd.Series(["a", wrong], dtype=object))
    assert f"row 2 of {kind}: {ID[kind]} should be a string" in complaint(bad, kind)


@pytest.mark.parametrize(
    ("kind", "column"), [(kind, column) for kind, some in schema.TUPLES.items() for column in some]
)
@pytest.mark.parametrize("wrong", ["doc-1", ["doc-1"], None, (1,), (None,), float("nan")])
def test_lists_are_tuples_of_strings(kind, column, wrong):
    # A bare string would be read as one document id a character.
    bad = frame(kind, ["a", "b"])
    bad[column] = [("doc-1",), wrong]
    assert f"row 2 of {kind}: {column} should be a tuple of strings" in complaint(bad, kind)


def test_a_missing_score_is_no_row():
    bad = frame("scores", ["a", "b"]).assign(score=[0.0, float("nan")])
    assert "row 2 of scores has no score" in complaint(bad, "scores")


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
