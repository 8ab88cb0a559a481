"""Random damage to every file of every format: a named error or a harmless change, nothing else."""

from __future__ import annotations

import copy
import gzip
import json
import math
import random
import zipfile

import pandas as pd
import pytest

from ragkit import files, schema
from ragkit.errors import DataError, RagkitError
from tests.datasets import official

COUNTS = pytest.mark.parametrize(
    "count", [10, pytest.param(300, marks=pytest.mark.slow)], ids=["few", "many"]
)
HOSTILE = [None, math.nan, math.inf, 7, -1.5, True, "", " \n", "\ud800", "a\0b", "x" * 99_999]
HOSTILE += [[], {}] + [
    [None],
    [[]],
    {"doc_id": 1},
    "[1,",
    "[" * 5000,
    "9" * 5000,
    10**400,
    "\u202e<script>",
]
# A user's files, by name: the frame that they are read as, and their rows.
DOCUMENTS = [{"id": n, "title": "A", "contents": f"text {n}"} for n in range(3)]
ASKED = [{"id": str(n), "question": "Why?", "gold_doc_ids": ["a"], "facts": []} for n in range(3)]
SCORES = [{"system": "s", "item_id": str(n), "metric": "RR", "score": 0.5} for n in range(3)]
USERS = {
    **{f"d{end}": ("documents", DOCUMENTS) for end in (".jsonl", ".json", ".csv", ".tsv.gz")},
    **{f"q{end}": ("questions", ASKED) for end in (".jsonl.gz", ".json.gz", ".parquet")},
    **{f"s{end}": ("scores", SCORES) for end in (".csv", ".tsv", ".csv.gz", ".parquet", ".jsonl")},
    "a.jsonl": ("answers", [{"question_id": n, "answer": "So.", "doc_ids": ["a"]} for n in "12"]),
    "all.zip": ("documents", {"slack/d1__x.txt": "Title\n\nText.", "jira/d2__y.txt": "Title"}),
    "l.parquet": ("questions", official.OFFICIAL["liverag"][official.PARQUET]),
}


def damaged(path: str, value, rng: random.Random) -> bytes:
    """Return the bytes of a file with one thing wrong in its values or its bytes."""
    if rng.random() < 0.6:
        spoiled = copy.deepcopy(value)
        spoil_value(spoiled, rng)
        try:
            return official.encode(path, spoiled)
        except Exception:  # the format cannot hold the value
            return damaged(path, value, rng)
    raw, packed = official.encode(path, value), path.endswith(".gz") and rng.random() < 0.7
    raw = spoil_bytes(gzip.decompress(raw) if packed else raw, rng)
    return gzip.compress(raw) if packed else raw


def spoil_value(value, rng: random.Random) -> None:
    """Change one value, key or row in place."""
    at = rng.choice([*value]) if isinstance(value, dict) else rng.randrange(len(value))
    if isinstance(value[at], dict | list) and value[at] and rng.random() < 0.8:
        spoil_value(value[at], rng)
    elif rng.random() < 0.6:
        value[at] = rng.choice(HOSTILE)
    elif isinstance(value, list):
        value.insert(at, copy.deepcopy(rng.choice(value)))
    else:
        kept = value.pop(at)
        value |= rng.choice([{}, {f"{at}s": kept}, {str(at).upper(): kept}])


def spoil_bytes(raw: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(raw))
    end = min(len(raw), start + rng.choice([0, 1, 2, 40]))
    other = rng.choice([b"", b"\0", b"\xff", b'"', b",", b"\n", b"NaN", b"\\ud800", raw[:end]])
    return rng.choice([raw[:start], raw[:start] + other + raw[end:], raw + raw[start:end]])


def check(frames: dict[str, pd.DataFrame]) -> None:
    """Check that what was read is harmless: valid frames of texts that can be written."""
    for kind, frame in frames.items():
        if kind in schema.COLUMNS:
            schema.check(frame, kind)
        for score in frame.get("score", ()):
            assert math.isfinite(score)
        for column in frame:
            str(frame[column].tolist()).encode()
            "".join(value for value in frame[column] if isinstance(value, str)).encode()


def attack(count: int, path: str, value, folder, read) -> None:
    rng, at = random.Random(path), folder / path
    at.parent.mkdir(parents=True, exist_ok=True)
    for _ in range(count):
        at.write_bytes(damaged(path, value, rng))
        try:
            frames = read(at)
        except RagkitError as error:
            message = error.message
        else:
            check(frames)
            message = str(folder)
        assert str(folder) in message or message.startswith(official.OWNER[path])


@COUNTS
@pytest.mark.parametrize("path", official.OWNER)
def test_a_damaged_official_file_is_named_or_harmless(path, count, tmp_path, monkeypatch):
    name = official.OWNER[path]
    official.register_all(monkeypatch)
    official.write(tmp_path, official.OFFICIAL[name])
    value = official.OFFICIAL[name][path]
    attack(count, path, value, tmp_path, lambda _: official.load(name, tmp_path).frames)


@COUNTS
@pytest.mark.parametrize("path", USERS)
def test_a_damaged_file_of_a_user_is_named_or_harmless(path, count, tmp_path):
    kind, value = USERS[path]
    attack(count, path, value, tmp_path, lambda at: {kind: files.read_frame(at, kind)})


@pytest.mark.parametrize("name", ["d.jsonl.gz", "d.zip", "d.parquet"])
def test_a_small_file_may_not_hold_a_large_one(name, tmp_path, monkeypatch):
    """1 kB of zeros in a file would be 1 MB in memory, and 1 MB of it a gigabyte."""
    monkeypatch.setattr(files, "SMALL", 1000)
    path, text = tmp_path / name, "0" * 2_000_000
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(json.dumps({"id": "a", "text": text}).encode()))
    elif name.endswith(".zip"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("slack/a__b.txt", text)
    else:
        pd.DataFrame({"id": range(20_000), "text": "0" * 3_000}).to_parquet(path)
    assert path.stat().st_size < 250_000
    with pytest.raises(DataError, match=rf"{name}: more than [\d,]+ bytes"):
        files.read_frame(path, "documents")
