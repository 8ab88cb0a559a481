"""The embedded sample, checked from its bytes: layout, ids, proportions, and what each type promises.

Nothing of the package is used to read it, so that a mistake in a loader cannot hide one here.
"""

import csv
import hashlib
import itertools
import json
import os
import re
import statistics
import unicodedata
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "data" / "sample"
MIRROR = Path(os.environ.get("RAGKIT_DATA") or ROOT.parent / "shared" / "data")
FILES = sorted(SAMPLE.rglob("*.jsonl"))

# In the order of their volumes in EnterpriseRAG-Bench, Table 1.
VOLUMES = "slack gmail linear google_drive hubspot fireflies github jira confluence"
SOURCES = VOLUMES.split()
# Questions of each type there, Table 2.
TYPES = {
    "basic": 175,
    "semantic": 125,
    "intra_document_reasoning": 40,
    "project_related": 40,
    "constrained": 30,
    "conflicting_info": 20,
    "completeness": 20,
    "miscellaneous": 20,
    "high_level": 10,
    "info_not_found": 20,
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
COMMON = """
    a about after all also an and any are as at be been before by can did do does for from had has
    have how if in into is it its may must no not of on one only or our out so than that the their
    them then there they this to up was we were what when where which who why will with would you
"""
STOP = frozenset(COMMON.split())
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


def content_words(text):
    """Words that carry meaning, cut to five letters so that 'bridge' meets 'bridges'."""
    return {w[:5] for w in words(text) if w not in STOP and len(w) > 2}


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


def by_question(rows):
    return [pytest.param(row, id=row["question_id"]) for row in rows]


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
    assert sum(path.stat().st_size for path in SAMPLE.rglob("*") if path.is_file()) < 1_000_000
    assert (SAMPLE / "README.md").read_text("utf-8").strip()


# The help centre


def test_article_ids_are_hashes_of_their_addresses():
    for row in KB:
        assert list(row) == ["id", "url", "contents", "article_type", "title"]
        assert row["id"] == hashlib.sha256(row["url"].encode()).hexdigest()
        assert row["contents"].startswith(row["title"])
        assert 80 <= len(words(row["contents"])) <= 400, row["title"]
    for key in ("id", "url", "title", "contents"):
        assert len({row[key] for row in KB}) == len(KB) >= 36


def test_article_types_have_the_proportions_of_the_paper():
    count = Counter(row["article_type"] for row in KB)
    assert set(count) == {"article", "feature_request", "known_issue"}
    assert count["article"] / len(KB) == pytest.approx(0.66, abs=0.02)
    assert count["feature_request"] / len(KB) == pytest.approx(0.32, abs=0.02)
    assert count["known_issue"] == 1


@pytest.mark.parametrize(
    ("name", "rows", "multi"),
    [("expertwritten", 22, 0.27), ("simulated", 14, 0.14), ("synthetic", len(KB), 0.0)],
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
    assert statistics.mean(len(row["article_ids"]) > 1 for row in data) == pytest.approx(
        multi, abs=0.005
    )


def test_synthetic_has_one_question_for_each_article():
    assert [row["article_ids"][0] for row in WIXQA["synthetic"]] == [row["id"] for row in KB]


def test_expert_answers_are_step_lists_and_the_longest():
    expert = WIXQA["expertwritten"]
    assert statistics.mean("\n2. " in row["answer"] for row in expert) > 0.7
    length = {
        name: statistics.median(len(words(row["answer"])) for row in rows)
        for name, rows in WIXQA.items()
    }
    assert length["expertwritten"] > length["synthetic"] >= length["simulated"] * 0.9


def test_wixqa_answers_take_their_figures_from_the_articles():
    text = {row["id"]: row["contents"] for row in KB}
    for row in itertools.chain(*WIXQA.values()):
        answer = re.sub(r"^\d+\. ", "", row["answer"], flags=re.M)
        known = set().union(
            numbers(row["question"]), *(numbers(text[i]) for i in row["article_ids"])
        )
        assert numbers(answer) - {"1", "2"} <= known, row["question"]


def test_some_articles_are_close_to_each_other():
    sets = [content_words(row["contents"]) for row in KB]
    nearest = [
        max(len(a & b) / len(a | b) for j, b in enumerate(sets) if j != i)
        for i, a in enumerate(sets)
    ]
    assert sum(value > 0.15 for value in nearest) >= 10
    assert max(nearest) < 0.6


# The company's documents


def test_documents_have_ids_from_their_paths():
    for doc in DOCS:
        assert list(doc)[:4] == ["path", "doc_id", "source_type", "title"]
        assert list(doc)[-1] == "content"
        assert doc["doc_id"] == "dsid_" + hashlib.md5(doc["path"].encode()).hexdigest()
        assert doc["path"].startswith(doc["source_type"] + "/")
        assert doc["path"].endswith(".json")
        assert doc["title"].strip()
        assert len(doc["content"]) > 300
        assert all(isinstance(value, str | int) for value in doc.values()), "not flat"
    assert len(BY_ID) == len(DOCS) >= 60
    assert [doc["path"] for doc in DOCS] == sorted(doc["path"] for doc in DOCS)


def test_volumes_follow_the_order_of_the_benchmark():
    count = Counter(doc["source_type"] for doc in DOCS)
    assert set(count) == set(SOURCES)
    volumes = [count[source] for source in SOURCES]
    assert volumes == sorted(volumes, reverse=True)
    assert min(volumes) >= 3


def test_each_source_keeps_its_own_keys():
    for source in SOURCES:
        keys = [set(doc) for doc in DOCS if doc["source_type"] == source]
        common = set.intersection(*keys)
        assert len(common - {"path", "doc_id", "source_type", "title", "content"}) >= 2, source


def test_threads_are_dialogues_and_pages_have_tables():
    for doc in DOCS:
        if doc["source_type"] in ("slack", "fireflies"):
            people = {name.strip() for name in doc["participants"].split(";")}
            speakers = set(re.findall(r"^([A-Z][^:\n]{2,40}): ", doc["content"], flags=re.M))
            assert len(speakers & people) >= 2, doc["path"]
            assert speakers <= people, doc["path"]
    pages = [doc for doc in DOCS if doc["source_type"] == "confluence"]
    assert all("|---|" in doc["content"] for doc in pages)


def test_ticket_numbers_refer_to_other_documents():
    tickets = {doc.get("identifier") or doc.get("key") for doc in DOCS} - {None}
    mentions = {
        ticket: [d for d in DOCS if ticket in d["content"] and ticket not in d["path"]]
        for ticket in tickets
    }
    assert sum(bool(found) for found in mentions.values()) >= 5


def test_double_payments_are_the_same_in_every_document():
    def numbers_at(part):
        (doc,) = [doc for doc in DOCS if part in doc["path"]]
        return {int(n) for n in numbers(doc["content"]) if n.isdigit()}

    operators = {
        "corrie-sound/2025-12-04": 9_412,
        "bay-of-tarn": 11_400,
        "SUP-1204": 12_105,
        "inc-212-review": 8_953,
    }
    for part, amount in operators.items():
        assert amount in numbers_at(part), part
    total = sum(operators.values())
    for part in ("2025-12-03-inc-212", "inc-212-review", "incident-register"):
        assert total in numbers_at(part), part
    assert set(operators.values()) <= numbers_at("inc-212-review")


def test_only_the_planted_pair_is_nearly_the_same():
    def shingles(text):
        tokens = words(text)
        return {tuple(tokens[i : i + 4]) for i in range(len(tokens) - 3)}

    sets = {doc["path"]: shingles(doc["content"]) for doc in DOCS}
    near = [
        {a, b}
        for (a, x), (b, y) in itertools.combinations(sets.items(), 2)
        if len(x & y) / min(len(x), len(y)) > 0.25
    ]
    assert near == [
        {
            "gmail/finance/2026-02-03-month-end.json",
            "google_drive/marketing/brand/month-end-reconciliation.json",
        }
    ]


def test_two_documents_are_misfiled():
    strays = [
        doc["path"]
        for doc in DOCS
        if doc["source_type"] == "linear" and doc["team"].lower() != doc["path"].split("/")[1]
    ]
    assert strays == ["linear/notices/BRD-440.json"]
    brand = [d for d in DOCS if d["path"].startswith("google_drive/marketing/brand/")]
    assert ["reconciliation" in d["title"] for d in brand] == [True]


# The company's questions


def test_questions_have_the_official_fields():
    for row in QUESTIONS + EXTRA:
        assert list(row) == [
            "question_id",
            "question_type",
            "source_types",
            "question",
            "expected_doc_ids",
            "gold_answer",
            "answer_facts",
        ]
        assert row["answer_facts"]
        assert row["gold_answer"].strip()
        assert set(row["expected_doc_ids"]) <= set(BY_ID)
        gold = {BY_ID[i]["source_type"] for i in row["expected_doc_ids"]}
        assert row["source_types"] == sorted(gold)
    ids = [row["question_id"] for row in QUESTIONS]
    assert ids == [f"qst_{i:04d}" for i in range(1, len(QUESTIONS) + 1)]
    assert len({row["question"] for row in QUESTIONS + EXTRA}) == len(QUESTIONS) + len(EXTRA)
    assert {row["question_type"] for row in EXTRA} == {"metadata"}
    assert len(EXTRA) >= 5


def test_every_question_type_is_there_in_rough_proportion():
    count = Counter(row["question_type"] for row in QUESTIONS)
    assert list(dict.fromkeys(row["question_type"] for row in QUESTIONS)) == list(TYPES)
    assert len(QUESTIONS) >= 44
    assert min(count.values()) >= 2
    for kind, official in TYPES.items():
        assert abs(count[kind] - official / 500 * len(QUESTIONS)) <= 2, kind


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("basic", {1}),
        ("semantic", {1}),
        ("intra_document_reasoning", {1}),
        ("project_related", {2, 3, 4}),
        ("constrained", {1, 2}),
        ("conflicting_info", {2}),
        ("completeness", {4, 5, 6}),
        ("miscellaneous", {1}),
        ("high_level", {0}),
        ("info_not_found", {0}),
    ],
)
def test_gold_sets_have_the_size_of_their_type(kind, sizes):
    assert {len(row["expected_doc_ids"]) for row in of_type(kind)} <= sizes


