"""Random numbers by name: the same seed and name give the same draws, whatever was drawn before."""

from __future__ import annotations

import random
from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


def digest128(*names: object) -> int:
    """Return 128 bits that depend on the names alone, not on Python's hash seed."""
    text = "/".join(map(str, names))
    return int.from_bytes(blake2b(text.encode(), digest_size=16).digest(), "big")


class Stream:
    """Independent draws for one thing, named by the seed and more, such as `(7, "customer", 12)`.

    Only `random.Random.random` is used, whose sequence for a seed is the same in every Python version.

    >>> draws = Stream(7, "customer", 12)
    >>> draws.below(6), Stream(7, "customer", 12).below(6)
    (3, 3)
    """

    __slots__ = ("draw",)

    def __init__(self, *names: object):
        self.draw = random.Random(digest128(*names)).random

    def below(self, n: int) -> int:
        """Return an integer from 0 to n - 1."""
        return int(self.draw() * n)

    def between(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        return low + int(self.draw() * (high - low + 1))

    def chance(self, p: float) -> bool:
        return self.draw() < p

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self.draw() * len(items))]

    def sample(self, items: Sequence[T], k: int) -> list[T]:
        """Return k different items, in random order; all of them if there are fewer."""
        pool = list(items)
        n = len(pool)
        k = min(k, n)
        for i in range(k):
            j = i + int(self.draw() * (n - i))
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:k]

    def weighted(self, items: Sequence[T], weights: Sequence[float]) -> T:
        point = self.draw() * sum(weights)
        for item, weight in zip(items, weights, strict=True):
            point -= weight
            if point < 0:
                return item
        return items[-1]
