"""Generated companies in the cache folder: made once, found again, resumed, streamed."""

import json
import subprocess
import sys

import pytest

from ragkit.errors import UsageError
from ragkit.synth import cached_company, stream
from ragkit.synth.offline import generate


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _cache(cache, monkeypatch):
    monkeypatch.setenv("RAGKIT_CACHE", str(cache))


def test_it_is_made_once(monkeypatch):
    folder = cached_company(200, seed=3, questions=10, jobs=1)
    assert (folder / "statistics.json").exists()
    # Nothing is left to do: whoever generates now fails.
    monkeypatch.setattr(generate, "generate", lambda *_, **__: 1 / 0)
    assert cached_company(200, seed=3, questions=10, jobs=1) == folder


def test_settings_and_code_have_folders_of_their_own(monkeypatch):
    first = cached_company(200, seed=3, questions=10, jobs=1)
    assert cached_company(200, seed=4, questions=10, jobs=1) != first
    monkeypatch.setattr(generate, "version", lambda: "another-code")
    assert cached_company(200, seed=3, questions=10, jobs=1).name.endswith("another-code")


def test_an_interrupted_company_is_finished():
    folder = cached_company(200, seed=3, questions=10, jobs=1)
    before = (folder / "enterpriserag_bench" / "questions.jsonl").read_bytes()
    for name in ("statistics.json", "enterpriserag_bench/questions.jsonl"):
        (folder / name).unlink()
    assert cached_company(200, seed=3, questions=10, jobs=1) == folder
    assert (folder / "enterpriserag_bench" / "questions.jsonl").read_bytes() == before


def test_documents_come_one_by_one():
    folder = cached_company(200, seed=3, questions=10, jobs=1)
    rows = stream(folder)
    assert iter(rows) is rows, "not a list"
    lines = (folder / "enterpriserag_bench" / "documents.jsonl").read_text("utf-8").splitlines()
    fields = ("doc_id", "source_type", "title", "content")
    listed = [tuple(row[name] for name in fields) for row in map(json.loads, lines)]
    assert sorted(tuple(row[name] for name in fields) for row in rows) == sorted(listed)
    assert len(listed) == 200


def test_impossible_counts_leave_nothing(cache):
    before = set((cache / "generated").iterdir())
    with pytest.raises(UsageError, match="cannot carry"):
        cached_company(20, questions=19)
    assert {
        path for path in set((cache / "generated").iterdir()) - before if path.is_dir()
    } == set()


def test_a_script_from_standard_input_may_use_processes(cache):
    """Spawned processes would run the script again, and wait for ever where there is none."""
    script = "from ragkit.synth import cached_company; print(cached_company(400, seed=5, questions=10, jobs=2))"
    done = subprocess.run(
        [sys.executable, "-"], input=script, capture_output=True, text=True, timeout=120, check=True
    )
    assert str(cache) in done.stdout


def test_the_printed_numbers_count(monkeypatch):
    """The generator reads them: other numbers, another company."""
    before = generate.version()
    printed = generate.reported.load()
    monkeypatch.setattr(generate.reported, "load", lambda: printed.assign(value=0.0))
    assert generate.version() != before
