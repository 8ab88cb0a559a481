"""The question sets of a help centre, in stages that a model answers.

WixQA, sections 3.2 to 3.4: synthetic questions are extracted from an article with a prompt for its
type; simulated ones are distilled from a dialogue; expert-written ones are asked by a user and
answered at length, from one article or two. What does not pass the review is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

from ragkit import checks
from ragkit.errors import DataError, ModelError
from ragkit.files import read_jsonl, require
from ragkit.synth.author import AuthorOptions
from ragkit.synth.stages import Model, Rejected, Task
from ragkit.synth.streams import Stream

PROMPTS = Path(__file__).parent / "prompts"
PARAMETERS = {"max_tokens": 4000}
STAGES = {
    "expertwritten": ("expert",),
    "simulated": ("dialogue", "distill"),
    "synthetic": ("extract",),
}
TYPES = ("article", "feature_request", "known_issue")
ROUNDS = 4  # times that all articles may be tried
TRIED = 2  # articles, or pairs, that are tried for a question


@dataclass(frozen=True)
class Page:
    """An article of anybody's help centre."""

    id: str
    url: str
    title: str
    contents: str
    type: str

    def row(self) -> dict[str, str]:
        """Return the article in the layout of the benchmark."""
        names = ("id", "url", "contents")
        found = {name: getattr(self, name) for name in names}
        return found | {"article_type": self.type, "title": self.title}


@dataclass(frozen=True)
class Draft:
    """A question on its way through the stages: its set, articles, turn, and what was answered."""

    name: str
    articles: tuple
    turn: int = 0
    data: dict = field(default_factory=dict)

    @property
    def item(self) -> str:
        about = " and ".join(f"{a.id} ({a.title})" for a in self.articles)
        again = f", try {self.turn + 1}" if self.turn else ""
        return f"{self.name} question on {about}{again}"

    def task(self, stage: str) -> Task:
        """Return the task of a stage."""
        texts = [f"[{n}] {a.contents}" for n, a in enumerate(self.articles, 1)]
        values = {"articles": "\n\n".join(texts)}
        prompt = f"extract-{self.articles[0].type}" if stage == "extract" else ""
        if stage == "distill":
            values["dialogue"] = "\n".join(f"{t['who']}: {t['text']}" for t in self.data["turns"])
        if stage == "review":
            values |= {name: self.data[name] for name in ("question", "answer")}
        return Task(self.item, values, self, prompt, self.turn)


@dataclass(frozen=True)
class Question:
    """A question and its answer.

    Parameters
    ----------
    text, answer : str
    articles : tuple of Page
    facts : tuple of str
        What the answer states, word for word.
    dialogue : tuple of dict
        Who said what before, for a simulated question.
    """

    text: str
    answer: str
    articles: tuple
    facts: tuple
    dialogue: tuple = ()

    def row(self) -> dict:
        """Return the question in the layout of the benchmark."""
        ids = [article.id for article in self.articles]
        return {"question": self.text, "answer": self.answer, "article_ids": ids}


def passed(author: Model, drafts: list[Draft], lost: list[Rejected]) -> Iterator[Question]:
    """Yield the questions that pass every stage and the review; `lost` takes the others."""
    stages = STAGES[drafts[0].name] if drafts else ()
    for stage in (*stages, "review"):
        tasks = [draft.task(stage) for draft in drafts]
        results = author.answer(stage, tasks, CHECKS.get(stage), wait=False)
        lost += [data for data in results if isinstance(data, Rejected)]
        drafts = [
            replace(draft, data=draft.data | data)
            for draft, data in zip(drafts, results, strict=True)
            if isinstance(data, dict)
        ]
    for draft in drafts:
        data, reason = draft.data, verdict(draft)
        if reason:
            lost.append(Rejected("review", draft.item, reason))
            continue
        facts = tuple(data["facts"])
        turns = tuple(data.get("turns", ()))
        yield Question(data["question"], data["answer"], draft.articles, facts, turns)


def _foreign(task: Task, data: dict) -> str:
    known = len(task.given.articles)
    foreign = [n for n in data["needed"] if not 1 <= n <= known]
    return f"needed: there is no article {foreign[0]} of {known}" if foreign else ""


def _unsaid(task: Task, data: dict) -> str:
    """Return the first fact that the answer was to state and does not."""
    said = " ".join(data["answer"].split())
    for fact in data["facts"]:
        text = " ".join(fact.split())
        if text not in said:
            return f"the answer leaves out a fact that it names: {text!r}"
    return ""


CHECKS: dict[str, Callable[[Task, dict], str]] = {
    "expert": _unsaid,
    "distill": _unsaid,
    "extract": _unsaid,
    "review": _foreign,
}


def verdict(draft: Draft) -> str:
    """Return why a question is left out, or an empty string."""
    data = draft.data
    if not data["clear"]:
        return "it is no clear question to a help centre"
    if not data["answered"]:
        return "its articles do not carry the answer"
    return "" if len(set(data["needed"])) == len(draft.articles) else "one article answers it alone"


