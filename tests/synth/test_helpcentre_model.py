"""WixQA's sets with a model: a loopback endpoint plays it, over articles of a user."""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit import datasets
from ragkit.cli.generate import command
from ragkit.errors import DataError, ModelError, UsageError
from ragkit.llm import Ledger, import_results
from ragkit.synth.author import AuthorOptions
from ragkit.synth.helpcentre import begun, generate_helpcentre
from tests.llm.server import Reply, chat

MODEL = "openai:toy"
PAGE = {"author": MODEL, "seed": 3, "expertwritten": 2, "simulated": 2}
TYPES = ("article", "feature_request", "known_issue")


@pytest.fixture
def folder(tmp_path):
    rows = [
        {
            "doc_id": f"a{i}",
            "title": f"Folding kayak {i}",
            "text": f"Folding kayak {i}\nOpen bag {i}. Slot {i} takes the frame. "
            + "Mind it. " * 20,
            "source": TYPES[i % 3],
        }
        for i in range(12)
    ]
    path = tmp_path / "own"
    path.mkdir()
    (path / "documents.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows), "utf-8")
    return path


def play(body: dict) -> dict:
    prompt = next(m for m in body["messages"] if m["role"] == "user")["content"]
    bags = list(dict.fromkeys(re.findall(r"Open bag \d+\.", prompt.partition("[1]")[2])))
    if prompt.startswith("Write a conversation"):
        turns = [{"who": "user", "text": "It folds?"}, {"who": "bot", "text": " ".join(bags)}]
        return {"turns": turns}
    if prompt.startswith("Review"):
        return {
            "reason": "read",
            "clear": True,
            "answered": True,
            "needed": list(range(1, len(bags) + 1)),
        }
    item = re.findall("^Item: (.+)$", prompt, re.M)[0]
    if prompt.startswith("Below is a page"):
        block, count = item.split()[-1], int(re.search(r"the next (\d+) articles", prompt)[1])
        return {"articles": [planned(block, n) for n in range(1, count + 1)]}
    if prompt.startswith("Write one article"):
        bag = int("".join(re.findall(r"\d+", item)))
        return {"contents": f"Open bag {bag}. " + "Take the kayak out. " * 100}
    kind = prompt.split()[0]
    return {"question": f"{kind}: how, {' '.join(bags)}", "answer": " ".join(bags), "facts": bags}


def planned(block: str, n: int) -> dict:
    block = "articles-1" if block == "catalogue" else block
    key = f"{block}-{n:02}"
    entry = {"title": f"Kayak {key}", "slug": f"kayak-{key}", "area": "Kayaks"}
    return {"key": key, "type": TYPES[n % 3], **entry}


def answered(change=lambda prompt, reply: reply):
    def answer(body, nth, digest):
        prompt = next(m for m in body["messages"] if m["role"] == "user")["content"]
        return Reply(chat(json.dumps(change(prompt, play(body)))))

    return answer


def test_a_model_asks_about_articles_of_a_user_and_pays_once(folder, endpoint, tmp_path):
    server = endpoint(answered())
    options = AuthorOptions(tmp_path / "ledger.sqlite")
    more = {"seed": 3, "documents": folder, "author": MODEL, "author_options": options}
    found = generate_helpcentre(tmp_path / "one", **more)
    assert found["articles"] == dict.fromkeys(TYPES, 4)
    made = datasets.load(str(tmp_path / "one"))
    assert Counter(made.questions["type"]) == {"synthetic": 12, "expertwritten": 8, "simulated": 8}
    two = made.questions[made.questions["gold_doc_ids"].map(len) == 2]
    assert Counter(two["type"]) == {"expertwritten": 2, "simulated": 1}
    # An article of each type has a prompt of its own.
    prompts = Counter(json.loads(b)["messages"][0]["content"][:40] for b in server.bodies)
    extracts = [n for text, n in prompts.items() if text.startswith("The help article below")]
    assert extracts == [4, 4, 4]
    before = sum(server.asked.values())
    assert generate_helpcentre(tmp_path / "two", **more) == found
    assert sum(server.asked.values()) == before
    for name in ("questions.jsonl", "documents.jsonl", "dialogues.jsonl"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    with pytest.raises(UsageError, match="was begun with"):
        generate_helpcentre(tmp_path / "one", **more | {"seed": 4})


@pytest.mark.parametrize(
    ("first", "change", "says"),
    [
        ("Review", {"clear": False}, "no clear question"),
        ("Review", {"answered": False}, "do not carry the answer"),
        ("Review", {"needed": [9]}, "there is no article 9 of"),
        ("First be", {"facts": ["Open the hatch."]}, "leaves out a fact that it names: 'Open the"),
        ("First be", {"question": "How?"}, "asked before"),
        ("Write a", {"turns": []}, "invalid: "),
    ],
)
def test_what_a_model_spoils_is_left_out_and_named(folder, endpoint, tmp_path, first, change, says):
    def spoil(prompt, reply):
        if prompt.startswith(first) and (change == {"question": "How?"} or "Open bag 1" in prompt):
            return reply | change
        return reply

    endpoint(answered(spoil))
    generate_helpcentre(tmp_path / "out", seed=3, documents=folder, author=MODEL)
    lines = (tmp_path / "out" / "left_out.jsonl").read_text("utf-8").splitlines()
    rows = list(map(json.loads, lines))
    assert any(says in row["reason"] for row in rows), rows
    assert all(row["stage"] and "question on" in row["item"] and row["remedy"] for row in rows)


def test_a_set_without_a_usable_question_is_an_error(folder, endpoint, tmp_path):
    endpoint(
        answered(lambda prompt, reply: reply | ({"answered": False} if "needed" in reply else {}))
    )
    with pytest.raises(ModelError, match="no expertwritten question is usable"):
        generate_helpcentre(tmp_path / "out", seed=3, documents=folder, author=MODEL)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["generation.json"]


def test_the_estimate_is_within_a_fifth_of_the_ledger(folder, endpoint, tmp_path):
    counts = {"articles": None, "expertwritten": None, "simulated": None, "seed": 3}
    lines = "\n".join(begun(folder, MODEL, None, **counts).estimate())
    endpoint(answered())
    ledger = tmp_path / "ledger.sqlite"
    options = {"author": MODEL, "author_options": AuthorOptions(ledger)}
    generate_helpcentre(tmp_path / "out", seed=3, documents=folder, **options)
    foreseen = int(re.search(r"([\d,]+) calls", lines)[1].replace(",", ""))
    with Ledger(ledger, readonly=True) as book:
        assert foreseen == pytest.approx(len(book), rel=0.2)


def run(*arguments):
    return CliRunner().invoke(command, ["helpcentre", *map(str, arguments)])


def test_batches_lead_to_the_same_bytes_as_a_run(folder, endpoint, tmp_path):
    endpoint(answered())
    options = ("--documents", folder, "--seed", 3, "--author", MODEL)
    done = run("--out", tmp_path / "asked", *options, "--yes")
    assert done.exit_code == 0, done.output
    out, batch, ledger = (tmp_path / name for name in ("out", "b.jsonl", "l.sqlite"))
    for _ in range(30):
        done = run("--out", out, *options, "--batch", batch, "--ledger", ledger)
        assert done.exit_code == 0, done.output
        if (out / "statistics.json").exists():
            break
        rows = [json.loads(line) for line in batch.read_text("utf-8").splitlines()]
        bodies = [json.loads(chat(json.dumps(play(row["body"])))) for row in rows]
        results = [
            {"custom_id": row["custom_id"], "response": {"status_code": 200, "body": body}}
            for row, body in zip(rows, bodies, strict=True)
        ]
        back = tmp_path / "results.jsonl"
        back.write_text("".join(json.dumps(r) + "\n" for r in results), "utf-8")
        with Ledger(ledger) as book:
            import_results(book, back)
    for path in (tmp_path / "asked").rglob("*.json*"):
        assert (out / path.relative_to(tmp_path / "asked")).read_bytes() == path.read_bytes()


def test_it_is_written_by_a_model_and_about_something(folder, page, tmp_path):
    with pytest.raises(UsageError, match="a help centre is written by a model"):
        generate_helpcentre(tmp_path / "out", seed=3, documents=folder)
    with pytest.raises(UsageError, match="there is nothing to write about"):
        generate_helpcentre(tmp_path / "out", seed=3, articles=9, author=MODEL)
    with pytest.raises(UsageError, match="how many articles"):
        generate_helpcentre(tmp_path / "out", seed=3, page=page, author=MODEL)
    with pytest.raises(DataError, match="no articles"):
        generate_helpcentre(tmp_path / "out", seed=3, documents=tmp_path, author=MODEL)
    done = run("--page", page, "--articles", 4, "--out", tmp_path / "out", "--yes")
    assert done.exit_code != 0
    assert "a help centre is written by a model" in str(done.exception)
    assert not (tmp_path / "out").exists()


@given(st.integers(1, 6700))
@settings(max_examples=30, deadline=None)
def test_shares_of_questions_about_two_articles_are_the_printed_ones_within_rounding(n):
    with tempfile.TemporaryDirectory() as room:
        page = Path(room) / "page.md"
        page.write_text("# Paddle & Sons", "utf-8")
        counts = {"articles": n, "expertwritten": n, "simulated": None, "seed": 1}
        centre = begun(None, MODEL, None, page, **counts)
    assert centre.sets == {"expertwritten": n, "simulated": min(200, n * 2 // 3), "synthetic": n}
    for name, share in {"expertwritten": 0.27, "simulated": 0.14, "synthetic": 0}.items():
        assert abs(centre.multi[name] - centre.sets[name] * share) < 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"articles": 0}, "articles"),
        ({"seed": -1}, "seed"),
        ({"expertwritten": 5}, "expertwritten must be from 0 to the 4 articles, not 5"),
        ({"simulated": -1}, "simulated must be from 0 to the 4 articles, not -1"),
        ({"author": "gpt"}, "no author is called 'gpt'"),
    ],
)
def test_impossible_settings_are_refused(page, tmp_path, wrong, message):
    with pytest.raises(UsageError, match=message):
        generate_helpcentre(tmp_path / "out", **PAGE | {"articles": 4, "page": page} | wrong)
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_else_in_it_is_refused(page, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "note.txt").write_text("mine", "utf-8")
    with pytest.raises(UsageError, match="is not empty"):
        generate_helpcentre(tmp_path / "out", articles=4, page=page, **PAGE)


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "company.md"
    path.write_text("# Paddle & Sons\n\nFolding kayaks since 1931.\n", "utf-8")
    return path


