"""The help centre: what its articles, questions and answers promise, checked from the outside."""

import hashlib
import re
import statistics
from collections import Counter

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit import datasets
from ragkit.cli.generate import command
from ragkit.datasets import base, registry, reported
from ragkit.errors import UsageError
from ragkit.synth.helpcentre import HelpCentre, generate_helpcentre
from ragkit.synth.helpcentre.product import an, plural
from ragkit.synth.helpcentre.questions import misspell
from ragkit.synth.streams import Stream
from ragkit.systems.retrieval.bm25 import BM25
from ragkit.text import lengths


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("help") / "centre"
    centre = HelpCentre(articles=300, seed=7)
    return out, generate_helpcentre(out, articles=300, seed=7), centre


@pytest.fixture(scope="module")
def centre(made):
    return made[2]


def tree(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# Articles


@given(st.integers(10, 6700))
@settings(max_examples=30, deadline=None)
def test_types_and_multi_article_shares_are_the_printed_ones_within_rounding(n):
    centre = HelpCentre(articles=n, seed=1)
    assert sum(centre.types.values()) == n
    for name, share in {"article": 66, "feature_request": 32, "known_issue": 1}.items():
        assert abs(centre.types[name] - n * share / 99) < 1
    for name, share in {"expertwritten": 0.27, "simulated": 0.14, "synthetic": 0}.items():
        assert abs(centre.multi[name] - centre.sets[name] * share) < 1


def test_ids_urls_and_titles_are_different_and_articles_begin_with_their_title(centre):
    rows = [article.row() for article in centre.articles]
    for row in rows:
        assert row["id"] == hashlib.sha256(row["url"].encode()).hexdigest()
        assert row["contents"].startswith(row["title"] + "\n")
        assert not re.search(
            r"[{}<\[\]]|\w\|\w", re.sub(r"\[[^]]+\]\(https[^)]+\)", "", row["contents"])
        )
    for key in ("id", "url", "title", "contents"):
        assert len({row[key] for row in rows}) == 300
    assert Counter(row["article_type"] for row in rows) == centre.types


def test_links_lead_to_other_articles_under_their_title(centre):
    titles = {article.url: article.title for article in centre.articles}
    links = 0
    for article in centre.articles:
        for title, url in re.findall(r"\[([^\]]+)\]\((https[^)]+)\)", article.contents):
            assert titles[url] == title
            assert url != article.url
            links += 1
    assert links > 300


def test_every_fact_is_stated_in_its_article_with_its_values(centre):
    ids = set()
    for article in centre.articles:
        for fact in (*article.steps, *article.facts):
            assert fact.statement in article.contents
            assert fact.fact_id not in ids
            ids.add(fact.fact_id)
            assert all(value.lower() in fact.statement.lower() for value in fact.values)


def test_a_value_does_not_depend_on_how_many_articles_there_are(centre):
    values = {}
    for other in (HelpCentre(articles=120, seed=7), centre):
        for article in other.articles:
            for fact in article.facts:
                values.setdefault(fact.fact_id, set()).add(fact.values)
    shared = [v for v in values.values() if len(v) > 1]
    assert shared == []


def shingles(text):
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[i : i + 5]) for i in range(len(words) - 4)}


def test_fewer_than_a_twentieth_of_the_articles_have_a_close_sibling(centre):
    sets = [shingles(article.contents) for article in centre.articles]
    close = [
        any(len(a & b) / len(a | b) > 0.5 for j, b in enumerate(sets) if i != j)
        for i, a in enumerate(sets)
    ]
    assert sum(close) / len(close) < 0.05


# Questions


def test_answers_are_made_of_what_the_gold_articles_state(centre):
    for rows in centre.questions.values():
        for question in rows:
            stated = "\n".join(article.contents for article in question.articles)
            assert question.facts
            for fact in question.facts:
                assert fact.statement in question.answer
                assert fact.statement in stated


def test_questions_about_two_articles_need_both(centre):
    for name, rows in centre.questions.items():
        several = [question for question in rows if len(question.articles) > 1]
        assert len(several) == centre.multi[name]
        for question in several:
            for article in question.articles:
                others = [a.contents for a in question.articles if a is not article]
                own = [f for f in question.facts if f.statement in article.contents]
                assert any(all(f.statement not in text for text in others) for f in own)


def test_questions_are_different_and_leave_nothing_open(centre):
    for rows in centre.questions.values():
        texts = [question.text for question in rows]
        assert len(texts) == len({text.lower() for text in texts})
        for question in rows:
            for text in (question.text, question.answer):
                assert not re.search(r"[{}<\[\]|]", text), text
                assert text == text.strip()


def test_medians_are_near_the_printed_ones(centre):
    table = reported.load("wixqa", "2").set_index(["row", "metric"])["value"]
    for name, rows in centre.questions.items():
        for metric, texts in {
            "median_question_tokens": [question.text for question in rows],
            "median_answer_tokens": [question.answer for question in rows],
        }.items():
            found = statistics.median(lengths(texts, "cl100k_base"))
            assert found == pytest.approx(table[name, metric], rel=0.15), (name, metric)


