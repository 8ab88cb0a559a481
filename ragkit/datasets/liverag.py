"""LiveRAG: 895 questions of the challenge, a real response matrix, and DataMorgana pairs."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pandas as pd

from ragkit import schema
from ragkit.datasets import readers
from ragkit.datasets.registry import Declaration, Found
from ragkit.errors import DataError, did_you_mean
from ragkit.files import read_table, require

CATEGORIZATIONS = ("answer_type", "answer_style", "premise", "phrasing", "linguistic_variation")
CATEGORIZATIONS += ("politeness", "linguistic_correctness", "user_persona")
_PERSONAS = ("expert", "novice", "researcher", "journalist")
_DECLARED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
COLUMNS = tuple(_DECLARED["row"]["required"])
SCORES = _DECLARED["scores"]


def liverag(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read the benchmark.

    `questions` have their `session` and, in the official file, the answer, the claims as facts and
    as `claims_direct`, `claims_useful`, `claims_useless`, the eight categories, and `acs`,
    `acs_std`, `diff`, `disc`; `documents` are the supporting ones. The type of a question is its
    answer type where that is known. A categorization of the file that is not one of the eight is
    kept under its own name.
    """
    if found.partial:
        return {"questions": readers.frame(found)}
    rows = found.read_rows()
    if found.state != "sample":
        rows = _plain_scores(rows, found.path)
    return frames(rows, str(found.path))


def _plain_scores(rows: list[dict], where) -> list[dict]:
    """Return the rows of the official file, the names of its scores without their ranges."""
    names = {column: _key(column.partition(" [")[0]) for column in rows[0]}
    for key in SCORES.values():
        if key not in names.values():
            hint = did_you_mean(key, names.values())
            raise DataError(f"{where}: no column {key!r} (a score)", hint)
    names = {column: key for column, key in names.items() if key in SCORES.values()}
    return [{names.get(column, column): row[column] for column in row} for row in rows]


def frames(rows: list[dict], where: str) -> dict[str, pd.DataFrame]:
    """Return the `questions` and `documents` of rows in the benchmark's released form.

    Raises
    ------
    DataError
        If a row is not what `liverag.toml` declares; `where` names the file.
    """
    from jsonschema import Draft202012Validator

    validator = Draft202012Validator(_DECLARED["row"])
    questions, documents = [], {}
    for place, row in enumerate(rows, start=1):
        spot = f"{where}: row {place}"
        require(row, COLUMNS, spot)
        for error in validator.iter_errors(row):
            raise DataError(f"{spot}: {': '.join(map(str, error.path))}: {error.message:.99}")
        gold = row["Supporting_Documents"] or ()
        for one in gold:
            if documents.setdefault(one["doc_id"], one["content"]) != one["content"]:
                words = f"the document {one['doc_id']!r} has another text than in an earlier row"
                raise DataError(f"{spot}: {words}")
        claims = {
            f"claims_{kind}": schema.strings(
                (row["Answer_Claims"] or {}).get(kind) or (), f"{spot}: Answer_Claims: {kind}"
            )
            for kind in ("direct", "useful", "useless")
        }
        scores = {
            ours: schema.number(row[key], f"{spot}: {key}")
            for ours, key in SCORES.items()
            if key in row
        }
        categories = _categories(row.get("DataMorgana_Config") or {})
        question = {
            "question_id": "" if row["Index"] is None else str(row["Index"]),
            "text": row["Question"],
            "type": categories["answer_type"],
            "answer": row["Answer"],
            "facts": claims["claims_direct"] + claims["claims_useful"],
            "gold_doc_ids": tuple(one["doc_id"] for one in gold),
            "session": row["Session"],
        }
        questions.append(question | claims | categories | scores)
    return {"questions": pd.DataFrame(questions), "documents": _web_pages(documents)}


def _web_pages(texts: dict[str, str]) -> pd.DataFrame:
    """Return documents without a title; the first line stands for it."""
    titles = [text.strip().split("\n")[0][:80] for text in texts.values()]
    columns = {"doc_id": list(texts), "source": "web", "title": titles, "text": texts.values()}
    return pd.DataFrame(columns)


def _categories(config: dict) -> dict[str, str]:
    found = {}
    for key, value in config.items():
        if value is None:
            continue
        name = _key(key).removesuffix("_categorization")
        name = _DECLARED["categories"].get(name, name)
        category = _key(value)
        if name not in CATEGORIZATIONS and category in _PERSONAS:
            name = "user_persona"
        found[name] = category
    return dict.fromkeys(CATEGORIZATIONS, "unknown") | found


def _key(name: str) -> str:
    return str(name).strip().lower().replace("-", "_").replace(" ", "_").replace("/", "_")


def grag(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read a response matrix of one pipeline's configurations.

    `scores` are relevance (-1 to 2) of a configuration's answer to a question, beside its
    faithfulness (-1 to 1); `systems` are the factors of each configuration.
    """
    names = {"qid": "item_id", "relevance_score": "score", "faithfulness_score": "faithfulness"}
    numbers = ("relevance_score", "faithfulness_score")
    table = pd.DataFrame(read_table(found.path, tuple(names), numbers=numbers))
    found.rows = len(table)
    factors = table.drop(columns=list(names))
    scores = table[list(names)].rename(columns=names)
    scores.insert(0, "subject_id", factors.agg("/".join, axis=1))
    systems = factors.assign(subject_id=scores["subject_id"])
    return {"scores": scores, "systems": systems.drop_duplicates("subject_id", ignore_index=True)}


def datamorgana(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read pairs made with LiveRAG's generator under another configuration, and their documents."""
    questions = readers.frame(found)
    documents: dict[str, str] = {}
    pairs = zip(questions["gold_doc_ids"], questions.pop("texts"), strict=True)
    for place, (ids, texts) in enumerate(pairs, start=1):
        if len(ids) != len(texts):
            raise DataError(
                f"{found.path}: row {place}: {len(ids)} document ids, {len(texts)} texts"
            )
        documents.update(zip(ids, texts, strict=True))
    return {"questions": questions, "documents": _web_pages(documents)}
