"""Who writes: one interface, two authors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ragkit.errors import UsageError
from ragkit.synth.briefs import Brief
from ragkit.synth.world import World


@dataclass(frozen=True)
class LeftOut:
    """A document that its author did not write, and why."""

    doc_id: str
    path: str
    reason: str


class Author(Protocol):
    """Something that turns briefs into documents.

    `write_all` returns one entry a brief, in order: the document as a dict with path, doc_id,
    source_type, title, its metadata and content; or a `LeftOut`.
    """

    name: str

    def write_all(self, briefs: Sequence[Brief]) -> list[dict | LeftOut]: ...


def make_author(name: str, world: World, **options) -> Author:
    """Return the author called `offline` or `openai:MODEL`.

    Parameters
    ----------
    name : str
    world : World
    **options
        For a model: `ledger`, `budget`, `concurrency`, `replay` (see `ragkit.llm.Client`).

    Raises
    ------
    UsageError
        If there is no such author.
    """
    check_author(name)
    if name == "offline":
        from ragkit.synth.offline import Offline

        return Offline(world)
    from ragkit.synth.model import ModelAuthor

    return ModelAuthor(name, world, **options)


def check_author(name: str) -> None:
    """Raise `UsageError` unless `name` is `offline` or `openai:MODEL`."""
    if name != "offline" and not (name.startswith("openai:") and len(name) > len("openai:")):
        raise UsageError(f"no author is called {name!r}", "known: offline, openai:MODEL")
