import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import DataError, UsageError
from ragkit.judging import review
from ragkit.judging.goldset import (
    check_panel,
    classify,
    is_anti_hallucination,
    join_documents,
    pool_of,
    require,
    turn,
)
from ragkit.judging.judges import CLASSES
from tests.judging.helpers import Scripted

R, V, I = "required", "valid", "invalid"  # noqa: E741


@pytest.mark.parametrize(
    ("votes", "gold_paper", "gold_code", "other_paper", "other_code"),
    [
        ((R, R, R), R, R, R, R),
        ((R, R, V), R, R, R, R),
        ((R, R, I), R, R, R, V),  # the code's mean is 4/3: no promotion
        ((R, V, V), R, R, V, V),
        ((R, V, I), R, R, V, V),
        ((R, I, I), I, R, I, V),  # mean 2/3: the code keeps it
        ((V, V, V), R, R, V, V),
        ((V, V, I), R, R, V, V),
        ((V, I, I), I, I, I, I),  # mean 1/3
        ((I, I, I), I, I, I, I),
    ],
)
def test_every_vote_of_three(votes, gold_paper, gold_code, other_paper, other_code):
    for order in itertools.permutations(votes):
        assert classify(order, gold=True) == gold_paper
        assert classify(order, gold=True, rules="code") == gold_code
        assert classify(order, gold=False) == other_paper
        assert classify(order, gold=False, rules="code") == other_code


@pytest.mark.parametrize(
    ("votes", "gold", "other"),
    [
        ((I, R), R, I),  # half is no majority
        ((R, V), R, V),
        ((R, R, I, I), R, I),
        ((None, I, I), I, I),
        ((None, I), R, None),  # one of two is none
        ((None, None, I), R, None),  # one of three is no majority of the panel
        ((None, R, R), R, R),
        ((None, R, I), R, I),
    ],
)
def test_ties_favour_the_gold_set_and_missing_votes_make_no_majority(votes, gold, other):
    for order in itertools.permutations(votes):
        assert classify(order, gold=True) == gold
        assert classify(order, gold=False) == other


@pytest.mark.parametrize(
    ("votes", "gold", "other"),
    [((V, I), R, V), ((R, V), R, R), ((R, I), R, V), ((V, I, I, I), I, I), ((R, R, R, I), R, R)],
)
def test_means_at_the_bounds_of_the_released_code(votes, gold, other):
    assert classify(votes, gold=True, rules="code") == gold
    assert classify(votes, gold=False, rules="code") == other


@given(
    st.lists(st.sampled_from(CLASSES), min_size=1, max_size=7),
    st.integers(0, 6),
    st.booleans(),
    st.sampled_from(["paper", "code"]),
)
def test_a_better_vote_never_makes_a_document_worse(votes, place, gold, rules):
    place %= len(votes)
    level = CLASSES.index(votes[place])
    better = [*votes]
    better[place] = CLASSES[min(level + 1, 2)]
    before = CLASSES.index(classify(votes, gold=gold, rules=rules))
    assert CLASSES.index(classify(better, gold=gold, rules=rules)) >= before


@pytest.mark.parametrize(
    ("fact", "forbids"),
    [
        ("The answer must not claim that the pool is shared.", True),
        ("Answers: the response should not mention v1.", True),
        ("Do not claim the token is reusable.", True),
        ("Must not use the June figure.", True),
        ("The answer may note X; the answer does not present it as final.", True),
        ("Avoid the June figure.", True),
        ("The answer must state that the limit is 10 MiB.", False),
        ("Production changes are not allowed on Fridays.", False),
        ("The normalizer does not trim white space.", False),
        ("If the rollback fails, operators must not retry.", False),
    ],
)
def test_anti_hallucination_facts(fact, forbids):
    assert is_anti_hallucination(fact) is forbids


# -- a whole review ---------------------------------------------------------------------------

DOCUMENTS = {name: f"text of {name}" for name in ("g1", "g2", "c1", "c2")}
NOT_X = "The answer must not say X."


