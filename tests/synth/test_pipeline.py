import errno
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

import pytest

from ragkit import datasets, files
from ragkit.datasets import enterprise
from ragkit.errors import RagkitError, UsageError
from ragkit.synth import generate, pipeline
from ragkit.synth.briefs import SOURCES, shares
from ragkit.synth.pipeline import Plan, Settings
from ragkit.synth.questions import DESCRIBED_OVERLAP, SEMANTIC_OVERLAP, TYPES, overlap, visible
from ragkit.synth.world import LAST_DAY
from ragkit.systems.retrieval import BM25
from tests.synth.conftest import SIZE

SMALL = {"documents": 400, "seed": 3, "questions": 20}


def digests(out: Path) -> dict[str, str]:
    return {
        path.relative_to(out).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name != "ledger.sqlite"
    }


# Counts


def test_counts_are_kept(made):
    assert len(made.documents) == SIZE["documents"] == len(made.by_id)
    assert len(made.questions) == SIZE["questions"]
    assert Counter(q["question_type"] for q in made.questions) == {
        "basic": 35,
        "semantic": 25,
        "intra_document_reasoning": 8,
        "project_related": 8,
        "constrained": 6,
        "conflicting_info": 4,
        "completeness": 4,
        "miscellaneous": 4,
        "high_level": 2,
        "info_not_found": 4,
    }
    assert len(made.extra) == SIZE["questions"] // 5


def test_volumes_follow_the_paper_where_the_core_leaves_room():
    plan = Plan(Settings(100_000, 1))
    total = sum(plan.counts.values())
    assert total == 100_000
    for source, printed in (("slack", 285_605), ("gmail", 121_390), ("jira", 6_120)):
        assert plan.counts[source] / total == pytest.approx(printed / 511_962, abs=0.01)


def test_noise_has_its_shares(made):
    moves = Counter(row["kind"] for row in made.stage("4-noise/moves.jsonl"))
    base = SIZE["documents"] - len(made.stage("4-noise/documents.jsonl"))
    assert moves["random"] / base == pytest.approx(0.05, abs=0.006)
    assert moves["plausible"] / base == pytest.approx(0.03, abs=0.006)


def test_moved_documents_stay_in_their_source_and_are_elsewhere(made):
    homes = {}
    for path in (made.out / "stages").glob("[23]-*/*.jsonl"):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            homes[row["doc_id"]] = row["path"]
    away = [d for d in made.documents if homes.get(d["doc_id"], d["path"]) != d["path"]]
    assert len(away) == len(made.stage("4-noise/moves.jsonl"))
    for document in made.documents:
        assert document["path"].startswith(document["source_type"] + "/")


def test_near_duplicates_are_tracked_and_differ_in_the_fact(made):
    for pair in made.stage("4-noise/near_duplicates.jsonl"):
        old, new = made.by_id[pair["original"]], made.by_id[pair["duplicate"]]
        assert pair["old"] in visible(old)
        assert pair["new"] in visible(new)
        assert pair["old_day"] < pair["new_day"] <= LAST_DAY.isoformat()
        assert pair["old"] != pair["new"]


def test_facts_name_the_documents_that_state_them(made):
    assert len({fact["fact_id"] for fact in made.facts}) == len(made.facts)
    for fact in made.facts:
        assert fact["sources"]
        for doc_id in fact["sources"]:
            assert fact["value"].split(":")[0].lower() in visible(made.by_id[doc_id]).lower(), fact


# Documents


def test_threads_are_dialogues_and_pages_have_tables(made):
    for document in made.documents:
        if document["source_type"] in ("slack", "fireflies"):
            people = set(document["participants"].split("; "))
            names = re.findall(r"^([A-Z][^:\n]{2,40}): ", document["content"], flags=re.M)
            assert len(set(names) & people) >= 2, document["path"]
        if document["source_type"] == "github":
            assert "```diff" in document["content"]
    pages = [d for d in made.documents if d["source_type"] == "confluence"]
    assert sum("|---" in d["content"] for d in pages) / len(pages) > 0.9


def test_nothing_is_left_unfilled(made):
    for document in made.documents:
        assert not re.search(r"\{\w+\}|\[[^\[\]]*\|", visible(document)), document["path"]
        assert not re.search(r"[\x00-\x08\x0b-\x1f]", json.dumps(document["path"]))


