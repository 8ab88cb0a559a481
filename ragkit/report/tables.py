"""What the papers print beside what was measured: every number with exactly one status.

================  ==========================================================================
status            meaning
================  ==========================================================================
match             measured, and equal to the printed number at its printed decimals
close             measured, within 1 % of the number, or within 5 % and one unit of the last digit
                  (or of a number with a ~); never a count or a share of rows, which is exact
differs           measured, and further off
unverified        measured on the paper's file, whose bytes no digest verifies
substitute        measured with another model or other data, which the note names; `command`
                  would measure it with the paper's
not run           nothing in this run measures it
needs data        a notebook measures it once `command` has fetched the data
needs a model     a notebook measures it with the model that `command` names
human             people rated it
setting           a choice of the authors, such as a model's name or a scale: no result
quoted            a number of other people's work, such as the size of another benchmark
restated          printed elsewhere as well, as the note says
by construction   true of the data by the way they are made
not available     the printed number is lost, or the data to measure it cannot be obtained
================  ==========================================================================

>>> from ragkit.datasets import reported
>>> printed = reported.load("liverag", "4")
>>> measured = pd.DataFrame({"ngram_diversity": [3.06]}, index=["liverag"])
>>> found = fill(printed, measured, columns="metric")
>>> compared = compare(printed, found)
>>> compared.query("row == 'liverag'")[["metric", "printed", "measured", "status"]].head(2)
                   metric printed  measured      status
25        ngram_diversity   3.062      3.06       close
26  pos_compression_ratio   5.220       NaN  needs data
>>> counts(compared).loc["all", ["close", "numbers"]].tolist(), wide(compared).shape
([1, 30], (6, 15))
>>> best(compared, "ngram_diversity", "value")
'liverag'
>>> shown = show(wide(compared), "Table 4")
>>> write(found, "tables/mine")
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from ragkit import checks, display
from ragkit.datasets.registry import UNVERIFIED
from ragkit.datasets.reported import parse
from ragkit.errors import DataError, did_you_mean
from ragkit.files import write_text
from ragkit.report.figures import NAMES, STYLE
from ragkit.text import plain

KEY = ["paper", "table", "row", "column", "metric"]
SCOREBOARD = [*KEY, "printed", "value", "measured", "status", "command", "note"]
MEASURED = [*KEY, "measured", "substitute", "note"]
COLOURS = {status: row["fill"] for status, row in STYLE["status"].items()}
STATUSES = tuple(COLOURS)
# Measures that are better, or more diverse, when lower.
LOWER = {"pos_compression_ratio", "homogenization_score", "invalid_extra_documents"}
LOWER |= {"mae", "rmse", "crps"}
# In LaTeX: rows on a page, letters of a line, and letters of a cell that is not broken.
MOST_ROWS, LINE, MOST_LETTERS = 40, 90, 40
# Metrics that count rows of a file, or give a share of them.
_COUNTED = re.compile(r"n_|\w+_share$|questions_with_source$|gold_documents$")
# What is a number with its interval or share, or empty, stands to the right.
_NUMERIC = re.compile(r"([-+\u2212~]?\.?\d[-\d.,%\s()\u00b1/to]*|-?)$")


def fill(
    reported: pd.DataFrame,
    values: pd.DataFrame,
    *,
    columns: str = "column",
    substitute: str | dict[str, str] = "",
) -> pd.DataFrame:
    """Return measured numbers under the keys of the printed ones.

    `reported` are the printed numbers of one table. `values` is either long: a column `measured`,
    and as many of row, column and metric as single out a printed number each, perhaps substitute
    and note; or in the shape of the printed table: indexed by row, with a column for each printed
    `columns` ("column" or "metric"), and NaN cells are left out. `substitute` is what was used in
    place of the paper's model or data, for all rows or by row. `DataError` if a value fits no
    printed number, or more than one.
    """
    if "measured" not in values.columns:
        values = values.rename_axis("row").reset_index()
        values = values.melt("row", var_name=columns, value_name="measured")
        values = values.dropna(subset="measured")
    on = [column for column in ("row", "column", "metric") if column in values.columns]
    joined = values.merge(reported[KEY], on=on, how="left")
    if (unknown := joined["paper"].isna()).any():
        name = " / ".join(map(str, joined.loc[unknown.idxmax(), on]))
        known = [" / ".join(map(str, row)) for row in reported[on].to_numpy()]
        raise DataError(f"no printed number is called {name}", did_you_mean(name, known))
    if len(joined) > len(values):
        row = joined[joined.duplicated(on, keep=False)].iloc[0]
        raise DataError(f"more than one printed number fits {_name(row)}: name its column too")
    if "substitute" not in joined:
        by_row = isinstance(substitute, dict)
        joined["substitute"] = joined["row"].map(substitute) if by_row else substitute
    joined = joined.reindex(columns=MEASURED).fillna({"substitute": "", "note": ""})
    return joined.astype({"measured": float})


def nothing() -> pd.DataFrame:
    """Return an empty frame of measured numbers."""
    return pd.DataFrame(columns=MEASURED).astype({"measured": float})


def status(
    printed: str, value: float, measurement: float, substitute: str = "", metric: str = ""
) -> str:
    """Return the status of one measured number.

    The decimals of the text `printed` set the tolerance; its number `value` is NaN if it is lost,
    `measurement` if it could not be measured. `substitute` names what was used in place of the
    paper's model or data, if anything was. By its name, a `metric` is a count or not.

    >>> status("3.062", 3.062, 3.0619), status("3.062", 3.062, 3.2), status("3.062", 3.062, 3.2, "a sample")
    ('match', 'differs', 'substitute')
    """
    if math.isnan(value) or math.isnan(measurement):
        return "not available"
    if substitute:
        stand_in = any(UNVERIFIED not in part for part in substitute.split("; "))
        return "substitute" if stand_in else "unverified"
    unit, about = 10.0 ** -decimals(printed), printed.startswith("~")
    gap = abs(measurement - value)
    if gap <= unit / 2 * (1 + 1e-9):
        return "match"
    if _COUNTED.match(metric) and not about:
        return "differs"
    near = gap <= 0.05 * abs(value) and (about or gap <= unit * (1 + 1e-9))
    return "close" if near or gap <= 0.01 * abs(value) else "differs"


def decimals(printed: str, lost: int = 0) -> int:
    """Return the number of decimals of a printed number, or `lost` if there is none.

    >>> decimals("5.220"), decimals("~27%"), decimals("275k")
    (3, 0, -3)
    """
    return parse(printed)[1] if isinstance(printed, str) and printed else lost


def compare(
    reported: pd.DataFrame, measurements: pd.DataFrame, *, reasons: dict[str, str] | None = None
) -> pd.DataFrame:
    """Set measured numbers beside printed ones.

    `reported` are rows of `ragkit.datasets.reported.load`, `measurements` rows of `fill` from any
    number of notebooks; `reasons` says for the notes why a "paper:table" was not run. The result
    has the columns `SCOREBOARD`, and a row for every row of `reported`, in its order.

    Raises
    ------
    DataError
        If a number is measured twice, or one is measured that no paper prints.
    """
    doubled = measurements.duplicated(KEY)
    if doubled.any():
        raise DataError(f"measured twice: {_name(measurements[doubled].iloc[0])}")
    printed, measured = (f.astype(dict.fromkeys(KEY, str)) for f in (reported, measurements))
    known = set(printed[KEY].itertuples(index=False, name=None))
    for row in measured[KEY].to_dict("records"):
        if tuple(row.values()) not in known:
            table = printed[(printed["paper"] == row["paper"]) & (printed["table"] == row["table"])]
            hint = did_you_mean(_name(row), map(_name, table.to_dict("records")))
            raise DataError(f"measured, but never printed: {_name(row)}", hint)
    joined = printed.merge(measured, on=KEY, how="left", suffixes=("", "_ours"), indicator="side")
    rows = joined.to_dict("records")
    for row in rows:
        notes, declared = [row.get("note")], row.get("status")
        if row["side"] == "both":
            given = ("printed", "value", "measured", "substitute", "metric")
            row["status"] = status(*map(row.get, given))
            notes += [row["substitute"], row["note_ours"]]
        else:
            row["status"] = "not available" if math.isnan(row["value"]) else "not run"
        if row["status"] in ("not run", "not available") and not math.isnan(row["value"]):
            row["status"] = declared or row["status"]
            if row["status"] in ("not run", "needs data") and reasons:
                notes.append(reasons.get(f"{row['paper']}:{row['table']}"))
        if row["status"] not in ("needs data", "needs a model", "substitute", "unverified"):
            row["command"] = ""
        row["note"] = "; ".join(note for note in notes if isinstance(note, str) and note)
    return pd.DataFrame(rows, columns=SCOREBOARD).astype({"measured": float})


def counts(scoreboard: pd.DataFrame) -> pd.DataFrame:
    """Return how many numbers have each status: one row a paper, all papers, and the leaderboard.

    The public leaderboard's numbers are in no paper, so "all" leaves them out.
    """
    for name in sorted(set(scoreboard["status"])):
        checks.choice(name, "status", STATUSES)
    group = scoreboard["paper"].mask(scoreboard["table"] == "leaderboard", "leaderboard")
    table = pd.crosstab(group, scoreboard["status"]).reindex(columns=list(STATUSES), fill_value=0)
    papers = table.drop(index="leaderboard", errors="ignore")
    papers.loc["all"] = papers.sum()
    table = pd.concat([papers, table.loc[table.index == "leaderboard"]])
    table["numbers"] = table.sum(axis=1)
    return table.rename_axis(index="paper", columns=None)


def wide(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return a comparison in the shape of the printed table.

    One row a printed row (and metric, where a row has several in one column); for each column
    the printed number, the measured one and the status.
    """
    cells = comparison.assign(
        measured=[_format(row) for row in comparison.to_dict("records")],
        printed=comparison["printed"].fillna("-").replace("", "-"),
    )
    if cells.duplicated(["paper", "table", "row", "column"]).any():
        cells["row"] = cells["row"] + ", " + cells["metric"].str.replace("_", " ")
    columns, rows = (list(dict.fromkeys(cells[name])) for name in ("column", "row"))
    table = cells.pivot(index="row", columns="column", values=["printed", "measured", "status"])
    order = [(column, part) for column in columns for part in ("printed", "measured", "status")]
    table = table.swaplevel(axis=1).reindex(index=rows)[order]
    return table.rename_axis(index=None, columns=[None, None])


