"""The shape of a corpus: how dense and how clustered it is, and what it looks like.

>>> from ragkit import corpus
>>> corpus.local_density(embeddings).value
>>> corpus.cluster_similarity(embeddings, k=10).in_exact

All of it works on arrays of embeddings, from any encoder.
"""

from ragkit.corpus.geometry import (
    Clusters,
    ClusterSimilarity,
    Estimate,
    cluster,
    cluster_similarity,
    density_by_size,
    intrinsic_dimension,
    local_density,
    ordering,
    partition,
    silhouette,
    sweep,
)
from ragkit.corpus.maps import Map, atlas, cluster_terms, map_tsne, map_umap, trustworthiness
from ragkit.corpus.parts import pool, split
from ragkit.corpus.signs import profile, text_signs
from ragkit.corpus.vectors import Neighbours, neighbours

__all__ = [
    "ClusterSimilarity",
    "Clusters",
    "Estimate",
    "Map",
    "Neighbours",
    "atlas",
    "cluster",
    "cluster_similarity",
    "cluster_terms",
    "density_by_size",
    "intrinsic_dimension",
    "local_density",
    "map_tsne",
    "map_umap",
    "neighbours",
    "ordering",
    "partition",
    "pool",
    "profile",
    "silhouette",
    "split",
    "sweep",
    "text_signs",
    "trustworthiness",
]
