"""Two fits on one scale, through the items they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from ragkit.checks import choice
from ragkit.display import card, table
from ragkit.errors import DataError, UsageError
from ragkit.irt.result import IRTResult


@dataclass(frozen=True)
class Link:
    """theta on the reference's scale = slope * theta + intercept.

    Attributes
    ----------
    slope, intercept, se_slope, se_intercept : float
        Errors are a jackknife over the shared items.
    items : pandas.DataFrame
        The shared items: difficulty in the reference and, linked, in the other fit, and `z`, their
        difference in standard errors: an item far off drifted between the sessions.
    method : str
    """

    slope: float
    intercept: float
    se_slope: float
    se_intercept: float
    items: pd.DataFrame
    method: str

    def __repr__(self) -> str:
        return (
            f"<Link: theta = {self.slope:.3f} * theta {self.intercept:+.3f}, "
            f"by {self.method} over {len(self.items):,} items>"
        )

    def _repr_html_(self) -> str:
        facts = {
            "slope": f"{self.slope:.3f} (error {self.se_slope:.3f})",
            "intercept": f"{self.intercept:.3f} (error {self.se_intercept:.3f})",
            "shared items": f"{len(self.items):,}, linked by {self.method}",
        }
        far = self.items.sort_values("z", key=abs, ascending=False).head(5)
        caption = "The items furthest off; z is in standard errors"
        after = "Next: `.apply(other)` puts the other fit on the reference's scale."
        return card("Link of two fits", facts, table(far, caption, digits=3), after=after)

    def apply(self, other: IRTResult) -> IRTResult:
        """Return `other` on the reference's scale; what it predicts stays the same."""
        slope, intercept = self.slope, self.intercept

        def moved(table: Mapping, place: Sequence[str], spread: Sequence[str], inverse=()) -> dict:
            out = {name: slope * table[name] + intercept for name in place}
            out |= {name: slope * table[name] for name in spread if name in table}
            return out | {name: table[name] / slope for name in inverse}

        items, facets, draws = other.items, other.facets, other.draws
        places = ["diff", *items.filter(like="threshold_")]
        items = items.assign(
            **moved(items, places, ["se_diff"], ["disc", "se_disc"]),
            log_disc=items["log_disc"] - np.log(slope),
        )
        subjects = other.subjects.assign(**moved(other.subjects, ["theta"], ["se_theta"]))
        if facets is not None:
            facets = facets.assign(**moved(facets, [], ["severity", "se_severity"]))
        if draws is not None:
            draws = moved(draws, ["theta", "diff"], ["severity"], ["disc"])
        notes = [*other.info["notes"], f"linked by {self.method} over {len(self.items)} items"]
        middle, unit = other.info["ability_prior"]
        prior = [slope * middle + intercept, slope * unit]
        info = {**other.info, "notes": notes, "ability_prior": prior}
        return replace(other, items=items, subjects=subjects, info=info, facets=facets, draws=draws)


def link(reference: IRTResult, other: IRTResult, *, method: str = "haebara") -> Link:
    """Find the scale transformation between two fits that share items.

    To fit both sessions in one model is better where the scores are at hand; this is for fits that
    were made apart.

    Parameters
    ----------
    reference, other : IRTResult
    method : {"haebara", "mean-sigma"}
        "haebara" minimises the squared distance of the shared items' characteristic curves over
        N(0, 1) (Haebara, Japanese Psychological Research 1980); "mean-sigma" equates mean and sd
        of their difficulties.

    Returns
    -------
    Link

    Raises
    ------
    DataError
        If fewer than three items are shared.
    UsageError
        If the likelihoods, or the levels of graded scores, differ.

    Examples
    --------
    >>> from ragkit import irt
    >>> two = irt.simulate(40, 60, sessions=2, shared=20, seed=1)
    >>> one = two.scores["subject_id"].map(two.subjects["session"]) == two.subjects["session"].iloc[0]
    >>> found = link(irt.fit(two.scores[one]), irt.fit(two.scores[~one]))
    >>> len(found.items), round(float(found.slope), 1)
    (20, 0.9)
    """
    choice(method, "method", ("haebara", "mean-sigma"))
    shared = reference.items.index.intersection(other.items.index)
    if len(shared) < 3:
        raise DataError(f"the fits share {len(shared)} items; linking needs at least 3")
    one, two = reference.items.loc[shared], other.items.loc[shared]
    kinds = [{fit.info["likelihood"], *fit.info.get("levels", ())} for fit in (reference, other)]
    if kinds[0] != kinds[1]:
        raise UsageError(
            "the fits have different likelihoods, or levels of graded scores, and hence different "
            "scales"
        )
    solve = _haebara if method == "haebara" else _mean_sigma

    def curve(theta, items):
        return reference.family.mean_variance(reference._eta(theta, items))[0]

    slope, intercept = solve(one, two, curve)
    k = len(shared)
    parts = min(k, 50)
    group = np.arange(k) % parts
    left = np.array([solve(one[group != g], two[group != g], curve) for g in range(parts)])
    se = np.sqrt((parts - 1) * left.var(axis=0))
    linked = slope * two["diff"] + intercept
    pooled = np.sqrt(one["se_diff"] ** 2 + (slope * two["se_diff"]) ** 2)
    items = pd.DataFrame(
        {"diff": one["diff"], "linked_diff": linked, "z": (linked - one["diff"]) / pooled}
    )
    return Link(slope, intercept, float(se[0]), float(se[1]), items, method)


def _mean_sigma(one: pd.DataFrame, two: pd.DataFrame, _) -> tuple[float, float]:
    slope = float(one["diff"].std() / two["diff"].std())
    return slope, float(one["diff"].mean() - slope * two["diff"].mean())


def _haebara(one: pd.DataFrame, two: pd.DataFrame, curve) -> tuple[float, float]:
    from scipy.optimize import least_squares

    theta = np.linspace(-3, 3, 25)[:, None]
    weight = np.exp(-0.25 * theta**2)
    target = curve(theta, one)

    def residual(x):
        slope, intercept = np.exp(x[0]), x[1]
        return (weight * (curve((theta - intercept) / slope, two) - target)).ravel()

    start = _mean_sigma(one, two, None)
    found = least_squares(residual, [np.log(start[0]), start[1]])
    return float(np.exp(found.x[0])), float(found.x[1])
