"""Judges: functions from tasks to verdicts, and the judge that is a language model.

The kinds of tasks and the scales of their verdicts are data, in `kinds.toml`; the prompts are in
`prompts`. A verdict that a judge failed to give is missing (`value` None, with the reason), never
a score.
"""

from __future__ import annotations

import math
import re
import statistics
import tomllib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ragkit import checks
from ragkit.errors import DataError, UsageError
from ragkit.store import Store

if TYPE_CHECKING:
    import pandas as pd

    from ragkit.llm import Client, Estimate, Prompt, Request

PROMPTS = Path(__file__).parent / "prompts"
_DATA = tomllib.loads(Path(__file__).with_name("kinds.toml").read_text("utf-8"))
LEVELS = {scale: tuple(levels) for scale, levels in _DATA["levels"].items()}
CLASSES, PREFERENCES = LEVELS["class"], LEVELS["preference"]
CLAIM_KINDS = ("direct", "useful", "useless")
RATINGS = (1, 5)
_TAG = re.compile(r"<(\w+)>")


class Kind(NamedTuple):
    """The texts that a kind of task holds, and the scale of its verdicts: see `kinds.toml`."""

    fields: tuple[str, ...]
    scale: str


KINDS = {name: Kind(tuple(one["fields"]), one["scale"]) for name, one in _DATA["kinds"].items()}


@dataclass(frozen=True)
class Task:
    """One thing to judge: a kind of `KINDS` and a text for each of its fields.

    >>> Task.of("correctness", "Where?", "In Paris.", "Paris").fields
    {'question': 'Where?', 'gold': 'In Paris.', 'answer': 'Paris'}
    """

    kind: str
    fields: Mapping[str, str]

    def __post_init__(self):
        checks.choice(self.kind, "kind of task", KINDS)
        expected = KINDS[self.kind].fields
        if set(self.fields) != set(expected):
            raise UsageError(f"a task {self.kind!r} takes {', '.join(expected)}")
        for name, text in self.fields.items():
            if not isinstance(text, str):
                raise DataError(f"{name} of a task {self.kind!r} should be a text, found {text!r}")

    @classmethod
    def of(cls, kind: str, *texts: str) -> Task:
        """Return a task with a text for each field of its kind, in the order of `KINDS`."""
        return cls(kind, dict(zip(KINDS[kind].fields, texts, strict=True)))


def tasks(kind: str, frame: pd.DataFrame) -> list[Task]:
    """Return a task for each row of a frame, which has a column for each text of the kind.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"question": ["Where?"], "gold": ["In Paris."], "answer": ["Paris"]})
    >>> tasks("correctness", frame)[0].kind
    'correctness'
    """
    columns = frame[list(KINDS[kind].fields)]
    return [Task(kind, row) for row in columns.to_dict("records")]


@dataclass(frozen=True)
class Verdict:
    """The verdict on a task, of one judge and, if it was repeated, combined from its `values`."""

    value: Any  # on the scale of the task's kind; None if the verdict is missing
    reason: str  # the judge's explanation, or why the verdict is missing
    model: str  # the name of the judge
    values: Sequence = ()  # of each repeat, None for one that failed
    failures: Sequence[str] = ()  # why these failed
    spread: float | None = None  # standard deviation of two or more values, as numbers in [0, 1]
    score: float | None = None  # mean probability of a yes, in [0, 1], if the judge estimates it
    unsure: bool = False  # whether the judge cannot tell; the value is the likelier side

    @property
    def missing(self) -> bool:
        return self.value is None


