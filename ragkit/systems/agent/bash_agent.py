"""The bash agent: a retriever that explores the corpus with commands."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from ragkit.errors import DataError, UsageError
from ragkit.systems.agent.offline import Offline
from ragkit.systems.agent.sandbox import Sandbox
from ragkit.systems.agent.session import Session
from ragkit.systems.agent.transcript import Transcript
from ragkit.systems.agent.tree import corpus_tree

if TYPE_CHECKING:
    import pandas as pd

    from ragkit.llm import Client

OFFLINE_OUTPUT = 1 << 20  # bytes: no model has to read them


class BashAgent:
    """Find documents with `ls`, `find`, `grep`, `head` and the like, a variable number of them.

    Parameters
    ----------
    policy : str
        "offline" is a fixed strategy of keyword searches, without a model; "openai:MODEL" lets a
        model write the command lines.
    steps : int, at least 1
        Command lines for one question.
    seconds : float
        Time for one question, the model's answers included. A request that is under way when it
        ends is waited for, and one more lets the model submit.
    k : int, at least 1
        Documents for one question at most.
    folder : path, optional
        Where the corpus is written; default: a temporary folder that goes with the agent.
    client : ragkit.llm.Client, optional
        For a model, where ledger, budget or parameters are to be set; its `concurrency` is how
        many questions run at once. Default: `Client(policy, ledger=None)`.
    system : str, optional
        The name in the `system` column; "bash-" and the policy by default.

    Attributes
    ----------
    tree_ : Tree
        The corpus on disk.
    transcripts_ : dict of question_id -> Transcript
        Of the last search.
    missing_ : dict of question_id -> str
        Why there is no result for a question. Such a question has no row in `runs`; one that
        ended with no document chosen has no row either and is not listed here.

    Raises
    ------
    UsageError
        If the policy is unknown, an option is out of range, or the client is of another model.

    Source: EnterpriseRAG-Bench section 6.1, where the agent has ten minutes a question.
    """

    def __init__(
        self,
        policy: str = "offline",
        *,
        steps: int = 40,
        seconds: float = 600.0,
        k: int = 10,
        folder: str | Path | None = None,
        client: Client | None = None,
        system: str | None = None,
    ):
        if policy != "offline" and not str(policy).startswith("openai:"):
            raise UsageError(
                f"the bash agent has no policy {policy!r}", "known: offline, openai:MODEL"
            )
        for name, value in (("steps", steps), ("k", k)):
            _whole(name, value)
        real = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not real or not 0 < seconds < float("inf"):
            raise UsageError(f"seconds should be a number above 0, found {seconds!r}")
        if client is not None and client.model != policy:
            raise UsageError(f"the client is of {client.model!r}, the policy is {policy!r}")
        if client is None and policy != "offline":
            from ragkit.llm import Client

            client = Client(policy, ledger=None)
        self.policy, self.steps, self.seconds, self.k = policy, steps, seconds, k
        self.folder, self.client = folder, client
        self.system = system or f"bash-{policy}"

    def fit(self, documents: pd.DataFrame) -> BashAgent:
        """Write the corpus as a tree of files (see `corpus_tree`) and open it."""
        folder = self.folder
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="ragkit-agent-")
            folder = self._temporary.name
        self.tree_ = corpus_tree(documents, folder)
        more = {"output_bytes": OFFLINE_OUTPUT} if self.policy == "offline" else {}
        self._sandbox = Sandbox(self.tree_.root, seconds=min(self.seconds, 120.0), **more)
        return self

    def search(self, questions: pd.DataFrame | Iterable[str], k: int | None = None) -> pd.DataFrame:
        """Return the documents chosen for each question.

        Parameters
        ----------
        questions : DataFrame with question_id and text, or iterable of str
            Strings get their position, from "0", as question_id.
        k : int, optional
            Instead of the agent's own `k`.

        Returns
        -------
        DataFrame
            `runs`: system, question_id, rank (from 1), doc_id, score. The rank is the order of
            confidence; a model's n-th document has the score 1 / n.

        Raises
        ------
        UsageError
            If k is below 1, or `fit` was not called.
        DataError
            If a question is no string, or ids are missing or repeated.
        ModelError
            If the model's endpoint cannot be used at all.
        """
        import pandas as pd

        if not hasattr(self, "tree_"):
            raise UsageError("the bash agent has no corpus yet", "call fit(documents) first")
        k = self.k if k is None else _whole("k", k)
        asked = _questions(questions)
        workers = 1 if self.client is None else self.client.concurrency
        with ThreadPoolExecutor(workers) as pool:
            done = list(pool.map(lambda pair: self._one(*pair, k), asked))
        self.transcripts_ = {transcript.question_id: transcript for transcript in done}
        self.missing_ = {
            transcript.question_id: transcript.reason
            for transcript in done
            if transcript.ranking is None
        }
        rows = [
            (self.system, transcript.question_id, rank, doc_id, score)
            for transcript in done
            for rank, (doc_id, score) in enumerate(transcript.ranking or (), start=1)
        ]
        return pd.DataFrame(rows, columns=["system", "question_id", "rank", "doc_id", "score"])

    def _one(self, question_id: str, question: str, k: int) -> Transcript:
        transcript = Transcript(question_id, question, self.policy)
        session = Session(self._sandbox, transcript, steps=self.steps, seconds=self.seconds)
        if self.client is None:
            found = Offline(session).search(question)
            known = ((self.tree_.doc_id(path), score) for path, score in found)
            transcript.ranking = [pair for pair in known if pair[0] is not None][:k]
            transcript.stopped = transcript.stopped or "submitted"
        else:
            from ragkit.systems.agent.model import ask

            transcript.ranking = ask(self.client, session, question, k, self.tree_.doc_id)
        transcript.seconds = time.monotonic() - session.began
        return transcript


def _whole(name: str, value) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name} should be a whole number from 1, found {value!r}")
    return value


def _questions(questions) -> list[tuple[str, str]]:
    if isinstance(questions, str):
        raise DataError("expected several questions, found one string", "put it into a list")
    if hasattr(questions, "columns"):
        for column in ("question_id", "text"):
            if column not in questions.columns:
                raise DataError(f"the questions lack the column {column!r}")
        pairs = list(zip(questions["question_id"], questions["text"], strict=True))
    else:
        pairs = [(str(number), text) for number, text in enumerate(questions)]
    seen = set()
    for number, (question_id, text) in enumerate(pairs, start=1):
        for name, value in (("question_id", question_id), ("text", text)):
            if not isinstance(value, str) or not value.strip():
                raise DataError(
                    f"question {number} should have a string as {name}, found {value!r}"
                )
        if question_id in seen:
            raise DataError(f"question {number} repeats the question_id {question_id!r}")
        seen.add(question_id)
    return pairs
