import math

import numpy as np
import pytest

from ragkit.errors import DataError, UsageError
from ragkit.judging import ModelJudge, Task, Verdict, ask, load_judge
from ragkit.judging.judges import KINDS, PROMPTS, combine, unit_rating
from ragkit.judging.report import agreement
from ragkit.llm import Client, load_prompt
from tests.judging.helpers import Scripted, between, literal, replies
from tests.llm.server import chat


def told(kind, *values, **more):
    """Combine verdicts of these values."""
    return combine(kind, [Verdict(value, "r", "m", **more) for value in values])


def model(**options):
    return ModelJudge(Client("openai:toy", ledger=None, backoff=0.0, **options))


@pytest.mark.parametrize("kind", KINDS)
def test_a_prompt_takes_the_fields_of_its_kind(kind):
    assert load_prompt(kind, PROMPTS).placeholders == set(KINDS[kind].fields)


@pytest.mark.parametrize(
    ("kind", "values", "value", "spread"),
    [
        ("correctness", [True], True, None),
        ("correctness", [True, True, False], True, math.sqrt(2 / 9)),
        ("correctness", [True, False], False, 0.5),  # half is not more than half
        ("correctness", [None, True, None], True, None),
        ("fact", [False, False, False], False, 0.0),
        ("factuality", [0.25, 0.5, 0.75], 0.5, math.sqrt(1 / 24)),
        ("validity", ["required", "valid", "invalid"], "valid", math.sqrt(1 / 6)),
        ("validity", ["required", "invalid", "invalid"], "invalid", math.sqrt(2 / 9)),
        ("validity", ["required", "required", "invalid"], "required", math.sqrt(2 / 9)),
        ("preference", ["first", "first", "second"], "first", math.sqrt(2 / 9)),
        ("preference", ["first", "tie", "second"], "tie", math.sqrt(1 / 6)),
    ],
)
def test_repeats_are_combined(kind, values, value, spread):
    verdict = told(kind, *values)
    assert verdict.value == value
    assert verdict.spread == (None if spread is None else pytest.approx(spread))
    assert len(verdict.failures) == values.count(None)


def test_without_any_value_the_verdict_is_missing():
    lost = [Verdict(None, reason, "m") for reason in ("timeout: late", "refused: no")]
    verdict = combine("correctness", lost)
    assert (verdict.missing, verdict.reason, verdict.spread) == (True, "timeout: late", None)
    assert verdict.failures == ["timeout: late", "refused: no"]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("fact", (1, 0.7)),
        ("correctness", ("yes",)),
        ("factuality", (4, math.nan)),
        ("validity", ("maybe",)),
        ("preference", ("a",)),
    ],
)
def test_values_off_the_scale_are_refused(kind, values):
    for value in values:
        with pytest.raises(DataError, match=f"a verdict of {kind} cannot be"):
            told(kind, value)


def test_numbers_of_numpy_and_scores():
    verdict = told("fact", np.bool_(True), score=0.8)
    assert verdict.value is True
    assert verdict.score == 0.8
    assert told("fact", True).score is None
    assert type(told("factuality", np.float32(0.5)).value) is float


def test_ratings_on_the_unit_scale():
    assert [unit_rating(rating) for rating in range(1, 6)] == [0, 0.25, 0.5, 0.75, 1]
    for rating in (0, 6, 2.5, True, "3", None):
        with pytest.raises(DataError, match="1 to 5"):
            unit_rating(rating)


def test_tasks_are_checked():
    with pytest.raises(UsageError, match="no kind of task 'corectness'") as caught:
        Task("corectness", {})
    assert "correctness" in caught.value.hint
    with pytest.raises(UsageError, match="takes question, gold, answer"):
        Task("correctness", {"question": "q"})
    with pytest.raises(DataError, match="answer of a task"):
        Task("correctness", {"question": "q", "gold": "g", "answer": None})


