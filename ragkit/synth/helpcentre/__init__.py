"""A help centre in the shape of WixQA: articles of three types and three question sets (section 3).

A model asks about articles of yours, or about those that it first writes from a page about a
company.

>>> from ragkit.synth.helpcentre import generate_helpcentre
>>> generate_helpcentre("build/help", page="company.md", articles=80, seed=7,
...                     author="openai:MODEL")  # doctest: +SKIP
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from pathlib import Path

from ragkit import checks
from ragkit.datasets import reported
from ragkit.errors import UsageError
from ragkit.files import sha256, write_text
from ragkit.synth.author import AuthorOptions, check_author
from ragkit.synth.briefs import shares
from ragkit.synth.helpcentre.sets import ModelCentre, Page, Question, load_pages
from ragkit.synth.helpcentre.written import WrittenCentre
from ragkit.synth.stamp import begin

__all__ = ["Question", "generate_helpcentre"]

KB = "wixqa/wix_kb_corpus/wix_kb_corpus.jsonl"
TEST = "wixqa/wixqa_{}/test.jsonl"
SETS = ("expertwritten", "simulated", "synthetic")


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
    with the facts that their answers state; `dialogues.jsonl` (from which the simulated questions
    are distilled), `left_out.jsonl` (what was spoilt, and why) and `statistics.json`. The same
    arguments and the same ledger give the same bytes on every machine.

    Parameters
    ----------
    out : path-like
        A new or empty folder, or one that the same settings have begun: its files are written
        again, to the same bytes.
    articles : int, optional
        May be left out for `documents`: all of them.
    seed : int
    expertwritten, simulated : int, optional
        Questions in these sets, by default 200 but no more than two thirds of the articles. The
        synthetic set has one for each article.
    documents : path-like, optional
        A folder with articles of yours in documents.jsonl.
    page : path-like, optional
        What is known of a company and its products, in words, from which the model writes the
        articles before it asks about them.
    author : str
        `openai:MODEL`.
    progress : callable, optional
        Called with stage, steps done and steps in all.
    author_options : AuthorOptions, optional
        How the model is asked.

    Returns
    -------
    dict
        Counts and medians in words, as in `statistics.json`.

    Raises
    ------
    UsageError
        If there is no model, the counts are impossible, or the folder holds other files or was
        begun with other settings.
    DataError
        If the documents are no articles, or the page is empty or too long.
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
    stamp = {**counts, "seed": seed, "author": author}
    stamp["sha256 of documents.jsonl"] = (
        sha256(Path(documents) / "documents.jsonl") if documents else None
    )
    stamp |= {"sha256 of the page": sha256(page)} if page else {}
    begin(out, stamp)  # the ledger may be in the folder
    if progress:
        centre.progress = progress
    made = centre.questions
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
    if centre.lost:
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
) -> ModelCentre:
    """Return the help centre whose articles and sets are to be made; nothing is asked or written.

    Parameters
    ----------
    documents, author, options, page, **counts
        See `generate_helpcentre`.
    """
    check_author(author)
    if author == "offline":
        raise UsageError("a help centre is written by a model", "add --author openai:MODEL")
    if documents and page:
        raise UsageError("articles are read (documents) or written (page), not both")
    pages = load_pages(documents, counts["articles"]) if documents else None
    if not pages and not page:
        raise UsageError(
            "there is nothing to write about",
            "give --page with what is known of a company, or articles of yours with --documents",
        )
    articles = len(pages) if pages else counts["articles"]
    if articles is None:
        raise UsageError("how many articles?", "give --articles")
    sets = _sets(articles, counts["expertwritten"], counts["simulated"])
    checks.whole(counts["seed"], "seed", least=0)
    table = reported.load("wixqa", "2")
    table = table[table["metric"] == "multi_article_share"].set_index("row")["value"]
    multi = {name: shares(n, [table[name], 100 - table[name]])[0] for name, n in sets.items()}
    settings = (sets, multi, counts["seed"], author, options)
    return ModelCentre(pages, *settings) if pages else WrittenCentre(page, articles, *settings)


def _sets(articles: int, expertwritten: int | None, simulated: int | None) -> dict[str, int]:
    """Return the questions of each set, by default 200 but at most two thirds of the articles."""
    checks.whole(articles, "articles")
    usual = min(200, articles * 2 // 3)
    sets = {
        "expertwritten": usual if expertwritten is None else expertwritten,
        "simulated": usual if simulated is None else simulated,
        "synthetic": articles,
    }
    for name, count in sets.items():
        if not 0 <= count <= articles:
            raise UsageError(
                f"{name} must be from 0 to the {articles:,} articles, not {count:,}",
                "ask for fewer questions or make more articles",
            )
    return sets


def describe(centre: ModelCentre) -> dict:
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
    lost = len(centre.lost)
    return ({"left_out": lost} if lost else {}) | {
        "product": centre.product,
        "seed": centre.seed,
        "articles": dict(centre.types),
        "median_article_words": kinds,
        "sets": sets,
    }


def _own_row(key: str, name: str, question: Question) -> dict:
    return {
        "question_id": key,
        "text": question.text,
        "type": name,
        "answer": question.answer,
        "facts": list(question.facts),
        "gold_doc_ids": [article.id for article in question.articles],
    }


def _own_document(article: Page) -> dict:
    return {
        "doc_id": article.id,
        "source": article.type,
        "title": article.title,
        "text": article.contents,
        "url": article.url,
    }


def _jsonl(path: Path, rows: list[dict]) -> None:
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
