"""One cause for every wrong answer: hand-worked traces, and the partition as a law."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit.errors import DataError, UsageError
from ragkit.measures import causes, metrics

# id: gold, answer, abstained, delivered, ranked list, judged correct, cause
CASES = {
    "right": (["d1"], "the red fox", False, ["d1"], ["d1"], True, ""),
    "lucky": (["d1"], "the red fox", False, [], [], True, ""),
    "failed": (["d1"], None, False, ["d1"], ["d1"], False, "no answer"),
    "unknown": ([], "a fox", False, [], ["d1"], False, "no gold document"),
    "absent": (["none"], "a fox", False, [], ["d1"], False, "not in the corpus"),
    "unseen": (["d1"], "a fox", False, ["d2"], ["d2"], False, "not retrieved"),
    "cut": (["d1"], "a fox", False, ["d2"], ["d2", "d1"], False, "not delivered"),
    "half": (["d1", "d2"], "a fox", False, ["d1"], ["d1", "d2"], False, "partly delivered"),
    "silent": (["d1"], "I do not know", True, ["d1"], ["d1"], False, "abstained"),
    "empty": (["d1"], " ", False, ["d1"], ["d1"], False, "abstained"),
    "ignored": (["d1"], "blue", False, ["d1"], ["d1"], False, "not used"),
    "strict": (["d1"], "red fox, or not", False, ["d1"], ["d1"], False, "judged wrong"),
}
DOCUMENTS = pd.DataFrame({"doc_id": ["d1", "d2"]})


def frames(cases=CASES):
    questions = pd.DataFrame(
        [(key, "one", "the red fox", tuple(case[0])) for key, case in cases.items()],
        columns=["question_id", "type", "answer", "gold_doc_ids"],
    )
    answers = pd.DataFrame(
        [("s", key, case[1], case[2], tuple(case[3])) for key, case in cases.items()],
        columns=["system", "question_id", "answer", "abstained", "doc_ids"],
    )
    runs = pd.DataFrame(
        [
            ("s", key, rank, doc, 1.0)
            for key, case in cases.items()
            for rank, doc in enumerate(case[4], start=1)
        ],
        columns=["system", "question_id", "rank", "doc_id", "score"],
    )
    correct = pd.Series({key: case[5] for key, case in cases.items()}, dtype=object)
    return questions, DOCUMENTS, runs, answers, correct


def test_every_cause_by_hand():
    traced = causes.trace(*frames())
    assert traced["cause"].to_dict() == {key: case[6] for key, case in CASES.items()}
    assert set(traced["cause"]) == {"", *causes.CAUSES}
    assert traced.loc["cut", "rank"] == 2
    assert traced.loc["strict", "used"] == 1.0
    assert traced.loc["ignored", "used"] == 0.0


def test_what_mending_a_cause_gains():
    table = causes.summarise(causes.trace(*frames()))
    assert list(table.index) == list(causes.CAUSES)
    assert table["wrong"].sum() == 10
    assert table["one"].tolist() == table["wrong"].tolist()
    assert table.loc["abstained", "most"] == pytest.approx(2 / 12)
    # Past "not retrieved": cut, half, silent, empty, ignored, strict and the two right ones.
    assert table.loc["not retrieved", "expected"] == pytest.approx(1 / 12 * 2 / 8)
    assert table.loc["judged wrong", "expected"] == pytest.approx(1 / 12)


def test_a_question_without_verdict_is_in_no_count():
    questions, documents, runs, answers, correct = frames()
    correct["cut"] = None
    traced = causes.trace(questions, documents, runs, answers, correct)
    assert "cut" not in traced.index
    assert len(traced) == len(CASES) - 1


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_causes_partition_the_wrong_answers(data):
    docs = st.lists(st.sampled_from(["d1", "d2", "none"]), unique=True, max_size=3)
    texts = st.sampled_from([None, "", "red", "the red fox", "blue whale"])
    case = st.tuples(docs, texts, st.booleans(), docs, docs, st.booleans(), st.just(""))
    cases = data.draw(st.dictionaries(st.sampled_from("abcdefgh"), case, min_size=1))
    traced = causes.trace(*frames(cases))
    assert ((traced["cause"] == "") == traced["correct"]).all()
    assert set(traced["cause"]) <= {"", *causes.CAUSES}
    table = causes.summarise(traced)
    assert table["wrong"].sum() == (~traced["correct"].astype(bool)).sum()
    assert table["most"].sum() + traced["correct"].mean() == pytest.approx(1)


def test_frames_that_do_not_fit_are_refused():
    questions, documents, runs, answers, correct = frames()
    two = pd.concat([answers, answers.assign(system="t")])
    with pytest.raises(DataError, match="answers are of 2 systems"):
        causes.trace(questions, documents, runs, two, correct)
    with pytest.raises(DataError, match="no row for question 'right'"):
        causes.trace(questions, documents, runs, answers.iloc[1:], correct)
    with pytest.raises(UsageError, match="used"):
        causes.trace(questions, documents, runs, answers, correct, used=2)


def test_token_recall():
    assert metrics.token_recall("a fox, red", "the red fox runs") == pytest.approx(2 / 3)
    assert metrics.token_recall("red red", "red") == 1
    assert metrics.token_recall("", "red") == 0
