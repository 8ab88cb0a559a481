"""The shape of a corpus in its embedding space (EnterpriseRAG-Bench, section 3.2 and Table 3).

Embeddings are arrays of shape (n, d) at any scale; every measure works with cosine similarity. A
`sample` of documents is drawn without replacement by `seed`; all are taken if there are fewer.

>>> groups = np.repeat([0, 1], 30)  # two clusters of vectors
>>> vectors = np.random.default_rng(0).normal(size=(60, 8)) + 9 * np.eye(8)[groups]
>>> round(local_density(vectors).estimate, 2), cluster(vectors, k=2).sizes
(0.95, array([30, 30]))
>>> density_by_size(vectors, [30, 60], repeats=2)["size"].tolist()
[30, 30, 60]
>>> found = partition(vectors, groups)
>>> round(found.in_cluster, 2), round(found.cross_cluster, 2), round(silhouette(vectors, groups), 2)
(0.92, 0.03, 0.91)
>>> round(cluster_similarity(vectors, k=2).in_exact, 2)
0.92
>>> measured = similarity_by_k({"noise": vectors - vectors.mean(0), "two": vectors}, ks=[5, 10])
>>> ordering(measured)[["k", "order", "same"]]
    k        order  same
0   5  two > noise  True
1  10  two > noise  True
>>> profile(vectors, size=40, repeats=2).columns[:3].tolist()
['local_similarity', 'in_cluster_similarity', 'cross_cluster_similarity']
>>> space = np.random.default_rng(0).normal(size=(500, 3)) @ np.eye(3, 64)
>>> round(intrinsic_dimension(space).estimate)  # of directions in space
2
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import entropy, t

from ragkit import checks, display
from ragkit.errors import DataError, UsageError
from ragkit.measures.stats import Interval

LEVEL = 0.95
# Rows that are handled in double precision at a time: bounds the memory, never changes a result.
BLOCK = 512
# k-means learns its centroids from at most this many documents per cluster, with so many starts
# and iterations.
POINTS, STARTS, ROUNDS = 1024, 8, 25
MEASURES = ("in_cluster", "cross_cluster", "gap", "silhouette")
# Documents whose nearest neighbour is as similar as this count as near duplicates.
NEAR = 0.9


class Neighbours(NamedTuple):
    """The nearest neighbours of some rows, the nearest first: two arrays of shape (q, k)."""

    ids: np.ndarray
    similarity: np.ndarray


class Clusters(NamedTuple):
    """A partition of n documents into c clusters, the largest first; none is empty.

    `labels`, of shape (n,), are from 0; `sizes`, of shape (c,), count documents; `tightness`, of
    shape (c,), is the mean cosine of the pairs within each cluster, `in_cluster` and
    `cross_cluster` that of all pairs within and across clusters (NaN without a pair); `evenness`
    is the entropy of the sizes over its maximum.
    """

    labels: np.ndarray
    sizes: np.ndarray
    tightness: np.ndarray
    in_cluster: float
    cross_cluster: float
    evenness: float


class ClusterSimilarity(NamedTuple):
    """In- and cross-cluster similarity: sampled as in the paper, and exact over all pairs."""

    in_cluster: Interval
    cross_cluster: Interval
    in_exact: float
    cross_exact: float
    clusters: Clusters


def matrix(embeddings: np.ndarray, *, at_least: int = 2, purpose: str = "this") -> np.ndarray:
    """Return `embeddings` as an array of shape (n, d), not copied if it is one already.

    Raises `DataError` if it has another shape, holds no numbers, or has fewer than the `at_least`
    rows that `purpose` needs.

    >>> matrix([[1, 0], [0, 1]]).shape
    (2, 2)
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
    those of all.

    >>> unit(np.array([[3.0, 4.0]]))
    array([[0.6, 0.8]], dtype=float32)
    """
    rows = np.ascontiguousarray(array, dtype=dtype)
    squares = np.einsum("ij,ij->i", rows, rows)
    bad = ~((squares > 0) & (squares < np.inf))  # also if one is NaN
    if bad.any():
        place = int(bad.argmax())
        number = int(first[place] if np.ndim(first) else first + place)
        what = "zero" if squares[place] == 0 else "not finite"
        raise DataError(
            f"the embedding of document {number + 1:,} is {what}",
            "leave such documents out, and report how many there are",
        )
    if np.abs(squares - 1).max() <= 4 * np.finfo(dtype).eps:
        return rows
    return rows / np.sqrt(squares)[:, None]


def unit_blocks(array: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield the array in blocks of unit rows in double precision, each with its place."""
    for start in range(0, len(array), BLOCK):
        place = slice(start, start + BLOCK)
        yield place, unit(array[place], start, dtype=np.float64)


