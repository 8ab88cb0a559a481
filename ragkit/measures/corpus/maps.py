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

    `coordinates`, of shape (m, 2), are those of the documents `rows`, in rising order;
    `trustworthiness` counts `neighbours` neighbours, see the function of that name.
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
        Default: 30, or a third of the other documents if that is less.
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
    n = len(rows)
    if perplexity is None:
        perplexity = min(30.0, (n - 1) / 3)
    if not 1 <= perplexity <= (n - 1) / 3:
        raise UsageError(
            f"a perplexity of {perplexity:g} does not suit {n:,} documents",
            f"take one between 1 and {(n - 1) / 3:.0f}",
        )
    tsne = TSNE(
        perplexity=perplexity,
        neighbors="exact",
        random_state=seed,
        n_jobs=faiss.omp_get_max_threads(),
    )
    settings = {"method": "t-SNE", "perplexity": float(perplexity)}
    return _finished(units, np.asarray(tsne.fit(units)), rows, seed, settings)


def map_umap(
    embeddings: np.ndarray,
    seed: int = 0,
    *,
    n_neighbors: int | None = None,
    sample: int = 10_000,
) -> Map:
    """Return a UMAP map of a corpus by cosine similarity (McInnes, Healy and Melville 2018).

    `n_neighbors` is 15 by default, or all other documents if there are fewer; the rest is as in
    `map_tsne`.
    """
    from umap import UMAP

    rows, units = _sampled(embeddings, sample, seed)
    n = len(rows)
    if n_neighbors is None:
        n_neighbors = min(15, n - 1)
    checks.whole(n_neighbors, "n_neighbors", least=2, most=n - 1)
    # A seeded UMAP runs on one thread, and warns each time unless asked for one.
    umap = UMAP(n_neighbors=n_neighbors, metric="cosine", random_state=seed, n_jobs=1)
    settings = {"method": "UMAP", "n_neighbors": n_neighbors}
    return _finished(units, umap.fit_transform(units), rows, seed, settings)


def trustworthiness(embeddings: np.ndarray, coordinates: np.ndarray, *, k: int = 15) -> float:
    """Return how far the neighbours on a map are neighbours in the embedding space, 0 to 1.

    scikit-learn's measure with cosine distance: 1 if each document's k neighbours on the map are
    its k nearest; every one that is not costs its rank beyond k. Raises `UsageError` if `k` is not
    below n / 2 or `coordinates`, of shape (n, 2), have another number of rows.

    Source: Venna and Kaski (2001), Neighborhood preservation in nonlinear projection methods.
    """
    from sklearn.manifold import trustworthiness as trust

    array, flat = matrix(embeddings), matrix(coordinates)
    if len(flat) != len(array):
        raise UsageError(f"{len(array):,} embeddings, but {len(flat):,} points on the map")
    checks.whole(k, "k", most=(len(array) - 1) // 2)
    return float(trust(unit(array), flat, n_neighbors=k, metric="cosine"))


def cluster_terms(texts: Sequence[str], labels: Sequence, *, n: int = 3) -> dict[object, list[str]]:
    """Return each cluster's `n` most distinctive terms, in rising order of the labels.

    A term's weight in a cluster is its share of the cluster's words times log(1 + A / f), with A
    the mean number of words of a cluster and f how often the term occurs in all of them. A cluster
    without a word of two letters has an empty list. Raises `UsageError` if there are not as many
    labels as texts, `DataError` if no text has a word.

    Source: Grootendorst (2022), BERTopic, section 3.3: class-based tf-idf.
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
        Terms of a cluster.
    sample : int, default=10000
        Documents mapped; all are clustered.
    seed : int, default=0

    Returns
    -------
    DataFrame
        One row per document and method: doc_id, source, title, x, y, method, trustworthiness,
        cluster (from 0, the largest first) and terms, joined by commas.

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


def _finished(units, flat, rows, seed, settings) -> Map:
    k, settings = min(15, (len(rows) - 1) // 2), {**settings, "documents": len(rows), "seed": seed}
    return Map(flat, rows, trustworthiness(units, flat, k=k), k, settings)
