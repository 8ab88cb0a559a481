"""How close a document's closest sibling is, word for word."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ragkit.errors import DataError
from ragkit.measures.corpus.vectors import integer

BLOCK = 512  # documents compared with all others at a time


def closest_siblings(texts: Sequence[str], *, n: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Return for each text the text that shares most of its phrases, and how many.

    Two texts are compared by the sets of their phrases of `n` words, lower-cased and without
    punctuation: what both have over what either has (Jaccard similarity). All pairs are compared.

    Parameters
    ----------
    texts : sequence of str, length m
    n : int, default=5
        Words in a phrase.

    Returns
    -------
    similarity : float array of shape (m,)
        0 to 1; 0 where no other text shares a phrase, NaN for a text of fewer than `n` words.
    sibling : int array of shape (m,)
        The place of the closest text, the first of several; -1 where there is none.

    Raises
    ------
    UsageError
        If `n` is below 1.
    DataError
        If there are fewer than two texts, or none has a phrase.

    References
    ----------
    EnterpriseRAG-Bench, section 4.1, where a language model judges which of 100 documents have a
    very close sibling. Broder (1997), On the resemblance and containment of documents.
    """
    integer(n, "n", at_least=1)
    if len(texts) < 2:
        raise DataError(f"siblings need at least two texts, found {len(texts)}")
    matrix = _phrases(texts, n)
    sizes = np.diff(matrix.indptr)
    similarity = np.where(sizes > 0, 0.0, np.nan)
    sibling = np.full(len(texts), -1)
    columns = matrix.T.tocsr()
    for start in range(0, len(texts), BLOCK):
        rows = np.arange(start, min(start + BLOCK, len(texts)))
        common = (matrix[rows] @ columns).tocsr()
        at = np.repeat(rows, np.diff(common.indptr))
        other = common.indices
        share = common.data / (sizes[at] + sizes[other] - common.data)
        share[at == other] = 0.0
        np.maximum.at(similarity, at, share)
        best = (share > 0) & (share == similarity[at])
        order = np.argsort(-other[best], kind="stable")  # of equals the first text is kept
        sibling[at[best][order]] = other[best][order]
    return similarity, sibling


def _phrases(texts, n):
    """Return which text (row) has which phrase (column), as a sparse matrix of ones."""
    from scipy.sparse import csr_matrix

    known: dict[str, int] = {}
    words = [
        np.array([known.setdefault(word, len(known)) for word in re.findall(r"\w+", text.lower())])
        for text in texts
    ]
    lengths = np.array([len(row) for row in words])
    if lengths.max() < n:
        raise DataError(f"no text has {n} words in a row")
    flat = np.concatenate(words).astype(np.int64)
    owner = np.repeat(np.arange(len(texts)), lengths)
    # Phrases get numbers word by word, so that equal numbers are equal phrases.
    phrase = flat
    for step in range(1, n):
        _, phrase = np.unique(phrase[:-1] * len(known) + flat[step:], return_inverse=True)
    first = owner[: len(phrase)]
    inside = first == owner[n - 1 :]
    pairs = np.unique(np.stack([first[inside], phrase[inside]], axis=1), axis=0)
    shape = (len(texts), int(phrase.max()) + 1)
    return csr_matrix((np.ones(len(pairs), np.int32), pairs.T), shape=shape)
