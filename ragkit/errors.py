"""What can go wrong, and how ragkit says it.

Every error that a user can cause or meet is a `RagkitError`: one sentence that names the
file, line or column and what was expected, and, where there is one, a hint that can be typed.
The command line prints it without a traceback and exits with status 1.

    RagkitError
    ├── UsageError          an unknown name, an option out of range       (also a ValueError)
    ├── DataError           a file or frame that is not what it should be (also a ValueError)
    │   └── HashMismatch    the bytes are not the registered ones
    ├── MissingData         a file that is neither in the mirror nor in the cache
    ├── FetchError          the network, the hub or the disk said no
    ├── NotebookError       a notebook that cannot start, or a cell that failed
    └── ModelError          a model, its weights or its endpoint cannot be used
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class RagkitError(Exception):
    """Base class. `str(error)` is the message, followed by the hint on its own line.

    The message is one sentence: what is wrong, where, and what was expected; the hint, if there is
    one, says what to do about it, if possible as a command.

    >>> error = RagkitError("no site", "make report")
    >>> print(error)
    no site
      hint: make report
    """

    def __init__(self, message: str, hint: str | None = None):
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


class UsageError(RagkitError, ValueError):
    """An unknown name or an option out of range."""


class DataError(RagkitError, ValueError):
    """A file or a frame that does not hold what it should."""


class HashMismatch(DataError):
    """A file whose bytes are not the registered ones."""


class MissingData(RagkitError):
    """A file that is not at hand."""


class FetchError(RagkitError):
    """A download that did not succeed."""


class NotebookError(RagkitError):
    """A notebook that could not start, or a cell that failed."""


class ModelError(RagkitError):
    """A model, its weights or its endpoint that cannot be used."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint for an unknown `name`: the nearest known one, or all of them.

    >>> did_you_mean("bm52", ["bm25", "dense"])
    "did you mean 'bm25'?"
    """
    known = sorted(map(str, known))
    by_lower = {other.lower(): other for other in known}
    close = get_close_matches(str(name).lower(), by_lower, n=1)
    if close:
        return f"did you mean {by_lower[close[0]]!r}?"
    return "known: " + ", ".join(known) if known else "nothing is registered yet"
