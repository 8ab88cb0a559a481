"""WixQA's judged metrics: factuality of answers, and context recall of retrieved documents."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from ragkit import schema
from ragkit.errors import DataError
from ragkit.judging.goldset import join_documents
from ragkit.judging.judges import Judge, Task, ask


def factuality(
    answers: pd.DataFrame, questions: pd.DataFrame, judge: Judge, *, repeat: int = 1
) -> pd.DataFrame:
    """Judge how much of the gold answer each answer states, without errors.

    Parameters
    ----------
    answers : DataFrame
        A frame `answers`. A row without an answer (None) is not judged; an empty one is.
    questions : DataFrame
        A frame `questions` with gold answers.
    judge : Judge
    repeat : int >= 1
        Number of verdicts on each; the score is their mean.

    Returns
    -------
    DataFrame
        One row per answer judged: system, question_id, metric, value in [0, 1] (from 1 to 5 by
        `ragkit.judging.unit_rating`; NaN where the verdict is missing), reason, model, spread,
        repeats (the value of each).

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
    return _judged("factuality", "answer", rows["answer"], rows, gold, judge, repeat)


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
        The most documents to show to the judge; the paper retrieves 5.
    repeat : int >= 1

    Returns
    -------
    DataFrame
        As `factuality`.

    Raises
    ------
    DataError, UsageError
        As in `factuality`; also if the text of a document is missing.

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
    shown = [docs[:cutoff] for docs in rows["doc_ids"]]
    for name, docs in zip(rows["question_id"], shown, strict=True):
        absent = [doc for doc in docs if doc not in documents]
        if absent:
            raise DataError(f"question {name!r}: the text of document {absent[0]!r} is not there")
    contexts = [join_documents(documents[doc] for doc in docs) for docs in shown]
    return _judged("context_recall", "context", contexts, rows, gold, judge, repeat)


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


def _judged(kind, field, texts, rows: pd.DataFrame, gold, judge: Judge, repeat) -> pd.DataFrame:
    judge.need(kind)
    tasks = [
        Task(kind, {**gold[name], field: text})
        for name, text in zip(rows["question_id"], texts, strict=True)
    ]
    verdicts = ask(judge, tasks, repeat=repeat)
    return (
        rows[["system", "question_id"]]
        .assign(
            metric=kind,
            value=[math.nan if v.missing else float(v.value) for v in verdicts],
            reason=[v.reason for v in verdicts],
            model=[v.model for v in verdicts],
            spread=[math.nan if v.spread is None else v.spread for v in verdicts],
            repeats=[v.values for v in verdicts],
        )
        .reset_index(drop=True)
    )
