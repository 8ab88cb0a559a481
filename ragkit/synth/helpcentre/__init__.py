"""A help centre in the shape of WixQA: articles of three types and three question sets (section 3).

Without a language model, articles and questions come from the facts of an invented product, and
every answer is made of sentences that its gold articles state. A model asks about these articles,
about those of a user, or about those that it writes from a page about a company.

>>> from ragkit.synth.helpcentre import HelpCentre, generate_helpcentre
>>> centre = HelpCentre(articles=30, seed=7)
>>> sum(centre.types.values())
30
>>> generate_helpcentre("build/help", articles=300, seed=7)  # doctest: +SKIP
"""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path

from ragkit import checks
from ragkit.datasets import reported
from ragkit.errors import UsageError
from ragkit.files import sha256, write_text
from ragkit.synth import banks
from ragkit.synth.author import AuthorOptions, check_author
from ragkit.synth.briefs import shares
from ragkit.synth.helpcentre.articles import Article, Desk, Fact
from ragkit.synth.helpcentre.product import (
    GROUPS,
    Topic,
    product_name,
    things,
    topics,
    trait_faults,
)
from ragkit.synth.helpcentre.questions import Asker
from ragkit.synth.helpcentre.sets import ModelCentre, Question, load_pages, make_set, pages_of
from ragkit.synth.helpcentre.written import WrittenCentre
from ragkit.synth.stamp import begin

__all__ = ["Article", "Fact", "HelpCentre", "Question", "generate_helpcentre"]

# Of all tutorials, while there are enough of each.
MIX = {"basic": 42, "setting": 18, "trouble": 16, "chain": 12, "link": 12}
PER_THING = 18
KB = "wixqa/wix_kb_corpus/wix_kb_corpus.jsonl"
TEST = "wixqa/wixqa_{}/test.jsonl"
SETS = ("expertwritten", "simulated", "synthetic")


