import json
import time

import pandas as pd
import pytest

from ragkit.errors import ModelError, UsageError
from ragkit.llm import Client
from ragkit.schema import check
from ragkit.systems.agent import BashAgent, Step
from ragkit.systems.agent.offline import Offline, terms
from tests.llm.server import Reply, calls, chat, tool_call

ROWS = """
d1 | slack | Ferry delays | The ferry Orla was late: a broken pump. | slack/ops/1.txt
d2 | slack | Pump order | We ordered two pumps for the Orla at 900 euros. | slack/ops/2.txt
d3 | slack | Lunch | Soup again on Monday. | slack/fun/3.txt
d4 | jira | OPS-88 | Broken screens in the harbour. | jira/OPS/OPS-88.txt
d5 | gmail | Invoice | The invoice of the pump maker. | gmail/5.txt
"""
DOCUMENTS = pd.DataFrame(
    [row.split(" | ") for row in ROWS.strip().splitlines()],
    columns=["doc_id", "source", "title", "text", "path"],
)
QUESTION = "Why was the ferry Orla late?"


@pytest.fixture(scope="module")
def offline():
    return BashAgent("offline").fit(DOCUMENTS)


# The offline policy


def test_terms_are_stems_without_stop_words_and_identifiers_whole():
    found = terms("Why were the ferries late on INC-212, at 9.5%?")
    assert found == ["ferri", "late", "inc-212", "9.5"]
    assert terms("a re-opened issue") == ["open", "issu"]


def test_the_document_that_holds_the_rare_words_comes_first(offline):
    runs = check(offline.search([QUESTION]), "runs")
    assert runs["doc_id"].iloc[0] == "d1"
    assert "d3" not in set(runs["doc_id"])
    assert (runs["system"] == "bash-offline").all()
    assert list(runs["rank"]) == list(range(1, len(runs) + 1))
    assert runs["score"].is_monotonic_decreasing
    assert offline.missing_ == {}


def test_identifiers_are_found_words_widened_and_k_bounds_the_number(offline):
    for question in ("What is OPS-88 about?", "the harbouring of ships"):
        assert offline.search([question])["doc_id"].iloc[0] == "d4"
    assert len(offline.search(["pump"])) > 1
    assert len(offline.search(["pump"], k=1)) == 1
    assert offline.search(["zeppelin"]).empty
    assert offline.missing_ == {}, "an empty result is a result"


def test_bm25_weights_by_hand():
    """One term in one of two documents of equal length: idf log(1 + 1.5/1.5), saturation 1."""
    found = Offline({"a": "", "b": ""}, {"a": "ferry", "b": "train"}).search("ferry")
    assert found == [("a", pytest.approx(0.6931, abs=1e-4))]


def test_names_in_titles_are_followed_and_neighbours_are_looked_at():
    titles = {f"x/{n}.txt": f"note {n}" for n in range(30)} | {"team/a.txt": "Pump of the Orla"}
    texts = dict.fromkeys(titles, "words of no use") | {"team/a.txt": "the broken pump"}
    texts["x/3.txt"] = texts["x/4.txt"] = "Orla sails"
    policy = Offline(titles, texts)
    policy.search("broken pump")
    assert ("orla (followed)", 3) in policy.log


def test_a_transcript_can_be_read_and_cuts_long_outputs(offline):
    offline.search(pd.DataFrame({"question_id": ["q1"], "text": [QUESTION]}))
    shown = str(offline.transcripts_["q1"])
    assert shown.startswith(f"q1: {QUESTION}\npolicy offline")
    assert "$ search: ferri\n1 documents" in shown
    assert "1. d1" in shown
    step = Step("cat x", "y" * 5_000)
    assert step.output == "y" * 1_500 + "\n[3,500 more characters]\n"


# A model, scripted


def call(name, number=1, **arguments):
    return tool_call(name, arguments, f"call_{number}")


def script(*replies):
    """Answer by the number of assistant messages so far; the last reply is repeated."""

    def answer(body, nth, digest):
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        reply = replies[min(turn, len(replies) - 1)]
        return reply(body) if callable(reply) else reply

    return answer


