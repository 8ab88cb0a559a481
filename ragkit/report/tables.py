"""What the papers print beside what was measured: every number with exactly one status.

================  ==========================================================================
status            meaning
================  ==========================================================================
match             measured, and equal to the printed number at its printed decimals
close             measured, within 1 % of the number, or within 5 % and one unit of the last digit
differs           measured, and further off
substitute        measured with another model or other data, which the note names
not run           nothing in this run measures it
not available     the printed number is lost, or the data to measure it is not to be had
================  ==========================================================================
"""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from ragkit.errors import DataError, UsageError, did_you_mean
from ragkit.files import write_text

STATUSES = ("match", "close", "differs", "substitute", "not run", "not available")
KEY = ["paper", "table", "row", "column", "metric"]
SCOREBOARD = [*KEY, "printed", "value", "measured", "status", "note"]
MEASURED = [*KEY, "measured", "substitute", "note"]
COLOURS = {
    "match": "#d7f0e3",
    "close": "#fdf3d1",
    "differs": "#fbdcd2",
    "substitute": "#e3ecf8",
    "not run": "#f4f4f4",
    "not available": "#e6e6e6",
}


def fill(
    reported: pd.DataFrame,
    values: pd.DataFrame,
    *,
    wide: str = "column",
    substitute: str | dict[str, str] = "",
) -> pd.DataFrame:
    """Return measured numbers under the keys of the printed ones.

    Parameters
    ----------
    reported : DataFrame
        The printed numbers of one table.
    values : DataFrame
        Either long: a column `measured`, and as many of row, column and metric as single out a
        printed number each; perhaps substitute and note. Or in the shape of the printed table:
        indexed by row, with a column for each printed column; NaN cells are left out.
    wide : {"column", "metric"}
        What the columns of a frame in the printed shape are.
    substitute : str or dict of str to str
        What was used in place of the paper's model or data, for all or by row.

    Raises
    ------
    DataError
        If a value fits no printed number, or more than one.
    """
    if "measured" not in values.columns:
        values = values.rename_axis("row").reset_index()
        values = values.melt("row", var_name=wide, value_name="measured").dropna(subset="measured")
    on = [column for column in ("row", "column", "metric") if column in values.columns]
    doubled = reported[reported.duplicated(on, keep=False)]
    joined = values.merge(reported[KEY], on=on, how="left", indicator=True)
    lost = joined[joined["_merge"] == "left_only"]
    if len(lost):
        name = " / ".join(str(lost.iloc[0][column]) for column in on)
        known = [" / ".join(map(str, row)) for row in reported[on].to_numpy()]
        raise DataError(f"no printed number is called {name}", did_you_mean(name, known))
    if len(joined) > len(values):
        row = doubled.merge(values[on], on=on).iloc[0]
        raise DataError(f"more than one printed number fits {_name(row)}: name its column too")
    if "substitute" not in joined:
        by_row = isinstance(substitute, dict)
        joined["substitute"] = joined["row"].map(substitute) if by_row else substitute
    joined["note"] = joined["note"].fillna("") if "note" in joined else ""
    return joined[MEASURED].fillna({"substitute": ""}).astype({"measured": float})


def unavailable(reported: pd.DataFrame, reason: str) -> pd.DataFrame:
    """Return the printed numbers as measured ones that cannot be had, for the reason given."""
    return reported[KEY].assign(measured=math.nan, substitute="", note=reason)[MEASURED]


def status(printed: str, value: float, measurement: float, substitute: str = "") -> str:
    """Return the status of one measured number.

    Parameters
    ----------
    printed : str
        As printed: its decimals set the tolerance.
    value : float
        The printed number; NaN if it is lost.
    measurement : float
        NaN if it could not be measured.
    substitute : str
        The model or data used in place of the paper's; empty if there is none.
    """
    if math.isnan(value) or math.isnan(measurement):
        return "not available"
    if substitute:
        return "substitute"
    unit = 10.0 ** -decimals(printed)
    gap = abs(measurement - value)
    if gap <= unit / 2 * (1 + 1e-9):
        return "match"
    near = gap <= unit * (1 + 1e-9) and gap <= 0.05 * abs(value)
    return "close" if near or gap <= 0.01 * abs(value) else "differs"


def decimals(printed: str) -> int:
    """Return the number of decimals of a printed number: 3 for "5.220", 0 for "~27%"."""
    digits = "".join(c for c in str(printed) if c.isdigit() or c == ".")
    return len(digits.partition(".")[2])


