"""The shape of a corpus in its embedding space (EnterpriseRAG-Bench, section 3.2 and Table 3).

Every measure takes embeddings of any scale and works with cosine similarity. The paper samples
pairs; the mean over all pairs has a closed form in the sums of the clusters, so that is given too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from ragkit import checks
from ragkit.errors import DataError, UsageError
from ragkit.measures.corpus.vectors import blocks, cosines, matrix, neighbours, unit

LEVEL = 0.95
# k-means learns its centroids from at most this many documents per cluster, with so many starts
# and iterations.
POINTS, STARTS, ROUNDS = 1024, 8, 25
MEASURES = ("in_cluster", "cross_cluster", "gap", "silhouette")
# Documents whose nearest neighbour is as similar as this count as near duplicates.
NEAR = 0.9


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
        Documents drawn without replacement; all if there are fewer.
    k : int, default=10
        Neighbours.
    seed : int, default=0
    groups : sequence of length n, optional
        As in `neighbours`, which also names the errors.

    Returns
    -------
    Estimate
        In [-1, 1]; higher is denser. The interval is for the corpus at hand: it has no width if
        all documents are taken.

    References
    ----------
    EnterpriseRAG-Bench, section 3.2, "Local density".
    """
    array, chosen = _chosen(embeddings, sample, seed)
    values = neighbours(array, chosen, k=k, groups=groups).similarity.mean(axis=1)
    settings = {"documents": len(array), "sample": len(chosen), "k": k, "seed": seed}
    return _mean(values, settings, population=len(array))


def density_by_size(
    embeddings: np.ndarray, sizes: Iterable[int], *, repeats: int = 5, seed: int = 0
) -> pd.DataFrame:
    """Return the local density of random parts of a corpus.

    For each size, `repeats` parts of so many documents are drawn without replacement; the whole
    corpus is measured once. Columns size, repeat, local_density. Raises `DataError` if a size
    exceeds the number of documents.
    """
    array, rng, rows = matrix(embeddings), np.random.default_rng(seed), []
    for size in sizes:
        matrix(array, at_least=size, purpose="a part")
        for repeat in range(repeats if size < len(array) else 1):
            part = array[np.sort(rng.choice(len(array), size, replace=False))]
            rows.append((size, repeat, local_density(part, seed=seed + repeat).value))
    return pd.DataFrame(rows, columns=["size", "repeat", "local_density"])


@dataclass(frozen=True)
class Clusters:
    """A partition of a corpus, and what follows from the sums of its clusters in closed form.

    `labels`, of shape (n,), number the clusters from 0, the largest first; none is empty. `sums`,
    of shape (c, d), are the sums of each cluster's unit vectors.
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
        pairs = self.sizes * (self.sizes - 1.0)
        squares = np.einsum("cd,cd->c", self.sums, self.sums)
        return (squares - self.sizes) / np.where(pairs > 0, pairs, np.nan)

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
            raise DataError("the evenness of one cluster is not defined")
        return float(-(shares * np.log(shares)).sum() / np.log(len(shares)))

    @property
    def tightness_spread(self) -> float:
        """The standard deviation of the tightness over the clusters."""
        return float(np.nanstd(self.tightness))


def cluster(embeddings: np.ndarray, k: int = 10, seed: int = 0) -> Clusters:
    """Partition documents with k-means on their unit vectors.

    faiss learns the centroids by Lloyd's iterations from k-means++ starts, on at most 1,024
    documents per cluster, the best of eight starts; then every document goes to the nearest one.
    Fewer than k clusters are returned if fewer documents differ. Raises `UsageError` if `k` is
    below 2, `DataError` if there are fewer than k documents.

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
    _, labels = means.assign(unit(array))
    return partition(array, labels, settings={"documents": len(array), "k": k, "seed": seed})


