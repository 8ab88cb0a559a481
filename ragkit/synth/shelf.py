"""Generated companies, kept in the cache folder: made once, then found."""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from ragkit import paths
from ragkit.synth.pipeline import Run, Settings

ROOM = Path(__file__).resolve().parent
READERS = ("study.py", "shelf.py", "sample.py", "stamp.py")  # they read what the others make


def company(
    documents: int,
    *,
    seed: int = 0,
    questions: int | None = None,
    metadata_questions: int | None = None,
    jobs: int = 2,
    progress: Callable[[str, int, int], None] | None = None,
) -> Path:
    """Return the folder of a generated company; make it if it is not there.

    It lies in the cache folder under a name with its settings and a digest of the generator, so
    that another version of the generator makes it anew. An interrupted run is resumed, and of two
    processes that want the same company one waits for the other.

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
    folder = paths.cache_dir() / "generated" / f"{name}-{_version()}"
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
                resume=True,
                progress=progress,
            )
    return folder


def stream(folder: str | Path) -> Iterator[dict]:
    """Yield the documents of a generated company one by one, in the order of its slices.

    Parameters
    ----------
    folder : path-like
        As `ragkit generate erb` or `company` makes it.

    Yields
    ------
    dict
        doc_id, source_type, path, title, content and the metadata of its source.
    """
    from ragkit.synth.briefs import SOURCES

    found = json.loads((Path(folder) / "generation.json").read_text("utf-8"))
    names = ("documents", "seed", "questions", "metadata_questions", "author")
    run = Run(Path(folder), Settings(**{name: found[name] for name in names}))
    for source in SOURCES:
        yield from run.documents(source)


@cache
def _version() -> str:
    digest = hashlib.sha256()
    for path in sorted(ROOM.rglob("*")):
        if path.suffix in (".py", ".md", ".toml") and path.name not in READERS:
            digest.update(path.relative_to(ROOM).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
