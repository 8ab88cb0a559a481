"""What a search server must do, whichever it is: checked on loopback and on real servers."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import pandas as pd
import pytest

from ragkit import schema
from ragkit.errors import DataError
from ragkit.systems.retrieval import BM25, Dense

DIMENSIONS = 16


class Words:
    """An encoder that adds a random vector for each word, and one for the kind of text."""

    name = "words"

    def encode(self, texts, kind):
        rows = [sum(map(_vector, [kind, *text.lower().split()])) for text in texts]
        vectors = np.array(rows, dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _vector(word: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=DIMENSIONS)


def documents(count: int = 60) -> pd.DataFrame:
    """Return documents with awkward ids, titles that are missing, repeated words and twins."""
    rng = random.Random(5)
    words = "refund invoice don't 3.14 domain e-mail 你好 connect the the the site".split()
    texts = [" ".join(rng.choices(words, k=rng.randint(1, 45))) for _ in range(count - 4)]
    texts += [texts[0]] * 3 + ["…"]
    ids = [f"d {n}/é" if n % 2 else f"{n}-" + "x" * 600 for n in range(count)]
    titles = [None if n % 3 else rng.choice(words) for n in range(count - 4)]
    return pd.DataFrame({"doc_id": ids, "title": titles + [titles[0]] * 3 + [None], "text": texts})


QUESTIONS = pd.DataFrame(
    {
        "question_id": ["q 1", "q2", "q3", "q4"],
        "text": ["refund refund invoice", "the site", "3.14 don't 你", "connect e-mail domain"],
    }
)


def opensearch_facts(make) -> None:
    """Check `make(**options)`, which gives an `OpenSearch` on an index of its own."""
    corpus = documents()
    for k1, b in ((1.2, 0.75), (0.4, 1.0)):
        search = make(k1=k1, b=b, overwrite=True, batch=7).fit(corpus)
        for k in (1, 3, len(corpus) + 5):
            runs = schema.check(search.search(QUESTIONS, k), "runs")
            expected = BM25(k1, b, system=search.system).fit(corpus).search(QUESTIONS, k)
            columns = ["system", "question_id", "rank", "doc_id"]
            pd.testing.assert_frame_equal(runs[columns], expected[columns])
            factor = runs["score"] / expected["score"]
            near = 1 if factor[0] < 1 + k1 / 2 else 1 + k1
            np.testing.assert_allclose(factor, near, rtol=0 if near == 1 else 1e-6)
    assert search.search(["", "unheard", "—"]).empty
    again = make(k1=0.4, b=1.0).attach()
    pd.testing.assert_frame_equal(again.search(QUESTIONS), search.search(QUESTIONS))
    with pytest.raises(DataError, match=r"finished one with {'k1': 1\.2.*, found {'k1': 0\.4"):
        make().attach()
    shared_facts(make, corpus)


def qdrant_facts(make) -> None:
    """Check `make(**options)`, which gives a `Qdrant` with `Words` on a collection of its own."""
    corpus = documents().drop_duplicates("text", ignore_index=True)
    search = make(batch=7).fit(corpus)
    exact = Dense(Words(), system=search.system).fit(corpus)
    for k in (1, 3, len(corpus) + 5):
        runs = schema.check(search.search(QUESTIONS, k), "runs")
        pd.testing.assert_frame_equal(runs, exact.search(QUESTIONS, k), rtol=0, atol=1e-6)
    assert search.search(["", " "]).empty
    again = make().attach()
    pd.testing.assert_frame_equal(again.search(QUESTIONS), search.search(QUESTIONS))
    with pytest.raises(DataError, match="finished one with .*, found .*'title'"):
        make(fields=("text",)).attach()
    shared_facts(make, corpus)


def shared_facts(make, corpus) -> None:
    """Check what holds for both: nothing is overwritten, and what is there is replaced whole."""
    with pytest.raises(DataError, match="is already at"):
        make().fit(corpus)
    one = ({"doc_id": "only", "title": "", "text": "refund"} for _ in range(1))
    search = make(overwrite=True).fit(one)
    runs = search.search(["refund"], k=10)
    assert runs["doc_id"].tolist() == ["only"]
    assert search.documents_ == 1
    assert search.search([]).columns.tolist() == list(schema.COLUMNS["runs"])
