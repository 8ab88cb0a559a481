"""What a fit returns: items, subjects, how it went, and what can be asked of it.

>>> from ragkit import irt
>>> result = irt.fit(irt.simulate(20, 50, seed=1).scores)
>>> result.items[["diff", "disc"]].head(2).round(1)
         diff  disc
item_id
q00      -0.1   1.7
q01       0.2   0.9
>>> round(float(reliability(result.subjects)), 2)
0.81
>>> load(result.save("fit")).items.equals(result.items)
True
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from ragkit.display import card, table
from ragkit.errors import DataError, MissingData, UsageError
from ragkit.irt.data import Scores, rescaled
from ragkit.irt.likelihood import get_likelihood
from ragkit.irt.marginal import NODES, Quadrature

GRID = np.linspace(-4, 4, 121)  # abilities that curves are drawn over
Z90 = 1.6448536269514722  # half the width of a 90 % interval, in standard errors
_FORMAT = 3
_CELLS = 1 << 14  # worked on at a time when abilities are scored


def reliability(subjects: pd.DataFrame) -> float:
    """Return the marginal reliability of ability: its share of true variance.

    var(EAP) / (var(EAP) + mean squared error), between 0 and 1.
    """
    spread, error = subjects["theta"].var(ddof=0), (subjects["se_theta"] ** 2).mean()
    return float(spread / (spread + error))


@dataclass
class IRTResult:
    """A fitted item response model.

    Attributes
    ----------
    items : pandas.DataFrame
        Indexed by `item_id`. `diff` is the ability at which the expected score is the middle of
        the range, so higher is harder; `disc` the slope there; `log_disc` its logarithm (NaN where
        `disc` is negative); graded models have `threshold_1`, ..., whose mean is `diff`; `se_diff`,
        `se_disc`, `se_log_disc` posterior standard deviations (`se_disc = disc * se_log_disc` for
        positive models); `n` scores, `mean_score` on the original scale; `flag`, its words
        separated by spaces: `constant` (all scores equal), `negative` (the slope is negative, or
        would be if the model allowed it), `few` (fewer than 5 scores), `disconnected`.
    subjects : pandas.DataFrame
        Indexed by `subject_id`: `theta`, `se_theta`, `n`, `mean_score`, `flag` (`constant`,
        `few`, `disconnected`). Abilities have mean 0 and mean square 1, error included; errors are
        those of a scale on which 0 and 1 belong to these subjects.
    facets : pandas.DataFrame or None
        Indexed by the judge or condition: `severity` (higher is stricter, on the scale of theta,
        from the mean of the levels), `se_severity`, `n`, `n_subjects`, `flag`: `nested` if no
        subject was scored under another level too, so that only the assumption of equally able
        groups tells severity from ability.
    info : dict
        Model, likelihood, engine, seed, score range, prior, convergence, hyperparameters,
        log-likelihood (of "em" with abilities integrated out, else at the estimates), versions,
        notes.
    draws : dict of numpy.ndarray, or None
        For `engine="nuts"`: "theta", "diff", "disc" of shape (chains, draws, n).
    data : Scores or None
        What was fitted; not saved.
    """

    items: pd.DataFrame
    subjects: pd.DataFrame
    info: dict
    facets: pd.DataFrame | None = None
    draws: dict[str, np.ndarray] | None = field(default=None, repr=False)
    data: Scores | None = field(default=None, repr=False)

    @property
    def converged(self) -> bool:
        """Whether the engine met its own criterion; py-irt has none but that it did not diverge."""
        return bool(self.info["converged"])

    @property
    def score_range(self) -> tuple[float, float]:
        return tuple(self.info["score_range"])

    def __repr__(self) -> str:
        info = self.info
        state = "converged" if self.converged else "NOT converged: " + "; ".join(info["problems"])
        state = f"reliability {info['reliability']:.2f}, {state}"
        return (
            f"<IRTResult {info['model']} {info['likelihood']} by {info['engine']}, "
            f"{len(self.subjects):,} subjects x {len(self.items):,} items, "
            f"{info['n_scores']:,} scores, {state}>"
        )

    def _repr_html_(self) -> str:
        info, items = self.info, self.items
        flags = items["flag"].str.split().explode().value_counts()

        def spread(name: str) -> str:
            mean, sd, error = items[name].mean(), items[name].std(), items[f"se_{name}"].median()
            return f"{mean:.2f} ± {sd:.2f} (mean ± sd), median error {error:.2f}"

        rows = {
            "model": f"{info['model']}, {info['likelihood']} likelihood, {info['disc']} disc",
            "engine": f"{info['engine']}, {'converged' if self.converged else 'NOT CONVERGED'} "
            f"after {info['iterations']} iterations, {info['seconds']:.3g} s",
            "scores": f"{info['n_scores']:,} of {len(self.subjects):,} subjects on "
            f"{len(items):,} items, range {list(self.score_range)}",
            "log-likelihood": f"{info['log_likelihood']:.2f}",
            "difficulty (higher is harder)": spread("diff"),
            "discrimination": spread("disc"),
            "item flags": ", ".join(f"{n} {name}" for name, n in flags.items()) or "none",
            "reliability of ability (0 to 1)": f"{info['reliability']:.3f}",
            "problems": "; ".join(info["problems"]),
            "notes": "; ".join(info["notes"]),
        }
        best = self.subjects.sort_values("theta", ascending=False).head(5)
        caption = f"The ablest of {len(self.subjects):,} subjects; theta is in standard deviations"
        after = (
            "Next: `.items` and `.subjects` have everything; `.items.sort_values('diff')` ends with "
            "the hardest items, `.characteristic_curves()` has their expected scores."
        )
        if not self.converged:
            after = "Next: read the problems before you use these numbers: they have not converged."
        shown = table(best, caption, high=["theta"], digits=3)
        return card("Fitted item response model", rows, shown, after=after)

    # --- curves -------------------------------------------------------------------------------

    @property
    def family(self):
        """The likelihood, with the levels of a graded model."""
        return get_likelihood(self.info["likelihood"], self.info.get("levels"), self.score_range)

    def _eta(self, ability: np.ndarray, items: pd.DataFrame) -> np.ndarray:
        """Return what the family takes; `ability` broadcasts against the items."""
        a, family = items["disc"].to_numpy(), self.family
        if not family.graded:
            return a * (ability - items["diff"].to_numpy())
        return a[:, None] * (ability[..., None] - items.filter(like="threshold_").to_numpy())

    def _on_scale(self, mean: np.ndarray) -> np.ndarray:
        low, high = self.score_range
        return low + mean * (high - low)

    def characteristic_curves(self, theta: np.ndarray = GRID) -> pd.DataFrame:
        """Return expected scores, abilities x items, on the original scale.

        `theta` holds abilities; 121 from -4 to 4 by default.
        """
        return self._over(theta, lambda eta: self._on_scale(self.family.mean_variance(eta)[0]))

    def information(self, theta: np.ndarray = GRID) -> pd.DataFrame:
        """Return each item's Fisher information about ability, abilities x items.

        The test's information is the sum over the items, `.sum(axis=1)`; its inverse square root
        is the error of an ability measured by them. `theta` is that of `characteristic_curves`.
        """
        return self._over(theta, self.family.information) * self.items["disc"] ** 2

    def _over(self, theta: np.ndarray, function: Callable) -> pd.DataFrame:
        theta = pd.Index(np.atleast_1d(theta), name="theta")
        values = function(self._eta(theta.to_numpy()[:, None], self.items))
        return pd.DataFrame(values, theta, self.items.index)

    # --- prediction ---------------------------------------------------------------------------

    def predict(self, cells: pd.DataFrame | None = None) -> pd.Series | pd.DataFrame:
        """Return expected scores on the original scale.

        One a row of `cells`, with the columns `subject_id`, `item_id` (and `group` if the model has a
        facet); what was not fitted raises `DataError`. Without them subjects x items, at severity 0.
        """
        if cells is None:
            curves = self.characteristic_curves(self.subjects["theta"])
            return curves.set_axis(self.subjects.index)
        mean = self.family.mean_variance(self._cell_eta(cells))[0]
        return pd.Series(self._on_scale(mean), index=cells.index, name="expected")

    def _severity(self, cells: pd.DataFrame) -> np.ndarray | float:
        if self.facets is None:
            return 0.0
        name = "group" if "group" in cells.columns else self.info["group"]
        return self.facets["severity"].to_numpy()[_positions(self.facets.index, cells, name)]

    def _cell_eta(self, cells: pd.DataFrame) -> np.ndarray:
        subject = _positions(self.subjects.index, cells, "subject_id")
        ability = self.subjects["theta"].to_numpy()[subject] - self._severity(cells)
        return self._eta(ability, self.items.iloc[_positions(self.items.index, cells, "item_id")])

    def pointwise(self, scores: pd.DataFrame | None = None) -> pd.Series:
        """Return the log-likelihood of each score at the estimates.

        `scores` are as for `fit`, in the long form and of fitted subjects and items (`DataError`
        otherwise); the fitted ones by default.
        """
        scores = self._fitted().frame() if scores is None else scores
        return self._each(scores, self.family.log_density, "log_likelihood")

    def _each(self, scores: pd.DataFrame, function: Callable, name: str) -> pd.Series:
        """Return a function of eta and the rescaled score for each score."""
        x = rescaled(scores, self.score_range)
        return pd.Series(function(self._cell_eta(scores), x), index=scores.index, name=name)

    def _fitted(self) -> Scores:
        if self.data is None:
            raise UsageError(
                "this result was loaded from disk and does not hold the scores",
                "pass the scores it was fitted to",
            )
        return self.data

    def score(self, scores: pd.DataFrame) -> pd.DataFrame:
        """Return abilities of new subjects from their scores on fitted items.

        The items stay as they are; each ability is the mean of its posterior under the prior of
        the fit (EAP) and its error the standard deviation, the items' own errors not included.
        `scores` are long: subject_id, item_id, score on the original scale, group where there is a
        facet. No scores, two on one item, one out of range and other items raise `DataError`.
        Returns theta, se_theta, n and mean_score by subject_id.
        """
        if len(scores) == 0:
            raise DataError("there are no scores of new subjects")
        x = rescaled(scores, self.score_range)
        code, ids = pd.factorize(scores["subject_id"], sort=True)
        item = _positions(self.items.index, scores, "item_id")
        if scores.duplicated(["subject_id", "item_id"]).any():
            raise DataError("a new subject has two scores on one item")
        severity = np.broadcast_to(self._severity(scores), len(item))
        logs, (middle, unit) = np.zeros((len(ids), len(NODES))), self.info["ability_prior"]
        for start in range(0, len(x), _CELLS):
            part = slice(start, start + _CELLS)
            ability = (middle + unit * NODES)[:, None] - severity[part]  # nodes x cells
            eta = self._eta(ability, self.items.iloc[item[part]])
            np.add.at(logs, code[part], self.family.log_density(eta, x[part]).T)
        posterior = Quadrature(len(ids)).integrate(logs)
        columns = {"theta": middle + unit * posterior.mean, "se_theta": unit * posterior.sd}
        own = pd.Series(x).groupby(code).agg(n="size", mean_score="mean")
        own["mean_score"] = self._on_scale(own["mean_score"])
        return own.assign(**columns).set_axis(pd.Index(ids, name="subject_id"))[[*columns, *own]]

    # --- on disk ------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> Path:
        """Write `items.csv`, `subjects.csv`, `fit.json` (`facets.csv`, `draws.npz`).

        Returns `folder`, which is made where it does not exist.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for left in ("facets.csv", "draws.npz"):  # by a fit that was saved here before
            (folder / left).unlink(missing_ok=True)
        ids = {}
        for name in ("items", "subjects", "facets"):
            if (frame := getattr(self, name)) is not None:
                frame.to_csv(folder / f"{name}.csv")
                ids[name] = frame.index.tolist()
        if self.draws is not None:
            np.savez_compressed(folder / "draws.npz", **self.draws)
        text = {"format": _FORMAT, **self.info, "ids": ids}
        text = json.dumps(text, indent=2, ensure_ascii=False, default=_plain) + "\n"
        (folder / "fit.json").write_text(text, encoding="utf-8")
        return folder


