"""LiveRAG: 895 questions of the challenge, a real response matrix, and DataMorgana pairs."""

from __future__ import annotations

import pandas as pd

from ragkit import schema
from ragkit.datasets import readers
from ragkit.datasets.registry import Declaration, Found
from ragkit.errors import DataError
from ragkit.files import named, require

CATEGORIZATIONS = ("answer_type", "answer_style", "premise", "phrasing", "linguistic_variation")
CATEGORIZATIONS += ("politeness", "linguistic_correctness", "user_persona")
_PERSONAS = ("expert", "novice", "researcher", "journalist")
# Two names of the official file, which appends "-categorization", for those of the paper's Table 1.
_PAPER = {"answer_control": "answer_style", "formulation": "phrasing"}
COLUMNS = ("Index", "Question", "Answer", "Supporting_Documents", "Answer_Claims", "Session")
SCORES = ("acs", "acs_std", "irt_diff", "irt_disc")


def liverag(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read the benchmark.

    `questions` have their `session` and, in the official file, the answer, the claims as facts and
    as `claims_direct`, `claims_useful`, `claims_useless`, the eight categories and any others, and
    `acs`, `acs_std`, `diff`, `disc`; `documents` are the supporting ones. The type of a question is
    its answer type where that is known.
    """
    if found.partial:
        return {"questions": readers.frame(found)}
    rows = found.read_rows(COLUMNS)
    if found.state != "sample":
        # The names of the official file's scores have their ranges: "ACS [-2 : 1]".
        names = {column: category_key(column.partition(" [")[0]) for column in rows[0]}
        with named(found.path):
            require(dict.fromkeys(names.values()), SCORES, "the scores")
        names = {column: key for column, key in names.items() if key in SCORES}
        rows = [{names.get(column, column): row[column] for column in row} for row in rows]
    return frames(rows, str(found.path))


def frames(rows: list[dict], where: str) -> dict[str, pd.DataFrame]:
    """Return the `questions` and `documents` of rows in the benchmark's released form.

    Raises `DataError` if a row is not what `schema.toml` declares; `where` names the file.
    """
    questions: list[dict] = []
    documents: dict[str, str] = {}
    for place, row in enumerate(rows, start=1):
        with named(f"{where}: row {place}"):
            require(row, COLUMNS, f"{where}: row {place}")
            list(schema.released(row, "documents", place, documents))
            (question,) = schema.released(row, "questions", place, documents)
            question = schema.complete(question, "questions") | {"session": row["Session"]}
            for kind in ("direct", "useful", "useless"):
                claims = (row["Answer_Claims"] or {}).get(kind) or ()
                question[f"claims_{kind}"] = schema.strings(claims, f"Answer_Claims: {kind}")
            question |= _categories(row.get("DataMorgana_Config") or {})
            question["type"] = question["answer_type"]
            for key in SCORES:
                if key in row:
                    question[key.removeprefix("irt_")] = schema.number(row[key], key)
        questions.append(question)
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
        name = category_key(key).removesuffix("_categorization")
        name = _PAPER.get(name, name)
        category = category_key(value)
        if name not in CATEGORIZATIONS and category in _PERSONAS:
            name = "user_persona"
        found[name] = category
    return dict.fromkeys(CATEGORIZATIONS, "unknown") | found


def category_key(name: str) -> str:
    """Return the name of a categorization or category as `questions` has it.

    >>> category_key("Linguistic Correctness")
    'linguistic_correctness'
    """
    return str(name).strip().lower().replace("-", "_").replace(" ", "_").replace("/", "_")


def grag(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read a response matrix of one pipeline's configurations.

    `scores` are relevance (-1 to 2) of a configuration's answer to a question, beside its
    faithfulness (-1 to 1); `systems` are the factors of each configuration.
    """
    names = {"qid": "item_id", "relevance_score": "score", "faithfulness_score": "faithfulness"}
    numbers = ("relevance_score", "faithfulness_score")
    table = pd.DataFrame(found.read_rows(tuple(names), numbers=numbers))
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
            words = f"{len(ids)} document ids, {len(texts)} texts"
            raise DataError(f"{found.path}: row {place}: {words}")
        documents.update(zip(ids, texts, strict=True))
    return {"questions": questions, "documents": _web_pages(documents)}
