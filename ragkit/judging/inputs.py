"""Read questions, answers and documents for the harness, and strip citations from answers.

>>> from ragkit import datasets
>>> asked, bad = read_questions(datasets.load("enterpriserag_bench").questions.head(2))
>>> answers = asked[["question_id", "answer", "gold_doc_ids"]]
>>> answers = answers.rename(columns={"gold_doc_ids": "doc_ids"})
>>> answers.to_json("answers.json", orient="records")
>>> answers, bad = read_answers("answers.json", asked)
>>> len(answers), len(bad)
(2, 0)
>>> wanted = set(asked["gold_doc_ids"][0])
>>> documents = datasets.load("enterpriserag_bench").documents
>>> documents.to_json("documents.json", orient="records")
>>> read_documents("documents.json", wanted).keys() == wanted
True
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Container, Iterable
from pathlib import Path

import pandas as pd

from ragkit import schema
from ragkit.errors import DataError
from ragkit.files import read_frame

_PATTERNS = tomllib.loads(Path(__file__).with_name("citations.toml").read_text("utf-8"))
_CODE = re.compile(_PATTERNS["code"], re.DOTALL)
_MARK, _LINK, _LIST = (
    re.compile(
        pattern.replace("NUMBERS", _PATTERNS["numbers"]).replace("NAME", _PATTERNS["name"]),
        re.VERBOSE | re.IGNORECASE,
    )
    for pattern in (_PATTERNS["mark"], _PATTERNS["link"], _PATTERNS["list"])
)


def strip_citations(answer: str) -> str:
    """Remove the references from an answer, so that a judge sees its content alone.

    Removed are numbers in brackets ([1], [2, 5], [3-4], [^1], 【4†source】), named references
    ([Document 2], (source: 3)), ids of documents in brackets, the addresses of links (their text
    stays), and a list of sources at the end. Code (between backquotes) and all other brackets
    are kept. EnterpriseRAG-Bench, section 5.1, names the step; its code uses a model for it.

    >>> strip_citations("It costs 10 euros [2, 5]. [Ask us](https://a.example)!")
    'It costs 10 euros. Ask us!'
    """
    text = _LIST.sub("", f"\n{answer}")[1:]
    parts = _CODE.split(text)
    for place in range(0, len(parts), 2):
        parts[place] = _LINK.sub(r"\1", _MARK.sub("", parts[place]))
    return "".join(parts).strip()


def read_questions(source: pd.DataFrame | str | Path, *, skip_bad: bool = False):
    """Read or check questions with their gold answers and, where they have any, facts.

    The source is a file for `ragkit.files.read_frame`, or a frame `questions`. A bad row raises
    `DataError` or, with `skip_bad`, is left out.

    Returns
    -------
    questions : DataFrame
    bad : list of dict
        The file, line (0 if it is not known) and reason of each row that is left out.
    """

    def complaint(row) -> str:
        return "" if row["answer"] else f"question {row['question_id']!r} has no gold answer"

    return _checked(source, "questions", complaint, skip_bad)


def read_answers(
    source: pd.DataFrame | str | Path, questions: pd.DataFrame, *, skip_bad: bool = False
) -> tuple[pd.DataFrame, list[dict]]:
    """Read or check the answers of one or several systems to `questions`.

    As `read_questions`, of a frame `answers` or a file with answer, doc_ids, or both, and system
    where it holds several. A row that answers none of the questions is bad. In `answers.attrs`,
    `lists` says whether the file gives doc_ids, be they empty.
    """
    known = set(questions["question_id"])

    def complaint(row) -> str:
        unknown = f"question_id {row['question_id']!r} is none of the {len(known):,} questions"
        return "" if row["question_id"] in known else unknown

    return _checked(source, "answers", complaint, skip_bad)


def _checked(source, kind: str, complaint, skip_bad: bool) -> tuple[pd.DataFrame, list[dict]]:
    bad: list[dict] = []
    framed = isinstance(source, pd.DataFrame)
    where = kind if framed else source
    try:
        if framed:
            frame = schema.check(source, kind)
        else:
            frame = read_frame(source, kind, bad=bad if skip_bad else None)
        reasons = pd.Series([complaint(row) for row in frame.to_dict("records")], frame.index)
        kept, found = frame[reasons == ""].reset_index(drop=True), list(reasons[reasons != ""])
        if found and (kept.empty or not skip_bad):
            raise DataError(f"{where}: {'no usable row; ' * skip_bad}{found[0]}")
    except DataError as error:
        hint = error.hint or (None if skip_bad else "--skip-bad (skip_bad=True) evaluates the rest")
        raise DataError(error.message, hint) from None
    kept.attrs["lists"] = framed or "doc_ids" in frame.attrs["given"]
    bad += [{"line": 0, "reason": reason} for reason in found]
    return kept, [{"file": Path(where).name, **one} for one in bad]


def read_labels(
    source: pd.DataFrame | str | Path, systems: Iterable[str], questions: Container[str]
) -> dict[tuple[str, str], float]:
    """Read or check scores of correctness, by system and question.

    The source is a file for `ragkit.files.read_frame`, or a frame `scores`, whose rows of other
    systems are left out. `DataError` if a score is not from 0 to 1, a question is unknown, or a
    system has fewer than two scores.
    """
    framed = isinstance(source, pd.DataFrame)
    where = "labels" if framed else source
    frame = schema.check(source, "scores") if framed else read_frame(source, "scores")
    frame = frame[frame["subject_id"].isin(systems)]
    if not (frame["score"].astype(float).between(0, 1)).all():
        raise DataError(f"{where}: a label should be a number from 0 to 1")
    found = frame.set_index(["subject_id", "item_id"])["score"].astype(float).to_dict()
    for _, name in found:
        if name not in questions:
            raise DataError(f"{where}: {name!r} is none of the questions")
    for system in systems:
        if (n := (frame["subject_id"] == system).sum()) < 2:
            raise DataError(f"{where}: two labels of {system!r} are needed, found {n}")
    return found


def read_documents(path: str | Path, needed: set[str]) -> dict[str, str]:
    """Return the texts of the `needed` documents, by id, title first.

    The path is a file for `ragkit.files.read_frame`, or the released archive (.zip).
    """
    return document_texts(read_frame(path, "documents", only=needed))


def document_texts(documents: pd.DataFrame) -> dict[str, str]:
    """Return the texts of a frame `documents`, by id, title first."""
    rows = documents[["doc_id", "title", "text"]].itertuples(index=False)
    return {doc: "\n\n".join(filter(None, (title, text))) for doc, title, text in rows}
