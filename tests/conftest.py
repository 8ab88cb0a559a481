"""What the tests share: no network, no user folders, and the real data where it is at hand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent


def mirror_folder() -> Path | None:
    """Return the folder with real data: $RAGKIT_DATA, else ../shared/data beside the checkout."""
    for folder in (os.environ.get("RAGKIT_DATA"), ROOT.parent / "shared" / "data"):
        if folder and Path(folder).is_dir():
            return Path(folder).resolve()
    return None


@pytest.fixture(scope="session")
def mirror() -> Path:
    folder = mirror_folder()
    if folder is None:
        pytest.skip("no real data: set RAGKIT_DATA to a folder that has it")
    return folder


@pytest.fixture(autouse=True)
def _own_folders(tmp_path, monkeypatch):
    """Keep every test out of the user's cache and build folders."""
    monkeypatch.setenv("RAGKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("RAGKIT_BUILD", str(tmp_path / "build"))
    monkeypatch.delenv("RAGKIT_DATA", raising=False)
