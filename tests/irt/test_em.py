"""The default engine: derivatives, integrals, published fits, scale, errors, convergence."""

import io
import re
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad

from ragkit import datasets, display, irt
from ragkit.irt import engine, marginal
from ragkit.irt.data import prepare
from ragkit.irt.engine import climb
from ragkit.irt.fitting import _levels
from ragkit.irt.likelihood import get_likelihood
from ragkit.irt.marginal import NODES, Model, Prior, Quadrature, Setup, interpolation
from tests.irt.conftest import judged

CASES = [
    ("cb", False, True),
    ("cb", True, False),
    ("bernoulli", False, False),
    ("bernoulli", True, True),
    ("graded", False, True),
    ("graded", True, True),
    ("graded", False, False),
]


def model_of(name, shared, positive, *, group="group", n=7, m=6, prior="weak"):
    scores = judged(n, m, {"a": -0.4, "b": 0.6}, missing=0.1, seed=3)
    if name != "cb":
        scores["score"] = (scores["score"] * (1 if name == "bernoulli" else 3)).round()
    top = 3 if name == "graded" else 1
    data = prepare(scores, likelihood=name, group=group, score_range=(0, top))
    levels = _levels(data, None) if name == "graded" else None
    family = get_likelihood(name, levels, data.score_range)
    filled = None if prior is None else Prior().filled(positive=positive, shared=shared)
    return Model(data, Setup(family, shared, positive, filled))


def wiggled(model, seed=0):
    return model.start() + np.random.default_rng(seed).normal(0, 0.2, model.size)


# --- derivatives and integrals ------------------------------------------------------------------


@pytest.mark.parametrize(("name", "shared", "positive"), CASES)
def test_the_gradient_by_differences(name, shared, positive):
    model = model_of(name, shared, positive)
    vector = wiggled(model)
    gradient = model.objective(vector)[1]
    for j in range(model.size):
        move = np.eye(1, model.size, j)[0] * 1e-5
        up, down = (model.objective(vector + s * move)[0] for s in (1, -1))
        assert gradient[j] == pytest.approx((up - down) / 2e-5, abs=2e-5)


@pytest.mark.parametrize(("name", "shared", "positive"), CASES)
@pytest.mark.parametrize("form", ["joint", "kept"])
def test_the_information_by_differences_of_the_gradient(monkeypatch, name, shared, positive, form):
    """Louis's identity, inverted on either side, against dense linear algebra."""
    monkeypatch.setattr(marginal, "COMPONENTS", 5)
    monkeypatch.setattr(engine, "COMPONENTS", 5)
    n, m = (7, 60) if form == "kept" else (20, 6)
    model = model_of(name, shared, positive, n=n, m=m)
    optimum = climb(model, model.start(), tol=1e-8, max_iter=500)
    vector, information = optimum.vector, optimum.information
    assert information.form == form
    assert information.definite
    rows = []
    for j in range(model.size):
        move = np.eye(1, model.size, j)[0] * 1e-4
        up, down = (model.objective(vector + s * move)[1] for s in (1, -1))
        rows.append(-(up - down) / 2e-4)
    inverse = np.linalg.inv(np.array(rows))
    found = np.column_stack([information.solve(row) for row in np.eye(model.size)])
    assert np.sqrt(np.diag(found)) == pytest.approx(np.sqrt(np.diag(inverse)), rel=3e-3)
    along = np.random.default_rng(1).normal(size=(model.data.n_subjects, 2))
    cross, own, var, wide = information.with_abilities(along)
    assert own == pytest.approx(along.T @ wide, rel=1e-6)
    assert (var >= 1).all()
    assert cross.shape == (model.size, 2)


@pytest.mark.parametrize("name", ["cb", "graded"])
def test_the_log_likelihood_is_the_integral(name):
    model = model_of(name, False, True, group=None, prior=None)
    vector = wiggled(model)
    alpha, d, gaps, _ = model.unpack(vector)
    subject, item, x = model.data.cells()

    def density(theta, i):
        own = subject == i
        level = d[item[own], None] - model.offsets(gaps)[item[own]]
        eta = np.exp(alpha[item[own], None]) * theta + level
        curves = model.family.curves(eta[:, :, None])[0][..., 0]
        log_p = (model.family.statistics(x[own, None])[..., 0] * curves).sum()
        return np.exp(log_p - theta**2 / 2) / np.sqrt(2 * np.pi)

    want = [np.log(quad(density, -6, 6, args=(i,))[0]) for i in range(model.data.n_subjects)]
    assert model.expect(vector)[0].log_likelihood == pytest.approx(want, abs=1e-6)


