"""Intervals and paired tests: numbers by hand, scipy as oracle, laws, coverage, bad input."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit.errors import DataError, UsageError
from ragkit.measures import stats

SETTINGS = settings(max_examples=50, deadline=None)
SCORES = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0]), min_size=2, max_size=30)
PAIRS = st.lists(st.tuples(*[st.sampled_from([0.0, 0.3, 0.5, 1.0])] * 2), min_size=2, max_size=12)
QUICK = {"n_resamples": 299}


def long(table: dict[str, list], metric: str | None = None) -> pd.DataFrame:
    rows = [
        (system, f"q{number:03}", score)
        for system, scores in table.items()
        for number, score in enumerate(scores)
        if score is not None
    ]
    frame = pd.DataFrame(rows, columns=["subject_id", "item_id", "score"])
    return frame if metric is None else frame.assign(metric=metric)


def test_wilson_by_hand():
    # 8 of 10 at z = 1.96: centre (.8 + z^2/20) / (1 + z^2/10), from .490 to .943.
    estimate, low, high, n = stats.wilson_interval(8, 10)
    assert (estimate, n) == (0.8, 10)
    assert (low, high) == pytest.approx((0.49016, 0.94331), abs=1e-5)
    assert stats.wilson_interval(0, 10).low == 0
    assert stats.wilson_interval(10, 10).high == 1


def test_holm_by_hand():
    assert stats.holm([0.01, 0.04, 0.03]).tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert stats.holm([0.5, 0.9]).tolist() == [1, 1]
    unmade = stats.holm([math.nan, 0.02, 0.03])
    assert unmade.tolist() == pytest.approx([math.nan, 0.04, 0.04], nan_ok=True)
    assert stats.holm([]).tolist() == []


def test_false_discovery_by_hand():
    # Three comparisons: 3 * .01, 3/2 * .02 and .03; the one that was not made is not counted.
    found = stats.false_discovery([0.03, 0.01, math.nan, 0.02])
    assert found.tolist() == pytest.approx([0.03, 0.03, math.nan, 0.03], nan_ok=True)
    assert math.isnan(stats.false_discovery([math.nan])[0])


def test_permutation_by_hand():
    # Differences 3, 2, 1, all positive: of 8 signings only +++ and --- reach a sum of 6.
    result = stats.paired_permutation([3, 3, 3], [0, 1, 2])
    assert result == (2, 2 / 8, 3, True)
    assert stats.paired_permutation([1.0] * 10, [0.0] * 10) == (1, 2 / 1024, 10, True)
    # Differences 2, -1, 0: |sum| is at least 1 in every signing.
    assert stats.paired_permutation([2, 0, 5], [0, 1, 5]).p == 1


def test_what_does_not_vary():
    same = [0.2, 0.4, 0.4, 1.0]
    assert stats.paired_permutation(same, same) == (0, 1, 4, True)
    row = stats.compare_systems(long({"a": same, "b": same})).iloc[0]
    assert row[["difference", "low", "high", "p"]].tolist() == [0, 0, 0, 1]
    assert stats.bootstrap_interval([0.7] * 9)[:3] == pytest.approx((0.7, 0.7, 0.7))
    single = stats.bootstrap_interval([0.7])
    assert single == pytest.approx((0.7, math.nan, math.nan, 1), nan_ok=True)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_bootstrap_equals_scipy(level):
    """Equal limits from scipy's draws; from our own draws equal up to chance."""
    values = np.random.default_rng(3).beta(0.4, 1.2, 70)
    theirs = scipy.stats.bootstrap(
        (values,), np.mean, confidence_level=level, method="BCa", n_resamples=20_000, rng=2
    )
    ends = theirs.confidence_interval
    jackknife = (values.sum() - values) / 69
    same = stats._limits(theirs.bootstrap_distribution, values.mean(), jackknife, level)
    assert same == pytest.approx((ends.low, ends.high), abs=1e-12)
    ours = stats.bootstrap_interval(values, level=level, n_resamples=20_000, seed=1)
    error = values.std() / math.sqrt(len(values))
    assert (ours.low, ours.high) == pytest.approx((ends.low, ends.high), abs=0.12 * error)