def test_few_documents_have_a_close_sibling(made):
    planted = {p["duplicate"] for p in made.stage("4-noise/near_duplicates.jsonl")}
    shingles = []
    for document in made.documents:
        if document["doc_id"] in planted:
            continue
        words = re.findall(r"\w+", document["content"].lower())
        shingles.append({tuple(words[i : i + 5]) for i in range(len(words) - 4)})
    holders = defaultdict(list)
    for i, own in enumerate(shingles):
        for shingle in own:
            holders[shingle].append(i)
    common = Counter(
        pair for group in holders.values() if len(group) > 1 for pair in combinations(group, 2)
    )
    close = set()
    for (i, j), count in common.items():
        if 2 * count > len(shingles[i]) + len(shingles[j]) - count:
            close |= {i, j}
    assert len(close) / len(shingles) < 0.05


# Questions


def test_questions_have_the_fields_of_the_benchmark(made):
    for row in made.questions:
        assert set(row) == set(enterprise.FIELDS)
        assert row["question"].strip()[-1] in "?.!)"
        assert row["answer_facts"]
    assert len({q["question"] for q in made.questions}) == len(made.questions)
    assert [q["question_type"] for q in made.questions] == sorted(
        (q["question_type"] for q in made.questions), key=TYPES.index
    )


def test_gold_documents_are_there_and_have_the_sources(made):
    for row in made.questions + made.extra:
        sources = {made.by_id[i]["source_type"] for i in row["expected_doc_ids"]}
        assert sources == set(row["source_types"])
        none = row["question_type"] in ("high_level", "info_not_found")
        assert bool(row["expected_doc_ids"]) != none


def test_gold_sources_follow_the_printed_ones(made):
    for kind in ("basic", "semantic"):
        rows = made.of_type(kind)
        weights = Plan(Settings(**SIZE)).gold_sources[kind]
        wanted = dict(zip(weights, shares(len(rows), list(weights.values())), strict=True))
        found = Counter(source for row in rows for source in row["source_types"])
        assert sum(abs(found[s] - wanted[s]) for s in SOURCES) <= 4, (kind, found, wanted)


def test_semantic_questions_are_harder_than_basic_ones_and_not_hopeless(made):
    loaded = datasets.load(str(made.out))
    runs = BM25().fit(loaded.documents).search(loaded.questions, k=10)
    top = runs.groupby("question_id")["doc_id"].agg(set)
    found = {
        kind: [row["expected_doc_ids"][0] in top[row["question_id"]] for row in made.of_type(kind)]
        for kind in ("basic", "semantic")
    }
    recall = {kind: sum(hits) / len(hits) for kind, hits in found.items()}
    assert 0.1 < recall["semantic"] < recall["basic"] - 0.2, recall


def test_semantic_subjects_are_named_or_described(made):
    shared = [
        overlap(q["question"], made.by_id[q["expected_doc_ids"][0]])
        for q in made.of_type("semantic")
    ]
    assert any(share <= DESCRIBED_OVERLAP for share in shared)
    assert DESCRIBED_OVERLAP < SEMANTIC_OVERLAP


def test_headings_under_a_part_are_one_level_lower(made):
    below = 0
    for document in made.documents:
        if document["source_type"] in ("confluence", "google_drive"):
            text = document["content"]
            assert not re.search(r"^(#+) [^\n]+\n+\1 ", text, flags=re.M), document["path"]
            assert not re.search(r"^\d+\. [^\n]+\n+\d+\. [A-Z][a-z ]+\n(?!\d)", text), text
            below += "\n### " in text
    assert below


def test_semantic_questions_share_few_words(made):
    shares = [
        overlap(q["question"], made.by_id[q["expected_doc_ids"][0]])
        for q in made.of_type("semantic")
    ]
    assert max(shares) <= SEMANTIC_OVERLAP
    basic = [
        overlap(q["question"], made.by_id[q["expected_doc_ids"][0]]) for q in made.of_type("basic")
    ]
    assert sum(shares) / len(shares) < 0.6 * sum(basic) / len(basic)


def test_intra_document_answers_stand_in_distant_passages(made):
    for row in made.of_type("intra_document_reasoning"):
        text = made.by_id[row["expected_doc_ids"][0]]["content"]
        found = re.search(r"(?:every|at) ([\d,]+ \w+)", row["gold_answer"])[1]
        name = re.search(r"class (\w+)|^(\w+) was", row["gold_answer"])
        value = text.index(found)
        last = max(m.start() for m in re.finditer(re.escape(name[1] or name[2]), text))
        assert last - value > 200, row


