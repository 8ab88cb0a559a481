"""The client: many requests in, as many results out, in order, each asked at most once."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import threading
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ragkit.errors import ModelError, UsageError
from ragkit.llm.endpoint import Endpoint, Fault
from ragkit.llm.exchange import (
    KIND,
    Failure,
    Invalid,
    Request,
    Value,
    add,
    body,
    canonical,
    check_parameters,
    digest,
    read,
    usage,
)
from ragkit.llm.ledger import LEASE, Exchange, Ledger, owner_name
from ragkit.llm.prices import dollars, load_prices

GIVE_UP_AFTER = 20  # requests in a row without any answer: the endpoint is down
_BACKOFF_CAP = 30.0


class ReplayMiss(ModelError):
    """A request that the replayed ledger does not hold."""


@dataclass(frozen=True)
class Estimate:
    """What a batch would take; `str(estimate)` says it in a line or two.

    `completion_tokens` is the most that the token limits of the requests allow, None if one has
    no limit. `cost_low` is the price of the questions alone, `cost_high` with answers of full
    length; each is None where it is not known. One repair for an invalid answer would come on
    top.
    """

    model: str
    requests: int
    cached: int
    calls: int
    prompt_tokens: int
    completion_tokens: int | None
    encoding: str
    exact: bool
    cost_low: float | None
    cost_high: float | None
    prices: str

    def __str__(self) -> str:
        how = "counted" if self.exact else "estimated"
        out = "an unlimited number"
        if self.completion_tokens is not None:
            out = f"at most {self.completion_tokens:,}"
        if self.calls == 0:
            price = "nothing to pay"
        elif self.cost_low is None:
            price = f"price unknown: no {self.model.removeprefix('openai:')!r} in {self.prices}"
        elif self.cost_high is None:
            price = f"at least {dollars(self.cost_low)} (set max_tokens to bound it), {self.prices}"
        else:
            price = f"{dollars(self.cost_low)} to {dollars(self.cost_high)}, {self.prices}"
        return (
            f"{self.model}: {self.requests:,} requests, {self.cached:,} in the ledger, "
            f"{self.calls:,} calls\n{self.prompt_tokens:,} tokens in ({how} with {self.encoding}), "
            f"{out} out; {price}"
        )


@dataclass(frozen=True)
class _Job:
    key: str
    text: str  # the canonical request
    plain: dict[str, Any]
    request: Request
    repair_of: str | None


class Client:
    """A model behind an endpoint that speaks OpenAI's chat protocol, and a ledger before it.

    The endpoint and its key come from the environment: `OPENAI_BASE_URL` (default: OpenAI's own)
    and `OPENAI_API_KEY`. They are read when a call has to be made; what the ledger holds needs
    neither.

    Parameters
    ----------
    model : str
        `openai:NAME`, where NAME is what the endpoint calls the model.
    ledger : path, Ledger or None
        Where exchanges are kept. None keeps them in memory, for this client alone.
    parameters : mapping
        Options for every request, such as `temperature` and `max_tokens`.
    concurrency : int
        The most requests under way at once.
    timeout : float
        Seconds for one attempt, from connecting to the last byte.
    max_attempts : int
        Attempts at one request, not counting those that the server asked to make later.
    max_wait : float
        Seconds that one request will wait in all because the server asks for it.
    backoff : float
        Seconds before the second attempt; doubled each time up to 30, and shortened by a jitter
        of up to a half that depends on request and attempt alone.
    budget : float, optional
        US dollars that this client may spend. What would exceed it is not asked. The price of
        an answer is reserved by its token limit, so only requests without one can overshoot.
    prices : path, optional
        A price file; see `load_prices`.
    replay : bool, optional
        Answer from the ledger alone. Default: whether `RAGKIT_REPLAY` is set to 1.
    environment : str
        The first part of the environment variables' names, for a second endpoint: with "JUDGE",
        `JUDGE_BASE_URL` and `JUDGE_API_KEY`.

    Raises
    ------
    UsageError
        If the model's name, a parameter or an option is wrong, or a budget is set for a model
        without a price.
    DataError
        If the ledger is not one.

    Examples
    --------
    >>> client = Client("openai:gpt-4o-mini", ledger="build/llm.sqlite")    # doctest: +SKIP
    >>> client.complete(["What is BM25?"])                                   # doctest: +SKIP
    """

    def __init__(
        self,
        model: str,
        *,
        ledger: str | Path | Ledger | None,
        parameters: Mapping[str, Any] | None = None,
        concurrency: int = 8,
        timeout: float = 120.0,
        max_attempts: int = 6,
        max_wait: float = 300.0,
        backoff: float = 0.5,
        budget: float | None = None,
        prices: str | Path | None = None,
        replay: bool | None = None,
        environment: str = "OPENAI",
    ):
        scheme, _, name = str(model).partition(":")
        if scheme != "openai" or not name:
            raise UsageError(
                f"no model is called {model!r}", "a model is named openai:NAME, as in openai:gpt-4o"
            )
        self.model = model
        self.parameters = dict(parameters or {})
        check_parameters(self.parameters)
        for option, value, least in (
            ("concurrency", concurrency, 1),
            ("max_attempts", max_attempts, 1),
        ):
            if type(value) is not int or value < least:
                raise UsageError(f"{option} must be an integer of at least {least}, not {value!r}")
        for option, value in (("timeout", timeout), ("max_wait", max_wait), ("backoff", backoff)):
            if not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise UsageError(f"{option} must be a number of seconds, not {value!r}")
        if budget is not None and not 0 <= budget < float("inf"):
            raise UsageError(f"budget must be an amount of US dollars, not {budget!r}")
        self.concurrency = concurrency
        self.timeout = timeout
        self.max_attempts = max_attempts
        self.max_wait = max_wait
        self.backoff = backoff
        self.budget = budget
        self.prices = load_prices(prices)
        if budget is not None and self.prices.cost(model, 0, 0) is None:
            raise UsageError(
                f"a budget needs a price, and {self.prices.path} has none for {name!r}",
                "add the model to a copy of the file and name it in RAGKIT_PRICES",
            )
        if replay is None:
            replay = os.environ.get("RAGKIT_REPLAY") == "1"
        self.replay = replay
        if not isinstance(ledger, Ledger):
            ledger = Ledger(ledger, readonly=replay and ledger is not None)
        if ledger.readonly and not replay:
            raise UsageError("a ledger open for reading alone can only be replayed")
        self.ledger = ledger
        self.endpoint = Endpoint(environment, timeout)
        self.spent = 0.0
        self._reserved: dict[str, float] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots: asyncio.Semaphore | None = None
        self._pid = os.getpid()
        self._starting = threading.Lock()
        self._warned = False

    def __repr__(self) -> str:
        return f"Client({self.model!r}, ledger={self.ledger!r})"

    def __reduce__(self):
        options = {
            "ledger": self.ledger,
            "parameters": self.parameters,
            "concurrency": self.concurrency,
            "timeout": self.timeout,
            "max_attempts": self.max_attempts,
            "max_wait": self.max_wait,
            "backoff": self.backoff,
            "budget": self.budget,
            "prices": self.prices.path,
            "replay": self.replay,
            "environment": self.endpoint.environment,
        }
        return _rebuild, (self.model, options)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and the ledger. The client can be used again."""
        if self._loop is not None and self._pid == os.getpid():
            self._finalizer.detach()
            asyncio.run_coroutine_threadsafe(self.endpoint.close(), self._loop).result(10)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = self._slots = None
        self.ledger.close()

    def complete(
        self, requests: Iterable[Request | str], *, progress: bool | None = None
    ) -> list[Value | Failure]:
        """Return the result of every request, in order.

        What the ledger holds is not asked again; equal requests are asked once. After Ctrl-C no
        further request starts, the answers under way are awaited and recorded, and
        `KeyboardInterrupt` is raised; a second Ctrl-C drops them.

        Parameters
        ----------
        requests : iterable of Request or str
        progress : bool, optional
            Show a progress bar. Default: on a terminal and in a notebook.

        Returns
        -------
        list of Value or Failure

        Raises
        ------
        UsageError
            If a request is none, or contains the key.
        ReplayMiss
            On replay, if the ledger lacks a request.
        ModelError
            If the endpoint cannot be used at all: no key, a refused key, an unknown model. What
            was answered until then is in the ledger.
        """
        jobs = self._jobs(requests)
        distinct = {job.key: job for job in jobs}
        outcomes = self._recall(distinct)
        missing = [job for key, job in distinct.items() if key not in outcomes]
        if missing and self.replay:
            raise self._miss(missing)
        if missing:
            with _bar(progress, self.model, len(distinct), len(outcomes)) as bar:
                outcomes |= self._run(missing, bar)
        return [
            _labelled(outcomes[job.key], job.request.purpose, job.request.prompt) for job in jobs
        ]

    def dry_run(self, requests: Iterable[Request | str]) -> Estimate:
        """Return calls, tokens and price of a batch, without a call and without a key."""
        from ragkit.llm.tokens import encoding_name

        jobs = self._jobs(requests)
        distinct = {job.key: job for job in jobs}
        cached = self._recall(distinct)
        missing = [job for key, job in distinct.items() if key not in cached]
        encoding, exact = encoding_name(self.model)
        pairs = [self._tokens(job) for job in missing]
        tokens_in = sum(pair[0] for pair in pairs)
        tokens_out = add(*(pair[1] for pair in pairs))
        return Estimate(
            model=self.model,
            requests=len(jobs),
            cached=len(jobs) - sum(job.key not in cached for job in jobs),
            calls=len(missing),
            prompt_tokens=tokens_in,
            completion_tokens=tokens_out,
            encoding=encoding,
            exact=exact,
            cost_low=self.prices.cost(self.model, tokens_in, 0),
            cost_high=self.prices.cost(self.model, tokens_in, tokens_out),
            prices=f"prices of {self.prices.date} in {self.prices.path}",
        )

    # From requests to jobs, from exchanges to results

    def _jobs(self, requests: Iterable[Request | str]) -> list[_Job]:
        if isinstance(requests, str | Request):
            raise UsageError("complete takes a list of requests, not a single one")
        jobs = []
        for number, request in enumerate(requests, 1):
            if isinstance(request, str):
                request = Request(request)
            if not isinstance(request, Request):
                raise UsageError(f"request {number} is a {type(request).__name__}, not a Request")
            job = self._job(request)
            if self.endpoint.holds_secret(job.text):
                raise UsageError(f"request {number} contains the key of the endpoint")
            jobs.append(job)
        return jobs

    def _job(self, request: Request, repair_of: str | None = None) -> _Job:
        if self.parameters:
            request = replace(request, parameters={**self.parameters, **request.parameters})
        plain = {
            "kind": KIND,
            "model": self.model,
            "messages": request.messages,
            "parameters": request.parameters,
            "schema": request.schema,
            "tools": request.tools,
            "repeat": request.repeat,
        }
        text = canonical(plain)
        return _Job(digest(text), text, plain, request, repair_of)

    def _recall(self, jobs: Mapping[str, _Job]) -> dict[str, Value | Failure]:
        held = self.ledger.get_many(jobs)
        outcomes, elsewhere = {}, set()
        for key, first in held.items():
            if not (first.final or self.replay):
                continue
            outcome = self._weigh(jobs[key], first, cached=True)
            if isinstance(outcome, _Job):
                second = self.ledger.get(outcome.key)
                if second is None or not (second.final or self.replay):
                    continue
                outcome = self._weigh(jobs[key], first, second, cached=True)
            outcomes[key] = outcome
            elsewhere.add(first.endpoint)
        if elsewhere and not self.replay and not self._warned and self.endpoint.configured:
            elsewhere.discard(self.endpoint.url)
            if elsewhere:
                self._warned = True
                warnings.warn(
                    f"the ledger's answers of {self.model} are from {', '.join(sorted(elsewhere))}, "
                    f"not from {self.endpoint.url}: if the two serve other weights under one "
                    "name, rename one or use two ledgers",
                    stacklevel=3,
                )
        return outcomes

    def _weigh(
        self, job: _Job, first: Exchange, second: Exchange | None = None, *, cached: bool
    ) -> Value | Failure | _Job:
        """Return the result that one or two exchanges make, or the repair that is still to ask."""
        labels = {
            "model": self.model,
            "purpose": job.request.purpose,
            "prompt": job.request.prompt,
            "key": job.key,
            "prompt_tokens": first.prompt_tokens,
            "completion_tokens": first.completion_tokens,
            "cached": cached,
        }
        if first.state == "failed":
            return Failure(kind=first.kind, reason=first.reason, text=None, **labels)
        try:
            return Value(**read(job.request, first.response), repaired=False, **labels)
        except Invalid as error:
            if not error.again:
                return Failure(error.kind, error.reason, error.message.get("content"), **labels)
            repair = self._job(job.request.repair(error.message, error.reason), job.key)
            if second is None:
                return repair
            said = error.message.get("content")
        if second.state == "failed":
            reason = f"{second.reason} (asking again because {first.reason})"
            return Failure(kind=second.kind, reason=reason, text=said, **labels)
        labels["prompt_tokens"] = add(first.prompt_tokens, second.prompt_tokens)
        labels["completion_tokens"] = add(first.completion_tokens, second.completion_tokens)
        try:
            return Value(**read(repair.request, second.response), repaired=True, **labels)
        except Invalid as error:
            return Failure(error.kind, error.reason, error.message.get("content"), **labels)

    def _unasked(self, job: _Job, kind: str, reason: str) -> Failure:
        return Failure(
            kind=kind,
            reason=reason,
            text=None,
            model=self.model,
            purpose=job.request.purpose,
            prompt=job.request.prompt,
            key=job.key,
            prompt_tokens=None,
            completion_tokens=None,
        )

    def _miss(self, missing: list[_Job]) -> ReplayMiss:
        job = missing[0]
        last = job.plain["messages"][-1]["content"]
        said = last if isinstance(last, str) else canonical(last)
        said = " ".join(said.split())
        asked = f'{self.model}: "{said[:200]}{"..." if len(said) > 200 else ""}"'
        if job.request.prompt:
            asked += f", prompt {job.request.prompt}"
        asked += f", parameters {canonical(job.plain['parameters'])}, repeat {job.request.repeat}"
        count = f"{len(missing):,} requests are" if len(missing) > 1 else "a request is"
        return ReplayMiss(
            f"{count} not in the ledger {self.ledger.path}; the first asks {asked}; key {job.key}",
            self._nearest(job),
        )

    def _nearest(self, job: _Job) -> str:
        alike = self.ledger.alike(canonical(job.plain["messages"]))
        if not alike:
            return "nothing with these messages was recorded; run once without replay"
        if any(other.key == job.key for other in alike):
            return "its answer was invalid and the repair was not recorded; run without replay"
        import json

        recorded = json.loads(alike[0].request)
        other = [name for name in job.plain if recorded.get(name) != job.plain[name]]
        told = ", ".join(f"{name} was {canonical(recorded.get(name))[:80]}" for name in other)
        return f"the same messages were recorded, but {told}"

    def _tokens(self, job: _Job) -> tuple[int, int | None]:
        from ragkit.llm.tokens import count_request

        limits = job.plain["parameters"]
        most = limits.get("max_completion_tokens", limits.get("max_tokens"))
        return count_request(job.plain, self.model), most

    # Asking

    def _run(self, jobs: list[_Job], bar) -> dict[str, Value | Failure]:
        loop = self._start()
        batch = _Batch(self, jobs, bar)
        try:
            future = asyncio.run_coroutine_threadsafe(batch.run(), loop)
            return future.result()
        except KeyboardInterrupt:
            loop.call_soon_threadsafe(batch.stop, "stopped", "interrupted before it was asked")
            print(
                "\nragkit: recording the answers under way (Ctrl-C again to drop them)",
                file=sys.stderr,
            )
            try:
                batch.done.wait()
            except KeyboardInterrupt:
                future.cancel()
                batch.done.wait(10)
            raise

    def _start(self) -> asyncio.AbstractEventLoop:
        """Return the event loop, running in a thread of its own: a notebook's is taken."""
        with self._starting:
            if self._loop is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self.endpoint = Endpoint(self.endpoint.environment, self.timeout)
                self._loop = asyncio.new_event_loop()
                self._slots = asyncio.Semaphore(self.concurrency)
                threading.Thread(
                    target=_serve, args=(self._loop,), name="ragkit-llm", daemon=True
                ).start()
                self._finalizer = weakref.finalize(
                    self, self._loop.call_soon_threadsafe, self._loop.stop
                )
            return self._loop


class _Batch:
    """The requests of one call of `complete` that the ledger could not answer."""

    def __init__(self, client: Client, jobs: list[_Job], bar):
        self.client = client
        self.jobs = jobs
        self.bar = bar
        self.owner = owner_name()
        self.done = threading.Event()
        self.outcomes: dict[str, Value | Failure] = {}
        self.fatal: ModelError | None = None
        self.stopped: tuple[str, str] | None = None
        self._stopping = asyncio.Event()
        self._unanswered = 0
        self._failed = 0

    def stop(self, kind: str, reason: str) -> None:
        """Start nothing more; what is under way goes on."""
        self.stopped = self.stopped or (kind, reason)
        self._stopping.set()

    async def run(self) -> dict[str, Value | Failure]:
        client = self.client
        queue = iter(self.jobs)

        async def work():
            for job in queue:
                self._finish(job, await self._settle(job))

        tasks = [asyncio.create_task(self._renew())]
        try:
            client.endpoint.connect()
            # More workers than slots: who waits to try again does not hold up the others.
            workers = [
                asyncio.create_task(work())
                for _ in range(min(4 * client.concurrency, len(self.jobs)))
            ]
            tasks += workers
            await asyncio.gather(*workers)
            if self.fatal is not None:
                raise self.fatal
            return self.outcomes
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            try:
                client.ledger.release(self.owner)
            finally:
                self.done.set()

    def _finish(self, job: _Job, outcome: Value | Failure) -> None:
        self.outcomes[job.key] = outcome
        if not outcome.ok:
            self._failed += 1
            self.bar.set_postfix(failed=self._failed, refresh=False)
        self.bar.update()

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(LEASE / 4)
            self.client.ledger.renew(self.owner)

    async def _settle(self, job: _Job) -> Value | Failure:
        first = await self._ask(job)
        if isinstance(first, Failure):
            return first
        outcome = self.client._weigh(job, first, cached=False)
        if not isinstance(outcome, _Job):
            return outcome
        second = await self._ask(outcome)
        if isinstance(second, Failure):
            return self.client._unasked(job, second.kind, second.reason)
        return self.client._weigh(job, first, second, cached=False)

    async def _ask(self, job: _Job) -> Exchange | Failure:
        """Return the exchange for `job`: another process's, or one made here and recorded."""
        client = self.client
        pause = 0.05
        while True:
            if self.stopped:
                return client._unasked(job, *self.stopped)
            claim = client.ledger.claim(job.key, self.owner)
            if isinstance(claim, Exchange):
                return claim
            if claim:
                break
            await self._sleep(pause)
            pause = min(2 * pause, 0.5)

        sent = body(client.model.partition(":")[2], job.plain)
        counted, waited, faults, started = 0, 0.0, Counter(), time.monotonic()
        while True:
            async with client._slots:
                reserved = await self._reserve(job)
                if self.stopped:
                    return client._unasked(job, *self.stopped)
                text = None
                try:
                    text = await client.endpoint.attempt(sent)
                except Fault as caught:
                    fault = caught
                    faults[fault.kind] += 1
                    counted += fault.wait_s is None
                except ModelError as error:
                    self.fatal = self.fatal or error
                    self.stop("stopped", error.message)
                    return client._unasked(job, *self.stopped)
                finally:
                    client._reserved.pop(job.key, None)
                if text is not None:
                    return self._record(job, text, faults, waited, started, reserved)
                wait = self._wait(job, fault, counted, faults.total())
                if not fault.again or counted >= client.max_attempts:
                    return self._give_up(job, fault, faults, waited, started)
                if fault.wait_s is not None:
                    if waited + wait > client.max_wait:
                        fault.reason += f"; it asks for more than max_wait, {client.max_wait:g} s"
                        return self._give_up(job, fault, faults, waited, started)
                    waited += wait
                    await self._sleep(wait)  # in the slot: the server wants fewer requests
            if fault.wait_s is None:
                await self._sleep(wait)

    def _wait(self, job: _Job, fault: Fault, counted: int, attempt: int) -> float:
        if fault.wait_s:
            return fault.wait_s
        doubled = self.client.backoff * 2.0 ** min(max(counted, attempt) - 1, 16)
        draw = hashlib.sha256(f"{job.key}/{attempt}".encode()).digest()
        return min(doubled, _BACKOFF_CAP) * (1.0 - int.from_bytes(draw[:4], "big") / 2.0**33)

    async def _sleep(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return

    async def _reserve(self, job: _Job) -> float:
        """Set aside what `job` may cost, or stop the batch if that is more than is left."""
        client = self.client
        if client.budget is None or self.stopped:
            return 0.0
        tokens_in, tokens_out = client._tokens(job)
        cost = client.prices.cost(client.model, tokens_in, tokens_out or 0)
        while (set_aside := sum(client._reserved.values())) and (
            client.spent + set_aside + cost > client.budget
        ):
            await self._sleep(0.02)  # what is under way may cost less than was set aside
            if self.stopped:
                return 0.0
        if client.spent + cost > client.budget:
            self.stop(
                "budget",
                f"not asked: the budget of {dollars(client.budget)} would be exceeded "
                f"({dollars(client.spent)} spent)",
            )
            return 0.0
        client._reserved[job.key] = cost
        return cost

    def _record(self, job, text, faults, waited, started, reserved) -> Exchange:
        client = self.client
        state, kind, reason = "value", None, None
        try:
            read(job.request, text)
        except Invalid as error:
            state, kind, reason = "invalid", error.kind, error.reason
        tokens = usage(text)
        cost = client.prices.cost(client.model, *tokens)
        client.spent += reserved if cost is None else cost
        self._unanswered = 0
        return self._put(
            job,
            faults,
            waited,
            started,
            state=state,
            kind=kind,
            reason=reason,
            response=text,
            attempts=faults.total() + 1,
            prompt_tokens=tokens[0],
            completion_tokens=tokens[1],
        )

    def _give_up(self, job, fault, faults, waited, started) -> Exchange:
        if fault.kind != "rejected":
            self._unanswered += 1
        if fault.stop:
            self.stop("stopped", f"not asked: {fault.reason}")
        elif self._unanswered >= max(GIVE_UP_AFTER, self.client.concurrency):
            self.stop(
                "stopped",
                f"not asked: {self._unanswered} requests in a row had no answer; "
                f"the last: {fault.reason}",
            )
        return self._put(
            job,
            faults,
            waited,
            started,
            state="failed",
            kind=fault.kind,
            reason=fault.reason,
            attempts=faults.total(),
        )

    def _put(self, job, faults, waited, started, **fields) -> Exchange:
        exchange = Exchange(
            key=job.key,
            model=self.client.model,
            request=job.text,
            purpose=job.request.purpose,
            prompt=job.request.prompt,
            repair_of=job.repair_of,
            endpoint=self.client.endpoint.url,
            faults=canonical(dict(faults)),
            waited_s=round(waited, 3),
            seconds=round(time.monotonic() - started, 3),
            asked_at=datetime.now(UTC).isoformat(timespec="seconds"),
            **fields,
        )
        return self.client.ledger.put(exchange, self.owner)


def _rebuild(model: str, options: dict[str, Any]) -> Client:
    return Client(model, **options)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    loop.close()


def _labelled(result: Value | Failure, purpose: str, prompt: str) -> Value | Failure:
    # Equal requests share one result, though each may have a label of its own.
    if (result.purpose, result.prompt) == (purpose, prompt):
        return result
    return replace(result, purpose=purpose, prompt=prompt)


def _bar(progress: bool | None, model: str, total: int, initial: int):
    from tqdm.auto import tqdm

    disable = None if progress is None else not progress
    return tqdm(total=total, initial=initial, desc=model, unit="request", disable=disable)
