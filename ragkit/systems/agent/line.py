"""A command line, taken apart: quotes, words and pipes, and nothing that a shell would expand.

What a shell would do something with and the sandbox does not (variables, substitution,
redirection, lists, background) is refused, never passed on as if it meant itself.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

LONGEST = 4_096  # characters of a command line
MOST_WORDS = 256
MOST_STAGES = 8
_AFTER_DOLLAR = frozenset("{([@*#?$!'\"-_")


class Refused(Exception):
    """A command line that is not run. `reason` says why, `hint` what to write instead."""

    def __init__(self, reason: str, hint: str = ""):
        super().__init__(reason)
        self.reason, self.hint = reason, hint


@dataclass(frozen=True)
class Word:
    """A word: its `text`, and as `glob` the same with quoted wildcards escaped, if any is bare."""

    text: str
    glob: str | None = None


@dataclass(frozen=True)
class Stage:
    """One command of a pipeline; `quiet` drops its error messages."""

    words: tuple[Word, ...]
    quiet: bool = False


def split(line: str) -> list[Stage]:
    """Return the commands of a pipeline.

    Raises
    ------
    Refused
        If the line is empty or too long, has a character or an operator that is not allowed, or a
        quote that is not closed.
    """
    line = line.strip(" \t\r\n")
    if not line:
        raise Refused("the command line is empty")
    if len(line) > LONGEST:
        raise Refused(f"the command line is longer than {LONGEST:,} characters")
    for char in line:
        if char == "\n":
            raise Refused("there is a newline in the command line", "give one command at a time")
        if char != "\t" and unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp"):
            raise Refused(f"there is the control character U+{ord(char):04X} in the command line")
    stages = [Stage(*_stage(words)) for words in _words(line)]
    if len(stages) > MOST_STAGES:
        raise Refused(f"there are more than {MOST_STAGES} commands in the pipeline")
    return stages


def _stage(words: list[Word]) -> tuple[tuple[Word, ...], bool]:
    quiet = bool(words) and words[-1].text == "2>/dev/null" and words[-1].glob == ""
    words = words[:-1] if quiet else words
    if not words:
        raise Refused("a command of the pipeline is empty")
    if len(words) > MOST_WORDS:
        raise Refused(f"there are more than {MOST_WORDS} words in one command")
    for word in words:
        if word.glob == "":
            raise Refused("redirection is not allowed", "nothing can be written")
    return tuple(words), quiet


def _words(line: str) -> list[list[Word]]:
    commands: list[list[Word]] = [[]]
    at = 0
    while at < len(line):
        char = line[at]
        if char in " \t":
            at += 1
        elif char == "|":
            if line.startswith(("||", "|&"), at):
                _refuse_operator(line[at : at + 2])
            commands.append([])
            at += 1
        elif line.startswith("2>/dev/null", at) and line[at + 11 : at + 12] in ("", " ", "\t", "|"):
            # Dropping the messages opens no file; an empty glob marks the word.
            commands[-1].append(Word("2>/dev/null", ""))
            at += 11
        elif char == "#":
            raise Refused("comments are not allowed", "quote a # that is meant")
        else:
            word, at = _word(line, at)
            commands[-1].append(word)
    return commands


def _word(line: str, at: int) -> tuple[Word, int]:
    text, glob, bare = [], [], False

    def put(char: str, wild: bool = False) -> None:
        text.append(char)
        glob.append(char if wild or char not in "*?[]\\" else "\\" + char)

    if line[at] == "~":
        raise Refused("there is no home directory here", "quote a ~ that is meant")
    while at < len(line) and line[at] not in " \t|":
        char = line[at]
        at += 1
        if char == "'":
            end = line.find("'", at)
            if end < 0:
                raise Refused("a single quote is not closed")
            for inner in line[at:end]:
                put(inner)
            at = end + 1
        elif char == '"':
            at = _double(line, at, put)
        elif char == "\\":
            if at == len(line):
                raise Refused("a backslash ends the command line")
            put(line[at])
            at += 1
        elif char in "*?[]":
            bare = bare or char != "]"
            put(char, wild=True)
        elif char == "$":
            _dollar(line, at)
            put(char)
        else:
            if char in ";&<>(){}`":
                _refuse_operator(char)
            put(char)
    return Word("".join(text), "".join(glob) if bare else None), at


def _double(line: str, at: int, put) -> int:
    while at < len(line):
        char = line[at]
        at += 1
        if char == '"':
            return at
        if char == "\\" and line[at : at + 1] and line[at] in '\\"$`':
            char = line[at]
            at += 1
        elif char == "`":
            _refuse_operator(char)
        elif char == "$" and not line.startswith('"', at):
            _dollar(line, at)
        put(char)
    raise Refused("a double quote is not closed")


def _dollar(line: str, at: int) -> None:
    following = line[at : at + 1]
    if following.isalnum() or following in _AFTER_DOLLAR and following:
        raise Refused(
            "nothing is expanded here: no variables, no substitution",
            "put a $ that is meant into single quotes",
        )


_OPERATORS = {
    ";": "several commands on one line are",
    "&": "background and lists of commands are",
    "&&": "lists of commands are",
    "||": "lists of commands are",
    "|&": "redirection is",
    "<": "redirection is",
    ">": "redirection is",
    "(": "subshells are",
    ")": "subshells are",
    "{": "brace expansion is",
    "}": "brace expansion is",
    "`": "command substitution is",
}


def _refuse_operator(operator: str) -> None:
    raise Refused(
        f"{_OPERATORS[operator]} not allowed ({operator})",
        "quote it if it is part of a pattern; only | joins commands",
    )
