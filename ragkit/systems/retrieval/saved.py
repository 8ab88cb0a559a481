"""Indexes on disk: arrays that are mapped into memory, beside a head with their digests."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

from ragkit import paths, store
from ragkit.errors import DataError, HashMismatch, MissingData
from ragkit.files import atomic_path, read_json, sha256, write_text
from ragkit.systems.retrieval.frames import Retriever, document_texts, reusable

HEAD, VERSION = "index.json", 1
AGAIN = "fit(documents) and save(folder) again"


class Saved(Retriever):
    """A retriever whose index can be saved to a folder and loaded from it."""

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Return what decides the index, apart from the documents; what JSON can hold."""

    @abstractmethod
    def _parts(self) -> dict[str, np.ndarray | list[str]]:
        """Return the index."""

    @abstractmethod
    def _use(self, **parts) -> Saved:
        """Take an index; return the retriever."""

    def save(self, folder) -> Path:
        """Write the index to a folder, for `load`; a process that has the old one open keeps it."""
        self._check_fitted()
        folder, digests = Path(folder), {}
        for name, part in self._parts().items():
            if isinstance(part, list):
                part = np.frombuffer(json.dumps(part).encode(), "S1")
            with atomic_path(folder / f"{name}.npy") as path:
                np.save(path, part, allow_pickle=False)
                digests[name] = sha256(path)
        head = {"version": VERSION, "settings": self._settings(), "sha256": digests}
        write_text(
            folder / HEAD, json.dumps(head | {"digest": store.digest(head)}, indent=1) + "\n"
        )
        return folder

    def load(self, folder) -> Saved:
        """Use an index that `save` wrote; return the retriever.

        The digest of every file is checked, and then the arrays are mapped into memory.

        Raises
        ------
        MissingData
            If the folder holds no index.
        DataError
            If the index is of another kind, version or setting, or a file is not as it was saved.
        """
        folder, head = Path(folder), read_json(Path(folder) / HEAD)
        digest = head.pop("digest", None) if isinstance(head, dict) else None
        if digest is None or digest != store.digest(head) or head["version"] != VERSION:
            raise DataError(f"{folder / HEAD} is no index of version {VERSION}, or damaged", AGAIN)
        if head["settings"] != self._settings():
            expected = f"should be one with {self._settings()}, found {head['settings']}"
            raise DataError(f"the index in {folder} {expected}", AGAIN)
        parts = {}
        for name, expected in head["sha256"].items():
            path = folder / f"{name}.npy"
            if not path.is_file() or sha256(path) != expected:
                raise HashMismatch(f"{path} is not the file that was saved", AGAIN)
            part = np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
            parts[name] = json.loads(part.tobytes()) if part.dtype.kind == "S" else part
        return self._use(**parts)


class Kept:
    """A retriever whose index is kept in the cache folder, by its settings and the documents.

    `fit` loads the index where there is one, and else makes and saves it.

    Parameters
    ----------
    retriever : BM25 or Dense
    """

    def __init__(self, retriever: Saved):
        self.retriever, self.system = retriever, retriever.system

    def __repr__(self) -> str:
        return f"<Kept {self.retriever!r}>"

    def fit(self, documents) -> Kept:
        documents, own = reusable(documents), self.retriever
        code = store.code_digest(type(own).__module__)
        known = hashlib.sha256(json.dumps([code, own._settings()]).encode())
        for document in document_texts(documents, own.fields):
            known.update(json.dumps(document).encode())
        folder = paths.cache_dir() / "indexes" / known.hexdigest()[:32]
        try:
            own.load(folder)
        except (MissingData, DataError):
            own.fit(documents).save(folder)
        return self

    def search(self, questions, k: int = 10):
        return self.retriever.search(questions, k)
