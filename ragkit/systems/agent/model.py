"""The model policy: a language model calls the tools, and submits what it chose."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ragkit.llm import Client, Request, Value, load_prompt
from ragkit.systems.agent.commands import COMMANDS
from ragkit.systems.agent.session import Session, Spent

TOOLS = (
    {
        "name": "bash",
        "description": "Run one command line over the documents and see its output.",
        "parameters": {
            "type": "object",
            "properties": {
                "command": {
                    "type": "string",
                    "description": "For example: grep -ril 'reserve' finance | head -n 20",
                }
            },
            "required": ["command"],
            "additionalProperties": False,
        },
    },
    {
        "name": "submit",
        "description": "Hand in the chosen documents. This ends the search.",
        "parameters": {
            "type": "object",
            "properties": {
                "documents": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Paths of files, the most trusted first; empty if none fits.",
                }
            },
            "required": ["documents"],
            "additionalProperties": False,
        },
    },
)
NUDGES = 2  # answers without a tool call that are pointed out before the search counts as failed
_OVER = "The {} over: no command will be run any more. Call `submit` now."
_NO_TOOL = "Call `bash` to go on or `submit` to finish; an answer in words is not used."


def ask(
    client: Client, session: Session, question: str, k: int, doc_id: Callable[[str], str | None]
) -> list[tuple[str, float]] | None:
    """Let the model search; return (doc_id, 1 / rank), or None if it came to no submission.

    Why is in the session's transcript, also how many of the submitted paths are unknown.
    """
    transcript = session.transcript
    prompt = load_prompt("search", Path(__file__).parent / "templates")
    messages = prompt.messages(
        question=question, k=k, steps=session.steps, commands=", ".join(COMMANDS)
    )
    nudges, last = 0, False
    while True:
        if not last and (session.steps_left <= 0 or session.seconds_left <= 0):
            transcript.stopped = "steps" if session.steps_left <= 0 else "seconds"
            over = "command lines are" if transcript.stopped == "steps" else "time is"
            messages.append({"role": "user", "content": _OVER.format(over)})
            last = True
        request = Request(messages, tools=TOOLS, purpose="agent", prompt=prompt.id)
        result = client.complete([request], progress=False)[0]
        _count(transcript, result)
        if not result.ok:
            return _failed(transcript, f"{result.kind}: {result.reason}")
        messages.append(result.message)
        submitted = _answer(result, session, messages)
        if submitted is not None:
            transcript.stopped = transcript.stopped or "submitted"
            return _ranking(transcript, submitted, k, doc_id)
        if last:
            return _failed(transcript, f"the {transcript.stopped} were used up, nothing submitted")
        if not result.tool_calls:
            nudges += 1
            if nudges > NUDGES:
                return _failed(transcript, "the model calls no tool")
            messages.append({"role": "user", "content": _NO_TOOL})


def _answer(result: Value, session: Session, messages: list) -> list[str] | None:
    """Carry out the tool calls in order, up to a submission; return what was submitted."""
    for call in result.tool_calls:
        if call.name == "submit":
            return call.arguments["documents"]
        try:
            text = session.run(call.arguments["command"]).text or "(no output)\n"
        except Spent:
            text = "not run\n"
        left = f"[{session.steps_left} of {session.steps} command lines left]"
        messages.append({"role": "tool", "tool_call_id": call.id, "content": text + left})
    return None


def _ranking(transcript, submitted: list[str], k: int, doc_id) -> list[tuple[str, float]]:
    found: dict[str, None] = {}
    for path in submitted:
        known = doc_id(path)
        if known is None:
            transcript.unknown_paths += 1
        else:
            found.setdefault(known)
    return [(known, 1.0 / rank) for rank, known in enumerate(list(found)[:k], start=1)]


def _failed(transcript, reason: str) -> None:
    transcript.stopped, transcript.reason = "failed", reason


def _count(transcript, result) -> None:
    for name in ("prompt_tokens", "completion_tokens"):
        new = getattr(result, name)
        if new is not None:
            setattr(transcript, name, (getattr(transcript, name) or 0) + new)
