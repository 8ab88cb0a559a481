"""Compare models and likelihoods by cells that they did not see.

Models with one likelihood are compared by their log score. That of a continuous likelihood is a
density and that of an ordinal one a probability, so likelihoods are compared on the scale of the
scores: by the squared error of the expected score, and by the continuous ranked probability score
of the predicted distribution F (Gneiting and Raftery, Journal of the American Statistical
Association 2007, section 4.2),

    CRPS(F, x) = integral of (F(t) - 1{t >= x})^2 dt,    lower is better,

which is the absolute error where F is a point.

>>> from ragkit import irt
>>> simulated = irt.simulate(20, 50, seed=1)
>>> heldout(simulated.scores, folds=2)[["rmse", "n"]].round(2)
       rmse     n
model
1PL    0.28  1000
2PL    0.28  1000
>>> likelihoods = {"cb": {}, "fractional": {"likelihood": "fractional"}}
>>> compare_likelihoods(simulated.scores, likelihoods, folds=2, splits=1).index.tolist()
["item's own scores", 'cb', 'fractional']
>>> float(crps(irt.fit(simulated.scores), simulated.scores).mean().round(2))
0.14
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ragkit import display
from ragkit.checks import whole
from ragkit.errors import UsageError
from ragkit.irt.data import require_long
from ragkit.irt.diagnostics import split_half
from ragkit.irt.fitting import fit
from ragkit.irt.result import IRTResult

MODELS = {"1PL": {"model": "1pl"}, "2PL": {"model": "2pl"}}
LIKELIHOODS = {
    "continuous Bernoulli": {"likelihood": "cb"},
    "fractional": {"likelihood": "fractional"},
    "graded": {"likelihood": "graded"},
}
OWN = "item's own scores"


def nearest(scores: pd.DataFrame, levels: Sequence[float]) -> pd.DataFrame:
    """Return long scores with each score moved to the nearest of `levels` (ties downwards).

    `levels` are on the scale of the scores, in any order, and at least one (`UsageError`).

    >>> scores = pd.DataFrame({"subject_id": [*"ab"], "item_id": "q", "score": [0.2, 0.9]})
    >>> nearest(scores, [0, 0.5, 1])["score"].tolist()
    [0.0, 1.0]
    """
    if not len(levels):
        raise UsageError("levels should be several numbers, found none")
    levels = np.sort(np.asarray(levels, float))
    place = np.searchsorted((levels[1:] + levels[:-1]) / 2, scores["score"].to_numpy(float))
    return scores.assign(score=levels[place])


def crps(result: IRTResult, scores: pd.DataFrame) -> pd.Series:
    """Return the continuous ranked probability score of each score, in units of the score.

    `scores` are long, and of fitted subjects and items (`DataError` otherwise). Parameters are taken
    as known. The fractional quasi-likelihood predicts a mean and no distribution: NaN.
    """
    return result._each(scores, result.family.crps, "crps") * np.ptp(result.score_range)


LOSSES = {
    "log score": lambda result, cells: result.pointwise(cells),
    "squared": lambda result, cells: (result.predict(cells) - cells["score"]) ** 2,
    "crps": crps,
}


def _held_out(scores, models, losses, folds, seed, levels=None):
    """Deal the cells at random and predict each fold from the others.

    Returns the losses of each model, (name, loss) in columns, on the cells that can be predicted,
    by their items; and whether all fits of a model converged.
    """
    require_long(scores)
    whole(folds, "folds", least=2, most=len(scores))
    scores = scores.reset_index(drop=True)
    fold = np.random.default_rng(seed).permutation(np.arange(len(scores)) % folds)
    parts, sure = [], pd.Series(True, list(models))
    for k in display.progress(range(folds), "folds"):
        train, test = scores[fold != k], scores[fold == k]
        for column in ("subject_id", "item_id"):
            test = test[test[column].isin(train[column])]
        columns = _own(train, test) if "crps" in losses else {}
        for name, arguments in models.items():
            result = fit(_seen(train, levels, arguments), **arguments)
            columns |= {(name, loss): LOSSES[loss](result, test) for loss in losses}
            sure[name] &= result.converged
        parts.append(pd.DataFrame(columns).set_axis(test["item_id"]))
    return pd.concat(parts), sure


def _seen(scores: pd.DataFrame, levels: Sequence[float] | None, arguments: Mapping) -> pd.DataFrame:
    """Return the scores as a model with these arguments is fitted to them."""
    graded = levels is not None and arguments.get("likelihood") == "graded"
    return nearest(scores, levels) if graded else scores


def heldout(
    scores: pd.DataFrame,
    models: Mapping[str, Mapping] | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
    **options,
) -> pd.DataFrame:
    """Compare models with one likelihood by the log score of cells they did not see.

    Cells of the long `scores` are dealt at random into `folds`, and each fold is predicted from the
    others. A cell whose subject or item is not among the others is left out for all models. `models`
    are arguments of `fit` by name, 1PL and 2PL by default; `options` are common arguments.

    Returns, by model, `log_likelihood` summed over the held-out cells, `per_cell`, `difference` from
    the first model, `se_difference` (of paired cells), `rmse` of the expected score, `n` cells, and
    whether the fits to all folds `converged`.
    """
    models = {name: {**options, **own} for name, own in (models or MODELS).items()}
    cells, sure = _held_out(scores, models, ("log score", "squared"), folds, seed)
    points, squared = (cells.xs(loss, axis=1, level=1) for loss in ("log score", "squared"))
    difference = points.sub(points.iloc[:, 0], axis=0)
    return pd.DataFrame(
        {
            "log_likelihood": points.sum(),
            "per_cell": points.mean(),
            "difference": difference.sum(),
            "se_difference": difference.std() * np.sqrt(len(points)),
            "rmse": np.sqrt(squared.mean()),
            "n": len(points),
            "converged": sure,
        }
    ).rename_axis("model")


def compare_likelihoods(
    scores: pd.DataFrame,
    likelihoods: Mapping[str, Mapping] | None = None,
    *,
    levels: Sequence[float] | None = None,
    folds: int = 5,
    splits: int = 4,
    seed: int = 0,
    **options,
) -> pd.DataFrame:
    """Compare likelihoods by held-out predictive accuracy and split-half reliability.

    `scores`, `folds` and `options` are those of `heldout`, `splits` those of `split_half`.
    `likelihoods` are arguments of `fit` by name: continuous Bernoulli, fractional and graded by
    default. Graded models are fitted to scores moved to the nearest of `levels`, where scores take too
    many values; their predictions are compared with the scores as they are.

    Returns a row a likelihood; the first, "item's own scores", predicts every cell by the other scores
    of its item, without any ability. `rmse` of the expected score and `crps`, both in units of the
    score; `mse_difference` and `crps_difference` from the first likelihood, negative is better, with
    standard errors clustered by item; `diff_reliability` and `theta_reliability`, rank correlations
    of halves stepped up by Spearman and Brown; `rho_diff`, rank correlation of difficulty with the
    first likelihood; `converged`, whether the fits to all scores, folds and halves did; `n` cells;
    and `trusted`: converged, and better than the item's own scores in both losses (fractional: in
    `rmse`).
    """
    models = {name: {**options, **own} for name, own in (likelihoods or LIKELIHOODS).items()}
    cells, sure = _held_out(scores, models, ("squared", "crps"), folds, seed, levels)
    rows, difficulty = _losses(cells, next(iter(models))), None
    for name, arguments in models.items():
        row, own = rows[name], _seen(scores, levels, arguments)
        whole_fit = fit(own, **arguments)
        for by, parameter in (("subjects", "diff"), ("items", "theta")):
            halves = split_half(own, splits=splits, by=by, seed=seed, **arguments)
            rho = halves.loc[halves["parameter"] == parameter, "rho"].mean()
            row[f"{parameter}_reliability"] = 2 * rho / (1 + rho)
            sure[name] &= halves["converged"].all()
        difficulty = whole_fit.items["diff"] if difficulty is None else difficulty
        row["rho_diff"] = whole_fit.items["diff"].corr(difficulty, method="spearman")
        row["converged"] = bool(sure[name] and whole_fit.converged)
        worse = [row[kind] >= rows[OWN][kind] for kind in ("rmse", "crps")]
        row["trusted"] = bool(row["converged"] and not any(worse))
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("likelihood")
    return table.assign(n=len(cells))


def _losses(cells: pd.DataFrame, base: str) -> dict[str, dict]:
    """Return each likelihood's mean losses and their differences from the first's."""
    squared, ranked = (cells.xs(kind, axis=1, level=1) for kind in ("squared", "crps"))
    table = {"rmse": np.sqrt(squared.mean()), "crps": ranked.mean(skipna=False)}
    for short, losses in {"mse": squared, "crps": ranked}.items():
        difference = losses.sub(losses[base], axis=0)
        mean = difference.mean(skipna=False)
        by_item = (difference - mean).groupby(level=0).sum(min_count=1)
        table[f"{short}_difference"] = mean
        table[f"se_{short}_difference"] = np.sqrt((by_item**2).sum(skipna=False)) / len(cells)
    return pd.DataFrame(table).to_dict("index")


def _own(train: pd.DataFrame, test: pd.DataFrame) -> dict:
    """Predict cells by the empirical distribution of their item's other scores."""
    found = pd.DataFrame(np.nan, test.index, [(OWN, "squared"), (OWN, "crps")])
    others = train.groupby("item_id")["score"]
    for item, part in test.groupby("item_id"):
        y, x = others.get_group(item).to_numpy(float), part["score"].to_numpy(float)
        ranked = np.abs(y[:, None] - x).mean(0) - np.abs(y[:, None] - y).mean() / 2
        found.loc[part.index] = np.column_stack([(y.mean() - x) ** 2, ranked])
    return dict(found.items())