def question(gold=("g1", "g2"), name="q"):
    return {
        "question_id": name,
        "text": "Why?",
        "answer": "old",
        "facts": ("old fact", NOT_X),
        "gold_doc_ids": gold,
    }


def panel(*members):
    """Judges that class the documents by a mapping each; the first writes new answers."""

    def script(table):
        def verdict(task, number):
            if task.kind == "regenerate":
                return {"answer": "new", "facts": ["new fact", NOT_X]}
            return table[task.fields["document"].removeprefix("text of ")]

        return verdict

    return [Scripted(script(table), f"judge {n}") for n, table in enumerate(members)]


def reviewed(members, pool=("c1",), gold=("g1", "g2"), **options):
    return review([question(gold)], {"q": pool}, DOCUMENTS, members, **options)["q"]


def test_one_run_that_confirms_the_gold_set_ends_the_review():
    members = panel(
        {"g1": R, "g2": V, "c1": R, "c2": I},
        {"g1": R, "g2": R, "c1": V, "c2": I},
        {"g1": I, "g2": I, "c1": R, "c2": R},
    )
    found = reviewed(members, ["c1", "g1", "c2"])
    assert (found.short_circuit, found.status, found.gold_after) == (1, "confirmed", ["g1", "g2"])
    assert found.classes == {"g1": R, "g2": R, "c1": V, "c2": I}
    assert [len(member.asked) for member in members] == [4, 4, 0]
    assert found.votes["c1"] == [R, V]


def test_a_changed_set_gets_a_new_answer_and_keeps_what_must_not_be_said():
    table = {"g1": R, "g2": I, "c1": R, "c2": V}
    members = panel(table, table, {"g1": I, "g2": I, "c1": R, "c2": I})
    found = reviewed(members, ["c1", "c2"])
    assert (found.status, found.gold_after) == ("changed", ["g1", "c1"])
    assert found.classes == {"g1": R, "g2": I, "c1": R, "c2": V}
    assert found.answer == "new"
    assert found.facts == ("new fact", NOT_X)  # once, though both sides have it
    texts = members[0].asked[-1][0].fields["documents"]
    assert [f"text of {name}" in texts for name in ("g1", "c1", "g2")] == [True, True, False]


def test_the_rules_decide_what_changes_and_a_set_is_never_emptied():
    members = ({"g1": R, "c1": R}, {"g1": I, "c1": R}, {"g1": I, "c1": I})
    by_paper = reviewed(panel(*members), gold=("g1",))
    assert (by_paper.status, by_paper.gold_after) == ("changed", ["c1"])
    by_code = reviewed(panel(*members), gold=("g1",), rules="code")
    assert (by_code.status, by_code.classes) == ("confirmed", {"g1": R, "c1": V})
    empty = reviewed(panel(*[{"g1": I, "g2": I, "c1": I}] * 3))
    assert (empty.status, empty.gold_after, empty.answer) == ("emptied", ["g1", "g2"], None)
    classed = reviewed(panel(*[{"g1": I, "g2": R, "c1": R}] * 3), correct=False)
    assert (classed.status, classed.gold_after) == ("confirmed", ["g1", "g2"])
    assert classed.classes["c1"] == R


def test_without_a_new_answer_the_old_set_stays():
    def script(task, number):
        if task.kind == "regenerate":
            raise LookupError("no answer")
        return R

    found = reviewed([Scripted(script)] * 3, gold=("g1",))
    assert (found.status, found.gold_after) == ("undecided", ["g1"])
    assert found.note == "failed: no answer"


def test_a_new_answer_that_failed_stands_in_the_way_of_no_other():
    def script(task, number):
        if task.kind == "regenerate" and task.fields["question"] == "Why?":
            raise LookupError("no answer")
        return {"answer": "new", "facts": []} if task.kind == "regenerate" else R

    rows = [question(("g1",), "a"), question(("g1",), "b") | {"text": "How?"}]
    found = review(rows, {"a": ["c1"], "b": ["c1"]}, DOCUMENTS, [Scripted(script)])
    assert [found[name].status for name in "ab"] == ["undecided", "changed"]
    assert (found["b"].answer, found["b"].facts) == ("new", (NOT_X,))


