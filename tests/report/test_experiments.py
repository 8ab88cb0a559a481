"""The papers' experiments: declared, priced, run to a full scoreboard, resumed, and honest."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pandas as pd
import pytest

from ragkit.datasets import Dataset, reported
from ragkit.errors import DataError, MissingData, ModelError, UsageError
from ragkit.files import read_jsonl, write_jsonl
from ragkit.llm import Ledger, count_tokens, load_prices, printed
from ragkit.llm.requests import digest
from ragkit.report import experiments, records, scoreboard, tables, trial
from ragkit.report.trial import Trial
from ragkit.systems.readers import ABSTENTION
from tests.datasets import release
from tests.llm.server import Reply, chat, serve
from tests.report.vendor import Vendor

VENDORS = ("OPENAI", "ANTHROPIC", "GEMINI", "LLAMA")
# Weights that are not here have a stand-in that costs nothing.
E5 = {"retrievers": ("bm25", "e5=bm25-titles")}
NAMES = list(experiments.load())
ONE = {"limit": 4, "retrievers": ("bm25",), "readers": ("gpt_4o",)}


@pytest.fixture(autouse=True)
def _nothing_of_this_workspace(tmp_path, monkeypatch):
    """No record of an experiment and no answer of an earlier run."""
    monkeypatch.setattr(experiments, "EXPORTED", tmp_path / "exported")
    monkeypatch.setenv("RAGKIT_LEDGER", str(tmp_path / "l.sqlite"))


@pytest.fixture(scope="module")
def official(tmp_path_factory):
    return release.make(tmp_path_factory.mktemp("official"))


@pytest.fixture
def vendor(monkeypatch):
    """One server in the place of every vendor."""
    with serve(Vendor()) as server:
        for name in VENDORS:
            monkeypatch.setenv(f"{name}_BASE_URL", server.url)
            monkeypatch.delenv(f"{name}_API_KEY", raising=False)
        yield server


def settings(official, name, **options):
    given = E5 if name.startswith("wixqa") else {}
    return {"data": str(official), **given, **options}


def run(official, name, **options):
    made = Trial(experiments.get(name), **settings(official, name, **options))
    try:
        return made, made.run()
    finally:
        made.close()


def paid(server):
    return sum(server.paid.values())


def keys(frame):
    return set(frame[tables.KEY].itertuples(index=False, name=None))


def test_every_row_that_needs_a_model_names_the_experiment_that_fills_it():
    known, rows = experiments.load(), reported.load()
    rows = rows[rows["status"] == "needs a model"]
    assert len(rows) > 150
    for row in rows.to_dict("records"):
        name = row["command"].removeprefix("ragkit experiment run ")
        assert row["command"] == known[name].command
        cells = known[name].cells
        key = tuple(row[column] for column in tables.KEY)
        assert key in keys(cells), key


def test_every_model_of_an_experiment_has_a_price_or_open_weights():
    prices = load_prices()
    for one in experiments.load().values():
        for spec in (*one.readers.values(), one.judge):
            open_weights = "llama" in spec["kind"].lower()
            assert (prices.cost(spec["kind"], 1, 1) is None) == open_weights, spec["kind"]
    assert prices.cost("text-embedding-3-large", 1, 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[a]\ntitel = 'x'\n", "no option of a 'titel'"),
        ("[a]\nlike = 'b'\n", "no a: experiment 'b'"),
        ("[a]\ntitle = 'x'\n", "missing"),
        ("[a\n", "not TOML"),
    ],
)
def test_a_declaration_that_is_wrong_is_one_error(tmp_path, text, words):
    (tmp_path / "e.toml").write_text(text)
    with pytest.raises((UsageError, DataError), match=words):
        experiments.load(tmp_path / "e.toml")


def test_a_cell_that_no_paper_prints_is_an_error():
    one = replace(experiments.get("wixqa-table-3"), fills=[{"table": "3", "row": "{reader}"}])
    with pytest.raises(DataError, match="fills no printed cell of table 3"):
        _ = one.cells


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_fills_its_cells(official, vendor, name):
    """On files of the official shape and an endpoint, no cell that they can fill is left open."""
    given = {"limit": 6}
    vendor.answer.varies = experiments.get(name).repeat > 1
    if name.startswith("erb"):  # of one experiment every type of question
        given = {"limit": 30 if name == "erb-tables-6-7" else 12}
    if name == "erb-local-encoders":
        given["retrievers"] = ("bm25", "minilm=bm25-titles")
    made, written = run(official, name, **given)
    chosen = experiments.get(name)
    assert len(written) == len(made.readers) * max(1, len(made.retrievers))
    found = experiments.measured("paper")
    types = {experiments.OVERALL, *made.questions["type"]}
    gold = made.questions["gold_doc_ids"].map(len) > 0
    with_gold = {experiments.OVERALL, *made.questions["type"][gold]}
    cells = chosen.cells[chosen.cells["type"].isin(types)]
    documents = cells["metric"].isin(["document_recall", "invalid_extra_documents"])
    cells = cells[~documents | cells["type"].isin(with_gold)]
    assert found["measured"].notna().all()
    assert keys(found) == keys(cells)
    board = tables.compare(reported.load(chosen.paper), found)
    lost = board["value"].isna()  # plotted, not printed
    states = board.loc[board["measured"].notna() & ~lost, "status"]
    assert set(states) <= {"substitute"}  # other files than the registered ones
    values = experiments.summary("paper")
    assert set(values["metric"]) == set(chosen.metrics)
    if chosen.repeat > 1:
        spread = experiments.repeated("paper")
        assert set(spread["metric"]) >= {"correctness", "completeness"}
        assert (spread["spread"] > 0).any()
    before = paid(vendor)
    files = {path: path.read_bytes() for path in written}
    assert run(official, name, **given)[1] == written
    assert paid(vendor) == before
    assert {path: path.read_bytes() for path in written} == files


def test_the_scoreboard_and_the_notebooks_read_what_was_run(official, vendor):
    made, _ = run(official, "wixqa-table-3", limit=4)
    own = experiments.measured("paper", "wixqa")
    assert len(own) == 48
    theirs = own.iloc[:2].assign(measured=0.5, note="a notebook's")
    board = scoreboard.joined([theirs, own.iloc[:0]], experiments.measured("paper"))
    assert len(board) == 48
    assert not (board["note"] == "a notebook's").any()
    assert experiments.board("paper", "wixqa", "3").shape == (8, 18)
    assert experiments.board("sample", "wixqa", "3").empty
    board = tables.compare(reported.load("wixqa", "3"), own)
    row = board[(board["row"] == "e5+gpt_4o") & (board["metric"] == "factuality")].iloc[0]
    assert "bm25-titles for e5-large" in row["note"]
    assert "prompt factuality@1" in row["note"]
    assert "answered by http://127.0.0.1" in row["note"]
    assert made.dataset.portion in row["note"]
    assert made.dataset.portion.startswith("4 of ")


def test_the_papers_own_run_is_no_substitute(official, vendor, monkeypatch, tmp_path):
    """Own models, data and printed prompts: match, close or differs; without the prompts not."""
    monkeypatch.setattr(Dataset, "substitute", lambda self, *parts: "")
    monkeypatch.setattr(records, "is_local", lambda url: False)
    name, given = "wixqa-table-3", {"limit": 4, "retrievers": ("bm25",), "readers": ("gpt_4o",)}
    run(official, name, **given)
    board = tables.compare(reported.load("wixqa", "3"), experiments.measured("paper"))
    board = board[board["measured"].notna()].set_index("metric")["status"]
    assert set(board[["factuality", "context_recall"]]) == {"substitute"}
    assert set(board[["token_f1", "bleu", "rouge_1", "rouge_2"]]) <= {"match", "close", "differs"}
    known = {}
    for kind in ("factuality", "context_recall"):
        text = f"Rate the {kind} from 1 to 5."
        plain = printed.letters(text)[0]
        known[kind] = printed.Printed("wixqa", kind, "appendix", len(plain), digest(plain))
        known[kind].path.parent.mkdir(parents=True, exist_ok=True)
        known[kind].path.write_text(text)
    monkeypatch.setattr(printed, "known", lambda paper=None: known)
    run(official, name, **given)
    board = tables.compare(reported.load("wixqa", "3"), experiments.measured("paper"))
    board = board[board["measured"].notna()]
    assert len(board) == 6
    assert set(board["status"]) <= {"match", "close", "differs"}
    (record,) = experiments.records("paper", name)
    assert record["judge"]["prompts"]["factuality"]["id"].startswith("wixqa:factuality@printed")
    # Four questions, each read once and judged by two prompts.
    calls = {one["purpose"]: one for one in record["calls"]}
    assert {name: one["requests"] for name, one in calls.items()} == {
        "reader": 4,
        "judge factuality": 4,
        "judge context_recall": 4,
    }
    assert calls["judge factuality"]["prompt"].startswith("wixqa:factuality@printed")
    assert all(one["cost_usd"] > 0 for one in calls.values())
    assert record["commit"]


def test_a_reader_fills_its_own_row_alone(official, vendor):
    given = {"limit": 2, "retrievers": ("bm25",)}
    run(official, "wixqa-table-3", readers=("openai:mine",), **given)
    assert experiments.measured("paper").empty
    assert set(experiments.summary("paper")["system"]) == {"bm25+openai:mine"}
    run(official, "wixqa-table-3", readers=("gpt_4o=openai:mine",), judge="offline", **given)
    found = experiments.measured("paper")
    assert set(found["row"]) == {"bm25+gpt_4o"}
    assert found["substitute"].str.contains("openai:mine for openai:gpt-4o").sum() == 5
    run(official, "wixqa-table-3", readers=("gpt_4o",), **given)  # the declared one comes before it
    found = experiments.measured("paper")
    assert not found["substitute"].str.contains("openai:mine").any()
    assert len(experiments.records("paper")) == 3


def test_two_judges_of_the_same_answers_stand_beside_each_other(official, vendor):
    for judge in ("", "offline", "openai:mine"):
        run(official, "wixqa-table-3", judge=judge, **ONE)
    found = experiments.summary("paper")
    rated = found[(found["metric"] == "factuality") & (found["type"] == "overall")]
    assert set(rated["judge"]) == {"openai:gpt-4o", "offline", "openai:mine"}
    assert len(experiments.files("paper")) == 3
    own = experiments.measured("paper").set_index("metric")["substitute"]
    assert "judge" not in own["factuality"]  # the declared judge's verdict fills the cell
    agreed = experiments.agreement("paper").set_index("metric")
    assert set(agreed.index) == {"factuality", "context_recall"}
    assert agreed.loc["factuality", "judges"] == "offline, openai:gpt-4o, openai:mine"
    assert (agreed["n"] == 4).all()
    files = [path.with_suffix(".scores.csv") for path in experiments.files("paper")]
    scores = pd.concat(map(pd.read_csv, files)).query("metric == 'factuality'")
    apart = scores.groupby("item_id")["score"].agg(["max", "min"])
    assert agreed.loc["factuality", "apart"] == pytest.approx((apart["max"] - apart["min"]).mean())


def test_notes_say_who_answered_and_how_many_abstained(official, vendor):
    vendor.answer = lambda *asked: chat(ABSTENTION)
    run(official, "wixqa-table-3", note="Weights: a file.", **{**ONE, "judge": "offline"})
    found = experiments.measured("paper")["note"]
    assert found.str.contains("4 answers say that there is none; Weights: a file.").all()


def test_other_peoples_answers_are_judged_beside(official, vendor, tmp_path):
    made = Trial(experiments.get("erb-tables-6-7"), **settings(official, "erb-tables-6-7", limit=8))
    one = {"answer": "It is so.", "document_ids": [], "abstained": "no"}
    names = made.questions["question_id"]
    write_jsonl(tmp_path / "a.jsonl", ({"question_id": name, **one} for name in names))
    given = {"limit": 8, "retrievers": ("bm25",), "answers": (f"theirs={tmp_path / 'a.jsonl'}",)}
    run(official, "erb-tables-6-7", **given)
    found = experiments.summary("paper")
    own = found[(found["system"] == "theirs") & (found["type"] == "overall")]
    assert set(own["metric"]) >= {"correctness", "completeness", "document_recall"}
    assert "another author's answers" in own["substitute"].iloc[0]
    assert set(experiments.measured("paper")["column"]) <= {"bm25"}


@pytest.mark.parametrize("name", ["wixqa-table-3", "erb-repeated-judging", "liverag-figure-3"])
def test_a_dry_run_says_what_the_run_asks(official, vendor, name):
    given = {"limit": 8}
    if name.startswith("erb"):
        given["retrievers"] = ("bm25",)
    gold = Trial(experiments.get(name), **settings(official, name, **given)).questions["answer"]
    vendor.answer.words = round(gold.map(count_tokens).mean()) - count_tokens(digest("")[:16])
    began = time.process_time()
    planned, _ = run(official, name, mode="dry", **given)
    assert time.process_time() - began < 10  # seconds, of this machine alone
    assert paid(vendor) == 0
    assert not os.path.exists(os.environ["RAGKIT_LEDGER"])
    shares = planned.shares()
    run(official, name, **given)
    assert sum(share.calls for share in shares) == paid(vendor)
    used = pd.DataFrame.from_dict(vendor.answer.tokens, "index", columns=["model", "inside", "out"])
    used = used[["inside", "out"]].mul(pd.Series(vendor.paid), axis=0)  # repeats have equal bodies
    inside, out = (sum(getattr(s, key) for s in shares) for key in ("tokens_in", "tokens_out"))
    assert inside == pytest.approx(used["inside"].sum(), rel=0.15)
    assert out == pytest.approx(used["out"].sum(), rel=0.15)
    again, _ = run(official, name, mode="dry", **given)
    assert sum(share.calls for share in again.shares()) == 0


def test_a_dry_run_of_many_questions_counts_a_part(official, monkeypatch):
    name, given = "wixqa-table-5", {"retrievers": ("bm25",), "mode": "dry"}
    whole = run(official, name, **given)[0].shares()
    monkeypatch.setattr(trial, "LARGE", 50)
    monkeypatch.setattr(trial, "SAMPLED", 40)
    planned, _ = run(official, name, **given)
    assert len(planned.questions) == 40
    assert "counted on 40 of 80 questions" in planned.notes
    parts = planned.shares()
    assert [share.calls for share in parts] == [share.calls for share in whole]
    inside, true = (sum(share.tokens_in for share in shares) for shares in (parts, whole))
    assert inside == pytest.approx(true, rel=0.15)


def test_a_dry_run_counts_vectors_panel_and_agent(official, vendor):
    """The panel's calls are exact for a panel that agrees on nothing; an agent's are at least."""
    name, given = "erb-tables-6-7", {"limit": 4}
    planned, _ = run(official, name, mode="dry", **given)
    by = {(share.model, share.purpose): share for share in planned.shares()}
    vectors = by["openai:text-embedding-3-large", "vectors"]
    assert vectors.calls == len(set(planned.to_encode[0][1]))
    assert any("counted once" in note for note in planned.notes)
    assert by["openai:gpt-5.4", "agent"].calls == 4
    run(official, name, **given)
    again, _ = run(official, name, mode="dry", **given)
    assert sum(share.calls for share in again.shares()) == 0


def test_a_batch_is_written_imported_and_judged(official, vendor, tmp_path, ragkit):
    arguments = ["experiment", "run", "wixqa-table-3", "--data", official, "--limit", 3]
    arguments += ["--retriever", "bm25", "--reader", "gpt_4o", "--batch", tmp_path / "b.jsonl"]
    for recorded in ("3 answers recorded", "6 answers recorded"):
        assert ragkit(*arguments)[0] == 0
        (path,) = tmp_path.glob("b*.jsonl")
        results = []
        for one in read_jsonl(path):
            reply = vendor.answer(one["body"], 0, one["custom_id"]).body
            response = {"status_code": 200, "body": json.loads(reply)}
            results.append({"custom_id": one["custom_id"], "response": response})
        write_jsonl(path, results)
        assert recorded in ragkit("llm", "import", path)[1]
    code, said, _ = ragkit(*arguments)
    assert (code, "factuality" in said) == (0, True)
    assert paid(vendor) == 0
    assert len(experiments.records("paper")) == 1


def test_the_commands(official, vendor, ragkit):
    code, said, _ = ragkit("experiment", "list", "--data", official)
    assert (code, all(name in said for name in NAMES)) == (0, True)
    assert "needs the weights of e5-large-v2" in said
    assert "and unknown prices" in said  # open weights: never 0
    one = ["experiment", "run", "liverag-figure-3", "--data", official, "--limit", 2]
    for more, words in (
        (["--dry-run"], "price unknown for meta-llama/"),
        (["--reader", "gpt_4.1"], "correctness"),
    ):
        code, said, _ = ragkit(*one, *more)
        assert (code, words in said) == (0, True)
    assert "did you mean 'wixqa-table-" in ragkit("experiment", "run", "wixqa-tabel-3")[2]


def test_truncated_answers_are_counted_and_broken_verdicts_are_no_score(official, vendor):
    good = Vendor()

    def answer(body, nth, digest):
        reply = good(body, nth, digest)
        found = json.loads(reply.body)
        found["choices"][0]["finish_reason"] = "length"
        if "response_format" in body and "expert_answer" in str(body["messages"]):
            found["choices"][0]["message"]["content"] = '{"reason": "it ca'
        return Reply(json.dumps(found))

    vendor.answer = answer
    (path,) = run(official, "wixqa-table-3", **ONE)[1]
    record = json.loads(path.read_text())
    assert any("4 answers cut" in note for note in record["notes"])
    assert not {"factuality", "context_recall"} & {one["metric"] for one in record["values"]}
    found = experiments.measured("paper")
    assert not {"factuality", "context_recall"} & set(found["metric"])


def test_a_limit_of_ones_own_holds_for_readers_and_is_a_departure(official, vendor):
    (path,) = run(official, "wixqa-table-3", **ONE, max_tokens=9)[1]
    record = json.loads(path.read_text())
    assert record["reader"]["parameters"] == {"max_tokens": 9, "temperature": 0}
    assert "answers of at most 9 tokens" in record["departures"]["reader"]
    judged = ["response_format" in body for body in map(json.loads, vendor.bodies)]
    limits = [json.loads(body)["max_tokens"] for body in vendor.bodies]
    assert set(zip(judged, limits, strict=True)) == {(False, 9), (True, 1024)}
    found = experiments.measured("paper").set_index("metric")["substitute"]
    assert "answers of at most 9 tokens" in found["token_f1"]
    assert "answers of at most" not in found["context_recall"]


def test_a_system_without_any_answer_leaves_no_record(official, vendor):
    vendor.answer = lambda *asked: Reply('{"error": {"message": "context too long"}}', 400)
    made, written = run(official, "wixqa-table-3", **ONE)
    assert written == []
    assert "context too long" in made.notes[-1]
    assert experiments.measured("paper").empty


@pytest.mark.parametrize("every", [False, True])
def test_what_an_agent_did_not_find_is_missing_and_no_abstention(official, vendor, every):
    """A model that calls no tool leaves a question without a result: nobody reads it."""
    good, silent = Vendor(), []

    def answer(body, nth, digest):
        asked = str(body["messages"][:2])
        silent.extend([asked] if "tools" in body and (every or not silent) else [])
        if "tools" in body and asked in silent:
            return chat("I would look into the folder.")
        return good(body, nth, digest)

    vendor.answer = answer
    options = {"limit": 3, "retrievers": ("bash_agent",), "concurrency": 1}
    made, written = run(official, "erb-tables-6-7", **options)
    assert len(made.lost["bash_agent"]) == (3 if every else 1)
    assert any("the model calls no tool" in note for note in made.notes)
    if every:
        assert written == []
    else:
        record = json.loads(written[0].read_text())
        assert "1 questions without an answer" in record["notes"]
        assert max(one["n"] for one in record["values"]) == 2
    read = Ledger(os.environ["RAGKIT_LEDGER"])
    assert sum(row.purpose == "reader" for row in read) == (0 if every else 2)


def test_exported_records_count_until_a_run_takes_their_place(official, vendor):
    (path,) = run(official, "wixqa-table-3", **ONE)[1]
    target = experiments.EXPORTED / "wixqa-table-3"
    target.mkdir(parents=True)
    for file in path.parent.glob("*.*"):
        shutil.move(file, target / file.name)
    assert len(experiments.measured("paper")) == 6
    assert experiments.records("sample") == []
    run(official, "wixqa-table-3", **ONE)
    assert experiments.files("paper") == [path]


def test_a_budget_that_ends_half_way_loses_nothing(official, vendor):
    with pytest.raises(ModelError, match="budget of") as caught:
        run(official, "wixqa-table-3", **ONE, budget=0.03)
    assert "--budget" in caught.value.hint
    before = paid(vendor)
    assert 0 < before < 12
    planned, _ = run(official, "wixqa-table-3", mode="dry", **ONE)
    left = sum(share.calls for share in planned.shares())
    run(official, "wixqa-table-3", **ONE, budget=5.0)
    assert paid(vendor) - before == left
    assert max(vendor.paid.values()) == 1


def test_what_is_missing_is_said_before_anything_is_asked(official, vendor, monkeypatch, tmp_path):
    monkeypatch.delenv("ANTHROPIC_BASE_URL")
    with pytest.raises(MissingData, match="e5-large-v2") as caught:
        Trial(experiments.get("wixqa-table-3"), data=str(official), limit=2).run()
    assert "ANTHROPIC_API_KEY" in caught.value.hint
    (tmp_path / "empty").mkdir()
    with pytest.raises(MissingData, match="wixqa-table-3 cannot run"):
        run(tmp_path / "empty", "wixqa-table-3")
    assert paid(vendor) == 0


def test_a_corpus_larger_than_memory_is_one_error(official, vendor, monkeypatch):
    def small(need, what):
        raise DataError(f"{what} take more than there is")

    with pytest.raises(DataError, match="GB of memory"):
        trial.check_memory(10**15, "the vectors")
    monkeypatch.setattr(trial, "check_memory", small)
    with pytest.raises((DataError, MissingData), match="take more than there is"):
        run(official, "wixqa-table-3", **ONE)
    assert paid(vendor) == 0


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"readers": ("gpt_5o",)}, "no reader 'gpt_5o'"),
        ({"retrievers": ("e5=bm26",)}, "did you mean 'bm25'"),
        ({"judge": "nobody"}, "no judge is called"),
    ],
)
def test_a_name_that_is_wrong_is_one_error(official, vendor, option, words):
    with pytest.raises(UsageError, match=words):
        run(official, "wixqa-table-3", **{**ONE, **option})


@pytest.mark.slow
def test_killed_ten_times_and_resumed_nothing_is_paid_twice(official, tmp_path):
    command = [sys.executable, "-m", "ragkit", "experiment", "run", "wixqa-table-3"]
    command += ["--data", str(official), "--limit", "12", "--concurrency", "4"]
    command += ["--retriever", "bm25", "--retriever", "e5=bm25-titles"]
    bytes_of, counts = [], []
    for folder in ("once", "killed"):
        with serve(Vendor()) as server:
            environment = os.environ | {f"{name}_BASE_URL": server.url for name in VENDORS}
            environment |= {"RAGKIT_BUILD": str(tmp_path / folder), "HF_HUB_OFFLINE": "1"}
            environment |= {"RAGKIT_LEDGER": str(tmp_path / folder / "ledger.sqlite")}
            environment |= {"RAGKIT_CACHE": str(tmp_path / "cache")}
            for stop in range(20, 201, 20) if folder == "killed" else ():
                with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as child:
                    while child.poll() is None and paid(server) < stop:
                        time.sleep(0.02)
                    child.send_signal(signal.SIGKILL)
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            counts.append(dict(server.paid))
        files = sorted((tmp_path / folder).rglob("experiments/**/*.*"))
        read = {path.name: path.read_text().replace(server.url, "URL") for path in files}
        bytes_of.append(read)
    assert bytes_of[0] == bytes_of[1]
    assert counts[0].keys() == counts[1].keys()
    under_way = sum(count - 1 for count in counts[1].values())
    with Ledger(tmp_path / "killed" / "ledger.sqlite", readonly=True) as book:
        assert len(book) == len(counts[1])
    assert under_way <= 10 * 4  # an answer under way at the kill was not recorded anywhere
