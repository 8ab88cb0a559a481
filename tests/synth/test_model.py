"""The model as author, against a loopback endpoint that can misbehave."""

import hashlib
import json
import re

import pytest
from click.testing import CliRunner

from ragkit.cli.generate import command
from ragkit.errors import ModelError, UsageError
from ragkit.llm import Ledger, import_results
from ragkit.synth import World, generate
from ragkit.synth.author import AuthorOptions, LeftOut
from ragkit.synth.briefs import Volume
from ragkit.synth.model import ModelAuthor, required
from ragkit.synth.pipeline import Run, Settings
from tests.llm.server import Reply, chat
from tests.synth.conftest import rows

MODEL = "openai:toy"
pytestmark = pytest.mark.usefixtures("endpoint")


def asked(body) -> str:
    return body["messages"][1]["content"]


def obedient(body, **changes) -> str:
    """Return the answer of a model that says all it is asked to say."""
    text = asked(body)
    said = text[text.index("What it has to say") : text.index("Other documents near it")]
    answer = {
        "title": re.search(r"Working title: (.*)", text)[1],
        "file_name": "note-" + str(abs(hash(text)) % 10**6),
        "content": said + "\n" + "So much for today. " * 12,
    }
    return chat(json.dumps({**answer, **changes}))


@pytest.fixture
def briefs():
    volume = Volume(World(2, 300), {"slack": 12, "confluence": 6})
    return [volume.brief("slack", i) for i in range(12)]


def author(world=None, **options):
    return ModelAuthor(MODEL, world or World(2, 300), AuthorOptions(**options))


def test_documents_come_back_in_order_with_their_values(briefs, endpoint):
    endpoint(lambda body, nth, digest: Reply(obedient(body)))
    documents = author().write_all(briefs)
    assert [d["doc_id"] for d in documents] == [b.doc_id for b in briefs]
    for brief, document in zip(briefs, documents, strict=True):
        assert all(value in document["content"] for value in required(brief))
        assert document["path"].rpartition("/")[0] == brief.path.rpartition("/")[0]
        assert document["channel"]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"file_name": "a\u0007b"}, "control characters"),
        ({"file_name": "../../etc"}, "not a plain name"),
        ({"content": "no"}, "characters"),
        ({"content": "bla " * 100}, "does not say"),
        ({"content": "x\u0000" * 300}, "control characters"),
    ],
)
def test_nonsense_is_asked_for_again_and_then_left_out(briefs, endpoint, changes, reason):
    bad = briefs[3].title
    calls = []

    def answer(body, nth, digest):
        if f"Working title: {bad}\n" in asked(body):
            calls.append(len(body["messages"]))
            return Reply(obedient(body, **changes))
        return Reply(obedient(body))

    endpoint(answer)
    documents = author().write_all(briefs)
    left = [d for d in documents if isinstance(d, LeftOut)]
    assert [d.doc_id for d in left] == [briefs[3].doc_id]
    assert reason in left[0].reason
    assert len(calls) == 3
    assert calls[-1] > calls[0], "the model is told what was wrong"


def test_a_refusal_is_asked_again_and_a_second_answer_is_taken(briefs, endpoint):
    seen = []

    def answer(body, nth, digest):
        text = asked(body)
        if briefs[0].title in text and not seen:
            seen.append(text)
            return Reply(chat(None, refusal="I would rather not."))
        return Reply(obedient(body))

    endpoint(answer)
    documents = author().write_all(briefs)
    assert seen
    assert not any(isinstance(d, LeftOut) for d in documents)


def test_an_endpoint_in_trouble_stops_the_run_and_the_ledger_resumes_it(briefs, endpoint, tmp_path):
    ledger = tmp_path / "ledger.sqlite"
    answered = []

    def half(body, nth, digest):
        if int(digest[:2], 16) % 2:
            answered.append(digest)
            return Reply(obedient(body))
        return Reply("{}", 403, paid=False)

    def whole(body, nth, digest):
        assert digest not in answered
        return Reply(obedient(body))

    endpoint(half)
    with pytest.raises(ModelError, match="no answer"):
        author(ledger=ledger, concurrency=1).write_all(briefs)
    assert 0 < len(answered) < len(briefs)
    endpoint(whole)
    documents = author(ledger=ledger).write_all(briefs)
    assert not any(isinstance(d, LeftOut) for d in documents)


def test_a_whole_benchmark_leaves_out_what_was_not_written(endpoint, tmp_path):
    def answer(body, nth, digest):
        if "Kind of place: hubspot" in asked(body) and "record_type: contact" in asked(body):
            return Reply(chat(json.dumps({"nothing": 1})))
        return Reply(obedient(body))

    settings = {"documents": 260, "seed": 3, "questions": 20, "author": MODEL}
    endpoint(answer)
    statistics = generate(
        tmp_path / "x",
        **settings,
        author_options=AuthorOptions(tmp_path / "l.sqlite", concurrency=16),
    )
    left = [row for p in (tmp_path / "x").rglob("*left_out.jsonl") for row in rows(p)]
    made = rows(tmp_path / "x" / "enterpriserag_bench" / "documents.jsonl")
    assert left
    assert len(made) + len(left) == 260
    assert sum(s.get("left_out", 0) for s in statistics["stages"].values()) == len(left)
    known = {d["doc_id"] for d in made}
    assert not known & {row["doc_id"] for row in left}
    for question in rows(tmp_path / "x" / "enterpriserag_bench" / "questions.jsonl"):
        assert set(question["expected_doc_ids"]) <= known