def draw(n: int, size: int, seed: int) -> np.ndarray:
    """Return `size` of n documents without replacement, in rising order; all if there are fewer.

    >>> draw(100, 3, seed=0)
    array([51, 63, 83])
    """
    checks.whole(seed, "seed", least=0)
    if size >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, size, replace=False))


def neighbours(
    embeddings: np.ndarray, rows: Sequence[int] | None = None, *, k: int = 10
) -> Neighbours:
    """Return the exact nearest neighbours of documents by cosine similarity.

    faiss compares every document, or those of the given `rows`, with all others, never with
    itself: a duplicate is a neighbour with similarity 1. Similarities are in double precision.
    Raises `UsageError` if `k` is below 1, `DataError` if there are fewer than k + 1 documents, or
    an embedding is zero or not finite.

    >>> found = neighbours(np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]]), k=1)
    >>> found.ids.ravel(), found.similarity.ravel().round(2)
    (array([1, 0, 1]), array([0.8, 0.8, 0.6]))
    """
    import faiss

    checks.whole(k, "k")
    array = matrix(embeddings, at_least=k + 1, purpose=f"the search for {k} neighbours")
    asked = np.arange(len(array)) if rows is None else np.asarray(rows)
    units, found = unit(array), k + 1  # one more: the document itself
    _, ids = faiss.knn(units[asked], units, found, metric=faiss.METRIC_INNER_PRODUCT)
    similarity = np.empty(ids.shape)
    for start in range(0, len(asked), BLOCK):
        part = slice(start, start + BLOCK)
        values = _cosines(array, np.repeat(asked[part], found), ids[part].ravel())
        similarity[part] = np.clip(values, -1, 1).reshape(-1, found)
    similarity[ids == asked[:, None]] = -np.inf
    order = np.argsort(-similarity, axis=1, kind="stable")[:, :k]
    return Neighbours(*(np.take_along_axis(part, order, axis=1) for part in (ids, similarity)))


def local_density(
    embeddings: np.ndarray, sample: int = 1000, k: int = 10, seed: int = 0
) -> Interval:
    """Return the mean cosine similarity of documents to their `k` nearest neighbours, -1 to 1.

    Higher is denser. It grows with the corpus: compare corpora at equal size (`density_by_size`).
    The 95 % interval is for the corpus at hand: it has no width if all documents are taken. For
    errors see `neighbours`. Source: EnterpriseRAG-Bench, section 3.2, "Local density".
    """
    array, chosen = _chosen(embeddings, sample, seed)
    values = neighbours(array, chosen, k=k).similarity.mean(axis=1)
    return _mean(values, population=len(array))


def density_by_size(
    embeddings: np.ndarray, sizes: Iterable[int], *, repeats: int = 5, seed: int = 0
) -> pd.DataFrame:
    """Return the local density of random parts of a corpus: size, repeat, local_density.

    `repeats` parts are drawn of each size, one of the whole corpus. Raises `DataError` if a size
    exceeds the number of documents.
    """
    rng, rows = np.random.default_rng(seed), []
    for size in sizes:
        array = matrix(embeddings, at_least=size, purpose="a part")
        for repeat in range(repeats if size < len(array) else 1):
            part = array[np.sort(rng.choice(len(array), size, replace=False))]
            rows.append((size, repeat, local_density(part, seed=seed + repeat).estimate))
    return pd.DataFrame(rows, columns=["size", "repeat", "local_density"])


