"""WixQA's sets with a model: a loopback endpoint plays it, over articles of a user or its own."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as tried
from hypothesis import strategies as st

from ragkit import datasets
from ragkit.errors import DataError, ModelError, UsageError
from ragkit.synth.helpcentre import Settings, generate_helpcentre
from ragkit.synth.helpcentre.centre import Centre
from ragkit.synth.stages import AuthorOptions
from tests.synth import players
from tests.synth.conftest import rows
from tests.synth.players import TYPES, Player, entry

OWN = {"author": "openai:toy", "seed": 3}
PAGE = OWN | {"articles": 4, "expertwritten": 2, "simulated": 2}


@pytest.fixture
def folder(tmp_path):
    return players.kayaks(tmp_path / "own")


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "company.md"
    path.write_text(players.PAGE, "utf-8")
    return path


def test_a_model_asks_about_articles_of_a_user(folder, endpoint, tmp_path):
    server = endpoint(Player(players.centre))
    found = generate_helpcentre(tmp_path / "one", documents=folder, **OWN)
    assert found["articles"] == dict.fromkeys(TYPES, 4)
    made = datasets.load(str(tmp_path / "one"))
    assert Counter(made.questions["type"]) == {"synthetic": 12, "expertwritten": 8, "simulated": 8}
    two = made.questions[made.questions["gold_doc_ids"].map(len) == 2]
    assert Counter(two["type"]) == {"expertwritten": 2, "simulated": 1}
    assert found["about two articles"] == {"expertwritten": 2, "simulated": 1, "synthetic": 0}
    assert len(rows(tmp_path / "one" / "dialogues.jsonl")) == 8
    # An article of each type has a prompt of its own.
    prompts = Counter(json.loads(b)["messages"][0]["content"][:40] for b in server.bodies)
    extracts = [n for text, n in prompts.items() if text.startswith("The help article below")]
    assert extracts == [4, 4, 4]
    with pytest.raises(UsageError, match="was begun with"):
        generate_helpcentre(tmp_path / "one", documents=folder, **OWN | {"seed": 4})


@pytest.mark.parametrize(
    ("first", "change", "says"),
    [
        ("Review", {"clear": False}, "no clear question"),
        ("Review", {"answered": False}, "do not carry the answer"),
        ("Review", {"needed": [9]}, "needed: there is no number 9 of"),
        ("Review", {"needed": []}, "its answer needs 0 of 1 articles"),
        ("First be", {"facts": ["Open the hatch."]}, "leaves out a fact that it names: 'Open the"),
        ("First be", {"question": "How?"}, "asked before"),
        ("Write a", {"turns": []}, "invalid: "),
    ],
)
def test_what_a_model_spoils_is_left_out_and_named(folder, endpoint, tmp_path, first, change, says):
    def spoil(prompt, reply):
        hit = prompt.startswith(first) and ("question" in change or "Open bag 1" in prompt)
        return reply | change if hit else reply

    endpoint(Player(players.centre, spoil))
    found = generate_helpcentre(tmp_path / "out", documents=folder, **OWN)
    left = rows(tmp_path / "out" / "left_out.jsonl")
    assert found["left_out"] == len(left)
    assert any(says in row["reason"] for row in left), left
    assert all(row["stage"] and "question on" in row["item"] and row["remedy"] for row in left)


def test_one_of_two_articles_is_enough(folder, endpoint, tmp_path):
    endpoint(Player(players.centre, lambda p, r: r | ({"needed": [1]} if "needed" in r else {})))
    found = generate_helpcentre(tmp_path / "out", documents=folder, **OWN)
    assert found["about two articles"] == {"expertwritten": 0, "simulated": 0, "synthetic": 0}
    reasons = {row["reason"] for row in rows(tmp_path / "out" / "left_out.jsonl")}
    assert reasons == {"its answer needs 1 of 2 articles"}


def unclear(prompt):
    """Say of the first set alone that no question of it is clear."""
    expert = "\nQuestion: First:" in prompt
    return {"clear": not expert, "answered": expert}


@pytest.mark.parametrize(
    ("review", "says"),
    [
        (lambda prompt: {"answered": False}, "no expertwritten question is usable"),
        (unclear, "no expertwritten question is usable: it is no clear"),
    ],
)
def test_a_set_without_a_usable_question_is_an_error_with_its_reason(
    folder, endpoint, tmp_path, review, says
):
    endpoint(Player(players.centre, lambda p, r: r | (review(p) if "needed" in r else {})))
    with pytest.raises(ModelError, match=says):
        generate_helpcentre(tmp_path / "out", documents=folder, **OWN)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["generation.json"]


def test_a_model_writes_the_articles_from_a_page_in_blocks(page, endpoint, tmp_path):
    server = endpoint(Player(players.centre))
    more = PAGE | {"articles": 43, "page": page}
    options = AuthorOptions(tmp_path / "ledger.sqlite")
    found = generate_helpcentre(tmp_path / "one", **more, author_options=options)
    assert found["product"] == "Paddle & Sons"
    made = datasets.load(str(tmp_path / "one"))
    assert len(made.documents) == 43
    first = made.documents.iloc[0]
    assert first["doc_id"] == "kayak-articles-1-01"
    assert first["text"].startswith("Kayak articles-1-01\nOpen bag 101.")
    assert first["url"] == "https://help.paddle-sons.example/en/article/kayak-articles-1-01"
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


FOUR = [entry("articles-1", n) for n in (1, 2, 3, 4)]


@pytest.mark.parametrize(
    ("first", "change", "says"),
    [
        ("Below", {"articles": []}, "'catalogue'.*'catalogue'.*invalid"),
        ("Below", {"articles": [row | {"key": "x"} for row in FOUR]}, "not articles-1-01 to"),
        ("Below", {"articles": [row | {"slug": "a"} for row in FOUR]}, "02: the slug 'a' stands"),
        ("Write one", {"contents": "Short."}, "'article articles-1-0.': the article has 1 words"),
    ],
)
def test_an_article_that_a_model_spoils_is_named(page, endpoint, tmp_path, first, change, says):
    endpoint(Player(players.centre, lambda p, r: r | (change if p.startswith(first) else {})))
    with pytest.raises(ModelError, match=says):
        generate_helpcentre(tmp_path / "out", page=page, **PAGE)


@tried(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(n=st.integers(1, 6700))
def test_shares_of_questions_about_two_articles_are_the_printed_ones_within_rounding(page, n):
    centre = Centre(Settings(author="openai:toy", page=page, articles=n, expertwritten=n))
    assert centre.sets == {"expertwritten": n, "simulated": min(200, n * 2 // 3), "synthetic": n}
    for name, share in {"expertwritten": 0.27, "simulated": 0.14, "synthetic": 0}.items():
        assert abs(centre.multi[name] - centre.sets[name] * share) < 1


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"articles": 0}, UsageError, "articles should be a whole number of at least 1"),
        ({"articles": None}, UsageError, "articles should be a whole number"),
        ({"seed": -1}, UsageError, "seed"),
        (
            {"expertwritten": 5},
            UsageError,
            "expertwritten, of 4 articles, should be .* from 0 to 4",
        ),
        ({"simulated": -1}, UsageError, "simulated, of 4 articles,"),
        ({"author": "gpt"}, UsageError, "no author is called 'gpt'"),
        ({"documents": "own"}, UsageError, "give one of the two"),
        ({"page": None}, UsageError, "give one of the two"),
        ({"page": None, "documents": "."}, DataError, "no documents"),
        ({"page": None, "documents": "none"}, DataError, "no such folder"),
        ({"page": "empty.md"}, DataError, "the page is empty"),
    ],
)
def test_impossible_settings_are_refused(page, tmp_path, monkeypatch, wrong, error, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.md").write_text(" \n", "utf-8")
    with pytest.raises(error, match=says):
        generate_helpcentre("out", **PAGE | {"page": page} | wrong)
    assert not (tmp_path / "out").exists()


def test_articles_are_read_and_checked_by_line(tmp_path):
    row = {"doc_id": "a", "title": "A", "text": "Some text."}
    folder = players.written(tmp_path / "own", [row, row])
    with pytest.raises(DataError, match=r"documents.jsonl: line 2: .*'a'"):
        generate_helpcentre(tmp_path / "out", documents=folder, **OWN)
    rows = [row | {"url": "https://a"}, row | {"doc_id": "b", "source": "known_issue"}]
    centre = Centre(Settings(**OWN, documents=players.written(folder, rows)))
    kinds = [(a["url"], a["source"]) for a in centre.own]
    assert kinds == [("https://a", "article"), ("", "known_issue")]
    players.written(folder, [row, {"doc_id": "b", "title": "B"}])
    with pytest.raises(DataError, match="documents.jsonl: line 2: no column 'text'"):
        generate_helpcentre(tmp_path / "out", documents=folder, **OWN)


def test_more_articles_than_there_are(folder, tmp_path):
    with pytest.raises(
        UsageError, match="articles should be a whole number from 1 to 12, found 13"
    ):
        generate_helpcentre(tmp_path / "out", documents=folder, articles=13, **OWN)
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_else_in_it_is_refused(page, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "note.txt").write_text("mine", "utf-8")
    with pytest.raises(UsageError, match="is not empty"):
        generate_helpcentre(tmp_path / "out", page=page, **PAGE)