def test_a_judge_is_found_by_name_and_says_what_it_cannot_judge():
    judge = load_judge("openai:toy")
    assert isinstance(judge, ModelJudge)
    assert judge.name == "openai:toy"
    with pytest.raises(UsageError, match="no judge is called 'opnai:toy'") as caught:
        load_judge("opnai:toy")
    assert "openai" in caught.value.hint
    judge = Scripted(literal)
    judge.kinds = frozenset({"correctness"})
    with pytest.raises(UsageError, match="no verdicts of validity"):
        judge.verdict("validity", "q", "d")


def test_the_model_judge_asks_and_reads(endpoint):
    def script(said, properties, nth):
        if "<expert_answer>" in said:
            return 4
        if "<document>" in said:
            return "valid"
        wanted = between(said, "fact") if "<fact>" in said else between(said, "gold")
        return wanted in between(said, "candidate")

    server = endpoint(replies(script))
    judge = model()
    assert judge.verdict("correctness", "q", "red", "it is red").value is True
    assert judge.verdict("correctness", "q", "red", "it is blue").value is False
    assert judge.verdict("fact", "q", "dark", "dark red").value is True
    assert judge.verdict("validity", "q", "a text").value == "valid"
    assert judge.verdict("factuality", "q", "g", "a").value == 0.75
    found = judge.verdict("context_recall", "q", "g", "c", repeat=3)
    assert (found.value, found.values, found.spread) == (0.75, [0.75] * 3, 0.0)
    assert found.reason == "as scripted"
    assert sum(server.asked.values()) == 8
    judge.close()


def test_a_failing_model_leaves_a_missing_verdict(endpoint):
    """Braces in an answer mean nothing to the prompt."""

    def answer(body, nth, digest):
        said = between(body["messages"][1]["content"], "candidate")
        verdict = "true" if said == "{{gold}} and {0}" else '"perhaps"'
        return chat(f'{{"reason": "r", "verdict": {verdict}}}')

    endpoint(answer)
    judge = model()
    fields = [{"question": "q", "gold": "g", "answer": said} for said in ("{{gold}} and {0}", "x")]
    good, bad = ask(judge, [Task("correctness", one) for one in fields])
    judge.close()
    assert good.value is True
    assert bad.missing
    assert bad.values == [None]
    assert bad.reason.startswith("invalid:")


@pytest.mark.parametrize(
    "ratings",
    [
        ([1, 1], [0, 0], [1, 0], [1, math.nan]),
        ([True, True], [False, False], [True, False], [True, None]),
    ],
)
def test_alpha_by_hand(ratings):
    # Pairs 1-1, 0-0, 1-0 and 1 alone: of 6 values 3 are 1. Observed disagreement is that of one
    # pair: 2 of 6 ordered pairs; expected 2 * 3 * 3 / (6 * 5). Alpha = 1 - (1/3) / (3/5) = 4/9.
    assert agreement(ratings) == {
        "alpha": pytest.approx(4 / 9),
        "level": "nominal",
        "units": 3,
        "unanimous": pytest.approx(2 / 3),
    }


def test_alpha_at_its_ends_and_by_level():
    # names, not numbers: 2 of 4 pairs differ; 2, 3 and 3 of 8 values: 42 of 56 pairs of them do
    found = agreement([[0, 1], [0, 2], [1, 1], [2, 2]])
    assert found["alpha"] == pytest.approx(1 - (2 / 4) / (42 / 56))
    assert agreement([[0, 0], [1, 1]])["alpha"] == 1
    assert agreement([[0, 1], [1, 0]])["alpha"] < 0
    assert agreement([[1, 1], [1, 1]])["alpha"] is None  # nothing varies: not defined
    none = agreement([[1, math.nan], [0, math.nan]])
    assert (none["alpha"], none["units"], none["unanimous"]) == (None, 0, None)
    near = agreement([[0, 0.5], [1, 1], [0, 0], [0.5, 0.5]], level="ordinal")
    far = agreement([[0, 1], [1, 1], [0, 0], [0.5, 0.5]], level="ordinal")
    assert near["alpha"] > far["alpha"]
    with pytest.raises(UsageError, match="no level"):
        agreement([[0, 1]], level="ratio")
