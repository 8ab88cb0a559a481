"""Answer and retrieval metrics: numbers by hand, other packages as oracles, laws, bad input."""

import gzip
import json
import math

import numpy as np
import pandas as pd
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit import schema
from ragkit.errors import DataError, UsageError
from ragkit.measures import metrics, stats
from tests.conftest import frame_of

# Texts with everything that the definitions treat apart.
PIECES = st.sampled_from(
    "the a An yes no Wix Wix. site, site 3.14 $5 co-op 1-2 5. don't naïve 中文 &amp; &lt;b&gt; "
    "... . x.y.z <skipped> ( ) - noanswer word Word".split()
    + ["\n", "-\n", "\u00a0", "\t", ". ."]
)
TEXTS = st.lists(PIECES, min_size=1, max_size=10).map(" ".join).filter(str.strip)
SETTINGS = settings(max_examples=150, deadline=None)


def frames():
    questions = frame_of(
        "questions",
        ("q1", "one", "plain", "red car", (), ("d1",)),
        ("q2", "two", "plain", "blue boat", (), ("d2", "d3")),
        ("q3", "three", "plain", None, (), ()),
        ("q4", "four", "plain", "green tram", (), ("d4",)),
    )
    answers = frame_of(
        "answers",
        ("x", "q1", "red car", ()),
        ("x", "q2", "", ()),
        ("x", "q3", "anything", ()),
        ("x", "q4", None, ()),
        ("y", "q1", "red bus", ()),
        ("y", "q2", "blue boat", ()),
    )
    runs = frame_of(
        "runs",
        ("x", "q1", 1, "d9", 3.0),
        ("x", "q1", 2, "d1", 3.0),
        ("x", "q2", 1, "d2", 1.0),
        ("x", "q2", 2, "d7", 0.5),
        ("x", "q2", 3, "d3", 0.1),
        ("x", "q3", 1, "d1", 1.0),
        ("y", "q2", 5, "d8", 1.0),
        ("y", "q2", 9, "d3", 2.0),
    )
    return questions, answers, runs


def test_token_f1_by_hand():
    # {cat, sat, down} and {cat, sat, up, again}: 2 shared, precision 2/3, recall 2/4.
    assert metrics.token_f1("The cat sat, down!", "a cat sat up again") == pytest.approx(4 / 7)
    # The second "go" is shared only once.
    assert metrics.token_f1("go go", "go there") == pytest.approx(1 / 2)
    assert metrics.token_f1("go", ["stay", "go", "go there"]) == 1
    assert metrics.exact_match("The Editor.", ["page", "editor"]) == 1
    assert metrics.exact_match("the editor page", "editor") == 0


def test_token_recall_by_hand():
    # cat and one sat of cat, sat, up
    assert metrics.token_recall("The cat sat, sat!", "a cat sat up") == pytest.approx(2 / 3)
    assert metrics.token_recall("cat", ["a cat sat", "Cat."]) == 1
    assert metrics.token_recall("cat", "the") == 0  # a gold answer without a word
    assert math.isnan(metrics.token_recall(None, "cat"))


def test_yes_and_no_must_match_as_a_whole():
    assert metrics.token_f1("yes", "yes, it does") == 0
    assert metrics.token_f1("No, it does not", "no.") == 0
    assert metrics.token_f1("Yes!", ["no", "yes"]) == 1
    assert metrics.squad_f1("yes", "yes, it does") == pytest.approx(1 / 2)


def test_rouge_n_by_hand():
    # Sets {a, b, c} and {a, b, d}: the repeated b counts once; case and commas distinguish words.
    expected = 2 * (2 / 3 * 2 / 3) / (4 / 3 + 1e-8)
    assert metrics.rouge_n("a b b c", "a b d", 1) == pytest.approx(expected, abs=1e-15)
    assert metrics.rouge_n("a b", "A b,", 1) == 0
    # Bigrams run across the full stop: {ab, bc} and {bc}.
    expected = 2 * (1 / 2 * 1) / (3 / 2 + 1e-8)
    assert metrics.rouge_n("a b. c", "b c", 2) == pytest.approx(expected, abs=1e-15)
    assert metrics.rouge_n("word", "word", 2) == 0
    assert metrics.rouge_n("word", "word", 1) == pytest.approx(1 - 5e-9, abs=1e-15)
    with pytest.raises(UsageError, match="^n should be a whole number of at least 1, found 0"):
        metrics.rouge_n("word", "word", 0)