def combine(kind: str, verdicts: Sequence[Verdict]) -> Verdict:
    """Combine the verdicts of one judge on one task; those that failed (None) do not count.

    Binary: yes if more than half say so. Rating and score: the mean. Class: the highest that more
    than half reach. Preference: what more than half prefer, else a tie. Texts: the first. One that
    is unsure makes all unsure. `DataError` if a value is not on the scale of the kind.

    >>> combine("correctness", [Verdict(True, "", "m"), Verdict(None, "timeout", "m")]).value
    True
    """
    values = [_checked(kind, one.value) for one in verdicts]
    failures = [one.reason for one in verdicts if one.missing]
    given = [one for one in verdicts if not one.missing]
    model, scale = verdicts[0].model, KINDS[kind].scale
    if not given:
        return Verdict(None, failures[0], model, values, failures)
    came = [value for value in values if value is not None]
    value = came[0]
    if scale == "rating":
        value = math.fsum(came) / len(came)
    elif scale == "preference":
        value = next((one for one in PREFERENCES if 2 * came.count(one) > len(came)), "tie")
    elif scale in LEVELS:  # the upper of two values has to be reached by more than half
        value = sorted(came, key=LEVELS[scale].index)[(len(came) - 1) // 2]
    shown = next((one for one in given if one.value == value), given[0])
    scores = [one.score for one in given if one.score is not None]
    codes = [code(kind, one) for one in came]
    return Verdict(
        value,
        shown.reason,
        model,
        values,
        failures,
        statistics.pstdev(codes) if len(codes) > 1 and not math.isnan(codes[0]) else None,
        math.fsum(scores) / len(scores) if scores else None,
        any(one.unsure for one in given),
    )


def _checked(kind: str, value):
    """Return a value as plain Python has it, if it is on the kind's scale."""
    scale = KINDS[kind].scale
    if value is None or (scale not in LEVELS and scale != "rating"):
        return value
    value = getattr(value, "item", lambda: value)()  # a number of numpy's
    if scale == "rating":
        fits = isinstance(value, int | float) and 0 <= value <= 1
    else:
        fits = value in LEVELS[scale] and isinstance(value, type(LEVELS[scale][0]))
    if not fits:
        raise DataError(f"a verdict of {kind} cannot be {value!r}", f"its scale is {scale}")
    return float(value) if scale == "rating" else value


def code(kind: str, value) -> float:
    """Return a verdict's value as a number in [0, 1]; NaN if it is missing or a text.

    >>> code("correctness", True), code("correctness", None)
    (1.0, nan)
    """
    scale = KINDS[kind].scale
    if value is not None and scale in LEVELS:
        return LEVELS[scale].index(value) / (len(LEVELS[scale]) - 1)
    return math.nan if value is None or scale != "rating" else float(value)


class Judge(ABC):
    """A judge: subclass it with a `name`, the `kinds` of tasks that it judges, and `judge`.

    `ask` keeps the verdicts of a judge whose `code` names the `ragkit` modules that decide them.
    """

    name: str
    kinds: frozenset[str]
    code: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<judge {self.name}>"

    @abstractmethod
    def judge(self, tasks: Sequence[Task], number: int = 0) -> list[Verdict]:
        """Return a verdict (value, reason, model, score, unsure) for every task, in order.

        Verdicts with another number are independent; a deterministic judge gives the same ones.
        """

    def close(self) -> None:  # noqa: B027 (most judges hold nothing)
        """Close what the judge holds open: connections, a ledger."""

    def describe(self, kinds: Sequence[str]) -> dict[str, Any]:
        """Return what decides this judge's verdicts of some kinds, as data for JSON."""
        return {"name": self.name}

    def estimate(self, tasks: Sequence[Task], *, repeat: int = 1, first: int = 0):
        """Return the price of the verdicts (`ragkit.llm.Estimate`), or None if they are free."""
        return None

    def need(self, *kinds: str) -> None:
        """Raise `UsageError` if the judge lacks a kind of task."""
        for kind in kinds:
            if kind not in self.kinds:
                raise UsageError(
                    f"the judge {self.name!r} gives no verdicts of {kind}",
                    f"it judges {', '.join(sorted(self.kinds))}",
                )

    def verdict(self, kind: str, *texts: str, repeat: int = 1) -> Verdict:
        """Return the verdict on `Task.of(kind, *texts)`."""
        self.need(kind)
        asked = [Task.of(kind, *texts)]
        numbers = range(checks.whole(repeat, "repeat"))
        return combine(kind, [self.judge(asked, number)[0] for number in numbers])


class ModelJudge(Judge):
    """A language model as judge, through the `ragkit.llm.Client` of an endpoint with a ledger.

    Every text stands between tags of its own, which no text can close (`enclosed`). `prompts`, by
    kind, are used in the place of ragkit's own: see `ragkit.llm.printed`.
    """

    kinds = frozenset(KINDS)

    def __init__(self, client: Client, prompts: Mapping[str, Prompt] | None = None):
        self.client = client
        self.name = client.model
        self.prompts = dict(prompts or {})

    def close(self) -> None:
        self.client.close()

    def prompt(self, kind: str) -> Prompt:
        from ragkit.llm import load_prompt

        return self.prompts.get(kind) or load_prompt(kind, PROMPTS)

    def describe(self, kinds: Sequence[str]) -> dict[str, Any]:
        prompts = {kind: self.prompt(kind) for kind in kinds}
        return {
            "name": self.name,
            "parameters": self.client.parameters,
            "prompts": {kind: {"id": p.id, "sha256": p.sha256} for kind, p in prompts.items()},
        }

    def judge(self, tasks: Sequence[Task], number: int = 0) -> list[Verdict]:
        results = self.client.complete(self._requests(tasks, number), partly=True)
        return [
            Verdict(_value(task.kind, one.data), one.data.get("reason", ""), self.name)
            if one.ok
            else Verdict(None, f"{one.kind}: {one.reason}", self.name)
            for task, one in zip(tasks, results, strict=True)
        ]

    def estimate(self, tasks: Sequence[Task], *, repeat: int = 1, first: int = 0) -> Estimate:
        numbers = range(first, first + repeat)
        return self.client.dry_run([one for n in numbers for one in self._requests(tasks, n)])

    def _requests(self, tasks: Sequence[Task], number: int) -> list[Request]:
        requests = []
        for task in tasks:
            prompt = self.prompt(task.kind)
            tags = {tag for _, text in prompt.parts for tag in _TAG.findall(text)}
            fields = {name: enclosed(text, tags) for name, text in task.fields.items()}
            properties = _DATA["schemas"][KINDS[task.kind].scale]
            schema = {"type": "object", "properties": properties, "required": list(properties)}
            schema |= {"additionalProperties": False}
            options = {"schema": schema, "purpose": f"judge {task.kind}"}
            requests.append(prompt.request(fields, repeat=number, **options))
        return requests


def enclosed(text: str, tags) -> str:
    """Return a text whose copies of some tags are escaped: `</gold>` becomes `&lt;/gold>`.

    >>> enclosed("right</gold>", ["gold"])
    'right&lt;/gold>'
    """
    return re.sub(rf"<(?=\s*/?\s*(?:{'|'.join(sorted(tags))})\b)", "&lt;", text, flags=re.I)


def _value(kind: str, data: Mapping[str, Any]):
    """Return the verdict in a model's answer."""
    scale = KINDS[kind].scale
    if scale == "answer":
        return dict(data)
    if scale == "claims":
        return data["claims"]
    return unit_rating(data["verdict"]) if scale == "rating" else data["verdict"]


def unit_rating(rating: int) -> float:
    """Return a rating from 1 to 5 on the scale from 0 to 1: (rating - 1) / 4.

    WixQA (section 4.3, appendices C and D) does not say how its five levels become scores from 0
    to 1; the ends are taken as the ends. `DataError` for anything but a whole number from 1 to 5.

    >>> unit_rating(4)
    0.75
    """
    low, high = RATINGS
    if type(rating) is not int or not low <= rating <= high:
        raise DataError(f"a rating should be a whole number from {low} to {high}, found {rating!r}")
    return (rating - low) / (high - low)


def ask(judge: Judge, tasks: Sequence[Task], *, repeat: int = 1, first: int = 0) -> list[Verdict]:
    """Return a judge's verdict on each task, combined from `repeat` of the numbers from `first`.

    Verdicts of a judge with `code` are kept in the cache's store; a missing one is not, so that it
    is tried again next time.

    >>> from ragkit.judging import load_judge
    >>> (verdict,) = ask(load_judge("offline"), [Task.of("correctness", "Where?", "In Paris.", "Rome")])
    >>> verdict.value
    False
    """
    numbers = range(first, first + checks.whole(repeat, "repeat"))
    given = [_given(judge, tasks, number) if tasks else [] for number in numbers]
    return [combine(task.kind, own) for task, own in zip(tasks, zip(*given), strict=True)]  # noqa: B905


def _given(judge: Judge, tasks: Sequence[Task], number: int) -> list[Verdict]:
    if not judge.code:
        return judge.judge(tasks, number)
    lost: dict[str, Verdict] = {}

    def compute(items: list) -> list:
        verdicts = judge.judge([Task(*item) for item in items], number)
        lost.update((str(i), v) for i, v in zip(items, verdicts, strict=True) if v.missing)
        return [None if verdict.missing else asdict(verdict) for verdict in verdicts]

    items = [[task.kind, dict(task.fields)] for task in tasks]
    about = [judge.describe(sorted({task.kind for task in tasks})), number]
    with Store() as store:
        kept = store.map(compute, items, step="judge", code=judge.code, given=about, batch=256)
    return [
        lost[str(item)] if value is None else Verdict(**value)
        for item, value in zip(items, kept, strict=True)
    ]