def test_permutation_equals_scipy(monkeypatch):
    rng = np.random.default_rng(5)
    for size in (2, 5, 9, 12):
        a, b = rng.random(size).round(1), rng.random(size).round(1)
        theirs = scipy.stats.permutation_test(
            (a - b,), np.mean, permutation_type="samples", vectorized=True, n_resamples=np.inf
        )
        ours = stats.paired_permutation(a, b)
        assert ours.exact
        assert ours.p == pytest.approx(theirs.pvalue, abs=1e-12)
    monkeypatch.setattr(stats, "EXACT_ITEMS", 0)
    sampled = stats.paired_permutation(a, b, n_resamples=40_000)
    assert not sampled.exact
    assert sampled.p == pytest.approx(ours.p, abs=4 * math.sqrt(ours.p / 40_000))


@SETTINGS
@given(SCORES)
def test_an_interval_stays_within_the_values(values):
    estimate, low, high, n = stats.bootstrap_interval(values, **QUICK)
    assert min(values) - 1e-12 <= low <= high <= max(values) + 1e-12
    assert (estimate, n) == (pytest.approx(np.mean(values)), len(values))


@SETTINGS
@given(PAIRS, st.randoms(), st.sampled_from([0.01, 100.0]), st.sampled_from([-3.0, 7.0]))
def test_permutation_ignores_sides_order_unit_and_origin(pairs, random, unit, origin):
    a, b = np.array(pairs).T
    p = stats.paired_permutation(a, b).p
    assert 0 < p <= 1
    c, d = np.array(random.sample(pairs, len(pairs))).T
    for one, other in ((b, a), (c, d), (a * unit + origin, b * unit + origin)):
        assert stats.paired_permutation(one, other).p == p


@SETTINGS
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.randoms())
def test_holm_lies_between_no_correction_and_bonferroni(p_values, random):
    adjusted = stats.holm(p_values)
    p = np.array(p_values)
    assert (adjusted >= p).all()
    assert (adjusted <= np.minimum(len(p) * p, 1) + 1e-15).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()
    order = random.sample(range(len(p)), len(p))
    np.testing.assert_array_equal(stats.holm(p[order]), adjusted[order])


def test_same_seed_same_numbers_whatever_the_blocks(monkeypatch):
    rng = np.random.default_rng(8)
    table = long({"a": rng.random(40), "b": rng.random(40)})
    first = stats.compare_systems(table, seed=4)
    assert stats.compare_systems(table, seed=5)["low"][0] != first["low"][0]
    monkeypatch.setattr(stats, "BLOCK", 1000)
    pd.testing.assert_frame_equal(stats.compare_systems(table, seed=4), first, rtol=1e-12)


def test_compare_systems_equals_the_single_tests():
    rng = np.random.default_rng(9)
    table = {name: rng.random(25).tolist() for name in "abc"}
    table["c"][3] = None
    result = stats.compare_systems(long(table), n_resamples=500, seed=3)
    assert len(result) == 3
    for row in result.itertuples():
        both = [
            (x, y)
            for x, y in zip(table[row.system_a], table[row.system_b], strict=True)
            if None not in (x, y)
        ]
        a, b = zip(*both, strict=True)
        assert (row.n, row.left_out) == (len(both), 25 - len(both))
        assert (row.a, row.b) == pytest.approx((np.mean(a), np.mean(b)))
        gaps = np.subtract(a, b)
        interval = stats.bootstrap_interval(gaps, n_resamples=500, seed=3)
        assert (row.difference, row.low, row.high) == pytest.approx(interval[:3])
        assert row.p == stats.paired_permutation(a, b, n_resamples=500, seed=3).p
    np.testing.assert_array_equal(result["p_holm"], stats.holm(result["p"]))


