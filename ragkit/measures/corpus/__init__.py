"""The geometry of a corpus: density, clusters, maps, repetition, and retrieval by corpus size.

>>> from ragkit import datasets, models
>>> from ragkit.measures import corpus
>>> embeddings = models.embed(datasets.load("wixqa").documents["text"])
>>> round(corpus.local_density(embeddings).estimate, 1)
0.5
>>> corpus.cluster_similarity(embeddings, k=10).clusters.sizes.sum().item()
80
"""

from ragkit.measures.corpus.geometry import (
    cluster,
    cluster_similarity,
    density_by_size,
    intrinsic_dimension,
    local_density,
    neighbours,
    ordering,
    partition,
    profile,
    silhouette,
    similarity_by_k,
)
from ragkit.measures.corpus.maps import atlas, cluster_terms, map_tsne, map_umap, trustworthiness
from ragkit.measures.corpus.scaling import (
    Extrapolation,
    ScalingFit,
    extrapolate,
    fit_scaling,
    nested,
)
from ragkit.measures.corpus.texts import closest_siblings, pool, split, text_repetition
