"""The sweep: ranked lists and answers, what is kept, and what fails."""

from __future__ import annotations

from collections import Counter

import joblib
import pandas as pd
import pytest

from ragkit import datasets, irt, models, schema, store
from ragkit.errors import DataError, ModelError, UsageError
from ragkit.systems import sweep
from ragkit.systems.readers import base, extractive
from ragkit.systems.retrieval import BM25
from ragkit.systems.sweep import running, systems
from ragkit.systems.sweep.systems import System
from tests.systems.readers.test_readers import Overlap

WORDS = "ferry harbour crew fish noon rope tide sail deck pier moon bell".split()
DOCUMENTS = pd.DataFrame(
    {
        "doc_id": [f"d{n}" for n in range(12)],
        "source": "s",
        "title": WORDS,
        "text": [
            f"The {word} is {WORDS[n - 1]}. It was {WORDS[n - 2]}." for n, word in enumerate(WORDS)
        ],
    }
)
QUESTIONS = pd.DataFrame(
    {
        "question_id": [str(n) for n in range(6)],
        "text": [f"what is {WORDS[n]}" for n in range(5)] + ["zzz"],
        "type": "t",
        "answer": [f"The {WORDS[n]} is {WORDS[n - 1]}." for n in range(4)] + [None, "nothing"],
        "facts": [()] * 6,
        "gold_doc_ids": [(f"d{n}",) for n in range(5)] + [()],
    }
)
PLAIN = System("plain", {"kind": "bm25"})
FLAT = System("flat", {"kind": "bm25", "b": 0.0})


class Counting:
    """BM25 that counts what it is asked."""

    calls: Counter = Counter()

    def __init__(self, b: float = 0.75, bad: str = ""):
        self.bad, self.inner = bad, BM25(b=b)

    def fit(self, documents):
        Counting.calls["fit"] += 1
        if self.bad == "weights":
            raise ModelError("the weights are not here", "run: fetch them")
        if self.bad == "bug":
            raise ZeroDivisionError("a bug")
        self.inner.fit(documents)
        return self

    def search(self, queries, k):
        Counting.calls["asked"] += len(queries)
        return self.inner.search(queries, k)


@pytest.fixture(autouse=True)
def counting(monkeypatch):
    Counting.calls.clear()
    monkeypatch.setitem(systems.RETRIEVERS, "counting", f"{__name__}.Counting")
    monkeypatch.setattr(extractive, "named_reranker", lambda name: Overlap())


def counted(name="c", **options):
    return System(name, {"kind": "counting", **options})


def reading(name="r", sentences=1, **more):
    spec = {"kind": "extractive", "sentences": sentences, "threshold": 0.3}
    return System(name, {"kind": "bm25"}, reader=spec, **more)


def test_runs_are_the_retrievers_own():
    result = sweep.run([PLAIN, FLAT], DOCUMENTS, QUESTIONS, k=3)
    schema.check(result.runs, "runs")
    for system, retriever in ((PLAIN, BM25()), (FLAT, BM25(b=0.0))):
        direct = retriever.fit(DOCUMENTS).search(QUESTIONS, 3).assign(system=system.name)
        mine = result.runs[result.runs["system"] == system.name].reset_index(drop=True)
        pd.testing.assert_frame_equal(mine, direct, check_dtype=False)
    assert result.answers.empty
    assert result.failures.empty
    assert repr(result) == "<Sweep: 2 systems x 6 questions, 0 of 12 cells failed>"
    page = result._repr_html_()
    assert "nDCG@10" in page
    assert "<code>.scores()</code>" in page
    assert ">abstained<" not in page  # nobody read


def test_answers_and_scores_by_hand():
    result = sweep.run([reading()], DOCUMENTS, QUESTIONS, k=3)
    schema.check(result.answers, "answers")
    answers = result.answers.set_index("question_id")
    assert answers.loc["1", "answer"] == "The harbour is ferry."
    assert answers.loc["1", "doc_ids"][0] == "d1"
    assert answers.loc["5", "answer"] == base.ABSTENTION  # no word is known
    assert bool(answers.loc["5", "abstained"])
    f1 = result.scores("token_f1").set_index("item_id")["score"]
    # Question 4 has no gold answer and no row.
    assert f1.to_dict() == {"0": 1.0, "1": 1.0, "2": 1.0, "3": 1.0, "5": 0.0}
    rr = result.scores("RR").set_index("item_id")["score"]
    assert rr.index.tolist() == ["0", "1", "2", "3", "4"]  # question 5 has no gold document
    summary = result.summary()
    assert summary.loc["r", ["answers", "empty", "abstained", "failed"]].tolist() == [6, 0, 1, 0]
    assert summary.loc["r", "token_f1"] == pytest.approx(0.8)


