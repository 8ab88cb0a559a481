"""Benchmarks to read: an explorer of questions, and questions with their sources as cards."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from IPython.display import HTML

from ragkit.errors import DataError
from ragkit.report import tables

if TYPE_CHECKING:
    import pandas as pd

CLAIM_COLOURS = {"direct": "#d7f0e3", "useful": "#fdf3d1", "useless": "#e6e6e6"}


class Explorer:
    """A list of questions to choose from; without a kernel, a table of the first ones.

    Made by `questions`. `choose` is the ipywidgets drop-down list, `shown` the HTML widget below
    it, `table` the static table.
    """

    def __init__(self, frame: pd.DataFrame, scores: pd.DataFrame | None, most: int):
        from ipywidgets import HTML as Shown
        from ipywidgets import Dropdown, VBox

        self._frame, self._scores = frame, scores
        names = [f"{key}: {str(text)[:90]}" for key, text in frame["text"].items()]
        self.choose = Dropdown(
            options=list(zip(names, frame.index, strict=True)),
            description="question",
            layout={"width": "95%"},
        )
        self.shown = Shown(self.page(frame.index[0]))
        self.choose.observe(lambda change: self._show(change["new"]), names="value")
        self._box = VBox([self.choose, self.shown])
        caption = f"The first {min(most, len(frame))} of {len(frame)} questions"
        self.table = tables.show(frame.head(most).reset_index(), caption)

    def page(self, question_id: str) -> str:
        """Return one question as HTML: text, answer, all other columns, systems by score."""
        row = self._frame.loc[question_id]
        facts = {"question": row["text"], "answer": row.get("answer")}
        facts |= {name: row[name] for name in self._frame.columns.difference(facts, sort=False)}
        facts.pop("text", None)
        parts = [f"<tr><th>{_cell(name)}</th><td>{_cell(value)}</td></tr>" for name, value in facts.items()]  # fmt: skip
        page = f'<table style="text-align:left">{"".join(parts)}</table>'
        if self._scores is None:
            return page
        own = self._scores[self._scores["item_id"] == question_id]
        own = own.sort_values("score", ascending=False, kind="stable")
        columns = {"subject_id": "system", "score": "score"}
        return page + tables.show(own[list(columns)].rename(columns=columns)).to_html()

    def _show(self, question_id: str) -> None:
        self.shown.value = self.page(question_id)

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        return {**self._box._repr_mimebundle_(), "text/html": self.table.to_html()}


def questions(
    frame: pd.DataFrame, scores: pd.DataFrame | None = None, *, most: int = 10
) -> Explorer:
    """Return an explorer of questions: choose one, and read it with the scores of all systems.

    `frame` is indexed by question, with the column text and any others to be shown, such as answer
    and diff; `scores` has the columns subject_id, item_id and score. Without a kernel, a table of
    the first `most` questions is shown. `DataError` if there is no question.
    """
    if frame.empty:
        raise DataError("no questions to explore")
    return Explorer(frame, scores, most)


def cards(examples: Sequence[Mapping], *, characters: int = 700) -> HTML:
    """Return questions as cards: the question, its categories, its claims by class, its documents.

    Each example has the keys question, correct (the question without mistakes), categories, claims
    (lists by class), documents (texts) and marked (the parts of documents to highlight). Of a
    document `characters` are shown around the first highlighted part, and its whole length is given.
    """
    return HTML("".join(_card(example, characters) for example in examples))


def _card(row: Mapping, characters: int) -> str:
    claims = "".join(
        f'<li><span style="background:{shade};padding:0 4px">{kind}</span> {_cell(claim)}</li>'
        for kind, shade in CLAIM_COLOURS.items()
        for claim in row["claims"].get(kind, ())
    )
    texts = "".join(
        '<div style="margin:4px 0 0;padding-left:8px;border-left:3px solid #ccc;color:#444">'
        f"{_excerpt(text, row['marked'], characters)}</div>"
        for text in row["documents"]
    )
    correct = ""
    if row["correct"] != row["question"]:
        correct = f'<div style="color:#666">without mistakes: {_cell(row["correct"])}</div>'
    return (
        '<div style="max-width:900px;margin:0 0 14px;padding:8px 12px;border:1px solid #ddd;'
        f'text-align:left"><div style="font-size:110%"><b>{_cell(row["question"])}</b></div>'
        f"{correct}"
        f'<div style="color:#0072B2;font-size:85%">{" · ".join(map(_cell, row["categories"]))}</div>'
        f'<ul style="margin:4px 0;padding-left:18px">{claims}</ul>{texts}</div>'
    )


def _excerpt(text: str, marked: Sequence[str], characters: int) -> str:
    """Return a part of a text as HTML, around the first highlighted part, and the whole length."""
    text, marked = tables.plain(text), [tables.plain(part) for part in marked]
    places = [text.find(part) for part in marked if part in text]
    start = 0
    if places and min(places) > characters // 2:
        start = text.rfind(" ", 0, min(places) - characters // 3) + 1
    end = min(len(text), start + characters)
    if end < len(text):
        end = max(text.rfind(" ", start, end), start + 1)
    part = escape(text[start:end])
    for clause in sorted(marked, key=len, reverse=True):
        part = part.replace(escape(clause), f"<mark>{escape(clause)}</mark>")
    lines = re.sub(r"\n(?:(?:\s|&gt;)*\n)?\s*", "<br>", part)
    before = f"<b>{escape(text.partition(chr(10))[0])}</b> … " if start else ""
    rest = f"{' …' if end < len(text) else ''} <i>({len(text):,} characters in all)</i>"
    return before + lines + (rest if start or end < len(text) else "")


def _cell(value) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    return escape(tables.plain("" if value is None else str(value)))
