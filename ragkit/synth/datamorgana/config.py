"""Which categories are drawn, how often, and which exclude one another (LiveRAG, Table 1)."""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np

from ragkit.errors import DataError, did_you_mean
from ragkit.files import read_text
from ragkit.synth.datamorgana.filters import CRITERIA, Limit
from ragkit.synth.streams import Stream

DEFAULT = Path(__file__).parent / "liverag.toml"
SLACK = 1e-6  # what sums of probabilities may be off by
SAMPLING = {"min_words": 40, "max_words": 2000, "per_subtopic": 25}
# What the offline author can do; a model is told the descriptions, whatever the names are.
KNOWN = {
    "Answer Type": (
        "factoid",
        "yes/no",
        "definition",
        "list",
        "explanation",
        "comparison",
        "multi-aspect",
    ),
    "Answer Style": ("concise-answer", "detailed-answer", "unspecified"),
    "Premise": ("direct", "with-premise"),
    "Phrasing": (
        "concise-and-natural",
        "verbose-and-natural",
        "short-search-query",
        "long-search-query",
    ),
    "Linguistic Variation": ("similar-to-document", "distant-from-document"),
    "Politeness": ("polite", "neutral"),
    "Linguistic Correctness": ("correct", "mild-mistakes", "severe-mistakes"),
    "User Persona": ("expert", "novice", "researcher", "journalist"),
}


@dataclass(frozen=True)
class Category:
    name: str
    probability: float
    description: str
    documents: int = 1


@dataclass(frozen=True)
class Config:
    """A checked configuration.

    Parameters
    ----------
    path : str
    categorizations : dict of str to tuple of Category
    impossible : tuple of (dict of str to frozenset of str, str)
        Categories that exclude one another, and why.
    sampling : dict of str to int
    filters : dict of str to Limit
    """

    path: str
    categorizations: dict[str, tuple[Category, ...]]
    impossible: tuple[tuple[dict[str, frozenset[str]], str], ...]
    sampling: dict[str, int]
    filters: dict[str, Limit]

    @property
    def digest(self) -> str:
        """SHA-256 of what is configured, wherever the file lies."""
        content = {name: value for name, value in asdict(self).items() if name != "path"}
        return hashlib.sha256(
            json.dumps(content, sort_keys=True, default=sorted).encode("utf-8")
        ).hexdigest()

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
        names = list(self.categorizations)
        choices = [[c.name for c in self.categorizations[name]] for name in names]
        wanted = [
            np.array([c.probability for c in self.categorizations[name]], float) for name in names
        ]
        joint = np.ones([len(part) for part in choices])
        for rule, _ in self.impossible:
            where = tuple(
                [i for i, c in enumerate(part) if c in rule[name]]
                if name in rule
                else range(len(part))
                for name, part in zip(names, choices, strict=True)
            )
            joint[np.ix_(*where)] = 0
        for _ in range(2000):
            worst = 0.0
            for axis, share in enumerate(wanted):
                others = tuple(a for a in range(len(names)) if a != axis)
                now = joint.sum(axis=others)
                worst = max(worst, float(np.abs(now - share).max()))
                factor = np.divide(share, now, out=np.zeros_like(share), where=now > 0)
                shape = [-1 if a == axis else 1 for a in range(len(names))]
                joint = joint * factor.reshape(shape)
            if worst < SLACK:
                break
        else:
            raise DataError(
                f"{self.path}: the probabilities cannot hold together with what [[impossible]] "
                f"excludes: {self._tightest(names, choices, joint, wanted)}",
                "lower the probability of one of the categories that exclude one another",
            )
        # Whole numbers, so that rounding in the last bit cannot change a draw.
        weights = np.rint(joint.ravel() * 2**40).astype(np.int64)
        cells = [cell for cell, w in zip(product(*choices), weights, strict=True) if w]
        return cells, np.cumsum(weights[weights > 0])

    def _tightest(self, names, choices, joint, wanted) -> str:
        gaps = []
        for axis, share in enumerate(wanted):
            now = joint.sum(axis=tuple(a for a in range(len(names)) if a != axis))
            gaps += [
                (abs(n - s), f"{names[axis]} = {c} would get {n:.3f} instead of {s:.3f}")
                for c, n, s in zip(choices[axis], now, share, strict=True)
            ]
        return max(gaps)[1]


