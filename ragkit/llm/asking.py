"""One batch of requests: claimed, asked with patience, recorded, within a budget."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter, deque
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import tenacity
from tqdm.auto import tqdm

from ragkit.errors import DataError, RagkitError
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
        self.unwritten: list[Exchange] = []
        self.stopped: tuple[str, str] | None = None  # kind and reason of what is not asked
        self.fatal: RagkitError | None = None
        self._unanswered = self._answers = self._failures = 0
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

    def stop(self, kind: str, reason: str) -> None:
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
        if self.unwritten:
            self.fatal = self._rescue()
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
                self.stop("stopped", error.message)
                continue
            if outcome is None:  # another process is asking: look again later
                self.waiting.append(job)
                await self._sleep(0.05)
                continue
            self.outcomes[job.key] = outcome
            if not outcome.ok:
                self._failures += 1
                self.bar.set_postfix(failed=self._failures, refresh=False)
            self.bar.update()

    async def _settle(self, job: Job) -> Value | Failure | None:
        """Return the result of a request and its repair, None if another process is asking."""
        outcome, exchanges = job, []
        while not isinstance(outcome, Value | Failure):
            if not self.stopped:
                claim = self._claim(outcome)
                if claim is False:
                    return None
                exchange = await self._ask(outcome) if claim is True else claim
                if exchange is not None:
                    exchanges.append(exchange)
                    outcome = self.client.outcome(job, *exchanges, cached=False)
                    continue
            kind, reason = self.stopped
            return Failure(kind=kind, reason=reason, **self.client.labels(job))
        return outcome

    def _claim(self, job: Job) -> Exchange | bool | None:
        """Claim a request as `Ledger.claim` does; stop the batch and return None on a full disk."""
        try:
            return self.client.ledger.claim(job.key, self.owner)
        except DiskFull:
            self._stop_full()

    def _stop_full(self) -> None:
        self.stop("stopped", f"not asked: the disk of {self.client.ledger.path} is full")

    async def _ask(self, job: Job) -> Exchange | None:
        """Ask until there is an answer or patience ends; None if the batch stopped before that."""
        client, endpoint = self.client, self.client.endpoint
        sent = body(client.model.partition(":")[2], job.plain)
        faults, started, answers = Counter(), time.monotonic(), self._answers
        counted, cost, last = 0, 0.0, None

        async def attempt() -> str:
            nonlocal counted, cost, last
            try:
                cost = await self._reserve(job)
                if self.stopped:
                    raise _Stopped
                return await endpoint.attempt(self._connection, sent)
            except Fault as fault:
                last = fault
                faults[fault.kind] += 1
                counted += fault.wait_s is None
                raise
            finally:
                client.reserved.pop(job.key, None)

        async def pause(seconds: float) -> None:
            if last.kind == "rate_limit":  # in the slot: the endpoint wants fewer requests
                return await self._sleep(seconds)
            self._slots.release()
            try:
                await self._sleep(seconds)
            finally:
                await self._slots.acquire()

        def enough(state) -> bool:
            return counted >= client.max_attempts or self._too_long(state)

        backoff = tenacity.wait_exponential_jitter(
            multiplier=client.backoff, max=BACKOFF_CAP, jitter=client.backoff
        )
        retrying = tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception(lambda error: getattr(error, "again", False)),
            wait=lambda state: max(state.outcome.exception().wait_s or 0.0, backoff(state)),
            stop=enough,
            before_sleep=self._say,
            sleep=pause,
            reraise=True,
        )
        text = None
        async with self._slots:
            with suppress(Fault, _Stopped):
                text = await retrying(attempt)
        if text is None and last is None:
            return None
        if text is None:
            found = self._failed(last, self._answers == answers)
        else:
            found = self._answered(job, text, cost)
        return self._put(
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
                waited_s=round(retrying.statistics.get("idle_for", 0.0), 3),
                seconds=round(time.monotonic() - started, 3),
                asked_at=datetime.now(UTC).isoformat(timespec="seconds"),
                **found,
            )
        )

    def _too_long(self, state) -> bool:
        fault, most = state.outcome.exception(), self.client.max_wait
        if state.idle_for + state.upcoming_sleep <= most:
            return False
        fault.reason += f"; waiting for it would take more than max_wait, {most:g} s"
        return True

    def _say(self, state) -> None:
        """Say once what a long wait is for."""
        fault = state.outcome.exception()
        if fault.kind == "rate_limit" and state.upcoming_sleep >= SAY_AFTER and not self._said:
            self._said = True
            tqdm.write(
                f"ragkit: {self.client.model}: waiting until the endpoint accepts more requests "
                f"({fault.reason}), for at most {self.client.max_wait:g} s",
                file=sys.stderr,
            )

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
            self.stop(
                "budget",
                f"not asked: the budget of {dollars(client.budget)} would be exceeded "
                f"({dollars(client.spent)} spent)",
            )
        client.reserved[job.key] = cost
        return cost

    def _answered(self, job: Job, text: str, reserved: float) -> dict[str, Any]:
        """Return the fields of the exchange that an answer decides, and count its cost."""
        tokens = usage(text)
        cost = self.client.prices.cost(self.client.model, *tokens)
        self.client.spent += reserved if cost is None else cost
        self._unanswered, self._answers = 0, self._answers + 1
        return answer_fields(job.request, text)

    def _failed(self, fault: Fault, alone: bool) -> dict[str, Any]:
        """Return the fields of the exchange that a fault decides; stop the batch if it must."""
        self._unanswered += fault.kind != "rejected"
        if fault.stop or (fault.kind == "rate_limit" and alone):
            self.stop("stopped", f"not asked: {fault.reason}")
        elif self._unanswered >= max(GIVE_UP_AFTER, self.client.concurrency):
            self.stop(
                "stopped",
                f"not asked: {self._unanswered} requests in a row had no answer; "
                f"the last: {fault.reason}",
            )
        return {"state": "failed", "kind": fault.kind, "reason": fault.reason}

    def _put(self, exchange: Exchange) -> Exchange:
        """Record an exchange; on a full disk, ask nothing more and keep it for `_rescue`."""
        ledger = self.client.ledger
        try:
            exchange = ledger.put(exchange, self.owner)
        except DiskFull:
            self.unwritten.append(exchange)
        if ledger.full:
            self._stop_full()
        return exchange

    def _rescue(self) -> DataError:
        ledger = self.client.ledger
        path = ledger.rescue(self.unwritten)
        return DataError(
            f"{ledger.path}: the disk is full; {len(self.unwritten)} answers are in {path}",
            f"free some space, then: ragkit llm import {path} --ledger {ledger.path}",
        )


class _Stopped(Exception):
    """The batch stopped before an attempt."""