def compare(
    reported: pd.DataFrame, measurements: pd.DataFrame, *, reasons: dict[str, str] | None = None
) -> pd.DataFrame:
    """Set measured numbers beside printed ones.

    Parameters
    ----------
    reported : DataFrame
        Rows of `ragkit.datasets.reported.load`.
    measurements : DataFrame
        Rows of `fill`, from any number of notebooks.
    reasons : dict, optional
        Why numbers of a "paper:table" were not run, for their notes.

    Returns
    -------
    DataFrame
        Columns paper, table, row, column, metric, printed, value, measured, status, note; one
        row for every row of `reported`, in its order.

    Raises
    ------
    DataError
        If a number is measured twice, or one is measured that no paper prints.
    """
    for name, frame in (("reported", reported), ("measured", measurements)):
        missing = [column for column in KEY if column not in frame.columns]
        if missing:
            raise DataError(f"{name} numbers lack the column {missing[0]!r}")
    doubled = measurements.duplicated(KEY)
    if doubled.any():
        raise DataError(f"measured twice: {_name(measurements[doubled].iloc[0])}")
    known = set(map(tuple, reported[KEY].astype(str).to_numpy()))
    for row in measurements.to_dict("records"):
        if tuple(str(row[column]) for column in KEY) not in known:
            same = reported[
                (reported["paper"] == row["paper"]) & (reported["table"] == row["table"])
            ]
            hint = did_you_mean(_name(row), [_name(other) for other in same.to_dict("records")])
            raise DataError(f"measured, but never printed: {_name(row)}", hint)
    given = {
        tuple(str(row[column]) for column in KEY): row for row in measurements.to_dict("records")
    }
    rows = []
    for row in reported.to_dict("records"):
        key = tuple(str(row[column]) for column in KEY)
        notes = [row.get("note")]
        if key not in given:
            lost = math.isnan(row["value"])
            state, number = ("not available" if lost else "not run"), math.nan
            if not lost and reasons:
                notes.append(reasons.get(f"{row['paper']}:{row['table']}"))
        else:
            ours = given[key]
            number = float(ours["measured"])
            state = status(row["printed"], row["value"], number, ours["substitute"])
            notes += [ours["substitute"], ours["note"]]
        note = "; ".join(n for n in notes if isinstance(n, str) and n)
        rows.append({**row, "measured": number, "status": state, "note": note})
    return pd.DataFrame(rows, columns=SCOREBOARD)


def counts(scoreboard: pd.DataFrame) -> pd.DataFrame:
    """Return how many numbers of each paper have each status; one row a paper, and all."""
    unknown = set(scoreboard["status"]) - set(STATUSES)
    if unknown:
        name = min(unknown)
        raise UsageError(f"no status {name!r}", did_you_mean(name, STATUSES))
    table = pd.crosstab(scoreboard["paper"], scoreboard["status"])
    table = table.reindex(columns=list(STATUSES), fill_value=0)
    table.loc["all"] = table.sum()
    table["numbers"] = table.sum(axis=1)
    return table.rename_axis(index="paper", columns=None)


def wide(comparison: pd.DataFrame) -> pd.DataFrame:
    """Return a comparison in the shape of the printed table.

    One row a printed row; for each column the printed number, the measured one and the status.
    """
    cells = comparison.assign(measured=[_format(row) for row in comparison.to_dict("records")])
    cells = cells.assign(printed=cells["printed"].fillna("-").replace("", "-"))
    columns = list(dict.fromkeys(comparison["column"]))
    rows = list(dict.fromkeys(comparison["row"]))
    table = cells.pivot(index="row", columns="column", values=["printed", "measured", "status"])
    table = table.swaplevel(axis=1).reindex(index=rows, columns=columns, level=0)
    order = [(column, part) for column in columns for part in ("printed", "measured", "status")]
    return table[order].rename_axis(index=None, columns=[None, None])


# Measures that are better, or more diverse, when lower.
LOWER = {"pos_compression_ratio", "homogenization_score", "invalid_extra_documents"}


def best(comparison: pd.DataFrame, metric: str, column: str = "measured") -> str:
    """Return the printed row with the best number of a metric.

    Parameters
    ----------
    comparison : DataFrame
    metric : str
    column : {"measured", "value"}
        Whether the measured or the printed numbers decide.
    """
    rows = comparison[comparison["metric"] == metric].dropna(subset=column)
    if rows.empty:
        raise DataError(f"no {column} number of {metric}")
    place = rows[column].idxmin() if metric in LOWER else rows[column].idxmax()
    return rows.loc[place, "row"]


def show(frame: pd.DataFrame, caption: str = ""):
    """Return a frame for display, statuses coloured; numbers to six significant digits."""
    styler = frame.style.format(
        lambda value: f"{value:,.6g}" if isinstance(value, float) else value, na_rep=""
    )
    styler = styler.map(
        lambda value: f"background-color: {COLOURS[value]}" if value in STATUSES else ""
    )
    words = [c for c in frame.columns if frame[c].map(lambda v: isinstance(v, str)).all()]
    styler = styler.set_properties(subset=words, **{"text-align": "left"})
    if isinstance(frame.index, pd.RangeIndex):
        styler = styler.hide(axis="index")
    if caption:
        styler = styler.set_caption(caption)
    return styler


def write(frame: pd.DataFrame, stem: str | Path, *, caption: str = "") -> None:
    """Write a table as `STEM.html`, `STEM.md` and `STEM.tex`."""
    stem = Path(stem)
    plain = frame.copy()
    if plain.columns.nlevels > 1:
        plain.columns = [" ".join(map(str, parts)) for parts in plain.columns]
    keep_index = not isinstance(plain.index, pd.RangeIndex)
    text = plain.map(lambda value: f"{value:.6g}" if isinstance(value, float) else value).fillna("")
    text = text.replace("nan", "")
    # A fixed id makes the same table the same bytes.
    styler = show(frame, caption).set_uuid(stem.name)
    write_text(stem.with_suffix(".html"), styler.to_html(doctype_html=True) + "\n")
    write_text(stem.with_suffix(".md"), text.to_markdown(index=keep_index) + "\n")
    latex = text.to_latex(index=keep_index, escape=True, caption=caption or None)
    write_text(stem.with_suffix(".tex"), latex)


def _name(row) -> str:
    return " / ".join(str(row[column]) for column in KEY)


def _format(row: dict) -> str:
    if math.isnan(row["measured"]):
        return "-"
    digits = decimals(row["printed"]) if isinstance(row["printed"], str) and row["printed"] else 3
    return f"{row['measured']:.{digits}f}"


def nothing() -> pd.DataFrame:
    """Return an empty frame of measured numbers, for notebooks that measure none."""
    return pd.DataFrame({column: pd.Series(dtype=object) for column in MEASURED}).astype(
        {"measured": float}
    )
