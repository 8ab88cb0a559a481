"""How far verdicts on the same things agree: Krippendorff's alpha and the share of unanimity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ragkit.errors import DataError, UsageError, did_you_mean

LEVELS = ("nominal", "ordinal", "interval")


def krippendorff_alpha(ratings: Sequence[Sequence[float]], *, level: str = "nominal"):
    """Return Krippendorff's alpha of repeated ratings.

    Parameters
    ----------
    ratings : array of float, shape (units, raters)
        NaN where a rating is missing.
    level : {"nominal", "ordinal", "interval"}

    Returns
    -------
    float or None
        1 for full agreement, 0 for what chance gives, below 0 for worse. None where it is not
        defined: no unit has two ratings, or all ratings are the same.

    Raises
    ------
    DataError
        If `ratings` is no table.
    UsageError
        If `level` is unknown.

    References
    ----------
    Krippendorff (2019), Content Analysis, 4th edition, section 12.3.
    """
    import krippendorff

    if level not in LEVELS:
        raise UsageError(f"no level of measurement {level!r}", did_you_mean(level, LEVELS))
    table = np.asarray(ratings, dtype=float)
    if table.ndim != 2:
        raise DataError(f"expected one row of ratings per unit, found shape {table.shape}")
    table = table[(~np.isnan(table)).sum(axis=1) >= 2]
    values = np.unique(table[~np.isnan(table)])
    if len(values) < 2:
        return None
    return float(krippendorff.alpha(reliability_data=table.T, level_of_measurement=level))


def agreement(ratings: Sequence[Sequence[float]], *, level: str = "nominal") -> dict[str, Any]:
    """Return alpha with its level, the units that count and the share of unanimous ones.

    Parameters
    ----------
    ratings, level
        As in `krippendorff_alpha`.

    Returns
    -------
    dict
        alpha (None where not defined), level, units (with two ratings or more), unanimous (share
        of those units whose ratings are all equal; None without units).
    """
    table = np.asarray(ratings, dtype=float)
    table = table.reshape(len(table), -1)
    table = table[(~np.isnan(table)).sum(axis=1) >= 2]
    same = [len(set(row[~np.isnan(row)])) == 1 for row in table]
    return {
        "alpha": krippendorff_alpha(table, level=level) if len(table) else None,
        "level": level,
        "units": len(table),
        "unanimous": float(np.mean(same)) if same else None,
    }
