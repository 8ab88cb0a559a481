"""The offline author: what it writes is what it recorded, and its labels hold by construction."""

from __future__ import annotations

import errno
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit import datasets, files
from ragkit.errors import DataError, RagkitError, UsageError
from ragkit.synth import Settings, generate, noise
from ragkit.synth.layout import SOURCES, TYPES, printed, shares, slug
from ragkit.synth.offline import generate as writing
from ragkit.synth.offline import grammar, packs
from ragkit.synth.offline.plan import REFUSED, Plan
from ragkit.synth.offline.questions import SEMANTIC_OVERLAP, overlap
from ragkit.synth.offline.world import LAST_DAY, World
from ragkit.synth.streams import Stream
from ragkit.systems.retrieval import BM25
from tests.conftest import bytes_of
from tests.synth.conftest import SIZE

SMALL = {"documents": 400, "seed": 3, "questions": 20}
SPEECH = re.compile(r"^([A-Z]\w+ [A-Z]\w+): (.*)$", re.M)


def visible(document: dict) -> str:
    return f"{document['title']}\n\n{document['content']}"


def sentences(document: dict):
    """Yield the sentences of a document; a speaker's name and the mark of a list item go before."""
    for line in document["content"].splitlines():
        line = re.sub(r"^(> ?|- |\d+\. |\*\*[^*]+\*\*:? )+", "", line)
        line = SPEECH.sub(r"\2", line)
        yield from re.split(r"(?<=[.?!])\s+", line)


def masked(sentence: str) -> str:
    """Return a sentence with its numbers, and its words with a capital inside, masked."""
    sentence = re.sub(r"\d[\d.,:–]*", "0", sentence)
    return re.sub(r"(?<=\s)[A-Z][\w'’]*(?: [A-Z][\w'’]*)*", "N", sentence)


# Streams and shares


def test_the_same_name_gives_the_same_draws_and_another_gives_others():
    first = [Stream(3, "a", i).draw() for i in range(50)]
    assert first == [Stream(3, "a", i).draw() for i in range(50)]
    assert len(set(first)) == 50
    assert first != [Stream(4, "a", i).draw() for i in range(50)]


@given(st.integers(0, 5000), st.lists(st.floats(0.01, 100), min_size=1, max_size=20))
def test_shares_add_up_and_are_off_by_less_than_one(total, weights):
    parts = shares(total, dict(enumerate(weights)))
    assert sum(parts.values()) == total
    for part, weight in zip(parts.values(), weights, strict=True):
        assert abs(part - total * weight / sum(weights)) < 1


