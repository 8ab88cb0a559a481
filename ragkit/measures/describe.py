"""Descriptive statistics of documents and questions, as the papers' data sections print them.

>>> from ragkit import datasets
>>> bench = datasets.load("enterpriserag_bench")
>>> composition(bench.documents).loc["total", "documents"] == len(bench.documents)
np.True_
>>> gold_sizes(bench.questions).loc[["basic", "conflicting_info"], ["mean", "min", "max"]]
                  mean  min  max
type
basic              1.0  1.0  1.0
conflicting_info   2.0  2.0  2.0
>>> multi_gold_share(bench.questions)[["basic", "conflicting_info"]].tolist()
[0.0, 1.0]
>>> source_coverage(bench.questions).index[0]
'basic'
>>> gold_source_share(bench.questions).between(0, 1).all()
np.True_
"""

from __future__ import annotations

import pandas as pd

from ragkit import checks
from ragkit import text as texts
from ragkit.errors import DataError


def lengths(frame: pd.DataFrame, *, by: str, column: str = "text", unit: str = "characters"):
    """Return the lengths of texts by group (EnterpriseRAG-Bench, Table 9; WixQA, Table 2).

    `by` and `column` are the columns of groups and of texts, `unit` a name in `ragkit.text.UNITS`.
    By group, in the order of the frame: n, missing (rows without a text), mean, median, p95 (NaN
    without any text). Raises `UsageError` if a column or the unit is unknown, `DataError` if no row
    has a text.

    >>> frame = pd.DataFrame({"type": ["guide", "guide", "note"], "text": ["a b c", "a", None]})
    >>> lengths(frame, by="type", unit="words")
           n  missing  mean  median  p95
    type
    guide  2        0   2.0     2.0  2.9
    note   0        1   NaN     NaN  NaN
    """
    for name in (by, column):
        checks.choice(name, "column", frame.columns)
    present = frame[frame[column].notna()]
    if present.empty:
        raise DataError(f"no row has a {column}")
    sizes = pd.Series(texts.lengths(present[column], unit))
    groups = sizes.groupby(present[by].to_numpy(), sort=False, dropna=False)
    table = groups.agg(["size", "mean", "median"]).rename(columns={"size": "n"})
    table["p95"] = groups.quantile(0.95)
    rows = frame.groupby(by, sort=False, dropna=False).size()
    table = table.reindex(rows.index).fillna({"n": 0}).astype({"n": int})
    table.insert(1, "missing", rows - table["n"])
    return table


def composition(documents: pd.DataFrame) -> pd.DataFrame:
    """Return a corpus by source: documents, and mean, median and p95 of their characters.

    The last row, "total", has only the number of documents (EnterpriseRAG-Bench, Tables 1 and 9).
    """
    table = lengths(documents, by="source").rename(columns={"n": "documents"})
    table.loc["total", "documents"] = len(documents)
    return table[["documents", "mean", "median", "p95"]]


def multi_gold_share(questions: pd.DataFrame) -> pd.Series:
    """Return, by type of question, the share (0 to 1) with more than one gold document."""
    several = questions["gold_doc_ids"].map(len) > 1
    return several.groupby(questions["type"], sort=False).mean()


def gold_sizes(questions: pd.DataFrame) -> pd.DataFrame:
    """Return the number of gold documents by type of question: n, mean, median, min, max.

    Types without any gold document are left out (EnterpriseRAG-Bench, Table 11).
    """
    sizes = questions["gold_doc_ids"].map(len)
    groups = sizes[sizes > 0].groupby(questions["type"], sort=False)
    return groups.agg(n="size", mean="mean", median="median", min="min", max="max").astype(float)


def source_coverage(questions: pd.DataFrame) -> pd.DataFrame:
    """Return how many questions of a type have a source in their tuples of source_types.

    Types without any source are left out (EnterpriseRAG-Bench, Table 10).
    """
    distinct = questions["source_types"].map(lambda kinds: tuple(dict.fromkeys(kinds)))
    pairs = questions[["type"]].assign(source_types=distinct).explode("source_types").dropna()
    table = pd.crosstab(pairs["type"], pairs["source_types"])
    order = [kind for kind in dict.fromkeys(questions["type"]) if kind in table.index]
    return table.loc[order].rename_axis(index="type", columns="source")


def gold_source_share(questions: pd.DataFrame) -> pd.Series:
    """Return the share of the questions with gold documents by source (EnterpriseRAG-Bench, D.2)."""
    with_gold = questions[questions["gold_doc_ids"].map(len) > 0]
    return with_gold["source_types"].map(set).explode().value_counts() / len(with_gold)


def median_tokens(frame: pd.DataFrame, column: str, *, by: str) -> pd.DataFrame:
    """Return the median length by group in every unit that "token" may mean.

    >>> frame = pd.DataFrame({"type": ["guide", "guide"], "text": ["Open the page.", "Save."]})
    >>> median_tokens(frame, "text", by="type")
           words  words_and_marks  cl100k_base  o200k_base
    type
    guide    2.0              3.0          3.0         3.0
    """
    units = [unit for unit in texts.UNITS if unit != "characters"]
    medians = {unit: lengths(frame, by=by, column=column, unit=unit)["median"] for unit in units}
    return pd.DataFrame(medians).astype(float)
