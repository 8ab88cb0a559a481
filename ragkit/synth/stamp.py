"""The folder of a run: the settings that it was begun with, and the files that it ends with."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from ragkit import display, paths
from ragkit.errors import UsageError
from ragkit.files import read_json, remove_temporary, write_jsonl, write_text

NAME = "generation.json"


def begin(out: Path, stamp: dict) -> None:
    """Check that a run may write to a folder, and record its settings there.

    `stamp` has the settings, and a digest of whatever else decides the result. What a killed run
    left half written is removed. Raises `UsageError` if `out` is a file, holds files that no run
    wrote, or was begun with other settings.
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
    write_json(path, stamp)


def once(name: str, make: Callable[..., object]) -> Path:
    """Return a folder of the cache folder that `make(folder, progress=...)` has finished.

    Other processes wait for it.
    """
    folder = paths.cache_dir() / "generated" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(f".{name}.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "statistics.json").exists():
            with display.Bar() as bar:
                make(folder, progress=bar.stage)
    return folder


def finish(out: Path, tables: Mapping[str, Iterable[dict]], statistics: dict) -> dict:
    """Write each table to `NAME.jsonl`, and `statistics.json` last; return the statistics."""
    for name, rows in tables.items():
        write_jsonl(out / f"{name}.jsonl", rows)
    write_json(out / "statistics.json", statistics)
    return statistics


def write_json(path: Path, data: dict) -> None:
    """Write data as a JSON file that people may edit."""
    write_text(path, json.dumps(data, ensure_ascii=False, indent=1) + "\n")


def check_same(found: dict, wanted: dict, what: str) -> None:
    """Raise `UsageError` for the first setting that differs from the recorded one."""
    for name, value in wanted.items():
        if found.get(name) != value:
            raise UsageError(
                f"{what} with {name} {found.get(name)!r}, not {value!r}",
                "choose another place, or the same settings",
            )
