"""Explorers of questions, cards of questions, documents side by side, maps for the mouse.

>>> import pandas as pd
>>> frame = pd.DataFrame({"text": ["Where?"], "answer": ["In Paris."]}, index=["q1"])
>>> chooser = questions(frame)
>>> asked = frame.assign(type="short", facts=[("In Paris.",)], gold_doc_ids=[("a",)])
>>> document = {"doc_id": "a", "source": "chat", "title": "A", "text": "It is in Paris."}
>>> shown = [cards(asked, pd.DataFrame([document])), documents([document], marks=["Paris"])]
>>> points = pd.DataFrame({"corpus": "mine", "source": "chat", "title": ["A", "B"], "x": [0, 1]})
>>> map_ = maps(points.assign(y=[1, 0], terms="pump", trustworthiness=0.9))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from IPython.display import HTML
from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape

from ragkit.errors import DataError, UsageError
from ragkit.report import tables
from ragkit.report.figures import GREY, SOURCES, STYLE

if TYPE_CHECKING:
    import pandas as pd

    from ragkit.irt import IRTResult

_LOADER = FileSystemLoader(Path(__file__).parent)
_PAGES = Environment(loader=_LOADER, autoescape=True, finalize=lambda value: _cell(value))
_PAGES = _PAGES.get_template("explore.html").module


class Explorer:
    """A list to choose from, and a page for what is chosen; without a kernel, a table.

    `choose` is the ipywidgets drop-down list, `shown` the HTML widget below it, `page` the function
    that returns the HTML of a choice, `table` what a page without a kernel shows.
    """

    def __init__(self, names: Mapping, page: Callable[[str], str], table, label: str = "question"):
        from ipywidgets import HTML as Shown
        from ipywidgets import Dropdown, VBox

        if not names:
            raise DataError(f"no {label} to explore")
        self.page, self.table = page, table
        options = [(tables.plain(words), key) for key, words in names.items()]
        self.choose = Dropdown(options=options, description=label, layout={"width": "95%"})
        self.shown = Shown(page(options[0][1]))
        self.choose.observe(self._show, names="value")
        self._box = VBox([self.choose, self.shown])

    def _show(self, change: dict) -> None:
        self.shown.value = self.page(change["new"])

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        return {**self._box._repr_mimebundle_(), "text/html": self.table.to_html()}


def facts(pairs: Mapping, *below: str) -> str:
    """Return named values as a small table of HTML, and HTML below it."""
    return str(_PAGES.question(pairs.items(), Markup("".join(below))))


def excerpt(text: str, characters: int = 300, marks: Sequence[str] = ()) -> Markup:
    """Return a part of a text as HTML, around its first mark or the beginning, and its length."""
    text, start = tables.plain(text), 0
    first = _parts(marks).search(text)
    if first and first.start() > characters // 2:
        start = text.rfind(" ", 0, first.start() - characters // 3) + 1
    end = min(len(text), start + characters)
    if end < len(text):
        end = max(text.rfind(" ", start, end), start + 1)
    part = str(_marked(text[start:end], marks))
    lines = re.sub(r"\n(?:(?:\s|&gt;)*\n)?\s*", "<br>", part)
    before = f"<b>{escape(text.partition(chr(10))[0])}</b> … " if start else ""
    rest = f"{' …' if end < len(text) else ''} <i>({len(text):,} characters in all)</i>"
    return Markup(before + lines + (rest if start or end < len(text) else ""))


def _parts(marks: Sequence[str]) -> re.Pattern:
    """Return a pattern of marks in letters of either case; a number is not marked inside another."""
    parts = sorted(filter(None, map(tables.plain, marks)), key=len, reverse=True)
    words = "|".join(map(re.escape, parts)) or "(?!)"
    return re.compile(rf"(?<!\w)(?<!\d[.,])({words})(?!\w)", re.IGNORECASE)


def _marked(text: str, marks: Sequence[str]) -> Markup:
    """Return a text as HTML with its marks."""
    parts = _parts(marks).split(tables.plain(text))
    mark = Markup("<mark>{}</mark>")
    return Markup("").join(mark.format(part) if i % 2 else part for i, part in enumerate(parts))


def listed(frame: pd.DataFrame, caption: str = "") -> str:
    """Return a frame as a table of HTML."""
    return tables.show(frame, caption).to_html()


def questions(
    frame: pd.DataFrame,
    scores: pd.DataFrame | None = None,
    *,
    answers: pd.DataFrame | None = None,
    verdicts: pd.DataFrame | None = None,
    documents: pd.DataFrame | None = None,
    fit: IRTResult | None = None,
    most: int = 10,
) -> Explorer:
    """Return an explorer of questions: choose one, and read it with what all systems made of it.

    `frame` is indexed by question, with the column text and any others to be shown, such as answer,
    diff and gold_doc_ids; `scores` has the columns subject_id, item_id and score, `answers` system,
    question_id and answer, `verdicts` system, question_id and correct; of `documents` the gold ones
    are shown, of `fit` the question's curve. Without a kernel, a table of the first `most` questions
    is shown. `DataError` if there is no question.
    """
    gold = None if documents is None else documents.set_index("doc_id")["text"]

    def page(key: str) -> str:
        row = frame.loc[key]
        told = {"question": row["text"], "answer": row.get("answer")}
        told |= {name: row[name] for name in frame if name not in told and name != "text"}
        for doc in row.get("gold_doc_ids", ()) if gold is not None else ():
            told[f"gold document {doc}"] = (
                excerpt(gold[doc]) if doc in gold else "not in the corpus"
            )
        below = [] if scores is None else [listed(_systems(key, scores, answers, verdicts))]
        if fit is not None and key in fit.items.index:
            below.append(_drawn(fit, scores, key))
        return facts(told, *below)

    names = {key: f"{key}: {str(text)[:90]}" for key, text in frame.get("text", {}).items()}
    caption = f"The first {min(most, len(frame))} of {len(frame)} questions"
    return Explorer(names, page, tables.show(frame.head(most).reset_index(), caption))


def _systems(key: str, scores, answers, verdicts) -> pd.DataFrame:
    """Return what every system made of a question, best first."""
    own = scores[scores["item_id"] == key].sort_values("score", ascending=False, kind="stable")
    own = own[["subject_id", "score"]].rename(columns={"subject_id": "system"})
    for frame, column in ((verdicts, "correct"), (answers, "answer")):
        if frame is not None:
            said = frame[frame["question_id"] == key][["system", column]]
            own = own.merge(said, on="system", how="left")
    return own


def _drawn(fit: IRTResult, scores: pd.DataFrame, key: str) -> str:
    """Return a question's curve as a picture in HTML."""
    import base64
    import io

    import matplotlib.pyplot as plt

    from ragkit.report.plots import irt as plots

    fig, stream = plots.curves(fit, scores, items=[key]), io.BytesIO()
    fig.savefig(stream, format="png", dpi=100, metadata={"Software": None})
    plt.close(fig)
    data = base64.b64encode(stream.getvalue()).decode()
    return f'<img alt="expected score of this question over ability" src="data:image/png;base64,{data}">'


