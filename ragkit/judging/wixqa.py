"""WixQA's judged metrics: factuality of answers, and context recall of retrieved documents.

Both are the rating of a judge from 1 to 5 (`ragkit.judging.judges.unit_rating`): WixQA, section 4.3 and
appendices C and D, where the judge is GPT-4o.

>>> from ragkit import datasets
>>> from ragkit.judging import load_judge
>>> wixqa, judge = datasets.load("wixqa"), load_judge("offline")
>>> asked = wixqa.questions.head(2)
>>> answers = asked[["question_id", "answer"]].assign(system="gold", doc_ids=asked["gold_doc_ids"])
>>> factuality(answers, asked, judge)["value"].gt(0.5).all().item()
True
>>> context_recall(answers, asked, wixqa.documents, judge)["value"].between(0, 1).all().item()
True
"""

from __future__ import annotations

import pandas as pd

from ragkit import schema
from ragkit.errors import DataError
from ragkit.judging.goldset import join_documents, require
from ragkit.judging.judges import Judge, ask, code, tasks


def factuality(
    answers: pd.DataFrame, questions: pd.DataFrame, judge: Judge, *, repeat: int = 1
) -> pd.DataFrame:
    """Judge how much of the gold answer each answer states, without errors.

    Parameters
    ----------
    answers, questions : DataFrame
        Frames `answers` (a row without an answer, None, is not judged; an empty one is) and
        `questions`; `DataError` if one of these has no gold answer.
    judge : Judge
    repeat : int >= 1
        Number of verdicts on each; the score is their mean.

    Returns
    -------
    DataFrame
        One row per answer judged: system, question_id, metric, value in [0, 1] (NaN where the
        verdict is missing), reason, model, spread, repeats (the value of each).
    """
    rows = schema.check(answers, "answers").dropna(subset="answer")
    return _rated("factuality", rows, questions, judge, repeat)


def context_recall(
    answers: pd.DataFrame,
    questions: pd.DataFrame,
    documents: pd.DataFrame,
    judge: Judge,
    *,
    cutoff: int | None = None,
    repeat: int = 1,
) -> pd.DataFrame:
    """Judge how much of the gold answer could be written from the retrieved documents.

    As `factuality`, on the first `cutoff` (the paper retrieves 5; default all) of the `doc_ids` of
    each row; a row without any is not judged. `documents` is a frame; `DataError` if one is
    missing.
    """
    rows = schema.check(answers, "answers")
    rows = rows[rows["doc_ids"].map(len) > 0]
    texts = schema.check(documents, "documents").set_index("doc_id")["text"].to_dict()
    shown = rows["doc_ids"].map(lambda docs: docs[:cutoff])
    require(shown.explode(), texts)
    contexts = [join_documents(texts[doc] for doc in docs) for docs in shown]
    return _rated("context_recall", rows.assign(context=contexts), questions, judge, repeat)


def _rated(kind: str, rows, questions, judge: Judge, repeat: int) -> pd.DataFrame:
    judge.need(kind)
    asked = schema.check(questions, "questions")
    asked = asked[asked["answer"].map(bool)].set_index("question_id")
    absent = rows["question_id"][~rows["question_id"].isin(asked.index)]
    if len(absent):
        raise DataError(f"no gold answer to question {absent.iloc[0]!r}")
    asked = asked.loc[rows["question_id"]]
    fields = rows.assign(question=asked["text"].to_numpy(), gold=asked["answer"].to_numpy())
    verdicts = [vars(one) for one in ask(judge, tasks(kind, fields), repeat=repeat)]
    verdicts = pd.DataFrame(verdicts, columns=["value", "reason", "model", "spread", "values"])
    return (
        rows[["system", "question_id"]]
        .reset_index(drop=True)
        .assign(metric=kind, value=[code(kind, value) for value in verdicts["value"]])
        .join(verdicts[["reason", "model", "spread"]].astype({"spread": float}))
        .join(verdicts["values"].rename("repeats"))
    )
