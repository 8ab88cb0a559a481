"""The response matrix of the embedded sample: its systems and their scores."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from ragkit import datasets, models, paths, schema
from ragkit.errors import ModelError
from ragkit.store import canonical
from ragkit.systems.sweep.running import run
from ragkit.systems.sweep.systems import System, load

if TYPE_CHECKING:
    import pandas as pd

SYSTEMS = paths.NOTEBOOKS / "systems.toml"
DOCUMENTS = 300  # encoding the whole sample takes minutes for each encoder
K = 100  # in long lists, few reciprocal ranks are 0


def sample_systems() -> list[System]:
    """Return the retrievers of `notebooks/systems.toml` whose weights come with the installation.

    Of systems with the same ranking the first is returned, without its reader, so that the list
    is the same on every machine and no two systems always have the same score.
    """
    installed = {card.name for card in models.cards().values() if card.package}
    distinct: dict[str, System] = {}
    for system in load(SYSTEMS):
        if system.models <= installed:
            distinct.setdefault(canonical(system.ranking), replace(system, reader=None))
    return list(distinct.values())


def sample_scores(metric: str = "RR") -> pd.DataFrame:
    """Return the scores of `sample_systems` on the sample's LiveRAG questions.

    The corpus is a part of the embedded sample: the gold documents, and as many others of the
    company and its help centre as make 300. The store keeps the ranked lists.

    Parameters
    ----------
    metric : str
        A measure of ranked lists; the reciprocal rank by default.

    Returns
    -------
    DataFrame
        A `scores` frame: subject_id, item_id, score in [0, 1].

    Raises
    ------
    ModelError
        If a system failed, so that scores would be missing.
    """
    import pandas as pd

    names = ("liverag", "enterpriserag_bench", "wixqa")
    sets = {name: datasets.load(name, profile="sample") for name in names}
    columns = list(schema.COLUMNS["documents"])
    documents = pd.concat([sets[name].documents[columns] for name in names], ignore_index=True)
    documents = documents.drop_duplicates("doc_id", ignore_index=True)
    whole = replace(sets["liverag"], frames=sets["liverag"].frames | {"documents": documents})
    part = whole.part(DOCUMENTS)
    with _alone():
        result = run(sample_systems(), part.documents, part.questions, k=K)
    if len(result.failures):
        first = result.failures.iloc[0]
        raise ModelError(f"the sample's system {first['system']!r} failed: {first['reason']}")
    return result.scores(metric).drop(columns="metric")


@contextmanager
def _alone() -> Iterator[None]:
    """Wait for another process that computes the same, instead of computing it twice."""
    paths.cache_dir().mkdir(parents=True, exist_ok=True)
    with open(paths.cache_dir() / "sample-scores.lock", "w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
