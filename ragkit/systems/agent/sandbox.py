"""The sandbox: command lines over a folder that can be read and nothing else.

A command line is taken apart and carried out here, by functions of this package: there is no
shell, no other program, no variable, nothing that writes. See `ragkit.systems.agent.jail` for how paths
are kept inside and `ragkit.systems.agent.patterns` for why no pattern takes exponential time.
"""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass

from ragkit.errors import UsageError
from ragkit.systems.agent.commands import COMMANDS, Desk
from ragkit.systems.agent.jail import Budget, Jail, TimeUp, TooMuch
from ragkit.systems.agent.line import Refused, split

COUNTED = 1 << 26  # bytes: what is left out of an output is counted this far


@dataclass(frozen=True)
class Output:
    """What came of a command line.

    Parameters
    ----------
    text : str
        What a terminal would show: the output, then the messages, then what was left out and why.
        Control characters other than newline and tab are replaced by U+FFFD.
    status : int
        The exit status of the last command; 126 if the line was refused, 124 if its time was over,
        125 if it needed more memory than it may have.
    truncated : bool
        Whether output was left out, for its length, the time or the memory.
    refused : str or None
        Why nothing was run.
    lines_left_out : int
        How many lines at least, where the output was longer than allowed.
    """

    text: str
    status: int
    truncated: bool = False
    refused: str | None = None
    lines_left_out: int = 0


class Sandbox:
    """Run command lines over the files of one folder.

    Parameters
    ----------
    folder : path
        Opened once, when the sandbox is made. It may itself be a symbolic link; those below it
        are not there for any command.
    seconds : float
        What one command line may take.
    output_bytes : int, at least 200
        What one command line may put out, before what is no text is replaced.
    memory_bytes : int
        What one command line may hold, as `sort` and `tail` do.

    Raises
    ------
    DataError
        If `folder` is none, or cannot be opened.
    UsageError
        If an option is out of range.

    Notes
    -----
    Who can write to the folder can change what is read, not where: links, devices, pipes and
    further hard links are passed over. A bind mount of a single file looks like a file of the
    folder.
    """

    def __init__(
        self,
        folder: str | os.PathLike,
        *,
        seconds: float = 30.0,
        output_bytes: int = 16_384,
        memory_bytes: int = 1 << 26,
    ):
        for name, value, least in (
            ("seconds", seconds, 0),
            ("output_bytes", output_bytes, 199),
            ("memory_bytes", memory_bytes, 0),
        ):
            real = isinstance(value, int | float) and not isinstance(value, bool)
            if not real or not least < value < float("inf"):
                raise UsageError(f"{name} should be a number above {least}, found {value!r}")
        self.seconds, self.output_bytes, self.memory_bytes = seconds, output_bytes, memory_bytes
        self._jail = Jail(folder)
        self.close = weakref.finalize(self, self._jail.close)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *exc) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Sandbox({str(self._jail.folder)!r}, seconds={self.seconds:g})"

    def run(self, command_line: str, *, seconds: float | None = None) -> Output:
        """Carry out one command line.

        Parameters
        ----------
        command_line : str
            Commands with their options and paths, joined by |.
        seconds : float, optional
            Less than the sandbox's own seconds, where less is left.

        Returns
        -------
        Output
            Also for whatever is refused: only a line that is no string raises an error.

        Raises
        ------
        UsageError
            If `command_line` is no string, or the sandbox was closed.
        """
        if not isinstance(command_line, str):
            raise UsageError(f"a command line is a string, not {type(command_line).__name__}")
        if not self.close.alive:
            raise UsageError("this sandbox was closed")
        limit = self.seconds if seconds is None else max(min(self.seconds, seconds), 0.0)
        budget = Budget(limit, self.memory_bytes)
        messages: list[str] = []
        kept = _Kept(self.output_bytes)
        status, note = 0, ""
        try:
            stages = []
            for stage in split(command_line):
                name = stage.words[0].text
                if name not in COMMANDS:
                    raise _unknown(name)
                told = None if stage.quiet else messages
                desk = Desk(name, self._jail, budget, told)
                stages.append((desk, COMMANDS[name](stage.words[1:])))
            stream = None
            for desk, command in stages:
                stream = command(desk, stream)
            for chunk in stream:
                budget.check()
                if not kept.add(chunk):
                    break
            status = desk.status
        except Refused as refusal:
            hint = f" ({refusal.hint})" if refusal.hint else ""
            text = _readable(f"refused: {refusal.reason}{hint}\n".encode("utf-8", "replace"))
            return Output(
                text[: self.output_bytes],
                126,
                refused=_readable(refusal.reason.encode("utf-8", "replace")),
            )
        except TimeUp:
            status = 124
            note = f"[stopped after {limit:g} s; name a directory, or search for something rarer]\n"
        except TooMuch:
            status = 125
            note = "[stopped: too much to hold at once; narrow it with grep or head first]\n"
        text = kept.text()
        if messages:
            text += "\n" if text and not text.endswith("\n") else ""
            text += _readable("\n".join(messages).encode("utf-8", "replace"))[:2_000] + "\n"
        left_out = kept.note()
        if note or left_out:
            text += "\n" if text and not text.endswith("\n") else ""
        return Output(
            text + left_out + note, status, bool(note or left_out), None, kept.lines_left_out
        )


class _Kept:
    """The beginning of an output, and how much came after it."""

    def __init__(self, most: int):
        self.most, self.size, self.parts = most, 0, []
        self.bytes_left_out = self.lines_left_out = 0
        self.cut = False

    def add(self, chunk: bytes) -> bool:
        """Keep or count a chunk; return whether more is of interest."""
        room = self.most - self.size
        if not self.cut and len(chunk) <= room:
            self.parts.append(chunk)
            self.size += len(chunk)
            return True
        if not self.cut:
            self.cut = True
            head = b"".join((*self.parts, chunk[:room]))
            whole = head[: head.rfind(b"\n") + 1] or head
            chunk = head[len(whole) :] + chunk[room:]
            self.parts = [whole]
        self.bytes_left_out += len(chunk)
        self.lines_left_out += chunk.count(b"\n")
        return self.bytes_left_out < COUNTED

    def text(self) -> str:
        return _readable(b"".join(self.parts))

    def note(self) -> str:
        if not self.cut:
            return ""
        least = "at least " if self.bytes_left_out >= COUNTED else ""
        return (
            f"[cut: {least}{self.lines_left_out:,} more lines, {self.bytes_left_out:,} bytes; "
            "narrow it with a rarer word, a directory, --include, -l, -m or | head]\n"
        )


_CONTROLS = {
    code: "\ufffd" for code in (*range(32), *range(127, 160)) if code not in (ord("\n"), ord("\t"))
}


def _readable(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").translate(_CONTROLS)


_INSTEAD = {
    "awk": "use cut, grep -o, sort and uniq",
    "bash": "give the command line itself",
    "cd": "give the folder as a path",
    "echo": "nothing has to be printed here",
    "less": "use head, tail or sed -n '20,40p'",
    "perl": "use grep -E",
    "pwd": "this is the root of the corpus; paths are relative to it",
    "python": "use the commands at hand",
    "python3": "use the commands at hand",
    "rg": "use grep -r",
    "sh": "give the command line itself",
    "xargs": "grep -r looks into many files; commands take several paths and wildcards",
}


def _unknown(name: str) -> Refused:
    known = "known: " + ", ".join(COMMANDS)
    return Refused(f"there is no command {name!r}", _INSTEAD.get(name, known))
