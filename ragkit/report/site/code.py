"""What the site says of the code: modules, commands, the drawn floors, the workflow."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from ragkit import paths, store
from ragkit.errors import RagkitError
from ragkit.report import notebook
from ragkit.report.pipeline import Plan

DRAWING = paths.ROOT / "ARCHITECTURE.md"
PACKAGE = paths.ROOT / "ragkit"
PAGES = Path(__file__).with_name("pages")
# The command line is documented by its help.
COMMANDS = "cli"


def _room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _modules() -> dict[str, Path]:
    """Return the modules by dotted name, in order."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        folders = path.relative_to(PACKAGE.parent).parents[:-1]
        inside = all((PACKAGE.parent / one / "__init__.py").is_file() for one in folders)
        if inside and path.name not in ("__main__.py", "conf.py"):
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            found[".".join(part for part in parts if part != "__init__")] = path
    return found


@cache
def modules() -> dict[str, dict[str, list[str]]]:
    """Return the public API: the names that each module offers, by subpackage, the ground first.

    Public is what a subpackage exports, what a notebook, a guide or the README takes out of the
    package, and what stands beside these with an example of its own, or is an error. The rest may
    change.

    >>> modules()["models"]["ragkit.models"][:3]
    ['Card', 'Encoder', 'Reranker']
    """
    home = {}
    for name, path in _modules().items():
        if path.name == "__init__.py" and _room(path) != COMMANDS:
            home |= {_place(value): name for value in _exported(importlib.import_module(name))}
    found = defaultdict(set)
    for pair in {*home, *(pair for source in _sources() for pair in taken(source))}:
        found[home.get(pair, pair[0])].add(pair[1])
    rooms = defaultdict(dict)
    for name in sorted(found):
        for value in filter(_defined, vars(importlib.import_module(name)).values()):
            error = inspect.isclass(value) and issubclass(value, RagkitError)
            module, word = _place(value)
            if module == name and word[0] != "_" and (error or ">>>" in (value.__doc__ or "")):
                found[name].add(word)
        path = _modules()[name]
        room = "ground" if path.parent == PACKAGE else _room(path)
        rooms[room][name] = sorted(found[name])
    return dict(sorted(rooms.items(), key=lambda room: room[0] != "ground"))


def _defined(value: object) -> bool:
    known = str(getattr(value, "__module__", "")).startswith("ragkit.")
    return known and (inspect.isclass(value) or inspect.isfunction(inspect.unwrap(value)))


def _place(value) -> tuple[str, str]:
    return value.__module__, value.__name__


def _exported(package: ModuleType) -> list:
    """Return what a subpackage lists in `__all__`, or all that it imports if it only imports."""
    values = {name: value for name, value in vars(package).items() if name[0] != "_"}
    names = getattr(package, "__all__", None)
    if names is None:
        alone = all(
            value.__module__ != package.__name__ for value in values.values() if _defined(value)
        )
        names = values if alone else []
    return [value for name in names if _defined(value := getattr(package, name))]


def _sources() -> Iterator[str]:
    """Yield the Python of the notebooks, the guides and the README."""
    for path in (paths.ROOT / "README.md", *sorted((PAGES / "guides").glob("*.md"))):
        text = path.read_text("utf-8")
        yield from re.findall(r"^```python[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        yield notebook.code(path)


def taken(source: str) -> set[tuple[str, str]]:
    """Return the functions and classes that code takes out of `ragkit`: module and name."""
    tree, known, found = ast.parse(source), {}, []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ragkit"):
            for alias in node.names:
                home = importlib.import_module(node.module)
                value = getattr(home, alias.name, None)
                if value is None:
                    value = importlib.import_module(f"{node.module}.{alias.name}")
                known[alias.asname or alias.name] = value
    for node in ast.walk(tree):
        names, value = [], node
        while isinstance(value, ast.Attribute):
            names, value = [value.attr, *names], value.value
        value = known.get(value.id) if isinstance(value, ast.Name) else None
        while inspect.ismodule(value) and names:
            value = getattr(value, names.pop(0), None)
        found.append(value)
    return {_place(value) for value in found if _defined(value)}


def reference() -> dict[str, str]:
    """Return a page for each module with public names, by its place among the sources."""
    pages = {}
    for module, names in (pair for room in modules().values() for pair in room.items()):
        lines = [f"# {module}", "", "```{eval-rst}", f".. automodule:: {module}", "   :no-members:"]
        home = importlib.import_module(module)
        for name in names:
            kind = "class" if inspect.isclass(getattr(home, name)) else "function"
            lines += ["", f".. auto{kind}:: {module}.{name}"]
        pages[f"reference/{module}.md"] = "\n".join([*lines, "```", ""])
    return pages


def rooms() -> dict:
    """Return ARCHITECTURE.md, and its drawing with sizes and imports as they are in the code.

    `text` is the file, `floors` a list of lists of rooms from the top down, each with its name,
    lines, modules and the rooms that it imports.
    """
    text = DRAWING.read_text("utf-8")
    lines, sizes, imports = Counter(), Counter(), {}
    for name, path in _modules().items():
        room = _room(path) if name != "ragkit" else ""
        lines[room] += path.read_text("utf-8").count("\n")
        sizes[room] += 1
        below = {part.split(".")[1] for part in store.imports(path) if part.startswith("ragkit.")}
        imports.setdefault(room, set()).update(below - {room})
    floors = [
        [
            {"name": room, "lines": lines[room], "modules": sizes[room],
             "imports": ", ".join(sorted(imports.get(room, set()) & set(lines)))}
            for room in line.split()
        ]
        for line in text.split("```")[1].strip().splitlines()
    ]  # fmt: skip
    return {"text": text, "floors": floors}


def workflow(plan: Plan) -> str:
    """Return the workflow in words: each notebook, the data that it needs, and what it reads."""
    parts = []
    for step in plan.steps:
        needs = [*step.datasets, *(f"{name} if at hand" for name in step.optional)]
        after = "all notebooks" if "*" in step.after else ", ".join(step.after)
        reads = ", ".join([*needs, *([after] if after else [])]) or "nothing"
        parts.append(f"{step.name} reads {reads}")
    return "; ".join(parts) + "."


def drawn_workflow(plan: Plan) -> dict:
    """Return what `pages/workflow.svg` draws: data, notebooks and the notebooks that read them.

    `at` are the middles of their boxes in columns from left to right, `lines` start, end, and
    whether the data is optional.
    """
    last = [step for step in plan.steps if step.after]
    first = [step for step in plan.steps if not step.after]
    lines = [(name, step.name, False) for step in first for name in step.datasets]
    lines += [(name, step.name, True) for step in first for name in step.optional]
    data = list(dict.fromkeys(name for name, _, _ in lines))
    for step in last:
        read = [one for one in first if "*" in step.after or one.name in step.after]
        lines += [(one.name, step.name, False) for one in read] + [(step.name, "site", False)]
    columns = [data, [step.name for step in first], [step.name for step in last], ["site"]]
    at = {
        name: (100 + 245 * place, round(600 * (row + 0.5) / len(names)))
        for place, names in enumerate(columns)
        for row, name in enumerate(names)
    }
    return {"at": at, "lines": lines}
