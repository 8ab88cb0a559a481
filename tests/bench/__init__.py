"""Benchmarks: each compares ragkit with a named peer within one process and prints the ratio.

A module `tests/bench/bench_NAME.py` has a function `run()` that yields `Row`s. `make bench` runs
them all, `python -m tests.bench NAME ...` some.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple


class Row(NamedTuple):
    """One line of the table: what was measured, with its size ("homogenization, 6,221 x 384").

    `ours` and `peer` are the two sides, in `unit`. `value` is the number that the target speaks
    of, which it should reach or, unless `at_least`, not exceed.
    """

    what: str
    ours: float
    peer: float
    peer_name: str
    value: float
    target: float
    at_least: bool = True
    unit: str = "s"

    @property
    def reached(self) -> bool:
        return self.value >= self.target if self.at_least else self.value <= self.target


def beside(what: str, ours: float, peer: float, name: str, target: float) -> Row:
    """Return the row of seconds beside a peer's; at least `target` times as fast is wanted."""
    return Row(what, ours, peer, name, peer / ours, target)


def least(what: str, value: float, target: float, unit: str = "", name: str = "bound") -> Row:
    """Return the row of a number without a peer that should be at least `target`."""
    return Row(what, value, math.nan, name, value, target, True, unit)


def most(what: str, value: float, target: float, unit: str = "s", name: str = "bound") -> Row:
    """Return the row of a number without a peer that should be at most `target`."""
    return Row(what, value, math.nan, name, value, target, False, unit)


def timed(call: Callable, repeats: int = 1) -> tuple[float, Any]:
    """Return the seconds of the quickest of some calls, and what the last one returns."""
    best, value = math.inf, None
    for _ in range(repeats):
        start = perf_counter()
        value = call()
        best = min(best, perf_counter() - start)
    return best, value
