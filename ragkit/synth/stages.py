"""The stages of a pipeline as a language model answers them: prompts, schemas, checks, batches.

A stage has a prompt, `STAGE.md`, and an entry in `schemas.json` of the same folder, the JSON schema
of its answers. An author answers a stage with `answer(stage, tasks, check)`: one result a task, in
order. `Model` asks an endpoint; with `Guess` in its place, the same pipeline runs on stand-ins and
says what it would cost.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

from ragkit.errors import ModelError, UsageError
from ragkit.files import read_json
from ragkit.llm import Client, Request, count_tokens, dollars, load_prompt, write_batch
from ragkit.llm.exchange import FINAL
from ragkit.llm.prices import request_tokens

TRIES = 2  # an answer that fails its check is shown to the model once more
PARAMETERS = {"max_tokens": 2500}
REMEDY = "change the prompt or the model and run again, or make do without this item"

Check = Callable[["Task", dict], str]
Draft = TypeVar("Draft")


@dataclass(frozen=True)
class Task:
    """One thing to be answered in a stage."""

    item: str  # what it is, as messages name it
    values: Mapping[str, Any] = field(default_factory=dict)  # for the prompt's placeholders
    given: Any = None  # what checks and stand-ins work from
    prompt: str = ""  # its name, where a stage has several
    turn: int = 0  # 1, 2, ... to ask for the same thing again
    note: Mapping[str, Any] = field(default_factory=dict)  # kept with the answer in a file


@dataclass(frozen=True)
class Rejected:
    """A task without a usable answer: the stage, the item, and the reason."""

    stage: str
    item: str
    reason: str

    def row(self) -> dict[str, str]:
        """Return it as a row of a file, with what can be done about it."""
        return asdict(self) | {"remedy": REMEDY}


class BatchWritten(Exception):
    """The requests of a stage are in a file; the same command continues with their answers."""

    def __init__(self, stage: str, count: int, path: Path, ledger: Path):
        super().__init__(
            f"stage {stage!r}: {count:,} requests written to {path}; when the results are there: "
            f"ragkit llm import RESULTS.jsonl --ledger {ledger}, then the same command again"
        )


@dataclass(frozen=True)
class AuthorOptions:
    """How a model is asked; see `ragkit.llm.Client`.

    What asks it raises `ModelError` if the endpoint did not answer, the budget is spent, or an
    answer that all others need is not usable; and `BatchWritten` if a batch is wanted and the ledger
    lacks answers. What the ledger holds is not asked again: a run continues.
    """

    ledger: str | Path | None = None  # where answers are kept
    budget: float | None = None  # the most that a run may cost, in USD
    concurrency: int = 8  # requests at once
    replay: bool | None = None  # whether to answer from the ledger alone
    batch: str | Path | None = None  # a file to which requests are written, instead of being asked


def check_author(name: str | None) -> None:
    """Raise `UsageError` unless `name` is `openai:MODEL`."""
    if not (name or "").startswith("openai:") or name == "openai:":
        raise UsageError(
            f"no author is called {name!r}" if name else "no author is named: a model has to write",
            "add --author openai:MODEL; with --batch FILE its requests are written to a file, and "
            "what the --ledger holds is not asked again",
        )


class Model:
    """Answer stages with a language model; what was answered is kept in the ledger.

    Parameters
    ----------
    name : str
        `openai:MODEL`.
    prompts : Path
        The folder of the prompts and of `schemas.json`.
    options : AuthorOptions, optional
        With `batch`, requests that the ledger lacks are written to this file instead of being
        asked, and `BatchWritten` is raised.
    parameters : mapping
        Options of every request.
    progress : callable, optional
        Called with stage, answers and tasks, as a stage begins and ends.
    """

    def __init__(
        self,
        name: str,
        prompts: Path,
        options: AuthorOptions | None = None,
        parameters: Mapping = PARAMETERS,
        progress: Callable[[str, int, int], None] | None = None,
    ):
        check_author(name)
        self.options = options = options or AuthorOptions()
        if options.batch and options.ledger is None:
            raise UsageError("a batch needs a ledger that takes its results")
        self.name, self.prompts = name, prompts
        self.progress = progress or (lambda *_: None)
        self.schemas = read_json(prompts / "schemas.json")
        given = {key: value for key, value in asdict(options).items() if key != "batch"}
        self.client = Client(name, **given, parameters=dict(parameters))
        self._collects = bool(options.batch)  # what the ledger lacks, instead of asking it
        self.lacking: list[tuple[str, Request]] = []  # what waits for the next batch, by stage

    def request(self, stage: str, task: Task) -> Request:
        """Return the request of a task."""
        prompt = load_prompt(task.prompt or stage, self.prompts)
        values = dict(task.values)
        if "item" in prompt.placeholders:
            values["item"] = task.item
        options = {"schema": self.schemas[stage], "purpose": stage, "repeat": task.turn}
        return prompt.request(values, **options)

    def answer(
        self, stage: str, tasks: Sequence[Task], check: Check | None = None, *, wait: bool = True
    ) -> list[dict | Rejected | None]:
        """Return the data of each task, or `Rejected` where the model gave none that passes.

        The check returns what is wrong with the data of a task, or an empty string. Without `wait`,
        a task that a batch has to ask first has None, and `flush` writes the batch when there is no
        more. Raises `ModelError` if the endpoint did not answer or the budget is spent, and
        `BatchWritten` if a batch is wanted and the ledger lacks answers.
        """
        self.progress(stage, 0, len(tasks))
        requests = [self.request(stage, task) for task in tasks]
        found: list[dict | Rejected | None] = [None] * len(tasks)
        waiting = list(range(len(tasks)))
        for _ in range(TRIES):
            again = []
            results = self._complete(stage, [requests[i] for i in waiting])
            for i, result in zip(waiting, results, strict=True):
                if result is None:
                    found[i] = None
                    continue
                reason = "" if result.ok else f"{result.kind}: {result.reason}"
                if result.ok and check:
                    reason = check(tasks[i], result.data)
                found[i] = Rejected(stage, tasks[i].item, reason) if reason else result.data
                if reason and result.ok:
                    repair = requests[i].repair(result.message, reason)
                    requests[i] = replace(repair, repeat=tasks[i].turn)
                    again.append(i)
            waiting = again
        self.progress(stage, sum(data is not None for data in found), len(tasks))
        if wait:
            self.flush()
        return found

    def flush(self) -> None:
        """Write the batch of all that had to wait, if there is any, and raise `BatchWritten`."""
        if self.lacking:
            stages, requests = zip(*self.lacking, strict=True)
            self.lacking = []
            count = write_batch(self.client, self.client.missing(requests), self.options.batch)
            path, ledger = Path(self.options.batch), self.client.ledger.path
            raise BatchWritten(", ".join(dict.fromkeys(stages)), count, path, ledger)

    def _complete(self, stage: str, requests: list[Request]) -> list:
        """Return the results, and None for what waits for a batch."""
        lacking = [self._collects and bool(self.client.missing([r])) for r in requests]
        pairs = list(zip(requests, lacking, strict=True))
        self.lacking += [(stage, request) for request, lacks in pairs if lacks]
        held = [request for request, lacks in pairs if not lacks]
        results = self.client.complete(held) if held else []
        trouble = [r for r in results if not r.ok and r.kind not in FINAL]
        if len(results) > 1 and all(not r.ok and r.kind == "rejected" for r in results):
            trouble = results  # it is not the items that are wrong
        if trouble:
            first = trouble[0]
            more = "raise the budget and " if first.kind == "budget" else ""
            raise ModelError(
                f"stage {stage!r}: {len(trouble):,} of {len(results):,} requests have no answer "
                f"from {self.name} ({first.kind}: {first.reason})",
                f"{more}run the same command again: what was answered is kept in the ledger",
            )
        found = iter(results)
        return [None if lacks else next(found) for lacks in lacking]


class Guess(Model):
    """Answer from the ledger, else with a stand-in that counts as a request; nothing is asked.

    `stand_ins.json` beside the prompts has an answer for each stage in its usual size. In it, "30
    words" stands for a text of that length, ["4 times", ONE] for a list of so many, ["people times",
    ONE] for as many as the prompt's value `people` says, and {n} for the place in a list.

    What depends on more of the task, a function of `stand_ins` returns: fields in the same notation.
    `calls`, `tokens_in` and `tokens_out` are counts by stage; repairs of answers are not foreseen.
    The other parameters are those of `Model`.
    """

    def __init__(
        self,
        name: str,
        prompts: Path,
        options: AuthorOptions | None,
        stand_ins: Mapping[str, Callable[[Task], dict]],
        parameters: Mapping = PARAMETERS,
    ):
        options = replace(options or AuthorOptions(), batch=None)
        super().__init__(name, prompts, options, parameters)
        self.stand_ins, self._collects = stand_ins, True
        self.sizes = read_json(prompts / "stand_ins.json")
        self.calls, self.tokens_in, self.tokens_out = Counter(), Counter(), Counter()

    def answer(
        self, stage: str, tasks: Sequence[Task], check: Check | None = None, *, wait: bool = True
    ) -> list[dict | Rejected | None]:
        found = super().answer(stage, tasks, check, wait=False)
        for _, request in self.lacking:
            self.calls[stage] += 1
            self.tokens_in[stage] += request_tokens(request.plain(self.name))[0]
        self.lacking = []
        for i, task in enumerate(tasks):
            if found[i] is None:
                own = self.stand_ins[stage](task) if stage in self.stand_ins else {}
                found[i] = _sized(self.sizes.get(stage, {}) | own, task.values, task.item)
                said = json.dumps(found[i], ensure_ascii=False)
                self.tokens_out[stage] += count_tokens(said, self.name)
        return found

    def lines(self) -> list[str]:
        """Return the estimate in lines."""
        said = [f"  {count:>7,} {stage}" for stage, count in self.calls.items()]
        tokens, prices = (self.tokens_in.total(), self.tokens_out.total()), self.client.prices
        price = prices.cost(self.name, *tokens)
        cost = f"price unknown: no {self.name.removeprefix('openai:')!r} in"
        cost = cost if price is None else f"about {dollars(price)},"
        return [
            *said,
            f"{self.name}: about {self.calls.total():,} calls, {tokens[0]:,} tokens in and "
            f"{tokens[1]:,} out: {cost} prices of {prices.date} in {prices.path}; repairs of "
            "answers come on top",
        ]


def needed(found: Sequence[dict | Rejected], hint: str) -> list[dict]:
    """Return the data of a stage that cannot go on without any of its items; else `ModelError`."""
    for data in found:
        if isinstance(data, Rejected):
            raise ModelError(f"stage {data.stage!r}, item {data.item!r}: {data.reason}", hint)
    return list(found)


def within(**shown: str) -> Check:
    """Return a check of numbers: each field of an answer counts what a draft shows, from 1.

    `within(needed="documents")`: every number of `needed` is one of the draft's `documents`. A
    field that is a single number may be 0, for none of them.
    """

    def check(task: Task, data: dict) -> str:
        for name, of in shown.items():
            known, several = len(getattr(task.given, of)), isinstance(data[name], list)
            for number in data[name] if several else [data[name]]:
                if not int(several) <= number <= known:
                    return f"{name}: there is no number {number} of {known}"
        return ""

    return check


def _sized(value: Any, values: Mapping, item: str) -> Any:
    """Return a stand-in: see `Guess`; a text is different in every place."""
    if isinstance(value, dict):
        return {name: _sized(part, values, item) for name, part in value.items()}
    if isinstance(value, list):
        times = re.fullmatch(r"(\w+) times", str(value[0])) if len(value) == 2 else None
        if times and (number := str(values.get(times[1], times[1]))).isdecimal():
            value = value[1:] * int(number)
        return [_sized(part, values, f"{item}, {n}") for n, part in enumerate(value, 1)]
    if not isinstance(value, str):
        return value
    size = re.fullmatch(r"(\d+) words", value)
    if not size:
        return value.replace("{n}", item.rpartition(", ")[2])
    words = islice(cycle(("so", "said", "it,")), int(size[1]))
    return " ".join([f"{crc32(item.encode()):08x}", *words])


class Pipeline:
    """What asks stages of an author: a `Model`, or files that one has answered before.

    `lost` has what the author spoilt and what a check refused. With `wait`, all answers of a stage
    are needed before the next one is asked (see `Model.answer`).
    """

    wait = False

    def __init__(self, author=None):
        self.author = author
        self.lost: list[Rejected] = []

    def ask(
        self,
        stage: str,
        drafts: Sequence[Draft],
        task: Callable[[Draft], Task],
        check: Check | None = None,
    ) -> Iterator[tuple[Draft, dict]]:
        """Yield the drafts that a stage has answered, each with the data.

        `task` makes the task of a draft. What waits for a batch is neither here nor in `lost`.
        """
        tasks = [task(draft) for draft in drafts]
        found = self.author.answer(stage, tasks, check, wait=self.wait)
        for draft, data in zip(drafts, found, strict=True):
            if isinstance(data, Rejected):
                self.lost.append(data)
            elif data is not None:
                yield draft, data

    def refuse(self, stage: str, item: str, reason: str) -> None:
        """Leave an item out."""
        self.lost.append(Rejected(stage, item, reason))
