"""What a folder was made from: who goes on in it must want the same."""

from __future__ import annotations

import json
from pathlib import Path

from ragkit.errors import UsageError
from ragkit.files import read_json, write_text

NAME = "generation.json"


def begin(out: Path, stamp: dict, *, resume: bool) -> None:
    """Check that a run may write to a folder, and leave the stamp there.

    Parameters
    ----------
    out : Path
        A new or empty folder; with `resume` also one that was begun with the same stamp.
    stamp : dict
        What the result depends on.
    resume : bool

    Raises
    ------
    UsageError
        If `out` is a file, is not empty without `resume`, holds files of no run, or was begun
        with another stamp.
    """
    path = out / NAME
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file, not a folder")
    if out.is_dir() and any(out.iterdir()):
        if not resume:
            raise UsageError(f"{out} is not empty", "name a new folder, or go on with --resume")
        if path.exists():
            same(read_json(path), stamp, f"{out} was begun")
        elif any(p for p in out.iterdir() if not p.name.startswith(f".{path.stem}")):
            raise UsageError(f"{out} holds files that no run has made, and no {NAME}")
    write_text(path, json.dumps(stamp, ensure_ascii=False, indent=1) + "\n")


def same(found: dict, wanted: dict, what: str) -> None:
    """Raise `UsageError` at the first setting that is another one than was found."""
    for name, value in wanted.items():
        if found.get(name) != value:
            raise UsageError(
                f"{what} with {name} {found.get(name)!r}, not {value!r}",
                "choose another place, or the same settings",
            )
