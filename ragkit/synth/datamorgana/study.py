"""A made set of questions as frames: its mix of categories, what they did to the words, rewordings.

What a notebook shows of `make_questions`; nothing here changes what is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ragkit import checks
from ragkit.errors import DataError, UsageError
from ragkit.measures import stats
from ragkit.synth.datamorgana import words
from ragkit.synth.datamorgana.collection import load
from ragkit.synth.datamorgana.config import KNOWN, Config, offline_only
from ragkit.synth.datamorgana.mistakes import error_rate
from ragkit.synth.datamorgana.offline import POLITE, Refused, about_facts, write
from ragkit.synth.datamorgana.report import Benchmark
from ragkit.synth.streams import Stream

if TYPE_CHECKING:
    import pandas as pd

# Where a question stands before it is reworded: each categorization's plainest category.
PLAIN = {
    "Answer Style": "unspecified",
    "Premise": "direct",
    "Phrasing": "concise-and-natural",
    "Linguistic Variation": "similar-to-document",
    "Politeness": "neutral",
    "Linguistic Correctness": "correct",
}
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
    ("Linguistic Correctness", "edits for each character", "error_rate"),
    ("Linguistic Correctness", "share of words misspelt", "misspelt"),
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


def documents(made: Benchmark, config: Config) -> pd.DataFrame:
    """Return how documents came and went: step, rule, documents.

    A document is left out by the first rule that it breaks, in the order of the rows; a criterion
    that the configuration does not name is not looked at and has no row.
    """
    import pandas as pd

    told = made.report["documents"]
    low, high = config.sampling["min_words"], config.sampling["max_words"]
    rules = {
        "duplicate": "equal texts",
        "too short": f"under {low} words",
        "too long": f"over {high} words",
    }
    for name, limit in config.filters.items():
        least = f"score under {limit.at_least}" if limit.at_least > 1 else ""
        most = f"score over {limit.at_most}" if limit.at_most < 5 else ""
        rules[name] = " or ".join(part for part in (least, most) if part) or "no limit"
    best = f"the best {config.sampling['per_subtopic']} of each subtopic by BM25"
    rows = [("found by topic", best, told["found by topic"])]
    rows += [
        (f"left out: {what}", rule, told["left out"].get(what, 0)) for what, rule in rules.items()
    ]
    rows += [("kept", "", told["kept"]), ("asked about", "", told["asked about"])]
    return pd.DataFrame(rows, columns=["step", "rule", "documents"])


def questions(made: Benchmark) -> pd.DataFrame:
    """Return a made set as a frame of questions, with its categories and what was measured of each.

    Parameters
    ----------
    made : Benchmark
        From the offline author, whose notes carry `error_rate` and `overlap`.

    Returns
    -------
    DataFrame
        question_id, text, type, answer, facts (all claims), gold_doc_ids; a column for each
        categorization; correct (the text without mistakes), words, answer_words, claims (direct
        ones), documents, overlap and misspelt (0 to 1), error_rate (edits for each character),
        polite, in_length (1 or 0; missing where Table 1 gives no length).

    Raises
    ------
    DataError
        If there is no question, or rows and notes do not belong together.
    """
    import pandas as pd

    if not made.rows:
        raise DataError("no questions")
    if [r["Index"] for r in made.rows] != [n["Index"] for n in made.notes]:
        raise DataError("the notes are not those of the questions")
    rows = []
    for row, note in zip(made.rows, made.notes, strict=True):
        chosen, text = row["DataMorgana_Config"], row["Question"]
        length = len(text.split())
        least, most = LENGTHS.get(chosen.get("Phrasing"), (None, None))
        rows.append(
            {
                "question_id": str(row["Index"]),
                "text": text,
                "type": chosen["Answer Type"],
                "answer": row["Answer"],
                "facts": tuple(c for kind in row["Answer_Claims"].values() for c in kind),
                "gold_doc_ids": tuple(d["doc_id"] for d in row["Supporting_Documents"]),
                **chosen,
                "correct": note["correct"],
                "words": length,
                "answer_words": len(row["Answer"].split()),
                "claims": len(row["Answer_Claims"]["direct"]),
                "documents": len(row["Supporting_Documents"]),
                "overlap": note["overlap"],
                "misspelt": misspelt(note["correct"], text),
                "error_rate": note["error_rate"],
                "polite": int(bool(POLITE.search(note["correct"]))),
                "in_length": np.nan if least is None else int(least <= length <= most),
            }
        )
    return pd.DataFrame(rows)


def misspelt(correct: str, written: str) -> float:
    """Return the share of words that are not as in the correct text.

    Raises
    ------
    DataError
        If the texts have different numbers of words: then no word has its counterpart.
    """
    one, other = correct.split(), written.split()
    if len(one) != len(other) or not one:
        raise DataError(f"{len(one)} and {len(other)} words: {correct!r}, {written!r}")
    return sum(a != b for a, b in zip(one, other, strict=True)) / len(one)


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


def rewordings(
    folder: str | Path, made: Benchmark, *, kind: str, config: Config, seed: int = 0
) -> pd.DataFrame:
    """Put the questions of an answer type into the words of every other category, one at a time.

    Each begins plain (`PLAIN`); one categorization after the other is then set to each of its
    other categories. A persona shows in what users say of themselves, so that it comes with a
    premise. The facts asked for and their documents stay the same; the value that a yes/no
    question proposes is drawn anew.

    Parameters
    ----------
    folder : path-like
        The documents that `made` was made from.
    made : Benchmark
        From the offline author.
    kind : str
        An answer type.
    config : Config
    seed : int

    Returns
    -------
    DataFrame
        index, categorization ("plain" for the beginning), category, text, correct, words, overlap
        (0 to 1), error_rate, refused (why it cannot be put so; empty if it can, and else the
        texts are empty and the numbers missing).

    Raises
    ------
    UsageError
        If there is no such answer type, or no question of it.
    """
    import pandas as pd

    checks.choice(kind, "answer type", KNOWN["Answer Type"])
    offline_only(config)
    collection = load(folder)
    steps = [("plain", "plain", {})]
    for name, choices in config.categorizations.items():
        for c in choices:
            if name == "User Persona":
                steps.append((name, c.name, {name: c.name, "Premise": "with-premise"}))
            elif name in PLAIN and c.name != PLAIN[name]:
                steps.append((name, c.name, {name: c.name}))
    rows = []
    for row, note in zip(made.rows, made.notes, strict=True):
        chosen, index = row["DataMorgana_Config"], row["Index"]
        if chosen["Answer Type"] != kind:
            continue
        facts = [collection.by_id[fact] for fact in note["facts"]]
        document = " ".join(d["content"] for d in row["Supporting_Documents"])
        about = about_facts(kind, facts, collection, Stream(seed, "rewordings", index))
        own = PLAIN | {"Answer Type": kind, "User Persona": chosen["User Persona"]}
        for name, category, change in steps:
            try:
                stream = Stream(seed, "rewording", index)
                text, correct = write(about, own | change, document, stream)
            except Refused as refused:
                rows.append((index, name, category, "", "", *[np.nan] * 3, str(refused)))
                continue
            share = words.overlap(correct, document, about.names)
            rate = error_rate(correct, text)
            rows.append((index, name, category, text, correct, len(text.split()), share, rate, ""))
    if not rows:
        raise UsageError(f"no {kind} question can be reworded")
    columns = ["index", "categorization", "category", "text", "correct", "words", "overlap"]
    return pd.DataFrame(rows, columns=[*columns, "error_rate", "refused"])


def reworded_effects(table: pd.DataFrame, *, level: float = 0.95, seed: int = 0) -> pd.DataFrame:
    """Return what each rewording changes against the same question put plainly.

    Parameters
    ----------
    table : DataFrame
        From `rewordings`.
    level : float in (0, 1)
    seed : int

    Returns
    -------
    DataFrame
        categorization, category, asked (questions that can be put plainly), n (those that can be
        put so, too), and the mean paired difference of words, overlap and error_rate, each with
        its BCa bootstrap interval: NAME, NAME_low, NAME_high.
    """
    import pandas as pd

    names = ["words", "overlap", "error_rate"]
    said = table[table["refused"] == ""].set_index("index")
    plain = said[said["categorization"] == "plain"]
    rows = []
    for name, category in dict.fromkeys(
        zip(table["categorization"], table["category"], strict=True)
    ):
        if name == "plain":
            continue
        own = said[(said["categorization"] == name) & (said["category"] == category)]
        both = own.index.intersection(plain.index)
        row = {"categorization": name, "category": category, "asked": len(plain), "n": len(both)}
        for column in names:
            gaps = (own.loc[both, column] - plain.loc[both, column]).astype(float)
            limits = (
                stats.bootstrap_interval(gaps, level=level, seed=seed)[:3]
                if len(gaps)
                else [np.nan] * 3
            )
            row |= dict(zip((column, f"{column}_low", f"{column}_high"), limits, strict=True))
        rows.append(row)
    return pd.DataFrame(rows)


def examples(made: Benchmark, indices: Sequence[int]) -> list[dict]:
    """Return questions with their claims and documents, as `ragkit.explore.cards` reads them.

    Parameters
    ----------
    made : Benchmark
    indices : sequence of int
        The `Index` of each question.

    Returns
    -------
    list of dict
        question, correct (the question without mistakes), categories, claims by class, documents
        (their texts), marked (what the documents say of the facts asked for, in their own words).

    Raises
    ------
    DataError
        If there is no such question.
    """
    rows = {row["Index"]: (row, note) for row, note in zip(made.rows, made.notes, strict=True)}
    missing = [index for index in indices if index not in rows]
    if missing:
        raise DataError(f"there is no question {missing[0]}; they run from 1 to {len(rows)}")
    found = []
    for row, note in (rows[index] for index in indices):
        texts, claims = [d["content"] for d in row["Supporting_Documents"]], row["Answer_Claims"]
        found.append(
            {
                "question": row["Question"],
                "correct": note["correct"],
                "categories": list(row["DataMorgana_Config"].values()),
                "claims": claims,
                "documents": texts,
                "marked": [mark for mark in dict.fromkeys(note["marks"]) if " " in mark],
            }
        )
    return found
