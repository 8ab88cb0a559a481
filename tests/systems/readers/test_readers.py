"""Readers: hand-worked answers, abstention, failures that stay failures."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from ragkit import schema
from ragkit.errors import DataError, ModelError, UsageError
from ragkit.llm import Ledger
from ragkit.systems.readers import ABSTENTION, Document, Extractive, OpenAI, reader
from tests.conftest import frame_of
from tests.llm.server import Reply, chat

FERRY = "# Ferry\nThe ferry leaves at noon. Nobody knows why. It takes two cars.\n- It is red."
DOCUMENTS = frame_of(
    "documents",
    ("a", "s", "Ferry", FERRY),
    ("b", "s", "Crew", "The crew eats fish. Nobody knows why."),
)
QUESTIONS = frame_of(
    "questions",
    ("1", "when does the ferry leave", "t", "At noon.", (), ("a",)),
    ("2", "what does the crew eat", "t", "Fish.", (), ("b",)),
)
RUNS = frame_of(
    "runs", ("bm25", "1", 2, "b", 1.0), ("bm25", "1", 1, "a", 2.0), ("bm25", "2", 1, "b", 3.0)
)


class Overlap:
    """Scores a passage by the share of the query's words that it has."""

    name = "overlap"

    def __init__(self):
        self.asked = []

    def score_pairs(self, pairs):
        self.asked += [passage for _, passage in pairs]
        return [self._share(set(query.split()), passage) for query, passage in pairs]

    def _share(self, words, passage):
        found = set(passage.lower().replace(".", "").replace(":", "").split())
        return len(words & found) / len(words)


def test_the_best_sentences_in_the_documents_order():
    answers = Extractive(Overlap(), sentences=2, threshold=None).answer(QUESTIONS, DOCUMENTS, RUNS)
    schema.check(answers, "answers")
    # "Ferry: The ferry leaves at noon." has the and ferry; "Ferry: Nobody knows why." ferry.
    assert answers["answer"].tolist() == [
        "The ferry leaves at noon. Nobody knows why.",
        "The crew eats fish. Nobody knows why.",
    ]
    assert answers["doc_ids"].tolist() == [("a", "b"), ("b",)]
    assert answers["system"].tolist() == ["bm25", "bm25"]
    assert not answers["abstained"].any()
    assert answers["failure"].isna().all()


def test_pieces_are_scored_behind_their_title_and_headings_are_not():
    reranker = Overlap()
    Extractive(reranker).read([("ferry", [Document("a", "Ferry", FERRY)])])
    assert reranker.asked == [
        "Ferry: The ferry leaves at noon.",
        "Ferry: Nobody knows why.",
        "Ferry: It takes two cars.",
        "Ferry: - It is red.",
    ]


def test_only_the_pieces_that_share_most_words_are_scored():
    reranker, document = Overlap(), Document("a", "Ferry", FERRY)
    Extractive(reranker, most=2).read([("when do ferries leave for two cars", [document])])
    assert reranker.asked == ["Ferry: The ferry leaves at noon.", "Ferry: It takes two cars."]
    with pytest.raises(UsageError, match="most should be a whole number"):
        Extractive(Overlap(), most=0)


def test_a_repeated_sentence_is_said_once_and_paragraphs_are_lines():
    documents = [
        Document("x", "", "Fish is fish.\n- Fish is fish.\n- A fish."),
        Document("y", "", "Fish is fish."),
    ]
    [reading] = Extractive(Overlap(), sentences=9, threshold=None).read([("fish", documents)])
    assert reading.answer == "Fish is fish.\n- Fish is fish.\n- A fish."


def test_abstains_under_the_threshold_and_without_documents():
    answers = Extractive(Overlap(), threshold=0.9).answer(QUESTIONS, DOCUMENTS, RUNS)
    assert answers["answer"].tolist() == [ABSTENTION] * 2
    assert answers["abstained"].all()
    runs = RUNS[RUNS["question_id"] == "1"]
    answers = Extractive(Overlap(), threshold=None).answer(QUESTIONS, DOCUMENTS, runs, top=1)
    assert answers["doc_ids"].tolist() == [("a",), ()]
    assert answers["abstained"].tolist() == [False, True]


