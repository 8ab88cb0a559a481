"""Short forms: a few items from which the mean score over all items can be estimated.

The scores of a subject are treated as a draw from a multivariate normal distribution with the
items' means and a covariance that is shrunk towards a single-index model, in which items vary
together only as the mean score does (Ledoit and Wolf, Journal of Empirical Finance 2003). Given a
subject's scores on a few items, its mean score over all items has a conditional mean, which is the
estimate, and a conditional variance, which gives the error. Items are chosen greedily, each the
one that reduces this variance most (forward selection of predictors; Das and Kempe, ICML 2011).

The variance does not depend on the scores. So choosing the next item by a subject's previous
scores, as adaptive tests do, gains nothing under this model.

>>> from ragkit import irt
>>> scores = irt.simulate(40, 100, seed=1).scores
>>> form = irt.short_form(scores, 10)
>>> form.estimate(scores).columns.tolist()
['estimate', 'error', 'low', 'high', 'n']
>>> load_short_form(form.save("form")).items.equals(form.items)
True
>>> checked = check_short_forms(scores, [10], methods=["short form", "random"], folds=2)
>>> checked.columns.tolist()
['size', 'method', 'mae', 'rmse', 'tau', 'rho', 'coverage', 'n']
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from ragkit.checks import choice, whole
from ragkit.display import card, progress, table
from ragkit.errors import DataError, MissingData
from ragkit.irt.data import prepare
from ragkit.irt.fitting import fit
from ragkit.irt.result import Z90

SHRINKAGE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
_FOLDS = 5  # of the subjects, to choose the shrinkage and to scale the error


@dataclass(frozen=True)
class ShortForm:
    """A few items, and what is needed to estimate the mean score over all items from them.

    Attributes
    ----------
    items : pandas.DataFrame
        Indexed by item_id, in the order of their choice: `mean_score`; `weight` in the estimate of
        a subject that answered all of them; `error` of the estimate with the items so far. Scores
        and errors are on the original scale.
    covariance : numpy.ndarray
        Of the items' scores, on [0, 1].
    with_score : numpy.ndarray
        Covariances of the items' scores with the mean score over all items, on [0, 1].
    info : dict
        `score_range`; `mean_score` over all items and its `variance` over subjects, on [0, 1];
        `shrinkage`; `scale` of the errors, such that 90 % intervals cover 90 % of left-out
        subjects; `n_subjects`; `n_items`; and `filled`, the share of missing training scores.
    """

    items: pd.DataFrame
    covariance: np.ndarray
    with_score: np.ndarray
    info: dict

    def __repr__(self) -> str:
        return (
            f"<ShortForm of {len(self.items):,} of {self.info['n_items']:,} items, "
            f"error {self.items['error'].iloc[-1]:.3g}, from {self.info['n_subjects']:,} subjects>"
        )

    def _repr_html_(self) -> str:
        info, (low, high) = self.info, self.info["score_range"]
        facts = {
            "items": f"{len(self.items):,} of {info['n_items']:,}",
            "error of the estimate": f"{self.items['error'].iloc[-1]:.3g}, scores from {low} to {high}",
            "chosen from": f"{info['n_subjects']:,} subjects, {info['filled']:.1%} of scores missing",
        }
        caption = "The items chosen first, and the error with them"
        after = "Next: `.estimate(scores)` for mean scores over all items from scores on these."
        return card("Short form", facts, table(self.items.head(5), caption, digits=3), after=after)

    def estimate(self, scores: pd.DataFrame) -> pd.DataFrame:
        """Estimate the mean score over all items from scores on the items of the form.

        `scores` are long or wide, as for `fit`. Scores on other items are not used, and a missing
        score makes the error larger. No score of a subject on an item of the form, two on one item,
        and one that is not a number or out of range raise `DataError`.

        Returns, by subject_id, `estimate`, `error`, `low` and `high` of a 90 % interval, and `n`, the
        number of scores used.
        """
        low, high = self.info["score_range"]
        try:
            if "item_id" in scores.columns:
                scores = scores.pivot(index="subject_id", columns="item_id", values="score")
            x = (scores.reindex(columns=self.items.index).astype(float) - low) / (high - low)
        except ValueError as error:
            raise DataError(f"scores should be one number a subject and item: {error}") from None
        if ((x < 0) | (x > 1)).any(axis=None):
            raise DataError(f"a score lies outside the range [{low:g}, {high:g}] of the short form")
        if not (seen := x.notna()).any(axis=1).all():
            name = seen.any(axis=1).idxmin()
            raise DataError(f"the subject {name!r} has no score on an item of the short form")
        above = x - (self.items["mean_score"] - low) / (high - low)
        found = pd.DataFrame(index=x.index.rename("subject_id"))
        for pattern in seen.drop_duplicates().to_numpy():
            rows, shared = (seen == pattern).all(axis=1), self.with_score[pattern]
            weight = np.linalg.solve(self.covariance[np.ix_(pattern, pattern)], shared)
            left = max(self.info["variance"] - weight @ shared, 0.0)
            estimate = self.info["mean_score"] + above.loc[rows, pattern] @ weight
            found.loc[rows, "estimate"] = estimate
            found.loc[rows, "error"] = self.info["scale"] * np.sqrt(left)
        for name, sign in (("low", -1), ("high", 1)):
            found[name] = found["estimate"] + sign * Z90 * found["error"]
        places = ["estimate", "low", "high"]
        found[places] = low + found[places].clip(0, 1) * (high - low)
        return found.assign(error=found["error"] * (high - low), n=seen.sum(axis=1))

    def save(self, folder: str | Path) -> Path:
        """Write `items.csv` and `short_form.json` to `folder`."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.items.to_csv(folder / "items.csv")
        saved = {"items": self.items.reset_index().to_dict("list"), "info": self.info}
        saved |= {"covariance": self.covariance.tolist(), "with_score": self.with_score.tolist()}
        (folder / "short_form.json").write_text(json.dumps(saved) + "\n", encoding="utf-8")
        return folder


