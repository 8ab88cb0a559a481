import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import DataError, UsageError
from ragkit.judging import ModelJudge, liverag, wixqa
from ragkit.llm import Client
from tests.judging.helpers import Scripted, answers, literal, questions, replies

# -- WixQA ------------------------------------------------------------------------------------


def rating(task, number):
    if task.fields["gold"] == "two":
        raise LookupError("down")
    return (0.0, 1.0, 0.5)[number]


def test_factuality():
    frame = answers(q1=("", ()), q3=(None, None))
    found = wixqa.factuality(frame, questions(), Scripted(rating), repeat=3)
    assert found["question_id"].tolist() == ["q1", "q2"]
    assert found["metric"].unique() == ["factuality"]
    assert found["value"][0] == 0.5
    assert found["spread"][0] == pytest.approx(math.sqrt(1 / 6))
    assert found["repeats"][0] == [0.0, 1.0, 0.5]
    assert math.isnan(found["value"][1])
    assert found["reason"][1] == "failed: down"


def test_context_recall_shows_the_retrieved_documents():
    judge = Scripted(lambda task, number: 0.75)
    names = ["d1", "d2", "d8", "d9"]
    documents = pd.DataFrame({"doc_id": names, "source": "s", "title": ""})
    documents["text"] = "text " + documents["doc_id"]
    found = wixqa.context_recall(answers(), questions(), documents, judge, cutoff=2)
    assert found["value"].tolist() == [0.75, 0.75]  # q3 has no documents
    assert [task.fields["context"].count("text") for task, _ in judge.asked] == [2, 2]
    assert "text d9" not in judge.asked[1][0].fields["context"]
    with pytest.raises(DataError, match="document 'd2' is not there"):
        wixqa.context_recall(answers(), questions(), documents[:1], judge)


def test_wixqa_needs_gold_answers():
    with pytest.raises(DataError, match="no gold answer to question 'q2'"):
        wixqa.factuality(answers(), questions().assign(answer=["a", None, "c"]), Scripted(rating))
    judge = Scripted(rating)
    judge.kinds = frozenset()
    with pytest.raises(UsageError, match="no verdicts of factuality"):
        wixqa.factuality(answers(), questions(), judge)


# -- LiveRAG ----------------------------------------------------------------------------------


def test_correctness_by_hand():
    for coverage, relatedness, score in (
        (1, 1, 2), (0, 1, -1), (1, 0, -1), (0, 0, -1), (0.5, 0.5, 0.5), (0.5, 1, 1),
        (0.25, 0.75, 0.125),
    ):  # fmt: skip
        assert liverag.correctness_score(coverage, relatedness) == pytest.approx(score)
    for share in (-0.1, 1.1, math.nan):
        for name, pair in (("coverage", (share, 1)), ("relatedness", (1, share))):
            with pytest.raises(DataError, match=f"{name} should be a share"):
                liverag.correctness_score(*pair)


shares = st.floats(0, 1)


@given(shares, shares)
def test_correctness_lies_in_the_papers_range(coverage, relatedness):
    score = liverag.correctness_score(coverage, relatedness)
    assert -1 <= score <= 2 + 1e-12
    assert score == liverag.correctness_score(relatedness, coverage)
    assert score <= 3 * max(coverage, relatedness) * (1 + 1e-12) - 1 + 1e-12


def claims(task, number):
    if task.kind != "claims":
        return literal(task, number)
    if "down" in task.fields["answer"]:
        raise LookupError("down")
    kinds = {"red": "direct", "dark": "useful", "by": "useless", "the": "useless"}
    return [
        {"claim": word, "kind": kinds[word]}
        for word in task.fields["answer"].split()
        if word in kinds
    ]


def one(text="red dark by", gold="red dark by"):
    frame = questions().iloc[:1].assign(answer=gold)
    return answers(q1=(text, ()), q2=None, q3=None), frame


def test_correctness_of_answers():
    judge = Scripted(claims)
    row = liverag.correctness(*one("red by the", "red dark by"), judge).iloc[0]
    # Two vital claims in the reference, one covered; one of three claims of the answer is to it.
    assert (row["vital"], row["claims"]) == (2, 3)
    assert row["coverage"] == 0.5
    assert row["relatedness"] == pytest.approx(1 / 3)
    assert row["correctness"] == pytest.approx(3 * 0.4 - 1)


def test_given_claims_are_not_asked_for():
    judge = Scripted(claims)
    frame, asked = one("red")
    asked = asked.assign(claims_direct=[("red",)], claims_useful=[()], claims_useless=[("by",)])
    row = liverag.correctness(frame, asked, judge).iloc[0]
    assert (row["coverage"], row["relatedness"], row["correctness"]) == (1, 1, 2)
    assert [task.kind for task, _ in judge.asked] == ["claims", "fact"]


def test_answers_without_claims_and_without_verdicts():
    judge = Scripted(claims)
    empty = liverag.correctness(*one("  "), judge).iloc[0]
    assert (empty["coverage"], empty["relatedness"], empty["correctness"]) == (0, 0, -1)
    evasive = liverag.correctness(*one("no idea"), judge).iloc[0]
    assert (evasive["claims"], evasive["correctness"]) == (0, -1)

    def half(task, number):
        if task.kind == "fact" and task.fields["fact"] == "dark":
            raise LookupError("down")
        return claims(task, number)

    for pair, own, note in (
        (("down",), judge, "the judge failed to extract the claims of the answer"),
        (("red", "down"), judge, "the judge failed to extract the claims of the reference"),
        (("red", "by"), judge, "the reference has no vital claim"),
        (("red",), Scripted(half), "1 of 2 claims were not judged"),
    ):
        lost = liverag.correctness(*one(*pair), own).iloc[0]
        assert math.isnan(lost["correctness"])
        assert lost["note"] == note


def test_ratings_and_claims_come_from_the_model(endpoint):
    claim = {"claims": [{"claim": "red", "kind": "direct"}]}

    def script(said, properties, nth):
        return claim if "claims" in properties else "<fact>" in said or 2

    endpoint(replies(script))
    with Client("openai:toy", ledger=None) as client:
        judge = ModelJudge(client)
        found = wixqa.factuality(answers(), questions(), judge)
        assert liverag.correctness(*one("red"), judge)["correctness"].tolist() == [2]
    assert found["value"].tolist() == [0.25] * 3
    assert found["model"].unique() == ["openai:toy"]


def test_liverag_bad_input():
    judge = Scripted(claims)
    with pytest.raises(DataError, match="'q1' has neither a gold answer nor claims"):
        liverag.correctness(*one(gold=None), judge)
