"""Diversity measures: hand-worked numbers, slow oracles, the printed row, bad input."""

import gzip
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit.errors import DataError, UsageError
from ragkit.measures import diversity
from tests.conftest import ROOT

words = st.text(alphabet="abc", min_size=1, max_size=3)
texts = st.lists(st.lists(words, min_size=1, max_size=6).map(" ".join), min_size=4, max_size=12)


def slow_ngram_diversity(items, n_max=4):
    tokens = " ".join(items).split(" ")
    total = 0
    for n in range(1, n_max + 1):
        grams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
        total += len(set(grams)) / len(grams)
    return total


def test_ngram_diversity_by_hand():
    # a b a b: 2/4 words, 2/3 pairs, 2/2 triples, 1/1 quadruple
    assert diversity.ngram_diversity(["a b", "a b"]) == pytest.approx(2 / 4 + 2 / 3 + 1 + 1)
    assert diversity.ngram_diversity(["a", "A"], n_max=1) == 1.0
    assert diversity.ngram_diversity(["a b", "c d"], n_max=2) == 2.0


@given(texts)
@settings(max_examples=60, deadline=None)
def test_ngram_diversity_equals_the_slow_reference(items):
    assert diversity.ngram_diversity(items) == pytest.approx(slow_ngram_diversity(items), abs=1e-12)
    assert 0 <= diversity.length_entropy(items) <= math.log(len(items)) + 1e-12
    assert diversity.length_entropy(items) == pytest.approx(diversity.length_entropy(items[::-1]))


def test_length_entropy_by_hand():
    items = ["a", "b", "a b", "a b c"]
    expected = -(0.5 * math.log(0.5) + 2 * 0.25 * math.log(0.25))
    assert diversity.length_entropy(items) == pytest.approx(expected)
    assert diversity.length_entropy(["a b"]) == 0.0


def test_compression_schemes():
    text = "NN VB " * 50
    once = len(text) / len(gzip.compress(text.encode(), mtime=0))
    assert diversity.compression_ratio(text, scheme="once") == once
    # The name "compressed" and its end mark are eleven bytes more.
    file = len(text) / diversity.compression_ratio(text, scheme="file")
    assert file == pytest.approx(len(text) / once + 11)
    with pytest.raises(UsageError, match="scheme 'twcie'"):
        diversity.compression_ratio(text, scheme="twcie")


def test_tags_are_penn_treebank_tags():
    assert diversity.pos_tags(["The dog barks loudly ."]) == ["DT NN VBZ RB ."]


@given(
    st.integers(2, 30), st.integers(1, 8), st.integers(0, 2**32 - 1), st.sampled_from(["f4", "f8"])
)
@settings(max_examples=60, deadline=None)
def test_homogenization_equals_the_matrix(n, d, seed, kind):
    vectors = np.random.default_rng(seed).normal(size=(n, d)).astype(kind) + 0.1
    unit = vectors.astype(float) / np.linalg.norm(vectors.astype(float), axis=1, keepdims=True)
    matrix = unit @ unit.T
    off = (matrix.sum() - np.trace(matrix)) / (n * (n - 1))
    assert diversity.homogenization_score(vectors) == pytest.approx(off, abs=1e-8)
    assert diversity.homogenization_score(vectors, diagonal=True) == pytest.approx(
        matrix.mean(), abs=1e-8
    )


def test_homogenization_by_hand():
    assert diversity.homogenization_score(np.array([[1.0, 0], [2.0, 0]])) == pytest.approx(1)
    assert diversity.homogenization_score(np.array([[1.0, 0], [-3.0, 0]])) == pytest.approx(-1)
    for vectors in (np.zeros((3, 2)), np.ones((1, 4))):
        with pytest.raises(DataError):
            diversity.homogenization_score(vectors)


@pytest.mark.parametrize(
    ("items", "error", "words"),
    [(items, DataError, "no text") for items in ([], ["a", "  "])]
    + [(items, UsageError, "texts") for items in ("a b c", ["a", None])],
)
@pytest.mark.parametrize("measure", [diversity.ngram_diversity, diversity.length_entropy])
def test_what_is_no_set_of_texts(measure, items, error, words):
    with pytest.raises(error, match=words):
        measure(items)


def test_deviations_from_samples_by_simulation():
    """Over 400 papers and own sets of 90 questions the deviations vary as a standard normal."""
    rng = np.random.default_rng(0)
    samples, printed = [], []
    for number in range(400):
        ours = rng.normal(size=90)
        drawn = [rng.permutation(ours)[:60].mean() for _ in range(25)]
        samples.append(pd.DataFrame({"row": number, "sample": range(25), "m": drawn}))
        printed.append((number, "m", rng.normal(size=60).mean()))
    printed = pd.DataFrame(printed, columns=["row", "metric", "value"])
    sizes = {"size": 60, "available": dict.fromkeys(range(400), 90)}
    table = diversity.against_samples(printed, pd.concat(samples), **sizes)
    assert table["deviations"].std() == pytest.approx(1, rel=0.1)
    sizes["size"] = 90
    assert diversity.against_samples(printed, pd.concat(samples), **sizes)["error"].isna().all()


def test_sampled_profiles_are_seeded():
    items = [f"word{i} and word{i % 7} here" for i in range(20)]
    vectors = np.random.default_rng(1).normal(size=(20, 5))
    first, again, other = (
        diversity.sampled_profiles(items, vectors, size=10, repeats=3, seed=seed)
        for seed in (4, 4, 5)
    )
    assert first.equals(again)
    assert not first.equals(other)
    assert len(diversity.sampled_profiles(items, vectors, size=20, repeats=3)) == 1
    with pytest.raises(DataError, match="a sample of 21"):
        diversity.sampled_profiles(items, vectors, size=21, repeats=1)


def test_table_4_of_liverag_is_as_printed():
    """The golden numbers, which `tests/test_goldens.py` measures anew."""
    row = json.loads((ROOT / "tests" / "goldens" / "table-4.json").read_text("utf-8"))
    assert {name: f"{value:.3f}" for name, value in row.items()} == {
        "ngram_diversity": "3.062",
        "pos_compression_ratio": "5.220",
        "length_entropy": "3.207",
        "mean_length": "15.297",
        "homogenization_score": "0.061",
    }


def test_definitions_mark_one_default_each():
    items = ["Who wrote this book?", "Where is the river?", "Who wrote that song?"]
    table = diversity.definitions(items, np.random.default_rng(0).normal(size=(3, 4)))
    assert table.groupby("metric")["default"].sum().tolist() == [1, 1]


def test_deviations_from_samples_by_hand():
    samples = pd.DataFrame({"row": "a", "sample": [0, 1], "mean_length": [10.0, 12.0]})
    printed = pd.DataFrame({"row": ["a"], "metric": ["mean_length"], "value": [14.0]})
    row = diversity.against_samples(printed, samples, size=50, available={"a": 100}).iloc[0]
    # The spread sqrt(2) is sqrt(v (1/50 - 1/100)); the error is sqrt(v (1/50 + 1/100)).
    assert row["error"] == pytest.approx(math.sqrt(2 * 3))
    assert row["deviations"] == pytest.approx((14 - 11) / math.sqrt(6))
