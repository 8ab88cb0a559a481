"""Nested samples, and the fit of recall against size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from ragkit.errors import DataError, UsageError
from ragkit.measures import corpus

SIZES = [5_000, 16_000, 50_000, 160_000, 512_000]
IDS = [f"d{i}" for i in range(50)]


@given(st.integers(0, 1000), st.sets(st.sampled_from(IDS), max_size=10))
def test_samples_are_nested_and_hold_the_gold(seed, gold):
    sizes = [10, 20, 35, 50]
    samples = corpus.nested(IDS, gold, sizes, seed)
    places = {int(doc_id[1:]) for doc_id in gold}
    for size, rows in samples.items():
        assert len(rows) == size
        assert (np.diff(rows) > 0).all()
        assert places <= set(rows)
    for small, large in zip(sizes, sizes[1:], strict=False):
        assert set(samples[small]) < set(samples[large])
    # A sample does not depend on which others are drawn with it.
    assert np.array_equal(corpus.nested(IDS, gold, [20], seed)[20], samples[20])


def test_samples_differ_by_seed_and_are_uniform():
    counts = np.zeros(50)
    for seed in range(400):
        counts[corpus.nested(IDS, ["d0", "d0"], [26], seed)[26]] += 1
    assert counts[0] == 400
    # 25 of the other 49 each time.
    assert (np.abs(counts[1:] - 400 * 25 / 49) < 5 * np.sqrt(100)).all()


def test_samples_that_cannot_be():
    for ids, gold, sizes, words in (
        (IDS, ["x", "d1"], [10], "such as 'x'"),
        (IDS, ["d1", "d2"], [1], "sample of 1 does not fit: 2 gold of 50"),
        (IDS, [], [51], "sample of 51"),
        ([*IDS, "d0"], [], [10], "1 of 51 document ids repeat"),
    ):
        with pytest.raises(DataError, match=words):
            corpus.nested(ids, gold, sizes)


def test_a_line_through_two_sizes_is_exact():
    # Odds 3 at 10^3 and 1 at 10^5: the logit falls by log 3 over two decades.
    recalls = np.array([[1, 1], [1, 0], [1, 1], [0, 0]], dtype=float)
    fit = corpus.fit_scaling(recalls, [10**3, 10**5], n_resamples=10)
    assert fit.slope == pytest.approx(-np.log(3) / 2, rel=1e-3)
    assert fit.predict(10**4).estimate == pytest.approx(expit(np.log(3) / 2), rel=1e-3)
    assert fit.predict(10**7).estimate == pytest.approx(1 / 4, rel=1e-3)
    assert (fit.sizes, fit.questions) == ((1000, 100_000), 4)
    assert repr(fit) == "<ScalingFit of 4 questions at 2 sizes: slope -0.549>"
    # Odds fall by 3 over two decades: by the square root of 3 over one.
    assert "0.577 times, 95 % interval" in fit._repr_html_()
    assert "1,000, 100,000 documents" in fit._repr_html_()


def test_the_fit_is_that_of_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    recalls = (rng.random((300, 5)) < expit(4 - 0.8 * np.log10(SIZES))).astype(float)
    peer = LogisticRegression(C=1e10, tol=1e-10, max_iter=1000).fit(
        np.tile(np.log10(SIZES), 300)[:, None], recalls.ravel()
    )
    fit = corpus.fit_scaling(recalls, SIZES, n_resamples=5)
    assert fit.slope == pytest.approx(peer.coef_[0, 0], abs=1e-3)
    assert fit.intercept == pytest.approx(peer.intercept_[0], abs=5e-3)


def simulated(seed, n=200, bend=0.0):
    """Questions of unequal difficulty; the mean recall follows a line unless it bends."""
    rng = np.random.default_rng(seed)
    x = np.log10(SIZES)
    mean = expit(3.5 - 0.7 * x - bend * (x - x[0]) ** 2)
    # One uniform a question: what is lost in a small corpus stays lost in a larger one.
    return (rng.random((n, 1)) < mean).astype(float)


def test_the_extrapolation_covers_what_follows_the_line():
    inside = covered = 0
    truth = expit(3.5 - 0.7 * np.log10(SIZES[-1]))
    for seed in range(40):
        found = corpus.extrapolate(simulated(seed), SIZES, n_resamples=400, seed=seed)
        assert found.difference.estimate == pytest.approx(
            found.predicted.estimate - found.observed.estimate
        )
        inside += found.difference.low <= 0 <= found.difference.high
        covered += found.predicted.low <= truth <= found.predicted.high
    assert inside >= 33
    assert covered >= 33


def test_the_extrapolation_notices_a_bend():
    found = corpus.extrapolate(simulated(0, n=2000, bend=0.4), SIZES, n_resamples=400)
    assert found.difference.low > 0


def test_sizes_in_any_order():
    recalls = simulated(1)
    turned = corpus.extrapolate(recalls[:, ::-1], SIZES[::-1], n_resamples=50)
    assert turned == corpus.extrapolate(recalls, SIZES, n_resamples=50)


def test_recall_that_drops_at_once_has_a_finite_fit():
    recalls = np.tile([1.0, 1.0, 0.0, 0.0], (10, 1))
    fit = corpus.fit_scaling(recalls, SIZES[:4], n_resamples=20)
    assert np.isfinite(fit.draws).all()
    assert fit.predict(SIZES[0]).estimate > 0.95
    assert fit.predict(SIZES[3]).estimate < 0.05


@pytest.mark.parametrize(
    ("turn", "sizes", "error", "words"),
    [
        (lambda r: r[:, :3], SIZES, UsageError, "do not fit"),
        (lambda r: r[:, :2], [10, 10], UsageError, "different"),
        (lambda r: r[:, :2], [0, 10], UsageError, "positive"),
        (lambda r: r[:1], SIZES, DataError, "two questions"),
        (lambda r: r * 0, SIZES, DataError, "all recalls are 0"),
        (lambda r: r * 0 + 1, SIZES, DataError, "all recalls are 1"),
        (lambda r: r * np.nan, SIZES, DataError, "question 1 at size 5,000 is nan"),
        (lambda r: r[:, :2], SIZES[:2], UsageError, "three sizes"),
    ],
)
def test_bad_input(turn, sizes, error, words):
    with pytest.raises(error, match=words):
        corpus.extrapolate(turn(simulated(0, n=20)), sizes)
