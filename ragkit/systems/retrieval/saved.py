"""Indexes on disk: a folder of memory-mapped arrays, lists of strings, and a header."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ragkit import files
from ragkit.errors import DataError, HashMismatch

HEADER, VERSION = "index.json", 1
AGAIN = "fit(documents) and save it again"


def write(
    folder: str | os.PathLike,
    kind: str,
    settings: Mapping[str, Any],
    parts: Mapping[str, np.ndarray | list[str]],
) -> Path:
    """Write an index: each part as NAME.npy or NAME.json, then the header with their digests.

    A process that has the old files of the folder open keeps them.

    Parameters
    ----------
    folder : path-like
        Created if it does not exist.
    kind : str
        What is saved: the name of the class.
    settings : mapping
        The options of that class, as plain data.
    parts : mapping of str to array or list of str
    """
    folder, digests = Path(folder), {}
    for name, part in parts.items():
        is_list = isinstance(part, list)
        file = folder / f"{name}.{'json' if is_list else 'npy'}"
        with files.atomic_path(file) as path:
            path.write_text(json.dumps(part), "ascii") if is_list else np.save(path, part)
        digests[file.name] = files.sha256(file)
    header = {"kind": kind, "version": VERSION, "settings": settings, "sha256": digests}
    files.write_text(folder / HEADER, json.dumps(header, indent=1) + "\n")
    return folder


def read(folder: str | os.PathLike, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings and the parts of an index that `write` wrote.

    Raises
    ------
    MissingData
        If the folder has no header.
    DataError
        If the folder holds another kind of index or another version.
    HashMismatch
        If a file is missing or is not the one that was saved.
    """
    folder, parts = Path(folder), {}
    header = files.read_json(folder / HEADER)
    found = [header.get(key) for key in ("kind", "version")] if isinstance(header, dict) else header
    if found != [kind, VERSION]:
        raise DataError(f"{folder} should hold {kind}, version {VERSION}: {found!r:.80}", AGAIN)
    for name, digest in header["sha256"].items():
        file = folder / name
        if not file.is_file() or files.sha256(file) != digest:
            raise HashMismatch(f"{file} is not the file that was saved", AGAIN)
        is_list = file.suffix == ".json"
        part = files.read_json(file) if is_list else np.asarray(np.load(file, mmap_mode="r"))
        parts[file.stem] = part
    return header["settings"], parts
