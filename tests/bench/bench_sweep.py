"""A sweep with the extractive reader beside the same pairs scored one at a time.

The two systems are the first of `notebooks/systems.toml`: one retriever and two lengths of answers,
run by two processes. The first peer is one process that scores the pairs one after the other, for
each system, question and document anew. The second is the sweep with every piece of the documents
scored, as it was before `Extractive.most`. All begin with no score kept.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.bench import beside, least, most, timed

QUESTIONS, JOBS = 119, 2


class OneByOne:
    """A reranker that is asked for one pair after the other, and keeps nothing."""

    def __init__(self, reranker):
        self.reranker = reranker

    def score_pairs(self, pairs):
        return [self.reranker.score_pairs([pair])[0] for pair in pairs]


def run():
    from ragkit import datasets, models, paths
    from ragkit.measures import metrics
    from ragkit.systems import readers, sweep

    sample = datasets.load("wixqa", profile="sample")
    questions, documents = sample.questions.head(QUESTIONS), sample.documents
    systems = sweep.load(paths.NOTEBOOKS / "systems.toml")[:2]
    reranker = OneByOne(models.reranker(readers.extractive.RERANKER))

    def pair_by_pair():
        answers = []
        for system in systems:
            reader = readers.Extractive(reranker, sentences=system.reader["sentences"])
            own = result.runs[result.runs["system"] == system.name]
            for place in range(len(questions)):
                one = questions.iloc[place : place + 1]
                runs = own[own["question_id"].isin(one["question_id"])]
                answers += reader.answer(one, documents, runs, system.top)["answer"].tolist()
        return answers

    with no_scores():
        ours, result = timed(lambda: sweep.run(systems, documents, questions, jobs=JOBS))
        peer, expected = timed(pair_by_pair)
    what = f"sweep of {len(systems)} systems x {len(questions)} questions"
    yield beside(what, ours, peer, "pair by pair, 1 process", 3)
    same = sum(map(str.__eq__, result.answers["answer"], expected)) / len(expected)
    yield least(f"{what}: equal answers", same, 1, "share", "pair by pair")
    every = [replace(one, reader=one.reader | {"most": 10**6}) for one in systems]
    with no_scores():
        peer, before = timed(lambda: sweep.run(every, documents, questions, jobs=JOBS))
    yield beside(f"{what}: all pieces", ours, peer, "all pieces, 2 processes", 4)
    rows = [
        metrics.score_answers(one.answers, questions, metrics=["token_f1"])
        for one in (before, result)
    ]
    lost = rows[0]["score"].mean() - rows[1]["score"].mean()
    yield most(f"{what}: token F1 lost", lost, 0.005, "", "all pieces")


@contextmanager
def no_scores():
    """A cache that has the models, and no score; processes that know of no other."""
    from joblib.externals.loky import get_reusable_executor

    from ragkit import paths

    get_reusable_executor().shutdown()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "models").symlink_to((paths.cache_dir() / "models").resolve())
        os.environ["RAGKIT_CACHE"], before = folder, os.environ.get("RAGKIT_CACHE")
        try:
            yield
        finally:
            os.environ.pop("RAGKIT_CACHE")
            os.environ |= {"RAGKIT_CACHE": before} if before else {}
