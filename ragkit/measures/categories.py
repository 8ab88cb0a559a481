"""Questions of configured categories: the mix that was drawn, and whether the categories show.

LiveRAG, section 2.2 and Table 1. `categories` is everywhere the table of a configuration, as
`ragkit.synth.datamorgana.load_config().table` is one: categorization, category, probability, and
low and high, the words of its questions (missing if any number will do).

>>> from ragkit import datasets
>>> names = "concise-and-natural verbose-and-natural short-search-query long-search-query".split()
>>> table = pd.DataFrame({"categorization": "Phrasing", "category": names, "probability": 0.25})
>>> table = table.assign(low=[None, 10, 1, 7], high=[None, 60, 6, 30])
>>> sample, parts = datasets.load("liverag"), ("enterpriserag_bench", "wixqa")
>>> documents = pd.concat([datasets.load(name).documents for name in parts])
>>> asked = questions(sample.questions, documents, table)
>>> mix_tests(mix(asked, table))[["categorization", "least_expected", "df"]]
  categorization  least_expected  df
0       Phrasing            30.0   3
>>> means(asked, table, "words")[["category", "n"]].head(2)
              category   n
0  concise-and-natural  23
1  verbose-and-natural  33
>>> effects(asked, table, [("Phrasing", "words", "words")])["measure"].unique().tolist()
['words']
>>> legibility(asked, ["Phrasing"], folds=2)[["categorization", "n", "chance"]]
  categorization    n  chance
0       Phrasing  120    0.25
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np
import pandas as pd

from ragkit import checks
from ragkit.datasets.liverag import category_key
from ragkit.errors import DataError
from ragkit.measures import stats
from ragkit.text import STOP_WORDS, stems

POLITE = re.compile(
    r"\b(?:ple[ae]se|may i ask|thanks?|grateful|kind(?:ly)?|appreciat\w+|would you mind|could you|sorry|excuse me)\b",
    re.IGNORECASE,
)
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
# What a category's name promises, and the column of `questions` that shows it.
EFFECTS = (
    ("Answer Type", "direct claims", "claims"),
    ("Answer Style", "words of the answer", "answer_words"),
    ("Premise", "words of the question", "words"),
    ("Phrasing", "words of the question", "words"),
    ("Phrasing", "share of the length in Table 1", "in_length"),
    ("Linguistic Variation", "share of words in the documents", "overlap"),
    ("Politeness", "share with polite words", "polite"),
    ("Linguistic Correctness", "share of words in no document and no other question", "unknown"),
)
SHARES = ("in_length", "polite")  # columns of yes and no


def questions(
    asked: pd.DataFrame, documents: pd.DataFrame, categories: pd.DataFrame
) -> pd.DataFrame:
    """Return questions with their categories under the names of a configuration, and measures of each.

    `asked` are the questions of `ragkit.datasets.load("liverag")`, `documents` all gold documents
    and any others. Raises `DataError` if a question has a category that `categories` lack.

    Returns the columns of `asked`; a column for each categorization; words, answer_words, claims
    (direct ones), overlap (share of the question's word stems, stop words aside, that its documents
    have), unknown (share of its words that are in no document and no other question), polite and
    in_length (1 or 0; missing where the configuration gives no length).
    """
    frame, keys = asked.copy(), categories["category"].map(category_key)
    for name, own in categories.groupby("categorization", sort=False)["category"]:
        if (key := category_key(name)) not in frame:
            raise DataError(f"{name}: no categorization of these questions")
        frame[name] = frame[key].map(dict(zip(keys[own.index], own, strict=True)))
        if frame[name].isna().any():
            strange = frame.loc[frame[name].isna(), key].iloc[0]
            raise DataError(f"{name}: the configuration has no {strange!r}")
    texts = documents.set_index("doc_id")["text"]
    said = [set(_words(text)) for text in frame["text"]]
    holders = Counter(chain(*said, *(set(_words(text)) for text in texts)))
    frame["unknown"] = [np.mean([holders[word] == 1 for word in own] or np.nan) for own in said]
    frame["overlap"] = [
        _overlap(text, "\n".join(texts[list(gold)]))
        for text, gold in zip(frame["text"], frame["gold_doc_ids"], strict=True)
    ]
    frame["words"] = frame["text"].str.split().map(len)
    frame["answer_words"] = frame["answer"].str.split().map(len)
    frame["claims"] = frame["claims_direct"].map(len)
    frame["polite"] = frame["text"].str.contains(POLITE).astype(int)
    limits = categories.assign(key=keys).dropna(subset=["low", "high"])
    low, high = (
        frame["phrasing"].map(dict(zip(limits["key"], limits[end], strict=True)))
        for end in ("low", "high")
    )
    frame["in_length"] = frame["words"].between(low, high).astype(float).where(low.notna())
    return frame


def _words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def _overlap(question: str, document: str) -> float:
    """Return the share of a question's stems, stop words aside, that a document has."""
    asked = set(stems([word for word in _words(question) if word not in STOP_WORDS]))
    return len(asked & set(stems(_words(document)))) / len(asked) if asked else 0.0


