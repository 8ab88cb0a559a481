"""Readers: questions and ranked documents in, an `answers` frame out.

>>> from ragkit import datasets
>>> from ragkit.systems.readers import reader
>>> from ragkit.systems.retrieval import BM25
>>> wixqa = datasets.load("wixqa").part(documents=40, questions=2)
>>> runs = BM25().fit(wixqa.documents).search(wixqa.questions, k=5)
>>> two = reader("extractive", sentences=2)
>>> two.answer(wixqa.questions, wixqa.documents, runs, top=1).columns.tolist()
['system', 'question_id', 'answer', 'doc_ids', 'abstained', 'failure']

`reader("openai:MODEL")` asks a language model; both abstain with the same sentence.
"""

from __future__ import annotations

import inspect
from functools import partial

from ragkit import checks
from ragkit.errors import UsageError, did_you_mean
from ragkit.llm import Client
from ragkit.systems.readers.base import ABSTENTION, Document, Reader, Reading
from ragkit.systems.readers.endpoint import OpenAI
from ragkit.systems.readers.extractive import Extractive

__all__ = ["ABSTENTION", "Document", "Extractive", "OpenAI", "Reader", "Reading", "reader"]


def reader(name: str, **options) -> Reader:
    """Return a reader by its name.

    The name is "extractive" or "openai:MODEL"; the options are those of `Extractive` or `OpenAI`.
    `UsageError` if the name or an option is unknown.
    """
    scheme, _, model = str(name).partition(":")
    if name == "extractive":
        kinds, make = [Extractive], Extractive
    elif scheme == "openai" and model:
        kinds, make = [OpenAI, Client], partial(OpenAI, name)
    else:
        hint = did_you_mean(name, ["extractive", "openai:MODEL"])
        hint = "a model is named openai:NAME, as in openai:gpt-4o" if scheme == "openai" else hint
        raise UsageError(f"no reader is called {name!r}", hint)
    known = {option for kind in kinds for option in inspect.signature(kind).parameters}
    checks.options(options, known - {"model", "options"}, name)
    return make(**options)
