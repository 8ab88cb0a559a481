"""Generated companies in the cache folder: generated once, then found again."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ragkit.files import read_archive
from ragkit.synth.layout import SOURCES
from ragkit.synth.offline.generate import generate, version
from ragkit.synth.offline.plan import Settings
from ragkit.synth.stamp import once


def cached_company(
    documents: int,
    *,
    seed: int = 0,
    questions: int | None = None,
    metadata_questions: int | None = None,
    jobs: int = 2,
) -> Path:
    """Return the folder of a generated company; generate it if it is not in the cache folder.

    The parameters are those of `ragkit.synth.generate`. The folder's name has the settings and a
    digest of what the result depends on: the generator's code, its packs, and the printed numbers
    that it reads (see `ragkit.store`). An interrupted run continues. If two processes ask for the
    same company, one waits for the other. 512,000 documents take 0.8 GB.

    >>> from ragkit.synth import stream
    >>> folder = cached_company(500, questions=10)
    >>> next(stream(folder)).keys()
    dict_keys(['doc_id', 'title', 'path', 'source_type', 'content'])
    """
    settings = Settings(documents, seed, questions, metadata_questions)
    counts = {"questions": settings.questions, "metadata_questions": settings.metadata_questions}
    name = "-".join(map(str, ("erb", documents, *counts.values(), seed, version())))
    options = counts | {"documents": documents, "seed": seed, "jobs": jobs}
    return once(name, partial(generate, **options))


def stream(folder: str | Path) -> Iterator[dict]:
    """Yield the documents of a folder that `cached_company` made, in the order of its slices.

    Each is a dict with doc_id, source_type, path, title and content.
    """
    bench = Path(folder) / "enterpriserag_bench"
    for source in SOURCES:
        for k in range(1, 1 + len(list(bench.glob(f"{source}_slice_*.zip")))):
            for name, row in read_archive(bench / f"{source}_slice_{k}.zip"):
                row["source_type"], row["content"] = row.pop("source"), row.pop("text")
                yield row | {"path": name}
