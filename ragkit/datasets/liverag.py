"""LiveRAG: 895 questions of the challenge (Hugging Face `LiveRAG/Benchmark`), and a real matrix."""

from __future__ import annotations

import pandas as pd

from ragkit.datasets.base import Dataset, Source, check_rows, make
from ragkit.errors import DataError
from ragkit.files import read_jsonl, read_table

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
CLAIMS = ("direct", "useful", "useless")
SESSIONS = ("First", "Second", "Both")
# Columns of the official file under the names that it, and the paper's appendix B, give them.
SCORES = {
    "acs": ("ACS",),
    "acs_std": ("ACS_std",),
    "diff": ("IRT-diff", "IRT_diff", "diff"),
    "disc": ("IRT-disc", "IRT_disc", "disc"),
}


def read(name: str, source: Source) -> Dataset:
    """Read the benchmark, or the matrix `grag`.

    `liverag` has `questions` with their `session` and, in the official file, the answer, the
    claims as facts and as `claims_direct`, `claims_useful`, `claims_useless`, the eight
    categories, and `acs`, `acs_std`, `diff`, `disc`; `documents` are the supporting ones. The
    type of a question is its answer type where that is known.

    `grag` has `scores`: relevance (-1 to 2) of a configuration's answer to a question, beside
    its faithfulness (-1 to 1); `systems` holds the factors of each configuration.
    """
    if name == "grag":
        return make(name, source, _grag(source))
    if source.sample:
        path = source.sample_path("liverag/questions.jsonl")
        return make(name, source, _official(read_jsonl(path, ("Index", "Question")), str(path)))
    found = source.need(BENCHMARK)
    if found.partial:
        rows = check_rows(read_jsonl(found.path, ("question", "session")), found)
        return make(name, source, {"questions": _questions_only(rows)})
    try:
        rows = pd.read_parquet(found.path).to_dict("records")
    except (OSError, ValueError) as error:
        raise DataError(f"{found.path}: not a readable parquet file ({error})") from None
    return make(name, source, _official(check_rows(rows, found), str(found.path)))


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
        for column in ("Question", "Answer", "Supporting_Documents", "Session"):
            if column not in row:
                raise DataError(f"{where}: row {number}: no column {column!r}")
        if row["Session"] not in SESSIONS:
            raise DataError(
                f"{where}: row {number}: session {row['Session']!r}, expected {'/'.join(SESSIONS)}"
            )
        claims = row.get("Answer_Claims") or {}
        gold = []
        for document in row["Supporting_Documents"]:
            gold.append(document["doc_id"])
            documents[document["doc_id"]] = document["content"]
        question = {
            "question_id": str(row.get("Index", number - 1)),
            "text": row["Question"],
            "answer": row["Answer"],
            "facts": tuple(c for kind in ("direct", "useful") for c in _list(claims.get(kind))),
            "gold_doc_ids": tuple(gold),
            "session": row["Session"],
            **{f"claims_{kind}": tuple(_list(claims.get(kind))) for kind in CLAIMS},
        }
        config = {_key(key): value for key, value in (row.get("DataMorgana_Config") or {}).items()}
        for categorization in CATEGORIZATIONS:
            question[categorization] = _key(config.get(categorization, "unknown"))
        question["type"] = question["answer_type"]
        for ours, theirs in SCORES.items():
            values = [row[column] for column in theirs if column in row]
            if values:
                question[ours] = float(values[0])
        questions.append(question)
    texts = pd.DataFrame(
        {
            "doc_id": list(documents),
            "source": "web",
            "title": [text.strip().split("\n")[0][:80] for text in documents.values()],
            "text": list(documents.values()),
        }
    )
    return {"questions": pd.DataFrame(questions), "documents": texts}


def _list(value) -> list[str]:
    return [] if value is None else list(value)


def _key(name: str) -> str:
    return str(name).strip().lower().replace("-", "_").replace(" ", "_").replace("/", "_")


def _grag(source: Source) -> dict[str, pd.DataFrame]:
    found = source.need(GRAG)
    rows = check_rows(
        read_table(found.path, ("qid", "relevance_score", "faithfulness_score")), found
    )
    frame = pd.DataFrame(rows)
    factors = [
        c for c in frame.columns if c not in ("qid", "relevance_score", "faithfulness_score")
    ]
    subject = frame[factors].agg("/".join, axis=1)
    scores = pd.DataFrame(
        {
            "subject_id": subject,
            "item_id": frame["qid"],
            "score": pd.to_numeric(frame["relevance_score"]),
            "faithfulness": pd.to_numeric(frame["faithfulness_score"]),
        }
    )
    systems = frame[factors].assign(subject_id=subject).drop_duplicates("subject_id")
    return {"scores": scores, "systems": systems.reset_index(drop=True)}