def load_short_form(folder: str | Path) -> ShortForm:
    """Read what `ShortForm.save` wrote.

    Raises `MissingData` if there is no such file, `DataError` if it is not a saved short form.
    """
    path = Path(folder) / "short_form.json"
    if not path.is_file():
        raise MissingData(f"{path} does not exist", "make one: ragkit irt short-form SCORES")
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        items = pd.DataFrame(saved["items"]).set_index("item_id")
        arrays = np.array(saved["covariance"]), np.array(saved["with_score"])
        return ShortForm(items, *arrays, saved["info"])
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is not a saved short form: {error}") from None


def short_form(
    scores: pd.DataFrame,
    size: int,
    *,
    score_range: tuple[float, float] = (0, 1),
    families: pd.Series | None = None,
    seed: int = 0,
) -> ShortForm:
    """Choose the items from which the mean score over all items is estimated best.

    Parameters
    ----------
    scores : pandas.DataFrame
        Long or wide, as for `fit`, of at least ten subjects (`DataError`). Missing scores are filled
        in with the expected scores of a 2PL model.
    size : int
        Number of items to choose, at most all but one (`UsageError`).
    score_range : (low, high)
    families : pandas.Series, optional
        The family of each subject (index: subject_id), such as the pipeline that it is a variant
        of, two at least (`DataError`). Families are left out as a whole when the shrinkage is chosen
        and the error is scaled, so that the error is that of a subject of a new family.
    seed : int
        Of the folds of subjects. The shrinkage is the value of `SHRINKAGE` with the highest
        predictive density of left-out subjects.
    """
    known, family, filled = _training(scores, score_range, families)
    x, items = known.to_numpy(), known.columns
    whole(size, "size", most=len(items) - 1)
    shrinkage, scale = _tuned(x, family, size, seed)
    model = _Normal(x, shrinkage)
    chosen, left = model.greedy(size)
    low, high = score_range
    table = pd.DataFrame(index=items[chosen].rename("item_id"))
    table["mean_score"] = low + model.mean[chosen] * (high - low)
    table["weight"] = model.weights(chosen)
    table["error"] = scale * np.sqrt(left) * (high - low)
    info = {
        "score_range": [float(low), float(high)],
        "mean_score": float(model.mean.mean()),
        "variance": float(model.with_score.mean()),
        "shrinkage": shrinkage,
        "scale": scale,
        "n_subjects": len(x),
        "n_items": len(items),
        "filled": filled,
    }
    return ShortForm(table, model.columns(chosen)[chosen], model.with_score[chosen], info)