def cluster(embeddings: np.ndarray, k: int = 10, seed: int = 0) -> Clusters:
    """Partition documents with faiss' k-means on their unit vectors.

    The centroids come from at most 1,024 documents per cluster, the best of eight k-means++
    starts; there are fewer than k if fewer documents differ. Raises `UsageError` if `k` is below
    2, `DataError` if there are fewer than k documents, or no pair within or across clusters.

    Source: EnterpriseRAG-Bench, section 3.2, "Global clustering"; Lloyd (1982).
    """
    import faiss

    checks.whole(k, "k", least=2)
    array = matrix(embeddings, at_least=k, purpose=f"a partition into {k} clusters")
    taught = draw(len(array), POINTS * k, seed)
    means = faiss.Kmeans(
        array.shape[1],
        k,
        niter=ROUNDS,
        nredo=STARTS,
        seed=seed + 1,  # faiss takes 0 for a seed of its own
        min_points_per_centroid=1,
        max_points_per_centroid=POINTS,
        init_method=faiss.ClusteringInitMethod_KMEANS_PLUS_PLUS,
    )
    means.train(unit(array[taught], taught))
    found = partition(array, means.assign(unit(array))[1])
    if np.isnan(found.in_cluster):
        raise DataError("every cluster is a single document, so no pair is in one cluster")
    if np.isnan(found.cross_cluster):
        raise DataError("all documents are in one cluster, so no pair crosses two")
    return found


def partition(embeddings: np.ndarray, labels: Sequence) -> Clusters:
    """Return a given partition, such as by source: n labels that can be compared.

    With S_c the sum of the n_c unit vectors of cluster c and S that of all n, the mean cosines
    over all pairs are linear in n::

        in     (sum_c |S_c|^2 - n) / sum_c n_c (n_c - 1)
        cross  (|S|^2 - sum_c |S_c|^2) / (n^2 - sum_c n_c^2)
    """
    array = matrix(embeddings)
    if len(labels) != (n := len(array)):
        raise UsageError(f"labels should name {n:,} documents, found {len(labels):,}")
    _, codes, sizes = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    codes, sizes = np.argsort(order)[codes], sizes[order]
    sums = np.zeros((len(sizes), array.shape[1]))
    for place, rows in unit_blocks(array):
        sums += (codes[place] == np.arange(len(sizes))[:, None]).astype(float) @ rows
    squares, total = np.einsum("cd,cd->c", sums, sums), sums.sum(axis=0)
    pairs = sizes * (sizes - 1.0)
    tightness = (squares - sizes) / np.where(pairs > 0, pairs, np.nan)
    inside = (squares.sum() - n) / (pairs.sum() or np.nan)
    across = (total @ total - squares.sum()) / (n**2 - (sizes**2).sum() or np.nan)
    evenness = entropy(sizes) / (np.log(len(sizes)) or np.nan)
    return Clusters(codes, sizes, tightness, float(inside), float(across), float(evenness))


def cluster_similarity(
    embeddings: np.ndarray, k: int = 10, pairs: int = 1000, seed: int = 0
) -> ClusterSimilarity:
    """Return the mean cosine of pairs of documents within and across k-means clusters.

    As in the paper, `pairs` are drawn within clusters, and as many across, uniformly and with
    replacement; their intervals hold for the given clusters. Errors are those of `cluster`.

    Source: EnterpriseRAG-Bench, section 3.2, "Global clustering", and Table 3.
    """
    checks.whole(pairs, "pairs", least=2)
    array = matrix(embeddings)
    found, rng = cluster(array, k, seed), np.random.default_rng(seed)
    inside, across = (
        _mean(_cosines(array, *_pairs(found, pairs, rng, side))) for side in (False, True)
    )
    return ClusterSimilarity(inside, across, found.in_cluster, found.cross_cluster, found)