@pytest.mark.parametrize("row", by_question(GROUNDED + EXTRA))
def test_numbers_in_facts_stand_in_the_gold_documents(row):
    read_as = full_text if row["question_type"] == "metadata" else visible
    known = set()
    for doc_id in row["expected_doc_ids"]:
        known |= numbers(read_as(BY_ID[doc_id]))
    for fact in row["answer_facts"]:
        # What must not be said comes from elsewhere, and a total is in no document.
        if not re.search(r"\bmust not\b|\btotal\b", fact):
            assert numbers(fact) - {"1"} <= known, fact


@pytest.mark.parametrize("row", by_question(GROUNDED))
def test_gold_documents_share_words_with_the_facts(row):
    gold = set().union(*(content_words(visible(BY_ID[i])) for i in row["expected_doc_ids"]))
    facts = [f.removeprefix("The answer must state ") for f in row["answer_facts"]]
    facts = [content_words(f) for f in facts if not f.startswith("The answer m")]
    assert statistics.mean(len(f & gold) / len(f) for f in facts) >= 0.5


def share_of_words_in_gold(row):
    question = content_words(row["question"])
    return len(question & content_words(visible(BY_ID[row["expected_doc_ids"][0]]))) / len(question)


def test_semantic_questions_share_few_words_with_their_document():
    semantic = [share_of_words_in_gold(row) for row in of_type("semantic")]
    basic = [share_of_words_in_gold(row) for row in of_type("basic")]
    assert max(semantic) <= 0.5
    assert statistics.mean(semantic) < 0.6 * statistics.mean(basic)