@pytest.fixture
def scripted(endpoint):
    def start(*replies, **options):
        server = endpoint(script(*replies))
        client = Client("openai:toy", ledger=None, max_attempts=1, backoff=0.0, timeout=10.0)
        agent = BashAgent("openai:toy", client=client, **options).fit(DOCUMENTS)
        agent.server = server
        return agent

    return start


def messages(agent, number=-1):
    return json.loads(agent.server.bodies[number])["messages"]


def test_a_model_searches_reads_and_submits(scripted):
    agent = scripted(
        calls(call("bash", command="grep -ril orla .")),
        calls(call("bash", command="cat slack/ops/1.txt"), call("bash", 2, command="ls slack")),
        calls(call("submit", documents=["slack/ops/1.txt", "./slack/ops/2.txt"])),
    )
    runs = check(agent.search([QUESTION]), "runs")
    assert list(runs["doc_id"]) == ["d1", "d2"]
    assert list(runs["score"]) == [1.0, 0.5]
    assert (runs["system"] == "bash-openai:toy").all()
    transcript = agent.transcripts_["0"]
    commands = [step.command for step in transcript.steps]
    assert commands == ["grep -ril orla .", "cat slack/ops/1.txt", "ls slack"]
    assert transcript.stopped == "submitted"
    assert (transcript.prompt_tokens, transcript.completion_tokens) == (21, 9)
    sent = json.loads(agent.server.bodies[-1])
    assert [tool["function"]["name"] for tool in sent["tools"]] == ["bash", "submit"]
    roles = [message["role"] for message in sent["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool", "tool"]
    assert sent["messages"][1]["content"] == QUESTION
    assert sent["messages"][3]["content"] == (
        "./slack/ops/1.txt\n./slack/ops/2.txt\n[39 of 40 command lines left]"
    )


def test_unknown_and_repeated_paths_are_dropped_and_an_empty_submission_is_a_result(scripted):
    paths = ["/etc/passwd", "slack/ops/1.txt", "slack", "slack/ops/1.txt", "../x", "gmail/5.txt"]
    agent = scripted(calls(call("submit", documents=paths)))
    assert list(agent.search([QUESTION])["doc_id"]) == ["d1", "d5"]
    assert agent.transcripts_["0"].unknown_paths == 3
    assert list(agent.search([QUESTION], k=1)["doc_id"]) == ["d1"]
    agent = scripted(calls(call("submit", documents=[])))
    assert agent.search([QUESTION]).empty
    assert (agent.missing_, agent.transcripts_["0"].ranking) == ({}, [])


def test_a_hostile_model_sees_nothing_of_the_machine(scripted):
    wanted = ["cat /etc/passwd", "cat ../../../../etc/passwd", "find / -name '*.pem'", "env"]
    wanted += ["bash -c id", "ls\ncat /etc/passwd", "grep -f /etc/passwd -r ."]
    agent = scripted(
        *(calls(call("bash", command=command)) for command in wanted),
        calls(call("submit", documents=["/etc/passwd", "../../etc/passwd"])),
    )
    assert agent.search([QUESTION]).empty
    transcript = agent.transcripts_["0"]
    assert len(transcript.steps) == len(wanted)
    assert "root:x" not in agent.server.bodies[-1]
    assert transcript.unknown_paths == 2


def test_a_model_that_never_ends_runs_out_of_steps_and_is_missing(scripted):
    agent = scripted(calls(call("bash", command="ls")), steps=3)
    assert agent.search([QUESTION]).empty
    assert len(agent.transcripts_["0"].steps) == 3
    assert agent.transcripts_["0"].ranking is None
    assert agent.missing_ == {"0": "the steps were used up, nothing submitted"}
    assert len(agent.server.bodies) == 4
    assert messages(agent)[-1]["content"].startswith("The steps are used up")


@pytest.mark.parametrize(("limit", "steps"), [({"steps": 2}, 2), ({"seconds": 0.01}, 0)])
def test_a_model_may_submit_once_when_steps_or_time_are_over(scripted, limit, steps):
    def late(body):
        time.sleep(0.02)
        over = "are used up" in (body["messages"][-1]["content"] or "")
        made = call("submit", documents=["gmail/5.txt"]) if over else call("bash", command="ls")
        return calls(made)

    agent = scripted(late, **limit)
    assert list(agent.search([QUESTION])["doc_id"]) == ["d5"]
    assert [agent.transcripts_["0"].stopped] == list(limit)
    assert len(agent.transcripts_["0"].steps) == steps


def test_many_calls_at_once_count_one_by_one(scripted):
    many = [call("bash", n, command="ls") for n in range(50)]
    agent = scripted(calls(*many), calls(call("submit", documents=["gmail/5.txt"])), steps=5)
    agent.search([QUESTION])
    assert len(agent.transcripts_["0"].steps) == 5
    answers = [m["content"] for m in messages(agent) if m["role"] == "tool"]
    assert len(answers) == 50
    assert answers[-1] == "not run\n[0 of 5 command lines left]"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (chat("I think it is the pump."), "the model calls no tool"),
        (chat("", refusal="no"), "refused: the model refused: no"),
        (Reply("{}", 500, paid=False), "server_error"),
        (calls(call("rm", path="/")), "invalid: there is no tool 'rm'"),
        (calls(call("bash", command=5)), "invalid: the arguments of bash"),
        (calls(call("submit", documents="all")), "invalid: the arguments of submit"),
    ],
)
def test_a_model_that_fails_is_missing_and_never_an_empty_result(scripted, reply, reason):
    agent = scripted(reply)
    runs = agent.search([QUESTION])
    assert runs.empty
    assert agent.missing_["0"].startswith(reason)
    transcript = agent.transcripts_["0"]
    assert transcript.ranking is None
    assert transcript.stopped == "failed"
    assert "nothing submitted" in str(transcript)


