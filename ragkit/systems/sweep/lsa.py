"""Latent semantic analysis: vectors that cost next to nothing, for corpora too large to encode."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ragkit import checks
from ragkit.errors import DataError, UsageError

BLOCK = 4096  # texts turned into vectors at a time
WORDS = 100_000  # the commonest are kept


class LSA:
    """An encoder of word counts, taught by a sample of documents.

    Words weighted by tf-idf, with logarithmic counts, are projected on the leading singular vectors of
    the sample. It takes the place of a neural encoder where that would take hours: it knows
    nothing of meaning but which words stand together, and ignores words that the sample lacks.

    Parameters
    ----------
    dimensions : int, default=256
    seed : int, default=0
        Of the randomised decomposition.

    Attributes
    ----------
    name : str
        "lsa-" and the dimensions.
    words_ : int
        How many words it knows: those of at least two documents of the sample.

    References
    ----------
    Deerwester, Dumais, Furnas, Landauer and Harshman (1990), Indexing by latent semantic analysis;
    Halko, Martinsson and Tropp (2011), Finding structure with randomness (the decomposition).
    """

    def __init__(self, dimensions: int = 256, *, seed: int = 0):
        checks.whole(dimensions, "dimensions", least=2)
        checks.whole(seed, "seed", least=0)
        self.dimensions, self.seed = int(dimensions), int(seed)
        self.name = f"lsa-{dimensions}"

    def fit(self, texts: Iterable[str]) -> LSA:
        """Learn words and directions from texts, in memory.

        Raises
        ------
        DataError
            If there are not more texts, and words that two of them share, than dimensions.
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
            At unit length; a text without a known word is zero.
        """
        if not hasattr(self, "words_"):
            raise UsageError("LSA has learned nothing yet", "call fit(texts) first")
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), BLOCK):
            part = self._words.transform(texts[start : start + BLOCK])
            vectors[start : start + BLOCK] = self._axes.transform(part)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
