"""How far a fit can be trusted: recovery, reliability, agreement, predictive checks.

>>> from ragkit import irt
>>> simulated = irt.simulate(20, 50, seed=1)
>>> result = irt.fit(simulated.scores)
>>> kept, told = converged({"cb": result, "fractional": irt.fit(simulated.scores, likelihood="fractional")})
>>> agreement(kept)[["parameter", "r", "n"]].round(2)
  parameter     r   n
0     theta  0.99  20
1      diff  1.00  50
2      disc  0.97  50
>>> correlations(kept)[["mean_score", "items"]].round(2)
            mean_score  items
cb               -0.99     50
fractional       -1.00     50
>>> split_half(simulated.scores, splits=1)[["parameter", "reliability"]].round(2)
  parameter  reliability
0     theta          0.8
>>> prior_sensitivity(simulated.scores, factors=[2.0])[["prior_sd", "parameter", "r"]].head(3).round(2)
  prior_sd parameter     r
0  diff_sd     theta  1.00
1  diff_sd      diff  1.00
2  diff_sd      disc  0.97
>>> posterior_predictive(result, draws=19).columns.tolist()
['observed', 'mean', 'low', 'high', 'p']
>>> sampled = irt.fit(simulated.scores, engine="nuts", draws=200, warmup=200)
>>> int(loo(sampled).n_data_points)
1000
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pandas as pd

from ragkit import display
from ragkit.checks import choice, whole
from ragkit.errors import DataError, UsageError
from ragkit.irt.data import Scores, require_long
from ragkit.irt.fitting import fit
from ragkit.irt.marginal import Prior
from ragkit.irt.nuts import arviz_quiet
from ragkit.irt.result import Z90, IRTResult
from ragkit.irt.simulate import simulate

_DRAWS = 400  # of the posterior, for leave-one-out
_PER_FIT = 10  # simulated matrices that a fit's expected statistics are the mean of


def recovery(
    *,
    n_subjects: int = 40,
    n_items: int = 895,
    seeds: Sequence[int] = range(5),
    simulation: Mapping | None = None,
    **options,
) -> pd.DataFrame:
    """Simulate with each of the seeds, fit, and compare with the truth.

    `simulation` holds further arguments of `simulate`, such as `{"sessions": 2, "shared": 105}`,
    `options` those of `fit`. Returns one row per seed and parameter (theta, diff, log_disc): `r`
    (Pearson; for log_disc also `r_disc` of the discrimination itself), `bias`, `rmse`, `coverage` of
    90 % intervals, and whether the fit `converged`.

    >>> recovery(n_subjects=20, n_items=50, seeds=[1])[["parameter", "r", "coverage"]].round(2)
      parameter     r  coverage
    0     theta  0.88      0.85
    1      diff  0.89      0.98
    2  log_disc  0.38      0.96
    """
    rows, simulation = [], dict(simulation or {})
    if "likelihood" in simulation:
        options.setdefault("likelihood", simulation["likelihood"])
    for seed in display.progress(seeds, "simulations"):
        simulated = simulate(n_subjects, n_items, **{**simulation, "seed": seed})
        result = fit(simulated.scores, seed=seed, **options)
        for name, table in {"theta": "subjects", "diff": "items", "log_disc": "items"}.items():
            frame, truth = getattr(result, table), getattr(simulated, table)
            error = frame[name] - truth[name]
            row = {
                "seed": seed,
                "parameter": name,
                "r": frame[name].corr(truth[name], min_periods=3),
                "bias": error.mean(),
                "rmse": float(np.sqrt((error**2).mean())),
                "coverage": float((error.abs() <= Z90 * frame[f"se_{name}"]).mean()),
                "converged": result.converged,
            }
            if name == "log_disc":
                row["r_disc"] = frame["disc"].corr(truth["disc"], min_periods=3)
            rows.append(row)
    return pd.DataFrame(rows)


def correlations(results: Mapping[str, IRTResult]) -> pd.DataFrame:
    """Return how difficulty goes with the mean score and with discrimination, for several fits.

    One row a fit: Pearson correlations over items of diff with mean_score, disc and log_disc, then
    items, flagged, converged (the LiveRAG paper, section 3.2).
    """
    rows = []
    for result in results.values():
        items = result.items
        row = {name: items["diff"].corr(items[name]) for name in ("mean_score", "disc", "log_disc")}
        row |= {"items": len(items), "flagged": int((items["flag"] != "").sum())}
        rows.append(row | {"converged": result.converged})
    return pd.DataFrame(rows, index=list(results))


def converged(results: Mapping[str, IRTResult]) -> tuple[dict[str, IRTResult], str]:
    """Return the fits that converged, and a sentence on those that did not, "" if there are none.

    Only the former belong in a figure, a table or a comparison.
    """
    kept = {name: result for name, result in results.items() if result.converged}
    lost = {name: "; ".join(results[name].info["problems"]) for name in results if name not in kept}
    told = ", ".join(f"{name} ({problems})" for name, problems in lost.items())
    return kept, f"Left out, because they did not converge: {told}." if lost else ""


def agreement(results: Mapping[str, IRTResult]) -> pd.DataFrame:
    """Compare at least two fits (`UsageError`) of the same scores: engines, seeds or models.

    One row per pair and parameter: Pearson `r`, Spearman `rho`, Kendall `tau` (NaN if fewer than
    three are shared), `n` shared, `shift`, the mean absolute difference in units of the pair's pooled
    standard error, and whether both `converged`.
    """
    if len(results) < 2:
        raise UsageError("agreement needs at least two results")
    rows = []
    methods = {"r": "pearson", "rho": "spearman", "tau": "kendall"}
    tables = {"theta": "subjects", "diff": "items", "disc": "items"}
    for pair, (parameter, table) in product(combinations(results, 2), tables.items()):
        frames = [getattr(results[name], table) for name in pair]
        x, y = (frame[parameter] for frame in frames)
        error = np.sqrt(sum(frame[f"se_{parameter}"] ** 2 for frame in frames) / 2)
        row = {"one": pair[0], "two": pair[1], "parameter": parameter}
        row |= {name: x.corr(y, method=how, min_periods=3) for name, how in methods.items()}
        row |= {"n": len(x.index.intersection(y.index)), "shift": ((x - y).abs() / error).mean()}
        rows.append(row | {"converged": all(results[name].converged for name in pair)})
    return pd.DataFrame(rows)


def split_half(
    scores: pd.DataFrame, *, splits: int = 10, by: str = "items", seed: int = 0, **options
) -> pd.DataFrame:
    """Fit two random halves apart and correlate what they share.

    Halves of `by="items"` give the reliability of ability, of `by="subjects"` that of difficulty and
    discrimination. `scores` are long and have at least four of them (`DataError`); `options` are
    those of `fit`. Returns one row per split and parameter: Pearson `r` and Spearman `rho` between
    the halves, `reliability` of the whole by Spearman and Brown, 2 r / (1 + r), `n` shared, and
    whether both halves `converged`.
    """
    column = choice(by, "value of by", ("items", "subjects")).removesuffix("s") + "_id"
    require_long(scores)
    ids = np.array(sorted(scores[column].unique(), key=str), dtype=object)
    if len(ids) < 4:
        raise DataError(f"{len(ids)} {by} cannot be split into halves of at least 2")
    rng = np.random.default_rng(seed)
    tables = []
    for split in display.progress(range(whole(splits, "splits")), "halves"):
        inside = scores[column].isin(set(rng.permutation(ids)[: len(ids) // 2]))
        table = agreement({half: fit(scores[inside == half], **options) for half in (True, False)})
        table.insert(0, "split", split)
        tables.append(table[(table["parameter"] == "theta") == (by == "items")])
    table = pd.concat(tables, ignore_index=True)
    table["reliability"] = 2 * table["r"] / (1 + table["r"])
    return table[["split", "parameter", "r", "rho", "reliability", "n", "converged"]]


def prior_sensitivity(
    scores: pd.DataFrame, *, factors: Sequence[float] = (0.5, 1.0, 2.0), **options
) -> pd.DataFrame:
    """Refit with the prior's sds at multiples of their values.

    `scores` and `options` are those of `fit`, with a prior (`UsageError`); `factors` are above 0.
    Returns one row per prior sd (difficulty or discrimination), factor and parameter, with the columns
    of `agreement` with the first fit.
    """
    base = fit(scores, **options)
    found = base.info["hyperparameters"]
    if not found:
        raise UsageError("this fit has no prior to vary", "use engine='em' or 'nuts', prior='weak'")
    tables = {}
    for name, factor in product(("diff_sd", "disc_sd"), factors):
        prior = Prior(**{**found, name: found[name] * factor})
        other = fit(scores, **{**options, "prior": prior})
        tables[name, factor] = agreement({"base": base, "other": other})
    table = pd.concat(tables, names=["prior_sd", "factor"]).drop(columns=["one", "two", "tau"])
    return table.reset_index(["prior_sd", "factor"]).reset_index(drop=True)


def _statistics(data: Scores) -> pd.Series:
    x, scores = data.cells()[2], pd.DataFrame(data.x.T.astype(float))
    mean = scores.mean(axis=1)
    rest = -scores.div(data.per_subject("count"), axis=0).sub(mean, axis=0)  # of a subject's scores
    varied = scores.loc[:, scores.std() > 1e-6]
    values = {
        "mean": x.mean(),
        "sd": x.std(),
        "at_low": (x <= 0).mean(),
        "at_high": (x >= 1).mean(),
        "item_sd": data.per_item("mean").std(),
        "subject_sd": mean.std(ddof=0),
        "item_total": varied.corrwith(rest).mean(),
    }
    return pd.Series(values)


def posterior_predictive(result: IRTResult, *, draws: int = 100, seed: int = 0) -> pd.DataFrame:
    """Compare the scores with scores that the model generates (a posterior predictive check).

    Each replicate is generated from the fit and fitted again, and what is compared is a statistic
    less its expectation under its own fit (a parametric bootstrap); plain replicates are spread as
    widely as difficulties estimated under a weak prior. If the model is true, 90 % of the intervals
    hold the observed statistic; fewer do for a graded fit with levels that are rarely reached, whose
    thresholds depend on the prior.

    Abilities and discriminations are drawn from their posteriors; discriminations of a fit without
    errors are taken as known. All fits are those of `engine="em"`, whatever the engine of `result`,
    and of `prior="weak"` if it had none, or py-irt's. `result` needs its scores, which one that was
    loaded lacks (`UsageError`), and `draws`, at least 19, a fit each.

    Returns, by statistic (on [0, 1]), `observed`; `mean`, `low` and `high` (5 and 95 %) of the
    replicates; `p`, the share at or above the observed, itself counted. Statistics: mean and sd of the
    scores, the shares at both ends of the range (`at_low`, `at_high`; a continuous model generates
    none), the sds of item and subject means, and the mean correlation of an item with the rest of the
    test.
    """
    info, scores = result.info, result._fitted().frame()
    whole(draws, "draws", least=19)
    rng = np.random.default_rng([seed, 1])  # the seed alone may have made the scores
    same = ("model", "likelihood", "disc", "score_range", "levels")
    options = {name: info.get(name) for name in same} | {"disconnected": "assume-equal"}
    prior = "weak" if info["prior"] in ("none", "py-irt") else info["prior"]
    options["prior"] = Prior(**prior) if isinstance(prior, dict) else prior
    options["group"] = info["group"] and "group"
    if info["engine"] != "em" or info["prior"] == "none":
        result = fit(scores, **options)
    replicated = []
    for _ in display.progress(range(draws), "replications"):
        made = _generated(result, rng, known=False)
        replicated.append(_statistics(made) - _expected(fit(made.frame(), **options), rng))
    excess, expected = np.array(replicated), _expected(result, rng)
    low, high = np.quantile(excess, (0.05, 0.95), axis=0, method="weibull")
    table = pd.DataFrame({"observed": _statistics(result.data), "mean": expected + excess.mean(0)})
    table["low"], table["high"] = expected + low, expected + high
    above = (excess >= (table["observed"] - expected).to_numpy()).sum(0)
    return table.assign(p=(1 + above) / (1 + draws)).rename_axis("statistic")


def _generated(result: IRTResult, rng: np.random.Generator, *, known: bool = True) -> Scores:
    """Return scores in place of the fitted ones, drawn with abilities from their posteriors.

    Discriminations are the estimates, or drawn too unless `known`.
    """
    data, items = result.data, result.items
    subject, item, _ = data.cells()
    ability = rng.normal(result.subjects["theta"], result.subjects["se_theta"])[subject]
    if result.facets is not None:
        ability = ability - result.facets["severity"].to_numpy()[data.group]
    if not known:
        signed = result.info["disc"] == "signed"
        name = "disc" if signed else "log_disc"
        z = rng.normal(size=1 if result.info["model"] == "1pl" else len(items))
        drawn = items[name] + z * items[f"se_{name}"].fillna(0.0)
        items = items.assign(disc=drawn if signed else np.exp(drawn))
    x = np.full(data.x.shape, np.nan)
    x[item, subject] = result.family.sample(result._eta(ability, items.iloc[item]), rng)
    return replace(data, x=x)


def _expected(result: IRTResult, rng: np.random.Generator) -> pd.Series:
    """Return the mean statistics of scores that the fit generates."""
    return pd.DataFrame([_statistics(_generated(result, rng)) for _ in range(_PER_FIT)]).mean()


def loo(result: IRTResult):
    """Return PSIS-LOO of a `nuts` fit (`arviz.ELPDData`, with Pareto k of each score).

    `result` needs draws, and its scores, which one that was loaded lacks (`UsageError`). At most 400
    draws are used, thinned evenly: memory is 8 bytes x draws x scores.
    """
    if result.draws is None:
        raise UsageError(
            "leave-one-out needs posterior draws, and this fit has none",
            "fit with engine='nuts', or compare models with heldout()",
        )
    az = arviz_quiet()
    chains, length, _ = result.draws["theta"].shape
    keep = np.unique(np.linspace(0, length - 1, max(1, _DRAWS // chains)).astype(int))
    found = {name: value[:, keep] for name, value in result.draws.items()}
    data = result._fitted()
    subject, item, x = data.cells()
    ability = found["theta"][..., subject]
    if data.n_groups:
        ability = ability - found["severity"][..., data.group]
    eta = found["disc"][..., item] * (ability - found["diff"][..., item])
    logs = {"score": result.family.log_density(eta, x)}
    posterior = {"theta": found["theta"]}
    with warnings.catch_warnings():  # what it warns of is in `warning` and `pareto_k`
        warnings.filterwarnings("ignore", "Estimated shape parameter of Pareto", UserWarning)
        return az.loo(az.from_dict(posterior=posterior, log_likelihood=logs), pointwise=True)
