"""LiveRAG: 895 questions of the challenge, a real response matrix, and DataMorgana pairs."""

from __future__ import annotations

import ast

import pandas as pd

from ragkit import schema
from ragkit.datasets import readers
from ragkit.datasets.readers import number
from ragkit.datasets.registry import Declaration, Found
from ragkit.errors import DataError, did_you_mean
from ragkit.files import read_table, require

CATEGORIZATIONS = (
    "answer_type",
    "answer_style",
    "premise",
    "phrasing",
    "linguistic_variation",
    "politeness",
    "linguistic_correctness",
    "user_persona",
)
# The official file has other names than the paper's Table 1 for two of them, and appends
# "-categorization".
_ALIASES = {"answer_control": "answer_style", "formulation": "phrasing"}
_PERSONAS = ("expert", "novice", "researcher", "journalist")
COLUMNS = ("Index", "Question", "Answer", "Supporting_Documents", "Answer_Claims", "Session")
CLAIMS = ("direct", "useful", "useless")
SESSIONS = ("First", "Second", "Both")
# Columns of the official file, without the range that it writes behind a name: "ACS [-2 : 1]".
SCORES = {"acs": "acs", "acs_std": "acs_std", "diff": "irt_diff", "disc": "irt_disc"}


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
    return _official(rows, str(found.path))


def _plain_scores(rows: list[dict], where) -> list[dict]:
    """Return the rows of the official file, the names of its scores without their ranges."""
    names = {column: _key(column.partition(" [")[0]) for column in rows[0]} if rows else {}
    for key in SCORES.values():
        if key not in names.values():
            hint = did_you_mean(key, names.values())
            raise DataError(f"{where}: no column {key!r} (a score)", hint)
    scores = set(SCORES.values())
    return [
        {names[column] if names[column] in scores else column: row[column] for column in row}
        for row in rows
    ]


def _official(rows: list[dict], where: str) -> dict[str, pd.DataFrame]:
    questions, documents = [], {}
    for place, row in enumerate(rows, start=1):
        spot = f"{where}: row {place}"
        require(row, COLUMNS, spot)
        if row["Session"] not in SESSIONS:
            raise DataError(f"{spot}: session {row['Session']!r}, expected {'/'.join(SESSIONS)}")
        gold = [_document(one, documents, spot) for one in row["Supporting_Documents"] or ()]
        claims = _object(row, "Answer_Claims", spot)
        by_kind = {
            kind: schema.strings(claims.get(kind) or (), f"{spot}: Answer_Claims: {kind}")
            for kind in CLAIMS
        }
        categories = _categories(_object(row, "DataMorgana_Config", spot))
        questions.append(
            {
                "question_id": "" if row["Index"] is None else str(row["Index"]),
                "text": row["Question"],
                "type": categories["answer_type"],
                "answer": row["Answer"],
                "facts": by_kind["direct"] + by_kind["useful"],
                "gold_doc_ids": tuple(gold),
                "session": row["Session"],
                **{f"claims_{kind}": claims for kind, claims in by_kind.items()},
                **categories,
                **{
                    ours: number(row[key], f"{spot}: {key}")
                    for ours, key in SCORES.items()
                    if key in row
                },
            }
        )
    return {"questions": pd.DataFrame(questions), "documents": _web_pages(documents)}


def _web_pages(texts: dict[str, str]) -> pd.DataFrame:
    """Return documents without a title; the first line stands for it."""
    return pd.DataFrame(
        {
            "doc_id": list(texts),
            "source": "web",
            "title": [text.strip().split("\n")[0][:80] for text in texts.values()],
            "text": list(texts.values()),
        }
    )


def _document(value, documents: dict[str, str], spot: str) -> str:
    """Enter a supporting document and return its id."""
    if not isinstance(value, dict):
        raise DataError(f"{spot}: Supporting_Documents should hold objects, found {value!r}")
    require(value, ("doc_id", "content"), f"{spot}: Supporting_Documents")
    doc_id, text = value["doc_id"], value["content"]
    for column in ("doc_id", "content"):
        if not isinstance(value[column], str) or not value[column].strip():
            raise DataError(f"{spot}: Supporting_Documents: a document has no {column}")
    if documents.setdefault(doc_id, text) != text:
        raise DataError(f"{spot}: the document {doc_id!r} has another text than in an earlier row")
    return doc_id


def _object(row: dict, column: str, spot: str) -> dict:
    value = row.get(column) or {}
    if not isinstance(value, dict):
        raise DataError(f"{spot}: {column} should be an object, found {value!r}")
    return value


def _categories(config: dict) -> dict[str, str]:
    found = {}
    for key, value in config.items():
        if value is None:
            continue
        name = _key(key).removesuffix("_categorization")
        name = _ALIASES.get(name, name)
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
    numbers = ("relevance_score", "faithfulness_score")
    frame = pd.DataFrame(read_table(found.path, ("qid", *numbers), numbers=numbers))
    found.rows = len(frame)
    factors = [column for column in frame.columns if column not in ("qid", *numbers)]
    subject = frame[factors].agg("/".join, axis=1)
    scores = pd.DataFrame(
        {
            "subject_id": subject,
            "item_id": frame["qid"],
            "score": frame["relevance_score"],
            "faithfulness": frame["faithfulness_score"],
        }
    )
    systems = frame[factors].assign(subject_id=subject).drop_duplicates("subject_id")
    return {"scores": scores, "systems": systems.reset_index(drop=True)}


def datamorgana(found: Found, dataset: Declaration) -> dict[str, pd.DataFrame]:
    """Read pairs made with LiveRAG's generator under another configuration, and their documents."""
    columns = ("qid", "question", "answer", "context", "document_ids")
    rows = read_table(found.path, columns)
    found.rows = len(rows)
    kinds = [name for name in rows[0] if name.startswith(("question_", "user_"))]
    kinds = [name for name in kinds if name != "question_length"]
    documents: dict[str, str] = {}
    questions = []
    for place, row in enumerate(rows, start=1):
        where = f"{found.path}: row {place}"
        ids, texts = _literal(row["document_ids"], where), _literal(row["context"], where)
        if len(ids) != len(texts):
            raise DataError(f"{where}: {len(ids)} document ids, {len(texts)} texts")
        documents.update(zip(ids, texts, strict=True))
        questions.append(
            {
                "question_id": row["qid"],
                "text": row["question"],
                "type": row.get("question_factuality") or "unknown",
                "answer": row["answer"],
                "facts": (),
                "gold_doc_ids": tuple(ids),
                **{kind.removesuffix("-categorization"): row[kind] for kind in kinds},
            }
        )
    return {"questions": pd.DataFrame(questions), "documents": _web_pages(documents)}


def _literal(text: str, where: str) -> tuple[str, ...]:
    try:
        return schema.strings(ast.literal_eval(text), where)
    except (ValueError, SyntaxError):
        raise DataError(f"{where}: expected a list of strings, found {text[:40]!r}") from None