def test_a_pair_does_not_depend_on_the_others_or_on_order():
    rng = np.random.default_rng(10)
    table = {name: rng.random(30).tolist() for name in "abcd"}
    whole = stats.compare_systems(long(table), **QUICK)
    mixed = long(table).sample(frac=1, random_state=1)
    pd.testing.assert_frame_equal(stats.compare_systems(mixed, **QUICK), whole)
    for row in whole.itertuples(index=False):
        pair = {name: table[name] for name in (row.system_a, row.system_b)}
        (alone,) = stats.compare_systems(long(pair), **QUICK).itertuples(index=False)
        np.testing.assert_allclose(np.array(alone[2:9]), np.array(row[2:9]), rtol=1e-12)


def test_compare_with_a_baseline_and_by_metric():
    rng = np.random.default_rng(13)
    table = {name: rng.random(20).tolist() for name in "abc"}
    both = pd.concat([long(table, "one"), long(table, "two")])
    result = stats.compare_systems(both, baseline="b", **QUICK)
    assert result["metric"].tolist() == ["one", "one", "two", "two"]
    assert set(result["system_b"]) == {"b"}
    # Holm counts the two comparisons of one metric, not all four.
    one = result[result["metric"] == "one"]
    np.testing.assert_array_equal(one["p_holm"], stats.holm(one["p"]))


def test_few_common_items():
    row = stats.compare_systems(long({"a": [0.5, 0.7, None], "b": [None, None, 0.4]})).iloc[0]
    assert (row["n"], row["left_out"]) == (0, 3)
    assert row[["a", "b", "difference", "low", "high", "p", "p_holm"]].isna().all()
    row = stats.compare_systems(long({"a": [0.5, 0.7], "b": [0.4, None]})).iloc[0]
    assert (row["n"], row["p"], row["difference"]) == (1, 1, pytest.approx(0.1))
    assert row[["low", "high"]].isna().all()


def test_summarise():
    table = stats.summarise(
        pd.concat([long({"a": [0, 1, 1], "b": [0.5]}, "one"), long({"a": [1, 1]}, "two")])
    )
    assert table["subject_id"].tolist() == ["a", "b", "a"]
    assert table["n"].tolist() == [3, 1, 2]
    assert table["mean"].tolist() == pytest.approx([2 / 3, 0.5, 1])
    assert table["low"].isna().tolist() == [False, True, False]
    assert list(stats.summarise(long({"a": [0, 1]})).columns[:1]) == ["subject_id"]


@pytest.mark.parametrize(
    ("function", "given", "error", "words"),
    [
        (stats.bootstrap_interval, [[]], DataError, r"at least one number, found shape \(0,\)"),
        (stats.bootstrap_interval, [[[[1, 2]]]], DataError, r"found shape \(1, 1, 2\)"),
        (stats.bootstrap_interval, [3.0], DataError, r"found shape \(\)"),
        (stats.bootstrap_interval, [["x"]], DataError, "values should be numbers, found"),
        (stats.bootstrap_interval, [None], DataError, "values"),
        (stats.bootstrap_interval, [[0.1, math.nan]], DataError, "number 2 of 2 is nan"),
        (stats.bootstrap_interval, [[math.inf]], DataError, "number 1 of 1 is inf"),
        (stats.paired_permutation, [[1, 2, 3], [1, 2]], DataError, "3 and 2 scores"),
        (stats.paired_permutation, [[1, 2], [1, math.nan]], DataError, "number 2 of 2 is nan"),
        *((stats.wilson_interval, given, UsageError, "should be a whole number")
          for given in ((1, 0), (3, 2), (-1, 2), (0.5, 2))),
        *((stats.holm, [p], DataError, "p-value") for p in ([-0.1], [1.1], [[0.1]])),
    ],
)  # fmt: skip
def test_bad_arguments(function, given, error, words):
    with pytest.raises(error, match=words):
        function(*given)


@pytest.mark.parametrize("option", [{"level": 95}, {"level": "95%"}, {"n_resamples": 0}])
def test_bad_options(option):
    with pytest.raises(UsageError):
        stats.bootstrap_interval([1, 2], **option)
    with pytest.raises(UsageError):
        stats.compare_systems(long({"a": [1, 2], "b": [2, 3]}), **option)


