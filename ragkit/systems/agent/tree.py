"""A corpus as a tree of files, for tools that read files."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ragkit.errors import DataError, did_you_mean
from ragkit.systems.agent.jail import DEEPEST

if TYPE_CHECKING:
    import pandas as pd

LONGEST = 120  # bytes of a name: file systems allow 255, and suffixes come on top
FORMAT = 1
_NOTE, _FILES = "tree.json", "corpus"
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff/\\%:*?\"<>|\[\]]")
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)")


@dataclass(frozen=True)
class Tree:
    """A corpus on disk.

    Parameters
    ----------
    root : Path
        The folder of the files.
    doc_ids : mapping
        Path below `root`, with slashes -> doc_id, in the order of the documents.
    written : int
        How many files were made or made anew; 0 if all were there.
    """

    root: Path
    doc_ids: Mapping[str, str]
    written: int = 0
    paths: Mapping[str, str] = field(init=False, repr=False)

    def __post_init__(self):
        turned = {doc_id: path for path, doc_id in self.doc_ids.items()}
        object.__setattr__(self, "paths", turned)

    def doc_id(self, path: str) -> str | None:
        """Return the document at a path as the sandbox shows it, or None if there is none."""
        parts = [part for part in path.strip().split("/") if part not in ("", ".")]
        return self.doc_ids.get("/".join(parts))


def corpus_tree(documents: pd.DataFrame, folder: str | os.PathLike) -> Tree:
    """Write documents as files below `folder`.

    A document goes to its `path`, where the frame has that column, else to `source/title.txt`.
    The file holds the title, an empty line and the text, which is how EnterpriseRAG-Bench
    releases its documents. Names are made safe without losing which was which: control and
    wildcard characters, a dot or a hyphen at the beginning and the like become %XX, a long name
    is cut and gets a hash, and so does one that differs from another in case or accents alone.

    Running it again writes only what is missing or differs, and removes what is not of the
    corpus.

    Parameters
    ----------
    documents : DataFrame
        doc_id, source, title and text, and perhaps path.
    folder : path
        New, empty, or one that this function wrote. The files are in its folder `corpus`, the map
        of paths is beside it in `tree.json`.

    Returns
    -------
    Tree

    Raises
    ------
    DataError
        If a column is missing, an id is empty, no string or there before, a path is absolute or
        climbs with `..`, or `folder` holds something else.
    """
    files = dict(_files(documents))
    folder = Path(folder)
    doc_ids = {path: doc_id for path, (doc_id, _) in files.items()}
    _claim(folder, doc_ids)
    root = os.open(folder, _FLAGS)
    try:
        corpus = _enter(root, _FILES)
        try:
            written = _write_all(corpus, files)
            _sweep(corpus, "", files, _folders(files))
        finally:
            os.close(corpus)
    finally:
        os.close(root)
    return Tree(folder / _FILES, doc_ids, written)


def _files(documents) -> Iterator[tuple[str, tuple[str, bytes]]]:
    """Yield path -> (doc_id, content), the paths safe and different on every file system."""
    for column in ("doc_id", "source", "title", "text"):
        if column not in documents.columns:
            raise DataError(
                f"the documents lack the column {column!r}",
                did_you_mean(column, map(str, documents.columns)),
            )
    wanted, seen = [], set()
    paths = documents["path"] if "path" in documents.columns else [None] * len(documents)
    columns = (documents[column] for column in ("doc_id", "source", "title", "text"))
    for number, (doc_id, source, title, text, path) in enumerate(
        zip(*columns, paths, strict=True), start=1
    ):
        if not isinstance(doc_id, str) or not doc_id.strip():
            raise DataError(f"document {number} should have a string as doc_id, found {doc_id!r}")
        if doc_id in seen:
            raise DataError(f"document {number} repeats the doc_id {doc_id!r}")
        seen.add(doc_id)
        where = f"document {number} ({doc_id})"
        title, source = _string(title, "title", where), _string(source, "source", where)
        text = _string(text, "text", where)
        named = _string(path, "path", where) or f"{_slug(source)}/{_slug(title or doc_id)}.txt"
        content = f"{title}\n\n{text}\n".encode("utf-8", "surrogatepass")
        wanted.append((doc_id, _parts(named, where), content))
    yield from _apart(wanted)


def _string(value, column: str, where: str) -> str:
    if value is None or value != value:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{where}: {column} should be a string, found {value!r}")
    return value


def _slug(text: str) -> str:
    return re.sub(r"[^\w.]+", "-", text.strip()).strip("-.") or "untitled"


def _parts(path: str, where: str) -> list[str]:
    if path.startswith(("/", "\\")) or re.match(r"[A-Za-z]:[\\/]", path):
        raise DataError(f"{where}: the path {path!r} is absolute, expected one below the corpus")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise DataError(f"{where}: the path {path!r} climbs with '..'")
    if not parts or len(parts) >= DEEPEST:
        raise DataError(f"{where}: the path {path[:60]!r} has {len(parts)} parts, expected 1 to 63")
    return [_safe(part) for part in parts]


def _safe(name: str) -> str:
    """Return `name` with what a shell, a terminal or a file system might trip over as %XX."""
    name = unicodedata.normalize("NFC", name)
    name = _UNSAFE.sub(lambda found: _escaped(found[0]), name)
    if name[0] in ".-~ " or _RESERVED.match(name):
        name = _escaped(name[0]) + name[1:]
    if name[-1] in ". ":
        name = name[:-1] + _escaped(name[-1])
    if len(name.encode()) > LONGEST:
        stem, dot, suffix = name.rpartition(".")
        if not dot or len(suffix) > 10:
            stem, suffix = name, ""
        room = LONGEST - len(suffix.encode()) - 12
        cut = stem.encode()[:room].decode("utf-8", "ignore").rstrip(". ")
        name = f"{cut}~{_hash(name)}{dot if suffix else ''}{suffix}"
    return name


def _escaped(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _apart(wanted) -> Iterator[tuple[str, tuple[str, bytes]]]:
    # Folders that differ in case alone are one; files that would meet get a hash of their id.
    folders: dict[tuple[str, ...], tuple[str, ...]] = {(): ()}
    for _, parts, _ in wanted:
        for depth in range(1, len(parts)):
            key = _key(parts[:depth])
            if key not in folders:
                folders[key] = (*folders[_key(parts[: depth - 1])], parts[depth - 1])
    taken = set(folders)
    for doc_id, parts, content in wanted:
        name = parts[-1]
        above = folders[_key(parts[:-1])]
        if _key((*above, name)) in taken:
            stem, dot, suffix = name.rpartition(".")
            name = f"{stem}~{_hash(doc_id)}.{suffix}" if dot else f"{name}~{_hash(doc_id)}"
        if _key((*above, name)) in taken:
            raise DataError(f"the document {doc_id!r} cannot be told from others by its path")
        taken.add(_key((*above, name)))
        yield "/".join((*above, name)), (doc_id, content)


def _key(parts) -> tuple[str, ...]:
    return tuple(unicodedata.normalize("NFC", part.casefold()) for part in parts)


def _claim(folder: Path, doc_ids: Mapping[str, str]) -> None:
    """Make the folder ours, or find that it is; write the map."""
    note = folder / _NOTE
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()) and not _is_ours(note):
        raise DataError(
            f"{folder}: not empty and not a corpus tree", "name a new folder, or empty this one"
        )
    plain = {
        "format": FORMAT,
        "made_by": "ragkit.systems.agent.corpus_tree",
        "doc_ids": dict(doc_ids),
    }
    text = json.dumps(plain, indent=0, ensure_ascii=True) + "\n"
    if not note.exists() or note.read_text("utf-8") != text:
        number = os.open(folder, _FLAGS)
        try:
            _replace(number, _NOTE, text.encode())
        finally:
            os.close(number)


def _is_ours(note: Path) -> bool:
    try:
        found = json.loads(note.read_text("utf-8")) if not note.is_symlink() else None
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("made_by") == "ragkit.systems.agent.corpus_tree"


# Writing goes through descriptors and never through a link, as reading does (see jail.py).


def _enter(parent: int, name: str) -> int:
    """Open the directory `name` of `parent`, made first if it is not there."""
    for _ in range(2):
        try:
            return os.open(name, _FLAGS, dir_fd=parent)
        except FileNotFoundError:
            os.mkdir(name, dir_fd=parent)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            os.unlink(name, dir_fd=parent)  # a file or a link where a folder belongs
            os.mkdir(name, dir_fd=parent)
    return os.open(name, _FLAGS, dir_fd=parent)


def _write_all(corpus: int, files) -> int:
    written = 0
    held: list[tuple[str, int]] = []  # the folders open from the root down
    try:
        for path in sorted(files):
            *above, name = path.split("/")
            shared = 0
            while shared < min(len(held), len(above)) and held[shared][0] == above[shared]:
                shared += 1
            while len(held) > shared:
                os.close(held.pop()[1])
            for part in above[shared:]:
                held.append((part, _enter(held[-1][1] if held else corpus, part)))
            parent, content = held[-1][1] if held else corpus, files[path][1]
            if not _holds(parent, name, content):
                _replace(parent, name, content)
                written += 1
    finally:
        for _, number in held:
            os.close(number)
    return written


def _holds(parent: int, name: str, content: bytes) -> bool:
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    is_plain = (found.st_mode & 0o170000) == 0o100000 and found.st_nlink == 1
    if not is_plain or found.st_size != len(content):
        return False
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(name, flags, dir_fd=parent), "rb") as file:
        return file.read(len(content) + 1) == content


def _replace(parent: int, name: str, content: bytes) -> None:
    """Put a file in place at once, so that no reader sees half of one."""
    part = f".{_hash(name)}.part"
    with contextlib.suppress(FileNotFoundError):  # there only after an interruption
        os.unlink(part, dir_fd=parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(part, flags, 0o644, dir_fd=parent), "wb") as file:
        file.write(content)
    if _is_folder(parent, name):
        _remove(parent, name)
    os.replace(part, name, src_dir_fd=parent, dst_dir_fd=parent)


def _is_folder(parent: int, name: str) -> bool:
    try:
        return (os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode & 0o170000) == 0o040000
    except FileNotFoundError:
        return False


def _folders(files) -> set[str]:
    found = set()
    for path in files:
        while "/" in path:
            path = path.rpartition("/")[0]
            found.add(path)
    return found


def _sweep(parent: int, above: str, files, folders: set[str]) -> None:
    """Remove what is not of the corpus."""
    for name in os.listdir(parent):
        path = f"{above}{name}"
        if path in folders:
            inner = os.open(name, _FLAGS, dir_fd=parent)
            try:
                _sweep(inner, f"{path}/", files, folders)
            finally:
                os.close(inner)
        elif path not in files:
            _remove(parent, name)


def _remove(parent: int, name: str) -> None:
    if not _is_folder(parent, name):
        os.unlink(name, dir_fd=parent)
        return
    inner = os.open(name, _FLAGS, dir_fd=parent)
    try:
        for other in os.listdir(inner):
            _remove(inner, other)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=parent)
