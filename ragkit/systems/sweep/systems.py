"""Systems declared in a TOML file: their options, and the retrievers and readers built from them."""

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
from typing import Any, get_type_hints

from ragkit import checks
from ragkit.errors import DataError, ModelError, RagkitError, UsageError
from ragkit.files import read_text
from ragkit.llm import ledger_path
from ragkit.systems.retrieval.frames import Leads
from ragkit.systems.retrieval.saved import Kept, Saved

# kind -> class, each with fit(documents) and search(questions, k).
RETRIEVERS = {
    "bm25": "ragkit.systems.retrieval.bm25.BM25",
    "dense": "ragkit.systems.retrieval.dense.Dense",
    "hybrid": "ragkit.systems.retrieval.hybrid.Hybrid",
    "opensearch": "ragkit.systems.retrieval.servers.OpenSearch",
    "qdrant": "ragkit.systems.retrieval.servers.Qdrant",
    "agent": "ragkit.systems.agent.BashAgent",
    "none": "ragkit.systems.retrieval.frames.Nothing",
}
RERANK = "ragkit.systems.retrieval.rerank.Rerank"
READERS = {
    "extractive": "ragkit.systems.readers.Extractive",
    "openai": "ragkit.systems.readers.OpenAI",
}
KEYS = ("retriever", "rerank", "reader", "words", "top")
MODELS = ("encoder", "reranker")  # options that are the name of a model
# The types of JSON, as messages name them.
WORDS = {"number": "a number", "integer": "a whole number", "string": "a text"}
WORDS |= {"boolean": "true or false", "object": "a table", "array": "a list"}
# Parameters of the classes that a declaration does not have.
UNDECLARED = {"self", "system", "cache", "retriever", "ledger", "client"}
TOP = 5  # documents to read: WixQA, section 4


@dataclass(frozen=True)
class System:
    """A retriever, and a reranker and a reader where there are any.

    Parameters
    ----------
    name : str
    retriever : mapping
        `kind` and the options of that class; the `retrievers` of a hybrid are such mappings, too.
    rerank : mapping, optional
        Options of `ragkit.systems.retrieval.Rerank`, which scores whole documents whatever
        `words` says.
    reader : mapping, optional
        `kind` ("extractive" or "openai:MODEL") and the options of that reader.
    words : int, optional
        Index only the first words of each text, after the title.
    top : int
        Documents that the reader sees.
    """

    name: str
    retriever: Mapping[str, Any]
    rerank: Mapping[str, Any] | None = None
    reader: Mapping[str, Any] | None = None
    words: int | None = None
    top: int = TOP

    @property
    def ranking(self) -> dict[str, Any]:
        """The settings that decide the ranked lists, apart from their length."""
        return {"retriever": self.retriever, "words": self.words, "rerank": self.rerank}

    @property
    def models(self) -> set[str]:
        """Names of the encoders, rerankers and language models that retrieval needs."""
        named = {part[key] for part in self._parts for key in MODELS if key in part}
        policies = {part.get("policy", "") for part in self._parts}
        return named | {name for name in policies if name.startswith("openai:")}

    @property
    def fields(self) -> list[str]:
        """Names of the columns that the system's settings ask the documents for."""
        return [field for part in self._parts for field in part.get("fields", ())]

    @property
    def paid(self) -> bool:
        """Whether an endpoint is asked, which may cost money."""
        names = self.models | {(self.reader or {}).get("kind", "")}
        return any(name.startswith("openai:") for name in names)

    @property
    def modules(self) -> tuple[str, ...]:
        """Dotted names of the classes that rank, whose code decides the ranked lists."""
        return tuple(sorted({RETRIEVERS.get(part.get("kind"), RERANK) for part in self._parts}))

    @property
    def _parts(self) -> list[Mapping[str, Any]]:
        parts = [self.retriever]
        for part in parts:  # a hybrid's parts join the list
            parts += part.get("retrievers", ())
        return [*parts, self.rerank] if self.rerank else parts


def load(path) -> list[System]:
    """Read systems from a TOML file; `notebooks/systems.toml` explains the form.

    Raises
    ------
    MissingData, DataError
        If there is no such file; if it is not TOML or declares no system.
    UsageError
        If a system has an unknown key, kind or option, or an option of a wrong type or out of
        range. The message names file, line, system and option.
    """
    path = Path(path)
    text = read_text(path)
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path}: not TOML: {error}") from None
    if not tables:
        raise DataError(f"{path}: no system is declared", 'as in [NAME] and retriever = "bm25"')
    systems = []
    for name, table in tables.items():
        try:
            systems.append(_system(name, table))
        except RagkitError as error:
            raise UsageError(f"{_where(path, text, name)}: {error.message}", error.hint) from None
    return systems


def select(systems: Iterable[System], names: Iterable[str]) -> list[System]:
    """Return the systems of these names, in the order of the names; `UsageError` if unknown."""
    known = {system.name: system for system in systems}
    return [known[checks.choice(name, "system", known)] for name in dict.fromkeys(names)]


