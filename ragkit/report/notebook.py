"""Run one notebook headlessly: papermill, with strict parameters and failures that say where.

papermill only warns of a misspelt parameter, keeps derived values of the parameters cell and lets
a later cell overwrite what was set. Here all of that is an error before a kernel starts.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ragkit import checks, paths, store
from ragkit.errors import DataError, NotebookError, UsageError, did_you_mean
from ragkit.files import write_text
from ragkit.llm.used import record

if TYPE_CHECKING:
    from nbformat import NotebookNode

_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSWORD|API_KEY", re.IGNORECASE)


def read(path: str | os.PathLike) -> NotebookNode:
    """Return a notebook; `DataError` if it is not valid, `UsageError` if there is no such file."""
    import nbformat

    path = Path(path)
    if not path.is_file():
        known = [other.stem for other in path.parent.glob("*.ipynb")]
        raise UsageError(f"no notebook {path}", did_you_mean(path.stem, known))
    try:
        book = nbformat.read(path, as_version=4)
        nbformat.validate(book)
    except (nbformat.ValidationError, nbformat.reader.NotJSONError, AttributeError) as error:
        raise DataError(f"{path}: not a valid notebook ({str(error).splitlines()[0]})") from None
    return book


def _code(book: NotebookNode, name: str = "") -> Iterator[tuple[NotebookNode, str, ast.Module]]:
    """Yield each cell of Python with its place and syntax tree.

    Cell magics are left out; so are line magics, which are not Python and assign no parameter.
    """
    for cell in book.cells:
        if cell.cell_type == "code" and not cell.source.lstrip().startswith("%%"):
            place = f"{name} > {cell.get('id')}"
            plain = re.sub(r"^(\s*)[%!].*$", r"\1pass", cell.source, flags=re.MULTILINE)
            try:
                yield cell, place, ast.parse(plain)
            except SyntaxError as error:
                raise DataError(f"{place}: line {error.lineno}: {error.msg}") from None


def parameters(book: NotebookNode, name: str = "notebook") -> dict[str, object]:
    """Return the parameters of a notebook with their defaults.

    Raises
    ------
    DataError
        If not exactly one code cell is tagged `parameters`, if that cell holds anything but
        assignments of literals, or if a later cell assigns to a parameter.

    >>> from ragkit import paths
    >>> parameters(read(paths.NOTEBOOKS / "30-liverag-irt.ipynb"))["profile"]
    'sample'
    """
    tagged = sum("parameters" in cell.metadata.get("tags", []) for cell in book.cells)
    if tagged != 1:
        raise DataError(f"{name}: {tagged} cells are tagged parameters, expected one")
    found: dict[str, object] = {}
    for cell, place, tree in _code(book, name):
        own = "parameters" in cell.metadata.get("tags", [])
        for node in tree.body if own else ():
            at = f"{place}: line {node.lineno}:"
            match node:
                case ast.Assign(targets=[ast.Name(id=target)], value=value):
                    try:
                        found[target] = ast.literal_eval(value)
                    except ValueError:
                        hint = "papermill would keep the value derived from the defaults"
                        raise DataError(f"{at} {target} is derived, not a literal", hint) from None
                case _:
                    raise DataError(f"{at} only `name = literal` may stand here")
        for node in () if own else ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in found:
                raise DataError(
                    f"{place}: line {node.lineno} assigns to the parameter {node.id!r}, which "
                    "would undo what was set"
                )
    return found


def check_parameters(given: dict[str, object], known: dict[str, object], name: str) -> None:
    """Raise `UsageError` if a parameter is unknown or of another type than its default.

    >>> check_parameters({"profle": "paper"}, {"profile": "sample"}, "30-liverag-irt")
    Traceback (most recent call last):
        ...
    ragkit.errors.UsageError: no parameter of 30-liverag-irt 'profle'
      hint: did you mean 'profile'?
    """
    for key, value in given.items():
        checks.choice(key, f"parameter of {name}", known)
        kind = type(known[key])
        allowed = (int, float) if kind is float else (kind,)
        if known[key] is not None and type(value) not in allowed:
            found = f"{type(value).__name__} {value!r}"
            raise UsageError(f"{name}: parameter {key} expects {kind.__name__}, got {found}")


def run(
    source: str | os.PathLike,
    target: str | os.PathLike,
    given: dict[str, object] | None = None,
    *,
    log: str | os.PathLike | None = None,
    resume: str = "",
    timeout: float | None = None,
) -> float:
    """Execute a notebook with parameters; return the seconds it took.

    The executed copy appears at `target` only if every cell succeeded. A failed copy goes beside
    `log` (default `TARGET.log`), which holds the printed output and a traceback. The values of
    environment variables that look like secrets are removed from both. `resume` is the command
    that continues after a failure, for the message; `timeout` the seconds that a cell may take.

    Raises
    ------
    UsageError, DataError
        Before a kernel starts: see `parameters` and `check_parameters`.
    NotebookError
        If a cell failed: names the cell, the last line of the error, the log and how to resume.
    """
    import nbformat

    source, target, given = Path(source), Path(target), given or {}
    log = Path(log) if log else target.with_suffix(".log")
    check_parameters(given, parameters(read(source), source.stem), source.stem)
    failed = log.with_name(f"{source.stem}.failed.ipynb")
    failed.unlink(missing_ok=True)
    start = time.monotonic()
    with record() as calls:
        book, cell, reason, traceback = _execute(source, given, timeout)
    seconds = time.monotonic() - start
    shown = " ".join(f"{key}={shlex.quote(str(value))}" for key, value in given.items())
    lines = [f"{source.stem} {shown}".rstrip(), f"{seconds:.1f} s", ""]
    for one in book.cells:
        for output in one.get("outputs", []):
            if output.output_type == "stream":
                lines += [f"[{one.get('id')}]", output.text.rstrip(), ""]
    place = f"{source.stem} > {cell}" if cell else source.stem
    lines += [f"failed: {place}: {reason}", traceback] if reason else []
    write_text(log, redact(_ANSI.sub("", "\n".join(lines))) + "\n")
    book.metadata["ragkit"] = {"commit": commit(), "calls": calls}
    write_text(failed if reason else target, redact(nbformat.writes(book)) + "\n")
    if reason:
        hint = f"log: {log}; opened copy: {failed}" + (f"; resume with: {resume}" if resume else "")
        raise NotebookError(redact(f"{place}: {reason}"), hint)
    return seconds


def _execute(
    source: Path, given: dict, timeout: float | None
) -> tuple[NotebookNode, str, str, str]:
    """Return the executed notebook; if it failed, the cell to blame if any, why, the traceback."""
    import logging
    import tempfile

    import nbformat
    import papermill
    from nbclient.exceptions import DeadKernelError
    from papermill.exceptions import PapermillExecutionError

    logging.getLogger("papermill").setLevel(logging.ERROR)
    place, reason, traceback = None, "", ""
    with tempfile.TemporaryDirectory(prefix="ragkit-") as scratch:
        copy = Path(scratch) / source.name
        try:
            papermill.execute_notebook(
                str(source), str(copy), given, kernel_name="python3", language="python",
                cwd=str(paths.ROOT), progress_bar=False, execution_timeout=timeout, start_timeout=180,
                # The kernel warns of each start that its loopback ports are not encrypted.
                extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
            )  # fmt: skip
        except PapermillExecutionError as error:
            place, traceback = error.cell_index, "\n".join(error.traceback)
            reason = f"{error.ename}: {error.evalue}".split("\n")[0]
        except DeadKernelError:
            reason = "the kernel died (out of memory?)"
        except TimeoutError as error:
            reason = f"a cell took too long ({str(error).splitlines()[0]})"
        book = nbformat.read(copy if copy.is_file() else source, as_version=4)
    # papermill's own banner about the error is noise beside ours.
    tag = "papermill-error-cell-tag"
    book.cells = [cell for cell in book.cells if tag not in cell.metadata.get("tags", [])]
    return book, "" if place is None else str(book.cells[place].get("id")), reason, traceback


def commit() -> str:
    """Return the commit of the code, "+" after it if files differ from it; "" outside of git."""
    git = ["git", "-C", str(paths.ROOT)]
    done = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True)
    if done.returncode:
        return ""
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD"], capture_output=True).returncode
    return done.stdout.strip() + ("+" if changed else "")


def redact(text: str) -> str:
    """Return `text` with the values of secret-looking environment variables struck out."""
    for name, value in os.environ.items():
        if _SECRET_NAME.search(name) and len(value) >= 8:
            text = text.replace(value, f"[{name}]")
    return text


def code(path: str | os.PathLike) -> str:
    """Return a notebook as readable code: cells by their ids, no outputs. For `git diff`."""
    lines = []
    for number, cell in enumerate(read(path).cells, start=1):
        tags = cell.metadata.get("tags", [])
        mark = f" [{', '.join(tags)}]" if tags else ""
        text = cell.source.rstrip()
        if cell.cell_type != "code":
            text = "\n".join(f"# {line}".rstrip() for line in text.split("\n"))
        lines += [f"# %% {cell.get('id', number)}{mark}", text, ""]
    return "\n".join(lines)


def dependencies(book: NotebookNode) -> list[Path]:
    """Return the files that decide what a notebook computes, besides itself and its data.

    These are the modules and package data of `ragkit.store.dependencies`, and the files in
    `notebooks/` that the code of the notebook or of those modules names in a string.
    """
    code = "\n".join(ast.unparse(tree) for _, _, tree in _code(book))
    found = store.dependencies(source=code)
    texts = [code, *(path.read_text("utf-8") for path in found if path.suffix == ".py")]
    for path in sorted(paths.NOTEBOOKS.glob("*.toml")):
        if any(re.search(rf"[\"'/]{re.escape(path.name)}[\"']", text) for text in texts):
            found.append(path)
    return found
