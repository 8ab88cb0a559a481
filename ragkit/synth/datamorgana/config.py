"""Which categories are drawn, how often, and which exclude one another (LiveRAG, Table 1)."""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from ragkit.errors import DataError, did_you_mean
from ragkit.files import read_text
from ragkit.synth.streams import Stream

DEFAULT = Path(__file__).parent / "liverag.toml"
SLACK = 1e-6  # what sums of probabilities may be off by
Criterion = Literal[
    "factuality", "interest", "credibility", "toxicity", "sexuality", "freshness"
]  # LiveRAG, section 2.1
Share = Annotated[float, Field(ge=0, le=1)]
Score = Annotated[int, Field(ge=1, le=5)]
Count = Annotated[int, Field(ge=1)]
Name = Annotated[str, Field(min_length=1)]
part = checked(frozen=True, config=ConfigDict(extra="forbid"))  # of a configuration's file


@part
class _Kind:
    probability: Share
    description: str = ""
    documents: Literal[1, 2] = 1
    words: tuple[Count, Count] | None = None


@dataclass(frozen=True)
class Category(_Kind):
    """A category: its questions need one or two `documents`, and have `words[0]` to `[1]` words."""

    name: str = ""


@part
class Limit:
    """The scores that pass."""

    at_least: Score = 1
    at_most: Score = 5


@part
class Sampling:
    """The words of a document, and how many documents a subtopic's query brings in."""

    min_words: Count = 40
    max_words: Count = 2000
    per_subtopic: Count = 25


@part
class _Categorization:
    name: Name
    categories: Annotated[dict[str, _Kind], Field(min_length=1)]


@part
class _File:
    """What a configuration's file may hold."""

    categorization: Annotated[list[_Categorization], Field(min_length=1)]
    impossible: list[dict[str, str | list[str]]] = field(default_factory=list)
    sampling: Sampling = Sampling()
    filters: dict[Criterion, Limit] = field(default_factory=dict)


@dataclass(frozen=True)
class Config:
    """A checked configuration."""

    path: str
    categorizations: dict[str, tuple[Category, ...]]
    impossible: tuple[tuple[dict[str, frozenset[str]], str], ...]  # what excludes what, and why
    sampling: Sampling
    filters: dict[str, Limit]

    @property
    def digest(self) -> str:
        """SHA-256 of what is configured, wherever the file lies."""
        content = {name: value for name, value in asdict(self).items() if name != "path"}
        text = json.dumps(content, sort_keys=True, default=sorted)
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    @property
    def table(self) -> pd.DataFrame:
        """The categories: categorization, category, probability, documents, description, low, high.

        `low` and `high` are the words of a question, missing if any number will do.
        """
        rows = [
            (name, c.name, c.probability, c.documents, c.description, *(c.words or (None, None)))
            for name, choices in self.categorizations.items()
            for c in choices
        ]
        columns = "categorization category probability documents description low high"
        return pd.DataFrame(rows, columns=columns.split())

    @property
    def excluded(self) -> pd.DataFrame:
        """The combinations that are never drawn, each with its reason: never together, reason."""
        rows = [
            (" and ".join(" or ".join(sorted(labels)) for labels in rule.values()), reason)
            for rule, reason in self.impossible
        ]
        return pd.DataFrame(rows, columns=["never together", "reason"])

    def draw(self, stream: Stream) -> dict[str, str]:
        """Return one category of each categorization, none of which exclude one another."""
        cells, cumulated = self._joint
        point = stream.below(cumulated[-1])
        cell = cells[int(np.searchsorted(cumulated, point, side="right"))]
        return dict(zip(self.categorizations, cell, strict=True))

    def documents(self, categories: dict[str, str]) -> int:
        """Return how many documents a question of these categories needs."""
        return max(category.documents for _, category in self.chosen(categories))

    def chosen(self, categories: dict[str, str]) -> list[tuple[str, Category]]:
        """Return the drawn categories, each with the name of its categorization."""
        return [
            (name, category)
            for name, choices in self.categorizations.items()
            for category in choices
            if category.name == categories[name]
        ]

    def described(self, categories: dict[str, str]) -> list[str]:
        """Return the drawn categories as lines of a prompt."""
        return [f"- {name}: {c.name} ({c.description})" for name, c in self.chosen(categories)]

    def of_two(self, categories: dict[str, str]) -> str:
        """Return what the drawn categories say of a question that needs two documents."""
        return "; ".join(c.description for _, c in self.chosen(categories) if c.documents == 2)

    @cached_property
    def _joint(self) -> tuple[list[tuple[str, ...]], np.ndarray]:
        """The allowed combinations and their cumulated weights, as whole numbers.

        The joint distribution nearest to independence that has the configured probabilities and
        no excluded combination, by iterative proportional fitting (Deming and Stephan 1940).
        """
        names, parts = list(self.categorizations), self.categorizations.values()
        choices = [[c.name for c in part] for part in parts]
        wanted = [np.array([c.probability for c in part]) for part in parts]
        joint = np.ones([len(part) for part in choices])
        for rule, _ in self.impossible:
            barred = (rule.get(name, part) for name, part in zip(names, choices, strict=True))
            pairs = zip(choices, barred, strict=True)
            joint[np.ix_(*(np.isin(part, list(own)) for part, own in pairs))] = 0
        for _ in range(2000):
            worst = 0.0
            for axis, share in enumerate(wanted):
                now = _margin(joint, axis)
                worst = max(worst, float(np.abs(now - share).max()))
                factor = np.divide(share, now, out=np.zeros_like(share), where=now > 0)
                joint = joint * factor.reshape([-1 if a == axis else 1 for a in range(joint.ndim)])
            if worst < SLACK:
                break
        else:
            got = np.concatenate([_margin(joint, axis) for axis in range(joint.ndim)])
            cells = [(name, c) for name, part in self.categorizations.items() for c in part]
            off = [abs(g - c.probability) for g, (_, c) in zip(got, cells, strict=True)]
            name, c = cells[worst := int(np.argmax(off))]
            said = f"{name} = {c.name} would get {got[worst]:.3f} instead of {c.probability:.3f}"
            raise DataError(
                f"{self.path}: the probabilities cannot hold together with what [[impossible]] "
                f"excludes: {said}",
                "lower the probability of one of the categories that exclude one another",
            )
        # Whole numbers, so that rounding in the last bit cannot change a draw.
        weights = np.rint(joint.ravel() * 2**40).astype(np.int64)
        cells = [cell for cell, w in zip(product(*choices), weights, strict=True) if w]
        return cells, np.cumsum(weights[weights > 0])