def test_interpolation_is_exact_for_polynomials_and_narrow_posteriors_are_found():
    theta = np.linspace(-6.4, 6.4, 99)
    first, weight = interpolation(theta)
    nodes = NODES[first[:, None] + np.arange(6)]
    assert (weight * nodes**5).sum(1) == pytest.approx(theta**5, abs=1e-8)
    sd, mean = np.array([0.004, 0.3, 0.9]), np.array([1.037, -2.2, 0.3])
    logs = -0.5 * ((NODES - mean[:, None]) / sd[:, None]) ** 2 + 0.5 * NODES**2
    found = Quadrature(3).integrate(logs, 3)
    assert found.mean == pytest.approx(mean, abs=1e-6)
    assert found.sd == pytest.approx(sd, rel=1e-4)
    assert found.log_likelihood == pytest.approx(np.log(sd), abs=1e-4)
    # the first polynomial's expectation times theta is the posterior's sd, times 1 nothing
    assert found.weights[1] @ NODES == pytest.approx(sd, rel=1e-4)
    assert found.weights[2].sum(1) == pytest.approx(0, abs=1e-9)


# --- published fits, in the maximum likelihood mode ---------------------------------------------


def patterns(path):
    """A table of answer patterns with their counts, as one row per person."""
    table = pd.read_csv(path)
    count = next(name for name in table.columns if name.lower() == "freq")
    items = [name for name in table.columns if name != count and table[name].isin([0, 1]).all()]
    return table.loc[table.index.repeat(table[count]), items].reset_index(drop=True)


# log-likelihood, slopes and (for LSAT7) intercepts that the documentation of R's ltm and mirt prints
LSAT = {
    "LSAT6": (-2466.653, [0.8257, 0.7227, 0.8909, 0.6884, 0.6569], None),
    "LSAT7": (-2658.805, [0.988, 1.081, 1.707, 0.765, 0.736], [1.856, 0.808, 1.805, 0.486, 1.854]),
}


@pytest.mark.parametrize("name", LSAT)
def test_lsat_to_the_last_printed_digit(mirror, name):
    answers = patterns(mirror / "irt" / f"mirt_{name}_freq.csv")
    result = irt.fit(answers, likelihood="bernoulli", prior="none")
    log_likelihood, slopes, intercepts = LSAT[name]
    assert round(result.info["log_likelihood"], 3) == log_likelihood
    digits = 4 if name == "LSAT6" else 3
    assert result.items["disc"].to_numpy() == pytest.approx(slopes, abs=1.2 * 10**-digits)
    if intercepts:
        d = -result.items["disc"] * result.items["diff"]
        assert d.to_numpy() == pytest.approx(intercepts, abs=6e-4)
    assert result.converged


def test_sat12_as_published(mirror):
    """The documentation of R's mirt 1.45 prints -9488.955 for its 2PL of the keyed answers.

    An answer left out (8) counts as wrong.
    """
    raw = pd.read_csv(mirror / "irt" / "mirt_SAT12_raw.csv")
    key = [int(k) for k in "14523121312421534414334135131545"]
    right = (raw == key).astype(float)
    assert right.sum(axis=1).mean() == pytest.approx(18.202, abs=5e-4)  # printed too
    for options in ({}, {"disc": "signed"}, {"likelihood": "graded"}):
        result = irt.fit(right, **{"likelihood": "bernoulli", "prior": "none", **options})
        assert result.converged
        assert result.info["log_likelihood"] == pytest.approx(-9488.955, abs=5e-4)
    assert result.items["disc"].idxmin() == "Item.32"  # the key of which is doubtful


@pytest.mark.parametrize(("model", "want"), [("2pl", -1608.870), ("1pl", -1613.899)])
def test_science_as_published(mirror, model, want):
    science = pd.read_csv(mirror / "irt" / "mirt_Science.csv").astype(float)
    options = {"likelihood": "graded", "score_range": (1, 4), "prior": "none"}
    result = irt.fit(science, model, **options)
    assert result.converged
    assert result.info["log_likelihood"] == pytest.approx(want, abs=1e-3)
    if model == "2pl":  # mirt stops at changes of 1e-4
        slopes = {"Comfort": 1.042, "Work": 1.226, "Future": 2.293, "Benefit": 1.095}
        assert result.items["disc"].to_dict() == pytest.approx(slopes, rel=5e-3)


