"""The written benchmark: the ledger replays to its bytes, and it reads like written texts."""

import json
import re
from collections import Counter
from pathlib import Path
from statistics import median

import pytest

from ragkit.datasets import reported

ROOT = Path(__file__).resolve().parent.parent
WRITTEN = ROOT / "data" / "written"


def read(name):
    lines = (WRITTEN / name).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def documents():
    return read("enterpriserag_bench/documents.jsonl")


@pytest.fixture(scope="module")
def texts(documents):
    articles = read("wixqa/wix_kb_corpus/wix_kb_corpus.jsonl")
    return [row["content"] for row in documents] + [row["contents"] for row in articles]


def sentences(text):
    parts = re.split(r"(?<=[.!?])\s+|\n", text)
    return {part.strip() for part in parts if len(re.findall(r"\w+", part)) >= 4}


@pytest.mark.slow
def test_the_ledger_replays_to_the_same_bytes(tmp_path):
    from ragkit.synth.sample import write_written

    assert write_written(tmp_path) == len(list(tmp_path.rglob("*.jsonl"))) >= 8
    for path in sorted(tmp_path.rglob("*.jsonl")):
        name = path.relative_to(tmp_path).as_posix()
        assert path.read_bytes() == (WRITTEN / name).read_bytes(), name


def test_sizes(documents):
    assert len(documents) == len({row["doc_id"] for row in documents}) == 320
    assert len(read("wixqa/wix_kb_corpus/wix_kb_corpus.jsonl")) == 80
    sources = Counter(row["source_type"] for row in documents)
    assert len(sources) == 9
    assert min(sources.values()) >= 12
    assert [len(read(f"wixqa/wixqa_{name}/test.jsonl")) for name in SETS] == [40, 40, 80]


SETS = ("expertwritten", "simulated", "synthetic")


def test_documents_are_nearly_as_long_as_the_papers(documents):
    printed = reported.load("enterpriserag_bench", "9")
    printed = printed[printed["metric"] == "median_length"].set_index("row")["value"]
    for source, typical in printed.items():
        lengths = [len(row["content"]) for row in documents if row["source_type"] == source]
        if lengths:
            assert median(lengths) >= 0.7 * typical, source
    articles = read("wixqa/wix_kb_corpus/wix_kb_corpus.jsonl")
    assert median(len(row["contents"]) for row in articles) >= 4000


def test_hardly_a_sentence_stands_in_two_documents(texts):
    counts = Counter(sentence for text in texts for sentence in sentences(text))
    number = counts.total()
    assert len(counts) / number >= 0.95
    assert sum(n for n in counts.values() if n > 1) / number <= 0.05


def test_gold_documents_exist(documents):
    known = {row["doc_id"] for row in documents}
    questions = read("enterpriserag_bench/questions.jsonl")
    assert len({row["question_id"] for row in questions}) == len(questions) == 148
    assert len({row["question_type"] for row in questions}) == 10
    for row in questions + read("enterpriserag_bench/extra_questions.jsonl"):
        assert set(row["expected_doc_ids"]) <= known
        assert row["answer_facts"]
    slugs = {row["id"] for row in read("wixqa/wix_kb_corpus/wix_kb_corpus.jsonl")}
    for name in SETS:
        for row in read(f"wixqa/wixqa_{name}/test.jsonl"):
            assert row["article_ids"]
            assert set(row["article_ids"]) <= slugs
