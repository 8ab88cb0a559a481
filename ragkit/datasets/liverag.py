"""LiveRAG: 895 questions of the challenge (Hugging Face `LiveRAG/Benchmark`), and a real matrix."""

from __future__ import annotations

import pandas as pd

from ragkit.datasets.base import Dataset, Source, check_rows, make
from ragkit.datasets.registry import Found
from ragkit.errors import DataError, did_you_mean
from ragkit.files import read_jsonl, read_table, require
from ragkit.schema import strings

BENCHMARK = "liverag/LiveRAG_banchmark_20250910.parquet"
GRAG = "liverag/grag_factor_analysis_query_level_scores.csv"
FILES = {"liverag": (BENCHMARK,), "grag": (GRAG,)}
SAMPLE = ("liverag",)

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
# The official file names two of them otherwise than the paper's Table 1, and writes
# "-categorization" behind a name.
_ALIASES = {"answer_control": "answer_style", "formulation": "phrasing"}
_PERSONAS = ("expert", "novice", "researcher", "journalist")
COLUMNS = ("Index", "Question", "Answer", "Supporting_Documents", "Answer_Claims", "Session")
CLAIMS = ("direct", "useful", "useless")
SESSIONS = ("First", "Second", "Both")
# Columns of the official file, without the range that it writes behind a name: "ACS [-2 : 1]".
SCORES = {"acs": "acs", "acs_std": "acs_std", "diff": "irt_diff", "disc": "irt_disc"}


def read(name: str, source: Source) -> Dataset:
    """Read the benchmark, or the matrix `grag`.

    `liverag` has `questions` with their `session` and, in the official file, the answer, the
    claims as facts and as `claims_direct`, `claims_useful`, `claims_useless`, the eight
    categories, and `acs`, `acs_std`, `diff`, `disc`; `documents` are the supporting ones. The
    type of a question is its answer type where that is known. A categorization of the file that
    is none of the eight is kept under its own name.

    `grag` has `scores`: relevance (-1 to 2) of a configuration's answer to a question, beside
    its faithfulness (-1 to 1); `systems` holds the factors of each configuration.
    """
    if name == "grag":
        found = source.need(GRAG)
        frames = _grag(found)
        return make(name, source, frames, where=dict.fromkeys(frames, found.path))
    if source.sample:
        path = source.sample_path("liverag/questions.jsonl")
        frames = _official(read_jsonl(path, COLUMNS), str(path))
        return make(name, source, frames, where=dict.fromkeys(frames, path))
    found = source.need(BENCHMARK)
    if found.partial:
        rows = check_rows(read_jsonl(found.path, ("question", "session")), found)
        frames = {"questions": _questions_only(rows)}
    else:
        frames = _official(check_rows(_parquet(found), found), str(found.path))
    return make(name, source, frames, where=dict.fromkeys(frames, found.path))


def _parquet(found: Found) -> list[dict]:
    """Return the rows of the official file, the names of its scores without their ranges."""
    import pyarrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(found.path) as file:
            rows = file.read().to_pylist()
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"{found.path}: not a readable parquet file ({error})") from None
    if not rows:
        raise DataError(f"{found.path}: no rows")
    names = {column: _key(column.partition(" [")[0]) for column in rows[0]}
    for key in SCORES.values():
        if key not in names.values():
            hint = did_you_mean(key, names.values())
            raise DataError(f"{found.path}: no column {key!r} (a score)", hint)
    scores = set(SCORES.values())
    return [
        {names[column] if names[column] in scores else column: row[column] for column in row}
        for row in rows
    ]


def _questions_only(rows: list[dict]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "question_id": [f"{number:03d}" for number in range(len(rows))],
            "text": [row["question"] for row in rows],
            "type": "unknown",
            "answer": None,
            "facts": [()] * len(rows),
            "gold_doc_ids": [()] * len(rows),
            "session": [row["session"] for row in rows],
        }
    )


def _official(rows: list[dict], where: str) -> dict[str, pd.DataFrame]:
    questions, documents = [], {}
    for number, row in enumerate(rows, start=1):
        spot = f"{where}: row {number}"
        require(row, COLUMNS, spot)
        if row["Session"] not in SESSIONS:
            raise DataError(f"{spot}: session {row['Session']!r}, expected {'/'.join(SESSIONS)}")
        gold = [_document(one, documents, spot) for one in row["Supporting_Documents"] or ()]
        claims = _object(row, "Answer_Claims", spot)
        by_kind = {
            kind: strings(claims.get(kind) or (), f"{spot}: Answer_Claims: {kind}")
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
                    ours: _score(row[key], f"{spot}: {key}")
                    for ours, key in SCORES.items()
                    if key in row
                },
            }
        )
    texts = pd.DataFrame(
        {
            "doc_id": list(documents),
            "source": "web",
            "title": [text.strip().split("\n")[0][:80] for text in documents.values()],
            "text": list(documents.values()),
        }
    )
    return {"questions": pd.DataFrame(questions), "documents": texts}


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


def _score(value, where: str) -> float:
    if value is None:
        return float("nan")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{where}: expected a number, found {value!r}")
    return float(value)


def _key(name: str) -> str:
    return str(name).strip().lower().replace("-", "_").replace(" ", "_").replace("/", "_")


def _grag(found: Found) -> dict[str, pd.DataFrame]:
    numbers = ("relevance_score", "faithfulness_score")
    rows = check_rows(read_table(found.path, ("qid", *numbers), numbers=numbers), found)
    frame = pd.DataFrame(rows)
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