def test_the_index_counts_what_the_briefs_say(made):
    run = pipeline.Run(made.out, Settings(**SIZE))
    plan = run.plan
    stating, told = defaultdict(list), Counter()
    for source, k in plan.shards:
        for number, brief in enumerate(plan.shard_briefs(source, k), k * pipeline.SHARD):
            for fact in brief.facts:
                stating[source, fact.key].append(number)
    volume = [b for s, k in plan.shards for b in plan.shard_briefs(s, k)]
    for brief in [*volume, *(b for group in plan.groups for b in group.briefs)]:
        for fact in brief.facts:
            if brief.subject and fact.entity == brief.subject.name:
                told[fact.key, brief.subject.kind, brief.subject.far] += 1
    with pipeline.Index(run) as index:
        for (source, key), numbers in stating.items():
            assert sorted(index.stating(source, key).tolist()) == numbers
        assert len(index.stating("slack", "no.attribute")) == 0
        for names, count in told.items():
            assert index.count("told", *names) == count


def test_a_described_subject_is_the_only_one(made):
    stated = [f for f in made.facts if f["entity"]]
    subjects = {s["name"]: s for s in made.stage("1-scaffolding/subjects.jsonl")}
    described = 0
    for row in made.of_type("semantic"):
        fact = next(
            f
            for f in stated
            if row["expected_doc_ids"][0] in f["sources"]
            and row["gold_answer"] == f"For {f['subject']}, {f['statement']}."
        )
        subject = subjects[fact["entity"]]
        nick = subject["nick"]
        if not nick or nick not in row["question"] or subject["name"].split()[0] in row["question"]:
            continue
        described += 1
        scoped = f"{fact['scope']})" in row["question"]
        alike = [
            f
            for f in stated
            if f["key"] == fact["key"]
            and subjects.get(f["entity"], {}).get("far") == subject["far"]
            and (not scoped or f["scope"] == fact["scope"])
        ]
        assert {f["value"] for f in alike} == {fact["value"]}, row
    assert described


def test_constrained_questions_have_distractors(made):
    notes = {n["question_id"]: n for n in made.stage("5-questions/notes.jsonl")}
    for row in made.of_type("constrained"):
        rivals = notes[row["question_id"]]["distractor_doc_ids"]
        assert rivals
        bans = [f for f in row["answer_facts"] if f.startswith("The answer must not")]
        assert bans
        for ban in bans:
            value = re.match(r"The answer must not give (.+?), which", ban)[1]
            assert any(value in visible(made.by_id[i]) for i in rivals)


def test_gold_documents_of_constrained_questions_are_all_that_state_the_fact(made):
    sources = {f"For {f['subject']}, {f['statement']}.": set(f["sources"]) for f in made.facts}
    for row in made.of_type("constrained"):
        assert set(row["expected_doc_ids"]) == sources[row["gold_answer"]]
        assert len(row["expected_doc_ids"]) <= 2


def test_no_single_document_completes_a_completeness_answer(made):
    for row in made.of_type("completeness"):
        items = [
            part.split(": ") for part in row["gold_answer"].split(". ")[0].rstrip(".").split("; ")
        ]
        assert len(items) == len(row["expected_doc_ids"])
        for doc_id in row["expected_doc_ids"]:
            text = visible(made.by_id[doc_id]).lower()
            assert 1 <= sum(value.lower() in text for _, value in items) < len(items)


def test_what_is_not_found_is_stated_nowhere(made):
    stated = {(f["attribute"], f["entity"]) for f in made.facts}
    for row in made.of_type("info_not_found"):
        match = re.search(r"the (\D+?) of (.+?)(?:,| in any|\.$)", row["gold_answer"])
        if match is None:
            continue
        attribute, subject = match.groups()
        entities = {
            f["entity"] for f in made.facts if f["entity"] and subject.startswith(f["entity"])
        }
        assert not {(attribute, e) for e in entities} & stated, row


def test_metadata_answers_are_in_the_metadata_alone(made):
    for row in made.extra:
        document = made.by_id[row["expected_doc_ids"][0]]
        value = row["gold_answer"].removesuffix(".")
        assert value in {str(v) for k, v in document.items() if k != "content"}
        assert value not in visible(document)


# Files


