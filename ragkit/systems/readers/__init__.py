"""Readers: questions and ranked documents in, an `answers` frame out.

>>> from ragkit.systems.readers import reader
>>> answers = reader("extractive", sentences=2).answer(questions, documents, runs, top=5)

`reader("openai:MODEL")` asks a language model; both abstain with the same sentence.
"""

from __future__ import annotations

import inspect

from ragkit import checks
from ragkit.errors import UsageError, did_you_mean
from ragkit.llm import Client
from ragkit.systems.readers.base import ABSTENTION, Document, Reader, Reading
from ragkit.systems.readers.endpoint import OpenAI
from ragkit.systems.readers.extractive import Extractive

__all__ = ["ABSTENTION", "Document", "Extractive", "OpenAI", "Reader", "Reading", "reader"]


def reader(name: str, **options) -> Reader:
    """Return a reader by its name.

    Parameters
    ----------
    name : str
        "extractive", or "openai:MODEL".
    options
        Those of `Extractive` or `OpenAI`.

    Raises
    ------
    UsageError
        If the name or an option is unknown.
    """

    def options_of(kind: type) -> set[str]:
        return set(inspect.signature(kind).parameters)

    scheme, _, model = str(name).partition(":")
    if scheme == "openai" and model:
        known = (options_of(OpenAI) | options_of(Client)) - {"model", "options"}
        checks.options(options, known, name)
        return OpenAI(name, **options)
    if name == "extractive":
        checks.options(options, options_of(Extractive), name)
        return Extractive(**options)
    hint = "a model is named openai:NAME, as in openai:gpt-4o" if scheme == "openai" else None
    raise UsageError(
        f"no reader is called {name!r}", hint or did_you_mean(name, ["extractive", "openai:MODEL"])
    )
