"""Latent semantic analysis: document vectors for corpora that are too large for a neural encoder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ragkit import checks
from ragkit.errors import DataError, UsageError

BLOCK = 4096  # texts encoded together
WORDS = 100_000  # vocabulary: the most frequent words


class LSA:
    """An encoder of word counts, fitted to a sample of documents.

    Counts are weighted by tf-idf, with logarithmic term frequencies, and projected onto the
    leading singular vectors of the sample. Words that the sample lacks are ignored.

    Parameters
    ----------
    dimensions : int, default=256
    seed : int, default=0
        Seed of the randomised decomposition.

    Attributes
    ----------
    name : str
        "lsa-" and the dimensions.
    words_ : int
        Size of the vocabulary: words of at least two documents of the sample.

    References
    ----------
    Deerwester, Dumais, Furnas, Landauer and Harshman (1990), Indexing by latent semantic analysis;
    Halko, Martinsson and Tropp (2011), Finding structure with randomness (the decomposition).
    """

    def __init__(self, dimensions: int = 256, *, seed: int = 0):
        self.dimensions = checks.whole(dimensions, "dimensions", least=2)
        self.seed = checks.whole(seed, "seed", least=0)
        self.name = f"lsa-{dimensions}"

    def fit(self, texts: Iterable[str]) -> LSA:
        """Fit vocabulary and directions to texts, in memory.

        Raises
        ------
        DataError
            If the texts, or the words that at least two of them contain, are not more than the
            dimensions.
        """
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer

        texts = list(texts)
        self._words = TfidfVectorizer(
            sublinear_tf=True, min_df=2, max_features=WORDS, dtype=np.float32
        )
        try:
            weights = self._words.fit_transform(texts)
        except ValueError:  # no text, or no word that two of them share
            weights = np.empty((len(texts), 0))
        if min(weights.shape) <= self.dimensions:
            raise DataError(
                f"{self.dimensions} dimensions need more documents and words, found "
                f"{weights.shape[0]:,} documents that share {weights.shape[1]:,} words",
                "take a larger sample or fewer dimensions",
            )
        self._axes = TruncatedSVD(self.dimensions, random_state=self.seed).fit(weights)
        self.words_ = weights.shape[1]
        return self

    def encode(self, texts: Sequence[str], kind: str | None = "passage") -> np.ndarray:
        """Return the vectors of texts.

        Returns
        -------
        array of shape (n, dimensions), float32
            Unit vectors; zero for a text without a known word.
        """
        from sklearn.preprocessing import normalize

        if not hasattr(self, "words_"):
            raise UsageError("LSA is not fitted yet", "call fit(texts) first")
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), BLOCK):
            part = self._words.transform(texts[start : start + BLOCK])
            vectors[start : start + BLOCK] = self._axes.transform(part)
        return normalize(vectors, copy=False)
