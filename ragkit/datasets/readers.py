"""Read the registered files of a dataset into frames.

A reader is a function of one `Found` file and the dataset's `Declaration` that returns frames by
name. `data/registry.toml` names the reader of each dataset and says how it reads each file.
"""

from __future__ import annotations

import pandas as pd

from ragkit import schema
from ragkit.datasets.registry import Declaration, Found
from ragkit.errors import DataError


def frames(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read a file as it is declared, into the frame that it is declared for."""
    return {found.read["frame"]: frame(found)}


def frame(found: Found) -> pd.DataFrame:
    """Read one file as declared.

    The result has the columns of the frame, what the file leaves open filled in, then further
    declared ones. A row of scores without a score is left out: a missing score is not 0.
    """
    read = found.read
    kind = read["frame"].removeprefix("extra_")
    rows = found.read_rows(found.entry.columns() or found.wanted.columns())
    data: dict[str, list] = {}
    for ours, theirs in read["columns"].items():
        values = [theirs.format_map(row) if "{" in theirs else row[theirs] for row in rows]
        data[ours] = [
            _convert(value, read, kind, ours, f"{found.path}: row {place}: {theirs}")
            for place, value in enumerate(values, start=1)
        ]
    if "number" in read:
        first = read.get("first", 1)
        data["question_id"] = [read["number"].format(first + n) for n in range(len(rows))]
    for ours, value in (schema.DEFAULTS[kind] | read.get("fixed", {})).items():
        data.setdefault(ours, [value] * len(rows))
    order = [*(column for column in schema.COLUMNS[kind] if column in data), *data]
    table = pd.DataFrame(data)[list(dict.fromkeys(order))]
    return table.dropna(subset="score", ignore_index=True) if kind == "scores" else table


def _convert(value, read: dict, kind: str, column: str, where: str):
    """Return a value as the frame holds it; `where` is its place in the file."""
    if value is None and column in schema.DEFAULTS[kind]:
        return schema.DEFAULTS[kind][column]
    if column in (*schema.TUPLES[kind], *read.get("strings", ())):
        return schema.strings(value, where)
    if column in read.get("numbers", ()):
        return schema.number(value, where)
    if known := read.get("values", {}).get(column):
        if not isinstance(value, str) or value not in known:
            raise DataError(f"{where} should be one of {', '.join(known)}, found {value!r:.60}")
        return known[value]
    return str(value) if column.endswith("_id") and type(value) is int else value


def question_set(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read questions with their accepted answers as facts."""
    read, sample = found.read, found.state == "sample"
    columns = {"text": "question", "facts": "answers"} if sample else read["columns"]
    rows = []
    for place, row in enumerate(found.read_rows(tuple(columns.values())), start=1):
        text, answers = row[columns["text"]], row[columns["facts"]]
        where = f"{found.path}: row {place}"
        _need_text(text, f"{where}: {columns['text']}")
        if read.get("one_answer") and not sample:
            text, answers = text.strip(), [answers]
        if read.get("quoted") and len(text) > 1 and text[0] == text[-1] == '"':
            text = text[1:-1].replace('""', '"')  # as in a CSV file
        facts = schema.strings(answers, f"{where}: {columns['facts']}")
        rows.append((text, dataset.name, facts[0] if facts else None, facts, ()))
    return {"questions": pd.DataFrame(rows, columns=schema.COLUMNS["questions"][1:])}


def _need_text(value, where: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{where} should be a text, found {value!r:.60}")


def matrix(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read a response matrix: a row a person, a column an item, an empty cell no response.

    A column `freq` counts the persons of a pattern. With the option `key` a response is right if
    it is the key's digit, and `missing` is the digit of no response.
    """
    wide = pd.DataFrame(found.read_rows(numbers=None))
    for column in [name for name in wide if name.lower() == "freq"]:
        repeats = wide.pop(column)
        bad = ~((repeats >= 0) & (repeats % 1 == 0) & (repeats <= 1e6))
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
    wide.insert(0, "subject_id", [f"{place:0{width}d}" for place in range(1, len(wide) + 1)])
    long = wide.melt("subject_id", var_name="item_id", value_name="score")
    return {"scores": long.dropna(subset="score", ignore_index=True).astype({"score": float})}


def wixqa_retrieval(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read recall of three systems over the whole knowledge base, one run a system.

    `questions` are all 200 expert-written ones, without answers and with gold ids cut to 16 digits;
    `scores` are recall at 10, beside recall at 1 and 3.
    """
    scores = schema.check(frame(found), "scores", str(found.path))
    questions = scores[["item_id", "text", "gold_doc_ids"]].drop_duplicates("item_id")
    ids = [f"expertwritten-{place:04d}" for place in range(1, len(questions) + 1)]
    scores["item_id"] = scores["item_id"].map(dict(zip(questions["item_id"], ids, strict=True)))
    questions = questions.assign(question_id=ids, type="expertwritten", answer=None)
    questions["facts"] = [()] * len(ids)
    questions = questions[list(schema.COLUMNS["questions"])].reset_index(drop=True)
    return {"questions": questions, "scores": scores.drop(columns=["text", "gold_doc_ids"])}


def wixqa_answers(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read answers of others: `questions`, `answers`, and the `overlap` scores that came with them.

    An overlap score is NaN where a run has none.
    """
    rows = found.read_rows(("run", "question", "candidate_answer", "gt_answer"))
    for place, row in enumerate(rows, start=1):
        _need_text(row["question"], f"{found.path}: row {place}: question")
    rows = pd.DataFrame(rows)
    names = {"run": "system", "candidate_answer": "answer"}
    distinct = rows.drop_duplicates("question")
    ids = {text: f"{place:03d}" for place, text in enumerate(distinct["question"], start=1)}
    rows = rows.rename(columns=names).assign(question_id=rows["question"].map(ids))
    questions = pd.DataFrame({"question_id": list(ids.values()), "text": list(ids)})
    questions = questions.assign(type="wixqa", answer=distinct["gt_answer"].to_numpy())
    for column in schema.TUPLES["questions"]:
        questions[column] = [()] * len(ids)
    rows["doc_ids"] = [()] * len(rows)
    told = ["token_f1", "bleu", "rouge_1", "rouge_2", "system", "question_id"]
    answers = rows[list(schema.COLUMNS["answers"])]
    return {"questions": questions, "answers": answers, "overlap": rows.reindex(columns=told)}
