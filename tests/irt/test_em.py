import numpy as np
import pandas as pd
import pytest

from ragkit import irt
from ragkit.errors import DataError
from ragkit.irt.data import prepare
from ragkit.irt.em import Marginal, fit_em
from ragkit.irt.likelihood import get_likelihood


def patterns(path):
    """A table of answer patterns with their counts, as one row per person."""
    table = pd.read_csv(path)
    count = next(name for name in table.columns if name.lower() == "freq")
    items = [name for name in table.columns if name != count and table[name].isin([0, 1]).all()]
    return table.loc[table.index.repeat(table[count]), items].reset_index(drop=True)


# log-likelihood, slopes and (for LSAT7) intercepts that the documentation of R's ltm and mirt prints
LSAT = {
    "LSAT6": (-2466.65, [0.8257, 0.7227, 0.8909, 0.6884, 0.6569], None),
    "LSAT7": (-2658.81, [0.988, 1.081, 1.707, 0.765, 0.736], [1.856, 0.808, 1.805, 0.486, 1.854]),
}


@pytest.mark.parametrize("name", LSAT)
def test_lsat_to_the_last_printed_digit(mirror, name):
    path = mirror / "irt" / f"mirt_{name}_freq.csv"
    if not path.exists():
        pytest.skip(f"{path.name} is not in the mirror")
    people = patterns(path)
    assert people.shape == (1000, 5)
    result = irt.fit(people, likelihood="bernoulli", engine="em")
    log_likelihood, slopes, intercepts = LSAT[name]
    assert round(result.info["log_likelihood"], 2) == log_likelihood
    digits = 4 if name == "LSAT6" else 3
    assert result.items["disc"].to_numpy() == pytest.approx(slopes, abs=1.2 * 10**-digits)
    if intercepts:
        d = -result.items["disc"] * result.items["diff"]
        assert d.to_numpy() == pytest.approx(intercepts, abs=6e-4)
    assert result.converged
    assert result.info["prior"] == "none"


def test_sat12_as_published(mirror):
    """The documentation of R's mirt 1.45 prints -9488.955 for its 2PL of the keyed answers.

    The key is the one printed there; it notes that item 32 may be keyed wrongly, and that item's
    slope is the lowest indeed. An answer left out (8) counts as wrong.
    """
    path = mirror / "irt" / "mirt_SAT12_raw.csv"
    if not path.exists():
        pytest.skip(f"{path.name} is not in the mirror")
    raw = pd.read_csv(path)
    key = [
        int(k) for k in "1 4 5 2 3 1 2 1 3 1 2 4 2 1 5 3 4 4 1 4 3 3 4 1 3 5 1 3 1 5 4 5".split()
    ]
    right = (raw == key).astype(float)
    assert right.shape == (600, 32)
    assert right.sum(axis=1).mean() == pytest.approx(18.202, abs=5e-4)  # printed too
    for disc in ("positive", "signed"):
        result = irt.fit(right, likelihood="bernoulli", engine="em", disc=disc)
        assert result.converged
        assert result.info["log_likelihood"] == pytest.approx(-9488.955, abs=5e-4)
    assert result.items["disc"].idxmin() == "Item.32"
    intercept = -result.items["disc"] * result.items["diff"]
    assert intercept.corr(right.mean(), method="spearman") > 0.98
    graded = irt.fit(right, likelihood="graded", engine="em")
    assert graded.info["log_likelihood"] == pytest.approx(-9488.955, abs=5e-4)
    default = irt.fit(right, likelihood="bernoulli", engine="map")
    assert default.items["diff"].corr(result.items["diff"], method="spearman") > 0.99