SMALL = {"documents": 260, "seed": 3, "questions": 0, "author": MODEL}


def forgetful(body, nth, digest):
    """Leave out what every eighth document has to say, the first time it is asked for."""
    if len(body["messages"]) == 2 and int(digest[:2], 16) < 32:
        return Reply(obedient(body, content="bla " * 100))
    return Reply(obedient({"messages": body["messages"][:2]}))


def calls(ledger) -> int:
    with Ledger(ledger, readonly=True) as book:
        return len(book)


def test_the_estimate_is_close_to_what_the_ledger_shows_afterwards(endpoint, tmp_path):
    options = AuthorOptions(tmp_path / "l.sqlite", concurrency=16)
    before = Run(tmp_path / "x", Settings(**SMALL), author_options=options).estimate()
    assert not (tmp_path / "x").exists()
    endpoint(forgetful)
    generate(tmp_path / "x", **SMALL, author_options=options)
    assert before.requests == pytest.approx(calls(options.ledger), rel=0.2)
    assert calls(options.ledger) > SMALL["documents"]
    run = Run(tmp_path / "y", Settings(**SMALL), author_options=options)
    again = run.estimate()
    assert again.documents < 0.2 * SMALL["documents"], "noise, known when the volume is written"
    assert again.tokens[0] > 0
    assert run.author.asked > 1.05 * run.author.settled, "the repairs of the first run are known"


def test_a_batch_is_written_imported_and_gone_on_with(endpoint, tmp_path):
    options, path = AuthorOptions(tmp_path / "l.sqlite"), tmp_path / "batch.jsonl"
    settings = {**SMALL, "questions": 10}
    server = endpoint(lambda body, nth, digest: Reply("{}", 500))
    stops = []
    while "requests" in (
        made := generate(tmp_path / "x", **settings, author_options=options, batch=path)
    ):
        stops.append(made["requests"])
        asked = rows(path)
        assert len({row["custom_id"] for row in asked}) == len(asked) == stops[-1]
        digest = hashlib.sha256
        replies = [
            forgetful(row["body"], 0, digest(row["custom_id"].encode()).hexdigest()).body
            for row in asked
        ]
        results = [
            {"custom_id": row["custom_id"], "response": {"status_code": 200, "body": json.loads(r)}}
            for row, r in zip(asked, replies, strict=True)
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in results))
        with Ledger(options.ledger) as book:
            import_results(book, path)
    assert len(stops) == 3, "documents, their repairs, then noise"
    assert not server.asked, "the endpoint is never asked"
    assert sum(stops) == calls(options.ledger)
    assert made["questions"]["basic"]["questions"]


def test_a_run_that_was_stopped_pays_nothing_twice(endpoint, tmp_path):
    options = AuthorOptions(tmp_path / "l.sqlite", concurrency=2)
    answered = []

    def dies(body, nth, digest):
        if len(answered) > 100:
            return Reply("{}", 403, paid=False)
        answered.append(digest)
        return Reply(obedient(body))

    endpoint(dies)
    with pytest.raises(ModelError, match="no answer") as caught:
        generate(tmp_path / "x", **SMALL, author_options=options)
    assert str(options.ledger) in str(caught.value)

    def lives(body, nth, digest):
        assert digest not in answered
        return Reply(obedient(body))

    endpoint(lives)
    made = generate(tmp_path / "x", **SMALL, author_options=options)
    assert sum(row["documents"] for row in made["sources"].values()) == SMALL["documents"]


def test_too_few_documents_name_those_that_were_left_out(endpoint, tmp_path):
    endpoint(lambda body, nth, digest: Reply(obedient(body, content="bla " * 100)))
    with pytest.raises(UsageError, match="documents were left out by the author, see .*left_out"):
        generate(tmp_path / "x", **{**SMALL, "questions": 10}, author_options=AuthorOptions())


def test_the_dry_run_says_the_cost_and_writes_nothing(tmp_path):
    options = ["--documents", "300", "--seed", "1", "--questions", "20", "--dry-run"]
    out = tmp_path / "x"
    done = CliRunner().invoke(
        command, ["erb", "--out", str(out), *options, "--author", "openai:gpt-4o-mini"]
    )
    assert done.exit_code == 0, done.output
    assert re.search(r"documents: 300\n", done.output)
    assert re.search(r"\$\d", done.output)
    assert not out.exists()


def test_the_command_makes_a_benchmark(tmp_path):
    out = str(tmp_path / "x")
    arguments = ["erb", "--out", out, "--documents", "300", "--seed", "1", "--questions", "20"]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    assert "300 documents and 20 questions" in done.output
    assert (tmp_path / "x" / "statistics.json").exists()
