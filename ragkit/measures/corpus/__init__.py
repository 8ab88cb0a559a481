"""The shape of a corpus: how dense and clustered it is, what it looks like, what its size does.

>>> from ragkit.measures import corpus
>>> corpus.local_density(embeddings).value
>>> corpus.cluster_similarity(embeddings, k=10).in_exact

All of it works on arrays of embeddings, from any encoder.
"""

from ragkit.measures.corpus.geometry import (
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
from ragkit.measures.corpus.maps import (
    Map,
    atlas,
    cluster_terms,
    map_tsne,
    map_umap,
    trustworthiness,
)
from ragkit.measures.corpus.parts import pool, split
from ragkit.measures.corpus.scaling import (
    Extrapolation,
    ScalingFit,
    extrapolate,
    fit_scaling,
    nested,
)
from ragkit.measures.corpus.siblings import closest_siblings
from ragkit.measures.corpus.signs import profile, text_signs
from ragkit.measures.corpus.vectors import Neighbours, neighbours

__all__ = [
    "ClusterSimilarity",
    "Clusters",
    "Estimate",
    "Extrapolation",
    "Map",
    "Neighbours",
    "ScalingFit",
    "atlas",
    "closest_siblings",
    "cluster",
    "cluster_similarity",
    "cluster_terms",
    "density_by_size",
    "extrapolate",
    "fit_scaling",
    "intrinsic_dimension",
    "local_density",
    "map_tsne",
    "map_umap",
    "neighbours",
    "nested",
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
