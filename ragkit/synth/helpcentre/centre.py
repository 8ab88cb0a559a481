"""The articles and question sets of a help centre, in stages that a model answers.

WixQA, section 3: articles are a user's own, or written from a page about a company. Synthetic
questions are extracted from an article with a prompt for its type; simulated ones are distilled
from a dialogue; expert-written ones are asked by a user and answered at length, from one article or
two. What does not pass the review is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, product
from operator import methodcaller
from pathlib import Path

from ragkit import checks
from ragkit.errors import ModelError, UsageError
from ragkit.synth.company import read_page
from ragkit.synth.folder import Nearest, read_documents
from ragkit.synth.layout import printed, shares, slug
from ragkit.synth.stages import Check, Model, Pipeline, Task, check_author, needed, within
from ragkit.synth.streams import Stream

BLOCK = 40  # articles that are planned in one request
LEAST = {"article": 300, "feature_request": 100, "known_issue": 100}  # words, by type
# The stages of each set; a review follows.
STAGES = {
    "expertwritten": ("expert",),
    "simulated": ("dialogue", "distill"),
    "synthetic": ("extract",),
}
USUAL = 200  # questions of a set
ROUNDS, TRIED = 4, 2  # times that an article is tried; articles that are tried for a question
REFUSED = {
    "clear": "it is no clear question to a help centre",
    "answered": "its articles do not carry the answer",
}
EDIT = "change the page, the prompt or the model; what was answered is in the ledger"


@dataclass(frozen=True)
class Settings:
    """What a help centre is made from; `UsageError` if a setting is out of range.

    Parameters
    ----------
    author : str
        `openai:MODEL`.
    seed : int, at least 0
    articles : int, optional
        Default: all of `documents`.
    expertwritten, simulated : int, optional
        Questions in these sets; default: 200, but no more than two thirds of the articles. The
        synthetic set has one for each article.
    documents : path-like, optional
        A folder with articles of yours in documents.jsonl; `source` may be one of WixQA's types.
    page : path-like, optional
        What is known of a company and its products, in words, from which articles are written.
    """

    author: str
    seed: int = 0
    articles: int | None = None
    expertwritten: int | None = None
    simulated: int | None = None
    documents: str | Path | None = None
    page: str | Path | None = None

    def __post_init__(self):
        check_author(self.author)
        checks.whole(self.seed, "seed", least=0)
        if bool(self.documents) == bool(self.page):
            raise UsageError(
                "articles are either read (documents) or written (page): give one of the two",
                "--documents FOLDER with articles of yours, or --page FILE about a company",
            )
        if self.page or self.articles is not None:
            checks.whole(self.articles, "articles")


@dataclass(frozen=True)
class Draft:
    """A question on its way through the stages: its set, articles, turn, and what was answered."""

    name: str
    articles: tuple[dict, ...]
    turn: int = 0
    data: dict = field(default_factory=dict)

    @property
    def item(self) -> str:
        about = " and ".join(f"{a['doc_id']} ({a['title']})" for a in self.articles)
        again = f", try {self.turn + 1}" if self.turn else ""
        return f"{self.name} question on {about}{again}"

    def task(self, stage: str) -> Task:
        """Return the task of a stage."""
        texts = [f"[{n}] {a['text']}" for n, a in enumerate(self.articles, 1)]
        values = {"articles": "\n\n".join(texts)}
        prompt = f"extract-{self.articles[0]['source']}" if stage == "extract" else ""
        if stage == "distill":
            values["dialogue"] = "\n".join(f"{t['who']}: {t['text']}" for t in self.data["turns"])
        if stage == "review":
            values |= {name: self.data[name] for name in ("question", "answer")}
        return Task(self.item, values, self, prompt, self.turn)

    def refused(self) -> str:
        """Return why the review leaves the question out, or an empty string."""
        for name, reason in REFUSED.items():
            if not self.data[name]:
                return reason
        needed, wanted = len(set(self.data["needed"])), len(self.articles)
        return f"its answer needs {needed} of {wanted} articles" if needed < wanted else ""

    def row(self) -> dict:
        """Return the question in ragkit's columns, but for its id; with all that was answered."""
        gold = [article["doc_id"] for article in self.articles]
        return self.data | {"text": self.data["question"], "type": self.name, "gold_doc_ids": gold}


