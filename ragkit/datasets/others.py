"""What others made of the benchmarks: answers, retrieval runs, and DataMorgana pairs."""

from __future__ import annotations

import ast
import json
import zipfile
from pathlib import Path

import pandas as pd

from ragkit.datasets.base import Dataset, Source, check_rows, make
from ragkit.errors import DataError
from ragkit.files import read_jsonl, read_table, require
from ragkit.schema import strings

FILES = {
    "erb_answers": ("enterpriserag_bench/system_answers_jsonl.zip",),
    "erb_retrieval": ("enterpriserag_bench/per_question_retrieval_scores_victormocioiu.csv.gz",),
    "liverag_answers": (
        "liverag/session1_answers_smart_rag.jsonl.gz",
        "liverag/session1_n50_commercial_answers_rmit.jsonl.gz",
    ),
    "wixqa_answers": ("wixqa/mse_eval_runs_question_answer_scores.jsonl.gz",),
    "datamorgana": ("liverag/datamorgana_qa_multi_n50.tsv",),
}
SAMPLE = ()

OVERLAP = ("token_f1", "bleu", "rouge_1", "rouge_2")


def read(name: str, source: Source) -> Dataset:
    """Read what others made.

    `erb_answers` has `answers` of 28 runs to EnterpriseRAG-Bench; `erb_retrieval` has `scores`,
    the document recall of five systems, beside the rank of the first gold document;
    `liverag_answers` has `answers` of two systems to session 1, by the session's numbers;
    `wixqa_answers` has `questions`, `answers`, and the `overlap` scores that came with them (NaN where a run has none);
    `datamorgana` has `questions` and their source `documents`, made with the generator of LiveRAG
    under another configuration.
    """
    readers = {
        "erb_answers": _erb_answers,
        "erb_retrieval": _erb_retrieval,
        "liverag_answers": _liverag_answers,
        "wixqa_answers": _wixqa_answers,
        "datamorgana": _datamorgana,
    }
    return make(name, source, readers[name](source))


def _answers(rows: list[tuple]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["system", "question_id", "answer", "doc_ids"])


def _erb_answers(source: Source) -> dict[str, pd.DataFrame]:
    found = source.need(FILES["erb_answers"][0])

    def rows():
        with zipfile.ZipFile(found.path) as archive:
            for name in sorted(archive.namelist()):
                for number, line in enumerate(archive.read(name).decode("utf-8").splitlines(), 1):
                    if not line.strip():
                        continue
                    row, where = json.loads(line), f"{found.path}: {name}: line {number}"
                    require(row, ("question_id",), where)
                    ids = strings(row.get("document_ids") or [], f"{where}: document_ids")
                    yield (
                        Path(name).with_suffix("").as_posix(),
                        row["question_id"],
                        row.get("answer"),
                        ids,
                    )

    try:
        return {"answers": _answers(check_rows(list(rows()), found))}
    except (zipfile.BadZipFile, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError(f"{found.path}: not a readable archive of answers ({error})") from None


def _erb_retrieval(source: Source) -> dict[str, pd.DataFrame]:
    found = source.need(FILES["erb_retrieval"][0])
    columns = ("file", "question_id", "document_recall", "first_gold_rank")
    frame = pd.DataFrame(check_rows(read_table(found.path, columns), found))
    # Questions without gold documents have no recall: no row, not a 0.
    frame = frame[frame["document_recall"] != ""]
    scores = pd.DataFrame(
        {
            "subject_id": frame["file"],
            "item_id": frame["question_id"],
            "score": pd.to_numeric(frame["document_recall"]),
            "first_gold_rank": pd.to_numeric(frame["first_gold_rank"], errors="coerce"),
        }
    )
    return {"scores": scores.reset_index(drop=True)}


def _liverag_answers(source: Source) -> dict[str, pd.DataFrame]:
    whole, part = (source.need(path) for path in FILES["liverag_answers"])
    first = check_rows(read_jsonl(whole.path, ("id", "answer")), whole)
    second = check_rows(read_jsonl(part.path, ("query_id", "generated_response")), part)
    rows = [("SMART_RAG, no retrieval", str(row["id"]), row["answer"], ()) for row in first]
    rows += [("commercial", str(row["query_id"]), row["generated_response"], ()) for row in second]
    return {"answers": _answers(rows)}


def _wixqa_answers(source: Source) -> dict[str, pd.DataFrame]:
    found = source.need(FILES["wixqa_answers"][0])
    columns = ("run", "question", "candidate_answer", "gt_answer")
    frame = pd.DataFrame(check_rows(read_jsonl(found.path, columns), found))
    distinct = frame.drop_duplicates("question")
    ids = {text: f"{number:03d}" for number, text in enumerate(distinct["question"], start=1)}
    questions = pd.DataFrame(
        {
            "question_id": list(ids.values()),
            "text": list(ids),
            "type": "wixqa",
            "answer": distinct["gt_answer"].to_numpy(),
            "facts": [()] * len(ids),
            "gold_doc_ids": [()] * len(ids),
        }
    )
    question_id = frame["question"].map(ids)
    nothing = [()] * len(frame)
    answers = zip(frame["run"], question_id, frame["candidate_answer"], nothing, strict=True)
    overlap = frame.reindex(columns=list(OVERLAP)).assign(
        system=frame["run"], question_id=question_id
    )
    return {"questions": questions, "answers": _answers(list(answers)), "overlap": overlap}


def _datamorgana(source: Source) -> dict[str, pd.DataFrame]:
    found = source.need(FILES["datamorgana"][0])
    columns = ("qid", "question", "answer", "context", "document_ids")
    rows = check_rows(read_table(found.path, columns), found)
    kinds = [name for name in rows[0] if name.startswith(("question_", "user_"))]
    kinds.remove("question_length")
    documents: dict[str, str] = {}
    questions = []
    for number, row in enumerate(rows, start=1):
        where = f"{found.path}: row {number}"
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
    texts = pd.DataFrame(
        {
            "doc_id": list(documents),
            "source": "web",
            "title": [text.strip().split("\n")[0][:80] for text in documents.values()],
            "text": list(documents.values()),
        }
    )
    return {"questions": pd.DataFrame(questions), "documents": texts}


def _literal(text: str, where: str) -> tuple[str, ...]:
    try:
        return strings(ast.literal_eval(text), where)
    except (ValueError, SyntaxError):
        raise DataError(f"{where}: expected a list of strings, found {text[:40]!r}") from None
