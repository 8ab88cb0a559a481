"""One question's use of a sandbox: steps and seconds counted, everything written down."""

from __future__ import annotations

import time

from ragkit.systems.agent.sandbox import Output, Sandbox
from ragkit.systems.agent.transcript import Step, Transcript


class Spent(Exception):
    """No step or no second is left; `what` is "steps" or "seconds"."""

    def __init__(self, what: str):
        super().__init__(what)
        self.what = what


class Session:
    """Runs command lines until the budget is spent.

    Parameters
    ----------
    sandbox : Sandbox
    transcript : Transcript
        Gets every step.
    steps : int
    seconds : float
        From now on.
    """

    def __init__(self, sandbox: Sandbox, transcript: Transcript, *, steps: int, seconds: float):
        self.sandbox, self.transcript, self.steps = sandbox, transcript, steps
        self.began = time.monotonic()
        self.deadline = self.began + seconds

    @property
    def steps_left(self) -> int:
        return self.steps - len(self.transcript.steps)

    @property
    def seconds_left(self) -> float:
        return self.deadline - time.monotonic()

    def run(self, command: str) -> Output:
        """Run one command line.

        Raises
        ------
        Spent
            If the steps or the seconds are used up.
        """
        if self.steps_left <= 0 or self.seconds_left <= 0:
            self.transcript.stopped = "steps" if self.steps_left <= 0 else "seconds"
            raise Spent(self.transcript.stopped)
        began = time.monotonic()
        output = self.sandbox.run(command, seconds=self.seconds_left)
        self.transcript.steps.append(Step.of(command, output, time.monotonic() - began))
        return output