class HelpCentre:
    """A help centre for a seed: counts at once, articles and questions when they are asked for.

    Parameters
    ----------
    articles : int
    seed : int
    expertwritten, simulated : int, optional
        Questions in these sets, by default 200 but no more than two thirds of the articles. The
        synthetic set has one for each article.
    limited : bool
        Whether the articles are to be generated, so that there can be only so many.

    Attributes
    ----------
    product : str
    types : dict of str to int
        Articles by type, in the paper's proportions (section 3.1).
    sets : dict of str to int
        Questions by set.
    multi : dict of str to int
        Questions about two articles by set, in the paper's proportions (Table 2).
    articles : list of Article
    questions : dict of str to list of Question

    Raises
    ------
    UsageError
        If the counts are impossible.
    """

    def __init__(
        self,
        *,
        articles: int,
        seed: int,
        expertwritten: int | None = None,
        simulated: int | None = None,
        limited: bool = True,
    ):
        checks.whole(articles, "articles")
        checks.whole(seed, "seed", least=0)
        self.seed = seed
        self.product = product_name(seed)
        usual = min(200, articles * 2 // 3)
        self.sets = {
            "expertwritten": usual if expertwritten is None else expertwritten,
            "simulated": usual if simulated is None else simulated,
            "synthetic": articles,
        }
        for name, count in self.sets.items():
            if not 0 <= count <= articles:
                raise UsageError(
                    f"{name} must be from 0 to the {articles:,} articles, not {count:,}",
                    "ask for fewer questions or make more articles",
                )
        printed = reported.load("wixqa", "text:3.1")
        printed = printed[printed["metric"] == "article_type_share"].set_index("row")["value"]
        self.types = dict(zip(printed.index, shares(articles, list(printed)), strict=True))
        table = reported.load("wixqa", "2")
        table = table[table["metric"] == "multi_article_share"].set_index("row")["value"]
        self.multi = {
            name: shares(n, [table[name], 100 - table[name]])[0] for name, n in self.sets.items()
        }
        room = capacity()
        for name, count in self.types.items():
            if limited and count > room[name]:
                most = min(int(room[t] * printed.sum() / printed[t]) for t in printed.index)
                raise UsageError(
                    f"{articles:,} articles would be {count:,} of type {name}, and the banks hold "
                    f"{room[name]:,}",
                    f"at most {most:,} articles can be made",
                )
        self.desk = Desk(seed, self.product)
        self.progress: Callable[[str, int, int], None] = lambda stage, done, total: None

    def summary(self) -> dict:
        """Return the counts that a dry run prints."""
        return {
            "product": self.product,
            "articles": dict(self.types),
            "questions": dict(self.sets),
            "about two articles": {k: n for k, n in self.multi.items() if n},
        }

    @cached_property
    def articles(self) -> list[Article]:
        chosen = self._choose()
        draw = self.desk.stream("order")
        chosen = draw.sample(chosen, len(chosen))
        by_thing: dict[str, list[Article]] = {}
        by_kind: dict[str, list[Article]] = {}
        for article in chosen:
            by_thing.setdefault(article.topic.thing.name, []).append(article)
            by_kind.setdefault(article.topic.kind, []).append(article)
        for number, article in enumerate(chosen, 1):
            topic = article.topic
            draw = self.desk.stream("links", topic.name)
            near = draw.sample(by_thing[topic.thing.name], 3) + draw.sample(by_kind[topic.kind], 1)
            near = [other for other in near if other is not article and other.steps]
            near = list({other.url: other for other in near}.values())
            self.desk.write(article, near[: draw.between(0 if topic.type != "article" else 1, 3)])
            self.progress("articles", number, len(chosen))
        return chosen

    def _choose(self) -> list[Article]:
        """Return the articles of all types, begun: few things, each covered well."""
        draw = self.desk.stream("things")
        order = draw.sample(things(), len(things()))
        known = self._known(order)
        taken = {(topic.thing.name, topic.key) for topic in known}
        pools: dict[str, list[Topic]] = {name: [] for name in (*GROUPS, "request")}
        count = min(len(order), max(4, math.ceil(sum(self.types.values()) / PER_THING)))
        for number, thing in enumerate(order):
            full = [
                sum(len(pools[g]) for g in GROUPS) >= 2 * self.types["article"],
                len(pools["request"]) >= 1.5 * self.types["feature_request"],
            ]
            if number >= count and all(full):
                break
            for topic in topics(thing):
                if topic.group != "trouble" or (thing.name, topic.key) not in taken:
                    pools[topic.group].append(topic)
        pools = {name: draw.sample(pool, len(pool)) for name, pool in pools.items()}
        urls: set[str] = set()
        chosen = self._begin(known, self.types["known_issue"], urls)
        chosen += self._begin(pools["request"], self.types["feature_request"], urls)
        left = self.types["article"]
        for name, number in zip(GROUPS, shares(left, [MIX[g] for g in GROUPS]), strict=True):
            got = self._begin(pools[name], number, urls)
            chosen += got
            left -= len(got)
        rest = [
            topic
            for name in ("link", "chain", "setting", "trouble", "basic")
            for topic in pools[name]
        ]
        chosen += self._begin(draw.sample(rest, len(rest)), left, urls)
        return chosen

    def _known(self, order) -> list[Topic]:
        """Return a topic for every known issue: problems that are not solved yet."""
        draw = self.desk.stream("known")
        found = []
        while len(found) < self.types["known_issue"]:
            thing = order[len(found) % len(order)]
            fault = draw.pick(thing.faults + trait_faults(thing))
            topic = Topic("known_issue", "known", "known", thing, fault.symptom, fault)
            if topic not in found:
                found.append(topic)
        return found

    def _begin(self, pool: list[Topic], number: int, urls: set[str]) -> list[Article]:
        """Begin up to `number` articles of a pool, taking their topics out of it."""
        begun: list[Article] = []
        while pool and len(begun) < number:
            article = self.desk.begin(pool.pop())
            if article.url not in urls:
                urls.add(article.url)
                begun.append(article)
        return begun

    @cached_property
    def questions(self) -> dict[str, list[Question]]:
        asker, made = Asker(self.desk, self.articles), {}
        for name, count in self.sets.items():
            draw = self.desk.stream("set", name)
            pairs, singles = [], [(article,) for article in self.articles]
            if name != "synthetic":
                pairs, singles = asker.pairs(draw), asker.singles(draw)
            rows = make_set(asker, name, count, self.multi[name], singles, pairs, [])
            made[name] = rows if name == "synthetic" else draw.sample(rows, len(rows))
            self.progress(name, 1, 1)
        return made


@cache
def capacity() -> dict[str, int]:
    """Return how many articles of each type the banks hold."""
    found = Counter(topic.type for thing in things() for topic in topics(thing))
    faults = sum(topic.group == "trouble" for thing in things() for topic in topics(thing))
    return {
        "article": found["article"] - faults // 4,
        "feature_request": found["feature_request"],
        "known_issue": faults // 4,
    }


def generate_helpcentre(
    out: str | Path,
    *,
    articles: int | None = None,
    seed: int,
    expertwritten: int | None = None,
    simulated: int | None = None,
    documents: str | Path | None = None,
    page: str | Path | None = None,
    author: str = "offline",
    progress: Callable[[str, int, int], None] | None = None,
    author_options: AuthorOptions | None = None,
) -> dict:
    """Write a help centre and its question sets to `out`; return the statistics.

    `out/wixqa` has the benchmark's own layout. Beside it stand `documents.jsonl` and
    `questions.jsonl` in ragkit's columns, which `ragkit.datasets.load(str(out))` reads, questions
    with the sentences of which their answers are made; `facts.jsonl` (every fact, its values, its
    article and sentence) and `cases.jsonl` (problems with cause and remedy); `dialogues.jsonl`
    (from which the simulated questions are distilled) and `statistics.json`. The same arguments
    give the same bytes on every machine.

    Parameters
    ----------
    out : path-like
        A new or empty folder, or one that the same settings have begun: its files are written
        again, to the same bytes.
    articles, seed, expertwritten, simulated
        See `HelpCentre`. `articles` may be left out for `documents`: all of them.
    documents : path-like, optional
        A folder with articles of yours in documents.jsonl, for a model as author. Default: the
        articles are generated.
    page : path-like, optional
        What is known of a company and its products, in words, from which a model writes the
        articles before it asks about them.
    author : str
        `offline`, or `openai:MODEL` for the questions; `left_out.jsonl` then names what the model
        spoilt.
    progress : callable, optional
        Called with stage, steps done and steps in all.
    author_options : AuthorOptions, optional
        For a model as author.

    Returns
    -------
    dict
        Counts and medians in words, as in `statistics.json`.

    Raises
    ------
    UsageError
        If the counts are impossible, or the folder holds other files or was begun with other
        settings.
    DataError
        If the documents are no articles, or there is no model to ask about them.
    ModelError
        If the endpoint did not answer, or gave no usable question of a set.
    BatchWritten
        If the options name a batch file and the ledger lacks answers.
    OSError
        If the disk does not take a file.
    """
    out = Path(out)
    counts = {"articles": articles, "expertwritten": expertwritten, "simulated": simulated}
    centre = begun(documents, author, author_options, page, seed=seed, **counts)
    stamp = {**counts, "seed": seed}
    if not (documents or page):
        stamp["banks"] = banks.fingerprint()
    if author != "offline":
        read = sha256(Path(documents) / "documents.jsonl") if documents else None
        stamp |= {"author": author, "sha256 of documents.jsonl": read}
        stamp |= {"sha256 of the page": sha256(page)} if page else {}
        begin(out, stamp)  # the ledger may be in the folder
    if progress:
        centre.progress = progress
    made = centre.questions  # what cannot be made fails before a folder is begun
    begin(out, stamp)
    _jsonl(out / KB, [article.row() for article in centre.articles])
    asked, dialogues = [], []
    for name in SETS:
        rows = made[name]
        if rows:
            _jsonl(out / TEST.format(name), [question.row() for question in rows])
        for number, question in enumerate(rows, 1):
            key = f"{name}-{number:04d}"
            asked.append(_own_row(key, name, question))
            if question.dialogue:
                dialogues.append({"question_id": key, "turns": list(question.dialogue)})
    if author == "offline":
        _jsonl(out / "facts.jsonl", list(_facts(centre)))
        _jsonl(out / "cases.jsonl", list(_cases(centre)))
    elif centre.lost:
        _jsonl(out / "left_out.jsonl", [one.row() for one in centre.lost])
    _jsonl(out / "questions.jsonl", asked)
    _jsonl(out / "documents.jsonl", [_own_document(article) for article in centre.articles])
    if dialogues:
        _jsonl(out / "dialogues.jsonl", dialogues)
    found = describe(centre)
    write_text(out / "statistics.json", json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    return found


def begun(
    documents: str | Path | None,
    author: str,
    options: AuthorOptions | None,
    page: str | Path | None = None,
    **counts,
) -> HelpCentre | ModelCentre:
    """Return the help centre whose articles and sets are to be made; nothing is asked or written.

    Parameters
    ----------
    documents, author, options, page
        See `generate_helpcentre`.
    **counts
        Those of `HelpCentre`.
    """
    check_author(author)
    if author == "offline" and (documents or page or options):
        raise UsageError(
            "without a language model, questions are made only from the facts of generated "
            "articles: no documents, no page and no options of a model",
            "add --author openai:MODEL",
        )
    if documents and page:
        raise UsageError("articles are read (documents) or written (page), not both")
    pages = load_pages(documents, counts["articles"]) if documents else None
    if pages:
        counts["articles"] = len(pages)
    if counts["articles"] is None:
        raise UsageError("how many articles?", "give --articles, or your own with --documents")
    centre = HelpCentre(**counts, limited=not (pages or page))
    if author == "offline":
        return centre
    if page:
        settings = (centre.sets, centre.multi, centre.seed, author, options)
        return WrittenCentre(page, counts["articles"], *settings)
    product = "" if pages else centre.product
    pages = pages or pages_of(centre.articles)
    return ModelCentre(pages, centre.sets, centre.multi, centre.seed, author, options, product)


def describe(centre: HelpCentre) -> dict:
    """Return counts, and medians in words, of articles and sets."""

    def words(texts):
        return statistics.median(len(text.split()) for text in texts)

    kinds = {
        name: words(a.contents for a in centre.articles if a.type == name)
        for name, count in centre.types.items()
        if count
    }
    sets = {
        name: {
            "questions": len(rows),
            "about_two_articles": sum(len(q.articles) > 1 for q in rows),
            "median_question_words": words(q.text for q in rows),
            "median_answer_words": words(q.answer for q in rows),
        }
        for name, rows in centre.questions.items()
        if rows
    }
    lost = len(getattr(centre, "lost", ()))
    return ({"left_out": lost} if lost else {}) | {
        "product": centre.product,
        "seed": centre.seed,
        "articles": dict(centre.types),
        "median_article_words": kinds,
        "facts": sum(len(a.steps) + len(a.facts) for a in centre.articles),
        "sets": sets,
    }


def _facts(centre: HelpCentre):
    for article in centre.articles:
        leads = (f"{article.title}: ", f"About {article.title}, ")
        for fact in (*article.steps, *article.facts):
            yield {
                "fact_id": fact.fact_id,
                "subject": fact.subject,
                "attribute": fact.attribute,
                "values": list(fact.values),
                "statement": fact.statement,
                "article_id": article.id,
                "sources": [article.id],
                "title": article.title,
                "ask": [f"{lead}{fact.ask}?" for lead in leads if fact.ask],
                "far": [f"{lead}{fact.lay}?" for lead in leads if fact.lay],
            }


def _cases(centre: HelpCentre):
    """Yield the problems that articles explain, with cause and remedy."""
    for article in centre.articles:
        if article.topic.kind in ("trouble", "known"):
            told = {"problem": "symptom", "cause": "cause", "fix": "fix"}
            told = {name: article.pen.slots[slot] for name, slot in told.items()}
            yield {"doc_id": article.id, "subject": centre.product, **told}


def _own_row(key: str, name: str, question: Question) -> dict:
    return {
        "question_id": key,
        "text": question.text,
        "type": name,
        "answer": question.answer,
        "facts": [fact.statement for fact in question.facts],
        "fact_ids": [fact.fact_id for fact in question.facts],
        "gold_doc_ids": [article.id for article in question.articles],
    }


def _own_document(article: Article) -> dict:
    return {
        "doc_id": article.id,
        "source": article.type,
        "title": article.title,
        "text": article.contents,
        "url": article.url,
    }


def _jsonl(path: Path, rows: list[dict]) -> None:
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
