"""Who writes: one interface, two authors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ragkit.errors import UsageError
from ragkit.synth.briefs import Brief

if TYPE_CHECKING:
    from ragkit.llm import Client

TOGETHER = 500  # documents that are asked for at once, and know of one another


@dataclass(frozen=True)
class LeftOut:
    """A document that its author did not write, and why."""

    doc_id: str
    path: str
    reason: str


class Author(Protocol):
    """Something that turns briefs into documents.

    `write_all` returns one entry a brief, in order: the document as a dict with path, doc_id,
    source_type, title, its metadata and content; or a `LeftOut`. `pending` returns the requests to
    a model that have no answer yet.
    """

    name: str

    def write_all(self, briefs: Sequence[Brief]) -> list[dict | LeftOut]: ...

    def pending(self, briefs: Sequence[Brief]) -> list: ...


@dataclass(frozen=True)
class AuthorOptions:
    """How a model is asked; see `ragkit.llm.Client`.

    Parameters
    ----------
    ledger : path-like, optional
        Where answers are kept. What it holds is not asked again, so a run continues.
    budget : float, optional
        The most that a run may cost, in USD.
    concurrency : int
        Requests at once.
    replay : bool, optional
        Whether to answer from the ledger alone.
    batch : path-like, optional
        A file to which requests are written, instead of being asked.
    """

    ledger: str | Path | None = None
    budget: float | None = None
    concurrency: int = 8
    replay: bool | None = None
    batch: str | Path | None = None

    def client(self, name: str, parameters: dict) -> Client:
        """Return the client of a model."""
        from ragkit.llm import Client

        options = {key: value for key, value in asdict(self).items() if key != "batch"}
        return Client(name, **options, parameters=parameters)


def check_author(name: str) -> None:
    """Raise `UsageError` unless `name` is `offline` or `openai:MODEL`."""
    if name != "offline" and not (name.startswith("openai:") and len(name) > len("openai:")):
        raise UsageError(f"no author is called {name!r}", "known: offline, openai:MODEL")
