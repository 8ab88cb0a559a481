"""Read the registered files of a dataset into frames.

A reader is a function of one `Found` file and the dataset's `Declaration` that returns frames by
name. `data/registry.toml` names the reader of each dataset and says how it reads each file.
"""

from __future__ import annotations

import pandas as pd

from ragkit import schema
from ragkit.datasets.registry import Declaration, Found
from ragkit.errors import DataError
from ragkit.files import read_json, read_table, require


def frames(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read a file as it is declared, into the frame that it is declared for."""
    return {found.read["frame"]: frame(found)}


def frame(found: Found, rows: list[dict] | None = None) -> pd.DataFrame:
    """Read one file, or rows of it, as declared.

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
    needed = found.entry.columns() or found.wanted.columns()
    if rows is None:
        rows = found.read_rows(needed)
    data: dict[str, list] = {}
    for ours, theirs in read["columns"].items():
        convert = _conversion(read, kind, ours)
        data[ours] = [
            convert(
                theirs.format_map(row) if "{" in theirs else row[theirs],
                f"{found.path}: row {place}: {theirs}",
            )
            for place, row in enumerate(rows, start=1)
        ]
    if "number" in read:
        first = read.get("first", 1)
        data["question_id"] = [read["number"].format(first + n) for n in range(len(rows))]
    for ours, value in (schema.DEFAULTS[kind] | read.get("fixed", {})).items():
        data.setdefault(ours, [value] * len(rows))
    columns = [column for column in schema.COLUMNS[kind] if column in data]
    table = pd.DataFrame(data)[[*columns, *(name for name in data if name not in columns)]]
    return table.dropna(subset="score", ignore_index=True) if kind == "scores" else table


def _conversion(read: dict, kind: str, column: str):
    """Return a function of a value and its place in the file."""
    if column in (*schema.TUPLES[kind], *read.get("strings", ())):
        return schema.strings
    if column in read.get("numbers", ()):
        return schema.number
    if column in read.get("values", {}):
        known = read["values"][column]

        def look_up(value, where):
            if value not in known:
                raise DataError(f"{where} should be one of {', '.join(known)}, found {value!r:.60}")
            return known[value]

        return look_up
    identifier = column.endswith("_id")
    return lambda value, where: str(value) if identifier and type(value) is int else value


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
            place = bad.idxmax()
            words = f"{column} should be a count, found {repeats[place]:g}"
            raise DataError(f"{found.path}: line {place + 2}: {words}")
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
    return {"scores": long.dropna(subset="score", ignore_index=True).astype({"score": float})}


def wixqa_retrieval(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read recall of three systems over the whole knowledge base, one run a system.

    `questions` are all 200 expert-written ones, without answers and with gold ids cut to 16 digits;
    `scores` are recall at 10, beside recall at 1 and 3.
    """
    found.read_rows()
    runs = read_json(found.path)
    if not isinstance(runs, dict):
        raise DataError(f"{found.path}: expected an object of systems with lists of cases")
    rows = [{**case, "system": system} for system, cases in runs.items() for case in cases]
    for place, row in enumerate(rows, start=1):
        require(row, found.entry.columns(), f"{found.path}: row {place}")
    scores = frame(found, rows)
    first = scores["subject_id"] == scores["subject_id"].iloc[0]
    ids = [f"expertwritten-{place:04d}" for place in range(1, first.sum() + 1)]
    questions = scores.loc[first, ["text", "gold_doc_ids"]].assign(
        question_id=ids, type="expertwritten", answer=None, facts=[()] * len(ids)
    )
    scores["item_id"] = scores["item_id"].map(
        dict(zip(scores.loc[first, "item_id"], ids, strict=True))
    )
    scores = scores.drop(columns=["text", "gold_doc_ids"])
    return {"questions": questions[list(schema.COLUMNS["questions"])], "scores": scores}


def wixqa_answers(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read answers of others: `questions`, `answers`, and the `overlap` scores that came with them.

    An overlap score is NaN where a run has none.
    """
    rows = pd.DataFrame(found.read_rows(("run", "question", "candidate_answer", "gt_answer")))
    distinct = rows.drop_duplicates("question")
    ids = {text: f"{place:03d}" for place, text in enumerate(distinct["question"], start=1)}
    questions = {"question_id": list(ids.values()), "text": list(ids), "type": "wixqa"}
    questions |= {"answer": distinct["gt_answer"].to_numpy()}
    questions |= {column: [()] * len(ids) for column in schema.TUPLES["questions"]}
    keys = {"system": rows["run"], "question_id": rows["question"].map(ids)}
    answers = keys | {"answer": rows["candidate_answer"], "doc_ids": [()] * len(rows)}
    overlap = rows.reindex(columns=["token_f1", "bleu", "rouge_1", "rouge_2"]).assign(**keys)
    return {
        "questions": pd.DataFrame(questions),
        "answers": pd.DataFrame(answers),
        "overlap": overlap,
    }
