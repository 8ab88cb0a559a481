"""Arrays of embeddings: checked, normalised block by block, and searched exactly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ragkit.errors import DataError, UsageError

# Rows searched or summed at a time: bounds the memory, never changes a result.
BLOCK = 65_536
SMALL = 512
# In half precision, queries and rows compared at a time, so that their products stay in the cache,
# and rows kept for each query before a search gives up: among thousands of copies of a document,
# half precision tells nothing apart.
ASKED, AGAINST, MOST = 1_024, 4_096, 4_096
WORTH = 2**26  # comparisons from which on half precision makes up for loading torch
# The products of unit vectors rounded to 8 binary digits: each factor errs by up to 2^-8 of itself,
# and so does the product; sums are in single precision, of at most DEEP terms.
DEEP = 4_096
HALF = 3 * 2**-8 + 2**-11


class Neighbours(NamedTuple):
    """The nearest neighbours of some rows, the nearest first: two arrays of shape (q, k)."""

    ids: np.ndarray
    similarity: np.ndarray


def matrix(embeddings: np.ndarray, *, at_least: int = 2, purpose: str = "this") -> np.ndarray:
    """Return `embeddings` as an array of numbers, not copied where it is one already.

    Parameters
    ----------
    embeddings : array-like of shape (n, d)
        Any float or integer type; a memory-mapped array stays on disk.
    at_least : int
        Rows needed.
    purpose : str
        What they are needed for, for the message.

    Raises
    ------
    DataError
        If it has another shape, another type, or too few rows.
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
    """Return rows at unit length; rows that have it already are not copied.

    Parameters
    ----------
    array : array of shape (n, d)
    first : int or array of int, shape (n,)
        The number of the first row, or of each, for the message.
    dtype : type
        float32 or float64.

    Raises
    ------
    DataError
        If a row is zero or not finite.
    """
    rows = np.ascontiguousarray(array, dtype=dtype)
    squares = np.einsum("ij,ij->i", rows, rows)
    tiny, huge = 1e-20, 1e20
    if not ((squares > tiny) & (squares < huge)).all():  # also where squares are NaN
        exact = np.asarray(array, dtype=np.float64)
        largest = np.abs(exact).max(axis=1, keepdims=True)
        bad = ~(np.isfinite(largest) & (largest > 0))[:, 0]
        if bad.any():
            place = int(bad.argmax())
            number = int(first[place] if np.ndim(first) else first + place)
            what = "zero" if largest[place, 0] == 0 else "not finite"
            raise DataError(
                f"the embedding of document {number + 1:,} is {what}",
                "leave such documents out, and say how many they were",
            )
        exact = exact / largest
        exact /= np.sqrt(np.einsum("ij,ij->i", exact, exact))[:, None]
        return exact.astype(dtype)
    if np.abs(squares - 1).max() <= 4 * np.finfo(dtype).eps:
        return rows
    return rows / np.sqrt(squares)[:, None]


