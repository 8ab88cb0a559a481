"""DataMorgana from facts: what every question of a made set must be."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from pathlib import Path
from statistics import fmean

import pytest
from click.testing import CliRunner

from ragkit.cli.generate import command
from ragkit.errors import DataError, UsageError
from ragkit.synth.author import AuthorOptions
from ragkit.synth.datamorgana import load_config, make_questions, words
from ragkit.synth.datamorgana.collection import load
from ragkit.synth.datamorgana.config import DEFAULT
from ragkit.synth.datamorgana.make import _redrawn
from ragkit.synth.datamorgana.mistakes import error_rate
from ragkit.synth.datamorgana.offline import POLITE
from ragkit.synth.datamorgana.words import phrases
from ragkit.synth.streams import Stream

COUNT = 120


@pytest.fixture(scope="module")
def benchmark(made):
    return make_questions(made.out, questions=COUNT, seed=3)


@pytest.fixture(scope="module")
def known(made):
    return load(made.out).by_id


def chosen(benchmark, name, category):
    rows = zip(benchmark.rows, benchmark.notes, strict=True)
    return [(r, n) for r, n in rows if r["DataMorgana_Config"][name] == category]


def test_gold_documents_state_what_was_recorded_of_them(benchmark, known):
    for row, note in zip(benchmark.rows, benchmark.notes, strict=True):
        texts = [d["content"].lower() for d in row["Supporting_Documents"]]
        values = [known[fact].value.lower() for fact in note["facts"]]
        assert all(any(value in text for text in texts) for value in values)
        if len(texts) == 2:  # neither document answers it alone
            told = [[value in text for value in values] for text in texts]
            assert sorted(told) == [[False, True], [True, False]], row["Question"]
        ids = {d["doc_id"] for d in row["Supporting_Documents"]}
        assert all(ids & set(known[fact].documents) for fact in note["facts"])


def test_yes_means_that_the_stated_value_agrees(benchmark, known):
    rows = chosen(benchmark, "Answer Type", "yes/no")
    assert len(rows) >= 3
    for row, note in rows:
        value = known[note["facts"][0]].value.lower()
        said = words.keywords(value) in words.keywords(note["correct"])
        assert row["Answer"].startswith("Yes") == said, (row["Question"], row["Answer"])


def test_two_documents_are_about_one_attribute_or_one_place(benchmark, known):
    for kind, same, other in (
        ("comparison", "key", "subject"),
        ("multi-aspect", "subject", "key"),
    ):
        for _, note in chosen(benchmark, "Answer Type", kind):
            a, b = (known[fact] for fact in note["facts"])
            assert getattr(a, same) == getattr(b, same)
            assert getattr(a, other) != getattr(b, other)


def test_claims_make_up_the_answer(benchmark):
    for row in benchmark.rows:
        claims = row["Answer_Claims"]
        assert list(claims) == ["direct", "useful", "useless"]
        assert claims["direct"]
        assert row["Answer"] == " ".join(c for kind in claims.values() for c in kind)
        if row["DataMorgana_Config"]["Answer Style"] == "concise-answer":
            assert not claims["useful"]
            assert not claims["useless"]
    assert any(r["Answer_Claims"]["useful"] for r in benchmark.rows)
    assert any(r["Answer_Claims"]["useless"] for r in benchmark.rows)


def test_polite_iff_asked(benchmark):
    for row, note in zip(benchmark.rows, benchmark.notes, strict=True):
        polite = row["DataMorgana_Config"]["Politeness"] == "polite"
        assert bool(POLITE.search(note["correct"])) == polite, note["correct"]


def test_search_queries_are_keywords_of_their_length(benchmark):
    for kind, fits in (("short", lambda n: n <= 6), ("long", lambda n: n >= 7)):
        rows = chosen(benchmark, "Phrasing", f"{kind}-search-query")
        assert len(rows) > 5
        for row, note in rows:
            assert fits(len(note["correct"].split())), row["Question"]
            assert note["correct"] == note["correct"].lower()
            assert not set('?!;"') & set(note["correct"])


def test_an_answer_style_is_asked_for_iff_wanted(benchmark):
    """Concise and detailed questions say so, in words that no other question has."""
    for row, note in zip(benchmark.rows, benchmark.notes, strict=True):
        config = row["DataMorgana_Config"]
        if not config["Phrasing"].endswith("query"):
            continue
        for style, bank in phrases()["style"].items():
            said = any(note["correct"].endswith(" " + words) for words in bank["keywords"])
            if config["Answer Style"] == style:
                assert said, note["correct"]
            elif config["Answer Style"] == "unspecified":
                assert not said, note["correct"]


def test_mistakes_grow_with_severity(benchmark):
    rates = {}
    for kind in ("correct", "mild-mistakes", "severe-mistakes"):
        rows = chosen(benchmark, "Linguistic Correctness", kind)
        for row, note in rows:
            assert note["error_rate"] == pytest.approx(
                error_rate(note["correct"], row["Question"]), abs=1e-4
            )
            assert (row["Question"] == note["correct"]) == (kind == "correct")
        rates[kind] = sum(n["error_rate"] for _, n in rows) / len(rows)
    assert rates["correct"] == 0
    assert 0 < 2 * rates["mild-mistakes"] < rates["severe-mistakes"]


def test_words_in_common_follow_the_variation(benchmark):
    near, far = (
        fmean(n["overlap"] for _, n in chosen(benchmark, "Linguistic Variation", category))
        for category in ("similar-to-document", "distant-from-document")
    )
    assert near > 2 * far


def test_no_question_twice_and_no_fact_asked_twice(benchmark):
    assert len({r["Question"].lower() for r in benchmark.rows}) == COUNT
    asked = [
        (r["DataMorgana_Config"]["Answer Type"], *sorted(n["facts"]))
        for r, n in zip(benchmark.rows, benchmark.notes, strict=True)
    ]
    assert len(set(asked)) == COUNT


def test_sessions_overlap_as_in_the_challenge(benchmark):
    counts = Counter(r["Session"] for r in benchmark.rows)
    assert counts == {"First": 53, "Second": 53, "Both": 14}  # 395 : 395 : 105 of 120


def test_same_seed_same_bytes_and_read_back(made, benchmark, tmp_path):
    again = make_questions(made.out, questions=COUNT, seed=3)
    assert again == benchmark
    other = make_questions(made.out, questions=20, seed=4)
    assert other.rows != benchmark.rows[:20]
    out = tmp_path / "questions.jsonl"
    benchmark.write(out)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "questions.jsonl",
        "questions.notes.jsonl",
        "questions.report.json",
    ]
    from ragkit.datasets import liverag
    from ragkit.files import read_jsonl

    frames = liverag.frames(read_jsonl(out, liverag.COLUMNS), str(out))
    questions = frames["questions"]
    assert len(questions) == COUNT
    for name in liverag.CATEGORIZATIONS:
        assert not (questions[name] == "unknown").any()
    assert set(questions["session"]) == {"First", "Second", "Both"}
    assert set(questions.explode("gold_doc_ids")["gold_doc_ids"]) == set(
        frames["documents"]["doc_id"]
    )


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


def changed(tmp_path, old, new):
    text = DEFAULT.read_text("utf-8")
    assert old in text
    path = tmp_path / "config.toml"
    path.write_text(text.replace(old, new, 1), "utf-8")
    return path


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("factoid = { probability = 0.270", "factoid = { probability = 0.300", "add up to 1.03"),
        ("factoid = { probability = 0.270", "factoid = { probability = 1.270", "from 0 to 1"),
        ('"Politeness" = ["polite"]', '"Politeness" = ["polit"]', "no category 'polit'"),
        ('"Politeness" = ["polite"]', '"Courtesy" = ["polite"]', "no categorization 'Courtesy'"),
        ('reason = "courtesies are not keywords"', "", "no reason"),
        ("toxicity = { at_most = 2 }", "toxity = { at_most = 2 }", "no criterion 'toxity'"),
        ("toxicity = { at_most = 2 }", "toxicity = { at_most = 9 }", "from 1 to 5"),
        ("min_words = 40", "min_words = 0", "above 0"),
        ("documents = 2", "documents = 3", "1 or 2"),
        ("[sampling]", "[sampling", "not TOML"),
    ],
)
def test_bad_configurations_are_named(tmp_path, old, new, says):
    with pytest.raises(DataError, match=says):
        load_config(changed(tmp_path, old, new))


def test_impossible_shares_are_named(tmp_path):
    path = changed(tmp_path, "polite = { probability = 0.25", "polite = { probability = 0.75")
    text = path.read_text("utf-8").replace(
        "neutral = { probability = 0.75", "neutral = { probability = 0.25"
    )
    path.write_text(text, "utf-8")
    # Only 60 % of the questions are natural, and 75 % are to be polite.
    with pytest.raises(DataError, match="cannot hold together"):
        load_config(path)


def test_an_unknown_category_is_refused_by_the_offline_author(made, tmp_path):
    path = changed(tmp_path, "factoid = {", "riddle = {")
    with pytest.raises(DataError, match="knows no category 'riddle'"):
        make_questions(made.out, questions=5, seed=1, config=path)


# Folders


def test_folders_without_documents_or_facts(tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        make_questions(tmp_path / "none", questions=5, seed=1)
    with pytest.raises(DataError, match="no documents"):
        make_questions(tmp_path, questions=5, seed=1)
    (tmp_path / "documents.jsonl").write_text('{"doc_id": "a", "title": "b", "text": "c"}\n')
    with pytest.raises(DataError, match="no facts") as caught:
        make_questions(tmp_path, questions=5, seed=1)
    assert "openai:MODEL" in caught.value.hint


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"questions": 0}, "whole number"),
        ({"seed": -1}, "whole number"),
        ({"questions": 50_000}, "do not carry the questions"),
        ({"author_options": AuthorOptions(budget=3.0)}, "takes no options"),
    ],
)
def test_arguments_out_of_range(made, wrong, message):
    with pytest.raises(UsageError, match=message):
        make_questions(made.out, **{"questions": 5, "seed": 1, **wrong})


# Command line


def run(*arguments):
    return CliRunner().invoke(command, ["datamorgana", *map(str, arguments)])


def test_command_writes_and_refuses_to_overwrite(made, tmp_path):
    out = tmp_path / "q.jsonl"
    options = ("--documents", made.out, "--questions", 15, "--seed", 2, "--out", out)
    done = run(*options)
    assert done.exit_code == 0, done.output
    assert "15 questions" in done.output
    assert len(out.read_text("utf-8").splitlines()) == 15
    before = out.read_bytes()
    assert "is complete" in run(*options).output
    other = run("--documents", made.out, "--questions", 16, *options[4:])
    assert "was made with questions asked for 15, not 16" in str(other.exception)
    assert out.read_bytes() == before


def test_a_finished_file_of_other_documents_or_categories_is_not_complete(made, tmp_path):
    folder, config = tmp_path / "company", tmp_path / "mine.toml"
    folder.mkdir()
    for name in ("documents.jsonl", "facts.jsonl", "cases.jsonl"):
        shutil.copy(made.out / name, folder)
    shutil.copy(DEFAULT, config)
    options = ("--questions", 15, "--out", tmp_path / "q.jsonl", "--config", config)
    assert run("--documents", folder, *options).exit_code == 0
    moved = ("--documents", made.out, *options[:4])
    assert "is complete" in run(*moved).output  # the same bytes elsewhere are the same
    text = config.read_text("utf-8")
    config.write_text(text.replace("probability = 0.30", "probability = 0.300", 1), "utf-8")
    assert "is complete" in run("--documents", folder, *options).output
    config.write_text(text.replace("per_subtopic = 25", "per_subtopic = 24"), "utf-8")
    assert config.read_text("utf-8") != text
    other = run("--documents", folder, *options)
    assert "sha256 of the config" in str(other.exception)
    with open(folder / "documents.jsonl", "a", encoding="utf-8") as stream:
        stream.write("\n")
    other = run("--documents", folder, *options[:4])
    assert "sha256 of documents.jsonl" in str(other.exception)


def test_the_command_needs_documents_and_a_number_only(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("--documents", made.out, "--questions", 5)
    assert done.exit_code == 0, done.output
    assert len(Path("datamorgana.jsonl").read_text("utf-8").splitlines()) == 5


def test_dry_run_writes_nothing(made, tmp_path):
    out = tmp_path / "q.jsonl"
    done = run("--documents", made.out, "--questions", 200, "--seed", 2, "--out", out, "--dry-run")
    assert done.exit_code == 0, done.output
    assert "factoid" in done.output
    assert not list(tmp_path.iterdir())


def test_report_counts(benchmark):
    report = benchmark.report
    assert report["questions"] == COUNT
    for choices in report["categories"].values():
        assert sum(c["drawn"] for c in choices.values()) == COUNT
    kept, left = report["documents"]["kept"], report["documents"]["left out"]
    assert kept + sum(left.values()) == report["documents"]["found by topic"]
    json.dumps(report)


# What a question and its answer have to do with one another


def test_the_place_of_a_fact_is_named(benchmark, known):
    for row, note in zip(benchmark.rows, benchmark.notes, strict=True):
        if row["DataMorgana_Config"]["Answer Type"] != "list":
            asked = set(words.words(note["correct"]))
            for fact in note["facts"]:
                assert set(words.content(known[fact].subject)) <= asked, note


def test_useful_claims_are_about_the_same_place(benchmark, known):
    claims = {fact.claim: fact.subject for fact in known.values()}
    seen = 0
    for row, note in zip(benchmark.rows, benchmark.notes, strict=True):
        own = {known[fact].subject for fact in note["facts"]}
        for claim in row["Answer_Claims"]["useful"]:
            assert claims.get(claim) in {*own, None}
            seen += claim in claims
    assert seen


def test_nothing_else_near_answers_a_question(made, benchmark, known):
    collection = load(made.out)
    runs = collection.search([n["correct"] for n in benchmark.notes], 5)
    for run, row, note in zip(runs, benchmark.rows, benchmark.notes, strict=True):
        gold = {d["doc_id"] for d in row["Supporting_Documents"]}
        for fact in note["facts"]:
            assert not (set(run) - gold) & set(known[fact].documents)


def test_categories_that_no_document_carries_are_drawn_anew():
    config = load_config(None)
    given = config.draw(Stream(0, "categories", 1))
    found = [_redrawn(config, 0, 1, given, again) for again in (1, 2)]
    assert {one["Answer Type"] for one in found} == {given["Answer Type"]}
    assert given not in found
    assert found[0] != found[1]
