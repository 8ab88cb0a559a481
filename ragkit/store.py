"""Results that are computed once: one store, and one rule for what a result depends on.

`Store.map` returns the kept results of a pure function and computes the others, so that a run that
was stopped continues when the same command is given again. A kept result depends on `given`, on
the code of the modules that are named and of all that they import (comments, docstrings,
`ragkit.errors` and `ragkit.paths` aside), on the package data beside them, such as prompts and
tables, and on the versions of the libraries that they import.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from ragkit import display, paths
from ragkit.errors import DataError
from ragkit.files import write_ahead

UNIMPORTANT = ("ragkit.errors", "ragkit.paths", "ragkit.display", "ragkit.llm.used")
FORMAT = 2  # of the values; part of every key, so that values of another format are not read
BUSY_S = 60.0
MODULE_NAME = re.compile(r"ragkit(\.\w+)+")


# -- what a result depends on ------------------------------------------------------------------


def dependencies(*names: str, source: str | None = None) -> list[Path]:
    """Return the files that decide what modules do: modules, and the package data beside them.

    `names` are dotted names of `ragkit` modules or packages; the imports of `source`, such as the
    code of a notebook, count as well. A module is followed through its imports, and through strings
    that are the dotted name of a module; an f-string that begins with a package, such as
    f"ragkit.llm.{name}", names all its modules. Of the packages around a module only their own code
    counts, not what they import.
    """
    queue = [*names, *(_names(ast.parse(source)) if source else ())]
    modules, followed = set(), set()
    while queue:
        files = _module_files(queue.pop())
        modules.update(files)
        for path in set(files[-1:]) - followed:
            followed.add(path)
            queue += _imported(path)
    return sorted(modules.union(*map(_package_data, modules)))


@cache
def code_digest(*names: str) -> str:
    """Return a digest of the code, package data and library versions that modules depend on."""
    done = hashlib.sha256()
    libraries: set[str] = set()
    unimportant = {path for name in UNIMPORTANT for path in _module_files(name)}
    for path in dependencies(*names):
        if path in unimportant:
            continue
        done.update(str(path.relative_to(paths.ROOT)).encode())
        if path.suffix == ".py":
            tree = ast.parse(path.read_text("utf-8"))
            done.update(_without_docstrings(tree).encode())
            libraries |= {name.split(".")[0] for name in _imports(tree)}
        else:
            done.update(path.read_bytes())
    known = _distributions()
    for library in sorted(libraries):
        for distribution in sorted(set(known.get(library, ())) - {"ragkit"}):
            done.update(f"{distribution}=={metadata.version(distribution)}\n".encode())
    return done.hexdigest()


_distributions = cache(metadata.packages_distributions)


def _module_files(name: str) -> list[Path]:
    """Return the files that importing a dotted name runs: its packages, then the module."""
    found = []
    for end in range(1, len(name.split(".")) + 1):
        base = paths.ROOT.joinpath(*name.split(".")[:end])
        found += [p for p in (base / "__init__.py", base.with_suffix(".py")) if p.is_file()]
    return found


@cache
def _imported(path: Path) -> tuple[str, ...]:
    return tuple(_names(ast.parse(path.read_text("utf-8"))))


def imports(path: Path) -> list[str]:
    """Return the names that a Python file imports, those for type checkers aside."""
    return _imports(ast.parse(path.read_text("utf-8")))


def _names(tree: ast.AST) -> list[str]:
    """Return the `ragkit` modules that code imports or names in a string."""
    names = [name for name in _imports(tree) if name.split(".")[0] == "ragkit"]
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and MODULE_NAME.fullmatch(text):
            names.append(text)
        if isinstance(node, ast.JoinedStr) and isinstance((node.values or [0])[0], ast.Constant):
            package, dot, rest = str(node.values[0].value).rpartition(".")
            if dot and not rest and MODULE_NAME.fullmatch(package):
                folder = paths.ROOT.joinpath(*package.split("."))
                names += [f"{package}.{path.stem}" for path in folder.glob("*.py")]
    return names


def _imports(tree: ast.AST) -> list[str]:
    """Return the imported names, those for type checkers aside."""
    names, nodes = [], [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        if not (isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"):
            nodes += ast.iter_child_nodes(node)
    return names


@cache
def _package_data(module: Path) -> tuple[Path, ...]:
    """Return the files beside a module, and in folders below that hold no modules."""
    found = []
    for path in sorted(module.parent.iterdir()):
        if path.is_dir() and path.name != "__pycache__" and not (path / "__init__.py").exists():
            found += [p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
        elif path.is_file() and path.suffix != ".py":
            found.append(path)
    return tuple(sorted(found))


def _without_docstrings(tree: ast.AST) -> str:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)


# -- the store ---------------------------------------------------------------------------------


class Store:
    """Results by the content of their inputs, in one SQLite file that processes may share.

    A value is anything that JSON can hold, a NumPy array, or a pandas DataFrame. `path` is
    `store.sqlite` in the cache folder by default; ":memory:" keeps nothing. Raises `DataError` if
    the file is not a store.
    """

    def __init__(self, path: str | Path | None = None):
        self.path = Path(path or paths.cache_dir() / "store.sqlite")
        if str(path) != ":memory:":
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self._base = sqlite3.connect(self.path, timeout=BUSY_S, isolation_level=None)
        try:
            write_ahead(self._base, BUSY_S)
            self._base.execute("PRAGMA synchronous=NORMAL")
            self._base.execute(
                "CREATE TABLE IF NOT EXISTS results (key BLOB PRIMARY KEY, step TEXT, value BLOB)"
            )
        except sqlite3.DatabaseError as error:
            self._base.close()
            raise DataError(
                f"{self.path}: not a store of results ({error})",
                "delete the file; its results are computed again",
            ) from None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def map(
        self,
        function: Callable[[list], Iterable],
        items: Sequence,
        *,
        step: str,
        code: Sequence[str],
        given: Any = None,
        batch: int = 64,
    ) -> list:
        """Return the result for each item, in order; compute and keep those that are not kept.

        `function` takes a list of items (what JSON can hold; equal ones share a result) and returns
        as many results; `batch` items are computed, and then kept, together. `step`, such as
        "encode", keeps the results of two functions apart; `code` are the modules that decide the
        results, such as ("ragkit.systems.retrieval.bm25",); `given` are options and digests of
        data. A result that is None or an exception is returned and not kept: it is tried again.
        """
        keys = _keys(items, step, code, given)
        results = self._get(set(keys))
        missing = {key: item for key, item in zip(keys, items, strict=True) if key not in results}
        waiting = list(missing.items())
        for start in display.progress(range(0, len(waiting), batch), step):
            part = waiting[start : start + batch]
            values = list(function([item for _, item in part]))
            if len(values) != len(part):
                raise ValueError(f"{step}: {len(part)} items gave {len(values)} results")
            computed = {key: value for (key, _), value in zip(part, values, strict=True)}
            good = {k: v for k, v in computed.items() if not isinstance(v, Exception | None)}
            self._put(step, good)
            results |= computed
        return [results[key] for key in keys]

    def call(self, function: Callable[[], Any], *, step: str, code: Sequence[str], given: Any):
        """Return `function()`, computed once for each `given`; the parameters are those of `map`."""
        return self.map(lambda _: [function()], [None], step=step, code=code, given=given)[0]

    def missing(self, items: Sequence, *, step: str, code: Sequence[str], given: Any = None) -> int:
        """Return how many different items `map` would compute."""
        keys = set(_keys(items, step, code, given))
        return len(keys) - len(self._get(keys))

    def _get(self, keys: Iterable[bytes]) -> dict[bytes, Any]:
        keys, found = list(keys), {}
        for start in range(0, len(keys), 500):
            part = keys[start : start + 500]
            marks = ",".join("?" * len(part))
            rows = self._base.execute(
                f"SELECT key, value FROM results WHERE key IN ({marks})", part
            )
            found |= {key: _decode(value) for key, value in rows}
        return found

    def _put(self, step: str, values: dict[bytes, Any]) -> None:
        rows = [(key, step, _encode(value)) for key, value in values.items()]
        with self._base:  # commits, or rolls back
            self._base.execute("BEGIN IMMEDIATE")
            self._base.executemany("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", rows)


_encoder = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def canonical(value: Any) -> str:
    """Return JSON with sorted keys: equal values give equal text."""
    return _encoder.encode(value)


def _keys(items: Sequence, step: str, code: Sequence[str], given: Any) -> list[bytes]:
    """Return the key of each item's result."""
    prefix = hashlib.sha256(canonical([FORMAT, step, code_digest(*code), given]).encode())
    keys = []
    for item in items:
        done = prefix.copy()
        done.update(canonical(item).encode())
        keys.append(done.digest())
    return keys