@given(st.text())
def test_a_slug_is_fit_for_a_path(text):
    assert set(slug(text)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


# Packs and grammar


def test_choices_are_multiplied_out_and_slots_filled():
    assert grammar.wordings("[a|b] c[|d]") == ("a c", "a cd", "b c", "b cd")
    pen = grammar.Pen(Stream(1), {"thing": "the lid"})
    assert pen.fill("{Thing} of {thing}") == "The lid of the lid"
    with pytest.raises(DataError, match="unknown slot"):
        pen.fill("{nothing}")
    with pytest.raises(DataError, match="600 are the most"):
        grammar.wordings("[a|b|c|d|e|f|g|h|i|j]" * 3)


@pytest.mark.parametrize("topic", packs.topics().values(), ids=lambda t: t.key)
def test_topics_are_complete(topic):
    assert len(topic.things) >= 3
    assert all(len(case) == 3 and all(case) for case in topic.cases)
    assert len(topic.attributes) == 3
    for attribute in topic.attributes:
        assert all("{v}" in phrase for phrase in attribute.say)
        assert all("{s}" in phrase and phrase[-1] in "?." for phrase in attribute.ask)
        assert all("{f}" in phrase and phrase.endswith("?") for phrase in attribute.far)


def test_values_follow_their_notation():
    world, stream = Plan(Settings(100, 1)).world, Stream(1, "values")
    for _ in range(200):
        number, unit = world.value("2.5..3.5:0.25 V", stream).split()
        assert unit == "V"
        assert float(number) in (2.5, 2.75, 3.0, 3.25, 3.5)
    assert world.value("@person", stream) in world.staff
    with pytest.raises(UsageError, match="no value beside"):
        world.value("a, b", stream, ["a", "b"])


# World and plan


@pytest.mark.parametrize("size", [500, 300_000])
def test_subjects_can_be_told_apart(size):
    subjects = Plan(Settings(size, 1)).world.subjects
    names = [subject.name for group in subjects.values() for subject in group]
    assert len(set(names)) == len(names)
    told = [subject.told for subject in subjects["customer"]]
    assert len(set(told)) == len(told)
    with pytest.raises(UsageError, match="can be told apart"):
        World(1, 100, {"customer": 10_000})


def test_words_of_descriptions_mean_one_style_segment_and_region():
    for kind in ("styles", "segments", "regions"):
        words = [word for row in packs.read("world")[kind] for word in (row["said"], *row["asked"])]
        assert len(set(words)) == len(words)


@pytest.mark.parametrize("size", [400, 20_000])
def test_every_cell_of_facts_belongs_to_one_document_that_can_be_computed(size):
    plan = Plan(Settings(size, 3))
    for topic in packs.topics().values():
        cells = [plan.cell(topic, j) for j in range(plan.totals[topic.key])]
        assert len(set(cells)) == len(cells)
        for subject, part, half in cells[:20]:
            brief = plan.brief(*plan.stating(topic, subject, part, half))
            assert brief.subject is plan.world.pool(topic)[subject]
            assert brief.part == brief.subject.parts[part]
            assert (brief.facts[0].key == topic.attributes[0].key) == (half == 0)


def test_volumes_follow_the_paper_where_the_stories_leave_room():
    plan = Plan(Settings(100_000, 1))
    total = sum(plan.counts.values())
    assert total == 100_000
    for source, documents in (("slack", 285_605), ("gmail", 121_390), ("jira", 6_120)):
        assert plan.counts[source] / total == pytest.approx(documents / 511_962, abs=0.01)
    for leaves in plan.leaves.values():
        for leaf in leaves:
            folders = Counter(leaf.place(k)[0] for k in range(leaf.count))
            assert max(folders.values()) <= 500


def test_a_source_without_room_is_refused():
    with pytest.raises(UsageError, match="are the most of a topic"):
        Plan(Settings(20_000_000, 1, questions=0))


# Documents


def test_counts_are_kept(made):
    assert len(made.documents) == SIZE["documents"] == len(made.by_id)
    weights = {k: n for k, n in printed("2", "n_questions").items() if k in TYPES}
    del weights[next(iter(REFUSED))]
    assert Counter(q["question_type"] for q in made.questions) == shares(100, weights)
    assert len(made.extra) == SIZE["questions"] // 5


def test_facts_are_said_by_the_documents_that_they_name_and_by_no_others(made):
    """Recorded when written: nothing is read back from prose."""
    changed = {row["key"] + "@" + row["subject"] for row in made.records("near_duplicates")}
    for fact in made.facts:
        for doc_id in fact["sources"]:
            text = visible(made.by_id[doc_id])
            assert fact["value"] in text
            assert fact["subject"].lower() in text.lower()
        if fact["part"]:
            assert len(fact["sources"]) == 1, fact
            near = [f for f in made.facts if f["key"] == fact["key"]]
            near = [f for f in near if f["subject"] == fact["subject"]]
            assert len(near) == 1 + (f"{fact['key']}@{fact['subject']}" in changed)


def test_nothing_is_unfilled_or_begins_small(made):
    for document in made.documents:
        assert not re.search(r"\{\w+\}|\[[^\[\]]*\|", visible(document)), document["path"]
        assert document["title"][0] == document["title"][0].upper()
        for sentence in sentences(document):
            whole = len(sentence.split()) >= 4 and sentence[-1] in ".?!"
            assert not (whole and sentence[0].islower()), (document["path"], sentence)


def test_nobody_names_themselves(made):
    for document in made.documents:
        for name, said in SPEECH.findall(document["content"]):
            words = re.findall(r"\w+", said)
            assert name.split()[0] not in words, (document["path"], name, said)


def test_no_masked_sentence_stands_in_more_than_one_document_in_a_hundred(tmp_path):
    """Sentences of four words or more, with numbers and names masked."""
    generate(tmp_path / "x", documents=3000, seed=5, questions=150)
    documents = files.read_jsonl(tmp_path / "x" / "enterpriserag_bench" / "documents.jsonl")
    counts: Counter[str] = Counter()
    for document in documents:
        own = {s for s in sentences(document) if len(s.split()) >= 4 and s[-1] in ".?!"}
        counts.update(set(map(masked, own)))
    (sentence, most), *_ = counts.most_common(1)
    assert most <= 0.01 * len(documents), (sentence, most)
    assert len(counts) > 20_000


# Noise


def test_noise_has_its_shares(made):
    moves = Counter(row["kind"] for row in made.records("moves"))
    for kind, share in noise.SHARES.items():
        assert moves[kind] / len(made.documents) == pytest.approx(share, abs=0.006)
    plan = Plan(Settings(**SIZE))
    home = {}
    for source in SOURCES:
        for at in range(plan.counts[source]):
            brief = plan.entry(source, at)
            home[plan.author.document_id(brief)] = brief.folder
    away = {i for i, d in made.by_id.items() if d["path"].rpartition("/")[0] != home[i]}
    assert away == {row["doc_id"] for row in made.records("moves")}
    assert all(d["path"].startswith(d["source_type"] + "/") for d in made.documents)


def test_near_duplicates_differ_in_the_fact_and_come_later(made):
    for pair in made.records("near_duplicates"):
        old, new = made.by_id[pair["original"]], made.by_id[pair["duplicate"]]
        assert pair["old"] in visible(old)
        assert pair["new"] in visible(new)
        assert pair["old_day"] < pair["new_day"] <= LAST_DAY.isoformat()
        assert pair["old"] != pair["new"]


# Questions


def test_gold_documents_say_the_answer(made):
    for row in made.questions:
        texts = [visible(made.by_id[doc_id]) for doc_id in row["expected_doc_ids"]]
        if row["question_type"] in ("basic", "semantic", "miscellaneous", "constrained"):
            assert row["answer_facts"][0].rpartition(": ")[2][:-1] in texts[0]
        assert bool(texts) == (row["question_type"] != "info_not_found")


def test_gold_sources_follow_the_printed_ones(made):
    for kind in ("basic", "semantic"):
        rows, weights = made.of_type(kind), printed("10", "questions_with_source", kind)
        wanted = shares(len(rows), weights)
        found = Counter(source for row in rows for source in row["source_types"])
        assert sum(abs(found[s] - wanted.get(s, 0)) for s in SOURCES) <= 4, (kind, found, wanted)


def test_a_question_on_one_fact_has_one_answer(made):
    """No other document states it, of the part or, where none is named, of any part."""
    asked = chain.from_iterable(map(made.of_type, ("basic", "semantic", "constrained")))
    for row in asked:
        subject, _, rest = row["answer_facts"][0].partition(", ")
        gold = set(row["expected_doc_ids"])
        own = [f for f in made.facts if f["subject"] == subject and gold & set(f["sources"])]
        fact = next(f for f in own if rest == f"{f['attribute']}: {f['value']}.")
        alike = [f for f in made.facts if (f["key"], f["entity"]) == (fact["key"], fact["entity"])]
        if fact["part"] in row["question"]:
            alike = [f for f in alike if f["part"] == fact["part"]]
        assert {doc_id for f in alike for doc_id in f["sources"]} == gold, row


def test_distractors_of_constrained_questions_have_other_values(made):
    for row in made.of_type("constrained"):
        distractors = made.notes[row["question_id"]]["distractor_doc_ids"]
        assert distractors
        assert len(row["answer_facts"]) >= 2
        assert not set(distractors) & set(row["expected_doc_ids"])


def test_what_is_not_found_is_stated_nowhere(made):
    for row in made.of_type("info_not_found"):
        attribute, subject = re.search(r"about the (.+?) for (.+)\.$", row["gold_answer"]).groups()
        assert [f for f in made.facts if f["subject"] == subject]
        assert not [f for f in made.facts if (f["subject"], f["attribute"]) == (subject, attribute)]


def test_completeness_needs_the_announcement_and_every_member(made):
    for row in made.of_type("completeness"):
        code = re.match(r"(Operation \w+(?: \d+)?):", row["gold_answer"])[1]
        members = [f for f in made.facts if f["attribute"] == code]
        stating = {doc_id for fact in members for doc_id in fact["sources"]}
        assert set(row["expected_doc_ids"][1:]) == stating
        assert all(f"{f['entity']} ({f['value']})" in row["gold_answer"] for f in members)
        start = re.search(r"[A-Z]\w+ 20\d\d", row["question"])[0]
        assert start in visible(made.by_id[row["expected_doc_ids"][0]])


def test_semantic_questions_share_few_words(made):
    shared = {
        kind: [
            overlap(q["question"], made.by_id[q["expected_doc_ids"][0]]) for q in made.of_type(kind)
        ]
        for kind in ("basic", "semantic")
    }
    mean = {kind: sum(values) / len(values) for kind, values in shared.items()}
    assert max(shared["semantic"]) <= SEMANTIC_OVERLAP
    assert mean["semantic"] < 0.7 * mean["basic"]


def test_bm25_finds_types_in_the_order_of_the_paper(tmp_path):
    """Table 7: basic above semantic and completeness; constrained, conflicting and intra high."""
    generate(tmp_path / "x", documents=2000, seed=7, questions=200)
    loaded = datasets.load(str(tmp_path / "x"))
    runs = BM25().fit(loaded.documents).search(loaded.questions, k=10)
    top = runs.groupby("question_id")["doc_id"].agg(set)
    rows = loaded.questions[loaded.questions["gold_doc_ids"].map(bool)]
    found = [
        len(set(row.gold_doc_ids) & top[row.question_id]) / len(row.gold_doc_ids)
        for row in rows.itertuples()
    ]
    recall = rows.assign(recall=found).groupby("type")["recall"].mean()
    assert recall["basic"] > 0.75
    assert 0.1 < recall["semantic"] < recall["basic"] - 0.2
    assert 0.1 < recall["completeness"] < recall["basic"] - 0.2
    assert recall[["constrained", "conflicting_info", "intra_document_reasoning"]].min() > 0.75


def test_metadata_answers_are_in_the_metadata_alone(made):
    for row in made.extra:
        document = made.by_id[row["expected_doc_ids"][0]]
        value = row["gold_answer"].removeprefix("It is ").removesuffix(".")
        assert value in {str(v) for k, v in document.items() if k != "content"}
        assert value not in visible(document)


def test_types_that_facts_cannot_hold_are_refused():
    with pytest.raises(UsageError, match="no questions of type 'high_level'.*whole") as caught:
        Settings(400, 1, types=("basic", "high_level"))
    assert "ragkit generate company" in caught.value.hint
    with pytest.raises(UsageError, match="no question type 'basik'"):
        Settings(400, 1, types=("basik",))
    both = Plan(Settings(400, 1, 30, types=("basic", "semantic"))).questions
    assert both.keys() == {"basic", "semantic"}
    assert Plan(Settings(400, 1, 30, types=("basic", "basic"))).questions == {"basic": 30}


# Files


def test_slices_and_frames_can_be_loaded(made):
    rows = {}
    for path in sorted((made.out / "enterpriserag_bench").glob("*_slice_*.zip")):
        rows |= {row["doc_id"]: row for _, row in files.read_archive(path)}
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                assert info.date_time == (1980, 1, 1, 0, 0, 0)
                assert info.compress_type == zipfile.ZIP_STORED
    assert {i: row["text"] for i, row in rows.items()} == {
        i: document["content"] for i, document in made.by_id.items()
    }
    loaded = datasets.load(str(made.out))
    assert len(loaded.documents) == len(rows)
    assert list(loaded.questions["text"]) == [q["question"] for q in made.questions]


def test_same_settings_same_bytes_whatever_the_jobs(tmp_path):
    for name, jobs in (("one", 1), ("two", 2)):
        generate(tmp_path / name, **SMALL, jobs=jobs)
        assert bytes_of(tmp_path / "one") == bytes_of(tmp_path / name)
    generate(tmp_path / "other", **{**SMALL, "seed": 4})
    assert bytes_of(tmp_path / "one") != bytes_of(tmp_path / "other")


def test_a_killed_run_continues_to_the_same_bytes(tmp_path):
    """Killed at three places, under another hash seed, against a run that was left alone."""
    generate(tmp_path / "whole", **SMALL)
    expected = bytes_of(tmp_path / "whole")
    code = f"from ragkit.synth import generate; generate({str(tmp_path / 'cut')!r}, **{SMALL!r})"
    ended = []
    for mark in ("generation.json", "shards/gmail-0001.npy", "records/notes.jsonl"):
        environment = os.environ | {"PYTHONHASHSEED": str(len(ended))}
        process = subprocess.Popen([sys.executable, "-c", code], env=environment)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if (tmp_path / "cut" / mark).exists():
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.002)
        ended.append(process.wait())
    assert -signal.SIGKILL in ended
    kept = (tmp_path / "cut" / "shards" / "slack-0001.npy").stat().st_mtime_ns
    generate(tmp_path / "cut", **SMALL)
    assert (tmp_path / "cut" / "shards" / "slack-0001.npy").stat().st_mtime_ns == kept
    found = {
        k: v for k, v in bytes_of(tmp_path / "cut").items() if not Path(k).name.startswith(".")
    }
    assert found == expected


