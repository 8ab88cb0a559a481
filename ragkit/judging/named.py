"""Judges by name."""

from __future__ import annotations

from pathlib import Path

from ragkit.errors import UsageError, did_you_mean
from ragkit.judging.judges import Judge, ModelJudge
from ragkit.judging.offline import OfflineJudge, read_coefficients


def load_judge(name: str, **options) -> Judge:
    """Return the judge of a name; another name raises `UsageError`.

    The names are "openai:MODEL", whose options are those of `ragkit.llm.Client` (such as
    `ledger`), "offline", and "offline:FILE" with coefficients of your own.
    """
    scheme, _, rest = str(name).partition(":")
    if scheme == "openai":
        from ragkit.llm import Client

        return ModelJudge(Client(name, **{"ledger": None, **options}))
    if scheme == "offline":
        return OfflineJudge(read_coefficients(Path(rest)) if rest else None, **options)
    raise UsageError(f"no judge is called {name!r}", did_you_mean(str(name), ("openai", "offline")))
