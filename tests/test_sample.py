"""The embedded sample, checked from its bytes: layout, ids, proportions, lengths, and what its labels promise.

Nothing of the package is used to read it, so that a mistake in a loader cannot hide one here. One
test makes it anew: the ledger of its authors' answers replays to these bytes.
"""

import csv
import itertools
import json
import os
import re
import statistics
import unicodedata
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from scipy.stats import binomtest

from ragkit.datasets import reported

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "data" / "sample"
MIRROR = Path(os.environ.get("RAGKIT_DATA") or ROOT.parent / "shared" / "data")
FILES = sorted(SAMPLE.rglob("*.jsonl"))

# The fewest and most gold documents of a question of each type (EnterpriseRAG-Bench, Table 11).
GOLD = {
    "basic": (1, 1),
    "semantic": (1, 1),
    "intra_document_reasoning": (1, 1),
    "project_related": (1, 12),
    "constrained": (1, 2),
    "conflicting_info": (2, 2),
    "completeness": (2, 12),
    "miscellaneous": (1, 1),
    "high_level": (0, 0),
    "info_not_found": (0, 0),
}
# LiveRAG, Table 1.
CATEGORIZATIONS = {
    "Answer Type": "factoid yes/no definition list explanation comparison multi-aspect",
    "Answer Style": "concise-answer detailed-answer unspecified",
    "Premise": "direct with-premise",
    "Phrasing": "concise-and-natural verbose-and-natural short-search-query long-search-query",
    "Linguistic Variation": "similar-to-document distant-from-document",
    "Politeness": "polite neutral",
    "Linguistic Correctness": "correct mild-mistakes severe-mistakes",
    "User Persona": "expert novice researcher journalist",
}


def read(name):
    return [json.loads(line) for line in (SAMPLE / name).read_text("utf-8").splitlines()]


def words(text):
    return re.findall(r"[^\W_]+(?:['’][^\W_]+)*", text.lower())


def plain(question):
    return " ".join(re.findall(r"[^\W_]+", question.lower()))


def sentences(text):
    parts = re.split(r"(?<=[.!?])\s+|\n", text)
    return {part.strip() for part in parts if len(re.findall(r"\w+", part)) >= 4}


KB = read("wixqa/wix_kb_corpus/wix_kb_corpus.jsonl")
WIXQA = {
    name: read(f"wixqa/wixqa_{name}/test.jsonl")
    for name in ("expertwritten", "simulated", "synthetic")
}
DOCS = read("enterpriserag_bench/documents.jsonl")
BY_ID = {doc["doc_id"]: doc for doc in DOCS}
QUESTIONS = read("enterpriserag_bench/questions.jsonl")
EXTRA = read("enterpriserag_bench/extra_questions.jsonl")
LIVERAG = read("liverag/questions.jsonl")
COMPARISON = {
    name: read(f"comparison/{name}.jsonl")
    for name in ("triviaqa", "popqa", "webquestions", "simpleqa", "natural_questions")
}


# Files


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(SAMPLE).as_posix())
def test_every_line_is_canonical_json(path):
    raw = path.read_bytes()
    assert b"\r" not in raw
    assert raw.endswith(b"\n")
    text = raw.decode("utf-8")
    assert unicodedata.is_normalized("NFC", text)
    for line in text.removesuffix("\n").split("\n"):
        assert json.dumps(json.loads(line), ensure_ascii=False) == line


