"""Benchmarks as frames: `load(name, profile=..., data=...)`.

>>> from ragkit import datasets
>>> wixqa = datasets.load("wixqa", profile="sample")
>>> len(wixqa.questions), len(wixqa.documents), wixqa.label
(160, 80, 'embedded sample')

`data/registry.toml` declares each dataset: its files, where they come from, and the reader of
their format. A dataset says what it is made of: the embedded sample, the official files, or a
partial mirror of them ("160 of 200 rows"). A folder of your own is read by its path.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ragkit import checks, paths
from ragkit.datasets import registry
from ragkit.datasets.base import Dataset
from ragkit.datasets.registry import Store
from ragkit.errors import DataError, MissingData

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Dataset",
    "PROFILES",
    "files",
    "in_sample",
    "load",
    "load_optional",
    "names",
    "overview",
]

PROFILES = ("sample", "paper")


def names() -> list[str]:
    """Return the names that `load` knows: the declared datasets that have a reader.

    >>> "wixqa" in names()
    True
    """
    return [name for name, dataset in registry.declared().items() if dataset.reader]


def load(name: str, *, profile: str = "sample", data: str | os.PathLike | None = None) -> Dataset:
    """Load a benchmark.

    `name` is one of `names()`, or the path of a folder of your own (`ragkit.datasets.base.own`).
    The profile "sample" is the embedded sample, "paper" the real files, from the folder `data`,
    `$RAGKIT_DATA` or the cache of fetched files. Raises `MissingData` if no part of it is at hand,
    `DataError` if a file is cut, damaged or has not the declared columns.

    >>> wixqa = load("wixqa")
    >>> wixqa.label
    'embedded sample'
    >>> wixqa.questions.columns[:4].tolist()
    ['question_id', 'text', 'type', 'answer']
    """
    from ragkit.datasets import base

    checks.choice(profile, "profile", PROFILES)
    folder = str(name)
    if folder not in names() and (os.sep in folder or (folder and Path(folder).is_dir())):
        return base.own(Path(folder))
    if profile == "sample" and not in_sample(name):
        raise MissingData(
            f"the embedded sample has no {name!r}", "run it with the profile 'paper' and real data"
        )
    dataset = registry.declared()[checks.choice(name, "dataset", names())]
    place = paths.SAMPLE if profile == "sample" else Store(data)
    return base.registered(dataset, profile, place)


def load_optional(
    name: str, *, profile: str = "sample", data: str | os.PathLike | None = None
) -> Dataset | None:
    """Load a benchmark as `load` does, or say why it cannot be loaded, and return None.

    >>> load_optional("wixqa").name
    'wixqa'
    """
    try:
        return load(name, profile=profile, data=data)
    except (MissingData, DataError) as error:
        print(f"Without {name}: {error.message}. What needs it is left out.")
        return None


def overview(*, profile: str = "sample", data: str | os.PathLike | None = None) -> pd.DataFrame:
    """Return one row a dataset: dataset, state, documents, questions, scores, label.

    The state is present, other release, partial, cut or damaged, or missing; the counts of rows are
    NaN for frames that are not there.

    >>> overview()[["dataset", "state"]].head(2)
               dataset    state
    0            wixqa  present
    1  wixqa_retrieval  missing
    """
    import pandas as pd

    if profile == "paper":
        Store(data)  # a folder that is not there is an error, not missing datasets
    rows = []
    for name in names():
        try:
            loaded = load(name, profile=profile, data=data)
        except (MissingData, DataError) as error:
            state = "missing" if isinstance(error, MissingData) else "cut or damaged"
            rows.append({"dataset": name, "state": state, "label": error.message})
            continue
        other = any("other release" in remark for remark in (*loaded.gaps, *loaded.remarks))
        state = "partial" if loaded.partial else "other release" if other else "present"
        counts = {kind: float(len(frame)) for kind, frame in loaded.frames.items()}
        rows.append({"dataset": name, "state": state, "label": loaded.label, **counts})
    columns = ["dataset", "state", "documents", "questions", "scores", "label"]
    return pd.DataFrame(rows).reindex(columns=columns)


def files(name: str, *, optional: bool = True) -> tuple[str, ...]:
    """Return the registered paths that a dataset is read from, with or without optional ones.

    >>> files("liverag")
    ('liverag/LiveRAG_banchmark_20250910.parquet',)
    """
    known = registry.files(checks.choice(name, "dataset", names()))
    return tuple(file.path for file in known if optional or not (file.optional or file.extra))


def in_sample(name: str) -> bool:
    """Whether the embedded sample has a dataset of that name.

    >>> in_sample("wixqa")
    True
    """
    return any(file.sample for file in registry.files(checks.choice(name, "dataset", names())))