def digest(value: Any) -> str:
    """Return a digest of what JSON can hold, of an array, or of a DataFrame without its index.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    done = hashlib.sha256()
    if hasattr(value, "to_json"):
        for column in value.columns:
            done.update(canonical([column, [_plain(cell) for cell in value[column]]]).encode())
    elif hasattr(value, "tobytes"):
        done.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
    else:
        done.update(canonical(value).encode())
    return done.hexdigest()


def _plain(cell):
    if hasattr(cell, "item"):
        return cell.item()
    known = cell is None or isinstance(cell, bool | int | float | str | tuple | list | dict)
    return cell if known else str(cell)  # a date, or pandas' NA


def _encode(value: Any) -> bytes:
    stream = io.BytesIO()
    if hasattr(value, "to_parquet"):
        value.to_parquet(stream, index=False)
        return b"P" + stream.getvalue()
    if hasattr(value, "tobytes") and hasattr(value, "dtype"):
        if value.dtype.hasobject or value.dtype.names:
            raise TypeError(f"an array of dtype {value.dtype} cannot be stored")
        head = canonical([value.dtype.str, value.shape])
        return b"A" + head.encode() + b"\n" + value.tobytes()
    return b"J" + canonical(value).encode()


def _decode(value: bytes) -> Any:
    kind = value[:1]
    if kind == b"P":
        import pandas as pd

        return pd.read_parquet(io.BytesIO(value[1:]))
    if kind == b"A":
        import numpy as np

        end = value.index(b"\n")
        dtype, shape = _array_head(value[1:end])
        return np.frombuffer(value, dtype, offset=end + 1).reshape(shape).copy()
    return json.loads(value[1:])


@cache
def _array_head(head: bytes) -> tuple[str, tuple[int, ...]]:
    dtype, shape = json.loads(head)
    return dtype, tuple(shape)
