"""Explorers of systems: two side by side, why answers are wrong, a corpus with its questions.

>>> import pandas as pd
>>> from ragkit import datasets
>>> from ragkit.measures.causes import trace
>>> from ragkit.systems.retrieval import BM25
>>> wixqa = datasets.load("wixqa").part(documents=40, questions=5)
>>> asked, runs = wixqa.questions, BM25().fit(wixqa.documents).search(wixqa.questions)
>>> answers = asked[["question_id"]].assign(system="bm25", answer="Ask support.", doc_ids=[()] * 5)
>>> correct = pd.Series(False, index=asked["question_id"])
>>> wrong = causes(trace(asked, wixqa.documents, runs, answers, correct), asked, answers)
>>> scores = pd.DataFrame({"subject_id": ["a", "b"] * 5, "item_id": asked["question_id"].repeat(2)})
>>> different = pair(scores.assign(score=[0, 1] * 5), "a", "b", asked)
>>> points = wixqa.documents[["doc_id", "source", "title"]].assign(corpus="WixQA", x=range(40), y=0)
>>> searched = corpus(points.assign(terms="site", trustworthiness=0.9), wixqa.documents, asked, runs)
"""

from __future__ import annotations

import pandas as pd

from ragkit.errors import UsageError, did_you_mean
from ragkit.explore.pages import Explorer, excerpt, facts, listed, maps
from ragkit.measures import causes as measured
from ragkit.report import tables


def pair(
    scores: pd.DataFrame,
    one: str,
    two: str,
    questions: pd.DataFrame,
    answers: pd.DataFrame | None = None,
    *,
    most: int = 10,
) -> Explorer:
    """Return an explorer of two systems, question by question, the largest difference first.

    `scores` has the columns subject_id, item_id and score; only questions that both have count.
    `questions` and `answers` are frames of `ragkit.schema`. Without a kernel, a table of the `most`
    questions that differ most each way is shown. `UsageError` if a system is unknown.
    """
    wide = scores.pivot(index="item_id", columns="subject_id", values="score")
    for name in (one, two):
        if name not in wide:
            raise UsageError(f"no scores of {name!r}", did_you_mean(name, wide.columns))
    asked = questions.set_index("question_id")
    table = wide[[one, two]].dropna().join(asked[["text", "answer"]], how="inner")
    table.insert(0, "difference", table[one] - table[two])
    table = table.sort_values(["difference", one], ascending=False, kind="stable")
    said = {}
    if answers is not None:
        said = answers.set_index(["system", "question_id"])["answer"].to_dict()

    def page(key: str) -> str:
        row = table.loc[key]
        told = {"question": row["text"], "gold answer": row["answer"]}
        for name in (one, two):
            told[f"{name}, {row[name]:.3g}"] = said.get((name, key))
        return facts(told)

    names = {
        key: f"{row.difference:+.2f}  {key}: {str(row.text)[:80]}" for key, row in table.iterrows()
    }
    ends = pd.concat([table.head(most), table.tail(most)]).drop_duplicates()
    caption = f"Largest differences of {len(table)} questions: {one} less {two}"
    shown = ends.drop(columns="answer").rename_axis("question_id").reset_index()
    return Explorer(names, page, tables.show(shown, caption))


def causes(
    traced: pd.DataFrame, questions: pd.DataFrame, answers: pd.DataFrame, *, most: int = 20
) -> Explorer:
    """Return an explorer of the wrong answers of a system, each with its trace and its one cause.

    `traced` is the result of `ragkit.measures.causes.trace`, `questions` and `answers` are the frames it
    was made of. Without a kernel, the first `most` wrong answers are listed.
    """
    wrong = traced[traced["cause"] != ""].copy()
    wrong["cause"] = pd.Categorical(wrong["cause"], list(measured.CAUSES), ordered=True)
    wrong = wrong.sort_values("cause", kind="stable").astype({"cause": str})
    asked, said = (frame.set_index("question_id") for frame in (questions, answers))

    def page(key: str) -> str:
        row, question = wrong.loc[key], asked.loc[key]
        cause = f"{row['cause']}: {measured.CAUSES[row['cause']]}"
        told = {"question": question["text"], "gold answer": question["answer"]}
        told |= {"answer": said.loc[key, "answer"], "cause": cause}
        steps = wrong.loc[[key]].drop(columns=["type", "cause", "correct"])
        return facts(told, listed(steps.reset_index(drop=True), "gold documents on their way"))

    names = {
        key: f"{row.cause}  {key}: {asked.loc[key, 'text'][:80]}" for key, row in wrong.iterrows()
    }
    caption = f"The first {min(most, len(wrong))} of {len(wrong)} wrong answers"
    shown = wrong.drop(columns="correct").head(most).round(2).reset_index()
    return Explorer(names, page, tables.show(shown, caption), "answer")


class CorpusMap:
    """A map of a corpus with a field to search it; without a kernel, the map alone.

    Made by `corpus`. `search` is the text field, `found` the list of documents below it.
    """

    def __init__(self, points: pd.DataFrame, documents: pd.DataFrame, questions, runs):
        from ipywidgets import HTML, Text, VBox

        self.map = maps(points)
        self._documents, self._questions, self._runs = documents, questions, runs
        self.search = Text(description="search", placeholder="words of a document")
        self.found = HTML()
        self.search.observe(lambda change: self._find(change["new"]), names="value")
        self._box = VBox([self.search, self.found])
        self._find("")

    def _find(self, words: str) -> None:
        self.found.value = self.page(words)

    def page(self, words: str, most: int = 10) -> str:
        """Return the documents that have all words, each with its questions and their ranks."""
        text = self._documents["title"] + " " + self._documents["text"]
        hits = pd.Series(True, index=text.index)
        for word in words.split():
            hits &= text.str.contains(word, case=False, regex=False)
        rows = self._documents[hits].head(most)
        told = {
            f"{row.doc_id}: {row.title}": excerpt(row.text, 200) + self._asked(row.doc_id)
            for row in rows.itertuples()
        }
        return facts({"documents found": int(hits.sum()), **told})

    def _asked(self, doc_id: str) -> str:
        """Return the questions that a document answers, and the ranks that systems gave it."""
        told = []
        ranked = self._runs[self._runs["doc_id"] == doc_id]
        answered = self._questions["gold_doc_ids"].map(lambda gold: doc_id in gold)
        for row in self._questions[answered].itertuples():
            own = ranked[ranked["question_id"] == row.question_id]
            ranks = ", ".join(f"{one.system} {int(one.rank)}" for one in own.itertuples())
            told.append(f" [{row.question_id}: {row.text} Ranks: {ranks or 'none'}]")
        return tables.plain("".join(told))

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        from IPython.display import display

        bundle = self.map._repr_mimebundle_()
        if self._box.comm is not None:
            display(self._box)
        return bundle


def corpus(
    points: pd.DataFrame, documents: pd.DataFrame, questions: pd.DataFrame, runs: pd.DataFrame
) -> CorpusMap:
    """Return a map of a corpus with search: a document with its questions, and its ranks for them.

    `points` are those of `ragkit.explore.maps`, the others frames of `ragkit.schema`.
    """
    return CorpusMap(points, documents, questions, runs)
