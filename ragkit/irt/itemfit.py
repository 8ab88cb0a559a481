"""Fit of items: infit and outfit, S-X2 for right-or-wrong scores, Q3 for local dependence.

>>> from ragkit import irt
>>> simulated = irt.simulate(20, 50, seed=1)
>>> result = irt.fit(simulated.scores)
>>> item_fit(result)[["infit", "outfit"]].head(2).round(2)
         infit  outfit
item_id
q00       0.83    0.81
q01       0.88    0.88
>>> q3(result)[["one", "two", "n"]].head(2)
   one  two   n
0  q10  q44  20
1  q17  q30  20
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import chi2

from ragkit.irt.result import IRTResult

_SHARED = 10  # subjects that two items need for Q3
_LEAST = 1.0  # expected count of right and of wrong answers in a group of S-X2


def _residuals(result: IRTResult) -> pd.DataFrame:
    """Return the fitted scores with their residuals and expected variances, on [0, 1]."""
    data = result._fitted()
    cells = data.frame()
    mean, variance = result.family.mean_variance(result._cell_eta(cells))
    return cells.assign(residual=data.cells()[2] - mean, variance=np.maximum(variance, 1e-12))


def item_fit(result: IRTResult) -> pd.DataFrame:
    """Return fit statistics of each item, by item_id.

    `infit` and `outfit`: mean squared residuals, weighted by their variance and not (Wright and
    Masters, Rating Scale Analysis, 1982); 1 is expected, above 1.3 is noisy, below 0.7 too regular.
    `z`: mean residual in standard errors. For scores of 0 and 1 only on a complete matrix: `s_x2`,
    `df` and `p` of Orlando and Thissen's test (Applied Psychological Measurement 2000), which
    compares the observed with the expected share of right answers at each total score; NaN
    elsewhere. A result that was loaded does not hold its scores (`UsageError`).
    """
    cells, data = _residuals(result), result.data
    cells["square"] = cells["residual"] ** 2
    cells["scaled"] = cells["square"] / cells["variance"]
    total = cells.groupby("item_id", sort=False).sum(numeric_only=True)
    table = pd.DataFrame({"infit": total["square"] / total["variance"]})
    table["outfit"] = total["scaled"] / data.per_item("count")
    table["z"] = total["residual"] / np.sqrt(total["variance"])
    x = data.x.astype(float)
    complete = np.isin(x, (0, 1)).all() and not data.n_groups  # right or wrong only
    table[["s_x2", "df", "p"]] = _s_x2(result, x) if complete else np.nan
    return table


def _sums(p: np.ndarray) -> np.ndarray:
    """Return the probabilities of each number of right answers, nodes x (items + 1).

    `p`, nodes x items, holds the probabilities of a right answer (Lord and Wingersky, Applied
    Psychological Measurement 1984).
    """
    out = np.ones((len(p), 1))
    for right in p.T[:, :, None]:
        wrong = np.pad(out * (1 - right), ((0, 0), (0, 1)))
        out = wrong + np.pad(out * right, ((0, 0), (1, 0)))
    return out


def _s_x2(result: IRTResult, x: np.ndarray) -> np.ndarray:
    """Return S-X2, degrees of freedom and p of each item; neighbouring thin groups are merged."""
    m, n = x.shape
    theta = np.linspace(-6, 6, 61)
    weight = np.exp(-0.5 * theta**2)[:, None]
    p = result.family.mean_variance(result._eta(theta[:, None], result.items))[0]
    score = x.sum(0).astype(int)
    count = np.bincount(score, minlength=m + 1)[1:m].astype(float)
    below = (weight * _sums(p)).sum(0)[1:m]
    parameters = 1 if result.info["model"] == "1pl" else 2
    out = np.full((m, 3), np.nan)
    for j in range(m):
        rest = _sums(np.delete(p, j, 1))
        expected = (weight * p[:, [j]] * rest).sum(0)[: m - 1] / below * count
        observed = np.bincount(score, x[j], m + 1)[1:m]
        groups = _merged(expected, count)
        seen, want, size = (np.add.reduceat(v, groups) for v in (observed, expected, count))
        useful = (want > 0) & (want < size)
        value = ((seen - want) ** 2 / np.where(useful, want * (1 - want / size), 1))[useful].sum()
        df = int(useful.sum()) - parameters
        if df > 0:
            out[j] = value, df, chi2.sf(value, df)
    return out


def _merged(expected: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return the starts of groups of total scores, each with enough right and wrong expected."""
    starts, right, wrong = [0], 0.0, 0.0
    for k in range(len(count)):
        if right >= _LEAST and wrong >= _LEAST:
            starts.append(k)
            right = wrong = 0.0
        right, wrong = right + expected[k], wrong + count[k] - expected[k]
    if len(starts) > 1 and (right < _LEAST or wrong < _LEAST):
        starts.pop()
    return np.array(starts)


def q3(result: IRTResult) -> pd.DataFrame:
    """Return correlations of two items' residuals: local dependence (Yen's Q3, 1984).

    One row a pair of items with at least ten subjects in common, the strongest first: `one`, `two`,
    `q3`, `n` subjects and `excess`, Q3 less the mean over all pairs; an excess above 0.2 is the
    usual sign of dependence. A result that was loaded does not hold its scores (`UsageError`).
    """
    wide = _residuals(result).pivot(index="subject_id", columns="item_id", values="residual")
    wide = wide.reindex(columns=result.items.index)
    r, seen = wide.corr(min_periods=_SHARED), wide.notna().astype(int)
    pairs = r.where(np.triu(np.ones(r.shape, bool), 1)).rename_axis(index="one", columns="two")
    table = pairs.stack().dropna().reset_index(name="q3")
    one, two = (wide.columns.get_indexer(table[name]) for name in ("one", "two"))
    table["n"] = (seen.T @ seen).to_numpy()[one, two]
    table["excess"] = table["q3"] - table["q3"].mean()
    return table.sort_values("q3", key=abs, ascending=False, ignore_index=True)
