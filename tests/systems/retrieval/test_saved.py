"""Indexes in folders: the same lists, mapped into memory; damaged and foreign ones are refused."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from ragkit.errors import DataError, MissingData, UsageError
from ragkit.systems.retrieval import BM25, Dense, Hybrid, Kept
from tests.systems.retrieval.support import Letters, Spaces, frame

CHUNKS = {"long": "chunks", "chunk_tokens": 2, "overlap": 1, "fields": ["text"]}
DOCUMENTS = frame("a b b", "c", "", "a c İ", "\ud800 b")
ASKED = ["a", "c b", "—", "\ud800"]
MAKERS = {
    "lucene": lambda: BM25(0.9, 0.4, fields=["text"]),
    "flashrag": lambda: BM25(mode="flashrag"),
    "dense": lambda: Dense(Spaces()),
    "chunks": lambda: Dense(Spaces(), **CHUNKS),
}


@pytest.fixture(params=MAKERS)
def make(request):
    return MAKERS[request.param]


def test_a_loaded_index_is_memory_mapped_and_finds_the_same(make, tmp_path):
    documents = frame("a b b", "c", "", "a c") if "Dense" in repr(make()) else DOCUMENTS
    fitted = make().fit(documents)
    loaded = make().load(fitted.save(tmp_path / "index"))
    pd.testing.assert_frame_equal(loaded.search(ASKED[:2]), fitted.search(ASKED[:2]))
    arrays = [loaded.counts_.indices] if isinstance(loaded, BM25) else [loaded.vectors_]
    for array in arrays:
        while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
            array = array.base
        assert isinstance(array, np.memmap)
    with pytest.raises(UsageError, match="has no index yet"):
        make().save(tmp_path / "other")
    fitted.save(tmp_path / "index")  # over files that are open
    pd.testing.assert_frame_equal(loaded.search(ASKED[:2]), fitted.search(ASKED[:2]))


def test_one_index_of_words_serves_all_parameters(tmp_path):
    folder = BM25().fit(DOCUMENTS).save(tmp_path)
    expected = BM25(0.4, 1.0).fit(DOCUMENTS).search(ASKED)
    pd.testing.assert_frame_equal(BM25(0.4, 1.0).load(folder).search(ASKED), expected)


def test_every_damage_is_found(make, tmp_path):
    folder = make().fit(frame("a b", "c")).save(tmp_path)
    rng = np.random.default_rng(0)
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        places = rng.integers(0, len(whole), 5).tolist()
        damaged = [whole[:p] + bytes([whole[p] ^ 1]) + whole[p + 1 :] for p in places]
        for raw in (*damaged, whole[:-2], b""):
            path.write_bytes(raw)
            with pytest.raises(DataError, match=path.name):
                make().load(folder)
        path.unlink()
        with pytest.raises((DataError, MissingData), match=path.name):
            make().load(folder)
        path.write_bytes(whole)
    make().load(folder)


def test_what_is_foreign_is_refused(tmp_path):
    words = BM25().fit(DOCUMENTS).save(tmp_path / "words")
    for other in (BM25(mode="flashrag"), BM25(fields=["text"]), Dense(Letters())):
        with pytest.raises(DataError, match=r"should be one with .* found .*'lucene'"):
            other.load(words)
    vectors = Dense(Letters()).fit(frame("a", "b")).save(tmp_path / "vectors")
    with pytest.raises(DataError, match=r"should be one with .*spaces.* found .*letters"):
        Dense(Spaces()).load(vectors)
    for head in ([], {}, {"version": 2}, {"digest": "x"}):
        (words / "index.json").write_text(json.dumps(head))
        with pytest.raises(DataError, match="is no index of version 1, or damaged"):
            BM25().load(words)
    with pytest.raises(MissingData, match="no such file"):
        BM25().load(tmp_path)


def test_a_kept_index_is_made_once_for_a_corpus(monkeypatch):
    def make(k1=1.2):
        return Hybrid([Kept(BM25(k1)), Kept(Dense(Letters()))])

    documents = frame("a b", "c", "ab")
    first = make().fit(iter(documents.to_dict("records"))).search(["a", "c"])
    fits = []
    for kind in (BM25, Dense):
        fit = kind.fit
        monkeypatch.setattr(
            kind, "fit", lambda self, given, fit=fit: fits.append(self.system) or fit(self, given)
        )
    pd.testing.assert_frame_equal(make().fit(documents).search(["a", "c"]), first)
    make(k1=0.3).fit(documents)
    assert fits == []
    make().fit(documents.assign(title="a"))
    assert fits == ["bm25", "dense-letters"]