def blocks(
    array: np.ndarray, *, rows: int = SMALL, dtype: type = np.float64
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield the array in blocks of unit rows, each with its place."""
    for start in range(0, len(array), rows):
        place = slice(start, min(start + rows, len(array)))
        yield place, unit(array[place], start, dtype=dtype)


def neighbours(
    embeddings: np.ndarray,
    rows: Sequence[int] | None = None,
    *,
    k: int = 10,
    groups: Sequence | None = None,
) -> Neighbours:
    """Return the exact nearest neighbours of documents by cosine similarity.

    Every document is compared with all others, none with itself: a duplicate is a neighbour
    with similarity 1.

    Parameters
    ----------
    embeddings : array of shape (n, d)
        At any scale; float16, integer and memory-mapped arrays are read block by block.
    rows : sequence of int, optional
        The documents asked about, counted from 0; all of them by default.
    k : int
        Neighbours of each.
    groups : sequence of length n, optional
        Neighbours of the document's own group are left out, such as chunks of the same document.

    Returns
    -------
    Neighbours
        Similarities in double precision, computed anew for the neighbours found.

    Raises
    ------
    UsageError
        If `k` is below 1, a row does not exist, or `groups` has another length.
    DataError
        If there are fewer than k + 1 documents (with `groups`: fewer than k of other groups), or
        an embedding is zero or not finite.
    """
    integer(k, "k", at_least=1)
    array = matrix(embeddings, at_least=k + 1, purpose=f"the search for {k} neighbours")
    n = len(array)
    asked = np.arange(n) if rows is None else np.asarray(rows, dtype=np.int64)
    if asked.ndim != 1 or len(asked) == 0 or asked.min() < 0 or asked.max() >= n:
        raise UsageError(f"rows should be a list of numbers from 0 to {n - 1}")
    # A document's group, by default itself alone.
    owner, spare = np.arange(n), 1
    if groups is not None:
        if len(groups) != n:
            raise UsageError(f"groups should name {n:,} documents, found {len(groups):,}")
        _, owner, counts = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
        spare = int(counts[owner[asked]].max())
        if (n - counts[owner[asked]]).min() < k:
            raise DataError(f"some document has fewer than {k} others outside its group")
    queries = unit(array[asked], asked)
    ids, similarity = _search(array, queries, min(k + spare, n))
    similarity[owner[ids] == owner[asked][:, None]] = -np.inf
    order = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    ids = np.take_along_axis(ids, order, axis=1)
    exact = _cosines(array, asked, ids)
    order = np.argsort(-exact, axis=1, kind="stable")
    return Neighbours(*(np.take_along_axis(part, order, axis=1) for part in (ids, exact)))


def integer(value, name: str, *, at_least: int) -> None:
    """Raise `UsageError` if `value` is no integer of at least so much."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < at_least:
        raise UsageError(f"{name} should be an integer of at least {at_least}, found {value!r}")


def _search(array, queries, k) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest rows of each query, in no particular order."""
    small = len(array) * len(queries) < WORTH
    if small or array.shape[1] > DEEP or not _has_half_products():
        return _search_single(array, queries, k)
    parts = [queries[start : start + ASKED] for start in range(0, len(queries), ASKED)]
    found = [_search_half(array, part, k) or _search_single(array, part, k) for part in parts]
    return tuple(np.concatenate(side) for side in zip(*found, strict=True))


def _search_single(array, queries, k) -> tuple[np.ndarray, np.ndarray]:
    import faiss

    best_ids = np.empty((len(queries), 0), dtype=np.int64)
    best = np.empty((len(queries), 0), dtype=np.float32)
    for place, block in blocks(array, rows=BLOCK, dtype=np.float32):
        found, ids = faiss.knn(
            queries, block, min(k, len(block)), metric=faiss.METRIC_INNER_PRODUCT
        )
        best = np.concatenate([best, found], axis=1)
        best_ids = np.concatenate([best_ids, ids + place.start], axis=1)
        if best.shape[1] > k:
            keep = np.argpartition(-best, k - 1, axis=1)[:, :k]
            best = np.take_along_axis(best, keep, axis=1)
            best_ids = np.take_along_axis(best_ids, keep, axis=1)
    return best_ids, best


def _search_half(array, queries, k) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the k nearest rows by products in half precision; None if too many rows are near.

    A product of rounded unit vectors is within HALF of the true one. So all rows that may be
    among the k nearest are within twice that of the k-th best rounded product; those few are
    compared again in double precision, and the result is exact.
    """
    import torch

    asked = torch.from_numpy(queries).bfloat16()
    floor = None
    kept = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    new, fresh = [], 0
    for place, block in blocks(array, rows=max(AGAINST, k), dtype=np.float32):
        products = asked @ torch.from_numpy(block).bfloat16().T  # (queries, rows of the block)
        if floor is None:
            first = products.float()
            floor = torch.topk(first, min(k, first.shape[1])).values[:, -1].numpy()
        # The last step down makes up for the rounding of the bound itself.
        bound = torch.from_numpy(floor - 2 * HALF - 2**-8).bfloat16()
        hits = _at_least(products, bound)
        value = products.view(-1)[hits].float().numpy()
        new.append((hits // len(block), hits % len(block) + place.start, value))
        fresh += len(hits)
        if len(kept[0]) + fresh > MOST * len(queries):
            return None
        if fresh >= len(kept[0]) or place.stop == len(array):
            kept, floor = _highest([kept, *new], floor, k)
            new, fresh = [], 0
    row, column, _ = kept
    exact = np.empty(len(row))
    for start in range(0, len(row), SMALL * 32):
        here = slice(start, start + SMALL * 32)
        near = unit(array[column[here]], column[here], dtype=np.float64)
        exact[here] = np.einsum("nd,nd->n", near, queries[row[here]])
    order = np.lexsort((column, -exact, row))
    starts = np.searchsorted(row[order], np.arange(len(queries)))
    chosen = order[starts[:, None] + np.arange(k)]
    return column[chosen], exact[chosen]


def _highest(parts, floor, k) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
    """Return the rows, columns and values that may be among the k highest, and the k-th of each row."""
    row, column, value = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort((-value, row))
    row, column, value = row[order], column[order], value[order]
    starts = np.searchsorted(row, np.arange(len(floor)))
    ends = np.searchsorted(row, np.arange(len(floor)), side="right")
    floor = np.where(ends - starts >= k, value[np.minimum(starts + k, ends) - 1], floor)
    keep = value >= (floor - 2 * HALF)[row]
    return (row[keep], column[keep], value[keep]), floor


def _at_least(products, bound) -> np.ndarray:
    """Return the flat places of products that reach their row's bound."""
    import torch

    if (bound > 0).all():  # then their bits are in order, and integers are quicker to compare
        products, bound = products.view(torch.int16), bound.view(torch.int16)
    else:
        products, bound = products.float(), bound.float()
    return np.flatnonzero(products.numpy() >= bound.numpy()[:, None])


@cache
def _has_half_products() -> bool:
    """Whether the processor multiplies in half precision: elsewhere it is the slower way."""
    try:
        flags = Path("/proc/cpuinfo").read_text("ascii", errors="replace")
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


def _cosines(array, asked, ids) -> np.ndarray:
    """Return the cosines of each asked row with its neighbours, in double precision."""
    values = np.empty(ids.shape)
    for start in range(0, len(asked), 512):
        own = unit(array[asked[start : start + 512]], asked[start : start + 512], dtype=np.float64)
        near = ids[start : start + 512]
        others = unit(array[near.ravel()], near.ravel(), dtype=np.float64)
        values[start : start + 512] = np.einsum(
            "qd,qkd->qk", own, others.reshape(*near.shape, own.shape[1])
        )
    return np.clip(values, -1, 1)
