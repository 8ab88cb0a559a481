"""The shape of a corpus in its embedding space (EnterpriseRAG-Bench, section 3.2 and Table 3).

Every measure takes embeddings of any scale and works with cosine similarity. The paper samples;
where a sum over all pairs has a closed form in the sums of the clusters, that is given too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ragkit.errors import DataError, UsageError, did_you_mean
from ragkit.measures.corpus.vectors import blocks, integer, matrix, neighbours, unit

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.95
# k-means learns its centroids from so many documents a cluster at most, and starts so many times.
POINTS, STARTS, ROUNDS = 1024, 8, 25
MEASURES = ("in_cluster", "cross_cluster", "gap", "silhouette")


class Estimate(NamedTuple):
    """A number estimated from `n` draws, its 95 % interval, and the settings it was made with."""

    value: float
    low: float
    high: float
    n: int
    settings: dict


class ClusterSimilarity(NamedTuple):
    """In- and cross-cluster similarity: sampled as in the paper, and exact over all pairs."""

    in_cluster: Estimate
    cross_cluster: Estimate
    in_exact: float
    cross_exact: float
    clusters: Clusters


def local_density(
    embeddings: np.ndarray,
    sample: int = 1000,
    k: int = 10,
    seed: int = 0,
    *,
    groups: Sequence | None = None,
) -> Estimate:
    """Return the mean cosine similarity of documents to their nearest neighbours.

    A sample of documents is compared with the whole corpus, exhaustively. The measure grows with
    the size of the corpus: compare corpora at equal size (`density_by_size`).

    Parameters
    ----------
    embeddings : array of shape (n, d)
    sample : int, default=1000
        Documents drawn without replacement; all are taken where there are fewer.
    k : int, default=10
        Neighbours.
    seed : int, default=0
    groups : sequence of length n, optional
        As in `neighbours`.

    Returns
    -------
    Estimate
        In [-1, 1]; higher is denser. The interval is that of the sample about the corpus at hand:
        it shrinks to nothing where all documents are taken.

    Raises
    ------
    UsageError, DataError
        As in `neighbours`.

    References
    ----------
    EnterpriseRAG-Bench, section 3.2, "Local density".
    """
    integer(sample, "sample", at_least=1)
    array = matrix(embeddings)
    chosen = draw(len(array), sample, seed)
    values = neighbours(array, chosen, k=k, groups=groups).similarity.mean(axis=1)
    settings = {"documents": len(array), "sample": len(chosen), "k": k, "seed": seed}
    return _mean(values, settings, population=len(array))


def density_by_size(
    embeddings: np.ndarray,
    sizes: Iterable[int],
    *,
    repeats: int = 5,
    sample: int = 1000,
    k: int = 10,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the local density of random parts of a corpus.

    Parameters
    ----------
    embeddings : array of shape (n, d)
    sizes : iterable of int
        Documents in a part, drawn without replacement.
    repeats : int, default=5
        Parts of each size; the whole corpus is measured once.
    sample, k, seed
        As in `local_density`.

    Returns
    -------
    DataFrame with columns size, repeat, local_density

    Raises
    ------
    DataError
        If a size exceeds the number of documents.
    """
    import pandas as pd

    array, rng, rows = matrix(embeddings), np.random.default_rng(seed), []
    for size in sizes:
        if size > len(array):
            raise DataError(f"a part of {size:,} documents needs as many, found {len(array):,}")
        for repeat in range(repeats if size < len(array) else 1):
            part = array[np.sort(rng.choice(len(array), size, replace=False))]
            value = local_density(part, sample, k, seed + repeat).value
            rows.append((size, repeat, value))
    return pd.DataFrame(rows, columns=["size", "repeat", "local_density"])