def test_the_readme_counts_what_is_there():
    text = (SAMPLE / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\S+\.jsonl)` \| ([\d,]+) \|", text, flags=re.M)
    told = {path: int(n.replace(",", "")) for name, n in rows for path in SAMPLE.glob(name)}
    assert told == {path: len(path.read_text("utf-8").splitlines()) for path in FILES}
    assert sum(path.stat().st_size for path in SAMPLE.rglob("*") if path.is_file()) < 5_000_000


@pytest.mark.slow
def test_the_ledger_replays_to_the_same_bytes(tmp_path):
    """After a change of the ledger that is meant: `ragkit generate sample`."""
    from ragkit.synth.sample import write_sample

    made = [path for path in FILES if path.parent.name not in ("comparison", "labels")]
    assert write_sample(tmp_path) == len(made)
    for path in made:
        name = path.relative_to(SAMPLE)
        assert (tmp_path / name).read_bytes() == path.read_bytes(), name


def test_the_readme_tells_what_the_readers_found():
    readings = pd.read_csv(SAMPLE / "labels" / "readings.csv")
    names = [row["question_id"] for row in QUESTIONS + EXTRA]
    names += [f"{name}-{place:03d}" for name, rows in WIXQA.items() for place in range(len(rows))]
    names += [f"dm-{row['Index']:03d}" for row in LIVERAG]
    text = (SAMPLE / "README.md").read_text("utf-8")
    for _, reading in readings.groupby("reading"):
        assert sorted(reading["question"]) == sorted(names)
        wrong = int((reading["settled"].fillna(reading["verdict"]) == "wrong").sum())
        low, high = binomtest(wrong, len(names)).proportion_ci(method="wilson")
        rates = f"{100 * wrong / len(names):.1f} % | {100 * low:.1f} to {100 * high:.1f} % |"
        assert f"| {len(names)} | {wrong} | {rates}" in text
    assert wrong / len(names) <= 0.02


def test_a_blind_reader_sees_the_categories():
    seen = pd.read_csv(SAMPLE / "labels" / "categories.csv").set_index("Index")
    true = pd.DataFrame({row["Index"]: row["DataMorgana_Config"] for row in LIVERAG}).T
    right = seen == true.loc[seen.index, seen.columns]
    text = (SAMPLE / "README.md").read_text("utf-8")
    assert f"{right.to_numpy().sum()} of {right.size} are those" in text
    assert f"personas alone {right['User Persona'].sum()} of {len(seen)}" in text
    assert right.to_numpy().mean() >= 0.9


def test_a_correction_that_does_not_fit_is_an_error(tmp_path):
    from ragkit.errors import DataError
    from ragkit.synth.sample import corrected, corrections

    rows = [{"id": "a", "text": "one two", "tags": ["two"]}, {"text": "three"}]
    assert corrected(rows, [{"file": "f", "row": "a", "old": "two", "new": "2"}])[0] == {
        "id": "a",
        "text": "one 2",
        "tags": ["2"],
    }
    assert corrected(rows, [{"file": "f", "row": "1", "field": "text", "value": "3"}])[1] == {
        "text": "3"
    }
    assert rows[0]["text"] == "one two"
    for edit in (
        {"row": "a", "old": "four", "new": "4"},
        {"row": "1", "field": "text", "value": "three"},
    ):
        with pytest.raises(DataError, match="changes nothing"):
            corrected(rows, [{"file": "f"} | edit])
    path = tmp_path / "corrections.jsonl"
    path.write_text('{"file": "x.jsonl", "row": "a", "old": "1", "new": "2"}\n')
    assert list(corrections(path, ["x.jsonl", "y.jsonl"])) == ["x.jsonl", "y.jsonl"]
    with pytest.raises(DataError, match=r"no file 'x.jsonl' to be corrected"):
        corrections(path, ["y.jsonl"])
    with pytest.raises(DataError, match="a row that is not there"):
        corrected(rows, [{"file": "f", "row": "b", "old": "one", "new": "1"}])


# The help centre


def test_articles():
    for row in KB:
        assert list(row) == ["id", "url", "contents", "article_type", "title"]
        assert row["contents"].startswith(row["title"])
    for key in ("id", "url", "title", "contents"):
        assert len({row[key] for row in KB}) == len(KB) >= 80
    kinds = Counter(row["article_type"] for row in KB).most_common()
    assert [kind for kind, _ in kinds] == ["article", "feature_request", "known_issue"]
    assert statistics.median(len(row["contents"]) for row in KB) >= 4000


@pytest.mark.parametrize(
    ("name", "most", "multi"),
    [("expertwritten", 40, 0.27), ("simulated", 40, 0.14), ("synthetic", len(KB), 0.0)],
)
def test_wixqa_sets_have_their_share_of_questions_about_several_articles(name, most, multi):
    rows, known = WIXQA[name], {row["id"] for row in KB}
    assert 0.9 * most <= len({row["question"] for row in rows}) == len(rows) <= most
    for row in rows:
        assert list(row) == ["question", "answer", "article_ids"]
        assert row["answer"].strip()
        assert 1 <= len(set(row["article_ids"])) == len(row["article_ids"]) <= 3
        assert set(row["article_ids"]) <= known
    share = statistics.mean(len(row["article_ids"]) > 1 for row in rows)
    assert share == pytest.approx(multi, abs=0.1)


def test_expert_answers_are_the_longest():
    length = {
        name: statistics.median(len(words(row["answer"])) for row in rows)
        for name, rows in WIXQA.items()
    }
    assert max(length, key=length.get) == "expertwritten"


# The company's documents


def test_documents():
    for doc in DOCS:
        assert list(doc)[:4] == ["path", "doc_id", "source_type", "title"]
        assert list(doc)[-1] == "content"
        assert re.fullmatch(r"dsid_[0-9a-f]{32}", doc["doc_id"])
        assert doc["path"].endswith(".json")
        assert doc["title"].strip()
        assert all(isinstance(value, str | int) for value in doc.values()), "not flat"
    assert len(BY_ID) == len(DOCS) == 320
    assert [doc["path"] for doc in DOCS] == sorted({doc["path"] for doc in DOCS})


def test_documents_are_nearly_as_many_and_as_long_as_the_papers_by_source():
    printed = reported.load("enterpriserag_bench", "9").set_index(["metric", "row"])["value"]
    lengths = {source: [] for source in sorted({doc["source_type"] for doc in DOCS})}
    for doc in DOCS:
        lengths[doc["source_type"]].append(len(doc["content"]))
    assert len(lengths) == 9
    for source, own in lengths.items():
        assert len(own) >= 12
        assert statistics.median(own) >= 0.7 * printed["median_length", source], source
    order = sorted(lengths, key=lambda source: -len(lengths[source]))
    assert order[:2] == ["slack", "gmail"]


def test_hardly_a_sentence_stands_in_two_documents():
    texts = [doc["content"] for doc in DOCS] + [row["contents"] for row in KB]
    counts = Counter(sentence for text in texts for sentence in sentences(text))
    assert len(counts) / counts.total() >= 0.95
    assert sum(n for n in counts.values() if n > 1) / counts.total() <= 0.05
    assert len({word for text in texts for word in words(text)}) >= 9000


# The company's questions


def test_questions_have_the_official_fields_and_gold_documents():
    fields = "question_id question_type source_types question expected_doc_ids gold_answer"
    for row in QUESTIONS + EXTRA:
        assert list(row) == [*fields.split(), "answer_facts"]
        assert all(fact.strip() for fact in row["answer_facts"])
        assert row["answer_facts"]
        assert row["gold_answer"].strip()
        gold = row["expected_doc_ids"]
        assert len(set(gold)) == len(gold)
        assert row["source_types"] == sorted({BY_ID[i]["source_type"] for i in gold})
    ids = [row["question_id"] for row in QUESTIONS]
    assert ids == [f"qst_{i:04d}" for i in range(1, len(QUESTIONS) + 1)]
    assert len({row["question"] for row in QUESTIONS + EXTRA}) == len(QUESTIONS) + len(EXTRA)
    assert {row["question_type"] for row in EXTRA} == {"metadata"}
    assert len(QUESTIONS) >= 130
    assert len(EXTRA) >= 20


def test_types_have_the_proportions_and_gold_sets_of_the_paper():
    printed = reported.load("enterpriserag_bench", "2").set_index("row")["value"]
    assert list(dict.fromkeys(row["question_type"] for row in QUESTIONS)) == list(GOLD)
    for kind, (fewest, most) in GOLD.items():
        sizes = [len(row["expected_doc_ids"]) for row in QUESTIONS if row["question_type"] == kind]
        assert len(sizes) / len(QUESTIONS) == pytest.approx(printed[kind] / 500, abs=0.03), kind
        assert fewest <= min(sizes) <= max(sizes) <= most, kind


# Questions in the manner of DataMorgana


def test_liverag_rows_have_their_fields_and_documents_of_the_sample():
    fields = "Index Question Answer Supporting_Documents Answer_Claims Session DataMorgana_Config"
    known = {doc["doc_id"]: f"{doc['title']}\n\n{doc['content']}" for doc in DOCS}
    known |= {row["id"]: f"{row['title']}\n\n{row['contents']}" for row in KB}
    for row in LIVERAG:
        assert list(row) == fields.split()
        assert list(row["Answer_Claims"]) == ["direct", "useful", "useless"]
        assert row["Answer_Claims"]["direct"]
        assert list(row["DataMorgana_Config"]) == list(CATEGORIZATIONS)
        kind, own = row["DataMorgana_Config"]["Answer Type"], row["Supporting_Documents"]
        two = 2 if kind in ("comparison", "multi-aspect") else 1
        assert len({doc["doc_id"] for doc in own}) == len(own) == two, row["Question"]
        assert all(doc["content"] == known[doc["doc_id"]] for doc in own)
    assert len({row["Question"] for row in LIVERAG}) == len(LIVERAG) >= 100
    assert len({row["Index"] for row in LIVERAG}) == len(LIVERAG)
    both = {doc["doc_id"] in BY_ID for row in LIVERAG for doc in row["Supporting_Documents"]}
    assert both == {True, False}


@pytest.mark.parametrize("name", CATEGORIZATIONS)
def test_every_category_is_used(name):
    count = Counter(row["DataMorgana_Config"][name] for row in LIVERAG)
    assert set(count) == set(CATEGORIZATIONS[name].split())
    assert min(count.values()) >= 3


# The five other question sets


def test_comparison_sets_keep_the_manner_of_their_models():
    for rows in COMPARISON.values():
        assert len(rows) == len({plain(row["question"]) for row in rows}) == 40
        for row in rows:
            assert list(row) == ["question", "answers"]
            assert all(answer.strip() for answer in row["answers"])
            assert row["answers"]
    templates = (
        r"(Who (was|is) the \w+ (of|for) |What is .+'s occupation\?|What is the (\w+) of "
        r"|In what (country|city) (is|was) |What (genre is|color is|sport does) )"
    )
    for row in COMPARISON["popqa"]:
        assert re.match(templates, row["question"]), row["question"]
    for name in ("webquestions", "natural_questions"):
        assert all(row["question"] == row["question"].lower() for row in COMPARISON[name])
    assert all(row["question"].endswith("?") for row in COMPARISON["webquestions"])
    assert not any(row["question"].endswith("?") for row in COMPARISON["natural_questions"])
    mean = {n: statistics.mean(len(words(r["question"])) for r in s) for n, s in COMPARISON.items()}
    assert mean["simpleqa"] > mean["triviaqa"] > mean["natural_questions"] > mean["webquestions"]


# Nothing of it is anybody else's


def official_questions():
    """Every question text of the mirror, by set."""
    folder = MIRROR / "comparison_questions"
    rows = {}
    for path in sorted(folder.glob("*.jsonl")):
        lines = path.read_text("utf-8").splitlines()
        rows[path.name] = [json.loads(line)["question"] for line in lines]
    for path in sorted(folder.glob("webquestions*.json")):
        rows[path.name] = [row["qText"] for row in json.loads(path.read_text("utf-8"))]
    for path in sorted(folder.glob("popqa*.json")):
        data = json.loads(path.read_text("utf-8"))
        splits = [value for value in data.values() if isinstance(value, list)]
        rows[path.name] = [row["input"] for split in splits for row in split]
    for path in sorted(folder.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            rows[path.name] = [row["problem"] for row in csv.DictReader(file)]
    for name in (
        "enterpriserag_bench/questions.jsonl",
        "liverag/liverag_challenge_questions_895_merged.jsonl",
        "wixqa/wixqa_expertwritten_sample160_with_contexts.jsonl",
    ):
        path = MIRROR / name
        if path.exists():
            lines = path.read_text("utf-8").splitlines()
            rows[name] = [json.loads(line)["question"] for line in lines]
    return rows


def test_no_question_is_one_of_the_official_sets():
    if not (MIRROR / "comparison_questions").is_dir():
        pytest.skip(f"no mirror of the official data at {MIRROR}")
    official = {
        plain(question): name for name, rows in official_questions().items() for question in rows
    }
    assert len(official) > 10_000
    ours = [row["question"] for row in itertools.chain(QUESTIONS, EXTRA, *WIXQA.values())]
    ours += [row["question"] for row in itertools.chain(*COMPARISON.values())]
    ours += [row["Question"] for row in LIVERAG]
    assert [(q, official[plain(q)]) for q in ours if plain(q) in official] == []


@pytest.mark.parametrize("name", ["Redwood", "ACME", "AcmeSec", "Wix"])
def test_names_of_the_official_worlds_do_not_appear(name):
    for path in FILES:
        assert not re.search(rf"\b{name}\b", path.read_text("utf-8")), path.name