# --- scale and errors ---------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"disc": "signed"}, {"model": "1pl"}, {"prior": "none"}])
def test_ability_has_mean_0_and_variance_1_in_the_population(options):
    scores = irt.simulate(40, 80, seed=4).scores
    result = irt.fit(scores, **options)
    assert result.converged
    assert result.subjects["theta"].mean() == pytest.approx(0, abs=1e-9)
    eap = result.score(scores)
    total = (eap["theta"] ** 2 + eap["se_theta"] ** 2).mean()
    assert total == pytest.approx(1, abs=1e-6)  # the posteriors given the items


def test_large_designs_take_abilities_as_known_and_say_so(monkeypatch):
    scores = irt.simulate(30, 50, seed=1).scores
    whole = irt.fit(scores)
    monkeypatch.setattr(marginal, "MOST_WORK", 0)
    for options in ({}, {"model": "1pl"}):
        apart = irt.fit(scores, **options)
        assert apart.converged
        assert "abilities as known" in apart.info["notes"][0]
        assert np.isfinite(apart.items.drop(columns="flag")).all(axis=None)
    apart = irt.fit(scores)
    assert apart.items["diff"].to_numpy() == pytest.approx(whole.items["diff"], abs=0.02)
    assert (apart.items["se_diff"] <= whole.items["se_diff"] * 1.05).all()


def test_few_parts_or_many_full_or_with_gaps_give_the_same(monkeypatch):
    scores = irt.simulate(20, 30, missing=0.1, seed=2).scores
    one = irt.fit(scores)
    monkeypatch.setattr(marginal, "_PART", 1000)
    two = irt.fit(scores)
    assert two.items["diff"].to_numpy() == pytest.approx(one.items["diff"], abs=1e-7)
    data = prepare(irt.simulate(20, 30, seed=2).scores)
    model = Model(data, Setup(get_likelihood("cb"), shared=False, positive=True, prior=None))
    value, gradient = model.objective(wiggled(model))
    assert model.stats.full
    model.stats.full = False
    again = model.objective(wiggled(model))
    assert again == (pytest.approx(value), pytest.approx(gradient))


def test_one_pl_recovers_the_common_slope():
    simulated = irt.simulate(60, 120, log_disc_mean=0.3, log_disc_sd=0.0, seed=6)
    result = irt.fit(simulated.scores, model="1pl")
    assert result.items["disc"].nunique() == 1
    error = result.items["log_disc"].iloc[0] - 0.3
    assert abs(error) < 4 * result.items["se_log_disc"].iloc[0]
    assert result.items["se_log_disc"].iloc[0] < 0.1


# --- priors and convergence ---------------------------------------------------------------------


def test_a_given_prior_is_kept_and_a_hierarchical_one_is_estimated():
    scores = irt.simulate(60, 90, diff_sd=1.0, log_disc_sd=0.3, seed=1).scores
    prior = Prior(diff_mean=0.5, diff_sd=0.7, disc_mean=0.1, disc_sd=0.2)
    assert irt.fit(scores, prior=prior).info["hyperparameters"] == vars(prior)
    found = irt.fit(scores, prior="hierarchical")
    assert found.info["hyperparameters"]["diff_sd"] == pytest.approx(1.0, abs=0.25)
    assert found.info["hyperparameters"]["disc_sd"] == pytest.approx(0.3, abs=0.15)


def coins(n_subjects, n_items, share=0.5, seed=0):
    """Right or wrong answers that say nothing of ability."""
    x = np.random.default_rng(seed).random((n_subjects, n_items)) < share
    return pd.DataFrame(x.astype(float), columns=list(map(str, range(n_items))))


