"""Vectors that need not be computed twice: append-only files that several processes may share.

A folder belongs to one model, told by the digest of its weights and settings. It holds shards: a
header, then blocks of keys (sha256 of the text) and float32 vectors, each with a checksum. A
process that computes claims a shard by a lock, or begins one, and appends a block for each batch;
all others read it meanwhile. What a killed process left half written is cut off by the next one
that claims the shard.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import struct
import threading
import warnings
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from ragkit import paths
from ragkit.errors import DataError

HEADER = struct.Struct("<16s32sII")  # what it is, the model, length of a vector, reserved
BLOCK = struct.Struct("<8sII")  # a mark, number of vectors, checksum of keys and vectors
MAGIC, MARK = b"ragkit-vectors\x001", b"vectors\n"
KEY = 32


def key(*parts: str) -> bytes:
    """Return the key of a text, or of several in their order: 32 bytes."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8")
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.digest()


class VectorCache:
    """The vectors of one model.

    Parameters
    ----------
    folder : path-like
    identity : str
        64 hexadecimal digits that stand for the model: other weights, other digits.
    dimension : int
        Length of a vector.

    Notes
    -----
    Shards of another model, damaged blocks and cut ends are left out with a `RuntimeWarning`;
    what they held is computed anew.
    """

    def __init__(self, folder: str | os.PathLike, identity: str, dimension: int):
        self.folder = Path(folder)
        self._header = HEADER.pack(MAGIC, bytes.fromhex(identity), dimension, 0)
        self._dimension = dimension
        self._width = 4 * dimension
        self._places: dict[bytes, int] = {}  # key -> number of the vector over all blocks
        self._blocks: list[tuple[Path, int, int]] = []  # path, where its vectors begin, first
        self._read_to: dict[Path, int] = {}
        self._count = 0
        self._lock = threading.RLock()
        self._writer: int | None = None
        self._owner = 0

    def __len__(self) -> int:
        with self._lock:
            self._refresh()
            return len(self._places)

    def get(self, keys: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
        """Return vectors and which of them were there.

        Returns
        -------
        vectors : array of shape (len(keys), dimension), float32
            Rows that were not there are not set.
        known : array of bool
        """
        with self._lock:
            self._refresh()
            places = np.array([self._places.get(name, -1) for name in keys], dtype=np.int64)
            vectors = np.empty((len(keys), self._dimension), dtype=np.float32)
            known = places >= 0
            firsts = np.array([first for *_, first in self._blocks], dtype=np.int64)
            blocks = np.where(known, np.searchsorted(firsts, places, side="right") - 1, -1)
            order = np.argsort(blocks, kind="stable")
            order = order[blocks[order] >= 0]
            cuts = np.flatnonzero(np.diff(blocks[order])) + 1
            handles: dict[Path, int] = {}
            try:
                for rows in np.split(order, cuts) if len(order) else ():
                    path, start, first = self._blocks[blocks[rows[0]]]
                    if path not in handles:
                        handles[path] = os.open(path, os.O_RDONLY)
                    inside = places[rows] - first
                    count = int(inside.max()) + 1
                    raw = os.pread(handles[path], count * self._width, start)
                    if len(raw) < count * self._width:
                        raise DataError(f"{path}: became shorter while it was read")
                    block = np.frombuffer(raw, dtype="<f4").reshape(count, -1)
                    vectors[rows] = block[inside]
            finally:
                for handle in handles.values():
                    os.close(handle)
        return vectors, known

    def put(self, keys: Sequence[bytes], vectors: np.ndarray) -> None:
        """Add vectors; they are on their way to the disk when this returns.

        Raises
        ------
        OSError
            If the disk does not take them; what was there before stays.
        """
        vectors = np.ascontiguousarray(vectors, dtype="<f4")
        body = b"".join(keys) + vectors.tobytes()
        block = BLOCK.pack(MARK, len(keys), zlib.crc32(body)) + body
        with self._lock:
            path = self._claim()
            end = os.fstat(self._writer).st_size
            try:
                rest = memoryview(block)
                while rest:
                    rest = rest[os.write(self._writer, rest) :]
            except OSError as error:
                os.ftruncate(self._writer, end)
                raise OSError(error.errno, error.strerror, str(path)) from None
            self._refresh()

    def _claim(self) -> Path:
        """Return the shard that this process alone may append to."""
        if self._writer is not None and self._owner == os.getpid():
            return self._shard
        self.folder.mkdir(parents=True, exist_ok=True)
        number = 0
        while True:
            path = self.folder / f"{number:03d}.vectors"
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
            else:
                if self._mend(handle, path):
                    break
                os.close(handle)
            number += 1
        self._writer, self._owner, self._shard = handle, os.getpid(), path
        return path

    def _mend(self, handle: int, path: Path) -> bool:
        """Make a shard ready to be appended to; False if it is another model's."""
        size = os.fstat(handle).st_size
        if size < HEADER.size and self._header.startswith(os.pread(handle, size, 0)):
            os.ftruncate(handle, 0)
            os.write(handle, self._header)
            return True
        if os.pread(handle, HEADER.size, 0) != self._header:
            return False
        end = self._scan(path, handle, HEADER.size)[1]
        if end < size:
            self._say(path, f"ends {size - end:,} bytes after its last whole block")
            os.ftruncate(handle, end)
            self._read_to[path] = min(self._read_to.get(path, 0), end)
        return True

    def _refresh(self) -> None:
        """Take in what has been added to the shards, by this process or another."""
        if not self.folder.is_dir():
            return
        for path in sorted(self.folder.glob("*.vectors")):
            begin = self._read_to.get(path, 0)
            size = path.stat().st_size
            if size <= begin or (begin == 0 and size < HEADER.size):
                continue
            handle = os.open(path, os.O_RDONLY)
            try:
                if begin == 0:
                    if os.pread(handle, HEADER.size, 0) != self._header:
                        self._say(path, "is not of this model")
                        self._read_to[path] = 1 << 62
                        continue
                    begin = HEADER.size
                blocks, end = self._scan(path, handle, begin)
            finally:
                os.close(handle)
            for names, start in blocks:
                first = self._count
                self._blocks.append((path, start, first))
                self._count += len(names)
                for number, name in enumerate(names, start=first):
                    self._places.setdefault(name, number)
            self._read_to[path] = end

    def _scan(self, path: Path, handle: int, at: int):
        """Return the sound blocks from byte `at` (keys, where the vectors begin) and their end."""
        size, blocks = os.fstat(handle).st_size, []
        while at < size:
            head = os.pread(handle, BLOCK.size, at)
            if len(head) < BLOCK.size:
                break
            mark, count, checksum = BLOCK.unpack(head)
            length = count * (KEY + self._width)
            if mark != MARK:
                self._say(path, f"is damaged from byte {at:,} on")
                break
            if at + BLOCK.size + length > size:
                break
            body = os.pread(handle, length, at + BLOCK.size)
            start = at + BLOCK.size + count * KEY
            if zlib.crc32(body) == checksum:
                names = [body[n : n + KEY] for n in range(0, count * KEY, KEY)]
                blocks.append((names, start))
            else:
                self._say(path, f"is damaged after byte {at:,}")
            at += BLOCK.size + length
        return blocks, at

    def _say(self, path: Path, what: str) -> None:
        warnings.warn(
            f"{path} {what}: left out, and computed anew where it is needed",
            RuntimeWarning,
            stacklevel=5,
        )


def place(cache: bool | str | os.PathLike) -> Path | None:
    """Return the folder that the argument `cache` of encoders and rerankers means.

    True is the folder `embeddings` of the cache of fetched files, False none, and a path itself.
    """
    if isinstance(cache, bool):
        return paths.cache_dir() / "embeddings" if cache else None
    return Path(cache)


@cache
def opened(folder: Path, name: str, identity: str, dimension: int) -> VectorCache:
    """Return the cache of a model, one for each process."""
    return VectorCache(folder / f"{name}-{identity[:12]}", identity, dimension)


def through(
    store: VectorCache | None,
    keys: Sequence[bytes],
    compute: Callable[[list[int]], np.ndarray],
    *,
    dimension: int,
    sizes: Sequence[int],
    batch: int,
    progress: bool = False,
    unit: str = "text",
) -> np.ndarray:
    """Return one vector for each key, computing only what the cache does not have.

    Parameters
    ----------
    store : VectorCache or None
    keys : sequence of bytes, length n
    compute : callable
        From a list of places in `keys` to their vectors.
    dimension : int
    sizes : sequence of int, length n
        Longest first makes batches of like length.
    batch : int
        So many are computed, then kept: what a killed run loses at most.
    progress : bool
    unit : str
        What the progress bar counts.

    Returns
    -------
    array of shape (n, dimension), float32
    """
    from tqdm.auto import tqdm

    numbers: dict[bytes, int] = {}
    inverse = np.array([numbers.setdefault(name, len(numbers)) for name in keys], dtype=np.int64)
    distinct = list(numbers)
    first = np.unique(inverse, return_index=True)[1]
    if store is None:
        vectors = np.empty((len(distinct), dimension), dtype=np.float32)
        known = np.zeros(len(distinct), dtype=bool)
    else:
        vectors, known = store.get(distinct)
    missing = np.flatnonzero(~known)
    missing = missing[np.argsort([-sizes[first[n]] for n in missing], kind="stable")]
    with tqdm(total=len(missing), unit=unit, disable=not (progress and len(missing))) as bar:
        for start in range(0, len(missing), batch):
            part = missing[start : start + batch]
            vectors[part] = compute(first[part].tolist())
            if store is not None:
                store.put([distinct[n] for n in part], vectors[part])
            bar.update(len(part))
    return vectors if len(distinct) == len(keys) else vectors[inverse]
