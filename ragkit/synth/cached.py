"""Generated companies in the cache folder: generated once, then found again."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from ragkit import paths, store
from ragkit.datasets import reported
from ragkit.synth.pipeline import Run, Settings

GENERATOR = "ragkit.synth.pipeline"


def cached_company(
    documents: int,
    *,
    seed: int = 0,
    questions: int | None = None,
    metadata_questions: int | None = None,
    jobs: int = 2,
    progress: Callable[[str, int, int], None] | None = None,
) -> Path:
    """Return the folder of a generated company; generate it if it is not in the cache folder.

    The folder's name has the settings and a digest of what the result depends on: the generator's
    code, its phrase banks, and the printed numbers that it reads (see `ragkit.store`). An
    interrupted run continues. If two processes ask for the same company, one waits for the other.

    Parameters
    ----------
    documents, seed, questions, metadata_questions, jobs, progress
        See `ragkit.synth.generate`.

    Returns
    -------
    Path
        A folder as `ragkit generate erb` writes it: 1.3 GB for 512,000 documents.

    Raises
    ------
    UsageError
        If the counts are impossible.
    RagkitError
        If the disk is full.
    """
    from ragkit.synth.pipeline import generate

    settings = Settings(documents, seed, questions, metadata_questions)
    name = f"erb-{documents}-{settings.questions}-{settings.metadata_questions}-{seed}"
    folder = paths.cache_dir() / "generated" / f"{name}-{version()}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(f".{folder.name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "stages" / "6-export" / "done.json").exists():
            generate(
                folder,
                documents=documents,
                seed=seed,
                questions=settings.questions,
                metadata_questions=settings.metadata_questions,
                jobs=jobs,
                progress=progress,
            )
    return folder


def version() -> str:
    """Return a digest of the generator: its code, phrase banks, and the numbers that it reads."""
    return store.digest([store.code_digest(GENERATOR), store.digest(reported.load())])[:12]


def stream(folder: str | Path) -> Iterator[dict]:
    """Yield the documents of a generated company one by one, in the order of its slices.

    Parameters
    ----------
    folder : path-like
        As `ragkit generate erb` or `cached_company` writes it.

    Yields
    ------
    dict
        doc_id, source_type, path, title, content and the metadata of its source.
    """
    from ragkit.synth.briefs import SOURCES

    found = json.loads((Path(folder) / "generation.json").read_text("utf-8"))
    names = ("documents", "seed", "questions", "metadata_questions")
    run = Run(Path(folder), Settings(**{name: found[name] for name in names}))
    for source in SOURCES:
        yield from run.documents(source)
