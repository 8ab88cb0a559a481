"""A made set as frames: worked numbers, and what must hold of any made set."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from ragkit import explore
from ragkit.errors import DataError, UsageError
from ragkit.report.plots import questions as plots
from ragkit.synth.datamorgana import Benchmark, load_config, make_questions, study

CONFIG = load_config()
FIRST = {name: choices[0].name for name, choices in CONFIG.categorizations.items()}


@pytest.fixture(scope="module")
def benchmark(made):
    return make_questions(made.out, questions=60, seed=3)


@pytest.fixture(scope="module")
def frame(benchmark):
    return study.questions(benchmark)


def test_every_configured_category_has_a_row():
    table = study.configured(CONFIG)
    assert table["categorization"].nunique() == 8
    sums = table.groupby("categorization")["probability"].sum()
    assert np.allclose(sums, 1)
    assert len(study.excluded(CONFIG)) == len(CONFIG.impossible)


def test_documents_add_up(benchmark):
    count = study.documents(benchmark, CONFIG).set_index("step")["documents"]
    out = count[[step for step in count.index if step.startswith("left out")]]
    assert count["found by topic"] - out.sum() == count["kept"] >= count["asked about"]
    assert len(out) == 3 + len(CONFIG.filters)


def test_mix_of_four_questions():
    table = pd.DataFrame([FIRST] * 3 + [FIRST | {"Premise": "with-premise"}])
    mix = study.mix(table, CONFIG)
    premise = mix[mix["categorization"] == "Premise"].set_index("category")
    assert premise["questions"].tolist() == [3, 1]
    assert premise["share"].tolist() == [0.75, 0.25]
    # Wilson, by hand: (p + z^2/2n) / (1 + z^2/n) is the middle of the interval.
    z2 = 1.959964**2
    middle = (0.75 + z2 / 8) / (1 + z2 / 4)
    assert (premise.loc["direct", ["low", "high"]].mean()) == pytest.approx(middle, abs=1e-5)


def test_g_test_by_hand():
    table = pd.DataFrame(
        {
            "categorization": ["A", "A", "B"],
            "category": ["x", "y", "z"],
            "configured": [0.5, 0.5, 1.0],
            "questions": [30, 10, 40],
        }
    )
    tests = study.mix_tests(table)
    assert tests["categorization"].tolist() == ["A"]  # of one category nothing can be tested
    wanted = 2 * (30 * math.log(30 / 20) + 10 * math.log(10 / 20))
    assert tests.loc[0, "G2"] == pytest.approx(wanted)
    assert tests.loc[0, "least_expected"] == 20
    assert (
        tests.loc[0, "p_holm"] == tests.loc[0, "p"] == pytest.approx(math.erfc((wanted / 2) ** 0.5))
    )


def test_what_was_never_to_be_drawn():
    table = pd.DataFrame(
        {
            "categorization": "A",
            "category": ["x", "y"],
            "configured": [1.0, 0.0],
            "questions": [3, 1],
        }
    )
    with pytest.raises(DataError, match="probability 0"):
        study.mix_tests(table)
    with pytest.raises(DataError, match="no 'rude'"):
        study.mix(pd.DataFrame([FIRST | {"Politeness": "rude"}]), CONFIG)


def test_questions_are_what_was_made(benchmark, frame):
    assert frame["text"].tolist() == [r["Question"] for r in benchmark.rows]
    assert (frame["in_length"].dropna() == 1).all()
    assert frame.loc[frame["Phrasing"] == "concise-and-natural", "in_length"].isna().all()
    right = frame["Linguistic Correctness"] == "correct"
    assert (frame.loc[right, "misspelt"] == 0).all()
    assert (frame.loc[~right, "misspelt"] > 0).all()
    assert (frame["documents"] == frame["gold_doc_ids"].map(len)).all()


def test_questions_without_their_notes(benchmark):
    with pytest.raises(DataError, match="not those"):
        study.questions(Benchmark(benchmark.rows, benchmark.notes[::-1]))
    with pytest.raises(DataError, match="no questions"):
        study.questions(Benchmark())


def test_misspelt_words():
    assert study.misspelt("who holds the key", "hwo holds the kye") == 0.5
    with pytest.raises(DataError, match="2 and 1 words"):
        study.misspelt("a key", "akey")


def test_effects_and_means(frame):
    table = study.effects(frame).set_index(["measure", "category"])
    polite = frame[frame["Politeness"] == "polite"]
    row = table.loc["share with polite words", "polite"]
    assert row["value"] == pytest.approx(polite["polite"].mean())
    assert row["n"] == len(polite)
    own = study.means(frame, "words", ["Premise"]).set_index("category")
    assert own.loc["direct", "share"] == frame.loc[frame["Premise"] == "direct", "words"].mean()
    assert (own["low"] <= own["share"]).all()
    assert (own["share"] <= own["high"]).all()


def test_legibility_of_what_is_plain_and_of_what_is_not_there():
    rng = np.random.default_rng(0)
    told = pd.DataFrame({"plain": ["a", "b"] * 40})
    told["text"] = told["plain"].map({"a": "green fields", "b": "blue seas"})
    told["hidden"] = rng.permutation(told["plain"])
    table = study.legibility(told, ["plain", "hidden"]).set_index("categorization")
    assert table.loc["plain", "balanced_accuracy"] == 1
    assert table.loc["hidden", "low"] < 0.5 < table.loc["hidden", "high"] + 0.15
    with pytest.raises(UsageError, match="folds"):
        study.legibility(told, ["plain"], folds=1)


def test_rewordings_ask_for_the_same(made, benchmark):
    table = study.rewordings(made.out, benchmark, kind="factoid", config=CONFIG, seed=0)
    again = study.rewordings(made.out, benchmark, kind="factoid", config=CONFIG, seed=0)
    pd.testing.assert_frame_equal(table, again)
    said = table[table["refused"] == ""].set_index(["index", "category"])
    for index in said.index.get_level_values(0).unique():
        own = said.loc[index]
        if "plain" in own.index:
            assert own.loc["severe-mistakes", "correct"] == own.loc["plain", "text"]
            assert own.loc["severe-mistakes", "error_rate"] > 0
    assert table.loc[table["refused"] != "", "words"].isna().all()
    changed = study.reworded_effects(table).set_index("category")
    assert (changed["n"] <= changed["asked"]).all()
    assert changed.loc["with-premise", "words"] > 0 > changed.loc["short-search-query", "words"]
    with pytest.raises(UsageError, match="answer type"):
        study.rewordings(made.out, benchmark, kind="riddle", config=CONFIG)


def test_cards_show_the_row(benchmark):
    page = explore.cards(study.examples(benchmark, [1, 2]))._repr_html_()
    assert page.count("border:1px solid") == 2
    assert "<mark>" in explore.cards(study.examples(benchmark, range(1, 30))).data
    with pytest.raises(DataError, match="no question 99"):
        study.examples(benchmark, [99])


def test_figures_have_a_panel_for_each(frame):
    import matplotlib.pyplot as plt

    mix = study.mix(frame, CONFIG)
    fig = plots.by_category(mix, label="share", also="configured")
    assert len(fig.get_axes()) == 8
    effects = study.effects(frame)
    measures = {"overlap": ("Linguistic Variation", "share of words in the documents")}
    assert len(plots.effects(frame, effects, measures=measures).get_axes()) == 1
    with pytest.raises(DataError, match="no categories"):
        plots.by_category(mix[:0], label="share")
    plt.close("all")