def best(comparison: pd.DataFrame, metric: str, column: str = "measured") -> str:
    """Return the printed row with the best number of a metric.

    The numbers that decide are the measured ones, or the printed ones (column "value").
    """
    rows = comparison[comparison["metric"] == metric].dropna(subset=column)
    if rows.empty:
        raise DataError(f"no {column} number of {metric}")
    place = rows[column].idxmin() if metric in LOWER else rows[column].idxmax()
    return rows.loc[place, "row"]


def title(paper: str, table: str) -> str:
    """Return the name of a printed table: "LiveRAG, Table 4", "WixQA, section 3.1".

    >>> title("liverag", "4"), title("wixqa", "text:3.1")
    ('LiveRAG, Table 4', 'WixQA, section 3.1')
    >>> title("liverag", "leaderboard"), title("liverag", "figure:3")
    ('LiveRAG, leaderboard', 'LiveRAG, Figure 3')
    """
    kind, _, place = table.rpartition(":")
    words = {"": "Table", "text": "section", "figure": "Figure", "appendix": "appendix"}
    named = place.isdigit() or (kind and place != "abstract")
    part = f"{words[kind]} {place}" if named else place
    return f"{NAMES.get(paper, paper)}, {part}"


def show(frame: pd.DataFrame, caption: str = "", *, best: Sequence = (), within: Sequence = ()):
    """Return a frame for display, statuses coloured; see `ragkit.display.table`.

    Of the columns `best` the best value is bold, and the caption says so: the lowest of those that
    `LOWER` has, else the highest, among the rows that are alike in `within` (`ragkit.display.best`).
    """
    ways, _, caption = _marked(frame, caption, best, within)
    return display.table(frame, caption, **ways).map(
        lambda cell: f"background-color: {COLOURS[cell]}" if cell in STATUSES else ""
    )


