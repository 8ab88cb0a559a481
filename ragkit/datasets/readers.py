"""Read the registered files of a dataset into frames: formats that several datasets share.

A reader is a function of one `Found` file and the dataset's `Declaration` that returns frames by
name. `data/registry.toml` names the reader of each dataset and says how it reads each file.
"""

from __future__ import annotations

import math

import pandas as pd

from ragkit import schema
from ragkit.datasets.registry import Declaration, Found
from ragkit.errors import DataError
from ragkit.files import read_table


def frames(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read a file as it is declared, into the frame that it is declared for."""
    return {found.read["frame"]: frame(found)}


def frame(found: Found) -> pd.DataFrame:
    """Read one file as declared.

    Returns
    -------
    DataFrame
        The columns of the frame, what the file leaves open filled in, then further declared ones.
        A row of scores without a score is left out: a missing score is not 0.

    Raises
    ------
    DataError
        With file, row and column, if a column is missing or a value is not what it should be.
    """
    read = found.read
    kind = read["frame"].removeprefix("extra_")
    rows = found.read_rows(found.entry.columns() or found.wanted.columns())
    data: dict[str, list] = {}
    for ours, theirs in read["columns"].items():
        values = [theirs.format_map(row) if "{" in theirs else row[theirs] for row in rows]
        wanted = f"{found.path}: row {{}}: {theirs}"
        if ours in (*schema.TUPLES.get(kind, ()), "source_types"):
            values = [schema.strings(v, wanted.format(n)) for n, v in enumerate(values, 1)]
        elif ours in read.get("numbers", ()):
            values = [number(v, wanted.format(n)) for n, v in enumerate(values, 1)]
        elif ours in read.get("values", {}):
            known = read["values"][ours]
            values = [_known(v, known, wanted.format(n)) for n, v in enumerate(values, 1)]
        elif ours.endswith("_id"):
            values = [str(v) if type(v) is int else v for v in values]
        data[ours] = values
    if "number" in read:
        first = read.get("first", 1)
        pattern = read["number"]
        data["question_id"] = [pattern.format(n) for n in range(first, first + len(rows))]
    for ours, value in (schema.DEFAULTS.get(kind, {}) | read.get("fixed", {})).items():
        data.setdefault(ours, [value] * len(rows))
    columns = [column for column in schema.COLUMNS[kind] if column in data]
    table = pd.DataFrame(data)[[*columns, *(name for name in data if name not in columns)]]
    return table.dropna(subset="score", ignore_index=True) if kind == "scores" else table


def number(value, where: str) -> float:
    """Return a value of a file as a float, NaN if it is empty."""
    if value is None or value == "":
        return math.nan
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not math.isfinite(found):
        raise DataError(f"{where} should be a number, found {value!r:.60}")
    return found


def _known(value, known: dict, where: str) -> float:
    if value not in known:
        raise DataError(f"{where} should be one of {', '.join(known)}, found {value!r:.60}")
    return known[value]


def question_set(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read questions with their accepted answers as facts."""
    read, sample = found.read, found.state == "sample"
    columns = {"text": "question", "facts": "answers"} if sample else read["columns"]
    rows = []
    for place, row in enumerate(found.read_rows(tuple(columns.values())), start=1):
        text, answers = row[columns["text"]], row[columns["facts"]]
        where = f"{found.path}: row {place}"
        if not isinstance(text, str) or not text.strip():
            raise DataError(f"{where}: {columns['text']} should be a text, found {text!r:.60}")
        if read.get("one_answer") and not sample:
            text, answers = text.strip(), [answers]
        if read.get("quoted") and len(text) > 1 and text[0] == text[-1] == '"':
            text = text[1:-1].replace('""', '"')  # as in a CSV file
        facts = schema.strings(answers, f"{where}: {columns['facts']}")
        rows.append((text, dataset.name, facts[0] if facts else None, facts, ()))
    return {"questions": pd.DataFrame(rows, columns=schema.COLUMNS["questions"][1:])}


def matrix(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read a response matrix: a row a person, a column an item, an empty cell no response.

    A column `freq` counts the persons of a pattern. With the option `key` a response is right if
    it is the key's digit, and `missing` is the digit of no response.
    """
    wide = pd.DataFrame(read_table(found.path, numbers=None))
    found.rows = len(wide)
    for column in [name for name in wide if name.lower() == "freq"]:
        repeats = wide.pop(column)
        bad = ~((repeats >= 0) & (repeats % 1 == 0))
        if bad.any():
            place = int(bad.to_numpy().argmax())
            raise DataError(
                f"{found.path}: line {place + 2}: {column} should be a count, "
                f"found {repeats.iloc[place]:g}"
            )
        wide = wide.loc[wide.index.repeat(repeats.astype(int))].reset_index(drop=True)
    if key := dataset.options.get("key"):
        if wide.shape[1] != len(key):
            raise DataError(f"{found.path}: {wide.shape[1]} items, expected {len(key)}")
        given = wide.notna() & (wide != dataset.options["missing"])
        wide = (wide == [int(digit) for digit in key]).where(given)
    width = len(str(len(wide)))
    wide.index = [f"{place:0{width}d}" for place in range(1, len(wide) + 1)]
    wide = wide.rename_axis("subject_id").reset_index()
    long = wide.melt("subject_id", var_name="item_id", value_name="score")
    long = long.dropna(subset="score").astype({"score": float})
    return {"scores": long.reset_index(drop=True)}
