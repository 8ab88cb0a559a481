"""Recall and costs against corpus size: a tiny corpus worked by hand, and what is kept."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragkit.errors import DataError, UsageError
from ragkit.measures import corpus, metrics, stats
from ragkit.store import Store
from ragkit.systems import sweep
from ragkit.systems.retrieval import BM25
from ragkit.systems.sweep import sizes
from tests.conftest import frame_of

# Two gold documents, and eight that outrank one of them: "red fish" in a longer text loses against
# the short "red", whichever of those are in the sample.
RED = [f"r{number}" for number in range(8)]
DOCUMENTS = frame_of(
    "documents",
    ("gold-1", "made", "", "red in a sentence of many more words than one"),
    *((name, "made", "", "red") for name in RED),
    ("gold-2", "made", "", "unique zebra"),
)
QUESTIONS = frame_of(
    "questions",
    ("q1", "red", "basic", None, (), ("gold-1",)),
    ("q2", "zebra", "basic", None, (), ("gold-2",)),
    ("q3", "red zebra", "both", None, (), ("gold-1", "gold-2")),
    ("q4", "nothing of the kind", "absent", None, (), ()),
)


def run(sizes=(3, 5, 10), systems=None, **options):
    options = {"k": 3, "timed": 2, "density": 5, **options}
    return sweep.scaling(DOCUMENTS, QUESTIONS, sizes, systems or {"words": "bm25"}, **options)


def test_recall_worked_by_hand():
    found = run()
    # k = 3: the one short "red" of the first sample leaves gold-1 a place; from four on, none.
    # A question without gold documents has no recall.
    assert found.table("words").to_dict("index") == {
        "q1": {3: 1.0, 5: 0.0, 10: 0.0},
        "q2": {3: 1.0, 5: 1.0, 10: 1.0},
        "q3": {3: 1.0, 5: 0.5, 10: 0.5},
    }
    assert list(found.recalls["type"][:3]) == ["basic", "basic", "both"]
    summary = found.summary(n_resamples=200)
    assert summary["mean"].tolist() == pytest.approx([1, 0.5, 0.5])
    assert summary["n"].tolist() == [3, 3, 3]
    typed = found.summary(by_type=True, n_resamples=200).set_index(["type", "size"])["mean"]
    assert typed["basic", 10] == 0.5
    assert typed["both", 10] == 0.5
    assert repr(found) == "<Scaling: 1 systems, 3 sizes from 3 to 10 documents, 3 questions>"
    assert "Mean recall@3 (0 to 1, higher is better)" in found._repr_html_()


def test_recall_is_that_of_the_metrics():
    rows = corpus.nested(list(DOCUMENTS["doc_id"]), ["gold-1", "gold-2"], [5], seed=4)[5]
    runs = BM25(system="words").fit(DOCUMENTS.iloc[rows]).search(QUESTIONS, 3)
    scores = metrics.retrieval(runs, QUESTIONS, measures=["R@3"]).set_index("item_id")["score"]
    assert run([5], seed=4).table("words")[5].to_dict() == scores.to_dict()


def test_what_the_costs_say():
    costs = run(timed=10).costs
    assert costs["size"].tolist() == costs["indexed"].tolist() == [3, 5, 10]
    assert (costs["queries"] == 4).all()  # there are no more
    assert (costs["index_bytes"].diff().dropna() > 0).all()
    assert (costs[["index_seconds", "query_ms"]] > 0).all(axis=None)
    assert (costs["query_ms"] <= costs["query_ms_p95"]).all()


def test_documents_are_read_once_from_a_stream():
    calls = []

    def stream():
        calls.append(1)
        yield from DOCUMENTS.to_dict("records")

    found = sweep.scaling(
        stream, QUESTIONS, {"a": [3, 10], "b": [5]}, {"a": "bm25", "b": "bm25"}, k=3
    )
    assert len(calls) == 1
    assert found.costs[["system", "size"]].to_numpy().tolist() == [["a", 3], ["a", 10], ["b", 5]]
    assert found.table("a").equals(run([3, 10]).table("words"))


def test_every_sample_holds_the_gold_and_rises(tmp_path, monkeypatch):
    seen = []

    class Watched(BM25):
        def fit(self, documents):
            super().fit(documents)
            seen.append(list(self.doc_ids_))
            return self

    monkeypatch.setattr(sizes, "BM25", Watched)
    run([10, 3, 5], store=tmp_path / "store")
    assert [len(ids) for ids in seen] == [3, 5, 10]
    assert all({"gold-1", "gold-2"} <= set(ids) for ids in seen)
    assert set(seen[0]) < set(seen[1]) < set(seen[2])
    order = list(DOCUMENTS["doc_id"])
    assert all(ids == sorted(ids, key=order.index) for ids in seen)  # ties as in the corpus


def test_the_same_seed_gives_the_same_numbers():
    texts = [f"word{n % 7} thing{n % 11} name{n % 5} and word{n % 3}" for n in range(60)]
    made = pd.DataFrame({"doc_id": [f"d{n}" for n in range(60)], "title": "", "text": texts})
    asked = QUESTIONS.iloc[:2].assign(text=["word3 thing4", "name2 word6"])
    asked["gold_doc_ids"] = [("d3",), ("d7",)]
    options = {"systems": {"lsa": "lsa:4"}, "k": 5, "timed": 1, "density": 20}
    both = [sweep.scaling(made, asked, [30, 60], seed=seed, **options) for seed in (1, 1, 2)]
    assert both[0].recalls.equals(both[1].recalls)
    pd.testing.assert_frame_equal(both[0].density, both[1].density)
    assert not both[0].density.equals(both[2].density)
    assert both[0].density["n"].tolist() == [20, 20]
    assert both[0].density["mean"].between(-1, 1).all()
    # Local density at a size is that of the sample's vectors.
    rows = corpus.nested(list(made["doc_id"]), ["d3", "d7"], [30, 60], 1)
    encoder = sweep.LSA(4, seed=1).fit([texts[row] for row in rows[30]])
    vectors = encoder.encode(texts)
    assert both[0].density["mean"].iloc[1] == pytest.approx(
        corpus.local_density(vectors, 20, 10, 1).estimate, abs=1e-6
    )


def test_a_second_run_computes_nothing(tmp_path):
    def broken():
        raise AssertionError("the corpus was read again")

    options = {"k": 3, "identity": "made-1", "store": tmp_path / "s", "timed": 2, "density": 5}
    first = sweep.scaling(lambda: [DOCUMENTS], QUESTIONS, [3, 10], {"words": "bm25"}, **options)
    again = sweep.scaling(broken, QUESTIONS, [3, 10], {"words": "bm25"}, **options)
    pd.testing.assert_frame_equal(first.recalls, again.recalls)
    pd.testing.assert_frame_equal(first.costs, again.costs)
    # Whatever decides the numbers is computed anew: a size, a question, the seed, the corpus.
    for changed in (
        {"sizes": [3, 5]},
        {"questions": QUESTIONS.assign(text="zebra")},
        {"seed": 1},
        {"identity": "made-2"},
        {"k": 2},
    ):
        asked = {"questions": QUESTIONS, "sizes": [3, 10], **options, **changed}
        with pytest.raises(AssertionError, match="read again"):
            sweep.scaling(
                broken, asked.pop("questions"), asked.pop("sizes"), {"w": "bm25"}, **asked
            )
    # Without a name, the digest of the texts stands for a corpus.
    options = {"k": 3, "store": tmp_path / "t", "timed": 2}
    for documents, kept in ((DOCUMENTS, 1), (DOCUMENTS, 1), (DOCUMENTS.assign(text="red"), 2)):
        sweep.scaling(documents, QUESTIONS, [3], {"words": "bm25"}, **options)
        assert Store(tmp_path / "t")._base.execute("SELECT COUNT(*) FROM results").fetchone() == (
            kept,
        )


def test_what_the_fits_say():
    # Odds 3 at 10^3, 1 at 10^5, and at 10^7 a quarter as the line says, or nothing at all.
    rows = {10**3: [1, 1, 1, 0], 10**5: [1, 1, 0, 0], 10**7: [1, 0, 0, 0]}
    recalls = pd.DataFrame(
        [
            ("line", size, f"q{n}", "basic", float(value))
            for size, values in rows.items()
            for n, value in enumerate(values * 10)
        ],
        columns=["system", "size", "question_id", "type", "recall"],
    )
    found = sweep.Scaling(recalls, pd.DataFrame(), pd.DataFrame(), 10)
    tested = found.tested(n_resamples=200)
    assert tested["line"].before.slope == pytest.approx(-np.log(3) / 2, rel=1e-2)
    row = sweep.slopes(tested).iloc[0]
    assert row["odds"] == pytest.approx(3**-0.5, rel=1e-2)
    assert row["odds_low"] < row["odds"] < row["odds_high"]
    assert row["predicted"] == pytest.approx(0.25, abs=0.01)
    assert row["observed"] == 0.25
    assert row["inside"]
    assert row["straight"]
    assert sweep.Scaling(recalls[recalls["size"] < 10**6], None, None, 10).tested() == {}
    with pytest.raises(DataError, match="no system was measured at three sizes"):
        sweep.slopes({})
    with pytest.raises(UsageError, match="no system 'lin'"):
        found.table("lin")
    interval = found.summary(n_resamples=300).iloc[0]
    values = recalls[recalls["size"] == 1000].sort_values("question_id")["recall"]
    expected = stats.bootstrap_interval(values, n_resamples=300)
    assert tuple(interval[["mean", "low", "high"]]) == tuple(expected[:3])


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"systems": {}}, UsageError, "should be named"),
        ({"systems": {"a": "bm26"}}, UsageError, "'a': expected 'bm25'"),
        ({"systems": {"a": "dense"}}, UsageError, "dense:ENCODER"),
        ({"systems": {"a": "lsa:many"}}, UsageError, "lsa:DIMENSIONS"),
        ({"systems": {"a": "dense:nothing"}}, UsageError, "no encoder 'nothing'"),
        ({"sizes": []}, UsageError, "different numbers"),
        ({"sizes": [3, 3]}, UsageError, "different numbers"),
        ({"sizes": [0]}, UsageError, "a size"),
        ({"sizes": {"other": [3]}}, UsageError, "no sizes for the system 'a'"),
        ({"sizes": [1]}, DataError, "sample of 1 does not fit: 2 gold"),
        ({"sizes": [11]}, DataError, "sample of 11"),
        ({"k": 0}, UsageError, "k should be"),
        ({"timed": 0}, UsageError, "timed"),
        ({"questions": QUESTIONS.iloc[3:]}, DataError, "no question has gold"),
        ({"questions": QUESTIONS.drop(columns="text")}, DataError, "text"),
        ({"documents": DOCUMENTS.iloc[1:]}, DataError, "1 gold documents are not in the corpus"),
        ({"documents": DOCUMENTS.drop(columns="title")}, DataError, "title"),
    ],
)
def test_bad_input(change, error, words):
    asked = {"documents": DOCUMENTS, "questions": QUESTIONS, "sizes": [3], "systems": {"a": "bm25"}}
    with pytest.raises(error, match=words):
        sweep.scaling(**{**asked, **change})


def test_lsa():
    texts = ["the cat sat", "the dog sat", "a cat and a dog", "stars at night", "night of stars"]
    encoder = sweep.LSA(2).fit(iter(texts))
    vectors = encoder.encode([*texts, "words that nobody knew"])
    assert (encoder.name, vectors.shape, vectors.dtype) == ("lsa-2", (6, 2), np.float32)
    np.testing.assert_allclose(np.linalg.norm(vectors[:5], axis=1), 1, rtol=1e-6)
    assert not vectors[5].any()
    # Which words stand together: the animals on one side, the stars on the other.
    assert vectors[0] @ vectors[1] > 0.9 > 0.1 > abs(vectors[0] @ vectors[3])
    with pytest.raises(DataError, match="2 dimensions need more documents and words, found 1 "):
        sweep.LSA(2).fit(["alone"])
    with pytest.raises(UsageError, match="not fitted yet"):
        sweep.LSA(2).encode(["a"])
    with pytest.raises(UsageError, match="dimensions"):
        sweep.LSA(1)
