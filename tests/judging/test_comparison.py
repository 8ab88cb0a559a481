import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import DataError, UsageError
from ragkit.judging import Options, compare, read
from ragkit.judging.harness import preferred, swaps
from tests.judging.helpers import (
    DOCUMENTS,
    Scripted,
    answer_rows,
    answers,
    literal,
    question_rows,
    questions,
    write_jsonl,
)


def always(choice):
    def script(task, number):
        return choice if task.kind == "preference" else literal(task, number)

    return Scripted(script)


def many(count):
    names = [f"q{number:03}" for number in range(count)]
    frames = [questions(), answers("one"), answers("two")]
    return [frame.iloc[[0] * count].assign(question_id=names) for frame in frames]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("choice", ["first", "second"])
def test_a_judge_that_looks_at_the_position_comes_out_even(choice, seed):
    found = compare(*many(20), always(choice), Options(seed=seed)).data["preferences"]
    assert (found["a"], found["b"], found["tie"]) == (10, 10, 0)
    assert found["first_shown_preferred"] == (choice == "first")
    assert found["share_a"]["value"] == 0.5


@given(st.integers(0, 30), st.integers(1, 5), st.integers(0, 9))
def test_swaps_are_balanced_and_fixed(count, members, seed):
    names = [f"q{number}" for number in range(count)]
    drawn = swaps(names, members, seed=seed)
    assert set(drawn) == set(names)
    for member in range(members):
        assert abs(2 * sum(row[member] for row in drawn.values()) - count) <= 1
    assert swaps(names[::-1], members, seed=seed) == drawn


def test_members_of_a_panel_draw_apart():
    drawn = list(swaps([f"q{number}" for number in range(400)], 3).values())
    for order in itertools.product([False, True], repeat=3):
        assert drawn.count(order) > 25


def test_what_a_panel_prefers():
    letters = {"a": "a", "b": "b", "t": "tie", "-": None}
    for votes, expected in [
        row.split(":")
        for row in """
        aab:a btb:b abt:tie tta:tie ab:tie aa-:a ab-:tie aab--:a aa--:- a--:- -:-""".split()
    ]:
        found = preferred([letters[vote] for vote in votes])
        assert found == letters.get(expected, expected), votes


def test_a_preference_is_mapped_back():
    def script(task, number):
        if task.kind == "preference":
            return "first" if "Ann" in task.fields["first"] else "second"
        return literal(task, number)

    one = answers("one", q1=("Ann", ("d1", "d9")), q2=("Ann", ()), q3=("Ann", None))
    two = answers("two", q1=("Bob", ("d9", "d7")), q2=("Bob", ()), q3=("Bob", None))
    found = compare(questions(), one, two, Scripted(script))
    assert found.preferences["preferred"].tolist() == ["a"] * 3
    assert found.preferences["a"].tolist() == [3] * 3
    assert found.preferences[["shared", "only_a", "only_b"]].iloc[0].tolist() == [1, 1, 1]
    assert repr(found).startswith("<Comparison of ")
    assert "<code>.preferences</code> each question" in found._repr_html_()
    assert [found.data["pairs"][0][name] for name in ("shared", "only_a", "only_b")] == [
        ["d9"],
        ["d1"],
        ["d7"],
    ]
    turned = compare(questions(), two, one, Scripted(script))
    assert turned.preferences["preferred"].tolist() == ["b"] * 3