def test_log_likelihood_is_the_integral():
    """Against scipy's quadrature, for the first subject of a small matrix."""
    from scipy.integrate import quad

    data = prepare(irt.simulate(5, 6, seed=1).scores)
    model = Marginal(data, get_likelihood("cb"), shared=False, positive=True)
    alpha, b = np.linspace(-0.5, 0.5, 6), np.linspace(-1, 1, 6)
    total = model.expect(alpha, b)[0]

    def density(theta, i):
        eta = np.exp(alpha) * (theta - b)
        log_p = (data.x[:, i] * eta - model.likelihood.log_normalizer(eta)).sum()
        return np.exp(log_p - theta**2 / 2) / np.sqrt(2 * np.pi)

    want = sum(np.log(quad(density, -9, 9, args=(i,))[0]) for i in range(5))
    assert total == pytest.approx(want, abs=1e-7)


@pytest.mark.parametrize("shared", [False, True])
def test_em_derivatives_are_those_of_the_marginal_likelihood(shared):
    data = prepare(irt.simulate(8, 5, missing=0.1, seed=2).scores)
    model = Marginal(data, get_likelihood("cb"), shared=shared, positive=True)
    alpha = np.array([0.2]) if shared else np.linspace(-0.4, 0.4, 5)
    b = np.linspace(-1, 1, 5)
    _, _, sums, counts = model.expect(alpha, b)
    g_alpha, g_b, *_ = model.derivatives(alpha, b, sums, counts, None)
    h = 1e-5
    for j in range(5):
        e = np.zeros(5)
        e[j] = h
        numeric = (model.expect(alpha, b + e)[0] - model.expect(alpha, b - e)[0]) / (2 * h)
        assert g_b[j] == pytest.approx(numeric, abs=1e-6)
    e = np.array([h]) if shared else np.eye(5)[1] * h
    numeric = (model.expect(alpha + e, b)[0] - model.expect(alpha - e, b)[0]) / (2 * h)
    assert (g_alpha.sum() if shared else g_alpha[1]) == pytest.approx(numeric, abs=1e-6)


def test_errors_of_many_subjects_agree_with_their_spread():
    """Maximum likelihood over simulations: the reported error is the standard deviation."""
    estimates, errors = [], []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        theta = rng.normal(size=(400, 1))
        a, b = np.array([0.8, 1.2, 1.6, 1.0]), np.array([-1.0, 0.0, 0.5, 1.0])
        x = (rng.random((400, 4)) < 1 / (1 + np.exp(-a * (theta - b)))).astype(float)
        frame = pd.DataFrame(x, columns=list("abcd"))
        result = irt.fit(frame, likelihood="bernoulli", engine="em", scale="population")
        estimates.append(result.items["diff"])
        errors.append(result.items["se_diff"])
    spread, reported = np.std(estimates, axis=0), np.median(errors, axis=0)
    assert reported == pytest.approx(spread, rel=0.45)


def test_em_and_map_agree_where_both_apply():
    made = irt.simulate(sessions=2, shared=105, seed=3)
    one, two = irt.fit(made.scores), irt.fit(made.scores, engine="em")
    table = irt.agreement({"map": one, "em": two}).set_index("parameter")
    assert (table["r"] > 0.995).all()
    assert two.converged


def test_a_flat_item_has_no_maximum_likelihood():
    rng = np.random.default_rng(0)
    x = pd.DataFrame((rng.random((150, 4)) < 0.5).astype(float), columns=list("abcd"))
    x["c"] = 1.0
    with pytest.raises(DataError, match="'c' has the same extreme score"):
        irt.fit(x, likelihood="bernoulli", engine="em", prior="none")
    assert irt.fit(x, likelihood="bernoulli", engine="em").info["prior"] != "none"


def test_squarem_never_lowers_the_likelihood_it_reports():
    data = prepare(irt.simulate(300, 8, likelihood="bernoulli", seed=4).scores)
    few = fit_em(
        data, get_likelihood("bernoulli"), shared=False, positive=True, prior=None, max_iter=15
    )
    many = fit_em(data, get_likelihood("bernoulli"), shared=False, positive=True, prior=None)
    assert many.log_likelihood >= few.log_likelihood - 1e-9
    assert many.converged
