"""BM25 and its words against Lucene itself, in a Java machine of its own."""

from __future__ import annotations

import random
import tomllib

import pytest

from ragkit import datasets
from ragkit.systems.retrieval import BM25
from ragkit.systems.retrieval.analysis import TABLE, lower, standard_words
from tests.systems.retrieval import lucene, zipf

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(lucene.why_not() is not None, reason=str(lucene.why_not())),
]
K = 10
NEEDED = 0.999


@pytest.fixture(scope="module")
def real(mirror):
    def load(name):
        return datasets.load(name, profile="paper", data=mirror)

    wixqa = load("wixqa")
    articles = (wixqa.documents["title"] + "\n\n" + wixqa.documents["text"]).tolist()
    others = [load(name).questions["text"].tolist() for name in ("enterpriserag_bench", "liverag")]
    return articles, wixqa.questions["text"].tolist() + sum(others, [])


def test_real_texts_have_the_same_words_and_ranked_lists(real):
    articles, questions = real
    texts = articles + questions
    assert len(questions) >= 1000
    assert ours(texts) == lucene.tokens(texts)
    assert same(texts, texts) >= NEEDED


def test_made_documents_have_the_same_ranked_lists():
    texts = [entry["text"] for entry in zipf.documents(50_000)]
    asked = zipf.queries(texts, 1000)
    rng = random.Random(2)
    asked = [f"{text} {rng.choice(text.split())}" for text in asked]  # a word twice
    assert same(texts, asked) >= NEEDED


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (2.0, 1.0), (1.2, 0.0), (0.0, 0.75)])
def test_other_parameters(k1, b):
    texts = [entry["text"] for entry in zipf.documents(1000, words=80)]
    assert same(texts, zipf.queries(texts, 200), k1=k1, b=b) >= NEEDED


def test_mixed_scripts_have_the_same_words():
    rng = random.Random(1)
    parts = list("ab1 2.'\",_:;אカアー中ひกข#*-한ΣİÄ\n¹½@/") + [
        *("\u200d", "\ufe0f", "\u0301", "\u00ad", "’", "１", "𐐀", "々", "http://", " "),
        *("👍", "👍🏽", "☕", "👩‍👧", "🇩🇪", "1️⃣", "©", "★"),
    ]
    texts = ["".join(rng.choices(parts, k=rng.randint(1, 12))) for _ in range(20_000)]
    expected, found = lucene.tokens(texts), ours(texts)
    equal = sum(map(list.__eq__, found, expected)) / len(texts)
    assert equal >= NEEDED, next(zip(texts, found, expected, strict=True))


def test_character_classes_end_where_lucenes_do():
    edges = set()
    for ranges in tomllib.loads(TABLE.read_text("utf-8")).values():
        for part in ranges.split():
            low, high = int(part.split("-")[0], 16), int(part.split("-")[-1], 16)
            edges |= {low - 1, low, (low + high) // 2, high, high + 1}
    edges = sorted(edges - set(range(0xD800, 0xE000)))
    around = ("{}", "a{}b", "1{}2", "ア{}イ", "{}a", "{}{}")
    texts = ["\n".join(text.format(*[chr(point)] * 2) for text in around) for point in edges]
    assert ours(texts) == lucene.tokens(texts)


def ours(texts) -> list[list[str]]:
    return [list(map(lower, standard_words(text))) for text in texts]


def same(texts, asked, **options) -> float:
    """Return the share of queries with the same documents in the same order, scores included."""
    expected = lucene.hits(texts, asked, K, **options)
    entries = ({"doc_id": str(n), "text": text} for n, text in enumerate(texts))
    runs = BM25(fields=("text",), **options).fit(entries).search(asked, K)
    found = [[] for _ in asked]
    for row in runs.itertuples():
        found[int(row.question_id)].append([int(row.doc_id), row.score])
    return sum(map(list.__eq__, found, expected)) / len(expected)
