import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit import datasets
from ragkit.errors import DataError, UsageError
from ragkit.judging import Task, evaluate, load_judge
from ragkit.judging.calibrate import calibrate
from ragkit.judging.features import (
    ATTACK,
    FEATURES,
    against,
    attacking,
    conflicts,
    coverage,
    weight,
)
from ragkit.judging.offline import COEFFICIENTS, OfflineJudge, features, read_coefficients
from ragkit.judging.offline_text import abstains, asks_abstention, cues, opposed, parse, sentences

GOLD = "The limit is 10 MiB per file, owned by Ada Byron since April 7, 2026."
QUESTION = "How large may an upload be?"


def task(answer, gold=GOLD, question=QUESTION):
    return Task("correctness", {"question": question, "gold": gold, "answer": answer})


@pytest.fixture(scope="module")
def judge():
    return load_judge("offline")


SPELLINGS = """
10MiB = 10 MiB; 10,000 files = 10000 files; 10k files = 10,000 files; 5% = 5 percent; 5 % =
five per cent; 2.50 = 2.5; 3.0 GB = 3GB; twenty-five = 25; 30 seconds = 30s; 15 mins = fifteen
minutes; 2026-04-07 = April 7, 2026; 7 April 2026 = Apr. 7th, 2026; 04/07/2026 = 2026-04-07;
25/04/2026 = April 25, 2026; 9am = 09:00; 9:30 PM = 21:30; 12 am = 00:00; 1,234.50 = 1234.5;
the 3rd = the 3; limits [1][3] = limits; Limits are configured = limit configure
"""


# A text = its numbers.
NUMBERS = """
from 10 to 20 days = 10 20; v2.4.1 = 2.4.1; p95 of 800ms = 95 800; May 2024 = 2024; may 24 people
join = 05-24; April 7 = 04-07; one of them = ; 0.50% = 0.5%; no numbers =
"""
# A kind of cue: texts that have one each.
CUES = {
    "abstention": """I could not find that in the documents.|The context does not specify the limit.|
There is no information about it.|I do not have enough information to answer.|
I can't determine the owner.|The limit is unknown.""",
    "retraction": "That is wrong.|None of this is true.|It is no longer valid.",
    "hedge": "Either 5 days.|It could also be 5 days.|There are several possible answers.",
}


def pairs(table):
    rows = " ".join(table.split()).split("; ")
    return [tuple(side.strip() for side in row.split("=", 1)) for row in rows]


def test_spellings_and_numbers():
    for one, other in pairs(SPELLINGS):
        assert parse(one).tokens == parse(other).tokens, one
        assert parse(one).numbers == parse(other).numbers, one
    for text, numbers in pairs(NUMBERS):  # "may 24" is a date by mistake: known
        assert parse(text).numbers == set(numbers.split()), text
    found = parse("It isn't 30 days, never 45%.")
    assert (found.units, found.negations) == ({("30", "day")}, 2)
    assert parse("It is 30 days.").negations == 0
    assert sentences("One point. Two!\n- three\n\n---\n") == ("One point.", "Two!", "three")


def test_opposites():
    for one, other, expected in (
        ("retries are enabled", "retries are disabled", True),
        ("rates increase", "rates decreased", True),
        ("retries are enabled", "retries are enabled", False),
        ("enable or disable it", "disable it", False),
        ("retries", "no retries", False),
    ):
        assert opposed(parse(one), parse(other)) is expected
        assert opposed(parse(other), parse(one)) is expected


@pytest.mark.parametrize("kind", CUES)
def test_cues(kind):
    for text in CUES[kind].replace("\n", "").split("|"):
        assert cues(text, kind) == 1, text
        if kind == "abstention":
            assert abstains(f"{text} " * 3)
            assert not abstains("The limit is 10. " * 20 + text)
    for text in ("The limit is 10 MiB, owned by Ada.", "It is not 10 but 20.", "No, 5 days."):
        assert cues(text, kind) == 0
        assert not asks_abstention(text)
    assert asks_abstention("The answer should say that the question is not fully answerable.")
    assert asks_abstention("This is not documented anywhere.")
    assert asks_abstention("The documents do not say this. A good answer says so.")
    assert not asks_abstention("The answer must not say that the tank is full.")