def partition(
    embeddings: np.ndarray, labels: Sequence, *, settings: dict | None = None
) -> Clusters:
    """Return a given partition, such as by source, with the sums of its clusters.

    `labels` are n values that can be compared. Raises `UsageError` if they have another length.
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
        sums += (codes[place] == np.arange(len(counts))[:, None]).astype(float) @ rows
    return Clusters(codes, sums, settings or {})


def cluster_similarity(
    embeddings: np.ndarray, k: int = 10, pairs: int = 1000, seed: int = 0
) -> ClusterSimilarity:
    """Return the mean cosine of pairs of documents within and across k-means clusters.

    The paper draws pairs at random. With unit vectors, the sum S_c of cluster c and the sum S of
    all, the means over all pairs are linear in n. Both are given:

        in     (sum_c |S_c|^2 - n) / sum_c n_c (n_c - 1)
        cross  (|S|^2 - sum_c |S_c|^2) / (n^2 - sum_c n_c^2)

    `pairs` are drawn within clusters, and as many across: uniformly from all such pairs, with
    replacement; their intervals hold for the given clusters. Raises `DataError` if no pair is in
    one cluster or none crosses two, and as in `cluster`.

    Source: EnterpriseRAG-Bench, section 3.2, "Global clustering", and Table 3.
    """
    checks.whole(pairs, "pairs", least=2)
    array = matrix(embeddings)
    found = cluster(array, k, seed)
    exact = found.in_cluster, found.cross_cluster
    rng = np.random.default_rng(seed)
    settings = {**found.settings, "clusters": len(found.sizes), "pairs": pairs}
    sampled = [
        _mean(cosines(array, *_pairs(found, pairs, rng, across)), settings)
        for across in (False, True)
    ]
    return ClusterSimilarity(*sampled, *exact, found)


def silhouette(embeddings: np.ndarray, labels: Sequence) -> float:
    """Return scikit-learn's mean silhouette under cosine distance, in [-1, 1].

    A document alone in its cluster counts as 0. Raises `DataError` if there are fewer than two
    clusters, or as many as documents. Source: Rousseeuw (1987), Silhouettes.
    """
    from sklearn.metrics import silhouette_score

    array, clusters = matrix(embeddings), len(np.unique(labels))
    if not 2 <= clusters < len(array):
        raise DataError(f"a silhouette needs from 2 to {len(array) - 1} clusters, found {clusters}")
    return float(silhouette_score(unit(array, dtype=np.float64), labels, metric="cosine"))


def intrinsic_dimension(
    embeddings: np.ndarray, sample: int = 1000, k: int = 20, seed: int = 0
) -> Estimate:
    """Return the intrinsic dimension of a corpus, by maximum likelihood from neighbours.

    With T_j the distance of a document to its j-th neighbour, the inverse of the dimension is the
    mean of log(T_k / T_j) over j < k, and over the sampled documents. k = 2 is the maximum
    likelihood form of the two-neighbours estimator. Distances are chords between unit vectors.
    Documents with a duplicate have a distance of zero and are left out: `n` counts the others.
    Raises `DataError` if fewer than two remain, and as in `neighbours`.

    Source: Levina and Bickel (2004), Maximum likelihood estimation of intrinsic dimension,
    averaged as by MacKay and Ghahramani (2005); Facco et al. (2017) for k = 2.
    """
    checks.whole(k, "k", least=2)
    array, chosen = _chosen(embeddings, sample, seed)
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


def profile(
    embeddings: np.ndarray,
    *,
    size: int | None = None,
    repeats: int = 5,
    k: int = 10,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the measures of Table 3 and others for random parts of equal size.

    Local density grows with the number of documents, and clusters tighten as they get fewer
    documents each: corpora are comparable at one size only.

    Parameters
    ----------
    embeddings : array of shape (n, d)
    size : int, optional
        Documents in a part, drawn without replacement; default: all. `DataError` if there are
        fewer, or too few for ten neighbours or k clusters.
    repeats : int, default=5
        Parts; with all documents only the seed of k-means and of the samples changes.
    k : int, default=10
        Clusters.
    seed : int, default=0

    Returns
    -------
    DataFrame
        One row per part: local_similarity, in_cluster_similarity and cross_cluster_similarity as
        the paper samples them; in_exact, cross_exact, gap (their difference), silhouette,
        evenness and tightness_spread of the clusters; intrinsic_dimension from ten neighbours;
        near_duplicates, the share (0 to 1) of documents with a neighbour at a cosine of 0.9 or
        more.

    References
    ----------
    EnterpriseRAG-Bench, section 3.2 and Table 3.
    """
    array, rows = matrix(embeddings, at_least=size or 2, purpose="a part"), []
    for number in range(seed, seed + repeats):
        part = array[draw(len(array), size or len(array), number)]
        found = cluster_similarity(part, k, seed=number)
        closest = neighbours(part, draw(len(part), 1000, number), k=1).similarity[:, 0]
        rows.append(
            {
                "local_similarity": local_density(part, seed=number).value,
                "in_cluster_similarity": found.in_cluster.value,
                "cross_cluster_similarity": found.cross_cluster.value,
                "in_exact": found.in_exact,
                "cross_exact": found.cross_exact,
                **_shape(part, found.clusters),
                "intrinsic_dimension": intrinsic_dimension(part, k=10, seed=number).value,
                "near_duplicates": float((closest >= NEAR).mean()),
            }
        )
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
    Columns corpus, k, seed, in_cluster, cross_cluster, gap, silhouette, evenness,
    tightness_spread.

    Source: EnterpriseRAG-Bench, section 3.2: "varied k across a range of values from 5 through 50".
    """
    ks, rows = list(ks), []
    for (name, embeddings), seed in product(corpora.items(), list(seeds)):
        array = matrix(embeddings, at_least=size or 2, purpose=f"a part of {name!r}")
        part = array[draw(len(array), size or len(array), seed)]
        for k in ks:
            found = cluster(part, k, seed)
            means = {"in_cluster": found.in_cluster, "cross_cluster": found.cross_cluster}
            row = {"corpus": name, "k": k, "seed": seed, **means}
            rows.append({**row, **_shape(part, found)})
    return pd.DataFrame(rows)


def ordering(measured: pd.DataFrame, measure: str = "in_cluster", *, reference: int = 10):
    """Return how the corpora are ordered at every k, and whether the order is that of a reference.

    Parameters
    ----------
    measured : DataFrame
        The result of `similarity_by_k`.
    measure : {"in_cluster", "cross_cluster", "gap", "silhouette"}
    reference : int, default=10
        The k of the paper's Table 3; `UsageError` if it was not measured.

    Returns
    -------
    DataFrame with columns measure, k, order, same, seeds
        `order` has the corpora from the highest mean over seeds to the lowest, `same` whether it
        is that of the reference, `seeds` the share (0 to 1) of the seeds that alone give the
        reference order.
    """
    checks.choice(measure, "measure", MEASURES)
    if reference not in set(measured["k"]):
        raise UsageError(f"k={reference} was not measured", f"found: {sorted(set(measured['k']))}")
    table = measured.pivot_table(index=["k", "seed"], columns="corpus", values=measure)

    def order(row):
        return " > ".join(row.sort_values(ascending=False).index)

    orders, single = table.groupby("k").mean().apply(order, axis=1), table.apply(order, axis=1)
    agree = (single == orders[reference]).groupby("k").mean()
    found = pd.DataFrame({"order": orders, "same": orders == orders[reference], "seeds": agree})
    found.insert(0, "measure", measure)
    return found.reset_index()[["measure", "k", "order", "same", "seeds"]]


def draw(n: int, size: int, seed: int) -> np.ndarray:
    """Return `size` of n documents without replacement, in rising order; all if there are fewer."""
    checks.whole(seed, "seed", least=0)
    if size >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, size, replace=False))


def _chosen(embeddings, sample: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    array = matrix(embeddings)
    return array, draw(len(array), checks.whole(sample, "sample"), seed)


def _shape(part: np.ndarray, found: Clusters) -> dict[str, float]:
    return {
        "gap": found.in_cluster - found.cross_cluster,
        "silhouette": silhouette(part, found.labels),
        "evenness": found.evenness,
        "tightness_spread": found.tightness_spread,
    }


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