def cards(
    questions: pd.DataFrame,
    documents: pd.DataFrame,
    *,
    categories: Sequence[str] = ("type",),
    characters: int = 700,
) -> HTML:
    """Return questions as cards: the question, its categories, answer, claims and gold documents.

    `questions` and `documents` are frames of `ragkit.schema`. `categories` are columns of `questions`.
    Claims are shown by class where there are columns `claims_direct` and so on, else the facts. Of a
    document `characters` are shown around the first of the question's `marks`, parts of documents
    in a column of that name, and its whole length is given.
    """
    asked = set().union(*questions["gold_doc_ids"])
    gold = {d.doc_id: d for d in documents[documents["doc_id"].isin(asked)].itertuples()}
    rows = []
    for row in questions.to_dict("records"):
        marks = row.get("marks") or ()
        claims = {kind: row.get(f"claims_{kind}", ()) for kind in STYLE["claims"]}
        row["claims"] = claims if any(map(len, claims.values())) else {"": row["facts"]}
        row["categories"] = [str(row[name]).replace("_", " ") for name in categories]
        row["documents"] = [
            (f"{gold[doc].source}: {gold[doc].title}", excerpt(gold[doc].text, characters, marks))
            if doc in gold
            else (doc, "not in the corpus")
            for doc in row["gold_doc_ids"]
        ]
        rows.append(row)
    return HTML(str(_PAGES.cards(rows, STYLE["claims"])))