def test_every_unanswerable_question_of_the_sample_asks_for_an_abstention():
    asked = datasets.load("enterpriserag_bench", profile="sample").questions
    found = asked["answer"].map(asks_abstention).astype(bool)
    assert (found == (asked["type"] == "info_not_found")).all()
    one = asked[found].iloc[:1]
    said = "The documents do not answer this question."
    answers = one[["question_id"]].assign(system="a", answer=said, doc_ids=[()])
    frame = evaluate(one, answers, OfflineJudge(), system="a").summary
    value = frame[frame["group"] == "overall"].set_index("metric")["value"]
    assert value["correctness"] == 1


def test_coverage_by_hand():
    assert [weight(word) for word in ("7", "ab", "abcd", "abcdefghijkl")] == [15, 4, 6, 10]
    assert coverage(frozenset({"7", "abc", "abcdefghij"}), frozenset({"7", "abc"})) == 20 / 30
    assert coverage(frozenset(), frozenset({"a"})) == 1
    assert coverage(frozenset({"abc"}), frozenset()) == 0


def test_features_of_an_answer_by_hand():
    found = against("Which limit?", "Limit: 30 days for Ada.", "A limit of 45 days, Ada said.")
    # wanted and new: 30 (15), day (5), ada (5); the answer lacks 30
    assert found["covered"] == 10 / 25
    # the best sentence has limit (7), day and ada of all that is wanted
    assert found["best"] == 17 / 32
    assert found["numbers"] == 0
    assert found["numbers_missing"] == math.log(2)
    assert found["conflicts"] == math.log(2)
    assert found["names"] == 1
    assert found["precision"] == pytest.approx((7 + 5 + 5) / (7 + 15 + 5 + 5 + 6))
    assert found["abstains"] == found["abstentions"] == 0
    assert found["wanted_length"] == math.log(1 + 4)
    assert set(found) == set(FEATURES)


def test_a_number_is_contradicted_only_in_its_place():
    want, asked = parse("within 30 days"), parse("How long?")
    assert conflicts(want, parse("within 45 days"), asked) == {"30"}
    assert conflicts(want, parse("within 45 hours"), asked) == set()
    assert conflicts(want, parse("30 days, or 45 days abroad"), asked) == set()
    assert conflicts(want, parse("after 45 days"), parse("What of the 45 days?")) == set()


def test_damaged_copies_are_noticed():
    wanted = "Retries are enabled for 30 seconds by default."
    for answer, found in (
        (wanted, (0, 0)),
        (wanted.replace("are", "are not"), (1, 0)),
        (wanted.replace("enabled", "disabled"), (1, 0)),
        (wanted.replace("30", "45"), (0, 1)),
        ("Something else does not happen within 45 seconds.", (0, 0)),
    ):
        made = against("What of it?", wanted, answer)
        assert (made["reversed"], made["renumbered"]) == found


texts = st.text(alphabet=st.characters(codec="utf-8"), max_size=80) | st.sampled_from(
    [GOLD, "", "10", "not", "No. 5% of 10k on 31/31/2026 at 99:99pm", "İ’n't '", "a " * 400]
)


@settings(max_examples=150, deadline=None)
@given(texts, texts, texts)
def test_any_text_gives_finite_features_and_a_probability(question, gold, answer):
    for table in (against(question, gold, answer), attacking(question, gold, answer)):
        assert all(math.isfinite(value) for value in table.values())
    judge = OfflineJudge()
    tasks = [
        task(answer, gold, question),
        Task("fact", {"question": question, "fact": gold, "answer": answer}),
        Task("factuality", {"question": question, "gold": gold, "answer": answer}),
        Task("context_recall", {"question": question, "gold": gold, "context": answer}),
    ]
    assert all(0 <= value <= 1 for value in judge.probability(tasks))
    assert all(verdict.reason and not verdict.missing for verdict in judge.judge(tasks))


def test_right_and_wrong_answers(judge):
    right = "An upload may have up to 10MiB per file; Ada Byron owns the limit since 2026-04-07."
    assert judge.verdict("correctness", QUESTION, GOLD, right).value is True
    for wrong in (
        "The limit is 20 MiB per file, owned by Ada Byron since April 7, 2026.",
        "The limit is not 10 MiB per file, owned by Ada Byron since April 7, 2026.",
        "I could not find that in the documents.",
        "Lunch is at noon in the canteen.",
        "",
        "[1]",
    ):
        assert judge.verdict("correctness", QUESTION, GOLD, wrong).value is False


