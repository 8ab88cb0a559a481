"""The same hostile texts in every table, figure, repr, explorer and page: they stay text."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from inspect import isfunction
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragkit import datasets, explore, irt, judging
from ragkit.judging.goldset import Review
from ragkit.llm import Exchange, Failure, Ledger, Request, Value
from ragkit.llm.exchange import ToolCall
from ragkit.measures import causes
from ragkit.report import experiments, figures, pipeline, tables
from ragkit.report.plots import irt as item_response
from ragkit.synth import study
from ragkit.synth.datamorgana.make import Benchmark
from ragkit.systems import readers, sweep
from ragkit.systems.agent.bash_agent import Step, Transcript
from ragkit.systems.retrieval import BM25
from tests.report import test_plots

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</table></script>",
    "cost $5 and 100 % of a_b \\input{x} & more #1 {y} ~ ^ for $6",
    "a|b [link](javascript:alert(1)) `code` *bold*",
    "\u202eesrever \u2067mark\u2069 \u200f\x07",
]
UNSEEN = "\u202e\u2067\u2069\u200f\x07"
RAW = ("<script>alert", "<img src", "</table></script", "onerror=alert(1)>")


def frame(index="labels"):
    found = pd.DataFrame(dict.fromkeys(HOSTILE[:2], HOSTILE), pd.Index(HOSTILE, name=HOSTILE[2]))
    found = found.assign(number=1.5, listed=[[text] for text in HOSTILE], lost=None)
    if index == "range":
        found = found.reset_index(drop=True)
    if index == "two levels":
        found.columns = pd.MultiIndex.from_product([found.columns, ["printed"]], names=HOSTILE[:2])
    return found


def questions():
    found = pd.DataFrame({"text": HOSTILE, "answer": HOSTILE[::-1], "diff": np.arange(6) / 3})
    return found.assign(**{HOSTILE[0]: HOSTILE[1]}).set_axis([f"q{n}" for n in range(6)])


def explorer():
    scores = pd.DataFrame({"subject_id": HOSTILE[:2], "item_id": "q2", "score": [0.1, 0.9]})
    view = explore.questions(questions(), scores)
    view.choose.value = "q2"
    assert "0.9" in view.shown.value
    return every_page(view)


def made_by(*systems):
    """Return hostile questions and documents, and what systems made of them."""
    asked = questions().set_axis(HOSTILE).rename_axis("question_id").reset_index()
    asked["type"], asked["gold_doc_ids"] = HOSTILE, [(text,) for text in HOSTILE]
    documents = pd.DataFrame(dict.fromkeys(["doc_id", "title", "text", "source"], HOSTILE))
    rows = [(*pair, pair[1]) for pair in product(systems, asked["question_id"])]
    answers = pd.DataFrame(rows, columns=["system", "question_id", "answer"])
    answers["doc_ids"] = [tuple(HOSTILE)] * len(answers)
    runs = answers.assign(doc_id=HOSTILE * len(systems), rank=1, score=1.0)
    return asked, documents, runs, answers


def every_page(view):
    """Return what an explorer shows of every choice, live and without a kernel."""
    keys = [key for _, key in view.choose.options]
    return "".join(map(view.page, keys)) + view._repr_mimebundle_()["text/html"]


def pair():
    asked, _, _, answers = made_by(*HOSTILE[:2])
    scores = answers.rename(columns={"system": "subject_id", "question_id": "item_id"})
    scores = scores.assign(score=np.arange(len(scores)) / len(scores))
    return every_page(explore.pair(scores, *HOSTILE[:2], asked, answers))


def wrong():
    asked, documents, runs, answers = made_by(HOSTILE[0])
    judged = pd.Series(False, index=asked["question_id"])
    traced = causes.trace(asked, documents, runs, answers, judged)
    return every_page(explore.causes(traced, asked, answers))


def searched():
    asked, documents, runs, _ = made_by(HOSTILE[0])
    view = explore.corpus(hostile_points(), documents, asked, runs)
    return view.page("") + view._repr_mimebundle_()["text/html"].partition("</script>")[2]


def side_by_side():
    rows = [dict.fromkeys(("title", "text", "source", HOSTILE[1]), text) for text in HOSTILE]
    return explore.documents(rows, marks=HOSTILE, notes=HOSTILE)


def cards():
    asked, documents, *_ = made_by(HOSTILE[0])
    documents["text"] += " filler" * 200
    asked["facts"] = asked["marks"] = asked["claims_direct"] = [HOSTILE] * len(asked)
    return explore.cards(asked, documents, categories=["type"])


def hostile_points():
    points = test_plots.points().query("method == 'UMAP'")
    texts = np.resize(HOSTILE, len(points))
    return points.assign(title=texts, terms=texts, source=texts, corpus=texts)


def maps():
    page = explore.maps(hostile_points())._repr_mimebundle_()["text/html"]
    return page.partition("</script>")[2]


def fitted():
    made = irt.simulate(12, 8, seed=1).scores
    for column in ("subject_id", "item_id"):
        ids = made[column].unique()
        names = dict(zip(ids, [f"{n} {HOSTILE[n % 6]}" for n in range(len(ids))], strict=True))
        made[column] = made[column].map(names)
    return irt.fit(made), made


def swept():
    asked, documents, runs, answers = made_by(HOSTILE[0])
    asked["facts"] = [()] * len(asked)
    lost = pd.DataFrame(columns=["system", "question_id", "stage", "reason"])
    one = sweep.System(HOSTILE[0], {"kind": "bm25"})
    return sweep.Sweep([one], asked, runs, answers.assign(abstained=False), lost)


def judged():
    asked, _, _, answers = made_by(HOSTILE[0])
    asked["facts"] = [(text,) for text in HOSTILE]
    return judging.evaluate(asked, answers, judging.load_judge("offline"), system=HOSTILE[0])


def transcript(ranking):
    made = Transcript(*HOSTILE[:3], steps=[Step(HOSTILE[3], HOSTILE[4])], ranking=ranking)
    return replace(made, stopped=HOSTILE[4], prompt_tokens=7)


def reviewed():
    votes = {"votes": {HOSTILE[0]: [None, HOSTILE[2]]}, "classes": {HOSTILE[0]: HOSTILE[1]}}
    return Review([HOSTILE[0]], HOSTILE, **votes, answer=HOSTILE[2], facts=tuple(HOSTILE))


def planned():
    steps = [pipeline.Step(text) for text in HOSTILE]
    return pipeline.Plan("sample", HOSTILE[0], steps, {HOSTILE[0]: tuple(HOSTILE[1:3])}, None)


def company():
    Path("statistics.json").write_text(json.dumps({"company": HOSTILE[0]}))
    made = study.Company(Path(), official=HOSTILE[1])
    blocks = frame("range").assign(kind=HOSTILE)
    vars(made).update(documents=HOSTILE, questions=HOSTILE, blocks=blocks)
    return made


def generated():
    return Benchmark([{"Question": text, "Answer": text} for text in HOSTILE], [])


LABELS = {"model": HOSTILE[0], "purpose": HOSTILE[1], "prompt": "", "key": "", "text": HOSTILE[2]}


def value():
    unknown = dict.fromkeys(["data", "finish_reason", "served_by", "completion_tokens"])
    calls = (ToolCall("1", HOSTILE[3], {}),)
    return Value(tool_calls=calls, repaired=False, prompt_tokens=5, **LABELS, **unknown)


def ledger():
    book = Ledger("llm.sqlite")
    labels = {"purpose": HOSTILE[0], "prompt": HOSTILE[1]}
    book.put(Exchange.pending(Request(HOSTILE[2], **labels), f"openai:{HOSTILE[0]}"))
    return book


def dataset():
    frames = {HOSTILE[1]: questions()}
    return datasets.Dataset(HOSTILE[0], "own", frames, pd.DataFrame(), portion=HOSTILE[2])


# Each returns HTML, or what is shown as HTML.
PAGES = {
    "table": lambda: tables.show(frame(), HOSTILE[0]).to_html(),
    "explorer": explorer,
    "cards": cards,
    "maps": maps,
    "pair": pair,
    "causes": wrong,
    "corpus": searched,
    "documents": side_by_side,
    "dataset": dataset,
    "fit": lambda: fitted()[0],
    "sweep": swept,
    "short form": lambda: irt.short_form(fitted()[1], 3),
    "evaluation": judged,
    "ledger": ledger,
    "transcript": lambda: transcript([(text, 0.5) for text in HOSTILE]),
    "review": reviewed,
    "plan": planned,
    "company": company,
    "generated": generated,
    "value": value,
    "failure": lambda: Failure(kind=HOSTILE[3], reason=HOSTILE[4], **LABELS),
    "experiment": lambda: replace(experiments.get("wixqa-table-3"), title=" ".join(HOSTILE)),
}


def test_every_explorer_is_attacked():
    assert {"questions", "cards", "documents", "maps", "causes", "corpus", "pair"} == {
        name for name, one in vars(explore).items() if isfunction(one)
    }


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_text_as_text(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = PAGES[name]()
    text = made if isinstance(made, str) else made._repr_html_()
    assert not [raw for raw in RAW if raw in text]
    assert "&lt;script&gt;" in text or "\\u003cscript" in text
    if name != "maps":
        assert not set(UNSEEN) & set(text)


DRAWN = "forest trends mix effects by-type ranking type-map first-ranks standings map words maps"


@pytest.mark.parametrize("name", [*DRAWN.split(), "irt"])
def test_a_figure_shows_text_as_text(name, monkeypatch, tmp_path):
    """A figure is drawn whatever its categories are called, and `$` sets no formula."""
    monkeypatch.setattr(test_plots, "KINDS", HOSTILE[:4])
    monkeypatch.setattr(test_plots, "NAMES", HOSTILE[:4])
    figures.use_style()
    if name == "irt":
        result, scores = fitted()
        drawn = [item_response.curves(result, scores, bins=2), item_response.wright(result)]
        bins = pd.Series(np.arange(8) % 2, result.items.index).astype("category")
        drawn.append(item_response.over_bins(scores, bins, systems=list(result.subjects.index[:3]), label=HOSTILE[3]))  # fmt: skip
    else:
        drawn = [test_plots.DRAWN[name]()]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")
        for number, fig in enumerate(drawn):
            assert figures.save(fig, tmp_path / str(number)).stat().st_size > 5000


def test_a_short_repr_has_no_address_and_no_rows():
    made = [transcript(None), reviewed(), planned(), generated(), value()]
    made += [BM25(), readers.reader("extractive", reranker=object()), judging.load_judge("offline")]
    for one in made:
        assert " object at 0x" not in repr(one)
    assert repr(made[1]) == "<Review confirmed: gold documents 1 before, 6 after>"
    assert repr(made[2]) == "<Plan sample: 5 of 6 notebooks can run>"
    assert repr(made[3]) == "<Benchmark of 6 questions, 0 left out>"
    assert list(map(repr, made[5:])) == ["<BM25 'bm25', not fitted>", "<reader extractive>", "<judge offline>"]  # fmt: skip
    assert "nothing submitted, 1 commands" in repr(made[0])
