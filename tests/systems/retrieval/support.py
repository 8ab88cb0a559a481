"""What several test files of retrieval use: small frames, encoders and retrievers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ragkit import models
from ragkit.systems.retrieval.frames import query_texts, runs_frame


def frame(*texts, ids=None):
    ids = ids or [f"d{number}" for number in range(len(texts))]
    return pd.DataFrame({"doc_id": ids, "title": None, "text": texts})


def hits(runs, question_id="0"):
    """Return one question's (doc_id, score), best first."""
    part = runs[runs["question_id"] == question_id]
    return list(zip(part["doc_id"], part["score"], strict=True))


def lists(runs):
    return {name: part["doc_id"].tolist() for name, part in runs.groupby("question_id")}


class Letters:
    """An encoder: how often a, b and c occur, at unit length."""

    name = "letters"

    def encode(self, texts, kind="passage"):
        assert kind in ("passage", "query")
        counts = np.array([[text.count(letter) for letter in "abc"] for text in texts], float)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


class Rows:
    """An encoder of numbers: the row of a matrix for a document, of another for a question."""

    name = "rows"

    def __init__(self, matrix, queries=None):
        self.rows = {"passage": matrix, "query": matrix if queries is None else queries}

    def encode(self, texts, kind="passage"):
        return np.asarray(self.rows[kind])[[int(text) for text in texts]]


class Spaces(models.Encoder):
    """An encoder of ragkit.models whose tokens are separated by white space."""

    def __init__(self):
        self.name, self.max_tokens = "spaces", 4

    def __reduce__(self):
        return Spaces, ()

    def encode(self, texts, kind="passage", *, cache=False, progress=False):
        return Letters().encode(texts, kind)

    def count_tokens(self, texts, kind="passage"):
        return np.array([len(text.split()) for text in texts])

    def spans(self, text):
        ends = np.cumsum([len(word) + 1 for word in text.split()]) - 1
        return [(end - len(word), end) for word, end in zip(text.split(), ends, strict=True)]


class Given:
    """A retriever with known lists: {question: [(doc_id, score), ...]}."""

    def __init__(self, system, lists):
        self.system, self.lists = system, lists

    def fit(self, documents):
        return self

    def search(self, questions, k=10):
        ids, texts = query_texts(questions)
        found = [self.lists.get(text, [])[:k] for text in texts]
        return runs_frame(self.system, ids, found)