def test_bad_frames():
    scores = long({"a": [0.1, 0.2], "b": [0.3, 0.4]})
    for frame, words in (
        (scores.drop(columns="item_id"), "lack the column 'item_id'"),
        (pd.concat([scores, scores]), "two scores for 'q000'"),
        (scores.assign(score=[math.nan, 1, 1, 1]), "number 1 of 4 is nan"),
        (scores[scores["subject_id"] == "a"], "at least two systems, found 1"),
        (scores.head(0), "at least one number"),
    ):
        with pytest.raises(DataError, match=words):
            stats.compare_systems(frame)
    with pytest.raises(UsageError, match="no system 'aa'"):
        stats.compare_systems(scores, baseline="aa")


# What ppi-python 0.2.3 gives: estimate, low, high, p of a mean of .45, from which the labels are
# taken off here (the second with lam=1: its own test does not limit the weight to 1, as its
# interval does).
PPI = {
    (40, 160, 0.6): (0.4659955307682465, 0.35236561707807124, 0.5796254444584218, 0.7826237178),
    (100, 400, 0.3): (0.410815, 0.35053178025013787, 0.471098219749862, 0.20266125995359907),
    (25, 30, 1.2): (0.406141734109426, 0.23747377193524666, 0.5748096962836053, 0.6103008646),
}


def test_prediction_powered_means_equal_those_of_ppi_python():
    rng = np.random.default_rng(11)
    for (n, rest, noise), wanted in PPI.items():
        labels = (rng.random(n + rest) < 0.4).astype(float)
        noisy = 0.25 + 0.5 * labels + noise * 0.4 * rng.normal(size=n + rest)
        labels[n:] = np.nan
        found = stats.prediction_powered(labels - 0.45, np.clip(noisy, 0, 1).round(3))
        assert np.add(found[:4], [0.45, 0.45, 0.45, 0]) == pytest.approx(wanted, abs=1e-9)
        assert found.n == found.labels.n == n


def test_prediction_powered_means_are_valid_and_as_narrow_as_predictions_allow():
    rng, size, known = np.random.default_rng(12), 400, 100
    for agreement in (0.0, 0.8):
        covered, widths = 0, []
        for _ in range(1500):
            labels = rng.normal(size=size)
            told = agreement * labels + math.sqrt(1 - agreement**2) * rng.normal(size=size)
            labels[known:] = np.nan
            found = stats.prediction_powered(labels, 5 + 3 * told)
            covered += found.low <= 0 <= found.high
            widths.append((found.high - found.low) / (found.labels.high - found.labels.low))
        assert 0.93 < covered / 1500 < 0.97
        ideal = math.sqrt(1 - agreement**2 * (1 - known / size))
        assert np.mean(widths) == pytest.approx(ideal, abs=0.02)


def test_predictions_that_tell_nothing_leave_the_labels_alone():
    labels = [0.0, 1, 1, 0, 1, *[math.nan] * 4]
    found = stats.prediction_powered(labels, [0.5] * 9)
    assert found.weight == 0
    assert found[:3] == pytest.approx(found.labels[:3])
    for few, told in (([1, 0], [1, 0, 1]), ([1.0, math.nan, 1.0], [1, 0, 1])):
        with pytest.raises(DataError, match="labels"):
            stats.prediction_powered(few, told)


def clustered(rng, icc, shape, groups=30):
    """Differences of two systems whose true scores are equal, and the cluster of each."""
    of = np.repeat(np.arange(groups), rng.integers(1, 9, groups))

    def drawn():
        own = rng.normal(size=groups)[of]
        return math.sqrt(icc) * own + math.sqrt(1 - icc) * rng.normal(size=len(of))

    if shape == "normal":
        return drawn(), of
    hard = 0.7 * rng.normal(size=len(of)) - 0.3
    return (drawn() > hard).astype(float) - (drawn() > hard), of


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["normal", "binary"])
@pytest.mark.parametrize("icc", [0.0, 0.3, 0.7])
def test_clusters_keep_the_error_of_the_first_kind(icc, shape):
    rng, wrong, naive = np.random.default_rng(14), 0, 0
    for _ in range(2000):
        gaps, of = clustered(rng, icc, shape)
        _, low, high, _ = stats.bootstrap_interval(gaps, clusters=of)
        wrong += not low <= 0 <= high
        naive += scipy.stats.ttest_1samp(gaps, 0).pvalue < 0.05
    assert 0.04 <= wrong / 2000 <= 0.06
    assert icc == 0 or naive / 2000 > 0.09


