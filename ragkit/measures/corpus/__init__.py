"""The geometry of a corpus: density, clusters, maps, repetition, and retrieval by corpus size.

>>> from ragkit.measures import corpus
>>> corpus.local_density(embeddings).value
>>> corpus.cluster_similarity(embeddings, k=10).in_exact

Measures work on arrays of embeddings, from any encoder.
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
    profile,
    silhouette,
    similarity_by_k,
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
from ragkit.measures.corpus.repetition import closest_siblings, text_repetition
from ragkit.measures.corpus.scaling import (
    Extrapolation,
    ScalingFit,
    extrapolate,
    fit_scaling,
    nested,
)
from ragkit.measures.corpus.vectors import Neighbours, neighbours
