"""The client: many requests in, as many results out, in order, each asked at most once."""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from ragkit import checks
from ragkit.errors import ModelError, UsageError
from ragkit.llm.asking import Batch
from ragkit.llm.endpoint import Endpoint
from ragkit.llm.exchange import (
    ENDPOINT,
    PARAMETERS,
    Failure,
    Invalid,
    Request,
    Value,
    add,
    canonical,
    digest,
    plain_request,
    read,
)
from ragkit.llm.ledger import Exchange, Ledger
from ragkit.llm.prices import dollars, load_prices


class ReplayMiss(ModelError):
    """A request that the replayed ledger does not hold."""


@dataclass(frozen=True)
class Estimate:
    """Calls, tokens and price of a batch; `str(estimate)` says them in two lines.

    `completion_tokens` is the sum of the requests' token limits, None if one has none. `cost_low`
    is the price of the prompts alone, `cost_high` with answers of full length; each is None where
    it is unknown. The repair of an invalid answer is not included.
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
        out = "no limit on output tokens"
        if self.completion_tokens is not None:
            out = f"at most {self.completion_tokens:,} out"
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
            f"{out}; {price}"
        )


class Job(NamedTuple):
    """A request with its ledger key, canonical JSON, and the key of the request it repairs."""

    key: str
    text: str
    plain: dict[str, Any]
    request: Request
    repair_of: str | None


class Client:
    """A model behind an endpoint that speaks OpenAI's chat protocol, and a ledger of its answers.

    The environment names the endpoint and its key: `OPENAI_BASE_URL` (default: OpenAI's own) and
    `OPENAI_API_KEY`. They are read when a call is made; answers from the ledger need neither.

    Parameters
    ----------
    model : str
        `openai:NAME`, where NAME is the endpoint's name of the model.
    ledger : path, Ledger or None
        Where exchanges are recorded; None keeps them in memory, for this client alone.
    parameters : mapping
        Options for every request, such as `temperature` and `max_tokens`.
    concurrency : int
        The largest number of requests under way in one call of `complete`.
    timeout : float
        Seconds for one attempt, from connecting to the last byte.
    max_attempts : int
        Attempts at one request, not counting those after which the server asked for a wait.
    max_wait : float
        Seconds that one request waits in all when the server limits the rate. If no other request
        is answered meanwhile, the batch stops.
    backoff : float
        Seconds before the second attempt, doubled each time up to 30, with a random addition.
    budget : float, optional
        US dollars that this client may spend. A request that could exceed it is not asked; only
        answers to requests without a token limit can overshoot.
    prices : path, optional
        A price file; see `load_prices`.
    replay : bool, optional
        Answer from the ledger alone. Default: whether `RAGKIT_REPLAY` is set to 1.
    environment : str
        The first part of the names of the environment variables, for a second endpoint: with
        "JUDGE", `JUDGE_BASE_URL` and `JUDGE_API_KEY`.

    Attributes
    ----------
    spent : float
        US dollars that this client has paid.

    Raises
    ------
    UsageError
        If the model's name, a parameter or an option is wrong, or a budget is set for a model
        without a price.
    DataError
        If the file is not a ledger, or cannot be written.

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
        self.model, self.parameters = model, dict(parameters or {})
        checks.options(self.parameters, PARAMETERS, ENDPOINT)
        self.concurrency = checks.whole(concurrency, "concurrency")
        self.max_attempts = checks.whole(max_attempts, "max_attempts")
        self.timeout = checks.number(timeout, "timeout", least=0)
        self.max_wait = checks.number(max_wait, "max_wait", least=0)
        self.backoff = checks.number(backoff, "backoff", least=0)
        self.budget = None if budget is None else checks.number(budget, "budget", least=0)
        self.prices = load_prices(prices)
        if budget is not None and self.prices.cost(model, 0, 0) is None:
            raise UsageError(
                f"a budget needs a price, and {self.prices.path} has none for {name!r}",
                "add the model to a copy of the file and name it in RAGKIT_PRICES",
            )
        self.replay = os.environ.get("RAGKIT_REPLAY") == "1" if replay is None else replay
        if not isinstance(ledger, Ledger):
            ledger = Ledger(ledger, readonly=self.replay and ledger is not None)
        if ledger.readonly and not self.replay:
            raise UsageError("a ledger that is open for reading only can only be replayed")
        self.ledger = ledger
        self.endpoint = Endpoint(environment, self.timeout)
        self.spent = 0.0
        self.reserved: dict[str, float] = {}  # what the requests under way may cost, by key
        self._warned = False

    def __repr__(self) -> str:
        return f"Client({self.model!r}, ledger={self.ledger!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc) -> None:
        self.close()

    def close(self) -> None:
        """Close the ledger. The client can be used again."""
        self.ledger.close()

    def complete(
        self, requests: Iterable[Request | str], *, progress: bool | None = None
    ) -> list[Value | Failure]:
        """Return the result of every request, in order.

        Requests in the ledger are not asked again; equal requests are asked once. After Ctrl-C no
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
            If a request is not one, or contains the key.
        ReplayMiss
            On replay, if the ledger lacks a request.
        ModelError
            If the endpoint cannot be used at all: no key, a refused key, an unknown model. Earlier
            answers are in the ledger.
        DataError
            If the ledger cannot be written.
        """
        from tqdm.auto import tqdm

        jobs = self._jobs(requests)
        distinct = {job.key: job for job in jobs}
        outcomes, missing = self._recall(distinct)
        if missing and self.replay:
            raise self._miss(missing)
        if missing:
            disable = None if progress is None else not progress
            options = {"total": len(distinct), "initial": len(outcomes), "unit": "request"}
            with tqdm(desc=self.model, disable=disable, **options) as bar:
                outcomes |= self._ask([distinct[job.repair_of or job.key] for job in missing], bar)
        # Equal requests share one result, though each may have a label of its own.
        labels = [{"purpose": job.request.purpose, "prompt": job.request.prompt} for job in jobs]
        return [
            replace(outcomes[job.key], **label) for job, label in zip(jobs, labels, strict=True)
        ]

    def dry_run(self, requests: Iterable[Request | str]) -> Estimate:
        """Return calls, tokens and price of a batch, without a call and without a key."""
        from ragkit.llm.tokens import encoding_name

        jobs = self._jobs(requests)
        _, missing = self._recall({job.key: job for job in jobs})
        calls = {job.repair_of or job.key for job in missing}
        encoding, exact = encoding_name(self.model)
        pairs = [self.tokens(job) for job in missing]
        tokens_in = sum(pair[0] for pair in pairs)
        tokens_out = add(*(pair[1] for pair in pairs))
        return Estimate(
            model=self.model,
            requests=len(jobs),
            cached=sum(job.key not in calls for job in jobs),
            calls=len(missing),
            prompt_tokens=tokens_in,
            completion_tokens=tokens_out,
            encoding=encoding,
            exact=exact,
            cost_low=self.prices.cost(self.model, tokens_in, 0),
            cost_high=self.prices.cost(self.model, tokens_in, tokens_out),
            prices=f"prices of {self.prices.date} in {self.prices.path}",
        )

    def missing(self, requests: Iterable[Request | str]) -> list[Job]:
        """Return the requests, or repairs of their invalid answers, that the ledger lacks."""
        return self._recall({job.key: job for job in self._jobs(requests)})[1]

    # From requests to jobs, from exchanges to results

    def _jobs(self, requests: Iterable[Request | str]) -> list[Job]:
        if isinstance(requests, str | Request):
            raise UsageError("requests must be a list of requests, not a single one")
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

    def _job(self, request: Request, repair_of: str | None = None) -> Job:
        if self.parameters:
            request = replace(request, parameters={**self.parameters, **request.parameters})
        plain = plain_request(self.model, request)
        text = canonical(plain)
        return Job(digest(text), text, plain, request, repair_of)

    def _recall(self, jobs: Mapping[str, Job]) -> tuple[dict[str, Value | Failure], list[Job]]:
        """Return the results that the ledger holds, and the jobs (or their repairs) it lacks."""
        held = self.ledger.get_many(jobs)
        outcomes, missing = {}, []
        for key, job in jobs.items():
            outcome, exchanges = job, []
            while isinstance(outcome, Job):
                found = held.get(key) if outcome is job else self.ledger.get(outcome.key)
                if found is None or not (found.final or self.replay):
                    missing.append(outcome)
                    break
                exchanges.append(found)
                outcome = self.outcome(job, *exchanges, cached=True)
            else:
                outcomes[key] = outcome
        others = {held[key].endpoint for key in outcomes} - {""}
        if others and not self.replay and not self._warned and self.endpoint.configured:
            others.discard(self.endpoint.url)
            if others:
                self._warned = True
                warnings.warn(
                    f"the ledger's answers of {self.model} are from {', '.join(sorted(others))}, "
                    f"not from {self.endpoint.url}: if the two serve other weights under one "
                    "name, rename one or use two ledgers",
                    stacklevel=3,
                )
        return outcomes, missing

    def outcome(
        self, job: Job, first: Exchange, second: Exchange | None = None, *, cached: bool
    ) -> Value | Failure | Job:
        """Return the result of an exchange and its repair, or the repair that is to be asked."""
        labels = self.labels(job) | {
            "prompt_tokens": first.prompt_tokens,
            "completion_tokens": first.completion_tokens,
            "cached": cached,
        }
        if first.state == "failed":
            return Failure(kind=first.kind, reason=first.reason, **labels)
        try:
            return Value(**read(job.request, first.response), repaired=False, **labels)
        except Invalid as error:
            invalid, said = error, error.message.get("content")
        if not invalid.again:
            return Failure(kind=invalid.kind, reason=invalid.reason, text=said, **labels)
        repair = self._job(job.request.repair(invalid.message, invalid.reason), job.key)
        if second is None:
            return repair
        if second.state == "failed":
            reason = f"{second.reason} (asking again because {invalid.reason})"
            return Failure(kind=second.kind, reason=reason, text=said, **labels)
        for name in ("prompt_tokens", "completion_tokens"):
            labels[name] = add(labels[name], getattr(second, name))
        try:
            return Value(**read(repair.request, second.response), repaired=True, **labels)
        except Invalid as error:
            said = error.message.get("content")
            return Failure(kind=error.kind, reason=error.reason, text=said, **labels)

    def labels(self, job: Job) -> dict[str, Any]:
        """Return the fields of a result that its request decides."""
        labels = {"purpose": job.request.purpose, "prompt": job.request.prompt}
        return labels | {"model": self.model, "key": job.key}

    def tokens(self, job: Job) -> tuple[int, int | None]:
        """Return a request's tokens and its token limit."""
        from ragkit.llm.tokens import count_request

        limits = job.plain["parameters"]
        most = limits.get("max_completion_tokens", limits.get("max_tokens"))
        return count_request(job.plain, self.model), most

    def _miss(self, missing: list[Job]) -> ReplayMiss:
        job = missing[0]
        said = job.plain["messages"][-1]["content"]
        said = " ".join((said if isinstance(said, str) else canonical(said)).split())
        asked = f'{self.model}: "{said[:200]}{"..." if len(said) > 200 else ""}"'
        if job.request.prompt:
            asked += f", prompt {job.request.prompt}"
        asked += f", parameters {canonical(job.plain['parameters'])}, repeat {job.request.repeat}"
        count = f"{len(missing):,} requests are" if len(missing) > 1 else "a request is"
        hint = "nothing with these messages was recorded; run once without replay"
        similar = self.ledger.similar(canonical(job.plain["messages"]))
        if job.repair_of:
            hint = "its answer was invalid and the repair was not recorded; run without replay"
        elif similar:
            recorded = json.loads(similar[0].request)
            told = [
                f"{name} was {canonical(recorded.get(name))[:80]}"
                for name in job.plain
                if recorded.get(name) != job.plain[name]
            ]
            hint = f"the same messages were recorded, but {', '.join(told)}"
        return ReplayMiss(
            f"{count} not in the ledger {self.ledger.path}; the first asks {asked}; key {job.key}",
            hint,
        )

    def _ask(self, jobs: list[Job], bar) -> dict[str, Value | Failure]:
        batch = Batch(self, jobs, bar)
        with ThreadPoolExecutor(1, "ragkit-llm") as pool:  # a notebook has an event loop already
            future = pool.submit(batch.main)
            try:
                return future.result()
            except KeyboardInterrupt:
                batch.interrupt()
                print(
                    "\nragkit: recording the answers under way (Ctrl-C again to drop them)",
                    file=sys.stderr,
                )
                try:
                    wait([future])
                except KeyboardInterrupt:
                    batch.drop()
                raise
