"""One batch of requests: claimed, asked with patience, recorded, within a budget."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections import Counter, deque
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tqdm.auto import tqdm

from ragkit.errors import RagkitError
from ragkit.llm.endpoint import Fault
from ragkit.llm.exchange import Failure, Value, answer_fields, body, canonical, usage
from ragkit.llm.ledger import LEASE, DiskFull, Exchange, owner_name
from ragkit.llm.prices import dollars

if TYPE_CHECKING:
    from ragkit.llm.client import Client, Job

GIVE_UP_AFTER = 20  # requests in a row without an answer: the endpoint is down
SAY_AFTER = 1.0  # seconds of a wait that is worth a line
BACKOFF_CAP = 30.0


class Batch:
    """The requests of one call of `Client.complete` that the ledger could not answer."""

    def __init__(self, client: Client, jobs: list[Job], bar):
        self.client, self.bar = client, bar
        self.waiting = deque(jobs)
        self.owner = owner_name()
        self.outcomes: dict[str, Value | Failure] = {}
        self.stopped: tuple[str, str] | None = None  # kind and reason of what is not asked
        self.fatal: RagkitError | None = None
        self._unanswered = self._answers = 0
        self._said = False
        self._stopping = asyncio.Event()
        self._slots = asyncio.Semaphore(client.concurrency)
        self._loop = self._task = None

    def main(self) -> dict[str, Value | Failure]:
        """Ask everything, in an event loop of this thread, and return the results by key."""
        return asyncio.run(self._run())

    def interrupt(self) -> None:
        """Start no further request; called from another thread."""
        self.stopped = self.stopped or ("stopped", "interrupted before it was asked")
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)

    def drop(self) -> None:
        """Give up the requests under way; called from another thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)

    def _stop(self, kind: str, reason: str) -> None:
        """Start no further request; those under way go on."""
        self.stopped = self.stopped or (kind, reason)
        self._stopping.set()

    async def _run(self) -> dict[str, Value | Failure]:
        client, ledger = self.client, self.client.ledger
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        renewing = asyncio.create_task(self._renew())
        try:
            async with client.endpoint.connect() as self._connection:
                ledger.reserve()
                async with asyncio.TaskGroup() as group:
                    # More workers than slots: who waits to try again does not hold up the others.
                    for _ in range(min(4 * client.concurrency, len(self.waiting))):
                        group.create_task(self._work())
        finally:
            renewing.cancel()
            with suppress(DiskFull):
                ledger.release(self.owner)
        if self.fatal is not None:
            raise self.fatal
        return self.outcomes

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(LEASE / 4)
            with suppress(DiskFull):
                self.client.ledger.renew(self.owner)

    async def _work(self) -> None:
        while self.waiting:
            job = self.waiting.popleft()
            try:
                outcome = await self._settle(job)
            except RagkitError as error:
                self.fatal = self.fatal or error
                self._stop("stopped", error.message)
                continue
            if outcome is None:  # another process is asking: look again later
                self.waiting.append(job)
                await self._sleep(0.05)
                continue
            self.outcomes[job.key] = outcome
            self.bar.update()

    async def _settle(self, job: Job) -> Value | Failure | None:
        """Return the result of a request and its repair, None if another process is asking."""
        ledger, outcome, exchanges = self.client.ledger, job, []
        while not isinstance(outcome, Value | Failure):
            exchange = None
            if not self.stopped:
                try:
                    exchange = ledger.claim(outcome.key, self.owner)
                except DiskFull as error:
                    self._stop("stopped", f"not asked: {error.message}")
            if exchange is False:
                return None
            if exchange is True:
                exchange = await self._ask(outcome)
            if exchange is None:
                kind, reason = self.stopped
                return Failure(kind=kind, reason=reason, **self.client.labels(job))
            exchanges.append(exchange)
            outcome = self.client.outcome(job, *exchanges, cached=False)
        return outcome

    async def _ask(self, job: Job) -> Exchange | None:
        """Ask until there is an answer or patience ends; None if the batch stopped before that."""
        client, endpoint = self.client, self.client.endpoint
        sent = body(client.model.partition(":")[2], job.plain)
        faults, started, answers = Counter(), time.monotonic(), self._answers
        counted, waited, last, text = 0, 0.0, None, None
        async with self._slots:
            while text is None:
                try:
                    cost = await self._reserve(job)
                    if self.stopped:
                        break
                    text = await endpoint.attempt(self._connection, sent)
                    break
                except Fault as fault:
                    last = fault
                finally:
                    client.reserved.pop(job.key, None)
                faults[last.kind] += 1
                counted += last.wait_s is None
                backoff = min(client.backoff * 2 ** (faults.total() - 1), BACKOFF_CAP)
                wait = max(last.wait_s or 0.0, backoff + random.uniform(0, client.backoff))
                if not last.again or counted >= client.max_attempts:
                    break
                if waited + wait > client.max_wait:
                    most = f"max_wait, {client.max_wait:g} s"
                    last.reason += f"; waiting for it would take more than {most}"
                    break
                waited += wait
                await self._pause(last, wait)
        if text is None and last is None:
            return None
        if text is None:
            found = self._failed(last, self._answers == answers)
        else:
            found = self._answered(job, text, cost)
        exchange = client.ledger.put(
            Exchange(
                key=job.key,
                model=client.model,
                request=job.text,
                purpose=job.request.purpose,
                prompt=job.request.prompt,
                repair_of=job.repair_of,
                endpoint=endpoint.url,
                attempts=faults.total() + (text is not None),
                faults=canonical(dict(faults)),
                waited_s=round(waited, 3),
                seconds=round(time.monotonic() - started, 3),
                asked_at=datetime.now(UTC).isoformat(timespec="seconds"),
                **found,
            ),
            self.owner,
        )
        if client.ledger.full:
            self._stop("stopped", f"not asked: {client.ledger.path}: the disk is full")
        return exchange

    async def _pause(self, fault: Fault, seconds: float) -> None:
        if fault.kind != "rate_limit":
            self._slots.release()
            try:
                await self._sleep(seconds)
            finally:
                await self._slots.acquire()
            return
        if seconds >= SAY_AFTER and not self._said:
            self._said = True
            tqdm.write(
                f"ragkit: {self.client.model}: waiting until the endpoint accepts more requests "
                f"({fault.reason}), for at most {self.client.max_wait:g} s",
                file=sys.stderr,
            )
        await self._sleep(seconds)  # in the slot: the endpoint wants fewer requests

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _reserve(self, job: Job) -> float:
        """Set aside what a request may cost, or stop the batch if it exceeds what is left."""
        client = self.client
        if client.budget is None:
            return 0.0
        tokens_in, tokens_out = client.tokens(job)
        cost = client.prices.cost(client.model, tokens_in, tokens_out or 0)
        while (reserved := sum(client.reserved.values())) and not self.stopped:
            if client.spent + reserved + cost <= client.budget:
                break
            await self._sleep(0.02)  # the requests under way may cost less than was set aside
        if client.spent + cost > client.budget:
            self._stop(
                "budget",
                f"not asked: the budget of {dollars(client.budget)} would be exceeded "
                f"({dollars(client.spent)} spent)",
            )
        client.reserved[job.key] = cost
        return cost

    def _answered(self, job: Job, text: str, reserved: float) -> dict[str, Any]:
        """Return the fields of the exchange that an answer decides, and count its cost."""
        cost = self.client.prices.cost(self.client.model, *usage(text))
        self.client.spent += reserved if cost is None else cost
        self._unanswered, self._answers = 0, self._answers + 1
        return answer_fields(job.request, text)

    def _failed(self, fault: Fault, alone: bool) -> dict[str, Any]:
        """Return the fields of the exchange that a fault decides; stop the batch if it must."""
        self._unanswered += fault.kind != "rejected"
        if fault.stop or (fault.kind == "rate_limit" and alone):
            self._stop("stopped", f"not asked: {fault.reason}")
        elif self._unanswered >= max(GIVE_UP_AFTER, self.client.concurrency):
            count = f"{self._unanswered} requests in a row had no answer"
            self._stop("stopped", f"not asked: {count}; the last: {fault.reason}")
        return {"state": "failed", "kind": fault.kind, "reason": fault.reason}
