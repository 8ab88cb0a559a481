"""Scores of answers against gold answers, and of ranked lists against gold documents.

`token_f1`, `corpus_bleu` and `rouge_n` are defined as in FlashRAG, the tool that WixQA used; other
definitions have other names. All lie between 0 and 1; higher is better. With several gold answers
the best one counts, except where stated otherwise. An empty answer scores 0. A missing answer
(`None`) has no score: a function returns NaN, a frame has no row; the tables count both. A new
metric is a function and a row of `METRICS`.

>>> questions = pd.DataFrame({"question_id": ["q1", "q2"], "answer": ["Paris", "in 1889"]})
>>> questions["gold_doc_ids"] = [("a",), ("b", "c")]
>>> answers = pd.DataFrame({"system": "mine", "question_id": ["q1", "q2"], "answer": ["Paris", "1889"]})
>>> answers["doc_ids"] = [("a",), ("b",)]
>>> score_answers(answers, questions, metrics=["token_f1"])
  subject_id item_id    metric     score
0       mine      q1  token_f1  1.000000
1       mine      q2  token_f1  0.666667
>>> summarise_answers(answers, questions, metrics=["token_f1"])[["n", "missing", "value"]]
   n  missing     value
0  2        0  0.833333
>>> runs = answers.explode("doc_ids").rename(columns={"doc_ids": "doc_id"}).assign(rank=1, score=0.5)
>>> retrieval(runs, questions, measures=["R@5"])
  subject_id item_id metric  score  retrieved
0       mine      q1    R@5    1.0          1
1       mine      q2    R@5    0.5          1
>>> summarise_retrieval(runs, questions, measures=["R@5", "RR"])[["metric", "n", "value"]]
  metric  n  value
0    R@5  2   0.75
1     RR  2   1.00
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import chain

import numpy as np
import pandas as pd

from ragkit import checks, schema
from ragkit.errors import DataError, UsageError
from ragkit.measures import stats

Golds = str | Sequence[str]

# An answer or gold answer that is just one of these only matches the same word.
CLOSED = (["yes"], ["no"], ["noanswer"])

_MARKS = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def token_f1(prediction: str | None, golds: Golds) -> float:
    """Return the F1 of the words that an answer and its gold answer share (FlashRAG `f1`).

    Texts are lower-cased, ASCII punctuation and the words a, an and the are dropped; a repeated
    word counts as often as both have it. If either text is just "yes", "no" or "noanswer", only
    the same text scores. `golds` is the gold answer, or a sequence of several; the score is NaN if
    `prediction` is None. Raises `DataError` if there is no gold answer, or something is no string.

    Source: WixQA, section 4; FlashRAG (Jin et al. 2024). The yes/no rule is HotpotQA's.

    >>> token_f1("Open the settings", ["Settings page", "Ask support"])
    0.5
    """

    def compare(mine, gold):
        closed = mine != gold and (mine in CLOSED or gold in CLOSED)
        return 0.0 if closed else _bag_f1(mine, gold)

    return _best(prediction, golds, _normalized, compare)


def squad_f1(prediction: str | None, golds: Golds) -> float:
    """Return SQuAD's token F1: `token_f1` without the rule for "yes", "no" and "noanswer".

    Source: Rajpurkar et al. (2016), SQuAD, section 6.1.

    >>> squad_f1("yes", "Yes, it is."), token_f1("yes", "Yes, it is.")
    (0.5, 0.0)
    """
    return _best(prediction, golds, _normalized, _bag_f1)


def token_recall(prediction: str | None, golds: Golds) -> float:
    """Return the share of the gold answer's words that an answer has, normalised as in `token_f1`.

    Source: the recall of SQuAD's token F1 (Rajpurkar et al. 2016, section 6.1).

    >>> token_recall("Open the settings page", "settings page, billing")
    0.6666...
    """

    def compare(mine, gold):
        return (Counter(mine) & Counter(gold)).total() / len(gold) if gold else 0.0

    return _best(prediction, golds, _normalized, compare)


def exact_match(prediction: str | None, golds: Golds) -> float:
    """Return 1 if an answer has the words of a gold answer, normalised as in `token_f1`, else 0.

    Source: Rajpurkar et al. (2016), SQuAD, section 6.1; FlashRAG `em`.

    >>> exact_match("The settings page.", "Settings page")
    1.0
    """
    return _best(prediction, golds, _normalized, lambda mine, gold: float(mine == gold))


def rouge_n(prediction: str | None, golds: Golds, n: int) -> float:
    """Return ROUGE-N as FlashRAG has it: the F of two *sets* of n-grams.

    Words are split on full stops and white space; case and other punctuation are kept. As in the
    package `rouge` 1.0.1 that FlashRAG calls, and which is 70 times slower, an empty stretch
    between two full stops is a word, and equal texts score 1 - 5e-9. The rest is as in `token_f1`.

    Source: WixQA, section 4; FlashRAG `rouge-1`, `rouge-2`.

    >>> rouge_n("open the settings page", "open the settings", 2)
    0.7999...
    """
    checks.whole(n, "n")
    return _best(
        prediction,
        golds,
        partial(_dotted_ngrams, n=n),
        lambda mine, gold: _f(len(mine & gold), mine, gold, 1e-8),
    )


def google_rouge(prediction: str | None, golds: Golds, kind: str) -> float:
    """Return the F of Google's `rouge-score`, not stemmed; the rest is as in `token_f1`.

    `kind` is "rouge1" to "rouge9" (bags of n-grams) or "rougeL" (the longest common subsequence).

    Source: Lin (2004), ROUGE: a package for automatic evaluation of summaries.

    >>> google_rouge("open the page", "open my page", "rougeL")
    0.6666...
    """
    golds = _golds(golds)
    if prediction is None:
        return math.nan
    return float(_rouge_score(kind).score_multi(golds, _text(prediction))[kind].fmeasure)


def sentence_bleu(prediction: str | None, golds: Golds) -> float:
    """Return the BLEU of one answer by sacreBLEU, over 100; all gold answers are references.

    13a tokens with case, n-grams up to 4 or the answer's length, exponential smoothing. Source:
    Post (2018), A call for clarity in reporting BLEU.

    >>> sentence_bleu("open the settings page", "open the settings page now")
    0.7788...
    """
    golds = _golds(golds)
    if prediction is None:
        return math.nan
    return min(_sacrebleu().sentence_score(_text(prediction), golds).score / 100, 1.0)


def corpus_bleu(predictions: Sequence[str | None], golds: Sequence[Golds]) -> float:
    """Return the BLEU of all answers together, as FlashRAG has it (0 to 1).

    Unsmoothed sacreBLEU (13a tokens with case, n-grams up to 4) over 100, but the brevity penalty
    compares with each question's *shortest* gold answer. Missing answers (None) are left out,
    empty ones count; NaN if all are missing. Raises `DataError` if the lengths differ, there is no
    answer or no gold answer, or something is no string.

    Source: Papineni et al. (2002), BLEU; WixQA, section 4.

    >>> corpus_bleu(["open the settings page now"], ["open the settings page here"])
    0.6687...
    """
    rows = _flashrag_rows(predictions, golds)
    return float(_bleu(rows.sum(axis=0))) if len(rows) else math.nan


def sacre_bleu(predictions: Sequence[str | None], golds: Sequence[Golds]) -> float:
    """Return the BLEU of all answers together with sacreBLEU's default settings, over 100.

    Unlike `corpus_bleu`, orders without a match are smoothed exponentially, and the brevity
    penalty compares with the gold answer of the nearest length. Source: Post (2018).

    >>> sacre_bleu(["open the settings page now"], ["open the settings page here"])
    0.6687...
    """
    rows = _sacre_rows(predictions, golds)
    return float(_smoothed_bleu(rows.sum(axis=0))) if len(rows) else math.nan


def _best(prediction, golds, prepare, compare) -> float:
    golds = _golds(golds)
    if prediction is None:
        return math.nan
    if not _text(prediction).strip():
        return 0.0
    mine = prepare(prediction)
    return max(compare(mine, prepare(gold)) for gold in golds)


def _text(value) -> str:
    if not isinstance(value, str):
        raise DataError(
            f"an answer should be a string, found {value!r:.80}",
            "a missing answer is None, an empty one ''",
        )
    return value


def _golds(golds) -> list[str]:
    several = isinstance(golds, Iterable) and not isinstance(golds, str)
    golds = list(golds) if several else [golds]
    if not golds:
        raise DataError("there is no gold answer", "leave the question out and count it")
    for gold in golds:
        if not isinstance(gold, str) or not gold.strip():
            raise DataError(f"a gold answer should be a text, found {gold!r:.80}")
    return golds


def _normalized(text: str) -> list[str]:
    return _ARTICLES.sub(" ", text.lower().translate(_MARKS)).split()


def _dotted_ngrams(text: str, n: int) -> set:
    words = list(chain.from_iterable(part.split() or ("",) for part in text.split(".") if part))
    return set(zip(*(words[start:] for start in range(n)), strict=False))


def _bag_f1(mine: list, gold: list) -> float:
    return _f((Counter(mine) & Counter(gold)).total(), mine, gold)


def _f(shared: int, mine, gold, added: float = 0.0) -> float:
    if shared == 0:
        return 0.0
    precision, recall = shared / len(mine), shared / len(gold)
    return 2.0 * (precision * recall / (precision + recall + added))


@cache
def _rouge_score(kind: str):
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer([kind])


@cache
def _sacrebleu():
    from sacrebleu.metrics import BLEU

    return BLEU(effective_order=True)


def _sacre_rows(predictions, golds, *, shortest: bool = False) -> np.ndarray:
    """Return for each answer: its words, those of a gold answer, shared and possible n-grams.

    The sums of the columns over answers make the score. Shape (n, 2 + 2 * 4).
    """
    if isinstance(predictions, str) or isinstance(golds, str):
        raise DataError("expected several answers, found one string", "use sentence_bleu for one")
    if len(predictions) != len(golds):
        raise DataError(
            f"expected as many gold answers as answers, found {len(golds)} and {len(predictions)}"
        )
    if not len(predictions):
        raise DataError("there is no answer")
    bleu, rows = _sacrebleu(), []
    for prediction, given in zip(predictions, map(_golds, golds), strict=True):
        if prediction is None:
            continue
        found = bleu.sentence_score(_text(prediction), given)
        length = found.ref_len
        if shortest and len(given) > 1:
            length = min(len(bleu.tokenizer(gold.rstrip()).split()) for gold in given)
        rows.append([found.sys_len, length, *found.counts, *found.totals])
    return np.array(rows).reshape(len(rows), 10)


def _bleu(sums: np.ndarray, n: int = 0, *, smooth_method: str = "none") -> np.ndarray:
    compute = _sacrebleu().compute_bleu
    scores = [
        compute(row[2:6], row[6:], row[0], row[1], smooth_method).score / 100
        for row in np.reshape(sums, (-1, 10)).astype(int).tolist()
    ]
    return np.minimum(scores, 1.0).reshape(np.shape(sums)[:-1])


_flashrag_rows = partial(_sacre_rows, shortest=True)
_smoothed_bleu = partial(_bleu, smooth_method="exp")


# A metric of one answer: a function of (prediction, golds).
METRICS: dict[str, Callable[[str | None, Golds], float]] = {
    "token_f1": token_f1,
    "rouge_1": partial(rouge_n, n=1),
    "rouge_2": partial(rouge_n, n=2),
    "exact_match": exact_match,
    "squad_f1": squad_f1,
    "google_rouge_1": partial(google_rouge, kind="rouge1"),
    "google_rouge_2": partial(google_rouge, kind="rouge2"),
    "google_rouge_l": partial(google_rouge, kind="rougeL"),
    "sentence_bleu": sentence_bleu,
}
# A metric of all answers together: rows of (predictions, golds), and a statistic of their sums.
CORPUS_METRICS: dict[str, tuple[Callable, stats.Statistic]] = {
    "corpus_bleu": (_flashrag_rows, _bleu),
    "sacre_bleu": (_sacre_rows, _smoothed_bleu),
}
# The measures of WixQA's Tables 3 to 5 that need no judge.
WIXQA_METRICS = ("token_f1", "corpus_bleu", "rouge_1", "rouge_2")
ANSWER_METRICS = ("token_f1", "rouge_1", "rouge_2")
# Measures of ranked lists, in the notation of ir_measures; those that need no cutoff.
_CUT = ("R", "P", "RR", "nDCG", "Success", "AP")
_UNCUT = ("RR", "nDCG", "AP")
_MEASURE = re.compile(rf"({'|'.join(_CUT)})@[1-9][0-9]{{0,5}}|{'|'.join(_UNCUT)}")
RETRIEVAL_MEASURES = ("R@1", "R@5", "R@10", "P@5", "RR", "nDCG@10", "Success@5")


def score_answers(
    answers: pd.DataFrame, questions: pd.DataFrame, *, metrics: Sequence[str] = ANSWER_METRICS
) -> pd.DataFrame:
    """Score every answer to a question that has a gold answer.

    `answers` are a frame of `ragkit.schema`, `questions` have question_id and answer: the gold
    answer, a sequence of several, or None. A missing answer (None) and answers to other questions
    give no row (`summarise_answers` counts them). `metrics` are names in `METRICS`.

    Returns subject_id (the system), item_id (the question), metric and score: metric by metric, in
    the order of `answers`. Raises `DataError` if a frame is not valid, or a system has no row for
    any question with a gold answer, `UsageError` if a metric is unknown, or one of whole systems.
    """
    if whole := set(metrics) & set(CORPUS_METRICS):
        raise UsageError(
            f"{min(whole)} has no value for a single answer", "use summarise_answers for it"
        )
    metrics = [checks.choice(name, "metric", METRICS) for name in _names(metrics)]
    present = _answered(answers, questions).dropna(subset=["answer"])
    keys = present[["system", "question_id"]].set_axis(["subject_id", "item_id"], axis=1)
    parts = [
        keys.assign(metric=name, score=list(map(METRICS[name], present["answer"], present["gold"])))
        for name in metrics
    ]
    return pd.concat(parts, ignore_index=True).astype({"score": float})


def summarise_answers(
    answers: pd.DataFrame,
    questions: pd.DataFrame,
    *,
    metrics: Sequence[str] = WIXQA_METRICS,
    **options,
) -> pd.DataFrame:
    """Return each system's metrics with BCa bootstrap intervals over questions.

    As `score_answers`; `metrics` are names in `METRICS` (means over answers) and `CORPUS_METRICS`,
    the options those of `stats.bootstrap_interval`. One row per system and metric: system, metric,
    n answers scored, of which empty; missing (the answer is None), absent (no row for the
    question), no_gold (questions without a gold answer: left out); value, low, high (NaN without
    any answer).
    """
    known = [*METRICS, *CORPUS_METRICS]
    metrics = [checks.choice(name, "metric", known) for name in _names(metrics)]
    asked, table = int(questions["answer"].notna().sum()), []
    for system, rows in _answered(answers, questions).groupby("system", sort=False):
        present = rows.sort_values("question_id").dropna(subset=["answer"])
        texts, golds = present["answer"].tolist(), present["gold"].tolist()
        counts = {"n": len(texts), "empty": sum(not text.strip() for text in texts)}
        counts |= {"missing": len(rows) - len(texts), "absent": asked - len(rows)}
        counts["no_gold"] = len(questions) - asked
        for name in metrics:
            value = low = high = math.nan
            if texts:
                counted, statistic = CORPUS_METRICS.get(name) or (partial(map, METRICS[name]), None)
                sums = np.array([*counted(texts, golds)])
                value, low, high, _ = stats.bootstrap_interval(sums, statistic, **options)
            ends = {"value": value, "low": low, "high": high}
            table.append({"system": system, "metric": name, **counts, **ends})
    return pd.DataFrame(table)


def retrieval(
    runs: pd.DataFrame, questions: pd.DataFrame, *, measures: Sequence[str] = RETRIEVAL_MEASURES
) -> pd.DataFrame:
    """Score the ranked list of every system for every question that has gold documents.

    ir_measures computes the measures (MacAvaney, Macdonald and Ounis 2022). Lists are ordered by
    `rank`. A question for which a system found nothing scores 0, as with trec_eval's `-c`; so
    `questions`, with question_id and gold_doc_ids, are those that were asked. `runs` are a frame of
    `ragkit.schema`. `measures` are R@k (recall), P@k (precision: over k, however many were found),
    Success@k (any gold document among the first k), RR (reciprocal rank, whose mean is MRR), nDCG
    and AP, the last three with or without a cutoff.

    Returns subject_id (the system), item_id (the question), metric, score in [0, 1] and retrieved
    (documents found): system by system, in the order of `runs` and `questions`. Raises `DataError`
    if a frame is not valid, no question has gold documents, a list holds a document twice, or a
    system has none of the questions, `UsageError` if a measure is unknown.
    """
    import ir_measures

    for name in (measures := _names(measures)):
        # Checked here, because trec_eval ends the whole process on a cutoff of 0.
        if not isinstance(name, str) or not _MEASURE.fullmatch(name):
            hint = f"known: {', '.join(f'{known}@k' for known in _CUT)}, {', '.join(_UNCUT)}"
            raise UsageError(f"no retrieval measure {name!r}", hint)
    runs, gold = _with_gold(runs, "runs", questions)
    runs = runs.assign(rank=_ranks(runs))
    qrels = {question: dict.fromkeys(documents, 1) for question, documents in gold.items()}
    judge = ir_measures.evaluator(list(map(ir_measures.parse_measure, measures)), qrels)
    cells = pd.MultiIndex.from_product([qrels, measures], names=["item_id", "metric"])
    parts = []
    for system, rows in runs.groupby("system", sort=False):
        rows = rows.sort_values("rank")
        # trec_eval sorts by score in single precision; a negated place is exact there.
        lists = {
            question: dict(zip(found, range(0, -len(found), -1), strict=True))
            for question, found in rows.groupby("question_id", sort=False)["doc_id"]
        }
        scores = {
            (found.query_id, str(found.measure)): found.value for found in judge.iter_calc(lists)
        }
        part = pd.Series(scores).reindex(cells).rename("score").reset_index()
        lengths = part["item_id"].map(rows["question_id"].value_counts()).fillna(0).astype(int)
        parts.append(part.assign(subject_id=system, retrieved=lengths))
    table = pd.concat(parts, ignore_index=True)
    return table[["subject_id", "item_id", "metric", "score", "retrieved"]]


def summarise_retrieval(
    runs: pd.DataFrame,
    questions: pd.DataFrame,
    *,
    measures: Sequence[str] = RETRIEVAL_MEASURES,
    **options,
) -> pd.DataFrame:
    """Return each system's mean measures with BCa bootstrap intervals over questions.

    As `retrieval`; the options are those of `stats.bootstrap_interval`. One row per system and
    measure: system, metric, n questions scored, of which nothing_found (an empty list), no_gold
    (questions without gold documents: left out), value, low, high.
    """
    scores, keys = retrieval(runs, questions, measures=measures), ["subject_id", "metric"]
    empty = scores["retrieved"].eq(0).groupby([scores[key] for key in keys], sort=False).sum()
    table = stats.summarise(scores, **options).set_index(keys).loc[empty.index]
    table = table.assign(nothing_found=empty, no_gold=len(questions) - table["n"]).reset_index()
    table = table.rename(columns={"subject_id": "system", "mean": "value"})
    return table["system metric n nothing_found no_gold value low high".split()]


def _names(names) -> list[str]:
    names = list(dict.fromkeys([names] if isinstance(names, str) else names))
    if not names:
        raise UsageError("no metric was asked for", f"known: {', '.join(METRICS)}")
    return names


def _answered(answers: pd.DataFrame, questions: pd.DataFrame) -> pd.DataFrame:
    """Return the answers to questions that have a gold answer, with a column `gold`."""
    rows, gold = _with_gold(answers, "answers", questions)
    found = [gold[question] for question in rows["question_id"]]
    return rows[["system", "question_id", "answer"]].assign(gold=pd.Series(found, rows.index))


def _ranks(runs: pd.DataFrame) -> pd.Series:
    """Return the ranks as numbers; `DataError` if one is none, or a list holds a document twice."""
    ranks = pd.to_numeric(runs["rank"], errors="coerce")
    if ranks.isna().any():
        found = runs["rank"][ranks.isna()].iloc[0]
        raise DataError(f"runs: rank should be a number, found {found!r}")
    repeated = runs.duplicated(["system", "question_id", "doc_id"])
    if repeated.any():
        row = runs[repeated].iloc[0]
        raise DataError(
            f"runs: {row['system']!r} lists {row['doc_id']!r} twice for {row['question_id']!r}",
            "keep the best of a document's chunks",
        )
    return ranks


def _with_gold(
    frame: pd.DataFrame, kind: str, questions: pd.DataFrame
) -> tuple[pd.DataFrame, pd.Series]:
    """Return the rows for questions with gold answers or documents, and these by question."""
    schema.check(frame, kind, kind)
    column, what = "gold_doc_ids", "gold documents"
    if kind == "answers":
        column, what = "answer", "a gold answer"
    for name in ("question_id", column):
        if name not in questions.columns:
            raise DataError(f"questions lack the column {name!r}")
    repeated = questions["question_id"].duplicated()
    if repeated.any():
        raise DataError(f"questions: {questions['question_id'][repeated].iloc[0]!r} is there twice")
    gold = questions.set_index("question_id")[column]
    gold = gold[gold.notna() if column == "answer" else gold.map(len) > 0]
    if gold.empty:
        raise DataError(f"no question has {what}")
    if frame.empty:
        raise DataError("there is no row to score")
    # A system that found nothing for any gold document scores 0, but it was asked something.
    asked = (gold if kind == "answers" else questions.set_index("question_id")).index
    for system, own in frame.groupby("system")["question_id"]:
        if not own.isin(asked).any():
            raise DataError(
                f"{system!r} has none of the {len(asked)} questions: it has {own.iloc[0]!r}, "
                f"they begin with {asked[0]!r}"
            )
    return frame[frame["question_id"].isin(gold.index)], gold