@pytest.mark.parametrize("seed", [7, 11])
def test_a_word_search_finds_them_in_the_order_of_the_paper(seed):
    centre = HelpCentre(articles=300, seed=seed)
    search = BM25().fit(
        {"doc_id": a.id, "title": a.title, "text": a.contents} for a in centre.articles
    )
    recall = {}
    for name, rows in centre.questions.items():
        found = search.search([question.text for question in rows], k=5)
        top = found.groupby("question_id", sort=False)["doc_id"].agg(set)
        gold = [{article.id for article in question.articles} for question in rows]
        ids = sorted(top.index, key=int)
        assert len(ids) == len(gold)
        recall[name] = statistics.mean(
            len(top[i] & ids_) / len(ids_) for i, ids_ in zip(ids, gold, strict=True)
        )
    assert 0.5 < recall["simulated"] < recall["expertwritten"] < 0.9
    assert recall["synthetic"] > 0.95


@pytest.mark.slow
def test_the_size_of_the_paper():
    centre = HelpCentre(articles=6221, seed=7)
    assert len({article.id for article in centre.articles}) == 6221
    assert Counter(article.topic.type for article in centre.articles) == centre.types
    assert {name: len(rows) for name, rows in centre.questions.items()} == centre.sets
    assert centre.sets == {"expertwritten": 200, "simulated": 200, "synthetic": 6221}


# Files


def test_the_same_arguments_give_the_same_bytes(made, tmp_path):
    out, found, _ = made
    assert generate_helpcentre(tmp_path / "again", articles=300, seed=7) == found
    assert tree(out) == tree(tmp_path / "again")
    generate_helpcentre(tmp_path / "other", articles=300, seed=8)
    other = tree(tmp_path / "other")
    assert all(other[name] != content for name, content in tree(out).items())


def test_the_loaders_read_it(made):
    out, found, centre = made
    own = datasets.load(str(out))
    official = base.registered(registry.declared()["wixqa"], "sample", out)
    for loaded in (own, official):
        assert list(loaded.documents["doc_id"]) == [article.id for article in centre.articles]
        assert Counter(loaded.questions["type"]) == centre.sets
        gold = loaded.questions.groupby("type")["gold_doc_ids"].agg(
            lambda ids: sum(len(i) > 1 for i in ids)
        )
        assert gold.to_dict() == centre.multi
    assert found["articles"] == centre.types


# Bad input


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"articles": 0}, "at least 1"),
        ({"seed": -1}, "seed"),
        ({"articles": 50, "expertwritten": 51}, "from 0 to the 50"),
        ({"simulated": -1}, "simulated must be"),
        ({"articles": 10**6}, "the banks hold"),
    ],
)
def test_impossible_counts_are_refused(wrong, message):
    with pytest.raises(UsageError, match=message):
        HelpCentre(**{"articles": 60, "seed": 1, **wrong})


def test_too_few_articles_for_questions_about_two(tmp_path):
    with pytest.raises(UsageError, match="cannot carry"):
        generate_helpcentre(tmp_path / "few", articles=2, seed=1, expertwritten=2)
    assert not (tmp_path / "few").exists()


def test_a_folder_with_something_else_in_it_is_refused(tmp_path):
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        generate_helpcentre(tmp_path, articles=30, seed=1)
    with pytest.raises(UsageError, match="is a file"):
        generate_helpcentre(tmp_path / "note.txt", articles=30, seed=1)
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]
    generate_helpcentre(tmp_path / "a", articles=30, seed=3)
    with pytest.raises(UsageError, match="was begun with seed 3, not 4"):
        generate_helpcentre(tmp_path / "a", articles=30, seed=4)


# Words


@pytest.mark.parametrize(
    ("article", "noun", "many"),
    [
        ("a", "gift card", "gift cards"),
        ("an", "agenda", "agendas"),
        ("a", "URL", "URLs"),
        ("a", "supply", "supplies"),
        ("a", "holiday", "holidays"),
        ("a", "tax", "taxes"),
        ("a", "proof of attendance", "proofs of attendance"),
    ],
)
def test_nouns(article, noun, many):
    assert (an(noun), plural(noun)) == (f"{article} {noun}", many)


def test_slips_change_as_many_words_as_asked_and_keep_the_rest():
    text = "where can i change the separate calendar"
    for seed in range(40):
        words = misspell(text, Stream(seed), 2).split(" ")
        changed = [new for old, new in zip(text.split(" "), words, strict=True) if old != new]
        assert 1 <= len(changed) <= 2
    assert misspell("a b", Stream(1), 2) == "a b"


# The command line


def ragkit(*words):
    return CliRunner().invoke(command, ["helpcentre", *map(str, words)])


def test_the_command_writes_what_the_function_writes(made, tmp_path):
    done = ragkit("--out", tmp_path / "cli", "--articles", 300, "--seed", 7)
    assert done.exit_code == 0, done.output
    assert "300 articles and 700 questions" in done.output
    assert tree(tmp_path / "cli") == tree(made[0])


def test_a_dry_run_prints_counts_and_writes_nothing(tmp_path):
    done = ragkit("--out", tmp_path / "dry", "--articles", 300, "--seed", 7, "--dry-run")
    assert done.exit_code == 0, done.output
    assert re.search(r"feature_request +97\b", done.output)
    assert re.search(r"expertwritten +54\b", done.output)
    assert not (tmp_path / "dry").exists()


def test_a_killed_run_continues_to_the_same_bytes(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    settings = {"articles": 30, "seed": 3}
    generate_helpcentre(whole, **settings)
    generate_helpcentre(killed, **settings)
    for name in ("questions.jsonl", "statistics.json"):
        (killed / name).unlink()
    (killed / "facts.jsonl").write_text("half a li", "utf-8")
    generate_helpcentre(killed, **settings)
    files = [path.relative_to(whole) for path in whole.rglob("*") if path.is_file()]
    assert all((killed / path).read_bytes() == (whole / path).read_bytes() for path in files)
