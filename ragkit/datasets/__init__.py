"""Benchmarks as frames: `load(name, profile=..., data=...)`.

>>> from ragkit import datasets
>>> wixqa = datasets.load("wixqa", profile="sample")
>>> wixqa.questions, wixqa.documents, wixqa.label

One module a benchmark, and `own` for a folder of yours. A dataset says what it is made of: the
embedded sample, the official files, or a partial mirror of them ("160 of 200 rows").
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ragkit import paths
from ragkit.datasets.base import Dataset, Source
from ragkit.datasets.registry import Store
from ragkit.errors import MissingData, UsageError, did_you_mean

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Dataset", "PROFILES", "files", "in_sample", "load", "names", "overview"]

PROFILES = ("sample", "paper")

# name -> module; each has FILES (name -> registered paths), perhaps OPTIONAL ones among them,
# SAMPLE (the names that the embedded sample has) and read(name, source).
_MODULES = {
    "wixqa": "wixqa",
    "wixqa_retrieval": "wixqa",
    "enterpriserag_bench": "enterprise",
    "erb_judged": "enterprise",
    "liverag": "liverag",
    "grag": "liverag",
    "triviaqa": "comparison",
    "popqa": "comparison",
    "webquestions": "comparison",
    "simpleqa": "comparison",
    "natural_questions": "comparison",
    "datamorgana": "others",
    "erb_answers": "others",
    "erb_retrieval": "others",
    "liverag_answers": "others",
    "wixqa_answers": "others",
    "lsat": "matrices",
    "lsat6": "matrices",
    "lsat7": "matrices",
    "sat12": "matrices",
    "science": "matrices",
    "wirs": "matrices",
    "abortion": "matrices",
    "mobility": "matrices",
    "czech_simpleqa": "matrices",
}


def names() -> list[str]:
    """Return the names that `load` knows."""
    return list(_MODULES)


def load(name: str, *, profile: str = "sample", data: str | os.PathLike | None = None) -> Dataset:
    """Load a benchmark.

    Parameters
    ----------
    name : str
        One of `names()`, or the path of a folder of your own (see `ragkit.datasets.own`).
    profile : {"sample", "paper"}
        "sample" is the embedded sample; "paper" the real files, from `data`, `$RAGKIT_DATA` or
        the cache of fetched files.
    data : path-like, optional
        A folder with real files, for the profile "paper".

    Returns
    -------
    Dataset

    Raises
    ------
    UsageError
        If the name or the profile is unknown.
    MissingData
        If no part of it is at hand.
    DataError
        If a file is not what it should be.
    """
    if profile not in PROFILES:
        raise UsageError(f"no profile {profile!r}", did_you_mean(profile, PROFILES))
    folder = str(name)
    if folder not in _MODULES and (os.sep in folder or (folder and Path(folder).is_dir())):
        from ragkit.datasets import own

        return own.read(Path(folder))
    module = _module(name)
    source = Source(profile, paths.SAMPLE) if profile == "sample" else Source(profile, Store(data))
    if profile == "sample" and not in_sample(name):
        raise MissingData(
            f"the embedded sample has no {name!r}", "run it with the profile 'paper' and real data"
        )
    return module.read(name, source)


def overview(*, profile: str = "sample", data: str | os.PathLike | None = None) -> pd.DataFrame:
    """Return one row a dataset: what is at hand, how many rows, what it is made of.

    Returns
    -------
    DataFrame with columns dataset, state, documents, questions, scores, label
        State is present, partial or missing; counts are NaN for frames that are not there.
    """
    import pandas as pd

    if profile == "paper":
        Store(data)  # a folder that is not there is an error, not missing datasets
    rows = []
    for name in names():
        try:
            loaded = load(name, profile=profile, data=data)
        except MissingData as error:
            rows.append({"dataset": name, "state": "missing", "label": error.message})
            continue
        state = "partial" if loaded.partial else "present"
        counts = {kind: float(len(frame)) for kind, frame in loaded.frames.items()}
        rows.append({"dataset": name, "state": state, "label": loaded.label, **counts})
    columns = ["dataset", "state", "documents", "questions", "scores", "label"]
    return pd.DataFrame(rows).reindex(columns=columns)


def files(name: str, *, optional: bool = True) -> tuple[str, ...]:
    """Return the registered paths that a dataset is read from, with or without optional ones."""
    module = _module(name)
    left_out = () if optional else getattr(module, "OPTIONAL", ())
    return tuple(path for path in module.FILES[name] if path not in left_out)


def in_sample(name: str) -> bool:
    """Whether the embedded sample has a dataset of that name."""
    return name in _module(name).SAMPLE


def _module(name: str):
    if name not in _MODULES:
        raise UsageError(f"no dataset {name!r}", did_you_mean(str(name).lower(), _MODULES))
    return importlib.import_module(f"ragkit.datasets.{_MODULES[name]}")
