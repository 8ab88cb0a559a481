"""What a corpus looks like at a given size, and signs that its texts were made by a machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ragkit.errors import DataError, UsageError
from ragkit.measures.corpus.geometry import (
    cluster_similarity,
    draw,
    intrinsic_dimension,
    local_density,
    silhouette,
)
from ragkit.measures.corpus.vectors import integer, matrix, neighbours
from ragkit.measures.diversity import compression_ratio

if TYPE_CHECKING:
    import pandas as pd

# Documents whose nearest neighbour is as similar as this count as near duplicates.
NEAR = 0.9


def profile(
    embeddings: np.ndarray,
    *,
    size: int | None = None,
    repeats: int = 5,
    k: int = 10,
    nearest: int = 10,
    sample: int = 1000,
    pairs: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return Table 3 and what a reader would ask next, for random parts of equal size.

    Local density grows with the number of documents, and clusters tighten as they get fewer
    documents each: corpora are comparable at one size only.

    Parameters
    ----------
    embeddings : array of shape (n, d)
    size : int, optional
        Documents in a part, drawn without replacement; all by default.
    repeats : int, default=5
        Parts; with all documents only the seed of k-means and of the samples changes.
    k : int, default=10
        Clusters.
    nearest : int, default=10
        Neighbours of local density and of the intrinsic dimension.
    sample, pairs : int, default=1000
        As in `local_density` and `cluster_similarity`.
    seed : int, default=0

    Returns
    -------
    DataFrame
        One row a part: local_similarity, in_cluster_similarity and cross_cluster_similarity as
        the paper samples them; in_exact, cross_exact, gap (their difference), silhouette,
        evenness and tightness_spread of the clusters; intrinsic_dimension; near_duplicates, the
        share (0 to 1) of documents with a neighbour at a cosine of 0.9 or more.

    Raises
    ------
    DataError
        If there are fewer than `size` documents, or too few for the neighbours or clusters.

    References
    ----------
    EnterpriseRAG-Bench, section 3.2 and Table 3.
    """
    import pandas as pd

    array, rows = matrix(embeddings), []
    integer(repeats, "repeats", at_least=1)
    size = len(array) if size is None else size
    if size > len(array):
        raise DataError(f"a part of {size:,} documents needs as many, found {len(array):,}")
    for number in range(seed, seed + repeats):
        part = array[draw(len(array), size, number)]
        found = cluster_similarity(part, k, pairs, number)
        closest = neighbours(part, draw(size, sample, number), k=1).similarity[:, 0]
        rows.append(
            {
                "local_similarity": local_density(part, sample, nearest, number).value,
                "in_cluster_similarity": found.in_cluster.value,
                "cross_cluster_similarity": found.cross_cluster.value,
                "in_exact": found.in_exact,
                "cross_exact": found.cross_exact,
                "gap": found.in_exact - found.cross_exact,
                "silhouette": silhouette(part, found.clusters),
                "evenness": found.clusters.evenness,
                "tightness_spread": found.clusters.tightness_spread,
                "intrinsic_dimension": intrinsic_dimension(part, sample, nearest, number).value,
                "near_duplicates": float((closest >= NEAR).mean()),
            }
        )
    return pd.DataFrame(rows)


def text_signs(
    texts: Sequence[str], *, characters: int, repeats: int = 5, n: int = 8, seed: int = 0
) -> pd.DataFrame:
    """Return how repetitive texts are, for random parts of equal length.

    Parameters
    ----------
    texts : sequence of str
    characters : int
        In a part: texts in random order up to the one that reaches so many; that one is cut.
    repeats : int, default=5
        Parts.
    n : int, default=8
        Words in a row that count as a phrase.
    seed : int, default=0

    Returns
    -------
    DataFrame
        One row a part: compression_ratio (size over gzip size), distinct_words (share, 0 to 1, of
        words that are new where they stand), shared_phrases (share of a text's phrases that another
        text of the part has too), length_variation (standard deviation of the words in a text over
        their mean, over all texts).

    Raises
    ------
    DataError
        If the texts are shorter than `characters` together, or hold no phrase.
    """
    import pandas as pd

    integer(characters, "characters", at_least=1)
    integer(n, "n", at_least=1)
    texts = list(texts)
    if sum(map(len, texts)) < characters:
        raise DataError(
            f"a part of {characters:,} characters needs as many, "
            f"found {sum(map(len, texts)):,} in all texts"
        )
    words = np.array([len(text.split()) for text in texts])
    if words.max() < n:
        raise UsageError(f"no text has {n} words in a row", "take a smaller n")
    rows = []
    for number in range(seed, seed + repeats):
        part, left = [], characters
        for place in np.random.default_rng(number).permutation(len(texts)):
            part.append(texts[place][:left])
            left -= len(part[-1])
            if left == 0:
                break
        split = [text.lower().split() for text in part]
        phrases = [{tuple(row[i : i + n]) for i in range(len(row) - n + 1)} for row in split]
        holders = Counter(phrase for own in phrases for phrase in own)
        total = sum(map(len, split))
        rows.append(
            {
                "compression_ratio": compression_ratio("\n".join(part), scheme="once"),
                "distinct_words": len({word for row in split for word in row}) / total,
                "shared_phrases": sum(c for c in holders.values() if c > 1) / holders.total(),
                "length_variation": float(words.std() / words.mean()),
            }
        )
    return pd.DataFrame(rows)
