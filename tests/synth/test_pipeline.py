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
from collections import Counter
from pathlib import Path

import pytest

from ragkit import datasets, files
from ragkit.errors import RagkitError, UsageError
from ragkit.synth import generate, pipeline
from ragkit.synth.briefs import SOURCES, shares
from ragkit.synth.pipeline import Plan, Settings
from ragkit.synth.questions import SEMANTIC_OVERLAP, overlap, visible
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


def test_nothing_is_left_unfilled(made):
    for document in made.documents:
        assert not re.search(r"\{\w+\}|\[[^\[\]]*\|", visible(document)), document["path"]
        assert not re.search(r"[\x00-\x08\x0b-\x1f]", json.dumps(document["path"]))


# Questions


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


def test_gold_documents_of_constrained_questions_are_all_that_state_the_fact(made):
    sources = {f"For {f['subject']}, {f['statement']}.": set(f["sources"]) for f in made.facts}
    for row in made.of_type("constrained"):
        assert set(row["expected_doc_ids"]) == sources[row["gold_answer"]]
        assert len(row["expected_doc_ids"]) <= 2


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


def test_same_settings_same_bytes_whatever_the_jobs(tmp_path):
    for name, jobs in (("one", 1), ("again", 1), ("two", 2)):
        generate(tmp_path / name, **SMALL, jobs=jobs)
        assert digests(tmp_path / "one") == digests(tmp_path / name)
    generate(tmp_path / "other", **{**SMALL, "seed": 4})
    assert digests(tmp_path / "one") != digests(tmp_path / "other")


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


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"documents": 100, "questions": 90}, "cannot carry"),
        ({"documents": 0}, "at least 1"),
        ({"seed": -1}, "seed"),
        ({"jobs": 0}, "jobs"),
    ],
)
def test_impossible_counts_are_refused(tmp_path, wrong, message):
    with pytest.raises(UsageError, match=message):
        generate(tmp_path / "x", **{**SMALL, **wrong})
    assert not (tmp_path / "x").exists()


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match="is not empty, and no run of ragkit has begun it"):
        generate(tmp_path, **SMALL)
    assert os.listdir(tmp_path) == ["letter.txt"]


def test_a_run_continues_with_its_own_settings_only(tmp_path):
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