def documents(
    rows: Sequence[Mapping],
    *,
    notes: Sequence[str] = (),
    marks: Sequence[str] = (),
    columns: int = 1,
) -> HTML:
    """Return documents for display, each whole: title, text, and whatever else is known of it.

    `notes` are lines above the documents, one each; `marks` are words that are marked wherever they
    stand; `columns` documents stand side by side. `UsageError` if there are fewer notes than documents.
    """
    if notes and len(notes) != len(rows):
        raise UsageError(f"{len(rows)} documents need as many notes, found {len(notes)}")
    shown = [
        {**row, "title": _marked(row["title"], marks), "text": _marked(row["text"].strip(), marks)}
        for row in rows
    ]
    return HTML(str(_PAGES.documents(shown, notes, columns)))


def _cell(value):
    """Return a value as a page shows it: numbers to three digits, text without invisible characters."""
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, Markup):
        return value
    return tables.plain("" if value is None else str(value))


def _text(value) -> str:
    return str(escape(_cell(value)))


class Page:
    """A plotly figure that a notebook and its HTML page show without network."""

    def __init__(self, figure):
        self.figure = figure

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        import json

        # A fixed id gives the same figure the same bytes.
        page = self.figure.to_html(full_html=False, include_plotlyjs=True, div_id="explorer")
        described = json.loads(self.figure.to_json())
        return {"application/vnd.plotly.v1+json": described, "text/html": page}


def maps(points: pd.DataFrame) -> Page:
    """Return maps of corpora side by side: the mouse shows a document's title and source.

    `points` are rows of `ragkit.measures.corpus.atlas`, of one method, with a column corpus.
    """
    from plotly.graph_objects import Scattergl
    from plotly.subplots import make_subplots

    trust = points.groupby("corpus", sort=False)["trustworthiness"].first()
    titles = [_text(f"{name} (trustworthiness {value:.2f})") for name, value in trust.items()]
    fig = make_subplots(1, len(trust), subplot_titles=titles, horizontal_spacing=0.02)
    seen = set()
    for (name, source), group in points.groupby(["corpus", "source"], sort=False):
        paint, shape = SOURCES.get(source, (GREY, "o"))
        trace = Scattergl(
            x=group["x"].round(2).tolist(), y=group["y"].round(2).tolist(), mode="markers",
            name=_text(source), legendgroup=_text(source), showlegend=source not in seen,
            marker={"color": paint, "size": 5, "symbol": {"o": "circle"}.get(shape, "triangle-up")},
            customdata=group[["title", "source", "terms"]].map(_text).to_numpy().tolist(),
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}, cluster: %{customdata[2]}<extra></extra>",
        )  # fmt: skip
        fig.add_trace(trace, row=1, col=trust.index.get_loc(name) + 1)
        seen.add(source)
    fig.update_xaxes(visible=False)
    fig.update_yaxes(visible=False)
    margin, below = {"l": 10, "r": 10, "t": 60, "b": 10}, {"orientation": "h", "y": -0.02}
    fig.update_layout(template="plotly_white", height=520, margin=margin, legend=below)
    return Page(fig)