def _marked(frame: pd.DataFrame, caption: str, best: Sequence = (), within: Sequence = ()):
    """Return options of `display.table`, which cells are the best ones, and the caption."""
    for name in best:
        checks.choice(name, "column", frame.columns)
    low = [name for name in best if name in LOWER]
    ways = {"high": [name for name in best if name not in LOWER], "low": low, "within": within}
    marks = display.best(frame, **ways)
    told = f"bold: the best ({', '.join(map(str, low))}: the lowest)" if low else "bold: the best"
    return ways, marks, "; ".join(filter(None, [caption, marks.any() and told]))


def write(frame: pd.DataFrame, stem: str | Path, *, caption: str = "", **marked) -> None:
    """Write a table as `STEM.html`, `STEM.md` and `STEM.tex`; text is escaped in each.

    `marked` are the options of `show` by which the best values are bold, in all three.
    """
    stem = Path(stem)
    # A fixed id gives the same table the same bytes.
    styler = show(frame, caption, **marked).set_uuid(re.sub(r"\W", "-", stem.name))
    write_text(stem.with_name(f"{stem.name}.html"), styler.to_html(doctype_html=True) + "\n")
    text = frame.copy()
    if text.columns.nlevels > 1:
        text.columns = [" ".join(map(str, parts)).strip() for parts in text.columns]
    _, marks, caption = _marked(frame, caption, **marked)
    if not isinstance(text.index, pd.RangeIndex):
        marks = np.pad(marks, ((0, 0), (text.index.nlevels, 0)))
        text = text.reset_index(names=[name or "" for name in text.index.names])
    text = text.map(lambda value: f"{value:.6g}" if isinstance(value, float) else value)
    text = text.replace("nan", "").astype(object).where(text.notna(), "")

    def markdown(part: str) -> str:
        return _line(re.sub(r"([\\|$*`~\[\]])", r"\\\1", html.escape(part, quote=False)))

    shown = display.escaped_frame(text, markdown).astype(object)
    shown = shown.mask(marks, shown.map("**{}**".format))
    table = shown.to_markdown(index=False, disable_numparse=True)
    write_text(stem.with_name(f"{stem.name}.md"), table + "\n")
    write_text(stem.with_name(f"{stem.name}.tex"), _latex_table(text, marks, stem.name, caption))