def test_an_empty_list_and_an_empty_answer_score_0(monkeypatch):
    result = sweep.run([PLAIN], DOCUMENTS, QUESTIONS.assign(text=list("uvwxyz")))
    assert result.runs.empty
    assert result.failures.empty
    assert result.scores("RR")["score"].tolist() == [0.0] * 5
    monkeypatch.setattr(
        extractive.Extractive, "read", lambda self, tasks: [base.Reading("")] * len(tasks)
    )
    result = sweep.run([reading()], DOCUMENTS, QUESTIONS)
    assert result.scores("token_f1")["score"].tolist() == [0.0] * 5
    assert result.summary().loc["r", "empty"] == 6


def test_words_cut_what_is_indexed_and_not_what_is_read():
    result = sweep.run([reading(words=2)], DOCUMENTS, QUESTIONS, k=12)
    short = DOCUMENTS.assign(text=[" ".join(text.split()[:2]) for text in DOCUMENTS["text"]])
    runs = BM25().fit(short).search(QUESTIONS, 12)
    assert result.runs["doc_id"].tolist() == runs["doc_id"].tolist()
    assert result.answers["answer"][0] == "The ferry is bell."


def test_a_reader_sees_its_documents_whatever_the_length_of_the_lists():
    result = sweep.run([reading(top=4), reading("one", top=1)], DOCUMENTS, QUESTIONS, k=2)
    assert result.runs.groupby(["system", "question_id"]).size().max() == 2
    shown = result.answers.groupby("system")["doc_ids"].agg(lambda lists: max(map(len, lists)))
    assert shown.to_dict() == {"one": 1, "r": 4}


def test_a_change_runs_what_it_concerns_and_nothing_else():
    first = sweep.run([counted(), counted("d", b=0.1)], DOCUMENTS, QUESTIONS)
    assert Counting.calls == {"fit": 2, "asked": 12}
    again = sweep.run([counted(), counted("d", b=0.1)], DOCUMENTS, QUESTIONS)
    assert Counting.calls == {"fit": 2, "asked": 12}
    pd.testing.assert_frame_equal(first.runs, again.runs)
    # One system's setting.
    sweep.run([counted(), counted("d", b=0.2)], DOCUMENTS, QUESTIONS)
    assert Counting.calls == {"fit": 3, "asked": 18}
    # One question's text, where its id alone means nothing; a document; the length of the lists.
    asked = QUESTIONS.assign(question_id=list("abcdef"))
    asked.loc[0, "text"] = "which deck"
    documents = DOCUMENTS.copy()
    documents.loc[3, "title"] = "herring"
    changes = ((DOCUMENTS, asked, 10), (documents, QUESTIONS, 10), (DOCUMENTS, QUESTIONS, 2))
    for (frame, questions, k), total in zip(changes, (19, 25, 31), strict=True):
        sweep.run([counted()], frame, questions, k=k)
        assert Counting.calls["asked"] == total


def test_a_ranking_depends_on_its_own_retriever(monkeypatch):
    sweep.run([counted()], DOCUMENTS, QUESTIONS)
    digests = {}
    for kind in ("bm25", "dense"):
        modules = System(kind, {"kind": kind}).modules
        digests[kind] = {path.name for path in store.dependencies(*modules)}
    assert "bm25.py" in digests["bm25"] - digests["dense"]
    assert {"dense.py", "encoders.py"} <= digests["dense"] - digests["bm25"]
    assert not {"systems.py", "running.py", "agent.py"} & (digests["bm25"] | digests["dense"])
    monkeypatch.setattr(store, "code_digest", lambda *names: "edited")
    sweep.run([counted()], DOCUMENTS, QUESTIONS)
    assert Counting.calls["asked"] == 12


