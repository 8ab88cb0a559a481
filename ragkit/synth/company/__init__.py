"""A company's documents and questions, written by a model from a page about the company.

EnterpriseRAG-Bench, sections 4 and 5.3, appendices B and C. The answers of every stage are files of
`OUT/plan`, which may be edited between two runs; the same command goes on from there.

>>> from ragkit.synth.company import estimate, generate_company
>>> options = {"documents": 60, "questions": 20, "author": "openai:gpt-4o"}
>>> estimate("data/sample/company.md", "build/co", **options)
['60 documents, 20 questions; requests:', ... about $...]
>>> generate_company("data/sample/company.md", "build/co", **options)  # doctest: +SKIP
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from ragkit.errors import DataError, UsageError
from ragkit.files import read_text, sha256
from ragkit.synth.company import export
from ragkit.synth.company.documents import Noise, Writer
from ragkit.synth.company.estimate import stand_ins
from ragkit.synth.company.export import Made
from ragkit.synth.company.files import PROMPTS, Files
from ragkit.synth.company.gold import Pool, drawn
from ragkit.synth.company.plan import PAGE, Plan, Settings
from ragkit.synth.company.questions import Asker
from ragkit.synth.company.search import Library
from ragkit.synth.stages import AuthorOptions, Guess, Model
from ragkit.synth.stamp import begin

__all__ = ["Settings", "estimate", "generate_company"]

PARAMETERS = {"max_tokens": 16_000}


def generate_company(
    page: str | Path,
    out: str | Path,
    *,
    plan: str | Path | None = None,
    author_options: AuthorOptions | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    **settings,
) -> dict:
    """Make a company in `out`, or go on with one; return what is in `statistics.json`.

    Parameters
    ----------
    page : path-like
        What is known of the company, in words.
    out : path-like
        A new or empty folder, or one that the same settings have begun.
    plan : path-like, optional
        A folder with files of stages, as `OUT/plan` is one, to begin with instead of none.
    author_options : AuthorOptions, optional
        Also says what is raised if the model does not answer.
    progress : callable, optional
        Called with stage, answers and tasks, as a stage begins and ends.
    **settings
        See `Settings`.

    Raises
    ------
    UsageError
        If a setting is out of range, or the folder was begun with others.
    DataError
        If the page is empty or too long, or the file of a stage cannot be gone on with.
    """
    settings, text, folder = _checked(settings, page, out, plan)
    out, own = Path(out), Path(out) / "plan"
    begin(out, {**asdict(settings), "sha256 of the page": sha256(page)})
    if folder != own:  # all of it or nothing, however a run ends
        shutil.copytree(folder, out / ".tmp-plan", dirs_exist_ok=True)
        (out / ".tmp-plan").rename(own)
    author = Model(settings.author, PROMPTS, author_options, PARAMETERS, progress)
    return export.write(out, _run(Files(own, author), text, settings))


def estimate(
    page: str | Path,
    out: str | Path,
    *,
    plan: str | Path | None = None,
    author_options: AuthorOptions | None = None,
    **settings,
) -> list[str]:
    """Return in lines what `generate_company` would still ask, and its cost; nothing is asked."""
    settings, text, folder = _checked(settings, page, out, plan)
    known = stand_ins(settings, text)
    guess = Guess(settings.author, PROMPTS, author_options, known, PARAMETERS)
    _run(Files(folder, guess, keep=False), text, settings)
    head = f"{settings.documents:,} documents, {settings.questions:,} questions; requests:"
    return [head, *guess.lines()]


def _checked(settings: dict, page, out, plan) -> tuple[Settings, str, Path]:
    """Return settings, page, and the folder of the plan that a run goes on from."""
    if plan is not None and not Path(plan).is_dir():
        raise UsageError(f"{plan}: no such folder", "the plan of another run is its OUT/plan")
    begun = Path(out) / "plan"
    folder = begun if plan is None or begun.exists() else Path(plan)
    return Settings(**settings), read_page(page), folder


def _run(files: Files, page: str, settings: Settings) -> Made:
    """Run all stages that a model answers."""
    plan = Plan(files, page, settings)
    writer = Writer(plan, files).write()
    noise = Noise(plan, files, writer.texts).make()
    rows = export.documents(plan, writer, noise)
    library = Library(rows, vectors=not getattr(files.author, "calls", {}).get("document"))
    asker, pool = Asker(plan, files, noise, library), Pool(files, library)
    kept = pool.correct(asker.make())
    files.flush()
    drafts = drawn(kept, settings.wanted, settings.seed)
    lost = [*writer.lost, *noise.lost, *asker.lost, *pool.lost]
    return Made(plan, noise, rows, drafts, pool.retrievers, lost)


def read_page(path: str | Path) -> str:
    """Return the text of a page about a company."""
    text = read_text(path).strip()
    if not text:
        raise DataError(
            f"{path}: the page is empty",
            "say in a few paragraphs what the company does, for whom, with what, and who runs it",
        )
    if len(text) > PAGE:
        raise DataError(
            f"{path}: the page has {len(text):,} characters, at most {PAGE:,} fit",
            "keep what all of its people would know; what is particular belongs in the projects",
        )
    return text