def test_both_systems_are_scored_on_all_questions():
    one, two = answers("one"), answers("two", q1=("blue", ("d1",)), q2=None)
    found = compare(questions(), one, two, always("tie"))
    assert repr(found).startswith("<Comparison of one, two: 6 answers, ")
    assert found.preferences["preferred"].tolist() == ["tie", None, "tie"]
    assert found.records[4]["system"] == "two"
    assert found.records[4]["answer"] is None
    assert found.data["preferences"]["of"] == 2
    assert found.data["preferences"]["share_a"] is None
    row = found.differences.set_index("metric").loc["correctness"]
    assert (row["system_a"], row["system_b"]) == ("one", "two")
    # one: right, wrong, right; two: wrong, no answer, right
    assert (row["a"], row["b"], row["n"]) == (pytest.approx(2 / 3), pytest.approx(1 / 3), 3)
    table = found.summary.set_index(["system", "group", "metric"])
    assert table.loc[("one", "overall", "correctness"), "n"] == 3
    assert found.data["counts"]["two"]["answered"] == 2


def test_the_pool_of_both_corrects_the_gold_set_for_both():
    def script(task, number):
        if task.kind == "validity":
            useful = task.fields["document"] in ("text of d1", "text of d8", "text of d9")
            return "required" if useful else "invalid"
        if task.kind == "regenerate":
            return {"answer": "red", "facts": ["red"]}
        return "tie" if task.kind == "preference" else literal(task, number)

    one = answers("one", q1=("red", ("d1", "d9")), q2=None, q3=None)
    two = answers("two", q1=("red", ("d8", "d2")), q2=None, q3=None)
    found = compare(questions(), one, two, Scripted(script), Options(documents=DOCUMENTS))
    a, b = found.records[0], found.records[3]
    assert a["corrected"]
    assert a["expected_doc_ids"] == b["expected_doc_ids"] == ["d1", "d9", "d8"]
    assert a["scores"]["document_recall"] == pytest.approx(2 / 3)
    assert b["scores"]["document_recall"] == pytest.approx(1 / 3)
    assert a["scores"]["invalid_extra_documents"] == 0
    assert b["scores"]["invalid_extra_documents"] == 1
    options = Options(documents=DOCUMENTS, correct_gold=False)
    fixed = compare(questions(), one, two, Scripted(script), options)
    assert not fixed.records[0]["corrected"]
    assert fixed.records[3]["scores"]["document_recall"] == 0


def test_votes_that_failed_are_missing():
    def script(task, number):
        if task.kind == "preference":
            if number != 1:
                raise LookupError("down")
            return "first"
        return literal(task, number)

    found = compare(questions(), answers("one"), answers("two"), Scripted(script))
    assert found.preferences["preferred"].tolist() == [None] * 3
    assert found.preferences["missing"].tolist() == [2] * 3
    assert found.data["preferences"]["missing"] == 3
    assert found.data["preferences"]["n"] == 0


def test_reports_round_trip_and_rounds_differ(tmp_path):
    files = (
        write_jsonl(tmp_path / "q.jsonl", question_rows()),
        write_jsonl(tmp_path / "one.jsonl", answer_rows(answers())),
        write_jsonl(tmp_path / "two.jsonl", answer_rows(answers(q1=("blue", ())))),
    )
    out = tmp_path / "C.json"
    found = compare(*files, always("first"), out=out)
    assert read(out).data == found.data
    assert read(out).preferences.equals(found.preferences)
    judge = always("second")
    again = compare(*files, judge, Options(round=1), out=out)
    assert {number for task, number in judge.asked if task.kind == "preference"} == {3, 4, 5}
    for pairs in zip(found.data["pairs"], again.data["pairs"], strict=True):
        before, after = ([vote["preferred"] for vote in pair["votes"]] for pair in pairs)
        assert [{"a": "b", "b": "a"}[side] for side in before] == after


def test_systems_need_names_and_questions_in_common():
    with pytest.raises(UsageError, match="both systems are called 'one'"):
        compare(questions(), answers("one"), answers("one"), always("tie"))
    with pytest.raises(DataError, match="no question in common"):
        compare(questions(), answers("a", q1=None, q2=None), answers("b", q3=None), always("tie"))
    with pytest.raises(UsageError, match="panel is empty"):
        compare(questions(), answers("a"), answers("b"), always("tie"), Options(panel=[]))