def test_equal_rankings_and_equal_questions_are_computed_once():
    alike = [counted("one"), counted("two"), System("three", {"kind": "counting"}, top=2)]
    result = sweep.run(alike, DOCUMENTS, QUESTIONS.assign(text="what is noon"))
    assert Counting.calls == {"fit": 1, "asked": 1}
    assert result.runs.groupby("system")["question_id"].nunique().tolist() == [6, 6, 6]


def test_a_failed_system_is_missing_and_said():
    broken = System("broken", {"kind": "counting", "bad": "weights"}, reader=reading().reader)
    result = sweep.run([broken, PLAIN], DOCUMENTS, QUESTIONS)
    assert result.failures["stage"].tolist() == ["rank"] * 6
    assert "<code>.failures</code> says why" in result._repr_html_()
    assert "the weights are not here" in result.failures["reason"][0]
    for found in (result.runs["system"], result.scores()["subject_id"]):
        assert set(found) == {"plain"}
    assert result.answers["answer"].isna().all()
    assert result.summary().loc["broken", "failed"] == 6
    # It is not kept: the next run tries again.
    sweep.run([broken], DOCUMENTS, QUESTIONS)
    assert Counting.calls["fit"] == 2
    with pytest.raises(ZeroDivisionError):  # a bug is not swallowed
        sweep.run([counted(bad="bug")], DOCUMENTS, QUESTIONS)


def test_a_failed_reading_leaves_the_list(monkeypatch):
    def read(self, tasks):
        return [
            base.Reading(None, failure="timeout: no reply") if "noon" in text else base.Reading("x")
            for text, _ in tasks
        ]

    monkeypatch.setattr(extractive.Extractive, "read", read)
    result = sweep.run([reading()], DOCUMENTS, QUESTIONS)
    assert result.failures.values.tolist() == [["r", "4", "read", "timeout: no reply"]]
    assert "4" in set(result.runs["question_id"])
    assert "4" not in set(result.scores("token_f1")["item_id"])
    assert "4" in set(result.scores("RR")["item_id"])


def test_processes_give_the_same():
    made = [PLAIN, FLAT]
    one = sweep.run(made, DOCUMENTS, QUESTIONS)
    two = sweep.run(made, DOCUMENTS, QUESTIONS, jobs=2)
    pd.testing.assert_frame_equal(one.runs, two.runs)
    with joblib.parallel_config("threading"):
        three = sweep.run(made, DOCUMENTS, QUESTIONS, jobs=2)
    pd.testing.assert_frame_equal(one.runs, three.runs)


def test_missing_weights_are_found_before_anything_runs():
    rerank = {"reranker": "ms-marco-MiniLM-L-12-v2", "depth": 2}
    lacking = [
        System("a", {"kind": "dense", "encoder": "e5-large-v2"}),
        System("b", {"kind": "bm25"}, rerank=rerank),
    ]
    with pytest.raises(ModelError, match=r"2 systems cannot run \('a', 'b'\)") as caught:
        sweep.run([counted(), *lacking], DOCUMENTS, QUESTIONS)
    assert "models fetch e5-large-v2" in caught.value.hint
    assert "models fetch ms-marco-MiniLM-L-12-v2" in caught.value.hint
    assert not Counting.calls


def test_what_a_model_answers_is_kept_by_its_ledger_alone(monkeypatch):
    class Talker:
        asked = []

        def read(self, tasks):
            self.asked.append(len(tasks))
            return [base.Reading("x") for _ in tasks]

    monkeypatch.setattr(running, "build_reader", lambda spec: Talker())
    system = System("r", {"kind": "bm25"}, reader={"kind": "openai:toy"})
    for _ in range(2):
        sweep.run([system], DOCUMENTS, QUESTIONS)
    assert Talker.asked == [6, 6]  # all questions at once, twice
    assert store.Store()._base.execute("SELECT DISTINCT step FROM results").fetchall() == [
        ("rank",)
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"systems": []}, "no system to run"),
        ({"systems": [PLAIN, PLAIN]}, "two systems are called 'plain'"),
        ({"jobs": 0}, "jobs should be a whole number of at least 1"),
        ({"k": True}, "k should be a whole number of at least 1"),
        ({"questions": QUESTIONS.head(0)}, "there are no questions"),
        ({"documents": DOCUMENTS.drop(3)}, "question '3' names the gold document 'd3'"),
        ({"documents": DOCUMENTS.drop(columns="title")}, "documents lack the column 'title'"),
    ],
)
def test_bad_input(change, message):
    given = {"systems": [PLAIN], "documents": DOCUMENTS, "questions": QUESTIONS, **change}
    with pytest.raises((UsageError, DataError), match=message):
        sweep.run(**given)


