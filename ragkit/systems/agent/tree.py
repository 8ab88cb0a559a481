"""A corpus as a tree of files, for tools that read files."""

from __future__ import annotations

import json
import os
import re
import shutil
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pandas as pd

from ragkit import schema
from ragkit.errors import DataError
from ragkit.systems.agent.sandbox import check_plain

LONGEST = 120  # bytes of a name: file systems allow 255
DEEPEST = 63
DATE = 946_684_800  # of all files, so that `ls -l` is the same in every run: 2000-01-01
NOTE, FILES, WRITER = "tree.json", "corpus", "ragkit corpus_tree"
UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff/\\%:*?\"<>|\[\]]")
RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)")


@dataclass(frozen=True)
class Tree:
    """A corpus on disk: `doc_ids` maps paths below `root`, with slashes, to ids, in their order."""

    root: Path
    doc_ids: Mapping[str, str]

    def doc_id(self, path: str) -> str | None:
        """Return the document at a path as a command shows it, or None if there is none."""
        parts = [part for part in path.strip().split("/") if part not in ("", ".")]
        return self.doc_ids.get("/".join(parts))


def corpus_tree(documents: pd.DataFrame, folder: str | os.PathLike) -> Tree:
    """Write documents as files below `folder`, unless they are there already.

    A document goes to its `path`, where the frame has that column, else to `source/title.txt`.
    The file holds the title, an empty line and the text, which is how EnterpriseRAG-Bench
    releases its documents. Names are made safe: control and wildcard characters, and a dot or a
    hyphen at the beginning, become %XX; a long name is cut and gets a digest, and so does one that
    differs from another in case or accents alone.

    Parameters
    ----------
    documents : DataFrame
        See `ragkit.schema`; `DataError` if it is not valid, or a path is absolute or climbs with
        `..`.
    folder : path-like
        New, empty, or one that this function wrote, else `DataError`. The files are in its folder
        `corpus`, the map of paths is beside it in `tree.json`.
    """
    schema.check(documents, "documents")
    files = dict(_files(documents))
    folder = Path(folder)
    doc_ids = {path: doc_id for path, (doc_id, _) in files.items()}
    note, root = {"written_by": WRITER, "doc_ids": doc_ids}, folder / FILES
    if _note(folder) == note and _is_whole(root, files):
        return Tree(root, doc_ids)
    shutil.rmtree(root, ignore_errors=True)
    (folder / NOTE).unlink(missing_ok=True)
    for path, (_, content) in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        with open(root / path, "xb") as stream:
            stream.write(content)
    for path in (root, *root.rglob("*")) if files else ():
        os.utime(path, (DATE, DATE))
    (folder / NOTE).write_text(json.dumps(note), "utf-8")
    return Tree(root, doc_ids)


def _is_whole(root: Path, files: Mapping[str, tuple[str, bytes]]) -> bool:
    """Return whether a folder holds the files, unchanged, and no other ones."""
    try:
        check_plain(root)
        there = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
        same = (root.joinpath(path).read_bytes() == content for path, (_, content) in files.items())
        return there == files.keys() and all(same)
    except (DataError, OSError):
        return False


def _note(folder: Path) -> dict | None:
    """Return the map of a folder that `corpus_tree` wrote, or None if the folder is empty."""
    if not folder.exists() or not any(folder.iterdir()):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NOTE).write_text(json.dumps({"written_by": WRITER}), "utf-8")
        return None
    note = folder / NOTE
    try:
        found = json.loads(note.read_text("utf-8")) if not note.is_symlink() else None
    except (OSError, ValueError):
        found = None
    linked = (folder / FILES).is_symlink()
    if linked or not isinstance(found, dict) or found.get("written_by") != WRITER:
        hint = "name a new folder, or empty this one"
        raise DataError(f"{folder}: not empty and not a corpus tree", hint)
    return found


def _files(documents) -> Iterator[tuple[str, tuple[str, bytes]]]:
    """Yield path -> (doc_id, content); paths are safe and different on every file system."""
    paths = documents["path"] if "path" in documents.columns else [None] * len(documents)
    columns = (documents[column] for column in ("doc_id", "source", "title", "text"))
    folders: dict[tuple[str, ...], tuple[str, ...]] = {(): ()}
    wanted = []
    for doc_id, source, title, text, path in zip(*columns, paths, strict=True):
        source, title = (value if isinstance(value, str) else "" for value in (source, title))
        if path is None or path != path or path == "":
            path = f"{_slug(source)}/{_slug(title or doc_id)}.txt"
        if not isinstance(path, str):
            raise DataError(f"document {doc_id!r}: path should be a string, found {path!r}")
        parts = _parts(path, f"document {doc_id!r}")
        wanted.append((doc_id, parts, f"{title}\n\n{text}\n".encode("utf-8", "replace")))
        # Folders that differ in case or accents alone are one.
        for depth in range(1, len(parts)):
            above = folders[_key(parts[: depth - 1])]
            folders.setdefault(_key(parts[:depth]), (*above, parts[depth - 1]))
    taken = set(folders)
    for doc_id, parts, content in wanted:
        above, name = folders[_key(parts[:-1])], parts[-1]
        if _key((*above, name)) in taken:
            stem, suffix = os.path.splitext(name)
            name = f"{stem}~{_hash(doc_id)}{suffix}"
        if _key((*above, name)) in taken:
            raise DataError(f"the document {doc_id!r} has the path of another one")
        taken.add(_key((*above, name)))
        yield "/".join((*above, name)), (doc_id, content)


def _slug(text: str) -> str:
    return re.sub(r"[^\w.]+", "-", text.strip()).strip("-.") or "untitled"


def _parts(path: str, where: str) -> list[str]:
    if path.startswith(("/", "\\")) or re.match(r"[A-Za-z]:[\\/]", path):
        raise DataError(f"{where}: the path {path!r} is absolute, expected one below the corpus")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise DataError(f"{where}: the path {path!r} climbs with '..'")
    if not 1 <= len(parts) <= DEEPEST:
        found = f"has {len(parts)} parts, expected 1 to {DEEPEST}"
        raise DataError(f"{where}: the path {path[:60]!r} {found}")
    return [_safe(part) for part in parts]


def _safe(name: str) -> str:
    """Return `name` with what a shell, a terminal or a file system might trip over as %XX."""
    name = UNSAFE.sub(lambda found: _escaped(found[0]), unicodedata.normalize("NFC", name))
    if name[0] in ".-~ " or RESERVED.match(name):
        name = _escaped(name[0]) + name[1:]
    if name[-1] in ". ":
        name = name[:-1] + _escaped(name[-1])
    if len(name.encode()) > LONGEST:
        suffix = os.path.splitext(name)[1]
        suffix = suffix if len(suffix) <= 11 else ""
        kept = name.removesuffix(suffix).encode()[: LONGEST - len(suffix.encode()) - 12]
        name = f"{kept.decode('utf-8', 'ignore').rstrip('. ')}~{_hash(name)}{suffix}"
    return name


def _escaped(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _key(parts) -> tuple[str, ...]:
    return tuple(unicodedata.normalize("NFC", part.casefold()) for part in parts)