def silhouette(embeddings: np.ndarray, labels: Sequence) -> float:
    """Return scikit-learn's mean silhouette under cosine distance, -1 to 1 (Rousseeuw 1987)."""
    from sklearn.metrics import silhouette_score

    units = unit(matrix(embeddings), dtype=np.float64)
    return float(silhouette_score(units, labels, metric="cosine"))


def intrinsic_dimension(
    embeddings: np.ndarray, sample: int = 1000, k: int = 20, seed: int = 0
) -> Interval:
    """Return the intrinsic dimension of a corpus, by maximum likelihood from `k` neighbours.

    With T_j the chord from a document to its j-th neighbour, the inverse of the dimension is the
    mean of log(T_k / T_j) over j < k and over the `n` sampled documents without a duplicate.
    Raises `DataError` if they are fewer than two, and as in `neighbours`.

    Source: Levina and Bickel (2004), averaged as by MacKay and Ghahramani (2005).
    """
    checks.whole(k, "k", least=2)
    array, chosen = _chosen(embeddings, sample, seed)
    distances = np.sqrt(np.maximum(2 - 2 * neighbours(array, chosen, k=k).similarity, 0))
    distances = distances[distances[:, 0] > 1e-6]
    if len(distances) < 2:
        raise DataError("fewer than two of the sampled documents have no duplicate")
    mean = _mean(np.log(distances[:, -1:] / distances[:, :-1]).mean(axis=1))
    if mean.estimate == 0:
        raise DataError("all neighbours are equally far: there is no dimension to estimate")
    high = 1 / mean.low if mean.low > 0 else np.inf
    return Interval(1 / mean.estimate, 1 / mean.high, high, mean.n)


