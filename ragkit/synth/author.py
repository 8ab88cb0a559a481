"""How a model is asked that writes, and how authors are called."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragkit.errors import UsageError

if TYPE_CHECKING:
    from ragkit.llm import Client


@dataclass(frozen=True)
class AuthorOptions:
    """How a model is asked; see `ragkit.llm.Client`.

    What asks it raises `ModelError` if the endpoint did not answer, the budget is spent, or an
    answer that all others need is not usable; and `ragkit.synth.stages.BatchWritten` if a batch is
    wanted and the ledger lacks answers. What the ledger holds is not asked again: a run continues.
    """

    ledger: str | Path | None = None  # where answers are kept
    budget: float | None = None  # the most that a run may cost, in USD
    concurrency: int = 8  # requests at once
    replay: bool | None = None  # whether to answer from the ledger alone
    batch: str | Path | None = None  # a file to which requests are written, instead of being asked

    def client(self, name: str, parameters: dict) -> Client:
        """Return the client of a model."""
        from ragkit.llm import Client

        options = {key: value for key, value in asdict(self).items() if key != "batch"}
        return Client(name, **options, parameters=parameters)


def check_author(name: str | None) -> None:
    """Raise `UsageError` unless `name` is `openai:MODEL`."""
    if not (name or "").startswith("openai:") or name == "openai:":
        raise UsageError(
            f"no author is called {name!r}" if name else "no author is named: a model has to write",
            "add --author openai:MODEL; with --batch FILE its requests are written to a file, and "
            "what the --ledger holds is not asked again",
        )
