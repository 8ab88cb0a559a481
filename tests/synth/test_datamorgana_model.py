"""DataMorgana with a model: a loopback endpoint plays it; any folder of documents will do."""

from __future__ import annotations

import json
import re
from zlib import crc32

import pytest
from click.testing import CliRunner

from ragkit.cli.generate import command
from ragkit.errors import DataError, ModelError
from ragkit.llm import Ledger, import_results
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
    if prompt.startswith("Read the document"):
        metres = re.search(r"(\d+) metres", prompt)[0]
        fact = {"subject": "the lighthouse", "attribute": "height", "value": metres}
        return {"facts": [fact | {"statement": f"It is {metres} high."}]}
    if prompt.startswith("You have one document"):
        return {"pairs": [{"question": "Which is higher?", "query": "lighthouse metres"}]}
    if prompt.startswith("A question of this kind"):
        return {"reason": "it fits", "number": 1}
    if prompt.startswith("Judge"):
        needed = [1, 2] if "\nDocument 2:" in prompt else [1]
        return {"reason": "seen", "answered": True, "needed": needed, "elsewhere": []}
    if prompt.startswith("Split"):
        return {"direct": ["It is high."], "useful": [], "useless": []}
    number = re.search(r"Lighthouse (\d+)", prompt)[1]
    marks = sum(map(ord, prompt)) % 10_000
    words = 5 if "short-search-query" in prompt else 12
    return {
        "question": f"lighthouse {number} {marks} " + "metres " * (words - 3),
        "answer": f"It is {20 + int(number)} metres high.",
        "facts": [1, 2] if "(document 2)" in prompt else [1],
    }


def answered(change=lambda body, reply: reply):
    return lambda body, nth, digest: Reply(chat(json.dumps(change(body, play(body)))))


OPTIONS = {"questions": 20, "seed": 5, "author": MODEL}


def test_a_model_needs_no_facts_and_pays_once(folder, endpoint, tmp_path):
    server = endpoint(answered())
    options = AuthorOptions(tmp_path / "ledger.sqlite")
    made = make_questions(folder, **OPTIONS, author_options=options)
    assert len(made.rows) == 20
    assert not made.left_out
    for row, note in zip(made.rows, made.notes, strict=True):
        two = row["DataMorgana_Config"]["Answer Type"] in ("comparison", "multi-aspect")
        ids = {d["doc_id"] for d in row["Supporting_Documents"]}
        assert len(ids) == len(note["facts"]) == (2 if two else 1)
        assert "d7" not in ids
    assert made.report["documents"]["left out"] == {"factuality": 1}
    # Again: everything is in the ledger.
    before = sum(server.asked.values())
    assert make_questions(folder, **OPTIONS, author_options=options) == made
    assert sum(server.asked.values()) == before


@pytest.mark.parametrize(
    ("stage", "change", "says"),
    [
        ("question", {"question": "far too " * 30}, "short-search-query of 60 words"),
        ("question", {"facts": [9]}, "there is no fact 9: they run from 1 to"),
        ("question", {"facts": []}, "invalid: "),
        ("question", {"question": "the same metres twice " * 3}, "asked before"),
        ("facts", {"facts": [dict.fromkeys(("subject", "attribute", "value", "statement"), "x y")]},
         "the document does not say 'x y'"),
        ("check", {"answered": False}, "its documents do not answer it"),
        ("check", {"elsewhere": [2]}, "another document answers it, too"),
        ("check", {"needed": [7]}, "needed: there is no document 7"),
        ("choose", {"number": 40}, "there is no candidate 40 of"),
        ("claims", {"direct": "none"}, "invalid: "),
    ],
)  # fmt: skip
def test_spoilt_answers_are_named_with_stage_item_and_remedy(folder, endpoint, stage, change, says):
    names = {
        "question": "The question has",
        "facts": "Read the",
        "check": "Judge",
        "claims": "Split",
    }
    first = names.get(stage, "A question of this kind")
    spoilt = 0

    def spoil(body, reply):
        nonlocal spoilt
        prompt = first_of(body)["content"]
        if not prompt.startswith(first) or ("short" in says and "short-search" not in prompt):
            return reply
        spoilt += 1
        several = stage == "choose" or "short" in says
        whose = several or crc32(prompt.encode()) % 2  # half of the items, in every round
        return reply | change if whose else reply

    endpoint(lambda body, nth, digest: Reply(chat(json.dumps(spoil(body, play_first(body))))))
    made = make_questions(folder, **OPTIONS)
    assert spoilt
    refused = {**made.report["attempts refused"], **made.report.get("failed", {})}
    assert any(says in reason for reason in refused), refused
    for row in made.left_out:
        assert row["stage"]
        assert row["item"].startswith(("question", "document"))
        assert "run again" in row["remedy"]