def test_a_model_writes_the_articles_from_a_page_in_blocks(page, endpoint, tmp_path):
    server = endpoint(answered())
    ledger = tmp_path / "ledger.sqlite"
    more = PAGE | {"articles": 43, "page": page, "author_options": AuthorOptions(ledger)}
    counts = {name: more[name] for name in ("articles", "expertwritten", "simulated", "seed")}
    lines = "\n".join(begun(None, MODEL, None, page, **counts).estimate())
    found = generate_helpcentre(tmp_path / "one", **more)
    foreseen = int(re.search(r"([\d,]+) calls", lines)[1].replace(",", ""))
    with Ledger(ledger, readonly=True) as book:
        assert foreseen == pytest.approx(len(book), rel=0.2)
    assert found["product"] == "Paddle & Sons"
    made = datasets.load(str(tmp_path / "one"))
    assert len(made.documents) == 43
    first = made.documents.iloc[0]
    assert first["doc_id"] == "kayak-articles-1-01"
    assert first["text"].startswith("Kayak articles-1-01\nOpen bag 101.")
    assert set(made.documents["doc_id"].str[:16]) == {"kayak-articles-1", "kayak-articles-2"}
    # The second block is planned in the knowledge of the first, and each article in that of all.
    prompts = [json.loads(body)["messages"][0]["content"] for body in server.bodies]
    blocks = [text for text in prompts if text.startswith("Below is a page")]
    assert ["- Kayak articles-1-40" in text for text in blocks] == [False, True]
    assert all("1931" in text for text in blocks)
    tasks = [text for text in prompts if text.startswith("Write one article")]
    assert len(tasks) == 43
    assert all("- Kayak articles-2-03" in text for text in tasks)
    page.write_text("# Paddle & Daughters", "utf-8")
    with pytest.raises(UsageError, match="was begun with"):
        generate_helpcentre(tmp_path / "one", **more)


