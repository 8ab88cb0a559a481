"""Why answers are wrong: one cause for each, from where the gold documents were lost.

A question is followed through a system: is its gold document in the corpus, in the ranked list,
among the documents that the reader was given; does the answer have the words of the gold answer; how
was it judged? The first step that fails is the cause, so the causes partition all wrong answers.

A language model read 200 wrong answers of three systems on the embedded sample and named each one's
cause before it saw the one given here (`tests/goldens/causes.csv`). Of 100 with an even share of each
cause they agree on 94 (95 % interval 88 to 97 %), of 100 drawn at random on 95 (89 to 98 %). The
first eight causes follow from ids and abstentions; of the 104 answers that are "not used" or "judged
wrong" they agree on 94. A right abstention that is judged wrong is a "no gold document".

>>> questions = pd.DataFrame({"question_id": ["q"], "type": ["basic"], "text": ["Where?"]})
>>> questions = questions.assign(answer="in Paris", gold_doc_ids=[("a",)])
>>> documents = pd.DataFrame({"doc_id": ["a"], "title": ["A"], "text": ["It is in Paris."]})
>>> runs = pd.DataFrame({"system": "s", "question_id": ["q"], "rank": 1, "doc_id": ["a"], "score": 2.0})
>>> answers = pd.DataFrame({"system": "s", "question_id": ["q"], "answer": ["Rome"], "doc_ids": [("a",)]})
>>> traced = trace(questions, documents, runs, answers, pd.Series({"q": False}))
>>> traced[["corpus", "rank", "delivered", "used", "cause"]]
             corpus  rank  delivered  used     cause
question_id
q                 1     1          1   0.0  not used
>>> summarise(traced)
          basic  wrong  share  most  expected
cause
not used      1      1    1.0   1.0       NaN
"""

from __future__ import annotations

import pandas as pd

from ragkit.errors import DataError
from ragkit.measures.metrics import token_recall

# In the order in which they are looked for: the first that holds is the cause.
CAUSES = {
    "no answer": "the system failed",
    "no gold document": "no document is known to answer it",
    "not in the corpus": "no gold document is in the corpus",
    "not traced": "neither the system's lists nor the documents that it read are known",
    "not retrieved": "no gold document is in the ranked list",
    "not delivered": "a gold document is in the list, the reader was given none",
    "partly delivered": "the reader was given some of the gold documents, not all",
    "abstained": "the reader was given all of them, and gave no answer",
    "not used": "the answer has few words of the gold answer",
    "judged wrong": "the answer has most words of the gold answer, and is judged wrong",
}
USED = 0.5  # an answer with at least this share of the gold answer's words used the documents
_STEPS = ["corpus", "rank", "delivered", "used", "correct"]


def trace(
    questions: pd.DataFrame,
    documents: pd.DataFrame,
    runs: pd.DataFrame,
    answers: pd.DataFrame,
    correct: pd.Series,
) -> pd.DataFrame:
    """Follow every question of one system; return where its gold documents got, and the cause.

    The frames are those of `ragkit.schema`, `runs` and `answers` of one system; an answer that is
    None failed, and `answers` may say which `abstained`. `correct` is True or False by question_id;
    a question without a verdict is in no count.

    Returns by question_id: type, gold (number of gold documents), corpus (how many of them the
    corpus has), rank (of the first in the list, NaN if none), delivered (how many the reader was
    given), used (share of the gold answer's words, NaN without a gold answer), correct, and cause:
    a key of `CAUSES`, "" for a correct answer. Raises `DataError` if the frames are of several
    systems or a question has no answer row.
    """
    for name, frame in (("runs", runs), ("answers", answers)):
        if frame["system"].nunique() > 1:
            raise DataError(f"{name} are of {frame['system'].nunique()} systems, expected one")
    asked = questions[questions["question_id"].isin(correct.dropna().index)]
    given = answers.set_index("question_id")
    lost = asked.loc[~asked["question_id"].isin(given.index), "question_id"]
    if len(lost):
        raise DataError(f"answers: no row for question {lost.iloc[0]!r}")
    followed = len(runs) > 0 or given["doc_ids"].map(len).any()
    here, ranks = set(documents["doc_id"]), runs.groupby("question_id")
    lists = {key: dict(zip(rows["doc_id"], rows["rank"], strict=True)) for key, rows in ranks}
    rows = []
    for question in asked.itertuples():
        answer, gold = given.loc[question.question_id], set(question.gold_doc_ids)
        found = [rank for doc, rank in lists.get(question.question_id, {}).items() if doc in gold]
        text, known = answer["answer"], question.answer
        text = text if isinstance(text, str) else None
        silent = text is not None and (not text.strip() or bool(answer.get("abstained") == 1))
        share = token_recall(text, known) if isinstance(known, str) else float("nan")
        row = {
            "question_id": question.question_id, "type": question.type, "gold": len(gold),
            "corpus": len(gold & here), "rank": min(found, default=float("nan")),
            "delivered": len(gold & set(answer["doc_ids"])), "used": share,
            "correct": bool(correct[question.question_id]),
        }  # fmt: skip
        row["cause"] = "" if row["correct"] else _cause(row, text, silent, followed)
        rows.append(row)
    columns = ["question_id", "type", "gold", *_STEPS, "cause"]
    return pd.DataFrame(rows, columns=columns).set_index("question_id")


def _cause(row: dict, text: str | None, silent: bool, followed: bool) -> str:
    steps = {
        "no answer": text is None,
        "no gold document": not row["gold"],
        "not in the corpus": not row["corpus"],
        "not traced": not followed,
        "not retrieved": pd.isna(row["rank"]) and not row["delivered"],
        "not delivered": not row["delivered"],
        "partly delivered": row["delivered"] < row["gold"],
        "abstained": silent,
        "not used": not row["used"] >= USED,
    }
    return next((name for name, holds in steps.items() if holds), "judged wrong")


def summarise(traced: pd.DataFrame) -> pd.DataFrame:
    """Return how many wrong answers each cause has, by type of question, and what mending it gains.

    One row a cause that has any: a column for each type, wrong (their sum), share (of all wrong
    answers), and what the share of correct answers would gain: most, if all of them became correct;
    expected, as often as the questions that got past this step (NaN if none did).
    """
    wrong = traced[traced["cause"] != ""]
    order = [name for name in CAUSES if name in set(wrong["cause"])]
    table = pd.crosstab(wrong["cause"], wrong["type"]).reindex(order).rename_axis(None, axis=1)
    table["wrong"] = wrong["cause"].value_counts().reindex(order)
    table["share"] = table["wrong"] / max(1, len(wrong))
    table["most"] = table["wrong"] / max(1, len(traced))
    places = {name: place for place, name in enumerate(CAUSES)}
    got = traced["cause"].map(places).fillna(len(CAUSES))
    right = [traced.loc[got > places[name], "correct"].mean() for name in order]
    table["expected"] = table["most"] * right
    return table.rename_axis("cause")
