"""The options that a command allows, read as `getopt_long` reads them, all others refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ragkit.systems.agent.line import Refused, Word


@dataclass(frozen=True)
class Options:
    """What was given: (letter, value) in order, and the operands."""

    given: tuple[tuple[str, str], ...]
    operands: tuple[Word, ...]
    values: Mapping[str, str] = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "values", dict(self.given))

    def __contains__(self, letter: str) -> bool:
        return letter in self.values

    def last(self, letters: Sequence[str]) -> str:
        """Return which of `letters` came last, or ""."""
        return next((letter for letter, _ in reversed(self.given) if letter in tuple(letters)), "")

    def all(self, letter: str) -> list[str]:
        return [value for other, value in self.given if other == letter]

    def number(self, command: str, letter: str, usual: int | None, most: int) -> int | None:
        """Return the whole number that an option was given, 0 to `most`."""
        if letter not in self.values:
            return usual
        return whole(command, letter, self.values[letter], most)


def whole(command: str, letter: str, text: str, most: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Refused(f"{command} -{letter} takes a whole number, not {text!r}")
    if int(text) > most:
        raise Refused(f"{command} -{letter} takes at most {most:,}, not {text}")
    return int(text)


def read(
    command: str,
    words: tuple[Word, ...],
    letters: str,
    long: Mapping[str, str],
    *,
    hints: Mapping[str, str] | None = None,
    digits: str = "",
) -> Options:
    """Return the options and operands of a command.

    Parameters
    ----------
    letters : str
        As for `getopt`: a letter that takes a value is followed by a colon.
    long : mapping
        Long name -> its letter, which says whether it takes a value; where there is none, its
        name again, with a colon if it takes a value.
    hints : mapping
        Option -> what to write in place of it, for some that are not allowed.
    digits : str
        The letter that a bare number stands for, as -5 does for head -n 5.

    Raises
    ------
    Refused
        If an option is not among them, lacks its value, or has one too many.
    """
    hints = hints or {}
    takes = {letter: letters[n + 1 : n + 2] == ":" for n, letter in enumerate(letters)}
    takes.pop(":", None)
    own = {name.rstrip(":"): name.endswith(":") for name in long.values() if len(name) > 1}
    given, operands = [], []
    left = list(words)

    def refuse(option: str):
        allowed = "".join(sorted(takes))
        hint = hints.get(option, f"allowed: -{allowed}" + "".join(f", --{name}" for name in long))
        raise Refused(f"{command} does not allow {option}", hint)

    while left:
        word = left.pop(0)
        text = word.text
        if text == "--":
            operands += left
            break
        if text == "-":
            raise Refused(f"{command} reads - only from a pipe", "leave the - out")
        if text.startswith("--"):
            name, equals, value = text[2:].partition("=")
            if name not in long:
                refuse("--" + name)
            letter = long[name].rstrip(":")
            takes_value = (takes | own)[letter]
            if takes_value and not equals:
                if not left:
                    raise Refused(f"{command} --{name} needs a value")
                value = left.pop(0).text
            elif equals and not takes_value:
                raise Refused(f"{command} --{name} takes no value")
            given.append((letter, value))
        elif digits and text[:1] == "-" and text[1:].isascii() and text[1:].isdigit():
            given.append((digits, text[1:]))
        elif text.startswith("-"):
            rest = text[1:]
            while rest:
                letter, rest = rest[0], rest[1:]
                if letter not in takes:
                    refuse("-" + letter)
                if not takes[letter]:
                    given.append((letter, ""))
                    continue
                if not rest and not left:
                    raise Refused(f"{command} -{letter} needs a value")
                given.append((letter, rest or left.pop(0).text))
                rest = ""
        else:
            operands.append(word)
    return Options(tuple(given), tuple(operands))
