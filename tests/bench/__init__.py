"""Benchmarks: each compares ragkit with a named peer within one process and prints the ratio.

A module `tests/bench/bench_NAME.py` has a function `run()` that yields `Row`s. `make bench` runs
them all, `python -m tests.bench NAME ...` some.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Parameters
    ----------
    what : str
        What was measured, with its size: "homogenization, 6,221 x 384".
    ours, peer : float
        The two sides, in `unit`; `peer` is NaN where only a bound is set.
    peer_name : str
        Whom we are compared with, or what the bound is about.
    value : float
        The number that the target speaks of: usually the ratio peer / ours.
    target : float
    at_least : bool
        Whether `value` should be at least (True) or at most (False) `target`.
    unit : str
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