def load(folder: str | Path) -> IRTResult:
    """Read what `IRTResult.save` wrote. The fitted scores are not part of it.

    Raises `MissingData` if there is no fit in `folder`, `DataError` if it cannot be read.
    """
    folder = Path(folder)
    path = folder / "fit.json"
    if not path.exists():
        raise MissingData(f"{path} does not exist", "write one with result.save(folder)")
    try:
        info = json.loads(path.read_text(encoding="utf-8"))
        version = info.pop("format")
        if version != _FORMAT:
            raise DataError(f"{path} has the format {version}; this version reads {_FORMAT}")
        ids = info.pop("ids")
    except (json.JSONDecodeError, KeyError) as error:
        raise DataError(f"{path} is not a saved fit: {error}") from None
    parts = {"info": info}
    for name, labels in ids.items():
        options = {"index_col": 0, "dtype": {"flag": object}, "float_precision": "round_trip"}
        frame = pd.read_csv(folder / f"{name}.csv", **options).fillna({"flag": ""})
        parts[name] = frame.set_axis(pd.Index(labels, name=frame.index.name))
    if (folder / "draws.npz").exists():
        with np.load(folder / "draws.npz", allow_pickle=False) as file:
            parts["draws"] = dict(file)
    return IRTResult(**parts)


def _plain(value):
    return value.item() if isinstance(value, np.generic) else str(value)


def _positions(index: pd.Index, cells: pd.DataFrame, column: str) -> np.ndarray:
    if column not in cells.columns:
        raise DataError(f"the cells lack the column {column!r}")
    found = index.get_indexer(cells[column])
    if (found < 0).any():
        missing = cells[column].iloc[int((found < 0).argmax())]
        raise DataError(f"{column} {missing!r} is not among the fitted ones")
    return found