class _Normal:
    """The normal distribution of the items' scores; its covariance is never formed as a whole."""

    def __init__(self, x: np.ndarray, shrinkage: float):
        n = len(x)
        self.mean = x.mean(0)
        own = x - self.mean
        total = own.mean(1)
        slope = own.T @ total / (total @ total)
        index = np.sqrt(total @ total / (n - 1)) * slope
        # One more observation of average variance: a constant item is not known to be constant.
        variance = x.var(0) + x.var(0).mean() / n
        self.factors = np.vstack(
            [own * np.sqrt((1 - shrinkage) / (n - 1)), index * np.sqrt(shrinkage)]
        )
        self.diagonal = shrinkage * np.maximum(variance - index**2, 0.05 * variance)
        self.with_score = self.factors.T @ self.factors.mean(1) + self.diagonal / len(self.mean)

    def columns(self, items: Sequence[int]) -> np.ndarray:
        """Return these columns of the covariance."""
        out = self.factors.T @ self.factors[:, items]
        out[items, np.arange(len(items))] += self.diagonal[items]
        return out

    def greedy(self, size: int) -> tuple[list[int], np.ndarray]:
        """Return the items in the order of choice, and what is left of the variance after each."""
        factor = np.zeros((len(self.mean), size))
        own = (self.factors**2).sum(0) + self.diagonal
        shared, chosen, left = self.with_score.copy(), [], []
        for step in range(size):
            gain = shared**2 / own
            gain[chosen] = -1.0
            item = int(gain.argmax())
            column = self.columns([item])[:, 0] - factor[:, :step] @ factor[item, :step]
            factor[:, step] = column = column / np.sqrt(own[item])
            own = np.maximum(own - column**2, 1e-12)
            shared = shared - column * column.mean()
            chosen.append(item)
            left.append(shared.mean())
        return chosen, np.maximum(left, 0)

    def weights(self, chosen: Sequence[int]) -> np.ndarray:
        """Return the weights of scores on the chosen items in the estimate of the mean score."""
        return np.linalg.solve(self.columns(chosen)[chosen], self.with_score[chosen])


def _tuned(x, family, size: int, seed: int) -> tuple[float, float]:
    """Return the shrinkage of the highest predictive density, and the scale of its errors."""
    from sklearn.model_selection import GroupKFold

    kinds = np.unique(family)
    order = np.random.default_rng(seed).permutation(len(kinds))
    splitter = GroupKFold(min(_FOLDS, len(kinds)))
    folds = list(splitter.split(x, groups=order[np.searchsorted(kinds, family)]))
    found = []
    for shrinkage in SHRINKAGE:
        square, variance = np.empty(len(x)), np.empty(len(x))
        for train, test in folds:
            model = _Normal(x[train], shrinkage)
            chosen, left = model.greedy(size)
            above = x[test] - model.mean
            error = above[:, chosen] @ model.weights(chosen) - above.mean(1)
            square[test], variance[test] = error**2 / left[-1], left[-1]
        # with the error scaled by its ratio, minus twice the log density is this and a constant
        loss = np.log(square.mean()) + np.log(variance).mean()
        found.append((loss, shrinkage, float(np.quantile(np.sqrt(square), 0.9) / Z90)))
    return min(found)[1:]


def _training(scores, score_range, families) -> tuple[pd.DataFrame, np.ndarray, float]:
    """Return full scores on [0, 1], the subjects' families and the share of scores filled in."""
    data = prepare(scores, score_range=score_range)
    if data.n_subjects < 10:
        raise DataError(f"{data.n_subjects} subjects are too few for a short form", "10 at least")
    x = pd.DataFrame(data.x.T.astype(float), data.subjects, data.items)
    if filled := 1 - data.n_cells / data.x.size:
        low, high = data.score_range
        model = fit(scores, likelihood="fractional", score_range=score_range)
        x = x.fillna((model.predict() - low) / (high - low))
    if families is None:
        return x, np.arange(len(x)).astype(str), filled
    missing = x.index.difference(families.index)
    if len(missing):
        raise DataError(f"the subject {missing[0]!r} has no family")
    family = families.reindex(x.index).astype(str).to_numpy()
    if len(set(family)) < 2:
        raise DataError("all subjects are of one family, so none can be left out")
    return x, family, filled


# --- comparison with other ways to choose ---------------------------------------------------------


METHODS = ("short form", "irt", "random", "k-means", "information", "half")


