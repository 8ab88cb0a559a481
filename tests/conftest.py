"""What the tests share: no network, no user folders, and the real data where it is at hand."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parent.parent
BEGUN = time.monotonic()


def pytest_addoption(parser):
    said = "begin no slow test after so many seconds; those left are skipped and say so"
    parser.addoption("--within", type=float, metavar="SECONDS", help=said)


def pytest_runtest_setup(item):
    most = item.config.getoption("--within")
    if most is not None and item.get_closest_marker("slow") and time.monotonic() - BEGUN > most:
        pytest.skip(f"not begun within {most:g} s: the machine is slow")


def mirror_folder() -> Path | None:
    """Return the folder with real data: $RAGKIT_DATA, else ../shared/data beside the checkout."""
    for folder in (os.environ.get("RAGKIT_DATA"), ROOT.parent / "shared" / "data"):
        if folder and Path(folder).is_dir():
            return Path(folder).resolve()
    return None


def frame_of(kind: str, *given: tuple):
    """Return a frame of a kind of `ragkit.schema.COLUMNS`, given a tuple a row."""
    import pandas as pd

    from ragkit import schema

    return pd.DataFrame(given, columns=list(schema.COLUMNS[kind]))


def bytes_of(folder: Path, *endings: str) -> dict[str, bytes]:
    """Return the bytes of the files under a folder, of some endings or of any, by their paths."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in files
        if not endings or path.suffix in endings
    }


def python(folder: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess:
    """Run a module in a folder that holds the package, with no settings but these."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("COV", "RAGKIT_"))}
    kept |= {"PYTHONPATH": str(folder), "HF_HUB_OFFLINE": "1"} | settings
    options = {"env": kept, "capture_output": True, "text": True, "timeout": 240}
    return subprocess.run([sys.executable, "-m", *arguments], cwd=folder, **options)


@pytest.fixture
def ragkit(capsys):
    """Return a function that runs a command in this process: its status, output and errors."""
    from ragkit import cli

    def run(*words):
        with pytest.raises(SystemExit) as stopped:
            cli.main([str(word) for word in words])
        return stopped.value.code or 0, *capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def mirror() -> Path:
    folder = mirror_folder()
    if folder is None:
        pytest.skip("no real data: set RAGKIT_DATA to a folder that has it")
    return folder


@pytest.fixture(autouse=True)
def _own_settings(tmp_path, monkeypatch):
    """Keep every test out of the user's cache and build folders, endpoint, ledger and prices."""
    monkeypatch.setenv("RAGKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("RAGKIT_BUILD", str(tmp_path / "build"))
    for name in ("DATA", "LEDGER", "PRICES", "REPLAY"):
        monkeypatch.delenv(f"RAGKIT_{name}", raising=False)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def endpoint(monkeypatch):
    """Return a function that serves replies on loopback and points the environment at them."""
    from tests.llm.server import serve

    with ExitStack() as stack:

        def start(answer, environment="OPENAI"):
            server = stack.enter_context(serve(answer))
            monkeypatch.setenv(f"{environment}_BASE_URL", server.url)
            return server

        yield start
