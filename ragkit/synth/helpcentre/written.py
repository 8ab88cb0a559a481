"""The articles of a help centre that a model writes, from a page about the company."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from ragkit.datasets import reported
from ragkit.errors import ModelError
from ragkit.synth.briefs import slug
from ragkit.synth.company import read_page
from ragkit.synth.helpcentre.sets import TYPES, ModelCentre, Page
from ragkit.synth.stages import Rejected, Task

BLOCK = 40  # articles that are planned in one request
LEAST = {"article": 300, "feature_request": 100, "known_issue": 100}  # words
EDIT = "change the page or the model; what was answered is in the ledger"


class WrittenCentre(ModelCentre):
    """A help centre whose articles a model plans and writes, and then asks about.

    Parameters
    ----------
    page : path-like
        What is known of the company and its products, in words.
    count : int
        Articles.
    sets, multi, seed, author, options
        See `ModelCentre`.
    """

    def __init__(self, page: str | Path, count: int, *settings):
        self.page, self.count = read_page(page), count
        name = self.page.strip().splitlines()[0].strip("# ")
        super().__init__([], *settings, name)

    @cached_property
    def articles(self) -> list[Page]:
        """Return the articles, written in the order of the catalogue."""
        entries: list[dict] = []
        while len(entries) < self.count:
            task = self._block(entries)
            (data,) = self.author.answer("catalogue", [task], _misplanned)
            entries += _usable(data)["articles"]
            self.progress("catalogue", len(entries), self.count)
        results = self.author.answer("article", self._tasks(entries), _unwritten)
        texts = [_usable(data)["contents"].strip() for data in results]
        host = f"https://help.{slug(self.product)}.example/en/article"
        return [
            Page(e["slug"], f"{host}/{e['slug']}", e["title"], f"{e['title']}\n{text}", e["type"])
            for e, text in zip(entries, texts, strict=True)
        ]

    def _block(self, planned: Sequence[Mapping]) -> Task:
        """Return the task to plan the articles that follow those planned."""
        block = f"articles-{len(planned) // BLOCK + 1}"
        count = min(BLOCK, self.count - len(planned))
        table = reported.load("wixqa", "text:3.1")
        table = table[table["metric"] == "article_type_share"].set_index("row")["value"]
        values = {
            "page": self.page,
            "block": block,
            "count": f"{count:02}",
            "titles": _titles(planned) or "nothing",
            "shares": ", ".join(f"{share:g} are of type `{kind}`" for kind, share in table.items()),
        }
        keys = [f"{block}-{number:02}" for number in range(1, count + 1)]
        item = f"catalogue {block}" if self.count > BLOCK else "catalogue"
        return Task(item, values, (keys, planned))

    def _tasks(self, entries: Sequence[Mapping]) -> list[Task]:
        known = {"page": self.page, "titles": _titles(entries)}
        own = ("title", "type", "area")
        return [
            Task(f"article {e['key']}", known | {name: e[name] for name in own}, e, "help-article")
            for e in entries
        ]

    def estimate(self) -> list[str]:
        """Return in lines the requests expected and their cost, the articles by stand-ins."""
        entries = [
            {
                "key": f"{n}",
                "title": f"How to do task {n}",
                "type": TYPES[n % 3 == 0],
                "area": "all",
            }
            for n in range(self.count)
        ]
        words = {kind: "what it says " * (250 if kind == "article" else 100) for kind in TYPES}
        pages = [Page(e["key"], "", e["title"], words[e["type"]], e["type"]) for e in entries]
        blocks = [self._block(entries[:n]) for n in range(0, self.count, BLOCK)]
        asked = ModelCentre(pages, self.sets, self.multi, self.seed, self._name, self._options)
        plan = {"catalogue": blocks, "article": self._tasks(entries)} | asked.plan()
        return [self.heading(self.count), *self.author.estimate(plan)]


def _titles(entries: Sequence[Mapping]) -> str:
    return "\n".join(f"- {e['title']} ({e['type']}, {e['area']})" for e in entries)


def _usable(data: dict | Rejected) -> dict:
    if isinstance(data, Rejected):
        raise ModelError(f"stage {data.stage!r}, item {data.item!r}: {data.reason}", EDIT)
    return data


def _misplanned(task: Task, data: dict) -> str:
    """Return what is wrong with a block of the catalogue, or an empty string."""
    (keys, planned), entries = task.given, data["articles"]
    found = [entry["key"] for entry in entries]
    if found != keys:
        return f"the keys are not {keys[0]} to {keys[-1]}, once each and in this order"
    for name in ("title", "slug"):
        seen = {entry[name].lower() for entry in planned}
        for entry in entries:
            if entry[name].lower() in seen:
                return f"{entry['key']}: the {name} {entry[name]!r} stands twice in the catalogue"
            seen.add(entry[name].lower())
    return ""


def _unwritten(task: Task, data: dict) -> str:
    """Return what is wrong with the text of an article, or an empty string."""
    words, least = len(data["contents"].split()), LEAST[task.given["type"]]
    return f"the article has {words} words, and {least} are the least" if words < least else ""
