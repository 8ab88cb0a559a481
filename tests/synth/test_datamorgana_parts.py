"""The parts of DataMorgana by hand: filters, spelling, words in common, the wording of one fact."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit.synth.datamorgana import filters, mistakes, words
from ragkit.synth.datamorgana.filters import Limit, judge
from ragkit.synth.streams import Stream

GOOD = (
    "The viaduct was opened on 3 September 1872 and is 614 metres long. Matthias Hext drew it. "
    "Its highest arch stands 38 metres above water, and eleven million bricks were needed. "
    "Since 1993 walkers cross it beside a narrow railway; 2,400 came in August 2026."
)


def score(name, text):
    return filters.CRITERIA[name](text).value


@pytest.mark.parametrize(
    ("name", "worse"),
    [
        (
            "factuality",
            "Well, this is all rather vague, and nothing of it can be pinned down at all.",
        ),
        ("interest", "Yes. No. Yes. No. Thanks. Bye."),
        ("credibility", GOOD + " Act now for this once-in-a-lifetime, unbeatable offer!"),
        ("credibility", "Who? When? Where? Why? Does anybody know?"),
        ("credibility", "I heard that it fell down. I guess it did. In my opinion it will."),
        ("toxicity", GOOD + " Whoever built it was an idiot, shut up about it."),
        ("sexuality", GOOD + " Erotic pictures and porn hang in the tower."),
        ("freshness", GOOD.replace("2026", "1994") + " This page is obsolete."),
    ],
)
def test_each_criterion_marks_what_it_is_there_for(name, worse):
    low_is_good = name in ("toxicity", "sexuality")
    limit = Limit(at_most=2) if low_is_good else Limit(at_least=4 if name == "credibility" else 3)
    verdicts = judge([("good", GOOD), ("bad", worse)], {name: limit})
    assert verdicts.kept == ["good"], verdicts.failed
    assert verdicts.counts == {name: 1}
    assert verdicts.failed["bad"].startswith(f"{name} {score(name, worse)} is ")


def test_scores_by_hand():
    assert filters.factuality("nothing").value == 1
    assert filters.factuality("it weighs 3 kg").value == 2
    assert filters.factuality("it weighs 3 kg and costs 5 euros").value == 3
    assert filters.toxicity("You idiot!").value == 3
    assert filters.sexuality("a quiet page").value == 1
    assert [filters.freshness(f"in {y}").value for y in (2026, 2025, 2024, 2022, 2018, 1900)] == [
        5, 4, 3, 2, 1, 1,
    ]  # fmt: skip
    assert filters.freshness("no year").value == 3


def test_duplicates_and_lengths_are_counted():
    rows = [("a", GOOD), ("b", GOOD.upper()), ("c", "too few"), ("d", "word " * 500)]
    verdicts = judge(rows, {}, min_words=5, max_words=400)
    assert verdicts.kept == ["a"]
    assert verdicts.counts == {"duplicate": 1, "too short": 1, "too long": 1}
    assert verdicts.failed["b"] == "the same text as a"


def test_distance_by_hand():
    assert mistakes.distance("bracket", "bracket") == 0
    assert mistakes.distance("form", "from") == 1  # a swap
    assert mistakes.distance("queue", "que") == 2
    assert mistakes.distance("", "abc") == 3
    assert mistakes.error_rate("kitten", "sitting") == pytest.approx(3 / 6)


def test_neighbours_are_on_the_keyboard():
    assert set("wrsd") <= set(mistakes.NEIGHBOURS["e"])
    assert "p" not in mistakes.NEIGHBOURS["q"]
    for a, near in mistakes.NEIGHBOURS.items():
        assert all(a in mistakes.NEIGHBOURS[b] for b in near)


@pytest.mark.parametrize("slip", mistakes.SLIPS)
@given(word=st.from_regex(r"[a-z]{4,12}", fullmatch=True), seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_a_slip_is_one_edit_and_keeps_the_first_letter(slip, word, seed):
    made = slip(word, Stream(seed))
    assert made[0] == word[0]
    assert mistakes.distance(word, made) <= 1


SENTENCE = (
    "At what voltage does a logger at Saltmere Foods raise its battery flag, 2.61 V or BN-4417?"
)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_numbers_and_codes_are_never_misspelt(seed):
    for severity in ("mild-mistakes", "severe-mistakes"):
        made = mistakes.misspell(SENTENCE, severity, Stream(seed))
        assert "2.61 V" in made
        assert "BN-4417" in made
        assert made != SENTENCE
    assert mistakes.misspell(SENTENCE, "correct", Stream(seed)) == SENTENCE


def test_severe_is_worse_than_mild_on_the_same_sentence():
    names = frozenset({"saltmere", "foods"})
    rates = {
        severity: sum(
            mistakes.error_rate(SENTENCE, mistakes.misspell(SENTENCE, severity, Stream(i), names))
            for i in range(200)
        )
        / 200
        for severity in ("mild-mistakes", "severe-mistakes")
    }
    assert 0 < rates["mild-mistakes"] < 0.03
    assert rates["severe-mistakes"] > 3 * rates["mild-mistakes"]
    for i in range(100):
        assert "Saltmere Foods" in mistakes.misspell(SENTENCE, "mild-mistakes", Stream(i), names)


def test_overlap_by_hand():
    document = "The battery flags go up at 2.6 V."
    # battery and flag stand there, voltage and raised do not; the name does not count.
    names = frozenset({"saltmere"})
    assert words.overlap("battery flag voltage raised Saltmere", document, names) == 0.5
    assert words.overlap("battery flag voltage raised Saltmere", document) == pytest.approx(0.4)
    assert words.overlap("what does it mean?", document) == 0.0


def test_words_of_a_name_count_as_one():
    names = frozenset({"salt", "mere", "foods"})
    assert words.count("How high hang gateways at Salt Mere Foods?", names) == 6
    assert words.count("How high hang gateways at Salt Mere Foods?") == 8


def test_small_letters_after_a_comma():
    for text, wanted in (("Who signs?", "who signs?"), ("I know", "I know"), ("INC-3", "INC-3")):
        assert words.small(text) == wanted
    assert words.small("Saltmere and Oak", frozenset({"saltmere"})) == "Saltmere and Oak"
