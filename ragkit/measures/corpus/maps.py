"""Maps of a corpus on two axes, their trustworthiness, and terms that name its clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from ragkit import checks, display
from ragkit.errors import DataError, UsageError
from ragkit.measures.corpus.geometry import cluster, draw, matrix, unit

SMALLEST = 8


class Map(NamedTuple):
    """A map: `coordinates`, of shape (m, 2), of the documents `rows`, and its `trustworthiness`."""

    coordinates: np.ndarray
    rows: np.ndarray
    trustworthiness: float


def map_tsne(embeddings: np.ndarray, seed: int = 0, *, sample: int = 10_000) -> Map:
    """Return a t-SNE map of a corpus.

    openTSNE with exact neighbours among the unit vectors and a perplexity of 30 (at most a third of
    the other documents), of at most `sample` documents, drawn without replacement. Raises
    `DataError` if there are fewer than 8, or all are the same.

    Source: EnterpriseRAG-Bench, section 3.1 and Figure 1; van der Maaten and Hinton (2008).

    >>> vectors = np.random.default_rng(0).normal(size=(60, 8))
    >>> map_tsne(vectors).coordinates.shape
    (60, 2)
    """
    import faiss
    from openTSNE import TSNE

    rows, units = _sampled(embeddings, sample, seed)
    tsne = TSNE(
        perplexity=min(30.0, (len(rows) - 1) / 3),
        neighbors="exact",
        random_state=seed,
        n_jobs=faiss.omp_get_max_threads(),
    )
    return _trusted(np.asarray(tsne.fit(units)), rows, units)


def map_umap(embeddings: np.ndarray, seed: int = 0, *, sample: int = 10_000) -> Map:
    """Return a UMAP map by cosine similarity, from 15 neighbours; the rest is as in `map_tsne`.

    Source: McInnes, Healy and Melville (2018).

    >>> vectors = np.random.default_rng(0).normal(size=(60, 8))
    >>> map_umap(vectors).coordinates.shape
    (60, 2)
    """
    from umap import UMAP

    rows, units = _sampled(embeddings, sample, seed)
    # A seeded UMAP runs on one thread, and warns each time unless asked for one.
    nearest = min(15, len(rows) - 1)
    umap = UMAP(n_neighbors=nearest, metric="cosine", random_state=seed, n_jobs=1)
    return _trusted(umap.fit_transform(units), rows, units)


def trustworthiness(embeddings: np.ndarray, coordinates: np.ndarray, *, k: int = 15) -> float:
    """Return how far the neighbours on a map are neighbours in the embedding space, 0 to 1.

    scikit-learn's measure with cosine distance: 1 if each document's `k` neighbours on the map, of
    `coordinates` (n, 2), are its nearest. Raises `UsageError` if `k` is not below n / 2. Source:
    Venna and Kaski (2001).

    >>> plane = np.random.default_rng(0).normal(size=(60, 2))
    >>> trustworthiness(plane, plane) > 0.9
    True
    """
    from sklearn.manifold import trustworthiness as trust

    array = matrix(embeddings)
    checks.whole(k, "k", most=(len(array) - 1) // 2)
    return float(trust(unit(array), matrix(coordinates), n_neighbors=k, metric="cosine"))


def cluster_terms(texts: Sequence[str], labels: Sequence, *, n: int = 3) -> dict[object, list[str]]:
    """Return each cluster's `n` most distinctive terms, in rising order of the n labels.

    A term's weight is its share of the cluster's words times log(1 + A / f), with A the mean number
    of words of a cluster and f how often the term occurs in all. Raises `DataError` if no text has
    a word of two letters; a cluster without one has an empty list.

    Source: Grootendorst (2022), BERTopic, section 3.3: class-based tf-idf.

    >>> cluster_terms(["reset the pump", "the pump leaks", "pay the invoice"], [0, 0, 1], n=1)
    {0: ['pump'], 1: ['invoice']}
    """
    from sklearn.feature_extraction.text import CountVectorizer

    joined = pd.Series(list(texts)).groupby(np.asarray(labels)).agg(" ".join)
    vectorizer = CountVectorizer(stop_words="english", token_pattern=r"(?u)\b[^\W\d_]{2,}\b")
    try:
        counts = vectorizer.fit_transform(joined).toarray().astype(float)
    except ValueError:
        raise DataError("no text has a word of two letters, stop words aside") from None
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
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
    sample: int = 10_000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the t-SNE and the UMAP map of a corpus, with k-means clusters and their terms.

    `documents` have doc_id, source, title and text; all are clustered. One row per document of
    the `sample` and method: doc_id, source, title, x, y, method, trustworthiness, cluster (from 0,
    the largest first) and its two terms, joined by commas.

    Source: EnterpriseRAG-Bench, Figure 1.

    >>> documents = pd.DataFrame({"doc_id": [f"d{n}" for n in range(60)], "source": "chat"})
    >>> documents = documents.assign(title="A", text=["the pump leaks", "pay the invoice"] * 30)
    >>> vectors = np.random.default_rng(0).normal(size=(60, 8))
    >>> atlas(documents, vectors, k=2).columns.tolist()
    ['doc_id', 'source', 'title', 'x', 'y', 'method', 'trustworthiness', 'cluster', 'terms']
    """
    if len(documents) != len(embeddings):
        raise UsageError(f"{len(documents):,} documents, but {len(embeddings):,} embeddings")
    labels, frames = cluster(embeddings, k, seed).labels, []
    names = cluster_terms(documents["text"], labels, n=2)
    methods = (("t-SNE", map_tsne), ("UMAP", map_umap))
    for method, draw_map in display.progress(methods, "maps"):
        flat, rows, trust = draw_map(embeddings, seed, sample=sample)
        found = documents.iloc[rows][["doc_id", "source", "title"]].reset_index(drop=True)
        found = found.assign(x=flat[:, 0], y=flat[:, 1], method=method, trustworthiness=trust)
        frames.append(found.assign(cluster=labels[rows]))
    table = pd.concat(frames, ignore_index=True)
    return table.assign(terms=table["cluster"].map(names).str.join(", "))


def _sampled(embeddings, sample: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    checks.whole(sample, "sample", least=SMALLEST)
    array = matrix(embeddings, at_least=SMALLEST, purpose="a map")
    rows = draw(len(array), sample, seed)
    units = unit(array[rows], rows)
    if np.ptp(units, axis=0).max() == 0:
        raise DataError("all documents have the same embedding: there is nothing to map")
    return rows, units


def _trusted(flat: np.ndarray, rows: np.ndarray, units: np.ndarray) -> Map:
    return Map(flat, rows, trustworthiness(units, flat, k=min(15, (len(rows) - 1) // 2)))