def check_short_forms(
    scores: pd.DataFrame,
    sizes: Iterable[int] = (25, 50, 100),
    *,
    methods: Iterable[str] = METHODS[:-1],
    families: pd.Series | None = None,
    score_range: tuple[float, float] = (0, 1),
    likelihood: str = "fractional",
    folds: int = 20,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare ways to choose items by subjects that were left out.

    In each fold a random fifth of the subjects (or of the families) is left out. Each method chooses
    items from the others' scores and estimates the left-out subjects' mean scores over all items,
    in which missing scores were filled in as in `short_form`.

    Of the `methods`, "short form" is `short_form`. "irt" takes the items with the most Fisher
    information under a 2PL model (with this `likelihood`), and the expected scores of the others at
    the ability that these show. "information" (the same items), "k-means" (the item nearest to each
    centre) and "random" predict by ridge regression, with a penalty chosen by leave-one-out. "half"
    compares the mean scores over two random halves of the items, whatever the size: the agreement
    that two tests of half the length have with each other. Other arguments are those of `short_form`.

    Returns one row a size and method: `mae` and `rmse` of the estimates, in units of the score;
    `tau`, Kendall's, of estimates and full scores, the mean over folds; `rho`, Spearman's, over all
    folds; `coverage` of 90 % intervals (short form only); `n` left-out subjects.
    """
    from sklearn.model_selection import GroupShuffleSplit

    x, family, _ = _training(scores, score_range, families)
    x, unit = x.to_numpy(), score_range[1] - score_range[0]
    sizes = [whole(size, "size", most=x.shape[1] - 1) for size in sizes]
    methods = [choice(name, "method", METHODS) for name in methods]
    splitter = GroupShuffleSplit(whole(folds, "folds"), test_size=0.2, random_state=seed)
    parts, result = {}, None
    split = progress(splitter.split(x, groups=family), "folds", folds)
    for fold, (train, test) in enumerate(split):
        if {"irt", "information"} & set(methods):
            result = fit(pd.DataFrame(x[train]), likelihood=likelihood)
        for size, method in product(sizes, methods):
            rng = np.random.default_rng([seed, fold])
            part = _left_out(x[train], family[train], x[test], method, size, result, rng)
            part = {"full": x[test].mean(1), "inside": np.nan, **part}
            parts[size, method, fold] = pd.DataFrame(part, dtype=float)
    table = pd.concat(parts, names=["size", "method", "fold", "subject"])
    table["error"] = unit * (table["estimate"] - table["full"])
    rows = []
    for (size, method), own in table.groupby(["size", "method"], sort=False):
        error, pair = own["error"], own[["estimate", "full"]]
        tau = pair.groupby("fold").corr(method="kendall")["full"].xs("estimate", level=1)
        row = {"size": size, "method": method, "mae": error.abs().mean()}
        row |= {"rmse": np.sqrt((error**2).mean()), "tau": tau.mean()}
        row |= {"rho": pair.corr(method="spearman").loc["estimate", "full"]}
        rows.append(row | {"coverage": own["inside"].mean(), "n": len(own)})
    return pd.DataFrame(rows)


def _left_out(x, family, test, method: str, size: int, result, rng) -> dict[str, np.ndarray]:
    """Return estimates for the rows of `test` from the training scores `x`."""
    from sklearn.cluster import KMeans
    from sklearn.linear_model import RidgeCV

    if method == "half":
        one, two = np.array_split(rng.permutation(x.shape[1]), 2)
        return {"estimate": test[:, one].mean(1), "full": test[:, two].mean(1)}
    if method == "short form":
        form = short_form(pd.DataFrame(x), size, families=pd.Series(family))
        found = form.estimate(pd.DataFrame(test))
        inside = pd.Series(test.mean(1)).between(found["low"], found["high"])
        return {"estimate": found["estimate"], "inside": inside}
    if method == "random":
        chosen = rng.permutation(x.shape[1])[:size]
    elif method == "k-means":
        clusters = KMeans(size, n_init=3, random_state=int(rng.integers(1 << 30))).fit(x.T)
        chosen = []
        for distance in clusters.transform(x.T).T:  # no item stands for two clusters
            chosen.append(next(int(j) for j in np.argsort(distance) if j not in chosen))
    else:  # the most information on abilities from N(0, 1)
        theta = np.linspace(-2, 2, 41)
        total = np.exp(-0.5 * theta**2) @ result.information(theta).to_numpy()
        chosen = np.argsort(-total, kind="stable")[:size]
    if method != "irt":
        ridge = RidgeCV(alphas=np.logspace(-2, 3, 16)).fit(x[:, chosen], x.mean(1))
        return {"estimate": ridge.predict(test[:, chosen])}
    long = pd.DataFrame(test).rename_axis("subject_id")[chosen].reset_index()
    long = long.melt("subject_id", var_name="item_id", value_name="score")
    expected = result.characteristic_curves(result.score(long)["theta"]).to_numpy()
    expected[:, chosen] = test[:, chosen]
    return {"estimate": expected.mean(1)}