def test_reasons_name_what_is_missing(judge):
    verdict = judge.verdict("correctness", QUESTION, GOLD, "The limit is 20 MiB per file.")
    assert "other numbers in place of 10" in verdict.reason
    assert "no number or date 04-07, 2026" in verdict.reason
    assert f"probability {verdict.score:.2f}" in verdict.reason
    unsure = judge.verdict("correctness", QUESTION, GOLD, "The limit is not specified.")
    assert "says that something is not known" in unsure.reason


def test_unanswerable_questions_are_judged_by_the_abstention(judge):
    gold = "The answer must say that the question is not answerable from the documents."
    yes = judge.verdict("correctness", QUESTION, gold, "I could not find that in the documents.")
    no = judge.verdict("correctness", QUESTION, gold, "The limit is 10 MiB.")
    assert (yes.value, no.value) == (True, False)
    assert "unanswerable" in yes.reason
    assert yes.score == read_coefficients().tables["unanswerable"]["opening"]


def test_unvalidated_kinds_say_so(judge):
    found = judge.verdict("factuality", QUESTION, GOLD, GOLD)
    assert found.reason.startswith("unvalidated factuality")
    assert found.value == judge.probability([task(GOLD)])[0]
    texts = ("Ada left. Bob came.", "Yesterday Ada left us.")
    recall = judge.verdict("context_recall", QUESTION, *texts)
    assert recall.reason.startswith("unvalidated context recall")
    # the first sentence is there, of the second (bob 5, came 6) nothing
    assert recall.value == 0.5
    assert recall.score is None


def test_a_verdict_depends_on_its_task_alone(judge):
    tasks = [task(f"The limit is {n} MiB.", GOLD + f" Or {n % 3}.") for n in range(30)]
    alone = [judge.judge([one])[0] for one in tasks]
    mixed = list(range(30))
    random.Random(1).shuffle(mixed)
    together = judge.judge([tasks[place] for place in mixed])
    assert [together[mixed.index(place)] for place in range(30)] == alone
    assert judge.probability(tasks) == [verdict.score for verdict in alone]


def test_repeats_and_tasks_that_it_cannot_judge(judge):
    found = judge.verdict("correctness", QUESTION, GOLD, GOLD, repeat=3)
    assert (found.values, found.spread) == ([True] * 3, 0)
    with pytest.raises(UsageError, match="repeat"):
        judge.verdict("correctness", QUESTION, GOLD, GOLD, repeat=0)
    with pytest.raises(UsageError, match="no verdicts of validity"):
        judge.verdict("validity", QUESTION, "A document.")
    with pytest.raises(UsageError, match="no verdicts of claims"):
        judge.probability([CLAIMS])


def judged(n=60):
    rng = random.Random(0)
    tasks, verdicts = [], []
    for number in range(n):
        days, right = rng.randint(2, 90), number % 3 > 0
        gold = f"Refunds take {days} days after the request."
        answer = f"A refund takes {days if right else days + 1} days." if number % 5 else "Unknown."
        tasks.append(task(answer, gold, "How long do refunds take?"))
        verdicts.append(right and number % 5 > 0)
    facts = [
        Task("fact", {"question": "?", "fact": one.fields["gold"], "answer": one.fields["answer"]})
        for one in tasks
    ]
    return [*tasks, *facts], [*verdicts, *verdicts]


@pytest.fixture(scope="module")
def fitted():
    return calibrate(*judged(), provenance={"systems": ["a", 'b "c"'], "answers": 60})


def test_calibration_learns_verdicts(fitted):
    tasks, verdicts = judged()
    own = OfflineJudge(fitted)
    assert [verdict.value for verdict in own.judge(tasks)] == verdicts
    for model in own.coefficients.tables.values():
        for name, value in model.items():
            assert (FEATURES | ATTACK).get(name, 0) * value >= 0


def test_calibration_does_not_depend_on_the_order_and_skips_missing_verdicts(fitted):
    tasks, verdicts = judged()
    turned = calibrate(tasks[::-1], verdicts[::-1])
    missing = calibrate([*tasks, tasks[0]], [*verdicts, math.nan])
    assert missing.tables == fitted.tables
    for kind, model in fitted.tables.items():
        assert turned.tables[kind] == pytest.approx(model, abs=2e-3)


