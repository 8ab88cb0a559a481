"""What the papers print, as data: every number of their tables, figures and running text.

One CSV a paper in `data/reported`, one number a line. `printed` is the number as the paper writes
it, `value` the same as a float in `unit`, and the five columns before them are its key::

    paper   wixqa, enterpriserag_bench or liverag
    table   "1" to "11"; "text:3.1" for the running text of a section, "appendix:B.4" for that of
            an appendix; "figure:3" for a figure; "leaderboard" for a public snapshot that is not
            part of the paper, as its notes say
    row, column, metric
            the table's own labels and the field's term, in lower case with underscores

`status` says what an unmeasured number is: a *setting*, a number *restated* from another place or
*quoted* from other people, true *by construction*, one that *needs data* or *needs a model*
(`command` would fill it), *human* work, or *not available*: the data behind it is not published.

A cell that cannot be read any more stays as a row without `printed` and `value`, with a note.
Contradictions are left as they are: a note names them, and `audit` finds them again by arithmetic.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd

from ragkit import checks, schema
from ragkit.errors import DataError
from ragkit.files import named, read_rows, read_text
from ragkit.paths import REPORTED

CLAIMS = REPORTED / "claims.toml"
_FORM = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
PAPERS, COLUMNS, KEY = (tuple(_FORM[name]) for name in ("papers", "columns", "key"))
_PRINTED = _FORM["printed"]


def parse(printed: str) -> tuple[float, int]:
    """Return the value and the decimals of a number as a paper prints it.

    `printed` is digits with an optional `~`, sign (hyphen or minus), thousands commas, a suffix k,
    M, B, BT (thousand million tokens) or T, and a trailing % or ×; or a word from zero to ten;
    else `DataError`. The last printed digit stands for `10 ** -decimals`.

    >>> parse("6,221"), parse("27%"), parse("275k")
    ((6221.0, 0), (27.0, 0), (275000.0, -3))
    """
    if printed in _PRINTED["words"]:
        return float(_PRINTED["words"][printed]), 0
    match = re.fullmatch(_PRINTED["pattern"], printed)
    if match is None or not (match["whole"] or match["fraction"]):
        raise DataError(f"{printed!r} is not a number as the papers print them")
    fraction, power = match["fraction"] or "", _PRINTED["powers"].get(match["suffix"], 0)
    number = Decimal((match["whole"] or "0").replace(",", "") + fraction).scaleb(power)
    return float(-number if match["sign"] else number), len(fraction[1:]) - power


def load(
    paper: str | None = None, table: str | int | None = None, *, folder: Path | None = None
) -> pd.DataFrame:
    """Return the numbers that the papers print, one a row, in the order of the papers.

    `paper` is "wixqa", "enterpriserag_bench" or "liverag" (default: all); `table` one table, section
    or figure, such as 4, "text:3.2" or "figure:3"; `folder` where the CSV files lie. The columns
    are theirs and decimals (Int64): `printed` is right to `0.5 * 10 ** -decimals`. A lost cell has
    neither value nor decimals.

    Raises `DataError`, with file and line, if a file is not UTF-8, is empty, lacks a column,
    repeats a key, has a value that its printed form does not have, or a lost cell without a note.

    >>> load("liverag", 4)[["row", "metric", "printed", "value"]].head(2)
            row                 metric printed  value
    0  triviaqa        ngram_diversity   3.045  3.045
    1  triviaqa  pos_compression_ratio   5.167  5.167
    """
    chosen = PAPERS if paper is None else [checks.choice(paper, "paper", PAPERS)]
    frame = pd.concat([_read(folder or REPORTED, name) for name in chosen], ignore_index=True)
    if table is not None:
        where = f"table of {paper or 'the papers'}"
        table = checks.choice(str(table), where, frame["table"].unique())
        frame = frame[frame["table"] == table].reset_index(drop=True)
    return frame


def _read(folder: Path, paper: str) -> pd.DataFrame:
    path = Path(folder) / f"{paper}.csv"
    rows = read_rows(path, COLUMNS)
    if len(rows[0]) != len(COLUMNS):
        raise DataError(f"{path}: line 1 should have these columns: {', '.join(COLUMNS)}")
    seen: dict[tuple, int] = {}
    for line, row in enumerate(rows, start=2):
        with named(f"{path}: line {line}"):
            row["value"], row["decimals"] = _check(row, paper)
            key = tuple(row[column] for column in KEY)
            if seen.setdefault(key, line) != line:
                raise DataError(f"repeats the key of line {seen[key]}: {', '.join(key)}")
    return pd.DataFrame(rows).astype({"value": float, "decimals": "Int64"})


def _check(row: dict[str, str], paper: str) -> tuple[float, int | None]:
    """Return value and decimals of a row of text, or raise with what is wrong in it."""
    for column, pattern in {"paper": paper, **_FORM["patterns"]}.items():
        if not re.fullmatch(pattern, row[column]):
            raise DataError(f"{column} should match {pattern}, found {row[column]!r}")
    if not row["printed"] and not row["value"]:
        if not row["note"].strip():
            raise DataError("neither a number nor a note that says why")
        return math.nan, None
    printed, decimals = parse(row["printed"])
    if schema.number(row["value"], "value") != printed:
        raise DataError(f"the value is {row['value']} and the text {row['printed']!r}")
    return printed, decimals


# ------------------------------------------------------------------------------ the audit


def audit(*, folder: Path | None = None) -> pd.DataFrame:
    """Check what the papers say against their own numbers, by arithmetic.

    The claims are in `data/reported/claims.toml`. A claim fails only where no rounding can save it,
    except where it says "as printed". Numbers that are printed in several places are claims, too.

    Returns a row a claim: paper; claim; printed and computed (what the paper states, and what its
    other numbers give; for an order, the number of comparisons and how many hold; NaN for a
    contradiction in words); holds; note. Raises `DataError` as `load`, and if a number is missing.

    >>> claims = audit()
    >>> claims["paper"].unique().tolist(), claims["holds"].all().item()
    (['wixqa', 'enterpriserag_bench', 'liverag'], False)
    """
    claims = tomllib.loads(read_text(CLAIMS))
    rows = []
    for paper in PAPERS:
        numbers = _Numbers(load(paper, folder=folder))
        try:
            found = [*_evaluate(claims[paper], numbers), *numbers.repeated()]
        except KeyError as error:
            raise DataError(f"reported numbers of {paper}: the audit misses {error}") from None
        rows += [(paper, *claim) for claim in found]
    return pd.DataFrame(rows, columns=["paper", "claim", "printed", "computed", "holds", "note"])


class _Numbers:
    """The numbers of a paper; the methods are what an expression of claims.toml may call.

    `half` is how far rounding may have moved a number.
    """

    def __init__(self, frame: pd.DataFrame):
        frame = frame.dropna(subset="value")
        half = 0.5 * 10.0 ** -frame["decimals"].astype(float)
        whole = frame["unit"].isin(_FORM["counts"]) & (frame["decimals"] == 0)
        whole &= ~frame["printed"].str.startswith("~")
        self.frame = frame.assign(half=half.mask(whole, 0))

    def select(self, table, **labels) -> pd.DataFrame:
        labels = {name: label for name, label in labels.items() if label is not None}
        frame = self.frame
        for name, label in {"table": str(table), **labels}.items():
            frame = frame[frame[name] == label]
        if frame.empty:
            raise KeyError(f"table {table}", labels)
        return frame

    def column(self, table, column: str, metric: str | None = None) -> pd.Series:
        return self.select(table, column=column, metric=metric).set_index("row")["value"]

    def grid(self, table, metric: str | None = None, *, values="value", without=()) -> pd.DataFrame:
        frame = self.select(table, metric=metric)
        frame = frame[~frame["row"].isin(without)]
        grid = frame.pivot(index="row", columns="column", values=values)
        holes = grid.stack(future_stack=True).isna()
        if holes.any():
            raise KeyError(f"table {table}", holes.idxmax())
        return grid

    def get(self, table, row: str, column: str, metric: str | None = None) -> float:
        return self.select(table, row=row, column=column, metric=metric)["value"].item()

    def repeated(self) -> Iterator[tuple]:
        """Yield numbers of the text or the snapshot that are printed elsewhere under the same labels."""
        for key, group in self.frame.groupby(["row", "column", "metric"], sort=False):
            if len(group) > 1 and not group["table"].str.isdigit().all():
                value, half = group["value"], group["half"]
                first = value.iloc[0]
                other = value.iloc[(value - first).abs().argmax()]
                agree = (value - half).max() <= (value + half).min() + 1e-9
                claim = f"the same wherever printed: {' / '.join(key)}"
                yield claim, first, other, bool(agree), f"in {', '.join(group['table'])}"


def _evaluate(paper: dict, numbers: _Numbers) -> Iterator[tuple]:
    """Yield claim, printed, computed, holds and note of each claim of a paper."""
    functions = {name: getattr(numbers, name) for name in ("select", "column", "grid", "get")}
    names = _bind({"__builtins__": _FUNCTIONS | functions}, paper["let"])
    for claim in paper["claim"]:
        for item in eval(claim["each"], names) if "each" in claim else [None]:
            here = _bind({**names, "item": item}, claim.get("let", {}))
            note = claim.get("note", "").format_map(here)
            if "equal" in claim:
                printed, computed = (float(eval(side, here)) for side in claim["equal"])
            elif "true" in claim:
                printed, computed = 1.0, float(eval(claim["true"], here))
            elif "against" in claim:  # a contradiction in words
                printed = computed = math.nan
                note = claim["against"].format_map(here)
            else:
                holds = pd.Series(eval(claim["all"], here), dtype=bool)
                printed, computed = float(len(holds)), float(holds.sum())
                labels = [name if isinstance(name, str) else " ".join(name) for name in holds.index]
                if failing := [name for name, held in zip(labels, holds, strict=True) if not held]:
                    note = "; ".join(filter(None, [note, "not for " + ", ".join(failing)]))
            within = eval(claim.get("within", "0"), here) + 1e-9
            holds = bool(abs(printed - computed) <= within)
            yield claim["text"].format_map(here), printed, computed, holds, note


def _bind(names: dict, expressions: dict[str, str]) -> dict:
    for name, expression in expressions.items():
        names[name] = eval(expression, names)
    return names


def natural_parameter(mean: float) -> float:
    """Return the natural parameter of the continuous Bernoulli distribution with a mean in (0, 1).

    >>> natural_parameter(0.5), round(natural_parameter(0.7), 2)
    (0.0, 2.67)
    """
    from scipy.optimize import brentq

    if abs(mean - 0.5) < 1e-7:
        return 0.0
    ends = (1e-6, 1e6) if mean > 0.5 else (-700, -1e-6)
    return brentq(lambda eta: -1 / np.expm1(-eta) - 1 / eta - mean, *ends)


# What an expression may call, beside the methods of `_Numbers`.
_FUNCTIONS = {"Series": pd.Series, "average": np.average, "clip": np.clip, "exp": np.exp}
_FUNCTIONS["natural_parameter"] = natural_parameter
_FUNCTIONS |= {f.__name__: f for f in (dict, float, len, list, max, min, round, zip)}
