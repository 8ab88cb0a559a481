"""The response matrix of the embedded sample: real systems, real scores."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ragkit import datasets, models, paths, schema
from ragkit.errors import ModelError
from ragkit.systems.sweep.running import run
from ragkit.systems.sweep.systems import System, load

if TYPE_CHECKING:
    import pandas as pd

SYSTEMS = paths.NOTEBOOKS / "systems.toml"
DOCUMENTS = 300  # encoding all of the sample takes minutes, eight times over
K = 100  # long lists: a reciprocal rank is 0 for few


def sample_systems() -> list[System]:
    """Return the retrievers of `notebooks/systems.toml` that need no weights to be fetched.

    Of systems that rank alike the first one stays, without its reader, so that the list is the
    same on every machine and no two of its systems always have the same score.
    """
    here = {card.name for card in models.cards().values() if card.package}
    distinct: dict[str, System] = {}
    for system in load(SYSTEMS):
        if system.models <= here:
            distinct.setdefault(
                system.ranking,
                System(system.name, system.retriever, system.rerank, None, system.words),
            )
    return list(distinct.values())


def sample_scores(metric: str = "RR") -> pd.DataFrame:
    """Return the scores of `sample_systems` on the sample's LiveRAG questions.

    The corpus is a part of the embedded sample: the supporting documents, and as many others of
    their company and its help centre as make 300. Ranked lists are kept in the cache folder, so
    that a second call computes nothing.

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
        If a system failed: a matrix with holes is none to teach with.
    """
    import pandas as pd

    names = ("liverag", "enterpriserag_bench", "wixqa")
    sets = {name: datasets.load(name, profile="sample") for name in names}
    columns = list(schema.COLUMNS["documents"])
    documents = pd.concat([sets[name].documents[columns] for name in names], ignore_index=True)
    documents = documents.drop_duplicates("doc_id", ignore_index=True)
    whole = replace(sets["liverag"], frames=sets["liverag"].frames | {"documents": documents})
    part = whole.part(DOCUMENTS)
    folder = paths.cache_dir() / "sweep"
    with _turn(folder):
        result = run(sample_systems(), part.documents, part.questions, out=folder, k=K)
    if len(result.failures):
        first = result.failures.iloc[0]
        raise ModelError(f"the sample's system {first['system']!r} failed: {first['reason']}")
    return result.scores(metric).drop(columns="metric")


@contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """Wait for another process that computes the same, rather than compute it twice."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