def test_bad_input():
    two = pd.concat([RUNS, RUNS.assign(system="other")])
    ours = Extractive(Overlap())
    for runs, options, message in (
        (RUNS.head(0), {}, "have no system's name"),
        (two, {"system": "mine"}, "cannot name the runs of 2 systems"),
        (RUNS.assign(doc_id="zz"), {}, "'zz', which is not among the 2 documents"),
        (RUNS, {"top": 0}, "top should be a whole number"),
    ):
        with pytest.raises((DataError, UsageError), match=message):
            ours.answer(QUESTIONS, DOCUMENTS, runs, **options)
    answers = ours.answer(QUESTIONS, DOCUMENTS, RUNS.head(0), system="mine")
    assert answers["system"].tolist() == ["mine"] * 2
    for options in ({"sentences": 0}, {"threshold": float("nan")}):
        with pytest.raises(UsageError, match="should be a"):
            Extractive(Overlap(), **options)


def test_names():
    assert reader("openai:toy", ledger=None).name == "openai:toy"
    for name, options, message in (
        ("extractiv", {}, "did you mean 'extractive'"),
        ("openai:", {}, "openai:NAME"),
        ("extractive", {"sentence": 2}, "no option of extractive 'sentence'(.|\n)*'sentences'"),
        ("openai:m", {"budgets": 2}, "no option of openai:m 'budgets'"),
        ("extractive", {}, "ragkit models fetch"),  # the tests' cache folder is empty
    ):
        with pytest.raises((UsageError, ModelError), match=message):
            reader(name, **options)


def test_a_model_is_asked_with_wixqas_settings(endpoint, tmp_path):
    server = endpoint(lambda body, nth, digest: chat("  At noon. "))
    ours = OpenAI("openai:toy", ledger=tmp_path / "llm.sqlite")
    answers = ours.answer(QUESTIONS, DOCUMENTS, RUNS)
    assert answers["answer"].tolist() == ["At noon.", "At noon."]
    body = next(b for b in map(json.loads, server.bodies) if "ferry leave" in str(b))
    assert body["model"] == "toy"
    assert (body["temperature"], body["max_tokens"]) == (0, 1024)
    text = body["messages"][-1]["content"]
    assert text.index("Document 1: Ferry\n# Ferry") < text.index("Document 2: Crew\nThe crew")
    assert ABSTENTION in body["messages"][0]["content"]
    # What the ledger holds is not asked again.
    again = OpenAI("openai:toy", ledger=tmp_path / "llm.sqlite").answer(QUESTIONS, DOCUMENTS, RUNS)
    pd.testing.assert_frame_equal(again, answers)
    assert len(server.bodies) == 2


def test_a_models_abstention_is_told_and_it_is_told_of_no_document(endpoint):
    server = endpoint(lambda body, nth, digest: chat(f'"{ABSTENTION}"'))
    [reading] = OpenAI("openai:toy", ledger=None).read([("why", [])])
    assert reading.abstained
    assert "(No document was found.)" in server.bodies[0]


def test_a_failure_is_no_answer(endpoint):
    def answer(body, nth, digest):
        if "Question: what" in body["messages"][-1]["content"]:
            return Reply('{"error": {"message": "too long"}}', 400)
        return chat("")

    endpoint(answer)
    ours = OpenAI("openai:toy", ledger=Ledger(None), max_attempts=1, backoff=0.0)
    answers = ours.answer(QUESTIONS, DOCUMENTS, RUNS)
    assert answers["answer"].tolist() == [None, None]
    assert [reason.partition(":")[0] for reason in answers["failure"]] == ["invalid", "rejected"]
    assert not answers["abstained"].any()
    schema.check(answers, "answers")