def test_fields_that_documents_lack_are_one_error_before_anything_is_computed(tmp_path):
    text = """
    [a]
    retriever = "bm25"
    rerank = { reranker = "ms-marco-MiniLM-L-12-v2-int8", fields = ["nope"] }
    [b]
    retriever = { kind = "hybrid", retrievers = ["bm25", { kind = "bm25", fields = ["nope"] }] }
    """
    (tmp_path / "s.toml").write_text(text)
    for one in sweep.load(tmp_path / "s.toml"):
        for call in (sweep.run, sweep.plan):
            with pytest.raises(UsageError) as info:
                call([PLAIN, one], DOCUMENTS, QUESTIONS)
            assert info.value.message == f"system {one.name!r}: documents lack the column 'nope'"
            assert info.value.hint == "found " + ", ".join(DOCUMENTS)
            call([one], DOCUMENTS.assign(nope="x"), QUESTIONS) if call is sweep.plan else None


def test_files_and_metrics(tmp_path):
    tmp_path = tmp_path / "out"
    result = sweep.run([reading(), PLAIN], DOCUMENTS, QUESTIONS)
    for metric in ("nDCGG@10", "corpus_bleu"):
        with pytest.raises(UsageError):
            result.scores(metric)
    paths = result.save(tmp_path)
    assert sorted(path.name for path in paths) == sorted(path.name for path in tmp_path.iterdir())
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "runs.parquet"), result.runs)
    rows = pd.read_json(tmp_path / "answers.jsonl", lines=True)
    assert rows["answer"].tolist() == result.answers["answer"].tolist()
    scores = pd.read_csv(tmp_path / "scores.csv", dtype={"item_id": str})
    assert len(scores) == len(result.scores())
    assert {"token_f1", "rouge_2", "RR", "nDCG@10"} <= set(scores["metric"])


def test_a_plan_says_what_is_kept():
    sweep.run([PLAIN], DOCUMENTS, QUESTIONS)
    plan = sweep.plan([PLAIN, FLAT, reading()], DOCUMENTS, QUESTIONS)
    assert plan["kept"].tolist() == [6, 0, 6]
    assert plan["to_rank"].tolist() == [0, 6, 0]
    assert plan["reader"].tolist() == ["", "", "extractive"]


def test_the_samples_systems_rank_apart_and_are_here():
    from ragkit.systems.sweep import sample_systems

    chosen = sample_systems()
    here = {card.name for card in models.cards().values() if card.package}
    assert len(chosen) >= 24
    assert len({store.canonical(system.ranking) for system in chosen}) == len(chosen)
    assert all(system.models <= here and system.reader is None for system in chosen)


@pytest.mark.slow
def test_the_sample_has_a_real_matrix(monkeypatch):
    scores = sweep.sample_scores()
    schema.check(scores, "scores")
    asked = set(datasets.load("liverag", profile="sample").questions["question_id"])
    assert set(scores["item_id"]) == asked
    assert len(scores) == len(asked) * scores["subject_id"].nunique()
    assert scores["score"].between(0, 1).all()
    means = scores.groupby("subject_id")["score"].mean()
    assert means.max() - means.min() > 0.25
    constant = scores.groupby("item_id")["score"].nunique() == 1
    assert constant.mean() < 0.25
    halves = irt.split_half(scores, by="items", splits=2, seed=0, likelihood="fractional")
    assert halves["reliability"].mean() > 0.9
    # A second call computes nothing.
    monkeypatch.setattr(running, "ranked_lists", None)
    pd.testing.assert_frame_equal(sweep.sample_scores(), scores)
