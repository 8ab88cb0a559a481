"""BM25 as the formula says it, one document after the other: slow, short, to check against."""

from __future__ import annotations

import numpy as np

from ragkit.systems.retrieval.analysis import standard_terms


def lucene_scores(
    texts: list[str], query: str, *, k1: float = 1.2, b: float = 0.75
) -> list[np.float32]:
    """Return Lucene's BM25 score of each text; 0 where it shares no word with the query.

    Parameters
    ----------
    texts : list of str, length n
    query : str
    k1, b : float

    Returns
    -------
    list of numpy.float32, length n

    Notes
    -----
    score = sum of w - w / (1 + tf / (k1 (1 - b + b L / avgdl))) over the query's words, repeated
    ones counted in the weight w = count x ln(1 + (N - n + 0.5) / (n + 0.5)). L is the length as
    one byte keeps it; N and avgdl leave texts without words out. Numbers are 32-bit floats, but
    the sum is not.
    """
    f = np.float32
    documents = [standard_terms(text) for text in texts]
    filled = [words for words in documents if words]
    asked = standard_terms(query)
    average = f(sum(map(len, filled)) / max(len(filled), 1))
    weights = {}
    for word in set(asked):
        having = sum(word in words for words in filled)
        idf = f(np.log(1 + (len(filled) - having + 0.5) / (having + 0.5)))
        weights[word] = f(asked.count(word)) * idf
    scores = []
    for words in documents:
        total = 0.0
        for word in weights.keys() & set(words):
            length = f(one_byte_length(len(words)))
            inverse = f(1) / (f(k1) * ((f(1) - f(b)) + f(b) * length / average))
            weight = weights[word]
            total += float(weight - weight / (f(1) + f(words.count(word)) * inverse))
        scores.append(f(total))
    return scores


def one_byte_length(length: int) -> int:
    """Return what is left of a length: all of it below 40, then its four highest bits over 24."""
    rest = length - 24
    lost = max(rest.bit_length() - 4, 0) if rest > 0 else 0
    return length if rest <= 0 else 24 + (rest >> lost << lost)