def first_of(body: dict) -> dict:
    """Return the request itself, whatever repair was asked for after it."""
    return next(m for m in body["messages"] if m["role"] == "user")


def play_first(body: dict) -> dict:
    return play({"messages": [first_of(body)]})


def test_an_endpoint_out_of_order_stops_the_run(folder, endpoint):
    endpoint(lambda body, nth, digest: Reply('{"error": {"message": "no"}}', 401, paid=False))
    with pytest.raises(ModelError):
        make_questions(folder, questions=3, seed=5, author=MODEL)


def test_the_estimate_is_within_a_fifth_of_the_ledger(folder, endpoint, tmp_path):
    lines = estimate(folder, questions=40, seed=5, author=MODEL)
    assert lines[0] == "30 documents, 40 questions; requests:"
    endpoint(answered())
    options = AuthorOptions(tmp_path / "ledger.sqlite")
    make_questions(folder, questions=40, seed=5, author=MODEL, author_options=options)
    foreseen = int(re.search(r"([\d,]+) calls", "\n".join(lines))[1].replace(",", ""))
    with Ledger(tmp_path / "ledger.sqlite", readonly=True) as ledger:
        assert foreseen == pytest.approx(len(ledger), rel=0.2)


def run(*arguments):
    return CliRunner().invoke(command, ["datamorgana", *map(str, arguments)])


def test_batches_lead_to_the_same_file_as_a_run(folder, endpoint, tmp_path):
    endpoint(answered())
    options = ("--documents", folder, "--questions", 12, "--seed", 5, "--author", MODEL)
    done = run(*options, "--out", tmp_path / "asked.jsonl", "--yes")
    assert done.exit_code == 0, done.output
    out, batch, ledger = (tmp_path / name for name in ("q.jsonl", "b.jsonl", "l.sqlite"))
    for turn in range(20):
        done = run(*options, "--out", out, "--batch", batch, "--ledger", ledger)
        assert done.exit_code == 0, done.output
        if out.exists():
            break
        assert "requests written to" in done.output
        rows = [json.loads(line) for line in batch.read_text("utf-8").splitlines()]
        if turn == 2:  # of this batch only a half comes back at first
            rows = rows[::2]
        results = [
            {
                "custom_id": row["custom_id"],
                "response": {
                    "status_code": 200,
                    "body": json.loads(chat(json.dumps(play(row["body"])))),
                },
            }
            for row in rows
        ]
        back = tmp_path / "results.jsonl"
        back.write_text("".join(json.dumps(r) + "\n" for r in results), "utf-8")
        with Ledger(ledger) as book:
            import_results(book, back)
    assert out.read_bytes() == (tmp_path / "asked.jsonl").read_bytes()
    back.write_text(back.read_text("utf-8").replace(rows[0]["custom_id"], "foreign"), "utf-8")
    with Ledger(ledger) as book, pytest.raises(DataError, match="'foreign'"):
        import_results(book, back)


def test_a_batch_is_for_a_model(folder, tmp_path):
    done = run("--documents", folder, "--questions", 3, "--batch", tmp_path / "b.jsonl")
    assert "takes no options of a model" in str(done.exception)
