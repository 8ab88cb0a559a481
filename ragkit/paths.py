"""Where things live. Constants only: nothing is created on import."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "data"
REGISTRY = DATA / "registry.toml"
REPORTED = DATA / "reported"
RESULTS = DATA / "results"
SAMPLE = DATA / "sample"
FIGURES = ROOT / "figures"
NOTEBOOKS = ROOT / "notebooks"
BUILD = ROOT / "build"


def cache_dir() -> Path:
    """Return the folder of fetched data: `$RAGKIT_CACHE`, else `data/cache` of the workspace.

    >>> cache_dir().is_dir()
    True
    """
    return Path(os.environ.get("RAGKIT_CACHE", DATA / "cache"))