def test_google_rouge_by_hand():
    # Bags: b twice against once; 2 of 3 and 2 of 3.
    assert metrics.google_rouge("A b b", "a, b! d", "rouge1") == pytest.approx(2 / 3)
    # a c e is common to both, in order; of several gold answers the best counts.
    for golds in ("a c x e", ["z", "a c x e", "e d c b a"]):
        assert metrics.google_rouge("a b c d e", golds, "rougeL") == pytest.approx(2 * 3 / (5 + 4))


def test_the_end_of_a_gold_answer_is_stripped_and_not_its_beginning():
    # The mark of a word that is broken at the end of a line stays at the end of a text: 5 tokens
    # in the shortest gold answer, so that 4 are too few.
    golds = ["a b c d -\n", "a b c d e f"]
    assert metrics.corpus_bleu(["a b c d"], [golds]) == pytest.approx(math.exp(1 - 5 / 4))
    assert metrics.corpus_bleu(["a b c d"], [golds[::-1]]) == pytest.approx(math.exp(1 - 5 / 4))


def test_corpus_bleu_by_hand():
    # 5 tokens against 6: 5/5, 4/4, 3/3, 2/2, brevity exp(1 - 6/5).
    assert metrics.corpus_bleu(["a b c d e"], ["a b c d e f"]) == pytest.approx(math.exp(-0.2))
    # Two answers are one corpus: unigrams 8/9, bigrams 6/7, trigrams 4/5, 4-grams 2/3.
    value = metrics.corpus_bleu(["a b c d", "e f g h x"], ["a b c d", "e f g h y"])
    assert value == pytest.approx((8 / 9 * 6 / 7 * 4 / 5 * 2 / 3) ** (1 / 4))
    assert metrics.corpus_bleu(["a b c"], ["a b c"]) == 0  # no 4-gram at all
    # The brevity penalty takes the shortest gold answer, or the nearest in length (6).
    assert metrics.corpus_bleu(["a b c d e"], [["a b c d e f", "a b c d"]]) == 1
    golds = [["a b c d e f", "a b"]]
    assert metrics.corpus_bleu(["a b c d e"], golds) == 1
    assert metrics.sacre_bleu(["a b c d e"], golds) == pytest.approx(math.exp(-0.2))


@pytest.mark.parametrize("name", list(metrics.METRICS))
def test_empty_scores_zero_and_missing_has_no_score(name):
    function = metrics.METRICS[name]
    assert function("", "some text") == 0
    assert function(" \n", "Ends with a blank. ") == 0
    if name != "sentence_bleu":  # there a full stop is a word
        assert function("...", "some text.") == 0
    assert math.isnan(function(None, "some text"))


@pytest.mark.parametrize("function", [metrics.corpus_bleu, metrics.sacre_bleu])
def test_empty_counts_in_a_corpus_and_missing_does_not(function):
    answers, golds = ["a b c d e", "f g h i"], ["a b c d e", "f g h i"]
    assert function(answers, golds) == pytest.approx(1)
    assert function([answers[0], ""], golds) == pytest.approx(math.exp(1 - 9 / 5))
    assert function([answers[0], None], golds) == pytest.approx(1)
    assert function([None, answers[1]], golds) == pytest.approx(1)
    assert function(["", ""], golds) == 0
    assert math.isnan(function([None, None], golds))


@SETTINGS
@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_rouge_n_equals_the_package_rouge(prediction, golds):
    rouge = pytest.importorskip("rouge").Rouge(metrics=["rouge-1", "rouge-2", "rouge-3"])
    golds = [gold for gold in golds if gold.strip(".")]
    if not golds or not prediction.strip("."):
        return  # the package raises on texts of full stops only
    theirs = [rouge.get_scores(prediction, gold)[0] for gold in golds]
    for n in (1, 2, 3):
        best = max(score[f"rouge-{n}"]["f"] for score in theirs)
        assert metrics.rouge_n(prediction, golds, n) == pytest.approx(best, abs=1e-12)


@SETTINGS
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6))
def test_bleu_equals_sacrebleu(pairs):
    # sacreBLEU strips the end of a text, which FlashRAG's tokenizer does not.
    answers = [answer.rstrip() for answer, _ in pairs]
    golds = [gold.rstrip() for _, gold in pairs]
    plain = sacrebleu.corpus_bleu(answers, [golds], smooth_method="none", force=True).score
    assert metrics.corpus_bleu(answers, golds) == pytest.approx(plain / 100, abs=1e-12)
    default = sacrebleu.corpus_bleu(answers, [golds], force=True).score
    assert metrics.sacre_bleu(answers, golds) == pytest.approx(default / 100, abs=1e-12)