@pytest.mark.parametrize("row", by_question(of_type("intra_document_reasoning")))
def test_intra_document_answers_come_from_distant_passages(row):
    content = BY_ID[row["expected_doc_ids"][0]]["content"]
    assert len(content) > statistics.median(len(doc["content"]) for doc in DOCS)
    spots, position = [], 0
    lines = []
    for line in content.split("\n"):
        lines.append((position, content_words(line) | numbers(line)))
        position += len(line) + 1
    for fact in row["answer_facts"]:
        wanted = content_words(fact) | numbers(fact)
        spots.append(max(lines, key=lambda item: len(item[1] & wanted))[0])
    assert max(spots) - min(spots) > 400


@pytest.mark.parametrize("row", by_question(of_type("constrained")))
def test_constrained_questions_name_errors_that_a_distractor_would_cause(row):
    banned = [fact for fact in row["answer_facts"] if fact.startswith("The answer must not")]
    assert banned
    others = " ".join(visible(d) for d in DOCS if d["doc_id"] not in row["expected_doc_ids"])
    for fact in banned:
        names = re.findall(r"[A-Z][\w-]+(?: [A-Z&][\w-]*)*|\d[\d,]+", fact.removeprefix("The "))
        assert names, fact
        assert any(name in others for name in names), fact


@pytest.mark.parametrize("row", by_question(of_type("conflicting_info")))
def test_conflicting_questions_want_the_newer_value(row):
    def day(doc):
        return doc.get("date") or doc.get("last_modified")

    old, new = sorted((BY_ID[i] for i in row["expected_doc_ids"]), key=day)
    assert old["source_type"] != new["source_type"]
    current = numbers(row["answer_facts"][0]) - {"2026"}
    outdated = numbers(row["answer_facts"][-1]) - {"2026"}
    assert row["answer_facts"][-1].startswith("The answer must not")
    assert current
    assert outdated
    assert current <= numbers(new["content"])
    assert outdated <= numbers(old["content"])
    assert not outdated & current
    assert not (current - {"2026"}) <= numbers(old["content"])


