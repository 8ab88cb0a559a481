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

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from ragkit import store
from ragkit.errors import DataError, UsageError, did_you_mean
from ragkit.files import read_text
from ragkit.judging.features import ATTACK, FEATURES, against, attacking, conflicts, coverage, idle
from ragkit.judging.inputs import strip_citations
from ragkit.judging.judges import Judge, ModelJudge, Task, Verdict
from ragkit.judging.offline_text import abstains, asks_abstention, cues, parse, sentences

COEFFICIENTS = Path(__file__).with_suffix(".toml")
CALIBRATED = ("correctness", "fact")
UNVALIDATED = ("factuality", "context_recall")
THRESHOLD = 0.5
# An answer is padded if it has this share of what is wanted, among so many idle sentences or more:
# chosen on the attacks that take part in the calibration.
COVERED, IDLE = 0.85, 2
# Where an answer says that it has none, and how that reads in a reason.
IGNORANCE = {
    "opening": "says so in its opening",
    "later": "says so after its opening",
    "never": "never says so",
}
# The tables of coefficients: three regressions; the probability that an answer which says there
# (or never) that it has none counts as correct where the gold answer says that there is none; and
# the margin around one half within which a probability is unsure.
TABLES = {
    "correctness": ("intercept", *FEATURES),
    "fact": ("intercept", *FEATURES),
    "attack": ("intercept", *ATTACK),
    "unanswerable": tuple(IGNORANCE),
    "unsure": ("margin",),
}

bare = lru_cache(maxsize=1 << 16)(strip_citations)


@dataclass(frozen=True)
class Coefficients:
    """The fitted coefficients of the offline judge: `TABLES`, and the data of the fit."""

    tables: Mapping[str, Mapping[str, float]]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        for name, keys in TABLES.items():
            table = self.tables.get(name)
            if not isinstance(table, Mapping) or set(table) != set(keys):
                raise DataError(f"the table {name} should give {', '.join(keys)}, found {table!r}")
            for key, value in table.items():
                if type(value) is not float or not math.isfinite(value):
                    raise DataError(f"{name}: {key} should be a finite number, found {value!r}")

    @property
    def digest(self) -> str:
        """A short name for these numbers."""
        return store.digest({name: dict(table) for name, table in self.tables.items()})[:12]

    def to_toml(self) -> str:
        """Return the text of a file that `read_coefficients` reads."""
        parts = [f"{key} = {json.dumps(value)}" for key, value in self.provenance.items()]
        lines = ["# Written by: python -m ragkit.judging.calibrate", "[provenance]", *parts]
        for name in TABLES:
            rows = (f"{key} = {value!r}" for key, value in self.tables[name].items())
            lines += ["", f"[{name}]", *rows]
        return "\n".join(lines) + "\n"


@cache
def read_coefficients(path: Path = COEFFICIENTS) -> Coefficients:
    """Read coefficients, by default those of the package; `DataError` if the file has none."""
    try:
        data = tomllib.loads(read_text(Path(path)))
        return Coefficients({name: data.get(name) for name in TABLES}, data.get("provenance", {}))
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path}: not a file of coefficients ({error})") from None
    except DataError as error:
        raise DataError(f"{path}: {error.message}", error.hint) from None


class OfflineJudge(Judge):
    """A judge of correctness and facts that needs no model.

    Two more kinds are **unvalidated**, for lack of verdicts to compare them with, and the reason
    of each such verdict says so: `factuality` is the probability of correctness, `context_recall`
    the mean, over the gold answer's sentences, of the weighted share of words in the context.

    The probability that an answer is correct is multiplied by the probability that it is no
    attack on the judge (the right answer taken back, hedged, hidden among others, or its words
    without their order). One half or more is a yes. A verdict is unsure if its probability is
    within the fitted margin of one half, or if it is a yes to a `padded` answer. A fact that is a
    prohibition ("must not claim that ...") is judged, wrongly, like any other fact.

    The default coefficients are those of the package.

    >>> from ragkit.judging.judges import Task
    >>> tasks = [Task.of("correctness", "Where?", "In Paris.", answer) for answer in ("Paris", "Rome")]
    >>> [verdict.value for verdict in OfflineJudge().judge(tasks)]
    [True, False]
    """

    kinds = frozenset((*CALIBRATED, *UNVALIDATED))
    code = ("ragkit.judging.offline",)

    def __init__(self, coefficients: Coefficients | None = None):
        self.coefficients = read_coefficients() if coefficients is None else coefficients
        own = self.coefficients.digest != read_coefficients().digest
        self.name = f"offline:{self.coefficients.digest}" if own else "offline"

    def describe(self, kinds: Sequence[str]) -> dict[str, Any]:
        return {"name": self.name, "coefficients": self.coefficients.digest}

    def judge(self, tasks: Sequence[Task], number: int = 0) -> list[Verdict]:
        return list(map(self._verdict, tasks, self.probability(tasks)))

    def _verdict(self, task: Task, value: float) -> Verdict:
        reason = _explained(task)
        if task.kind in UNVALIDATED:
            return Verdict(value, f"unvalidated {task.kind.replace('_', ' ')}; {reason}", self.name)
        yes = value >= THRESHOLD
        unsure = abs(value - THRESHOLD) < self.coefficients.tables["unsure"]["margin"]
        unsure |= yes and padded(task)
        reason += f"; probability {value:.2f}{' (unsure)' * unsure}"
        return Verdict(yes, reason, self.name, score=value, unsure=unsure)

    def probability(self, tasks: Sequence[Task]) -> list[float]:
        """Return the probability of a yes on each task; of an unvalidated kind, its value."""
        self.need(*(task.kind for task in tasks))
        return [self._probability(task) for task in tasks]

    def _probability(self, task: Task) -> float:
        if task.kind == "context_recall":
            have = parse(task.fields["context"]).words
            parts = [coverage(parse(p).words, have) for p in sentences(task.fields["gold"])]
            return math.fsum(parts) / len(parts) if parts and have else 0.0
        answer = bare(task.fields["answer"])
        if not parse(answer).tokens:
            return 0.0
        if asks_abstention(wanted(task)):
            return self.coefficients.tables["unanswerable"][ignorance(answer)]
        if task.kind == "fact":
            return self._regression("fact", features(task))
        value = self._regression("correctness", features(task))
        return value * (1 - self._regression("attack", features(task, "attack")))

    def _regression(self, name: str, found: Mapping[str, float]) -> float:
        table = self.coefficients.tables[name]
        logit = math.fsum([table["intercept"], *(table[key] * found[key] for key in found)])
        return 1 / (1 + math.exp(-max(-50.0, min(50.0, logit))))