@SETTINGS
@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_sentence_bleu_and_several_golds_equal_sacrebleu(answer, golds):
    one = sacrebleu.sentence_bleu(answer, golds).score
    assert metrics.sentence_bleu(answer, golds) == pytest.approx(one / 100, abs=1e-12)
    many = sacrebleu.corpus_bleu([answer], [[gold] for gold in golds], force=True).score
    assert metrics.sacre_bleu([answer], [golds]) == pytest.approx(many / 100, abs=1e-12)


@pytest.fixture(scope="module")
def judged(mirror):
    """166 answers to WixQA questions; 141 of them carry scores that others computed."""
    path = mirror / "wixqa" / "mse_eval_runs_question_answer_scores.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"no {path.name} in the mirror")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return pd.DataFrame(map(json.loads, lines))


def test_scores_of_others_on_real_answers(judged):
    """Their token F1 and ROUGE are Google's ROUGE.

    So their `token_f1` equals their `rouge_1`, and no score is what FlashRAG computes: its mean
    ROUGE-1 lies .04 lower, because words keep case and marks and repeated words count once; its
    token F1 lies .005 higher, because a, an and the are dropped and "don't" is one word.
    """
    scored = judged.dropna(subset=["token_f1"])
    assert (len(judged), len(scored)) == (166, 141)
    pairs = list(zip(scored["candidate_answer"], scored["gt_answer"], strict=True))

    def ours(function):
        return np.array([function(answer, gold) for answer, gold in pairs])

    one = ours(metrics.METRICS["google_rouge_1"])
    two = ours(metrics.METRICS["google_rouge_2"])
    np.testing.assert_allclose(one, scored["token_f1"], atol=1e-12)
    np.testing.assert_allclose(one, scored["rouge_1"], atol=1e-12)
    np.testing.assert_allclose(two, scored["rouge_2"], atol=1e-12)
    for name, gap in {"token_f1": 0.005, "rouge_1": -0.04, "rouge_2": -0.03}.items():
        found = ours(metrics.METRICS[name]) - scored[name]
        assert round(found.mean(), 3) == gap


@SETTINGS
@given(TEXTS, st.lists(TEXTS, min_size=2, max_size=3))
def test_range_symmetry_and_best_of_several_golds(prediction, golds):
    for name, function in metrics.METRICS.items():
        value = function(prediction, golds)
        assert 0 <= value <= 1
        assert function(prediction, golds[::-1]) == value
        if name != "sentence_bleu":
            assert value == max(function(prediction, gold) for gold in golds)
            back = function(golds[0], prediction)
            assert function(prediction, golds[0]) == pytest.approx(back, abs=1e-12)


@SETTINGS
@given(st.lists(st.sampled_from("Wix site editor page menu store".split()), min_size=4))
def test_a_text_equals_itself(words):
    text = " ".join(words)
    for name, metric in metrics.METRICS.items():
        assert metric(text, text) == pytest.approx(1, abs=1e-8), name
    assert metrics.corpus_bleu([text], [text]) == pytest.approx(1, abs=1e-12)


def test_score_answers():
    questions, answers, _ = frames()
    scores = metrics.score_answers(answers, questions, metrics=["token_f1", "exact_match"])
    assert (
        scores["subject_id"].str.cat(scores["item_id"]).tolist() == ["xq1", "xq2", "yq1", "yq2"] * 2
    )
    assert scores["score"].tolist() == [1, 0, 0.5, 1, 1, 0, 0, 1]
    schema.check(scores[scores["metric"] == "token_f1"], "scores")


def test_summarise_answers_counts_what_it_leaves_out():
    questions, answers, _ = frames()
    table = metrics.summarise_answers(answers, questions, metrics=["token_f1", "corpus_bleu"])
    assert table["value"].tolist() == [0.5, 0, 0.75, 0]
    counts = table.groupby("system")[["n", "empty", "missing", "absent", "no_gold"]].max()
    assert counts.to_numpy().tolist() == [[2, 1, 1, 0, 1], [2, 0, 0, 1, 1]]


def test_a_score_is_under_the_name_of_its_metric_and_a_frame_has_numbers():
    questions, answers, _ = frames()
    scores = metrics.score_answers(answers, questions, metrics="squad_f1")
    assert scores["metric"].tolist() == ["squad_f1"] * 4
    assert scores.index.tolist() == [0, 1, 2, 3]
    silent = answers.assign(answer=None)
    assert metrics.score_answers(silent, questions)["score"].dtype == float
    table = metrics.summarise_answers(silent, questions)
    assert table["metric"].tolist() == [*metrics.WIXQA_METRICS] * 2
    assert (table["n"] == 0).all()
    for name in ("value", "low", "high"):
        assert np.isnan(table[name].to_numpy(float)).all()
        assert table[name].dtype == float