def build(system: System):
    """Return the retriever of a system, with its reranker; not fitted yet."""
    retriever = _retriever(system.retriever)
    if system.words is not None:
        retriever = Leads(retriever, system.words)
    if system.rerank is not None:
        retriever = _class(RERANK)(retriever, **system.rerank)
    return retriever


def build_reader(spec: Mapping[str, Any]):
    """Return the reader of a declaration."""
    from ragkit.systems.readers import reader

    options = dict(spec)
    return reader(options.pop("kind"), **options)


# -- from a table to a system --------------------------------------------------------------------


def _system(name: str, table: Any) -> System:
    if not isinstance(table, dict):
        raise UsageError("not a table", f"write [{name}] above the settings")
    checks.options(table, KEYS, "a system")
    if "retriever" not in table:
        raise UsageError("no retriever", 'as in retriever = "bm25"')
    for key in {"words", "top"} & set(table):
        checks.whole(table[key], key)
    parts = {key: _declared(table[key], key) for key in KEYS[:3] if key in table}
    system = System(name, **{**table, **parts})
    for make, spec in ((build, system), (build_reader, system.reader)):
        with suppress(ModelError):  # missing weights are reported by those who need them
            if spec:
                make(spec)
    return system


def _declared(value: Any, key: str) -> dict[str, Any]:
    """Return the options of a retriever, a reranker or a reader, with the name of its model."""
    spec = {"kind" if key != "rerank" else "reranker": value} if isinstance(value, str) else value
    if isinstance(spec, dict) and key == "rerank":
        spec = {**spec, "kind": key}
    if not isinstance(spec, dict) or not isinstance(spec.get("kind"), str):
        raise UsageError(f"{key} should be a name, or a table that has one, found {value!r}")
    kind, _, model = spec["kind"].partition(":")
    if key == "reader":  # `readers.reader` refuses unknown names and options
        for name in UNDECLARED & set(spec):
            raise UsageError(f"no option of {spec['kind']} {name!r} in a declaration")
        _check_types(spec, READERS.get(kind))
        return dict(spec)
    kinds = {key: RERANK} if key == "rerank" else RETRIEVERS
    path = kinds[checks.choice(kind, "retriever", kinds)]
    spec = {**spec, "kind": kind, **({"encoder": model} if model else {})}
    known = _options(path)
    checks.options(spec, ["kind", *known], kind)
    _check_types(spec, path)
    spec = {name: known[name] for name in MODELS if name in known} | spec
    if kind == "hybrid":
        if not isinstance(spec.get("retrievers"), list):
            raise UsageError("hybrid needs a list of retrievers")
        spec["retrievers"] = [_declared(part, "a part of hybrid") for part in spec["retrievers"]]
    if key == "rerank":
        spec = {"depth": known["depth"], **spec}
        del spec["kind"]
    return spec


def _check_types(spec: Mapping[str, Any], path: str | None) -> None:
    """Raise `UsageError` unless each option has the type that the class declares for it."""
    from pydantic import TypeAdapter, ValidationError

    hints = get_type_hints(_class(path).__init__) if path else {}
    hints |= dict.fromkeys((*MODELS, "server", "environment"), str)
    for name in filter(hints.get, spec):
        try:
            TypeAdapter(hints[name]).validate_json(json.dumps(spec[name]), strict=True)
        except (ValidationError, TypeError):  # a date is no JSON
            expected = _words(TypeAdapter(hints[name]).json_schema())
            found = json.dumps(spec[name], ensure_ascii=False, default=str)
            raise UsageError(f"{name} should be {expected}, found {found}") from None


def _words(schema: Mapping[str, Any]) -> str:
    """Return in words what a JSON schema describes; that an option may be left out goes unsaid."""
    first = schema.get("anyOf", [schema])[0]
    of = f" of {_words(first['items'])[2:]}s" if first.get("items") else ""
    return WORDS[first["type"]] + of


def _where(path: Path, text: str, name: str) -> str:
    header = re.compile(rf"^\s*\[\s*[\"']?{re.escape(name)}[\"']?\s*[\].]", re.MULTILINE)
    found = header.search(text)
    line = f", line {text.count(chr(10), 0, found.start() + len(found[0])) + 1}" if found else ""
    return f"{path}{line}: system {name!r}"


def _retriever(spec: Mapping[str, Any]):
    options = {key: value for key, value in spec.items() if key != "kind"}
    if "retrievers" in options:
        options["retrievers"] = [_retriever(part) for part in options["retrievers"]]
    if str(options.get("policy", "")).startswith("openai:"):
        options.setdefault("ledger", ledger_path())
    retriever = _class(RETRIEVERS[spec["kind"]])(**options)
    return Kept(retriever) if isinstance(retriever, Saved) else retriever


def _options(path: str) -> dict[str, Any]:
    """Return the options of a class that a declaration may have, and their defaults."""
    parameters = inspect.signature(_class(path)).parameters.values()
    return {one.name: one.default for one in parameters if one.name not in UNDECLARED}


def _class(path: str) -> type:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)