def mix(frame: pd.DataFrame, categories: pd.DataFrame) -> pd.DataFrame:
    """Return how often `questions` have each category, beside its probability.

    Columns categorization, category, configured, questions, share, low, high (Wilson's interval).
    """
    names = ["categorization", "category"]
    table = categories[names].assign(configured=categories["probability"])
    pairs = table[names].itertuples(index=False)
    table["questions"] = [int((frame[name] == category).sum()) for name, category in pairs]
    found = stats.wilson_intervals(table["questions"], [len(frame)] * len(table))
    table[["share", "low", "high"]] = found[["estimate", "low", "high"]].to_numpy()
    return table


def mix_tests(table: pd.DataFrame) -> pd.DataFrame:
    """Test each categorization's counts, from `mix`, against its probabilities.

    Columns categorization, categories, least_expected (questions), G2 (likelihood ratio), df, p and
    p_holm. G2 is taken as chi-square distributed (Wilks 1938), which wants 5 expected questions or
    more. A categorization with a single possible category is left out.
    """
    from scipy.stats import power_divergence

    rows = []
    for name, group in table.groupby("categorization", sort=False):
        possible = group[group["configured"] > 0]
        if group.loc[group["configured"] == 0, "questions"].any():
            raise DataError(f"{name}: a category of probability 0 was drawn")
        seen, chances = possible["questions"].to_numpy(), possible["configured"].to_numpy()
        expected, df = chances / chances.sum() * seen.sum(), len(possible) - 1
        if df:
            found = power_divergence(seen, expected, lambda_="log-likelihood")
            rows.append((name, df + 1, expected.min(), found.statistic, df, found.pvalue))
    columns = ["categorization", "categories", "least_expected", "G2", "df", "p"]
    tests = pd.DataFrame(rows, columns=columns)
    return tests.assign(p_holm=stats.holm(tests["p"]) if len(tests) else [])


def effects(
    frame: pd.DataFrame,
    categories: pd.DataFrame,
    wanted: Sequence[tuple[str, str, str]] = EFFECTS,
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the means of measures by category: by default, what each category's name promises.

    `frame` is from `questions`; `wanted` has categorizations, measures and their columns. Columns
    categorization, measure, category, n, value, low, high: means with BCa bootstrap intervals,
    shares with Wilson's. Categories without a question have no row.
    """
    known = categories.groupby("categorization")["category"]
    rows = []
    for name, measure, column in wanted:
        for category in known.get_group(name):
            values = frame.loc[frame[name] == category, column].dropna()
            if values.empty:
                continue
            if column in SHARES:
                found = stats.wilson_interval(int(values.sum()), len(values))
            else:
                found = stats.bootstrap_interval(values, seed=seed)
            rows.append((name, measure, category, found.n, *found[:3]))
    columns = ["categorization", "measure", "category", "n", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def means(
    frame: pd.DataFrame, categories: pd.DataFrame, column: str, *, seed: int = 0
) -> pd.DataFrame:
    """Return the mean of a column by category, as `effects` does, in a column `share`."""
    wanted = [(name, "share", column) for name in categories["categorization"].unique()]
    table = effects(frame, categories, wanted, seed=seed)
    return table.drop(columns="measure").rename(columns={"value": "share"})


def legibility(
    frame: pd.DataFrame, names: Sequence[str], *, folds: int = 5, seed: int = 0
) -> pd.DataFrame:
    """Return how well each categorization's category can be told from the question's text alone.

    A linear support vector machine on words, word pairs and letter triples, tried on held-out
    folds (at least 2). `frame` has `text` and a column for each of `names`. Columns categorization,
    categories, n, chance, balanced_accuracy (mean over categories of the share told right), low,
    high (BCa bootstrap over questions). Categories with fewer than `folds` questions are left out.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.svm import LinearSVC

    checks.whole(folds, "folds", least=2)
    seen = make_union(
        TfidfVectorizer(token_pattern=r"\w+|[^\w\s]", ngram_range=(1, 2), sublinear_tf=True),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), sublinear_tf=True),
    )
    model = make_pipeline(seen, LinearSVC(class_weight="balanced", random_state=seed))
    split = StratifiedKFold(folds, shuffle=True, random_state=seed)
    rows = []
    for name in names:
        counts = frame[name].value_counts()
        part, kinds = frame[frame[name].map(counts) >= folds], int((counts >= folds).sum())
        if kinds > 1:
            right = cross_val_predict(model, part["text"], part[name], cv=split) == part[name]
            weights = len(part) / (kinds * part[name].map(counts))
            value, low, high, n = stats.bootstrap_interval(right * weights, seed=seed)
            rows.append((name, kinds, n, 1 / kinds, value, low, high))
    columns = ["categorization", "categories", "n", "chance", "balanced_accuracy", "low", "high"]
    return pd.DataFrame(rows, columns=columns)
