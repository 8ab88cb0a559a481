"""Questions of configured categories: worked numbers, and what must hold of any set."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from ragkit import datasets
from ragkit.errors import DataError, UsageError
from ragkit.measures import categories
from ragkit.report.plots import questions as plots
from ragkit.synth.datamorgana import load_config

CONFIG = load_config()
TABLE = CONFIG.table
FIRST = {name: choices[0].name for name, choices in CONFIG.categorizations.items()}


@pytest.fixture(scope="module")
def bench():
    return datasets.load("liverag", profile="sample")


@pytest.fixture(scope="module")
def frame(bench):
    return categories.questions(bench.questions, bench.documents, TABLE)


def test_every_configured_category_has_a_row():
    assert TABLE["categorization"].nunique() == 8
    sums = TABLE.groupby("categorization")["probability"].sum()
    assert np.allclose(sums, 1)
    assert TABLE.set_index("category").loc["short-search-query", ["low", "high"]].tolist() == [1, 6]
    assert len(CONFIG.excluded) == len(CONFIG.impossible)


def test_mix_of_four_questions():
    table = pd.DataFrame([FIRST] * 3 + [FIRST | {"Premise": "with-premise"}])
    mix = categories.mix(table, TABLE)
    premise = mix[mix["categorization"] == "Premise"].set_index("category")
    assert premise["questions"].tolist() == [3, 1]
    assert premise["share"].tolist() == [0.75, 0.25]
    # Wilson, by hand: (p + z^2/2n) / (1 + z^2/n) is the middle of the interval.
    z2 = 1.959964**2
    middle = (0.75 + z2 / 8) / (1 + z2 / 4)
    assert (premise.loc["direct", ["low", "high"]].mean()) == pytest.approx(middle, abs=1e-5)


def test_g_test_by_hand():
    rows = [("A", "x", 0.5, 30), ("A", "y", 0.5, 10), ("B", "z", 1.0, 40)]
    table = pd.DataFrame(rows, columns=["categorization", "category", "configured", "questions"])
    tests = categories.mix_tests(table)
    assert tests["categorization"].tolist() == ["A"]  # of one category nothing can be tested
    wanted = 2 * (30 * math.log(30 / 20) + 10 * math.log(10 / 20))
    assert tests.loc[0, "G2"] == pytest.approx(wanted)
    assert tests.loc[0, "least_expected"] == 20
    p = math.erfc((wanted / 2) ** 0.5)
    assert tests.loc[0, "p_holm"] == tests.loc[0, "p"] == pytest.approx(p)
    with pytest.raises(DataError, match="probability 0"):
        categories.mix_tests(table.assign(configured=[1.0, 0.0, 1.0]))


def test_measures_of_questions_by_hand(bench):
    asked = bench.questions.head(2).assign(
        text=["Could you please say who pays the ferries?", "xylofone ferry pays"],
        answer=["The line, by Friday.", "No."],
        gold_doc_ids=[("a",), ("a", "b")],
        phrasing=["verbose_and_natural", "short_search_query"],
    )
    documents = pd.DataFrame({"doc_id": ["a", "b"], "text": ["A ferry is paid for.", "xylophone"]})
    found = categories.questions(asked, documents, TABLE)
    assert found["polite"].tolist() == [1, 0]
    assert found["in_length"].tolist() == [0, 1]  # eight words, ten wanted; three, at most six
    assert found["answer_words"].tolist() == [4, 1]
    assert found["overlap"][1] == pytest.approx(1 / 3)  # the stem of "ferry", not that of "pays"
    assert found["unknown"][1] == pytest.approx(1 / 3)  # "pays" is in the other question
    free = asked.assign(phrasing="concise_and_natural")
    assert categories.questions(free, documents, TABLE)["in_length"].isna().all()
    with pytest.raises(DataError, match="Mood: no categorization of these questions"):
        categories.questions(asked, documents, TABLE.assign(categorization="Mood"))
    with pytest.raises(DataError, match="no 'sung'"):
        categories.questions(asked.assign(phrasing="sung"), documents, TABLE)


def test_categories_show_in_the_sample(frame):
    value = categories.effects(frame, TABLE).set_index(["measure", "category"])["value"]
    unknown = value["share of words in no document and no other question"]
    assert unknown["severe-mistakes"] > unknown["mild-mistakes"] > unknown["correct"]
    overlap = value["share of words in the documents"]
    assert overlap["similar-to-document"] > overlap["distant-from-document"]
    assert value["share with polite words"]["polite"] > 0.8
    own = categories.means(frame, TABLE, "words").set_index("category")
    assert own.loc["direct", "share"] == frame.loc[frame["Premise"] == "direct", "words"].mean()
    assert own["share"].between(own["low"], own["high"]).all()


def test_legibility_of_what_is_plain_and_of_what_is_not_there():
    rng = np.random.default_rng(0)
    told = pd.DataFrame({"plain": ["a", "b"] * 40})
    told["text"] = told["plain"].map({"a": "green fields", "b": "blue seas"})
    told["hidden"] = rng.permutation(told["plain"])
    table = categories.legibility(told, ["plain", "hidden"]).set_index("categorization")
    assert table.loc["plain", "balanced_accuracy"] == 1
    assert table.loc["hidden", "low"] < 0.5 < table.loc["hidden", "high"] + 0.15
    with pytest.raises(UsageError, match="folds"):
        categories.legibility(told, ["plain"], folds=1)


def test_figures_have_a_panel_for_each(frame):
    import matplotlib.pyplot as plt

    mix = categories.mix(frame, TABLE)
    fig = plots.by_category(mix, label="share", also="configured")
    assert len(fig.get_axes()) == 8
    effects = categories.effects(frame, TABLE)
    measures = {"overlap": ("Linguistic Variation", "share of words in the documents")}
    assert len(plots.effects(frame, effects, measures=measures).get_axes()) == 1
    with pytest.raises(DataError, match="no categories"):
        plots.by_category(mix[:0], label="share")
    plt.close("all")