def _margin(joint: np.ndarray, axis: int) -> np.ndarray:
    return joint.sum(axis=tuple(a for a in range(joint.ndim) if a != axis))


def load_config(path: str | Path | None = None) -> Config:
    """Read and check a configuration; without a path, LiveRAG's.

    Raises `DataError` if the file is not TOML, has a name or a value that it may not have,
    probabilities do not add up to 1, or excluded combinations leave no way to keep them.

    >>> config = load_config()
    >>> config.table[["categorization", "category", "probability"]].head(2)
      categorization category  probability
    0    Answer Type  factoid         0.27
    1    Answer Type   yes/no         0.13
    >>> config.excluded.columns.tolist()
    ['never together', 'reason']
    """
    path = Path(path or DEFAULT)
    try:
        raw = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path}: not TOML ({error})") from None
    try:
        found = TypeAdapter(_File).validate_json(json.dumps(raw, default=str), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part + 1 if type(part) is int else part) for part in first["loc"])
        said = first["msg"].removesuffix(".").replace("Input should be", "should be")
        raise DataError(f"{path}: {where}: {said}; found {first['input']!r:.80}") from None
    categorizations: dict[str, tuple[Category, ...]] = {}
    for own in found.categorization:
        if own.name in categorizations:
            raise DataError(f"{path}: the categorization {own.name!r} is there twice")
        kinds = own.categories.items()
        categorizations[own.name] = tuple(Category(**asdict(kind), name=k) for k, kind in kinds)
        total = math.fsum(kind.probability for _, kind in kinds)
        if abs(total - 1) > SLACK:
            raise DataError(
                f"{path}: the probabilities of {own.name!r} add up to {total:.6g}, not to 1",
                f"change one of them by {1 - total:+.6g}",
            )
    impossible = tuple(
        _excluded(rule, f"{path}: impossible.{number}", categorizations)
        for number, rule in enumerate(found.impossible, 1)
    )
    config = Config(str(path), categorizations, impossible, found.sampling, found.filters)
    config._joint  # noqa: B018  (a contradiction is told now, not at the first question)
    return config


def _excluded(rule: dict, where: str, categorizations: dict[str, tuple[Category, ...]]):
    """Return the categories that exclude one another, and why."""
    found = {}
    for name, labels in rule.items():
        if name != "reason":
            _known(name, categorizations, f"{where}: no categorization")
            labels = [labels] if isinstance(labels, str) else labels
            for label in labels:
                own = [category.name for category in categorizations[name]]
                _known(label, own, f"{where}: {name}: no category")
            found[name] = frozenset(labels)
    if len(found) < 2 or not isinstance(rule.get("reason"), str):
        raise DataError(f"{where}: should name categories of two categorizations, and a reason")
    return found, rule["reason"]


def _known(name: str, known, said: str) -> None:
    if name not in known:
        raise DataError(f"{said} {name!r}", did_you_mean(name, list(known)))
