"""The offline judge: verdicts without a model, the same on every machine.

    >>> from ragkit.judging import load_judge
    >>> judge = load_judge("offline")
    >>> judge.verdict("correctness", "How large?", "Up to 10 MiB.", "10MiB at most.").value
    True

It compares words, numbers, dates, names and cues of negation and ignorance
(`ragkit.judging.features`) by logistic regressions, whose coefficients were fitted to verdicts of
language models and to attacks (`offline.toml`, which names the data). It does not know what words
mean beyond a list of opposites, so a paraphrase in other words looks wrong to it, and a wrong
statement in the right words looks right.
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
from ragkit.judging.features import ATTACK, FEATURES, against, attacking, conflicts, coverage
from ragkit.judging.inputs import strip_citations
from ragkit.judging.judges import Judge, Task, Verdict, combine
from ragkit.judging.offline_text import abstains, asks_abstention, cues, parse, sentences

COEFFICIENTS = Path(__file__).with_suffix(".toml")
CALIBRATED = ("correctness", "fact")
UNVALIDATED = ("factuality", "context_recall")
# The features of each regression.
MODELS = {"correctness": FEATURES, "fact": FEATURES, "attack": ATTACK}
THRESHOLD = 0.5
# Where an answer says that it has none, and how that reads in a reason.
IGNORANCE = {
    "opening": "says so in its opening",
    "later": "says so after its opening",
    "never": "never says so",
}

bare = lru_cache(maxsize=1 << 16)(strip_citations)


@dataclass(frozen=True)
class Coefficients:
    """The fitted coefficients of the offline judge."""

    # For "correctness", "fact" and "attack" the `intercept` and the weight of each feature.
    models: Mapping[str, Mapping[str, float]]
    # For each of `IGNORANCE`, the probability that an answer which says so there (or never)
    # counts as correct where the gold answer says that there is none.
    unanswerable: Mapping[str, float]
    unsure: Mapping[str, float]  # `margin`: unsure is a probability nearer to one half
    provenance: Mapping[str, Any] = field(default_factory=dict)  # the data of the fit

    def __post_init__(self):
        for kind, features in MODELS.items():
            _check(self.models.get(kind), ("intercept", *features), f"the model of {kind}")
        _check(self.unanswerable, IGNORANCE, "unanswerable")
        _check(self.unsure, ["margin"], "unsure")

    @property
    def digest(self) -> str:
        """A short name for these numbers."""
        data = json.dumps([self.models, self.unanswerable, self.unsure], sort_keys=True)
        return hashlib.sha256(data.encode("utf-8")).hexdigest()[:12]

    def to_toml(self) -> str:
        """Return the text of a file that `read_coefficients` reads."""
        parts = [f"{key} = {json.dumps(value)}" for key, value in self.provenance.items()]
        lines = ["# Written by: python -m ragkit.judging.calibrate", "[provenance]", *parts]
        tables = {f"models.{kind}": self.models[kind] for kind in MODELS}
        tables |= {"unanswerable": self.unanswerable, "unsure": self.unsure}
        for name, table in tables.items():
            lines += ["", f"[{name}]", *(f"{key} = {value!r}" for key, value in table.items())]
        return "\n".join(lines) + "\n"


def _check(table, names, what: str) -> None:
    if not isinstance(table, Mapping) or set(table) != set(names):
        raise DataError(f"{what} should give {', '.join(names)}, found {table!r}")
    for name, value in table.items():
        if type(value) is not float or not math.isfinite(value):
            raise DataError(f"{what}: {name} should be a finite number, found {value!r}")


@cache
def read_coefficients(path: Path = COEFFICIENTS) -> Coefficients:
    """Read coefficients, by default those of the package; `DataError` if the file has none."""
    try:
        data = tomllib.loads(read_text(Path(path)))
        models = data.get("models")
        if not isinstance(models, dict):
            raise DataError("expected the table models")
        tables = (data.get(name, {}) for name in ("unanswerable", "unsure", "provenance"))
        return Coefficients(models, *tables)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path}: not a file of coefficients ({error})") from None
    except DataError as error:
        raise DataError(f"{path}: {error.message}", error.hint) from None


class OfflineJudge(Judge):
    """A judge of correctness and facts that needs no model.

    Two more kinds are **unvalidated**, because no verdicts were available to compare them with,
    and the reason of each such verdict says so. `factuality` is the probability of correctness;
    `context_recall` is the mean, over the gold answer's sentences, of the weighted share of their
    words that the context has.

    The probability that an answer is correct is multiplied by the probability that it is no
    attack on the judge (the right answer taken back, hedged, hidden among others, or its words
    without their order). One half or more is a yes. A verdict is unsure if its probability is
    within the fitted margin of one half. A fact that is a rule for the answer ("must not claim
    that ...") is judged like any other fact, which is wrong for a prohibition.

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

    def describe(self, kinds: Sequence[str]) -> dict[str, Any]:
        return {"name": self.name, "coefficients": self.coefficients.digest}

    def judge(self, tasks: Sequence[Task], *, repeat: int = 1, first: int = 0) -> list[Verdict]:
        checks.whole(repeat, "repeat")
        return [
            self._verdict(task, value, repeat)
            for task, value in zip(tasks, self.probability(tasks), strict=True)
        ]

    def probability(self, tasks: Sequence[Task]) -> list[float]:
        """Return the probability of a yes on each task; of an unvalidated kind, its value."""
        self.need(*(task.kind for task in tasks))
        return [self._probability(task) for task in tasks]

    def _verdict(self, task: Task, value: float, repeat: int) -> Verdict:
        if task.kind in UNVALIDATED:
            reason = f"unvalidated {task.kind.replace('_', ' ')}; {_explained(task)}"
            return combine(task.kind, [value] * repeat, [reason] * repeat, self.name)
        unsure = abs(value - THRESHOLD) < self.coefficients.unsure["margin"]
        reason = f"{_explained(task)}; probability {value:.2f}{' (unsure)' * unsure}"
        yes = [value >= THRESHOLD] * repeat
        return combine(
            task.kind, yes, [reason] * repeat, self.name, scores=[value] * repeat, unsure=unsure
        )

    def _probability(self, task: Task) -> float:
        if task.kind == "context_recall":
            return _recall(task.fields["gold"], task.fields["context"])
        kind = "correctness" if task.kind == "factuality" else task.kind
        if not parse(bare(task.fields["answer"])).tokens:
            return 0.0
        if asks_abstention(_wanted(task)):
            return self.coefficients.unanswerable[ignorance(bare(task.fields["answer"]))]
        value = self._regression(kind, features(task))
        if kind == "correctness":
            value *= 1 - self._regression("attack", attack_features(task))
        return value

    def _regression(self, name: str, found: Mapping[str, float]) -> float:
        model = self.coefficients.models[name]
        logit = math.fsum([model["intercept"], *(model[key] * found[key] for key in found)])
        return 1 / (1 + math.exp(-max(-50.0, min(50.0, logit))))


def _wanted(task: Task) -> str:
    return task.fields["fact" if task.kind == "fact" else "gold"]


def features(task: Task) -> dict[str, float]:
    """Return the features of a task: see `ragkit.judging.features.against`."""
    return against(task.fields["question"], _wanted(task), bare(task.fields["answer"]))


def attack_features(task: Task) -> dict[str, float]:
    """Return the features of an attack: see `ragkit.judging.features.attacking`."""
    return attacking(task.fields["question"], _wanted(task), bare(task.fields["answer"]))


def ignorance(answer: str) -> str:
    """Return where an answer says that it does not know: a key of `IGNORANCE`."""
    if abstains(answer):
        return "opening"
    return "later" if cues(answer, "abstention") else "never"


def _recall(gold: str, context: str) -> float:
    have = parse(context).words
    parts = [coverage(parse(part).words, have) for part in sentences(gold)]
    return math.fsum(parts) / len(parts) if parts and have else 0.0


def _explained(task: Task) -> str:
    """Return in words what the wanted text and the given one have in common."""
    gold, fields = _wanted(task), task.fields
    given = fields["context"] if task.kind == "context_recall" else bare(fields["answer"])
    want, have, asked = parse(gold), parse(given), parse(fields["question"])
    what = "fact" if task.kind == "fact" else "gold answer"
    if not have.tokens:
        return "nothing to judge: no words"
    if asks_abstention(gold) and task.kind != "context_recall":
        where = IGNORANCE[ignorance(given)]
        return f"the question counts as unanswerable; the answer {where}"
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
    if task.kind != "context_recall":
        said = {"abstention": "says that something is not known", "retraction": "takes back"}
        said["hedge"] = "leaves several answers open"
        parts += [words for kind, words in said.items() if cues(given, kind) > cues(gold, kind)]
    return "; ".join(parts)
