"""A set of DataMorgana's questions: its mix of categories, and whether the categories show.

What a notebook shows of questions that are made; nothing here changes what is made.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from ragkit.datasets.liverag import category_key
from ragkit.errors import DataError, UsageError
from ragkit.measures import stats
from ragkit.synth.datamorgana.config import KNOWN, Config
from ragkit.text import STOP_WORDS, stems

if TYPE_CHECKING:
    import pandas as pd

POLITE = re.compile(
    r"\b(?:ple[ae]se|may i ask|thanks?|grateful|kind(?:ly)?|appreciat\w+|would you mind|could you|sorry|excuse me)\b",
    re.IGNORECASE,
)
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
# The lengths in words that LiveRAG's Table 1 asks for: least and most.
LENGTHS = {
    "verbose-and-natural": (10, np.inf),
    "short-search-query": (1, 6),
    "long-search-query": (7, np.inf),
}
# What a category's name promises, and the column of `questions` that shows it.
EFFECTS = (
    ("Answer Type", "direct claims", "claims"),
    ("Answer Style", "words of the answer", "answer_words"),
    ("Premise", "words of the question", "words"),
    ("Phrasing", "words of the question", "words"),
    ("Phrasing", "share of the length in Table 1", "in_length"),
    ("Linguistic Variation", "share of words in the documents", "overlap"),
    ("Politeness", "share with polite words", "polite"),
    ("Linguistic Correctness", "share of words that stand nowhere else", "unknown"),
)
SHARES = ("in_length", "polite")  # columns of yes and no


def configured(config: Config) -> pd.DataFrame:
    """Return the configured categories: categorization, category, probability, documents, description."""
    import pandas as pd

    rows = [
        (name, c.name, c.probability, c.documents, c.description)
        for name, choices in config.categorizations.items()
        for c in choices
    ]
    columns = ["categorization", "category", "probability", "documents", "description"]
    return pd.DataFrame(rows, columns=columns)


def excluded(config: Config) -> pd.DataFrame:
    """Return the combinations that are never drawn, each with its reason: never together, reason."""
    import pandas as pd

    rows = [
        (" and ".join(" or ".join(sorted(labels)) for labels in rule.values()), reason)
        for rule, reason in config.impossible
    ]
    return pd.DataFrame(rows, columns=["never together", "reason"])


def questions(asked: pd.DataFrame, documents: pd.DataFrame, config: Config) -> pd.DataFrame:
    """Return questions with their categories under the names of a configuration, and measures of each.

    Parameters
    ----------
    asked : DataFrame
        The questions of `ragkit.datasets.load("liverag")`.
    documents : DataFrame
        With all gold documents, and any others.
    config : Config

    Returns
    -------
    DataFrame
        question_id, text, type, answer, facts, gold_doc_ids, claims by class; a column for each
        categorization; words, answer_words, claims (direct ones), overlap (share of the question's
        word stems, stop words aside, that its documents have), unknown (share of its words that
        are in no document and in no other question), polite, in_length (1 or 0; missing where
        Table 1 gives no length).

    Raises
    ------
    DataError
        If a question has a category that the configuration does not have.
    """
    frame = asked.copy()
    for name, choices in config.categorizations.items():
        names = {category_key(choice.name): choice.name for choice in choices}
        frame[name] = frame[category_key(name)].map(names)
        if frame[name].isna().any():
            strange = frame.loc[frame[name].isna(), category_key(name)].iloc[0]
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
    ends = [LENGTHS.get(kind, (np.nan, np.nan)) for kind in frame["Phrasing"]]
    frame["in_length"] = [
        np.nan if np.isnan(least) else float(least <= n <= most)
        for n, (least, most) in zip(frame["words"], ends, strict=True)
    ]
    return frame


def _words(text: str) -> list[str]:
    return WORD.findall(text.lower())


def _overlap(question: str, document: str) -> float:
    """Return the share of a question's stems, stop words aside, that a document has."""
    asked = set(stems([word for word in _words(question) if word not in STOP_WORDS]))
    return len(asked & set(stems(_words(document)))) / len(asked) if asked else 0.0


