"""Systems declared in a TOML file: what each may say, and what is built from it."""

from __future__ import annotations

import importlib
import inspect
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragkit.errors import DataError, ModelError, RagkitError, UsageError, did_you_mean
from ragkit.files import read_text

KEYS = ("retriever", "rerank", "reader", "words", "top")
# kind -> module and class; each has fit(documents).search(questions, k).
RETRIEVERS = {
    "bm25": ("ragkit.systems.retrieval", "BM25"),
    "dense": ("ragkit.systems.retrieval", "Dense"),
    "hybrid": ("ragkit.systems.retrieval", "Hybrid"),
}
RERANK = ("ragkit.systems.retrieval", "Rerank")
# Options that a declaration does not have: they change no ranking, or are declared elsewhere.
MECHANICS = {"system", "cache", "progress", "retriever"}
TOP = 5  # documents to read: WixQA, section 4


@dataclass(frozen=True)
class System:
    """A system: a retriever, and what may follow it.

    Parameters
    ----------
    name : str
    retriever : mapping
        `kind` and the options of that class; the `retrievers` of a hybrid are such mappings again.
    rerank : mapping, optional
        Options of `ragkit.systems.retrieval.Rerank`. It reads whole documents, whatever was indexed.
    reader : mapping, optional
        `kind` ("extractive" or "openai:MODEL") and the options of that reader.
    words : int, optional
        Index only so many words of the text, after the title.
    top : int
        How many documents to read.
    where : str
        Where it was declared, for messages.
    """

    name: str
    retriever: Mapping[str, Any]
    rerank: Mapping[str, Any] | None = None
    reader: Mapping[str, Any] | None = None
    words: int | None = None
    top: int = TOP
    where: str = ""

    @property
    def ranking(self) -> str:
        """All that decides the ranked list, as canonical text."""
        return canonical([self.retriever, self.words, self.rerank])

    @property
    def models(self) -> set[str]:
        """The names of the encoders and rerankers that retrieval needs."""
        parts = [self.retriever, *self.retriever.get("retrievers", ()), self.rerank or {}]
        return {part[name] for part in parts for name in ("encoder", "reranker") if name in part}


