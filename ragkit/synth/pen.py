"""Filling phrases: alternatives of a rule, slots, choices."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from ragkit.errors import DataError
from ragkit.synth import banks
from ragkit.synth.streams import Stream
from ragkit.synth.world import FIRST_DAY, LAST_DAY, MONTHS, WEEKDAYS, World, say_date

GLUE = banks.sections("glue")
CASE = ("problem", "cause", "fix")


class Slots(dict):
    """Values of `{name}`; `{Name}` is the same text with a capital letter."""

    def __missing__(self, name: str) -> str:
        if name[:1].islower():
            raise KeyError(name)
        return cap(self[name[:1].lower() + name[1:]])


class Pen:
    """Fill phrases: each alternative of a rule is used once before any is used again.

    Parameters
    ----------
    stream : Stream
    slots : dict
        Values of `{name}`: strings, or functions of the pen.
    """

    def __init__(self, stream: Stream, slots: dict[str, str | Callable[[Pen], str]]):
        self.stream = stream
        self.slots = slots
        self.used: dict[str, set[int]] = {}
        self.missing = {name for name, value in slots.items() if value is None}

    def say(self, rule: str, **more: str) -> str:
        """Return one alternative of a rule of the bank `glue`, filled."""
        return self.fill(self.choose(rule, GLUE[rule]), more)

    def say_from(self, lines) -> str:
        """Return one of the lines, filled."""
        return self.fill(self.stream.pick(lines))

    def choose(self, name: str, lines) -> str:
        """Return a line that can be filled and has not been used, while there is one."""
        used = self.used.setdefault(name, set())
        first = self.stream.below(len(lines))
        for fresh in (True, False):
            for step in range(len(lines)):
                i = (first + step) % len(lines)
                if fresh and i in used:
                    continue
                if self.missing and not self.missing.isdisjoint(banks.slots(lines[i])):
                    continue
                used.add(i)
                return lines[i]
            used.clear()
        raise DataError(f"the rule {name!r} has no line without {sorted(self.missing)}")

    def focus(self, points, i: int) -> None:
        """Let {problem}, {cause} and {fix} mean those of the case to which point `i` belongs."""
        if points[i].role == "problem":
            end = next((j for j in range(i + 1, len(points)) if points[j].role == "problem"), None)
            for role in CASE:
                self._set(role, next((p.text for p in points[i:end] if p.role == role), None))

    def _set(self, role: str, text: str | None) -> None:
        names = {role, cap(role)} | ({"Fix2"} if role == "fix" else set())
        if text is None:
            self.missing |= names
            return
        self.missing -= names
        for name in names:
            self.slots[name] = text if name == role else cap(text)

    def fill(self, text: str, more: dict[str, str] | None = None) -> str:
        out: list[str] = []
        self._fill(banks.compiled(text), more, out)
        return "".join(out)

    def _fill(self, parts, more, out) -> None:
        for part in parts:
            kind = type(part)
            if kind is str:
                out.append(part)
            elif kind is tuple:
                name = part[0]
                value = more[name] if more and name in more else self.slots[name]
                out.append(value if type(value) is str else value(self))
            elif kind is banks.Range:
                out.append(f"{self.stream.between(part.low, part.high):0{part.width}d}")
            else:
                self._fill(part[self.stream.below(len(part))], more, out)


def voices(world: World, stream: Stream) -> dict[str, str | Callable[[Pen], str]]:
    """Return slots for who asks and when: people of the directory, days, times."""
    asker, person, other = stream.sample(world.employees[:400], 3)
    day = FIRST_DAY + timedelta(days=stream.below((LAST_DAY - FIRST_DAY).days))
    return {
        "p": other.name.split()[0],
        "person": person.name,
        "me": asker.name,
        "title": asker.title,
        "team": asker.team,
        "office": asker.office,
        "weekday": stream.pick(WEEKDAYS[:5]),
        "month": stream.pick(MONTHS),
        "day": say_date(day),
        "clock": f"{stream.between(6, 21):02d}:{stream.between(0, 59):02d}",
        "n": str(stream.between(3, 48)),
    }


def cap(text: str) -> str:
    return text[:1].upper() + text[1:]


def stop(text: str) -> str:
    """Return a clause as a sentence."""
    text = cap(text)
    return text if text[-1] in ".?!:)" else text + "."
