"""One colour and marker per system, and labels, for all figures of the room."""

from __future__ import annotations

import re

from ragkit.report.figures import BLACK, GREY, MARKS, ORANGE, SKY, YELLOW


def measured_on(label: str) -> str:
    # A stand-in's file name is too long for a column; how much of the whole it is, is not.
    short = "; ".join(part.split(".jsonl ")[-1] for part in label.split("; "))
    return f"\nmeasured: {short}" if label else ""


# Systems beyond those of `figures.MARKS`, in the order in which they are first drawn.
SPARE = ((ORANGE, "v"), (SKY, "P"), (YELLOW, "X"), (GREY, "h"), (BLACK, "*"))


ALIKE = {"vector": "dense", "vector-only": "dense", "hybrid-bm25": "hybrid"}


def marks_of(systems: list[str]) -> dict[str, tuple[str, str]]:
    spare = iter(SPARE * len(systems))
    return {
        system: MARKS[ALIKE.get(system, system)]
        if ALIKE.get(system, system) in MARKS
        else next(spare)
        for system in systems
    }


def broken(name: str) -> str:
    """Return a name in lines of about 16 letters, broken behind a slash, a colon or a blank."""
    parts, lines = re.split(r"(?<=[/: ])", name), [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(part.strip()) > 16:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.strip() for line in lines)