def canonical(value: Any) -> str:
    """Return plain data as JSON text; equal data give equal text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def load(path) -> list[System]:
    """Read systems from a TOML file; `notebooks/systems.toml` explains the form.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    list of System
        In the order of the file.

    Raises
    ------
    MissingData
        If there is no such file.
    DataError
        If it is no TOML, declares no system, or a system has an unknown key, kind or option or a
        value out of range: the message names file, line and system.
    """
    path = Path(path)
    text = read_text(path)
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path}: not TOML: {error}") from None
    if not tables:
        raise DataError(
            f"{path}: no system is declared", 'begin with [NAME] and retriever = "bm25"'
        )
    return [_system(name, table, _where(path, text, name)) for name, table in tables.items()]


def select(systems: Iterable[System], names: Iterable[str]) -> list[System]:
    """Return the systems of these names, in the order of the names.

    Raises
    ------
    UsageError
        If one is unknown.
    """
    known = {system.name: system for system in systems}
    for name in names:
        if name not in known:
            raise UsageError(f"no system {name!r} is declared", did_you_mean(name, known))
    return [known[name] for name in dict.fromkeys(names)]


def check(systems: Iterable[System]) -> list[System]:
    """Return systems as a list if there is one and their names differ."""
    systems = list(systems)
    if not systems:
        raise UsageError("there is no system to run", "declare at least one")
    names = [system.name for system in systems]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two systems are called {name!r}")
    return systems


def build(spec: Mapping[str, Any]):
    """Return the retriever of a declaration, not fitted yet."""
    options = {key: value for key, value in spec.items() if key != "kind"}
    if "retrievers" in options:
        options["retrievers"] = [build(part) for part in options["retrievers"]]
    return _class(spec["kind"])(**options)


def build_rerank(spec: Mapping[str, Any], retriever):
    """Return the reranker of a declaration over a retriever."""
    return _class("rerank")(retriever, **spec)


def build_reader(spec: Mapping[str, Any]):
    """Return the reader of a declaration."""
    from ragkit.systems.readers import reader

    options = {key: value for key, value in spec.items() if key != "kind"}
    return reader(spec["kind"], **options)


def _where(path: Path, text: str, name: str) -> str:
    header = re.compile(rf"^\s*\[\s*[\"']?{re.escape(name)}[\"']?\s*[\].]", re.MULTILINE)
    found = header.search(text)
    line = f", line {text.count(chr(10), 0, found.start() + len(found[0])) + 1}" if found else ""
    return f"{path}{line}: system {name!r}"


def _system(name: str, table: Any, where: str) -> System:
    if not isinstance(table, dict):
        raise DataError(
            f"{where.replace('system ', '', 1)} is no table", f"write [{name}] above the settings"
        )
    if not name.strip():
        raise DataError(f"{where} has no name")
    _known(table, KEYS, where, "key")
    if "retriever" not in table:
        raise DataError(f"{where} has no retriever", 'as in retriever = "bm25"')
    for key in ("words", "top"):
        value = table.get(key, 1)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise DataError(f"{where}: {key} should be a whole number from 1, found {value!r}")
    system = System(
        name,
        _retriever(table["retriever"], where),
        _rerank(table.get("rerank"), where),
        _reader(table.get("reader"), where),
        table.get("words"),
        table.get("top", TOP),
        where,
    )
    try:
        with suppress(ModelError):  # weights that are not here are told when they are needed
            build(system.retriever)
        with suppress(ModelError):
            if system.rerank:
                build_rerank(system.rerank, build({"kind": "bm25"}))
        with suppress(ModelError):
            if system.reader:
                build_reader(system.reader)
    except RagkitError as error:
        raise DataError(f"{where}: {error.message}", error.hint) from None
    return system


def _retriever(value: Any, where: str) -> dict:
    spec = _spec(value, "retriever", where)
    kind, colon, model = spec["kind"].partition(":")
    if kind not in RETRIEVERS:
        raise DataError(f"{where}: no retriever {kind!r}", did_you_mean(kind, RETRIEVERS))
    spec["kind"] = kind
    if colon:
        spec["encoder"] = model
    _known(spec, ["kind", *_options(_class(kind))], where, f"option of {kind}")
    if kind == "dense":
        spec.setdefault("encoder", _options(_class(kind))["encoder"])
        _model(spec["encoder"], "encoder", where)
    if kind == "hybrid":
        if not isinstance(spec.get("retrievers"), list):
            raise DataError(f"{where}: hybrid needs a list of retrievers")
        spec["retrievers"] = [_retriever(part, where) for part in spec["retrievers"]]
    return spec


def _rerank(value: Any, where: str) -> dict | None:
    if value is None:
        return None
    spec = {"reranker": value} if isinstance(value, str) else value
    if not isinstance(spec, dict):
        raise DataError(f"{where}: rerank should be a model's name or a table, found {value!r}")
    options = _options(_class("rerank"))
    _known(spec, options, where, "option of rerank")
    spec = {"reranker": options["reranker"], "depth": options["depth"], **spec}
    _model(spec["reranker"], "reranker", where)
    return spec


def _reader(value: Any, where: str) -> dict | None:
    return None if value is None else _spec(value, "reader", where)


def _model(name: Any, kind: str, where: str) -> None:
    from ragkit import models

    known = [card.name for card in models.cards().values() if card.kind == kind]
    if name not in known:
        raise DataError(f"{where}: no {kind} {name!r}", did_you_mean(str(name), known))


def _spec(value: Any, key: str, where: str) -> dict:
    """Return a table with `kind` from a table or from a name alone."""
    spec = {"kind": value} if isinstance(value, str) else value
    if not isinstance(spec, dict) or not isinstance(spec.get("kind"), str):
        raise DataError(f"{where}: {key} should be a name or a table with kind, found {value!r}")
    return dict(spec)


def _known(found: Iterable[str], known: Iterable[str], where: str, what: str) -> None:
    for key in found:
        if key not in known:
            raise DataError(f"{where}: no {what} is called {key!r}", did_you_mean(key, known))


def _options(kind: type) -> dict[str, Any]:
    """Return the options that a declaration may have, and their defaults."""
    parameters = inspect.signature(kind).parameters.values()
    return {one.name: one.default for one in parameters if one.name not in MECHANICS}


def _class(kind: str) -> type:
    module, name = RERANK if kind == "rerank" else RETRIEVERS[kind]
    return getattr(importlib.import_module(module), name)
