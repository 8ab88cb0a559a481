"""What a fit returns: items, subjects, how it went, and what can be asked of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd

from ragkit.errors import DataError, MissingData, UsageError
from ragkit.irt import graded
from ragkit.irt.data import Scores
from ragkit.irt.likelihood import get_likelihood
from ragkit.irt.marginal import NODES, Quadrature

_FORMAT = 2
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
        `disc` is negative); graded models have `threshold_1`, ..., whose mean is `diff`; `se_diff`, `se_disc`, `se_log_disc` posterior standard deviations
        (`se_disc = disc * se_log_disc` for positive models); `n` scores, their mean on the
        original scale; `flags`, separated by spaces: `constant` (all scores equal), `negative`
        (the slope is negative, or would be if the model allowed it), `few` (fewer than 5 scores),
        `disconnected`.
    subjects : pandas.DataFrame
        Indexed by `subject_id`: `theta`, `se_theta`, `n`, `mean_score`, `flags` (`constant`,
        `few`, `disconnected`). Abilities have mean 0 and mean square 1, error included.
    facets : pandas.DataFrame or None
        Indexed by the judge or condition: `severity` (higher is stricter, on the scale of theta,
        from the mean of the levels), `se_severity`, `n`, `n_subjects`, `flags`: `nested` if no subject was scored under another
        level too, so that only the assumption of equally able groups tells severity from ability.
    info : dict
        Model, likelihood, engine, seed, score range, scale, convergence, hyperparameters,
        log-likelihood, versions, notes.
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
        """Whether the engine met its own criterion."""
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
        info = self.info
        flags = self.items["flag"].str.split().explode().value_counts()
        rows = {
            "model": f"{info['model']}, {info['likelihood']} likelihood, {info['disc']} disc",
            "engine": f"{info['engine']}, {'converged' if self.converged else 'NOT CONVERGED'} "
            f"after {info['iterations']} iterations, {info['seconds']:.3g} s",
            "scores": f"{info['n_scores']:,} of {len(self.subjects):,} subjects on "
            f"{len(self.items):,} items, range {list(self.score_range)}",
            "log-likelihood": f"{info['log_likelihood']:.2f}",
            "difficulty": f"{self.items['diff'].mean():.2f} ± {self.items['diff'].std():.2f} "
            f"(mean ± sd), median error {self.items['se_diff'].median():.2f}",
            "discrimination": f"{self.items['disc'].mean():.2f} ± {self.items['disc'].std():.2f}, "
            f"median error {self.items['se_disc'].median():.2f}",
            "item flags": ", ".join(f"{n} {name}" for name, n in flags.items()) or "none",
        }
        rows["reliability of ability"] = f"{info['reliability']:.3f}"
        if info["problems"]:
            rows["problems"] = "; ".join(info["problems"])
        if info["notes"]:
            rows["notes"] = "; ".join(info["notes"])
        body = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(text)}</td></tr>"
            for name, text in rows.items()
        )
        best = self.subjects.sort_values("theta", ascending=False).head(5)
        return (
            f"<table>{body}</table><p>Ablest subjects; all are in <code>.subjects</code>, "
            f"items in <code>.items</code>.</p>{best.round(3).to_html()}"
        )

    # --- curves -------------------------------------------------------------------------------

    def _pick(self, items: Iterable | None) -> pd.DataFrame:
        if items is None:
            return self.items
        wanted = list(items)
        unknown = [item for item in wanted if item not in self.items.index]
        if unknown:
            raise UsageError(f"the item {unknown[0]!r} was not fitted")
        return self.items.loc[wanted]

    @property
    def _levels(self) -> np.ndarray | None:
        """Levels of a graded model on [0, 1]."""
        if self.info["likelihood"] != "graded":
            return None
        low, high = self.score_range
        return (np.array(self.info["levels"]) - low) / (high - low)

    def _mean_variance(self, ability: np.ndarray, items: pd.DataFrame):
        """Return mean and variance of scores on [0, 1]; `ability` broadcasts against the items."""
        a = items["disc"].to_numpy()
        if self._levels is not None:
            return graded.moments(ability, a, self._thresholds(items), self._levels)
        eta = a * (ability - items["diff"].to_numpy())
        return get_likelihood(self.info["likelihood"]).mean_variance(eta)

    @staticmethod
    def _thresholds(items: pd.DataFrame) -> np.ndarray:
        return items[graded.threshold_columns(items)].to_numpy()

    def characteristic_curves(
        self, theta: np.ndarray | None = None, items: Iterable | None = None
    ) -> pd.DataFrame:
        """Return expected scores, abilities x items, on the original scale.

        Parameters
        ----------
        theta : array of float, optional
            Abilities; 121 from -4 to 4 by default.
        items : iterable of item ids, optional
        """
        theta, chosen = _grid(theta), self._pick(items)
        mean, _ = self._mean_variance(theta[:, None], chosen)
        low, high = self.score_range
        index = pd.Index(theta, name="theta")
        return pd.DataFrame(low + mean * (high - low), index=index, columns=chosen.index)

    def information(
        self, theta: np.ndarray | None = None, items: Iterable | None = None
    ) -> pd.DataFrame:
        """Return each item's Fisher information about ability, abilities x items.

        The test's information is the sum over the items, `.sum(axis=1)`; its inverse square root
        is the error of an ability measured by them.
        """
        theta, chosen = _grid(theta), self._pick(items)
        if self._levels is not None:
            a = chosen["disc"].to_numpy()
            value = graded.information(theta[:, None], a, self._thresholds(chosen))
        else:
            value = chosen["disc"].to_numpy() ** 2 * self._mean_variance(theta[:, None], chosen)[1]
        index = pd.Index(theta, name="theta")
        return pd.DataFrame(value, index=index, columns=chosen.index)

    # --- prediction ---------------------------------------------------------------------------

    def predict(self, cells: pd.DataFrame | None = None) -> pd.Series | pd.DataFrame:
        """Return expected scores on the original scale.

        Parameters
        ----------
        cells : pandas.DataFrame, optional
            Columns `subject_id`, `item_id` (and `group` if the model has a facet). Without it, all
            subjects x items are returned, at severity 0.
        """
        low, high = self.score_range
        if cells is None:
            mean, _ = self._mean_variance(self.subjects["theta"].to_numpy()[:, None], self.items)
            return pd.DataFrame(
                low + mean * (high - low), index=self.subjects.index, columns=self.items.index
            )
        mean, _ = self._cell_moments(cells)
        return pd.Series(low + mean * (high - low), index=cells.index, name="expected")

    def _cell_moments(self, cells: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        ability, item = self._cell_ability(cells)
        return self._mean_variance(ability, self.items.iloc[item])

    def _cell_ability(self, cells: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return ability less severity, and the item's position, of each cell."""
        subject = _positions(self.subjects.index, cells, "subject_id")
        ability = self.subjects["theta"].to_numpy()[subject]
        if self.facets is not None:
            name = "group" if "group" in cells.columns else self.info["group"]
            group = _positions(self.facets.index, cells, name)
            ability = ability - self.facets["severity"].to_numpy()[group]
        return ability, _positions(self.items.index, cells, "item_id")

    def _cell_eta(self, cells: pd.DataFrame) -> np.ndarray:
        ability, item = self._cell_ability(cells)
        a, b = self.items["disc"].to_numpy()[item], self.items["diff"].to_numpy()[item]
        return a * (ability - b)

    def log_likelihood(self, scores: pd.DataFrame | None = None) -> float:
        """Return the log-likelihood of `scores` at the estimates; of the fitted ones by default.

        For `engine="em"` the value in `info` integrates the abilities out and is another number.
        """
        return float(self.pointwise(scores).sum())

    def pointwise(self, scores: pd.DataFrame | None = None) -> pd.Series:
        """Return the log-likelihood of each score at the estimates."""
        if scores is None:
            scores = self._fitted().frame()
        x = self._rescaled(scores)
        ability, item = self._cell_ability(scores)
        value = self._log_density(ability[:, None], self.items.iloc[item], x)[:, 0]
        return pd.Series(value, index=scores.index, name="log_likelihood")

    def _rescaled(self, scores: pd.DataFrame) -> np.ndarray:
        """Return scores on [0, 1]; one outside of the fit's range raises `DataError`."""
        low, high = self.score_range
        x = (scores["score"].to_numpy(dtype=float) - low) / (high - low)
        if not ((x >= 0) & (x <= 1)).all():
            raise DataError(f"a score lies outside the range [{low:g}, {high:g}] of the fit")
        return x

    def _log_density(self, ability: np.ndarray, items: pd.DataFrame, x: np.ndarray) -> np.ndarray:
        """Return log p of each rescaled score on its item, cells x abilities."""
        a = items["disc"].to_numpy()[:, None]
        if self._levels is not None:
            category = graded.categories(x, self._levels, self.score_range)
            log_p = graded.log_probabilities(ability, a, self._thresholds(items)[:, None])
            return np.take_along_axis(log_p, category[:, None, None], -1)[..., 0]
        eta = a * (ability - items["diff"].to_numpy()[:, None])
        return x[:, None] * eta - get_likelihood(self.info["likelihood"]).log_normalizer(eta)

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

        Parameters
        ----------
        scores : pandas.DataFrame
            Long: subject_id, item_id, score on the original scale, group where there is a facet.

        Returns
        -------
        pandas.DataFrame
            Indexed by subject_id: theta, se_theta, n, mean_score.
        """
        if len(scores) == 0:
            raise DataError("there are no scores of new subjects")
        low, high = self.score_range
        x = self._rescaled(scores)
        code, ids = pd.factorize(scores["subject_id"], sort=True)
        item = _positions(self.items.index, scores, "item_id")
        if pd.DataFrame({"subject": code, "item": item}).duplicated().any():
            raise DataError("a new subject has two scores on one item")
        severity = np.zeros(len(item))
        if self.facets is not None:
            name = "group" if "group" in scores.columns else self.info["group"]
            group = _positions(self.facets.index, scores, name)
            severity = self.facets["severity"].to_numpy()[group]
        logs, (middle, unit) = np.zeros((len(ids), len(NODES))), self.info["ability_prior"]
        for start in range(0, len(x), _CELLS):
            part = slice(start, start + _CELLS)
            ability = middle + unit * NODES - severity[part, None]
            logs_of = self._log_density(ability, self.items.iloc[item[part]], x[part])
            np.add.at(logs, code[part], logs_of)
        posterior = Quadrature(len(ids)).integrate(logs)
        theta, se = middle + unit * posterior.mean, unit * posterior.sd
        n = np.bincount(code, minlength=len(ids))
        return pd.DataFrame(
            {
                "theta": theta,
                "se_theta": se,
                "n": n,
                "mean_score": low + np.bincount(code, x, len(ids)) / n * (high - low),
            },
            index=pd.Index(ids, name="subject_id"),
        )

    # --- on disk ------------------------------------------------------------------------------

    def save(self, folder: str | Path) -> Path:
        """Write `items.csv`, `subjects.csv`, `fit.json` (`facets.csv`, `draws.npz`) to `folder`."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.items.to_csv(folder / "items.csv")
        self.subjects.to_csv(folder / "subjects.csv")
        for name, present in (("facets.csv", self.facets), ("draws.npz", self.draws)):
            if present is None:
                (folder / name).unlink(missing_ok=True)
        if self.facets is not None:
            self.facets.to_csv(folder / "facets.csv")
        if self.draws is not None:
            np.savez_compressed(folder / "draws.npz", **self.draws)
        kinds = {
            name: [k for k, label in enumerate(frame.index) if isinstance(label, int | np.integer)]
            for name, frame in self._frames().items()
        }
        text = {"format": _FORMAT, "whole number ids": kinds, **self.info}
        (folder / "fit.json").write_text(
            json.dumps(text, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        return folder

    def _frames(self) -> dict[str, pd.DataFrame]:
        frames = {"items": self.items, "subjects": self.subjects}
        return frames if self.facets is None else {**frames, "facets": self.facets}


def load(folder: str | Path) -> IRTResult:
    """Read what `IRTResult.save` wrote. The fitted scores are not part of it."""
    folder = Path(folder)
    path = folder / "fit.json"
    if not path.exists():
        raise MissingData(f"{path} does not exist", "write one with result.save(folder)")
    try:
        info = json.loads(path.read_text(encoding="utf-8"))
        kinds = info.pop("whole number ids")
        version = info.pop("format")
    except (json.JSONDecodeError, KeyError) as error:
        raise DataError(f"{path} is not a saved fit: {error}") from None
    if version != _FORMAT:
        raise DataError(f"{path} has the format {version}; this version reads {_FORMAT}")
    frames = {}
    for name, whole in kinds.items():
        frame = pd.read_csv(
            folder / f"{name}.csv", dtype=str, keep_default_na=False, encoding="utf-8"
        )
        ids = frame.columns[0]
        for column in frame.columns[1:]:
            if column != "flag":
                frame[column] = [float(text or "nan") for text in frame[column]]
        for column in ("n", "n_subjects"):
            if column in frame.columns:
                frame[column] = frame[column].astype(int)
        labels = frame[ids].tolist()
        for place in whole:
            labels[place] = int(labels[place])
        frames[name] = frame.drop(columns=ids).set_index(pd.Index(labels, name=ids))
    draws = None
    if (folder / "draws.npz").exists():
        with np.load(folder / "draws.npz", allow_pickle=False) as file:
            draws = {name: file[name] for name in file.files}
    return IRTResult(frames["items"], frames["subjects"], info, frames.get("facets"), draws)


def _grid(theta) -> np.ndarray:
    return np.linspace(-4, 4, 121) if theta is None else np.atleast_1d(np.asarray(theta, float))


def _positions(index: pd.Index, cells: pd.DataFrame, column: str) -> np.ndarray:
    if column not in cells.columns:
        raise DataError(f"the cells lack the column {column!r}")
    found = index.get_indexer(cells[column])
    if (found < 0).any():
        missing = cells[column].iloc[int((found < 0).argmax())]
        raise DataError(f"{column} {missing!r} is not among the fitted ones")
    return found