@dataclass(frozen=True)
class Clusters:
    """A partition of a corpus, and what follows from the sums of its clusters in closed form.

    Parameters
    ----------
    labels : array of int, shape (n,)
        Clusters are numbered from 0, the largest first; none is empty.
    sums : array of shape (c, d)
        The sum of each cluster's unit vectors.
    settings : dict
    """

    labels: np.ndarray
    sums: np.ndarray
    settings: dict = field(default_factory=dict)

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of documents in each cluster, shape (c,)."""
        return np.bincount(self.labels, minlength=len(self.sums))

    @cached_property
    def tightness(self) -> np.ndarray:
        """The mean cosine of all pairs within each cluster, shape (c,); NaN for a single one."""
        squares = np.einsum("cd,cd->c", self.sums, self.sums)
        pairs = self.sizes * (self.sizes - 1.0)
        return np.where(pairs > 0, (squares - self.sizes) / np.where(pairs > 0, pairs, 1), np.nan)

    @property
    def in_cluster(self) -> float:
        """The mean cosine of all pairs of documents in the same cluster."""
        pairs = self.sizes * (self.sizes - 1.0)
        if not pairs.any():
            raise DataError("every cluster is a single document, so no pair is in one cluster")
        several = pairs > 0
        return float(pairs[several] @ self.tightness[several] / pairs.sum())

    @property
    def cross_cluster(self) -> float:
        """The mean cosine of all pairs of documents in different clusters."""
        total = self.sums.sum(axis=0)
        squares = np.einsum("cd,cd->c", self.sums, self.sums)
        pairs = float(self.sizes.sum()) ** 2 - float((self.sizes.astype(float) ** 2).sum())
        if pairs == 0:
            raise DataError("all documents are in one cluster, so no pair crosses two")
        return float((total @ total - squares.sum()) / pairs)

    @property
    def evenness(self) -> float:
        """How equal the clusters are in size: the entropy of their shares over its maximum."""
        shares = self.sizes / self.sizes.sum()
        if len(shares) == 1:
            raise DataError("one cluster alone is neither even nor uneven")
        return float(-(shares * np.log(shares)).sum() / np.log(len(shares)))

    @property
    def tightness_spread(self) -> float:
        """How far clusters differ in tightness: the standard deviation over the clusters."""
        return float(np.nanstd(self.tightness))


def cluster(embeddings: np.ndarray, k: int = 10, seed: int = 0) -> Clusters:
    """Partition documents with k-means on their unit vectors.

    Centroids are learned by Lloyd's iterations from k-means++ starts, on at most 1,024 documents
    a cluster, the best of eight starts; then every document goes to the nearest centroid.

    Parameters
    ----------
    embeddings : array of shape (n, d)
    k : int, default=10
        Clusters; fewer are returned where fewer documents differ.
    seed : int, default=0

    Raises
    ------
    UsageError
        If `k` is below 2.
    DataError
        If there are fewer than k documents, or an embedding is zero or not finite.

    References
    ----------
    EnterpriseRAG-Bench, section 3.2, "Global clustering"; Lloyd (1982).
    """
    import faiss

    integer(k, "k", at_least=2)
    integer(seed, "seed", at_least=0)
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
    centroids = means.centroids.astype(np.float64)
    half = np.einsum("cd,cd->c", centroids, centroids) / 2
    labels = np.empty(len(array), dtype=np.int64)
    for place, rows in blocks(array):
        labels[place] = np.argmax(rows @ centroids.T - half, axis=1)
    return partition(array, labels, settings={"documents": len(array), "k": k, "seed": seed})


def partition(
    embeddings: np.ndarray, labels: Sequence, *, settings: dict | None = None
) -> Clusters:
    """Return a given partition, such as by source, with the sums of its clusters.

    Parameters
    ----------
    embeddings : array of shape (n, d)
    labels : sequence of length n
        Any values that can be compared.
    settings : dict, optional

    Raises
    ------
    UsageError
        If `labels` has another length.
    """
    array = matrix(embeddings)
    if len(labels) != len(array):
        raise UsageError(f"labels should name {len(array):,} documents, found {len(labels):,}")
    _, codes, counts = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    codes = rank[codes]
    sums = np.zeros((len(counts), array.shape[1]))
    for place, rows in blocks(array):
        own = codes[place]
        members = np.zeros((len(counts), len(own)))
        members[own, np.arange(len(own))] = 1
        sums += members @ rows
    return Clusters(codes, sums, settings or {})


def cluster_similarity(
    embeddings: np.ndarray, k: int = 10, pairs: int = 1000, seed: int = 0
) -> ClusterSimilarity:
    """Return the mean cosine of pairs of documents within and across k-means clusters.

    The paper draws pairs at random. With unit vectors, the sum S_c of cluster c and the sum S of
    all, the means over all pairs are

        in     (sum_c |S_c|^2 - n) / sum_c n_c (n_c - 1)
        cross  (|S|^2 - sum_c |S_c|^2) / (n^2 - sum_c n_c^2)

    which is linear in n. Both are given.

    Parameters
    ----------
    embeddings : array of shape (n, d)
    k : int, default=10
        Clusters.
    pairs : int, default=1000
        Pairs drawn within clusters, and as many across: uniformly from all such pairs, with
        replacement.
    seed : int, default=0
        Of the clusters and of the pairs.

    Returns
    -------
    ClusterSimilarity
        Intervals are those of the drawn pairs, given the clusters.

    Raises
    ------
    UsageError, DataError
        As in `cluster`; also if no pair is in one cluster or none crosses two.

    References
    ----------
    EnterpriseRAG-Bench, section 3.2, "Global clustering", and Table 3.
    """
    integer(pairs, "pairs", at_least=2)
    array = matrix(embeddings)
    found = cluster(array, k, seed)
    exact = found.in_cluster, found.cross_cluster
    rng = np.random.default_rng(seed)
    settings = {**found.settings, "clusters": len(found.sizes), "pairs": pairs}
    inside, across = (
        _mean(_pair_cosines(array, *drawn), settings)
        for drawn in (_pairs_within(found, pairs, rng), _pairs_across(found, pairs, rng))
    )
    return ClusterSimilarity(inside, across, *exact, found)


def silhouette(embeddings: np.ndarray, labels: Sequence) -> float:
    """Return the mean silhouette under cosine distance, over all documents.

    The mean distance of a document u to a cluster is 1 - u.S_c / n_c, so that no pair of
    documents is ever compared: n x c products in place of n^2.

    Parameters
    ----------
    embeddings : array of shape (n, d)
    labels : sequence of length n

    Returns
    -------
    float in [-1, 1]
        A document alone in its cluster counts as 0.

    Raises
    ------
    DataError
        If there are fewer than two clusters, or as many as documents.

    References
    ----------
    Rousseeuw (1987), Silhouettes.
    """
    found = labels if isinstance(labels, Clusters) else partition(embeddings, labels)
    array, sizes, total = matrix(embeddings), found.sizes.astype(float), 0.0
    if not 2 <= len(sizes) < len(array):
        raise DataError(
            f"a silhouette needs from 2 to {len(array) - 1} clusters, found {len(sizes)}"
        )
    for place, rows in blocks(array):
        own, at = found.labels[place], np.arange(len(rows))
        sums = rows @ found.sums.T
        distance = 1 - sums / sizes
        alone = sizes[own] == 1
        inside = 1 - (sums[at, own] - 1) / np.where(alone, 1, sizes[own] - 1)
        distance[at, own] = np.inf
        outside = distance.min(axis=1)
        larger = np.maximum(inside, outside)
        with np.errstate(invalid="ignore", divide="ignore"):
            values = np.where(larger > 1e-12, (outside - inside) / larger, 0.0)
        total += values[~alone].sum()
    return float(total / len(array))


def intrinsic_dimension(
    embeddings: np.ndarray, sample: int = 1000, k: int = 20, seed: int = 0
) -> Estimate:
    """Return how many directions a corpus spreads in, seen from a document's neighbourhood.

    With T_j the distance of a document to its j-th neighbour, the inverse of the dimension is the
    mean of log(T_k / T_j) over j < k, and over the sampled documents. k = 2 is the maximum
    likelihood form of the two-neighbours estimator.

    Parameters
    ----------
    embeddings : array of shape (n, d)
    sample : int, default=1000
        Documents drawn without replacement.
    k : int, default=20
        Neighbours, at least 2.
    seed : int, default=0

    Returns
    -------
    Estimate
        `n` counts the documents used: those with a duplicate have a distance of zero, and are
        left out. Distances are chords between unit vectors.

    Raises
    ------
    UsageError, DataError
        As in `neighbours`; also if no two sampled documents without duplicates remain.

    References
    ----------
    Levina and Bickel (2004), Maximum likelihood estimation of intrinsic dimension, averaged as by
    MacKay and Ghahramani (2005); Facco et al. (2017) for k = 2.
    """
    integer(k, "k", at_least=2)
    integer(sample, "sample", at_least=1)
    array = matrix(embeddings)
    chosen = draw(len(array), sample, seed)
    near = neighbours(array, chosen, k=k)
    distances = np.sqrt(np.maximum(2 - 2 * near.similarity, 0))
    apart = distances[:, 0] > 1e-6
    if apart.sum() < 2:
        raise DataError("fewer than two of the sampled documents have no duplicate")
    inverse = np.log(distances[apart, -1:] / distances[apart, :-1]).mean(axis=1)
    settings = {"documents": len(array), "sample": len(chosen), "k": k, "seed": seed}
    mean = _mean(inverse, settings)
    if mean.value == 0:
        raise DataError("all neighbours are equally far: there is no dimension to estimate")
    high = 1 / mean.low if mean.low > 0 else np.inf
    return Estimate(1 / mean.value, 1 / mean.high, high, mean.n, settings)


def sweep(
    corpora: Mapping[str, np.ndarray],
    *,
    ks: Iterable[int] = range(5, 51, 5),
    seeds: Iterable[int] = range(5),
    size: int | None = None,
) -> pd.DataFrame:
    """Return the exact cluster measures of several corpora for many k and seeds.

    Parameters
    ----------
    corpora : mapping of str to array of shape (n, d)
    ks : iterable of int
    seeds : iterable of int
        Of k-means, and of the part drawn.
    size : int, optional
        Documents in a part of each corpus, drawn anew for each seed; all by default.

    Returns
    -------
    DataFrame with columns corpus, k, seed, in_cluster, cross_cluster, gap, silhouette, evenness,
        tightness_spread

    References
    ----------
    EnterpriseRAG-Bench, section 3.2: "varied k across a range of values from 5 through 50".
    """
    import pandas as pd

    ks, rows = list(ks), []
    for (name, embeddings), seed in product(corpora.items(), list(seeds)):
        array = matrix(embeddings, at_least=size or 2, purpose=f"a part of {name!r}")
        part = array[draw(len(array), size or len(array), seed)]
        for k in ks:
            found = cluster(part, k, seed)
            inside, across = found.in_cluster, found.cross_cluster
            rows.append(
                {
                    "corpus": name,
                    "k": k,
                    "seed": seed,
                    "in_cluster": inside,
                    "cross_cluster": across,
                    "gap": inside - across,
                    "silhouette": silhouette(part, found),
                    "evenness": found.evenness,
                    "tightness_spread": found.tightness_spread,
                }
            )
    return pd.DataFrame(rows)


def ordering(swept: pd.DataFrame, measure: str = "in_cluster", *, reference: int = 10):
    """Return how the corpora are ordered at every k, and whether it is as at a reference k.

    Parameters
    ----------
    swept : DataFrame
        The result of `sweep`.
    measure : {"in_cluster", "cross_cluster", "gap", "silhouette"}
    reference : int, default=10
        The k of the paper's Table 3.

    Returns
    -------
    DataFrame with columns measure, k, order, same, seeds
        `order` has the corpora from the highest mean over seeds to the lowest, `same` whether it
        is that of the reference, `seeds` the share (0 to 1) of the seeds that alone give the
        reference order.

    Raises
    ------
    UsageError
        If the measure is unknown or the reference was not swept.
    """
    import pandas as pd

    if measure not in MEASURES:
        raise UsageError(f"no measure {measure!r}", did_you_mean(measure, MEASURES))
    if reference not in set(swept["k"]):
        raise UsageError(f"k={reference} was not swept", f"swept: {sorted(set(swept['k']))}")
    table = swept.pivot_table(index=["k", "seed"], columns="corpus", values=measure)
    means = table.groupby("k").mean()
    orders = {k: tuple(row.sort_values(ascending=False).index) for k, row in means.iterrows()}
    single = table.apply(lambda row: tuple(row.sort_values(ascending=False).index), axis=1)
    agree = (single == orders[reference]).groupby("k").mean()
    return pd.DataFrame(
        {
            "measure": measure,
            "k": list(orders),
            "order": [" > ".join(order) for order in orders.values()],
            "same": [order == orders[reference] for order in orders.values()],
            "seeds": agree.to_numpy(),
        }
    )


def draw(n: int, size: int, seed: int) -> np.ndarray:
    """Return `size` of n documents without replacement, in rising order; all if there are fewer."""
    integer(seed, "seed", at_least=0)
    if size >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, size, replace=False))


def _mean(values: np.ndarray, settings: dict, *, population: int | None = None) -> Estimate:
    """Return a mean with Student's interval; of a part of a finite population, corrected for it."""
    from scipy.stats import t

    n, mean = len(values), float(values.mean())
    if n == population:
        return Estimate(mean, mean, mean, n, settings)
    if n < 2:
        return Estimate(mean, np.nan, np.nan, n, settings)
    left = 1 - n / population if population else 1.0
    half = t.ppf((1 + LEVEL) / 2, n - 1) * values.std(ddof=1) * np.sqrt(left / n)
    return Estimate(mean, float(mean - half), float(mean + half), n, settings)


