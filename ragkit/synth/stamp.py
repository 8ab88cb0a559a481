"""The settings that a folder was generated with: a run continues only with the same ones."""

from __future__ import annotations

import json
from pathlib import Path

from ragkit.errors import UsageError
from ragkit.files import read_json, remove_temporary, write_text

NAME = "generation.json"


def begin(out: Path, stamp: dict) -> None:
    """Check that a run may write to a folder, and record its settings there.

    What a killed run left half written is removed.

    Parameters
    ----------
    out : Path
        A new or empty folder, or one that a run with the same settings has begun.
    stamp : dict
        The settings, and a digest of whatever else decides the result.

    Raises
    ------
    UsageError
        If `out` is a file, holds files that no run wrote, or was begun with other settings.
    """
    path = out / NAME
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file, not a folder")
    if out.is_dir() and any(out.iterdir()):
        if path.exists():
            check_same(read_json(path), stamp, f"{out} was begun")
        elif any(p for p in out.iterdir() if not p.name.startswith(".tmp-")):
            raise UsageError(
                f"{out} is not empty, and no run of ragkit has begun it", "name a new folder"
            )
    remove_temporary(out)
    write_text(path, json.dumps(stamp, ensure_ascii=False, indent=1) + "\n")


def check_same(found: dict, wanted: dict, what: str) -> None:
    """Raise `UsageError` for the first setting that differs from the recorded one."""
    for name, value in wanted.items():
        if found.get(name) != value:
            raise UsageError(
                f"{what} with {name} {found.get(name)!r}, not {value!r}",
                "choose another place, or the same settings",
            )