def test_slices_and_frames_can_be_loaded(made):
    rows = [
        row
        for path in sorted((made.out / "enterpriserag_bench").glob("*_slice_*.zip"))
        for _, row in files.read_archive(path)
    ]
    assert {r["doc_id"] for r in rows} == set(made.by_id)
    for row in rows:
        assert row["text"] == made.by_id[row["doc_id"]]["content"]
        assert row["source"] == made.by_id[row["doc_id"]]["source_type"]
    loaded = datasets.load(str(made.out))
    assert len(loaded.documents) == len(rows)
    assert list(loaded.questions["text"]) == [q["question"] for q in made.questions]
    assert set(loaded.documents["source"]) <= set(SOURCES)


def test_entries_are_stored_with_a_fixed_date(made):
    for path in (made.out / "enterpriserag_bench").glob("*.zip"):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                assert info.date_time == (1980, 1, 1, 0, 0, 0)
                assert info.compress_type == zipfile.ZIP_STORED


def test_same_settings_same_bytes_whatever_the_jobs(tmp_path, monkeypatch):
    monkeypatch.setattr(pipeline, "SHARD", 60)
    generate(tmp_path / "one", **SMALL)
    generate(tmp_path / "again", **SMALL)
    assert digests(tmp_path / "one") == digests(tmp_path / "again")
    generate(tmp_path / "other", documents=400, seed=4, questions=20)
    assert digests(tmp_path / "one") != digests(tmp_path / "other")


def test_two_processes_give_the_same_bytes(tmp_path):
    generate(tmp_path / "one", **SMALL)
    generate(tmp_path / "two", **SMALL, jobs=2)
    assert digests(tmp_path / "one") == digests(tmp_path / "two")


def test_a_killed_run_continues_to_the_same_bytes(tmp_path):
    generate(tmp_path / "whole", **SMALL)
    expected = digests(tmp_path / "whole")
    code = f"from ragkit.synth import generate; generate({str(tmp_path / 'cut')!r}, **{SMALL!r})"
    marks = ["stages/2-core/documents.jsonl", "stages/3-volume/gmail-0001.npz", "questions.jsonl"]
    ended = []
    for mark in marks:
        process = subprocess.Popen([sys.executable, "-c", code])
        deadline = time.monotonic() + 30
        while process.poll() is None and time.monotonic() < deadline:
            if (tmp_path / "cut" / mark).exists():
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.002)
        ended.append(process.wait())
    assert -signal.SIGKILL in ended
    generate(tmp_path / "cut", **SMALL)
    found = {k: v for k, v in digests(tmp_path / "cut").items() if not Path(k).name.startswith(".")}
    assert found == expected


# Bad input


def test_impossible_counts_are_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot carry"):
        generate(tmp_path / "x", documents=100, seed=1, questions=90)
    with pytest.raises(UsageError, match="at least 1"):
        generate(tmp_path / "x", documents=0, seed=1)
    with pytest.raises(UsageError, match="seed"):
        generate(tmp_path / "x", documents=300, seed=-1)
    with pytest.raises(UsageError, match="author"):
        generate(tmp_path / "x", documents=300, seed=1, author="poet")
    with pytest.raises(UsageError, match="jobs"):
        generate(tmp_path / "x", documents=300, seed=1, jobs=0)
    assert not (tmp_path / "x").exists()


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="is not empty, and no run of ragkit has begun it"):
        generate(tmp_path, **SMALL)
    assert os.listdir(tmp_path) == ["letter.txt"]


def test_a_run_only_continues_with_its_own_settings(tmp_path):
    generate(tmp_path / "x", **SMALL)
    with pytest.raises(UsageError, match="begun with seed 3"):
        generate(tmp_path / "x", **{**SMALL, "seed": 4})


def test_a_full_disk_says_what_is_kept(tmp_path, monkeypatch):
    real = pipeline.write_text

    def full(path, text):
        if "4-noise" in str(path):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return real(path, text)

    monkeypatch.setattr(pipeline, "write_text", full)
    with pytest.raises(RagkitError, match="No space left.*kept.*3-volume") as caught:
        generate(tmp_path / "x", **SMALL)
    assert "same command again" in caught.value.hint
    monkeypatch.undo()
    generate(tmp_path / "x", **SMALL)
    generate(tmp_path / "y", **SMALL)
    assert digests(tmp_path / "x") == digests(tmp_path / "y")