def make_set(
    author: Model,
    name: str,
    count: int,
    multi: int,
    singles: Sequence[tuple],
    pairs: Sequence[tuple],
    lost: list[Rejected],
) -> list[Question]:
    """Return `count` different questions of a set, `multi` of them about two articles.

    A model that spoils too many gives fewer, and `lost` says why.
    """
    made, seen = [], set()
    for candidates, number in ((pairs, multi), (singles, count - multi)):
        supply = ((articles, turn) for turn in range(ROUNDS) for articles in candidates)
        supply = islice(supply, TRIED * number)
        wanted = len(made) + number
        while len(made) < wanted:
            lacking = author.lacking
            begun = [Draft(name, a, turn) for a, turn in islice(supply, wanted - len(made))]
            for question in passed(author, begun, lost):
                if question.text.lower() in seen:
                    item = Draft(name, question.articles).item
                    lost.append(Rejected(STAGES[name][-1], item, "asked before"))
                    continue
                seen.add(question.text.lower())
                made.append(question)
            if not begun or author.lacking > lacking:
                break
    return made


class ModelCentre:
    """A help centre whose questions a model writes.

    Parameters
    ----------
    pages : sequence of Page
    sets, multi : dict of str to int
        Questions by set, and those of them about two articles.
    seed : int
    author : str
        `openai:MODEL`.
    options : AuthorOptions
    product : str

    Attributes
    ----------
    questions : dict of str to list of Question
    lost : list of Rejected
    """

    def __init__(self, pages, sets, multi, seed: int, author: str, options, product: str = ""):
        self._pages, self.sets, self.multi, self.seed = list(pages), sets, multi, seed
        self.product = product
        self._name, self._options = author, options or AuthorOptions()
        self.lost: list[Rejected] = []
        self.progress: Callable[[str, int, int], None] = lambda stage, done, total: None

    @cached_property
    def articles(self) -> list[Page]:
        return self._pages

    @property
    def types(self) -> Counter:
        return Counter(page.type for page in self.articles)

    @cached_property
    def author(self) -> Model:
        return Model(self._name, PROMPTS, self._options, PARAMETERS)

    def _singles(self, name: str) -> list[tuple]:
        if name == "synthetic":
            return [(page,) for page in self.articles]
        order = Stream(self.seed, "helpcentre", name).sample(self.articles, len(self.articles))
        return [(page,) for page in order]

    def _pairs(self) -> list[tuple]:
        """Return pairs of articles that a word search finds near one another."""
        from ragkit.systems.retrieval.bm25 import BM25

        if not any(self.multi.values()):
            return []
        rows = ({"doc_id": p.id, "title": p.title, "text": p.contents} for p in self.articles)
        runs = BM25().fit(rows).search([page.title for page in self.articles], k=3)
        by_id = {page.id: page for page in self.articles}
        found = {
            tuple(sorted((self.articles[int(n)].id, other)))
            for n, other in zip(runs["question_id"], runs["doc_id"], strict=True)
            if self.articles[int(n)].id != other
        }
        pairs = [(by_id[a], by_id[b]) for a, b in sorted(found)]
        return Stream(self.seed, "helpcentre", "pairs").sample(pairs, len(pairs))

    @cached_property
    def questions(self) -> dict[str, list[Question]]:
        pairs, found = self._pairs(), {}
        for name, count in self.sets.items():
            made = make_set(
                self.author, name, count, self.multi[name], self._singles(name), pairs, self.lost
            )
            found[name] = made
            self.progress(name, len(made), count)
        self.author.flush()
        for name, count in self.sets.items():
            if count and not found[name]:
                raise ModelError(
                    f"no {name} question is usable: {self.lost[-1].reason}",
                    "change the prompt or the model; what was answered is in the ledger",
                )
        return found

    def plan(self) -> dict[str, list[Task]]:
        """Return the tasks expected by stage, those of later stages with stand-ins."""
        pairs, plan = self._pairs(), {}
        turns = [{"who": who, "text": "what is said " * 8} for who in ("user", "bot") * 2]
        data = {"turns": turns, "question": "what is asked " * 4, "answer": "what it says " * 30}
        for name, count in self.sets.items():
            multi = self.multi[name]
            chosen = [*pairs[:multi], *self._singles(name)[: count - multi]]
            for n, articles in enumerate(chosen):
                own = data | {"question": f"{n}: {data['question']}"}
                for stage in (*STAGES[name], "review"):
                    plan.setdefault(stage, []).append(Draft(name, articles, 0, own).task(stage))
        return plan

    def heading(self, articles: int) -> str:
        return f"{articles:,} articles, {sum(self.sets.values()):,} questions; requests:"

    def estimate(self) -> list[str]:
        """Return in lines the requests expected and their cost."""
        return [self.heading(len(self.articles)), *self.author.estimate(self.plan())]


def load_pages(folder: str | Path, most: int | None = None) -> list[Page]:
    """Read the articles of documents.jsonl: doc_id, title, text, and where known source and url.

    Parameters
    ----------
    folder : path-like
    most : int, optional
        Read no more articles than this.

    Raises
    ------
    DataError
        If there are none, or a row lacks a column.
    """
    path = Path(folder) / "documents.jsonl"
    if not path.exists() or not path.stat().st_size:
        raise DataError(f"{folder}: no articles (documents.jsonl is missing or empty)")
    if most is not None:
        checks.whole(most, "articles")
    columns, pages = ("doc_id", "title", "text"), []
    for number, row in enumerate(read_jsonl(path, columns)[:most], 1):
        require(row, columns, f"{path}: line {number}")
        kind = row.get("source") if row.get("source") in TYPES else "article"
        text = (
            row["text"]
            if row["text"].startswith(row["title"])
            else f"{row['title']}\n{row['text']}"
        )
        pages.append(Page(row["doc_id"], row.get("url", ""), row["title"], text, kind))
    return pages
