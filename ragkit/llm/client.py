"""The client: many requests in, as many results out, in order, each asked at most once."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
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
    read,
)
from ragkit.llm.ledger import Exchange, Ledger
from ragkit.llm.prices import Estimate, count_request, encoding_name, load_prices


class ReplayMiss(ModelError):
    """A request that the replayed ledger does not hold."""


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
        Seconds that one request waits in all. If the server limits the rate and no other request
        is answered meanwhile, the batch stops.
    backoff : float
        Seconds before the second attempt, doubled each time up to 30, with a random addition.
    budget : float, optional
        US dollars that this client may spend (the attribute `spent`). A request that could exceed
        it is not asked; only answers to requests without a token limit can overshoot.
    prices : path, optional
        A price file; see `load_prices`.
    replay : bool, optional
        Answer from the ledger alone. Default: whether `RAGKIT_REPLAY` is set to 1.
    environment : str
        The first part of the names of the environment variables, for a second endpoint: with
        "JUDGE", `JUDGE_BASE_URL` and `JUDGE_API_KEY`.

    Raises
    ------
    UsageError
        If the model's name, a parameter or an option is wrong, or a budget is set for a model
        without a price.
    DataError
        If the file is not a ledger, or cannot be written.
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
        plain = request.plain(self.model)
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
        return outcomes, missing

    def outcome(self, job: Job, *exchanges: Exchange, cached: bool) -> Value | Failure | Job:
        """Return the result of an exchange and its repair, or the repair that is to be asked."""
        answered = [row for row in exchanges if row.state != "failed"] or exchanges
        labels = self.labels(job) | {"cached": cached}
        for name in ("prompt_tokens", "completion_tokens"):
            labels[name] = add(*(getattr(row, name) for row in answered))
        asked, invalid, said = job, None, None
        for row in exchanges:
            if row.state == "failed":
                why = f" (asking again because {invalid.reason})" if invalid else ""
                return Failure(kind=row.kind, reason=row.reason + why, text=said, **labels)
            try:
                found = read(asked.request, row.response)
                return Value(**found, repaired=asked is not job, **labels)
            except Invalid as error:
                invalid, said = error, error.message.get("content")
            if asked is not job or not invalid.again:
                return Failure(kind=invalid.kind, reason=invalid.reason, text=said, **labels)
            asked = self._job(job.request.repair(invalid.message, invalid.reason), job.key)
        return asked

    def labels(self, job: Job) -> dict[str, Any]:
        """Return the fields of a result that its request decides."""
        labels = {"purpose": job.request.purpose, "prompt": job.request.prompt}
        return labels | {"model": self.model, "key": job.key}

    def tokens(self, job: Job) -> tuple[int, int | None]:
        """Return a request's tokens and its token limit."""
        limits = job.plain["parameters"]
        most = limits.get("max_completion_tokens", limits.get("max_tokens"))
        return count_request(job.plain, self.model), most

    def _miss(self, missing: list[Job]) -> ReplayMiss:
        said = missing[0].plain["messages"][-1]["content"]
        said = " ".join((said if isinstance(said, str) else canonical(said)).split())
        count = f"{len(missing):,} requests are" if len(missing) > 1 else "a request is"
        return ReplayMiss(
            f"{count} not in the ledger {self.ledger.path}; the first asks {self.model} {said!r:.200}",
            "the recorded run had other messages, parameters or prompts; run once without replay",
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
