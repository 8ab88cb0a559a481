"""The client: many requests in, as many results out, in order, each asked at most once."""

from __future__ import annotations

import os
import queue
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragkit import checks, display
from ragkit.errors import DataError, ModelError, UsageError
from ragkit.files import named, read_jsonl, write_text
from ragkit.llm import exchange, used
from ragkit.llm.endpoint import Endpoint, Fault
from ragkit.llm.exchange import FINAL, Exchange, Failure, Value
from ragkit.llm.ledger import DiskFull, Ledger
from ragkit.llm.prices import Estimate, dollars, load_prices, request_tokens
from ragkit.llm.requests import Request, canonical

GIVE_UP_AFTER = 20  # requests in a row without an answer: the endpoint is down
BACKOFF_CAP = 30.0  # seconds
_counting = threading.Lock()  # of what threads add up


class ReplayMiss(ModelError):
    """A request that the replayed ledger does not hold."""


class Client(AbstractContextManager):
    """A model behind an endpoint that speaks OpenAI's chat protocol, and a ledger of its answers.

    `OPENAI_BASE_URL` (default: OpenAI's own) and `OPENAI_API_KEY` name the endpoint and its key.
    They are read when a call is made; answers from the ledger need neither.

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
        US dollars that this client may spend, at the prices of `load_prices`. A request that could
        exceed it is not asked; only answers to requests without a token limit can overshoot.
    replay : bool, optional
        Answer from the ledger alone. Default: whether `RAGKIT_REPLAY` is set to 1.
    environment : str
        The first part of the names of the environment variables, for a second endpoint: with
        "JUDGE", `JUDGE_BASE_URL` and `JUDGE_API_KEY`.

    Attributes
    ----------
    spent : float
        US dollars.
    open : list of Failure
        Requests without an answer that a later run asks again.
    sources : set of str
        Addresses that the answers came from, those of the ledger included.

    Raises `UsageError` for a wrong name or option, and `DataError` if the ledger cannot be used.

    Examples
    --------
    >>> with Client("openai:gpt-4o-mini", ledger="llm.sqlite") as client:
    ...     results = client.complete(["Is 7 prime?"])
    >>> results[0].text
    'Yes.'
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
        replay: bool | None = None,
        environment: str = "OPENAI",
    ):
        scheme, _, name = str(model).partition(":")
        if scheme != "openai" or not name:
            hint = "a model is named openai:NAME, as in openai:gpt-4o"
            raise UsageError(f"no model is called {model!r}", hint)
        self.model, self.parameters = model, Request("-", parameters=parameters or {}).parameters
        self.concurrency = checks.whole(concurrency, "concurrency")
        self.max_attempts = checks.whole(max_attempts, "max_attempts")
        self.timeout = checks.number(timeout, "timeout", least=0)
        self.max_wait = checks.number(max_wait, "max_wait", least=0)
        self.backoff = checks.number(backoff, "backoff", least=0)
        self.budget = None if budget is None else checks.number(budget, "budget", least=0)
        self.prices = load_prices()
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
        self.open: list[Failure] = []
        self.sources: set[str] = set()
        self.reserved: dict[str, float] = {}  # what the requests under way may cost, by key

    def __repr__(self) -> str:
        return f"Client({self.model!r}, ledger={self.ledger!r})"

    def __exit__(self, *exc) -> None:
        self.close()

    def close(self) -> None:
        """Close the ledger. The client can be used again."""
        self.ledger.close()

    def body(self, row: Exchange) -> dict[str, Any]:
        """Return the JSON body of a request, as the endpoint takes it."""
        return exchange.body(row.plain, in_prompt=self.endpoint.schema_in_prompt)

    def complete(
        self, requests: Iterable[Request | str], *, partly: bool = False
    ) -> list[Value | Failure]:
        """Return the result of every request, in order.

        Requests in the ledger are not asked again; equal requests are asked once. After Ctrl-C no
        further request starts, the answers under way are awaited and recorded, and
        `KeyboardInterrupt` is raised; a second Ctrl-C drops them.

        Parameters
        ----------
        requests : iterable of Request or str
        partly : bool, default=False
            On replay, give a `Failure` of the kind "unasked" for each request that the ledger
            lacks, unless it lacks them all.

        Raises `UsageError` if a request is not one or contains the key, `ReplayMiss` on replay if
        the ledger lacks a request, `ModelError` if the endpoint cannot be used at all (no key, a
        refused key, an unknown model), and `DataError` if the ledger cannot be written.
        """
        asked, outcomes, missing = self._recall(requests)
        if missing and self.replay and partly and outcomes:
            reason = f"not in the ledger {self.ledger.path}, which is replayed"
            outcomes = _without_answer(asked, "unasked", reason, cached=True) | outcomes
        elif missing and self.replay:
            said = missing[0].plain["messages"][-1]["content"]
            said = " ".join((said if isinstance(said, str) else canonical(said)).split())
            count = f"{len(missing):,} requests are" if len(missing) > 1 else "a request is"
            where = f"not in the ledger {self.ledger.path}; the first asks {self.model}"
            raise ReplayMiss(
                f"{count} {where} {said!r:.200}",
                "the recorded run had other messages, parameters or prompts; run once without replay",
            )
        elif missing:
            waiting = {row.key: row for row in asked if row.key not in outcomes}
            with display.Bar(self.model, len(outcomes) + len(waiting), "request") as bar:
                bar.update(len(outcomes))
                outcomes |= _Batch(self, waiting.values(), bar).run()
        self.open += [one for one in outcomes.values() if not one.ok and one.kind not in FINAL]
        # Equal requests share one result, though each may have a label of its own.
        found = [replace(outcomes[r.key], purpose=r.purpose, prompt=r.prompt) for r in asked]
        used.note(found, self.ledger.path)
        return found

    def dry_run(self, requests: Iterable[Request | str]) -> Estimate:
        """Return calls, tokens and price of a batch, without a call and without a key."""
        asked, outcomes, missing = self._recall(requests)
        pairs = [request_tokens(row.plain) for row in missing]
        tokens_in = sum(pair[0] for pair in pairs)
        tokens_out = exchange.add(pair[1] for pair in pairs)
        return Estimate(
            model=self.model,
            requests=len(asked),
            cached=sum(row.key in outcomes for row in asked),
            calls=len(missing),
            prompt_tokens=tokens_in,
            completion_tokens=tokens_out,
            cost_low=self.prices.cost(self.model, tokens_in, 0),
            cost_high=self.prices.cost(self.model, tokens_in, tokens_out),
            prices=f"prices of {self.prices.date} in {self.prices.path}",
        )

    def missing(self, requests: Iterable[Request | str]) -> list[Exchange]:
        """Return the requests, or repairs of their invalid answers, that the ledger lacks."""
        return self._recall(requests)[2]

    def _recall(self, requests: Iterable[Request | str]):
        """Return the requests as rows of the ledger, its results by key, and what it lacks."""
        if isinstance(requests, str | Request):
            raise UsageError("requests must be a list of requests, not a single one")
        asked, outcomes, missing = [], {}, {}
        for number, request in enumerate(requests, 1):
            if isinstance(request, str):
                request = Request(request)
            if not isinstance(request, Request):
                raise UsageError(f"request {number} is a {type(request).__name__}, not a Request")
            asked.append(Exchange.pending(request, self.model, defaults=self.parameters))
            if self.endpoint.redact(asked[-1].request) != asked[-1].request:
                raise UsageError(f"request {number} contains the key of the endpoint")
        held = self.ledger.get_many(row.key for row in asked)

        def find(row: Exchange) -> Exchange | None:
            found = held.get(row.key) or self.ledger.get(row.key)
            kept = found and (found.final or self.replay and found.kind != "pending")
            self.sources |= {found.endpoint} if kept else set()
            return found if kept else None

        for row in asked:
            result = exchange.settle(row, find, cached=True)
            kind = missing if isinstance(result, Exchange) else outcomes
            kind[row.key] = result
        return asked, outcomes, list(missing.values())


def _without_answer(
    rows: Iterable[Exchange], kind: str, reason: str, *, cached: bool
) -> dict[str, Failure]:
    failed = (row.failed(kind, reason) for row in rows)
    return {row.key: exchange.settle(row, lambda one: one, cached=cached) for row in failed}


class _Worker(threading.Thread):
    """A thread that says when it has ended: an interrupted `join` takes one that runs for dead."""

    def __init__(self, work: Callable[[], None]):
        super().__init__(name="ragkit-asks", daemon=True)
        self.work, self.ended = work, threading.Event()

    def run(self) -> None:
        try:
            self.work()
        finally:
            self.ended.set()


class _Batch:
    """The requests of one call of `Client.complete` that the ledger could not answer."""

    def __init__(self, client: Client, asked: Iterable[Exchange], bar: display.Bar):
        self.client, self.asked, self.bar = client, list(asked), bar
        self.waiting: queue.SimpleQueue[Exchange] = queue.SimpleQueue()
        self.outcomes: dict[str, Value | Failure] = {}
        self.stopped: tuple[str, str] | None = None  # kind and reason of what is not asked
        self.fatal: Exception | None = None
        self.unanswered = self.answers = 0
        self.said = False
        self.stopping = threading.Event()

    def run(self) -> dict[str, Value | Failure]:
        """Ask everything and return the results by key."""
        with self.client.endpoint.connect() as self.connection:
            for asked in self.asked:
                self.waiting.put(asked)
            count = min(self.client.concurrency, len(self.asked))
            threads = [_Worker(self.work) for _ in range(count)]
            try:
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.ended.wait()
            except KeyboardInterrupt:
                self.stop("stopped", "interrupted before it was asked")
                said = "recording the answers under way (Ctrl-C again to drop them)"
                print(f"\nragkit: {said}", file=sys.stderr)
                for thread in threads:
                    if thread.ident is not None:  # it was started
                        thread.ended.wait()
                raise
        if self.fatal is not None:
            raise self.fatal
        if self.stopped is None:
            return self.outcomes
        return _without_answer(self.asked, *self.stopped, cached=False) | self.outcomes

    def stop(self, kind: str, reason: str) -> None:
        """Start no further request; those under way go on."""
        self.stopped = self.stopped or (kind, reason)
        self.stopping.set()

    def work(self) -> None:
        """Settle requests until none waits."""
        with suppress(queue.Empty):
            while not self.stopped:
                asked = self.waiting.get_nowait()
                try:
                    result = exchange.settle(asked, self.find, cached=False)
                except DiskFull as error:
                    self.stop("stopped", f"not asked: {error.message}")
                except Exception as error:
                    self.fatal = self.fatal or error
                    self.stop("stopped", "not asked after an error")
                else:
                    if isinstance(result, Exchange):  # another process is asking: look again later
                        self.waiting.put(asked)
                        self.stopping.wait(0.05)
                        continue
                    with _counting:
                        self.outcomes[asked.key] = result
                        self.bar.update()

    def find(self, asked: Exchange) -> Exchange | None:
        """Return the row of a request, from the ledger or asked now; None if it must wait."""
        ledger = self.client.ledger
        if self.stopped or not ledger.claim(asked.key):
            return None
        try:
            held = ledger.get(asked.key)
            return held if held and held.final else self.ask(asked)
        finally:
            ledger.release(asked.key)
            self.client.reserved.pop(asked.key, None)

    def ask(self, asked: Exchange) -> Exchange | None:
        """Ask until there is an answer or patience ends; None if the batch stopped before that."""
        client, fault, text = self.client, None, None
        faults, counted, waited = Counter(), 0, 0.0
        started, answers = time.monotonic(), self.answers
        cost = self.reserve(asked)
        while not self.stopped:
            try:
                text = client.endpoint.attempt(self.connection, client.body(asked))
                break
            except Fault as caught:
                fault = caught
            faults[fault.kind] += 1
            counted += fault.wait_s is None
            backoff = min(client.backoff * 2 ** (faults.total() - 1), BACKOFF_CAP)
            pause = max(fault.wait_s or 0.0, backoff + random.uniform(0, client.backoff))
            if not fault.again or counted >= client.max_attempts:
                break
            most = f"{client.max_wait:g} s"
            if waited + pause > client.max_wait:
                fault.reason += f"; waiting for it would take more than max_wait, {most}"
                break
            if fault.kind == "rate_limit" and pause >= 1 and not self.said:
                self.said = True
                said = f"waiting until the endpoint accepts more requests ({fault.reason})"
                display.note(f"ragkit: {client.model}: {said}, for at most {most}")
            waited += pause
            self.stopping.wait(pause)
        if text is None and fault is None:
            return None
        if text is None:
            self.give_up(fault, alone=self.answers == answers)
            row = asked.failed(fault.kind, fault.reason)
        else:
            row = exchange.answered(asked, text)
            paid = client.prices.cost(client.model, row.prompt_tokens, row.completion_tokens)
            with _counting:
                client.spent += cost if paid is None else paid
                self.unanswered, self.answers = 0, self.answers + 1
        client.sources.add(client.endpoint.url)
        return client.ledger.put(
            replace(
                row,
                endpoint=client.endpoint.url,
                attempts=faults.total() + (text is not None),
                faults=canonical(dict(faults)),
                waited_s=round(waited, 3),
                seconds=round(time.monotonic() - started, 3),
                asked_at=exchange.now(),
            )
        )

    def reserve(self, asked: Exchange) -> float:
        """Set aside what a request may cost, or stop the batch if it exceeds what is left."""
        client = self.client
        if client.budget is None:
            return 0.0
        tokens_in, tokens_out = request_tokens(asked.plain)
        cost = client.prices.cost(client.model, tokens_in, tokens_out or 0)
        while not self.stopped:
            with _counting:
                reserved = sum(client.reserved.values())
                if client.spent + reserved + cost <= client.budget:
                    client.reserved[asked.key] = cost
                    break
            if not reserved:
                limit = f"the budget of {dollars(client.budget)} would be exceeded"
                self.stop("budget", f"not asked: {limit} ({dollars(client.spent)} spent)")
            self.stopping.wait(0.02)  # the requests under way may cost less than was set aside
        return cost

    def give_up(self, fault: Fault, *, alone: bool) -> None:
        """Stop the batch after a failure if the other requests would fail as well."""
        self.unanswered += fault.kind != "rejected"
        if fault.kind == "rate_limit" and (alone or not fault.again):
            self.stop("stopped", f"not asked: {fault.reason}")
        elif self.unanswered >= max(GIVE_UP_AFTER, self.client.concurrency):
            count = f"{self.unanswered} requests in a row had no answer"
            self.stop("stopped", f"not asked: {count}; the last: {fault.reason}")


def write_batch(client: Client, rows: Sequence[Exchange], path: str | Path) -> int:
    """Write what `Client.missing` returned to `path`; return the number of requests.

    The file is in the format of OpenAI's batch API, which costs half as much. The ledger keeps the
    requests for `import_results`. Invalid answers are repaired by the next batch.

    >>> client = Client("openai:gpt-4o-mini", ledger="llm.sqlite")
    >>> write_batch(client, client.missing(["Is 8 prime?", "Is 9?"]), "requests.jsonl")
    2
    """
    call = {"method": "POST", "url": "/v1/chat/completions"}
    lines = [call | {"custom_id": row.key, "body": client.body(row)} for row in rows]
    write_text(path, "".join(f"{canonical(line)}\n" for line in lines))
    client.ledger.add(rows)
    return len(rows)


def import_results(ledger: Ledger, path: str | Path) -> tuple[int, int, int, int]:
    """Record the answers in a file of batch results, or none if a line is wrong.

    Returns how many answers and how many failures were recorded, how many results were left out
    because their request has a final answer, and how many requests of batches still have none.
    Raises `DataError` if a line is not a batch result, or its request is not of this ledger.

    >>> from ragkit.files import write_jsonl
    >>> client = Client("openai:gpt-4o-mini", ledger="llm.sqlite")
    >>> (request,) = client.missing(["Is 10 prime?"])
    >>> write_batch(client, [request], "requests.jsonl")
    1
    >>> answer = {"choices": [{"message": {"content": "No."}, "finish_reason": "stop"}]}
    >>> response = {"status_code": 200, "body": answer}
    >>> path = write_jsonl("results.jsonl", [{"custom_id": request.key, "response": response}])
    >>> import_results(client.ledger, path)
    (1, 0, 0, 0)
    """
    rows, held = {}, 0
    for number, result in enumerate(read_jsonl(path, ("custom_id", "response")), 1):
        with named(f"{path}: result {number}"):
            asked = ledger.get(str(result["custom_id"]))
            if asked is None:
                hint = "name the ledger that the batch was written from"
                said = f"no request {result['custom_id']!r:.80} was written from {ledger.path}"
                raise DataError(said, hint)
            if asked.final or asked.key in rows:
                held += 1
                continue
            reply = result["response"] if isinstance(result["response"], dict) else {}
            status, text = reply.get("status_code"), canonical(reply.get("body"))
            if status == 200 and exchange.check_envelope(text) is None:
                row = exchange.answered(asked, text)
            else:
                said = canonical(result.get("error") or reply.get("body"))[:300]
                kind = "rejected" if status == 400 else "server_error"
                row = asked.failed(kind, f"batch, status {status}: {said}")
            rows[asked.key] = replace(row, attempts=1, asked_at=exchange.now())
    ledger.add(rows.values())
    failed = sum(row.state == "failed" for row in rows.values())
    waiting = sum(row.kind == "pending" for row in ledger.failures())
    return len(rows) - failed, failed, held, waiting
