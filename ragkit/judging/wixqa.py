"""WixQA's two judged metrics: factuality of an answer, and context recall of what was retrieved."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from ragkit import schema
from ragkit.errors import DataError
from ragkit.judging.goldset import join_documents
from ragkit.judging.judges import Judge, Task


def factuality(
    answers: pd.DataFrame, questions: pd.DataFrame, judge: Judge, *, repeat: int = 1
) -> pd.DataFrame:
    """Judge how much of the gold answer each answer carries, without error.

    Parameters
    ----------
    answers : DataFrame
        A frame `answers`. A row without an answer (None) is not judged; an empty one is.
    questions : DataFrame
        A frame `questions` with gold answers.
    judge : Judge
    repeat : int >= 1
        Verdicts for each; the score is their mean.

    Returns
    -------
    DataFrame
        One row per answer judged: system, question_id, metric, value in [0, 1] (1 to 5, made
        linear by `ragkit.judging.unit_rating`; NaN where the verdict is missing), reason, model,
        spread, repeats (the values of each).

    Raises
    ------
    DataError
        If a frame is not valid, or an answer's question has no gold answer.
    UsageError
        If the judge does not rate factuality.

    References
    ----------
    WixQA, section 4.3 and appendix C. The judge there is GPT-4o.
    """
    rows = schema.check(answers, "answers")
    rows = rows[rows["answer"].notna()]
    gold = _gold(rows, questions)
    tasks = [
        Task("factuality", {**gold[name], "answer": answer})
        for name, answer in zip(rows["question_id"], rows["answer"], strict=True)
    ]
    return _judged("factuality", rows, tasks, judge, repeat)


def context_recall(
    answers: pd.DataFrame,
    questions: pd.DataFrame,
    documents: pd.DataFrame | Mapping[str, str],
    judge: Judge,
    *,
    cutoff: int | None = None,
    repeat: int = 1,
) -> pd.DataFrame:
    """Judge how much of the gold answer could be written from the retrieved documents.

    Parameters
    ----------
    answers : DataFrame
        A frame `answers`: its `doc_ids`, best first. A row without documents is not judged.
    questions : DataFrame
        A frame `questions` with gold answers.
    documents : DataFrame or mapping of id to text
        A frame `documents`, or the texts.
    judge : Judge
    cutoff : int, optional
        Show the judge no more than so many documents; the paper retrieves 5.
    repeat : int >= 1

    Returns
    -------
    DataFrame
        As `factuality`.

    Raises
    ------
    DataError, UsageError
        As in `factuality`; also if a document's text is not there.

    References
    ----------
    WixQA, section 4.3 and appendix D.
    """
    rows = schema.check(answers, "answers")
    rows = rows[rows["doc_ids"].map(len) > 0]
    gold = _gold(rows, questions)
    if isinstance(documents, pd.DataFrame):
        schema.check(documents, "documents")
        documents = dict(zip(documents["doc_id"], documents["text"], strict=True))
    tasks = []
    for name, docs in zip(rows["question_id"], rows["doc_ids"], strict=True):
        absent = [doc for doc in docs[:cutoff] if doc not in documents]
        if absent:
            raise DataError(f"question {name!r}: the text of document {absent[0]!r} is not there")
        context = join_documents(documents[doc] for doc in docs[:cutoff])
        tasks.append(Task("context_recall", {**gold[name], "context": context}))
    return _judged("context_recall", rows, tasks, judge, repeat)


def _gold(answers: pd.DataFrame, questions: pd.DataFrame) -> dict[str, dict[str, str]]:
    schema.check(questions, "questions")
    known = {
        row["question_id"]: {"question": row["text"], "gold": row["answer"]}
        for row in questions.to_dict("records")
        if row["answer"]
    }
    for name in answers["question_id"]:
        if name not in known:
            raise DataError(f"no gold answer to question {name!r}")
    return known


def _judged(kind: str, rows: pd.DataFrame, tasks, judge: Judge, repeat: int) -> pd.DataFrame:
    judge.need(kind)
    verdicts = judge.judge(tasks, repeat=repeat) if tasks else []
    return pd.DataFrame(
        {
            "system": rows["system"].to_numpy(),
            "question_id": rows["question_id"].to_numpy(),
            "metric": kind,
            "value": [math.nan if v.missing else float(v.value) for v in verdicts],
            "reason": [v.reason for v in verdicts],
            "model": [v.model for v in verdicts],
            "spread": [math.nan if v.spread is None else v.spread for v in verdicts],
            "repeats": [v.values for v in verdicts],
        }
    )
