"""DataMorgana with a model that a loopback endpoint plays: categories, documents, questions, faults."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from zlib import crc32

import pytest
from click.testing import CliRunner

from ragkit.cli import root
from ragkit.datasets import liverag
from ragkit.errors import DataError, ModelError, UsageError
from ragkit.files import read_jsonl
from ragkit.synth.datamorgana import estimate, load_config, make_questions
from ragkit.synth.datamorgana.config import DEFAULT
from ragkit.synth.streams import Stream
from tests.synth import players
from tests.synth.players import Player

ASKED = {"questions": 20, "seed": 5, "author": "openai:toy"}


@pytest.fixture
def folder(tmp_path):
    return players.lighthouses(tmp_path / "web")


def test_questions_of_one_and_two_documents_with_claims(folder, endpoint, tmp_path):
    endpoint(Player(players.morgana))
    made = make_questions(folder, **ASKED)
    assert len(made.rows) == 20
    assert not made.left_out
    for row, note in zip(made.rows, made.notes, strict=True):
        two = row["DataMorgana_Config"]["Answer Type"] in ("comparison", "multi-aspect")
        ids = {d["doc_id"] for d in row["Supporting_Documents"]}
        assert len(ids) == len(note["facts"]) == (2 if two else 1)
        texts = " ".join(d["content"] for d in row["Supporting_Documents"])
        assert all(mark in texts for mark in note["marks"])
        assert list(row["Answer_Claims"]) == ["direct", "useful", "useless"]
        assert "d7" not in ids  # its factuality is rated 1
    assert {len(row["Supporting_Documents"]) for row in made.rows} == {1, 2}
    told = made.report["documents"]
    assert told["factuality"] == 1
    assert told["kept"] == told["found by topic"] - 1 == 24
    assert Counter(row["Session"] for row in made.rows) == {"First": 9, "Second": 9, "Both": 2}
    made.write(tmp_path / "q.jsonl")
    names = ["q.jsonl", "q.notes.jsonl", "q.report.json"]
    assert sorted(path.name for path in tmp_path.glob("q*")) == names
    frames = liverag.frames(read_jsonl(tmp_path / "q.jsonl", liverag.COLUMNS), "q.jsonl")
    for name in liverag.CATEGORIZATIONS:
        assert not (frames["questions"][name] == "unknown").any()


PROMPTS = {"facts": "Read the", "check": "Judge", "claims": "Split", "choose": "A question of this"}


@pytest.mark.parametrize(
    ("stage", "change", "says"),
    [
        ("question", {"question": "far too " * 30}, "short-search-query of 60 words"),
        ("question", {"facts": [9]}, "facts: there is no number 9 of 1"),
        ("question", {"facts": []}, "invalid: "),
        ("question", {"question": "the same metres twice " * 3}, "asked before"),
        ("facts", {"facts": [dict.fromkeys(("subject", "attribute", "value", "statement"), "x y")]},
         "the document does not say 'x y'"),
        ("check", {"answered": False}, "its documents do not answer it"),
        ("check", {"elsewhere": [2]}, "another document answers it, too"),
        ("check", {"needed": [7]}, "needed: there is no number 7 of"),
        ("check", {"needed": []}, "its answer needs 0 of 1 documents"),
        ("choose", {"number": 40}, "number: there is no number 40 of"),
        ("choose", {"number": 0}, "no candidate completes the document"),
        ("claims", {"direct": "none"}, "invalid: "),
    ],
)  # fmt: skip
def test_spoilt_answers_are_named_with_stage_item_and_remedy(folder, endpoint, stage, change, says):
    spoilt = 0

    def spoil(prompt, reply):
        nonlocal spoilt
        short = "short" in says and "short-search" not in prompt
        if short or not prompt.startswith(PROMPTS.get(stage, "The question has")):
            return reply
        spoilt += 1
        several = stage == "choose" or "short" in says
        whose = several or crc32(prompt.encode()) % 2  # half of the items, in every round
        return reply | change if whose else reply

    endpoint(Player(players.morgana, spoil))
    made = make_questions(folder, **ASKED)
    assert spoilt
    refused = {**made.report["attempts refused"], **made.report["failed"]}
    assert any(says in reason for reason in refused), refused
    for row in made.left_out:
        assert row["stage"]
        assert row["item"].startswith(("question", "document"))
        assert "run again" in row["remedy"]


@pytest.mark.parametrize(
    ("field", "value", "error", "says"),
    [
        ("needed", {"answered": False}, ModelError, "no question of 20 is usable: its documents"),
        ("toxicity", {"toxicity": 5}, UsageError, r"none of 25 .*24 toxicity(.|\n)*loosen \[filt"),
    ],
)
def test_nothing_usable_is_an_error(folder, endpoint, field, value, error, says):
    endpoint(Player(players.morgana, lambda p, r: r | (value if field in r else {})))
    with pytest.raises(error, match=says):
        make_questions(folder, **ASKED)


def test_duplicates_and_lengths_are_left_out(endpoint, tmp_path):
    folder = players.lighthouses(tmp_path / "web")
    documents = read_jsonl(folder / "documents.jsonl")
    text = {"title": documents[0]["title"], "text": documents[0]["text"]}
    more = [{"doc_id": "again"} | text]
    more += [{"doc_id": "short", "title": "Lighthouse", "text": "Lighthouse metres."}]
    more += [{"doc_id": "long", "title": "Lighthouse", "text": "lighthouse metres " * 1001}]
    players.written(folder, [*documents, *more])
    server = endpoint(Player(players.morgana))
    config = changed(tmp_path, ("per_subtopic = 25", "per_subtopic = 40"))
    told = make_questions(folder, **ASKED, config=config).report["documents"]
    assert [told[name] for name in ("duplicate", "too short", "too long")] == [1, 1, 1]
    prompts = [json.loads(body)["messages"][0]["content"] for body in server.bodies]
    rated = [prompt for prompt in prompts if prompt.startswith("Rate")]
    assert len(rated) == told["found by topic"] - 3, "their rating would have been paid for nothing"


def test_documents_need_no_titles(endpoint, tmp_path):
    texts = [row["text"] for row in read_jsonl(players.lighthouses(tmp_path) / "documents.jsonl")]
    rows = [{"doc_id": f"x{n}", "text": text} for n, text in enumerate(texts)]
    folder = players.written(tmp_path / "untitled", rows)
    assert estimate(folder, **ASKED)[0] == "30 documents, 20 questions; requests:"
    endpoint(Player(players.morgana))
    assert len(make_questions(folder, **ASKED).rows) == 20


# Categories


def test_a_draw_keeps_probabilities_and_exclusions():
    from scipy.stats import chisquare

    config = load_config()
    drawn = [config.draw(Stream(1, "draw", i)) for i in range(6000)]
    for name, choices in config.categorizations.items():
        counts = Counter(d[name] for d in drawn)
        observed = [counts[c.name] for c in choices]
        assert chisquare(observed, [6000 * c.probability for c in choices]).pvalue > 1e-3, name
    for rule, _ in config.impossible:
        assert not any(all(d[name] in labels for name, labels in rule.items()) for d in drawn)


def test_shares_of_the_default_add_up():
    config = load_config()
    assert set(map(len, config.categorizations.values())) == {7, 3, 2, 4}
    for choices in config.categorizations.values():
        assert math.fsum(c.probability for c in choices) == pytest.approx(1, abs=1e-9)
    two = sum(c.probability for c in config.categorizations["Answer Type"] if c.documents == 2)
    assert two == pytest.approx(137 / 895, abs=1e-3)  # Table 3


def changed(tmp_path, *pairs):
    text = DEFAULT.read_text("utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    path = tmp_path / "config.toml"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("factoid = { probability = 0.270", "factoid = { probability = 0.300", "add up to 1.03"),
        ("factoid = { probability = 0.270", "factoid = { probability = 1.270",
         r"categorization.1.categories.factoid.probability: should be less .* 1; found 1.27"),
        ("factoid = { probability = 0.270", "factoid = { probability = true", "valid number; found True"),
        ("factoid = { probability", "factoid = { probabilty", "factoid.probability: Field required"),
        ('name = "Politeness"', 'name = "Premise"', "'Premise' is there twice"),
        ('"Politeness" = ["polite"]', '"Politeness" = ["polit"]', "no category 'polit'"),
        ('"Politeness" = ["polite"]', '"Courtesy" = ["polite"]', "no categorization 'Courtesy'"),
        ('"Politeness" = ["polite"]', "", "impossible.1: should name categories of two"),
        ('reason = "courtesies are not keywords"', "", "impossible.1: .* and a reason"),
        ("toxicity = { at_most = 2 }", "toxity = { at_most = 2 }", "filters.toxity.* should be 'factuality'"),
        ("toxicity = { at_most = 2 }", "toxicity = { at_most = 9 }", "at_most: should be less .* 5; found 9"),
        ("min_words = 40", "min_words = 0", "sampling.min_words: should be greater .* found 0"),
        ("min_words = 40", "mim_words = 40", "sampling.mim_words: Unexpected keyword"),
        ("documents = 2", "documents = 3", "factoid|comparison.documents: should be 1 or 2; found 3"),
        ("factoid = { probability = 0.270", "factoid = { probability = nan", "factoid.probability"),
        ("factoid = { probability", 'factoid = { name = "x", probability', "factoid.name: Unexpected"),
        ("factoid = {", "factoid = [], riddle = {", "not TOML"),
        ("# Edit", "categorization = 3\n#", "not TOML"),
        ("[sampling]", "[sampling", "not TOML"),
    ],
)  # fmt: skip
def test_bad_configurations_are_named(tmp_path, old, new, says):
    path = changed(tmp_path, (old, new))
    with pytest.raises(DataError, match=says) as caught:
        load_config(path)
    assert str(path) in caught.value.message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "categorization: Field required; found {}"),
        ("categorization = 3", "categorization: should be a valid array; found 3"),
        ("[categorization]\nname = 'x'", "categorization: should be a valid array"),
        ("categorization = ['x']", "categorization.1: should be an object; found 'x'"),
        ("[[categorization]]\nname = 'x'\ncategories = [1]", "categories: should be .* object"),
        ("[[categorization]]\nname = 'x'\n[categorization.categories]", "at least 1 item"),
        ("[[categorization]]\nname = 'x'\ncategories.a = 1979-05-27", "categories.a: should be an"),
    ],
)
def test_a_file_of_another_kind_is_named(tmp_path, text, says):
    (tmp_path / "config.toml").write_text(text, "utf-8")
    with pytest.raises(DataError, match=f"config.toml: .*{says}"):
        load_config(tmp_path / "config.toml")


def test_impossible_shares_are_named(tmp_path):
    pairs = [("polite = { probability = 0.25", "polite = { probability = 0.75")]
    pairs += [("neutral = { probability = 0.75", "neutral = { probability = 0.25")]
    # Only 60 % of the questions are natural, and 75 % are to be polite.
    with pytest.raises(DataError, match="cannot hold together"):
        load_config(changed(tmp_path, *pairs))


def test_categories_of_a_user_are_drawn_and_told_to_the_model(folder, endpoint, tmp_path):
    config = tmp_path / "mine.toml"
    config.write_text(
        '[[categorization]]\nname = "Mood"\n[categorization.categories]\n'
        'cheerful = { probability = 0.5, description = "sings" }\n'
        'grim = { probability = 0.5, description = "mutters", documents = 2 }\n',
        "utf-8",
    )
    server = endpoint(Player(players.morgana))
    made = make_questions(folder, **ASKED, config=config)
    for row in made.rows:
        assert len(row["Supporting_Documents"]) == 1 + (row["DataMorgana_Config"]["Mood"] == "grim")
    prompts = [json.loads(body)["messages"][-1]["content"] for body in server.bodies]
    assert any("- Mood: cheerful (sings)" in text for text in prompts)
    assert any("of this kind: mutters" in text for text in prompts)


# Folders and files


def test_folders_without_documents(tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        make_questions(tmp_path / "none", **ASKED)
    with pytest.raises(DataError, match="no documents"):
        make_questions(tmp_path, **ASKED)


@pytest.mark.parametrize(("name", "value"), [("questions", 0), ("seed", -1)])
def test_arguments_out_of_range(folder, name, value):
    with pytest.raises(UsageError, match=f"{name} should be a whole number"):
        make_questions(folder, **ASKED | {name: value})


def test_a_finished_file_is_complete_only_with_the_same_settings(folder, endpoint, tmp_path):
    endpoint(Player(players.morgana))
    config, out = changed(tmp_path), tmp_path / "q.jsonl"

    def run(questions=5):
        words = ("--documents", folder, "--questions", questions, "--config", config, "--out", out)
        more = ("--author", "openai:toy", "--yes")
        return CliRunner().invoke(root, ["generate", "datamorgana", *map(str, (*words, *more))])

    done = run()
    assert "5 questions in" in done.output, (done.output, done.exception)
    before = out.read_bytes()
    assert "is complete" in run().output
    assert "was made with questions 5, not 6" in str(run(6).exception)
    text = config.read_text("utf-8")
    config.write_text(text.replace("probability = 0.30", "probability = 0.300", 1), "utf-8")
    assert "is complete" in run().output
    config.write_text(text.replace("per_subtopic = 25", "per_subtopic = 24"), "utf-8")
    assert "sha256 of the config" in str(run().exception)
    config.write_text(text, "utf-8")
    with Path(folder / "documents.jsonl").open("a", encoding="utf-8") as stream:
        stream.write("\n")
    assert "sha256 of the documents" in str(run().exception)
    assert out.read_bytes() == before