@pytest.mark.parametrize(
    ("first", "change", "says"),
    [
        ("Below", {"articles": []}, "'catalogue'.*'catalogue'.*invalid"),
        ("Below", {"articles": [planned("x", n) for n in (1, 2, 3, 4)]}, "not articles-1-01 to"),
        (
            "Below",
            {"articles": [planned("catalogue", n) | {"slug": "a"} for n in (1, 2, 3, 4)]},
            "articles-1-02: the slug 'a' stands twice",
        ),
        ("Write one", {"contents": "Short."}, "'article articles-1-0.': the article has 1 words"),
    ],
)
def test_an_article_that_a_model_spoils_is_named(page, endpoint, tmp_path, first, change, says):
    endpoint(answered(lambda p, reply: reply | (change if p.startswith(first) else {})))
    with pytest.raises(ModelError, match=says):
        generate_helpcentre(tmp_path / "out", articles=4, page=page, **PAGE)


def test_a_page_as_typed(page, endpoint, tmp_path):
    endpoint(answered())
    counts = ("--articles", 4, "--expertwritten", 2, "--simulated", 2, "--author", MODEL)
    done = run("--page", page, *counts, "--out", tmp_path / "out", "--yes")
    assert done.exit_code == 0, done.output
    assert "4 articles and 8 questions" in done.output
    with pytest.raises(UsageError, match="not both"):
        generate_helpcentre(tmp_path / "no", articles=4, page=page, documents=tmp_path, **PAGE)
    page.write_text(" \n", "utf-8")
    with pytest.raises(DataError, match="the page is empty"):
        generate_helpcentre(tmp_path / "no", articles=4, page=page, **PAGE)