def latex(text: str) -> str:
    """Return a text for LaTeX, whatever characters it has."""
    from pylatexenc.latexencode import UnicodeToLatexEncoder

    encoder = UnicodeToLatexEncoder(unknown_char_policy="unihex", unknown_char_warning=False)
    return _line(encoder.unicode_to_latex(plain(text)))


def _latex_table(text: pd.DataFrame, marks: np.ndarray, name: str, caption: str) -> str:
    """Return a table in booktabs; numbers to the right, a wide one shrunk, a long one over pages."""
    numeric = [all(_NUMERIC.match(str(cell)) for cell in text[c]) for c in text]
    widest = [max((len(str(cell)) for cell in text[c]), default=0) for c in text]
    layout = "".join(
        "r" if number else "p{4cm}" if width > MOST_LETTERS else "l"
        for number, width in zip(numeric, widest, strict=True)
    )
    long = len(text) > MOST_ROWS
    parts = [min(width, 24) for width in widest]
    if long and sum(parts) > LINE:  # shrinking would take the page breaks away
        layout = "".join(f"p{{{0.82 * part / sum(parts):.3f}\\linewidth}}" for part in parts)
    shown = display.escaped_frame(text, latex).astype(object)
    page = shown.mask(marks, shown.map("\\textbf{{{}}}".format)).to_latex(
        index=False, escape=False, column_format=layout, longtable=long,
        caption=latex(caption) or None, label=f"tab:{name}", position=None if long else "t",
    )  # fmt: skip
    if long:
        return f"{{\\scriptsize\\setlength{{\\tabcolsep}}{{2pt}}\n{page}}}\n"
    page = page.replace("\\begin{table}[t]", "\\begin{table}[t]\n\\centering\\small", 1)
    if sum(parts) > LINE:
        page = page.replace("\\begin{tabular}", "\\resizebox{\\linewidth}{!}{\\begin{tabular}")
        page = page.replace("\\end{tabular}", "\\end{tabular}}")
    return page


def _line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _name(row) -> str:
    return " / ".join(str(row[column]) for column in KEY)


def _format(row: dict) -> str:
    if math.isnan(row["measured"]):
        return "-"
    return f"{row['measured']:.{max(decimals(row['printed'], 3), 0)}f}"
