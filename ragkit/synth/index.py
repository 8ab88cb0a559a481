"""Volume documents on disk, and who states which fact: hashes of facts and places of documents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ragkit.files import atomic_path
from ragkit.synth.briefs import SOURCES, Brief
from ragkit.synth.plan import SHARD, Plan
from ragkit.synth.streams import digest64

# What documents are counted by. "full": attribute, entity, scope; "pair": attribute, entity;
# "split": place; "told": attribute, kind of subject, description and
# perhaps a scope; "about": source, attribute.
KEYS = ("full", "pair", "split", "told", "about")
NUMBER = (1 << 40) - 1  # a place is the number of a document in its source, and above it the source


def keys(brief: Brief) -> Iterator[tuple[str, int]]:
    """Yield what a document is counted by: kind and digest."""
    subject = brief.subject
    for fact in brief.facts:
        yield "full", digest64(fact.key, fact.entity, fact.scope)
        yield "pair", digest64(fact.key, fact.entity)
        yield "about", digest64(brief.source, fact.key)
        if subject and fact.entity == subject.name:
            for name in filter(None, (subject.far, subject.nick)):
                yield "told", digest64(fact.key, subject.kind, name)
                if fact.scope:
                    yield "told", digest64(fact.key, subject.kind, name, fact.scope)
    if brief.split:
        yield "split", digest64(subject.phrase(brief.scope))


def shard_path(folder: Path, source: str, k: int) -> Path:
    """Return the file of a shard's documents; its index is beside it."""
    return folder / f"{source}-{k + 1:04d}.jsonl"


def write_shard(path: Path, written: list[tuple[int, Brief, dict]]) -> None:
    """Write documents and their index, the index last: a shard with an index is a complete one."""
    offsets, position = [], 0
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        for _, _, document in written:
            offsets.append(position)
            position += file.write(json.dumps(document, ensure_ascii=False).encode() + b"\n")
    source = written[0][1].source if written else SOURCES[0]
    first = SOURCES.index(source) << 40
    rows = [
        (KEYS.index(kind), key, first + number)
        for number, brief, _ in written
        for kind, key in keys(brief)
    ]
    kinds, digests, places = zip(*rows, strict=True) if rows else ((), (), ())
    arrays = {
        "numbers": np.array([number for number, _, _ in written], np.int64),
        "offsets": np.array(offsets, np.int64),
        "kinds": np.array(kinds, np.uint8),
        "keys": np.array(digests, np.uint64),
        "places": np.array(places, np.int64),
    }
    with atomic_path(path.with_suffix(".npz")) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)


class Index:
    """Who states which fact, in the volume and the core.

    Parameters
    ----------
    plan : Plan
    folder : Path
        Of the shards.
    """

    def __init__(self, plan: Plan, folder: Path):
        self.plan, self.folder = plan, folder
        self.offsets = {s: np.full(n, -1, np.int64) for s, n in plan.volume_counts.items()}
        rows = [(KEYS.index(kind), key) for brief in plan.core for kind, key in keys(brief)]
        kinds = [np.array([kind for kind, _ in rows], np.uint8)]
        digests = [np.array([key for _, key in rows], np.uint64)]
        places = [np.full(len(rows), -1, np.int64)]  # no volume document
        for source, k in plan.shards():
            with np.load(shard_path(folder, source, k).with_suffix(".npz")) as index:
                self.offsets[source][index["numbers"]] = index["offsets"]
                kinds.append(index["kinds"])
                digests.append(index["keys"])
                places.append(index["places"])
        kind, digest, place = (np.concatenate(part) for part in (kinds, digests, places))
        self._rows = {}
        for i, name in enumerate(KEYS):
            own, at = digest[kind == i], place[kind == i]
            order = np.argsort(own, kind="stable")
            self._rows[name] = own[order], at[order]
        self._files: dict[tuple[str, int], object] = {}

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *exc) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()

    def count(self, kind: str, *names: str) -> int:
        """Return how many times documents outside the noise have a key."""
        return len(self._find(kind, names))

    def scopes(self, *names: str) -> list[tuple[str, int]]:
        """Return the volume documents that state an attribute of an entity: source, number."""
        rows = sorted(set(self._volume("pair", names).tolist()))
        return [(SOURCES[row >> 40], row & NUMBER) for row in rows]

    def stating(self, source: str, key: str) -> np.ndarray:
        """Return the numbers of a source's volume documents that state an attribute of anybody."""
        return self._volume("about", (source, key)) & NUMBER

    def split_once(self, source: str) -> list[int]:
        """Return the numbers of a source's volume documents that alone split a fact on a place."""
        own, places = self._rows["split"]
        _, first, counts = np.unique(own, return_index=True, return_counts=True)
        once = np.sort(places[first[counts == 1]])
        return [row & NUMBER for row in once.tolist() if row >> 40 == SOURCES.index(source)]

    def read(self, source: str, number: int) -> dict:
        """Return a volume document."""
        key = (source, number // SHARD)
        if key not in self._files:
            self._files[key] = open(shard_path(self.folder, *key), "rb")  # noqa: SIM115
        file = self._files[key]
        file.seek(self.offsets[source][number])
        return json.loads(file.readline())

    def _find(self, kind: str, names: tuple[str, ...]) -> np.ndarray:
        key = np.uint64(digest64(*names))
        own, places = self._rows[kind]
        return places[np.searchsorted(own, key, "left") : np.searchsorted(own, key, "right")]

    def _volume(self, kind: str, names: tuple[str, ...]) -> np.ndarray:
        found = self._find(kind, names)
        return found[found >= 0]
