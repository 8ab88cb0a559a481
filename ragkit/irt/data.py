"""Check a frame of scores and turn it into a matrix, items x subjects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from ragkit.checks import choice
from ragkit.errors import DataError, UsageError


@dataclass
class Scores:
    """Scores in [0, 1], ready to be fitted.

    Attributes
    ----------
    subjects, items : pandas.Index
        Ids in the order of first sorting; the arrays below refer to their positions.
    x : numpy.ndarray
        Rescaled scores, items x subjects, NaN where missing.
    score_range : (float, float)
    group, groups :
        The facet's level of each cell, and its names; None without a facet.
    parts : int
        Into how many parts that share no subject and no item the scores fall.
    n_subjects, n_items, n_cells, n_groups : int
    """

    subjects: pd.Index
    items: pd.Index
    x: np.ndarray
    score_range: tuple[float, float]
    group: np.ndarray | None = None
    groups: pd.Index | None = None
    parts: int = 1

    def __post_init__(self):
        self.n_items, self.n_subjects = self.x.shape
        self.n_cells = self.x.size - int(np.isnan(self.x).sum())
        self.n_groups = 0 if self.groups is None else len(self.groups)

    def per_item(self, statistic: str) -> np.ndarray:
        """Return the "count", "mean", "min" or "max" of each item's rescaled scores."""
        return self._per(1, statistic)

    def per_subject(self, statistic: str) -> np.ndarray:
        """Return the same of each subject's."""
        return self._per(0, statistic)

    def _per(self, axis: int, statistic: str) -> np.ndarray:
        if statistic == "count":
            return np.isfinite(self.x).sum(axis)
        options = {"dtype": float} if statistic == "mean" else {}
        full = self.n_cells == self.x.size
        name = statistic if full else f"nan{statistic}"  # which copies the matrix
        return getattr(np, name)(self.x, axis, **options).astype(float)

    def cells(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return subject and item positions and scores of the cells, by item, then subject."""
        item, subject = np.nonzero(np.isfinite(self.x))
        return subject, item, self.x[item, subject].astype(float)

    def unscaled(self, x: np.ndarray) -> np.ndarray:
        """Return rescaled scores on the original scale, never a rounding error outside of it."""
        low, high = self.score_range
        return np.clip(low + x * (high - low), low, high)

    def frame(self) -> pd.DataFrame:
        """Return the long frame `subject_id, item_id, score` on the original scale."""
        subject, item, x = self.cells()
        ids = {"subject_id": self.subjects[subject], "item_id": self.items[item]}
        own = {} if self.group is None else {"group": self.groups[self.group]}
        return pd.DataFrame({**ids, "score": self.unscaled(x), **own})


def prepare(
    scores: pd.DataFrame,
    *,
    score_range: tuple[float, float] = (0, 1),
    likelihood: str = "cb",
    group: str | None = None,
    disconnected: str = "raise",
) -> Scores:
    """Check scores and turn them into arrays; arguments and errors are those of `fit`."""
    low, high = interval(score_range)
    choice(disconnected, "value of disconnected", ("raise", "assume-equal"))
    if not isinstance(scores, pd.DataFrame):
        raise DataError(
            f"scores are a {type(scores).__name__}, not a pandas.DataFrame",
            "columns subject_id, item_id, score; or subjects in rows and items in columns",
        )
    long = {"subject_id", "item_id", "score"} & set(map(str, scores.columns))
    if long or group is not None:
        prepared = _from_long(scores, low, high, group)
    else:
        prepared = _from_wide(scores, low, high)
    if prepared.n_subjects < 2 or prepared.n_items < 2:
        raise DataError(
            f"an item response model needs at least 2 subjects and 2 items; "
            f"the scores hold {prepared.n_subjects} and {prepared.n_items}"
        )
    if np.nanmin(prepared.x) == np.nanmax(prepared.x):
        raise DataError("all scores are the same, so nothing tells subjects or items apart")
    if likelihood == "bernoulli":
        _check_binary(prepared)
    _connect(prepared, disconnected)
    return prepared


def interval(score_range: tuple[float, float]) -> tuple[float, float]:
    """Return the ends of a range of scores; one that is no interval raises `UsageError`."""
    try:
        low, high = (float(end) for end in score_range)
    except (TypeError, ValueError):
        raise UsageError(f"score_range={score_range!r} is not a pair of numbers") from None
    if not (np.isfinite([low, high]).all() and low < high):
        raise UsageError(f"score_range={score_range!r} is not an interval: low < high is expected")
    return low, high


def require_long(scores: pd.DataFrame, group: str | None = None) -> None:
    """Raise `DataError` if a column of the long form is missing."""
    needed = ["subject_id", "item_id", "score"] + ([group] if group else [])
    for column in needed:
        if column not in scores.columns:
            raise DataError(
                f"scores lack the column {column!r}",
                f"expected {', '.join(needed)}; found {', '.join(map(str, scores.columns))}",
            )


def rescaled(scores: pd.DataFrame, score_range: tuple[float, float]) -> np.ndarray:
    """Return the scores of a long frame on [0, 1]; a `DataError` names the row of a bad one."""
    require_long(scores)
    hint = "leave out the rows of missing scores: scores.dropna(subset=['score'])"
    return _rescaled(scores["score"], *score_range, partial(_row, scores), hint)


def _row(scores: pd.DataFrame, row: int) -> str:
    names = [quoted(pd.Index(scores[column]), row) for column in ("subject_id", "item_id")]
    return f"row {row + 1} of the scores (subject {names[0]}, item {names[1]})"


def _from_long(scores: pd.DataFrame, low: float, high: float, group: str | None) -> Scores:
    require_long(scores, group)
    if not len(scores):
        raise DataError("scores hold no rows")
    subject, subjects = _codes(scores["subject_id"])
    item, items = _codes(scores["item_id"])
    score = rescaled(scores, (low, high))
    cell = item.astype(np.int64) * len(subjects) + subject
    repeated = pd.Series(cell).duplicated().to_numpy()
    if repeated.any():
        second = int(repeated.argmax())
        raise DataError(
            f"{_row(scores, second)} repeats the cell of row {(cell == cell[second]).argmax() + 1}; "
            f"{repeated.sum():,} cells are repeated",
            "average or choose first: scores.groupby(['subject_id', 'item_id']).mean()",
        )
    x = np.full((len(items), len(subjects)), np.nan)
    x[item, subject] = score
    if not group:
        return Scores(subjects, items, x, (low, high))
    code, names = _codes(scores[group])
    return Scores(subjects, items, x, (low, high), code[np.argsort(cell)], names)


def _from_wide(scores: pd.DataFrame, low: float, high: float) -> Scores:
    missing = scores.isna().to_numpy()
    for axis, name, ids in ((1, "subject", scores.index), (0, "item", scores.columns)):
        if ids.has_duplicates:
            twice = quoted(ids, ids.duplicated().argmax())
            raise DataError(f"the wide scores repeat the {name} {twice}")
        if (empty := missing.all(axis)).any():
            raise DataError(
                f"the {name} {quoted(ids, empty.argmax())} has no score", "leave it out"
            )

    def where(cell: int) -> str:
        row, column = divmod(cell, len(scores.columns))
        names = f"subject {quoted(scores.index, row)}, item {quoted(scores.columns, column)}"
        return f"the cell ({names})"

    x, hint = scores.to_numpy(), "subjects belong in the index, items in the columns"
    x = _rescaled(pd.Series(x.ravel()), low, high, where, hint, missing.ravel()).reshape(x.shape)
    subject, subjects = _codes(pd.Series(scores.index, name="subject id"))
    item, items = _codes(pd.Series(scores.columns, name="item id"))
    x = np.ascontiguousarray(x.T[np.ix_(np.argsort(item), np.argsort(subject))])
    return Scores(subjects, items, x, (low, high))


def quoted(ids: pd.Index, place: int) -> str:
    """Return an id as a user would write it."""
    return repr(ids[[place]].tolist()[0])


def _codes(column: pd.Series) -> tuple[np.ndarray, pd.Index]:
    """Return positions into the sorted distinct ids, and those ids."""
    codes, names = pd.factorize(column)
    if (codes < 0).any():
        raise DataError(
            f"row {int((codes < 0).argmax()) + 1} of the scores has an empty {column.name}"
        )
    names = pd.Index(np.asarray(names))
    order = np.argsort(names.map(str) if names.dtype == object else names, kind="stable")
    return np.argsort(order).astype(np.int32)[codes], names[order]


def _rescaled(
    scores: pd.Series, low: float, high: float, where: Callable, hint: str, missing=False
) -> np.ndarray:
    """Return scores on [0, 1]; one that is not a number, and not `missing`, or outside raises."""
    x = pd.to_numeric(scores, errors="coerce")
    x = x.to_numpy(np.float32 if x.dtype == np.float32 else float, na_value=np.nan)
    bad = ~np.isfinite(x) & ~np.asarray(missing)
    if bad.any():
        row = int(bad.argmax())
        found = scores.iloc[row]
        raise DataError(
            f"{where(row)} should have a number as its score, found "
            f"{repr(found) if isinstance(found, str) else found}; "
            f"{int(bad.sum()):,} of {len(x):,} have none",
            hint,
        )
    outside = (x < low) | (x > high)
    if outside.any():
        row = int(outside.argmax())
        raise DataError(
            f"{where(row)} has the score {x[row]:g}, outside the range "
            f"[{low:g}, {high:g}]; {int(outside.sum()):,} of {len(x):,} are",
            f"declare the range of the scale, such as score_range={_scale(x)}; nothing is clipped",
        )
    if (low, high) == (0.0, 1.0):
        return x
    return ((x - low) / (high - low)).astype(x.dtype, copy=False)


def _scale(x: np.ndarray) -> str:
    """Return a usual range that holds the scores."""
    low, high = float(np.nanmin(x)), float(np.nanmax(x))
    low = 0.0 if low >= 0 else np.floor(low)
    high = next((end for end in (1, 2, 3, 4, 5, 10, 100) if end >= high), np.ceil(high))
    return f"({low:g}, {high:g})"


def _check_binary(prepared: Scores) -> None:
    x = prepared.cells()[2]
    if (odd := ~np.isin(x, (0, 1))).any():
        (low, high), value = prepared.score_range, prepared.unscaled(x[odd][0])
        raise DataError(
            f"the Bernoulli likelihood takes scores of {low:g} or {high:g}, but one is {value:g}",
            "use likelihood='fractional' or 'cb' for scores in between",
        )


def _connect(prepared: Scores, disconnected: str) -> None:
    if prepared.n_cells == prepared.x.size:
        return
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, size = prepared.n_subjects, sum(prepared.x.shape)
    subject, item, x = prepared.cells()
    edges = coo_array((np.ones(len(x)), (subject, item + n)), shape=(size, size))
    prepared.parts, label = connected_components(edges, directed=False)
    if prepared.parts > 1 and disconnected == "raise":
        pairs = zip(np.bincount(label[:n]), np.bincount(label[n:]), strict=True)
        sizes = [f"{subjects} subjects x {items} items" for subjects, items in pairs][:4]
        more = f" and {prepared.parts - 4} more" if prepared.parts > 4 else ""
        raise DataError(
            f"the scores fall into {prepared.parts} parts without a shared subject or item "
            f"({'; '.join(sizes)}{more}), so no common scale exists",
            "fit each part by itself, or say disconnected='assume-equal' to assume that the parts' "
            "subjects are equally able on average",
        )
