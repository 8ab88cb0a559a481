"""Small data folders in the official layouts, in words of our own, and a registry of them."""

from __future__ import annotations

import copy
import csv
import gzip
import hashlib
import io
import json
import zipfile
from pathlib import Path

from ragkit import datasets
from ragkit.datasets import fetch, registry
from ragkit.datasets.registry import Entry
from ragkit.paths import REGISTRY

_FILES = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
# name -> path -> what it holds: rows, a JSON value, or the members of a zip file.
OFFICIAL = _FILES["files"]
# What a loader cannot do without, beside what the layout needs to be read at all.
COLUMNS = _FILES["columns"]
NQ = "comparison_questions/nq_open_dev.jsonl"
KB = "wixqa/wix_kb_corpus/wix_kb_corpus.jsonl"
EXPERT = "wixqa/wixqa_expertwritten/test.jsonl"
ZIP = "enterpriserag_bench/all_documents.zip"
PARQUET = "liverag/LiveRAG_banchmark_20250910.parquet"
LSAT = "irt/ltm_LSAT.csv"
OWNER = {path: name for name, some in OFFICIAL.items() for path in some}


def contents(name):
    """A copy of what a dataset's files hold, to be spoiled."""
    return copy.deepcopy(OFFICIAL[name])


def count(path, value):
    """How many rows the registry has to expect."""
    if path == "wixqa/expertwritten_retrieval_scores_pulseagent.json":
        return sum(map(len, value.values()))
    if path == "comparison_questions/popqa_model_collaboration_2000.json":
        return len(value["dev"]) + len(value["test"])
    if path == "enterpriserag_bench/system_answers_jsonl.zip":
        return sum(text.count("\n") for text in value.values())
    return len(value)


def encode(path, value) -> bytes:
    """The bytes of a file of that name."""
    if isinstance(value, bytes):
        return value
    if path.endswith(".gz"):
        return gzip.compress(encode(path.removesuffix(".gz"), value), mtime=0)
    if path.endswith(".jsonl"):
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in value).encode()
    if path.endswith(".json"):
        return json.dumps(value, indent=1, ensure_ascii=False).encode()
    if path.endswith((".csv", ".tsv")):
        stream = io.StringIO(newline="")
        delimiter = "\t" if path.endswith(".tsv") else ","
        writer = csv.DictWriter(stream, list(value[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(value)
        return stream.getvalue().encode()
    stream = io.BytesIO()
    if path.endswith(".zip"):
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, text in value.items():
                archive.writestr(member, text)
        return stream.getvalue()
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(value), stream)
    return stream.getvalue()


def write(folder: Path, files: dict) -> Path:
    """Write a data folder; a file whose content is None is left out."""
    for path, value in files.items():
        if value is not None:
            at = folder / path
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_bytes(encode(path, value))
    return folder


def register(monkeypatch, *entries: Entry) -> dict[str, Entry]:
    """Put a registry of our own in the place of the real one."""
    own = {entry.path: entry for entry in entries}
    monkeypatch.setattr(registry, "entries", lambda: own)
    monkeypatch.setattr(fetch, "entries", lambda: own)
    return own


def entry(path, value=None, *, pinned=True, **more) -> Entry:
    """A registered file with the digest of its small content; read as the real one is."""
    if value is None:
        value = OFFICIAL[OWNER[path]][path]
    raw = encode(path, value)
    digest = {"sha256": sha256_of(raw), "bytes": len(raw)} if pinned else {}
    rows = None if isinstance(value, bytes) else count(path, value)
    real = registry._registry(REGISTRY)[1].get(path)
    fields = {
        "dataset": OWNER.get(path, "other"),
        "origin": "the test",
        "licence": "CC0",
        "rows": rows,
        "url": f"https://data.example/{path}",
        "read": real.read if real else {},
        "optional": bool(real and real.optional),
        "extra": bool(real and real.extra),
    }
    return Entry(path, **fields | digest | more)


def sha256_of(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def register_all(monkeypatch, *, pinned=False) -> None:
    """Register every small file, by its row count alone or by its digest too."""
    register(monkeypatch, *(entry(path, pinned=pinned) for path in OWNER))


def load(name, folder):
    return datasets.load(name, profile="paper", data=folder)