@pytest.mark.parametrize("row", by_question(of_type("completeness")))
def test_no_single_document_completes_a_completeness_answer(row):
    facts = [fact for fact in row["answer_facts"] if "total" not in fact]
    assert len(facts) >= len(row["expected_doc_ids"])
    names = [re.match(r"\S+", fact).group() for fact in facts]
    for doc_id in row["expected_doc_ids"]:
        text = visible(BY_ID[doc_id]).lower()
        assert 1 <= sum(name.lower() in text for name in names) < len(names)


def test_tallies_of_handhelds_add_up():
    row = next(r for r in of_type("completeness") if "T40" in r["question"])
    counts = [int(re.search(r"(\d+) T40s", f).group(1)) for f in row["answer_facts"][:-1]]
    assert f"The total is {sum(counts)}." == row["answer_facts"][-1]


def test_miscellaneous_questions_ask_about_informal_places():
    places = [BY_ID[row["expected_doc_ids"][0]]["path"] for row in of_type("miscellaneous")]
    assert all(re.search(r"/(memes|misc-assets|hackathons)/", place) for place in places)


def test_high_level_answers_stand_in_no_single_document():
    names = ("PETREL", "KITTIWAKE", "GANNET")
    projects, customers = of_type("high_level")
    assert all(name in projects["gold_answer"] for name in names)
    for doc in DOCS:
        assert not all(name.lower() in visible(doc).lower() for name in names), doc["path"]
    for name in names:
        assert any(name.lower() in visible(doc).lower() for doc in DOCS)
    countries = ("Scotland", "Ireland", "Norway", "England", "Wales")
    assert all(country in customers["gold_answer"] for country in countries)
    for doc in DOCS:
        assert not all(country in visible(doc) for country in countries)


@pytest.mark.parametrize(
    ("subject", "present", "absent"),
    [
        (
            "Tonnery",
            r"\bTonnery\b.*minimum|minimum.*Tonnery",
            r"surcharge|Polish (mobile )?numbers",
        ),
        ("INC-219", r"INC-219", r"night desk|midnight|second commander|telephone number"),
        ("Kestrel", r"\bT60", r"Kestrel[^|]{0,200}\bT60|\bT60[^|]{0,200}Kestrel"),
    ],
)
def test_info_not_found_subjects_are_there_and_the_details_are_not(subject, present, absent):
    row = next(r for r in of_type("info_not_found") if subject in r["question"])
    texts = [visible(doc) for doc in DOCS]
    assert any(re.search(present, text, flags=re.S) for text in texts), "nothing plausible to find"
    assert not any(re.search(absent, text, flags=re.S | re.I) for text in texts)
    assert len(row["answer_facts"]) == 1


# Questions in the manner of DataMorgana


def liverag(**wanted):
    keys = {key.replace("_", " "): value for key, value in wanted.items()}
    return [r for r in LIVERAG if all(r["DataMorgana_Config"][k] == v for k, v in keys.items())]


def test_liverag_rows_have_their_fields():
    for row in LIVERAG:
        assert list(row) == [
            "Index",
            "Question",
            "Answer",
            "Supporting_Documents",
            "Answer_Claims",
            "Session",
            "DataMorgana_Config",
        ]
        assert list(row["Answer_Claims"]) == ["direct", "useful", "useless"]
        assert row["Answer_Claims"]["direct"]
        assert list(row["DataMorgana_Config"]) == list(CATEGORIZATIONS)
    assert [row["Index"] for row in LIVERAG] == list(range(1, len(LIVERAG) + 1))
    assert len({row["Question"] for row in LIVERAG}) == len(LIVERAG) >= 60


def test_liverag_documents_are_consistent():
    documents = {}
    for row in LIVERAG:
        for doc in row["Supporting_Documents"]:
            assert re.fullmatch(
                r"<urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}>", doc["doc_id"]
            )
            assert documents.setdefault(doc["doc_id"], doc["content"]) == doc["content"]
            assert 100 <= len(words(doc["content"])) <= 250
    assert len(documents) >= 24
    assert len(set(documents.values())) == len(documents)


@pytest.mark.parametrize("name", CATEGORIZATIONS)
def test_every_category_is_used(name):
    count = Counter(row["DataMorgana_Config"][name] for row in LIVERAG)
    assert set(count) == set(CATEGORIZATIONS[name].split())
    assert min(count.values()) >= 4


