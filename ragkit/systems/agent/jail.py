"""Files and directories below one folder, reached so that no name leads out of it.

Every path is walked component by component from a directory that is held open, each opened
relative to the one before and none through a symbolic link (`openat` with `O_NOFOLLOW`). So a
link, also one that is created while a command runs, leads nowhere, and a folder that is renamed
or replaced meanwhile does not move the root. What is neither a regular file nor a directory
does not exist here; a file with a second hard link, or a directory on another device, is not
opened, since both can be another's.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ragkit.errors import DataError, UsageError
from ragkit.systems.agent.line import Refused, Word
from ragkit.systems.agent.patterns import Wildcard

DEEPEST = 64  # directories within directories: each holds a descriptor
BLOCK = 1 << 18  # bytes; a line that is longer counts as several
MOST_ENTRIES = 2_000_000  # of one directory: their names are held
MOST_PATHS = 2_000  # that one wildcard may stand for
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class TimeUp(Exception):
    """The time of a command is over."""


class TooMuch(Exception):
    """A command would hold more in memory than it may."""


class Budget:
    """What one command line may take: seconds until `deadline`, and bytes held at once."""

    def __init__(self, seconds: float, memory: int):
        self.deadline = time.monotonic() + seconds
        self.memory = memory

    def check(self) -> None:
        if time.monotonic() > self.deadline:
            raise TimeUp

    def hold(self, size: int) -> None:
        self.memory -= size
        if self.memory < 0:
            raise TooMuch


@dataclass(frozen=True)
class Place:
    """A path as it was written (`shown`) and as its components below the root."""

    shown: str
    parts: tuple[str, ...]
    folder_only: bool = False  # written with a slash at its end


@dataclass(frozen=True)
class Entry:
    """What a directory holds: a `name`, its `shown` path, and `kind` "f" or "d"."""

    name: str
    shown: str
    kind: str
    depth: int
    parent: int  # the directory's descriptor, open until the next entry is asked for


def place(text: str) -> Place:
    """Return the place that a path names.

    Raises
    ------
    Refused
        If the path is empty or absolute, or climbs with `..`.
    """
    if not text:
        raise Refused("a path is empty")
    if text.startswith("/"):
        # The path is not repeated: what is outside leaves no trace in an output.
        raise Refused("an absolute path is outside", "paths are relative to the corpus, as in .")
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise Refused("a path may not climb with ..", "paths are relative to the corpus")
    return Place(text, tuple(parts), text.endswith("/"))


def printable(name: str) -> bytes:
    """Return a name as bytes, with ? for control characters, as `ls` shows it on a terminal."""
    if name.isprintable():
        return name.encode()
    plain = "".join("?" if ord(char) < 32 or 127 <= ord(char) < 160 else char for char in name)
    return plain.encode("utf-8", "surrogateescape")


def joined(shown: str, name: str) -> str:
    return shown + name if not shown or shown.endswith("/") else f"{shown}/{name}"


class Jail:
    """The files below `folder`, which is opened once."""

    def __init__(self, folder: str | os.PathLike):
        self.folder = Path(folder)
        if os.open not in os.supports_dir_fd or os.scandir not in os.supports_fd:
            raise UsageError("this system cannot open files relative to a directory")
        try:
            self.root = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise DataError(
                f"{self.folder}: not a folder to look into ({error.strerror})"
            ) from None
        self.device = os.fstat(self.root).st_dev

    def close(self) -> None:
        os.close(self.root)

    def step(self, name: str, parent: int) -> int:
        """Open the directory `name` of `parent`."""
        number = os.open(name, _DIRECTORY, dir_fd=parent)
        if os.fstat(number).st_dev != self.device:
            os.close(number)
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return number

    @contextmanager
    def directory(self, parts: tuple[str, ...]) -> Iterator[int]:
        """Open the directory at `parts`, for as long as the block lasts."""
        if len(parts) > DEEPEST:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        number = os.dup(self.root)
        try:
            for part in parts:
                inner = self.step(part, number)
                os.close(number)
                number = inner
            yield number
        finally:
            os.close(number)

    def kind(self, where: Place) -> str:
        """Return "f" or "d".

        Raises
        ------
        OSError
            If there is no such file or directory, or it is of another kind.
        """
        if not where.parts:
            return "d"
        with self.directory(where.parts[:-1]) as parent:
            mode = os.stat(where.parts[-1], dir_fd=parent, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            return "d"
        if not stat.S_ISREG(mode):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if where.folder_only:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return "f"

    def size(self, name: str, parent: int) -> int:
        return os.stat(name, dir_fd=parent, follow_symlinks=False).st_size

    @contextmanager
    def file(self, name: str, parent: int) -> Iterator[tuple[int, int]]:
        """Open the regular file `name` of `parent`: its descriptor, and its size at this time."""
        # Looking first spares devices from being opened; looking again makes it certain.
        if not stat.S_ISREG(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        number = os.open(name, _FILE, dir_fd=parent)
        try:
            found = os.fstat(number)
            if not stat.S_ISREG(found.st_mode):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            if found.st_nlink > 1:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            yield number, found.st_size
        finally:
            os.close(number)

    def read(self, name: str, parent: int, budget: Budget) -> Iterator[bytes]:
        """Yield the bytes of a file, as many as it had when it was opened."""
        with self.file(name, parent) as (number, left):
            while left > 0:
                budget.check()
                block = os.read(number, min(left, BLOCK))
                if not block:
                    return
                left -= len(block)
                yield block

    def entries(self, parent: int, budget: Budget) -> list[tuple[str, str]]:
        """Return (name, kind) of a directory's files and directories, by name."""
        found = []
        with os.scandir(parent) as scan:
            for entry in scan:
                budget.check()
                if entry.is_dir(follow_symlinks=False):
                    found.append((entry.name, "d"))
                elif entry.is_file(follow_symlinks=False):
                    found.append((entry.name, "f"))
                if len(found) > MOST_ENTRIES:
                    raise TooMuch
        found.sort(key=lambda pair: os.fsencode(pair[0]))
        return found

    def walk(
        self,
        where: Place,
        budget: Budget,
        complain,
        *,
        shown: str | None = None,
        descend=lambda entry: True,
    ) -> Iterator[Entry]:
        """Yield what is below a directory, each directory before what it holds.

        `descend(entry)` says whether to look into a directory; `complain(path, error)` is told
        what could not be read.
        """
        with self.directory(where.parts) as number:
            start = where.shown if shown is None else shown
            yield from self._below(number, start, 1, budget, complain, descend)

    def _below(self, parent, shown, depth, budget, complain, descend) -> Iterator[Entry]:
        for name, kind in self.entries(parent, budget):
            budget.check()
            entry = Entry(name, joined(shown, name), kind, depth, parent)
            yield entry
            if kind != "d" or not descend(entry):
                continue
            try:
                if depth >= DEEPEST:
                    raise OSError(errno.ENAMETOOLONG, "nested too deep, not looked into")
                inner = self.step(name, parent)
            except OSError as error:
                complain(entry.shown, error)
                continue
            try:
                yield from self._below(inner, entry.shown, depth + 1, budget, complain, descend)
            except OSError as error:
                complain(entry.shown, error)
            finally:
                os.close(inner)

    def expand(self, word: Word, budget: Budget) -> list[Place]:
        """Return the places that a word names: one, or those that its wildcards fit, by name.

        Raises
        ------
        Refused
            If a path would lead out, or a wildcard fits more than 2,000.
        """
        plain = place(word.text)
        if word.glob is None:
            return [plain]
        found = [("./" if word.text.startswith("./") else "", ())]
        for part in _components(word.glob):
            found = list(self._fitting(found, part, budget))
        if word.text.endswith("/"):
            found = [(f"{shown}/", parts) for shown, parts in found]
            places = [Place(shown, parts, True) for shown, parts in found]
            places = [one for one in places if self._is_directory(one)]
        else:
            places = [Place(shown, parts) for shown, parts in found]
        return places or [plain]

    def _is_directory(self, where: Place) -> bool:
        try:
            return self.kind(where) == "d"
        except OSError:
            return False

    def _fitting(self, found, part: str, budget: Budget):
        wildcard, count = Wildcard(part), 0
        for shown, parts in found:
            try:
                with self.directory(parts) as number:
                    names = [name for name, _ in self.entries(number, budget)]
            except OSError:
                continue  # a file, or gone meanwhile: the wildcard does not reach below it
            for name in names:
                budget.check()
                if (not name.startswith(".") or wildcard.dotted) and wildcard.matches(name):
                    count += 1
                    if count > MOST_PATHS:
                        raise Refused(
                            f"a wildcard stands for more than {MOST_PATHS:,} paths",
                            "name a directory, or use find or grep -r with --include",
                        )
                    budget.hold(500)
                    yield joined(shown, name), (*parts, name)


def _components(glob: str) -> list[str]:
    return [part for part in glob.split("/") if part not in ("", ".")]
