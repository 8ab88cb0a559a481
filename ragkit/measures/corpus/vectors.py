"""Arrays of embeddings: checked, normalised, and searched exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ragkit import checks
from ragkit.errors import DataError, UsageError

# Rows that are handled in double precision at a time: bounds the memory, never changes a result.
BLOCK = 512


class Neighbours(NamedTuple):
    """The nearest neighbours of some rows, the nearest first: two arrays of shape (q, k)."""

    ids: np.ndarray
    similarity: np.ndarray


def matrix(embeddings: np.ndarray, *, at_least: int = 2, purpose: str = "this") -> np.ndarray:
    """Return `embeddings` as an array of shape (n, d), not copied if it is one already.

    Raises `DataError` if it has another shape, holds no numbers, or has fewer than `at_least`
    rows; the message says that `purpose` needs them.
    """
    array = np.asarray(embeddings)
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(f"embeddings should have the shape (n, d), found {array.shape}")
    if array.dtype.kind not in "fiu":
        raise DataError(f"embeddings should be numbers, found {array.dtype}")
    if len(array) < at_least:
        raise DataError(f"{purpose} needs at least {at_least:,} documents, found {len(array):,}")
    return array


def unit(array: np.ndarray, first: int = 0, *, dtype: type = np.float32) -> np.ndarray:
    """Return the rows of an array of shape (n, d) at unit length; unit rows are not copied.

    Raises `DataError` if a row is zero or not finite; `first` is the number of the first row, or
    of each, for the message.
    """
    rows = np.ascontiguousarray(array, dtype=dtype)
    squares = np.einsum("ij,ij->i", rows, rows)
    if not ((squares > 1e-20) & (squares < 1e20)).all():  # also if one is NaN
        exact = np.asarray(array, dtype=np.float64)
        largest = np.abs(exact).max(axis=1, keepdims=True)
        bad = ~(np.isfinite(largest) & (largest > 0))[:, 0]
        if bad.any():
            place = int(bad.argmax())
            number = int(first[place] if np.ndim(first) else first + place)
            what = "zero" if largest[place, 0] == 0 else "not finite"
            raise DataError(
                f"the embedding of document {number + 1:,} is {what}",
                "leave such documents out, and report how many there are",
            )
        exact = exact / largest
        exact /= np.sqrt(np.einsum("ij,ij->i", exact, exact))[:, None]
        return exact.astype(dtype)
    if np.abs(squares - 1).max() <= 4 * np.finfo(dtype).eps:
        return rows
    return rows / np.sqrt(squares)[:, None]


def blocks(array: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield the array in blocks of unit rows in double precision, each with its place."""
    for start in range(0, len(array), BLOCK):
        place = slice(start, min(start + BLOCK, len(array)))
        yield place, unit(array[place], start, dtype=np.float64)


def cosines(array: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the cosines of pairs of rows, given by their numbers, in double precision."""
    sides = (unit(array[side], side, dtype=np.float64) for side in (first, second))
    return np.einsum("id,id->i", *sides)


def neighbours(
    embeddings: np.ndarray,
    rows: Sequence[int] | None = None,
    *,
    k: int = 10,
    groups: Sequence | None = None,
) -> Neighbours:
    """Return the exact nearest neighbours of documents by cosine similarity.

    Every document is compared with all others, by faiss, and never with itself: a duplicate is a
    neighbour with similarity 1. Similarities are computed in double precision.

    Parameters
    ----------
    embeddings : array of shape (n, d)
        At any scale.
    rows : sequence of int, optional
        The documents whose neighbours are searched, counted from 0; default: all.
    k : int
        Neighbours of each.
    groups : sequence of length n, optional
        Neighbours of the document's own group are left out, such as chunks of the same document.

    Raises
    ------
    UsageError
        If `k` is below 1, a row does not exist, or `groups` has another length.
    DataError
        If there are fewer than k + 1 documents (with `groups`: fewer than k of other groups), or
        an embedding is zero or not finite.
    """
    import faiss

    checks.whole(k, "k")
    array = matrix(embeddings, at_least=k + 1, purpose=f"the search for {k} neighbours")
    n = len(array)
    asked = np.arange(n) if rows is None else np.asarray(rows, dtype=np.int64)
    if asked.ndim != 1 or len(asked) == 0 or asked.min() < 0 or asked.max() >= n:
        raise UsageError(f"rows should be a list of numbers from 0 to {n - 1}")
    # By default each document is a group of its own.
    owner, spare = np.arange(n), 1
    if groups is not None:
        if len(groups) != n:
            raise UsageError(f"groups should name {n:,} documents, found {len(groups):,}")
        _, owner, counts = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
        spare = int(counts[owner[asked]].max())
        if (n - counts[owner[asked]]).min() < k:
            raise DataError(f"some document has fewer than {k} others outside its group")
    units, found = unit(array), min(k + spare, n)
    _, ids = faiss.knn(units[asked], units, found, metric=faiss.METRIC_INNER_PRODUCT)
    similarity = np.empty(ids.shape)
    for start in range(0, len(asked), BLOCK):
        part = slice(start, start + BLOCK)
        values = cosines(array, np.repeat(asked[part], found), ids[part].ravel())
        similarity[part] = np.clip(values, -1, 1).reshape(-1, found)
    similarity[owner[ids] == owner[asked][:, None]] = -np.inf
    order = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    return Neighbours(*(np.take_along_axis(part, order, axis=1) for part in (ids, similarity)))