def load_config(path: str | Path | None = None) -> Config:
    """Read and check a configuration; without a path, LiveRAG's.

    Raises
    ------
    DataError
        If the file is no TOML, probabilities do not add up to 1, a name is not known, or
        excluded combinations leave no way to keep the probabilities.
    """
    path = Path(path or DEFAULT)
    try:
        raw = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path}: not TOML ({error})") from None
    _known(raw, ("categorization", "impossible", "sampling", "filters"), f"{path}", "table")
    categorizations: dict[str, tuple[Category, ...]] = {}
    for number, part in enumerate(_list(raw, "categorization", path), 1):
        name = part.get("name")
        if not isinstance(name, str) or not isinstance(part.get("categories"), dict):
            raise DataError(f"{path}: categorization {number} needs a name and categories")
        _known(part, ("name", "categories"), f"{path}: {name}", "field")
        if name in categorizations:
            raise DataError(f"{path}: the categorization {name!r} is there twice")
        categorizations[name] = _categories(name, part["categories"], path)
    if not categorizations:
        raise DataError(f"{path}: no [[categorization]]", f"begin with a copy of {DEFAULT}")
    impossible = tuple(
        _excluded(rule, number, categorizations, path)
        for number, rule in enumerate(_list(raw, "impossible", path), 1)
    )
    sampling = SAMPLING | raw.get("sampling", {})
    _known(sampling, SAMPLING, f"{path}: [sampling]", "setting")
    for name, value in sampling.items():
        if type(value) is not int or value < 1:
            raise DataError(
                f"{path}: [sampling] {name} should be a whole number above 0: {value!r}"
            )
    filters = {}
    _known(raw.get("filters", {}), CRITERIA, f"{path}: [filters]", "criterion")
    for name, limit in raw.get("filters", {}).items():
        filters[name] = Limit.read(limit, f"{path}: [filters] {name}")
    config = Config(str(path), categorizations, impossible, sampling, filters)
    config._joint  # noqa: B018  (a contradiction is told now, not at the first question)
    return config


def offline_only(config: Config) -> None:
    """Raise `DataError` if there is a category that the offline author cannot write."""
    for name in KNOWN:
        if name not in config.categorizations:
            raise DataError(f"{config.path}: no categorization {name!r}, which the author needs")
    for name, choices in config.categorizations.items():
        _known([name], KNOWN, config.path, "categorization", "the offline author knows no")
        for category in choices:
            where = f"{config.path}: {name}"
            _known([category.name], KNOWN[name], where, "category", "the offline author knows no")


def _categories(name: str, raw: dict, path: Path) -> tuple[Category, ...]:
    found = []
    for label, entry in raw.items():
        where = f"{path}: {name}: {label}"
        if not isinstance(entry, dict):
            raise DataError(f"{where}: should be {{ probability = ..., description = ... }}")
        _known(entry, ("probability", "description", "documents"), where, "field")
        p = entry.get("probability")
        if isinstance(p, bool) or not isinstance(p, int | float) or not 0 <= p <= 1:
            raise DataError(f"{where}: the probability should be from 0 to 1, found {p!r}")
        if entry.get("documents", 1) not in (1, 2):
            raise DataError(f"{where}: documents should be 1 or 2, found {entry['documents']!r}")
        found.append(
            Category(label, float(p), entry.get("description", ""), entry.get("documents", 1))
        )
    total = math.fsum(c.probability for c in found)
    if abs(total - 1) > SLACK:
        raise DataError(
            f"{path}: the probabilities of {name!r} add up to {total:.6g}, not to 1",
            f"change one of them by {1 - total:+.6g}",
        )
    return tuple(found)


def _excluded(rule: dict, number: int, categorizations, path: Path):
    where = f"{path}: [[impossible]] {number}"
    reason = rule.get("reason")
    if not isinstance(reason, str):
        raise DataError(f"{where}: no reason")
    found = {}
    for name, labels in rule.items():
        if name == "reason":
            continue
        _known([name], categorizations, where, "categorization")
        labels = [labels] if isinstance(labels, str) else labels
        _known(labels, [c.name for c in categorizations[name]], f"{where}: {name}", "category")
        found[name] = frozenset(labels)
    if len(found) < 2:
        raise DataError(f"{where}: categories of at least two categorizations exclude one another")
    return found, reason


def _list(raw: dict, key: str, path: Path) -> list[dict]:
    value = raw.get(key, [])
    if not isinstance(value, list):
        raise DataError(f"{path}: write [[{key}]], with two brackets")
    return value


def _known(names, known, where: str, what: str, said: str = "no") -> None:
    for name in names:
        if name not in known:
            raise DataError(f"{where}: {said} {what} {name!r}", did_you_mean(name, list(known)))
