"""One cause for every wrong answer: hand-worked traces, and the partition as a law."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit import datasets
from ragkit.errors import DataError
from ragkit.measures import causes, stats
from tests.conftest import frame_of

TESTS = Path(__file__).resolve().parents[1]
READ = TESTS / "goldens" / "causes.csv"

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
DOCS = st.lists(st.sampled_from(["d1", "d2", "none"]), unique=True, max_size=3)
TEXTS = st.sampled_from([None, "", "red", "the red fox", "blue whale"])
ANY = st.tuples(DOCS, TEXTS, st.booleans(), DOCS, DOCS, st.booleans(), st.just(""))


def frames(cases=CASES):
    questions = pd.DataFrame(
        [(key, "one", "the red fox", tuple(case[0])) for key, case in cases.items()],
        columns=["question_id", "type", "answer", "gold_doc_ids"],
    )
    answers = pd.DataFrame(
        [("s", key, case[1], case[2], tuple(case[3])) for key, case in cases.items()],
        columns=["system", "question_id", "answer", "abstained", "doc_ids"],
    )
    ranked = [(key, *one) for key, case in cases.items() for one in enumerate(case[4], start=1)]
    runs = frame_of("runs", *(("s", *one, 1.0) for one in ranked))
    correct = pd.Series({key: case[5] for key, case in cases.items()}, dtype=object)
    return questions, DOCUMENTS, runs, answers, correct


def test_every_cause_by_hand():
    traced = causes.trace(*frames())
    assert traced["cause"].to_dict() == {key: case[6] for key, case in CASES.items()}
    assert set(traced["cause"]) == {"", *causes.CAUSES} - {"not traced"}
    assert traced.loc["cut", "rank"] == 2
    assert traced.loc["strict", "used"] == 1.0
    assert traced.loc["ignored", "used"] == 0.0


def test_what_mending_a_cause_gains():
    table = causes.summarise(causes.trace(*frames()))
    assert list(table.index) == [name for name in causes.CAUSES if name != "not traced"]
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


def test_an_answer_that_nothing_is_known_of_is_no_abstention():
    questions, documents, runs, answers, correct = frames()
    for unknown in (None, float("nan")):
        answers["abstained"] = unknown
        traced = causes.trace(questions, documents, runs, answers, correct)
        assert traced.loc["silent", "cause"] == "not used"
        assert traced.loc["empty", "cause"] == "abstained"


def test_answers_alone_do_not_tell_where_documents_were_lost():
    """A file of answers may name no documents: that nothing was retrieved is not known."""
    questions, documents, runs, answers, correct = frames()
    answers["doc_ids"] = [()] * len(answers)
    traced = causes.trace(questions, documents, runs.iloc[:0], answers, correct)
    lost = {"cut", "half", "silent", "empty", "ignored", "strict", "unseen"}
    assert set(traced.index[traced["cause"] == "not traced"]) == lost
    assert traced.loc["absent", "cause"] == "not in the corpus"


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from("abcdefgh"), ANY, min_size=1))
def test_the_causes_partition_the_wrong_answers(cases):
    traced = causes.trace(*frames(cases))
    assert ((traced["cause"] == "") == traced["correct"]).all()
    assert set(traced["cause"]) <= {"", *causes.CAUSES}
    table = causes.summarise(traced)
    assert table["wrong"].sum() == (~traced["correct"].astype(bool)).sum()
    assert table["most"].sum() + traced["correct"].mean() == pytest.approx(1)


def exclusive(gold, text, abstained, given, ranked):
    """Return, for each cause, whether it holds; each is stated without the others."""
    here, answered = {"d1", "d2"} & set(gold), text is not None
    got, listed = set(gold) & set(given), set(gold) & set(ranked)
    silent = answered and (abstained or text == "")
    shared = len({"red", "fox"} & set(text.split())) / 2 if answered else 0
    whole = bool(here) and got == set(gold)
    return {
        "no answer": not answered,
        "no gold document": answered and not gold,
        "not in the corpus": answered and bool(gold) and not here,
        "not traced": answered and bool(here) and not given and not ranked,
        "not retrieved": answered
        and bool(here)
        and bool(given or ranked)
        and not got
        and not listed,
        "not delivered": answered and bool(here) and not got and bool(listed),
        "partly delivered": answered and bool(here) and bool(got) and got != set(gold),
        "abstained": answered and whole and silent,
        "not used": answered and whole and not silent and shared < 0.5,
        "judged wrong": answered and whole and not silent and shared >= 0.5,
    }


@settings(max_examples=200, deadline=None)
@given(st.tuples(DOCS, TEXTS, st.booleans(), DOCS, DOCS))
def test_exactly_one_cause_holds(case):
    holding = [name for name, holds in exclusive(*case).items() if holds]
    traced = causes.trace(*frames({"q": (*case, False, "")}))
    assert holding == [traced.loc["q", "cause"]]


def read_by_hand():
    """Return the wrong answers that were read, with the cause that the code gives now."""
    read = pd.read_csv(READ, keep_default_na=False).assign(now="")
    sets = {name: datasets.load(name, profile="sample") for name in set(read["benchmark"])}
    for (name, _), rows in read.groupby(["benchmark", "system"]):
        asked = sets[name].questions
        asked = asked[asked["question_id"].isin(rows["question_id"])]
        answers = rows.assign(doc_ids=rows["doc_ids"].str.split())
        runs = rows[["system", "question_id"]].assign(doc_id=rows["ranked"].str.split())
        runs = runs.explode("doc_id")
        runs["rank"] = runs.groupby("question_id").cumcount() + 1
        wrong = pd.Series(False, index=rows["question_id"])
        traced = causes.trace(asked, sets[name].documents, runs, answers, wrong)
        read.loc[rows.index, "now"] = rows["question_id"].map(traced["cause"])
    return read


def test_a_reader_names_the_same_causes():
    read = read_by_hand()
    assert (read["now"] == read["cause"]).all()
    assert set(read["reader"]) <= set(causes.CAUSES)
    assert read["reason"].str.len().min() > 0
    same = read["reader"] == read["cause"]
    said = {}
    for draw, part in same.groupby(read["draw"]):
        found = stats.wilson_interval(int(part.sum()), len(part))
        assert (found.n, found.estimate >= 0.9) == (100, True)
        said[draw] = part.sum(), f"{100 * found.low:.0f} to {100 * found.high:.0f} %"
    (even, around_even), (random, around_random) = said["each cause"], said["at random"]
    late = same[read["cause"].isin(["not used", "judged wrong"])]
    told = " ".join(causes.__doc__.split())
    assert f"share of each cause they agree on {even} (95 % interval {around_even})" in told
    assert f"of 100 drawn at random on {random} ({around_random})" in told
    assert f"of the {len(late)} answers that are" in told
    assert f'"judged wrong" they agree on {late.sum()}' in told
    figure = f"{even} of 100 drawn by cause, {random} of 100 drawn at random"
    assert figure in (TESTS / "README.md").read_text("utf-8")


def test_frames_that_do_not_fit_are_refused():
    questions, documents, runs, answers, correct = frames()
    two = pd.concat([answers, answers.assign(system="t")])
    with pytest.raises(DataError, match="answers are of 2 systems"):
        causes.trace(questions, documents, runs, two, correct)
    with pytest.raises(DataError, match="no row for question 'right'"):
        causes.trace(questions, documents, runs, answers.iloc[1:], correct)
