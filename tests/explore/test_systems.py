"""Explorers of systems: what is shown, in which order, live and without a kernel."""

from __future__ import annotations

import pandas as pd
import pytest

from ragkit import explore, irt
from ragkit.errors import DataError, UsageError
from ragkit.measures import causes
from tests.conftest import frame_of
from tests.measures.test_causes import frames

QUESTIONS = frame_of(
    "questions",
    ("q1", "one <b>?", "t", "1", (), ("d1",)),
    ("q2", "two?", "t", "2", (), ("d2",)),
    ("q3", "three?", "t", "3", (), ("none",)),
)
SCORES = pd.DataFrame(
    [("a", "q1", 0.2), ("b", "q1", 1.0), ("a", "q2", 1.0), ("b", "q2", 0.5), ("a", "q3", 1.0)],
    columns=["subject_id", "item_id", "score"],
)
ANSWERS = pd.DataFrame(
    {"system": ["a", "b"], "question_id": ["q1", "q1"], "answer": ["from a", "<i>from b"]}
)
DOCUMENTS = pd.DataFrame(
    {"doc_id": ["d1", "d2"], "title": ["Red", "Blue"], "text": ["a fox " * 90, "a whale"]}
)


def static(view) -> str:
    return view._repr_mimebundle_()["text/html"]


def test_two_systems_side_by_side_by_difference():
    view = explore.pair(SCORES, "a", "b", QUESTIONS, ANSWERS)
    assert [key for _, key in view.choose.options] == ["q2", "q1"]
    assert view.choose.options[1][0].startswith("-0.80  q1")
    view.choose.value = "q1"
    assert "from a" in view.shown.value
    assert "&lt;i&gt;from b" in view.shown.value
    assert "Largest differences of 2 questions: a less b" in static(view)
    with pytest.raises(UsageError, match="no scores of 'c'"):
        explore.pair(SCORES, "a", "c", QUESTIONS)


def test_a_question_with_all_that_systems_made_of_it():
    frame = QUESTIONS.set_index("question_id")
    verdicts = pd.DataFrame({"system": ["a"], "question_id": ["q1"], "correct": [True]})
    view = explore.questions(frame, SCORES, answers=ANSWERS, verdicts=verdicts, documents=DOCUMENTS)
    page = view.page("q1")
    assert "gold document d1" in page
    assert "characters in all" in page
    assert page.index("<i>") < page.index("from a")
    assert "not in the corpus" in view.page("q3")


def test_a_question_has_its_curve():
    made = irt.simulate(20, 12, seed=1).scores
    fit = irt.fit(made)
    frame = pd.DataFrame({"text": "?"}, index=fit.items.index)
    page = explore.questions(frame, made, fit=fit).page(fit.items.index[0])
    assert "data:image/png;base64," in page


def test_wrong_answers_by_cause():
    questions, documents, runs, answers, correct = frames()
    traced = causes.trace(questions, documents, runs, answers, correct)
    questions = questions.assign(text=questions["question_id"] + "?")
    view = explore.causes(traced, questions, answers)
    assert len(view.choose.options) == 10
    found = [words.split("  ")[0] for words, _ in view.choose.options]
    assert found[:2] == ["no answer", "no gold document"]
    page = view.page("cut")
    assert "not delivered: a gold document is in the list, the reader was given none" in page
    assert "The first 10 of 10 wrong answers" in static(view)
    right = traced[traced["correct"].astype(bool)]
    with pytest.raises(DataError, match="no answer to explore"):
        explore.causes(right, questions, answers)


def test_a_corpus_is_searched():
    points = pd.DataFrame(
        {"corpus": "c", "source": "web", "title": ["Red", "Blue"], "terms": "t", "x": [0, 1.0]}
    ).assign(y=0.0, trustworthiness=0.9)
    runs = pd.DataFrame({"system": ["s"], "question_id": ["q1"], "rank": [3], "doc_id": ["d1"]})
    view = explore.corpus(points, DOCUMENTS, QUESTIONS, runs)
    view.search.value = "FOX"
    assert "d1: Red" in view.found.value
    assert "d2: Blue" not in view.found.value
    assert "q1: one &lt;b&gt;? Ranks: s 3" in view.found.value
    view.search.value = "(nothing"
    assert "<td>0</td>" in view.found.value
    assert "plotly" in view._repr_mimebundle_()["text/html"]
