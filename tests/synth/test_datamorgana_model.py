"""DataMorgana with a model: a loopback endpoint plays it; any folder of documents will do."""

from __future__ import annotations

import json
import re

import pytest

from ragkit.errors import ModelError
from ragkit.synth.author import AuthorOptions
from ragkit.synth.datamorgana import estimate, make_questions
from tests.llm.server import Reply, chat

MODEL = "openai:toy"


@pytest.fixture
def folder(tmp_path):
    """Thirty documents without facts."""
    rows = [
        {
            "doc_id": f"d{i}",
            "title": f"Lighthouse {i}",
            "text": f"Lighthouse {i} is {20 + i} metres high and was lit in {1800 + i}. "
            + f"Its keeper rows to harbour {i} for oil and bread. " * 5,
        }
        for i in range(30)
    ]
    path = tmp_path / "web"
    path.mkdir()
    (path / "documents.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), "utf-8")
    return path


def play(body: dict) -> dict:
    """Answer as a model that does as it is told."""
    prompt = body["messages"][-1]["content"]
    if "subject areas" in prompt:
        return {"topics": ["lighthouses", "harbours"]}
    if prompt.startswith("Subject area"):
        return {"topics": ["lighthouse height", "keeper of the lighthouse"]}
    if prompt.startswith("Rate"):
        bad = "Lighthouse 7\n" in prompt
        names = ("factuality", "interest", "credibility", "freshness")
        return dict.fromkeys(names, 1 if bad else 5) | {"toxicity": 1, "sexuality": 1}
    if prompt.startswith("You have one document"):
        return {"pairs": [{"question": "Which is higher?", "query": "lighthouse metres"}]}
    if prompt.startswith("A question of this kind"):
        return {"reason": "it fits", "number": 1}
    if prompt.startswith("Split"):
        return {"direct": ["It is high."], "useful": [], "useless": []}
    number = re.search(r"Lighthouse (\d+)", prompt)[1]
    marks = sum(map(ord, prompt)) % 10_000
    words = 5 if "short-search-query" in prompt else 12
    return {
        "question": f"lighthouse {number} {marks} " + "metres " * (words - 3),
        "answer": f"It is {20 + int(number)} metres high.",
    }


def answered(change=lambda body, reply: reply):
    return lambda body, nth, digest: Reply(chat(json.dumps(change(body, play(body)))))


def test_a_model_needs_no_facts(folder, endpoint, tmp_path):
    server = endpoint(answered())
    ledger = tmp_path / "ledger.sqlite"
    options = {"questions": 20, "seed": 5, "author": MODEL}
    made = make_questions(folder, **options, author_options=AuthorOptions(ledger))
    assert len(made.rows) == 20
    for row in made.rows:
        two = row["DataMorgana_Config"]["Answer Type"] in ("comparison", "multi-aspect")
        ids = {d["doc_id"] for d in row["Supporting_Documents"]}
        assert len(ids) == (2 if two else 1)
        assert "d7" not in ids
    assert made.report["documents"]["left out"] == {"factuality": 1}
    # Again: everything is in the ledger.
    before = sum(server.asked.values())
    assert make_questions(folder, **options, author_options=AuthorOptions(ledger)) == made
    assert sum(server.asked.values()) == before


def test_questions_that_the_model_spoils_are_left_out_and_counted(folder, endpoint):
    def spoil(body, reply):
        prompt = body["messages"][-1]["content"]
        if "question" in reply and "short-search-query" in prompt:
            reply["question"] += " and far more than six words of it"
        return reply

    endpoint(answered(spoil))
    made = make_questions(folder, questions=20, seed=5, author=MODEL)
    kinds = {r["DataMorgana_Config"]["Phrasing"] for r in made.rows}
    assert kinds == {"long-search-query", "concise-and-natural", "verbose-and-natural"}
    assert made.report["failed"]["not of the wanted length"] == 20 - len(made.rows)


def test_an_endpoint_out_of_order_stops_the_run(folder, endpoint):
    endpoint(lambda body, nth, digest: Reply('{"error": {"message": "no"}}', 401, paid=False))
    with pytest.raises(ModelError):
        make_questions(folder, questions=3, seed=5, author=MODEL)


def test_the_cost_is_foreseen_without_a_call(folder):
    lines = estimate(folder, questions=10, seed=5, author=MODEL)
    assert lines[0] == "30 documents, 20 to be rated, 10 questions"
    assert "30" in lines[1]