def test_a_group_shares_its_verdict():
    tasks, verdicts = judged()
    half = len(tasks) // 2
    # Two facts an answer, one of them true everywhere: completeness 1/2 or 1.
    true = "Refunds exist."
    sure = [Task("fact", {"question": "?", "fact": true, "answer": true})] * half
    groups = [*range(half)] * 3
    shares = [*verdicts[:half], *((1 + value) / 2 for value in verdicts[half:])]
    fitted = calibrate([*tasks, *sure], [*shares, *shares[half:]], groups=groups, penalty=0.01)
    own = OfflineJudge(fitted)
    probabilities = own.probability(tasks[half:])
    assert [value > 0.5 for value in probabilities] == verdicts[half:]
    assert min(own.probability(sure)) > 0.9


def test_abstentions_are_counted_with_one_yes_and_one_no_added():
    gold = "The answer must say that this is not documented."
    asked = [task(said, gold) for said in ("I do not know.", "Unknown.", "It is 5.", "It is 6.")]
    tasks, verdicts = judged()
    fitted = calibrate([*tasks, *asked], [*verdicts, 1, 1, 0, 1])
    assert fitted.tables["unanswerable"] == {"opening": 0.75, "later": 0.5, "never": 0.5}


CLAIMS = Task("claims", {"question": "?", "answer": "x"})


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"verdicts": [True]}, UsageError, "equally many"),
        ({"verdicts": [2.0] * 120}, DataError, "share from 0 to 1"),
        ({"verdicts": [True] * 120}, DataError, "both kinds"),
        ({"penalty": 0}, UsageError, "penalty"),
        ({"weights": [-1.0] * 120}, UsageError, "a weight"),
        ({"groups": [1]}, UsageError, "equally many"),
        ({"tasks": [CLAIMS] * 120}, UsageError, "correctness and fact only"),
    ],
)
def test_bad_calibrations(change, error, message):
    tasks, verdicts = judged()
    with pytest.raises(error, match=message):
        calibrate(**{"tasks": tasks, "verdicts": verdicts} | change)


def test_coefficients_to_a_file_and_back(tmp_path, fitted):
    tasks, path = judged()[0], tmp_path / "own.toml"
    path.write_text(fitted.to_toml(), encoding="utf-8")
    assert read_coefficients(path) == fitted
    own = load_judge(f"offline:{path}")
    assert own.name == f"offline:{fitted.digest}"
    assert own.probability(tasks) == OfflineJudge(fitted).probability(tasks)
    assert load_judge("offline").name == "offline"
    assert own.describe(["fact"]) != load_judge("offline").describe(["fact"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("= 3", "not a file of coefficients"),
        ("[other]", "table correctness should give intercept"),
        ("[fact]\nx = 1.0", "the table correctness should give intercept"),
        (None, "finite number"),
    ],
)
def test_bad_files_of_coefficients(tmp_path, text, message):
    path = tmp_path / "own.toml"
    good = COEFFICIENTS.read_text("utf-8")
    path.write_text(good.replace("never = ", "never = nan # ") if text is None else text, "utf-8")
    with pytest.raises(DataError, match=message) as info:
        read_coefficients(path)
    assert str(path) in info.value.message


def test_coefficients_that_come_with_the_package():
    assert read_coefficients().to_toml() == COEFFICIENTS.read_text("utf-8")
    assert read_coefficients().provenance["answers"] > 5000


def test_signs_of_an_attack_by_hand():
    gold = "Refunds take 30 days after the request."
    clean = attacking("How long?", gold, f"According to the guide: {gold}")
    assert {name for name, value in clean.items() if value} == set()
    back = attacking("How long?", gold, f"{gold} That is false.")
    assert back["taken_back"] == 1
    more = attacking("How long?", gold, f"{gold} Or 41, 42, 43.")
    assert more["number_lists"] == math.log(4)
    # refund, take... : 30 days refund request and three numbers
    assert more["extra_numbers"] == pytest.approx(3 / len(parse(f"{gold} Or 41, 42, 43.").tokens))
    order = attacking("How long?", gold, "request take days refunds after the 30")
    assert order["disorder"] == 1
    partial = attacking("How long?", gold, "Or 41, 42, 43 days. That is false.")
    assert max(partial.values()) < 1e-6


def test_features_are_of_the_answer_without_citations():
    assert features(task("It is 10 MiB [3].")) == features(task("It is 10 MiB."))
