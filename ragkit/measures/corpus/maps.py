"""Maps of a corpus on two axes, their trustworthiness, and terms that name its clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ragkit import checks
from ragkit.errors import DataError, UsageError
from ragkit.measures.corpus.geometry import cluster, draw
from ragkit.measures.corpus.vectors import matrix, unit

SMALLEST = 8


@dataclass(frozen=True)
class Map:
    """A map of documents.

    Parameters
    ----------
    coordinates : array of shape (m, 2)
    rows : array of int, shape (m,)
        Which documents were mapped, in rising order.
    trustworthiness : float
        See `trustworthiness`.
    neighbours : int
        The neighbours that it counts.
    settings : dict
    """

    coordinates: np.ndarray
    rows: np.ndarray
    trustworthiness: float
    neighbours: int
    settings: dict

    def frame(self, documents: pd.DataFrame) -> pd.DataFrame:
        """Return doc_id, source, title, x and y of the mapped documents."""
        chosen = documents.iloc[self.rows]
        table = chosen[["doc_id", "source", "title"]].reset_index(drop=True)
        return table.assign(x=self.coordinates[:, 0], y=self.coordinates[:, 1])


def map_tsne(
    embeddings: np.ndarray,
    seed: int = 0,
    *,
    perplexity: float | None = None,
    components: int | None = None,
    sample: int = 10_000,
) -> Map:
    """Return a t-SNE map of a corpus.

    openTSNE with exact neighbours among the unit vectors, initialised with their first two
    principal components. The map is the same on any number of threads.

    Parameters
    ----------
    embeddings : array of shape (n, d)
    seed : int, default=0
        For the sample and the map; the same seed gives the same coordinates.
    perplexity : float, optional
        By default 30, or a third of the other documents if that is less.
    components : int, optional
        Principal components in which neighbours are found; all dimensions by default.
    sample : int, default=10000
        Documents mapped; all if there are fewer.

    Raises
    ------
    UsageError
        If three times the perplexity exceeds the other documents.
    DataError
        If there are fewer than 8 documents, all are the same, or one is zero or not finite.

    References
    ----------
    EnterpriseRAG-Bench, section 3.1 and Figure 1; van der Maaten and Hinton (2008).
    """
    import faiss
    from openTSNE import TSNE

    rows, units = _sampled(embeddings, sample, seed)
    n, points = len(rows), units
    if perplexity is None:
        perplexity = min(30.0, (n - 1) / 3)
    if not 1 <= perplexity <= (n - 1) / 3:
        raise UsageError(
            f"a perplexity of {perplexity:g} does not suit {n:,} documents",
            f"take one between 1 and {(n - 1) / 3:.0f}",
        )
    if components is not None:
        from sklearn.decomposition import PCA

        kept = min(checks.whole(components, "components", least=2), *units.shape)
        points = PCA(kept, random_state=seed).fit_transform(units)
    tsne = TSNE(
        perplexity=perplexity,
        neighbors="exact",
        random_state=seed,
        n_jobs=faiss.omp_get_max_threads(),
    )
    settings = {
        "method": "t-SNE",
        "documents": n,
        "perplexity": float(perplexity),
        "components": components,
        "seed": seed,
    }
    return _finished(units, np.asarray(tsne.fit(points)), rows, settings)


def map_umap(
    embeddings: np.ndarray,
    seed: int = 0,
    *,
    n_neighbors: int | None = None,
    min_dist: float = 0.1,
    sample: int = 10_000,
) -> Map:
    """Return a UMAP map of a corpus by cosine similarity.

    Parameters
    ----------
    embeddings : array of shape (n, d)
    seed : int, default=0
        For the sample and the map; the same seed gives the same coordinates.
    n_neighbors : int, optional
        By default 15, or all other documents if there are fewer.
    min_dist : float in [0, 1], default=0.1
    sample : int, default=10000
        Documents mapped; all if there are fewer.

    Raises
    ------
    UsageError
        If an option is out of range.
    DataError
        If there are fewer than 8 documents, all are the same, or one is zero or not finite.

    References
    ----------
    McInnes, Healy and Melville (2018), UMAP.
    """
    from umap import UMAP

    rows, units = _sampled(embeddings, sample, seed)
    n = len(rows)
    if n_neighbors is None:
        n_neighbors = min(15, n - 1)
    checks.whole(n_neighbors, "n_neighbors", least=2, most=n - 1)
    checks.number(min_dist, "min_dist", least=0, most=1)
    # A seeded UMAP runs on one thread, and warns each time unless asked for one.
    umap = UMAP(
        n_neighbors=n_neighbors, min_dist=min_dist, metric="cosine", random_state=seed, n_jobs=1
    )
    settings = {
        "method": "UMAP",
        "documents": n,
        "n_neighbors": n_neighbors,
        "min_dist": min_dist,
        "seed": seed,
    }
    return _finished(units, umap.fit_transform(units), rows, settings)


def trustworthiness(embeddings: np.ndarray, coordinates: np.ndarray, *, k: int = 15) -> float:
    """Return how far the neighbours on a map are neighbours in the embedding space.

    scikit-learn's measure with cosine distance: 1 if each document's k neighbours on the map are
    its k nearest; every one that is not costs its rank beyond k.

    Parameters
    ----------
    embeddings : array of shape (n, d)
    coordinates : array of shape (n, 2)
    k : int, default=15
        Neighbours; less than half of n.

    Returns
    -------
    float in [0, 1]

    Raises
    ------
    UsageError
        If `k` is not below n / 2 or the map has another number of rows.

    References
    ----------
    Venna and Kaski (2001), Neighborhood preservation in nonlinear projection methods.
    """
    from sklearn.manifold import trustworthiness as trust

    array, flat = matrix(embeddings), matrix(coordinates)
    if len(flat) != len(array):
        raise UsageError(f"{len(array):,} embeddings, but {len(flat):,} points on the map")
    checks.whole(k, "k", most=(len(array) - 1) // 2)
    return float(trust(unit(array), flat, n_neighbors=k, metric="cosine"))


def cluster_terms(texts: Sequence[str], labels: Sequence, *, n: int = 3) -> dict[object, list[str]]:
    """Return each cluster's most distinctive terms.

    A term's weight in a cluster is its share of the cluster's words times log(1 + A / f), with A
    the mean number of words of a cluster and f how often the term occurs in all of them.

    Parameters
    ----------
    texts : sequence of str
    labels : sequence of the same length
        The texts' clusters.
    n : int, default=3
        Terms a cluster.

    Returns
    -------
    dict of label to list of str
        In rising order of the labels; a cluster without a word of two letters has an empty list.

    Raises
    ------
    UsageError
        If there are not as many labels as texts.
    DataError
        If no text has a word.

    References
    ----------
    Grootendorst (2022), BERTopic, section 3.3: class-based tf-idf.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    checks.whole(n, "n")
    if len(texts) != len(labels):
        raise UsageError(f"{len(texts):,} texts, but {len(labels):,} labels")
    joined = pd.Series(list(texts)).groupby(np.asarray(labels)).agg(" ".join)
    vectorizer = CountVectorizer(stop_words="english", token_pattern=r"(?u)\b[^\W\d_]{2,}\b")
    try:
        counts = vectorizer.fit_transform(joined).toarray().astype(float)
    except ValueError:
        raise DataError("no text has a word of two letters, stop words aside") from None
    words = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, words, out=np.zeros_like(counts), where=words > 0)
    weights = shares * np.log1p(counts.sum() / len(counts) / counts.sum(axis=0))
    names = vectorizer.get_feature_names_out()
    order = np.argsort(-weights, axis=1, kind="stable")[:, :n]
    return {
        label: [str(names[place]) for place in places if weights[row, place] > 0]
        for row, (label, places) in enumerate(zip(joined.index, order, strict=True))
    }