def test_progress_goes_from_the_shards_to_the_end(tmp_path):
    told = []
    generate(tmp_path / "x", **SMALL, progress=lambda *step: told.append(step))
    assert told[0] == ("documents", 1, 9)
    assert told[8] == ("documents", 9, 9)
    assert told[-1] == ("records", 1, 1)


# Bad input


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"documents": 100, "questions": 90}, "cannot carry"),
        ({"documents": 0}, "at least 1"),
        ({"seed": -1}, "seed"),
        ({"jobs": 0}, "jobs"),
        ({"questions": -1}, "at least 0"),
    ],
)
def test_impossible_counts_are_refused(tmp_path, wrong, message):
    with pytest.raises(UsageError, match=message):
        generate(tmp_path / "x", **{**SMALL, **wrong})
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("documents", [1, 9, 60])
def test_tiny_companies_are_made(tmp_path, documents):
    made = generate(tmp_path / "x", documents=documents, seed=0, questions=0)
    assert sum(made["plan"]["documents"].values()) == documents


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="is not empty, and no run of ragkit has begun it"):
        generate(tmp_path, **SMALL)
    assert os.listdir(tmp_path) == ["letter.txt"]


def test_a_run_continues_with_its_own_settings_only(tmp_path):
    generate(tmp_path / "x", documents=60, seed=3, questions=0)
    with pytest.raises(UsageError, match="begun with seed 3"):
        generate(tmp_path / "x", documents=60, seed=4, questions=0)


def test_a_full_disk_says_what_is_kept(tmp_path, monkeypatch):
    real = writing.atomic_path

    def full(path):
        if "hubspot" in str(path):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return real(path)

    monkeypatch.setattr(writing, "atomic_path", full)
    with pytest.raises(RagkitError, match="No space left.*4 complete shards are kept") as caught:
        generate(tmp_path / "x", **SMALL)
    assert "same command again" in caught.value.hint
    monkeypatch.undo()
    generate(tmp_path / "x", **SMALL)
    generate(tmp_path / "y", **SMALL)
    assert bytes_of(tmp_path / "x") == bytes_of(tmp_path / "y")


def test_a_phrase_that_hides_a_fact_is_an_error(monkeypatch):
    plan = Plan(Settings(60, 1, questions=0))
    brief = plan.brief("slack", 0)
    brief.facts = tuple(
        type(fact)(**(vars(fact) | {"statement": "it is what it is"})) for fact in brief.facts
    )
    with pytest.raises(DataError, match="does not say"):
        plan.author.write(brief)