def test_a_summary_is_the_bootstrap_of_each_metric_in_order_of_the_systems():
    questions = pd.DataFrame({"question_id": list("abcd"), "answer": ["b c d e f"] * 4})
    texts = ["b c d e f", "b c d e", "b c d x f", "x"]
    answers = questions.assign(system="z", answer=texts, doc_ids=[()] * 4)
    both = pd.concat([answers, answers.assign(system="y")])
    options = {"level": 0.6, "n_resamples": 99, "seed": 4}
    names = ["token_f1", "sacre_bleu"]
    table = metrics.summarise_answers(both, questions, metrics=names, **options)
    assert table["system"].tolist() == ["z", "z", "y", "y"]
    found = stats.bootstrap_interval([1, 8 / 9, 4 / 5, 0], **options)
    assert table.loc[0, ["value", "low", "high"]].tolist() == pytest.approx(found[:3])
    assert table["value"][3] == pytest.approx(metrics.sacre_bleu(texts, ["b c d e f"] * 4))
    assert table["low"][1] < table["value"][1] < table["high"][1]


def test_retrieval_by_hand():
    questions, _, runs = frames()
    names = ["R@1", "R@3", "P@2", "RR", "RR@1", "nDCG@3", "Success@2", "AP"]
    scores = metrics.retrieval(runs, questions, measures=names)
    table = scores.pivot(index=["subject_id", "item_id"], columns="metric", values="score")
    half = 1 / math.log2(3)
    # x finds d1 at place 2, where its own rank puts it although the scores tie.
    assert table.loc["x", "q1"][names].tolist() == pytest.approx(
        [0, 1, 1 / 2, 1 / 2, 0, half, 1, 1 / 2]
    )
    ndcg = (1 + 1 / 2) / (1 + half)
    assert table.loc["x", "q2"][names].tolist() == pytest.approx(
        [1 / 2, 1, 1 / 2, 1, 1, ndcg, 1, (1 + 2 / 3) / 2]
    )
    assert table.loc["x", "q4"].tolist() == [0] * len(names)
    # y's ranks 5 and 9 are places 1 and 2, whatever its scores say.
    assert table.loc["y", "q2"][names].tolist() == pytest.approx(
        [0, 1 / 2, 1 / 2, 1 / 2, 0, half / (1 + half), 1, 1 / 4]
    )
    found = scores.groupby(["subject_id", "item_id"])["retrieved"].first()
    assert found["x"].to_dict() == {"q1": 2, "q2": 3, "q4": 0}
    assert found["y"].to_dict() == {"q1": 0, "q2": 2, "q4": 0}


def test_systems_stand_in_order_of_the_runs():
    questions, _, runs = frames()
    turned, options = runs[::-1], {"level": 0.6, "n_resamples": 99, "seed": 4}
    scores = metrics.retrieval(turned, questions, measures=["RR"])
    assert scores["subject_id"].tolist() == ["y"] * 3 + ["x"] * 3
    assert scores.index.tolist() == [*range(6)]
    assert scores["retrieved"].dtype == int
    table = metrics.summarise_retrieval(turned, questions, measures=["RR"], **options)
    assert table["system"].tolist() == ["y", "x"]
    ends = stats.bootstrap_interval(scores["score"].tail(3), **options)[:3]
    assert table.loc[1, ["value", "low", "high"]].tolist() == pytest.approx(ends)