def atlas(
    documents: pd.DataFrame,
    embeddings: np.ndarray,
    *,
    k: int = 5,
    terms: int = 2,
    sample: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the t-SNE and the UMAP map of a corpus, with k-means clusters and their terms.

    Parameters
    ----------
    documents : DataFrame
        With doc_id, source, title and text.
    embeddings : array of shape (len(documents), d)
    k : int, default=5
        Clusters to name.
    terms : int, default=2
        Terms a cluster.
    sample : int, default=10000
        Documents mapped; all are clustered.
    seed : int, default=0

    Returns
    -------
    DataFrame
        One row a document and method: doc_id, source, title, x, y, method, trustworthiness,
        cluster (from 0, the largest first) and terms, joined by commas.

    Raises
    ------
    UsageError
        If there are not as many embeddings as documents.
    DataError
        As in `map_tsne`, `map_umap` and `cluster`.

    References
    ----------
    EnterpriseRAG-Bench, Figure 1.
    """
    if len(documents) != len(embeddings):
        raise UsageError(f"{len(documents):,} documents, but {len(embeddings):,} embeddings")
    labels = cluster(embeddings, k, seed).labels
    names = cluster_terms(documents["text"], labels, n=terms)
    drawn = [draw_map(embeddings, seed, sample=sample) for draw_map in (map_tsne, map_umap)]
    frames = [
        found.frame(documents).assign(
            method=found.settings["method"],
            trustworthiness=found.trustworthiness,
            cluster=labels[found.rows],
        )
        for found in drawn
    ]
    table = pd.concat(frames, ignore_index=True)
    joined = {number: ", ".join(words) for number, words in names.items()}
    return table.assign(terms=table["cluster"].map(joined))


def _sampled(embeddings, sample: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    checks.whole(sample, "sample", least=SMALLEST)
    array = matrix(embeddings, at_least=SMALLEST, purpose="a map")
    rows = draw(len(array), sample, seed)
    units = unit(array[rows], rows)
    if np.ptp(units, axis=0).max() == 0:
        raise DataError("all documents have the same embedding: there is nothing to map")
    return rows, units


def _finished(units, flat, rows, settings) -> Map:
    k = min(15, (len(rows) - 1) // 2)
    return Map(flat, rows, trustworthiness(units, flat, k=k), k, settings)