def test_a_judge_on_three_seats_gives_three_verdicts():
    judge = Scripted(lambda task, number: (R, I, V)[number % 3])
    found = reviewed([judge] * 3, gold=("g1",), correct=False, round=2)
    assert {number for _, number in judge.asked} == {6, 7, 8}
    assert found.votes["c1"] == [R, I, V]


def test_missing_verdicts_are_no_agreement_with_the_gold_set():
    def script(task, number):
        if "c1" in task.fields["document"]:
            raise LookupError("down")
        return R

    found = reviewed([Scripted(script)] * 3, correct=False)
    assert found.short_circuit is None
    assert found.classes == {"g1": R, "g2": R, "c1": None}


def test_the_new_answer_is_written_in_the_review_that_asks_for_it():
    table = {"g1": R, "g2": I, "c1": R}
    for options, number in (({}, 0), ({"round": 2}, 2)):
        members = panel(table, table)
        found = reviewed(members, **options)
        assert found.changed
        task, asked = members[0].asked[-1]
        assert (task.kind, asked) == ("regenerate", number)
        assert {number for _, number in members[1].asked} == {number}
        assert [task.fields[name] for name in ("question", "gold")] == ["Why?", "old"]
        assert found.reasons["c1"] == [f"because {number}"] * 2


def test_only_the_first_member_writes_answers():
    class Reader(Scripted):
        kinds = frozenset(["validity"])

    reader, writer = (cls(lambda task, number: R) for cls in (Reader, Scripted))
    check_panel([writer, reader], "validity", "regenerate")
    assert reviewed([reader], gold=("g1",), correct=False).classes == {"g1": R, "c1": R}
    with pytest.raises(UsageError, match="no verdicts of regenerate"):
        reviewed([reader, writer])
    reader.kinds = frozenset()
    with pytest.raises(UsageError, match="no verdicts of validity"):
        reviewed([writer, reader])


def test_parts_of_a_review_by_hand():
    assert pool_of(["g", "h", "g"], [["x", "g", "x"], None, ["y"]]) == ["g", "h", "x", "y"]
    assert pool_of(["g"], [["g"], None]) == []
    assert pool_of([], [["x"]]) == []
    a, b = Scripted(None), Scripted(None)
    assert [turn([a, b, a], member, 0) for member in range(3)] == [0, 0, 1]
    assert [turn([a, b, a], member, 2) for member in range(3)] == [4, 2, 5]
    want = '<document n="1">\none\n</document>\n<document n="2">\ntwo\n</document>'
    assert join_documents(["one", "two"]) == want
    assert join_documents(["</document>"]).count("</document>") == 1
    require(["a"], {"a": "text", "b": "text"})
    with pytest.raises(DataError, match=r"document 'b' is not there \(2 in all\)"):
        require(["c", "a", "b"], {"a": "text"})


def test_what_is_not_reviewed():
    judge = Scripted(lambda task, number: R)
    rows = [question(("g1", "g2"), "a"), question((), "b"), question(("g1",), "c")]
    assert review(rows, {"a": ["g2"], "b": ["c1"]}, DOCUMENTS, [judge]) == {}
    assert judge.asked == []


def test_bad_panels_and_documents():
    judge = Scripted(lambda task, number: R)
    with pytest.raises(UsageError, match="the panel is empty"):
        reviewed([])
    with pytest.raises(DataError, match="document 'c9' is not there"):
        reviewed([judge], ["c9"])
    with pytest.raises(UsageError, match="no rules"):
        reviewed([judge], rules="mine")
    with pytest.raises(UsageError, match="no rules 'mine'"):
        classify((R,), gold=True, rules="mine")