def test_summarise_retrieval_counts_what_it_leaves_out():
    questions, _, runs = frames()
    table = metrics.summarise_retrieval(runs, questions, measures=["R@3", "RR"])
    assert table["system"].str.cat(table["metric"]).tolist() == ["xR@3", "xRR", "yR@3", "yRR"]
    assert (table[["n", "no_gold"]] == [3, 1]).all(axis=None)
    assert table["nothing_found"].tolist() == [1, 1, 2, 2]
    assert table["value"].tolist() == pytest.approx([2 / 3, 1 / 2, 1 / 6, 1 / 6])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.permutations([f"d {i}" for i in range(6)]), min_size=1, max_size=4),
    st.sets(st.sampled_from([f"d {i}" for i in range(8)]), min_size=1),
    st.integers(1, 7),
    st.randoms(),
)
def test_retrieval_equals_plain_formulas(lists, gold, k, random):
    rows = [
        ("s", f"q {q}", place + 1, doc, random.random())
        for q, docs in enumerate(lists)
        for place, doc in enumerate(docs)
    ]
    random.shuffle(rows)
    runs = pd.DataFrame(rows, columns=list(schema.COLUMNS["runs"]))
    questions = pd.DataFrame({"question_id": [f"q {q}" for q in range(len(lists))]}).assign(
        gold_doc_ids=[tuple(sorted(gold))] * len(lists)
    )
    names = [f"R@{k}", f"P@{k}", "RR", f"nDCG@{k}", f"Success@{k}"]
    scores = metrics.retrieval(runs, questions, measures=names)
    table = scores.pivot(index="item_id", columns="metric", values="score")
    for q, docs in enumerate(lists):
        hits = [doc in gold for doc in docs]
        gain = sum(1 / math.log2(place + 2) for place in range(min(k, 6)) if hits[place])
        ideal = sum(1 / math.log2(place + 2) for place in range(min(k, len(gold))))
        expected = [
            sum(hits[:k]) / len(gold),
            sum(hits[:k]) / k,
            1 / (hits.index(True) + 1) if any(hits) else 0,
            gain / ideal,
            float(any(hits[:k])),
        ]
        assert table.loc[f"q {q}", names].tolist() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("answer", "golds", "words"),
    [("an answer", golds, "gold answer") for golds in ([], "", [" "], ["x", None], None, 3)]
    + [(answer, "gold", "should be a string") for answer in (3, math.nan, ["text"])],
)
def test_what_is_no_answer_or_no_gold_answer(answer, golds, words):
    for metric in metrics.METRICS.values():
        with pytest.raises(DataError, match=words):
            metric(answer, golds)
    with pytest.raises(DataError, match=words):
        metrics.corpus_bleu([answer], [golds])


@pytest.mark.parametrize(
    ("answers", "golds", "words"),
    [
        (["a", "b"], ["a"], "found 1 and 2"),
        ([], [], "there is no answer"),
        ("ab", ["a", "b"], "one string"),
        (["a", "b"], "ab", "one string"),
    ],
)
def test_what_is_no_list_of_answers(answers, golds, words):
    with pytest.raises(DataError, match=words):
        metrics.corpus_bleu(answers, golds)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["rouge1"], "no metric 'rouge1'"),
        (["corpus_bleu"], "no value for a single answer"),
        ([], "no metric was asked for"),
    ],
)
def test_bad_names(names, words):
    questions, answers, _ = frames()
    with pytest.raises(UsageError, match=words):
        metrics.score_answers(answers, questions, metrics=names)
    if names != ["corpus_bleu"]:
        with pytest.raises(UsageError, match=words):
            metrics.summarise_answers(answers, questions, metrics=names)


@pytest.mark.parametrize("name", ["R", "R@0", "R@-1", "recall@5", "nDCG@x", "", "P(rel=2)@3", 5])
def test_bad_measures(name):
    questions, _, runs = frames()
    with pytest.raises(UsageError, match="no retrieval measure") as caught:
        metrics.retrieval(runs, questions, measures=[name])
    known = "known: R@k, P@k, RR@k, nDCG@k, Success@k, AP@k, RR, nDCG, AP"
    assert caught.value.hint == known


def test_bad_frames():
    questions, answers, runs = frames()
    renamed = questions.assign(question_id=list("abcd"))
    for asked, words in (
        (questions.drop(columns="answer"), "questions lack the column 'answer'"),
        (pd.concat([questions, questions]), "'q1' is there twice"),
        (renamed, "'x' has none of the 3 questions"),
        (questions.assign(answer=None), "no question has a gold answer"),
    ):
        with pytest.raises(DataError, match=words):
            metrics.score_answers(answers, asked)
    with pytest.raises(DataError, match="^answers: answers lack the column 'system'"):
        metrics.score_answers(answers.drop(columns="system"), questions)
    for lists, asked, words in (
        (runs.drop(columns="rank"), questions, "^runs: runs lack the column 'rank'"),
        (runs, renamed, "'x' has none of the 4 questions: it has 'q1'"),
        (runs, questions.assign(gold_doc_ids=[()] * 4), "no question has gold documents"),
        (runs.head(0), questions, "no row"),
        (runs.assign(doc_id="d1"), questions, "'x' lists 'd1' twice for 'q1'"),
        (runs.assign(doc_id=float("nan")), questions, "doc_id should be a text, found nan"),
        (runs.assign(rank=["first", *range(2, len(runs) + 1)]), questions, "found 'first'"),
    ):
        with pytest.raises(DataError, match=words):
            metrics.retrieval(lists, asked)
