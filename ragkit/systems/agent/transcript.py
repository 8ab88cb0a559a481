"""What an agent did for one question, for a reader to look at."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ragkit.systems.agent.sandbox import Output

SHOWN = 1_500  # characters of an output


@dataclass(frozen=True)
class Step:
    """One command line and its output, cut to 1,500 characters."""

    command: str
    output: str
    status: int
    seconds: float
    truncated: bool = False

    @classmethod
    def of(cls, command: str, output: Output, seconds: float) -> Step:
        """Return the step of a command line that took so many seconds."""
        text = output.text
        if len(text) > SHOWN:
            text = f"{text[:SHOWN]}\n[{len(output.text) - SHOWN:,} more characters]\n"
        return cls(command, text, output.status, seconds, output.truncated)


@dataclass
class Transcript:
    """The search for one question.

    Parameters
    ----------
    question_id, question, policy : str
    steps : list of Step
        Command lines; of the policy "offline" its searches.
    stopped : str
        Why it ended: "submitted"; "steps" or "seconds" if the model submitted when these were
        used up; or "failed", and then `reason` says how.
    ranking : list of (doc_id, score), or None
        None if the search failed: that is a missing result, where an empty list is a result.
    unknown_paths : int
        Submitted paths that are no document's.
    seconds : float
    prompt_tokens, completion_tokens : int or None
        What the model's endpoint reported; None without a model, or where it did not.
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
        """Note that the search has no result, and why."""
        self.stopped, self.reason = "failed", reason

    def __str__(self) -> str:
        lines = [f"{self.question_id}: {self.question}", f"policy {self.policy}", ""]
        for step in self.steps:
            lines += [f"$ {step.command}", step.output.rstrip("\n")]
        found = "nothing submitted" if self.ranking is None else f"{len(self.ranking)} documents"
        why = f"{self.stopped} ({self.reason})" if self.reason else self.stopped
        lines += ["", f"{why}: {found}, {len(self.steps)} commands, {self.seconds:.1f} s"]
        if self.unknown_paths:
            lines.append(f"{self.unknown_paths} submitted paths are no document's")
        lines += [
            f"{rank:3d}. {doc_id}  {score:.3f}"
            for rank, (doc_id, score) in enumerate(self.ranking or (), start=1)
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that JSON can hold."""
        return asdict(self)
