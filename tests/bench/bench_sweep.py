"""A sweep with the extractive reader beside the same pairs scored one at a time.

The two systems are the first of `notebooks/systems.toml`: one retriever and two lengths of answers,
run by two processes. The peer is one process that scores the pairs one after the other, for each
system, question and document anew. Both begin with no score kept.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tests.bench import beside, least, timed

QUESTIONS, JOBS = 119, 2


class OneByOne:
    """A reranker that is asked for one pair after the other, and keeps nothing."""

    def __init__(self, reranker):
        self.reranker = reranker

    def score_pairs(self, pairs):
        return [self.reranker.score_pairs([pair])[0] for pair in pairs]


def run():
    from ragkit import datasets, models, paths
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

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "models").symlink_to((paths.cache_dir() / "models").resolve())
        os.environ["RAGKIT_CACHE"], before = folder, os.environ.get("RAGKIT_CACHE")
        ours, result = timed(lambda: sweep.run(systems, documents, questions, jobs=JOBS))
        peer, expected = timed(pair_by_pair)
        os.environ.pop("RAGKIT_CACHE")
        os.environ |= {"RAGKIT_CACHE": before} if before else {}
    what = f"sweep of {len(systems)} systems x {len(questions)} questions"
    yield beside(what, ours, peer, "pair by pair, 1 process", 3)
    same = sum(map(str.__eq__, result.answers["answer"], expected)) / len(expected)
    yield least(f"{what}: equal answers", same, 1, "share", "pair by pair")