def wanted(task: Task) -> str:
    """Return the text of a task that an answer is compared with."""
    return task.fields["fact" if task.kind == "fact" else "gold"]


def features(task: Task, model: str = "") -> dict[str, float]:
    """Return the features of a task for the regression of its kind or, if told, "attack"."""
    compared = attacking if model == "attack" else against
    return compared(task.fields["question"], wanted(task), bare(task.fields["answer"]))


def padded(task: Task) -> bool:
    """Return whether an answer has what is wanted among sentences about something else."""
    question, answer = task.fields["question"], bare(task.fields["answer"])
    want = wanted(task)
    found = coverage(parse(want).words, parse(answer).words)
    return task.kind == "correctness" and found >= COVERED and idle(question, want, answer) >= IDLE


def ignorance(answer: str) -> str:
    """Return where an answer says that it does not know: a key of `IGNORANCE`.

    >>> ignorance("I do not know."), ignorance("It is Paris.")
    ('opening', 'never')
    """
    if abstains(answer):
        return "opening"
    return "later" if cues(answer, "abstention") else "never"


def _explained(task: Task) -> str:
    """Return in words what the wanted text and the given one have in common."""
    gold, recall = wanted(task), task.kind == "context_recall"
    given = task.fields["context"] if recall else bare(task.fields["answer"])
    want, have, asked = parse(gold), parse(given), parse(task.fields["question"])
    if not have.tokens:
        return "nothing to judge: no words"
    if asks_abstention(gold) and not recall:
        where = IGNORANCE[ignorance(given)]
        return f"the question counts as unanswerable; the answer {where}"
    what = "fact" if task.kind == "fact" else "gold answer"
    parts = [f"has {100 * coverage(want.words, have.words):.0f} % of the {what}'s words by weight"]
    if want.words - asked.words:
        new = coverage(want.words - asked.words, have.words)
        parts.append(f"{100 * new:.0f} % of those that the question does not have")
    instead = conflicts(want, have, asked)
    absent = want.numbers - asked.numbers - have.numbers - instead
    for label, numbers in (("other numbers in place of", instead), ("no number or date", absent)):
        if numbers:
            parts.append(f"{label} {', '.join(sorted(numbers)[:5])}")
    said = {"abstention": "says that something is not known", "retraction": "takes back"}
    said |= {"hedge": "leaves several answers open"}
    for kind, words in said.items():
        if not recall and cues(given, kind) > cues(gold, kind):
            parts.append(words)
    return "; ".join(parts)


def load_judge(name: str, **options) -> Judge:
    """Return the judge of a name: "offline", "offline:FILE" (own coefficients) or "openai:MODEL".

    The options of a model are those of `ragkit.llm.Client` (such as `ledger`) or a `client`, and
    `prompts` as of `ModelJudge`. Another name raises `UsageError`.

    >>> judge = load_judge("offline")
    >>> judge.verdict("correctness", "What does it cost?", "It costs 10 euros.", "10 euros").value
    True
    """
    scheme, _, rest = str(name).partition(":")
    if scheme == "openai":
        from ragkit.llm import Client

        client, prompts = options.pop("client", None), options.pop("prompts", None)
        return ModelJudge(client or Client(name, **{"ledger": None, **options}), prompts)
    if scheme == "offline":
        return OfflineJudge(read_coefficients(Path(rest)) if rest else None, **options)
    raise UsageError(f"no judge is called {name!r}", did_you_mean(str(name), ("openai", "offline")))
