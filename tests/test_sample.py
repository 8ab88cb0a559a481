"""The embedded sample, checked from its bytes: layout, ids, proportions, and what each type promises.

Nothing of the package is used to read it, so that a mistake in a loader cannot hide one here. One
test makes it anew: the generator of this version writes these bytes.
"""

import csv
import hashlib
import itertools
import json
import os
import re
import statistics
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "data" / "sample"
MIRROR = Path(os.environ.get("RAGKIT_DATA") or ROOT.parent / "shared" / "data")
FILES = sorted(SAMPLE.rglob("*.jsonl"))

# In the order of their volumes in EnterpriseRAG-Bench, Table 1.
VOLUMES = "slack gmail linear google_drive hubspot fireflies github jira confluence"
SOURCES = VOLUMES.split()
# Questions of each type there, Table 2, and the fewest and most gold documents of one.
TYPES = {
    "basic": (175, 1, 1),
    "semantic": (125, 1, 1),
    "intra_document_reasoning": (40, 1, 1),
    "project_related": (40, 2, 9),
    "constrained": (30, 1, 2),
    "conflicting_info": (20, 2, 2),
    "completeness": (20, 4, 10),
    "miscellaneous": (20, 1, 1),
    "high_level": (10, 0, 0),
    "info_not_found": (20, 0, 0),
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
TENS = {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "ninety": 90}
NUMERALS = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen twenty
"""
NUMBERS = {word: value for value, word in enumerate(NUMERALS.split())} | TENS


def read(name):
    return [json.loads(line) for line in (SAMPLE / name).read_text("utf-8").splitlines()]


def words(text):
    return re.findall(r"[^\W_]+(?:['’][^\W_]+)*", text.lower())


def numbers(text):
    """The numbers that a text states in figures or in words, thousands separators removed."""
    text = re.sub(r"(?<=\d),(?=\d{3})", "", text.lower())
    for word, figure in NUMBERS.items():
        text = re.sub(rf"\b{word}\b", str(figure), text)
    found = re.findall(r"\d+(?:\.\d+)?", text)
    return {str(int(n)) if n.isdigit() else n for n in found}


def plain(question):
    return " ".join(re.findall(r"[^\W_]+", question.lower()))


KB = read("wixqa/wix_kb_corpus/wix_kb_corpus.jsonl")
WIXQA = {
    name: read(f"wixqa/wixqa_{name}/test.jsonl")
    for name in ("expertwritten", "simulated", "synthetic")
}
DOCS = read("enterpriserag_bench/documents.jsonl")
BY_ID = {doc["doc_id"]: doc for doc in DOCS}
QUESTIONS = read("enterpriserag_bench/questions.jsonl")
GROUNDED = [row for row in QUESTIONS if row["expected_doc_ids"]]
EXTRA = read("enterpriserag_bench/extra_questions.jsonl")
LIVERAG = read("liverag/questions.jsonl")
COMPARISON = {
    name: read(f"comparison/{name}.jsonl")
    for name in ("triviaqa", "popqa", "webquestions", "simpleqa", "natural_questions")
}


def full_text(doc):
    return "\n".join(str(value) for value in doc.values())


def visible(doc):
    """What a retrieval system is given: no metadata."""
    return f"{doc['title']}\n\n{doc['content']}"


def of_type(kind):
    return [row for row in QUESTIONS if row["question_type"] == kind]


# Files


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(SAMPLE).as_posix())
def test_every_line_is_canonical_json(path):
    raw = path.read_bytes()
    assert b"\r" not in raw
    assert raw.endswith(b"\n")
    text = raw.decode("utf-8")
    assert unicodedata.is_normalized("NFC", text)
    for line in text.splitlines():
        assert json.dumps(json.loads(line), ensure_ascii=False) == line


def test_sample_is_small_and_complete():
    names = [path.relative_to(SAMPLE).as_posix() for path in FILES]
    assert len(names) == 4 + 3 + 1 + 5, names
    assert sum(path.stat().st_size for path in SAMPLE.rglob("*") if path.is_file()) < 5_000_000
    assert (SAMPLE / "README.md").read_text("utf-8").strip()


def test_the_generator_writes_these_bytes(tmp_path):
    """After a change of ragkit.synth that is meant: `ragkit generate sample`."""
    from ragkit.synth.sample import write_sample

    made = [SAMPLE / name for name in ("enterpriserag_bench", "wixqa")]
    committed = {path for folder in made for path in folder.rglob("*") if path.is_file()}
    assert write_sample(tmp_path) == len(committed)
    for path in sorted(committed):
        fresh = tmp_path / path.relative_to(SAMPLE)
        assert fresh.read_bytes() == path.read_bytes(), path.relative_to(SAMPLE)


# The help centre


def test_articles():
    for row in KB:
        assert list(row) == ["id", "url", "contents", "article_type", "title"]
        assert row["id"] == hashlib.sha256(row["url"].encode()).hexdigest()
        assert row["contents"].startswith(row["title"])
        assert 30 <= len(words(row["contents"])) <= 600, row["title"]
    for key in ("id", "url", "title", "contents"):
        assert len({row[key] for row in KB}) == len(KB) == 300


def test_article_types_have_the_proportions_of_the_paper():
    share = {kind: n / len(KB) for kind, n in Counter(row["article_type"] for row in KB).items()}
    printed = {"article": 0.66, "feature_request": 0.32, "known_issue": 0.02}
    assert share == pytest.approx(printed, abs=0.02)


@pytest.mark.parametrize(
    ("name", "rows", "multi"),
    [("expertwritten", 60, 0.27), ("simulated", 60, 0.14), ("synthetic", len(KB), 0.0)],
)
def test_wixqa_sets_have_their_size_and_share_of_multi_article_rows(name, rows, multi):
    data = WIXQA[name]
    known = {row["id"] for row in KB}
    assert len(data) == rows
    assert len({row["question"] for row in data}) == rows
    for row in data:
        assert list(row) == ["question", "answer", "article_ids"]
        assert row["answer"].strip()
        assert row["article_ids"]
        assert set(row["article_ids"]) <= known
        assert len(set(row["article_ids"])) == len(row["article_ids"])
    share = statistics.mean(len(row["article_ids"]) > 1 for row in data)
    assert share == pytest.approx(multi, abs=0.01)


def test_synthetic_has_one_question_for_each_article():
    assert [row["article_ids"][0] for row in WIXQA["synthetic"]] == [row["id"] for row in KB]


def test_expert_answers_are_step_lists_and_the_longest():
    expert = WIXQA["expertwritten"]
    assert statistics.mean("\n2. " in row["answer"] for row in expert) > 0.7
    length = {
        name: statistics.median(len(words(row["answer"])) for row in rows)
        for name, rows in WIXQA.items()
    }
    assert length["expertwritten"] > length["synthetic"] > length["simulated"]


def test_wixqa_answers_take_their_figures_from_the_articles():
    text = {row["id"]: row["contents"] for row in KB}
    for row in itertools.chain(*WIXQA.values()):
        answer = re.sub(r"^\d+\. ", "", row["answer"], flags=re.M)
        known = set().union(
            numbers(row["question"]), *(numbers(text[i]) for i in row["article_ids"])
        )
        assert numbers(answer) - {"1", "2"} <= known, row["question"]


# The company's documents


def test_documents():
    for doc in DOCS:
        assert list(doc)[:4] == ["path", "doc_id", "source_type", "title"]
        assert list(doc)[-1] == "content"
        assert re.fullmatch(r"dsid_[0-9a-f]{32}", doc["doc_id"])
        assert doc["path"].startswith(doc["source_type"] + "/")
        assert doc["path"].endswith(".json")
        assert doc["title"].strip()
        assert len(doc["content"]) > 100
        assert all(isinstance(value, str | int) for value in doc.values()), "not flat"
    assert len(BY_ID) == len(DOCS) == 2000
    assert [doc["path"] for doc in DOCS] == sorted({doc["path"] for doc in DOCS})


def test_volumes_follow_the_benchmark():
    count = Counter(doc["source_type"] for doc in DOCS)
    assert set(count) == set(SOURCES)
    assert count.most_common(3) == [(source, count[source]) for source in SOURCES[:3]]
    assert min(count.values()) >= 30


def test_threads_are_dialogues_and_pages_have_tables():
    tables = []
    for doc in DOCS:
        if doc["source_type"] in ("slack", "fireflies"):
            people = {name.strip() for name in doc["participants"].split(";")}
            speakers = set(re.findall(r"^([A-Z][^:\n]{2,40}): ", doc["content"], flags=re.M))
            assert len(speakers & people) >= 2, doc["path"]
        elif doc["source_type"] == "confluence":
            tables.append("|---|" in doc["content"])
    assert statistics.mean(tables) > 0.5


def test_few_documents_have_a_very_close_sibling():
    """Half of the four-word phrases of the shorter one: 5 % at most, planted pairs included."""
    inside = [shingles(doc["content"]) for doc in DOCS]
    holders = defaultdict(list)
    for i, phrases in enumerate(inside):
        for phrase in phrases:
            holders[phrase].append(i)
    close = 0
    for i, phrases in enumerate(inside):
        shared = Counter(j for phrase in phrases for j in holders[phrase] if j != i)
        close += any(n > 0.5 * min(len(phrases), len(inside[j])) for j, n in shared.items())
    assert 0 < close / len(DOCS) < 0.05


def shingles(text):
    tokens = words(text)
    return {tuple(tokens[i : i + 4]) for i in range(len(tokens) - 3)}


# The company's questions


def test_questions_have_the_official_fields():
    fields = "question_id question_type source_types question expected_doc_ids gold_answer"
    for row in QUESTIONS + EXTRA:
        assert list(row) == [*fields.split(), "answer_facts"]
        assert row["answer_facts"]
        assert row["gold_answer"].strip()
        assert set(row["expected_doc_ids"]) <= set(BY_ID)
        assert set(row["source_types"]) == {
            BY_ID[i]["source_type"] for i in row["expected_doc_ids"]
        }
    ids = [row["question_id"] for row in QUESTIONS]
    assert ids == [f"qst_{i:04d}" for i in range(1, len(QUESTIONS) + 1)]
    assert len({row["question"] for row in QUESTIONS + EXTRA}) == len(QUESTIONS) + len(EXTRA)
    assert {row["question_type"] for row in EXTRA} == {"metadata"}
    assert (len(QUESTIONS), len(EXTRA)) == (200, 40)


def test_question_types_have_the_proportions_of_the_paper():
    assert list(dict.fromkeys(row["question_type"] for row in QUESTIONS)) == list(TYPES)
    for kind, (official, fewest, most) in TYPES.items():
        sizes = [len(row["expected_doc_ids"]) for row in of_type(kind)]
        assert len(sizes) == official * len(QUESTIONS) // 500
        assert fewest <= min(sizes) <= max(sizes) <= most


def test_numbers_in_facts_stand_in_the_gold_documents():
    for row in GROUNDED + EXTRA:
        read_as = full_text if row["question_type"] == "metadata" else visible
        known = set().union(*(numbers(read_as(BY_ID[i])) for i in row["expected_doc_ids"]))
        for fact in row["answer_facts"]:
            # What must not be said comes from elsewhere; a total or difference is in no document.
            if not re.search(r"\bmust not\b|\btotal\b|\bdifference\b", fact):
                assert numbers(fact) - {"1"} <= known, (row["question_id"], fact)


def test_intra_document_answers_need_two_passages():
    """What both facts speak of, by name or number, stands in more than one line."""
    for row in of_type("intra_document_reasoning"):
        lines = visible(BY_ID[row["expected_doc_ids"][0]]).split("\n")
        facts = " ".join(f for f in row["answer_facts"] if "must not" not in f)
        names = set(re.findall(r"\b[A-Z]\w+|\d[\d,.]*\d|\d", facts)) - {"Class", "The"}
        holding = [i for i, line in enumerate(lines) if any(name in line for name in names)]
        assert max(holding) - min(holding) >= 2, row["question"]


def test_constrained_questions_name_errors_that_a_distractor_would_cause():
    for row in of_type("constrained"):
        banned = [fact for fact in row["answer_facts"] if fact.startswith("The answer must not")]
        assert banned
        others = [visible(d) for d in DOCS if d["doc_id"] not in row["expected_doc_ids"]]
        for fact in banned:
            value = re.search(r"must not give (.+), which holds", fact)[1]
            assert any(value in text for text in others), fact


def stands(value, text):
    """Whether a value is there by itself, as 2 May is not in 12 May."""
    return re.search(rf"(?<![\w.,]){re.escape(value)}(?!\w)", text) is not None


def test_conflicting_questions_want_one_of_two_values():
    for row in of_type("conflicting_info"):
        texts = [visible(BY_ID[i]) for i in row["expected_doc_ids"]]
        sources = {BY_ID[i]["source_type"] for i in row["expected_doc_ids"]}
        assert len(sources) == 2
        old = re.search(r"must not give (.+) as the current", row["answer_facts"][-1])[1]
        new = row["answer_facts"][0].rpartition(": ")[2].removesuffix(".")
        assert old != new
        says = [[stands(value, text) for value in (old, new)] for text in texts]
        assert [True, False] in says, row["question"]
        assert [False, True] in says, row["question"]


def test_no_single_document_completes_a_completeness_answer():
    for row in of_type("completeness"):
        facts = [fact for fact in row["answer_facts"] if "total" not in fact]
        assert len(facts) >= len(row["expected_doc_ids"])
        names = [fact.partition(" has ")[0] for fact in facts]
        for doc_id in row["expected_doc_ids"]:
            text = visible(BY_ID[doc_id])
            assert 1 <= sum(name in text for name in names) < len(names)


def figure(text):
    return int(re.search(r"\d[\d,]*", text)[0].replace(",", ""))


def test_totals_of_completeness_answers_add_up():
    summed = [row for row in of_type("completeness") if "total" in row["answer_facts"][-1]]
    assert len(summed) >= 4
    for row in summed:
        total = row["answer_facts"][-1]
        parts = [figure(fact.partition(" has ")[2]) for fact in row["answer_facts"][:-1]]
        assert figure(total) == sum(parts)


def test_high_level_answers_stand_in_no_single_document():
    for row in of_type("high_level"):
        for doc in DOCS:
            text = visible(doc).lower()
            facts = [fact.rstrip(".").lower() for fact in row["answer_facts"]]
            assert not all(fact.rpartition(": ")[2] in text for fact in facts)


def test_info_not_found_answers_say_so():
    for row in of_type("info_not_found"):
        assert len(row["answer_facts"]) == 1
        assert "do not contain" in row["answer_facts"][0]


# Questions in the manner of DataMorgana


def test_liverag_rows_have_their_fields():
    fields = "Index Question Answer Supporting_Documents Answer_Claims Session DataMorgana_Config"
    for row in LIVERAG:
        assert list(row) == fields.split()
        assert list(row["Answer_Claims"]) == ["direct", "useful", "useless"]
        assert row["Answer_Claims"]["direct"]
        assert list(row["DataMorgana_Config"]) == list(CATEGORIZATIONS)
    assert [row["Index"] for row in LIVERAG] == list(range(1, 201))
    assert len({row["Question"] for row in LIVERAG}) == len(LIVERAG)


def test_liverag_documents_are_documents_of_the_company():
    documents = {}
    for row in LIVERAG:
        for doc in row["Supporting_Documents"]:
            assert documents.setdefault(doc["doc_id"], doc["content"]) == doc["content"]
            assert doc["content"] == visible(BY_ID[doc["doc_id"]])
    assert len(documents) > 150


@pytest.mark.parametrize("name", CATEGORIZATIONS)
def test_every_category_is_used(name):
    count = Counter(row["DataMorgana_Config"][name] for row in LIVERAG)
    assert set(count) == set(CATEGORIZATIONS[name].split())
    assert min(count.values()) >= 4


def test_two_documents_exactly_where_two_are_needed():
    for row in LIVERAG:
        kind = row["DataMorgana_Config"]["Answer Type"]
        expected = 2 if kind in ("comparison", "multi-aspect") else 1
        assert len({d["doc_id"] for d in row["Supporting_Documents"]}) == expected, row["Question"]


def test_claims_take_their_figures_from_the_documents():
    for row in LIVERAG:
        text = " ".join(doc["content"] for doc in row["Supporting_Documents"])
        known = numbers(text) | {"1", "2"}
        for claim in itertools.chain(*row["Answer_Claims"].values()):
            assert numbers(claim) <= known, claim
        assert numbers(row["Answer"]) <= known, row["Answer"]


# The five other question sets


@pytest.mark.parametrize("name", COMPARISON)
def test_comparison_sets_have_forty_questions(name):
    rows = COMPARISON[name]
    assert len(rows) == len({plain(row["question"]) for row in rows}) == 40
    for row in rows:
        assert list(row) == ["question", "answers"]
        assert row["answers"]
        assert all(answer.strip() for answer in row["answers"])


def test_comparison_sets_keep_the_manner_of_their_models():
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
    assert mean["simpleqa"] > mean["triviaqa"] > mean["natural_questions"]
    assert mean["natural_questions"] > mean["webquestions"]


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
