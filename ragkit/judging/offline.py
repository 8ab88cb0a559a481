"""The offline judge: verdicts without a model, the same on every machine.

    >>> from ragkit.judging import load_judge
    >>> judge = load_judge("offline")
    >>> judge.correctness("How large may a file be?", "Up to 10 MiB.", "10MiB at most.").value
    True

It compares words, numbers, dates, names and cues of negation and ignorance (`features`) and turns
them into the probability of a yes by a logistic regression whose coefficients were fitted to
verdicts of language models (`offline.toml`, which names the data;
`ragkit.judging.offline_calibrate.calibrate` fits your own). A verdict depends on its task alone: not on the order, not on what else is judged.

What it cannot do: it has no knowledge of the language beyond a list of opposites, so a paraphrase
in other words looks wrong to it, and a wrong statement in the right words looks right. Sentence
embeddings and a cross-encoder added nothing to the agreement with language models' verdicts on
answers of systems held out, and would have cost its speed and its sameness.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from ragkit import checks
from ragkit.errors import DataError
from ragkit.files import read_text
from ragkit.judging.inputs import strip_citations
from ragkit.judging.judges import Judge, Task, Verdict, combine
from ragkit.judging.offline_features import FEATURES, against, conflicts, coverage
from ragkit.judging.offline_text import (
    abstains,
    abstentions,
    asks_abstention,
    parse,
    sentences,
)

COEFFICIENTS = Path(__file__).with_suffix(".toml")
CALIBRATED = ("correctness", "fact")
UNVALIDATED = ("factuality", "context_recall")
THRESHOLD = 0.5
# How an answer to a question without an answer says so.
IGNORANCE = ("opening", "later", "never")
_WANTED = {"correctness": "gold", "fact": "fact"}

bare = lru_cache(maxsize=1 << 16)(strip_citations)


@dataclass(frozen=True)
class Coefficients:
    """What the offline judge has learned.

    Parameters
    ----------
    models : mapping
        For "correctness" and "fact" the `intercept` and the weight of each feature.
    unanswerable : mapping
        For each of `IGNORANCE`, the probability that an answer which says so there (or never)
        counts as correct where the gold answer says that there is none.
    provenance : mapping
        What they were fitted to.
    """

    models: Mapping[str, Mapping[str, float]]
    unanswerable: Mapping[str, float]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        for kind in CALIBRATED:
            _check(self.models.get(kind), ("intercept", *FEATURES), f"the model of {kind}")
        _check(self.unanswerable, IGNORANCE, "unanswerable")

    @property
    def digest(self) -> str:
        """A short name for these numbers."""
        data = json.dumps([self.models, self.unanswerable], sort_keys=True)
        return hashlib.sha256(data.encode("utf-8")).hexdigest()[:12]

    def to_toml(self) -> str:
        """Return the text of a file that `read_coefficients` reads."""
        parts = [f"{key} = {json.dumps(value)}" for key, value in self.provenance.items()]
        lines = ["# Made by: python -m ragkit.judging.offline_calibrate", "[provenance]", *parts]
        tables = {f"models.{kind}": self.models[kind] for kind in CALIBRATED}
        for name, table in {**tables, "unanswerable": self.unanswerable}.items():
            lines += ["", f"[{name}]", *(f"{key} = {value!r}" for key, value in table.items())]
        return "\n".join(lines) + "\n"


def _check(table, names: Sequence[str], what: str) -> None:
    if not isinstance(table, Mapping) or set(table) != set(names):
        raise DataError(f"{what} should give {', '.join(names)}, found {table!r}")
    for name, value in table.items():
        if type(value) is not float or not math.isfinite(value):
            raise DataError(f"{what}: {name} should be a finite number, found {value!r}")


@cache
def read_coefficients(path: Path = COEFFICIENTS) -> Coefficients:
    """Return the coefficients of a file; by default those that come with the package.

    Raises
    ------
    DataError
        If it is no such file, or made for other features than these.
    """
    try:
        data = tomllib.loads(read_text(Path(path)))
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path}: not a file of coefficients ({error})") from None
    unknown = set(data) - {"provenance", "models", "unanswerable"}
    if unknown or not isinstance(data.get("models"), dict):
        raise DataError(f"{path}: expected the tables provenance, models and unanswerable")
    try:
        return Coefficients(
            data["models"], data.get("unanswerable", {}), data.get("provenance", {})
        )
    except DataError as error:
        raise DataError(f"{path}: {error.message}", error.hint) from None


class OfflineJudge(Judge):
    """A judge of correctness and facts that needs no model.

    Two more kinds are **unvalidated**: no verdicts were at hand to measure them against, and the
    reason of each such verdict says so. `factuality` is the probability of correctness;
    `context_recall` the mean over the gold answer's sentences of the weighted share of their words
    that the context has.

    A probability of one half or more is a yes. A fact that is a rule for the answer ("must not claim
    that ...") is read as any other fact, which is wrong for a prohibition.

    Parameters
    ----------
    coefficients : Coefficients, optional
        Default: those that come with the package.
    """

    kinds = frozenset((*CALIBRATED, *UNVALIDATED))
    code = ("ragkit.judging.offline",)

    def __init__(self, coefficients: Coefficients | None = None):
        self.coefficients = read_coefficients() if coefficients is None else coefficients
        own = self.coefficients.digest != read_coefficients().digest
        self.name = f"offline:{self.coefficients.digest}" if own else "offline"

    @classmethod
    def from_name(cls, name: str, **options) -> OfflineJudge:
        """Return the judge "offline", or "offline:FILE" with the coefficients of that file."""
        path = name.partition(":")[2]
        return cls(read_coefficients(Path(path)) if path else None, **options)

    def __repr__(self) -> str:
        return f"OfflineJudge({self.name!r})"

    def describe(self, kinds: Sequence[str]) -> dict[str, Any]:
        return {"name": self.name, "coefficients": self.coefficients.digest}

    def judge(self, tasks: Sequence[Task], *, repeat: int = 1, first: int = 0) -> list[Verdict]:
        checks.whole(repeat, "repeat")
        self.need(*(task.kind for task in tasks))
        return [self._verdict(task, repeat) for task in tasks]

    def probability(self, tasks: Sequence[Task]) -> list[float]:
        """Return how likely a language model's verdict on each task would be yes, in [0, 1].

        Of an unvalidated kind, return its value.
        """
        self.need(*(task.kind for task in tasks))
        return [self._probability(task) for task in tasks]

    def _verdict(self, task: Task, repeat: int) -> Verdict:
        value = self._probability(task)
        if task.kind in UNVALIDATED:
            reason = f"unvalidated {task.kind.replace('_', ' ')}; {_shown(task)}"
            return combine(task.kind, [value] * repeat, [reason] * repeat, self.name)
        reason = f"{_shown(task)}; probability {value:.2f}"
        return combine(
            task.kind,
            [value >= THRESHOLD] * repeat,
            [reason] * repeat,
            self.name,
            scores=[value] * repeat,
        )

    def _probability(self, task: Task) -> float:
        if task.kind == "context_recall":
            return _recall(task.fields["gold"], task.fields["context"])
        kind = "correctness" if task.kind == "factuality" else task.kind
        wanted, answer = task.fields[_WANTED[kind]], bare(task.fields["answer"])
        if not parse(answer).tokens:
            return 0.0
        if asks_abstention(wanted):
            return self.coefficients.unanswerable[ignorance(answer)]
        model = self.coefficients.models[kind]
        found = features(task)
        logit = math.fsum([model["intercept"], *(model[key] * found[key] for key in FEATURES)])
        return 1 / (1 + math.exp(-max(-50.0, min(50.0, logit))))


def features(task: Task) -> dict[str, float]:
    """Return what the judge looks at in a task of correctness, factuality or a fact.

    Returns
    -------
    dict of str to float
        See `ragkit.judging.offline_features.against`.
    """
    fields = task.fields
    wanted = fields["fact" if task.kind == "fact" else "gold"]
    return against(fields["question"], wanted, bare(fields["answer"]))


def ignorance(answer: str) -> str:
    """Return where an answer says that it does not know: one of `IGNORANCE`."""
    if abstains(answer):
        return "opening"
    return "later" if abstentions(answer) else "never"


def _recall(gold: str, context: str) -> float:
    have = parse(context).words
    parts = [coverage(parse(part).words, have) for part in sentences(gold)]
    return math.fsum(parts) / len(parts) if parts and have else 0.0


def _shown(task: Task) -> str:
    """Return in words what the wanted text and the given one have in common."""
    fields = task.fields
    gold = fields["fact" if task.kind == "fact" else "gold"]
    given = fields["context"] if task.kind == "context_recall" else bare(fields["answer"])
    want, have, asked = parse(gold), parse(given), parse(fields["question"])
    what = "fact" if task.kind == "fact" else "gold answer"
    if not have.tokens:
        return "nothing to judge: no words"
    if asks_abstention(gold) and task.kind != "context_recall":
        where = {
            "opening": "says so in its opening",
            "later": "says so after its opening",
            "never": "never says so",
        }
        return f"the question counts as unanswerable; the answer {where[ignorance(given)]}"
    parts = [f"has {100 * coverage(want.words, have.words):.0f} % of the {what}'s words by weight"]
    if want.words - asked.words:
        new = coverage(want.words - asked.words, have.words)
        parts.append(f"{100 * new:.0f} % of those that the question does not have")
    instead = conflicts(want, have, asked)
    for label, numbers in (
        ("other numbers in place of", instead),
        ("no number or date", want.numbers - asked.numbers - have.numbers - instead),
    ):
        if numbers:
            parts.append(f"{label} {', '.join(sorted(numbers)[:5])}")
    if task.kind != "context_recall" and abstentions(given):
        parts.append("says that something is not known")
    return "; ".join(parts)
