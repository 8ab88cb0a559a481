"""The bash agent: a retriever that explores the corpus with command lines."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from ragkit import checks, display
from ragkit.errors import UsageError
from ragkit.llm import Client, Request, load_prompt
from ragkit.systems.agent.offline import Offline
from ragkit.systems.agent.sandbox import SANDBOXES, open_sandbox
from ragkit.systems.agent.tree import corpus_tree
from ragkit.systems.retrieval.frames import Retriever

PROMPTS = Path(__file__).parent / "templates"
TOOLS = json.loads((PROMPTS / "tools.json").read_text("utf-8"))
REMINDERS = 2  # answers without a tool call before the search counts as failed
USED_UP = "The {} are used up: no command will be run any more. Call `submit` now."
NO_TOOL = "Call `bash` to go on or `submit` to finish; an answer in words is not used."
SHOWN = 1_500  # characters of an output


@dataclass
class Step:
    """One command line and its output, cut to 1,500 characters."""

    command: str
    output: str
    status: int = 0
    seconds: float = 0.0
    truncated: bool = False

    def __post_init__(self):
        if (more := len(self.output) - SHOWN) > 0:
            self.output = f"{self.output[:SHOWN]}\n[{more:,} more characters]\n"


@dataclass
class Transcript:
    """The search for one question.

    Parameters
    ----------
    question_id, question, policy : str
    steps : list of Step
        Command lines; of the policy "offline" its searches.
    stopped, reason : str
        Why it ended: "submitted"; "steps" or "seconds" if the model submitted when these were
        used up; or "failed", and the reason.
    ranking : list of (doc_id, score), or None
        None if the search failed: that is a missing result, where an empty list is a result.
    unknown_paths : int
        Submitted paths that are no document's.
    seconds : float
    prompt_tokens, completion_tokens : int or None
        As the model's endpoint reported them.
    """

    question_id: str
    question: str
    policy: str
    steps: list[Step] = field(default_factory=list)
    stopped: str = ""
    reason: str = ""
    ranking: list[tuple[str, float]] | None = None
    unknown_paths: int = 0
    seconds: float = 0.0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    def fail(self, reason: str) -> None:
        self.stopped, self.reason = "failed", reason

    @property
    def outcome(self) -> str:
        """How the search ended, what it found and what it took, in words."""
        found = "nothing submitted" if self.ranking is None else f"{len(self.ranking)} documents"
        why = f"{self.stopped} ({self.reason})" if self.reason else self.stopped
        return f"{why}: {found}, {len(self.steps)} commands, {self.seconds:.1f} s"

    def __repr__(self) -> str:
        return f"<Transcript {self.question_id}: {self.outcome}>"

    def _repr_html_(self) -> str:
        facts = {"question": self.question, "policy": self.policy, "outcome": self.outcome}
        facts["submitted paths that are no document's"] = self.unknown_paths or None
        if self.prompt_tokens is not None:
            facts["tokens"] = f"{self.prompt_tokens:,} in, {self.completion_tokens or 0:,} out"
        rows = [{"document": doc_id, "score": score} for doc_id, score in self.ranking or ()]
        shown = display.table(rows[:10], "The first documents, best first", digits=3)
        after = "Next: `print(transcript)` shows every command with its output."
        return display.card(f"Search for {self.question_id}", facts, shown, after=after)

    def __str__(self) -> str:
        lines = [f"{self.question_id}: {self.question}", f"policy {self.policy}", ""]
        for step in self.steps:
            lines += [f"$ {step.command}", step.output.rstrip("\n")]
        lines += ["", self.outcome]
        if self.unknown_paths:
            lines.append(f"{self.unknown_paths} submitted paths are no document's")
        for rank, (doc_id, score) in enumerate(self.ranking or (), start=1):
            lines.append(f"{rank:3d}. {doc_id}  {score:.3f}")
        return "\n".join(lines)


class BashAgent(Retriever):
    """Find documents with `ls`, `find`, `grep`, `head` and the like, a variable number of them.

    Parameters
    ----------
    policy : str
        "offline" is a fixed strategy of keyword searches, without a model or a shell;
        "openai:MODEL" lets a model write the command lines.
    steps : int, at least 1
        Command lines of a model for one question at most.
    seconds : float
        Time of a model for one question; a request under way is waited for, and one more lets the
        model submit.
    folder : path-like, optional
        Where the corpus is written for a model; default: a temporary folder.
    sandbox : {"auto", "sandlock", "bashkit"}
        What runs a model's command lines; see `ragkit.systems.agent.open_sandbox`.
    client : ragkit.llm.Client, optional
        Its `concurrency` is how many questions run at once. Default: one of `policy` with the
        `ledger` (path) where answers are kept, the `budget` (USD) and the `parameters`.
    system : str, optional
        See `Retriever`; "bash-" and the policy by default.

    Attributes
    ----------
    transcripts_ : dict of question_id -> Transcript
        Of the last search.
    missing_ : dict of question_id -> str
        Why there is no result for a question; an empty result is not listed.

    The rank of a document is the order of confidence; a model's n-th document has the score 1 / n.
    `search` raises `ModelError` if the endpoint of a model cannot be used at all.

    Source: EnterpriseRAG-Bench section 6.1, where the agent has ten minutes a question.

    Examples
    --------
    >>> from ragkit import datasets
    >>> wixqa = datasets.load("wixqa").part(documents=40, questions=5)
    >>> agent = BashAgent("offline").fit(wixqa.documents)
    >>> agent.search(wixqa.questions, k=3)[["question_id", "rank"]].head(2)
              question_id  rank
    0  expertwritten-0011     1
    1  expertwritten-0011     2
    """

    _fitted = "tree_"

    def __init__(
        self,
        policy: str = "offline",
        *,
        steps: int = 40,
        seconds: float = 600.0,
        folder: str | Path | None = None,
        sandbox: str = "auto",
        client: Client | None = None,
        ledger: str | Path | None = None,
        budget: float | None = None,
        parameters: Mapping[str, Any] | None = None,
        system: str | None = None,
    ):
        if policy != "offline" and not str(policy).startswith("openai:"):
            hint = "known: offline, openai:MODEL"
            raise UsageError(f"the bash agent has no policy {policy!r}", hint)
        if client is not None and client.model != policy:
            raise UsageError(f"the client is of {client.model!r}, the policy is {policy!r}")
        self._kept = None
        if client is None and policy != "offline":
            options = {"budget": budget, "parameters": parameters}
            client, self._kept = Client(policy, ledger=None, **options), (ledger, options)
        self.steps = checks.whole(steps, "steps")
        self.seconds = checks.number(seconds, "seconds", least=0.01)
        self.sandbox = checks.choice(sandbox, "sandbox", ["auto", *SANDBOXES])
        self.policy, self.folder, self.client = policy, folder, client
        self.system = system or f"bash-{policy}"

    def fit(self, documents: pd.DataFrame) -> BashAgent:
        """Take a corpus: write it as a tree of files for a model, index its words otherwise.

        See `corpus_tree` and, for a model, `open_sandbox` for errors.
        """
        if self._kept and self._kept[0] is not None:  # an agent that only is declared has no file
            self.client = Client(self.policy, ledger=self._kept[0], **self._kept[1])
            self._kept = None
        if self.folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="ragkit-agent-")
        self.tree_ = tree = corpus_tree(documents, self.folder or self._temporary.name)
        if self.client is None:
            rows = documents.set_index("doc_id")[["title", "text"]].fillna("")
            rows = rows.loc[list(tree.doc_ids.values())].set_axis(list(tree.doc_ids))
            self._offline = Offline(rows["title"].to_dict(), rows["text"].to_dict())
        else:
            self._sandbox = open_sandbox(tree.root, self.sandbox, seconds=min(self.seconds, 120.0))
        return self

    def _search(self, ids, texts, k):
        work = self._search_offline if self.client is None else self._search_with_model
        with ThreadPoolExecutor(1 if self.client is None else self.client.concurrency) as pool:
            found = pool.map(lambda *asked: self._search_one(work, *asked, k), ids, texts)
            done = list(display.progress(found, self.system, len(ids)))
        self.transcripts_ = dict(zip(ids, done, strict=True))
        self.missing_ = {t.question_id: t.reason for t in done if t.ranking is None}
        return [t.ranking or () for t in done]

    def _search_one(self, work, question_id: str, question: str, k: int) -> Transcript:
        transcript, began = Transcript(question_id, question, self.policy), time.monotonic()
        transcript.ranking = work(transcript, k)
        transcript.seconds = time.monotonic() - began
        return transcript

    def _search_offline(self, transcript: Transcript, k: int) -> list[tuple[str, float]]:
        found = self._offline.search(transcript.question)
        for what, count in self._offline.log:
            transcript.steps.append(Step(f"search: {what}", f"{count:,} documents"))
        transcript.stopped = "submitted"
        return [(self.tree_.doc_ids[path], score) for path, score in found[:k]]

    def _search_with_model(self, transcript: Transcript, k: int) -> list[tuple[str, float]] | None:
        """Let the model search; return (doc_id, 1 / rank), or None if it submitted nothing."""
        first = self.first_request(transcript.question, k)
        messages = list(first.messages)
        ends, reminders = time.monotonic() + self.seconds, 0
        while True:
            over = "steps" if len(transcript.steps) >= self.steps else ""
            over = over or ("seconds" if time.monotonic() >= ends else "")
            if over:
                transcript.stopped = over
                messages.append({"role": "user", "content": USED_UP.format(over)})
            request = Request(messages, tools=TOOLS, purpose="agent", prompt=first.prompt)
            result = self.client.complete([request])[0]
            for name in ("prompt_tokens", "completion_tokens"):
                if (tokens := getattr(result, name)) is not None:
                    setattr(transcript, name, (getattr(transcript, name) or 0) + tokens)
            if not result.ok:
                return transcript.fail(f"{result.kind}: {result.reason}")
            messages.append(result.message)
            submitted = self._answer_calls(transcript, result.tool_calls, messages, ends)
            if submitted is not None:
                transcript.stopped = transcript.stopped or "submitted"
                return self._ranking(transcript, submitted, k)
            if over:
                return transcript.fail(f"the {over} were used up, nothing submitted")
            if not result.tool_calls:
                reminders += 1
                if reminders > REMINDERS:
                    return transcript.fail("the model calls no tool")
                messages.append({"role": "user", "content": NO_TOOL})

    def first_request(self, question: str, k: int) -> Request:
        """Return the request that begins the search for a question."""
        prompt = load_prompt("search", PROMPTS)
        values = {"question": question, "k": k, "steps": self.steps}
        return prompt.request(values, tools=TOOLS, purpose="agent")

    def _answer_calls(self, transcript, calls, messages: list, ends: float) -> list[str] | None:
        """Run the tool calls in order, up to a submission; return what was submitted."""
        for call in calls:
            if call.name == "submit":
                return call.arguments["documents"]
            began = time.monotonic()
            text = "not run\n"
            if len(transcript.steps) < self.steps and began < ends:
                line = call.arguments["command"]
                output = self._sandbox.run(line, seconds=ends - began)
                step = (output.text, output.status, time.monotonic() - began, output.truncated)
                transcript.steps.append(Step(line, *step))
                text = output.text or "(no output)\n"
            left = f"[{self.steps - len(transcript.steps)} of {self.steps} command lines left]"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": text + left})
        return None

    def _ranking(self, transcript, submitted: list[str], k: int) -> list[tuple[str, float]]:
        doc_ids = [self.tree_.doc_id(path) for path in submitted]
        transcript.unknown_paths += doc_ids.count(None)
        found = list(dict.fromkeys(doc_id for doc_id in doc_ids if doc_id is not None))
        return [(doc_id, 1.0 / rank) for rank, doc_id in enumerate(found[:k], start=1)]
