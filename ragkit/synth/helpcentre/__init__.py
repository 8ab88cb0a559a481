"""A help centre in the shape of WixQA: articles of three types and three question sets (section 3).

A model asks about articles of yours, or about those that it first writes from a page about a
company.

>>> from ragkit.synth.helpcentre import estimate, generate_helpcentre
>>> estimate(page="data/sample/company.md", articles=80, author="openai:gpt-4o")
['80 articles, ... questions; requests:', ... about $...]
>>> generate_helpcentre("build/help", page="mine.md", author="openai:gpt-4o")  # doctest: +SKIP
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from ragkit.files import sha256
from ragkit.synth.folder import located
from ragkit.synth.helpcentre.centre import STAND_INS, Centre, Settings
from ragkit.synth.layout import renamed
from ragkit.synth.stages import AuthorOptions, Guess, Model
from ragkit.synth.stamp import begin, finish

__all__ = ["Settings", "estimate", "generate_helpcentre"]

PROMPTS = Path(__file__).parent / "prompts"
PARAMETERS = {"max_tokens": 4000}
# Columns of WixQA's files, and ragkit's beside them; see `layout.renamed`.
ARTICLE = "id=doc_id url contents=text article_type=source title"
DOCUMENT = "doc_id source title text url"
ASKED = "question=text answer article_ids=gold_doc_ids"
QUESTION = "question_id text type answer facts gold_doc_ids"


def generate_helpcentre(
    out: str | Path,
    *,
    author_options: AuthorOptions | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    **settings,
) -> dict:
    """Write a help centre and its question sets to `out`; return what is in `statistics.json`.

    `out/wixqa` has the benchmark's own layout. Beside it stand `documents.jsonl` and
    `questions.jsonl` in ragkit's columns, which `ragkit.datasets.load(str(out))` reads, questions
    with the facts that their answers state; `dialogues.jsonl` (from which the simulated questions
    are distilled), `left_out.jsonl` (what was spoilt, and why) and `statistics.json`. The same
    settings and the same ledger give the same bytes on every machine.

    Parameters
    ----------
    out : path-like
        A new or empty folder, or one that the same settings have begun.
    author_options : AuthorOptions, optional
        Also says what is raised if the model does not answer.
    progress : callable, optional
        Called with stage, answers and tasks, as a stage begins and ends.
    **settings
        See `Settings`.

    Raises
    ------
    UsageError
        If a setting is out of range, or the folder holds other files or was begun with others.
    DataError
        If the documents are no articles, or the page is empty or too long.
    """
    out, settings = Path(out), Settings(**settings)
    centre, stamp = Centre(settings), asdict(settings)
    for name in ("documents", "page"):
        if path := stamp.pop(name):
            stamp[f"sha256 of the {name}"] = sha256(located(path))
    begin(out, stamp)  # the ledger may be in the folder
    made = centre.make(Model(settings.author, PROMPTS, author_options, PARAMETERS, progress))
    asked = [
        draft.row() | {"question_id": f"{name}-{number:04d}"}
        for name, drafts in made.items()
        for number, draft in enumerate(drafts, 1)
    ]
    rows = {
        "wixqa/wix_kb_corpus/wix_kb_corpus": renamed(centre.articles, ARTICLE),
        "documents": renamed(centre.articles, DOCUMENT),
        "left_out": [one.row() for one in centre.lost],
        "questions": renamed(asked, QUESTION),
        "dialogues": renamed([row for row in asked if "turns" in row], "question_id turns"),
    }
    for name in made:
        own = [row for row in asked if row["type"] == name]
        rows[f"wixqa/wixqa_{name}/test"] = renamed(own, ASKED)
    found = {
        "product": centre.product,
        "seed": settings.seed,
        "articles": dict(Counter(article["source"] for article in centre.articles)),
        "questions": {name: len(drafts) for name, drafts in made.items()},
        "about two articles": {n: sum(len(d.articles) > 1 for d in made[n]) for n in made},
        "left_out": len(centre.lost),
    }
    return finish(out, {name: own for name, own in rows.items() if own}, found)


def estimate(*, author_options: AuthorOptions | None = None, **settings) -> list[str]:
    """Return in lines what `generate_helpcentre` would still ask, and its cost; nothing is asked."""
    settings = Settings(**settings)
    guess = Guess(settings.author, PROMPTS, author_options, STAND_INS, PARAMETERS)
    centre = Centre(settings)
    questions = sum(map(len, centre.make(guess).values()))
    return [f"{centre.count:,} articles, {questions:,} questions; requests:", *guess.lines()]
