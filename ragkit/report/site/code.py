"""What the site says of the code: modules, commands, the drawn floors, the workflow."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

from ragkit import paths, store
from ragkit.report import figures
from ragkit.report.pipeline import Plan

DRAWING = paths.ROOT / "ARCHITECTURE.md"
PACKAGE = paths.ROOT / "ragkit"
# The command line is documented by its help.
COMMANDS = "cli"


def _room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _modules() -> dict[str, Path]:
    """Return the modules by dotted name, in order."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        inside = all((folder / "__init__.py").is_file() for folder in _folders(path))
        if inside and path.name not in ("__main__.py", "conf.py"):
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            found[".".join(part for part in parts if part != "__init__")] = path
    return found


def _folders(path: Path) -> list[Path]:
    return [folder for folder in path.parents if PACKAGE in (folder, *folder.parents)]


def modules() -> dict[str, list[str]]:
    """Return the modules with something public, by subpackage, the ground first.

    >>> modules()["models"][:2]
    ['ragkit.models.base', 'ragkit.models.encoders']
    """
    found: dict[str, list[str]] = {}
    for name, path in _modules().items():
        tree = ast.parse(path.read_text("utf-8"))
        public = any(
            isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
            for node in tree.body
        )
        if public and _room(path) not in (COMMANDS, "__init__"):
            room = _room(path) if path.parent != PACKAGE else "ground"
            found.setdefault(room, []).append(name)
    return found


def reference() -> dict[str, str]:
    """Return a page for each module, by its place among the sources."""
    return {
        f"reference/{name}.md": f"# {name}\n\n```{{eval-rst}}\n.. automodule:: {name}\n```\n"
        for names in modules().values()
        for name in names
    }


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


def draw_workflow(plan: Plan, path: Path) -> None:
    """Draw data sets, notebooks and the notebooks that read them, from left to right, as SVG."""
    import matplotlib.pyplot as plt

    from ragkit.files import atomic_path

    last = [step for step in plan.steps if step.after]
    first = [step for step in plan.steps if not step.after]
    data = list(dict.fromkeys(name for step in first for name in (*step.datasets, *step.optional)))
    columns = [data, [step.name for step in first], [step.name for step in last], ["site"]]
    at = {
        name: (place, (row + 0.5) / len(names))
        for place, names in enumerate(columns)
        for row, name in enumerate(names)
    }
    lines = [(name, step.name, "-") for step in first for name in step.datasets]
    lines += [(name, step.name, ":") for step in first for name in step.optional]
    lines += [(other.name, step.name, "-") for step in last for other in first
              if "*" in step.after or other.name in step.after]  # fmt: skip
    lines += [(step.name, "site", "-") for step in last]
    figures.use_style()
    with plt.rc_context({"svg.hashsalt": "ragkit", "svg.fonttype": "none"}):
        fig, ax = plt.subplots(figsize=(9, 6))
        for start, end, style in lines:
            (x0, y0), (x1, y1) = at[start], at[end]
            ax.plot([x0 + 0.02, x1 - 0.02], [-y0, -y1], style, color="#666666", linewidth=0.7)
        for name, (x, y) in at.items():
            box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "#0072B2"}
            ax.text(x, -y, name, ha="center", va="center", fontsize=7, bbox=box)
        ax.set(xlim=(-0.35, len(columns) - 0.75))
        ax.axis("off")
        with atomic_path(path) as temporary:
            fig.savefig(temporary, format="svg", metadata={"Date": None, "Creator": None})
        plt.close(fig)