def profile(
    embeddings: np.ndarray, *, size: int | None = None, repeats: int = 5, seed: int = 0
) -> pd.DataFrame:
    """Return the measures of Table 3 and others for random parts of equal size.

    Corpora are comparable at one size only. `repeats` parts of `size` documents (default: all) are
    drawn without replacement; `DataError` if there are fewer, or too few for ten neighbours or
    ten clusters.

    One row per part: local_similarity, in_cluster_similarity and cross_cluster_similarity as the
    paper samples them; in_exact, cross_exact, gap (their difference), silhouette, evenness and
    tightness_spread (standard deviation) of the clusters; intrinsic_dimension from ten neighbours;
    near_duplicates, the share (0 to 1) of documents with a neighbour at a cosine of 0.9 or more.
    """
    rows = []
    for number in display.progress(range(seed, seed + repeats), "parts"):
        part = _part(embeddings, size, number)
        found = cluster_similarity(part, seed=number)
        closest = neighbours(part, draw(len(part), 1000, number), k=1).similarity[:, 0]
        row = {
            "local_similarity": local_density(part, seed=number).estimate,
            "in_cluster_similarity": found.in_cluster.estimate,
            "cross_cluster_similarity": found.cross_cluster.estimate,
            **_shape(part, found.clusters, "in_exact", "cross_exact"),
            "intrinsic_dimension": intrinsic_dimension(part, k=10, seed=number).estimate,
            "near_duplicates": float((closest >= NEAR).mean()),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def similarity_by_k(
    corpora: Mapping[str, np.ndarray],
    *,
    ks: Iterable[int] = range(5, 51, 5),
    seeds: Iterable[int] = range(5),
    size: int | None = None,
) -> pd.DataFrame:
    """Return the exact cluster measures of several corpora for many numbers of clusters and seeds.

    Each seed draws a part of `size` documents of each corpus (default: all) and starts k-means.
    Columns corpus, k, seed, in_cluster, cross_cluster, gap, silhouette, evenness, tightness_spread.

    Source: EnterpriseRAG-Bench, section 3.2: "varied k across a range of values from 5 through 50".
    """
    ks, rows = list(ks), []
    cells = list(product(corpora.items(), seeds))
    for (name, embeddings), seed in display.progress(cells, "clusters"):
        part = _part(embeddings, size, seed)
        for k in ks:
            found = _shape(part, cluster(part, k, seed), "in_cluster", "cross_cluster")
            rows.append({"corpus": name, "k": k, "seed": seed, **found})
    return pd.DataFrame(rows)


def ordering(
    measured: pd.DataFrame, measure: str = "in_cluster", *, reference: int = 10
) -> pd.DataFrame:
    """Return how the corpora are ordered at every k, and whether the order is that of a reference.

    `measured` is from `similarity_by_k`, `measure` one of "in_cluster", "cross_cluster", "gap" and
    "silhouette", `reference` the k of the paper's Table 3: `UsageError` if it was not measured.

    Returns measure, k, order (the corpora from the highest mean over seeds to the lowest), same
    (whether it is that of the reference) and seeds (the share, 0 to 1, with the reference order).
    """
    checks.choice(measure, "measure", MEASURES)
    if reference not in set(measured["k"]):
        raise UsageError(f"k={reference} was not measured", f"found: {sorted(set(measured['k']))}")
    table = measured.pivot_table(index=["k", "seed"], columns="corpus", values=measure)
    single, orders = (
        means.apply(lambda row: " > ".join(row.sort_values(ascending=False).index), axis=1)
        for means in (table, table.groupby("k").mean())
    )
    found = pd.DataFrame({"measure": measure, "order": orders, "same": orders == orders[reference]})
    found["seeds"] = (single == orders[reference]).groupby("k").mean()
    return found.reset_index()[["measure", "k", "order", "same", "seeds"]]


def _cosines(array: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    sides = (unit(array[side], side, dtype=np.float64) for side in (first, second))
    return np.einsum("id,id->i", *sides)


def _chosen(embeddings, sample: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    array = matrix(embeddings)
    return array, draw(len(array), checks.whole(sample, "sample"), seed)


def _part(embeddings, size: int | None, seed: int) -> np.ndarray:
    array = matrix(embeddings, at_least=size or 2, purpose="a part")
    return array[draw(len(array), size or len(array), seed)]


def _shape(part: np.ndarray, found: Clusters, inside: str, across: str) -> dict[str, float]:
    return {
        inside: found.in_cluster,
        across: found.cross_cluster,
        "gap": found.in_cluster - found.cross_cluster,
        "silhouette": silhouette(part, found.labels),
        "evenness": found.evenness,
        "tightness_spread": float(np.nanstd(found.tightness)),
    }


def _mean(values: np.ndarray, *, population: int | None = None) -> Interval:
    """Return a mean with Student's interval; of a part of a finite population, corrected for it."""
    n, mean = len(values), float(values.mean())
    if n == population:
        return Interval(mean, mean, mean, n)
    if n < 2:
        return Interval(mean, np.nan, np.nan, n)
    left = 1 - n / population if population else 1.0
    half = t.ppf((1 + LEVEL) / 2, n - 1) * values.std(ddof=1) * np.sqrt(left / n)
    return Interval(mean, float(mean - half), float(mean + half), n)


def _pairs(found: Clusters, pairs: int, rng, across: bool) -> tuple[np.ndarray, np.ndarray]:
    """Draw ordered pairs of documents within or across clusters, each as likely as any other."""
    sizes, members = found.sizes, np.argsort(found.labels, kind="stable")
    others = len(members) - sizes if across else sizes - 1
    weights = sizes * others.astype(float)
    own = rng.choice(len(sizes), pairs, p=weights / weights.sum())
    start = (np.cumsum(sizes) - sizes)[own]  # members are ordered by cluster
    first = start + rng.integers(sizes[own])
    second = rng.integers(others[own])
    if across:
        second += np.where(second >= start, sizes[own], 0)
    else:
        second += start
        second += second >= first
    return members[first], members[second]
