"""A benchmark from elsewhere as a folder of one's own: BEIR's layout, a data set of the hub, one file.

What is written is `questions.jsonl` and `documents.jsonl`, and `answers.jsonl` and `scores.jsonl`
where there are any, which `ragkit.datasets.load` reads and checks.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd

from ragkit.datasets import base
from ragkit.errors import DataError, FetchError, MissingData, UsageError
from ragkit.files import read_frame, read_rows, write_text

BEIR = ("corpus", "queries")
HUB = "HF:"


def convert(source: str, folder: Path) -> base.Dataset:
    """Write a benchmark into a new folder and return it, checked.

    `source` is a folder with questions, documents, answers, scores or some of them, in any format
    that `ragkit.files.read_frame` knows; a folder in BEIR's layout (corpus, queries, qrels);
    HF:NAME, a data set of the Hugging Face hub in one of these layouts; or one file of questions.
    Raises `UsageError` if the folder exists, `MissingData` or `FetchError` if the source is not
    there, and `DataError`, with file, line and column, if a row is not what it should be.

    >>> from pathlib import Path
    >>> from ragkit.files import write_text
    >>> source = write_text("questions.csv", "id,question\\nq1,Where?\\n")
    >>> convert(str(source), Path("my-benchmark")).questions["text"].tolist()
    ['Where?']
    """
    if folder.exists():
        raise UsageError(f"{folder} exists already", "choose another name, or remove it")
    place = _fetch(source.removeprefix(HUB)) if source.startswith(HUB) else Path(source)
    if not place.exists():
        raise MissingData(f"{source}: no such file or folder", "or HF:NAME, a data set of the hub")
    frames = _read(place)
    try:
        for kind, frame in frames.items():
            rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
            lines = [json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows]
            write_text(folder / f"{kind}.jsonl", "".join(lines))
        return base.own(folder)
    except DataError as error:
        shutil.rmtree(folder)
        raise DataError(error.message.replace(str(folder), str(place)), error.hint) from None


def _read(place: Path) -> dict[str, pd.DataFrame]:
    if place.is_file():
        return {"questions": read_frame(place, "questions")}
    files = {kind: base.file_of(place, kind) for kind in (*BEIR, *base.KINDS)}
    if all(files[kind] for kind in BEIR):
        return _beir(place, files["corpus"], files["queries"])
    found = {kind: read_frame(files[kind], kind) for kind in base.KINDS if files[kind]}
    if not found:
        names = ", ".join(f"{kind}.jsonl" for kind in (*base.KINDS, *BEIR))
        raise MissingData(f"{place}: none of {names}", "CSV, TSV, JSON and Parquet are read too")
    return found


def _beir(place: Path, corpus: Path, queries: Path) -> dict[str, pd.DataFrame]:
    """Return documents, and questions with the relevant documents of the last of the qrels."""
    documents, questions = read_frame(corpus, "documents"), read_frame(queries, "questions")
    listed = {path.stem: path for path in sorted((place / "qrels").glob("*.tsv"))}
    if not listed:
        raise MissingData(f"{place}: no qrels/*.tsv", "BEIR keeps test.tsv there")
    path = listed.get("test") or list(listed.values())[-1]
    gold: dict[str, list[str]] = {}
    for row in read_rows(path, ["query-id", "corpus-id", "score"], numbers=["score"]):
        if row["score"] > 0:
            gold.setdefault(str(row["query-id"]), []).append(str(row["corpus-id"]))
    unknown = sorted(set(gold) - set(questions["question_id"]))
    if unknown:
        raise DataError(f"{path}: no question {unknown[0]!r} in {queries.name}")
    asked = questions[questions["question_id"].isin(gold)].reset_index(drop=True)
    asked["gold_doc_ids"] = [tuple(gold[key]) for key in asked["question_id"]]
    return {"documents": documents, "questions": asked}


def _fetch(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, repo_type="dataset"))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        hint = "HF_TOKEN opens gated data sets; HF_HUB_OFFLINE=1 allows only what is cached"
        raise FetchError(f"{HUB}{name}: {reason}", hint) from None
