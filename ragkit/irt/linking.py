"""Two fits on one scale, through the items they share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

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
    """

    slope: float
    intercept: float
    se_slope: float
    se_intercept: float
    items: pd.DataFrame

    def __repr__(self) -> str:
        return (
            f"<Link: theta = {self.slope:.3f} * theta {self.intercept:+.3f}, "
            f"by the curves of {len(self.items):,} items>"
        )

    def _repr_html_(self) -> str:
        facts = {
            "slope": f"{self.slope:.3f} (error {self.se_slope:.3f})",
            "intercept": f"{self.intercept:.3f} (error {self.se_intercept:.3f})",
            "shared items": f"{len(self.items):,}",
        }
        far = self.items.sort_values("z", key=abs, ascending=False).head(5)
        caption = "The items furthest off; z is in standard errors"
        after = "Next: `.apply(other)` puts the other fit on the reference's scale."
        return card("Link of two fits", facts, table(far, caption, digits=3), after=after)

    def apply(self, other: IRTResult) -> IRTResult:
        """Return `other` on the reference's scale, without draws; what it predicts stays the same."""
        slope, intercept, info = self.slope, self.intercept, other.info
        items, subjects, facets = other.items.copy(), other.subjects.copy(), other.facets
        places = ["diff", *items.filter(like="threshold_")]
        items[places] = slope * items[places] + intercept
        items[["disc", "se_disc"]] /= slope
        items["se_diff"] *= slope
        items["log_disc"] -= np.log(slope)
        subjects["theta"] = slope * subjects["theta"] + intercept
        subjects["se_theta"] *= slope
        if facets is not None:
            facets = facets.copy()
            facets[["severity", "se_severity"]] *= slope
        notes = [*info["notes"], f"linked by the curves of {len(self.items)} items"]
        middle, unit = info["ability_prior"]
        info = info | {"notes": notes, "ability_prior": [slope * middle + intercept, slope * unit]}
        return IRTResult(items, subjects, info, facets, data=other.data)


def link(reference: IRTResult, other: IRTResult) -> Link:
    """Find the scale transformation between two fits that share items.

    It minimises the squared distance of the shared items' characteristic curves over N(0, 1)
    (Haebara, Japanese Psychological Research 1980). To fit both sessions in one model is better
    where the scores are at hand; this is for fits that were made apart. Fewer than three shared
    items raise `DataError`, other likelihoods or levels of graded scores `UsageError`.

    >>> from ragkit import irt
    >>> two = irt.simulate(40, 60, sessions=2, shared=20, seed=1)
    >>> one = two.scores["subject_id"].map(two.subjects["session"]) == two.subjects["session"].iloc[0]
    >>> found = link(irt.fit(two.scores[one]), irt.fit(two.scores[~one]))
    >>> len(found.items), round(float(found.slope), 1)
    (20, 0.9)
    """
    shared = reference.items.index.intersection(other.items.index)
    if len(shared) < 3:
        raise DataError(f"the fits share {len(shared)} items; linking needs at least 3")
    one, two = reference.items.loc[shared], other.items.loc[shared]
    kinds = [{fit.info["likelihood"], *fit.info.get("levels", ())} for fit in (reference, other)]
    if kinds[0] != kinds[1]:
        words = "different likelihoods, or levels of graded scores, and hence different scales"
        raise UsageError(f"the fits have {words}")
    slope, intercept = _haebara(reference, one, two)
    parts = min(len(shared), 50)
    group = np.arange(len(shared)) % parts
    left = np.array([_haebara(reference, one[group != g], two[group != g]) for g in range(parts)])
    se = np.sqrt((parts - 1) * left.var(axis=0))
    items = one[["diff"]].assign(linked_diff=slope * two["diff"] + intercept)
    pooled = np.sqrt(one["se_diff"] ** 2 + (slope * two["se_diff"]) ** 2)
    items["z"] = (items["linked_diff"] - items["diff"]) / pooled
    return Link(slope, intercept, float(se[0]), float(se[1]), items)


def _haebara(result: IRTResult, one: pd.DataFrame, two: pd.DataFrame) -> tuple[float, float]:
    """Return slope and intercept; the search starts where mean and sd of difficulty are equal."""
    theta = np.linspace(-3, 3, 25)[:, None]
    weight = np.exp(-0.25 * theta**2)

    def curve(theta, items):
        return result.family.mean_variance(result._eta(theta, items))[0]

    def residual(x):
        return (weight * (curve((theta - x[1]) / np.exp(x[0]), two) - target)).ravel()

    target = curve(theta, one)
    slope = one["diff"].std() / two["diff"].std()
    start = [np.log(slope), one["diff"].mean() - slope * two["diff"].mean()]
    found = least_squares(residual, start)
    return float(np.exp(found.x[0])), float(found.x[1])