def test_sessions_are_44_44_and_12_percent():
    share = {k: v / len(LIVERAG) for k, v in Counter(r["Session"] for r in LIVERAG).items()}
    assert share == {
        "First": pytest.approx(395 / 895, abs=0.01),
        "Second": pytest.approx(395 / 895, abs=0.01),
        "Both": pytest.approx(105 / 895, abs=0.01),
    }


def test_two_documents_exactly_where_two_are_needed():
    for row in LIVERAG:
        kind = row["DataMorgana_Config"]["Answer Type"]
        expected = 2 if kind in ("comparison", "multi-aspect") else 1
        assert len({d["doc_id"] for d in row["Supporting_Documents"]}) == expected, row["Question"]


def test_two_document_answers_need_both():
    for row in LIVERAG:
        if len(row["Supporting_Documents"]) == 2:
            first, second = (content_words(d["content"]) for d in row["Supporting_Documents"])
            claims = [content_words(claim) for claim in row["Answer_Claims"]["direct"]]
            assert any(len(c & first) > len(c & second) for c in claims), row["Question"]
            assert any(len(c & second) > len(c & first) for c in claims), row["Question"]


@pytest.mark.parametrize(
    ("phrasing", "fewest", "most"),
    [
        ("concise-and-natural", 3, 9),
        ("verbose-and-natural", 10, 60),
        ("short-search-query", 2, 6),
        ("long-search-query", 7, 20),
    ],
)
def test_phrasing_has_its_length(phrasing, fewest, most):
    for row in liverag(Phrasing=phrasing):
        assert fewest <= len(row["Question"].split()) <= most, row["Question"]
        if "search" in phrasing:
            assert not row["Question"].endswith(("?", ".", "!")), row["Question"]
        else:
            assert row["Question"][-1] in "?.", row["Question"]


def test_polite_questions_have_the_words_for_it_and_neutral_ones_do_not():
    courtesy = r"\b(please|pleese|could you|would you|kindly|kind|grateful|delighted|appreciate)\b"
    for row in LIVERAG:
        polite = row["DataMorgana_Config"]["Politeness"] == "polite"
        assert bool(re.search(courtesy, row["Question"].lower())) == polite, row["Question"]


def test_styles_are_asked_for_in_the_question():
    brief = r"\b(just|briefly|brief|short|name only)\b"
    full = r"\b(detail|detailed|comprehensive|background|thorough)\b"
    for row in LIVERAG:
        style, text = row["DataMorgana_Config"]["Answer Style"], row["Question"].lower()
        assert bool(re.search(brief, text)) == (style == "concise-answer"), text
        assert bool(re.search(full, text)) == (style == "detailed-answer"), text


def test_premises_come_first():
    for row in liverag(Premise="with-premise"):
        first = re.split(r"(?<=[.:,?])\s", row["Question"])[0]
        assert re.match(r"(I|I'm|I'd|My|As|For|Researching|Looking|bees)\b", first, re.I), first


def test_mistakes_are_more_frequent_the_more_severe_they_are():
    """A word is unknown if no well-spelt text of the whole sample has it."""
    vocabulary = set()
    for row in LIVERAG:
        vocabulary |= set(words(row["Answer"]))
        for doc in row["Supporting_Documents"]:
            vocabulary |= set(words(doc["content"]))
        if row["DataMorgana_Config"]["Linguistic Correctness"] == "correct":
            vocabulary |= set(words(row["Question"]))
    for row in itertools.chain(KB, DOCS):
        vocabulary |= set(words(full_text(row)))
    for row in itertools.chain(*COMPARISON.values(), WIXQA["synthetic"], WIXQA["simulated"]):
        vocabulary |= set(words(row["question"]))

    def unknown(kind):
        rows = liverag(**{"Linguistic_Correctness": kind})
        return [len([w for w in words(r["Question"]) if w not in vocabulary]) for r in rows]

    mild, severe = unknown("mild-mistakes"), unknown("severe-mistakes")
    assert min(mild) >= 1
    assert max(mild) <= 2
    assert min(severe) >= 2
    assert statistics.mean(severe) > 2 * statistics.mean(mild)


def test_distant_questions_share_fewer_words_with_their_documents():
    def share(row):
        question = content_words(row["Question"])
        text = " ".join(doc["content"] for doc in row["Supporting_Documents"])
        return len(question & content_words(text)) / len(question)

    correct = {"Linguistic_Correctness": "correct"}
    similar = liverag(Linguistic_Variation="similar-to-document", **correct)
    distant = liverag(Linguistic_Variation="distant-from-document", **correct)
    assert statistics.mean(map(share, distant)) < statistics.mean(map(share, similar)) - 0.1


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
