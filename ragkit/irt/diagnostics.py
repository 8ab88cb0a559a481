"""How far a fit can be trusted: recovery, reliability, agreement, predictive checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from ragkit.checks import whole
from ragkit.errors import DataError, UsageError
from ragkit.irt import graded
from ragkit.irt.data import Scores
from ragkit.irt.likelihood import get_likelihood
from ragkit.irt.nuts import arviz_quiet
from ragkit.irt.result import IRTResult

_Z90 = 1.6448536269514722


def recovery(
    *,
    n_subjects: int = 40,
    n_items: int = 895,
    seeds: Sequence[int] = range(5),
    simulation: Mapping | None = None,
    **options,
) -> pd.DataFrame:
    """Simulate, fit, and compare with the truth.

    Parameters
    ----------
    n_subjects, n_items : int
    seeds : sequence of int
        One simulation each.
    simulation : mapping, optional
        Further arguments of `simulate`, such as `{"sessions": 2, "shared": 105}`.
    **options
        Of `fit`.

    Returns
    -------
    pandas.DataFrame
        One row per seed and parameter (theta, diff, log_disc): `r` (Pearson; for log_disc also
        `r_disc` of the discrimination itself), `bias`, `rmse`, `coverage` of 90 % intervals.
    """
    from ragkit.irt.fitting import fit
    from ragkit.irt.simulate import simulate

    rows = []
    for seed in seeds:
        simulated = simulate(n_subjects, n_items, **{**(simulation or {}), "seed": seed})
        given = dict(options)
        if simulation and "likelihood" in simulation:
            given.setdefault("likelihood", simulation["likelihood"])
        result = fit(simulated.scores, seed=seed, **given)
        for name, frame, truth in (
            ("theta", result.subjects, simulated.subjects),
            ("diff", result.items, simulated.items),
            ("log_disc", result.items, simulated.items),
        ):
            estimate, true = frame[name], truth[name].reindex(frame.index)
            error = estimate - true
            row = {
                "seed": seed,
                "parameter": name,
                "r": _corr(estimate, true),
                "bias": error.mean(),
                "rmse": float(np.sqrt((error**2).mean())),
                "coverage": float((error.abs() <= _Z90 * frame[f"se_{name}"]).mean()),
            }
            if name == "log_disc":
                row["r_disc"] = _corr(frame["disc"], truth["disc"].reindex(frame.index))
            rows.append(row)
    return pd.DataFrame(rows)


def _corr(x: pd.Series, y: pd.Series) -> float:
    x, y = np.asarray(x, float), np.asarray(y, float)
    good = np.isfinite(x) & np.isfinite(y)
    if good.sum() < 3 or x[good].std() == 0 or y[good].std() == 0:
        return float("nan")
    return float(np.corrcoef(x[good], y[good])[0, 1])


def correlations(results: Mapping[str, IRTResult]) -> pd.DataFrame:
    """Return how difficulty goes with the mean score and with discrimination, for several fits.

    Returns
    -------
    DataFrame
        One row a fit: Pearson correlations over items of diff with mean_score, disc and log_disc,
        then items, flagged, converged (the LiveRAG paper, section 3.2).
    """
    rows = {}
    for name, result in results.items():
        items = result.items
        rows[name] = {
            **{
                other: items["diff"].corr(items[other])
                for other in ("mean_score", "disc", "log_disc")
            },
            "items": len(items),
            "flagged": int((items["flag"] != "").sum()),
            "converged": result.converged,
        }
    return pd.DataFrame.from_dict(rows, orient="index")


def agreement(results: Mapping[str, IRTResult]) -> pd.DataFrame:
    """Compare fits of the same scores: engines, seeds or models.

    Returns
    -------
    pandas.DataFrame
        One row per pair and parameter: Pearson `r`, Spearman `rho`, Kendall `tau`, `n` shared, and
        `shift`, the mean absolute difference in units of the pair's pooled standard error.
    """
    if len(results) < 2:
        raise UsageError("agreement needs at least two results")
    rows = []
    for (name_1, one), (name_2, two) in combinations(results.items(), 2):
        for parameter, a, b in (
            ("theta", one.subjects, two.subjects),
            ("diff", one.items, two.items),
            ("disc", one.items, two.items),
        ):
            shared = a.index.intersection(b.index)
            x, y = a.loc[shared, parameter], b.loc[shared, parameter]
            pooled = np.sqrt(
                (a.loc[shared, f"se_{parameter}"] ** 2 + b.loc[shared, f"se_{parameter}"] ** 2) / 2
            )
            rows.append(
                {
                    "one": name_1,
                    "two": name_2,
                    "parameter": parameter,
                    "r": _corr(x, y),
                    "rho": float(x.corr(y, method="spearman")) if len(shared) > 2 else np.nan,
                    "tau": float(x.corr(y, method="kendall")) if len(shared) > 2 else np.nan,
                    "n": len(shared),
                    "shift": float(((x - y).abs() / pooled).mean()),
                }
            )
    return pd.DataFrame(rows)


def split_half(
    scores: pd.DataFrame, *, splits: int = 10, by: str = "items", seed: int = 0, **options
) -> pd.DataFrame:
    """Fit two random halves apart and correlate what they share.

    Parameters
    ----------
    scores : pandas.DataFrame
        Long.
    splits : int
    by : {"items", "subjects"}
        Halves of items give the reliability of ability; halves of subjects that of difficulty and
        discrimination.
    seed : int
    **options
        Of `fit`.

    Returns
    -------
    pandas.DataFrame
        One row per split and parameter: Pearson `r` and Spearman `rho` between the halves, and
        `reliability` of the whole by Spearman and Brown, 2 r / (1 + r).
    """
    from ragkit.irt.fitting import fit

    if by not in ("items", "subjects"):
        raise UsageError(f"by={by!r} is not 'items' or 'subjects'")
    column = "item_id" if by == "items" else "subject_id"
    if column not in scores.columns:
        raise DataError(f"scores lack the column {column!r}", "split_half takes the long form")
    ids = np.array(sorted(scores[column].unique(), key=str), dtype=object)
    if len(ids) < 4:
        raise DataError(f"{len(ids)} {by} cannot be split into halves of at least 2")
    rng = np.random.default_rng(seed)
    rows = []
    for split in range(splits):
        first = set(rng.permutation(ids)[: len(ids) // 2])
        inside = scores[column].isin(first)
        halves = [fit(scores[mask], **options) for mask in (inside, ~inside)]
        for parameter in ("theta",) if by == "items" else ("diff", "disc"):
            frames = [half.subjects if by == "items" else half.items for half in halves]
            shared = frames[0].index.intersection(frames[1].index)
            one, two = (frame.loc[shared, parameter] for frame in frames)
            r = _corr(one, two)
            rows.append(
                {
                    "split": split,
                    "parameter": parameter,
                    "r": r,
                    "rho": one.corr(two, method="spearman"),
                    "reliability": 2 * r / (1 + r),
                    "n": len(shared),
                }
            )
    return pd.DataFrame(rows)


def prior_sensitivity(
    scores: pd.DataFrame, *, factors: Sequence[float] = (0.5, 1.0, 2.0), **options
) -> pd.DataFrame:
    """Refit with the prior's sds at multiples of their values.

    Returns
    -------
    pandas.DataFrame
        One row per prior sd (difficulty or discrimination), factor and parameter: `r` and `rho`
        with the first fit, `shift` in standard errors.
    """
    from ragkit.irt.engine import Prior
    from ragkit.irt.fitting import fit

    base = fit(scores, **options)
    found = base.info["hyperparameters"]
    if not found:
        raise UsageError("this fit has no prior to vary", "leave out prior='none'")
    rows = []
    for name in ("diff_sd", "disc_sd"):
        for factor in factors:
            prior = Prior(**{**found, name: found[name] * factor})
            other = fit(scores, **{**options, "prior": prior})
            table = agreement({"base": base, "other": other})
            table.insert(0, "prior_sd", name)
            table.insert(1, "factor", factor)
            rows.append(table.drop(columns=["one", "two", "tau"]))
    return pd.concat(rows, ignore_index=True)


def _statistics(data: Scores, x: np.ndarray) -> dict[str, float]:
    subject, item, _ = data.cells()
    n_item, n_subject = data.per_item("count"), data.per_subject("count")
    item_mean = np.bincount(item, x, data.n_items) / n_item
    subject_mean = np.bincount(subject, x, data.n_subjects) / n_subject
    total = subject_mean[subject] - x / n_subject[subject]
    centred_x = x - item_mean[item]
    centred_t = total - (np.bincount(item, total, data.n_items) / n_item)[item]
    top = np.bincount(item, centred_x * centred_t, data.n_items)
    bottom = np.sqrt(
        np.bincount(item, centred_x**2, data.n_items)
        * np.bincount(item, centred_t**2, data.n_items)
    )
    useful = bottom > 1e-12
    return {
        "mean": x.mean(),
        "sd": x.std(),
        "at_low": (x <= 0).mean(),
        "at_high": (x >= 1).mean(),
        "item_sd": item_mean.std(),
        "subject_sd": subject_mean.std(),
        "item_total": float(np.mean(top[useful] / bottom[useful])) if useful.any() else np.nan,
    }


def posterior_predictive(result: IRTResult, *, draws: int = 200, seed: int = 0) -> pd.DataFrame:
    """Compare the scores with scores that the model generates (a posterior predictive check).

    Parameters of `engine="nuts"` are drawn from the posterior; of other engines from independent
    normals with the reported errors. Items of graded models are taken as known: the errors of a
    far threshold and of a slope go together, and drawn apart they would flatten every curve.

    Returns
    -------
    pandas.DataFrame
        Indexed by statistic (on [0, 1]): `observed`, `mean`, `low` and `high` (5 and 95 %) of the
        replicates, `p`, the share of replicates at or above the observed. Statistics: mean and sd
        of the scores, the shares at both ends of the range (`at_low`, `at_high`; a continuous
        model generates none), the sds of item and subject means, and the mean correlation of an item
        with the rest of the test.
    """
    data = result._fitted()
    subject, item, x = data.cells()
    rng = np.random.default_rng(seed)
    whole(draws, "draws")
    likelihood = None
    if result._levels is None:
        likelihood = get_likelihood(result.info["likelihood"])
    severity = 0.0
    replicated = []
    for _ in range(draws):
        if result.draws is not None:
            chains, length, _ = result.draws["theta"].shape
            pick = rng.integers(chains), rng.integers(length)
            theta, b, a = (result.draws[name][pick] for name in ("theta", "diff", "disc"))
            if data.n_groups:
                severity = result.draws["severity"][pick][data.group]
        else:
            theta = rng.normal(result.subjects["theta"], result.subjects["se_theta"])
            b = rng.normal(result.items["diff"], result.items["se_diff"])
            if result.info["disc"] == "positive":
                a = np.exp(rng.normal(result.items["log_disc"], result.items["se_log_disc"]))
            else:
                a = rng.normal(result.items["disc"], result.items["se_disc"])
            if data.n_groups:
                facets = result.facets
                severity = rng.normal(facets["severity"], facets["se_severity"])[data.group]
        if likelihood is None:
            thresholds = result._thresholds(result.items)
            a = result.items["disc"].to_numpy()
            p = np.exp(graded.log_probabilities(theta[subject], a[item], thresholds[item]))
            level = (p.cumsum(1) < rng.random((len(item), 1))).sum(1)
            generated = result._levels[np.minimum(level, p.shape[1] - 1)]
        else:
            generated = likelihood.sample(a[item] * (theta[subject] - b[item] - severity), rng)
        replicated.append(_statistics(data, generated))
    replicated = pd.DataFrame(replicated)
    observed = pd.Series(_statistics(data, x))
    return pd.DataFrame(
        {
            "observed": observed,
            "mean": replicated.mean(),
            "low": replicated.quantile(0.05),
            "high": replicated.quantile(0.95),
            "p": (replicated >= observed).mean(),
        }
    ).rename_axis("statistic")


def loo(result: IRTResult, *, draws: int = 400):
    """Return PSIS-LOO of a `nuts` fit (`arviz.ELPDData`, with Pareto k of each score).

    Parameters
    ----------
    result : IRTResult
        Of `engine="nuts"`.
    draws : int
        The most draws used, thinned evenly, so that memory stays at 8 bytes x draws x scores.
    """
    if result.draws is None:
        raise UsageError(
            f"leave-one-out needs posterior draws; engine {result.info['engine']!r} has none",
            "fit with engine='nuts', or compare models with heldout()",
        )
    whole(draws, "draws")
    az = arviz_quiet()
    data = result._fitted()
    subject, item, x = data.cells()
    likelihood = get_likelihood(result.info["likelihood"])
    chains, length, _ = result.draws["theta"].shape
    keep = np.unique(np.linspace(0, length - 1, max(1, draws // chains)).astype(int))
    pointwise = np.empty((chains, len(keep), len(x)))
    for chain in range(chains):
        for at, draw in enumerate(keep):
            theta, b, a = (result.draws[name][chain, draw] for name in ("theta", "diff", "disc"))
            distance = theta[subject] - b[item]
            if data.n_groups:
                distance = distance - result.draws["severity"][chain, draw][data.group]
            eta = a[item] * distance
            pointwise[chain, at] = x * eta - likelihood.log_normalizer(eta)
    kept = {name: result.draws[name][:, keep] for name in ("theta",)}
    idata = az.from_dict(posterior=kept, log_likelihood={"score": pointwise})
    return az.loo(idata, pointwise=True)
