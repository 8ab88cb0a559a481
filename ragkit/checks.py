"""Checks of options, each a sentence that names the option, what was expected and what was found."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Integral, Real

from ragkit.errors import UsageError, did_you_mean


def whole(value, name: str, *, least: int | None = 1, most: int | None = None) -> int:
    """Return `value` as an int.

    Raises `UsageError` if it is not a whole number (a bool is not one), or out of range.

    >>> whole(3, "k", most=5)
    3
    >>> whole(9, "k", most=5)
    Traceback (most recent call last):
        ...
    ragkit.errors.UsageError: k should be a whole number from 1 to 5, found 9
    """
    return int(_inside(value, name, Integral, "a whole number", least, most))


def number(value, name: str, *, least: float | None = None, most: float | None = None) -> float:
    """Return `value` as a float.

    Raises `UsageError` if it is not a finite number (a bool is not one), or out of range.

    >>> number(0.5, "level", least=0, most=1)
    0.5
    """
    return float(_inside(value, name, Real, "a number", least, most))


def _inside(value, name: str, kind: type, words: str, least, most):
    low, high = (-math.inf if least is None else least), (math.inf if most is None else most)
    fine = isinstance(value, kind) and not isinstance(value, bool) and math.isfinite(value)
    if fine and low <= value <= high:
        return value
    if least is not None and most is not None:
        words += f" from {least:,} to {most:,}"
    elif least is not None or most is not None:
        words += f" of at least {least:,}" if most is None else f" of at most {most:,}"
    raise UsageError(f"{name} should be {words}, found {value!r}")


def choice(value, name: str, known: Iterable[str]) -> str:
    """Return `value` if it is one of the known names.

    Raises `UsageError` otherwise; the hint names the nearest known name.

    >>> choice("bm52", "retriever", ["bm25", "dense"])
    Traceback (most recent call last):
        ...
    ragkit.errors.UsageError: no retriever 'bm52'
      hint: did you mean 'bm25'?
    """
    known = list(known)
    if not isinstance(value, Hashable) or value not in known:  # a frame has no truth value
        raise UsageError(f"no {name} {value!r:.80}", did_you_mean(value, known))
    return value


def options(given: Mapping, known: Iterable[str], where: str) -> None:
    """Raise `UsageError` if `given` has a key that is not known; the hint names the nearest one.

    >>> options({"deph": 20}, ["depth", "k"], "rerank")
    Traceback (most recent call last):
        ...
    ragkit.errors.UsageError: no option of rerank 'deph'
      hint: did you mean 'depth'?
    """
    known = list(known)
    for name in given:
        choice(name, f"option of {where}", known)


def strings(values, name: str) -> Sequence[str]:
    """Return `values` if they are several strings.

    Raises `UsageError` if it is one string, holds something else, or a string is not valid Unicode;
    the message gives the position, from 1.

    >>> strings("a word", "texts")
    Traceback (most recent call last):
        ...
    ragkit.errors.UsageError: texts should be several strings, found one
      hint: put it into a list
    """
    if isinstance(values, str):
        raise UsageError(f"{name} should be several strings, found one", "put it into a list")
    for position, value in enumerate(values, start=1):
        if not isinstance(value, str):
            raise UsageError(f"{name}: number {position} should be a string, found {value!r:.80}")
        try:
            value.isascii() or value.encode()
        except UnicodeEncodeError as error:
            raise UsageError(
                f"{name}: number {position} is not valid Unicode: half a surrogate pair at "
                f"character {error.start + 1}"
            ) from None
    return values