def _pairs_within(found: Clusters, pairs: int, rng) -> tuple[np.ndarray, np.ndarray]:
    """Draw ordered pairs of different documents in one cluster, each as likely as any other."""
    members, starts, sizes = _members(found)
    weights = sizes * (sizes - 1.0)
    own = rng.choice(len(sizes), pairs, p=weights / weights.sum())
    first = rng.integers(sizes[own])
    second = rng.integers(sizes[own] - 1)
    second += second >= first
    return members[starts[own] + first], members[starts[own] + second]


def _pairs_across(found: Clusters, pairs: int, rng) -> tuple[np.ndarray, np.ndarray]:
    """Draw ordered pairs of documents in different clusters, each as likely as any other."""
    members, starts, sizes = _members(found)
    n = len(members)
    weights = sizes * (n - sizes).astype(float)
    own = rng.choice(len(sizes), pairs, p=weights / weights.sum())
    first = starts[own] + rng.integers(sizes[own])
    # Members stand cluster by cluster: skip the own one.
    second = rng.integers(n - sizes[own])
    second += np.where(second >= starts[own], sizes[own], 0)
    return members[first], members[second]


def _members(found: Clusters) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sizes = found.sizes
    return np.argsort(found.labels, kind="stable"), np.cumsum(sizes) - sizes, sizes


def _pair_cosines(array: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    sides = (unit(array[side], side, dtype=np.float64) for side in (first, second))
    return np.einsum("id,id->i", *sides)