class Centre(Pipeline):
    """A help centre: articles, and questions about them."""

    def __init__(self, settings: Settings):
        super().__init__()
        self.seed = settings.seed
        self.page = read_page(settings.page) if settings.page else ""
        self.product = self.page.partition("\n")[0].strip("# ")
        self.own: list[dict] = []
        if settings.documents:
            rows = read_documents(settings.documents)
            if settings.articles is not None:
                checks.whole(settings.articles, "articles", most=len(rows))
            rows = rows[: settings.articles].fillna("").to_dict("records")
            self.own = list(map(_read, rows))
        most = self.count = len(self.own) or settings.articles
        wanted = {name: getattr(settings, name) for name in ("expertwritten", "simulated")}
        self.sets = {k: min(USUAL, most * 2 // 3) if n is None else n for k, n in wanted.items()}
        self.sets["synthetic"] = most
        for name, count in self.sets.items():
            checks.whole(count, f"{name}, of {most:,} articles,", least=0, most=most)
        # Of these, about two articles: the paper's proportions (Table 2).
        several = printed("2", "multi_article_share", paper="wixqa")
        parts = {k: {"two": several[k], "one": 100 - several[k]} for k in self.sets}
        self.multi = {k: shares(n, parts[k])["two"] for k, n in self.sets.items()}

    @cached_property
    def articles(self) -> list[dict]:
        """Return the articles in ragkit's columns, their types as `source`.

        They are the user's, or planned in blocks and then written, each in the knowledge of all.
        """
        if self.own:
            return self.own
        entries: list[dict] = []
        while len(entries) < self.count:
            found = self.author.answer("catalogue", [self._block(entries)], misplanned)
            entries += needed(found, EDIT)[0]["articles"]
        known, own = {"page": self.page, "titles": _titles(entries)}, ("title", "type", "area")
        tasks = [
            Task(f"article {e['key']}", known | {name: e[name] for name in own}, e, "help-article")
            for e in entries
        ]
        written = needed(self.author.answer("article", tasks, short), EDIT)
        host = f"https://help.{slug(self.product) or 'company'}.example/en/article"
        return [
            {"doc_id": e["slug"], "source": e["type"], "title": e["title"]}
            | {"text": f"{e['title']}\n{data['contents'].strip()}", "url": f"{host}/{e['slug']}"}
            for e, data in zip(entries, written, strict=True)
        ]

    def _block(self, entries: Sequence[Mapping]) -> Task:
        """Return the task to plan the articles that follow the entries of the catalogue."""
        block = f"articles-{len(entries) // BLOCK + 1}"
        count = min(BLOCK, self.count - len(entries))
        table = printed("text:3.1", "article_type_share", paper="wixqa")
        types = ", ".join(f"{share:g} are of type `{kind}`" for kind, share in table.items())
        values = {"page": self.page, "block": block, "count": f"{count:02}", "shares": types}
        values["titles"] = _titles(entries) or "nothing"
        keys = [f"{block}-{number:02}" for number in range(1, count + 1)]
        item = f"catalogue {block}" if self.count > BLOCK else "catalogue"
        return Task(item, values, (keys, entries))

    def make(self, author: Model) -> dict[str, list[Draft]]:
        """Return the questions of each set; `ModelError` if none of a set is usable."""
        self.author = author
        pairs = self._pairs() if any(self.multi.values()) else []
        found = {name: self._set(name, count, pairs) for name, count in self.sets.items()}
        self.author.flush()
        for name, count in self.sets.items():
            if count and not found[name]:
                reason = [one.reason for one in self.lost if one.item.startswith(name)][-1]
                raise ModelError(f"no {name} question is usable: {reason}", EDIT)
        return found

    def _set(self, name: str, count: int, pairs: Sequence[tuple]) -> list[Draft]:
        """Return different questions of a set; what waits for a batch is left out."""
        singles, multi = [(article,) for article in self.articles], self.multi[name]
        if name != "synthetic":
            singles = self._mixed(name, singles)
        made: list[Draft] = []
        seen: set[str] = set()
        for candidates, number in ((pairs, multi), (singles, count - multi)):
            supply = islice(product(range(ROUNDS), candidates), TRIED * number)
            wanted = len(made) + number
            while len(made) < wanted:
                waiting = len(self.author.lacking)
                begun = [Draft(name, own, turn) for turn, own in islice(supply, wanted - len(made))]
                made += self._passed(begun, seen)
                if not begun or len(self.author.lacking) > waiting:
                    break
        return made

    def _passed(self, drafts: list[Draft], seen: set[str]) -> Iterator[Draft]:
        """Yield the drafts that pass every stage and the review, and ask what was not `seen`."""
        for stage in (*STAGES[drafts[0].name], "review") if drafts else ():
            found = self.ask(stage, drafts, methodcaller("task", stage), CHECKS.get(stage))
            drafts = [replace(draft, data=draft.data | data) for draft, data in found]
        for draft in drafts:
            asked = draft.data["question"].lower()
            if reason := draft.refused() or "asked before" * (asked in seen):
                self.refuse("review", draft.item, reason)
            else:
                seen.add(asked)
                yield draft

    def _mixed(self, name: str, items: list) -> list:
        return Stream(self.seed, "helpcentre", name).sample(items, len(items))

    def _pairs(self) -> list[tuple[dict, dict]]:
        """Return pairs of articles that a word search finds near one another."""
        by_id = {article["doc_id"]: article for article in self.articles}
        near = Nearest(self.articles).search([a["title"] for a in self.articles], 3)
        found = {
            tuple(sorted((own, other)))
            for own, ids in zip(by_id, near, strict=True)
            for other in ids
            if own != other
        }
        return self._mixed("pairs", [(by_id[a], by_id[b]) for a, b in sorted(found)])


def _read(row: Mapping) -> dict:
    """Return a document as an article, of type `article` unless it says."""
    title, text, kind = row["title"], row["text"], row["source"]
    kind = kind if kind in LEAST else "article"
    text = text if text.startswith(title) else f"{title}\n{text}"
    own = {"doc_id": row["doc_id"], "source": kind, "title": title, "text": text}
    return own | {"url": row.get("url", "")}


def _titles(entries: Sequence[Mapping]) -> str:
    return "\n".join(f"- {e['title']} ({e['type']}, {e['area']})" for e in entries)


# Checks: what is wrong with the data of a task, or an empty string


def misplanned(task: Task, data: dict) -> str:
    """Return what is wrong with a block of the catalogue, or an empty string."""
    (keys, known), entries = task.given, data["articles"]
    if [entry["key"] for entry in entries] != keys:
        return f"the keys are not {keys[0]} to {keys[-1]}, once each and in this order"
    for name in ("title", "slug"):
        seen = {entry[name].lower() for entry in known}
        for entry in entries:
            if entry[name].lower() in seen:
                return f"{entry['key']}: the {name} {entry[name]!r} stands twice in the catalogue"
            seen.add(entry[name].lower())
    return ""


def short(task: Task, data: dict) -> str:
    """Return that an article is too short, or an empty string."""
    words, least = len(data["contents"].split()), LEAST[task.given["type"]]
    return f"the article has {words} words, and {least} are the least" if words < least else ""


def unsaid(task: Task, data: dict) -> str:
    """Return that the answer leaves out a fact which it was to state, or an empty string."""
    said = " ".join(data["answer"].split())
    lost = [fact for fact in data["facts"] if " ".join(fact.split()) not in said]
    return f"the answer leaves out a fact that it names: {lost[0]!r}" if lost else ""


CHECKS: dict[str, Check] = dict.fromkeys(("expert", "distill", "extract"), unsaid)
CHECKS["review"] = within(needed="articles")


def _planned(task: Task) -> dict:
    rows = [{"key": k, "title": f"How to do {k}", "slug": k, "area": "all"} for k in task.given[0]]
    return {"articles": [row | {"type": "article"} for row in rows]}


STAND_INS: dict[str, Callable[[Task], dict]] = {
    "catalogue": _planned,
    "review": lambda task: {"needed": list(range(1, len(task.given.articles) + 1))},
}
