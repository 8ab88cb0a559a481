"""What the papers print, as data: every number of their tables, figures and running text.

One CSV a paper in `data/reported`, one number a line. `printed` is the number as the paper writes
it, `value` the same as a float in `unit`, and the five columns before them are its key:

    paper   wixqa, enterpriserag_bench or liverag
    table   "1" to "11"; "text:3.1" for the running text of a section, "appendix:B.4" for that of
            an appendix; "figure:3" for a figure; "leaderboard" for a public snapshot that is not
            part of the paper, as its notes say
    row, column, metric
            the table's own labels and the field's term, in lower case with underscores

A cell that cannot be read any more stays as a row without `printed` and `value`, with a note.
Contradictions are left as they are: a note names them, and `audit` finds them again by arithmetic.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from ragkit.errors import DataError, MissingData, UsageError, did_you_mean
from ragkit.paths import REPORTED

PAPERS = ("wixqa", "enterpriserag_bench", "liverag")
COLUMNS = ("paper", "table", "row", "column", "metric", "printed", "value", "unit", "note")
KEY = ("paper", "table", "row", "column", "metric")
COUNTS = {"questions", "documents", "pairs", "number", "epochs"}
UNITS = COUNTS | {
    *("percent", "fraction", "ratio", "score", "correlation", "cosine", "nats", "logit"),
    *("tokens", "characters", "words", "parameters", "minutes"),
}

_TABLE = re.compile(r"\d+|(?:text|figure|appendix):[\w.]+|leaderboard")
_METRIC = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_PRINTED = re.compile(
    r"~?(?P<sign>[-−])?(?P<whole>\d{1,3}(?:,\d{3})+|\d+)?(?P<fraction>\.\d+)?"
    r"(?P<suffix>k|M|BT?|T)?[%×]?"
)
_POWERS = {None: 0, "k": 3, "M": 6, "B": 9, "BT": 9, "T": 12}
_WORDS = {"zero": 0, "single": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
_WORDS |= {"six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}


def parse(printed: str) -> tuple[float, int]:
    """Return the value and the decimals of a number as a paper prints it.

    Parameters
    ----------
    printed : str
        Digits with an optional `~`, sign (hyphen or minus), thousands commas, a suffix k, M, B,
        BT (thousand million tokens) or T, and a trailing % or ×; or a word from zero to ten.

    Returns
    -------
    value : float
        "27%" is 27, "6,221" is 6221, "2M" is 2000000.
    decimals : int
        The last printed digit stands for `10 ** -decimals`: 3 for "0.061", -3 for "275k".

    Raises
    ------
    DataError
        If `printed` is no such number.
    """
    if printed in _WORDS:
        return float(_WORDS[printed]), 0
    match = _PRINTED.fullmatch(printed)
    if match is None or not (match["whole"] or match["fraction"]):
        raise DataError(f"{printed!r} is not a number as the papers print them")
    fraction = match["fraction"] or ""
    power = _POWERS[match["suffix"]]
    number = Decimal((match["whole"] or "0").replace(",", "") + fraction).scaleb(power)
    return float(-number if match["sign"] else number), len(fraction[1:]) - power


def load(
    paper: str | None = None, table: str | int | None = None, *, folder: Path | None = None
) -> pd.DataFrame:
    """Return the numbers that the papers print.

    Parameters
    ----------
    paper : {"wixqa", "enterpriserag_bench", "liverag"}, optional
        One paper; all three by default.
    table : str or int, optional
        One table, section or figure, as in the column `table`: 4, "text:3.2", "figure:3".
    folder : path, optional
        Where the CSV files lie; `data/reported` of the workspace by default.

    Returns
    -------
    pandas.DataFrame
        One row a number, in the order of the papers: paper, table, row, column, metric, printed,
        value (float, NaN for a lost cell), unit, note, and decimals (Int64, NA for a lost cell):
        `printed` is right to half a unit of its last digit, `0.5 * 10 ** -decimals`.

    Raises
    ------
    UsageError
        If `paper` or `table` is unknown.
    MissingData
        If a file is not there.
    DataError
        If a file is not UTF-8, is empty, lacks a column, repeats a key, has a value that its
        printed form does not have, or a lost cell without a note. The message names file and line.
    """
    if paper is not None and paper not in PAPERS:
        raise UsageError(f"no paper is called {paper!r}", did_you_mean(paper, PAPERS))
    folder = REPORTED if folder is None else Path(folder)
    frames = [_read(folder / f"{p}.csv", p) for p in PAPERS if paper in (None, p)]
    frame = pd.concat(frames, ignore_index=True)
    if table is not None:
        known = frame["table"].unique()
        if str(table) not in known:
            where = f"{paper} has" if paper else "the papers have"
            raise UsageError(f"{where} no table {str(table)!r}", did_you_mean(str(table), known))
        frame = frame[frame["table"] == str(table)].reset_index(drop=True)
    return frame


def _read(path: Path, paper: str) -> pd.DataFrame:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise MissingData(
            f"{path}: the numbers of {paper} are not there", "git restore data/reported"
        ) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise DataError(f"{path}: line {line} is not UTF-8") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = next(reader, None)
        if header is None:
            raise DataError(f"{path}: the file is empty", f"expected {', '.join(COLUMNS)}")
        for column in COLUMNS:
            if column not in header:
                raise DataError(
                    f"{path}: line 1 lacks the column {column!r}", f"found {', '.join(header)}"
                )
        if len(header) != len(COLUMNS):
            raise DataError(f"{path}: line 1 should have these columns: {', '.join(COLUMNS)}")
        rows, lines = [], {}
        for fields in reader:
            where = f"{path}: line {reader.line_num}"
            if len(fields) != len(COLUMNS):
                raise DataError(
                    f"{where} has {len(fields)} fields, expected {len(COLUMNS)}",
                    "a field with a comma needs quotes",
                )
            row = dict(zip(header, fields, strict=True))
            row["value"], row["decimals"] = _check(row, paper, where)
            key = tuple(row[column] for column in KEY)
            if key in lines:
                raise DataError(f"{where} repeats the key of line {lines[key]}: {', '.join(key)}")
            lines[key] = reader.line_num
            rows.append(row)
    except csv.Error as error:
        raise DataError(f"{path}: line {reader.line_num} is not CSV: {error}") from None
    if not rows:
        raise DataError(f"{path}: there is a header, but no number")
    frame = pd.DataFrame(rows, columns=[*COLUMNS, "decimals"])
    return frame.astype({"value": float, "decimals": "Int64"})


def _check(row: dict[str, str], paper: str, where: str) -> tuple[float, int | None]:
    """Return value and decimals of a row of text, or raise with what is wrong in it."""
    for column in (*KEY, "unit"):
        if not row[column].strip():
            raise DataError(f"{where} has an empty {column}")
    if row["paper"] != paper:
        raise DataError(f"{where} belongs to {row['paper']!r}, expected {paper!r}")
    if not _TABLE.fullmatch(row["table"]):
        raise DataError(
            f"{where}: {row['table']!r} is no table",
            'expected a number, "text:", "figure:" or "appendix:" with a number, or "leaderboard"',
        )
    if not _METRIC.fullmatch(row["metric"]):
        raise DataError(f"{where}: the metric {row['metric']!r} is not in snake_case")
    if row["unit"] not in UNITS:
        raise DataError(f"{where}: unknown unit {row['unit']!r}", did_you_mean(row["unit"], UNITS))
    if not row["printed"] and not row["value"]:
        if not row["note"].strip():
            raise DataError(f"{where} has neither a number nor a note that says why")
        return math.nan, None
    try:
        printed, decimals = parse(row["printed"])
    except DataError as error:
        raise DataError(f"{where}: {error.message}") from None
    try:
        value = float(row["value"])
    except ValueError:
        raise DataError(f"{where}: the value {row['value']!r} is not a number") from None
    if value != printed:
        raise DataError(f"{where} has the value {row['value']} but prints {row['printed']!r}")
    return value, decimals


# ------------------------------------------------------------------------------ the audit


def audit(*, folder: Path | None = None) -> pd.DataFrame:
    """Check what the papers say against their own numbers, by arithmetic.

    Sums, weighted means, shares, orders and ranges that can be computed from printed numbers
    alone; nothing is measured. A printed number stands for the interval that rounds to it, so a
    claim fails only where no rounding can save it, except where the claim says "as printed".

    Parameters
    ----------
    folder : path, optional
        As in `load`.

    Returns
    -------
    pandas.DataFrame
        One row a claim: paper; claim; printed and computed (float: what the paper states or
        implies, and what its other numbers give; for an order, the number of comparisons and how
        many of them hold); holds (bool); note.

    Raises
    ------
    MissingData, DataError
        As `load`; a `DataError` also where a number that a claim needs is not in the files.
    """
    rows = []
    for paper, claims in zip(PAPERS, (_wixqa, _enterpriserag_bench, _liverag), strict=True):
        numbers = _Numbers(load(paper, folder=folder), paper)
        try:
            rows += [(paper, *claim) for claim in (*claims(numbers), *_repeated(numbers))]
        except KeyError as error:
            raise DataError(f"reported numbers of {paper}: the audit misses {error}") from None
    return pd.DataFrame(rows, columns=["paper", "claim", "printed", "computed", "holds", "note"])


class _Numbers:
    """The numbers of one paper, and how far rounding may have moved each (`half`)."""

    def __init__(self, frame: pd.DataFrame, paper: str):
        self.paper = paper
        frame = frame.dropna(subset="value")
        half = 0.5 * 10.0 ** -frame["decimals"].astype(float)
        whole = frame["unit"].isin(COUNTS) & (frame["decimals"] == 0)
        self.frame = frame.assign(half=half.mask(whole & ~frame["printed"].str.startswith("~"), 0))

    def select(self, table, **labels) -> pd.DataFrame:
        frame = self.frame[self.frame["table"] == str(table)]
        for name, label in labels.items():
            frame = frame[frame[name] == label]
        if frame.empty:
            wanted = ", ".join(f"{name}={label}" for name, label in labels.items())
            raise DataError(
                f"reported numbers of {self.paper}: none in table {table} with {wanted}"
            )
        return frame

    def column(self, table, column: str, metric: str | None = None) -> pd.Series:
        """Return the values of one column, by row."""
        labels = {"column": column} | ({"metric": metric} if metric else {})
        return self.select(table, **labels).set_index("row")["value"]

    def grid(
        self, table, metric: str | None = None, *, values: str = "value", without: tuple = ()
    ) -> pd.DataFrame:
        """Return a table as rows x columns, less some rows."""
        frame = self.select(table, **({"metric": metric} if metric else {}))
        frame = frame[~frame["row"].isin(without)]
        grid = frame.pivot(index="row", columns="column", values=values)
        holes = grid.stack(future_stack=True).isna()
        if holes.any():
            raise DataError(
                f"reported numbers of {self.paper}: table {table} lacks {holes.idxmax()}"
            )
        return grid

    def get(self, table, row: str, column: str, metric: str | None = None) -> float:
        labels = {"row": row, "column": column} | ({"metric": metric} if metric else {})
        frame = self.select(table, **labels)
        if len(frame) > 1:
            raise DataError(
                f"reported numbers of {self.paper}: {row}, {column} of table {table} has "
                f"{len(frame)} metrics, expected one"
            )
        return float(frame["value"].iloc[0])


def _equal(claim: str, printed, computed, *, within: float = 0.0, note: str = "") -> tuple:
    printed, computed = float(printed), float(computed)
    return claim, printed, computed, bool(abs(printed - computed) <= within + 1e-9), note


def _order(claim: str, holds: pd.Series | dict, *, note: str = "") -> tuple:
    """Count how many of the named comparisons hold, and name the others."""
    holds = pd.Series(holds, dtype=bool)
    failing = [name if isinstance(name, str) else " ".join(name) for name in holds.index[~holds]]
    if failing:
        note = "; ".join(filter(None, [note, "not for " + ", ".join(failing)]))
    return _equal(claim, len(holds), holds.sum(), note=note)


def _true(claim: str, holds: bool, *, note: str = "") -> tuple:
    return _equal(claim, 1, holds, note=note)


def _repeated(numbers: _Numbers) -> Iterator[tuple]:
    """Numbers of the text or the snapshot that are printed elsewhere under the same labels."""
    for key, group in numbers.frame.groupby(["row", "column", "metric"], sort=False):
        if len(group) > 1 and not group["table"].str.isdigit().all():
            value, half = group["value"], group["half"]
            first = value.iloc[0]
            other = value.iloc[(value - first).abs().argmax()]
            agree = (value - half).max() <= (value + half).min() + 1e-9
            where = ", ".join(group["table"])
            claim = f"the same wherever printed: {' / '.join(key)}"
            yield claim, first, other, bool(agree), f"in {where}"


def _wixqa(n: _Numbers) -> Iterator[tuple]:
    shares = n.select("text:3.1", column="share")
    spread = shares["half"].sum()
    yield _equal(
        "section 3.1: the shares of the article types add up to 100 as printed",
        100,
        shares["value"].sum(),
        note=f"rounding to whole percents alone can move the sum by {spread:g}",
    )
    yield _equal(
        "section 3.1: as many article types as the text announces",
        n.get("text:3.1", "knowledge_base", "article_types"),
        len(shares),
    )
    yield _equal(
        "section 3.4: one synthetic question for each article",
        n.get("text:3.1", "knowledge_base", "size"),
        n.get(2, "synthetic", "size"),
    )
    names = {
        "expertwritten": "wixqa_ew",
        "simulated": "wixqa_simulated",
        "synthetic": "wixqa_synthetic",
    }
    sizes = n.column(1, "size")
    yield _order(
        "Table 1: the sizes of the three sets are those of Table 2",
        {a: n.get(2, a, "size") == sizes[b] for a, b in names.items()},
    )
    share = n.column(2, "multi_article")
    yield _true(
        "section 3.1: more multi-article answers in ExpertWritten than in Simulated",
        share["expertwritten"] > share["simulated"],
    )
    scores = {name: n.grid(t) for name, t in zip(names, (3, 4, 5), strict=True)}
    recall = {name: frame["context_recall"] for name, frame in scores.items()}
    yield _order(
        "section 4.4: E5 has a higher context recall than BM25 with every generator and set",
        {
            f"{name}, {row}": series[row] > series[row.replace("e5+", "bm25+")]
            for name, series in recall.items()
            for row in series.index
            if row.startswith("e5+")
        },
    )
    expert, simulated, synthetic = scores.values()
    order = (synthetic > expert) & (expert > simulated)
    yield _order(
        "section 4.4: every score falls from Synthetic to ExpertWritten to Simulated",
        order.stack(),
    )
    answer = ["f1", "bleu", "rouge_1", "rouge_2", "factuality"]
    contested = {}
    for name, frame in scores.items():
        for retriever in ("bm25", "e5"):
            part = frame.loc[frame.index.str.startswith(retriever + "+"), answer]
            contested[f"{name}, {retriever}"] = not (part == part.max()).all(axis=1).any()
    yield _order("section 4.4: no generator leads on all five answer metrics", contested)
    yield _order(
        "Tables 3 to 5: ROUGE-2 is at most ROUGE-1",
        {
            f"{name}, {row}": frame.at[row, "rouge_2"] <= frame.at[row, "rouge_1"]
            for name, frame in scores.items()
            for row in frame.index
        },
    )
    for name, series in recall.items():
        by_retriever = series.groupby(series.index.str.split("+").str[0])
        yield _equal(
            f"Tables 3 to 5: context recall on {name} depends on the retriever alone, as printed",
            0,
            (by_retriever.max() - by_retriever.min()).max(),
            note="the widest gap between generators with the same retrieved text",
        )
    for table, metric in (("appendix:C", "factuality"), ("appendix:D", "context_recall")):
        yield _equal(
            f"appendix {table[-1]}: levels and rating of the {metric} prompt have the same highest value",
            n.get(table, metric, "highest", "score_scale"),
            n.get(table, metric, "highest", "rubric_level"),
            note="how levels become ratings is not said",
        )


def _enterpriserag_bench(n: _Numbers) -> Iterator[tuple]:
    documents = n.column(9, "documents")
    total = documents.pop("total")
    yield _equal("Table 9: the sources add up to the corpus", total, documents.sum())
    yield _equal(
        "abstract: as many source types as Table 9 lists",
        n.get("text:abstract", "corpus", "source_types"),
        len(documents),
    )
    about = n.select(1, column="approximate").set_index("row")
    whole = about.loc["total"]
    about = about.drop(index="total")
    yield _equal(
        "Table 1: the round figures add up to the round total",
        whole["value"],
        about["value"].sum(),
        within=about["half"].sum() + whole["half"],
    )
    step = about["value"].map(lambda value: 5000 if value >= 10_000 else 1000)
    nearest = (documents[about.index] / step).round() * step
    yield _order(
        "Table 1: each figure is Table 9's to the nearest 5,000, or 1,000 below 10,000",
        about["value"] == nearest,
    )
    yield _equal(
        "abstract: the corpus is 500,000 documents to one digit",
        n.get("text:abstract", "total", "approximate"),
        float(f"{total:.0e}"),
    )
    yield _order(
        "section 2: Slack and Gmail have at least ten times the documents of Confluence",
        documents[["slack", "gmail"]] >= 10 * documents["confluence"],
    )
    for row in n.select("appendix:D.2", column="corpus").itertuples():
        share = 100 * documents[row.row] / total
        yield _equal(
            f"appendix D.2: share of {row.row} in the corpus", row.value, share, within=row.half
        )
    lengths = n.grid(9, without=("total", "lengths"))
    length = lengths["mean"]
    ratios = pd.Series(
        {
            f"{a} to {b}": length[a] / length[b]
            for a in ("fireflies", "confluence")
            for b in ("slack", "hubspot")
        }
    )
    low, high = (n.get("appendix:D.1", "long_sources", end) for end in ("lowest", "highest"))
    yield _order(
        "appendix D.1: transcripts and wiki pages are 3 to 4 times as long as threads and records",
        ratios.between(low, high),
        note=f"the ratios of the means run from {ratios.min():.2f} to {ratios.max():.2f}",
    )
    yield _order(
        "Table 9: mean and median are at most the 95th percentile",
        lengths[["mean", "median"]].max(axis=1) <= lengths["p95"],
    )

    count = n.column(2, "questions")
    questions = count.pop("total")
    yield _equal("Table 2: the types add up to all questions", questions, count.sum())
    yield _equal(
        "abstract: as many question types as Table 2 lists",
        n.get("text:abstract", "total", "question_types"),
        len(count),
    )
    listed = n.column(10, "questions")
    yield _order("Table 10: Total Qs is the count of Table 2", listed == count[listed.index])

    cells = n.grid(10, "questions_with_source")
    gold = n.grid(11)
    half = n.grid(11, values="half")["mean"]
    with_gold = count[gold.index]
    used = 100 * cells.sum() / with_gold.sum()
    for row in n.select("appendix:D.2", column="gold_source").itertuples():
        yield _equal(
            f"appendix D.2: share of questions with a gold document in {row.row}",
            row.value,
            used[row.row],
            within=row.half,
            note=f"of {with_gold.sum():.0f} questions; not a share of gold documents",
        )
    sums = cells.sum(axis=1)
    for name in gold.index:
        slack = with_gold[name] * half[name] if gold.at[name, "min"] < gold.at[name, "max"] else 0
        yield _equal(
            f"Table 10 caption: the {name} row adds up to its gold documents of Table 11",
            sums[name],
            with_gold[name] * gold.at[name, "mean"],
            within=slack,
            note="printed: the row's sum; computed: mean of Table 11 x questions",
        )
    most = with_gold * (gold["mean"] + half)
    yield _order(
        "Table 10 as questions with each source: no row below its questions or above its documents",
        (sums >= with_gold) & (sums <= most),
    )
    yield _order(
        "Table 10: no cell above the questions of its row",
        cells.max(axis=1) <= with_gold,
    )
    yield _order(
        "Table 11: mean and median lie between minimum and maximum",
        (gold[["mean", "median"]].max(axis=1) <= gold["max"])
        & (gold[["mean", "median"]].min(axis=1) >= gold["min"]),
    )
    low, high = (n.get("text:4.1", "completeness_cluster", end) for end in ("lowest", "highest"))
    yield _true(
        "section 4.1: completeness questions have no more gold documents than a cluster",
        gold.at["completeness", "max"] <= high,
    )

    overall = n.grid(6)
    for metric, weights in (("correctness", count), ("document_recall", with_gold)):
        by_type = n.grid(7, metric)
        error = n.grid(7, metric, values="half")
        for system in by_type:
            row = n.select(6, row=metric, column=system).iloc[0]
            yield _equal(
                f"Table 7: the {metric} of {system}, weighted by questions, is that of Table 6",
                row["value"],
                np.average(by_type[system], weights=weights[by_type.index]),
                within=row["half"] + np.average(error[system], weights=weights[error.index]),
            )
    correct = n.grid(7, "correctness")
    error = n.grid(7, "correctness", values="half")
    right = (correct.mul(count[correct.index], axis=0) / 100).round()
    fits = (100 * right.div(count, axis=0) - correct).abs() <= error + 1e-9
    yield _order(
        "Table 7: every correctness is a whole number of questions",
        fits.stack(),
    )
    for system in correct:
        yield _equal(
            f"Table 7: those whole numbers give the overall correctness of {system}",
            overall.at["correctness", system],
            round(100 * right[system].sum() / questions, 1),
        )
    recall = n.grid(7, "document_recall")
    one = gold.index[gold["max"] == 1]
    found = (recall.loc[one].mul(count[one], axis=0) / 100).round()
    error = n.grid(7, "document_recall", values="half").loc[one]
    fits = (100 * found.div(count[one], axis=0) - recall.loc[one]).abs() <= error + 1e-9
    yield _order(
        "Table 7: with one gold document, every recall is a whole number of questions",
        fits.stack(),
    )
    for system in ("bm25", "vector"):
        hits = (recall[system] * with_gold * gold["min"]).sum() / 100 / with_gold.sum()
        depth = n.get("text:6.1", system, "top_k")
        invalid = n.select(6, row="invalid_extra_documents", column=system).iloc[0]
        yield _equal(
            f"Table 6: found and invalid documents of {system} fit into the ten retrieved",
            depth,
            max(depth, invalid["value"] - invalid["half"] + hits),
            note="found: recall x questions x the smallest gold set of each type, a lower bound",
        )
    score = n.select("leaderboard", row="leaderboard_score").set_index("column")["value"]
    for system in overall:
        a, b = overall.at["correctness", system], overall.at["completeness", system]
        yield _equal(
            f"leaderboard: the score of {system} is at most its correctness and completeness",
            score[system],
            min(score[system], a, b),
        )

    for metric in ("correctness", "document_recall"):
        yield _true(
            f"section 6.1: BM25 has the highest {metric}",
            overall.loc[metric].idxmax() == "bm25",
        )
    bar = n.get("text:6.1", "completeness", "threshold")
    above = overall.columns[overall.loc["completeness"] > bar]
    yield _true(
        "section 6.1: the bash agent alone exceeds 60 % completeness",
        list(above) == ["bash_agent"],
    )
    perfect = recall.columns[recall.loc["miscellaneous"] == 100]
    yield _true(
        "section 6.1: the bash agent alone has perfect recall on miscellaneous questions",
        list(perfect) == ["bash_agent"],
    )
    yield _true(
        "section 6.1: vector search is more often correct than BM25 on high-level questions",
        correct.at["high_level", "vector"] > correct.at["high_level", "bm25"],
    )
    for metric, frame in (("correctness", correct), ("document_recall", recall)):
        mean = frame.mean(axis=1)
        yield _true(
            f"section 6.1: completeness questions are the hardest, by mean {metric} of the systems",
            mean.idxmin() == "completeness",
            note=f"lowest: {mean.idxmin()}; by system: {', '.join(frame.idxmin())}",
        )
    moved = n.column("appendix:B.4", "share")
    yield _equal(
        "appendix B.4: both shuffles together",
        moved["all_shuffles"],
        moved["random_shuffle"] + moved["llm_shuffle"],
    )
    sizes = n.column("text:6.2", "corpus_size")
    yield _equal(
        "section 6.2: as many corpus sizes as the text announces",
        n.get("text:6.2", "scaling", "sizes"),
        len(sizes),
    )
    yield _equal("section 6.2: the largest size is the whole corpus", sizes.max(), total)


def _liverag(n: _Numbers) -> Iterator[tuple]:
    size = n.get("text:abstract", "liverag", "questions")
    session, shared = (n.get("text:1", row, "questions") for row in ("session", "shared"))
    sessions = n.get("text:1", "challenge", "sessions")
    yield _equal("section 1: the sessions less the shared", size, sessions * session - shared)
    bins = n.grid(2)[["hd", "d", "m", "e"]]
    weights = bins.loc["questions"]
    parts = n.grid(3)
    yield _equal("Table 2: the quartiles add up to all questions", size, weights.sum())
    yield _equal(
        "Table 2: the quartiles differ by at most one question",
        1,
        weights.max() - weights.min(),
    )
    yield _equal("Table 3: single- and multi-document add up", size, parts["questions"].sum())

    from_bins = np.average(bins.loc["disc"], weights=weights)
    from_parts = np.average(parts["disc"], weights=parts["questions"])
    half = n.select(2, row="disc")["half"].max() + n.select(3, column="disc")["half"].max()
    yield _equal(
        "Tables 2 and 3: the same mean disc over all questions",
        from_bins,
        from_parts,
        within=half,
        note=f"printed: from Table 2, computed: from Table 3; rounding can explain {half:g}",
    )
    lower, upper = (n.column("text:4", end)[weights.index] for end in ("lower", "upper"))
    mean = np.average(parts["diff"], weights=parts["questions"])
    ends = [np.average(bound, weights=weights) for bound in (lower, upper)]
    yield _equal(
        "Table 3: the mean diff lies where the quartile bounds allow it",
        mean,
        np.clip(mean, *ends),
        note=f"between {ends[0]:.3f} and {ends[1]:.3f}",
    )
    yield _order(
        "section 4: each bin ends where the next begins",
        dict(zip(upper.index[:-1], upper.to_numpy()[:-1] == lower.to_numpy()[1:], strict=True)),
    )
    low, high = (n.get("text:3.2", "correctness", end) for end in ("lowest", "highest"))
    yield _order(
        "Table 2: mean ACS lies in the range of correctness, [-1, 2]",
        bins.loc["acs"].between(low, high),
    )
    steps = [f"{a} to {b}" for a, b in zip(bins.columns, bins.columns[1:], strict=False)]
    rises = np.diff(bins.loc["acs"]) > 0
    yield _order("section 4: mean ACS rises from bin to bin", dict(zip(steps, rises, strict=True)))
    falls = np.diff(bins.loc["disc"]) < 0
    yield _order("section 4: mean disc falls from bin to bin", dict(zip(steps, falls, strict=True)))
    yield _true(
        "section 4: the hardest bin discriminates least, with the bins as labelled",
        bins.loc["disc"].idxmin() == "hd",
        note="with the labels reversed it does",
    )
    yield _equal(
        "section 3.2: correctness, a harmonic mean of two proportions, exceeds 1 nowhere",
        1,
        high,
        note="the footnote's range needs another definition",
    )

    r = n.get("text:3.2", "diff", "acs")
    yield _true(
        "sections 1 and 4: lower diff is harder, so diff and ACS rise together",
        r > 0,
        note=f"the printed correlation is {r:g}",
    )
    yield _true(
        "section 5.1: multi-document questions are harder, with higher diff as harder",
        parts.at["multi_doc", "diff"] > parts.at["single_doc", "diff"],
    )
    yield _true(
        "section 5.1: multi-document questions discriminate less",
        parts.at["multi_doc", "disc"] < parts.at["single_doc", "disc"],
    )
    examples = n.grid(5)
    labels = {"easy": "e", "difficult": "d", "highly_difficult": "hd"}
    inside = {
        name: lower[label] <= examples.at[name, "diff"] < upper[label]
        for name, label in labels.items()
    }
    yield _order("Table 5: the examples lie in the bins that their captions name", inside)
    harder = list(labels)
    yield _order(
        "Table 5: of two examples, the harder one has the higher diff",
        {
            f"{b} over {a}": examples.at[b, "diff"] > examples.at[a, "diff"]
            for a, b in combinations(harder, 2)
        },
    )
    yield _order(
        "Table 5: of two examples, the harder one has the lower ACS",
        {
            f"{b} over {a}": examples.at[b, "acs"] < examples.at[a, "acs"]
            for a, b in combinations(harder, 2)
        },
        note="a question's ACS may leave the trend",
    )

    diversity = n.grid(4)
    others = diversity.drop(index="liverag")
    ours = diversity.loc["liverag"]
    for column, name in (("ngd", "n-gram diversity"), ("length_entropy", "length entropy")):
        yield _order(f"section 5.3: LiveRAG has the highest {name}", others[column] < ours[column])
    below = others.index[others["pos_cr"] < ours["pos_cr"]]
    yield _true(
        "section 5.3: TriviaQA alone has a lower PoS compression ratio",
        list(below) == ["triviaqa"],
    )
    yield _order(
        "section 5.3: n-gram diversity is a fraction, at most 1",
        diversity["ngd"] <= 1,
        note="a sum of one fraction for each order would fit",
    )
    order = n.get("text:5.3", "ngram_diversity", "highest_order")
    yield _order(
        "section 5.3: n-gram diversity as a sum over orders is at most their number",
        diversity["ngd"] <= order,
    )
    less = n.get(1, "phrasing", "short_search_query")
    more = n.get(1, "phrasing", "long_search_query")
    yield _equal(
        "Table 1: the shortest long search query has one word more than the longest short one",
        less,
        more + 1,
    )