def test_clusters_of_one_item_give_students_t():
    rng = np.random.default_rng(15)
    a, b = rng.random(20), rng.random(20)
    theirs = scipy.stats.ttest_rel(a, b)
    table, items = long({"a": a, "b": b}), {f"q{k:03}": k for k in range(20)}
    row = stats.compare_systems(table, baseline="b", clusters=items).iloc[0]
    assert row["p"] == pytest.approx(theirs.pvalue)
    assert tuple(row[["low", "high"]]) == pytest.approx(theirs.confidence_interval(0.95))
    pairs = {f"q{k:03}": k // 2 for k in range(20)}
    halves = scipy.stats.ttest_rel(a.reshape(10, 2).mean(axis=1), b.reshape(10, 2).mean(axis=1))
    row = stats.compare_systems(table, baseline="b", clusters=pairs).iloc[0]
    assert row["p"] == pytest.approx(halves.pvalue)
    means = stats.summarise(table, clusters=pairs).set_index("subject_id")
    ends = scipy.stats.ttest_1samp(a.reshape(10, 2).mean(axis=1), 0).confidence_interval()
    assert tuple(means.loc["a", ["low", "high"]]) == pytest.approx(tuple(ends))
    with pytest.raises(DataError, match="the item 'q019' has no cluster"):
        stats.compare_systems(table, clusters={f"q{k:03}": 1 for k in range(19)})
    with pytest.raises(UsageError, match="clusters should name 3 items, found 2"):
        stats.bootstrap_interval([1, 2, 3], clusters=[1, 2])
    assert np.isnan(stats.bootstrap_interval([1, 2, 3], clusters=[1, 1, 1]).low)


def test_a_detectable_difference_is_detected_four_times_of_five():
    rng, found, size = np.random.default_rng(16), 0, 0.4 * math.sqrt(2 / 60)
    wanted = (scipy.stats.t.ppf(0.975, 59) + scipy.stats.t.ppf(0.8, 59)) * size
    for _ in range(300):
        a, b = 0.4 * rng.normal(size=(2, 60))
        row = stats.compare_systems(long({"a": a + wanted, "b": b}), baseline="b", **QUICK).iloc[0]
        assert row["detectable"] == pytest.approx(wanted, rel=0.4)
        found += row["p"] < 0.05
    assert found / 300 == pytest.approx(0.8, abs=0.06)


def test_ranks_by_hand():
    rows = [("a", "b", 0.1, 0.2), ("a", "c", 0.3, 0.01), ("b", "c", 0.2, 0.04)]
    table = pd.DataFrame(rows, columns=["system_a", "system_b", "difference", "p_holm"])
    found = stats.ranks(table)
    assert found["system"].tolist() == ["a", "b", "c"]
    assert found[["rank", "low", "high"]].to_numpy().tolist() == [[1, 1, 2], [2, 1, 2], [3, 3, 3]]
    sure = stats.ranks(table.assign(metric="m", p_holm=0.01))
    assert (sure["low"].tolist(), sure["high"].tolist()) == ([1, 2, 3], [1, 2, 3])
    with pytest.raises(DataError, match="all pairs"):
        stats.ranks(table.head(2))


def test_questions_that_share_documents_are_a_cluster():
    gold = [("a",), ("b", "c"), (), ("c", "d"), ("d",), ("a",)]
    frame = pd.DataFrame({"question_id": list("uvwxyz"), "gold_doc_ids": gold}, index=[3] * 6)
    of = stats.sharing(frame)
    assert of["v"] == of["x"] == of["y"]
    assert of["u"] == of["z"]
    assert len(set(of.values())) == 3