RIGHT = {"likelihood": "bernoulli"}
PROBLEMS = {
    "reached its bound: fix the prior": (coins(40, 30, 0.995), {**RIGHT, "prior": "hierarchical"}),
    "lie exactly at the ends, .*: use likelihood='fractional' or 'graded'": (
        irt.simulate(40, 60, log_disc_mean=1, seed=1).scores.round({"score": 0}),
        {},
    ),
    "raise max_iter": (irt.simulate(20, 30, seed=1).scores, {"max_iter": 2}),
    # two items cannot tell two slopes without a prior
    "not positive definite.*prior='weak'": (coins(200, 2, seed=1), {**RIGHT, "prior": "none"}),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_fit_that_is_not_to_be_trusted_says_why(problem):
    scores, options = PROBLEMS[problem]
    result = irt.fit(scores, **options)
    assert not result.converged
    assert any(re.search(problem, said) for said in result.info["problems"])
    assert re.search(problem, repr(result))
    assert "NOT CONVERGED" in result._repr_html_()
    assert irt.fit(scores, likelihood="fractional").converged


# --- signs and judges ---------------------------------------------------------------------------


def test_signed_items_that_run_backwards_are_found():
    simulated = irt.simulate(60, 60, negative=0.15, log_disc_sd=0.3, seed=7)
    result = irt.fit(simulated.scores, disc="signed")
    backwards = simulated.items["disc"] < 0
    assert (np.sign(result.items["disc"]) == np.sign(simulated.items["disc"])).mean() > 0.9
    flagged = result.items["flag"].str.contains("negative")
    assert flagged.equals(result.items["disc"] < -1.6448536269514722 * result.items["se_disc"])
    assert (flagged & ~backwards).sum() == 0
    positive = irt.fit(simulated.scores)
    also = positive.items["flag"].str.contains("negative")
    assert (also & backwards).sum() >= 0.4 * backwards.sum()
    assert (also & ~backwards).sum() <= 1
    assert (positive.items["disc"] > 0).all()
    assert result.items.loc[result.items["disc"] < 0, "log_disc"].isna().all()


def test_judges_with_overlap_are_told_apart_from_ability():
    scores = judged(40, 100, {"kind": -0.7, "strict": 0.7}, seed=8)
    facets = irt.fit(scores, group="group").facets
    gap = facets["severity"]["strict"] - facets["severity"]["kind"]
    assert gap == pytest.approx(1.4, abs=0.35)
    assert facets["severity"].mean() == pytest.approx(0, abs=1e-9)
    assert facets["se_severity"].between(0.01, 0.2).all()
    assert (facets["flag"] == "").all()
    assert facets["n"].sum() == len(scores)


def nested(seed, sizes, severity, n_items=60):
    """Right or wrong answers of groups from one population, each judged by its own judge."""
    truth = irt.simulate(sum(sizes), n_items, diff_sd=1.2, log_disc_sd=0.4, seed=seed)
    judge = np.repeat(range(len(sizes)), sizes)
    theta = truth.subjects["theta"].to_numpy() - np.take(severity, judge)
    eta = truth.items["disc"].to_numpy() * (theta[:, None] - truth.items["diff"].to_numpy())
    x = get_likelihood("bernoulli").sample(eta, np.random.default_rng(seed))
    subject, item = np.indices(x.shape).reshape(2, -1)
    columns = {"subject_id": subject, "item_id": item, "score": x.ravel(), "judge": judge[subject]}
    return pd.DataFrame(columns)


@pytest.mark.parametrize("sizes", [(12, 12, 12), (24, 9, 3)])
def test_severities_of_nested_judges_converge_and_cover(sizes):
    """Ten simulations of three severities: of 30 intervals at 90 %, at least 20 cover.

    Errors of few subjects a judge are some 10 % too narrow.
    """
    severity = np.array([-1.5, 0.0, 1.5])
    covered = 0
    for seed in range(10):
        scores = nested(seed, sizes, severity)
        result = irt.fit(scores, likelihood="bernoulli", group="judge")
        assert result.converged
        assert (result.facets["flag"] == "nested").all()
        error = result.facets["severity"] - severity
        covered += (error.abs() <= 1.645 * result.facets["se_severity"]).sum()
    assert any("equally able" in note for note in result.info["notes"])
    assert covered >= 20


def test_the_judged_runs_of_enterprise_rag_bench_converge(mirror):
    """136 runs x 500 questions under three judges that share no run."""
    judged = datasets.load("erb_judged", profile="paper", data=mirror).scores
    judged = judged[judged.groupby("subject_id")["item_id"].transform("count") >= 499]
    result = irt.fit(judged, likelihood="bernoulli", group="judge_group")
    assert result.converged
    assert result.facets["severity"].idxmin().endswith("Mistral-7B")


@pytest.mark.parametrize("terminal", [True, False])
def test_a_long_fit_shows_its_steps_in_a_terminal_only(monkeypatch, terminal):
    monkeypatch.setattr(sys, "stderr", screen := io.StringIO())
    monkeypatch.setattr(screen, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(display, "SILENT", 0)
    irt.fit(irt.simulate(20, 30, seed=1).scores)
    assert ("fitting" in screen.getvalue()) is terminal
