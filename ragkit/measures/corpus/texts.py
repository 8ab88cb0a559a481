"""Texts of a corpus: cut into windows, pooled to chunks or documents, and how they repeat.

An encoder reads a few hundred tokens; the paper's chunks have 512 or 8,192. So texts are cut into
windows that any encoder reads whole, each window is embedded once, and a longer part is the mean
direction of its windows. Chunks and documents come from the same embeddings, and no text is lost.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ragkit import checks, display, schema
from ragkit import text as tokenizers
from ragkit.errors import DataError, UsageError
from ragkit.measures.corpus.geometry import matrix, unit

COLUMNS = ["doc_id", "source", "title", "start", "tokens", "text"]
BLOCK = 512  # documents compared with all others at a time


def split(documents: pd.DataFrame, *, tokens: int = 128) -> pd.DataFrame:
    """Cut documents into windows of at most `tokens` tokens of the encoding cl100k_base.

    Returns doc_id, source, title, start (the number of tokens before the window), tokens and text.
    The joined windows are the text: a character of several tokens stays with its first token.

    Source: EnterpriseRAG-Bench, section 3: 512-token segments of cl100k_base.

    >>> documents = pd.DataFrame({"doc_id": ["a"], "source": "chat", "title": "A", "text": "one two three"})
    >>> split(documents, tokens=2)[["start", "tokens", "text"]]
       start  tokens     text
    0      0       2  one two
    1      2       1    three
    """
    checks.whole(tokens, "tokens")
    schema.check(documents, "documents", "documents")
    table, rows = tokenizers.encoding("cl100k_base"), []
    columns = documents[["doc_id", "source", "title", "text"]]
    for doc_id, source, title, text in columns.itertuples(index=False):
        codes = table.encode_ordinary(text)
        _, offsets = table.decode_with_offsets(codes)
        starts = range(0, len(codes), tokens)
        borders = [*(offsets[start] for start in starts), len(text)]
        for number, start in enumerate(starts):
            window = text[borders[number] : borders[number + 1]]
            if window:
                size = min(tokens, len(codes) - start)
                rows.append((doc_id, source, title, start, size, window))
    return pd.DataFrame(rows, columns=COLUMNS)


def pool(
    windows: pd.DataFrame, vectors: np.ndarray, *, tokens: int
) -> tuple[pd.DataFrame, np.ndarray]:
    """Join windows to parts of at most `tokens` tokens, and their embeddings to embeddings of parts.

    `windows` are from `split`, `vectors`, of shape (len(windows), d), their embeddings; `tokens`
    is a multiple of the windows': 512 for the paper's chunks, 8,192 for its Table 3.

    Returns the m parts, with the columns of `windows`, and their unit vectors, (m, d), float32: the
    directions of the sums of the windows' unit vectors, weighted by tokens. Raises `UsageError` if
    windows and vectors differ in number or parts would cut through windows, `DataError` if vectors
    are zero, not finite, or cancel out.

    >>> documents = pd.DataFrame({"doc_id": ["a"], "source": "chat", "title": "A", "text": "one two three"})
    >>> windows = split(documents, tokens=2)
    >>> parts, vectors = pool(windows, np.array([[1.0, 0.0], [0.0, 1.0]]), tokens=4)
    >>> parts["text"].tolist(), vectors.round(2)
    (['one two three'], array([[0.89, 0.45]], dtype=float32))
    """
    checks.whole(tokens, "tokens")
    array = matrix(vectors, at_least=1)
    if len(array) != len(windows):
        raise UsageError(f"{len(windows):,} windows, but {len(array):,} vectors")
    if (windows["start"] % tokens + windows["tokens"] > tokens).any():
        raise UsageError(
            f"parts of {tokens} tokens cut through windows of {windows['tokens'].max()}",
            "take a multiple of the windows' tokens",
        )
    groups = windows.groupby(["doc_id", windows["start"] // tokens], sort=False)
    sums = np.zeros((groups.ngroups, array.shape[1]))
    weighted = unit(array, dtype=np.float64) * windows["tokens"].to_numpy()[:, None]
    np.add.at(sums, groups.ngroup().to_numpy(), weighted)
    how = {"source": "first", "title": "first", "start": "first", "tokens": "sum", "text": "".join}
    parts = groups.agg(how).droplevel(1).reset_index()
    return parts, unit(sums, dtype=np.float64).astype(np.float32)


def text_repetition(
    texts: Sequence[str], *, characters: int, repeats: int = 5, n: int = 8, seed: int = 0
) -> pd.DataFrame:
    """Return how repetitive texts are, for random parts of equal length.

    A part consists of texts in random order up to `characters`, the last one cut; a phrase is `n`
    words in a row. Raises `DataError` if the texts are shorter together, or hold no phrase.

    One row per part: compression_ratio (size over gzip size), distinct_words (distinct over all
    words), shared_phrases (share of a text's distinct phrases that another text of the part has),
    length_variation (standard deviation over mean of the words in a text, over all texts).

    >>> text_repetition(["one two three four five six seven eight"] * 3, characters=80, repeats=1)
       compression_ratio  distinct_words  shared_phrases  length_variation
    0           1.301587        0.529412             1.0               0.0
    """
    checks.whole(characters, "characters")
    checks.whole(n, "n")
    texts = list(texts)
    if (total := sum(map(len, texts))) < characters:
        raise DataError(
            f"a part of {characters:,} characters needs as many, found {total:,} in all texts"
        )
    words = tokenizers.lengths(texts)
    if words.max() < n:
        raise DataError(f"no text has {n} words in a row", "take a smaller n")
    rows = []
    for number in range(seed, seed + repeats):
        part, left = [], characters
        for place in np.random.default_rng(number).permutation(len(texts)):
            part.append(texts[place][:left])
            left -= len(part[-1])
            if left == 0:
                break
        split = [text.lower().split() for text in part]
        phrases = [set(zip(*(row[start:] for start in range(n)), strict=False)) for row in split]
        holders = Counter(phrase for own in phrases for phrase in own)
        raw = "\n".join(part).encode()
        rows.append(
            {
                "compression_ratio": len(raw) / len(gzip.compress(raw, mtime=0)),
                "distinct_words": len(set().union(*split)) / sum(map(len, split)),
                "shared_phrases": sum(c for c in holders.values() if c > 1) / holders.total(),
                "length_variation": float(words.std() / words.mean()),
            }
        )
    return pd.DataFrame(rows)


def closest_siblings(texts: Sequence[str], *, n: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Return for each text the text that shares most of its phrases, and how many it shares.

    The similarity is the Jaccard similarity of their sets of phrases of `n` words, lower-cased and
    without punctuation. Raises `DataError` if there are fewer than two texts, or no phrase.

    Returns two arrays of shape (m,): the similarity, 0 to 1 (NaN for a text of fewer than `n`
    words), and the place of the closest text, the first of several (-1 if none shares a phrase).

    Source: EnterpriseRAG-Bench, section 4.1, where a language model judges which of 100 documents
    have a very close sibling; Broder (1997), On the resemblance and containment of documents.

    >>> closest_siblings(["a b c d e f", "a b c d e g", "h i j k l m"])
    (array([0.3333..., 0.3333..., 0.        ]), array([ 1,  0, -1]))
    """
    from sklearn.feature_extraction.text import CountVectorizer

    checks.whole(n, "n")
    if len(texts) < 2:
        raise DataError(f"siblings need at least two texts, found {len(texts)}")
    counter = CountVectorizer(ngram_range=(n, n), token_pattern=r"\w+", binary=True, dtype=np.int32)
    try:
        phrases = counter.fit_transform(texts)  # which text (row) has which phrase (column)
    except ValueError:
        raise DataError(f"no text has {n} words in a row") from None
    sizes = np.diff(phrases.indptr)
    similarity = np.where(sizes > 0, 0.0, np.nan)
    sibling = np.full(len(texts), -1)
    columns = phrases.T.tocsr()
    for start in display.progress(range(0, len(texts), BLOCK), "siblings"):
        rows = np.arange(start, min(start + BLOCK, len(texts)))
        common = (phrases[rows] @ columns).tocsr()
        at, other = np.repeat(rows, np.diff(common.indptr)), common.indices
        share = common.data / (sizes[at] + sizes[other] - common.data)
        share[at == other] = 0.0
        np.maximum.at(similarity, at, share)
        best = (share > 0) & (share == similarity[at])
        order = np.argsort(-other[best], kind="stable")  # of equals the first text is kept
        sibling[at[best][order]] = other[best][order]
    return similarity, sibling
