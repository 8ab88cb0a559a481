"""Check a frame of scores and turn it into arrays, sorted by item, then subject."""

from __future__ import annotations

from dataclasses import dataclass

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
    subject, item : numpy.ndarray of int32, or None
        Cell positions, sorted by item, then subject; None if the matrix is full.
    x : numpy.ndarray
        Rescaled scores: of the cells, or items x subjects if the matrix is full.
    group, groups :
        The facet's level of each cell, and its names; None without a facet.
    score_range : (float, float)
    parts : int
        Into how many parts that share no subject and no item the scores fall.
    n_subjects, n_items, n_cells, n_groups : int
    full : bool
        Whether every subject has a score on every item, and there is no facet.
    """

    subjects: pd.Index
    items: pd.Index
    subject: np.ndarray | None
    item: np.ndarray | None
    x: np.ndarray
    score_range: tuple[float, float]
    group: np.ndarray | None = None
    groups: pd.Index | None = None
    parts: int = 1

    def __post_init__(self):
        self.n_subjects, self.n_items = len(self.subjects), len(self.items)
        self.n_cells, self.full = self.x.size, self.subject is None
        self.n_groups = 0 if self.groups is None else len(self.groups)

    def per_item(self, statistic: str) -> np.ndarray:
        """Return the "count", "mean", "min" or "max" of each item's rescaled scores."""
        return self._per(1, self.item, statistic)

    def per_subject(self, statistic: str) -> np.ndarray:
        """Return the "count", "mean", "min" or "max" of each subject's rescaled scores."""
        return self._per(0, self.subject, statistic)

    def _per(self, axis: int, code: np.ndarray | None, statistic: str) -> np.ndarray:
        if not self.full:
            return pd.Series(self.x).groupby(code).agg(statistic).to_numpy()
        if statistic == "count":
            return np.full(self.x.shape[1 - axis], self.x.shape[axis])
        options = {"dtype": float} if statistic == "mean" else {}
        return getattr(self.x, statistic)(axis, **options).astype(float)

    def centred_means(self) -> np.ndarray:
        """Return each subject's mean deviation from the items' mean scores."""
        if self.full:
            mean = self.per_subject("mean")
            return mean - mean.mean()
        subject, item, x = self.cells()
        x = x - self.per_item("mean")[item]
        return np.bincount(subject, x, self.n_subjects) / self.per_subject("count")

    def sums_with(self, ability: np.ndarray) -> list[np.ndarray]:
        """Return each item's sums of x, x^2, x ability, ability and ability^2 over its scores."""
        if self.full:
            x, ones = self.x, np.ones(self.n_items)
            cross = x @ ability.astype(x.dtype)
            squares = np.einsum("ji,ji->j", x, x)
            return [x.sum(1), squares, cross, ones * ability.sum(), ones * (ability @ ability)]
        own = ability[self.subject]
        columns = (self.x, self.x**2, self.x * own, own, own**2)
        return [np.bincount(self.item, column, self.n_items) for column in columns]

    def cells(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return subject and item positions and scores, one entry per cell, in item order."""
        if self.full:
            item, subject = np.divmod(np.arange(self.x.size), self.n_subjects)
            return subject, item, self.x.ravel().astype(float)
        return self.subject, self.item, self.x

    def unscaled(self, x: np.ndarray) -> np.ndarray:
        """Return rescaled scores on the original scale, never a rounding error outside of it."""
        low, high = self.score_range
        return np.clip(low + x * (high - low), low, high)

    def matrix(self) -> np.ndarray:
        """Return the rescaled scores, subjects x items, NaN where missing."""
        if self.full:
            return self.x.T.astype(float)
        out = np.full((self.n_subjects, self.n_items), np.nan)
        out[self.subject, self.item] = self.x
        return out

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
    if prepared.x.min() == prepared.x.max():
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


def _from_long(
    scores: pd.DataFrame, low: float, high: float, group: str | None, *, wide: bool = False
) -> Scores:
    require_long(scores, group)
    if not len(scores):
        raise DataError("scores hold no rows")
    subject, subjects = _codes(scores["subject_id"])
    item, items = _codes(scores["item_id"])

    def where(row: int) -> str:
        names = f"subject {quoted(subjects, subject[row])}, item {quoted(items, item[row])}"
        return f"the cell ({names})" if wide else f"row {row + 1} of the scores ({names})"

    x = pd.to_numeric(scores["score"], errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    bad = ~np.isfinite(x)
    if bad.any():
        row = int(bad.argmax())
        found = scores["score"].iloc[row]
        raise DataError(
            f"{where(row)} should have a number as its score, found "
            f"{repr(found) if isinstance(found, str) else found}; "
            f"{int(bad.sum()):,} of {len(x):,} have none",
            "subjects belong in the index, items in the columns"
            if wide
            else "leave out the rows of missing scores: scores.dropna(subset=['score'])",
        )
    x = _rescale(x, low, high, where)
    code, names = _codes(scores[group]) if group else (None, None)
    key = item.astype(np.int64) * len(subjects) + subject
    order = np.argsort(key, kind="stable")
    repeated = np.flatnonzero(np.diff(key[order]) == 0)
    if repeated.size:
        first, second = order[repeated[0]], order[repeated[0] + 1]
        raise DataError(
            f"{where(int(second))} repeats the cell of row {int(first) + 1}; "
            f"{repeated.size:,} cells are repeated",
            "average or choose first: scores.groupby(['subject_id', 'item_id']).mean()",
        )
    subject, item, x = subject[order], item[order], x[order]
    code = code[order] if group else None
    if len(x) == len(subjects) * len(items) and code is None:
        return Scores(subjects, items, None, None, x.reshape(len(items), -1), (low, high))
    return Scores(subjects, items, subject, item, x, (low, high), code, names)


def _from_wide(scores: pd.DataFrame, low: float, high: float) -> Scores:
    axes = {"subject": (1, scores.index), "item": (0, scores.columns)}
    for name, (_, ids) in axes.items():
        if ids.has_duplicates:
            raise DataError(
                f"the wide scores repeat the {name} {quoted(ids, ids.duplicated().argmax())}"
            )
    floats = all(dtype in (np.float32, np.float64) for dtype in set(scores.dtypes))
    if not floats or not np.isfinite(scores.to_numpy()).all():
        for name, (axis, ids) in axes.items():
            empty = scores.isna().all(axis=axis).to_numpy()
            if empty.any():
                gone = quoted(ids, empty.argmax())
                raise DataError(f"the {name} {gone} has no score", "leave it out")
        cells = {
            "subject_id": scores.index.repeat(scores.shape[1]),
            "item_id": np.tile(scores.columns, len(scores)),
            "score": scores.to_numpy().ravel(),
        }
        return _from_long(pd.DataFrame(cells).dropna(subset="score"), low, high, None, wide=True)
    # A full matrix keeps its precision, and is not copied more often than it must be.
    rows, columns = np.argsort(_sortable(scores.index)), np.argsort(_sortable(scores.columns))
    subjects, items, matrix = scores.index[rows], scores.columns[columns], scores.to_numpy()
    if (np.diff(rows) != 1).any() or (np.diff(columns) != 1).any():
        matrix = matrix[np.ix_(rows, columns)]

    def where(cell: int) -> str:
        row, column = divmod(cell, len(items))
        return f"the cell (subject {quoted(subjects, row)}, item {quoted(items, column)})"

    x = _rescale(matrix, low, high, where)
    return Scores(subjects, items, None, None, np.ascontiguousarray(x.T), (low, high))


def quoted(ids: pd.Index, place: int) -> str:
    """Return an id as a user would write it."""
    return repr(ids[[place]].tolist()[0])


def _sortable(ids: pd.Index) -> np.ndarray:
    if ids.dtype == object:
        return np.array([str(value) for value in ids], dtype=object)
    return ids.to_numpy()


def _codes(column: pd.Series) -> tuple[np.ndarray, pd.Index]:
    """Return positions into the sorted distinct ids, and those ids."""
    codes, names = pd.factorize(column)
    if (codes < 0).any():
        raise DataError(
            f"row {int((codes < 0).argmax()) + 1} of the scores has an empty {column.name}"
        )
    names = pd.Index(np.asarray(names))
    order = np.argsort(_sortable(names), kind="stable")
    return np.argsort(order).astype(np.int32)[codes], names[order]


def _rescale(x: np.ndarray, low: float, high: float, where) -> np.ndarray:
    outside = (x < low) | (x > high)
    if outside.any():
        row = int(outside.ravel().argmax())
        raise DataError(
            f"{where(row)} has the score {x.ravel()[row]:g}, outside the range "
            f"[{low:g}, {high:g}]; {int(outside.sum()):,} of {x.size:,} are",
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
    odd = (prepared.x != 0) & (prepared.x != 1)
    if odd.any():
        (low, high), value = prepared.score_range, prepared.unscaled(prepared.x[odd][0])
        raise DataError(
            f"the Bernoulli likelihood takes scores of {low:g} or {high:g}, but one is {value:g}",
            "use likelihood='fractional' or 'cb' for scores in between",
        )


def _connect(prepared: Scores, disconnected: str) -> None:
    if prepared.full:
        return
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n, size = prepared.n_subjects, prepared.n_subjects + prepared.n_items
    cells = np.ones(prepared.n_cells, np.int8), (prepared.subject, prepared.item + n)
    edges = coo_array(cells, shape=(size, size))
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