def test_one_failure_leaves_the_other_questions_alone(scripted):
    def answer(body):
        if "ferry" in body["messages"][1]["content"]:
            return chat("", refusal="no")
        return calls(call("submit", documents=["gmail/5.txt"]))

    agent = scripted(answer)
    runs = agent.search(["a", QUESTION, "b"])
    assert list(runs["question_id"]) == ["0", "2"]
    assert list(agent.missing_) == ["1"]


def test_an_endpoint_that_cannot_be_used_is_an_error(scripted):
    agent = scripted(Reply('{"error": {"message": "bad key"}}', 401, paid=False))
    with pytest.raises(ModelError):
        agent.search([QUESTION])


def test_the_ledger_replays_a_search_without_a_call(endpoint, tmp_path):
    server = endpoint(
        script(
            calls(call("bash", command="grep -ril orla .")),
            calls(call("submit", documents=["slack/ops/1.txt"])),
        )
    )
    found = []
    for replay in (False, True):
        with Client("openai:toy", ledger=tmp_path / "l.sqlite", replay=replay) as client:
            found.append(BashAgent("openai:toy", client=client).fit(DOCUMENTS).search([QUESTION]))
    pd.testing.assert_frame_equal(*found)
    assert len(server.bodies) == 2


# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "zsh"}, "no policy 'zsh'"),
        ({"policy": "openai:b", "client": Client("openai:a", ledger=None)}, "is of 'openai:a'"),
        ({"steps": 0}, "steps should be a whole number of at least 1"),
        ({"seconds": -1}, "seconds should be a number of at least 0.01"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(UsageError, match=message):
        BashAgent(**options)
    with pytest.raises(UsageError, match="BashAgent has no index yet"):
        BashAgent().search(["x"])


@pytest.mark.slow
def test_it_keeps_up_with_bm25_at_equal_length_on_the_sample():
    """A floor below what was measured."""
    from ragkit import datasets
    from ragkit.measures import metrics
    from ragkit.systems.retrieval import BM25

    sample = datasets.load("enterpriserag_bench", profile="sample").part(150, 40)
    agent = BashAgent("offline").fit(sample.documents)
    runs = agent.search(sample.questions)
    ranked = BM25().fit(sample.documents).search(sample.questions, 10)
    ranked = ranked.merge(runs.groupby("question_id").size().rename("most").reset_index())
    ranked = ranked[ranked["rank"] <= ranked.pop("most")]
    both = [metrics.retrieval(part, sample.questions, measures=["R@10"]) for part in (runs, ranked)]
    ours, theirs = (part["score"].mean() for part in both)
    assert ours >= 0.9 * theirs, (ours, theirs)