def mix(frame: pd.DataFrame, config: Config, *, level: float = 0.95) -> pd.DataFrame:
    """Return how often each category was drawn beside its probability, with Wilson's interval.

    Parameters
    ----------
    frame : DataFrame
        From `questions`.
    config : Config
    level : float in (0, 1)

    Returns
    -------
    DataFrame
        categorization, category, configured, questions, share, low, high
    """
    import pandas as pd

    rows = []
    for name, choices in config.categorizations.items():
        counts = frame[name].value_counts()
        strange = set(counts.index) - {c.name for c in choices}
        if strange:
            raise DataError(f"{name}: the configuration has no {min(strange)!r}")
        for c in choices:
            n = int(counts.get(c.name, 0))
            share, low, high, _ = stats.wilson_interval(n, len(frame), level=level)
            rows.append((name, c.name, c.probability, n, share, low, high))
    columns = ["categorization", "category", "configured", "questions", "share", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def mix_tests(table: pd.DataFrame) -> pd.DataFrame:
    """Test each categorization's counts against its probabilities; p-values adjusted by Holm.

    Parameters
    ----------
    table : DataFrame
        From `mix`.

    Returns
    -------
    DataFrame
        categorization, categories, least_expected (questions), G2 (likelihood ratio), df, p, p_holm.
        The p-value takes G2 as chi-square distributed, which wants 5 expected questions or more. A
        categorization with a single possible category cannot be tested and is left out.

    References
    ----------
    Wilks (1938), The large-sample distribution of the likelihood ratio.
    """
    import pandas as pd
    from scipy.stats import power_divergence

    rows = []
    for name, group in table.groupby("categorization", sort=False):
        possible = group[group["configured"] > 0]
        if group.loc[group["configured"] == 0, "questions"].any():
            raise DataError(f"{name}: a category of probability 0 was drawn")
        if len(possible) < 2:
            continue
        seen, chances = possible["questions"].to_numpy(), possible["configured"].to_numpy()
        expected = chances / chances.sum() * seen.sum()
        found = power_divergence(seen, expected, lambda_="log-likelihood")
        rows.append(
            (name, len(possible), expected.min(), found.statistic, len(possible) - 1, found.pvalue)
        )
    columns = ["categorization", "categories", "least_expected", "G2", "df", "p"]
    tests = pd.DataFrame(rows, columns=columns)
    return tests.assign(p_holm=stats.holm(tests["p"]) if len(tests) else [])


def effects(frame: pd.DataFrame, *, level: float = 0.95, seed: int = 0) -> pd.DataFrame:
    """Return what each category shows of what its name promises (`EFFECTS`).

    Parameters
    ----------
    frame : DataFrame
        From `questions`.
    level : float in (0, 1)
    seed : int

    Returns
    -------
    DataFrame
        categorization, measure, category, n, value, low, high: means with BCa bootstrap intervals
        over questions, shares with Wilson's. Categories without a question have no row.
    """

    return _by_category(frame, EFFECTS, level, seed)


def means(
    frame: pd.DataFrame, column: str, names: Sequence[str], *, level: float = 0.95, seed: int = 0
) -> pd.DataFrame:
    """Return the mean of a column by category, with its BCa bootstrap interval over questions.

    Parameters
    ----------
    frame : DataFrame
        From `questions`, with `column`.
    column : str
    names : sequence of str
        Categorizations.
    level : float in (0, 1)
    seed : int

    Returns
    -------
    DataFrame
        categorization, category, n, share (the mean), low, high
    """
    wanted = [(name, "share", column) for name in names]
    table = _by_category(frame, wanted, level, seed)
    return table.drop(columns="measure").rename(columns={"value": "share"})


def _by_category(frame: pd.DataFrame, wanted, level: float, seed: int) -> pd.DataFrame:
    """Return the mean of columns by category: `wanted` are categorization, measure and column."""
    import pandas as pd

    rows = []
    for name, measure, column in wanted:
        for category in _order(frame, name):
            values = frame.loc[frame[name] == category, column].dropna()
            if values.empty:
                continue
            if column in SHARES:
                value, low, high, n = stats.wilson_interval(
                    int(values.sum()), len(values), level=level
                )
            else:
                value, low, high, n = stats.bootstrap_interval(values, level=level, seed=seed)
            rows.append((name, measure, category, n, value, low, high))
    columns = ["categorization", "measure", "category", "n", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def _order(frame: pd.DataFrame, name: str) -> list[str]:
    """Return the categories that occur, in Table 1's order, then others as they come."""
    found = list(dict.fromkeys(frame[name]))
    return sorted(found, key=lambda c: KNOWN[name].index(c) if c in KNOWN.get(name, ()) else 99)


def legibility(
    frame: pd.DataFrame, names: Sequence[str], *, folds: int = 5, seed: int = 0
) -> pd.DataFrame:
    """Return how well each categorization's category can be told from the question's text alone.

    A linear support vector machine on words, word pairs and letter triples, tried on held-out folds. What it tells
    at the rate of chance may still be there: it knows the words that it has seen, and so not that
    a word is misspelt.

    Parameters
    ----------
    frame : DataFrame
        With `text` and a column for each of `names`.
    names : sequence of str
    folds : int, at least 2
    seed : int

    Returns
    -------
    DataFrame
        categorization, categories, n, chance, balanced_accuracy, low, high: the mean over categories of the
        share of questions told right; its 95 % interval comes from binomial draws
        within categories. Categories with fewer than `folds` questions are left out.
    """
    import pandas as pd
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.svm import LinearSVC

    if folds < 2:
        raise UsageError(f"folds must be at least 2, not {folds}")
    rows = []
    for name in names:
        counts = frame[name].value_counts()
        part = frame[frame[name].isin(counts.index[counts >= folds])]
        truth = part[name].to_numpy()
        labels = sorted(set(truth))
        if len(labels) < 2:
            continue
        seen = make_union(
            TfidfVectorizer(token_pattern=r"\w+|[^\w\s]", ngram_range=(1, 2), sublinear_tf=True),
            TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), sublinear_tf=True),
        )
        model = make_pipeline(seen, LinearSVC(class_weight="balanced", random_state=seed))
        split = StratifiedKFold(folds, shuffle=True, random_state=seed)
        right = cross_val_predict(model, part["text"], truth, cv=split) == truth
        rng = np.random.default_rng(seed)
        draws = np.mean(
            [
                rng.binomial((n := (truth == c).sum()), right[truth == c].mean(), 4000) / n
                for c in labels
            ],
            axis=0,
        )
        value = np.mean([right[truth == c].mean() for c in labels])
        low, high = np.quantile(draws, [0.025, 0.975])
        rows.append((name, len(labels), len(part), 1 / len(labels), value, low, high))
    columns = ["categorization", "categories", "n", "chance", "balanced_accuracy", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def examples(frame: pd.DataFrame, documents: pd.DataFrame) -> list[dict]:
    """Return questions with their claims and documents, as `ragkit.explore.cards` reads them.

    Parameters
    ----------
    frame : DataFrame
        From `questions`.
    documents : DataFrame
        With all gold documents.
    """
    texts = documents.set_index("doc_id")["text"]
    named = [name for name in KNOWN if name in frame]
    return [
        {
            "question": row["text"],
            "correct": row["text"],
            "categories": [row[name] for name in named],
            "claims": {kind: row[f"claims_{kind}"] for kind in ("direct", "useful", "useless")},
            "documents": [texts[doc_id] for doc_id in row["gold_doc_ids"]],
            "marked": [],
        }
        for row in frame.to_dict("records")
    ]
